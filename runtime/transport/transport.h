// Transport: messages between the tasks of a job. A task is a process (or, in tests, a thread) with a rank.
//
// Messages of one sender to one receiver arrive in the order in which they were sent; between pairs there is no order.
// A transport looks at a message's sizes alone: what it means is its receiver's affair. Three kinds: `mpi` (a plug-in),
// `local` (threads of one process), and `faulty`, which wraps another one and does what networks do on a bad day.
//
//   struct tfc_message *m = NULL;
//   TFC_TRY(s, tfc_message_create(KIND, sizeof head, &m));
//   memcpy(m->head, &head, sizeof head);
//   TFC_TRY(s, t->type->send(t, to, m));
//   for (;;) {                                   // one thread of each task
//     TFC_TRY(s, t->type->progress(t, 1000000)); // moves messages; sleeps where there is nothing to do
//     for (TFC_TRY(s, t->type->receive(t, &m)); m; TFC_TRY(s, t->type->receive(t, &m))) tfc_message_free(m);
//   }
#ifndef TFC_RUNTIME_TRANSPORT_TRANSPORT_H
#define TFC_RUNTIME_TRANSPORT_TRANSPORT_H

#include "runtime/graph/tensor.h"

enum { TFC_MESSAGE_MOST_HEAD = 1 << 16 };
#define TFC_MESSAGE_MOST_BODY ((uint64_t)1 << 40)

struct tfc_message {
  struct tfc_message *next; // of who holds it
  uint32_t kind, peer;      // peer: who sent it, or whom it goes to
  uint32_t head_size;       // at most TFC_MESSAGE_MOST_HEAD
  struct tfc_buffer *body;  // or NULL: one reference; not written to before it is sent
  uint64_t body_size;       // of it
  _Alignas(16) unsigned char head[];
};
TFC_MUST_USE tfc_status tfc_message_create(uint32_t kind, uint32_t head_size, struct tfc_message **out);
void tfc_message_free(struct tfc_message *m); // NULL is fine

struct tfc_transport;
struct tfc_transport_type {
  const char *name;
  // Takes the message, also where it fails. Any thread; never waits for the receiver.
  tfc_status (*send)(struct tfc_transport *t, uint32_t to, struct tfc_message *m);
  // What has come, or NULL. One thread.
  tfc_status (*receive)(struct tfc_transport *t, struct tfc_message **out);
  // Moves messages, and returns when one has come, or after about `wait_ns`. The same thread. UNAVAILABLE: the job has
  // failed, and why; INVALID_ARGUMENT: a task sent what is no message, and which.
  tfc_status (*progress)(struct tfc_transport *t, int64_t wait_ns);
  // Ends the whole job: every task is told, or killed where that is how it is done. `code` is what the program ends
  // with. Any thread.
  void (*fail)(struct tfc_transport *t, int code, const char *why);
  // Sends what was given to send. Every task calls it, when it has received all that it waits for. One thread.
  void (*close)(struct tfc_transport *t);
};
struct tfc_transport { // embedded first in what implements it
  const struct tfc_transport_type *type;
  uint32_t rank, count;
  uint32_t beside, beside_count; // of the tasks on this host, which one it is, and how many there are
};
void tfc_transport_close(struct tfc_transport *t); // NULL is fine

// `count` transports, connected with each other.
TFC_MUST_USE tfc_status tfc_transport_local(uint32_t count, struct tfc_transport **out);

// What goes wrong. Everything follows from the seed.
struct tfc_faults {
  uint64_t seed;
  int64_t most_delay_ns;  // of a message; those of different pairs overtake each other
  uint64_t silent_after;  // from this message on nothing that it sends arrives, as if the task hung; 0: never
  uint64_t garbled_after; // this message arrives with other bytes; 0: none
};
TFC_MUST_USE tfc_status tfc_transport_faulty(struct tfc_transport *inner, const struct tfc_faults *faults,
                                             struct tfc_transport **out); // takes `inner`, also where it fails

// The plug-in libtfc_mpi.so. UNAVAILABLE: it is not there.
TFC_MUST_USE tfc_status tfc_transport_mpi(struct tfc_transport **out);

#endif
