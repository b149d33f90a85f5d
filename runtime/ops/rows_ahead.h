// Rows of a table that indices name are brought to the cache some rows before they are used: they lie anywhere in
// memory, so that the processor does not bring them by itself. Private to runtime/ops.
//
// Updates of such rows are divided among threads by the rows of the table, so that one thread makes all updates of a
// row, in the order of the indices:
//
//   const struct ops_rows rows = ops_rows_of(indices, count, updates->size, ctx->env->threads);
//   ... // for each of rows.parts, [begin, end) being one or more of them:
//   for (struct ops_rows_walk w = ops_rows_part(&rows, begin, end); ops_rows_next(&w);) {
//     if (w.ahead >= 0) ops_bring_row(...);
//     if (w.row >= 0) ... // update w.row by the update w.i
//   }
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

struct ops_rows {
  const struct tfc_tensor *indices; // all are in [0, rows)
  int64_t rows, parts;              // of the table
};
static inline struct ops_rows ops_rows_of(const struct tfc_tensor *indices, int64_t rows, size_t update_bytes,
                                          int threads) {
  return (struct ops_rows){indices, rows, update_bytes >= OPS_ROWS_DIVIDED_BYTES && rows >= threads ? threads : 1};
}
struct ops_rows_walk {
  const struct tfc_tensor *indices;
  int64_t first, last, count; // the rows of the parts; of all indices
  int64_t i, row, ahead; // an index, the row that it names, and the row to bring now; -1: that row is in another part
};
static inline struct ops_rows_walk ops_rows_part(const struct ops_rows *r, int64_t begin, int64_t end) {
  return (struct ops_rows_walk){.indices = r->indices,
                                .first = r->rows * begin / r->parts,
                                .last = r->rows * end / r->parts,
                                .count = tfc_tensor_elements(r->indices),
                                .i = -1};
}
static inline bool ops_rows_next(struct ops_rows_walk *w) {
  if (++w->i >= w->count) return false;
  const int64_t row = ops_index_at(w->indices, w->i);
  const int64_t ahead = w->i + OPS_ROWS_AHEAD < w->count ? ops_index_at(w->indices, w->i + OPS_ROWS_AHEAD) : -1;
  w->row = row >= w->first && row < w->last ? row : -1;
  w->ahead = ahead >= w->first && ahead < w->last ? ahead : -1;
  return true;
}

#endif
