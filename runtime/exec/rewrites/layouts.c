// On devices that convolve faster in the other layout than a graph's: images keep that layout through chains of layers.
// Alone, each convolution would transpose its image and its result there and back (conv.h of the kernels); here images
// are transposed only where a chain begins and where it ends.
//
// A chain is what images connect on one device: convolutions, normalisations, pools, biases, their gradients, and
// operations that work in either layout (element-wise ones, concatenations, slices, means over positions, ...). It
// changes its layout if this saves time: what the convolutions gain, as the device has measured it, minus what the
// transpositions then needed take. The attributes of its nodes (data_format, strides, ...) change with it, in a copy of
// the graph's that only this plan uses, so kernels and other rewrites read them as always. What has one channel, or one
// position, has the same order in memory in both layouts. What the graph has transposed before its first layer is read
// as it was before.
//
// Results are not bit-identical, because normalisations and biases' gradients add in the order of memory, and a
// library's algorithm for the other layout may add in another order.
#include <math.h>
#include <string.h>

#include "runtime/exec/rewrites/operands.h"

enum { RANK = 4 }; // batch, channels, height, width; graphs with three dimensions of positions stay as they are
#define LAUNCH_US 2.0
#define BYTES_PER_US 2e6 // of memory, read or written

struct member {
  bool is;              // it is part of a chain; otherwise only `chain` has a meaning
  uint32_t chain;       // an operation of the same chain, or itself (union-find)
  uint32_t inputs;      // bits: image inputs
  uint32_t image_count; // not 0: the first inputs are the images, instead (there may be many)
  bool makes_image;     // output 0 is an image; others are not
  bool convolves;
  bool broadcasts;  // its images may be smaller, and have fewer dimensions
  uint32_t vectors; // bits: constants with a number for each dimension
  uint32_t pairs;   // bits: constants with two numbers for each dimension
  uint32_t axes;    // a constant input that numbers dimensions, or TFC_NONE
};
struct entry {           // an image that a chain reads and does not make
  uint32_t value, other; // other: the transposed one
  struct tfc_shape shape;
  uint16_t device;
};
struct layouts {
  struct tfc_ir *ir;
  bool first;             // chains with channels last get them first; otherwise the reverse
  struct tfc_arena arena; // of the search
  struct tfc_ir_readers readers;
  struct member *members; // [count]
  double *gain_us;        // [count] of a chain, at the index of its first member
  uint32_t count;         // operations before the rewrite
  struct tfc_graph *graph;
  TFC_ARRAY(struct entry) entries;
};

// --- Dimensions ----------------------------------------------------------------------------------------------------
// The dimension in the graph's layout that is dimension k in the other one. `first`: that one has channels first.
static int old_of(int k, bool first) {
  if (k == 0) return 0;
  if (first) return k == 1 ? RANK - 1 : k - 1;
  return k == RANK - 1 ? 1 : k + 1;
}
static int new_of(int k, bool first) { // the reverse
  return old_of(k, !first);
}
static struct tfc_shape in_other(const struct tfc_shape *s, bool first) {
  struct tfc_shape out = *s;
  for (int k = 0; k < RANK; k++) out.dims[k] = s->dims[old_of(k, first)];
  return out;
}
// The shape with leading dimensions of size 1, as broadcasting adds them.
static struct tfc_shape whole_of(const struct tfc_shape *s) {
  struct tfc_shape out = {.rank = RANK};
  for (int k = 0; k < RANK; k++) out.dims[k] = k < RANK - s->rank ? 1 : s->dims[k - (RANK - s->rank)];
  return out;
}
// Whether the elements have the same order in memory in both layouts.
static bool keeps_order(const struct tfc_shape *image, bool first) {
  const int64_t channels = image->dims[old_of(first ? 1 : RANK - 1, first)];
  return channels == 1 || tfc_shape_elements(image) == image->dims[0] * channels;
}
static bool is_image(const struct tfc_shape *s) {
  return s->rank == RANK && tfc_shape_is_static(s) && tfc_shape_elements(s) > 0;
}
static int64_t number_at(const struct tfc_tensor *t, int64_t i) {
  return t->dtype == TFC_INT64 ? ((const int64_t *)t->data)[i] : ((const int32_t *)t->data)[i];
}
static void set_number(const struct tfc_tensor *t, void *data, int64_t i, int64_t number) {
  if (t->dtype == TFC_INT64)
    ((int64_t *)data)[i] = number;
  else
    ((int32_t *)data)[i] = (int32_t)number;
}
// The constant integers of an input, `count` of them (below 0: any number); NULL: they are not known.
static const struct tfc_tensor *numbers(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t i,
                                        int64_t count) {
  if (i >= op->input_count || op->inputs[i].view) return NULL;
  const struct tfc_ir_value *v = &ir->values.data[op->inputs[i].value];
  if (v->kind != TFC_IR_CONST || (v->constant->dtype != TFC_INT32 && v->constant->dtype != TFC_INT64)) return NULL;
  return count < 0 || tfc_tensor_elements(v->constant) == count ? v->constant : NULL;
}

// --- Members of chains ---------------------------------------------------------------------------------------------
static bool is_image_input(const struct member *m, uint32_t i) {
  return m->image_count ? i < m->image_count : i < 32 && m->inputs >> i & 1;
}

// What the dimensions mean if they remain: the result of a sum has no channels or no positions.
static bool sums_in_either_layout(const struct tfc_tensor *axes, bool first) {
  const int channel = old_of(first ? 1 : RANK - 1, first);
  bool summed[RANK] = {0}, positions = true;
  for (int64_t i = 0; i < tfc_tensor_elements(axes); i++) {
    const int64_t axis = number_at(axes, i) + (number_at(axes, i) < 0 ? RANK : 0);
    if (axis < 0 || axis >= RANK) return false;
    summed[axis] = true;
  }
  for (int k = 1; k < RANK; k++) positions = positions && (k == channel || summed[k]);
  return positions || summed[channel];
}

static bool has_layout(const struct tfc_ir *ir, const struct tfc_ir_op *op, bool first, struct member *m) {
  const struct tfc_op_images *images = &op->def->images;
  const struct tfc_node *n = &ir->graph->nodes[op->node];
  const struct tfc_attr *own = ir->graph->attrs + n->attr_begin, *format = tfc_node_attr(ir->graph, n, "data_format");
  if (format < own || format >= own + n->attr_count) return false; // there is nothing to change
  if (format->kind != TFC_ATTR_STRING || !tfc_str_is(format->s, first ? "NHWC" : "NCHW")) return false;
  m->inputs = images->inputs, m->makes_image = images->outputs & 1;
  m->vectors = images->sizes;
  m->convolves = images->convolves;
  return true;
}

static bool is_elementwise(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct member *m) {
  const struct tfc_op_def *def = op->def;
  if (!def->elementwise && def->role != TFC_ROLE_ADD_N && def->plan_trait != TFC_PLAN_SELECT) return false;
  const struct tfc_shape *made = &ir->values.data[op->outputs[0]].shape;
  if (!is_image(made)) return false;
  m->makes_image = true, m->broadcasts = def->broadcasts;
  if (op->input_count > 3) m->image_count = op->input_count; // a sum, of equal shapes
  for (uint32_t i = 0; i < op->input_count; i++) {
    const struct tfc_shape *s = tfc_ir_shape(ir, &op->inputs[i]);
    if (!tfc_shape_is_static(s) || s->rank > RANK) return false;
    if (!def->broadcasts && !tfc_shape_equal(s, made) && tfc_shape_elements(s) != 1) return false;
    const struct tfc_shape whole = whole_of(s);
    for (int k = 0; k < RANK; k++)
      if (whole.dims[k] != 1 && whole.dims[k] != made->dims[k]) return false;
    if (tfc_shape_elements(s) != 1 && i < 32) m->inputs |= 1u << i;
  }
  return true;
}

static bool works_in_either(const struct tfc_ir *ir, const struct tfc_ir_op *op, bool first, struct member *m) {
  const struct tfc_node *n = &ir->graph->nodes[op->node];
  const tfc_plan_trait trait = op->def->plan_trait;
  const struct tfc_tensor *axes;
  m->inputs = m->makes_image = 1;
  if (trait == TFC_PLAN_CONCAT && op->input_count > 1) {
    m->axes = m->image_count = op->input_count - 1;
    return numbers(ir, op, m->axes, 1) != NULL;
  }
  if (trait == TFC_PLAN_SLICE && op->input_count == 3) {
    m->vectors = 6;
    return true;
  }
  if (op->def->role == TFC_ROLE_REPEATS && op->input_count == 2) {
    m->vectors = 2, m->broadcasts = true;
    return true;
  }
  if (op->def->role == TFC_ROLE_PAD) {
    m->pairs = 2;
    return true;
  }
  if ((trait == TFC_PLAN_SUM || trait == TFC_PLAN_MEAN) && op->input_count == 2) {
    m->axes = 1, m->makes_image = false;
    return (axes = numbers(ir, op, 1, -1)) && !tfc_node_attr_bool(ir->graph, n, "keep_dims", false) &&
           sums_in_either_layout(axes, first);
  }
  return false;
}

// Whether the operation can be part of a chain. *out: how it works with images.
static bool classify(const struct tfc_ir *ir, const struct tfc_ir_op *op, bool first, struct member *out) {
  const struct member none = {.chain = out->chain, .axes = TFC_NONE};
  struct member m = none;
  if (op->dead || op->joint || op->prepared || !op->def || op->host.all || op->output_variables || op->window ||
      op->finish || op->in_place || op->goes_on || !op->output_count || op->outputs[0] == TFC_NONE)
    return false;
  if (!ir->devices[op->device]->driver->channels_last_gain_us) return false;
  for (uint32_t i = 0; i < op->input_count; i++)
    if (op->inputs[i].value == TFC_NONE || op->inputs[i].variable != TFC_NONE) return false;
  if (op->def->images.inputs) {
    if (!has_layout(ir, op, first, &m)) return false;
  } else if (!is_elementwise(ir, op, &m)) {
    m = none;
    if (!works_in_either(ir, op, first, &m)) return false;
  }
  for (uint32_t i = 0; i < op->input_count; i++) {
    const struct tfc_shape *s = tfc_ir_shape(ir, &op->inputs[i]), whole = whole_of(s);
    if (is_image_input(&m, i) && (s->rank > RANK || (s->rank < RANK && !m.broadcasts) || !is_image(&whole)))
      return false;
    if (i < 32 && m.vectors >> i & 1 && !numbers(ir, op, i, RANK)) return false;
    if (i < 32 && m.pairs >> i & 1 && !numbers(ir, op, i, 2 * RANK)) return false;
  }
  const struct tfc_ir_value *made = &ir->values.data[op->outputs[0]];
  if (m.makes_image &&
      (made->kind != TFC_IR_OP || !made->planned || made->alias != TFC_NONE || !is_image(&made->shape)))
    return false;
  m.is = true;
  *out = m;
  return true;
}

// The operation of a chain whose image the input `i` of another one of the chain reads; TFC_NONE: it is not made there,
// or is read in another shape.
static uint32_t maker_of(const struct layouts *l, uint32_t reader, uint32_t i) {
  const struct tfc_ir *ir = l->ir;
  const struct tfc_ir_input *in = &ir->ops.data[reader].inputs[i];
  const struct tfc_ir_value *v = &ir->values.data[in->value];
  if (reader >= l->count || !l->members[reader].is || !is_image_input(&l->members[reader], i)) return TFC_NONE;
  if (v->kind != TFC_IR_OP || v->op == TFC_NONE || v->op >= l->count || v->output) return TFC_NONE;
  if (in->view && !tfc_shape_equal(in->view, &v->shape)) return TFC_NONE;
  const struct member *m = &l->members[v->op];
  return m->is && m->makes_image && ir->ops.data[v->op].device == ir->ops.data[reader].device ? v->op : TFC_NONE;
}

static uint32_t chain_of(struct layouts *l, uint32_t op) {
  uint32_t root = op;
  while (l->members[root].chain != root) root = l->members[root].chain;
  while (l->members[op].chain != root) {
    const uint32_t next = l->members[op].chain;
    l->members[op].chain = root;
    op = next;
  }
  return root;
}

static void find_chains(struct layouts *l) {
  for (uint32_t i = 0; i < l->count; i++) {
    l->members[i].chain = i;
    (void)classify(l->ir, &l->ir->ops.data[i], l->first, &l->members[i]);
  }
  for (uint32_t i = 0; i < l->count; i++)
    for (uint32_t k = 0; k < l->ir->ops.data[i].input_count && l->members[i].is; k++) {
      const uint32_t maker = maker_of(l, i, k);
      if (maker != TFC_NONE) l->members[chain_of(l, maker)].chain = chain_of(l, i);
    }
}

// --- What a chain gains --------------------------------------------------------------------------------------------
static double transposing_us(uint64_t bytes) {
  return LAUNCH_US + 2.0 * (double)bytes / BYTES_PER_US;
}

static double convolution_gain_us(const struct tfc_ir *ir, const struct tfc_ir_op *op, bool first) {
  struct tfc_arena arena = {0};
  struct tfc_operands from;
  struct tfc_operands_question question;
  struct tfc_device *device = ir->devices[op->device];
  if (!tfc_operands_of(ir, op, &from)) return NAN;
  tfc_operands_ask(ir, op, &from, &arena, &question);
  const double last = device->driver->channels_last_gain_us(device, &question.ctx);
  tfc_arena_deinit(&arena);
  return first ? -last : last;
}

// Whether something besides its chain reads the image that an operation makes.
static bool is_read_outside(struct layouts *l, uint32_t op) {
  const uint32_t v = l->ir->ops.data[op].outputs[0];
  if (l->ir->values.data[v].fetched) return true;
  for (uint32_t r = l->readers.begin[v]; r < l->readers.begin[v + 1]; r++) {
    const struct tfc_ir_op *reader = &l->ir->ops.data[l->readers.ops[r]];
    for (uint32_t k = 0; k < reader->input_count; k++)
      if (reader->inputs[k].value == v && maker_of(l, l->readers.ops[r], k) != op) return true;
  }
  return false;
}

// If the image that an operation of a chain reads was transposed out of the chain's layout (by the graph, before its
// first layer), and nothing was waited for, returns what was transposed; NULL: it was not.
static const struct tfc_ir_input *before_transposed(const struct layouts *l, uint32_t reader, uint32_t i) {
  const struct tfc_ir *ir = l->ir;
  const struct tfc_ir_input *in = &ir->ops.data[reader].inputs[i];
  const struct tfc_ir_value *v = &ir->values.data[in->value];
  if (in->view || v->kind != TFC_IR_OP || v->op == TFC_NONE) return NULL;
  const struct tfc_ir_op *op = &ir->ops.data[v->op];
  if (op->dead || op->prepared || !op->def || op->def->plan_trait != TFC_PLAN_TRANSPOSE || op->input_count != 2)
    return NULL;
  const struct tfc_ir_input *from = &op->inputs[0];
  const struct tfc_tensor *order = numbers(ir, op, 1, RANK);
  if (!order || op->device != ir->ops.data[reader].device || from->value == TFC_NONE || from->variable != TFC_NONE)
    return NULL;
  if (ir->values.data[from->value].kind == TFC_IR_VARIABLE) return NULL; // it may be updated before it is read
  for (int k = 0; k < RANK; k++)
    if (number_at(order, old_of(k, l->first)) != k) return NULL;
  for (size_t e = 0; e < ir->edges.count; e++)
    if (ir->edges.data[e].to == v->op) return NULL;
  return from;
}

static struct entry *find_entry(struct layouts *l, uint32_t reader, uint32_t i) {
  const struct tfc_ir_op *op = &l->ir->ops.data[reader];
  const struct tfc_shape shape = whole_of(tfc_ir_shape(l->ir, &op->inputs[i]));
  for (size_t e = 0; e < l->entries.count; e++) {
    struct entry *known = &l->entries.data[e];
    if (known->value == op->inputs[i].value && known->device == op->device && tfc_shape_equal(&known->shape, &shape))
      return known;
  }
  const struct entry fresh = {.value = op->inputs[i].value, .other = TFC_NONE, .shape = shape, .device = op->device};
  return tfc_array_push(&l->entries, fresh) ? &l->entries.data[l->entries.count - 1] : NULL;
}

// Sets gain_us of each chain.
static tfc_status measure_chains(struct layouts *l) {
  const struct tfc_ir *ir = l->ir;
  bool *convolves = TFC_ARENA_ARRAY(&l->arena, bool, l->count + 1u);
  if (!convolves) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < l->count; i++) {
    if (!l->members[i].is || !l->members[i].convolves) continue;
    const uint32_t chain = chain_of(l, i);
    convolves[chain] = true;
    l->gain_us[chain] += convolution_gain_us(ir, &ir->ops.data[i], l->first);
  }
  for (uint32_t i = 0; i < l->count; i++) {
    const uint32_t chain = chain_of(l, i);
    const struct member *m = &l->members[i];
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (!m->is || !convolves[chain] || !(l->gain_us[chain] > 0)) continue;
    for (uint32_t k = 0; k < op->input_count; k++) {
      const struct tfc_ir_value *v = &ir->values.data[op->inputs[k].value];
      if (!is_image_input(m, k) || maker_of(l, i, k) != TFC_NONE || v->kind == TFC_IR_CONST) continue;
      if (before_transposed(l, i, k)) continue;
      const size_t before = l->entries.count;
      const struct entry *e = find_entry(l, i, k);
      if (!e) return tfc_status_no_memory("planning a step");
      if (l->entries.count > before && !keeps_order(&e->shape, l->first)) l->gain_us[chain] -= transposing_us(v->bytes);
    }
    if (m->makes_image && is_read_outside(l, i))
      l->gain_us[chain] -= transposing_us(ir->values.data[op->outputs[0]].bytes);
  }
  l->entries.count = 0;
  return NULL;
}

// --- Changing a chain ----------------------------------------------------------------------------------------------
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
                            .cost_us = transposing_us(bytes)};
  return NULL;
}

static void transpose_constant(const struct tfc_tensor *t, const struct tfc_shape *shape, bool first, char *out) {
  const size_t size = tfc_dtype_size(t->dtype);
  const struct tfc_shape made = in_other(shape, first);
  int64_t strides[RANK] = {0}, step = 1;
  for (int k = RANK - 1; k >= 0; k--) {
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

static tfc_status enter_chain(struct layouts *l, uint32_t reader, uint32_t i) {
  struct tfc_ir *ir = l->ir;
  const struct tfc_ir_input *before = before_transposed(l, reader, i);
  if (before) {
    ir->ops.data[reader].inputs[i] = *before;
    return NULL;
  }
  struct entry *e = find_entry(l, reader, i);
  struct tfc_shape *view = TFC_ARENA_NEW(&ir->arena, struct tfc_shape);
  if (!e || !view) return tfc_status_no_memory("planning a step");
  const struct tfc_ir_op *op = &ir->ops.data[reader];
  if (keeps_order(&e->shape, l->first)) {
    *view = in_other(&e->shape, l->first);
    op->inputs[i].view = view;
    return NULL;
  }
  if (e->other == TFC_NONE) {
    const struct tfc_ir_value v = ir->values.data[e->value];
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

// The image that an operation makes gets the other layout; what is outside of the chain reads it transposed back.
// Images that enter the chain must have been replaced before.
static tfc_status leave_chain(struct layouts *l, uint32_t id, bool outside) {
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
      if (op->inputs[k].value == old && !op->inputs[k].view && is_image_input(&l->members[reader], k))
        op->inputs[k] = (struct tfc_ir_input){.value = other, .variable = TFC_NONE};
  }
  return NULL;
}

// Replaces a constant that numbers dimensions, or has `each` numbers for each dimension (0: it numbers them).
static tfc_status change_numbers(struct layouts *l, uint32_t id, uint32_t i, int each) {
  struct tfc_ir *ir = l->ir;
  const struct tfc_tensor *old = ir->values.data[ir->ops.data[id].inputs[i].value].constant;
  const struct tfc_ir_tensor made = {ir->values.data[ir->ops.data[id].inputs[i].value].origin, old->dtype, old->shape};
  uint32_t value;
  void *data;
  TFC_RETURN_IF_ERROR(tfc_ir_add_constant(ir, &made, &data, &value));
  for (int64_t k = 0; each == 0 && k < tfc_tensor_elements(old); k++) {
    const int64_t axis = number_at(old, k);
    set_number(old, data, k, new_of((int)(axis < 0 ? axis + RANK : axis), l->first));
  }
  for (int k = 0; k < RANK; k++)
    for (int j = 0; j < each; j++) set_number(old, data, k * each + j, number_at(old, old_of(k, l->first) * each + j));
  ir->ops.data[id].inputs[i].value = value;
  return NULL;
}

// The same for the node's attributes.
static tfc_status change_attributes(struct layouts *l, uint32_t id) {
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
    if (!each || attr->kind != TFC_ATTR_LIST_INT || attr->count != RANK * each) continue;
    int64_t *ints = TFC_ARENA_ARRAY(&ir->arena, int64_t, attr->count);
    if (!ints) return tfc_status_no_memory("planning a step");
    for (uint32_t k = 0; k < RANK; k++)
      for (uint32_t j = 0; j < each; j++)
        ints[k * each + j] = attr->ints[(uint32_t)old_of((int)k, l->first) * each + j];
    attr->ints = ints;
  }
  return NULL;
}

static tfc_status change_chains(struct layouts *l) {
  struct tfc_ir *ir = l->ir;
  bool *outside = TFC_ARENA_ARRAY(&l->arena, bool, l->count + 1u);
  if (!outside) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < l->count; i++) { // other chains stay as they are, and are outside of this one
    if (!(l->gain_us[chain_of(l, i)] > 0)) l->members[i].is = false;
  }
  for (uint32_t i = 0; i < l->count; i++)
    outside[i] = l->members[i].is && l->members[i].makes_image && is_read_outside(l, i);
  for (uint32_t i = 0; i < l->count; i++) {
    const struct member *m = &l->members[i];
    if (!m->is) continue;
    if (ir->ops.data[i].def->images.inputs) TFC_RETURN_IF_ERROR(change_attributes(l, i));
    for (uint32_t k = 0; k < ir->ops.data[i].input_count; k++) {
      const bool vector = k < 32 && m->vectors >> k & 1, pairs = k < 32 && m->pairs >> k & 1;
      if (is_image_input(m, k) && maker_of(l, i, k) == TFC_NONE)
        TFC_RETURN_IF_ERROR(enter_chain(l, i, k));
      else if (is_image_input(m, k))
        ir->ops.data[i].inputs[k].view = NULL; // it has the image's own shape
      if (vector || pairs || k == m->axes) TFC_RETURN_IF_ERROR(change_numbers(l, i, k, vector ? 1 : pairs ? 2 : 0));
    }
  }
  for (uint32_t i = 0; i < l->count; i++)
    if (l->members[i].is && l->members[i].makes_image) TFC_RETURN_IF_ERROR(leave_chain(l, i, outside[i]));
  if (l->graph) ir->graph = l->graph;
  return NULL;
}

// Changes chains into one of the layouts. *out_changed: there was one.
static tfc_status change_to(struct tfc_ir *ir, bool first, bool *out_changed) {
  tfc_status s = NULL;
  struct layouts l = {.ir = ir, .first = first, .count = (uint32_t)ir->ops.count};
  bool any = false;
  for (uint32_t i = 0; i < l.count && !any; i++) {
    struct member m = {0};
    const struct tfc_ir_op *op = &ir->ops.data[i];
    any = op->def && op->def->images.convolves && classify(ir, op, first, &m);
  }
  if (!any) return NULL;
  l.members = TFC_ARENA_ARRAY(&l.arena, struct member, l.count);
  l.gain_us = TFC_ARENA_ARRAY(&l.arena, double, l.count);
  if (!l.members || !l.gain_us) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, tfc_ir_readers(ir, &l.arena, &l.readers));
  find_chains(&l);
  TFC_TRY(s, measure_chains(&l));
  TFC_TRY(s, change_chains(&l));
  *out_changed = l.graph != NULL;
out:
  tfc_array_free(&l.entries);
  tfc_arena_deinit(&l.arena);
  return s;
}

static tfc_status change_layouts(struct tfc_ir *ir) {
  bool changed = false;
  TFC_RETURN_IF_ERROR(change_to(ir, false, &changed));
  return changed ? NULL : change_to(ir, true, &changed); // what was changed once is not changed back
}

// Rank 5: operands that are not repeated any more are read as they are, nothing has been joined yet, and what nothing
// reads any more is removed afterwards (unused.c).
static const struct tfc_rewrite rows[] = {{"layouts of images", 5, false, change_layouts}};
TFC_REWRITES(rows);
