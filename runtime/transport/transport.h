// Transport: messages between the tasks of a job. A task is a process (in tests, a thread) and has a rank.
//
// Messages from one sender to one receiver arrive in the order in which they were sent, but a message with
// `overtakes` may come before earlier ones. There is no order between other messages. A transport reads only the sizes
// of a message, not its contents. There are three kinds: `mpi` (a plug-in), `local` (threads of one process), and
// `faulty`, which wraps another transport and delays, drops or changes messages as a bad network would.
//
//   struct tfc_message *m = NULL;
//   TFC_TRY(s, tfc_message_create(KIND, sizeof head, &m));
//   memcpy(m->head, &head, sizeof head);
//   TFC_TRY(s, t->type->send(t, to, m));
//   for (;;) {
//     TFC_TRY(s, t->type->progress(t, 1000000)); // moves messages; sleeps if there is nothing to do
//     for (TFC_TRY(s, t->type->receive(t, &m)); m; TFC_TRY(s, t->type->receive(t, &m))) tfc_message_free(m);
//   }
#ifndef TFC_RUNTIME_TRANSPORT_TRANSPORT_H
#define TFC_RUNTIME_TRANSPORT_TRANSPORT_H

#include "runtime/graph/tensor.h"

enum { TFC_MESSAGE_MOST_HEAD = 1 << 16 };
#define TFC_MESSAGE_MOST_BODY ((uint64_t)1 << 40)

struct tfc_message {
  struct tfc_message *next; // links messages in a list of their owner
  uint32_t kind, peer;      // peer: rank of the sender, or of the receiver
  uint32_t head_size;       // bytes, at most TFC_MESSAGE_MOST_HEAD
  bool overtakes;           // it may arrive before messages that were sent earlier; it has no body
  // The sender's thread sends another message at once, or calls `flush`. So the transport may keep this one until then,
  // to send what goes to one task together.
  bool more;
  struct tfc_buffer *body; // or NULL; holds one reference; must not change until the message was sent
  uint64_t body_size;      // bytes
  _Alignas(16) unsigned char head[];
};
TFC_MUST_USE tfc_status tfc_message_create(uint32_t kind, uint32_t head_size, struct tfc_message **out);
void tfc_message_free(struct tfc_message *m); // NULL is fine

struct tfc_transport;
struct tfc_transport_type {
  const char *name;
  // Owns the message from then on, also if it fails. Any thread may call it. It never waits for the receiver.
  tfc_status (*send)(struct tfc_transport *t, uint32_t to, struct tfc_message *m);
  // Sends the messages with `more` that were kept. Any thread.
  tfc_status (*flush)(struct tfc_transport *t);
  // Returns the next received message, or NULL. Only one thread at a time may call it, so that messages are handled in
  // order.
  tfc_status (*receive)(struct tfc_transport *t, struct tfc_message **out);
  // Moves messages. Returns when one has arrived, or after about `wait_ns`. Any thread may call it. UNAVAILABLE: the
  // job has failed; the error message says why. INVALID_ARGUMENT: a task sent something that is not a message; the
  // error message names the task.
  tfc_status (*progress)(struct tfc_transport *t, int64_t wait_ns);
  // Tells the transport that a thread begins to poll (to call `progress` again and again, without waiting), or that it
  // has finished. As long as a thread polls, a message need not wake another one that sleeps in `progress`: waking
  // costs more than the message. Any thread.
  void (*attend)(struct tfc_transport *t, bool begins);
  // Ends the whole job: informs every task, or kills it. `code`: the exit code of the program. Any thread.
  void (*fail)(struct tfc_transport *t, int code, const char *why);
  // Sends all messages that are not yet sent. Every task calls it, from one thread, after it has received everything
  // that it waits for.
  void (*close)(struct tfc_transport *t);
};
struct tfc_transport { // implementations embed this as their first member
  const struct tfc_transport_type *type;
  uint32_t rank, count;
  // `beside_count`: number of tasks on this host; `beside`: the index of this task among them; `beside_ranks`: their
  // ranks, NULL: all tasks are on this host.
  uint32_t beside, beside_count;
  const uint32_t *beside_ranks; // [beside_count]
  bool hands_over;              // a sent body becomes the receiver's memory, without a copy
  // How many messages were sent, and in how many messages of the network. 0: this transport does not count them.
  _Atomic uint64_t sent, packets;
};
void tfc_transport_close(struct tfc_transport *t); // NULL is fine

// Makes `count` transports that are connected with each other.
TFC_MUST_USE tfc_status tfc_transport_local(uint32_t count, struct tfc_transport **out);

// Which faults the transport causes. All random choices are drawn from the seed.
struct tfc_faults {
  uint64_t seed;
  int64_t most_delay_ns; // longest delay of a message
  uint64_t silent_after; // from this message on, no message of the task is delivered, as if the task hung; 0: all are
  uint64_t cut_after;    // from this message on, none is delivered to the task `cut_to`; 0: all are
  uint32_t cut_to;
  uint64_t garbled_after; // the bytes of this message are changed; 0: of none
};
TFC_MUST_USE tfc_status tfc_transport_faulty(struct tfc_transport *inner, const struct tfc_faults *faults,
                                             struct tfc_transport **out); // owns `inner`, also if it fails

// Loads the plug-in libtfc_mpi.so. UNAVAILABLE: it cannot be loaded.
TFC_MUST_USE tfc_status tfc_transport_mpi(struct tfc_transport **out);

#endif
