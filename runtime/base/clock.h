// Clocks. All intervals of a trace are on CLOCK_MONOTONIC_RAW in nanoseconds; the time stamp counter is read on the
// step path (a few ns) and converted afterwards.
#ifndef TFC_RUNTIME_BASE_CLOCK_H
#define TFC_RUNTIME_BASE_CLOCK_H

#include <stdint.h>

int64_t tfc_now_ns(void); // CLOCK_MONOTONIC_RAW

// A cheap stamp: the TSC where it is invariant, else CLOCK_MONOTONIC_RAW in ns. Any thread.
static inline uint64_t tfc_ticks(void) {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  return (uint64_t)tfc_now_ns();
#endif
}
// Calibrates ticks against the clock; called once per process on first use, ~2 ms. Thread-safe.
// ns = tfc_ticks_to_ns(ticks) is on CLOCK_MONOTONIC_RAW's axis. Resynchronise (between steps) bounds the drift.
int64_t tfc_ticks_to_ns(uint64_t ticks);
double tfc_ns_per_tick(void);
void tfc_ticks_resync(void);
void tfc_sleep_ns(int64_t ns);

#endif
