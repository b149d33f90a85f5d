// On devices that have a kernel of their own for chains, lets a chain read and write columns of wider tensors. So the
// gates of a recurrent cell are read directly from one matrix product, whose bias the chain adds, and their gradients
// are written side by side, without a Split, BiasAdd, Slice or Concat, each of which would be a launch. The results are
// bit-identical, because the arithmetic is the same.
//
// Runs after chains were made. The chain gets the ordering edges of an operation that it replaces. To avoid cycles, an
// operation is replaced only if no ordering edge ends at it, and none that begins at it leads back to the chain.
#include <string.h>

#include "runtime/exec/rewrites/chains.h"
#include "runtime/exec/rewrites/operands.h"

struct windows {
  struct tfc_ir *ir;
  struct tfc_arena arena;        // scratch
  struct tfc_ir_readers readers; // as found by the last call of tfc_ir_readers
};

static struct tfc_chain_op *chain_of(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  return !op->dead && tfc_ir_launches(ir, op->device, NULL) && tfc_rewrites_chain_of(op) ? op->state : NULL;
}

static uint32_t readers_of(const struct windows *w, uint32_t value) {
  return w->readers.begin[value + 1] - w->readers.begin[value];
}

static bool has_edges(const struct tfc_ir *ir, uint32_t op, bool from, bool to) {
  for (size_t i = 0; i < ir->edges.count; i++)
    if ((from && ir->edges.data[i].from == op) || (to && ir->edges.data[i].to == op)) return true;
  return false;
}

// Divides the single row of a chain into rows of `columns` elements. False: the chain has more than one row, or the row
// cannot be divided so.
static bool divide(struct tfc_chain *chain, int64_t columns) {
  if (chain->columns == columns) return true;
  if (chain->rows != 1 || columns < 1 || chain->columns % columns) return false;
  for (uint16_t i = 0; i < chain->operand_count; i++)
    if (chain->operands[i].column && chain->operands[i].row != columns) return false;
  chain->rows = chain->columns / columns;
  chain->columns = columns;
  return true;
}

// Whether every operand of the chain that is in this tensor reads it as a matrix of the chain's rows and columns,
// without gaps.
static bool is_whole(const struct tfc_chain *chain, uint32_t tensor) {
  bool whole = false;
  for (uint16_t i = 0; i < chain->operand_count; i++) {
    const struct tfc_chain_operand *o = &chain->operands[i];
    if (o->tensor != tensor) continue;
    if (o->row != chain->columns || o->column != 1 || o->each || o->offset) return false;
    whole = true;
  }
  return whole;
}

// Forbids that outputs of the operation are computed in the memory of input `input`.
static tfc_status no_longer_in(struct tfc_ir *ir, struct tfc_ir_op *op, uint32_t input) {
  uint32_t *bits = TFC_ARENA_ARRAY(&ir->arena, uint32_t, op->output_count);
  if (!bits) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < op->output_count; i++)
    bits[i] = op->in_place ? op->in_place[i] & ~(input < 32 ? 1u << input : 0) : 0;
  op->in_place = bits;
  return NULL;
}

// --- Columns that a chain reads ------------------------------------------------------------------------------------
static tfc_status read_columns(struct windows *w, uint32_t id, uint32_t input) {
  struct tfc_ir *ir = w->ir;
  struct tfc_ir_op *op = &ir->ops.data[id];
  struct tfc_chain *chain = &((struct tfc_chain_op *)op->state)->chain;
  const struct tfc_ir_value *v = &ir->values.data[op->inputs[input].value];
  struct tfc_operands from;
  uint32_t which = 0;
  int64_t first = 0;
  if (op->inputs[input].view || v->kind != TFC_IR_OP || v->op == TFC_NONE) return NULL;
  const struct tfc_ir_op *taken = &ir->ops.data[v->op];
  if (taken->device != op->device || !tfc_operands_of(ir, taken, &from)) return NULL;
  if (!tfc_takes_columns(&from.of, v->output, &which, &first)) return NULL;
  if (has_edges(ir, v->op, false, true)) return NULL; // what it waits for the chain would have to wait for, too
  const struct tfc_ir_value *wide = &ir->values.data[taken->inputs[which].value];
  const struct tfc_shape *whole = from.shapes[which], *part = &v->shape;
  const int64_t width = whole->dims[whole->rank - 1], columns = part->rank ? part->dims[part->rank - 1] : 0;
  if (wide->kind != TFC_IR_OP || wide->dtype != TFC_FLOAT || part->rank != whole->rank || first + columns > width)
    return NULL;
  if (!divide(chain, columns) || chain->rows * columns != tfc_shape_elements(part) || !is_whole(chain, input))
    return NULL;
  for (uint16_t i = 0; i < chain->operand_count; i++)
    if (chain->operands[i].tensor == input) chain->operands[i].row = width, chain->operands[i].offset = first;
  op->inputs[input] = taken->inputs[which];
  op->inputs[input].view = NULL; // the chain needs only the memory of the input, not its shape
  return no_longer_in(ir, op, input);
}

// Removes operations whose outputs are no longer read.
static tfc_status drop_unread(struct windows *w) {
  struct tfc_ir *ir = w->ir;
  TFC_RETURN_IF_ERROR(tfc_ir_readers(ir, &w->arena, &w->readers));
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    struct tfc_operands from;
    uint32_t which = 0;
    int64_t first = 0;
    if (!tfc_ir_launches(ir, op->device, NULL) || op->wanted || !tfc_operands_of(ir, op, &from)) continue;
    bool unread = op->output_count && tfc_takes_columns(&from.of, 0, &which, &first);
    for (uint32_t k = 0; k < op->output_count && unread; k++)
      unread =
          op->outputs[k] == TFC_NONE || (!readers_of(w, op->outputs[k]) && !ir->values.data[op->outputs[k]].fetched);
    if (unread && !has_edges(ir, i, true, true)) tfc_ir_replace(ir, i, TFC_NONE);
  }
  return NULL;
}

// --- A bias that the chain adds to its input -----------------------------------------------------------------------
// Whether `to` comes after `from`, by data or ordering edges; also true if finding out would take more than MOST
// operations.
static bool may_lead_to(const struct windows *w, uint32_t from, uint32_t to) {
  enum { MOST = 64 };
  const struct tfc_ir *ir = w->ir;
  uint32_t found[MOST] = {from}, count = 1;
  for (uint32_t at = 0; at < count; at++) {
    const uint32_t op = found[at];
    uint32_t next[2 * MOST], n = 0;
    if (op == to) return true;
    for (size_t v = 0; v < ir->values.count && n < 2 * MOST; v++) {
      const struct tfc_ir_value *value = &ir->values.data[v];
      if (value->op != op || (value->kind != TFC_IR_OP && value->kind != TFC_IR_VARIABLE)) continue;
      for (uint32_t r = w->readers.begin[v]; r < w->readers.begin[v + 1] && n < 2 * MOST; r++)
        next[n++] = w->readers.ops[r];
    }
    for (size_t e = 0; e < ir->edges.count && n < 2 * MOST; e++)
      if (ir->edges.data[e].from == op) next[n++] = ir->edges.data[e].to;
    if (n == 2 * MOST) return true;
    for (uint32_t i = 0; i < n; i++) {
      bool seen = false;
      for (uint32_t k = 0; k < count && !seen; k++) seen = found[k] == next[i];
      if (seen) continue;
      if (count == MOST) return true;
      found[count++] = next[i];
    }
  }
  return false;
}

// Whether the input is the sum of a matrix and a bias (one row that is added to all its rows), and only this chain
// reads the sum, by columns.
static bool is_bias(const struct windows *w, uint32_t id, uint32_t input, uint32_t *out_bias) {
  const struct tfc_ir *ir = w->ir;
  const struct tfc_ir_op *op = &ir->ops.data[id];
  const struct tfc_ir_value *v = &ir->values.data[op->inputs[input].value];
  if (v->kind != TFC_IR_OP || v->op == TFC_NONE || v->fetched || op->inputs[input].view) return false;
  const struct tfc_ir_op *bias = &ir->ops.data[v->op];
  if (bias->dead || bias->joint || bias->prepared || bias->wanted || !bias->def || bias->device != op->device)
    return false;
  if (!bias->def->elementwise || !bias->def->elementwise->binary || bias->input_count != 2 || bias->output_count != 1)
    return false;
  if (!ir->devices[op->device]->driver->chains(bias->def)) return false;
  const struct tfc_shape *rows = tfc_ir_shape(ir, &bias->inputs[0]), *row = tfc_ir_shape(ir, &bias->inputs[1]);
  if (!tfc_shape_equal(rows, &v->shape) || row->rank < 1 || !tfc_shape_is_static(row)) return false;
  const int64_t width = v->shape.rank ? v->shape.dims[v->shape.rank - 1] : 0;
  if (row->dims[row->rank - 1] != width || tfc_shape_elements(row) != width || tfc_shape_elements(rows) <= width)
    return false;
  // it is a variable: its value may have changed when the chain runs
  if (ir->values.data[bias->inputs[0].value].kind != TFC_IR_OP) return false;
  for (int k = 0; k < 2; k++)
    if (tfc_dtype_base(ir->values.data[bias->inputs[k].value].dtype) != TFC_FLOAT) return false;
  if (tfc_str_starts(tfc_node_attr_string(ir->graph, &ir->graph->nodes[bias->node], "data_format", ""), "NC"))
    return false;
  const uint32_t value = op->inputs[input].value;
  for (uint32_t r = w->readers.begin[value]; r < w->readers.begin[value + 1]; r++)
    if (w->readers.ops[r] != id) return false;
  for (size_t i = 0; i < ir->edges.count; i++) { // if an ordering edge begins at the addition, an update of the bias
                                                 // could run before the chain
    const struct tfc_ir_edge *e = &ir->edges.data[i];
    if (e->to == v->op) return false;
    if (e->from != v->op) continue;
    const struct tfc_ir_op *after = &ir->ops.data[e->to];
    if (!after->def || !(after->def->flags & TFC_OP_UPDATE) || may_lead_to(w, e->to, id)) return false;
  }
  *out_bias = v->op;
  return true;
}

static bool reads(const struct tfc_chain_step *s, int16_t place) {
  return s->a == place || (s->binary && s->b == place);
}

// Inserts `step` before the first step that reads its operand `a`. From there on steps read the result of `step`
// instead of `a`, in a register that is free until the last of them. False: there is no such register; nothing has
// changed.
static bool compute_before(struct tfc_chain_step *steps, uint16_t count, const struct tfc_chain_step *step) {
  uint16_t first = count, last = 0;
  for (uint16_t s = 0; s < count; s++)
    if (reads(&steps[s], step->a)) first = s < first ? s : first, last = s;
  for (int r = 0; r < TFC_CHAIN_REGISTERS && first < count; r++) {
    const int16_t place = (int16_t)(-1 - r);
    // `holds`: the register has a value that is read later; `busy`: it has one between `first` and `last`.
    bool holds = false, busy = false;
    for (uint16_t s = count; s-- > 0;) {
      if (s <= last && s >= first) busy |= holds || reads(&steps[s], place) || steps[s].out == place;
      if (steps[s].out == place) holds = false;
      if (reads(&steps[s], place)) holds = true;
    }
    if (busy) continue;
    for (uint16_t s = first; s <= last; s++) {
      if (steps[s].a == step->a) steps[s].a = place;
      if (steps[s].binary && steps[s].b == step->a) steps[s].b = place;
    }
    memmove(steps + first + 1, steps + first, (size_t)(count - first) * sizeof *steps);
    steps[first] = *step;
    steps[first].out = place;
    return true;
  }
  return false;
}

static tfc_status add_bias(struct windows *w, uint32_t id, uint32_t input) {
  struct tfc_ir *ir = w->ir;
  struct tfc_ir_op *op = &ir->ops.data[id];
  struct tfc_chain_op *state = op->state;
  struct tfc_chain *chain = &state->chain;
  const uint32_t value = op->inputs[input].value;
  uint32_t bias = 0, count = 0;
  if (!is_bias(w, id, input, &bias)) return NULL;
  const struct tfc_shape *whole = &ir->values.data[value].shape;
  const int64_t width = whole->dims[whole->rank - 1];
  for (uint16_t i = 0; i < chain->operand_count; i++)
    if (chain->operands[i].tensor < op->input_count && op->inputs[chain->operands[i].tensor].value == value) {
      const struct tfc_chain_operand *o = &chain->operands[i];
      if (o->column != 1 || o->each || o->row != width || o->offset + chain->columns > width) return NULL;
      count++;
    }
  if (chain->step_count + count > TFC_CHAIN_STEPS || chain->operand_count + count > TFC_CHAIN_OPERANDS ||
      op->input_count == TFC_CHAIN_OPERANDS)
    return NULL;
  const struct tfc_ir_op *added = &ir->ops.data[bias];
  struct tfc_chain_step *steps = TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_step, chain->step_count + count);
  struct tfc_chain_operand *operands =
      TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_operand, chain->operand_count + count);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, op->input_count + 1);
  if (!steps || !operands || !inputs) return tfc_status_no_memory("planning a step");
  memcpy(operands, chain->operands, chain->operand_count * sizeof *operands);
  memcpy(steps, chain->steps, chain->step_count * sizeof *steps);
  memcpy(inputs, op->inputs, op->input_count * sizeof *inputs);
  const uint16_t before = chain->operand_count;
  for (uint16_t i = 0, n = 0; i < before; i++) {
    struct tfc_chain_operand *o = &operands[i];
    if (o->tensor >= op->input_count) { // an output: its index grows, because the chain has one more input
      o->tensor++;
      continue;
    }
    if (op->inputs[o->tensor].value != value) continue;
    operands[before + n] = (struct tfc_chain_operand){
        .tensor = (uint16_t)op->input_count, .size = o->size, .offset = o->offset, .column = 1};
    const struct tfc_chain_step step = {.binary = added->def->elementwise->binary[TFC_FLOAT],
                                        .a = (int16_t)i,
                                        .b = (int16_t)(before + n),
                                        .register_size = sizeof(float),
                                        .def = added->def};
    // No register is free: the chain is not changed.
    if (!compute_before(steps, (uint16_t)(chain->step_count + n), &step)) return NULL;
    n++;
  }
  for (uint32_t i = 0; i < op->input_count; i++)
    if (inputs[i].value == value) inputs[i] = added->inputs[0], inputs[i].view = NULL;
  inputs[op->input_count] = added->inputs[1];
  chain->steps = steps, chain->operands = operands;
  chain->step_count = (uint16_t)(chain->step_count + count);
  chain->operand_count = (uint16_t)(before + count);
  op->inputs = inputs;
  op->input_count = ++state->input_count;
  op->cost_us += added->cost_us;
  tfc_ir_replace(ir, bias, id);
  for (uint32_t i = 0; i < op->input_count; i++)
    if (i + 1 == op->input_count || inputs[i].value == added->inputs[0].value)
      TFC_RETURN_IF_ERROR(no_longer_in(ir, op, i));
  return NULL;
}

// --- Columns that a chain writes -----------------------------------------------------------------------------------
// Whether every input of this operation is an output of one and the same chain and has no other reader.
static bool joins_outputs(const struct windows *w, const struct tfc_ir_op *join, uint32_t *out_chain,
                          uint32_t *out_count) {
  const struct tfc_ir *ir = w->ir;
  struct tfc_operands from;
  *out_chain = TFC_NONE;
  if (!tfc_operands_of(ir, join, &from) || !tfc_joins_columns(&from.of, out_count) || join->outputs[0] == TFC_NONE)
    return false;
  for (uint32_t i = 0; i < *out_count; i++) {
    const struct tfc_ir_value *v = &ir->values.data[join->inputs[i].value];
    if (v->kind != TFC_IR_OP || v->op == TFC_NONE || v->fetched || join->inputs[i].view) return false;
    if (readers_of(w, join->inputs[i].value) != 1 || v->shape.rank < 1) return false;
    if (v->shape.dims[v->shape.rank - 1] != from.shapes[0]->dims[v->shape.rank - 1]) return false;
    if (*out_chain == TFC_NONE) *out_chain = v->op;
    if (*out_chain != v->op) return false;
  }
  const struct tfc_ir_op *op = &ir->ops.data[*out_chain];
  const struct tfc_ir_value *y = &ir->values.data[join->outputs[0]];
  return chain_of(ir, op) && op->device == join->device && y->planned && y->alias == TFC_NONE && y->dtype == TFC_FLOAT;
}

static tfc_status write_columns(struct windows *w, uint32_t join_id) {
  struct tfc_ir *ir = w->ir;
  const struct tfc_ir_op *join = &ir->ops.data[join_id];
  uint32_t id = 0, count = 0, kept = 0;
  if (!joins_outputs(w, join, &id, &count) || has_edges(ir, join_id, false, true)) return NULL;
  struct tfc_ir_op *op = &ir->ops.data[id];
  struct tfc_chain_op *state = op->state;
  const uint32_t y = join->outputs[0];
  const struct tfc_shape *part = &ir->values.data[join->inputs[0].value].shape;
  const int64_t columns = part->dims[part->rank - 1];
  if (!divide(&state->chain, columns) || state->chain.rows * columns != tfc_shape_elements(part)) return NULL;
  uint32_t place[TFC_CHAIN_OPERANDS]; // for each output of the chain, which input of `join` it is, or TFC_NONE
  for (uint32_t k = 0; k < op->output_count; k++) {
    place[k] = TFC_NONE;
    for (uint32_t i = 0; i < count; i++)
      if (join->inputs[i].value == op->outputs[k]) place[k] = i;
    if (place[k] != TFC_NONE && !is_whole(&state->chain, op->input_count + k)) return NULL;
    kept += place[k] == TFC_NONE;
  }
  if (kept + count != op->output_count) return NULL; // `join` reads one of the outputs twice
  struct tfc_chain_op *fresh = tfc_arena_zalloc(&ir->arena, sizeof *fresh + (kept + 1) * sizeof *fresh->shapes);
  uint32_t *outputs = TFC_ARENA_ARRAY(&ir->arena, uint32_t, kept + 1);
  uint32_t *in_place = TFC_ARENA_ARRAY(&ir->arena, uint32_t, kept + 1);
  struct tfc_chain_operand *operands =
      TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_operand, state->chain.operand_count);
  if (!fresh || !outputs || !in_place || !operands) return tfc_status_no_memory("planning a step");
  memcpy(operands, state->chain.operands, state->chain.operand_count * sizeof *operands);
  fresh->chain = state->chain;
  fresh->chain.operands = operands;
  fresh->input_count = state->input_count, fresh->output_count = kept + 1;
  uint32_t moved[TFC_CHAIN_OPERANDS], n = 0;
  for (uint32_t k = 0; k < op->output_count; k++) {
    moved[k] = place[k] == TFC_NONE ? n : kept;
    if (place[k] != TFC_NONE) {
      ir->values.data[op->outputs[k]].op = join_id; // the value is now part of the joined tensor; operation join_id is
                                                    // dead
      continue;
    }
    outputs[n] = op->outputs[k];
    in_place[n] = op->in_place ? op->in_place[k] : 0;
    fresh->shapes[n++] = state->shapes[k];
  }
  outputs[kept] = y; // no input's memory may hold the joined tensor, because columns are written while inputs are still
                     // read
  fresh->shapes[kept] = ir->values.data[y].shape;
  for (uint16_t i = 0; i < fresh->chain.operand_count; i++) {
    struct tfc_chain_operand *o = &operands[i];
    if (o->tensor < op->input_count) continue;
    const uint32_t k = o->tensor - op->input_count;
    o->tensor = (uint16_t)(op->input_count + moved[k]);
    if (place[k] != TFC_NONE) o->row = count * columns, o->offset = place[k] * columns;
  }
  op->outputs = outputs, op->output_count = kept + 1;
  op->in_place = in_place;
  op->state = fresh;
  for (uint32_t k = 0; k <= kept; k++) ir->values.data[outputs[k]].op = id, ir->values.data[outputs[k]].output = k;
  tfc_ir_replace(ir, join_id, id);
  return NULL;
}

static tfc_status use_windows(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct windows w = {.ir = ir};
  const uint32_t count = (uint32_t)ir->ops.count;
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_chain_op *state = chain_of(ir, &ir->ops.data[i]);
    any |= state != NULL;
    for (uint32_t k = 0; state && k < state->input_count; k++) TFC_TRY(s, read_columns(&w, i, k));
  }
  if (!any) goto out;
  TFC_TRY(s, drop_unread(&w));
  TFC_TRY(s, tfc_ir_readers(ir, &w.arena, &w.readers));
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_chain_op *state = chain_of(ir, &ir->ops.data[i]);
    for (uint32_t k = 0; state && k < state->input_count; k++) TFC_TRY(s, add_bias(&w, i, k));
  }
  TFC_TRY(s, tfc_ir_readers(ir, &w.arena, &w.readers));
  for (uint32_t i = 0; i < count; i++) TFC_TRY(s, write_columns(&w, i));
out:
  tfc_arena_deinit(&w.arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"columns of wider tensors", 55, true, use_windows}};
TFC_REWRITES(rows);
