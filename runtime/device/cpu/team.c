// Runs a loop on the threads of a team. The leader opens a loop: it writes the loop's parameters and then the state
// word. Workers join it by incrementing the state's count while the loop is open. When no pieces are left, the leader
// closes the loop and waits only for workers that have joined, so a loop can end without waking a sleeping worker.
#include "runtime/device/cpu/team.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/base/no_memory.h"
#include "runtime/device/queue.h"
#include "runtime/device/wait.h"

enum { OPEN = 1 << 24, COUNT = OPEN - 1, LOOP = OPEN << 1, MOST_SPINS = 2000 };

// Waits a moment for another thread, which may wait for this thread's core. The scheduler would take the core from this
// thread, but not if both have the same real-time priority: then, after some time, the thread gives it away.
static void wait_a_moment(int *spins) {
  if ((*spins)++ < MOST_SPINS)
    tfc_pause();
  else
    sched_yield();
}

static void work_share(struct tfc_team *t, struct tfc_team_share *share) {
  while (atomic_load_explicit(&share->next, memory_order_relaxed) < share->end) {
    int64_t first = atomic_fetch_add_explicit(&share->next, t->chunk, memory_order_relaxed);
    int64_t last = first + t->chunk < share->end ? first + t->chunk : share->end;
    for (int64_t p = first; p < last; p++) {
      int64_t begin = p * t->grain, end = begin + t->grain < t->total ? begin + t->grain : t->total;
      t->fn(t->arg, begin, end);
    }
  }
}

// The work of thread `index` of the team: it goes over all shares, beginning with the share that has its own number,
// and does what others have left of each.
static void work(struct tfc_team *t, int index) {
  uint64_t begin = tfc_ticks();
  for (int i = 0; i < t->share_count; i++) work_share(t, &t->shares[(index + i) % t->share_count]);
  atomic_fetch_add_explicit(&t->times.work, tfc_ticks() - begin, memory_order_relaxed);
}

static bool join(struct tfc_team *t, uint32_t *out_loop) {
  uint32_t s = atomic_load(&t->state);
  while (s & OPEN)
    if (atomic_compare_exchange_weak(&t->state, &s, s + 1)) {
      *out_loop = s & ~(uint32_t)COUNT;
      return true;
    }
  return false;
}

static void *run_worker(void *arg) {
  const struct tfc_team_worker *worker = arg;
  struct tfc_team *t = worker->team;
  tfc_thread_prepare();
  for (;;) {
    uint32_t seen = 0;
    if (join(t, &seen)) {
      tfc_account_enter(t->account);
      work(t, worker->index);
      atomic_fetch_sub(&t->state, 1);
      // No piece is left, but the loop stays open until the leader has ended its own piece and closes it.
      for (int spins = 0; (atomic_load_explicit(&t->state, memory_order_relaxed) & ~(uint32_t)COUNT) == seen;)
        wait_a_moment(&spins);
      continue;
    }
    if (atomic_load(&t->stop)) return NULL;
    int64_t begin = tfc_now_ns();
    bool open = false;
    do {
      for (int i = 0; i < 32 && !open; i++) {
        open = atomic_load_explicit(&t->state, memory_order_relaxed) & OPEN;
        tfc_pause();
      }
    } while (!open && tfc_now_ns() - begin < t->spin_ns);
    if (open) continue;
    atomic_fetch_add(&t->sleepers, 1);
    for (;;) {
      seen = atomic_load(&t->state);
      if ((seen & OPEN) || atomic_load(&t->stop)) break;
      tfc_futex_wait(&t->state, seen, -1);
    }
    atomic_fetch_sub(&t->sleepers, 1);
  }
}

tfc_status tfc_team_init(struct tfc_team *t, int size, const int *cpus, int64_t spin_ns) {
  *t = (struct tfc_team){.size = size, .spin_ns = spin_ns};
  if (size <= 1) return NULL;
  t->workers = calloc((size_t)size - 1, sizeof *t->workers);
  if (!t->workers) return tfc_status_no_memory_for("a team of %d threads", size);
  for (int i = 1; i < size; i++) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 8u << 20);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[i], &set);
    pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
    struct tfc_team_worker *worker = &t->workers[t->started];
    worker->team = t, worker->index = i;
    int failed = pthread_create(&worker->thread, &attributes, run_worker, worker);
    pthread_attr_destroy(&attributes);
    if (failed) {
      tfc_team_deinit(t);
      return tfc_status_make(TFC_UNAVAILABLE, "thread %d of a team of %d could not be started (%d)", i, size, failed);
    }
    pthread_setname_np(worker->thread, "tfc-team");
    t->started++;
  }
  return NULL;
}

void tfc_team_deinit(struct tfc_team *t) {
  atomic_store(&t->stop, true);
  atomic_fetch_add(&t->state, LOOP);
  tfc_futex_wake(&t->state, INT_MAX);
  for (int i = 0; i < t->started; i++) pthread_join(t->workers[i].thread, NULL);
  free(t->workers);
  *t = (struct tfc_team){0};
}

void tfc_team_help(struct tfc_team *t, int index, const _Atomic uint32_t *ended, uint32_t value) {
  uint32_t seen = 0;
  while (atomic_load_explicit(ended, memory_order_acquire) < value) {
    if ((atomic_load_explicit(&t->state, memory_order_relaxed) & OPEN) && join(t, &seen)) {
      work(t, index);
      atomic_fetch_sub(&t->state, 1);
      for (int spins = 0; (atomic_load_explicit(&t->state, memory_order_relaxed) & ~(uint32_t)COUNT) == seen;)
        wait_a_moment(&spins);
    }
    tfc_pause();
  }
}

bool tfc_team_help_once(struct tfc_team *t, int index, uint32_t *loop) {
  uint32_t s = atomic_load_explicit(&t->state, memory_order_relaxed);
  if (!(s & OPEN) || (s & ~(uint32_t)COUNT) == *loop || !join(t, loop)) return false;
  work(t, index);
  atomic_fetch_sub(&t->state, 1);
  return true;
}

static void run_alone(int64_t total, int64_t grain, int64_t pieces, void (*fn)(void *arg, int64_t begin, int64_t end),
                      void *arg) {
  for (int64_t p = 0; p < pieces; p++) {
    int64_t begin = p * grain;
    fn(arg, begin, begin + grain < total ? begin + grain : total);
  }
}

// Runs a loop with all threads of the team. The caller holds the team.
static void run_together(struct tfc_team *t, int64_t total, int64_t grain, int64_t pieces,
                         void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  t->account = tfc_account_current();
  t->fn = fn, t->arg = arg, t->total = total, t->grain = grain;
  t->chunk = pieces / (t->size * 8);
  if (t->chunk < 1) t->chunk = 1;
  t->share_count = t->size < TFC_TEAM_SHARES ? t->size : TFC_TEAM_SHARES;
  for (int i = 0; i < t->share_count; i++) {
    atomic_store_explicit(&t->shares[i].next, pieces * i / t->share_count, memory_order_relaxed);
    t->shares[i].end = pieces * (i + 1) / t->share_count;
  }
  uint64_t begin = tfc_ticks();
  // No worker is in a loop now: the last loop was closed, and its count is 0. So nothing else writes the state word,
  // and a plain store is enough.
  uint32_t s = atomic_load_explicit(&t->state, memory_order_relaxed);
  atomic_store(&t->state, (s + LOOP) | OPEN);
  if (atomic_load(&t->sleepers)) tfc_futex_wake(&t->state, t->size - 1);
  work(t, t->index);
  atomic_fetch_and(&t->state, ~(uint32_t)OPEN);
  for (int spins = 0; atomic_load(&t->state) & COUNT;) wait_a_moment(&spins);
  atomic_fetch_add_explicit(&t->times.split, tfc_ticks() - begin, memory_order_relaxed);
  atomic_store_explicit(&t->taken, false, memory_order_release);
}

void tfc_team_for(struct tfc_team *t, int64_t total, int64_t grain, void (*fn)(void *arg, int64_t begin, int64_t end),
                  void *arg) {
  if (total <= 0) return;
  if (grain <= 0) grain = 1;
  int64_t pieces = total / grain + (total % grain != 0);
  if (pieces == 1 || t->size <= 1 || atomic_exchange_explicit(&t->taken, true, memory_order_acquire))
    run_alone(total, grain, pieces, fn, arg);
  else
    run_together(t, total, grain, pieces, fn, arg);
}

bool tfc_team_try_for(struct tfc_team *t, int64_t total, int64_t grain,
                      void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  if (total > 0 && grain > 0 && atomic_exchange_explicit(&t->taken, true, memory_order_acquire)) return false;
  if (total > 0 && grain > 0) run_together(t, total, grain, total / grain + (total % grain != 0), fn, arg);
  return true;
}
