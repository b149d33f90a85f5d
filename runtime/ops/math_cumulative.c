// Running sums and products along one dimension: Cumsum, Cumprod, CumulativeLogsumexp.
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

struct cumulative_state {
  bool exclusive, reverse;
};
static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct cumulative_state, state);
  state->exclusive = tfc_node_attr_bool(ctx->graph, ctx->node, "exclusive", false);
  state->reverse = tfc_node_attr_bool(ctx->graph, ctx->node, "reverse", false);
  return NULL;
}

// Computes y[k * step] from x[k * step] for k < n, from either end; `exclusive`: without element k itself.
typedef void scan_fn(const void *x, void *y, int64_t n, int64_t step, const struct cumulative_state *how);
#define SCAN(t, name, INIT, ...)                                                                                       \
  static void scan_##name##_##t(const void *xv, void *yv, int64_t n, int64_t step,                                     \
                                const struct cumulative_state *how) {                                                  \
    typedef ops_##t##_c C OPS_UNUSED;                                                                                  \
    typedef ops_##t##_u U OPS_UNUSED;                                                                                  \
    const ops_##t *x = xv;                                                                                             \
    ops_##t *y = yv, acc = OPS_PUT_##t((C)(INIT));                                                                     \
    for (int64_t k = 0; k < n; k++) {                                                                                  \
      int64_t at = (how->reverse ? n - 1 - k : k) * step;                                                              \
      const C a = OPS_GET_##t(acc), b = OPS_GET_##t(x[at]);                                                            \
      const ops_##t next = OPS_PUT_##t(__VA_ARGS__);                                                                   \
      y[at] = how->exclusive ? acc : next;                                                                             \
      acc = next;                                                                                                      \
    }                                                                                                                  \
  }
// ln (e^a + e^b). As TensorFlow's minimum and maximum have it, a NaN in b counts as another a, and two infinities give
// NaN.
#define LOG_ADD(t)                                                                                                     \
  static inline ops_##t log_add_##t(ops_##t a, ops_##t b) {                                                            \
    ops_##t most = a < b ? b : a, least = b < a ? b : a;                                                               \
    return most == (ops_##t) - INFINITY ? most : most + log1p(exp(least - most));                                      \
  }
LOG_ADD(f32)
LOG_ADD(f64)
#define LOG_ADD_OF(a, b) _Generic((a), float : log_add_f32, double : log_add_f64)(a, b)
OPS_NUMBERS(SCAN, sum, 0, (U)a + (U)b)
OPS_NUMBERS(SCAN, product, 1, (U)a *(U)b)
OPS_FLOATS(SCAN, logsumexp, -INFINITY, LOG_ADD_OF(a, b))
#define ENTRY(t, name) [OPS_DT_##t] = scan_##name##_##t,
static scan_fn *const sum_table[TFC_DTYPE_COUNT] = {OPS_NUMBERS(ENTRY, sum)};
static scan_fn *const product_table[TFC_DTYPE_COUNT] = {OPS_NUMBERS(ENTRY, product)};
static scan_fn *const logsumexp_table[TFC_DTYPE_COUNT] = {OPS_FLOATS(ENTRY, logsumexp)};

struct scan_job {
  scan_fn *fn;
  const struct cumulative_state *how;
  const char *x;
  char *y;
  int64_t n, inner;
  size_t size;
};
static void scan_piece(void *arg, int64_t begin, int64_t end) {
  const struct scan_job *j = arg;
  for (int64_t k = begin; k < end; k++) {
    size_t at = (size_t)(k / j->inner * j->n * j->inner + k % j->inner) * j->size;
    j->fn(j->x + at, j->y + at, j->n, j->inner, j->how);
  }
}
static tfc_status scan(struct tfc_kernel_ctx *ctx, scan_fn *const *table) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  int axis;
  if (!table[x->dtype]) return ops_unsupported_type(ctx, x->dtype);
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "axis must be a scalar");
  TFC_RETURN_IF_ERROR(ops_axis(tfc_tensor_int(ctx->inputs[1], 0), x->shape.rank, &axis));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &y));
  struct scan_job job = {table[x->dtype],         ctx->state, x->data, y->data, x->shape.dims[axis], 1,
                         tfc_dtype_size(x->dtype)};
  for (int d = axis + 1; d < x->shape.rank; d++) job.inner *= x->shape.dims[d];
  int64_t total = tfc_tensor_elements(x);
  if (total == 0) return NULL;
  tfc_kernel_parallel_for(ctx, total / job.n, OPS_GRAIN_COSTLY / (job.n + 1) + 1, scan_piece, &job);
  return NULL;
}
static tfc_status cumsum(struct tfc_kernel_ctx *ctx) {
  return scan(ctx, sum_table);
}
static tfc_status cumprod(struct tfc_kernel_ctx *ctx) {
  return scan(ctx, product_table);
}
static tfc_status cumulative_logsumexp(struct tfc_kernel_ctx *ctx) {
  return scan(ctx, logsumexp_table);
}

// --- Gradients -----------------------------------------------------------------------------------------------------
static struct tfc_output running(struct tfc_grad_ctx *g, const char *op, struct tfc_output x, bool reversed) {
  bool reverse = grad_attr_bool(g, "reverse", false);
  struct tfc_attr attrs[2] = {tfc_attr_bool("exclusive", grad_attr_bool(g, "exclusive", false)),
                              tfc_attr_bool("reverse", reversed ? !reverse : reverse)};
  return tfc_add(g->builder, op, "", (struct tfc_output[]){x, grad_in(g, 1)}, 2, attrs, 2);
}
OPS_GRADIENT(Cumsum) {
  g->grad_inputs[0] = running(g, "Cumsum", G, true);
  return NULL;
}
OPS_GRADIENT(Cumprod) {
  struct tfc_output product = running(g, "Cumprod", X, false);
  g->grad_inputs[0] = grad_op2(g, "DivNoNan", running(g, "Cumsum", g_mul(g, product, G), true), X);
  return NULL;
}
// The positive and the negative part of the gradient are summed separately, as logarithms.
OPS_GRADIENT(CumulativeLogsumexp) {
  tfc_dtype type = grad_type(g, G);
  double least = type == TFC_DOUBLE     ? -1.7976931348623157e+308
                 : type == TFC_HALF     ? -65504.0
                 : type == TFC_BFLOAT16 ? -3.38953138925153547590e+38
                                        : -3.4028234663852886e+38;
  struct tfc_output zero = grad_const(g, G, 0), floor = grad_const(g, G, least), parts[2];
  for (int i = 0; i < 2; i++) {
    struct tfc_output holds = grad_op2(g, i ? "Less" : "Greater", G, zero);
    struct tfc_output log = grad_op3(g, "SelectV2", holds, grad_op1(g, "Log", i ? g_neg(g, G) : G), floor);
    struct tfc_output sum = running(g, "CumulativeLogsumexp", g_sub(g, log, Y), true);
    parts[i] = grad_op1(g, "Exp", g_add(g, sum, X));
  }
  g->grad_inputs[0] = g_sub(g, parts[0], parts[1]);
  return NULL;
}

#define ROW(run, grad)                                                                                                 \
  .host_inputs = 2, .shape = ops_shape_same, .cost = ops_cost_outputs, .prepare = prepare, .kernel = run,              \
  .gradient = gradient_##grad,                                                                                         \
  .samples = "float[3,4], int32[]=1; double[3,4], int32[]=0 {exclusive=true}; float[5], int32[]=-1 {reverse=true}"
static const struct tfc_op_def math_cumulative_rows[] = {
    {.name = "Cumsum",
     .inputs = "x: T, axis: Tidx",
     .outputs = "out: T",
     .attrs = "exclusive: bool = false, reverse: bool = false, T: " OPS_TYPES_NUMBER ", Tidx: {int32, int64} = int32",
     ROW(cumsum, Cumsum),
     .types = OPS_BITS(OPS_NUMBERS)},
    {.name = "Cumprod",
     .inputs = "x: T, axis: Tidx",
     .outputs = "out: T",
     .attrs = "exclusive: bool = false, reverse: bool = false, T: " OPS_TYPES_NUMBER ", Tidx: {int32, int64} = int32",
     ROW(cumprod, Cumprod),
     .types = OPS_BITS(OPS_NUMBERS)},
    {.name = "CumulativeLogsumexp",
     .inputs = "x: T, axis: Tidx",
     .outputs = "out: T",
     .attrs = "exclusive: bool = false, reverse: bool = false, T: " OPS_TYPES_FLOAT ", Tidx: {int32, int64} = int32",
     ROW(cumulative_logsumexp, CumulativeLogsumexp),
     .types = OPS_BITS(OPS_FLOATS)},
};
TFC_REGISTER_OPS(math_cumulative_rows);
