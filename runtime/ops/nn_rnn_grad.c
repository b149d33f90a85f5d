// Gradients of one step of the cells in nn_rnn_cell.c, from the step's outputs. Where TensorFlow's ops leave products
// with the weights to MatMul nodes, so do these. x [batch, in], states [batch, cell]. Arithmetic is in float.
#include <stdlib.h>
#include <string.h>

#include "runtime/ops/blas.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

static tfc_status check(struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_shape *want, const char *what) {
  const struct tfc_shape *got = &ctx->inputs[i]->shape;
  TFC_KERNEL_CHECK(tfc_shape_equal(got, want), "%s has shape %s, should have %s", what,
                   tfc_shape_show(got, (char[TFC_SHAPE_TEXT]){0}), tfc_shape_show(want, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

#define AT(input, place) OPS_GET(((const S *)ctx->inputs[input]->data)[place])
// Inputs: x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad; outputs: cs_prev_grad, the
// gradients of the gates [batch, 4 cell] in the order input, cell, forget, output, and those of the peephole weights.
static tfc_status lstm_cell_grad(struct tfc_kernel_ctx *ctx) {
  enum { CS_PREV = 1, WCI = 4, WCF, WCO, IN_I = 8, IN_CS, IN_F, IN_O, IN_CI, IN_CO, CS_GRAD, H_GRAD };
  static const char *const names[] = {"i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"};
  const struct tfc_tensor *x = ctx->inputs[0], *before = ctx->inputs[CS_PREV];
  bool peephole = tfc_node_attr_bool(ctx->graph, ctx->node, "use_peephole", false);
  TFC_KERNEL_CHECK(x->shape.rank == 2 && before->shape.rank == 2, "x and cs_prev must be matrices");
  int64_t batch = x->shape.dims[0], in = x->shape.dims[1], n = before->shape.dims[1];
  struct tfc_shape state = TFC_SHAPE(batch, n), w = TFC_SHAPE(in + n, 4 * n), row = TFC_SHAPE(n), b = TFC_SHAPE(4 * n);
  TFC_RETURN_IF_ERROR(check(ctx, CS_PREV, &state, "cs_prev"));
  TFC_RETURN_IF_ERROR(check(ctx, 2, &state, "h_prev"));
  TFC_RETURN_IF_ERROR(check(ctx, 3, &w, "w"));
  for (uint32_t k = WCI; k <= WCO; k++) TFC_RETURN_IF_ERROR(check(ctx, k, &row, "a peephole weight"));
  TFC_RETURN_IF_ERROR(check(ctx, 7, &b, "b"));
  for (uint32_t k = IN_I; k <= H_GRAD; k++) TFC_RETURN_IF_ERROR(check(ctx, k, &state, names[k - IN_I]));
  struct tfc_tensor *cs_prev_grad = NULL, *gates = NULL, *peep[3] = {0};
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &state, &cs_prev_grad));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, x->dtype, &TFC_SHAPE(batch, 4 * n), &gates));
  for (uint32_t k = 0; k < 3; k++) TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 2 + k, x->dtype, &row, &peep[k]));
  float *sums = calloc((size_t)(3 * n + 1), sizeof *sums);
  if (!sums) return tfc_status_no_memory(NULL);
  OPS_SWITCH(OPS_FLOATS, x->dtype, {
    for (int64_t r = 0; r < batch; r++)
      for (int64_t k = 0; k < n; k++) {
        const int64_t at = r * n + k;
        const C i = AT(IN_I, at), f = AT(IN_F, at), o = AT(IN_O, at), c = AT(IN_CI, at), co = AT(IN_CO, at),
                h_grad = AT(H_GRAD, at);
        const C d_o = o * (1 - o) * h_grad * co;
        C d_cs = (1 - co * co) * h_grad * o + AT(CS_GRAD, at);
        if (peephole) d_cs += d_o * AT(WCO, k);
        const C d_c = (1 - c * c) * d_cs * i, d_f = f * (1 - f) * d_cs * AT(CS_PREV, at), d_i = i * (1 - i) * d_cs * c;
        C d_before = d_cs * f;
        if (peephole) {
          d_before += d_i * AT(WCI, k) + d_f * AT(WCF, k);
          sums[k] += (float)(d_i * AT(CS_PREV, at));
          sums[n + k] += (float)(d_f * AT(CS_PREV, at));
          sums[2 * n + k] += (float)(d_o * AT(IN_CS, at));
        }
        S *g = (S *)gates->data + r * 4 * n;
        OPS_PUT(g[k], d_i);
        OPS_PUT(g[n + k], d_c);
        OPS_PUT(g[2 * n + k], d_f);
        OPS_PUT(g[3 * n + k], d_o);
        OPS_PUT(((S *)cs_prev_grad->data)[at], d_before);
      }
    for (int64_t k = 0; k < 3 * n; k++) OPS_PUT(((S *)peep[k / n]->data)[k % n], sums[k]);
  })
  free(sums);
  return NULL;
}

// Inputs: x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h; outputs: d_x, d_h_prev, d_c_bar [batch, cell], d_r_bar_u_bar
// [batch, 2 cell].
static tfc_status gru_cell_grad(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *h = ctx->inputs[1];
  TFC_KERNEL_CHECK(x->shape.rank == 2 && h->shape.rank == 2 && x->shape.dims[0] == h->shape.dims[0],
                   "x and h_prev must be matrices of as many rows");
  const int64_t batch = x->shape.dims[0], in = x->shape.dims[1], n = h->shape.dims[1], width = in + n;
  struct tfc_shape w_ru = TFC_SHAPE(width, 2 * n), w_c = TFC_SHAPE(width, n), b_ru = TFC_SHAPE(2 * n),
                   b_c = TFC_SHAPE(n), state = TFC_SHAPE(batch, n);
  TFC_RETURN_IF_ERROR(check(ctx, 2, &w_ru, "w_ru"));
  TFC_RETURN_IF_ERROR(check(ctx, 3, &w_c, "w_c"));
  TFC_RETURN_IF_ERROR(check(ctx, 4, &b_ru, "b_ru"));
  TFC_RETURN_IF_ERROR(check(ctx, 5, &b_c, "b_c"));
  for (uint32_t k = 6; k < 10; k++) TFC_RETURN_IF_ERROR(check(ctx, k, &state, k < 9 ? "a saved output" : "d_h"));
  struct tfc_tensor *dx = NULL, *dh = NULL, *dc = NULL, *dru = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, x, &dx));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 1, h, &dh));
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 2, h, &dc));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 3, TFC_FLOAT, &TFC_SHAPE(batch, 2 * n), &dru));
  if (batch * width == 0) return NULL;
  float *from_c = malloc((size_t)(2 * batch * width) * sizeof *from_c); // gradients of [x, h r] and of [x, h]
  if (!from_c) return tfc_status_no_memory(NULL);
  float *from_ru = from_c + batch * width, *c_bar = dc->data, *ru_bar = dru->data;
  const float *before = h->data, *r = ctx->inputs[6]->data, *u = ctx->inputs[7]->data, *c = ctx->inputs[8]->data;
  const float *grad = ctx->inputs[9]->data;
  for (int64_t i = 0; i < batch * n; i++) c_bar[i] = grad[i] * (1 - u[i]) * (1 - c[i] * c[i]);
  if (n)
    ops_sgemm(CblasNoTrans, CblasTrans, (int)batch, (int)width, (int)n, 1, c_bar, (int)n, ctx->inputs[3]->data, (int)n,
              0, from_c, (int)width);
  else
    memset(from_c, 0, (size_t)(batch * width) * sizeof *from_c);
  for (int64_t b = 0; b < batch; b++)
    for (int64_t k = 0; k < n; k++) {
      const int64_t i = b * n + k;
      ru_bar[b * 2 * n + k] = from_c[b * width + in + k] * before[i] * r[i] * (1 - r[i]);
      ru_bar[b * 2 * n + n + k] = grad[i] * (before[i] - c[i]) * u[i] * (1 - u[i]);
    }
  if (n)
    ops_sgemm(CblasNoTrans, CblasTrans, (int)batch, (int)width, (int)(2 * n), 1, ru_bar, (int)(2 * n),
              ctx->inputs[2]->data, (int)(2 * n), 0, from_ru, (int)width);
  else
    memset(from_ru, 0, (size_t)(batch * width) * sizeof *from_ru);
  for (int64_t b = 0; b < batch; b++) {
    for (int64_t k = 0; k < in; k++) ((float *)dx->data)[b * in + k] = from_c[b * width + k] + from_ru[b * width + k];
    for (int64_t k = 0; k < n; k++) {
      const int64_t i = b * n + k, at = b * width + in + k;
      ((float *)dh->data)[i] = from_c[at] * r[i] + grad[i] * u[i] + from_ru[at];
    }
  }
  free(from_c);
  return NULL;
}

static tfc_status shape_lstm(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, state;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 2, &state));
  ctx->outputs[0] = TFC_SHAPE(x.dims[0], state.dims[1]);
  ctx->outputs[1] = TFC_SHAPE(x.dims[0], ops_dim_mul(state.dims[1], 4));
  for (int i = 2; i < 5; i++) ctx->outputs[i] = TFC_SHAPE(state.dims[1]);
  return NULL;
}
static tfc_status shape_gru(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, state, w;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 2, &state));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 2, 2, &w));
  ctx->outputs[0] = x;
  ctx->outputs[1] = ctx->outputs[2] = TFC_SHAPE(x.dims[0], state.dims[1]);
  ctx->outputs[3] = TFC_SHAPE(x.dims[0], w.dims[1]);
  return NULL;
}
static void cost_gru(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                     const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops =
      2 * (double)inputs[0].dims[0] * (double)(tfc_shape_elements(&inputs[2]) + tfc_shape_elements(&inputs[3]));
}
OPS_COST_PER_ELEMENT(cost_lstm, 24)

static const struct tfc_op_def nn_rnn_grad_rows[] = {
    {.name = "LSTMBlockCellGrad",
     .inputs =
         "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: T, o: T, ci: T, co: T, "
         "cs_grad: T, h_grad: T",
     .outputs = "cs_prev_grad: T, dicfo: T, wci_grad: T, wcf_grad: T, wco_grad: T",
     .attrs = "use_peephole: bool, T: {half, float}",
     .types = TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_HALF),
     .shape = shape_lstm,
     .cost = cost_lstm,
     .kernel = lstm_cell_grad},
    {.name = "GRUBlockCellGrad",
     .inputs = "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T, r: T, u: T, c: T, d_h: T",
     .outputs = "d_x: T, d_h_prev: T, d_c_bar: T, d_r_bar_u_bar: T",
     .attrs = "T: {float}",
     .types = TFC_TYPE_BIT(TFC_FLOAT),
     .shape = shape_gru,
     .cost = cost_gru,
     .kernel = gru_cell_grad},
};
TFC_REGISTER_OPS(nn_rnn_grad_rows);
