// BatchNormWithGlobalNormalization and its gradient, which older graphs use. Unlike in the fused ops, the statistics
// are inputs, a flag says whether to scale, the epsilon has no default, and channels come last.
//
//   t, result [batch, height, width, depth]   m, v, beta, gamma [depth]
#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct norm {
  int64_t rows, depth; // t is seen as [rows, depth]
  double epsilon;
  bool scaled;
  tfc_dtype dtype;
  const struct tfc_tensor *const *in;
  struct tfc_tensor *out[5];
};

static tfc_status describe(struct tfc_kernel_ctx *ctx, uint32_t vectors, struct norm *n) {
  const struct tfc_shape *t = &ctx->inputs[0]->shape;
  TFC_KERNEL_CHECK(t->rank == 4, "input must be 4-dimensional%s", tfc_shape_show(t, (char[TFC_SHAPE_TEXT]){0}));
  for (uint32_t i = 1; i <= vectors; i++) {
    const struct tfc_shape *s = &ctx->inputs[i]->shape;
    TFC_KERNEL_CHECK(s->rank == 1 && s->dims[0] == t->dims[3],
                     "input %u must be a vector of as many elements as there are channels (%lld), but is %s", i,
                     (long long)t->dims[3], tfc_shape_show(s, (char[TFC_SHAPE_TEXT]){0}));
  }
  n->depth = t->dims[3];
  n->rows = t->dims[0] * t->dims[1] * t->dims[2];
  n->epsilon = (double)(float)tfc_node_attr_float(ctx->graph, ctx->node, "variance_epsilon", 0);
  n->scaled = tfc_node_attr_bool(ctx->graph, ctx->node, "scale_after_normalization", true);
  n->dtype = ctx->inputs[0]->dtype;
  n->in = ctx->inputs;
  return NULL;
}

// result = (t - m) / sqrt(v + epsilon) [gamma] + beta, for rows [begin, end).
static void forward(void *arg, int64_t begin, int64_t end) {
  const struct norm *n = arg;
  OPS_SWITCH(OPS_FLOATS, n->dtype, {
    const S *x = n->in[0]->data, *m = n->in[1]->data, *v = n->in[2]->data, *b = n->in[3]->data, *g = n->in[4]->data;
    S *y = n->out[0]->data;
    for (int64_t k = 0; k < n->depth; k++) {
      C scale = (C)1 / sqrt(OPS_GET(v[k]) + (C)n->epsilon), mean = OPS_GET(m[k]), shift = OPS_GET(b[k]);
      if (n->scaled) scale *= OPS_GET(g[k]);
      for (int64_t i = begin; i < end; i++)
        OPS_PUT(y[i * n->depth + k], (OPS_GET(x[i * n->depth + k]) - mean) * scale + shift);
    }
  })
}
static tfc_status global_norm(struct tfc_kernel_ctx *ctx) { // inputs: t, m, v, beta, gamma
  struct norm n;
  TFC_RETURN_IF_ERROR(describe(ctx, 4, &n));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, ctx->inputs[0], &n.out[0]));
  tfc_kernel_parallel_for(ctx, n.rows, 1 + 16384 / (n.depth + 1), forward, &n);
  return NULL;
}

// With r = 1 / sqrt(v + epsilon), s = sum(dy (t - m)) and scale = r [gamma]: db = sum(dy), dg = s r, dx = dy scale, dm
// = -db scale, dv = -s scale / 2 (v + epsilon). Computes channels [begin, end).
static void backward(void *arg, int64_t begin, int64_t end) {
  const struct norm *n = arg;
  OPS_SWITCH(OPS_FLOATS, n->dtype, {
    const S *x = n->in[0]->data, *m = n->in[1]->data, *v = n->in[2]->data, *g = n->in[3]->data, *dy = n->in[4]->data;
    S *dx = n->out[0]->data, *dm = n->out[1]->data, *dv = n->out[2]->data, *db = n->out[3]->data, *dg = n->out[4]->data;
    for (int64_t k = begin; k < end; k++) {
      const C variance = OPS_GET(v[k]) + (C)n->epsilon, r = (C)1 / sqrt(variance), mean = OPS_GET(m[k]);
      const C scale = n->scaled ? r * OPS_GET(g[k]) : r;
      double sum = 0, product = 0;
      for (int64_t i = 0; i < n->rows; i++) {
        const int64_t at = i * n->depth + k;
        sum += (double)OPS_GET(dy[at]);
        product += (double)OPS_GET(dy[at]) * (double)(OPS_GET(x[at]) - mean);
        OPS_PUT(dx[at], OPS_GET(dy[at]) * scale);
      }
      OPS_PUT(dm[k], (C)-sum * scale);
      OPS_PUT(dv[k], (C)product * ((C)-0.5 * scale / variance));
      OPS_PUT(db[k], (C)sum);
      OPS_PUT(dg[k], n->scaled ? (C)product * r : 0);
    }
  })
}
static tfc_status global_norm_grad(struct tfc_kernel_ctx *ctx) { // inputs: t, m, v, gamma, backprop
  struct norm n;
  TFC_RETURN_IF_ERROR(describe(ctx, 3, &n));
  TFC_KERNEL_CHECK(tfc_shape_equal(&ctx->inputs[0]->shape, &ctx->inputs[4]->shape),
                   "the gradient must have the shape of the input");
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, ctx->inputs[0], &n.out[0]));
  for (uint32_t i = 1; i < 5; i++)
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, n.dtype, &ctx->inputs[1]->shape, &n.out[i]));
  tfc_kernel_parallel_for(ctx, n.depth, 1 + 16384 / (n.rows + 1), backward, &n);
  return NULL;
}

static tfc_status depth_of(struct tfc_shape_ctx *ctx, uint32_t vectors, struct tfc_shape *x) {
  struct tfc_shape vector;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, x));
  for (uint32_t i = 1; i <= vectors; i++) {
    TFC_RETURN_IF_ERROR(ops_with_rank(ctx, i, 1, &vector));
    TFC_RETURN_IF_ERROR(tfc_dim_merge(x->dims[3], vector.dims[0], &x->dims[3]));
  }
  return NULL;
}
static tfc_status shape_forward(struct tfc_shape_ctx *ctx) {
  return depth_of(ctx, 4, &ctx->outputs[0]);
}
static tfc_status shape_backward(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, dy;
  TFC_RETURN_IF_ERROR(depth_of(ctx, 3, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 4, 4, &dy));
  TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[3], dy.dims[3], &x.dims[3]));
  TFC_RETURN_IF_ERROR(tfc_shape_merge(&x, &dy, &ctx->outputs[0]));
  for (uint32_t i = 1; i < 5; i++) ctx->outputs[i] = TFC_SHAPE(x.dims[3]);
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_forward, 3)
OPS_COST_PER_ELEMENT(cost_backward, 5)

static tfc_status grad_of_norm(struct tfc_grad_ctx *c) {
  struct tfc_output g =
      grad_node(c, "BatchNormWithGlobalNormalizationGrad",
                TFC_OUTPUTS(grad_in(c, 0), grad_in(c, 1), grad_in(c, 2), grad_in(c, 4), c->grad_outputs[0]),
                "variance_epsilon scale_after_normalization");
  for (int i = 0; i < 5; i++) c->grad_inputs[i] = (struct tfc_output){g.node, i};
  return grad_status(c);
}

#define ATTRS                                                                                                          \
  "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, " \
  "uint16, complex128, half, uint32, uint64}, variance_epsilon: float, scale_after_normalization: bool"
#define TYPES TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE) | TFC_TYPE_BIT(TFC_HALF)
#define SAMPLE "{variance_epsilon=0.01, scale_after_normalization=true}"
static const struct tfc_op_def nn_batch_norm_global_rows[] = {
    {.name = "BatchNormWithGlobalNormalization",
     .inputs = "t: T, m: T, v: T, beta: T, gamma: T",
     .outputs = "result: T",
     .attrs = ATTRS,
     .flags = TFC_OP_INPLACE_FIRST,
     .types = TYPES,
     .shape = shape_forward,
     .gradient = grad_of_norm,
     .cost = cost_forward,
     .kernel = global_norm,
     .samples = "float[2,3,3,2], float[2], float[2]=[0.5,2], float[2], float[2] " SAMPLE},
    {.name = "BatchNormWithGlobalNormalizationGrad",
     .inputs = "t: T, m: T, v: T, gamma: T, backprop: T",
     .outputs = "dx: T, dm: T, dv: T, db: T, dg: T",
     .attrs = ATTRS,
     .types = TYPES,
     .shape = shape_backward,
     .cost = cost_backward,
     .kernel = global_norm_grad,
     .samples = "float[2,3,3,2], float[2], float[2]=[0.5,2], float[2], float[2,3,3,2] " SAMPLE},
};
TFC_REGISTER_OPS(nn_batch_norm_global_rows);
