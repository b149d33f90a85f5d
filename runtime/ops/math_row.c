// What the rows of many families share (math_row.h).
#include "runtime/ops/math_row.h"

#include <string.h>

// --- Shape functions ---------------------------------------------------------------------------------------------
tfc_status ops_shape_same(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[0];
  return NULL;
}

tfc_status ops_shape_merged(struct tfc_shape_ctx *ctx) {
  struct tfc_shape all = *ctx->inputs[0];
  for (uint32_t i = 1; i < ctx->node->input_count; i++) {
    struct tfc_shape merged;
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&all, ctx->inputs[i], &merged));
    all = merged;
  }
  ctx->outputs[0] = all;
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
  *out = s->rank == rank ? *s : tfc_shape_unknown_of_rank(rank);
  return NULL;
}

tfc_status ops_with_rank_at_least(const struct tfc_shape_ctx *ctx, uint32_t i, int rank, struct tfc_shape *out) {
  const struct tfc_shape *s = ctx->inputs[i];
  if (s->rank != TFC_RANK_UNKNOWN && s->rank < rank) {
    char text[TFC_SHAPE_TEXT];
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u must have rank %d or more, its shape is %s", i, rank,
                           tfc_shape_show(s, text));
  }
  *out = *s;
  return NULL;
}

static const struct tfc_tensor *known_value(const struct tfc_shape_ctx *ctx, uint32_t i) { // of whole numbers
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

void ops_cost_nothing(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  (void)g, (void)n, (void)inputs, (void)outputs;
  *out = (struct tfc_op_cost){0};
}

// --- Kernels -----------------------------------------------------------------------------------------------------
tfc_status ops_axis(int64_t axis, int rank, int *out) {
  if (axis < -rank || axis >= rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "axis %lld is out of range for rank %d", (long long)axis, rank);
  *out = (int)(axis < 0 ? axis + rank : axis);
  return NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
struct tfc_output grad_conj(const struct tfc_grad_ctx *g, struct tfc_output x) {
  return tfc_dtype_is_complex(grad_type(g, x)) ? grad_op1(g, "Conj", x) : x;
}

struct tfc_output grad_ints(const struct tfc_grad_ctx *g, tfc_dtype type, const int64_t *values, uint32_t count) {
  struct tfc_tensor t = {0};
  tfc_status s = tfc_tensor_create(type, &TFC_SHAPE(count), &t);
  if (s) {
    tfc_builder_fail(g->builder, s);
    return TFC_NO_OUTPUT;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (type == TFC_INT64)
      ((int64_t *)t.data)[i] = values[i];
    else
      ((int32_t *)t.data)[i] = (int32_t)values[i];
  }
  struct tfc_output o = tfc_add_const(g->builder, "", &t);
  tfc_tensor_release(&t);
  return o;
}

struct tfc_output grad_shape(const struct tfc_grad_ctx *g, struct tfc_output x, const struct tfc_shape *shape,
                             tfc_dtype type) {
  if (shape && tfc_shape_is_static(shape)) return grad_ints(g, type, shape->dims, (uint32_t)shape->rank);
  struct tfc_attr attr = tfc_attr_type("out_type", type);
  return tfc_add(g->builder, "Shape", "", &x, 1, &attr, 1);
}

struct tfc_output grad_sum(const struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output axes, bool keep_dims) {
  struct tfc_attr attr = tfc_attr_bool("keep_dims", keep_dims);
  return tfc_add(g->builder, "Sum", "", (struct tfc_output[]){x, axes}, 2, &attr, 1);
}

struct tfc_output grad_concat(const struct tfc_grad_ctx *g, const struct tfc_output *parts, uint32_t count,
                              struct tfc_output axis) {
  if (count == 1) return parts[0];
  struct tfc_output all[TFC_MAX_RANK + 2];
  memcpy(all, parts, count * sizeof *parts);
  all[count] = axis;
  return tfc_add(g->builder, "ConcatV2", "", all, count + 1, NULL, 0);
}

struct tfc_output grad_pack(const struct tfc_grad_ctx *g, const struct tfc_output *parts, uint32_t count, int axis) {
  struct tfc_attr attr = tfc_attr_int("axis", axis);
  return tfc_add(g->builder, "Pack", "", parts, count, &attr, 1);
}

struct tfc_output grad_cast(const struct tfc_grad_ctx *g, struct tfc_output x, tfc_dtype type) {
  if (grad_type(g, x) == type) return x;
  struct tfc_attr attr = tfc_attr_type("DstT", type);
  return tfc_add(g->builder, "Cast", "", &x, 1, &attr, 1);
}

struct tfc_output grad_item(const struct tfc_grad_ctx *g, struct tfc_output x, int64_t index) {
  struct tfc_output in[4] = {x, grad_ints(g, TFC_INT32, &index, 1), grad_ints(g, TFC_INT32, (int64_t[]){index + 1}, 1),
                             grad_ints(g, TFC_INT32, (int64_t[]){1}, 1)};
  struct tfc_attr attr[2] = {tfc_attr_int("shrink_axis_mask", 1), tfc_attr_int("end_mask", index == -1 ? 1 : 0)};
  return tfc_add(g->builder, "StridedSlice", "", in, 4, attr, 2);
}

struct tfc_output grad_range(const struct tfc_grad_ctx *g, struct tfc_output x, int64_t from, int64_t to) {
  struct tfc_output in[4] = {x, grad_ints(g, TFC_INT32, &from, 1),
                             grad_ints(g, TFC_INT32, (int64_t[]){to == INT64_MAX ? 0 : to}, 1),
                             grad_ints(g, TFC_INT32, (int64_t[]){1}, 1)};
  struct tfc_attr attr = tfc_attr_int("end_mask", to == INT64_MAX ? 1 : 0);
  return tfc_add(g->builder, "StridedSlice", "", in, 4, &attr, 1);
}

// Axes of the broadcast result over which the gradients of x and y are summed; false when that depends on sizes that
// are not known.
static bool broadcast_axes(const struct tfc_shape *x, const struct tfc_shape *y, int64_t axes[2][TFC_MAX_RANK],
                           uint32_t count[2]) {
  if (!x || !y || x->rank < 0 || y->rank < 0) return false;
  int rank = x->rank > y->rank ? x->rank : y->rank;
  count[0] = count[1] = 0;
  for (int d = 0; d < rank; d++) {
    int ex = d - (rank - x->rank), ey = d - (rank - y->rank);
    int64_t nx = ex < 0 ? 1 : x->dims[ex], ny = ey < 0 ? 1 : y->dims[ey];
    if (nx == 1 && ny != 1)
      axes[0][count[0]++] = d;
    else if (ny == 1 && nx != 1)
      axes[1][count[1]++] = d;
    else if (nx < 0 || ny < 0)
      return false;
  }
  return true;
}

void grad_unbroadcast(const struct tfc_grad_ctx *g, struct tfc_output x, const struct tfc_shape *x_shape,
                      struct tfc_output y, const struct tfc_shape *y_shape, struct tfc_output *gx,
                      struct tfc_output *gy) {
  int64_t axes[2][TFC_MAX_RANK];
  uint32_t count[2];
  struct tfc_output *grads[2] = {gx, gy}, inputs[2] = {x, y};
  const struct tfc_shape *shapes[2] = {x_shape, y_shape};
  if (broadcast_axes(x_shape, y_shape, axes, count)) {
    for (int k = 0; k < 2; k++) {
      if (!grads[k] || !tfc_output_valid(*grads[k])) continue;
      if (count[k] == 0 && shapes[k]->rank >= shapes[1 - k]->rank) continue;
      struct tfc_output sum = grad_sum(g, *grads[k], grad_ints(g, TFC_INT32, axes[k], count[k]), true);
      *grads[k] = g_reshape(g, sum, grad_shape(g, inputs[k], shapes[k], TFC_INT32));
    }
    return;
  }
  struct tfc_output sx = grad_shape(g, x, x_shape, TFC_INT32), sy = grad_shape(g, y, y_shape, TFC_INT32);
  struct tfc_output r = grad_op2(g, "BroadcastGradientArgs", sx, sy);
  for (int k = 0; k < 2; k++) {
    if (!grads[k] || !tfc_output_valid(*grads[k])) continue;
    struct tfc_output sum = grad_sum(g, *grads[k], (struct tfc_output){r.node, k}, true);
    *grads[k] = g_reshape(g, sum, k ? sy : sx);
  }
}

struct tfc_attr grad_attr(const struct tfc_grad_ctx *g, const char *name) {
  const struct tfc_attr *a = tfc_builder_attr(g->builder, g->node, name);
  if (!a) return (struct tfc_attr){.name = tfc_str_from(name)};
  struct tfc_attr copy = *a;
  copy.name = tfc_str_from(name);
  return copy;
}

tfc_status ops_grad_identity(struct tfc_grad_ctx *g) {
  const struct tfc_node *n = tfc_builder_node(g->builder, g->node);
  for (uint32_t i = 0; i < n->input_count && i < n->output_count; i++) g->grad_inputs[i] = g->grad_outputs[i];
  return NULL;
}

tfc_status ops_grad_none(struct tfc_grad_ctx *g) {
  (void)g;
  return NULL;
}
