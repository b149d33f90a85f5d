// The op "_ScaledUpdate": an optimizer update whose gradient is multiplied by a number before it is used. A rewrite of
// plans (runtime/exec/rewrites/scaled.c) makes it for devices that have a kernel for it.
#ifndef TFC_RUNTIME_OPS_TRAINING_SCALED_H
#define TFC_RUNTIME_OPS_TRAINING_SCALED_H

#include "runtime/graph/op_def.h"

struct tfc_scaled_update {         // the operation's state
  const struct tfc_op_def *update; // the update's own op, whose inputs come first
  uint32_t gradient, scale;        // numbers of inputs
};

#endif
