// What the gradient functions of the op families share (gradient.h).
#include "runtime/ops/gradient.h"

#include <assert.h>
#include <string.h>

const struct tfc_attr *grad_attr(const struct tfc_grad_ctx *ctx, const char *name) {
  return tfc_builder_attr(ctx->builder, ctx->node, name);
}
int64_t grad_attr_int(const struct tfc_grad_ctx *ctx, const char *name, int64_t otherwise) {
  const struct tfc_attr *a = grad_attr(ctx, name);
  return a && a->kind == TFC_ATTR_INT ? a->i : otherwise;
}
bool grad_attr_bool(const struct tfc_grad_ctx *ctx, const char *name, bool otherwise) {
  const struct tfc_attr *a = grad_attr(ctx, name);
  return a && a->kind == TFC_ATTR_BOOL ? a->b : otherwise;
}
double grad_attr_float(const struct tfc_grad_ctx *ctx, const char *name, double otherwise) {
  const struct tfc_attr *a = grad_attr(ctx, name);
  return a && a->kind == TFC_ATTR_FLOAT ? a->f : otherwise;
}

struct tfc_output grad_const_shape(const struct tfc_grad_ctx *ctx, const struct tfc_shape *shape) {
  return grad_ints(ctx, TFC_INT32, shape->dims, (uint32_t)shape->rank);
}

struct tfc_output grad_shape_of_input(const struct tfc_grad_ctx *ctx, uint32_t i) {
  return grad_shape(ctx, grad_in(ctx, i), ctx->input_shapes[i], TFC_INT32);
}

struct tfc_output grad_zeros_like(const struct tfc_grad_ctx *ctx, struct tfc_output x) {
  return tfc_add1(ctx->builder, "ZerosLike", x);
}
struct tfc_output grad_ones_like(const struct tfc_grad_ctx *ctx, struct tfc_output x) {
  return tfc_add1(ctx->builder, "OnesLike", x);
}
void grad_set_indexed(struct tfc_grad_ctx *ctx, uint32_t i, struct tfc_output values, struct tfc_output indices,
                      struct tfc_output dense_shape) {
  ctx->grad_inputs[i] = values;
  ctx->grad_indexed[i] = (struct tfc_indexed_slices){values, indices, dense_shape};
}

struct tfc_output grad_node(const struct tfc_grad_ctx *c, const char *op, const struct tfc_output *inputs,
                            uint32_t count, const char *copied) {
  struct tfc_attr attrs[16];
  char names[16][48];
  uint32_t attr_count = 0;
  for (const char *p = copied; p && *p;) {
    size_t size = strcspn(p, " ");
    assert(size < sizeof names[0] && attr_count < 16);
    memcpy(names[attr_count], p, size);
    names[attr_count][size] = 0;
    const struct tfc_attr *found = grad_attr(c, names[attr_count]);
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

tfc_status grad_status(const struct tfc_grad_ctx *c) {
  tfc_status s = tfc_builder_status(c->builder);
  return s ? tfc_status_clone(s) : NULL;
}

bool grad_is_zero(const struct tfc_grad_ctx *c, struct tfc_output g) {
  return !tfc_output_valid(g) || tfc_str_is(tfc_builder_node(c->builder, g.node)->op, "ZerosLike");
}

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

// Finds the axes of the broadcast result over which the gradients of x and y are summed. Returns false if they depend
// on sizes that are not known.
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

struct tfc_attr grad_copied_attr(const struct tfc_grad_ctx *g, const char *name) {
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
