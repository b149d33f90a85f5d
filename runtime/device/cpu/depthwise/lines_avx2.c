// The inner loops (lines.inc) with AVX2.
#if defined(__x86_64__)
#define BYTES 32
#include "runtime/device/cpu/depthwise/lines.inc"

const struct tfc_depthwise_kernel tfc_depthwise_avx2 = KERNEL;
#endif
