// Changes the layout of chains: of their images, of constants with one number for each dimension or with indices of
// dimensions, and of the nodes' attributes. Adds the transpositions where a chain begins and where it ends.
#include <string.h>

#include "runtime/base/union_find.h"
#include "runtime/exec/rewrites/layouts_make.h"

// The reverse of tfc_layouts_old.
static int new_of(int k, bool first) {
  return tfc_layouts_old(k, !first);
}
static struct tfc_shape in_other(const struct tfc_shape *s, bool first) {
  struct tfc_shape out = *s;
  for (int k = 0; k < TFC_LAYOUTS_RANK; k++) out.dims[k] = s->dims[tfc_layouts_old(k, first)];
  return out;
}
static void set_number(const struct tfc_tensor *t, void *data, int64_t i, int64_t number) {
  if (t->dtype == TFC_INT64)
    ((int64_t *)data)[i] = number;
  else
    ((int32_t *)data)[i] = (int32_t)number;
}

static const struct tfc_op_def transpose_def = {
    .name = "_TransposeImage", .inputs = "image: T", .outputs = "transposed: T", .attrs = "T: type"};

// Describes an operation that transposes an image. `first`: to channels first.
static tfc_status describe(struct tfc_ir *ir, uint32_t node, uint16_t device, const struct tfc_ir_input *from,
                           bool first, uint64_t bytes, struct tfc_ir_op *out) {
  struct tfc_ir_input *inputs = TFC_ARENA_NEW(&ir->arena, struct tfc_ir_input);
  bool *state = TFC_ARENA_NEW(&ir->arena, bool);
  if (!inputs || !state) return tfc_status_no_memory("planning a step");
  *inputs = *from, *state = first;
  *out = (struct tfc_ir_op){.node = node,
                            .def = &transpose_def,
                            .device = device,
                            .inputs = inputs,
                            .input_count = 1,
                            .prepared = true,
                            .state = state,
                            .cost_us = tfc_layouts_transposing_us(bytes)};
  return NULL;
}

static void transpose_constant(const struct tfc_tensor *t, const struct tfc_shape *shape, bool first, char *out) {
  const size_t size = tfc_dtype_size(t->dtype);
  const struct tfc_shape made = in_other(shape, first);
  int64_t strides[TFC_LAYOUTS_RANK] = {0}, step = 1;
  for (int k = TFC_LAYOUTS_RANK - 1; k >= 0; k--) {
    strides[new_of(k, first)] = step;
    step *= shape->dims[k];
  }
  for (int64_t a = 0; a < made.dims[0]; a++)
    for (int64_t b = 0; b < made.dims[1]; b++)
      for (int64_t c = 0; c < made.dims[2]; c++)
        for (int64_t d = 0; d < made.dims[3]; d++, out += size) {
          const int64_t from = a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
          memcpy(out, (const char *)t->data + (size_t)from * size, size);
        }
}

// Makes input `i` of `reader`, an image that comes from outside of the chain, an image in the other layout.
static tfc_status enter_chain(struct tfc_layouts *l, uint32_t reader, uint32_t i) {
  struct tfc_ir *ir = l->ir;
  const struct tfc_ir_input *before = tfc_layouts_untransposed(l, reader, i);
  if (before) {
    ir->ops.data[reader].inputs[i] = *before;
    return NULL;
  }
  const uint32_t value = ir->ops.data[reader].inputs[i].value;
  struct tfc_layouts_entry *e = tfc_layouts_entry_of(l, reader, i);
  struct tfc_shape *view = TFC_ARENA_NEW(&ir->arena, struct tfc_shape);
  if (!e || !view) return tfc_status_no_memory("planning a step");
  const struct tfc_ir_op *op = &ir->ops.data[reader];
  if (tfc_layouts_keeps_order(&e->shape, l->first)) {
    *view = in_other(&e->shape, l->first);
    op->inputs[i].view = view;
    return NULL;
  }
  if (e->other == TFC_NONE) {
    const struct tfc_ir_value v = ir->values.data[value];
    const struct tfc_ir_tensor made = {v.origin, tfc_dtype_base(v.dtype), in_other(&e->shape, l->first)};
    struct tfc_ir_input from = op->inputs[i];
    *view = e->shape;
    from.view = tfc_shape_equal(view, &v.shape) ? NULL : view;
    if (v.kind == TFC_IR_CONST) {
      void *data;
      TFC_RETURN_IF_ERROR(tfc_ir_add_constant(ir, &made, &data, &e->other));
      transpose_constant(v.constant, &e->shape, l->first, data);
    } else {
      struct tfc_ir_op transpose;
      TFC_RETURN_IF_ERROR(describe(ir, op->node, op->device, &from, l->first, v.bytes, &transpose));
      TFC_RETURN_IF_ERROR(tfc_ir_add_maker(ir, &transpose, &made, &e->other));
    }
  }
  ir->ops.data[reader].inputs[i] = (struct tfc_ir_input){.value = e->other, .variable = TFC_NONE};
  return NULL;
}

// Gives the image that operation `id` makes the other layout. `outside`: operations outside of the chain read the
// image, too; they get it transposed back. Call this after enter_chain for all images that enter the chain.
static tfc_status leave_chain(struct tfc_layouts *l, uint32_t id, bool outside) {
  struct tfc_ir *ir = l->ir;
  const uint32_t old = ir->ops.data[id].outputs[0];
  const struct tfc_shape shape = in_other(&ir->values.data[old].shape, l->first);
  uint32_t other = old;
  if (outside) {
    struct tfc_ir_value made = ir->values.data[old];
    struct tfc_ir_op back;
    uint32_t back_id;
    made.fetched = false;
    TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &made, &other));
    const struct tfc_ir_input from = {.value = other, .variable = TFC_NONE};
    TFC_RETURN_IF_ERROR(
        describe(ir, ir->ops.data[id].node, ir->ops.data[id].device, &from, !l->first, made.bytes, &back));
    back.outputs = TFC_ARENA_NEW(&ir->arena, uint32_t), back.output_count = 1;
    if (!back.outputs) return tfc_status_no_memory("planning a step");
    *back.outputs = old;
    TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &back, &back_id));
    ir->ops.data[id].outputs[0] = other;
  }
  ir->values.data[other].shape = shape;
  for (uint32_t r = l->readers.begin[old]; r < l->readers.begin[old + 1]; r++) {
    const uint32_t reader = l->readers.ops[r];
    struct tfc_ir_op *op = &ir->ops.data[reader];
    for (uint32_t k = 0; k < op->input_count && l->members[reader].is; k++)
      if (op->inputs[k].value == old && !op->inputs[k].view && tfc_layouts_reads_image(&l->members[reader], k))
        op->inputs[k] = (struct tfc_ir_input){.value = other, .variable = TFC_NONE};
  }
  return NULL;
}

// Replaces input `i`, a constant with `each` numbers for each dimension, or, if `each` is 0, with indices of
// dimensions.
static tfc_status change_numbers(struct tfc_layouts *l, uint32_t id, uint32_t i, int each) {
  struct tfc_ir *ir = l->ir;
  const struct tfc_tensor *old = ir->values.data[ir->ops.data[id].inputs[i].value].constant;
  const struct tfc_ir_tensor made = {ir->values.data[ir->ops.data[id].inputs[i].value].origin, old->dtype, old->shape};
  uint32_t value;
  void *data;
  TFC_RETURN_IF_ERROR(tfc_ir_add_constant(ir, &made, &data, &value));
  for (int64_t k = 0; each == 0 && k < tfc_tensor_elements(old); k++) {
    const int64_t axis = tfc_layouts_number(old, k);
    set_number(old, data, k, new_of((int)(axis < 0 ? axis + TFC_LAYOUTS_RANK : axis), l->first));
  }
  for (int k = 0; k < TFC_LAYOUTS_RANK; k++)
    for (int j = 0; j < each; j++)
      set_number(old, data, k * each + j, tfc_layouts_number(old, tfc_layouts_old(k, l->first) * each + j));
  ir->ops.data[id].inputs[i].value = value;
  return NULL;
}

// Changes the attributes of the operation's node.
static tfc_status change_attributes(struct tfc_layouts *l, uint32_t id) {
  struct tfc_ir *ir = l->ir;
  if (!l->graph) TFC_RETURN_IF_ERROR(tfc_graph_own_attributes(ir->graph, &ir->arena, &l->graph));
  const struct tfc_node *n = &l->graph->nodes[ir->ops.data[id].node];
  for (uint32_t a = n->attr_begin; a < n->attr_begin + n->attr_count; a++) {
    struct tfc_attr *attr = &l->graph->attrs[a];
    if (attr->kind == TFC_ATTR_STRING && tfc_str_is(attr->name, "data_format"))
      attr->s = l->first ? TFC_STR("NCHW") : TFC_STR("NHWC");
    const uint32_t each =
        tfc_str_is(attr->name, "explicit_paddings") ? 2
        : tfc_str_is(attr->name, "ksize") || tfc_str_is(attr->name, "strides") || tfc_str_is(attr->name, "dilations")
            ? 1
            : 0;
    if (!each || attr->kind != TFC_ATTR_LIST_INT || attr->count != TFC_LAYOUTS_RANK * each) continue;
    int64_t *ints = TFC_ARENA_ARRAY(&ir->arena, int64_t, attr->count);
    if (!ints) return tfc_status_no_memory("planning a step");
    for (uint32_t k = 0; k < TFC_LAYOUTS_RANK; k++)
      for (uint32_t j = 0; j < each; j++)
        ints[k * each + j] = attr->ints[(uint32_t)tfc_layouts_old((int)k, l->first) * each + j];
    attr->ints = ints;
  }
  return NULL;
}

tfc_status tfc_layouts_change(struct tfc_layouts *l) {
  struct tfc_ir *ir = l->ir;
  bool *outside = TFC_ARENA_ARRAY(&l->arena, bool, l->count + 1u);
  if (!outside) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < l->count; i++) { // other chains stay as they are, and are outside of this one
    if (!(l->gain_us[tfc_union_find_root(l->chain, i)] > 0)) l->members[i].is = false;
  }
  for (uint32_t i = 0; i < l->count; i++)
    outside[i] = l->members[i].is && l->members[i].makes_image && tfc_layouts_is_read_outside(l, i);
  for (uint32_t i = 0; i < l->count; i++) {
    const struct tfc_layouts_member *m = &l->members[i];
    if (!m->is) continue;
    if (ir->ops.data[i].def->images.inputs) TFC_RETURN_IF_ERROR(change_attributes(l, i));
    for (uint32_t k = 0; k < ir->ops.data[i].input_count; k++) {
      const bool vector = k < 32 && m->vectors >> k & 1, pairs = k < 32 && m->pairs >> k & 1;
      if (tfc_layouts_reads_image(m, k) && tfc_layouts_maker(l, i, k) == TFC_NONE)
        TFC_RETURN_IF_ERROR(enter_chain(l, i, k));
      else if (tfc_layouts_reads_image(m, k))
        ir->ops.data[i].inputs[k].view = NULL; // it has the image's own shape
      if (vector || pairs || k == m->axes) TFC_RETURN_IF_ERROR(change_numbers(l, i, k, vector ? 1 : pairs ? 2 : 0));
    }
  }
  for (uint32_t i = 0; i < l->count; i++)
    if (l->members[i].is && l->members[i].makes_image) TFC_RETURN_IF_ERROR(leave_chain(l, i, outside[i]));
  if (l->graph) ir->graph = l->graph;
  return NULL;
}
