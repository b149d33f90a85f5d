// The inner loops (lines.inc) for every processor.
#define BYTES 16
#include "runtime/device/cpu/depthwise/lines.inc"

const struct tfc_depthwise_kernel tfc_depthwise_generic = KERNEL;
