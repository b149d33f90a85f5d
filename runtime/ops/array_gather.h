// Picks slices of a tensor by index. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_ARRAY_GATHER_H
#define TFC_RUNTIME_OPS_ARRAY_GATHER_H

#include "runtime/ops/kernel.h"

// y [batches, outer, count, inner] = params [batches, outer, axis, inner]; indices [batches, count] say which of the
// `axis` slices. `y` has the type of `params`, and its memory is allocated.
struct ops_gather {
  const struct tfc_tensor *params, *indices;
  struct tfc_tensor *y;
  int64_t batches, outer, count, axis, inner;
};
// All cores of the device share the work. INVALID_ARGUMENT names the first index that is out of range.
TFC_MUST_USE tfc_status ops_gather_run(struct tfc_kernel_ctx *ctx, const struct ops_gather *gather);

#endif
