// The inner loops (lines.inc) with AVX-512.
#if defined(__x86_64__)
#define BYTES 64
#include "runtime/device/cpu/depthwise/lines.inc"

const struct tfc_depthwise_kernel tfc_depthwise_avx512 = KERNEL;
#endif
