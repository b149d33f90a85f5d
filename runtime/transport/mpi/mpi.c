// The MPI plug-in, libtfc_mpi.so. One thread at a time calls MPI. A sender puts its message in a list. Unless the
// message says that more follows, the sender then sends all messages of the list, or leaves that to the thread that is
// calling MPI just then.
//
// A message is a header with its sizes, its head, and its body. A body of up to MOST_INLINE bytes travels with them; a
// longer one follows in MPI messages of its own, sent straight from and received straight into the tensor's memory.
// Messages to one task that are in the list together travel one after another in one MPI message, a packet: as many as
// fit, up to the first one with a long body.
//
// MPI cannot wait for a message without using its core. So a thread that waits sleeps, and a sender on the same host
// wakes it through a word in shared memory, the task's bell. To find messages from other hosts, the thread wakes up and
// polls again and again.
#include <linux/futex.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"
#include "runtime/graph/kept_buffer.h"
#include "runtime/transport/transport.h"

enum {
  SLEEPS = 1, // of a bell's word
  ONE_RING = 2,
  TAG_MESSAGE = 1,
  TAG_BODY = 2,
  MOST_INLINE = 16384,
  EAGER = 4000,    // bytes that MPI sends at once; for longer messages it asks the receiver first (Open MPI: 4 KiB with
                   // its own header)
  PIECE = 1 << 30, // the longest MPI message, in bytes: MPI counts bytes with int
  SPIN_NS = 20000, // with tasks on other hosts: after a message a thread polls for this long before it sleeps
  SHORTEST_SLEEP_NS = 20000, // with tasks on other hosts: the first sleep; sleeps become longer while nothing happens
  LONGEST_SLEEP_NS = 500000,
  MOVES_NS = 50000, // while messages are on their way, threads poll; if nothing happens for so long, they sleep between
};
#define MAGIC 0x7463666du

struct header {
  uint32_t magic, kind, head_size, overtakes;
  uint64_t body_size;
};
struct sending {
  struct sending *next;
  struct tfc_message *messages; // of the packet; only the last one may have a long body
  unsigned char *packed;
  uint32_t count;
  MPI_Request requests[];
};
struct arriving { // a message whose body has not arrived completely
  struct arriving *next;
  struct tfc_message *message;
  uint32_t count;
  bool complete;
  MPI_Request requests[];
};
struct bell {
  // SLEEPS: a thread sleeps or is about to; once woken, it looks for messages. The other bits count how often the bell
  // was rung, so that a thread that is about to sleep notices it even if another one has set SLEEPS again meanwhile.
  _Atomic uint32_t word;
  char apart[60]; // padding, so that the next task's bell is in another cache line
};
struct transport {
  struct tfc_transport base;
  MPI_Comm comm, host;
  MPI_Win window;                          // the shared memory with the bells
  struct bell *own, **bells;               // [task]; NULL: the task is on another host
  uint32_t *ranks;                         // base.beside_ranks
  bool all_here;                           // all tasks are on this host
  _Atomic uint32_t attendants;             // threads that poll
  pthread_mutex_t lock;                    // guards the list
  struct tfc_message *asked, **asked_last; // messages to be sent
  _Atomic bool has_asked;
  pthread_mutex_t mpi; // is held during calls of MPI; guards the fields below
  struct sending *sendings;
  struct arriving **from, ***from_last; // [task] messages that are arriving, in order of arrival
  uint32_t next_peer;
  uint32_t incomplete;
  unsigned char *buffer; // as long as the longest message
  bool own_mpi;
};

static size_t longest(void) {
  return sizeof(struct header) + TFC_MESSAGE_MOST_HEAD + MOST_INLINE;
}

static tfc_status check(int code, const char *what) {
  if (code == MPI_SUCCESS) return NULL;
  char text[MPI_MAX_ERROR_STRING] = "";
  int size = 0;
  MPI_Error_string(code, text, &size);
  return tfc_status_make(TFC_UNAVAILABLE, "MPI: %s: %s", what, text);
}

static tfc_status nonsense(int from, const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "task %d sent what is no message: %s", from, what);
}

// --- Bells -----------------------------------------------------------------------------------------------------------
static void ring(struct bell *b) {
  if (!b) return;
  atomic_thread_fence(memory_order_seq_cst); // the message must be sent before the bell is read
  uint32_t word = atomic_load(&b->word);
  while (word & SLEEPS)
    if (atomic_compare_exchange_weak(&b->word, &word, word - SLEEPS + ONE_RING)) {
      syscall(SYS_futex, &b->word, FUTEX_WAKE, 1, NULL, NULL, 0);
      return;
    }
}
// Returns the word of the bell with SLEEPS set, for the caller to wait on.
static uint32_t begin_sleep(struct bell *b) {
  return atomic_fetch_or(&b->word, SLEEPS) | SLEEPS;
}
static void end_sleep(struct bell *b) {
  atomic_fetch_and(&b->word, ~(uint32_t)SLEEPS);
}
static void wait_for_bell(struct bell *b, uint32_t seen, int64_t ns) {
  const struct timespec t = {ns / 1000000000, ns % 1000000000};
  syscall(SYS_futex, &b->word, FUTEX_WAIT, seen, &t, NULL, 0);
}

// Finds the ranks of the tasks on this host.
static tfc_status find_ranks(struct transport *t) {
  const int count = (int)t->base.beside_count;
  MPI_Group host, all;
  t->ranks = calloc(t->base.beside_count, sizeof *t->ranks);
  if (!t->ranks) return tfc_status_no_memory(NULL);
  TFC_RETURN_IF_ERROR(check(MPI_Comm_group(t->host, &host), "starting"));
  TFC_RETURN_IF_ERROR(check(MPI_Comm_group(t->comm, &all), "starting"));
  for (int i = 0; i < count; i++) {
    int rank = MPI_UNDEFINED;
    TFC_RETURN_IF_ERROR(check(MPI_Group_translate_ranks(host, 1, &i, all, &rank), "starting"));
    if (rank < 0 || rank >= (int)t->base.count) return tfc_status_make(TFC_UNAVAILABLE, "MPI: a task without a rank");
    t->ranks[i] = (uint32_t)rank;
  }
  MPI_Group_free(&host);
  MPI_Group_free(&all);
  t->base.beside_ranks = t->ranks;
  return NULL;
}

// A bell is in memory that the tasks of a host share. If that memory cannot be allocated, threads poll instead.
static tfc_status make_bells(struct transport *t) {
  struct bell *first = NULL;
  t->bells = calloc(t->base.count, sizeof(struct bell *));
  if (!t->bells) return tfc_status_no_memory(NULL);
  MPI_Comm_set_errhandler(t->host, MPI_ERRORS_RETURN);
  if (MPI_Win_allocate_shared(sizeof(struct bell), 1, MPI_INFO_NULL, t->host, &first, &t->window) != MPI_SUCCESS) {
    t->window = MPI_WIN_NULL;
    t->own = calloc(1, sizeof(struct bell));
    return t->own ? NULL : tfc_status_no_memory(NULL);
  }
  atomic_store(&first->word, 0);
  t->own = first;
  t->all_here = t->base.beside_count == t->base.count;
  for (int i = 0; i < (int)t->base.beside_count; i++) {
    const uint32_t rank = t->ranks[i];
    MPI_Aint size = 0;
    int unit = 0;
    if (MPI_Win_shared_query(t->window, i, &size, &unit, (void *)&t->bells[rank]) != MPI_SUCCESS) t->bells[rank] = NULL;
  }
  return check(MPI_Barrier(t->host), "starting"); // after this call all tasks' bells are ready
}

// --- Sending ---------------------------------------------------------------------------------------------------------
static uint32_t pieces_of(uint64_t body_size) {
  return body_size <= MOST_INLINE ? 0 : (uint32_t)((body_size + PIECE - 1) / PIECE);
}
static int piece_size(uint64_t body_size, uint32_t piece) {
  const uint64_t left = body_size - (uint64_t)piece * PIECE;
  return (int)(left < PIECE ? left : PIECE);
}

// Bytes of a message in a packet.
static uint32_t inlined_size(const struct tfc_message *m) {
  return pieces_of(m->body_size) ? 0 : (uint32_t)m->body_size;
}
static size_t packed_size(const struct tfc_message *m) {
  return sizeof(struct header) + m->head_size + inlined_size(m);
}
static unsigned char *pack(const struct tfc_message *m, unsigned char *to) {
  const struct header h = {MAGIC, m->kind, m->head_size, m->overtakes, m->body_size};
  memcpy(to, &h, sizeof h);
  memcpy(to + sizeof h, m->head, m->head_size);
  if (inlined_size(m)) memcpy(to + sizeof h + m->head_size, m->body->data, m->body_size);
  return to + packed_size(m);
}

static void free_messages(struct tfc_message *list) {
  while (list) {
    struct tfc_message *next = list->next;
    tfc_message_free(list);
    list = next;
  }
}
static void sending_free(struct sending *s) {
  free_messages(s->messages);
  free(s->packed);
  free(s);
}

// Sends a packet: messages to one task, `size` bytes when packed.
static tfc_status start(struct transport *t, struct tfc_message *messages, size_t size) {
  const struct tfc_message *last = messages;
  uint32_t count = 1;
  for (; last->next; last = last->next) count++;
  const uint32_t pieces = pieces_of(last->body_size);
  struct sending *s = calloc(1, sizeof *s + (pieces + 1) * sizeof(MPI_Request));
  if (s) s->packed = malloc(size);
  if (!s || !s->packed) {
    free(s);
    free_messages(messages);
    return tfc_status_no_memory("sending a message");
  }
  unsigned char *end = s->packed;
  for (const struct tfc_message *m = messages; m; m = m->next) end = pack(m, end);
  s->messages = messages;
  s->next = t->sendings;
  t->sendings = s;
  atomic_fetch_add_explicit(&t->base.sent, count, memory_order_relaxed);
  atomic_fetch_add_explicit(&t->base.packets, 1, memory_order_relaxed);
  TFC_RETURN_IF_ERROR(
      check(MPI_Isend(s->packed, (int)size, MPI_BYTE, (int)last->peer, TAG_MESSAGE, t->comm, &s->requests[s->count]),
            "sending"));
  s->count++;
  for (uint32_t i = 0; i < pieces; i++, s->count++)
    TFC_RETURN_IF_ERROR(check(MPI_Isend((char *)last->body->data + (uint64_t)i * PIECE, piece_size(last->body_size, i),
                                        MPI_BYTE, (int)last->peer, TAG_BODY, t->comm, &s->requests[s->count]),
                              "sending"));
  ring(t->bells[last->peer]);
  return NULL;
}

// Takes the next packet from a list: its first message, and what follows for the same task and fits. A message that MPI
// sends at once does not make the packet one for which MPI asks first.
static struct tfc_message *take_packet(struct tfc_message **list, size_t *out_size) {
  struct tfc_message *first = *list, *last = first;
  size_t size = packed_size(first);
  *list = first->next;
  for (struct tfc_message **at = list; *at && !pieces_of(last->body_size);) {
    struct tfc_message *m = *at;
    const size_t more = packed_size(m), both = size + more;
    if (m->peer != first->peer) {
      at = &m->next;
      continue;
    }
    if (both > longest() || (both > EAGER && size <= EAGER && more <= EAGER)) break; // and none may overtake it
    size = both;
    *at = m->next;
    last = last->next = m;
  }
  last->next = NULL;
  *out_size = size;
  return first;
}

static tfc_status start_asked(struct transport *t, bool *any) {
  tfc_status s = NULL;
  if (!atomic_load(&t->has_asked)) return NULL;
  pthread_mutex_lock(&t->lock);
  atomic_store(&t->has_asked, false);
  struct tfc_message *list = t->asked;
  t->asked = NULL;
  t->asked_last = &t->asked;
  pthread_mutex_unlock(&t->lock);
  while (list && !s) {
    size_t size = 0;
    struct tfc_message *packet = take_packet(&list, &size);
    *any = true;
    s = start(t, packet, size);
  }
  free_messages(list);
  return s;
}

static tfc_status finish_sent(struct transport *t, bool *any) {
  for (struct sending **at = &t->sendings; *at;) {
    struct sending *s = *at;
    int done = 0;
    TFC_RETURN_IF_ERROR(check(MPI_Testall((int)s->count, s->requests, &done, MPI_STATUSES_IGNORE), "sending"));
    if (!done) {
      at = &s->next;
      continue;
    }
    *at = s->next;
    ring(t->bells[s->messages->peer]); // perhaps MPI has sent the message only now
    sending_free(s);
    *any = true;
  }
  return NULL;
}

static tfc_status flush(struct tfc_transport *base) {
  struct transport *t = (struct transport *)base;
  tfc_status s = NULL;
  bool any = false, left = false;
  // A thread that calls MPI now looks at the list when it has finished.
  while (!s && atomic_load(&t->has_asked) && pthread_mutex_trylock(&t->mpi) == 0) {
    s = start_asked(t, &any);
    if (!s) s = finish_sent(t, &any);
    left = t->sendings != NULL;
    pthread_mutex_unlock(&t->mpi);
  }
  if (left) ring(t->own); // wakes a thread of this task that sleeps; it will complete the sending
  return s;
}

static tfc_status send(struct tfc_transport *base, uint32_t to, struct tfc_message *m) {
  struct transport *t = (struct transport *)base;
  const bool more = m->more; // another thread may send and free the message as soon as it is in the list
  if (to >= base->count) {
    tfc_message_free(m);
    return tfc_status_make(TFC_INTERNAL, "there is no task %u", to);
  }
  m->peer = to;
  m->next = NULL;
  pthread_mutex_lock(&t->lock);
  *t->asked_last = m;
  t->asked_last = &m->next;
  atomic_store(&t->has_asked, true);
  pthread_mutex_unlock(&t->lock);
  return more ? NULL : flush(base);
}

// --- Receiving -------------------------------------------------------------------------------------------------------

// Handles the first message of a packet of which `size` bytes are left. *out_size: its own.
static tfc_status take(struct transport *t, int from, const unsigned char *packed, size_t size, size_t *out_size) {
  struct header h;
  if (size < sizeof h) return nonsense(from, "it is shorter than a header");
  memcpy(&h, packed, sizeof h);
  if (h.magic != MAGIC || h.overtakes > !h.body_size) return nonsense(from, "its header has no mark");
  if (h.head_size > TFC_MESSAGE_MOST_HEAD || h.body_size > TFC_MESSAGE_MOST_BODY)
    return nonsense(from, "it is longer than any message");
  const uint32_t pieces = pieces_of(h.body_size), inlined = pieces ? 0 : (uint32_t)h.body_size;
  *out_size = sizeof h + h.head_size + inlined;
  if (size < *out_size || (size > *out_size && pieces)) return nonsense(from, "it has not the length that it says");
  struct tfc_message *m = NULL;
  TFC_RETURN_IF_ERROR(tfc_message_create(h.kind, h.head_size, &m));
  memcpy(m->head, packed + sizeof h, h.head_size);
  m->peer = (uint32_t)from;
  m->body_size = h.body_size;
  tfc_status s = h.body_size ? tfc_buffer_create_kept(h.body_size, &m->body) : NULL;
  struct arriving *a = s ? NULL : calloc(1, sizeof *a + (pieces + 1) * sizeof(MPI_Request));
  if (!a) {
    tfc_message_free(m);
    return s ? tfc_status_annotate(s, "a message of task %d", from)
             : tfc_status_no_memory_for("a message of task %d", from);
  }
  if (inlined) memcpy(m->body->data, packed + sizeof h + h.head_size, inlined);
  a->message = m;
  a->complete = pieces == 0;
  struct arriving **at = h.overtakes ? &t->from[from] : t->from_last[from];
  a->next = *at;
  *at = a;
  if (!a->next) t->from_last[from] = &a->next;
  t->incomplete += pieces > 0;
  for (; a->count < pieces; a->count++)
    TFC_RETURN_IF_ERROR(
        check(MPI_Irecv((char *)m->body->data + (uint64_t)a->count * PIECE, piece_size(m->body_size, a->count),
                        MPI_BYTE, from, TAG_BODY, t->comm, &a->requests[a->count]),
              "receiving"));
  return NULL;
}

// MPI_Improbe looks at the messages that MPI has taken already, and then lets MPI take those that have come since. So
// only the second call finds these, and a thread that looks for the last time before it sleeps has to ask twice: the
// sender saw it awake and will not wake it.
static tfc_status take_all(struct transport *t, bool *any) {
  for (int taken = 0, misses = 0; taken < 64 && misses < 2;) {
    int there = 0, size = 0;
    MPI_Message message;
    MPI_Status status;
    TFC_RETURN_IF_ERROR(
        check(MPI_Improbe(MPI_ANY_SOURCE, TAG_MESSAGE, t->comm, &there, &message, &status), "looking for messages"));
    misses = there ? 0 : misses + 1;
    if (!there) continue;
    taken++;
    MPI_Get_count(&status, MPI_BYTE, &size);
    if (size < 0 || (size_t)size > longest()) return nonsense(status.MPI_SOURCE, "it is longer than any message");
    TFC_RETURN_IF_ERROR(check(MPI_Mrecv(t->buffer, size, MPI_BYTE, &message, MPI_STATUS_IGNORE), "receiving"));
    size_t own = 0, at = 0;
    do {
      TFC_RETURN_IF_ERROR(take(t, status.MPI_SOURCE, t->buffer + at, (size_t)size - at, &own));
      at += own;
    } while (at < (size_t)size);
    *any = true;
  }
  return NULL;
}

static tfc_status finish_bodies(struct transport *t, bool *any) {
  for (uint32_t p = 0; t->incomplete && p < t->base.count; p++)
    for (struct arriving *a = t->from[p]; a; a = a->next) {
      int done = 0;
      if (a->complete) continue;
      TFC_RETURN_IF_ERROR(check(MPI_Testall((int)a->count, a->requests, &done, MPI_STATUSES_IGNORE), "receiving"));
      if (!done) break;
      a->complete = true;
      t->incomplete--;
      ring(t->bells[p]); // the sender need not poll to find out that its body was sent
      *any = true;
    }
  return NULL;
}

static bool is_there(const struct transport *t) {
  for (uint32_t p = 0; p < t->base.count; p++)
    if (t->from[p] && t->from[p]->complete) return true;
  return false;
}

struct view { // what look() found: any message, a message to receive, messages on their way
  bool any, there, moves;
};
static tfc_status look(struct transport *t, struct view *out) {
  bool any = false;
  pthread_mutex_lock(&t->mpi);
  tfc_status s = start_asked(t, &any);
  if (!s) s = take_all(t, &any);
  if (!s) s = finish_bodies(t, &any);
  if (!s) s = finish_sent(t, &any);
  *out = (struct view){any, is_there(t), t->incomplete || t->sendings};
  pthread_mutex_unlock(&t->mpi);
  return s;
}

// Sleeps until a message arrives. While another thread polls, that thread receives the messages, and this one continues
// to sleep.
static tfc_status doze(struct transport *t, int64_t ns) {
  struct view v = {0};
  uint32_t seen = atomic_load(&t->own->word); // before it asks for attendants: the last one to leave sets SLEEPS
  tfc_status s = NULL;
  if (!atomic_load(&t->attendants)) {
    seen = begin_sleep(t->own);
    s = look(t, &v); // finds a message that a task sent before SLEEPS was set, so that it did not ring the bell
  }
  if (!s && !v.any && !v.there && !atomic_load(&t->has_asked)) wait_for_bell(t->own, seen, ns);
  end_sleep(t->own);
  return s;
}

static void attend(struct tfc_transport *base, bool begins) {
  struct transport *t = (struct transport *)base;
  struct view v = {0};
  if (begins) {
    atomic_fetch_add(&t->attendants, 1);
    end_sleep(t->own);
  } else if (atomic_fetch_sub(&t->attendants, 1) == 1) {
    begin_sleep(t->own);
    tfc_status s = look(t, &v);
    // Another thread may have left a message to be sent while this one called MPI.
    if (s || v.there || v.moves || atomic_load(&t->has_asked)) ring(t->own);
    tfc_status_free(s); // the thread that is woken gets the same error
  }
}

static tfc_status progress(struct tfc_transport *base, int64_t wait_ns) {
  struct transport *t = (struct transport *)base;
  const int64_t begin = wait_ns ? tfc_now_ns() : 0;
  int64_t last = begin, sleep_ns = SHORTEST_SLEEP_NS;
  for (;;) {
    struct view v;
    TFC_RETURN_IF_ERROR(look(t, &v));
    if (v.there) return NULL;
    if (atomic_load(&t->has_asked)) continue;
    if (!wait_ns) return NULL;
    const int64_t now = tfc_now_ns();
    if (v.any) last = now, sleep_ns = SHORTEST_SLEEP_NS;
    if (now - begin >= wait_ns) return NULL;
    if (v.any || (v.moves && now - last < MOVES_NS)) continue;
    // Polls for a short time before it sleeps: a thread that gives up its core may have to wait until another thread's
    // time slice ends.
    if (!t->all_here && now - last < SPIN_NS) continue;
    int64_t ns = wait_ns - (now - begin);
    if (v.moves)
      ns = SHORTEST_SLEEP_NS;
    else if (!t->all_here && ns > sleep_ns)
      ns = sleep_ns;
    TFC_RETURN_IF_ERROR(doze(t, ns));
    sleep_ns += sleep_ns / 4;
    if (sleep_ns > LONGEST_SLEEP_NS) sleep_ns = LONGEST_SLEEP_NS;
  }
}

static tfc_status receive(struct tfc_transport *base, struct tfc_message **out) {
  struct transport *t = (struct transport *)base;
  *out = NULL;
  pthread_mutex_lock(&t->mpi);
  for (uint32_t i = 0; i < base->count && !*out; i++) { // starts at another task each time, so that none has priority
    const uint32_t p = (t->next_peer + i) % base->count;
    struct arriving *a = t->from[p];
    if (!a || !a->complete) continue;
    t->from[p] = a->next;
    if (!a->next) t->from_last[p] = &t->from[p];
    *out = a->message;
    free(a);
    t->next_peer = p + 1;
  }
  pthread_mutex_unlock(&t->mpi);
  return NULL;
}

// MPI_Abort may hang if MPI itself is stuck, or if mpirun sleeps because it is ending the job already. So after 2 s the
// process exits, and mpirun then ends the other processes.
static void *leave_anyway(void *code) {
  tfc_sleep_ns(2000000000);
  _Exit(*(int *)code);
}
static void fail(struct tfc_transport *base, int code, const char *why) {
  struct transport *t = (struct transport *)base;
  (void)why; // not used: the program has already printed it
  pthread_t thread;
  static int last;
  last = code;
  if (pthread_create(&thread, NULL, leave_anyway, &last) == 0) pthread_detach(thread);
  pthread_mutex_lock(&t->mpi); // for ever: another thread may be in MPI now, and none may call it any more
  MPI_Abort(t->comm, code);
  _Exit(code);
}

static void transport_free(struct transport *t) {
  for (uint32_t p = 0; t->from && p < t->base.count; p++)
    for (struct arriving *a = t->from[p], *next; a; a = next) {
      next = a->next;
      tfc_message_free(a->message);
      free(a);
    }
  while (t->sendings) {
    struct sending *s = t->sendings;
    t->sendings = s->next;
    sending_free(s);
  }
  if (t->window == MPI_WIN_NULL) free(t->own);
  free(t->bells);
  free(t->ranks);
  pthread_mutex_destroy(&t->mpi);
  pthread_mutex_destroy(&t->lock);
  free(t->from);
  free(t->from_last);
  free(t->buffer);
  free(t);
}

static void close_(struct tfc_transport *base) {
  struct transport *t = (struct transport *)base;
  bool any = false;
  tfc_status s = start_asked(t, &any);
  while (!s && t->sendings) s = finish_sent(t, &any);
  tfc_status_free(s);
  const bool own = t->own_mpi;
  MPI_Comm comm = t->comm, host = t->host;
  MPI_Win window = t->window;
  if (!s) {
    // MPI_Win_free is a barrier: after it no task rings a bell of this one.
    if (window != MPI_WIN_NULL) MPI_Win_free(&t->window), t->own = NULL;
    transport_free(t);
    MPI_Comm_free(&host);
    MPI_Comm_free(&comm);
  }
  if (own) MPI_Finalize();
}

static const struct tfc_transport_type mpi_type = {.name = "mpi",
                                                   .send = send,
                                                   .flush = flush,
                                                   .receive = receive,
                                                   .progress = progress,
                                                   .attend = attend,
                                                   .fail = fail,
                                                   .close = close_};

TFC_MUST_USE tfc_status tfc_transport_mpi_open(struct tfc_transport **out);
__attribute__((visibility("default"))) tfc_status tfc_transport_mpi_open(struct tfc_transport **out) {
  int initialized = 0, level = 0, rank = 0, count = 0;
  MPI_Initialized(&initialized);
  if (!initialized)
    TFC_RETURN_IF_ERROR(check(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level), "starting"));
  else
    MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED)
    return tfc_status_make(TFC_UNAVAILABLE, "this MPI cannot be used by a program with threads");
  struct transport *t = calloc(1, sizeof *t);
  if (!t) return tfc_status_no_memory(NULL);
  pthread_mutex_init(&t->lock, NULL);
  pthread_mutex_init(&t->mpi, NULL);
  t->window = MPI_WIN_NULL;
  t->asked_last = &t->asked;
  t->own_mpi = !initialized;
  tfc_status s = check(MPI_Comm_dup(MPI_COMM_WORLD, &t->comm), "starting");
  if (!s) s = check(MPI_Comm_set_errhandler(t->comm, MPI_ERRORS_RETURN), "starting");
  if (!s) s = check(MPI_Comm_rank(t->comm, &rank), "starting");
  if (!s) s = check(MPI_Comm_size(t->comm, &count), "starting");
  if (!s) s = check(MPI_Comm_split_type(t->comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &t->host), "starting");
  if (!s) {
    int beside = 0, beside_count = 1;
    MPI_Comm_rank(t->host, &beside);
    MPI_Comm_size(t->host, &beside_count);
    t->base = (struct tfc_transport){.type = &mpi_type,
                                     .rank = (uint32_t)rank,
                                     .count = (uint32_t)count,
                                     .beside = (uint32_t)beside,
                                     .beside_count = (uint32_t)beside_count};
    t->from = calloc((size_t)count, sizeof *t->from);
    t->from_last = calloc((size_t)count, sizeof *t->from_last);
    t->buffer = malloc(longest());
    if (!t->from || !t->from_last || !t->buffer) s = tfc_status_no_memory(NULL);
    if (!s) s = find_ranks(t);
    if (!s) s = make_bells(t);
  }
  if (s) {
    transport_free(t);
    return s;
  }
  for (int i = 0; i < count; i++) t->from_last[i] = &t->from[i];
  *out = &t->base;
  return NULL;
}
