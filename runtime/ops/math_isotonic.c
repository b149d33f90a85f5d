// IsotonicRegression: finds for each row x the closest y (by least squares) that never rises. Neighbours that would
// rise are pooled and get their mean, until none rise (Ayer et al. 1955); each pool is a segment.
#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct pool {
  double sum;
  int64_t count;
};

// input [..., n] -> output [..., n], segments [..., n]: the number of each element's pool
static tfc_status isotonic(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL, *segments = NULL;
  struct tfc_buffer *scratch = NULL;
  const int64_t n = x->shape.rank ? x->shape.dims[x->shape.rank - 1] : 1, total = tfc_tensor_elements(x);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, ctx->graph->output_dtypes[ctx->node->output_begin], &x->shape, &y));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_INT32, &x->shape, &segments));
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)(n + 1) * sizeof(struct pool), &scratch));
  struct pool *pools = scratch->data;
  for (int64_t at = 0; at < total; at += n) {
    int64_t count = 0;
    OPS_SWITCH(OPS_REALS, x->dtype, {
      for (int64_t i = 0; i < n; i++) {
        pools[count++] = (struct pool){(double)OPS_GET(((const S *)x->data)[at + i]), 1};
        for (; count > 1; count--) {
          const struct pool *a = &pools[count - 2], *b = &pools[count - 1];
          if (!(a->sum / (double)a->count < b->sum / (double)b->count)) break; // stops for NaN too
          pools[count - 2] = (struct pool){a->sum + b->sum, a->count + b->count};
        }
      }
    })
    OPS_SWITCH(OPS_FLOATS, y->dtype, {
      int64_t i = at;
      for (int64_t p = 0; p < count; p++)
        for (int64_t k = 0; k < pools[p].count; k++, i++) {
          OPS_PUT(((S *)y->data)[i], (C)(pools[p].sum / (double)pools[p].count));
          ((int32_t *)segments->data)[i] = (int32_t)p;
        }
    })
  }
  tfc_buffer_release(scratch);
  return NULL;
}
// The gradient of an element is the mean of the gradients of its pool. Pools are numbered within each row; adding an
// offset for each row makes them segments of the whole tensor.
OPS_GRADIENT(IsotonicRegression) {
  struct tfc_output pools = grad_out(g, 1), shape = grad_op1(g, "Shape", pools), size = grad_op1(g, "Size", pools);
  struct tfc_output flat = grad_ints(g, TFC_INT32, (int64_t[]){-1}, 1), zero = tfc_add_i32(g->builder, 0);
  struct tfc_output row =
      grad_op3(g, "GatherV2", shape, g_sub(g, grad_op1(g, "Size", shape), tfc_add_i32(g->builder, 1)), zero);
  struct tfc_output at = grad_op3(g, "Range", zero, size, tfc_add_i32(g->builder, 1));
  struct tfc_output ids = g_add(g, g_reshape(g, pools, flat), g_mul(g, grad_op2(g, "FloorDiv", at, row), row));
  struct tfc_output all = g_reshape(g, G, flat);
  struct tfc_output sums = grad_op3(g, "UnsortedSegmentSum", all, ids, size);
  struct tfc_output counts = grad_op3(g, "UnsortedSegmentSum", grad_ones_like(g, all), ids, size);
  struct tfc_output means = grad_op3(g, "GatherV2", g_div(g, sums, counts), ids, zero);
  g->grad_inputs[0] = grad_cast(g, g_reshape(g, means, shape), grad_in_type(g, 0));
  return NULL;
}
static tfc_status shape_isotonic(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = ctx->outputs[1] = *ctx->inputs[0];
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_isotonic, 6)

static const struct tfc_op_def math_isotonic_rows[] = {
    {.name = "IsotonicRegression",
     .inputs = "input: T",
     .outputs = "output: output_dtype, segments: int32",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}, "
              "output_dtype: {half, bfloat16, float, double} = float",
     .types = OPS_BITS(OPS_REALS),
     .shape = shape_isotonic,
     .cost = cost_isotonic,
     .kernel = isotonic,
     .gradient = gradient_IsotonicRegression,
     .samples = "float[2,5]=[3,1,2,4,0,5,5,1,2,3]"},
};
TFC_REGISTER_OPS(math_isotonic_rows);
