// TopK and TopKV2: find the largest values of each row and their positions.
#include <string.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

struct state {
  tfc_dtype index_type;
  bool sorted;
  int64_t k; // for TopK; TopKV2 has an input instead
};

// --- Rows, by type ---------------------------------------------------------------------------------------------------
typedef bool above_fn(const void *row, int32_t a, int32_t b); // whether element a is larger than element b
typedef bool same_fn(const void *row, int32_t a, int32_t b);
// Finds the first element at or after `from` that is larger than element `than`; n: there is none.
typedef int32_t next_fn(const void *row, int32_t from, int32_t n, int32_t than);
typedef int32_t best_fn(const void *row, int32_t n);
struct row_type {
  above_fn *above;
  same_fn *same;
  next_fn *next;
  best_fn *best;
};
struct row {
  const void *data;
  const struct row_type *type;
};
#define TOP_FN static
#define TOP_ROW struct row
#define TOP_ABOVE(r, a, b) (r)->type->above((r)->data, a, b)
#define TOP_SAME(r, a, b) (r)->type->same((r)->data, a, b)
#define TOP_NEXT(r, i, n, than) (r)->type->next((r)->data, i, n, than)
#include "runtime/ops/math_top_search.h"

#define LANES(x) (sizeof *(x) == 8 ? 4 : 8)
#define ROW(t, ...)                                                                                                    \
  static bool above_##t(const void *row, int32_t a, int32_t b) {                                                       \
    const ops_##t *x = row;                                                                                            \
    return OPS_GET_##t(x[b]) < OPS_GET_##t(x[a]);                                                                      \
  }                                                                                                                    \
  static bool same_##t(const void *row, int32_t a, int32_t b) {                                                        \
    const ops_##t *x = row;                                                                                            \
    return OPS_GET_##t(x[a]) == OPS_GET_##t(x[b]);                                                                     \
  }                                                                                                                    \
  static int32_t next_##t(const void *row, int32_t from, int32_t n, int32_t than) {                                    \
    const ops_##t *x = row;                                                                                            \
    const ops_##t##_c least = OPS_GET_##t(x[than]);                                                                    \
    int32_t i = from;                                                                                                  \
    while (i < n && !(least < OPS_GET_##t(x[i]))) i++;                                                                 \
    return i;                                                                                                          \
  }                                                                                                                    \
  static int32_t best_##t(const void *row, int32_t n) {                                                                \
    const ops_##t *x = row;                                                                                            \
    TOP_BEST(x, n, OPS_GET_##t, LANES(x));                                                                             \
  }
OPS_REALS(ROW, ~)
static const struct row_type row_types[TFC_DTYPE_COUNT] = {
#define ENTRY(t, ...) [OPS_DT_##t] = {above_##t, same_##t, next_##t, best_##t},
    OPS_REALS(ENTRY, ~)};

// --- The kernel ------------------------------------------------------------------------------------------------------
struct job {
  const struct tfc_tensor *x;
  struct tfc_tensor *values, *indices;
  int32_t *scratch; // [rows, k + 1]
  int64_t n, k;
  bool sorted;
};
static void put_index(struct tfc_tensor *t, int64_t i, int32_t v) {
  switch ((int)t->dtype) {
  case TFC_INT64: ((int64_t *)t->data)[i] = v; break;
  case TFC_INT16: ((int16_t *)t->data)[i] = (int16_t)v; break;
  default: ((int32_t *)t->data)[i] = v;
  }
}
static void do_rows(void *arg, int64_t begin, int64_t end) {
  const struct job *j = arg;
  size_t size = tfc_dtype_size(j->x->dtype);
  struct top_span spans[TOP_SPANS];
  for (int64_t row = begin; row < end; row++) {
    const char *data = (const char *)j->x->data + (size_t)(row * j->n) * size;
    struct row r = {data, &row_types[j->x->dtype]};
    int32_t *found = j->scratch + row * (j->k + 1);
    if (j->k == 1)
      found[0] = r.type->best(data, (int32_t)j->n);
    else if (j->k == j->n)
      top_sort_row(&r, found, (int32_t)j->n, spans);
    else
      top_best_of_row(&r, found, (int32_t)j->k, (int32_t)j->n, j->sorted);
    for (int64_t i = 0; i < j->k; i++) {
      memcpy((char *)j->values->data + (size_t)(row * j->k + i) * size, data + (size_t)found[i] * size, size);
      put_index(j->indices, row * j->k + i, found[i]);
    }
  }
}

static tfc_status top_k(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct state *state = ctx->state;
  struct job j = {.x = x, .k = state->k, .sorted = state->sorted};
  struct tfc_buffer *held = NULL;
  if (ctx->input_count == 2) {
    TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "k must be scalar");
    j.k = tfc_tensor_int(ctx->inputs[1], 0);
  }
  TFC_KERNEL_CHECK(x->shape.rank >= 1, "input must be >= 1-D");
  j.n = x->shape.dims[x->shape.rank - 1];
  TFC_KERNEL_CHECK(j.k >= 0, "Need k >= 0, got %lld", (long long)j.k);
  TFC_KERNEL_CHECK(j.n >= j.k, "input must have at least k columns. Had %lld, needed %lld", (long long)j.n,
                   (long long)j.k);
  TFC_KERNEL_CHECK(j.n < INT32_MAX, "Second dimension of flattened input must be <= INT_MAX, got %lld", (long long)j.n);
  if (!row_types[x->dtype].above) return ops_unsupported_type(ctx, x->dtype);
  struct tfc_shape shape = x->shape;
  shape.dims[shape.rank - 1] = j.k;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &shape, &j.values));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, state->index_type, &shape, &j.indices));
  int64_t rows = j.n ? tfc_tensor_elements(x) / j.n : 0;
  if (j.k == 0 || rows == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)rows * (size_t)(j.k + 1) * sizeof(int32_t), &held));
  j.scratch = held->data;
  tfc_kernel_parallel_for(ctx, rows, 1 + OPS_GRAIN_CHEAP / j.n, do_rows, &j);
  tfc_buffer_release(held);
  return NULL;
}
static tfc_status prepare_top_k(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct state, state);
  state->index_type = tfc_node_attr_type(ctx->graph, ctx->node, "index_type", TFC_INT32);
  state->sorted = tfc_node_attr_bool(ctx->graph, ctx->node, "sorted", true);
  state->k = tfc_node_attr_int(ctx->graph, ctx->node, "k", 0);
  return NULL;
}
static tfc_status shape_top_k(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x;
  int64_t k = TFC_DIM_UNKNOWN;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, &x));
  if (x.rank < 0) return NULL;
  if (ctx->node->input_count == 1)
    k = tfc_node_attr_int(ctx->graph, ctx->node, "k", 0);
  else if (!ops_known_int(ctx, 1, &k))
    k = TFC_DIM_UNKNOWN;
  if (tfc_dim_known(k) && tfc_dim_known(x.dims[x.rank - 1]) && x.dims[x.rank - 1] < k)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input must have last dimension >= k = %lld but is %lld", (long long)k,
                           (long long)x.dims[x.rank - 1]);
  x.dims[x.rank - 1] = k;
  ctx->outputs[0] = ctx->outputs[1] = x;
  return NULL;
}
// The gradient goes back to the positions of the values: rows are flattened and positions numbered through all rows.
OPS_GRADIENT(TopKV2) {
  struct tfc_builder *b = g->builder;
  struct tfc_output zero = tfc_add_i32(b, 0), first = tfc_add_i32_vector(b, (int32_t[]){0}, 1);
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], TFC_INT32);
  struct tfc_output index_shape = grad_shape(g, grad_out(g, 1), g->output_shapes[1], TFC_INT32);
  struct tfc_output lengths[2] = {grad_item(g, shape, -1), grad_item(g, index_shape, -1)};
  struct tfc_output flat[2] = {tfc_add_i32(b, -1), lengths[1]};
  struct tfc_output indices = g_reshape(g, grad_cast(g, grad_out(g, 1), TFC_INT32), grad_pack(g, flat, 2, 0));
  struct tfc_output rows = grad_item(g, grad_shape(g, indices, NULL, TFC_INT32), 0);
  struct tfc_output starts = grad_op3(g, "Range", zero, g_mul(g, rows, lengths[0]), lengths[0]);
  struct tfc_output through = g_add(g, indices, grad_op2(g, "ExpandDims", starts, tfc_add_i32(b, -1)));
  struct tfc_output all = tfc_add_i32_vector(b, (int32_t[]){-1}, 1);
  struct tfc_output total = grad_op2(g, "Prod", shape, first);
  struct tfc_output at = grad_op2(g, "ExpandDims", g_reshape(g, through, all), tfc_add_i32(b, -1));
  struct tfc_output spread =
      grad_op3(g, "ScatterNd", at, g_reshape(g, G, all), g_reshape(g, total, tfc_add_i32_vector(b, (int32_t[]){1}, 1)));
  g->grad_inputs[0] = g_reshape(g, spread, shape);
  return NULL;
}

static const struct tfc_op_def math_top_k_rows[] = {
    {.name = "TopKV2",
     .inputs = "input: T, k: Tk",
     .outputs = "values: T, indices: index_type",
     .attrs = "sorted: bool = true, T: " OPS_TYPES_REAL
              ", Tk: {int16, int32, int64} = int32, index_type: {int16, int32, int64} = int32",
     .types = OPS_BITS(OPS_REALS),
     .host_inputs = 2,
     .shape = shape_top_k,
     .cost = ops_cost_inputs,
     .prepare = prepare_top_k,
     .kernel = top_k,
     .gradient = gradient_TopKV2,
     .samples = "float[3,4], int32[]=2; int32[5], int32[]=5"},
    {.name = "TopK",
     .inputs = "input: T",
     .outputs = "values: T, indices: int32",
     .attrs = "k: int >= 0, sorted: bool = true, T: " OPS_TYPES_REAL,
     .types = OPS_BITS(OPS_REALS),
     .shape = shape_top_k,
     .cost = ops_cost_inputs,
     .prepare = prepare_top_k,
     .kernel = top_k,
     .gradient = gradient_TopKV2,
     .samples = "float[3,4] {k=2}"},
};
TFC_REGISTER_OPS(math_top_k_rows);
