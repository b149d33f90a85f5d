// The conversion from ticks to ns is a line through two calibration points: its rate comes from the longest baseline so
// far, its offset from the last resynchronisation. A sequence counter lets readers on other threads see both
// consistently.
#include "runtime/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

int64_t tfc_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void tfc_sleep_ns(int64_t ns) {
  if (ns <= 0) return;
  struct timespec t = {ns / 1000000000, ns % 1000000000};
  while (nanosleep(&t, &t) == -1 && errno == EINTR) {
  }
}

struct pair {
  uint64_t ticks;
  int64_t ns;
};

static struct pair sample(void) { // tries a few times and keeps the pair whose two readings are closest together
  struct pair best = {0, 0};
  uint64_t width = UINT64_MAX;
  for (int i = 0; i < 8; i++) {
    uint64_t a = tfc_ticks();
    int64_t ns = tfc_now_ns();
    uint64_t b = tfc_ticks();
    if (b - a < width) {
      width = b - a;
      best = (struct pair){a + (b - a) / 2, ns};
    }
  }
  return best;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pair first;
static _Atomic uint32_t sequence;
static _Atomic uint64_t base_ticks;
static _Atomic int64_t base_ns;
static _Atomic double rate;

static void publish(struct pair p, double r) {
  atomic_fetch_add(&sequence, 1);
  atomic_store(&base_ticks, p.ticks);
  atomic_store(&base_ns, p.ns);
  atomic_store(&rate, r);
  atomic_fetch_add(&sequence, 1);
}

static void calibrate(void) {
  first = sample();
  tfc_sleep_ns(2000000);
  struct pair p = sample();
  publish(p, (double)(p.ns - first.ns) / (double)(p.ticks - first.ticks));
}

void tfc_ticks_resync(void) {
  pthread_once(&once, calibrate);
  pthread_mutex_lock(&lock);
  struct pair p = sample();
  publish(p, (double)(p.ns - first.ns) / (double)(p.ticks - first.ticks));
  pthread_mutex_unlock(&lock);
}

double tfc_ns_per_tick(void) {
  pthread_once(&once, calibrate);
  return atomic_load(&rate);
}

int64_t tfc_ticks_to_ns(uint64_t ticks) {
  pthread_once(&once, calibrate);
  for (;;) {
    uint32_t before = atomic_load(&sequence);
    uint64_t bt = atomic_load(&base_ticks);
    int64_t bn = atomic_load(&base_ns);
    double r = atomic_load(&rate);
    if ((before & 1) || atomic_load(&sequence) != before) continue;
    return bn + (int64_t)((double)(int64_t)(ticks - bt) * r);
  }
}
