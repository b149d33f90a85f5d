// Operations that combine the rows of each segment: Segment* (for sorted ids) and UnsortedSegment*.
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"
#include "runtime/ops/segment_rows.h"

// --- UnsortedSegment* ----------------------------------------------------------------------------------------------
// y [segments, inner] from x [ids…, inner]; rows with negative ids are dropped. Columns are split over cores and rows
// taken in order, so that the order of each sum is fixed.
struct unsorted_job {
  const struct tfc_tensor *x, *ids;
  struct tfc_tensor *y;
  int64_t inner, count;
  ops_combine_fn *fn;
};
static void unsorted_piece(void *arg, int64_t begin, int64_t end) {
  const struct unsorted_job *j = arg;
  size_t size = tfc_dtype_size(j->x->dtype);
  for (int64_t i = 0; i < j->count; i++) {
    int64_t id = tfc_tensor_int(j->ids, i);
    if (id < 0) continue;
    j->fn((char *)j->y->data + (size_t)(id * j->inner + begin) * size,
          (const char *)j->x->data + (size_t)(i * j->inner + begin) * size, end - begin);
  }
}

struct identity_job {
  enum ops_combine how;
  struct tfc_tensor *y;
};
static void identity_piece(void *arg, int64_t begin, int64_t end) {
  const struct identity_job *j = arg;
  char *y = (char *)j->y->data + (size_t)begin * tfc_dtype_size(j->y->dtype);
  ops_combine_identity(j->how, j->y->dtype, y, end - begin);
}

static tfc_status unsorted(struct tfc_kernel_ctx *ctx, enum ops_combine how) {
  const struct tfc_tensor *x = ctx->inputs[0], *ids = ctx->inputs[1];
  struct unsorted_job job = {x, ids, NULL, 1, tfc_tensor_elements(ids), ops_combine_loop(how, x->dtype)};
  if (!job.fn) return ops_unsupported_type(ctx, x->dtype);
  TFC_KERNEL_CHECK(ctx->inputs[2]->shape.rank == 0, "num_segments should be a scalar");
  int64_t segments = tfc_tensor_int(ctx->inputs[2], 0);
  TFC_KERNEL_CHECK(segments >= 0, "Input num_segments == %lld must not be negative.", (long long)segments);
  bool prefix = ids->shape.rank <= x->shape.rank;
  for (int d = 0; prefix && d < ids->shape.rank; d++) prefix = ids->shape.dims[d] == x->shape.dims[d];
  char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
  TFC_KERNEL_CHECK(prefix, "data.shape = %s does not start with segment_ids.shape = %s", tfc_shape_show(&x->shape, a),
                   tfc_shape_show(&ids->shape, b));
  struct tfc_shape shape = {.rank = 1, .dims = {segments}};
  for (int d = ids->shape.rank; d < x->shape.rank; d++) {
    TFC_KERNEL_CHECK(shape.rank < TFC_MAX_RANK, "the result has too many dimensions");
    shape.dims[shape.rank++] = x->shape.dims[d];
    job.inner *= x->shape.dims[d];
  }
  for (int64_t i = 0; i < job.count; i++)
    TFC_KERNEL_CHECK(tfc_tensor_int(ids, i) < segments, "segment_ids[%lld] = %lld is out of range [0, %lld)",
                     (long long)i, (long long)tfc_tensor_int(ids, i), (long long)segments);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &job.y));
  struct identity_job identity = {how, job.y};
  tfc_kernel_parallel_for(ctx, tfc_tensor_elements(job.y), 4 * OPS_GRAIN_CHEAP, identity_piece, &identity);
  int64_t grain = OPS_GRAIN_CHEAP / (job.count + 1) + 64;
  tfc_kernel_parallel_for(ctx, job.inner, grain, unsorted_piece, &job);
  return NULL;
}
static tfc_status unsorted_sum(struct tfc_kernel_ctx *ctx) {
  return unsorted(ctx, OPS_COMBINE_SUM);
}
static tfc_status unsorted_prod(struct tfc_kernel_ctx *ctx) {
  return unsorted(ctx, OPS_COMBINE_PROD);
}
static tfc_status unsorted_max(struct tfc_kernel_ctx *ctx) {
  return unsorted(ctx, OPS_COMBINE_MAX);
}
static tfc_status unsorted_min(struct tfc_kernel_ctx *ctx) {
  return unsorted(ctx, OPS_COMBINE_MIN);
}

static tfc_status shape_unsorted(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0], *ids = ctx->inputs[1];
  int64_t n;
  if (x->rank < 0 || ids->rank < 0) return NULL;
  if (ids->rank > x->rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "segment_ids have more dimensions than data");
  struct tfc_shape out = {.rank = 1, .dims = {TFC_DIM_UNKNOWN}};
  if (ops_known_int(ctx, 2, &n)) {
    if (n < 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "num_segments is negative: %lld", (long long)n);
    out.dims[0] = n;
  } else {
    const struct tfc_shape *p = ctx->input_as_shape ? ctx->input_as_shape[2] : NULL;
    if (p && p->rank == 1) out.dims[0] = p->dims[0];
  }
  for (int d = 0; d < ids->rank; d++) {
    int64_t merged;
    TFC_RETURN_IF_ERROR(tfc_dim_merge(x->dims[d], ids->dims[d], &merged));
  }
  for (int d = ids->rank; d < x->rank; d++) {
    if (out.rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "too many dimensions");
    out.dims[out.rank++] = x->dims[d];
  }
  ctx->outputs[0] = out;
  return NULL;
}

// --- Segment* ------------------------------------------------------------------------------------------------------
static tfc_status sorted(struct tfc_kernel_ctx *ctx, enum ops_combine how, bool mean) {
  const struct tfc_tensor *x = ctx->inputs[0], *ids = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  ops_combine_fn *fn = ops_combine_loop(how, x->dtype);
  if (!fn) return ops_unsupported_type(ctx, x->dtype);
  TFC_KERNEL_CHECK(ids->shape.rank == 1, "segment_ids should be a vector.");
  TFC_KERNEL_CHECK(x->shape.rank >= 1 && x->shape.dims[0] == ids->shape.dims[0],
                   "segment_ids should be the same size as dimension 0 of input.");
  int64_t count = ids->shape.dims[0], inner = 1, last = -1;
  for (int64_t i = 0; i < count; i++) {
    int64_t id = tfc_tensor_int(ids, i);
    TFC_KERNEL_CHECK(id >= 0, "segment ids must be >= 0");
    TFC_KERNEL_CHECK(id >= last, "segment ids are not increasing");
    last = id;
  }
  TFC_KERNEL_CHECK(last < INT64_MAX, "segment ids are too large");
  struct tfc_shape shape = x->shape;
  shape.dims[0] = last + 1;
  for (int d = 1; d < shape.rank; d++) inner *= shape.dims[d];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  // Segments without rows get 0, or 1 for products.
  ops_combine_identity(how == OPS_COMBINE_PROD ? OPS_COMBINE_PROD : OPS_COMBINE_SUM, x->dtype, y->data,
                       tfc_tensor_elements(y));
  size_t bytes = (size_t)inner * tfc_dtype_size(x->dtype);
  for (int64_t begin = 0, end; begin < count; begin = end) {
    int64_t id = tfc_tensor_int(ids, begin);
    char *row = (char *)y->data + (size_t)id * bytes;
    if (bytes) memcpy(row, (const char *)x->data + (size_t)begin * bytes, bytes);
    for (end = begin + 1; end < count && tfc_tensor_int(ids, end) == id; end++)
      fn(row, (const char *)x->data + (size_t)end * bytes, inner);
    if (mean) ops_scale_rows(x->dtype, row, inner, (double)(end - begin), true);
  }
  return NULL;
}
static tfc_status segment_sum(struct tfc_kernel_ctx *ctx) {
  return sorted(ctx, OPS_COMBINE_SUM, false);
}
static tfc_status segment_mean(struct tfc_kernel_ctx *ctx) {
  return sorted(ctx, OPS_COMBINE_SUM, true);
}
static tfc_status segment_prod(struct tfc_kernel_ctx *ctx) {
  return sorted(ctx, OPS_COMBINE_PROD, false);
}
static tfc_status segment_max(struct tfc_kernel_ctx *ctx) {
  return sorted(ctx, OPS_COMBINE_MAX, false);
}
static tfc_status segment_min(struct tfc_kernel_ctx *ctx) {
  return sorted(ctx, OPS_COMBINE_MIN, false);
}

static tfc_status shape_sorted(struct tfc_shape_ctx *ctx) {
  struct tfc_shape ids, x;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 1, &ids));
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &x));
  if (x.rank < 0) return NULL;
  int64_t merged;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[0], ids.dims[0], &merged));
  x.dims[0] = TFC_DIM_UNKNOWN;
  ctx->outputs[0] = x;
  return NULL;
}

// --- Gradients -----------------------------------------------------------------------------------------------------
static struct tfc_output rows_of(struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output ids) {
  return grad_op3(g, "GatherV2", x, ids, tfc_add_i32(g->builder, 0));
}
OPS_GRADIENT(SegmentSum) {
  g->grad_inputs[0] = rows_of(g, G, grad_in(g, 1));
  return NULL;
}
OPS_GRADIENT(SegmentMean) { // G is divided by the number of rows, a column [segments, 1…]
  struct tfc_builder *b = g->builder;
  struct tfc_output ids = grad_in(g, 1), one = tfc_add_i32(b, 1);
  struct tfc_output rank = g_sub(g, grad_op1(g, "Rank", X), one);
  struct tfc_output vector = grad_op2(g, "ExpandDims", rank, tfc_add_i32(b, 0));
  struct tfc_output parts[2] = {grad_shape(g, ids, g->input_shapes[1], TFC_INT32), grad_op2(g, "Fill", vector, one)};
  struct tfc_output ones = grad_op2(g, "Fill", grad_concat(g, parts, 2, tfc_add_i32(b, 0)), grad_const(g, G, 1));
  struct tfc_output scaled = g_div(g, G, grad_op2(g, "SegmentSum", ones, ids));
  g->grad_inputs[0] = rows_of(g, scaled, ids);
  return NULL;
}
OPS_GRADIENT(SegmentExtreme) { // all elements that are equal to the extremum share the gradient
  struct tfc_output ids = grad_in(g, 1);
  struct tfc_output selected = grad_op2(g, "Equal", X, rows_of(g, Y, ids));
  struct tfc_output count = grad_op2(g, "SegmentSum", grad_cast(g, selected, grad_type(g, G)), ids);
  struct tfc_output gathered = rows_of(g, g_div(g, G, count), ids);
  g->grad_inputs[0] = grad_op3(g, "SelectV2", selected, gathered, grad_op1(g, "ZerosLike", X));
  return NULL;
}
// The gradient with respect to an element is the product of the other elements of its segment: the whole product
// divided by it. If one element of a segment is zero, the division would fail: its gradient is the product of the
// others, and theirs are zero. If more are zero, all gradients are.
OPS_GRADIENT(SegmentProd) {
  struct tfc_builder *b = g->builder;
  struct tfc_output ids = grad_in(g, 1), is_zero = grad_op2(g, "Equal", X, grad_const(g, X, 0));
  struct tfc_output zeros = grad_op2(g, "SegmentSum", grad_cast(g, is_zero, TFC_INT32), ids);
  struct tfc_output many = grad_op2(g, "Greater", zeros, tfc_add_i32(b, 1));
  struct tfc_output grad = grad_op3(g, "SelectV2", many, grad_op1(g, "ZerosLike", G), G);
  struct tfc_output rest = grad_op3(g, "SelectV2", is_zero, grad_op1(g, "OnesLike", X), X);
  struct tfc_output rest_prod = grad_op2(g, "SegmentProd", rest, ids);
  struct tfc_output divided = g_div(g, rows_of(g, Y, ids), rest);
  struct tfc_output slope = grad_op3(g, "SelectV2", is_zero, rows_of(g, rest_prod, ids), divided);
  g->grad_inputs[0] = g_mul(g, rows_of(g, grad, ids), slope);
  return NULL;
}

// Gathers rows by id, with zeros for negative ids. `clipped` and `valid` are made once and used again.
struct dropping {
  struct tfc_output clipped, valid;
};
static struct tfc_output gather_dropping(struct tfc_grad_ctx *g, struct tfc_output x, struct dropping *d) {
  struct tfc_builder *b = g->builder;
  struct tfc_output ids = grad_in(g, 1);
  if (!tfc_output_valid(d->clipped)) d->clipped = grad_op2(g, "Maximum", ids, grad_op1(g, "ZerosLike", ids));
  struct tfc_output rows = rows_of(g, x, d->clipped);
  if (!tfc_output_valid(d->valid)) {
    struct tfc_output positive = grad_op2(g, "GreaterEqual", ids, grad_const(g, ids, 0));
    struct tfc_output more = g_sub(g, grad_op1(g, "Rank", rows), grad_op1(g, "Rank", positive));
    struct tfc_output ones = grad_op2(g, "Fill", grad_op2(g, "ExpandDims", more, tfc_add_i32(b, 0)), tfc_add_i32(b, 1));
    struct tfc_output shape[2] = {grad_shape(g, positive, g->input_shapes[1], TFC_INT32), ones};
    d->valid = g_reshape(g, positive, grad_concat(g, shape, 2, tfc_add_i32(b, 0)));
  }
  return grad_op3(g, "SelectV2", d->valid, rows, grad_op1(g, "ZerosLike", rows));
}
#define NOTHING_YET ((struct dropping){TFC_NO_OUTPUT, TFC_NO_OUTPUT})
OPS_GRADIENT(UnsortedSegmentSum) {
  g->grad_inputs[0] = gather_dropping(g, G, &NOTHING_YET);
  return NULL;
}
OPS_GRADIENT(UnsortedSegmentExtreme) {
  struct dropping d = NOTHING_YET;
  struct tfc_output ids = grad_in(g, 1), outputs = gather_dropping(g, Y, &d);
  struct tfc_output selected = grad_op2(g, "LogicalAnd", grad_op2(g, "Equal", X, outputs), d.valid);
  struct tfc_output count =
      grad_op3(g, "UnsortedSegmentSum", grad_cast(g, selected, grad_type(g, G)), ids, grad_in(g, 2));
  struct tfc_output gathered = gather_dropping(g, g_div(g, G, count), &d);
  g->grad_inputs[0] = grad_op3(g, "SelectV2", selected, gathered, grad_op1(g, "ZerosLike", gathered));
  return NULL;
}
OPS_GRADIENT(UnsortedSegmentProd) {
  struct tfc_builder *b = g->builder;
  struct dropping d = NOTHING_YET;
  struct tfc_output ids = grad_in(g, 1), n = grad_in(g, 2), is_zero = grad_op2(g, "Equal", X, grad_const(g, X, 0));
  struct tfc_output zeros = grad_op3(g, "UnsortedSegmentSum", grad_cast(g, is_zero, TFC_INT32), ids, n);
  struct tfc_output many = grad_op2(g, "Greater", zeros, tfc_add_i32(b, 1));
  struct tfc_output grad = grad_op3(g, "SelectV2", many, grad_op1(g, "ZerosLike", G), G);
  struct tfc_output rest = grad_op3(g, "SelectV2", is_zero, grad_op1(g, "OnesLike", X), X);
  struct tfc_output rest_prod = grad_op3(g, "UnsortedSegmentProd", rest, ids, n);
  struct tfc_output gathered_grad = gather_dropping(g, grad, &d);
  // May be NaN where X is zero, but is not selected there.
  struct tfc_output divided = g_div(g, rows_of(g, Y, d.clipped), X);
  struct tfc_output slope = grad_op3(g, "SelectV2", is_zero, rows_of(g, rest_prod, d.clipped), divided);
  g->grad_inputs[0] = g_mul(g, gathered_grad, slope);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define SORTED(run, grad)                                                                                              \
  .shape = shape_sorted, .cost = ops_cost_inputs, .kernel = run, .gradient = gradient_##grad,                          \
  .samples = "float[4,3], int32[4]=[0,0,1,3]; double[3], int64[3]=[0,1,1]"
#define UNSORTED(run, grad)                                                                                            \
  .host_inputs = 4, .shape = shape_unsorted, .cost = ops_cost_inputs, .kernel = run, .gradient = gradient_##grad,      \
  .samples = "float[4,3], int32[4]=[2,0,2,-1], int32[]=3; double[2,2], int64[2,2]=[0,1,1,0], int32[]=2"
#define NUMBERS .types = OPS_BITS(OPS_NUMBERS)
#define REALS .types = OPS_BITS(OPS_REALS)

static const struct tfc_op_def segment_dense_rows[] = {
    {.name = "SegmentSum",
     .inputs = "data: T, segment_ids: Tindices",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_NUMBER ", Tindices: {int32, int64}",
     SORTED(segment_sum, SegmentSum),
     NUMBERS,
     .host = {"T", TFC_INT32_BIT}},
    {.name = "SegmentMean",
     .inputs = "data: T, segment_ids: Tindices",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_NUMBER ", Tindices: {int32, int64}",
     SORTED(segment_mean, SegmentMean),
     NUMBERS,
     .host = {"T", TFC_INT32_BIT}},
    {.name = "SegmentProd",
     .inputs = "data: T, segment_ids: Tindices",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_NUMBER ", Tindices: {int32, int64}",
     SORTED(segment_prod, SegmentProd),
     NUMBERS,
     .host = {"T", TFC_INT32_BIT}},
    {.name = "SegmentMax",
     .inputs = "data: T, segment_ids: Tindices",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_REAL ", Tindices: {int32, int64}",
     SORTED(segment_max, SegmentExtreme),
     REALS,
     .host = {"T", TFC_INT32_BIT}},
    {.name = "SegmentMin",
     .inputs = "data: T, segment_ids: Tindices",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_REAL ", Tindices: {int32, int64}",
     SORTED(segment_min, SegmentExtreme),
     REALS,
     .host = {"T", TFC_INT32_BIT}},
    {.name = "UnsortedSegmentSum",
     .inputs = "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_NUMBER ", Tindices: {int16, int32, int64}, Tnumsegments: {int32, int64} = int32",
     UNSORTED(unsorted_sum, UnsortedSegmentSum),
     NUMBERS,
     .index_use = TFC_INDEX_SEGMENTS},
    {.name = "UnsortedSegmentProd",
     .inputs = "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_NUMBER ", Tindices: {int32, int64}, Tnumsegments: {int32, int64} = int32",
     UNSORTED(unsorted_prod, UnsortedSegmentProd),
     NUMBERS},
    {.name = "UnsortedSegmentMax",
     .inputs = "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_REAL ", Tindices: {int32, int64}, Tnumsegments: {int32, int64} = int32",
     UNSORTED(unsorted_max, UnsortedSegmentExtreme),
     REALS},
    {.name = "UnsortedSegmentMin",
     .inputs = "data: T, segment_ids: Tindices, num_segments: Tnumsegments",
     .outputs = "output: T",
     .attrs = "T: " OPS_TYPES_REAL ", Tindices: {int32, int64}, Tnumsegments: {int32, int64} = int32",
     UNSORTED(unsorted_min, UnsortedSegmentExtreme),
     REALS},
};
TFC_REGISTER_OPS(segment_dense_rows);
