// Functions that the rows of many op families share (row.h).
#include "runtime/ops/row.h"

#include <string.h>

#include "runtime/ops/element_types.h"

// --- Shape functions ---------------------------------------------------------------------------------------------
tfc_status ops_shape_same(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = *ctx->inputs[0];
  return NULL;
}

tfc_status ops_shape_none(struct tfc_shape_ctx *ctx) {
  (void)ctx;
  return NULL;
}

tfc_status ops_merge_inputs(const struct tfc_shape_ctx *ctx, uint32_t from, uint32_t to, struct tfc_shape *out) {
  struct tfc_shape shape = TFC_SHAPE_UNKNOWN;
  for (uint32_t i = from; i < to && i < ctx->node->input_count; i++) {
    struct tfc_shape merged;
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, ctx->inputs[i], &merged));
    shape = merged;
  }
  *out = shape;
  return NULL;
}

tfc_status ops_shape_merged(struct tfc_shape_ctx *ctx) {
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(ops_merge_inputs(ctx, 0, ctx->node->input_count, &shape));
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = shape;
  return NULL;
}

tfc_status ops_shape_broadcast(struct tfc_shape_ctx *ctx) {
  struct tfc_shape joined;
  TFC_RETURN_IF_ERROR(tfc_shape_broadcast(ctx->inputs[0], ctx->inputs[1], &joined));
  ctx->outputs[0] = joined;
  return NULL;
}

tfc_status ops_shape_scalar(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE_SCALAR;
  return NULL;
}

tfc_status ops_shape_nothing(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE_UNKNOWN;
  return NULL;
}

tfc_status ops_with_rank(const struct tfc_shape_ctx *ctx, uint32_t i, int rank, struct tfc_shape *out) {
  const struct tfc_shape *s = ctx->inputs[i];
  if (s->rank != TFC_RANK_UNKNOWN && s->rank != rank) {
    char text[TFC_SHAPE_TEXT];
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u must have rank %d, its shape is %s", i, rank,
                           tfc_shape_show(s, text));
  }
  if (out) *out = s->rank == rank ? *s : tfc_shape_unknown_of_rank(rank);
  return NULL;
}

tfc_status ops_with_rank_at_least(const struct tfc_shape_ctx *ctx, uint32_t i, int rank, struct tfc_shape *out) {
  const struct tfc_shape *s = ctx->inputs[i];
  if (s->rank != TFC_RANK_UNKNOWN && s->rank < rank) {
    char text[TFC_SHAPE_TEXT];
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u must have rank %d or more, its shape is %s", i, rank,
                           tfc_shape_show(s, text));
  }
  if (out) *out = *s;
  return NULL;
}

tfc_status ops_with_square(const struct tfc_shape_ctx *ctx, uint32_t i, struct tfc_shape *out) {
  int64_t n;
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, i, 2, out));
  if (out->rank == TFC_RANK_UNKNOWN) return NULL;
  TFC_RETURN_IF_ERROR(tfc_dim_merge(out->dims[out->rank - 1], out->dims[out->rank - 2], &n));
  out->dims[out->rank - 1] = out->dims[out->rank - 2] = n;
  return NULL;
}

static const struct tfc_tensor *known_value(const struct tfc_shape_ctx *ctx, uint32_t i) { // of integers
  const struct tfc_tensor *v = ctx->input_values ? ctx->input_values[i] : NULL;
  return v && tfc_dtype_is_integer(v->dtype) ? v : NULL;
}

bool ops_known_int(const struct tfc_shape_ctx *ctx, uint32_t i, int64_t *out) {
  const struct tfc_tensor *v = known_value(ctx, i);
  if (v && tfc_tensor_elements(v) == 1) {
    *out = tfc_tensor_int(v, 0);
    return true;
  }
  const struct tfc_shape *p = ctx->input_as_shape ? ctx->input_as_shape[i] : NULL;
  if (!v && p && p->rank == 1 && tfc_dim_known(p->dims[0])) {
    *out = p->dims[0];
    return true;
  }
  return false;
}

bool ops_known_ints(const struct tfc_shape_ctx *ctx, uint32_t i, int64_t *out, int capacity, int *out_count) {
  const struct tfc_tensor *v = known_value(ctx, i);
  if (v) {
    int64_t n = tfc_tensor_elements(v);
    if (n > capacity) return false;
    for (int64_t k = 0; k < n; k++) out[k] = tfc_tensor_int(v, k);
    *out_count = (int)n;
    return true;
  }
  const struct tfc_shape *p = ctx->input_as_shape ? ctx->input_as_shape[i] : NULL;
  if (!p || p->rank < 0 || p->rank > capacity || !tfc_shape_is_static(p)) return false;
  memcpy(out, p->dims, (size_t)p->rank * sizeof *out);
  *out_count = p->rank;
  return true;
}

struct tfc_shape ops_described_shape(const struct tfc_shape_ctx *ctx, uint32_t i) {
  const struct tfc_shape *p = ctx->input_as_shape ? ctx->input_as_shape[i] : NULL;
  if (p && p->rank >= 0) return *p;
  const struct tfc_tensor *v = known_value(ctx, i);
  int64_t n = v ? tfc_tensor_elements(v) : -1;
  if (v && n <= TFC_MAX_RANK) {
    struct tfc_shape s = {.rank = (int32_t)n};
    for (int64_t k = 0; k < n; k++) {
      int64_t d = tfc_tensor_int(v, k);
      s.dims[k] = d < 0 ? TFC_DIM_UNKNOWN : d;
    }
    return s;
  }
  const struct tfc_shape *in = ctx->inputs[i];
  if (in->rank == 1 && in->dims[0] >= 0 && in->dims[0] <= TFC_MAX_RANK)
    return tfc_shape_unknown_of_rank((int)in->dims[0]);
  return TFC_SHAPE_UNKNOWN;
}

void ops_set_partial(struct tfc_shape_ctx *ctx, uint32_t output, const struct tfc_shape *value) {
  if (ctx->output_as_shape) ctx->output_as_shape[output] = *value;
}

// --- Costs -------------------------------------------------------------------------------------------------------
static double shape_count(const struct tfc_shape *s) {
  int64_t n = tfc_shape_elements(s);
  return n < 0 ? 0 : (double)n;
}

double ops_cost_bytes(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs) {
  double bytes = 0;
  const struct tfc_output *in = tfc_node_inputs(g, n);
  for (uint32_t i = 0; i < n->input_count; i++)
    bytes += shape_count(&inputs[i]) * (double)tfc_dtype_size(tfc_output_dtype(g, in[i]));
  for (uint32_t i = 0; i < n->output_count; i++)
    bytes += shape_count(&outputs[i]) * (double)tfc_dtype_size(g->output_dtypes[n->output_begin + i]);
  return bytes;
}

void ops_cost_cubic(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_shape *a = &inputs[0];
  out->flops = a->rank < 2 ? 0 : (double)tfc_shape_elements(a) * (double)a->dims[a->rank - 1];
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}
void ops_cost_outputs(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  out->flops = n->output_count ? shape_count(&outputs[0]) : 0;
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

void ops_cost_inputs(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                     const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  out->flops = n->input_count ? shape_count(&inputs[0]) : 0;
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

void ops_cost_moved(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  (void)inputs;
  out->flops = 0;
  out->bytes = 0;
  for (uint32_t i = 0; i < n->output_count; i++)
    out->bytes += 2 * shape_count(&outputs[i]) * (double)tfc_dtype_size(g->output_dtypes[n->output_begin + i]);
}

void ops_cost_elementwise(double flops, const struct tfc_graph *g, const struct tfc_node *n,
                          const struct tfc_shape *inputs, const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_shape *s = n->output_count ? &outputs[0] : &inputs[0];
  int64_t count = tfc_shape_elements(s);
  out->flops = count > 0 ? flops * (double)count : 0;
  out->bytes = ops_cost_bytes(g, n, inputs, outputs);
}

void ops_cost_nothing(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  (void)g, (void)n, (void)inputs, (void)outputs;
  *out = (struct tfc_op_cost){0};
}

// --- Kernels -----------------------------------------------------------------------------------------------------
double ops_scalar(const struct tfc_tensor *t) {
  if (t->size == 0) return 0; // a scalar is expected, but the tensor is empty
  OPS_SWITCH(OPS_REALS, t->dtype, { return (double)OPS_GET(*(const S *)t->data); })
  return 0;
}

int64_t ops_scalar_int(const struct tfc_tensor *t) {
  return t->size == 0 ? 0 : tfc_tensor_int(t, 0);
}

tfc_status ops_axis(int64_t axis, int rank, int *out) {
  if (axis < -rank || axis >= rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "axis %lld is out of range for rank %d", (long long)axis, rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}
