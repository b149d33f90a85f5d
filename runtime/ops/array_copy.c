// Copies elements between tensors (array_copy.h). A block is first simplified: dimensions of size 1 are dropped, and
// neighbouring dimensions that form one contiguous run are joined. Then it is copied row by row; the innermost loop is
// a memcpy, a fill, or a strided loop for the element size. If source and destination are contiguous along different
// dimensions (a transpose), tiles keep both in cache.
#include "runtime/ops/array_copy.h"

#include <stdlib.h>
#include <string.h>

tfc_status ops_copy_elements(struct tfc_tensor *dst, int64_t dst_at, const struct tfc_tensor *src, int64_t src_at,
                             int64_t n) {
  if (tfc_dtype_is_plain(dst->dtype)) {
    size_t size = tfc_dtype_size(dst->dtype);
    if (n > 0)
      memcpy((char *)dst->data + (size_t)dst_at * size, (const char *)src->data + (size_t)src_at * size,
             (size_t)n * size);
    return NULL;
  }
  for (int64_t i = 0; i < n; i++) {
    if (dst->dtype == TFC_STRING) {
      TFC_RETURN_IF_ERROR(tfc_tensor_set_string(dst, dst_at + i, tfc_tensor_get_string(src, src_at + i)));
    } else {
      struct tfc_object **to = (struct tfc_object **)dst->data + dst_at + i;
      struct tfc_object *from = ((struct tfc_object *const *)src->data)[src_at + i];
      tfc_object_retain(from);
      tfc_object_release(*to);
      *to = from;
    }
  }
  return NULL;
}

void ops_fill_zero(struct tfc_tensor *t) {
  // Strings and handles in a new tensor are already "" and empty.
  if (tfc_dtype_is_plain(t->dtype) && t->size) memset(t->data, 0, t->size);
}

#define FILL(size_, type_)                                                                                             \
  case size_: {                                                                                                        \
    type_ *p = (type_ *)t->data + at, v = ((const type_ *)src->data)[src_at];                                          \
    for (int64_t i = 0; i < n; i++) p[i] = v;                                                                          \
    return NULL;                                                                                                       \
  }
tfc_status ops_fill_with(struct tfc_tensor *t, int64_t at, int64_t n, const struct tfc_tensor *src, int64_t src_at) {
  if (tfc_dtype_is_plain(t->dtype)) {
    switch (tfc_dtype_size(t->dtype)) {
      FILL(1, uint8_t)
      FILL(2, uint16_t)
      FILL(4, uint32_t)
      FILL(8, uint64_t)
    default: break;
    }
  }
  for (int64_t i = 0; i < n; i++) TFC_RETURN_IF_ERROR(ops_copy_elements(t, at + i, src, src_at, 1));
  return NULL;
}

// --- Blocks ------------------------------------------------------------------------------------------------------
struct block_job {
  struct ops_block b;
  size_t size;
  char *dst;
  const char *src;
  int tile; // the dimension along which the source is contiguous if that is not the last one; otherwise -1
};

// Drops dimensions of size 1 and joins neighbours that form one contiguous run in both tensors.
static struct ops_block simplify(const struct ops_block *b) {
  struct ops_block s = {.dst_at = b->dst_at, .src_at = b->src_at};
  for (int d = 0; d < b->rank; d++) {
    if (b->dims[d] == 1) continue;
    int last = s.rank - 1;
    if (last >= 0 && s.dst_strides[last] == b->dims[d] * b->dst_strides[d] &&
        s.src_strides[last] == b->dims[d] * b->src_strides[d]) {
      s.dims[last] *= b->dims[d];
      s.dst_strides[last] = b->dst_strides[d];
      s.src_strides[last] = b->src_strides[d];
    } else {
      s.dims[s.rank] = b->dims[d];
      s.dst_strides[s.rank] = b->dst_strides[d];
      s.src_strides[s.rank++] = b->src_strides[d];
    }
  }
  if (s.rank == 0) {
    s.dims[0] = 1;
    s.dst_strides[0] = s.src_strides[0] = 1;
    s.rank = 1;
  }
  return s;
}

#define STRIDED(size_, type_)                                                                                          \
  case size_: {                                                                                                        \
    type_ *to = (type_ *)dst;                                                                                          \
    const type_ *from = (const type_ *)src;                                                                            \
    if (ss == 0 && ds == 1) {                                                                                          \
      const type_ v = from[0];                                                                                         \
      for (int64_t i = 0; i < n; i++) to[i] = v;                                                                       \
    } else if (ds == 1) {                                                                                              \
      for (int64_t i = 0; i < n; i++) to[i] = from[i * ss];                                                            \
    } else {                                                                                                           \
      for (int64_t i = 0; i < n; i++) to[i * ds] = from[i * ss];                                                       \
    }                                                                                                                  \
    break;                                                                                                             \
  }
static void copy_row(char *dst, int64_t ds, const char *src, int64_t ss, int64_t n, size_t size) {
  if (ds == 1 && ss == 1) {
    ops_copy_bytes(dst, src, (size_t)n * size);
    return;
  }
  switch (size) {
    STRIDED(1, uint8_t)
    STRIDED(2, uint16_t)
    STRIDED(4, uint32_t)
    STRIDED(8, uint64_t)
  default:
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * ds * (int64_t)size, src + i * ss * (int64_t)size, size);
  }
}

enum { TILE = 16 };
#define TILED(size_, type_)                                                                                            \
  case size_:                                                                                                          \
    for (int64_t i = 0; i < rows; i++)                                                                                 \
      for (int64_t k = 0; k < n; k++) ((type_ *)dst)[i * dst_row + k] = ((const type_ *)src)[i + k * src_column];      \
    break;
// dst[i * dst_row + k] = src[i + k * src_column]
static void copy_tile(char *dst, int64_t dst_row, const char *src, int64_t src_column, int64_t rows, int64_t n,
                      size_t size) {
  switch (size) {
    TILED(1, uint8_t)
    TILED(2, uint16_t)
    TILED(4, uint32_t)
    TILED(8, uint64_t)
  default:
    for (int64_t i = 0; i < rows; i++)
      for (int64_t k = 0; k < n; k++)
        memcpy(dst + (i * dst_row + k) * (int64_t)size, src + (i + k * src_column) * (int64_t)size, size);
  }
}

// Copies one row of the block or, with tiles, a band of tiles whose first row is `at`.
static void block_row(const struct block_job *j, char *dst, const char *src, int64_t at) {
  const struct ops_block *b = &j->b;
  int last = b->rank - 1;
  if (j->tile < 0) {
    copy_row(dst, b->dst_strides[last], src, b->src_strides[last], b->dims[last], j->size);
    return;
  }
  int64_t rows = b->dims[j->tile] - at < TILE ? b->dims[j->tile] - at : TILE;
  for (int64_t k = 0; k < b->dims[last]; k += TILE) {
    int64_t n = b->dims[last] - k < TILE ? b->dims[last] - k : TILE;
    copy_tile(dst + k * (int64_t)j->size, b->dst_strides[j->tile], src + k * b->src_strides[last] * (int64_t)j->size,
              b->src_strides[last], rows, n, j->size);
  }
}

// Copies rows [begin, end) of the block; they are numbered over all dimensions except the last. With tiles, a row is a
// band of TILE rows of dimension `tile`.
static void block_piece(void *arg, int64_t begin, int64_t end) {
  const struct block_job *j = arg;
  const struct ops_block *b = &j->b;
  int last = b->rank - 1;
  int64_t at[TFC_MAX_RANK + 2] = {0}, step[TFC_MAX_RANK + 2], to = b->dst_at, from = b->src_at, rest = begin;
  for (int d = last - 1; d >= 0; d--) {
    step[d] = d == j->tile ? TILE : 1;
    int64_t n = (b->dims[d] + step[d] - 1) / step[d];
    at[d] = rest % n * step[d];
    rest /= n;
    to += at[d] * b->dst_strides[d];
    from += at[d] * b->src_strides[d];
  }
  for (int64_t row = begin; row < end; row++) {
    block_row(j, j->dst + to * (int64_t)j->size, j->src + from * (int64_t)j->size, j->tile < 0 ? 0 : at[j->tile]);
    for (int d = last - 1; d >= 0; d--) {
      at[d] += step[d];
      to += step[d] * b->dst_strides[d];
      from += step[d] * b->src_strides[d];
      if (at[d] < b->dims[d]) break;
      to -= at[d] * b->dst_strides[d];
      from -= at[d] * b->src_strides[d];
      at[d] = 0;
    }
  }
}

static tfc_status copy_objects(struct tfc_tensor *dst, const struct tfc_tensor *src, const struct ops_block *b,
                               int64_t total) {
  for (int64_t i = 0; i < total; i++) {
    int64_t rest = i, to = b->dst_at, from = b->src_at;
    for (int d = b->rank - 1; d >= 0; d--) {
      int64_t at = rest % b->dims[d];
      rest /= b->dims[d];
      to += at * b->dst_strides[d];
      from += at * b->src_strides[d];
    }
    TFC_RETURN_IF_ERROR(ops_copy_elements(dst, to, src, from, 1));
  }
  return NULL;
}

tfc_status ops_copy_block(struct tfc_kernel_ctx *ctx, struct tfc_tensor *dst, const struct tfc_tensor *src,
                          const struct ops_block *block) {
  struct block_job job = {
      .b = simplify(block), .size = tfc_dtype_size(dst->dtype), .dst = dst->data, .src = src->data, .tile = -1};
  const struct ops_block *b = &job.b;
  int last = b->rank - 1;
  int64_t total = 1, rows = 1;
  for (int d = 0; d < b->rank; d++) {
    total *= b->dims[d];
    if (d < last) rows *= b->dims[d];
  }
  if (total == 0) return NULL;
  if (!tfc_dtype_is_plain(dst->dtype)) return copy_objects(dst, src, b, total);
  if (b->dst_strides[last] == 1 && b->src_strides[last] > 1 && b->dims[last] >= 4)
    for (int d = 0; d < last; d++)
      if (b->src_strides[d] == 1 && b->dims[d] >= 4) job.tile = d;
  if (job.tile >= 0) rows = rows / b->dims[job.tile] * ((b->dims[job.tile] + TILE - 1) / TILE);
  int64_t each = total / rows; // elements per row
  int64_t grain = each >= 32768 ? 1 : 32768 / (each > 0 ? each : 1);
  if (rows == 1 && each > 131072) { // a single long row is cut, so that several cores copy it
    struct ops_block cut = *b;
    int64_t parts = (each + 65535) / 65536;
    while (each % parts) parts++;
    if (parts <= each / 1024) {
      cut.rank = 2;
      cut.dims[1] = each / parts;
      cut.dst_strides[1] = b->dst_strides[0];
      cut.src_strides[1] = b->src_strides[0];
      cut.dims[0] = parts;
      cut.dst_strides[0] = b->dst_strides[0] * cut.dims[1];
      cut.src_strides[0] = b->src_strides[0] * cut.dims[1];
      job.b = cut;
      rows = parts;
      grain = 1;
    }
  }
  tfc_kernel_parallel_for(ctx, rows, grain, block_piece, &job);
  return NULL;
}
