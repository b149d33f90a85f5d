// Timeline semaphores with a futex. Waiters look only at the value; the futex word counts wake-ups. So a signal costs
// one store and one load if no thread sleeps. No wake-up is lost: a signal writes the value and then reads `waiters`, a
// waiter increments `waiters` and then reads the value (all sequentially consistent), so at least one sees the other.
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/device/driver.h"
#include "runtime/device/wait.h"

enum { YIELD_NS = 500000 }; // after spinning for this time, a thread yields its core between looks

void tfc_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns) {
  struct timespec t = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, timeout_ns < 0 ? NULL : &t, NULL, 0);
}

void tfc_futex_wake(_Atomic uint32_t *word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

tfc_status tfc_semaphore_create(struct tfc_semaphore **out) {
  struct tfc_semaphore *s = calloc(1, sizeof *s);
  if (!s) return tfc_status_no_memory("a semaphore");
  *out = s;
  return NULL;
}

void tfc_semaphore_free(struct tfc_semaphore *s) {
  if (!s) return;
  if (s->native_free) s->native_free(s->native);
  free(s);
}

void tfc_semaphore_signal(struct tfc_semaphore *s, uint64_t value) {
  atomic_store_explicit(&s->stamp, tfc_ticks(), memory_order_relaxed);
  uint64_t now = atomic_load_explicit(&s->value, memory_order_relaxed);
  while (now < value && !atomic_compare_exchange_weak(&s->value, &now, value)) {
  }
  if (atomic_load(&s->waiters)) {
    atomic_fetch_add(&s->futex, 1);
    tfc_futex_wake(&s->futex, INT_MAX);
  }
}

tfc_status tfc_semaphore_wait(struct tfc_semaphore *s, uint64_t value, int64_t spin_ns, int64_t timeout_ns) {
  if (tfc_semaphore_reached(s, value)) return NULL;
  int64_t begin = tfc_now_ns();
  if (timeout_ns >= 0 && spin_ns > timeout_ns) spin_ns = timeout_ns;
  for (int64_t spun = 0; spun < spin_ns; spun = tfc_now_ns() - begin) {
    for (int i = 0; i < 32; i++) {
      if (tfc_semaphore_reached(s, value)) return NULL;
      tfc_pause();
    }
    if (spun > YIELD_NS) sched_yield(); // to any thread that wants the core
  }
  bool late = false;
  atomic_fetch_add(&s->waiters, 1);
  for (;;) {
    uint32_t seen = atomic_load(&s->futex);
    if (atomic_load(&s->value) >= value) break;
    int64_t left = -1;
    if (timeout_ns >= 0 && (left = timeout_ns - (tfc_now_ns() - begin)) <= 0) {
      late = true;
      break;
    }
    tfc_futex_wait(&s->futex, seen, left);
  }
  atomic_fetch_sub(&s->waiters, 1);
  if (!late) return NULL;
  return tfc_status_make(TFC_DEADLINE_EXCEEDED, "a semaphore is at %llu and did not reach %llu in %.3f ms",
                         (unsigned long long)atomic_load(&s->value), (unsigned long long)value,
                         (double)timeout_ns * 1e-6);
}
