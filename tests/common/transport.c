#include "tests/common/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/random.h"

// Sizes around those at which a transport may change its protocol, and sometimes a large one.
static uint64_t body_size(uint32_t i) {
  static const uint64_t sizes[] = {0, 1, 8, 4096, 16383, 16384, 16385, 100000, 0, 300000};
  return sizes[i % (sizeof sizes / sizeof *sizes)];
}
static uint32_t head_size(uint32_t i) {
  return 12 + i * i * 7 % 3000;
}
static unsigned char byte_of(uint32_t from, uint32_t to, uint32_t i, uint64_t at, uint64_t seed) {
  return (unsigned char)((from * 31 + to * 17 + i * 7 + at * 13 + (at >> 9) + seed) & 255);
}

// Some messages say that others follow (`more`), in all orders of tasks and sizes; the last of a round may, too.
static tfc_status send_all(struct tfc_transport *t, uint32_t i, uint64_t seed) {
  for (uint32_t to = 0; to < t->count; to++) {
    struct tfc_message *m = NULL;
    TFC_RETURN_IF_ERROR(tfc_message_create(100 + i, head_size(i), &m));
    memset(m->head, (int)(i & 255), m->head_size);
    memcpy(m->head, (uint32_t[]){t->rank, to, i}, 12);
    m->body_size = body_size(i);
    if (m->body_size) TFC_RETURN_IF_ERROR(tfc_buffer_create_host(m->body_size, &m->body));
    for (uint64_t k = 0; k < m->body_size; k++) ((unsigned char *)m->body->data)[k] = byte_of(t->rank, to, i, k, seed);
    m->more = (i * 5 + to * 3 + t->rank) % 7 < 4;
    TFC_RETURN_IF_ERROR(t->type->send(t, to, m));
  }
  return i % 3 ? NULL : t->type->flush(t);
}

static tfc_status check(const struct tfc_transport *t, const struct tfc_message *m, uint32_t i, uint64_t seed) {
  uint32_t told[3];
  if (m->kind != 100 + i || m->head_size != head_size(i) || m->body_size != body_size(i))
    return tfc_status_make(TFC_ABORTED, "of task %u: message %u has other sizes, or is message %u", m->peer, i,
                           m->kind - 100);
  memcpy(told, m->head, sizeof told);
  if (told[0] != m->peer || told[1] != t->rank || told[2] != i)
    return tfc_status_make(TFC_ABORTED, "of task %u: message %u has another head", m->peer, i);
  for (uint32_t k = 12; k < m->head_size; k++)
    if (m->head[k] != (i & 255)) return tfc_status_make(TFC_ABORTED, "of task %u: head %u is broken", m->peer, i);
  for (uint64_t k = 0; k < m->body_size; k++)
    if (((const unsigned char *)m->body->data)[k] != byte_of(m->peer, t->rank, i, k, seed))
      return tfc_status_make(TFC_ABORTED, "of task %u: body %u is broken", m->peer, i);
  return NULL;
}

tfc_status tfc_test_exchange(struct tfc_transport *t, uint32_t count, uint64_t seed) {
  tfc_status s = NULL;
  uint32_t sent = 0, left = count * t->count;
  uint32_t *next = calloc(t->count, sizeof *next);
  const int64_t until = tfc_now_ns() + 60000000000;
  if (!next) return tfc_status_no_memory(NULL);
  while (left || sent < count) {
    struct tfc_message *m = NULL;
    if (sent < count) {
      TFC_TRY(s, send_all(t, sent++, seed));
      if (sent == count) TFC_TRY(s, t->type->flush(t));
    }
    TFC_TRY(s, t->type->progress(t, sent < count ? 0 : 1000000));
    for (;;) {
      TFC_TRY(s, t->type->receive(t, &m));
      if (!m) break;
      if (m->peer >= t->count || next[m->peer] >= count)
        s = tfc_status_make(TFC_ABORTED, "a message that nobody sent");
      else
        s = check(t, m, next[m->peer]++, seed);
      tfc_message_free(m);
      if (s) goto out;
      left--;
    }
    if (tfc_now_ns() > until) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "%u messages did not come", left);
  }
out:
  free(next);
  return s;
}

// --- Messages that travel together -----------------------------------------------------------------------------------
struct travels {
  uint32_t to, head_size; // bytes
  uint64_t body_size;
};
static tfc_status send_together(struct tfc_transport *t, const struct travels *what, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_message *m = NULL;
    TFC_RETURN_IF_ERROR(tfc_message_create(i, what[i].head_size, &m));
    memset(m->head, 0, m->head_size);
    m->body_size = what[i].body_size;
    m->more = true;
    if (m->body_size) {
      TFC_RETURN_IF_ERROR(tfc_buffer_create_host(m->body_size, &m->body));
      memset(m->body->data, (int)i, m->body_size);
    }
    TFC_RETURN_IF_ERROR(t->type->send(t, what[i].to, m));
  }
  return t->type->flush(t);
}
static tfc_status receive_together(struct tfc_transport *t, const struct travels *what, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    struct tfc_message *m = NULL;
    if (what[i].to != t->rank) continue;
    while (!m) {
      TFC_RETURN_IF_ERROR(t->type->progress(t, 1000000));
      TFC_RETURN_IF_ERROR(t->type->receive(t, &m));
    }
    bool good = m->kind == i && m->head_size == what[i].head_size && m->body_size == what[i].body_size;
    for (uint64_t k = 0; good && k < m->body_size; k++) good = ((const unsigned char *)m->body->data)[k] == (i & 255);
    const uint32_t kind = m->kind;
    tfc_message_free(m);
    if (!good) return tfc_status_make(TFC_ABORTED, "message %u came, or is broken, not message %u", kind, i);
  }
  return NULL;
}

tfc_status tfc_test_together(struct tfc_transport *t, uint32_t rounds) {
  // Packets: (1) all for task 1 up to the first long body, also what comes after the message for task 2; (2) that
  // message; (3) what follows for task 1, as long as MPI sends it at once; (4) the rest, of which a part is longer than
  // that.
  static const struct travels what[] = {{1, 100, 0},      {1, 20, 1000},  {2, 8, 5},      {1, 0, 8},
                                        {1, 100, 100000}, {1, 50, 9},     {1, 90, 600},   {1, 0, 0},
                                        {1, 70, 3500},    {1, 60, 12000}, {1, 40, 16384}, {1, 30, 1}};
  enum { COUNT = sizeof what / sizeof *what, PACKETS = 4 };
  for (uint32_t i = 0; i < rounds; i++) {
    const uint64_t sent = atomic_load(&t->sent), packets = atomic_load(&t->packets);
    if (t->rank == 0) TFC_RETURN_IF_ERROR(send_together(t, what, COUNT));
    if (t->rank == 0 && (atomic_load(&t->sent) != sent + COUNT || atomic_load(&t->packets) != packets + PACKETS))
      return tfc_status_make(TFC_ABORTED, "%llu messages in %llu packets, not %d in %d",
                             (unsigned long long)(atomic_load(&t->sent) - sent),
                             (unsigned long long)(atomic_load(&t->packets) - packets), (int)COUNT, (int)PACKETS);
    TFC_RETURN_IF_ERROR(receive_together(t, what, COUNT));
  }
  return NULL;
}

// Two threads, as in a task (runtime/cluster/member.c). One sleeps until a message comes. The other one waits for a
// certain message: it polls for some time, and then leaves receiving to the first. Only the thread that holds the lock
// `helm` may receive.
struct waking {
  struct tfc_transport *t;
  pthread_mutex_t helm, lock;
  pthread_cond_t changed;
  tfc_status status;     // guarded by the lock
  _Atomic uint32_t next; // the number that comes next; UINT32_MAX: the test has ended
};
enum { SLEEP_S = 5, LONGEST_NS = 40000 };

static void end_waking(struct waking *w, tfc_status s) {
  pthread_mutex_lock(&w->lock);
  w->status = tfc_status_join(w->status, s);
  atomic_store(&w->next, UINT32_MAX);
  pthread_cond_broadcast(&w->changed);
  pthread_mutex_unlock(&w->lock);
}
// Receives what has come. `slept`: nothing woke this thread. Under `helm`.
static tfc_status take_numbers(struct waking *w, bool slept) {
  for (;;) {
    struct tfc_message *m = NULL;
    uint32_t number = 0;
    TFC_RETURN_IF_ERROR(w->t->type->receive(w->t, &m));
    if (!m) return NULL;
    memcpy(&number, m->head, sizeof number);
    tfc_message_free(m);
    if (slept && number != UINT32_MAX) return tfc_status_make(TFC_DEADLINE_EXCEEDED, "message %u woke nobody", number);
    if (number != UINT32_MAX && number != atomic_load(&w->next))
      return tfc_status_make(TFC_ABORTED, "message %u came, not %u", number, atomic_load(&w->next));
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->next, number == UINT32_MAX ? number : number + 2);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
  }
}
static void *sleeper(void *arg) {
  struct waking *w = arg;
  tfc_status s = NULL;
  while (!s && atomic_load(&w->next) != UINT32_MAX) {
    const int64_t begin = tfc_now_ns(), sleep_ns = SLEEP_S * INT64_C(1000000000);
    s = w->t->type->progress(w->t, sleep_ns);
    pthread_mutex_lock(&w->helm);
    if (!s) s = take_numbers(w, tfc_now_ns() - begin >= sleep_ns);
    pthread_mutex_unlock(&w->helm);
  }
  if (s) end_waking(w, s);
  return NULL;
}
// Waits until the number has come: looks for it for a time, and then sleeps.
static void await_number(struct waking *w, uint32_t number, int64_t polls_ns) {
  const int64_t until = tfc_now_ns() + polls_ns;
  tfc_status s = NULL;
  w->t->type->attend(w->t, true);
  while (!s && atomic_load(&w->next) <= number && tfc_now_ns() < until) {
    if (pthread_mutex_trylock(&w->helm) != 0) continue;
    s = w->t->type->progress(w->t, 0);
    if (!s) s = take_numbers(w, false);
    pthread_mutex_unlock(&w->helm);
  }
  w->t->type->attend(w->t, false);
  if (s) end_waking(w, s);
  pthread_mutex_lock(&w->lock);
  while (atomic_load(&w->next) <= number) pthread_cond_wait(&w->changed, &w->lock);
  pthread_mutex_unlock(&w->lock);
}
static tfc_status send_number(struct tfc_transport *t, uint32_t to, uint32_t number) {
  struct tfc_message *m = NULL;
  TFC_RETURN_IF_ERROR(tfc_message_create(1, sizeof number, &m));
  memcpy(m->head, &number, sizeof number);
  return t->type->send(t, to, m);
}

tfc_status tfc_test_wakes(struct tfc_transport *t, uint32_t count, uint64_t seed) {
  struct tfc_random random;
  struct waking w = {.t = t, .next = 1 - t->rank};
  pthread_t thread;
  tfc_status s = NULL;
  tfc_random_init(&random, seed + t->rank);
  pthread_mutex_init(&w.helm, NULL);
  pthread_mutex_init(&w.lock, NULL);
  pthread_cond_init(&w.changed, NULL);
  if (pthread_create(&thread, NULL, sleeper, &w) != 0) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "no thread");
  for (uint32_t i = 0; i < 2 * count && !s && atomic_load(&w.next) != UINT32_MAX; i++) {
    const int64_t ns = (int64_t)(tfc_random_unit(&random) * LONGEST_NS), until = tfc_now_ns() + ns;
    if (i % 2 == t->rank) {
      while (tfc_now_ns() < until) continue;
      s = send_number(t, 1 - t->rank, i);
    } else {
      await_number(&w, i, ns);
    }
  }
  if (!s) s = send_number(t, t->rank, UINT32_MAX);
  if (s) end_waking(&w, s);
  pthread_join(thread, NULL);
  pthread_cond_destroy(&w.changed);
  pthread_mutex_destroy(&w.lock);
  pthread_mutex_destroy(&w.helm);
  return w.status;
}
