// LSTM and GRU cells as one op each, and an LSTM over a whole sequence, with its gradient.
//
// x [batch, in], h_prev and cs_prev [batch, cell], w [in + cell, 4 cell], b [4 cell]; columns of w are the gates in the
// order input, cell, forget, output (BlockLSTMV2: input, forget, cell, output). Arithmetic is in float.
#include <stdlib.h>
#include <tgmath.h>

#include "runtime/ops/blas.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

static float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}

// Returns the tensor as floats: its own data, or a converted copy *own, which the caller frees.
static const float *floats_of(const struct tfc_tensor *t, float **own) {
  *own = NULL;
  if (t->dtype == TFC_FLOAT) return t->data;
  int64_t n = tfc_tensor_elements(t);
  float *f = malloc(((size_t)n + 1) * sizeof *f);
  for (int64_t i = 0; f && i < n; i++) f[i] = tfc_half_to_float(((const uint16_t *)t->data)[i]);
  return *own = f;
}
static void store(struct tfc_tensor *t, int64_t at, const float *from, int64_t n) {
  if (t->dtype == TFC_FLOAT) {
    if (n) memcpy((float *)t->data + at, from, (size_t)n * sizeof *from);
    return;
  }
  for (int64_t i = 0; i < n; i++) ((uint16_t *)t->data)[at + i] = tfc_float_to_half(from[i]);
}
static float at_half(const struct tfc_tensor *t, int64_t i) {
  return t->dtype == TFC_FLOAT ? ((const float *)t->data)[i] : tfc_half_to_float(((const uint16_t *)t->data)[i]);
}
struct lstm {
  int64_t batch, in, cell;
  float forget_bias, clip;
  bool peephole, half;   // half: every intermediate value is rounded to half precision
  int forget, candidate; // which quarter of the gates each is: 2 and 1, or 1 and 2
};
enum { OUT_I, OUT_CS, OUT_F, OUT_O, OUT_CI, OUT_CO, OUT_H, OUTPUTS };

static void lstm_attrs(const struct tfc_kernel_ctx *ctx, struct lstm *l) {
  bool v2 = tfc_str_ends(ctx->node->op, "V2");
  l->forget_bias = v2 ? 0 : (float)tfc_node_attr_float(ctx->graph, ctx->node, "forget_bias", 1);
  l->clip = (float)tfc_node_attr_float(ctx->graph, ctx->node, "cell_clip", v2 ? 0 : 3);
  l->peephole = tfc_node_attr_bool(ctx->graph, ctx->node, "use_peephole", false);
  l->half = ctx->inputs[ctx->input_count - 1]->dtype == TFC_HALF;
  l->forget = v2 ? 1 : 2;
  l->candidate = v2 ? 2 : 1;
}

static float stored(const struct lstm *l, float x) {
  return l->half ? tfc_half_to_float(tfc_float_to_half(x)) : x;
}
// Returns element `k` of quarter `q` of a row of gates, with its bias added.
static float gate(const struct lstm *l, const float *row, const float *b, int q, int64_t k) {
  return stored(l, stored(l, row[q * l->cell + k]) + b[q * l->cell + k]);
}

// c [m, n] = a [m, k] b [k, n]; every product and sum is rounded to half, as in TensorFlow's sums of halves.
static void half_product(const struct lstm *l, const float *a, const float *b, float *c, int64_t m, int64_t n,
                         int64_t k) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      float sum = 0;
      for (int64_t p = 0; p < k; p++) sum = stored(l, sum + stored(l, a[i * k + p] * b[p * n + j]));
      c[i * n + j] = sum;
    }
}

// Computes one step. `out` has OUTPUTS arrays [batch, cell]; `xh` [batch, in + cell] and `gates` [batch, 4 cell] are
// scratch.
static void lstm_step(const struct lstm *l, const float *x, const float *cs_prev, const float *h_prev, const float *w,
                      const float *wci, const float *wcf, const float *wco, const float *b, float *xh, float *gates,
                      float *const *out) {
  const int64_t n = l->cell, width = l->in + n;
  for (int64_t r = 0; r < l->batch; r++) {
    memcpy(xh + r * width, x + r * l->in, (size_t)l->in * sizeof *xh);
    memcpy(xh + r * width + l->in, h_prev + r * n, (size_t)n * sizeof *xh);
  }
  if (l->half)
    half_product(l, xh, w, gates, l->batch, 4 * n, width);
  else
    ops_sgemm(CblasNoTrans, CblasNoTrans, (int)l->batch, (int)(4 * n), (int)width, 1, xh, (int)width, w, (int)(4 * n),
              0, gates, (int)(4 * n));
  for (int64_t r = 0; r < l->batch; r++)
    for (int64_t k = 0; k < n; k++) {
      const int64_t at = r * n + k;
      const float *g = gates + r * 4 * n, before = cs_prev[at];
      float i = gate(l, g, b, 0, k), f = gate(l, g, b, l->forget, k), o = gate(l, g, b, 3, k);
      const float c = stored(l, tanhf(gate(l, g, b, l->candidate, k)));
      f = stored(l, f + l->forget_bias);
      if (l->peephole) {
        i = stored(l, i + stored(l, before * wci[k]));
        f = stored(l, f + stored(l, before * wcf[k]));
      }
      i = stored(l, sigmoid(i)), f = stored(l, sigmoid(f));
      float cs = stored(l, stored(l, c * i) + stored(l, f * before));
      if (l->clip > 0) cs = cs < -l->clip ? -l->clip : cs > l->clip ? l->clip : cs;
      if (l->peephole) o = stored(l, o + stored(l, cs * wco[k]));
      o = stored(l, sigmoid(o));
      const float co = stored(l, tanhf(cs));
      out[OUT_I][at] = i, out[OUT_CS][at] = cs, out[OUT_F][at] = f, out[OUT_O][at] = o, out[OUT_CI][at] = c;
      out[OUT_CO][at] = co, out[OUT_H][at] = stored(l, o * co);
    }
}

static tfc_status check(const struct tfc_tensor *t, const struct tfc_shape *want, const char *what) {
  TFC_KERNEL_CHECK(tfc_shape_equal(&t->shape, want), "%s has shape %s, should have %s", what,
                   tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(want, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}
// Checks the inputs from `first` on: cs_prev, h_prev, w, wci, wcf, wco, b.
static tfc_status check_weights(struct tfc_kernel_ctx *ctx, uint32_t first, const struct lstm *l) {
  struct tfc_shape state = TFC_SHAPE(l->batch, l->cell), w = TFC_SHAPE(l->in + l->cell, 4 * l->cell);
  struct tfc_shape b = TFC_SHAPE(4 * l->cell), peep = TFC_SHAPE(l->cell);
  TFC_RETURN_IF_ERROR(check(ctx->inputs[first], &state, "cs_prev"));
  TFC_RETURN_IF_ERROR(check(ctx->inputs[first + 1], &state, "h_prev"));
  TFC_RETURN_IF_ERROR(check(ctx->inputs[first + 2], &w, "w"));
  TFC_RETURN_IF_ERROR(check(ctx->inputs[first + 6], &b, "b"));
  for (uint32_t i = 3; i < 6; i++)
    TFC_KERNEL_CHECK(ctx->inputs[first + i]->shape.rank == 1, "a peephole weight must be rank 1 but is rank %d",
                     ctx->inputs[first + i]->shape.rank);
  for (uint32_t i = 3; (l->peephole || first == 2) && i < 6; i++) // BlockLSTM checks them even if they are not used
    TFC_RETURN_IF_ERROR(check(ctx->inputs[first + i], &peep, "a peephole weight"));
  return NULL;
}

// Runs steps [0, steps) of x; outputs are [all, batch, cell] (or [batch, cell] for one step) and zero after `steps`.
static tfc_status lstm_run(struct tfc_kernel_ctx *ctx, struct lstm *l, uint32_t x_input, int64_t all, int64_t steps,
                           const struct tfc_shape *out_shape) {
  tfc_status s = NULL;
  struct tfc_tensor *y[OUTPUTS] = {0};
  float *own[8] = {0}, *scratch = NULL;
  const float *in[8];
  const int64_t size = l->batch * l->cell, width = l->in + l->cell;
  for (uint32_t k = 0; k < OUTPUTS; k++)
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, k, ctx->inputs[x_input]->dtype, out_shape, &y[k]));
  for (uint32_t k = 0; k < 8; k++)
    if (!(in[k] = floats_of(ctx->inputs[x_input + k], &own[k])) && tfc_tensor_elements(ctx->inputs[x_input + k]))
      TFC_TRY(s, tfc_status_no_memory(NULL));
  scratch = malloc((size_t)(l->batch * (width + 4 * l->cell) + OUTPUTS * size + 1) * sizeof *scratch);
  if (!scratch) TFC_TRY(s, tfc_status_no_memory(NULL));
  float *xh = scratch, *gates = xh + l->batch * width, *out[OUTPUTS];
  for (int k = 0; k < OUTPUTS; k++) out[k] = gates + l->batch * 4 * l->cell + k * size;
  for (int64_t t = 0; t < steps && size; t++) {
    // A step reads the previous step's state before it overwrites it, element by element. Only h is copied first,
    // because all of it is read.
    lstm_step(l, in[0] + t * l->batch * l->in, t ? out[OUT_CS] : in[1], t ? out[OUT_H] : in[2], in[3], in[4], in[5],
              in[6], in[7], xh, gates, out);
    for (int k = 0; k < OUTPUTS; k++) store(y[k], t * size, out[k], size);
  }
  for (int k = 0; k < OUTPUTS; k++) {
    size_t done = (size_t)(steps * size) * tfc_dtype_size(y[k]->dtype);
    if (all > steps && y[k]->size > done) memset((char *)y[k]->data + done, 0, y[k]->size - done);
  }
out:
  for (int k = 0; k < 8; k++) free(own[k]);
  free(scratch);
  return s;
}

static tfc_status lstm_cell(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *cs = ctx->inputs[1];
  TFC_KERNEL_CHECK(x->shape.rank == 2 && cs->shape.rank == 2, "x and cs_prev must be matrices");
  struct lstm l = {.batch = x->shape.dims[0], .in = x->shape.dims[1], .cell = cs->shape.dims[1]};
  lstm_attrs(ctx, &l);
  TFC_RETURN_IF_ERROR(check_weights(ctx, 1, &l));
  return lstm_run(ctx, &l, 0, 1, 1, &cs->shape);
}

static tfc_status block_describe(struct tfc_kernel_ctx *ctx, struct lstm *l, int64_t *time, int64_t *steps) {
  const struct tfc_tensor *x = ctx->inputs[1], *cs = ctx->inputs[2];
  TFC_KERNEL_CHECK(x->shape.rank == 3 && cs->shape.rank == 2, "x must have 3 dimensions and cs_prev 2");
  *time = x->shape.dims[0];
  *steps = ops_scalar_int(ctx->inputs[0]);
  TFC_KERNEL_CHECK(*steps >= 0 && *steps <= *time, "seq_len_max %lld is outside of [0, %lld]", (long long)*steps,
                   (long long)*time);
  *l = (struct lstm){.batch = x->shape.dims[1], .in = x->shape.dims[2], .cell = cs->shape.dims[1]};
  lstm_attrs(ctx, l);
  return check_weights(ctx, 2, l);
}
static tfc_status block_lstm(struct tfc_kernel_ctx *ctx) {
  struct lstm l;
  int64_t time = 0, steps = 0;
  TFC_RETURN_IF_ERROR(block_describe(ctx, &l, &time, &steps));
  return lstm_run(ctx, &l, 1, time, steps, &TFC_SHAPE(time, l.batch, l.cell));
}

// Goes back through time. Inputs: those of BlockLSTM, its seven outputs, cs_grad, h_grad; outputs: gradients of x,
// cs_prev, h_prev, w, wci, wcf, wco, b. As in TensorFlow, clipping does not change the gradient.
static tfc_status block_lstm_grad(struct tfc_kernel_ctx *ctx) {
  enum { FIRST = 9, CS_GRAD = 16, H_GRAD = 17, INPUTS = 18 };
  struct lstm l;
  int64_t time = 0, steps = 0;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(block_describe(ctx, &l, &time, &steps));
  const int64_t n = l.cell, size = l.batch * n, width = l.in + n;
  struct tfc_shape sequence = TFC_SHAPE(time, l.batch, n);
  for (uint32_t k = FIRST; k < INPUTS; k++) TFC_RETURN_IF_ERROR(check(ctx->inputs[k], &sequence, "a saved output"));
  struct tfc_tensor *y[8] = {0};
  float *own[INPUTS] = {0}, *scratch = NULL;
  const float *in[INPUTS] = {0};
  for (uint32_t k = 0; k < 8; k++) TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, k, ctx->inputs[k + 1], &y[k]));
  for (uint32_t k = 1; k < INPUTS; k++)
    if (!(in[k] = floats_of(ctx->inputs[k], &own[k])) && tfc_tensor_elements(ctx->inputs[k]))
      TFC_TRY(s, tfc_status_no_memory(NULL));
  size_t words = (size_t)(l.batch * (2 * width + 4 * n) + 3 * size + width * 4 * n + 7 * n + 8);
  scratch = calloc(words, sizeof *scratch);
  if (!scratch) TFC_TRY(s, tfc_status_no_memory(NULL));
  float *xh = scratch, *dxh = xh + l.batch * width, *gates = dxh + l.batch * width, *dcs = gates + l.batch * 4 * n;
  float *dh = dcs + size, *dx = dxh, *dw = dh + size, *peep[3], *db;
  peep[0] = dw + width * 4 * n, peep[1] = peep[0] + n, peep[2] = peep[1] + n, db = peep[2] + n;
  if (y[0]->size) memset(y[0]->data, 0, y[0]->size);
  const float *gi = in[FIRST + OUT_I], *gcs = in[FIRST + OUT_CS], *gf = in[FIRST + OUT_F], *go = in[FIRST + OUT_O];
  const float *gci = in[FIRST + OUT_CI], *gco = in[FIRST + OUT_CO], *gh = in[FIRST + OUT_H];
  for (int64_t t = steps; t-- > 0 && size;) {
    const float *cs_prev = t ? gcs + (t - 1) * size : in[2], *h_prev = t ? gh + (t - 1) * size : in[3];
    for (int64_t r = 0; r < l.batch; r++) {
      memcpy(xh + r * width, in[1] + (t * l.batch + r) * l.in, (size_t)l.in * sizeof *xh);
      memcpy(xh + r * width + l.in, h_prev + r * n, (size_t)n * sizeof *xh);
      for (int64_t k = 0; k < n; k++) {
        const int64_t at = r * n + k, e = t * size + at;
        const float d = in[H_GRAD][e] + dh[at], i = gi[e], f = gf[e], o = go[e], c = gci[e], co = gco[e];
        const float d_o = o * (1 - o) * d * co;
        float d_cs = (1 - co * co) * d * o + dcs[at] + in[CS_GRAD][e];
        if (l.peephole) d_cs += d_o * in[7][k];
        const float d_c = (1 - c * c) * d_cs * i, d_f = f * (1 - f) * d_cs * cs_prev[at], d_i = i * (1 - i) * d_cs * c;
        float *g = gates + r * 4 * n;
        g[k] = d_i, g[l.candidate * n + k] = d_c, g[l.forget * n + k] = d_f, g[3 * n + k] = d_o;
        dcs[at] = d_cs * f;
        if (l.peephole) {
          dcs[at] += d_i * in[5][k] + d_f * in[6][k];
          peep[0][k] += d_i * cs_prev[at];
          peep[1][k] += d_f * cs_prev[at];
          peep[2][k] += d_o * gcs[e];
        }
      }
      for (int64_t k = 0; k < 4 * n; k++) db[k] += gates[r * 4 * n + k];
    }
    ops_sgemm(CblasNoTrans, CblasTrans, (int)l.batch, (int)width, (int)(4 * n), 1, gates, (int)(4 * n), in[4],
              (int)(4 * n), 0, dxh, (int)width);
    ops_sgemm(CblasTrans, CblasNoTrans, (int)width, (int)(4 * n), (int)l.batch, 1, xh, (int)width, gates, (int)(4 * n),
              1, dw, (int)(4 * n));
    for (int64_t r = 0; r < l.batch; r++) {
      store(y[0], (t * l.batch + r) * l.in, dx + r * width, l.in);
      memcpy(dh + r * n, dxh + r * width + l.in, (size_t)n * sizeof *dh);
    }
  }
  store(y[1], 0, dcs, size);
  store(y[2], 0, dh, size);
  store(y[3], 0, dw, width * 4 * n);
  for (int k = 0; k < 3; k++)
    store(y[4 + k], 0, peep[k], tfc_tensor_elements(y[4 + k]) < n ? tfc_tensor_elements(y[4 + k]) : n);
  store(y[7], 0, db, 4 * n);
out:
  for (int k = 0; k < INPUTS; k++) free(own[k]);
  free(scratch);
  return s;
}

// Inputs: x, h_prev, w_ru, w_c, b_ru, b_c; outputs: r, u, c, h, where
//   [r u] = sigmoid([x h_prev] w_ru + b_ru), c = tanh([x, h_prev r] w_c + b_c), h = u h_prev + (1 - u) c
static tfc_status gru_cell(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *h = ctx->inputs[1];
  TFC_KERNEL_CHECK(x->shape.rank == 2 && h->shape.rank == 2 && x->shape.dims[0] == h->shape.dims[0],
                   "x and h_prev must be matrices of as many rows");
  const int64_t batch = x->shape.dims[0], in = x->shape.dims[1], n = h->shape.dims[1], width = in + n;
  struct tfc_shape w_ru = TFC_SHAPE(width, 2 * n), w_c = TFC_SHAPE(width, n), b_ru = TFC_SHAPE(2 * n),
                   b_c = TFC_SHAPE(n);
  TFC_RETURN_IF_ERROR(check(ctx->inputs[2], &w_ru, "w_ru"));
  TFC_RETURN_IF_ERROR(check(ctx->inputs[3], &w_c, "w_c"));
  TFC_RETURN_IF_ERROR(check(ctx->inputs[4], &b_ru, "b_ru"));
  TFC_RETURN_IF_ERROR(check(ctx->inputs[5], &b_c, "b_c"));
  struct tfc_tensor *y[4];
  for (uint32_t k = 0; k < 4; k++) TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, k, h, &y[k]));
  if (tfc_tensor_elements(h) == 0) return NULL;
  float *xh = malloc((size_t)(batch * (width + 3 * n)) * sizeof *xh);
  if (!xh) return tfc_status_no_memory("a recurrent cell");
  float *ru = xh + batch * width, *c = ru + batch * 2 * n;
  const float *hp = h->data;
  for (int64_t r = 0; r < batch; r++) {
    memcpy(xh + r * width, (const float *)x->data + r * in, (size_t)in * sizeof *xh);
    memcpy(xh + r * width + in, hp + r * n, (size_t)n * sizeof *xh);
  }
  ops_sgemm(CblasNoTrans, CblasNoTrans, (int)batch, (int)(2 * n), (int)width, 1, xh, (int)width, ctx->inputs[2]->data,
            (int)(2 * n), 0, ru, (int)(2 * n));
  for (int64_t r = 0; r < batch; r++)
    for (int64_t k = 0; k < n; k++) {
      const float reset = sigmoid(ru[r * 2 * n + k] + at_half(ctx->inputs[4], k));
      const float update = sigmoid(ru[r * 2 * n + n + k] + at_half(ctx->inputs[4], n + k));
      ((float *)y[0]->data)[r * n + k] = reset;
      ((float *)y[1]->data)[r * n + k] = update;
      xh[r * width + in + k] = hp[r * n + k] * reset;
    }
  ops_sgemm(CblasNoTrans, CblasNoTrans, (int)batch, (int)n, (int)width, 1, xh, (int)width, ctx->inputs[3]->data, (int)n,
            0, c, (int)n);
  for (int64_t i = 0; i < batch * n; i++) {
    const float value = tanhf(c[i] + at_half(ctx->inputs[5], i % n)), update = ((float *)y[1]->data)[i];
    ((float *)y[2]->data)[i] = value;
    ((float *)y[3]->data)[i] = update * hp[i] + (1 - update) * value;
  }
  free(xh);
  return NULL;
}

// --- Shapes and gradients ----------------------------------------------------------------------------------------
static tfc_status shape_cell(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, state;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 2, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 2, &state));
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE(x.dims[0], state.dims[1]);
  return NULL;
}
static tfc_status shape_block(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, b;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 3, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 8, 1, &b));
  int64_t cell = b.dims[0] < 0 ? TFC_DIM_UNKNOWN : b.dims[0] / 4;
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE(x.dims[0], x.dims[1], cell);
  return NULL;
}
static tfc_status shape_block_grad(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = *ctx->inputs[i + 1];
  return NULL;
}
static tfc_status grad_of_block(struct tfc_grad_ctx *c) {
  struct tfc_output in[18];
  for (uint32_t i = 0; i < 9; i++) in[i] = grad_in(c, i);
  for (uint32_t i = 0; i < 7; i++) in[9 + i] = grad_out(c, i);
  in[16] = c->grad_outputs[OUT_CS];
  in[17] = c->grad_outputs[OUT_H];
  for (int i = 16; i < 18; i++)
    if (!tfc_output_valid(in[i])) in[i] = grad_zeros_like(c, grad_out(c, i == 16 ? OUT_CS : OUT_H));
  bool v2 = tfc_str_ends(tfc_builder_node(c->builder, c->node)->op, "V2");
  struct tfc_output g = grad_node(c, v2 ? "BlockLSTMGradV2" : "BlockLSTMGrad", in, 18, "use_peephole");
  for (int32_t i = 0; i < 8; i++) c->grad_inputs[i + 1] = (struct tfc_output){g.node, i};
  return grad_status(c);
}
static void cost_cell(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  bool block = tfc_str_starts(n->op, "Block"), gru = tfc_str_starts(n->op, "GRU");
  const struct tfc_shape *w = &inputs[block ? 4 : gru ? 2 : 3], *x = &inputs[block ? 1 : 0];
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
  out->flops = 0;
  if (!tfc_shape_is_static(w) || !tfc_shape_is_static(x) || x->rank < 2 || x->dims[x->rank - 1] == 0) return;
  double rows = (double)tfc_shape_elements(x) / (double)x->dims[x->rank - 1];
  out->flops = 2 * rows * (double)tfc_shape_elements(w) *
               (gru                                                            ? 1.5
                : tfc_str_ends(n->op, "Grad") || tfc_str_ends(n->op, "GradV2") ? 2
                                                                               : 1);
}

#define TYPES (TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_HALF))
static const struct tfc_op_def nn_rnn_cell_rows[] = {
    {.name = "LSTMBlockCell",
     .inputs = "x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T",
     .outputs = "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",
     .attrs = "forget_bias: float = 1, cell_clip: float = 3, use_peephole: bool = false, T: {half, float}",
     .types = TYPES,
     .shape = shape_cell,
     .cost = cost_cell,
     .kernel = lstm_cell},
    {.name = "GRUBlockCell",
     .inputs = "x: T, h_prev: T, w_ru: T, w_c: T, b_ru: T, b_c: T",
     .outputs = "r: T, u: T, c: T, h: T",
     .attrs = "T: {float}",
     .types = TFC_TYPE_BIT(TFC_FLOAT),
     .shape = shape_cell,
     .cost = cost_cell,
     .kernel = gru_cell},
    {.name = "BlockLSTM",
     .inputs = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T",
     .outputs = "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",
     .attrs = "forget_bias: float = 1, cell_clip: float = 3, use_peephole: bool = false, T: {half, float}",
     .types = TYPES,
     .host_inputs = 1,
     .shape = shape_block,
     .gradient = grad_of_block,
     .cost = cost_cell,
     .kernel = block_lstm},
    {.name = "BlockLSTMV2",
     .inputs = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T",
     .outputs = "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T",
     .attrs = "cell_clip: float = 0, use_peephole: bool = false, T: {half, float}",
     .types = TYPES,
     .host_inputs = 1,
     .shape = shape_block,
     .gradient = grad_of_block,
     .cost = cost_cell,
     .kernel = block_lstm},
    {.name = "BlockLSTMGrad",
     .inputs = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: "
               "T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T",
     .outputs =
         "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T",
     .attrs = "use_peephole: bool, T: {half, float}",
     .types = TYPES,
     .host_inputs = 1,
     .shape = shape_block_grad,
     .cost = cost_cell,
     .kernel = block_lstm_grad},
    {.name = "BlockLSTMGradV2",
     .inputs = "seq_len_max: int64, x: T, cs_prev: T, h_prev: T, w: T, wci: T, wcf: T, wco: T, b: T, i: T, cs: T, f: "
               "T, o: T, ci: T, co: T, h: T, cs_grad: T, h_grad: T",
     .outputs =
         "x_grad: T, cs_prev_grad: T, h_prev_grad: T, w_grad: T, wci_grad: T, wcf_grad: T, wco_grad: T, b_grad: T",
     .attrs = "use_peephole: bool, T: {half, float}",
     .types = TYPES,
     .host_inputs = 1,
     .shape = shape_block_grad,
     .cost = cost_cell,
     .kernel = block_lstm_grad},
};
TFC_REGISTER_OPS(nn_rnn_cell_rows);
