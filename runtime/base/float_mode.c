#include "runtime/base/float_mode.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

uint32_t tfc_float_mode_enter(void) {
#if defined(__x86_64__)
  uint32_t saved = _mm_getcsr();
  // Sets the bits for "flush to zero" and "denormals are zero".
  if ((saved & 0x8040u) != 0x8040u) _mm_setcsr(saved | 0x8040u);
  return saved;
#elif defined(__aarch64__)
  uint64_t saved;
  __asm__ volatile("mrs %0, fpcr" : "=r"(saved));
  __asm__ volatile("msr fpcr, %0" : : "r"(saved | (1u << 24)));
  return (uint32_t)saved;
#else
  return 0;
#endif
}

void tfc_float_mode_leave(uint32_t saved) {
#if defined(__x86_64__)
  if ((saved & 0x8040u) != 0x8040u) _mm_setcsr(saved);
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)saved));
#else
  (void)saved;
#endif
}
