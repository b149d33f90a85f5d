// Copies elements between tensors: contiguous runs, and n-dimensional blocks with any strides. All operations that move
// elements (Slice, Transpose, Tile, Pad, Concat, ...) describe such a block. Strings are duplicated, handles retained.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_ARRAY_COPY_H
#define TFC_RUNTIME_OPS_ARRAY_COPY_H

#include <string.h>

#include "runtime/ops/kernel.h"

// As memcpy, but short copies of whole cache lines need no call.
static inline void ops_copy_bytes(void *restrict to, const void *restrict from, size_t n) {
  enum { LINE = 64, LONGEST = 1024 };
  if (n % LINE || n > LONGEST) {
    if (n) memcpy(to, from, n);
    return;
  }
  for (size_t i = 0; i < n; i += LINE) memcpy((char *)to + i, (const char *)from + i, LINE);
}

// dst[dst_at + i] = src[src_at + i], i < n; same dtype.
TFC_MUST_USE tfc_status ops_copy_elements(struct tfc_tensor *dst, int64_t dst_at, const struct tfc_tensor *src,
                                          int64_t src_at, int64_t n);

// dst[dst_at + Σ i_d dst_strides[d]] = src[src_at + Σ i_d src_strides[d]] for all i in dims. Strides are in elements;
// source strides may be 0 or negative. All cores of the device share the work.
struct ops_block {
  int rank;
  int64_t dims[TFC_MAX_RANK + 2];
  int64_t dst_strides[TFC_MAX_RANK + 2], src_strides[TFC_MAX_RANK + 2];
  int64_t dst_at, src_at;
};
TFC_MUST_USE tfc_status ops_copy_block(struct tfc_kernel_ctx *ctx, struct tfc_tensor *dst, const struct tfc_tensor *src,
                                       const struct ops_block *block);

// Sets every element of `t` to 0, false, "" or an empty handle.
void ops_fill_zero(struct tfc_tensor *t);
// Sets elements [at, at + n) of `t` to src's element `src_at`.
TFC_MUST_USE tfc_status ops_fill_with(struct tfc_tensor *t, int64_t at, int64_t n, const struct tfc_tensor *src,
                                      int64_t src_at);

#endif
