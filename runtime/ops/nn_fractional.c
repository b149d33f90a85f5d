// Fractional pooling (Graham 2014, "Fractional max-pooling"): rows and columns are cut at random into runs of two
// lengths that differ by one, so that the image shrinks by any ratio. A sequence of n + 1 numbers has the beginnings of
// n runs and the end; overlapping runs share one cell with their neighbours.
#include <float.h>
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/random_stream.h"
#include "runtime/ops/row.h"

// --- Boundaries of the pooling regions -----------------------------------------------------------------------------
// Writes where the runs begin to `at` [count + 1]. Takes as many random numbers from `p` as TensorFlow does.
static void cut_random(int64_t length, int64_t count, struct tfc_philox *p, int64_t *at) {
  struct tfc_philox own = *p;
  struct tfc_philox_words words = tfc_philox_words(&own);
  int64_t *size = at + 1;
  for (int64_t i = 0; i < count; i++) size[i] = length / count + (i < length % count);
  for (int64_t i = 0; i < count - 1; i++) {
    int64_t k = i + tfc_philox_word(&words) % (uint32_t)(count - i), t = size[i];
    size[i] = size[k];
    size[k] = t;
  }
  tfc_philox_skip(p, ((uint64_t)count + 3) / 4);
  at[0] = 0;
  for (int64_t i = 1; i <= count; i++) at[i] += at[i - 1];
}
// Cuts by the paper's rule ceil(alpha (i + u)), with one random u that is small enough that no run at either end is too
// long.
static void cut_pseudo_random(int64_t length, int64_t count, struct tfc_philox *p, int64_t *at) {
  uint32_t w[4];
  tfc_philox_draw(p, w);
  const double alpha = (double)length / (double)count;
  const int64_t k = length / count;
  const double first = (double)(k + 2) / alpha - 1, last = (double)(length + 1 - k) / alpha - (double)(count - 1);
  const double u = tfc_bits_to_double(w[0], w[1]) * (last < first ? last : first);
  at[0] = 0;
  at[count] = length;
  for (int64_t i = 1; i < count; i++) at[i] = (int64_t)ceil(alpha * ((double)i + u)) - 1;
}

struct runs {
  const int64_t *at; // [count + 1]
  int64_t count, length;
  bool overlapping;
};
static void run_at(const struct runs *r, int64_t i, int64_t *first, int64_t *end) { // the run's cells are [first, end)
  *first = r->at[i];
  *end = r->at[i + 1] + r->overlapping;
  if (*end > r->length) *end = r->length;
}

struct image {
  int64_t batch, rows, columns, depth;
};
static struct image image_of(const int64_t *dims) {
  return (struct image){dims[0], dims[1], dims[2], dims[3]};
}
struct cells { // the cells that one output position pools
  int64_t batch, top, bottom, left, right;
  int64_t to; // index of the output position's first element
};
// Returns the cells for output position `i`, which numbers batch, run of rows, run of columns.
static struct cells cells_at(const struct runs runs[2], int64_t depth, int64_t i) {
  struct cells c = {.batch = i / (runs[0].count * runs[1].count), .to = i * depth};
  run_at(&runs[0], i / runs[1].count % runs[0].count, &c.top, &c.bottom);
  run_at(&runs[1], i % runs[1].count, &c.left, &c.right);
  return c;
}
#define EACH_CELL(c, x, from)                                                                                          \
  for (int64_t row_ = (c).top; row_ < (c).bottom; row_++)                                                              \
    for (int64_t column_ = (c).left, from = 0; column_ < (c).right; column_++)                                         \
      if (from = (((c).batch * (x).rows + row_) * (x).columns + column_) * (x).depth, true)

// clang-format off
#define WIDE(X, ...) X(f32, __VA_ARGS__) X(f64, __VA_ARGS__) X(i32, __VA_ARGS__) X(i64, __VA_ARGS__)
// clang-format on
#define LOWEST _Generic((S *)0, float * : -FLT_MAX, double * : -DBL_MAX, int32_t * : INT32_MIN, int64_t * : INT64_MIN)

// --- Pooling -------------------------------------------------------------------------------------------------------
struct pool {
  struct image x;
  struct runs runs[2];
  const void *in;
  void *out;
  tfc_dtype dtype;
  bool average;
};
static void pool_places(void *arg, int64_t begin, int64_t end) {
  const struct pool *p = arg;
  for (int64_t i = begin; i < end; i++) {
    const struct cells c = cells_at(p->runs, p->x.depth, i);
    OPS_SWITCH(WIDE, p->dtype, {
      const S *x = p->in;
      S *y = (S *)p->out + c.to;
      for (int64_t d = 0; d < p->x.depth; d++) y[d] = p->average ? (S)0 : LOWEST;
      EACH_CELL(c, p->x, from) for (int64_t d = 0; d < p->x.depth; d++) {
        if (p->average)
          y[d] = (S)((U)y[d] + (U)x[from + d]);
        else
          y[d] = y[d] < x[from + d] ? x[from + d] : y[d];
      }
      const S n = (S)((c.bottom - c.top) * (c.right - c.left));
      for (int64_t d = 0; p->average && d < p->x.depth; d++) y[d] = y[d] / n;
    })
  }
}

// Reads the ratios, which must be at least 1.
static tfc_status read_ratios(const struct tfc_graph *g, const struct tfc_node *n, const double **out) {
  const struct tfc_attr *a = tfc_node_attr(g, n, "pooling_ratio");
  if (!a || a->kind != TFC_ATTR_LIST_FLOAT || a->count != 4)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "pooling_ratio field must specify 4 dimensions");
  for (uint32_t i = 0; i < 4; i++)
    if (!((float)a->floats[i] >= 1))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "pooling_ratio cannot be smaller than 1, got: %g",
                             (double)a->floats[i]);
  *out = a->floats;
  return NULL;
}
static int64_t shrunk(int64_t size, double ratio) {
  return (int64_t)floorf((float)size / (float)ratio);
}

static tfc_status fractional_pool(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  struct tfc_tensor *y = NULL, *at[2] = {0};
  const double *ratios = NULL;
  struct tfc_shape shape = x->shape;
  TFC_RETURN_IF_ERROR(read_ratios(g, n, &ratios));
  if ((float)ratios[0] != 1 || (float)ratios[3] != 1)
    return tfc_status_make(TFC_UNIMPLEMENTED, "fractional pooling is not supported on the batch nor channel dimension");
  TFC_KERNEL_CHECK(x->shape.rank == 4, "tensor_in must be 4-dimensional");
  for (int d = 0; d < 4; d++) {
    TFC_KERNEL_CHECK((float)shape.dims[d] >= (float)ratios[d] && shape.dims[d] <= INT32_MAX,
                     "Pooling ratio is higher than input dimension size for dimension %d: %lld is less than %g", d,
                     (long long)shape.dims[d], ratios[d]);
    shape.dims[d] = shrunk(shape.dims[d], ratios[d]);
  }
  const bool deterministic = tfc_node_attr_bool(g, n, "deterministic", false);
  uint64_t seed = (uint64_t)tfc_node_attr_int(g, n, "seed", 0), seed2 = (uint64_t)tfc_node_attr_int(g, n, "seed2", 0);
  TFC_KERNEL_CHECK(deterministic || (seed == 0 && seed2 == 0),
                   "Both seed and seed2 should be 0 if deterministic is false.");
  if (deterministic && seed == 0 && seed2 == 0) seed = ctx->env->seed, seed2 = 1;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &y));
  for (uint32_t d = 0; d < 2; d++)
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, d + 1, TFC_INT64, &TFC_SHAPE(shape.dims[d + 1] + 1), &at[d]));
  const uint64_t draws = (uint64_t)(shape.dims[1] + shape.dims[2]) / 4 + 2; // at least as many as are needed
  struct tfc_philox random = deterministic ? tfc_philox_seed(seed, seed2) : tfc_random_reserve(ctx, draws);
  struct pool p = {.x = image_of(x->shape.dims),
                   .in = x->data,
                   .out = y->data,
                   .dtype = x->dtype,
                   .average = tfc_str_is(n->op, "FractionalAvgPool")};
  for (int d = 0; d < 2; d++) {
    p.runs[d] = (struct runs){.at = at[d]->data,
                              .count = shape.dims[d + 1],
                              .length = x->shape.dims[d + 1],
                              .overlapping = tfc_node_attr_bool(g, n, "overlapping", false)};
    (tfc_node_attr_bool(g, n, "pseudo_random", false) ? cut_pseudo_random : cut_random)(
        p.runs[d].length, p.runs[d].count, &random, at[d]->data);
  }
  tfc_kernel_parallel_for(ctx, shape.dims[0] * shape.dims[1] * shape.dims[2], 8192 / (p.x.depth + 1) + 1, pool_places,
                          &p);
  return NULL;
}

// --- Kernels of the gradient ops -----------------------------------------------------------------------------------
// Checks sequences, because they may come from elsewhere than the forward op.
static tfc_status check_runs(const struct tfc_tensor *at, int64_t count, int64_t length, bool overlapping,
                             const char *name, struct runs *out) {
  const int64_t *v = at->data;
  TFC_KERNEL_CHECK(tfc_tensor_elements(at) > count, "%s must have more numbers than the output's %lld, its shape is %s",
                   name, (long long)count, tfc_shape_show(&at->shape, (char[TFC_SHAPE_TEXT]){0}));
  for (int64_t i = 0; i < count; i++)
    TFC_KERNEL_CHECK(v[i] >= 0 && v[i + 1] >= !overlapping && v[i + 1] < INT64_MAX && length > 0,
                     "%s must not be negative: run %lld from %lld to %lld", name, (long long)i, (long long)v[i],
                     (long long)v[i + 1]);
  *out = (struct runs){v, count, length, overlapping};
  return NULL;
}

// Inputs: (orig_input, orig_output, out_backprop, row_pooling_sequence, col_pooling_sequence).
static tfc_status max_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *y = ctx->inputs[1], *dy = ctx->inputs[2];
  const bool overlapping = tfc_node_attr_bool(ctx->graph, ctx->node, "overlapping", false);
  struct tfc_tensor *dx = NULL;
  struct runs runs[2];
  TFC_KERNEL_CHECK(x->shape.rank == 4 && y->shape.rank == 4, "orig_input and orig_output must be 4-dimensional");
  TFC_KERNEL_CHECK(tfc_tensor_elements(y) > 0, "orig_output must not be empty");
  TFC_KERNEL_CHECK(x->shape.dims[0] == y->shape.dims[0] && x->shape.dims[3] == y->shape.dims[3],
                   "orig_input and orig_output must agree in batch and depth");
  TFC_KERNEL_CHECK(tfc_tensor_elements(dy) == tfc_tensor_elements(y),
                   "out_backprop must be as large as orig_output, its shape is %s",
                   tfc_shape_show(&dy->shape, (char[TFC_SHAPE_TEXT]){0}));
  for (uint32_t d = 0; d < 2; d++)
    TFC_RETURN_IF_ERROR(check_runs(ctx->inputs[3 + d], y->shape.dims[d + 1], x->shape.dims[d + 1], overlapping,
                                   d == 0 ? "row_pooling_sequence" : "col_pooling_sequence", &runs[d]));
  for (uint32_t d = 0; d < 2; d++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[3 + d]) == runs[d].count + 1, "tensor_out_dup is not tensor_out");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &dx));
  memset(dx->data, 0, dx->size);
  const struct image im = image_of(x->shape.dims);
  const int64_t places = tfc_tensor_elements(y) / im.depth;
  for (int64_t i = 0; i < places; i++) {
    const struct cells c = cells_at(runs, im.depth, i);
    OPS_SWITCH(WIDE, x->dtype, {
      const S *in = x->data;
      for (int64_t d = 0; d < im.depth; d++) {
        int64_t best = -1;
        S max = LOWEST;
        EACH_CELL(c, im, from) if (best < 0 || max < in[from + d]) best = from + d, max = in[best];
        TFC_KERNEL_CHECK(best >= 0, "Invalid input backprop index: a pooling region has no cells");
        TFC_KERNEL_CHECK(max == ((const S *)y->data)[c.to + d], "tensor_out_dup is not the same as tensor_out");
        S *to = (S *)dx->data + best;
        *to = (S)((U)*to + (U)((const S *)dy->data)[c.to + d]);
      }
    })
  }
  return NULL;
}

// Inputs: (orig_input_tensor_shape, out_backprop, row_pooling_sequence, col_pooling_sequence). Sums are in double.
static tfc_status avg_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *dims = ctx->inputs[0], *dy = ctx->inputs[1];
  const bool overlapping = tfc_node_attr_bool(ctx->graph, ctx->node, "overlapping", false);
  struct tfc_shape xs;
  struct tfc_tensor *dx = NULL;
  struct tfc_buffer *scratch = NULL;
  struct runs runs[2];
  TFC_KERNEL_CHECK(dims->shape.rank == 1 && dims->shape.dims[0] == 4,
                   "original input tensor shape must be 1-dimensional and 4 elements");
  TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(dims, &xs));
  TFC_KERNEL_CHECK(tfc_shape_is_static(&xs), "orig_input_tensor_shape has a negative dimension");
  TFC_KERNEL_CHECK(dy->shape.rank == 4, "out_backprop must be 4-dimensional");
  TFC_KERNEL_CHECK(tfc_tensor_elements(dy) > 0, "out_backprop must be positive for all dimensions");
  TFC_KERNEL_CHECK(xs.dims[0] >= dy->shape.dims[0] && xs.dims[3] >= dy->shape.dims[3],
                   "out_backprop has a larger batch or depth than the original input");
  for (uint32_t d = 0; d < 2; d++)
    TFC_RETURN_IF_ERROR(check_runs(ctx->inputs[2 + d], dy->shape.dims[d + 1], xs.dims[d + 1], overlapping,
                                   d == 0 ? "row_pooling_sequence" : "col_pooling_sequence", &runs[d]));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, dy->dtype, &xs, &dx));
  const struct image im = image_of(xs.dims);
  const int64_t n = tfc_shape_elements(&xs), depth = dy->shape.dims[3];
  const int64_t places = dy->shape.dims[0] * runs[0].count * runs[1].count;
  if (n == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)n * sizeof(double), &scratch));
  double *sums = scratch->data;
  memset(sums, 0, (size_t)n * sizeof *sums);
  OPS_SWITCH(WIDE, dy->dtype, {
    for (int64_t i = 0; i < places; i++) {
      const struct cells c = cells_at(runs, depth, i);
      const double cells = (double)((c.bottom - c.top) * (c.right - c.left));
      const S *from_y = (const S *)dy->data + c.to;
      EACH_CELL(c, im, to) for (int64_t d = 0; d < depth; d++) sums[to + d] += (double)from_y[d] / cells;
    }
    for (int64_t i = 0; i < n; i++) ((S *)dx->data)[i] = (S)sums[i];
  })
  tfc_buffer_release(scratch);
  return NULL;
}

// --- Shapes and gradients ------------------------------------------------------------------------------------------
static tfc_status shape_pool(struct tfc_shape_ctx *ctx) {
  const double *ratios = NULL;
  struct tfc_shape x;
  TFC_RETURN_IF_ERROR(read_ratios(ctx->graph, ctx->node, &ratios));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  for (int d = 0; d < 4; d++)
    if (x.dims[d] >= 0) x.dims[d] = shrunk(x.dims[d], ratios[d]);
  ctx->outputs[0] = x;
  for (int d = 0; d < 2; d++) ctx->outputs[d + 1] = TFC_SHAPE(ops_dim_add(x.dims[d + 1], 1));
  return NULL;
}
static tfc_status shape_max_grad(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 0, 4, &ctx->outputs[0]);
}
static tfc_status shape_avg_grad(struct tfc_shape_ctx *ctx) {
  struct tfc_shape sizes = ops_described_shape(ctx, 0);
  ctx->outputs[0] = sizes.rank < 0 ? tfc_shape_unknown_of_rank(4) : sizes;
  return NULL;
}
static tfc_status gradient_max(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] = grad_node(
      c, "FractionalMaxPoolGrad",
      TFC_OUTPUTS(grad_in(c, 0), grad_out(c, 0), c->grad_outputs[0], grad_out(c, 1), grad_out(c, 2)), "overlapping");
  return grad_status(c);
}
static tfc_status gradient_avg(struct tfc_grad_ctx *c) {
  struct tfc_attr wide = tfc_attr_type("DstT", TFC_INT64);
  struct tfc_output shape = grad_shape_of_input(c, 0);
  shape = tfc_add(c->builder, "Cast", NULL, &shape, 1, &wide, 1);
  c->grad_inputs[0] = grad_node(c, "FractionalAvgPoolGrad",
                                TFC_OUTPUTS(shape, c->grad_outputs[0], grad_out(c, 1), grad_out(c, 2)), "overlapping");
  return grad_status(c);
}
OPS_COST_PER_ELEMENT(cost_pool, 4)

#define POOL(gradient_)                                                                                                \
  .inputs = "value: T", .outputs = "output: T, row_pooling_sequence: int64, col_pooling_sequence: int64",              \
  .attrs = "pooling_ratio: list(float) >= 4, pseudo_random: bool = false, overlapping: bool = false, deterministic: "  \
           "bool = false, seed: int = 0, seed2: int = 0, T: {float, double, int32, int64}",                            \
  .flags = TFC_OP_STATEFUL, .types = OPS_BITS(WIDE), .node_state = TFC_RANDOM_NODE_STATE, .shape = shape_pool,         \
  .gradient = gradient_, .cost = cost_pool, .prepare = tfc_random_prepare, .kernel = fractional_pool
static const struct tfc_op_def nn_fractional_rows[] = {
    {.name = "FractionalMaxPool", POOL(gradient_max)},
    {.name = "FractionalAvgPool", POOL(gradient_avg)},
    {.name = "FractionalMaxPoolGrad",
     .inputs = "orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64, col_pooling_sequence: "
               "int64",
     .outputs = "output: T",
     .attrs = "overlapping: bool = false, T: {float, double, int32, int64}",
     .types = OPS_BITS(WIDE),
     .host_inputs = 24,
     .shape = shape_max_grad,
     .cost = cost_pool,
     .kernel = max_grad},
    {.name = "FractionalAvgPoolGrad",
     .inputs = "orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, col_pooling_sequence: "
               "int64",
     .outputs = "output: T",
     .attrs = "overlapping: bool = false, T: {float, double, int32, int64}",
     .types = OPS_BITS(WIDE),
     .host_inputs = 13,
     .shape = shape_avg_grad,
     .cost = cost_pool,
     .kernel = avg_grad,
     .samples = "int64[4]=[1,5,6,2], float[1,2,3,2], int64[3]=[0,2,5], int64[4]=[0,2,4,6]"},
};
TFC_REGISTER_OPS(nn_fractional_rows);
