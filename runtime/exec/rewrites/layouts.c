// Some devices convolve faster in the layout that a graph does not have (channels last instead of first, or the
// reverse). Alone, each convolution transposes its images into that layout and its result back (conv.h of the kernels).
// Here whole chains of operations change their layout, so that images are transposed only where a chain begins and
// ends.
//
// A chain is a set of operations on one device that pass images to each other: convolutions, normalisations, pools,
// biases, their gradients, and operations that work in either layout (element-wise ones, concatenations, slices, means
// over positions, ...). A chain changes its layout if this saves time: the sum of what its convolutions gain, as the
// device has measured it, must exceed the time of the transpositions at the chain's ends. The attributes of the chain's
// nodes (data_format, strides, ...) change with it, in a copy of the graph that only this plan uses. So kernels and
// other rewrites read the attributes as always. An image with one channel, or with one position, is not transposed: it
// has the same order in memory in both layouts. If the graph itself transposes an image into its layout before the
// first layer, the chain reads the image from before that.
//
// Results are not bit-identical: normalisations and gradients of biases add in the order of memory, and a library's
// algorithm for the other layout may add in another order.
#include <math.h>
#include <string.h>

#include "runtime/base/union_find.h"
#include "runtime/exec/rewrites/layouts.h"
#include "runtime/exec/rewrites/layouts_make.h"
#include "runtime/exec/rewrites/operands.h"

// Assumed, not measured: the time of a launch, and the memory bandwidth of a data-centre GPU, 2 TB/s.
#define LAUNCH_US 2.0
#define BYTES_PER_US 2e6

// --- Shapes and numbers --------------------------------------------------------------------------------------------
// The shape with leading dimensions of size 1, as broadcasting adds them.
static struct tfc_shape whole_of(const struct tfc_shape *s) {
  struct tfc_shape out = {.rank = TFC_LAYOUTS_RANK};
  for (int k = 0; k < TFC_LAYOUTS_RANK; k++)
    out.dims[k] = k < TFC_LAYOUTS_RANK - s->rank ? 1 : s->dims[k - (TFC_LAYOUTS_RANK - s->rank)];
  return out;
}
static bool is_image(const struct tfc_shape *s) {
  return s->rank == TFC_LAYOUTS_RANK && tfc_shape_is_static(s) && tfc_shape_elements(s) > 0;
}
// An input that is a constant with `count` integers (below 0: with any number of integers). NULL: it is no such input.
static const struct tfc_tensor *numbers(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t i,
                                        int64_t count) {
  if (i >= op->input_count || op->inputs[i].view) return NULL;
  const struct tfc_ir_value *v = &ir->values.data[op->inputs[i].value];
  if (v->kind != TFC_IR_CONST || (v->constant->dtype != TFC_INT32 && v->constant->dtype != TFC_INT64)) return NULL;
  return count < 0 || tfc_tensor_elements(v->constant) == count ? v->constant : NULL;
}

// --- Members of chains ---------------------------------------------------------------------------------------------
// Whether a sum over these axes gives the same result in either layout, with its dimensions in the same order: it sums
// over all positions or over the channels.
static bool sums_in_either_layout(const struct tfc_tensor *axes, bool first) {
  const int channel = tfc_layouts_old(first ? 1 : TFC_LAYOUTS_RANK - 1, first);
  bool summed[TFC_LAYOUTS_RANK] = {0}, positions = true;
  for (int64_t i = 0; i < tfc_tensor_elements(axes); i++) {
    const int64_t axis = tfc_layouts_number(axes, i) + (tfc_layouts_number(axes, i) < 0 ? TFC_LAYOUTS_RANK : 0);
    if (axis < 0 || axis >= TFC_LAYOUTS_RANK) return false;
    summed[axis] = true;
  }
  for (int k = 1; k < TFC_LAYOUTS_RANK; k++) positions = positions && (k == channel || summed[k]);
  return positions || summed[channel];
}

static bool has_layout(const struct tfc_ir *ir, const struct tfc_ir_op *op, bool first, struct tfc_layouts_member *m) {
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

static bool is_elementwise(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_layouts_member *m) {
  const struct tfc_op_def *def = op->def;
  if (!def->elementwise && def->role != TFC_ROLE_ADD_N && def->plan_trait != TFC_PLAN_SELECT) return false;
  const struct tfc_shape *made = &ir->values.data[op->outputs[0]].shape;
  if (!is_image(made)) return false;
  m->makes_image = true, m->broadcasts = def->broadcasts;
  if (op->input_count > 3) m->image_count = op->input_count; // a sum, of equal shapes
  for (uint32_t i = 0; i < op->input_count; i++) {
    const struct tfc_shape *s = tfc_ir_shape(ir, &op->inputs[i]);
    if (!tfc_shape_is_static(s) || s->rank > TFC_LAYOUTS_RANK) return false;
    if (!def->broadcasts && !tfc_shape_equal(s, made) && tfc_shape_elements(s) != 1) return false;
    const struct tfc_shape whole = whole_of(s);
    for (int k = 0; k < TFC_LAYOUTS_RANK; k++)
      if (whole.dims[k] != 1 && whole.dims[k] != made->dims[k]) return false;
    if (tfc_shape_elements(s) != 1 && i < 32) m->inputs |= 1u << i;
  }
  return true;
}

static bool works_in_either(const struct tfc_ir *ir, const struct tfc_ir_op *op, bool first,
                            struct tfc_layouts_member *m) {
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

// Whether the operation can be part of a chain. Sets *out if it can.
static bool classify(const struct tfc_ir *ir, const struct tfc_ir_op *op, bool first, struct tfc_layouts_member *out) {
  static const struct tfc_layouts_member none = {.axes = TFC_NONE};
  struct tfc_layouts_member m = none;
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
    if (tfc_layouts_reads_image(&m, i) &&
        (s->rank > TFC_LAYOUTS_RANK || (s->rank < TFC_LAYOUTS_RANK && !m.broadcasts) || !is_image(&whole)))
      return false;
    if (i < 32 && m.vectors >> i & 1 && !numbers(ir, op, i, TFC_LAYOUTS_RANK)) return false;
    if (i < 32 && m.pairs >> i & 1 && !numbers(ir, op, i, 2 * TFC_LAYOUTS_RANK)) return false;
  }
  const struct tfc_ir_value *made = &ir->values.data[op->outputs[0]];
  if (m.makes_image &&
      (made->kind != TFC_IR_OP || !made->planned || made->alias != TFC_NONE || !is_image(&made->shape)))
    return false;
  m.is = true;
  *out = m;
  return true;
}

uint32_t tfc_layouts_maker(const struct tfc_layouts *l, uint32_t reader, uint32_t i) {
  const struct tfc_ir *ir = l->ir;
  const struct tfc_ir_input *in = &ir->ops.data[reader].inputs[i];
  const struct tfc_ir_value *v = &ir->values.data[in->value];
  if (reader >= l->count || !l->members[reader].is || !tfc_layouts_reads_image(&l->members[reader], i)) return TFC_NONE;
  if (v->kind != TFC_IR_OP || v->op == TFC_NONE || v->op >= l->count || v->output) return TFC_NONE;
  if (in->view && !tfc_shape_equal(in->view, &v->shape)) return TFC_NONE;
  const struct tfc_layouts_member *m = &l->members[v->op];
  return m->is && m->makes_image && ir->ops.data[v->op].device == ir->ops.data[reader].device ? v->op : TFC_NONE;
}

static void find_chains(struct tfc_layouts *l) {
  tfc_union_find_init(l->chain, l->count);
  for (uint32_t i = 0; i < l->count; i++) (void)classify(l->ir, &l->ir->ops.data[i], l->first, &l->members[i]);
  for (uint32_t i = 0; i < l->count; i++)
    for (uint32_t k = 0; k < l->ir->ops.data[i].input_count && l->members[i].is; k++) {
      const uint32_t maker = tfc_layouts_maker(l, i, k);
      if (maker != TFC_NONE) tfc_union_find_join(l->chain, i, maker);
    }
}

// --- What a chain gains --------------------------------------------------------------------------------------------
double tfc_layouts_transposing_us(uint64_t bytes) {
  return LAUNCH_US + 2.0 * (double)bytes / BYTES_PER_US;
}

// By how many µs the convolution is faster in the other layout; NaN: it cannot run in that, or nothing is known.
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

bool tfc_layouts_is_read_outside(const struct tfc_layouts *l, uint32_t op) {
  const uint32_t v = l->ir->ops.data[op].outputs[0];
  if (l->ir->values.data[v].fetched) return true;
  for (uint32_t r = l->readers.begin[v]; r < l->readers.begin[v + 1]; r++) {
    const struct tfc_ir_op *reader = &l->ir->ops.data[l->readers.ops[r]];
    for (uint32_t k = 0; k < reader->input_count; k++)
      if (reader->inputs[k].value == v && tfc_layouts_maker(l, l->readers.ops[r], k) != op) return true;
  }
  return false;
}

const struct tfc_ir_input *tfc_layouts_untransposed(const struct tfc_layouts *l, uint32_t reader, uint32_t i) {
  const struct tfc_ir *ir = l->ir;
  const struct tfc_ir_input *in = &ir->ops.data[reader].inputs[i];
  const struct tfc_ir_value *v = &ir->values.data[in->value];
  if (in->view || v->kind != TFC_IR_OP || v->op == TFC_NONE) return NULL;
  const struct tfc_ir_op *op = &ir->ops.data[v->op];
  if (op->dead || op->prepared || !op->def || op->def->plan_trait != TFC_PLAN_TRANSPOSE || op->input_count != 2)
    return NULL;
  const struct tfc_ir_input *from = &op->inputs[0];
  const struct tfc_tensor *order = numbers(ir, op, 1, TFC_LAYOUTS_RANK);
  if (!order || op->device != ir->ops.data[reader].device || from->value == TFC_NONE || from->variable != TFC_NONE)
    return NULL;
  if (ir->values.data[from->value].kind == TFC_IR_VARIABLE) return NULL; // it may be updated before it is read
  for (int k = 0; k < TFC_LAYOUTS_RANK; k++)
    if (tfc_layouts_number(order, tfc_layouts_old(k, l->first)) != k) return NULL;
  return l->waits[v->op] ? NULL : from; // what the transposition waits for the chain would have to wait for, too
}

struct tfc_layouts_entry *tfc_layouts_entry_of(struct tfc_layouts *l, uint32_t reader, uint32_t i) {
  const struct tfc_ir_op *op = &l->ir->ops.data[reader];
  const struct tfc_shape shape = whole_of(tfc_ir_shape(l->ir, &op->inputs[i]));
  uint32_t *last = &l->last_entry[op->inputs[i].value];
  for (uint32_t e = *last; e != TFC_NONE; e = l->entries.data[e].before) {
    struct tfc_layouts_entry *known = &l->entries.data[e];
    if (known->device == op->device && tfc_shape_equal(&known->shape, &shape)) return known;
  }
  const struct tfc_layouts_entry fresh = {.before = *last, .other = TFC_NONE, .shape = shape, .device = op->device};
  if (!tfc_array_push(&l->entries, fresh)) return NULL;
  *last = (uint32_t)l->entries.count - 1;
  return &l->entries.data[*last];
}

// Sets gain_us of each chain. If the gain of one of a chain's convolutions is not known (NaN), the chain's gain is NaN,
// too, and the chain keeps its layout.
static tfc_status measure_chains(struct tfc_layouts *l) {
  const struct tfc_ir *ir = l->ir;
  bool *convolves = TFC_ARENA_ARRAY(&l->arena, bool, l->count + 1u);
  if (!convolves) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < l->count; i++) {
    if (!l->members[i].is || !l->members[i].convolves) continue;
    const uint32_t chain = tfc_union_find_root(l->chain, i);
    convolves[chain] = true;
    l->gain_us[chain] += convolution_gain_us(ir, &ir->ops.data[i], l->first);
  }
  for (uint32_t i = 0; i < l->count; i++) {
    const uint32_t chain = tfc_union_find_root(l->chain, i);
    const struct tfc_layouts_member *m = &l->members[i];
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (!m->is || !convolves[chain] || !(l->gain_us[chain] > 0)) continue;
    for (uint32_t k = 0; k < op->input_count; k++) {
      const struct tfc_ir_value *v = &ir->values.data[op->inputs[k].value];
      if (!tfc_layouts_reads_image(m, k) || tfc_layouts_maker(l, i, k) != TFC_NONE || v->kind == TFC_IR_CONST) continue;
      if (tfc_layouts_untransposed(l, i, k)) continue;
      const size_t before = l->entries.count;
      const struct tfc_layouts_entry *e = tfc_layouts_entry_of(l, i, k);
      if (!e) return tfc_status_no_memory("planning a step");
      if (l->entries.count > before && !tfc_layouts_keeps_order(&e->shape, l->first))
        l->gain_us[chain] -= tfc_layouts_transposing_us(v->bytes);
    }
    if (m->makes_image && tfc_layouts_is_read_outside(l, i))
      l->gain_us[chain] -= tfc_layouts_transposing_us(ir->values.data[op->outputs[0]].bytes);
  }
  return NULL;
}

// Changes chains to channels first (`first`) or last. *out_changed: at least one chain has changed.
static tfc_status change_to(struct tfc_ir *ir, bool first, bool *out_changed) {
  tfc_status s = NULL;
  struct tfc_layouts l = {.ir = ir, .first = first, .count = (uint32_t)ir->ops.count};
  bool any = false;
  for (uint32_t i = 0; i < l.count && !any; i++) {
    struct tfc_layouts_member m = {0};
    const struct tfc_ir_op *op = &ir->ops.data[i];
    any = op->def && op->def->images.convolves && classify(ir, op, first, &m);
  }
  if (!any) return NULL;
  l.members = TFC_ARENA_ARRAY(&l.arena, struct tfc_layouts_member, l.count);
  l.chain = TFC_ARENA_ARRAY(&l.arena, uint32_t, l.count);
  l.gain_us = TFC_ARENA_ARRAY(&l.arena, double, l.count);
  l.last_entry = TFC_ARENA_ARRAY(&l.arena, uint32_t, ir->values.count);
  if (!l.members || !l.chain || !l.gain_us || !l.last_entry) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (size_t v = 0; v < ir->values.count; v++) l.last_entry[v] = TFC_NONE;
  TFC_TRY(s, tfc_ir_readers(ir, &l.arena, &l.readers));
  TFC_TRY(s, tfc_ir_waits(ir, &l.arena, &l.waits));
  find_chains(&l);
  TFC_TRY(s, measure_chains(&l));
  TFC_TRY(s, tfc_layouts_change(&l));
  *out_changed = l.graph != NULL;
out:
  tfc_array_free(&l.entries);
  tfc_arena_deinit(&l.arena);
  return s;
}

static tfc_status change_layouts(struct tfc_ir *ir) {
  bool changed = false;
  TFC_RETURN_IF_ERROR(change_to(ir, false, &changed));
  return changed ? NULL : change_to(ir, true, &changed); // otherwise a changed chain might be changed back
}

// Rank 5: operands that are not repeated any more are read as they are, nothing has been joined yet, and what nothing
// reads any more is removed afterwards (unused.c).
static const struct tfc_rewrite rows[] = {{"layouts of images", 5, false, change_layouts}};
TFC_REWRITES(rows);
