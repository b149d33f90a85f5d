// Clocks. The times of a trace are nanoseconds of CLOCK_MONOTONIC_RAW. While a step runs, only the processor's time
// stamp counter is read (which takes a few ns); its values are converted afterwards.
#ifndef TFC_RUNTIME_BASE_CLOCK_H
#define TFC_RUNTIME_BASE_CLOCK_H

#include <stdint.h>

int64_t tfc_now_ns(void); // CLOCK_MONOTONIC_RAW
static inline double tfc_now_s(void) {
  return 1e-9 * (double)tfc_now_ns();
}

// Returns a cheap time stamp: the time stamp counter if it is invariant, else CLOCK_MONOTONIC_RAW in ns. Any thread.
static inline uint64_t tfc_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return (uint64_t)tfc_now_ns();
#endif
}
// Converts ticks to ns on the axis of CLOCK_MONOTONIC_RAW. On first use in a process, it calibrates ticks against the
// clock, which takes about 2 ms. Resynchronise (between steps) to bound the drift. Thread-safe.
int64_t tfc_ticks_to_ns(uint64_t ticks);
double tfc_ns_per_tick(void);
void tfc_ticks_resync(void);
void tfc_sleep_ns(int64_t ns);

#endif
