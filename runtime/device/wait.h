// Functions for waiting threads: the pause of a spin loop, and Linux futexes. Only drivers and executors use them.
#ifndef TFC_RUNTIME_DEVICE_WAIT_H
#define TFC_RUNTIME_DEVICE_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

static inline void tfc_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Sleeps while *word == seen, at most timeout_ns (< 0: no limit); may return early.
void tfc_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns);
void tfc_futex_wake(_Atomic uint32_t *word, int count);

#endif
