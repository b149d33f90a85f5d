// Rows of a table that an index names are brought to the cache some rows before they are used: they lie anywhere in
// memory, so that the processor does not bring them by itself. Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_ROWS_AHEAD_H
#define TFC_RUNTIME_OPS_ROWS_AHEAD_H

#include "runtime/graph/tensor.h"

// A row is brought so many rows ahead; of a long one only the first bytes, the processor brings the rest.
enum { OPS_ROWS_AHEAD = 16, OPS_BROUGHT_BYTES = 512 };
// Updates of rows are divided among threads from so many bytes on. Fewer are faster on the core that has just made the
// gradients: lines that another core has written come slowly.
enum { OPS_ROWS_DIVIDED_BYTES = 2 << 20 };

// As tfc_tensor_int, without a call.
static inline int64_t ops_index_at(const struct tfc_tensor *indices, int64_t i) {
  return indices->dtype == TFC_INT32   ? ((const int32_t *)indices->data)[i]
         : indices->dtype == TFC_INT64 ? ((const int64_t *)indices->data)[i]
                                       : tfc_tensor_int(indices, i);
}

static inline void ops_bring_row(const void *row, size_t bytes) { // to read it, or to read and then write it
  enum { LINE = 64 };
  for (size_t at = 0; at < bytes && at < OPS_BROUGHT_BYTES; at += LINE) __builtin_prefetch((const char *)row + at);
}

#endif
