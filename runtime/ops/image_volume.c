// ExtractVolumePatches: a box moves over volumes, and the cells under it become one depth vector.
#include "runtime/ops/array_copy.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

struct patches {
  int64_t size[3], stride[3]; // of planes, rows, columns
  bool same;
};
static tfc_status read_patches(const struct tfc_graph *g, const struct tfc_node *n, struct patches *out) {
  static const char *const names[2] = {"ksizes", "strides"};
  int64_t *to[2] = {out->size, out->stride};
  for (int i = 0; i < 2; i++) {
    const struct tfc_attr *a = tfc_node_attr(g, n, names[i]);
    if (!a || a->kind != TFC_ATTR_LIST_INT || a->count != 5)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "%s must have 5 items", names[i]);
    for (int d = 0; d < 3; d++) {
      to[i][d] = a->ints[1 + d];
      if (to[i][d] < 1 || to[i][d] > INT32_MAX)
        return tfc_status_make(TFC_OUT_OF_RANGE, "%s is out of range: %lld", names[i], (long long)to[i][d]);
    }
  }
  out->same = tfc_str_is(tfc_node_attr_string(g, n, "padding", "VALID"), "SAME");
  return NULL;
}
static tfc_status prepare_patches(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct patches, state);
  TFC_RETURN_IF_ERROR(read_patches(ctx->graph, ctx->node, state));
  for (int i = 0; i < 2; i++) {
    const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, i == 0 ? "ksizes" : "strides");
    if (a->ints[0] != 1 || a->ints[4] != 1)
      return tfc_status_make(TFC_UNIMPLEMENTED, "Only support %s across space.", i == 0 ? "ksizes" : "strides");
  }
  return NULL;
}
// Computes how many positions the box has along a dimension and how far the first one begins before the volume.
static tfc_status positions(const struct patches *p, int d, int64_t size, int64_t *count, int64_t *before) {
  int64_t room = size - p->size[d] + p->stride[d];
  *before = 0;
  if (p->same) {
    *count = (size + p->stride[d] - 1) / p->stride[d];
    int64_t padding = (*count - 1) * p->stride[d] + p->size[d] - size;
    if (padding > 0) *before = padding / 2;
    return NULL;
  }
  *count = room / p->stride[d]; // rounds towards 0: a box that is a little too large has no position, which is no error
  TFC_KERNEL_CHECK(*count >= 0, "Computed output size would be negative: a box over %lld in a volume of %lld",
                   (long long)p->size[d], (long long)size);
  return NULL;
}

static tfc_status extract(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  const struct patches *p = ctx->state;
  struct tfc_tensor *y = NULL;
  int64_t count[3], before[3], deep;
  TFC_KERNEL_CHECK(x->shape.rank == 5, "input must be 5-dimensional, its shape is %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  const int64_t batch = x->shape.dims[0], depth = x->shape.dims[4], *size = &x->shape.dims[1];
  for (int d = 0; d < 3; d++) TFC_RETURN_IF_ERROR(positions(p, d, size[d], &count[d], &before[d]));
  deep = ops_dim_mul(ops_dim_mul(p->size[0], p->size[1]), ops_dim_mul(p->size[2], depth));
  TFC_KERNEL_CHECK(deep >= 0, "boxes are too large");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, x->dtype, &TFC_SHAPE(batch, count[0], count[1], count[2], deep), &y));
  ops_fill_zero(y);
  const int64_t places = count[0] * count[1] * count[2], cells = depth ? deep / depth : 0;
  for (int64_t i = 0; i < batch * places; i++) {
    const int64_t b = i / places, at[3] = {i % places / (count[1] * count[2]), i / count[2] % count[1], i % count[2]};
    for (int64_t k = 0; k < cells; k++) {
      const int64_t in[3] = {k / (p->size[1] * p->size[2]), k / p->size[2] % p->size[1], k % p->size[2]};
      int64_t from = b;
      bool inside = true;
      for (int d = 0; d < 3; d++) {
        const int64_t v = at[d] * p->stride[d] + in[d] - before[d];
        inside &= v >= 0 && v < size[d];
        from = from * size[d] + v;
      }
      if (inside) TFC_RETURN_IF_ERROR(ops_copy_elements(y, i * deep + k * depth, x, from * depth, depth));
    }
  }
  return NULL;
}
static tfc_status shape_patches(struct tfc_shape_ctx *ctx) {
  struct patches p;
  struct tfc_shape x;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 5, &x));
  TFC_RETURN_IF_ERROR(read_patches(ctx->graph, ctx->node, &p));
  for (int d = 0; d < 3; d++) {
    int64_t count = TFC_DIM_UNKNOWN, before;
    if (tfc_dim_known(x.dims[1 + d])) TFC_RETURN_IF_ERROR(positions(&p, d, x.dims[1 + d], &count, &before));
    x.dims[1 + d] = count;
  }
  x.dims[4] = ops_dim_mul(x.dims[4], ops_dim_mul(p.size[0], ops_dim_mul(p.size[1], p.size[2])));
  ctx->outputs[0] = x;
  return NULL;
}

// Cells are numbered from 1. The patches of these numbers show where each value came from, and gradients are summed by
// number. Number 0 stands for all positions outside of the volume.
OPS_GRADIENT(ExtractVolumePatches) {
  struct tfc_builder *b = g->builder;
  struct tfc_attr attrs[3] = {grad_copied_attr(g, "ksizes"), grad_copied_attr(g, "strides"),
                              grad_copied_attr(g, "padding")};
  struct tfc_output shape = grad_shape(g, X, g->input_shapes[0], TFC_INT32);
  struct tfc_output out_shape = grad_shape(g, Y, g->output_shapes[0], TFC_INT32);
  struct tfc_output batch = grad_item(g, shape, 0), channels = grad_item(g, shape, 4);
  struct tfc_output one = tfc_add_i32(b, 1), all = tfc_add_i32(b, -1), in[3], parts[8];
  for (int d = 0; d < 3; d++) {
    in[d] = grad_item(g, shape, d + 1);
    parts[d + 1] = grad_item(g, out_shape, d + 1);
    parts[d + 4] = tfc_add_i32(b, (int32_t)attrs[0].ints[d + 1]);
  }
  parts[0] = batch, parts[7] = channels;
  struct tfc_output cells = g_mul(g, g_mul(g, in[0], in[1]), in[2]);
  struct tfc_output numbers = grad_cast(g, grad_op3(g, "Range", one, g_add(g, cells, one), one), TFC_INT64);
  struct tfc_output volume[5] = {one, in[0], in[1], in[2], one};
  struct tfc_output numbered = g_reshape(g, numbers, grad_pack(g, volume, 5, 0));
  struct tfc_output patches = tfc_add(b, "ExtractVolumePatches", "", &numbered, 1, attrs, 3);
  struct tfc_output ids = g_reshape(g, patches, tfc_add_i32_vector(b, (int32_t[]){-1}, 1));
  ids = g_sub(g, ids, grad_int(g, TFC_INT64, 1));
  struct tfc_output expanded = g_reshape(g, G, grad_pack(g, parts, 8, 0));
  expanded = grad_op2(g, "Transpose", expanded, tfc_add_i32_vector(b, (int32_t[]){1, 2, 3, 4, 5, 6, 0, 7}, 8));
  struct tfc_output flat[2] = {all, g_mul(g, batch, channels)};
  struct tfc_output sums =
      grad_op3(g, "UnsortedSegmentSum", g_reshape(g, expanded, grad_pack(g, flat, 2, 0)), ids, cells);
  struct tfc_output back[5] = {in[0], in[1], in[2], batch, channels};
  sums = g_reshape(g, sums, grad_pack(g, back, 5, 0));
  g->grad_inputs[0] = grad_op2(g, "Transpose", sums, tfc_add_i32_vector(b, (int32_t[]){3, 0, 1, 2, 4}, 5));
  return NULL;
}

static const struct tfc_op_def image_volume_rows[] = {
    {.name = "ExtractVolumePatches",
     .inputs = "input: T",
     .outputs = "patches: T",
     .attrs = "ksizes: list(int) >= 5, strides: list(int) >= 5, T: " OPS_TYPES_REAL ", padding: {'SAME', 'VALID'}",
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_patches,
     .cost = ops_cost_moved,
     .prepare = prepare_patches,
     .kernel = extract,
     .gradient = gradient_ExtractVolumePatches,
     .samples = "float[1,4,5,5,2] {ksizes=[1,2,3,2,1], strides=[1,2,1,2,1], padding='SAME'}"},
};
TFC_REGISTER_OPS(image_volume_rows);
