// A transport that disturbs another one, for tests. It delays messages by random times drawn from the seed: messages to
// one task stay in order, messages to different tasks may overtake each other. If asked to, it drops all messages from
// a given one on, or those to one task, or changes the bytes of one message (struct tfc_faults).
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/transport/transport.h"

struct held {
  struct tfc_message *message;
  int64_t due;
};
struct lane { // messages to one task
  struct held *data;
  size_t begin, count, capacity;
  int64_t last_due;
};
struct faulty {
  struct tfc_transport base;
  struct tfc_transport *inner;
  struct tfc_faults faults;
  pthread_mutex_t lock; // guards the fields below
  uint64_t random, sent;
  struct lane *lanes; // [count]
};
enum { LONGEST_WAIT_NS = 200000 };

static uint64_t draw(struct faulty *f) { // xorshift64*
  f->random ^= f->random >> 12;
  f->random ^= f->random << 25;
  f->random ^= f->random >> 27;
  return f->random * 0x2545f4914f6cdd1dull;
}

static void garble(struct faulty *f, struct tfc_message *m) {
  m->kind = (uint32_t)draw(f);
  for (uint32_t i = 0; i < m->head_size; i++) m->head[i] = (unsigned char)(draw(f) >> 32);
}

static bool push(struct lane *l, struct held h) {
  if (l->begin + l->count == l->capacity) {
    size_t capacity = 2 * l->count + 8;
    struct held *data = malloc(capacity * sizeof *data);
    if (!data) return false;
    for (size_t i = 0; i < l->count; i++) data[i] = l->data[l->begin + i];
    free(l->data);
    l->data = data, l->begin = 0, l->capacity = capacity;
  }
  l->data[l->begin + l->count++] = h;
  return true;
}

static tfc_status send(struct tfc_transport *t, uint32_t to, struct tfc_message *m) {
  struct faulty *f = (struct faulty *)t;
  if (to >= t->count) return f->inner->type->send(f->inner, to, m);
  pthread_mutex_lock(&f->lock);
  f->sent++;
  const bool silent = f->faults.silent_after && f->sent >= f->faults.silent_after;
  const bool cut = f->faults.cut_after && f->sent >= f->faults.cut_after && to == f->faults.cut_to;
  const bool lost = silent || cut;
  if (f->faults.garbled_after && f->sent == f->faults.garbled_after) garble(f, m);
  struct lane *l = &f->lanes[to];
  int64_t due = tfc_now_ns();
  if (f->faults.most_delay_ns) due += (int64_t)(draw(f) % (uint64_t)f->faults.most_delay_ns);
  if (due < l->last_due) due = l->last_due;
  l->last_due = due;
  const bool kept = !lost && push(l, (struct held){m, due});
  pthread_mutex_unlock(&f->lock);
  if (kept) return NULL;
  tfc_message_free(m);
  return lost ? NULL : tfc_status_no_memory(NULL);
}

// Sends the delayed messages that are due, or all of them (`all`).
static tfc_status let_go(struct faulty *f, bool all) {
  tfc_status s = NULL;
  pthread_mutex_lock(&f->lock);
  for (uint32_t to = 0; to < f->base.count; to++) {
    struct lane *l = &f->lanes[to];
    while (l->count && (all || l->data[l->begin].due <= tfc_now_ns())) {
      s = tfc_status_join(s, f->inner->type->send(f->inner, to, l->data[l->begin].message));
      l->begin++, l->count--;
    }
  }
  s = tfc_status_join(s, f->inner->type->flush(f->inner)); // what was to follow a message may be delayed
  pthread_mutex_unlock(&f->lock);
  return s;
}

static tfc_status flush(struct tfc_transport *t) {
  return let_go((struct faulty *)t, false);
}

static tfc_status progress(struct tfc_transport *t, int64_t wait_ns) {
  struct faulty *f = (struct faulty *)t;
  TFC_RETURN_IF_ERROR(let_go(f, false));
  return f->inner->type->progress(f->inner, wait_ns < LONGEST_WAIT_NS ? wait_ns : LONGEST_WAIT_NS);
}

static tfc_status receive(struct tfc_transport *t, struct tfc_message **out) {
  struct faulty *f = (struct faulty *)t;
  return f->inner->type->receive(f->inner, out);
}

static void attend(struct tfc_transport *t, bool begins) {
  struct faulty *f = (struct faulty *)t;
  f->inner->type->attend(f->inner, begins);
}

static void fail(struct tfc_transport *t, int code, const char *why) {
  struct faulty *f = (struct faulty *)t;
  f->inner->type->fail(f->inner, code, why);
}

static void close_(struct tfc_transport *t) {
  struct faulty *f = (struct faulty *)t;
  if (f->lanes) tfc_status_free(let_go(f, true));
  tfc_transport_close(f->inner);
  for (uint32_t i = 0; f->lanes && i < t->count; i++) free(f->lanes[i].data);
  pthread_mutex_destroy(&f->lock);
  free(f->lanes);
  free(f);
}

static const struct tfc_transport_type faulty_type = {.name = "faulty",
                                                      .send = send,
                                                      .flush = flush,
                                                      .receive = receive,
                                                      .progress = progress,
                                                      .attend = attend,
                                                      .fail = fail,
                                                      .close = close_};

tfc_status tfc_transport_faulty(struct tfc_transport *inner, const struct tfc_faults *faults,
                                struct tfc_transport **out) {
  struct faulty *f = calloc(1, sizeof *f);
  struct lane *lanes = calloc(inner->count, sizeof *lanes);
  if (!f || !lanes) {
    free(f), free(lanes);
    tfc_transport_close(inner);
    return tfc_status_no_memory(NULL);
  }
  *f = (struct faulty){.base = {.type = &faulty_type,
                                .rank = inner->rank,
                                .count = inner->count,
                                .beside = inner->beside,
                                .beside_count = inner->beside_count,
                                .beside_ranks = inner->beside_ranks,
                                .hands_over = inner->hands_over},
                       .inner = inner,
                       .faults = *faults,
                       .lanes = lanes};
  f->random = faults->seed * 0x9e3779b97f4a7c15ull + 1;
  pthread_mutex_init(&f->lock, NULL);
  *out = &f->base;
  return NULL;
}
