// Grayscale dilation, which is the largest input + filter in each window, for each channel, and its gradients. Of equal
// maxima, the first one gets the gradient.
//
// x [batch, h, w, depth], filter [size_h, size_w, depth], y [batch, out_h, out_w, depth]
#include <float.h>

#include "runtime/ops/nn_window.h"

struct dilation {
  struct tfc_window w;
  int64_t batch, in[3], out[3], size[3], before[3], depth;
  tfc_dtype dtype;
};

// The attribute for dilations is called rates here.
static tfc_status window_of(const struct tfc_graph *g, const struct tfc_node *n, struct tfc_window *w) {
  TFC_RETURN_IF_ERROR(tfc_window_read(g, n, 4, w));
  const struct tfc_attr *rates = tfc_node_attr(g, n, "rates");
  if (!rates || rates->kind != TFC_ATTR_LIST_INT || rates->count != 4 || rates->ints[0] != 1 || rates->ints[3] != 1 ||
      rates->ints[1] < 1 || rates->ints[2] < 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "rates must be [1, h, w, 1]");
  w->dilation[1] = rates->ints[1], w->dilation[2] = rates->ints[2];
  return NULL;
}
static tfc_status dilation_prepare(struct tfc_prepare_ctx *ctx) {
  struct tfc_window *w = TFC_ARENA_NEW(ctx->arena, struct tfc_window);
  if (!w) return tfc_status_no_memory(NULL);
  ctx->state = w;
  return window_of(ctx->graph, ctx->node, w);
}

static tfc_status describe(struct tfc_kernel_ctx *ctx, struct dilation *d) {
  const struct tfc_tensor *x = ctx->inputs[0], *f = ctx->inputs[1];
  TFC_KERNEL_CHECK(x->shape.rank == 4 && f->shape.rank == 3, "input must be 4-dimensional and filter 3-dimensional");
  TFC_KERNEL_CHECK(x->shape.dims[3] == f->shape.dims[2], "input and filter must have the same depth: %lld vs %lld",
                   (long long)x->shape.dims[3], (long long)f->shape.dims[2]);
  *d = (struct dilation){.w = *(const struct tfc_window *)ctx->state,
                         .batch = x->shape.dims[0],
                         .depth = x->shape.dims[3],
                         .dtype = x->dtype};
  for (int k = 1; k < 3; k++) {
    d->in[k] = x->shape.dims[k];
    d->size[k] = f->shape.dims[k - 1];
    TFC_RETURN_IF_ERROR(tfc_window_output(&d->w, k, d->in[k], d->size[k], &d->out[k], &d->before[k]));
  }
  if (ctx->input_count > 2) {
    const struct tfc_shape *g = &ctx->inputs[2]->shape;
    TFC_KERNEL_CHECK(g->rank == 4 && g->dims[0] == d->batch && g->dims[1] == d->out[1] && g->dims[2] == d->out[2] &&
                         g->dims[3] == d->depth,
                     "out_backprop %s does not fit", tfc_shape_show(g, (char[TFC_SHAPE_TEXT]){0}));
  }
  return NULL;
}

// mode 0: writes the maxima to `out`; 1: adds dy to the input cell of each maximum, in `out`; 2: to the filter cell.
static tfc_status run(struct tfc_kernel_ctx *ctx, int mode) {
  struct dilation d;
  struct tfc_tensor *out = NULL;
  TFC_RETURN_IF_ERROR(describe(ctx, &d));
  struct tfc_shape ys = TFC_SHAPE(d.batch, d.out[1], d.out[2], d.depth);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, d.dtype, mode ? &ctx->inputs[mode - 1]->shape : &ys, &out));
  if (mode && out->size) memset(out->data, 0, out->size);
  OPS_SWITCH(OPS_REALS, d.dtype, {
    const S *x = ctx->inputs[0]->data, *f = ctx->inputs[1]->data;
    const S *dy = mode ? ctx->inputs[2]->data : NULL;
    S *y = out->data;
    const C lowest = _Generic((S *)0, float *: -FLT_MAX, double *: -DBL_MAX, ops_f16 *: -65504.0f, ops_b16 *: -0x1.FEp127f,
        int8_t *: INT8_MIN, int16_t *: INT16_MIN, int32_t *: INT32_MIN, int64_t *: INT64_MIN, default: 0);
    int64_t at = 0;
    for (int64_t n = 0; n < d.batch; n++)
      for (int64_t oh = 0; oh < d.out[1]; oh++)
        for (int64_t ow = 0; ow < d.out[2]; ow++) {
          int64_t i0, i1, j0, j1;
          tfc_window_cells(oh, d.w.stride[1], d.w.dilation[1], d.before[1], d.size[1], d.in[1], &i0, &i1);
          tfc_window_cells(ow, d.w.stride[2], d.w.dilation[2], d.before[2], d.size[2], d.in[2], &j0, &j1);
          for (int64_t c = 0; c < d.depth; c++, at++) {
            C best = lowest; // the value for a window that lies completely in the padding
            int64_t won_x = -1, won_f = -1;
            for (int64_t i = i0; i < i1; i++)
              for (int64_t j = j0; j < j1; j++) {
                const int64_t h = oh * d.w.stride[1] - d.before[1] + i * d.w.dilation[1];
                const int64_t w = ow * d.w.stride[2] - d.before[2] + j * d.w.dilation[2];
                const int64_t xi = ((n * d.in[1] + h) * d.in[2] + w) * d.depth + c;
                const int64_t fi = (i * d.size[2] + j) * d.depth + c;
                S sum; // rounded to the tensors' own type: if rounding makes sums equal, the first one wins
                OPS_PUT(sum, OPS_GET(x[xi]) + OPS_GET(f[fi]));
                const C v = OPS_GET(sum);
                if (won_x < 0 || v > best) best = v, won_x = xi, won_f = fi;
              }
            if (mode == 0)
              OPS_PUT(y[at], best);
            else if (won_x >= 0) {
              const int64_t to = mode == 1 ? won_x : won_f;
              OPS_PUT(y[to], OPS_GET(y[to]) + OPS_GET(dy[at]));
            }
          }
        }
  })
  return NULL;
}
static tfc_status dilation(struct tfc_kernel_ctx *ctx) {
  return run(ctx, 0);
}
static tfc_status dilation_input(struct tfc_kernel_ctx *ctx) {
  return run(ctx, 1);
}
static tfc_status dilation_filter(struct tfc_kernel_ctx *ctx) {
  return run(ctx, 2);
}

static tfc_status shape_dilation(struct tfc_shape_ctx *ctx) {
  struct tfc_window w;
  struct tfc_shape x, f;
  TFC_RETURN_IF_ERROR(window_of(ctx->graph, ctx->node, &w));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 4, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 3, &f));
  struct tfc_shape y = x;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(x.dims[3], f.dims[2], &y.dims[3]));
  for (int k = 1; k < 3; k++) TFC_RETURN_IF_ERROR(tfc_window_infer(&w, k, x.dims[k], f.dims[k - 1], &y.dims[k]));
  ctx->outputs[0] = y;
  return NULL;
}
static tfc_status shape_second(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[1];
  return NULL;
}
static tfc_status grad_of_dilation(struct tfc_grad_ctx *c) {
  struct tfc_output x = grad_in(c, 0), f = grad_in(c, 1), dy = c->grad_outputs[0];
  c->grad_inputs[0] = grad_node(c, "Dilation2DBackpropInput", TFC_OUTPUTS(x, f, dy), "strides rates padding");
  c->grad_inputs[1] = grad_node(c, "Dilation2DBackpropFilter", TFC_OUTPUTS(x, f, dy), "strides rates padding");
  return grad_status(c);
}
static const struct tfc_op_def nn_dilation_rows[] = {
    {.name = "Dilation2D",
     .inputs = "input: T, filter: T",
     .outputs = "output: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}, strides: "
              "list(int) >= 4, rates: list(int) >= 4, padding: {'SAME', 'VALID'}",
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_dilation,
     .gradient = grad_of_dilation,
     .prepare = dilation_prepare,
     .kernel = dilation,
     .samples = "float[2,5,5,3], float[2,2,3] {strides=[1,1,1,1], rates=[1,1,1,1], padding='SAME'}"},
    {.name = "Dilation2DBackpropInput",
     .inputs = "input: T, filter: T, out_backprop: T",
     .outputs = "in_backprop: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}, strides: "
              "list(int) >= 4, rates: list(int) >= 4, padding: {'SAME', 'VALID'}",
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .shape = ops_shape_same,
     .prepare = dilation_prepare,
     .kernel = dilation_input},
    {.name = "Dilation2DBackpropFilter",
     .inputs = "input: T, filter: T, out_backprop: T",
     .outputs = "filter_backprop: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}, strides: "
              "list(int) >= 4, rates: list(int) >= 4, padding: {'SAME', 'VALID'}",
     .types = OPS_BITS(OPS_REALS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_second,
     .prepare = dilation_prepare,
     .kernel = dilation_filter},
};
TFC_REGISTER_OPS(nn_dilation_rows);
