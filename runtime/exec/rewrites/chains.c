// Fuses element-wise operations into chains. A chain runs the operations' own loops in the same order, so the results
// are bit-identical.
//
// Which operations are fused: every operation has a level, the highest level of the operations that it depends on, plus
// one if an edge to it cannot be inside a chain (the producer is on another device, has another space of rows × columns
// or is not element-wise, or it is an ordering edge). Operations of one level that are joined by edges that can be
// inside form a chain. A path that leaves a chain and comes back to it would have to rise in level on its way, so
// chains never make cycles.
#include <stdlib.h>
#include <string.h>

#include "runtime/base/union_find.h"
#include "runtime/exec/rewrites/chains.h"
#include "runtime/exec/rewrites/operands.h"
#include "runtime/host/chain/space.h"
#include "runtime/ops/training_apply.h"

struct candidate { // by op
  bool eligible;
  uint8_t whole; // a bit for each input that is computed by another operation and has the size of the space
  uint16_t device;
  uint32_t level;
  struct tfc_chain_space space;
  tfc_unary_loop *unary;
  tfc_binary_loop *binary;
};

struct edges { // the ordering edges in CSR form, by the operation from which they start
  uint32_t *begin, *to;
};

struct fusion {
  struct tfc_ir *ir;
  struct tfc_arena arena; // scratch
  struct candidate *ops;
  uint32_t *chain; // union-find over ops: one set is one chain
  uint32_t op_count;
  struct tfc_ir_readers readers;
  struct edges edges;
  bool *waits;        // [ops] an ordering edge ends there
  uint32_t *producer; // [values] or TFC_NONE
  uint32_t *order;    // ops, producers first
};

static bool plain_float(const struct tfc_ir *ir, uint32_t value) {
  return tfc_dtype_base(ir->values.data[value].dtype) == TFC_FLOAT;
}

static void classify(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct candidate *out) {
  if (op->dead || op->joint || op->prepared || !op->def || !op->def->elementwise || op->output_count != 1) return;
  const struct tfc_device_driver *driver = ir->devices[op->device]->driver;
  if (!driver->host_kernels && !(driver->chains && driver->chains(op->def))) return;
  if (op->outputs[0] == TFC_NONE || op->input_count < 1 || op->input_count > 2) return;
  const struct tfc_ir_value *value = &ir->values.data[op->outputs[0]];
  if (value->dtype != TFC_FLOAT || !value->planned || value->alias != TFC_NONE) return;
  if (!tfc_shape_is_static(&value->shape) || tfc_shape_elements(&value->shape) < 2) return;
  const struct tfc_elementwise *loops = op->def->elementwise;
  out->unary = op->input_count == 1 && loops->unary ? loops->unary[TFC_FLOAT] : NULL;
  out->binary = op->input_count == 2 && loops->binary ? loops->binary[TFC_FLOAT] : NULL;
  if (!out->unary && !out->binary) return;
  out->space = tfc_chain_space_of(&value->shape);
  for (uint32_t i = 0; i < op->input_count; i++) {
    struct tfc_chain_operand operand;
    const struct tfc_shape *shape = tfc_ir_shape(ir, &op->inputs[i]);
    if (!plain_float(ir, op->inputs[i].value) || !tfc_shape_is_static(shape)) return;
    if (!tfc_chain_lies(shape, &value->shape, out->space, &operand)) return;
    bool made = ir->values.data[op->inputs[i].value].kind == TFC_IR_OP;
    out->whole = (uint8_t)(out->whole | (made && tfc_chain_is_whole(shape, out->space)) << i);
  }
  if (tfc_str_starts(tfc_node_attr_string(ir->graph, &ir->graph->nodes[op->node], "data_format", ""), "NC")) return;
  out->device = op->device;
  out->eligible = true;
}

// --- Levels and groups ---------------------------------------------------------------------------------------------
static uint32_t producer_of(const struct tfc_ir *ir, uint32_t value) {
  const struct tfc_ir_value *v = &ir->values.data[value];
  return v->kind == TFC_IR_OP || v->kind == TFC_IR_VARIABLE ? v->op : TFC_NONE;
}

// Whether the edge to input `k` of an operation can be inside a chain.
static bool inside(const struct fusion *f, uint32_t from, uint32_t to, uint32_t k) {
  const struct candidate *a = &f->ops[from], *b = &f->ops[to];
  return a->eligible && b->eligible && b->whole >> k & 1 && a->device == b->device && a->space.rows == b->space.rows &&
         a->space.columns == b->space.columns;
}

static tfc_status find_edges(struct fusion *f) {
  const struct tfc_ir *ir = f->ir;
  f->edges.begin = TFC_ARENA_ARRAY(&f->arena, uint32_t, f->op_count + 2);
  f->edges.to = tfc_arena_alloc(&f->arena, (ir->edges.count + 1) * sizeof *f->edges.to);
  f->producer = tfc_arena_alloc(&f->arena, (ir->values.count + 1) * sizeof *f->producer);
  if (!f->edges.begin || !f->edges.to || !f->producer) return tfc_status_no_memory("planning a step");
  TFC_RETURN_IF_ERROR(tfc_ir_waits(ir, &f->arena, &f->waits));
  uint32_t *begin = f->edges.begin;
  for (size_t e = 0; e < ir->edges.count; e++) begin[ir->edges.data[e].from + 2]++;
  for (uint32_t i = 2; i < f->op_count + 2; i++) begin[i] += begin[i - 1];
  for (size_t e = 0; e < ir->edges.count; e++) f->edges.to[begin[ir->edges.data[e].from + 1]++] = ir->edges.data[e].to;
  for (uint32_t v = 0; v < ir->values.count; v++) f->producer[v] = producer_of(ir, v);
  return NULL;
}

// Sorts the operations by Kahn's algorithm over data and ordering edges, and finds their levels on the way.
static tfc_status sort_and_level(struct fusion *f) {
  const struct tfc_ir *ir = f->ir;
  uint32_t n = f->op_count, done = 0, next = 0;
  uint32_t *missing = TFC_ARENA_ARRAY(&f->arena, uint32_t, n);
  uint32_t *made_begin = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 2);
  uint32_t *made = tfc_arena_alloc(&f->arena, (ir->values.count + 1) * sizeof *made);
  f->order = tfc_arena_alloc(&f->arena, (n + 1) * sizeof *f->order);
  if (!missing || !made_begin || !made || !f->order) return tfc_status_no_memory("planning a step");
  for (uint32_t v = 0; v < ir->values.count; v++)
    if (f->producer[v] != TFC_NONE) made_begin[f->producer[v] + 2]++;
  for (uint32_t i = 2; i < n + 2; i++) made_begin[i] += made_begin[i - 1];
  for (uint32_t v = 0; v < ir->values.count; v++)
    if (f->producer[v] != TFC_NONE) made[made_begin[f->producer[v] + 1]++] = v;
  for (size_t e = 0; e < ir->edges.count; e++) missing[ir->edges.data[e].to]++;
  for (uint32_t i = 0; i < n; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    for (uint32_t k = 0; !op->dead && k < op->input_count; k++)
      missing[i] += f->producer[op->inputs[k].value] != TFC_NONE;
    if (!missing[i]) f->order[done++] = i;
  }
  for (; next < done; next++) {
    uint32_t id = f->order[next], level = f->ops[id].level;
    const struct tfc_ir_op *op = &ir->ops.data[id];
    for (uint32_t k = 0; !op->dead && k < op->input_count; k++) {
      uint32_t from = f->producer[op->inputs[k].value];
      uint32_t least = from == TFC_NONE ? 0 : f->ops[from].level + !inside(f, from, id, k);
      if (least > level) level = least;
    }
    f->ops[id].level = level;
    for (uint32_t e = f->edges.begin[id]; e < f->edges.begin[id + 1]; e++) {
      uint32_t to = f->edges.to[e];
      if (level + 1 > f->ops[to].level) f->ops[to].level = level + 1;
      if (--missing[to] == 0) f->order[done++] = to;
    }
    for (uint32_t m = made_begin[id]; m < made_begin[id + 1]; m++) {
      uint32_t v = made[m];
      for (uint32_t r = f->readers.begin[v]; r < f->readers.begin[v + 1]; r++)
        if (--missing[f->readers.ops[r]] == 0) f->order[done++] = f->readers.ops[r];
    }
  }
  f->op_count = done == n ? n : 0; // there is a cycle: nothing is fused here; tfc_order_make reports the error
  return NULL;
}

// An operation that depends only on values that exist when the step begins (say, a weight times its decay) has a low
// level. It gets the level of its first reader if both can be in one chain, unless that needs two temporaries.
static void raise_levels(struct fusion *f) {
  const struct tfc_ir *ir = f->ir;
  for (uint32_t at = f->op_count; at-- > 0;) {
    uint32_t id = f->order[at], highest = TFC_NONE;
    const struct tfc_ir_op *op = &ir->ops.data[id];
    if (!f->ops[id].eligible || ir->values.data[op->outputs[0]].fetched) continue;
    if (f->ops[id].whole & (f->ops[id].whole - 1)) continue; // both inputs would become temporaries
    uint32_t v = op->outputs[0];
    bool joins = true;
    for (uint32_t r = f->readers.begin[v]; r < f->readers.begin[v + 1] && joins; r++) {
      uint32_t to = f->readers.ops[r];
      for (uint32_t k = 0; k < ir->ops.data[to].input_count; k++)
        joins &= ir->ops.data[to].inputs[k].value != v || inside(f, id, to, k);
      if (f->ops[to].level < highest) highest = f->ops[to].level;
    }
    if (!joins || highest == TFC_NONE) continue;
    for (uint32_t e = f->edges.begin[id]; e < f->edges.begin[id + 1]; e++)
      joins &= f->ops[f->edges.to[e]].level > highest;
    if (joins) f->ops[id].level = highest;
  }
}

static void join(struct fusion *f) {
  for (uint32_t at = 0; at < f->op_count; at++) {
    uint32_t id = f->order[at];
    const struct tfc_ir_op *op = &f->ir->ops.data[id];
    if (!f->ops[id].eligible) continue;
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t from = f->producer[op->inputs[k].value];
      if (from == TFC_NONE || f->ops[from].level != f->ops[id].level || !inside(f, from, id, k)) continue;
      tfc_union_find_join(f->chain, from, id);
    }
  }
}

// On devices that launch kernels, joins the chains whose results are put side by side, such as the gradients of a
// cell's gates: one chain can write them where they belong (windows.c). No path leads from one operation of a level to
// another one that is not in its chain, so this makes no cycles either.
static void join_beside(struct fusion *f) {
  const struct tfc_ir *ir = f->ir;
  for (uint32_t i = 0; i < f->op_count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    struct tfc_operands from;
    uint32_t count = 0, first = TFC_NONE;
    if (!tfc_ir_launches(ir, op->device, NULL) || !tfc_operands_of(ir, op, &from)) continue;
    if (!tfc_joins_columns(&from.of, &count)) continue;
    bool all = true; // nothing else reads what is put together, and one chain can compute it
    for (uint32_t k = 0; k < count && all; k++) {
      const uint32_t v = op->inputs[k].value, id = f->producer[v];
      all = id != TFC_NONE && f->ops[id].eligible && f->ops[id].device == op->device && !ir->values.data[v].fetched &&
            f->readers.begin[v + 1] - f->readers.begin[v] == 1;
      if (!all) break;
      if (first == TFC_NONE) first = id;
      const struct candidate *a = &f->ops[first], *b = &f->ops[id];
      all = a->level == b->level && a->space.rows == b->space.rows && a->space.columns == b->space.columns;
    }
    for (uint32_t k = 0; k < count && all; k++) tfc_union_find_join(f->chain, first, f->producer[op->inputs[k].value]);
  }
}

// --- Building one chain --------------------------------------------------------------------------------------------
struct running { // a chain being built
  struct tfc_chain chain;
  struct tfc_chain_step steps[TFC_CHAIN_STEPS];
  struct tfc_chain_operand operands[TFC_CHAIN_OPERANDS];
  struct tfc_ir_input inputs[TFC_CHAIN_OPERANDS];
  uint32_t outputs[TFC_CHAIN_OPERANDS];
  uint32_t input_count, output_count;
  uint32_t register_value[TFC_CHAIN_REGISTERS]; // TFC_NONE: the register is free
  uint32_t register_uses[TFC_CHAIN_REGISTERS];  // reads still to come
  double cost;
};

struct work {
  const struct tfc_chain *chain;
  void **tensors;
};

static void run_blocks(void *arg, int64_t begin, int64_t end) {
  const struct work *work = arg;
  tfc_chain_run(work->chain, work->tensors, begin, end);
}

static tfc_status run_chain(struct tfc_kernel_ctx *ctx) {
  const struct tfc_chain_op *state = ctx->state;
  void *tensors[2 * TFC_CHAIN_OPERANDS];
  for (uint32_t i = 0; i < state->input_count; i++) tensors[i] = ctx->inputs[i]->data;
  for (uint32_t i = 0; i < state->output_count; i++) {
    struct tfc_tensor *out = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, TFC_FLOAT, &state->shapes[i], &out));
    tensors[state->input_count + i] = out->data;
  }
  int64_t blocks = tfc_chain_blocks(&state->chain), grain = 16384 / TFC_CHAIN_BLOCK;
  struct work work = {&state->chain, tensors};
  tfc_kernel_parallel_for(ctx, blocks, grain, run_blocks, &work);
  return NULL;
}

static const struct tfc_op_def chain_def = {.name = "_Chain",
                                            .inputs = "inputs: N * float",
                                            .outputs = "outputs: M * float",
                                            .attrs = "N: int, M: int",
                                            .kernel = run_chain};

const struct tfc_chain *tfc_rewrites_chain_of(const struct tfc_ir_op *op) {
  return !op->dead && op->def == &chain_def ? &((const struct tfc_chain_op *)op->state)->chain : NULL;
}

// Adds an operand for a value in memory and returns its index; -1: the chain has no room for another operand.
static int16_t memory_operand(struct running *r, const struct tfc_ir *ir, const struct tfc_ir_input *input,
                              const struct tfc_shape *whole, int output) {
  struct tfc_chain_operand operand = {.size = sizeof(float)};
  if (output >= 0) {
    operand.row = r->chain.columns, operand.column = 1;
    operand.tensor = (uint16_t)(TFC_CHAIN_OPERANDS + output);
  } else {
    tfc_chain_lies(tfc_ir_shape(ir, input), whole, (struct tfc_chain_space){r->chain.rows, r->chain.columns}, &operand);
    uint32_t i = 0;
    while (i < r->input_count && r->inputs[i].value != input->value) i++;
    if (i == r->input_count) {
      if (i == TFC_CHAIN_OPERANDS) return -1;
      r->inputs[r->input_count++] = *input;
    }
    operand.tensor = (uint16_t)i;
  }
  for (uint16_t i = 0; i < r->chain.operand_count; i++) {
    const struct tfc_chain_operand *o = &r->chain.operands[i];
    if (o->tensor == operand.tensor && o->row == operand.row && o->column == operand.column &&
        o->each == operand.each && o->cycle == operand.cycle)
      return (int16_t)i;
  }
  if (r->chain.operand_count == TFC_CHAIN_OPERANDS) return -1;
  r->chain.operands[r->chain.operand_count] = operand;
  return (int16_t)r->chain.operand_count++;
}

// Returns where a step of the chain reads an input: a register, an output of this chain, or memory.
static int16_t source(struct running *r, const struct tfc_ir *ir, const struct tfc_ir_input *input,
                      const struct tfc_shape *whole) {
  for (int i = 0; i < TFC_CHAIN_REGISTERS; i++)
    if (r->register_value[i] == input->value) {
      r->register_uses[i]--;
      return (int16_t)(-1 - i);
    }
  for (uint32_t i = 0; i < r->output_count; i++)
    if (r->outputs[i] == input->value) return memory_operand(r, ir, NULL, whole, (int)i);
  return memory_operand(r, ir, input, whole, -1);
}

static void begin_chain(struct running *r, struct tfc_chain_space space) {
  r->chain =
      (struct tfc_chain){.rows = space.rows, .columns = space.columns, .steps = r->steps, .operands = r->operands};
  r->input_count = r->output_count = 0;
  r->cost = 0;
  for (int i = 0; i < TFC_CHAIN_REGISTERS; i++) r->register_value[i] = TFC_NONE;
}

// Appends one operation to the chain. `uses`: how often later members of the chain read its value; `outside`:
// operations outside the chain read it, too. False: the chain has no room for it; the chain ends before this operation,
// and a new one begins.
static bool append(struct running *r, const struct tfc_ir *ir, const struct tfc_ir_op *op, const struct candidate *c,
                   uint32_t uses, bool outside) {
  if (r->chain.step_count == TFC_CHAIN_STEPS || r->chain.operand_count + 3 > TFC_CHAIN_OPERANDS) return false;
  if (r->output_count == TFC_CHAIN_OPERANDS) return false;
  int free_register = 0;
  while (free_register < TFC_CHAIN_REGISTERS && r->register_value[free_register] != TFC_NONE) free_register++;
  if (!outside && free_register == TFC_CHAIN_REGISTERS) return false;
  const struct tfc_shape *whole = &ir->values.data[op->outputs[0]].shape;
  struct tfc_chain_step step = {.unary = c->unary, .binary = c->binary, .register_size = sizeof(float), .def = op->def};
  step.a = source(r, ir, &op->inputs[0], whole);
  step.b = op->input_count > 1 ? source(r, ir, &op->inputs[1], whole) : 0;
  // A register that a step reads for the last time is not written by the same step, because the loops' pointers must
  // not alias.
  if (outside) {
    r->outputs[r->output_count] = op->outputs[0];
    step.out = memory_operand(r, ir, NULL, whole, (int)r->output_count++);
  } else {
    r->register_value[free_register] = op->outputs[0];
    r->register_uses[free_register] = uses;
    step.out = (int16_t)(-1 - free_register);
  }
  for (int i = 0; i < TFC_CHAIN_REGISTERS; i++)
    if (r->register_value[i] != TFC_NONE && r->register_uses[i] == 0) r->register_value[i] = TFC_NONE;
  r->chain.steps[r->chain.step_count++] = step;
  r->cost += op->cost_us;
  return true;
}

// Returns a bit for each input in whose memory this output may be computed: inputs that the chain reads element by
// element, and not after it has written the output. (A loop reads an element before it writes it.)
static uint32_t inputs_to_overwrite(const struct running *r, uint32_t output) {
  const struct tfc_chain *c = &r->chain;
  uint32_t refused = 0, written = 0;
  while (c->steps[written].out < 0 || c->operands[c->steps[written].out].tensor != TFC_CHAIN_OPERANDS + output)
    written++;
  for (uint32_t i = 0; i < c->operand_count; i++) {
    const struct tfc_chain_operand *o = &c->operands[i];
    if (o->tensor >= TFC_CHAIN_OPERANDS) continue;
    bool late = o->row != c->columns || o->column != 1 || o->each;
    for (uint32_t k = written + 1; k < c->step_count; k++)
      late = late || c->steps[k].a == (int16_t)i || (c->steps[k].binary && c->steps[k].b == (int16_t)i);
    if (late) refused |= 1u << o->tensor;
  }
  return ~refused;
}

// Makes the state of an operation that runs the chain.
static tfc_status make_state(struct tfc_ir *ir, struct running *r, bool flatten, bool join, struct tfc_chain_op **out) {
  struct tfc_chain_op *state = tfc_arena_zalloc(&ir->arena, sizeof *state + r->output_count * sizeof *state->shapes);
  struct tfc_chain_step *steps = TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_step, r->chain.step_count);
  struct tfc_chain_operand *operands = TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_operand, r->chain.operand_count);
  if (!state || !steps || !operands) return tfc_status_no_memory("planning a step");
  for (uint16_t i = 0; i < r->chain.operand_count; i++)
    if (r->chain.operands[i].tensor >= TFC_CHAIN_OPERANDS)
      r->chain.operands[i].tensor = (uint16_t)(r->chain.operands[i].tensor - TFC_CHAIN_OPERANDS + r->input_count);
  if (flatten) tfc_chain_flatten(&r->chain);
  if (join) tfc_chain_join(&r->chain);
  state->chain = r->chain;
  state->chain.steps = memcpy(steps, r->steps, r->chain.step_count * sizeof *steps);
  state->chain.operands = memcpy(operands, r->operands, r->chain.operand_count * sizeof *operands);
  state->input_count = r->input_count, state->output_count = r->output_count;
  for (uint32_t i = 0; i < r->output_count; i++) state->shapes[i] = ir->values.data[r->outputs[i]].shape;
  *out = state;
  return NULL;
}

static tfc_status emit(struct tfc_ir *ir, struct running *r, const uint32_t *members, uint32_t count) {
  struct tfc_chain_op *state = NULL;
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, r->input_count);
  uint32_t *outputs = TFC_ARENA_ARRAY(&ir->arena, uint32_t, r->output_count);
  uint32_t *in_place = TFC_ARENA_ARRAY(&ir->arena, uint32_t, r->output_count);
  if (!inputs || !outputs || !in_place) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < r->output_count; i++) in_place[i] = inputs_to_overwrite(r, i);
  TFC_RETURN_IF_ERROR(
      make_state(ir, r, true, ir->devices[ir->ops.data[members[0]].device]->driver->host_kernels, &state));
  memcpy(inputs, r->inputs, r->input_count * sizeof *inputs);
  memcpy(outputs, r->outputs, r->output_count * sizeof *outputs);
  const struct tfc_ir_op *last = &ir->ops.data[members[count - 1]];
  struct tfc_ir_op op = {.node = last->node,
                         .def = &chain_def,
                         .device = last->device,
                         .inputs = inputs,
                         .input_count = r->input_count,
                         .outputs = outputs,
                         .output_count = r->output_count,
                         .in_place = in_place,
                         .prepared = true,
                         .state = state,
                         .cost_us = (count > 1 ? 0.5 : 1) * r->cost};
  uint32_t id;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &id));
  for (uint32_t i = 0; i < count; i++) tfc_ir_replace(ir, members[i], id);
  return NULL;
}

tfc_status tfc_rewrites_chain_alone(struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_ir_input inputs[2],
                                    struct tfc_chain_op **out) {
  struct candidate c = {0};
  struct running r;
  *out = NULL;
  classify(ir, op, &c);
  if (!c.eligible) return NULL;
  begin_chain(&r, c.space);
  if (!append(&r, ir, op, &c, 0, true)) return NULL;
  memcpy(inputs, r.inputs, r.input_count * sizeof *inputs);
  return make_state(ir, &r, false, false, out);
}

// Counts how often members[at] is read by later members before `end`. *out_outside: other operations read it, too.
static void count_readers(const struct fusion *f, const uint32_t *members, uint32_t at, uint32_t end,
                          uint32_t *out_uses, bool *out_outside) {
  uint32_t v = f->ir->ops.data[members[at]].outputs[0];
  *out_uses = 0;
  *out_outside = f->ir->values.data[v].fetched;
  for (uint32_t r = f->readers.begin[v]; r < f->readers.begin[v + 1]; r++) {
    bool member = false;
    for (uint32_t i = at + 1; i < end && !member; i++) member = members[i] == f->readers.ops[r];
    if (member)
      ++*out_uses;
    else
      *out_outside = true;
  }
  if (*out_uses == 0) *out_outside = true; // nothing reads it: the output is written to memory, as without the chain
}

// Whether only an update reads the result of this operation. The update can then compute the result itself (updates.c).
static bool feeds_an_update(const struct fusion *f, uint32_t id) {
  uint32_t v = f->ir->ops.data[id].outputs[0], first = f->readers.begin[v];
  if (f->readers.begin[v + 1] != first + 1 || f->ir->values.data[v].fetched) return false;
  const struct tfc_ir_op *update = &f->ir->ops.data[f->readers.ops[first]];
  return f->ir->devices[update->device]->driver->host_kernels && !update->prepared && update->def &&
         update->def->flags & TFC_OP_UPDATE && tfc_apply_gradient(update->def) < update->input_count &&
         update->device == f->ir->ops.data[id].device && update->inputs[tfc_apply_gradient(update->def)].value == v;
}

// Whether this operation is the only one that reads the result of a product or convolution on the same device. It can
// then become part of that one (finishes.c).
static bool follows_a_product(const struct fusion *f, uint32_t id) {
  const struct tfc_ir *ir = f->ir;
  const struct tfc_ir_op *op = &ir->ops.data[id];
  for (uint32_t k = 0; k < op->input_count; k++) {
    const uint32_t v = op->inputs[k].value, from = f->producer[v];
    if (!(f->ops[id].whole >> k & 1) || from == TFC_NONE || ir->values.data[v].fetched) continue;
    const struct tfc_ir_op *product = &ir->ops.data[from];
    if (f->readers.begin[v + 1] == f->readers.begin[v] + 1 && product->device == op->device && product->def &&
        product->def->flags & TFC_OP_FINISHES && ir->devices[op->device]->driver->host_kernels)
      return true;
  }
  return false;
}

// Makes chains of the members, which are in topological order; they may need several chains.
static tfc_status fuse_group(struct fusion *f, const uint32_t *members, uint32_t count) {
  enum { most = TFC_CHAIN_STEPS / 2 };
  for (uint32_t begin = 0; begin < count;) {
    uint32_t end = begin + most < count ? begin + most : count, taken = 0;
    struct running r;
    bool again = true;
    while (again) { // which values are read outside depends on where the chain ends, so the end is found first
      again = false;
      begin_chain(&r, f->ops[members[begin]].space);
      for (taken = 0; begin + taken < end; taken++) {
        uint32_t id = members[begin + taken], uses;
        bool outside;
        count_readers(f, members, begin + taken, end, &uses, &outside);
        if (append(&r, f->ir, &f->ir->ops.data[id], &f->ops[id], uses, outside)) continue;
        end = begin + taken;
        again = true;
        break;
      }
      if (end == begin) break;
    }
    if (end < begin + 1 ||
        (end == begin + 1 && !feeds_an_update(f, members[begin]) && !follows_a_product(f, members[begin]))) {
      begin++;
      continue;
    }
    TFC_RETURN_IF_ERROR(emit(f->ir, &r, members + begin, end - begin));
    begin = end;
  }
  return NULL;
}

// Groups the operations by their chain.
static tfc_status find_groups(struct fusion *f) {
  const uint32_t n = f->op_count = (uint32_t)f->ir->ops.count;
  f->ops = TFC_ARENA_ARRAY(&f->arena, struct candidate, n + 1);
  f->chain = tfc_arena_alloc(&f->arena, (n + 1) * sizeof *f->chain);
  if (!f->ops || !f->chain) return tfc_status_no_memory("planning a step");
  tfc_union_find_init(f->chain, n);
  for (uint32_t i = 0; i < n; i++) classify(f->ir, &f->ir->ops.data[i], &f->ops[i]);
  TFC_RETURN_IF_ERROR(tfc_ir_readers(f->ir, &f->arena, &f->readers));
  TFC_RETURN_IF_ERROR(find_edges(f));
  TFC_RETURN_IF_ERROR(sort_and_level(f));
  raise_levels(f);
  join(f);
  join_beside(f);
  return NULL;
}

// --- Recomputing cheap operations ----------------------------------------------------------------------------------
// A multiple of a value, or the sum of a value and a number (or a number for each row or column), is often read by
// several chains: say, a forward and a backward one of the same activation or normalisation. Each of these chains
// computes it again from the value, so that it need not be kept in memory. The results are bit-identical.
static bool is_cheap(const struct fusion *f, uint32_t id) {
  const struct tfc_ir *ir = f->ir;
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (op->dead || !f->ops[id].eligible || op->input_count != 2 || ir->values.data[op->outputs[0]].fetched) return false;
  if (f->waits[id]) return false;                         // the second computation would have to wait, too
  for (uint32_t k = 0; op->def->is_cheap && k < 2; k++) { // a variable may be updated between the first and the second
                                                          // computation
    if (ir->values.data[op->inputs[k].value].kind != TFC_IR_VARIABLE &&
        ir->values.data[op->inputs[!k].value].kind != TFC_IR_VARIABLE &&
        tfc_chain_is_whole(tfc_ir_shape(ir, &op->inputs[k]), f->ops[id].space) &&
        !tfc_chain_is_whole(tfc_ir_shape(ir, &op->inputs[!k]), f->ops[id].space))
      return true;
  }
  return false;
}

struct reader {      // an operation that reads a value
  uint32_t op, like; // `like`: the operation that this one is a copy of
  uint32_t group;    // the chain to which the operation will belong
  uint32_t next;     // the next copy that reads the same value, TFC_NONE: none
};
struct copies {
  TFC_ARRAY(struct reader) all;
  uint32_t *first;                        // [values] index in `all` of a copy that reads it, TFC_NONE: none
  TFC_ARRAY(struct reader) readers, made; // readers of the current value
};

// Adds a copy of operation `id` to the chain of a reader, which then reads the copy.
static tfc_status compute_for(struct fusion *f, struct copies *copies, uint32_t id, struct reader *reader) {
  struct tfc_ir *ir = f->ir;
  struct tfc_ir_op again;
  uint32_t *outputs = TFC_ARENA_NEW(&ir->arena, uint32_t), new_id;
  if (!outputs) return tfc_status_no_memory("planning a step");
  TFC_RETURN_IF_ERROR(tfc_ir_copy_op(ir, id, &again));
  struct tfc_ir_value value = ir->values.data[again.outputs[0]];
  value.op = TFC_NONE;
  TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &value, &outputs[0]));
  again.node = ir->ops.data[reader->op].node;
  again.outputs = outputs;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &again, &new_id));
  struct reader made = {new_id, id, reader->group, TFC_NONE};
  if (!tfc_array_push(&copies->made, made)) return tfc_status_no_memory("planning a step");
  for (uint32_t k = 0; k < again.input_count; k++) {
    const uint32_t read = again.inputs[k].value;
    if (k && read == again.inputs[0].value) continue;
    made.next = copies->first[read];
    copies->first[read] = (uint32_t)copies->all.count;
    if (!tfc_array_push(&copies->all, made)) return tfc_status_no_memory("planning a step");
  }
  return NULL;
}

// The caller passes operations in reverse order, readers first, so that the inputs of a copy can be recomputed, too.
static tfc_status compute_again_for_readers(struct fusion *f, struct copies *copies, uint32_t id) {
  struct tfc_ir *ir = f->ir;
  const uint32_t v = ir->ops.data[id].outputs[0];
  uint32_t home = tfc_union_find_root(f->chain, id);
  bool all = true, at_home = false;
  copies->readers.count = copies->made.count = 0;
  for (uint32_t r = f->readers.begin[v]; r < f->readers.begin[v + 1]; r++) {
    const uint32_t op = f->readers.ops[r];
    if (!tfc_array_push(&copies->readers, (struct reader){op, op, tfc_union_find_root(f->chain, op), TFC_NONE}))
      return tfc_status_no_memory("planning a step");
  }
  for (uint32_t i = copies->first[v]; i != TFC_NONE; i = copies->all.data[i].next)
    if (!tfc_array_push(&copies->readers, copies->all.data[i])) return tfc_status_no_memory("planning a step");
  for (size_t i = 0; i < copies->readers.count && all; i++) {
    const struct reader *r = &copies->readers.data[i];
    const struct tfc_ir_op *op = &ir->ops.data[r->op];
    at_home = at_home || r->group == home;
    for (uint32_t k = 0; k < op->input_count; k++) all = all && (op->inputs[k].value != v || inside(f, id, r->like, k));
  }
  if (!all || !copies->readers.count) return NULL;
  if (!at_home) home = copies->readers.data[0].group;
  for (size_t i = 0; i < copies->readers.count; i++) {
    struct reader *r = &copies->readers.data[i];
    if (r->group == home) continue;
    size_t m = 0;
    while (m < copies->made.count && copies->made.data[m].group != r->group) m++;
    if (m == copies->made.count) TFC_RETURN_IF_ERROR(compute_for(f, copies, id, r));
    struct tfc_ir_op *op = &ir->ops.data[r->op];
    for (uint32_t k = 0; k < op->input_count; k++)
      if (op->inputs[k].value == v) op->inputs[k].value = ir->ops.data[copies->made.data[m].op].outputs[0];
  }
  return NULL;
}

static tfc_status compute_again(struct fusion *f) {
  tfc_status s = NULL;
  struct copies copies = {0};
  const size_t values = f->ir->values.count;
  copies.first = TFC_ARENA_ARRAY(&f->arena, uint32_t, values + 1);
  if (!copies.first) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (size_t v = 0; v < values; v++) copies.first[v] = TFC_NONE;
  for (uint32_t at = f->op_count; at-- > 0;)
    if (is_cheap(f, f->order[at])) TFC_TRY(s, compute_again_for_readers(f, &copies, f->order[at]));
out:
  tfc_array_free(&copies.all);
  tfc_array_free(&copies.readers);
  tfc_array_free(&copies.made);
  return s;
}

static tfc_status fuse_groups(struct fusion *f) {
  const uint32_t n = f->op_count;
  uint32_t *size = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 1), *begin = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 1);
  uint32_t *members = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 1);
  if (!size || !begin || !members) return tfc_status_no_memory("planning a step");
  for (uint32_t at = 0; at < n; at++) size[tfc_union_find_root(f->chain, f->order[at])]++;
  uint32_t total = 0;
  for (uint32_t i = 0; i < n; i++) begin[i] = total, total += size[i], size[i] = 0;
  for (uint32_t at = 0; at < n; at++) {
    uint32_t root = tfc_union_find_root(f->chain, f->order[at]);
    members[begin[root] + size[root]++] = f->order[at];
  }
  for (uint32_t i = 0; i < n; i++)
    if (size[i] >= 2 || (size[i] == 1 && f->ops[members[begin[i]]].eligible))
      TFC_RETURN_IF_ERROR(fuse_group(f, members + begin[i], size[i]));
  return NULL;
}

static tfc_status fuse_chains(struct tfc_ir *ir) {
  tfc_status s = NULL;
  const size_t count = ir->ops.count, each = 160; // roughly, bytes of scratch per operation
  struct fusion f = {.ir = ir, .arena.block_size = count * each};
  TFC_TRY(s, find_groups(&f));
  TFC_TRY(s, compute_again(&f));
  if (ir->ops.count != count) { // copies were added, and readers have new inputs: find the groups again
    tfc_arena_deinit(&f.arena);
    f = (struct fusion){.ir = ir, .arena.block_size = ir->ops.count * each};
    TFC_TRY(s, find_groups(&f));
  }
  TFC_TRY(s, fuse_groups(&f));
out:
  tfc_arena_deinit(&f.arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"element-wise chains", 50, true, fuse_chains}};
TFC_REWRITES(rows);
