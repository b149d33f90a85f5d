// A convolution takes over what libraries write around it: a border of zeros (Pad), and a dilation, which they write as
//
//   SpaceToBatchND -> convolution -> BatchToSpaceND
//
// that is, each of the b * b pictures that have every b-th row and column is convolved by itself. Exact: each element
// of the result is the same chain of multiply-adds, with the zeros of the border in it.
//
// The convolution gets a window of its own (tfc_ir_op.window) instead of the one that its node's attributes describe.
// It stays in place, reads what the operations before it read, and its readers are those of the operation after it.
// Operations that nothing reads any more are removed later (unused.c).
#include <string.h>

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/ops/nn_window.h"

// MOST_CHANNELS, MOST_CELLS: what the CPU's kernels take without falling back to the reference kernel. LEAST_CHANNELS:
// with fewer, cells that are apart take longer to read than what is saved.
enum { MOST_CHANNELS = 4096, MOST_CELLS = 1024, LEAST_CHANNELS = 8 };

struct reading { // an input of an operation, in the list of those that read the same value
  uint32_t op, next;
};
struct dilations {
  struct tfc_ir *ir;
  struct tfc_arena arena;   // scratch
  struct reading *readings; // a fold changes a few of them: counting all readers anew would take as long as the graph
  uint32_t reading_count;
  uint32_t *first; // [values] of its readings; TFC_NONE: nothing reads it
  bool *waits;     // [ops] it waits for another operation that does not compute an input of it
  bool *leads;     // [ops] another operation that reads nothing of it waits for it
  bool *shares;    // [values] another value is in its memory
};

static bool has_role(const struct tfc_ir_op *op, tfc_op_role role) {
  return !op->dead && !op->joint && !op->prepared && op->def && op->def->role == role;
}

static const struct tfc_tensor *constant_of(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t input) {
  const struct tfc_ir_value *v = &ir->values.data[op->inputs[input].value];
  return v->kind == TFC_IR_CONST ? v->constant : NULL;
}

// --- Who reads a value -----------------------------------------------------------------------------------------------
static void add_reading(struct dilations *d, uint32_t value, uint32_t op) {
  if (value == TFC_NONE) return;
  d->readings[d->reading_count] = (struct reading){op, d->first[value]};
  d->first[value] = d->reading_count++;
}
static void drop_reading(struct dilations *d, uint32_t value, uint32_t op) {
  if (value == TFC_NONE) return;
  uint32_t *at = &d->first[value];
  while (*at != TFC_NONE && d->readings[*at].op != op) at = &d->readings[*at].next;
  if (*at != TFC_NONE) *at = d->readings[*at].next;
}

static tfc_status find_readings(struct dilations *d) {
  const struct tfc_ir *ir = d->ir;
  size_t count = ir->ops.count; // a fold gives a convolution another input
  for (size_t i = 0; i < ir->ops.count; i++) count += ir->ops.data[i].input_count;
  d->readings = TFC_ARENA_ARRAY(&d->arena, struct reading, count + 1);
  d->first = TFC_ARENA_ARRAY(&d->arena, uint32_t, ir->values.count + 1);
  if (!d->readings || !d->first) return tfc_status_no_memory("planning a step");
  for (size_t v = 0; v < ir->values.count; v++) d->first[v] = TFC_NONE;
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    for (uint32_t k = 0; !op->dead && k < op->input_count; k++) add_reading(d, op->inputs[k].value, i);
  }
  return NULL;
}

// Whether only one operation reads the value, and nothing else needs it.
static bool is_read_once(const struct dilations *d, uint32_t value) {
  const struct tfc_ir_value *v = &d->ir->values.data[value];
  return v->kind == TFC_IR_OP && v->alias == TFC_NONE && !d->shares[value] && !v->fetched &&
         d->first[value] != TFC_NONE && d->readings[d->first[value]].next == TFC_NONE;
}

// Returns the operation with this role that makes the input and can be removed; TFC_NONE: there is none. Nothing else
// may read its result, its own input 0 must still be there when the convolution runs, and no other operation may be
// ordered before or after it, because that order would be lost.
static uint32_t maker_of(const struct dilations *d, const struct tfc_ir_op *op, uint32_t input, tfc_op_role role) {
  const struct tfc_ir *ir = d->ir;
  const uint32_t v = op->inputs[input].value;
  if (v == TFC_NONE || op->inputs[input].variable != TFC_NONE || !is_read_once(d, v)) return TFC_NONE;
  const uint32_t id = ir->values.data[v].op;
  if (id == TFC_NONE || !has_role(&ir->ops.data[id], role)) return TFC_NONE;
  const struct tfc_ir_op *made = &ir->ops.data[id];
  const struct tfc_ir_input *from = &made->inputs[0];
  if (made->wanted || d->waits[id] || d->leads[id] || made->device != op->device || from->value == TFC_NONE ||
      from->variable != TFC_NONE)
    return TFC_NONE;
  // A variable may be updated before the convolution runs.
  if (ir->values.data[from->value].kind == TFC_IR_VARIABLE || !tfc_shape_is_static(tfc_ir_shape(ir, from)))
    return TFC_NONE;
  return id;
}

// Finds the dimension of an image that each dimension of a tensor is, where the image is the tensor with dimensions of
// 1 inserted (as a convolution of one dimension is computed as one of two). False: it is not, or it is ambiguous.
static bool match(const struct tfc_shape *tensor, const struct tfc_shape *image, int axes[TFC_MAX_RANK]) {
  const int rank = tensor->rank, last = image->rank - 1;
  if (rank < 3 || rank > image->rank || tensor->dims[0] != image->dims[0]) return false;
  if (tensor->dims[rank - 1] != image->dims[last]) return false;
  int at = 1;
  axes[0] = 0, axes[rank - 1] = last;
  for (int i = 1; i < rank - 1; i++, at++) {
    if (rank < image->rank && tensor->dims[i] == 1) return false;
    while (at < last && image->dims[at] != tensor->dims[i])
      if (image->dims[at++] != 1) return false;
    if (at == last) return false;
    axes[i] = at;
  }
  for (; at < last; at++)
    if (image->dims[at] != 1) return false;
  return true;
}

// A convolution whose window and image are being changed.
struct conv {
  struct tfc_window window; // with explicit padding
  struct tfc_shape image, filter, result;
};

static int window_axis(const struct conv *c, int axis) { // of a spatial dimension of the image
  return axis - 1 + 3 - c->window.spatial;
}

// Whether filters of each channel by itself make the result; with one channel both kinds are the same.
static bool is_depthwise(const struct conv *c) {
  const int rank = c->filter.rank;
  return c->result.dims[rank - 1] == c->image.dims[rank - 1] * c->filter.dims[rank - 1];
}

// Whether the filter fits the image, and the kernel of the operation's kind takes it.
static bool takes_filter(const struct conv *c) {
  const int rank = c->filter.rank;
  const int64_t *f = c->filter.dims, channels = c->image.dims[rank - 1];
  if (f[rank - 2] != channels || channels > MOST_CHANNELS || f[rank - 1] > MOST_CHANNELS) return false;
  return !is_depthwise(c) || (f[0] <= MOST_CELLS && f[1] <= MOST_CELLS / f[0]);
}

// Whether the CPU's kernel computes the convolution, so that its bits do not depend on what is folded into it.
static bool describe(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct conv *out) {
  if (!has_role(op, TFC_ROLE_CONVOLUTION) || op->input_count != 2 || op->output_count != 1) return false;
  if (!ir->devices[op->device]->driver->host_kernels || op->outputs[0] == TFC_NONE) return false;
  const struct tfc_ir_value *y = &ir->values.data[op->outputs[0]];
  out->image = *tfc_ir_shape(ir, &op->inputs[0]), out->filter = *tfc_ir_shape(ir, &op->inputs[1]),
  out->result = y->shape;
  const int rank = out->image.rank;
  if (y->dtype != TFC_FLOAT || !y->planned || y->alias != TFC_NONE) return false;
  if (!tfc_shape_is_static(&out->image) || !tfc_shape_is_static(&out->filter) || !tfc_shape_is_static(&out->result))
    return false;
  if ((rank != 4 && rank != 5) || out->filter.rank != rank || out->result.rank != rank ||
      tfc_shape_elements(&out->image) == 0 || tfc_shape_elements(&out->result) == 0)
    return false;
  if (!takes_filter(out)) return false;
  struct tfc_window *w = &out->window;
  tfc_status s = tfc_window_read(ir->graph, &ir->graph->nodes[op->node], rank, w);
  if (s || w->channels_first) {
    tfc_status_free(s);
    return false;
  }
  for (int axis = 1; axis < rank - 1; axis++) {
    const int k = window_axis(out, axis);
    const int64_t reach = (out->filter.dims[axis - 1] - 1) * w->dilation[k] + 1;
    int64_t made, before;
    s = tfc_window_output(w, k, out->image.dims[axis], out->filter.dims[axis - 1], &made, &before);
    if (s || made != out->result.dims[axis]) {
      tfc_status_free(s);
      return false;
    }
    const int64_t after = (made - 1) * w->stride[k] + reach - out->image.dims[axis] - before;
    w->before[k] = before, w->after[k] = after > 0 ? after : 0;
    // A depthwise kernel skips cells over padding, but multiplies the zeros of a border that is folded into it.
    if (is_depthwise(out) && (w->before[k] || w->after[k])) return false;
  }
  w->padding = TFC_PADDING_EXPLICIT;
  return true;
}

// --- A border ------------------------------------------------------------------------------------------------------
// Reads the image without the border that operation `id` puts around it.
static bool take_border(const struct dilations *d, uint32_t id, struct conv *c) {
  const struct tfc_ir *ir = d->ir;
  const struct tfc_ir_op *pad = &ir->ops.data[id];
  const struct tfc_shape *x = tfc_ir_shape(ir, &pad->inputs[0]), *padded = &ir->values.data[pad->outputs[0]].shape;
  const struct tfc_tensor *paddings = constant_of(ir, pad, 1);
  int axes[TFC_MAX_RANK];
  if (!paddings || tfc_tensor_elements(paddings) != 2 * x->rank || !match(padded, &c->image, axes)) return false;
  struct conv changed = *c;
  for (int i = 0; i < x->rank; i++) {
    const int64_t before = tfc_tensor_int(paddings, 2 * i), after = tfc_tensor_int(paddings, 2 * i + 1);
    if (before < 0 || after < 0 || before > INT32_MAX || after > INT32_MAX) return false;
    if (!before && !after) continue;
    if (i == 0 || i == x->rank - 1 || x->dims[i] + before + after != padded->dims[i]) return false;
    const int k = window_axis(c, axes[i]);
    changed.window.before[k] += before, changed.window.after[k] += after;
    changed.image.dims[axes[i]] = x->dims[i];
  }
  *c = changed;
  return tfc_shape_elements(&c->image) > 0;
}

// --- A dilation ------------------------------------------------------------------------------------------------------
// Along one dimension, in a window over blocks of b elements: block q of the picture with remainder r is element
// q * b + r - padding of the image, and the same with crops instead of paddings in the result. So the window begins
// before * b + padding - crop elements before the element that it makes, and its cells are b elements apart.
static bool take_blocks(const struct dilations *d, uint32_t to_id, uint32_t from_id, struct conv *c) {
  const struct tfc_ir *ir = d->ir;
  const struct tfc_ir_op *to = &ir->ops.data[to_id], *from = &ir->ops.data[from_id];
  const struct tfc_tensor *blocks = constant_of(ir, to, 1), *paddings = constant_of(ir, to, 2);
  const struct tfc_tensor *back = constant_of(ir, from, 1), *crops = constant_of(ir, from, 2);
  const struct tfc_shape *x = tfc_ir_shape(ir, &to->inputs[0]), *y = &ir->values.data[from->outputs[0]].shape;
  int axes[TFC_MAX_RANK], out_axes[TFC_MAX_RANK];
  if (!blocks || !paddings || !back || !crops || !tfc_shape_is_static(y)) return false;
  if (!match(&ir->values.data[to->outputs[0]].shape, &c->image, axes) ||
      !match(tfc_ir_shape(ir, &from->inputs[0]), &c->result, out_axes))
    return false;
  const int64_t count = tfc_tensor_elements(blocks);
  if (count > x->rank - 2 || y->rank != x->rank || tfc_tensor_elements(back) != count ||
      tfc_tensor_elements(paddings) != 2 * count || tfc_tensor_elements(crops) != 2 * count || y->dims[0] != x->dims[0])
    return false;
  struct conv changed = *c;
  changed.image.dims[0] = changed.result.dims[0] = x->dims[0];
  for (int i = 0; i < (int)count; i++) {
    const int64_t b = tfc_tensor_int(blocks, i), padding = tfc_tensor_int(paddings, 2 * i);
    const int64_t crop = tfc_tensor_int(crops, 2 * i);
    const int axis = axes[i + 1], k = window_axis(c, axis);
    struct tfc_window *w = &changed.window;
    // Nothing is folded that the operations would refuse, so that the step fails with their messages.
    if (padding < 0 || tfc_tensor_int(paddings, 2 * i + 1) < 0 || crop < 0 || tfc_tensor_int(crops, 2 * i + 1) < 0)
      return false;
    if (b < 1 || b > INT32_MAX || b != tfc_tensor_int(back, i) || axis != out_axes[i + 1]) return false;
    if (b > 1 && (w->stride[k] != 1 || w->dilation[k] != 1 || x->dims[x->rank - 1] < LEAST_CHANNELS)) return false;
    if (b == 1 && w->stride[k] != 1) return false; // a crop is counted in elements of the result
    const int64_t in = x->dims[i + 1], out = y->dims[i + 1];
    const int64_t reach = (c->filter.dims[axis - 1] - 1) * b * w->dilation[k] + 1;
    w->before[k] = w->before[k] * b + padding - crop;
    w->after[k] = out - 1 + reach - in - w->before[k];
    w->dilation[k] *= b;
    if (w->before[k] < 0 || w->after[k] < 0) return false;
    changed.image.dims[axis] = in, changed.result.dims[axis] = out;
  }
  *c = changed;
  return tfc_shape_elements(&c->image) > 0 && tfc_shape_elements(&c->result) > 0;
}

// The readers of value `from` read `to`, which has no other readers, with the shape of `from`.
static tfc_status move_readers(struct dilations *d, uint32_t from, uint32_t to) {
  struct tfc_ir *ir = d->ir;
  struct tfc_shape *shape = TFC_ARENA_NEW(&ir->arena, struct tfc_shape);
  if (!shape) return tfc_status_no_memory("planning a step");
  *shape = ir->values.data[from].shape;
  for (uint32_t r = d->first[from]; r != TFC_NONE; r = d->readings[r].next) {
    struct tfc_ir_op *op = &ir->ops.data[d->readings[r].op];
    for (uint32_t k = 0; k < op->input_count; k++) {
      if (op->inputs[k].value != from) continue;
      op->inputs[k].value = to;
      if (!op->inputs[k].view) op->inputs[k].view = shape;
    }
  }
  d->first[to] = d->first[from], d->first[from] = TFC_NONE;
  return NULL;
}

// The operation after the convolution that ends a dilation, TFC_NONE: none. What it waits for the convolution would
// have to wait for.
static uint32_t end_of_blocks(const struct dilations *d, const struct tfc_ir_op *op) {
  const struct tfc_ir *ir = d->ir;
  const uint32_t y = op->outputs[0];
  if (!is_read_once(d, y)) return TFC_NONE;
  const uint32_t id = d->readings[d->first[y]].op;
  const struct tfc_ir_op *next = &ir->ops.data[id];
  if (!has_role(next, TFC_ROLE_BATCH_TO_SPACE) || next->inputs[0].value != y || next->wanted || d->waits[id] ||
      next->device != op->device)
    return TFC_NONE;
  const struct tfc_ir_value *v = &ir->values.data[next->outputs[0]];
  return v->fetched || !v->planned || v->alias != TFC_NONE || d->shares[next->outputs[0]] ? TFC_NONE : id;
}

static tfc_status fold(struct dilations *d, uint32_t id) {
  struct tfc_ir *ir = d->ir;
  struct tfc_ir_op *op = &ir->ops.data[id];
  struct conv c;
  if (!describe(ir, op, &c)) return NULL;
  struct tfc_ir_input x = op->inputs[0];
  uint32_t last = TFC_NONE;
  const uint32_t blocks = maker_of(d, op, 0, TFC_ROLE_SPACE_TO_BATCH), end = end_of_blocks(d, op);
  if (blocks != TFC_NONE && end != TFC_NONE && take_blocks(d, blocks, end, &c))
    x = ir->ops.data[blocks].inputs[0], last = end;
  const struct tfc_ir_op reads = {.inputs = &x, .device = op->device};
  const uint32_t border = maker_of(d, &reads, 0, TFC_ROLE_PAD);
  const bool borders = border != TFC_NONE && take_border(d, border, &c);
  if (borders) x = ir->ops.data[border].inputs[0];
  if (last == TFC_NONE && !borders) return NULL;
  struct tfc_window *window = TFC_ARENA_NEW(&ir->arena, struct tfc_window);
  struct tfc_shape *image = TFC_ARENA_NEW(&ir->arena, struct tfc_shape);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2);
  if (!window || !image || !inputs) return tfc_status_no_memory("planning a step");
  *window = c.window, *image = c.image;
  inputs[0] = x, inputs[1] = op->inputs[1];
  inputs[0].view = image;
  drop_reading(d, op->inputs[0].value, id);
  add_reading(d, x.value, id);
  op->inputs = inputs;
  op->window = window;
  if (last == TFC_NONE) return NULL;
  const uint32_t y = op->outputs[0];
  ir->values.data[y].shape = c.result;
  ir->values.data[y].bytes = (uint64_t)tfc_shape_elements(&c.result) * sizeof(float);
  for (uint32_t k = 0; k < ir->ops.data[last].input_count; k++)
    drop_reading(d, ir->ops.data[last].inputs[k].value, last);
  TFC_RETURN_IF_ERROR(move_readers(d, ir->ops.data[last].outputs[0], y));
  tfc_ir_replace(ir, last, id);
  return NULL;
}

static tfc_status fold_all(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct dilations d = {.ir = ir};
  bool any = false;
  for (size_t i = 0; i < ir->ops.count && !any; i++)
    any = has_role(&ir->ops.data[i], TFC_ROLE_PAD) || has_role(&ir->ops.data[i], TFC_ROLE_SPACE_TO_BATCH);
  if (!any) return NULL;
  d.waits = TFC_ARENA_ARRAY(&d.arena, bool, ir->ops.count + 1);
  d.leads = TFC_ARENA_ARRAY(&d.arena, bool, ir->ops.count + 1);
  d.shares = TFC_ARENA_ARRAY(&d.arena, bool, ir->values.count + 1);
  if (!d.waits || !d.leads || !d.shares) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (size_t e = 0; e < ir->edges.count; e++) d.waits[ir->edges.data[e].to] = d.leads[ir->edges.data[e].from] = true;
  for (size_t v = 0; v < ir->values.count; v++)
    if (ir->values.data[v].alias != TFC_NONE) d.shares[ir->values.data[v].alias] = true;
  TFC_TRY(s, find_readings(&d));
  for (uint32_t i = 0; i < ir->ops.count; i++) TFC_TRY(s, fold(&d, i));
out:
  tfc_arena_deinit(&d.arena);
  return s;
}

// Rank 3: before the rewrite that drops operations without readers (unused.c).
static const struct tfc_rewrite rows[] = {{"dilations and borders", 3, true, fold_all}};
TFC_REWRITES(rows);
