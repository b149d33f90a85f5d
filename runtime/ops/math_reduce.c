// Operations that reduce dimensions: Sum, Mean, Prod, Max, Min, All, Any, EuclideanNorm, and L2Loss.
//
// Neighbouring dimensions are joined into runs, each of which is either kept or reduced. A pass reduces the last run
// that is left to reduce, either along memory ("rows") or across it ("columns"). The shape alone decides the order of
// every sum. A row is cut into blocks of 1024 elements; each block is added in 16 lanes, and the sums of the blocks are
// added pairwise. A row of more than 65536 elements is first cut into pieces of that length. Columns add groups of 256
// rows. The 16-bit floats are reduced in float32 and rounded once.
#include <limits.h>
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

enum { LANES = 16, ROW_BLOCK = 1024, ROW_PIECE = 65536, COLUMN_GROUP = 256, COLUMN_CHUNK = 2048, LEAST_CHUNK = 64 };

// --- Loops of one pass -------------------------------------------------------------------------------------------
// rows: y[o] = reduce x[o * stride …] over n, for o < count; columns: y[k] = reduce over i < n of x[i * stride + k],
// k < width.
struct reducer {
  void (*rows)(const void *x, int64_t stride, int64_t n, void *y, int64_t count);
  void (*columns)(const void *x, int64_t stride, int64_t n, void *y, int64_t width);
};

// JOIN(a, b) joins two partial results; FIRST(v) makes a partial result of one element.
#define REDUCER(t, name, INIT, FIRST, JOIN)                                                                            \
  static ops_##t##_u block_##name##_##t(const ops_##t *x, int64_t n) {                                                 \
    typedef ops_##t##_u U;                                                                                             \
    U lanes[LANES];                                                                                                    \
    for (int k = 0; k < LANES; k++) lanes[k] = INIT(t);                                                                \
    int64_t i = 0;                                                                                                     \
    for (; i + LANES <= n; i += LANES)                                                                                 \
      for (int k = 0; k < LANES; k++) lanes[k] = JOIN(t, lanes[k], FIRST((U)x[i + k]));                                \
    for (int k = 0; i + k < n; k++) lanes[k] = JOIN(t, lanes[k], FIRST((U)x[i + k]));                                  \
    for (int w = LANES / 2; w; w /= 2)                                                                                 \
      for (int k = 0; k < w; k++) lanes[k] = JOIN(t, lanes[k], lanes[k + w]);                                          \
    return lanes[0];                                                                                                   \
  }                                                                                                                    \
  static ops_##t##_u run_##name##_##t(const ops_##t *x, int64_t n) {                                                   \
    if (n <= ROW_BLOCK) return block_##name##_##t(x, n);                                                               \
    int64_t half = (n / 2 + ROW_BLOCK - 1) / ROW_BLOCK * ROW_BLOCK;                                                    \
    ops_##t##_u a = run_##name##_##t(x, half), b = run_##name##_##t(x + half, n - half);                               \
    return JOIN(t, a, b);                                                                                              \
  }                                                                                                                    \
  static void rows_##name##_##t(const void *xv, int64_t stride, int64_t n, void *yv, int64_t count) {                  \
    const ops_##t *x = xv;                                                                                             \
    ops_##t *y = yv;                                                                                                   \
    for (int64_t o = 0; o < count; o++) y[o] = (ops_##t)run_##name##_##t(x + o * stride, n);                           \
  }                                                                                                                    \
  OPS_CLONES_##t static void columns_##name##_##t(const void *xv, int64_t stride, int64_t n, void *yv,                 \
                                                  int64_t width) {                                                     \
    typedef ops_##t##_u U;                                                                                             \
    const ops_##t *x = xv;                                                                                             \
    ops_##t *y = yv;                                                                                                   \
    ops_##t group[COLUMN_CHUNK];                                                                                       \
    for (int64_t k = 0; k < width; k++) y[k] = (ops_##t)INIT(t);                                                       \
    for (int64_t i = 0; i < n; i += COLUMN_GROUP) {                                                                    \
      int64_t end = n - i < COLUMN_GROUP ? n : i + COLUMN_GROUP;                                                       \
      for (int64_t k = 0; k < width; k++) group[k] = (ops_##t)FIRST((U)x[i * stride + k]);                             \
      for (int64_t r = i + 1; r < end; r++) {                                                                          \
        const ops_##t *row = x + r * stride;                                                                           \
        for (int64_t k = 0; k < width; k++) group[k] = (ops_##t)JOIN(t, (U)group[k], FIRST((U)row[k]));                \
      }                                                                                                                \
      for (int64_t k = 0; k < width; k++) y[k] = (ops_##t)JOIN(t, (U)y[k], (U)group[k]);                               \
    }                                                                                                                  \
  }

#define ZERO(t) 0
#define ONE(t) 1
#define ITSELF(v) (v)
#define SQUARED(v) ((v) * (v))
#define PLUS(t, a, b) ((a) + (b))
#define TIMES(t, a, b) ((a) * (b))
#define AND(t, a, b) ((a) & (b))
#define OR(t, a, b) ((a) | (b))
// The least and the greatest value of each type. Values are compared in the type itself, because U is unsigned for
// integers.
#define LEAST_f32 (-INFINITY)
#define LEAST_f64 (-(double)INFINITY)
#define LEAST_i8 INT8_MIN
#define LEAST_i16 INT16_MIN
#define LEAST_i32 INT32_MIN
#define LEAST_i64 INT64_MIN
#define LEAST_u8 0
#define LEAST_u16 0
#define LEAST_u32 0
#define LEAST_u64 0
#define GREATEST_f32 INFINITY
#define GREATEST_f64 ((double)INFINITY)
#define GREATEST_i8 INT8_MAX
#define GREATEST_i16 INT16_MAX
#define GREATEST_i32 INT32_MAX
#define GREATEST_i64 INT64_MAX
#define GREATEST_u8 UINT8_MAX
#define GREATEST_u16 UINT16_MAX
#define GREATEST_u32 UINT32_MAX
#define GREATEST_u64 UINT64_MAX
#define LEAST(t) (ops_##t##_u) LEAST_##t
#define GREATEST(t) (ops_##t##_u) GREATEST_##t
#define LARGER(t, a, b) ((((ops_##t##_c)(a) < (ops_##t##_c)(b)) | ((b) != (b))) ? (b) : (a))
#define SMALLER(t, a, b) ((((ops_##t##_c)(b) < (ops_##t##_c)(a)) | ((b) != (b))) ? (b) : (a))

#define REDUCED_REALS(M, ...) OPS_WIDE_FLOATS(M, __VA_ARGS__) OPS_INTS(M, __VA_ARGS__)
#define REDUCED_NUMBERS(M, ...) REDUCED_REALS(M, __VA_ARGS__) OPS_COMPLEX(M, __VA_ARGS__)
#define ENTRY(t, name) [OPS_DT_##t] = {rows_##name##_##t, columns_##name##_##t},
REDUCED_NUMBERS(REDUCER, sum, ZERO, ITSELF, PLUS)
REDUCED_REALS(REDUCER, squares, ZERO, SQUARED, PLUS)
REDUCED_NUMBERS(REDUCER, product, ONE, ITSELF, TIMES)
// TensorFlow's products of float16 round after every factor, which is visible (those of bfloat16 do not).
#define TIMES_HALF(t, a, b) OPS_ROUND_f16((a) * (b))
REDUCER(f32, half_product, ONE, ITSELF, TIMES_HALF)
REDUCED_REALS(REDUCER, max, LEAST, ITSELF, LARGER)
REDUCED_REALS(REDUCER, min, GREATEST, ITSELF, SMALLER)
REDUCER(b8, all, ONE, ITSELF, AND)
REDUCER(b8, any, ZERO, ITSELF, OR)
#define MODULUS_SQUARED(v) ((v)*conj(v))
OPS_COMPLEX(REDUCER, squares, ZERO, MODULUS_SQUARED, PLUS)
static const struct reducer sum_table[TFC_DTYPE_COUNT] = {REDUCED_NUMBERS(ENTRY, sum)};
static const struct reducer squares_table[TFC_DTYPE_COUNT] = {REDUCED_NUMBERS(ENTRY, squares)};
static const struct reducer product_table[TFC_DTYPE_COUNT] = {REDUCED_NUMBERS(ENTRY, product)};
static const struct reducer half_product_table[TFC_DTYPE_COUNT] = {ENTRY(f32, half_product)};
static const struct reducer max_table[TFC_DTYPE_COUNT] = {REDUCED_REALS(ENTRY, max)};
static const struct reducer min_table[TFC_DTYPE_COUNT] = {REDUCED_REALS(ENTRY, min)};
static const struct reducer all_table[TFC_DTYPE_COUNT] = {ENTRY(b8, all)};
static const struct reducer any_table[TFC_DTYPE_COUNT] = {ENTRY(b8, any)};

struct pass_job {
  const struct reducer *reducer;
  const char *x;
  char *y;
  int64_t outer, n, width; // x [outer, n, width] -> y [outer, width]
  int64_t piece, pieces;   // if rows are cut into pieces: y [outer, pieces]
  int64_t chunk, chunks;   // if columns are cut into chunks
  size_t size;
};
static void rows_piece(void *arg, int64_t begin, int64_t end) {
  const struct pass_job *j = arg;
  j->reducer->rows(j->x + (size_t)(begin * j->n) * j->size, j->n, j->n, j->y + (size_t)begin * j->size, end - begin);
}
static void long_rows_piece(void *arg, int64_t begin, int64_t end) {
  const struct pass_job *j = arg;
  for (int64_t k = begin; k < end; k++) {
    int64_t at = k % j->pieces * j->piece, n = j->n - at < j->piece ? j->n - at : j->piece;
    j->reducer->rows(j->x + (size_t)(k / j->pieces * j->n + at) * j->size, n, n, j->y + (size_t)k * j->size, 1);
  }
}
static void columns_piece(void *arg, int64_t begin, int64_t end) {
  const struct pass_job *j = arg;
  for (int64_t k = begin; k < end; k++) {
    int64_t o = k / j->chunks, at = k % j->chunks * j->chunk;
    int64_t width = j->width - at < j->chunk ? j->width - at : j->chunk;
    j->reducer->columns(j->x + (size_t)(o * j->n * j->width + at) * j->size, j->width, j->n,
                        j->y + (size_t)(o * j->width + at) * j->size, width);
  }
}

// Reduces x [outer, n, width] over n to y [outer, width]; `first` reduces elements, `join` partial results.
static tfc_status reduce_pass(struct tfc_kernel_ctx *ctx, const struct reducer *first, const struct reducer *join,
                              const void *x, void *y, int64_t outer, int64_t n, int64_t width, size_t size) {
  struct pass_job job = {.reducer = first, .x = x, .y = y, .outer = outer, .n = n, .width = width, .size = size};
  if (outer == 0 || width == 0) return NULL;
  if (width > 1) {
    job.chunk = COLUMN_CHUNK; // the chunk does not change the order in which one column is summed
    const int64_t threads = ctx->env ? ctx->env->threads : 1;
    while (job.chunk > LEAST_CHUNK && outer * ((width + job.chunk - 1) / job.chunk) < threads) job.chunk /= 2;
    job.chunks = (width + job.chunk - 1) / job.chunk;
    int64_t each = n * (width < job.chunk ? width : job.chunk);
    tfc_kernel_parallel_for(ctx, outer * job.chunks, each >= OPS_GRAIN_CHEAP ? 1 : OPS_GRAIN_CHEAP / (each + 1) + 1,
                            columns_piece, &job);
    return NULL;
  }
  if (n <= ROW_PIECE) {
    tfc_kernel_parallel_for(ctx, outer, OPS_GRAIN_CHEAP / (n + 1) + 1, rows_piece, &job);
    return NULL;
  }
  struct tfc_buffer *partial = NULL;
  job.piece = ROW_PIECE;
  job.pieces = (n + ROW_PIECE - 1) / ROW_PIECE;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(outer * job.pieces) * size, &partial));
  job.y = partial->data;
  tfc_kernel_parallel_for(ctx, outer * job.pieces, 1, long_rows_piece, &job);
  tfc_status s = reduce_pass(ctx, join, join, partial->data, y, outer, job.pieces, 1, size);
  tfc_buffer_release(partial);
  return s;
}

// --- Reducing in several passes ----------------------------------------------------------------------------------
struct reduce_plan {
  struct tfc_shape out;
  int rank; // of the joined runs
  int64_t dims[TFC_MAX_RANK];
  bool reduced[TFC_MAX_RANK];
  int64_t count; // how many elements are reduced to one output
};

static tfc_status plan_reduction(const struct tfc_shape *x, const struct tfc_tensor *axes, bool keep_dims,
                                 struct reduce_plan *p) {
  bool reduced[TFC_MAX_RANK] = {0};
  int64_t n = tfc_tensor_elements(axes);
  for (int64_t i = 0; i < n; i++) {
    int axis;
    int64_t given = tfc_tensor_int(axes, i);
    TFC_KERNEL_CHECK(given >= -x->rank && given < x->rank,
                     "Invalid reduction dimension (%lld for input with %d dimension(s))", (long long)given, x->rank);
    TFC_RETURN_IF_ERROR(ops_axis(given, x->rank, &axis));
    TFC_KERNEL_CHECK(!reduced[axis], "Invalid reduction arguments: Axes contains duplicate dimension: %d", axis);
    reduced[axis] = true;
  }
  *p = (struct reduce_plan){.count = 1};
  for (int d = 0; d < x->rank; d++) {
    if (reduced[d]) p->count *= x->dims[d];
    if (!reduced[d] || keep_dims) p->out.dims[p->out.rank++] = reduced[d] ? 1 : x->dims[d];
    if (x->dims[d] == 1) continue;
    if (p->rank && p->reduced[p->rank - 1] == reduced[d]) {
      p->dims[p->rank - 1] *= x->dims[d];
    } else {
      p->dims[p->rank] = x->dims[d];
      p->reduced[p->rank++] = reduced[d];
    }
  }
  return NULL;
}

static tfc_status reduce_all_passes(struct tfc_kernel_ctx *ctx, struct reduce_plan p, const struct reducer *first,
                                    const struct reducer *join, const void *x, void *y, size_t size) {
  struct tfc_buffer *held = NULL;
  tfc_status s = NULL;
  int left = 0;
  for (int d = 0; d < p.rank; d++) left += p.reduced[d];
  if (left == 0 && first == join) { // each result has one element: copy
    memcpy(y, x, (size_t)tfc_shape_elements(&p.out) * size);
    return NULL;
  }
  if (left == 0) return reduce_pass(ctx, first, join, x, y, tfc_shape_elements(&p.out), 1, 1, size);
  for (; left; left--, first = join) {
    int d = p.rank - 1;
    while (!p.reduced[d]) d--;
    int64_t outer = 1, width = 1;
    for (int k = 0; k < d; k++) outer *= p.dims[k];
    for (int k = d + 1; k < p.rank; k++) width *= p.dims[k];
    struct tfc_buffer *next = NULL;
    void *to = y;
    if (left > 1) {
      TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)(outer * width) * size + 1, &next));
      to = next->data;
    }
    s = reduce_pass(ctx, first, join, x, to, outer, p.dims[d], width, size);
    tfc_buffer_release(held);
    held = next;
    if (s) goto out;
    x = to;
    // The reduced run is removed; the kept runs on both sides of it are joined.
    if (d + 1 < p.rank) {
      if (d > 0) {
        p.dims[d - 1] *= p.dims[d + 1];
        memmove(&p.dims[d], &p.dims[d + 2], (size_t)(p.rank - d - 2) * sizeof *p.dims);
        memmove(&p.reduced[d], &p.reduced[d + 2], (size_t)(p.rank - d - 2) * sizeof *p.reduced);
        p.rank -= 2;
      } else {
        memmove(&p.dims[0], &p.dims[1], (size_t)(p.rank - 1) * sizeof *p.dims);
        memmove(&p.reduced[0], &p.reduced[1], (size_t)(p.rank - 1) * sizeof *p.reduced);
        p.rank--;
      }
    } else {
      p.rank--;
    }
  }
out:
  tfc_buffer_release(held);
  return s;
}

enum finish { FINISH_NOTHING, FINISH_DIVIDE, FINISH_ROOT, FINISH_HALF };
#define DIVIDE(t, ...)                                                                                                 \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)y)[i] = (ops_##t)(((ops_##t *)y)[i] / (ops_##t)count);                 \
    break;
#define DIVIDE_INT(t, ...)                                                                                             \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n && count; i++)                                                                           \
      ((ops_##t *)y)[i] = (ops_##t)((ops_##t)count ? ((ops_##t *)y)[i] / (ops_##t)count : 0);                          \
    break;
#define ROOT(t, ...)                                                                                                   \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)y)[i] = sqrt(((ops_##t *)y)[i]);                                       \
    break;
#define ROOT_INT(t, ...)                                                                                               \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)y)[i] = (ops_##t)sqrt((double)((ops_##t *)y)[i]);                      \
    break;
static void finish_values(enum finish how, tfc_dtype type, void *y, int64_t n, int64_t count) {
  if (how == FINISH_DIVIDE) {
    if (!count && tfc_dtype_is_complex(type)) return; // the complex mean of no elements is 0: there is no complex NaN
    switch (type) {
      OPS_WIDE_FLOATS(DIVIDE, ~)
      OPS_COMPLEX(DIVIDE, ~)
      OPS_INTS(DIVIDE_INT, ~)
    default: break;
    }
  } else if (how == FINISH_ROOT) {
    switch (type) {
      OPS_WIDE_FLOATS(ROOT, ~)
      OPS_COMPLEX(ROOT, ~)
      OPS_INTS(ROOT_INT, ~)
    default: break;
    }
  } else if (how == FINISH_HALF) {
    for (int64_t i = 0; i < n; i++) {
      if (type == TFC_FLOAT) ((float *)y)[i] *= 0.5f;
      if (type == TFC_DOUBLE) ((double *)y)[i] *= 0.5;
    }
  }
}

// Returns the type that a reduction computes in: float32 for 16-bit floats, 64 bits for means of integers, because sums
// of small integers would wrap.
static tfc_dtype reduced_type(tfc_dtype t, enum finish how) {
  if (t == TFC_HALF || t == TFC_BFLOAT16) return TFC_FLOAT;
  if (how != FINISH_DIVIDE || !tfc_dtype_is_integer(t)) return t;
  return t == TFC_UINT8 || t == TFC_UINT16 || t == TFC_UINT32 || t == TFC_UINT64 ? TFC_UINT64 : TFC_INT64;
}
#define WIDEN_FLOAT(t, ...)                                                                                            \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((float *)y)[i] = (float)OPS_GET_##t(((const ops_##t *)x)[i]);                     \
    break;
#define WIDEN_INT(t, ...)                                                                                              \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((int64_t *)y)[i] = (int64_t)((const ops_##t *)x)[i];                              \
    break;
static void widen(tfc_dtype t, const void *x, void *y, int64_t n) {
  switch (t) {
    OPS_FLOATS(WIDEN_FLOAT, ~)
    OPS_INTS(WIDEN_INT, ~)
  default: break;
  }
}
#define NARROW_FLOAT(t, ...)                                                                                           \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)y)[i] = OPS_PUT_##t(((const float *)x)[i]);                            \
    break;
#define NARROW_INT(t, ...)                                                                                             \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)y)[i] = (ops_##t)((const int64_t *)x)[i];                              \
    break;
static void narrow(tfc_dtype t, const void *x, void *y, int64_t n) {
  switch (t) {
    OPS_FLOATS(NARROW_FLOAT, ~)
    OPS_INTS(NARROW_INT, ~)
  default: break;
  }
}

static tfc_status reduce_planned(struct tfc_kernel_ctx *ctx, const struct reduce_plan *p, const struct reducer *first,
                                 const struct reducer *join, enum finish how) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_buffer *wide_x = NULL, *wide_y = NULL;
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  tfc_dtype type = reduced_type(x->dtype, how);
  bool widened = type != x->dtype;
  size_t size = tfc_dtype_size(type);
  if (!first[type].rows) return ops_unsupported_type(ctx, x->dtype);
  TFC_TRY(s, tfc_kernel_output(ctx, 0, x->dtype, &p->out, &y));
  int64_t n = tfc_tensor_elements(y);
  const void *from = x->data;
  void *to = y->data;
  if (widened) {
    TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)tfc_tensor_elements(x) * size + size, &wide_x));
    TFC_TRY(s, tfc_kernel_scratch(ctx, (size_t)n * size + size, &wide_y));
    widen(x->dtype, x->data, wide_x->data, tfc_tensor_elements(x));
    from = wide_x->data;
    to = wide_y->data;
  }
  TFC_TRY(s, reduce_all_passes(ctx, *p, &first[type], &join[type], from, to, size));
  finish_values(how, type, to, n, p->count);
  if (widened) narrow(x->dtype, to, y->data, n);
out:
  tfc_buffer_release(wide_x);
  tfc_buffer_release(wide_y);
  return s;
}

static tfc_status reduce(struct tfc_kernel_ctx *ctx, const struct reducer *first, const struct reducer *join,
                         enum finish how) {
  const bool *keep_dims = ctx->state;
  struct reduce_plan plan;
  TFC_RETURN_IF_ERROR(plan_reduction(&ctx->inputs[0]->shape, ctx->inputs[1], *keep_dims, &plan));
  return reduce_planned(ctx, &plan, first, join, how);
}
static tfc_status reduce_sum(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, sum_table, sum_table, FINISH_NOTHING);
}
static tfc_status reduce_mean(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, sum_table, sum_table, FINISH_DIVIDE);
}
static tfc_status reduce_prod(struct tfc_kernel_ctx *ctx) {
  const struct reducer *table = ctx->inputs[0]->dtype == TFC_HALF ? half_product_table : product_table;
  return reduce(ctx, table, table, FINISH_NOTHING);
}
static tfc_status reduce_max(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, max_table, max_table, FINISH_NOTHING);
}
static tfc_status reduce_min(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, min_table, min_table, FINISH_NOTHING);
}
static tfc_status reduce_all(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, all_table, all_table, FINISH_NOTHING);
}
static tfc_status reduce_any(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, any_table, any_table, FINISH_NOTHING);
}
static tfc_status reduce_norm(struct tfc_kernel_ctx *ctx) {
  return reduce(ctx, squares_table, sum_table, FINISH_ROOT);
}
static tfc_status l2_loss(struct tfc_kernel_ctx *ctx) { // Σ t² / 2
  struct reduce_plan plan = {.rank = 1, .dims = {tfc_tensor_elements(ctx->inputs[0])}, .reduced = {true}};
  plan.count = plan.dims[0];
  if (tfc_dtype_is_integer(ctx->inputs[0]->dtype)) return ops_unsupported_type(ctx, ctx->inputs[0]->dtype);
  return reduce_planned(ctx, &plan, squares_table, sum_table, FINISH_HALF);
}

static tfc_status prepare_keep_dims(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, bool, keep_dims);
  *keep_dims = tfc_node_attr_bool(ctx->graph, ctx->node, "keep_dims", false);
  return NULL;
}

static tfc_status shape_reduction(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0];
  bool keep_dims = tfc_node_attr_bool(ctx->graph, ctx->node, "keep_dims", false), reduced[TFC_MAX_RANK] = {0};
  int64_t axes[TFC_MAX_RANK];
  int count;
  if (ctx->inputs[1]->rank > 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "reduction_indices must be at most rank 1 but is rank %d",
                           ctx->inputs[1]->rank);
  if (x->rank < 0) return NULL;
  // Partly known axes are not enough: a negative axis would look unknown. Only constants count.
  if (!ctx->input_values || !ctx->input_values[1] || !ops_known_ints(ctx, 1, axes, TFC_MAX_RANK, &count)) {
    const struct tfc_shape *a = ctx->inputs[1];
    if (keep_dims)
      ctx->outputs[0] = tfc_shape_unknown_of_rank(x->rank);
    else if (a->rank == 1 && a->dims[0] == x->rank)
      ctx->outputs[0] = TFC_SHAPE_SCALAR;
    else if (x->rank == 0)
      ctx->outputs[0] = TFC_SHAPE_SCALAR;
    return NULL;
  }
  for (int i = 0; i < count; i++) {
    int axis;
    TFC_RETURN_IF_ERROR(ops_axis(axes[i], x->rank, &axis));
    reduced[axis] = true;
  }
  struct tfc_shape out = TFC_SHAPE_SCALAR;
  for (int d = 0; d < x->rank; d++)
    if (!reduced[d] || keep_dims) out.dims[out.rank++] = reduced[d] ? 1 : x->dims[d];
  ctx->outputs[0] = out;
  return NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
// The input's shape with 1 for each reduced dimension, computed from the axes.
static struct tfc_output kept_shape(struct tfc_grad_ctx *g, struct tfc_output shape) {
  struct tfc_output rank = grad_op1(g, "Size", shape), axes = grad_cast(g, grad_in(g, 1), TFC_INT32);
  axes = g_reshape(g, axes, tfc_add_i32_vector(g->builder, (int32_t[]){-1}, 1));
  axes = grad_op2(g, "FloorMod", g_add(g, axes, rank), rank);
  struct tfc_output all = grad_op3(g, "Range", tfc_add_i32(g->builder, 0), rank, tfc_add_i32(g->builder, 1));
  return tfc_add(g->builder, "DynamicStitch", "",
                 (struct tfc_output[]){all, axes, shape, grad_op1(g, "OnesLike", axes)}, 4, NULL, 0);
}
static bool keeps_dims(struct tfc_grad_ctx *g) {
  return grad_attr_bool(g, "keep_dims", false);
}
static struct tfc_output spread(struct tfc_grad_ctx *g) { // the gradient of Sum: broadcasts G
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], TFC_INT32), grad = G;
  const struct tfc_shape *out = g->output_shapes[0];
  if (!keeps_dims(g) && !(out->rank == 0)) grad = g_reshape(g, grad, kept_shape(g, shape));
  return grad_op2(g, "BroadcastTo", grad, shape);
}
OPS_GRADIENT(Sum) {
  g->grad_inputs[0] = spread(g);
  return NULL;
}
OPS_GRADIENT(Mean) {
  const struct tfc_shape *in = g->input_shapes[0], *out = g->output_shapes[0];
  struct tfc_output sum = spread(g), factor;
  if (tfc_shape_is_static(in) && tfc_shape_is_static(out)) {
    int64_t n = tfc_shape_elements(in), m = tfc_shape_elements(out);
    factor = grad_const(g, sum, (double)(n / (m > 1 ? m : 1)));
  } else {
    struct tfc_output shape = grad_shape(g, X, in, TFC_INT32), rank = grad_op1(g, "Size", shape);
    struct tfc_output axes = grad_cast(g, grad_in(g, 1), TFC_INT32);
    axes = grad_op2(g, "FloorMod", g_add(g, axes, rank), rank);
    struct tfc_output sizes = grad_op3(g, "GatherV2", shape, axes, tfc_add_i32(g->builder, 0));
    sizes = g_reshape(g, sizes, tfc_add_i32_vector(g->builder, (int32_t[]){-1}, 1));
    factor =
        grad_cast(g, grad_op2(g, "Prod", sizes, tfc_add_i32_vector(g->builder, (int32_t[]){0}, 1)), grad_type(g, sum));
  }
  g->grad_inputs[0] = g_div(g, sum, factor);
  return NULL;
}
OPS_GRADIENT(MinMax) { // all elements that are equal to the extremum share the gradient
  struct tfc_output y = Y, grad = G, kept;
  if (keeps_dims(g)) {
    kept = grad_shape(g, Y, g->output_shapes[0], TFC_INT32);
  } else {
    kept = kept_shape(g, grad_shape(g, X, g->input_shapes[0], TFC_INT32));
    y = g_reshape(g, y, kept);
    grad = g_reshape(g, grad, kept);
  }
  struct tfc_output indicators = grad_cast(g, grad_op2(g, "Equal", y, X), grad_type(g, grad));
  struct tfc_output count = g_reshape(g, grad_sum(g, indicators, grad_in(g, 1), false), kept);
  g->grad_inputs[0] = g_mul(g, g_div(g, indicators, count), grad);
  return NULL;
}
OPS_GRADIENT(EuclideanNorm) {
  struct tfc_output y = Y, grad = G;
  if (!keeps_dims(g)) {
    struct tfc_output kept = kept_shape(g, grad_shape(g, X, g->input_shapes[0], TFC_INT32));
    y = g_reshape(g, y, kept);
    grad = g_reshape(g, grad, kept);
  }
  g->grad_inputs[0] = g_div(g, X, g_div(g, y, grad));
  return NULL;
}
// The factor of an element is the product of all others. It is computed from two exclusive running products, so that
// zeros do no harm; the reduced dimensions are first moved to the front and joined.
OPS_GRADIENT(Prod) {
  struct tfc_builder *b = g->builder;
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], TFC_INT32), grad = G;
  struct tfc_output zero = tfc_add_i32(b, 0), one = tfc_add_i32(b, 1), all = tfc_add_i32_vector(b, (int32_t[]){-1}, 1);
  if (!keeps_dims(g)) grad = g_reshape(g, grad, kept_shape(g, shape));
  grad = grad_op2(g, "BroadcastTo", grad, shape);
  struct tfc_output rank = grad_op1(g, "Size", shape);
  struct tfc_output reduced = g_reshape(g, grad_cast(g, grad_in(g, 1), TFC_INT32), all);
  reduced = grad_op2(g, "FloorMod", g_add(g, reduced, rank), rank);
  struct tfc_output other = grad_op2(g, "ListDiff", grad_op3(g, "Range", zero, rank, one), reduced);
  struct tfc_output perm = grad_concat(g, (struct tfc_output[]){reduced, other}, 2, zero);
  struct tfc_output first = tfc_add_i32_vector(b, (int32_t[]){0}, 1);
  struct tfc_output sizes[2] = {grad_op2(g, "Prod", grad_op3(g, "GatherV2", shape, reduced, zero), first),
                                grad_op2(g, "Prod", grad_op3(g, "GatherV2", shape, other, zero), first)};
  struct tfc_output permuted = grad_op2(g, "Transpose", X, perm);
  struct tfc_output permuted_shape = grad_shape(g, permuted, NULL, TFC_INT32);
  struct tfc_output flat[2] = {g_reshape(g, permuted, grad_pack(g, sizes, 2, 0)), zero};
  struct tfc_attr exclusive[2] = {tfc_attr_bool("exclusive", true), tfc_attr_bool("reverse", true)};
  struct tfc_output left = tfc_add(b, "Cumprod", "", flat, 2, exclusive, 1);
  struct tfc_output right = tfc_add(b, "Cumprod", "", flat, 2, exclusive, 2);
  struct tfc_output others = g_reshape(g, g_mul(g, grad_conj(g, left), grad_conj(g, right)), permuted_shape);
  struct tfc_output back = grad_op2(g, "Transpose", others, grad_op1(g, "InvertPermutation", perm));
  g->grad_inputs[0] = g_reshape(g, g_mul(g, grad, back), shape);
  return NULL;
}
OPS_GRADIENT(L2Loss) {
  g->grad_inputs[0] = g_mul(g, X, G);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define ROW(run)                                                                                                       \
  .host_inputs = 2, .shape = shape_reduction, .cost = ops_cost_inputs, .prepare = prepare_keep_dims, .kernel = run
#define SAMPLES                                                                                                        \
  "float[3,4], int32[1]=1; float[3,4], int32[2]=[0,1]; float[2,3,4], int32[1]=-2 {keep_dims=true}; double[3,0], "      \
  "int32[1]=1"
#define BOOL_SAMPLES "bool[3,4], int32[1]=1; bool[3,4], int32[2]=[0,1]"
#define NUMBERS .types = OPS_BITS(OPS_NUMBERS)
#define REALS .types = OPS_BITS(OPS_REALS)

static const struct tfc_op_def math_reduce_rows[] = {
    {.name = "Sum",
     .plan_trait = TFC_PLAN_SUM,
     .role = TFC_ROLE_REDUCTION,
     .inputs = "input: T, reduction_indices: Tidx",
     .outputs = "output: T",
     .attrs = "keep_dims: bool = false, T: " OPS_TYPES_NUMBER ", Tidx: {int32, int64} = int32",
     ROW(reduce_sum),
     NUMBERS,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Sum,
     .samples = SAMPLES},
    {.name = "Mean",
     .plan_trait = TFC_PLAN_MEAN,
     .role = TFC_ROLE_REDUCTION,
     .inputs = "input: T, reduction_indices: Tidx",
     .outputs = "output: T",
     .attrs = "keep_dims: bool = false, T: " OPS_TYPES_NUMBER ", Tidx: {int32, int64} = int32",
     ROW(reduce_mean),
     NUMBERS,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_Mean,
     .samples = SAMPLES},
    {.name = "Prod",
     .role = TFC_ROLE_REDUCTION,
     .inputs = "input: T, reduction_indices: Tidx",
     .outputs = "output: T",
     .attrs = "keep_dims: bool = false, T: " OPS_TYPES_NUMBER ", Tidx: {int32, int64} = int32",
     ROW(reduce_prod),
     NUMBERS,
     .gradient = gradient_Prod,
     .samples = SAMPLES},
    {.name = "Max",
     .role = TFC_ROLE_REDUCTION,
     .inputs = "input: T, reduction_indices: Tidx",
     .outputs = "output: T",
     .attrs = "keep_dims: bool = false, T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
              "uint32, uint64, qint8, quint8, qint32, qint16, quint16}, Tidx: {int32, int64} = int32",
     ROW(reduce_max),
     REALS,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_MinMax,
     .samples = SAMPLES},
    {.name = "Min",
     .role = TFC_ROLE_REDUCTION,
     .inputs = "input: T, reduction_indices: Tidx",
     .outputs = "output: T",
     .attrs = "keep_dims: bool = false, T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
              "uint32, uint64, qint8, quint8, qint32, qint16, quint16}, Tidx: {int32, int64} = int32",
     ROW(reduce_min),
     REALS,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_MinMax,
     .samples = SAMPLES},
    {.name = "EuclideanNorm",
     .inputs = "input: T, reduction_indices: Tidx",
     .outputs = "output: T",
     .attrs = "keep_dims: bool = false, T: " OPS_TYPES_NUMBER ", Tidx: {int32, int64} = int32",
     ROW(reduce_norm),
     NUMBERS,
     .host = {"T", TFC_INT32_BIT},
     .gradient = gradient_EuclideanNorm,
     .samples = SAMPLES},
    {.name = "All",
     .inputs = "input: bool, reduction_indices: Tidx",
     .outputs = "output: bool",
     .attrs = "keep_dims: bool = false, Tidx: {int32, int64} = int32",
     ROW(reduce_all),
     .types = TFC_TYPE_BIT(TFC_BOOL),
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .samples = BOOL_SAMPLES},
    {.name = "Any",
     .inputs = "input: bool, reduction_indices: Tidx",
     .outputs = "output: bool",
     .attrs = "keep_dims: bool = false, Tidx: {int32, int64} = int32",
     ROW(reduce_any),
     .types = TFC_TYPE_BIT(TFC_BOOL),
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .samples = BOOL_SAMPLES},
    {.name = "L2Loss",
     .plan_trait = TFC_PLAN_HALF_SQUARES,
     .inputs = "t: T",
     .outputs = "output: T",
     .attrs = "T: {half, bfloat16, float, double}",
     .types = OPS_BITS(OPS_FLOATS),
     .shape = ops_shape_scalar,
     .cost = ops_cost_inputs,
     .kernel = l2_loss,
     .gradient = gradient_L2Loss,
     .samples = "float[3,4]; double[5]; half[3]"},
};
TFC_REGISTER_OPS(math_reduce_rows);
