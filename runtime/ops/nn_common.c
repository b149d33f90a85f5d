// Shape functions, costs and gradient helpers that several families share.
#include "runtime/ops/nn_common.h"

double tfc_nn_scalar(const struct tfc_tensor *t) {
  if (t->size == 0) return 0; // an empty one where a scalar should be
  OPS_SWITCH(OPS_REALS, t->dtype, { return (double)OPS_GET(*(const S *)t->data); })
  return 0;
}

int64_t tfc_nn_int(const struct tfc_tensor *t) {
  return t->size == 0 ? 0 : tfc_tensor_int(t, 0);
}

tfc_status tfc_nn_shape_first(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = *ctx->inputs[0];
  return NULL;
}

tfc_status tfc_nn_shape_scalar(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE_SCALAR;
  return NULL;
}

tfc_status tfc_nn_shape_unknown(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = TFC_SHAPE_UNKNOWN;
  return NULL;
}

tfc_status tfc_nn_shape_none(struct tfc_shape_ctx *ctx) {
  (void)ctx;
  return NULL;
}

tfc_status tfc_nn_merge_inputs(struct tfc_shape_ctx *ctx, uint32_t from, uint32_t to, struct tfc_shape *out) {
  struct tfc_shape shape = TFC_SHAPE_UNKNOWN;
  for (uint32_t i = from; i < to && i < ctx->node->input_count; i++) {
    struct tfc_shape merged;
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, ctx->inputs[i], &merged));
    shape = merged;
  }
  *out = shape;
  return NULL;
}

tfc_status tfc_nn_shape_merge_all(struct tfc_shape_ctx *ctx) {
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(tfc_nn_merge_inputs(ctx, 0, ctx->node->input_count, &shape));
  for (uint32_t i = 0; i < ctx->node->output_count; i++) ctx->outputs[i] = shape;
  return NULL;
}

tfc_status tfc_nn_rank(struct tfc_shape_ctx *ctx, uint32_t i, int rank, struct tfc_shape *out) {
  const struct tfc_shape *s = ctx->inputs[i];
  if (s->rank == TFC_RANK_UNKNOWN) {
    if (out) *out = tfc_shape_unknown_of_rank(rank);
    return NULL;
  }
  if (s->rank != rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u must have rank %d, but has shape %s", i, rank,
                           tfc_shape_show(s, (char[TFC_SHAPE_TEXT]){0}));
  if (out) *out = *s;
  return NULL;
}

tfc_status tfc_nn_rank_at_least(struct tfc_shape_ctx *ctx, uint32_t i, int rank) {
  const struct tfc_shape *s = ctx->inputs[i];
  if (s->rank != TFC_RANK_UNKNOWN && s->rank < rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u must have rank %d or more, but has shape %s", i, rank,
                           tfc_shape_show(s, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

struct tfc_shape tfc_nn_shape_input(struct tfc_shape_ctx *ctx, uint32_t i) {
  if (ctx->input_as_shape && ctx->input_as_shape[i] && ctx->input_as_shape[i]->rank >= 0)
    return *ctx->input_as_shape[i];
  if (ctx->input_values && ctx->input_values[i]) {
    struct tfc_shape shape;
    tfc_status s = tfc_tensor_to_shape(ctx->input_values[i], &shape);
    if (!s) return shape;
    tfc_status_free(s);
  }
  const struct tfc_shape *in = ctx->inputs[i]; // a vector of known length gives the rank at least
  if (in->rank == 1 && tfc_dim_known(in->dims[0]) && in->dims[0] <= TFC_MAX_RANK)
    return tfc_shape_unknown_of_rank((int)in->dims[0]);
  return TFC_SHAPE_UNKNOWN;
}

double tfc_nn_bytes(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs) {
  double bytes = 0;
  const struct tfc_output *edges = tfc_node_inputs(g, n);
  for (uint32_t i = 0; i < n->input_count; i++) {
    int64_t count = tfc_shape_elements(&inputs[i]);
    if (count > 0) bytes += (double)count * (double)tfc_dtype_size(tfc_output_dtype(g, edges[i]));
  }
  for (uint32_t i = 0; i < n->output_count; i++) {
    int64_t count = tfc_shape_elements(&outputs[i]);
    if (count > 0) bytes += (double)count * (double)tfc_dtype_size(g->output_dtypes[n->output_begin + i]);
  }
  return bytes;
}

void tfc_nn_cost_elementwise(double flops, const struct tfc_graph *g, const struct tfc_node *n,
                             const struct tfc_shape *inputs, const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  const struct tfc_shape *s = n->output_count ? &outputs[0] : &inputs[0];
  int64_t count = tfc_shape_elements(s);
  out->flops = count > 0 ? flops * (double)count : 0;
  out->bytes = tfc_nn_bytes(g, n, inputs, outputs);
}

struct tfc_output tfc_grad_add(const struct tfc_grad_ctx *c, const char *op, const struct tfc_output *inputs,
                               uint32_t count, const char *copied) {
  struct tfc_attr attrs[16];
  char names[16][48];
  uint32_t attr_count = 0;
  for (const char *p = copied; p && *p;) {
    size_t size = strcspn(p, " ");
    assert(size < sizeof names[0] && attr_count < 16);
    memcpy(names[attr_count], p, size);
    names[attr_count][size] = 0;
    const struct tfc_attr *found = tfc_grad_attr(c, names[attr_count]);
    if (found) {
      struct tfc_attr a = *found;
      a.name = tfc_str_from(names[attr_count]);
      attrs[attr_count++] = a;
    }
    p += size;
    while (*p == ' ') p++;
  }
  return tfc_add(c->builder, op, NULL, inputs, count, attrs, attr_count);
}

tfc_status tfc_grad_status(const struct tfc_grad_ctx *c) {
  tfc_status s = tfc_builder_status(c->builder);
  return s ? tfc_status_clone(s) : NULL;
}

bool tfc_grad_is_zero(const struct tfc_grad_ctx *c, struct tfc_output g) {
  return !tfc_output_valid(g) || tfc_str_is(tfc_builder_node(c->builder, g.node)->op, "ZerosLike");
}

tfc_status tfc_grad_identity(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] = c->grad_outputs[0];
  return NULL;
}
