// Makes the operations of rows (rows.c). First the steps of all parts are written down one after the other, with a
// number for each value that one of them makes; then values get registers, as long as something reads them, and those
// that are read outside are copied to memory.
#include "runtime/exec/rewrites/rows.h"

#include <string.h>

const struct tfc_op_def tfc_rows_def = {
    .name = "_RowChain", .inputs = "inputs: N * float", .outputs = "outputs: M * float", .attrs = "N: int, M: int"};
// The steps that only rows have: a sum and a mean of the elements of a row, and a copy.
static const struct tfc_op_def sum_def = {.name = "_RowSum", .inputs = "x: float", .outputs = "sum: float"};
static const struct tfc_op_def mean_def = {.name = "_RowMean", .inputs = "x: float", .outputs = "mean: float"};
static const struct tfc_op_def copy_def = {.name = "_RowCopy", .inputs = "x: float", .outputs = "y: float"};

// --- What can be a part ----------------------------------------------------------------------------------------------
static tfc_status new_chain(struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t inputs, uint16_t steps,
                            struct tfc_rows_member *out) {
  struct tfc_chain_op *state = tfc_arena_zalloc(&ir->arena, sizeof *state + sizeof *state->shapes);
  out->inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, inputs);
  if (!state || !out->inputs) return tfc_status_no_memory("planning a step");
  state->chain.steps = TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_step, steps);
  state->chain.operands = TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_operand, inputs + 1);
  if (!state->chain.steps || !state->chain.operands) return tfc_status_no_memory("planning a step");
  memcpy(out->inputs, op->inputs, inputs * sizeof *out->inputs);
  state->chain.step_count = steps;
  state->chain.operand_count = (uint16_t)(inputs + 1);
  state->input_count = inputs, state->output_count = 1;
  state->shapes[0] = ir->values.data[op->outputs[0]].shape;
  out->chain = state;
  return NULL;
}

static struct tfc_chain_operand operand(uint32_t tensor, int64_t row, int64_t column) {
  return (struct tfc_chain_operand){.tensor = (uint16_t)tensor, .size = sizeof(float), .row = row, .column = column};
}

static bool fits_rows(const struct tfc_shape *x, struct tfc_rows_member *out) {
  if (!tfc_shape_is_static(x) || x->rank < 1) return false;
  out->columns = x->dims[x->rank - 1];
  out->rows = out->columns ? tfc_shape_elements(x) / out->columns : 0;
  return out->rows > 0 && out->columns >= TFC_ROWS_LEAST_COLUMNS && out->columns <= TFC_ROWS_MOST_COLUMNS;
}

// The single axis that a reduction of a tensor of this rank reduces; -1: it is another number of axes, or not known.
static int only_axis(const struct tfc_ir *ir, const struct tfc_ir_op *op, int rank) {
  const struct tfc_ir_value *v = &ir->values.data[op->inputs[1].value];
  if (v->kind != TFC_IR_CONST || tfc_tensor_elements(v->constant) != 1) return -1;
  const int64_t axis = tfc_tensor_int(v->constant, 0);
  return axis < -rank || axis >= rank ? -1 : (int)(axis + (axis < 0 ? rank : 0));
}

static tfc_status sum_of(struct tfc_ir *ir, const struct tfc_ir_op *op, const struct tfc_op_def *def,
                         struct tfc_rows_member *out) {
  struct tfc_rows_member m = {.reduces = true, .outputs = op->outputs};
  if (op->input_count != 2 || op->inputs[1].value == TFC_NONE) return NULL;
  const struct tfc_shape *x = tfc_ir_shape(ir, &op->inputs[0]);
  if (!fits_rows(x, &m) || only_axis(ir, op, x->rank) != x->rank - 1) return NULL;
  TFC_RETURN_IF_ERROR(new_chain(ir, op, 1, 1, &m));
  m.chain->chain.operands[0] = operand(0, m.columns, 1), m.chain->chain.operands[1] = operand(1, 1, 0);
  m.chain->chain.steps[0] = (struct tfc_chain_step){.a = 0, .out = 1, .def = def};
  *out = m;
  return NULL;
}

// A number for each row, repeated along the row.
static tfc_status repeat_of(struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_rows_member *out) {
  struct tfc_rows_member m = {.outputs = op->outputs};
  const struct tfc_shape *x = tfc_ir_shape(ir, &op->inputs[0]), *y = &ir->values.data[op->outputs[0]].shape;
  if (!fits_rows(y, &m) || !tfc_shape_is_static(x) || x->rank != y->rank || x->dims[x->rank - 1] != 1) return NULL;
  for (int i = 0; i + 1 < x->rank; i++)
    if (x->dims[i] != y->dims[i]) return NULL;
  TFC_RETURN_IF_ERROR(new_chain(ir, op, 1, 1, &m));
  m.chain->chain.operands[0] = operand(0, 1, 0), m.chain->chain.operands[1] = operand(1, m.columns, 1);
  m.chain->chain.steps[0] = (struct tfc_chain_step){.a = 0, .out = 1, .def = &copy_def};
  *out = m;
  return NULL;
}

// The sum of more than two tensors, from left to right.
static tfc_status sum_of_many(struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_rows_member *out) {
  enum { MOST = 8 };
  struct tfc_rows_member m = {.outputs = op->outputs};
  const struct tfc_shape *y = &ir->values.data[op->outputs[0]].shape;
  if (op->input_count < 3 || op->input_count > MOST || !fits_rows(y, &m)) return NULL;
  if (!op->def->elementwise || !op->def->elementwise->binary || !op->def->elementwise->binary[TFC_FLOAT]) return NULL;
  for (uint32_t k = 0; k < op->input_count; k++)
    if (!tfc_shape_equal(tfc_ir_shape(ir, &op->inputs[k]), y)) return NULL;
  TFC_RETURN_IF_ERROR(new_chain(ir, op, op->input_count, (uint16_t)(op->input_count - 1), &m));
  for (uint32_t k = 0; k <= op->input_count; k++) m.chain->chain.operands[k] = operand(k, m.columns, 1);
  for (uint16_t k = 1; k < op->input_count; k++)
    m.chain->chain.steps[k - 1] = (struct tfc_chain_step){.binary = op->def->elementwise->binary[TFC_FLOAT],
                                                          .a = k == 1 ? 0 : -1,
                                                          .b = (int16_t)k,
                                                          .out = k + 1u < op->input_count ? -1 : (int16_t)(k + 1),
                                                          .def = op->def};
  *out = m;
  return NULL;
}

// Sets the rows and columns of a chain's space as it was before tfc_chain_flatten, and brings its operands to them.
static bool lay_out(struct tfc_rows_member *m) {
  struct tfc_chain *c = &m->chain->chain;
  int64_t columns = c->columns;
  if (c->rows == 1 && columns > 1) { // how long rows were is how outputs lie
    int64_t row = 0;
    for (uint16_t i = 0; i < c->operand_count && !row; i++)
      if (c->operands[i].tensor >= m->chain->input_count) row = c->operands[i].row;
    if (row > 0 && row < columns && columns % row == 0) columns = row;
  }
  m->rows = c->rows * c->columns / columns, m->columns = columns;
  const bool joined = columns != c->columns;
  for (uint16_t i = 0; i < c->operand_count; i++) {
    struct tfc_chain_operand *o = &c->operands[i];
    if (joined && o->column && (o->row != columns || o->each)) return false;
    if (joined && !o->column) o->row = 0;
    if (columns == 1) o->column = 0;
  }
  c->rows = m->rows, c->columns = columns, c->together = 0;
  if (columns == 1) m->columns = 0;
  return m->rows > 0 && (columns == 1 || columns <= TFC_ROWS_MOST_COLUMNS);
}

static tfc_status chain_of(struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_rows_member *out) {
  struct tfc_rows_member m = {.inputs = op->inputs, .outputs = op->outputs};
  const bool made = tfc_rewrites_chain_of(op) != NULL;
  if (made) {
    const struct tfc_chain_op *from = op->state;
    m.chain = TFC_ARENA_NEW(&ir->arena, struct tfc_chain_op);
    struct tfc_chain_operand *operands =
        TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_operand, from->chain.operand_count);
    if (!m.chain || !operands) return tfc_status_no_memory("planning a step");
    m.chain->chain = from->chain; // what it shares with the plan's own is not changed
    m.chain->chain.operands = memcpy(operands, from->chain.operands, from->chain.operand_count * sizeof *operands);
    m.chain->input_count = from->input_count, m.chain->output_count = from->output_count;
  } else {
    m.inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 2);
    if (!m.inputs) return tfc_status_no_memory("planning a step");
    TFC_RETURN_IF_ERROR(tfc_rewrites_chain_alone(ir, op, m.inputs, &m.chain));
  }
  if (m.chain && lay_out(&m)) *out = m;
  return NULL;
}

tfc_status tfc_rows_member_of(struct tfc_ir *ir, uint32_t id, struct tfc_rows_member *out) {
  const struct tfc_ir_op op = ir->ops.data[id];
  if (op.dead || op.joint || op.wanted || !op.def || !op.output_count || op.output_variables || op.host.all)
    return NULL;
  if (tfc_rewrites_chain_of(&op)) return chain_of(ir, &op, out);
  if (op.prepared || op.output_count != 1 || op.outputs[0] == TFC_NONE || !op.input_count) return NULL;
  const struct tfc_ir_value *y = &ir->values.data[op.outputs[0]];
  if (y->kind != TFC_IR_OP || y->dtype != TFC_FLOAT || !y->planned || y->alias != TFC_NONE) return NULL;
  const tfc_plan_trait trait = op.def->plan_trait;
  const bool sums = trait == TFC_PLAN_SUM || trait == TFC_PLAN_MEAN;
  const bool special =
      sums || op.def->role == TFC_ROLE_REPEATS || (op.def->role == TFC_ROLE_ADD_N && op.input_count > 2);
  if (!special) return op.def->elementwise ? chain_of(ir, &op, out) : NULL;
  for (uint32_t k = 0; k < op.input_count; k++) {
    const struct tfc_ir_input *in = &op.inputs[k];
    if (in->value == TFC_NONE || in->variable != TFC_NONE) return NULL;
    if ((!k || op.def->role == TFC_ROLE_ADD_N) && ir->values.data[in->value].dtype != TFC_FLOAT) return NULL;
  }
  if (sums) return sum_of(ir, &op, trait == TFC_PLAN_SUM ? &sum_def : &mean_def, out);
  return op.def->role == TFC_ROLE_REPEATS ? repeat_of(ir, &op, out) : sum_of_many(ir, &op, out);
}

// --- One operation of several parts ----------------------------------------------------------------------------------
enum { MOST_STEPS = TFC_CHAIN_STEPS, MOST_OPERANDS = TFC_CHAIN_OPERANDS };
struct value {     // that a step makes
  uint32_t of;     // the value of the plan that it is, or TFC_NONE
  bool is_part;    // of a wider tensor, so that nothing here reads it
  int16_t operand; // where it goes in memory; -1: nowhere
  int16_t place;   // its register
  uint16_t uses;   // steps that are still to read it
};
struct line { // a step that makes the value of its number from values (>= 0) or operands in memory (-1 - index)
  const struct tfc_chain_step *step;
  int32_t a, b;
};
struct program {
  int64_t rows, columns;
  struct line lines[MOST_STEPS];
  struct value values[MOST_STEPS];
  uint32_t count; // of lines and values
  struct tfc_chain_operand operands[MOST_OPERANDS];
  uint16_t operand_count;
  struct tfc_ir_input inputs[MOST_OPERANDS];
  uint32_t outputs[MOST_OPERANDS];
  uint32_t input_count, output_count;
  struct tfc_chain_step steps[MOST_STEPS];
  uint16_t step_count;
};

// Returns the index of an operand in memory; -1: there is no room for another one.
static int16_t operand_of(struct program *p, const struct tfc_chain_operand *o) {
  for (uint16_t i = 0; i < p->operand_count; i++) {
    const struct tfc_chain_operand *same = &p->operands[i];
    if (same->tensor == o->tensor && same->offset == o->offset && same->row == o->row && same->column == o->column &&
        same->each == o->each && same->cycle == o->cycle)
      return (int16_t)i;
  }
  if (p->operand_count == MOST_OPERANDS) return -1;
  p->operands[p->operand_count] = *o;
  return (int16_t)p->operand_count++;
}

// The number of a value of the plan among the outputs; TFC_NONE: there is no room for another one.
static uint32_t output_of(struct program *p, uint32_t value) {
  uint32_t i = 0;
  while (i < p->output_count && p->outputs[i] != value) i++;
  if (i == MOST_OPERANDS) return TFC_NONE;
  if (i == p->output_count) p->outputs[p->output_count++] = value;
  return i;
}

// What the steps of a part have made so far: numbers of values, or -1.
struct so_far {
  int32_t registers[TFC_CHAIN_REGISTERS], operands[TFC_CHAIN_OPERANDS];
};

// Finds what a step of a part reads. made: [values of the plan] the number of the value that a step before it makes.
static bool source(struct program *p, const struct tfc_rows_member *m, int16_t from, const struct so_far *done,
                   const uint32_t *made, int32_t *out) {
  if (from < 0) {
    *out = done->registers[-1 - from];
    return *out >= 0;
  }
  struct tfc_chain_operand o = m->chain->chain.operands[from];
  if (o.tensor >= m->chain->input_count) { // it reads what it has written
    *out = done->operands[from];
    return *out >= 0;
  }
  const uint32_t v = m->inputs[o.tensor].value;
  if (made[v] != TFC_NONE) {
    *out = (int32_t)made[v];
    return true;
  }
  uint32_t i = 0;
  while (i < p->input_count && p->inputs[i].value != v) i++;
  if (i == MOST_OPERANDS) return false;
  if (i == p->input_count) p->inputs[p->input_count++] = m->inputs[o.tensor];
  o.tensor = (uint16_t)i;
  const int16_t index = operand_of(p, &o);
  *out = -1 - index;
  return index >= 0;
}

// Adds the steps of a part. False: there is no room for them.
static bool add_member(struct program *p, const struct tfc_rows_member *m, uint32_t *made) {
  const struct tfc_chain *chain = &m->chain->chain;
  struct so_far done;
  for (int i = 0; i < TFC_CHAIN_REGISTERS; i++) done.registers[i] = -1;
  for (int i = 0; i < TFC_CHAIN_OPERANDS; i++) done.operands[i] = -1;
  for (uint16_t s = 0; s < chain->step_count; s++) {
    const struct tfc_chain_step *step = &chain->steps[s];
    if (p->count == MOST_STEPS) return false;
    struct line *line = &p->lines[p->count];
    struct value *v = &p->values[p->count];
    *line = (struct line){.step = step};
    *v = (struct value){.of = TFC_NONE, .operand = -1};
    if (!source(p, m, step->a, &done, made, &line->a)) return false;
    if (step->binary && !source(p, m, step->b, &done, made, &line->b)) return false;
    if (line->a >= 0) p->values[line->a].uses++;
    if (step->binary && line->b >= 0) p->values[line->b].uses++;
    if (step->out < 0) {
      done.registers[-1 - step->out] = (int32_t)p->count;
    } else {
      struct tfc_chain_operand o = chain->operands[step->out];
      v->of = m->outputs[o.tensor - m->chain->input_count];
      v->is_part = !tfc_rows_is_whole(m, &o) && !tfc_rows_is_each(m, &o);
      done.operands[step->out] = (int32_t)p->count;
      const uint32_t output = output_of(p, v->of);
      if (output == TFC_NONE) return false;
      o.tensor = (uint16_t)(MOST_OPERANDS + output); // inputs come first, when their number is known
      if ((v->operand = operand_of(p, &o)) < 0) return false;
      if (!v->is_part) made[v->of] = p->count;
    }
    p->count++;
  }
  return true;
}

struct parts { // the members of a group that become one operation
  const struct tfc_ir *ir;
  const struct tfc_ir_readers *readers;
  const uint32_t *ops;
  uint32_t count;
};

static bool is_read_outside(const struct parts *parts, uint32_t value) {
  if (parts->ir->values.data[value].fetched) return true;
  for (uint32_t r = parts->readers->begin[value]; r < parts->readers->begin[value + 1]; r++) {
    bool member = false;
    for (uint32_t i = 0; i < parts->count && !member; i++) member = parts->ops[i] == parts->readers->ops[r];
    if (!member) return true;
  }
  return false;
}

// Gives values their registers and writes the steps down. False: there is no room for them.
static bool finish(struct program *p, const struct parts *parts) {
  bool busy[TFC_CHAIN_REGISTERS] = {false};
  p->step_count = 0;
  for (uint32_t i = 0; i < p->count; i++) {
    const struct line *line = &p->lines[i];
    struct value *v = &p->values[i];
    struct tfc_chain_step step = *line->step;
    const int32_t from[2] = {line->a, line->b};
    int16_t places[2] = {0, 0};
    for (int k = 0; k < (step.binary ? 2 : 1); k++) {
      places[k] = from[k] < 0 ? (int16_t)(-1 - from[k]) : (int16_t)(-1 - p->values[from[k]].place);
      if (from[k] >= 0 && --p->values[from[k]].uses == 0) busy[p->values[from[k]].place] = false;
    }
    const bool kept = v->operand >= 0 && (v->is_part || is_read_outside(parts, v->of));
    if (!v->uses && !kept) continue; // nothing needs it
    step.a = places[0], step.b = places[1], step.out = v->operand;
    if (v->uses) {
      int r = 0;
      while (r < TFC_CHAIN_REGISTERS && busy[r]) r++;
      if (r == TFC_CHAIN_REGISTERS) return false;
      busy[r] = true;
      v->place = (int16_t)r;
      step.out = (int16_t)(-1 - r);
    }
    if (p->step_count + 1 + (v->uses && kept) > MOST_STEPS) return false;
    p->steps[p->step_count++] = step;
    if (v->uses && kept)
      p->steps[p->step_count++] = (struct tfc_chain_step){.a = step.out, .out = v->operand, .def = &copy_def};
  }
  return true;
}

// Leaves only operands and outputs that a step uses, and numbers outputs behind inputs.
static void settle(struct program *p) {
  struct tfc_chain_operand operands[MOST_OPERANDS];
  int16_t now[MOST_OPERANDS];
  uint32_t outputs[MOST_OPERANDS], output_now[MOST_OPERANDS], output_count = 0;
  uint16_t count = 0;
  for (int i = 0; i < MOST_OPERANDS; i++) now[i] = -1, output_now[i] = TFC_NONE;
  for (uint16_t s = 0; s < p->step_count; s++) {
    int16_t *const places[3] = {&p->steps[s].a, &p->steps[s].b, &p->steps[s].out};
    for (int k = 0; k < 3; k++) {
      if (*places[k] < 0 || (k == 1 && !p->steps[s].binary)) continue;
      const int16_t old = *places[k];
      if (now[old] < 0) {
        struct tfc_chain_operand o = p->operands[old];
        if (o.tensor >= MOST_OPERANDS) {
          uint32_t *to = &output_now[o.tensor - MOST_OPERANDS];
          if (*to == TFC_NONE) outputs[ *to = output_count] = p->outputs[o.tensor - MOST_OPERANDS], output_count++;
          o.tensor = (uint16_t)(p->input_count + *to);
        }
        operands[count] = o;
        now[old] = (int16_t)count++;
      }
      *places[k] = now[old];
    }
  }
  memcpy(p->operands, operands, count * sizeof *operands);
  memcpy(p->outputs, outputs, output_count * sizeof *outputs);
  p->operand_count = count, p->output_count = output_count;
}

// Returns a bit for each input in whose memory an output may be computed: each thread has read its elements of the
// input before it writes them to the output.
static uint32_t inputs_to_overwrite(const struct program *p, uint32_t output) {
  const struct tfc_rows_member space = {.rows = p->rows, .columns = p->columns};
  uint32_t refused = 0;
  bool written = false;
  for (uint16_t i = 0; i < p->operand_count; i++) {
    const struct tfc_chain_operand *o = &p->operands[i];
    const bool whole = tfc_rows_is_whole(&space, o);
    if (o->tensor == p->input_count + output && !whole) return 0;
    if (o->tensor < p->input_count && !whole) refused |= 1u << o->tensor;
  }
  for (uint16_t s = 0; s < p->step_count; s++) {
    const struct tfc_chain_step *step = &p->steps[s];
    const int16_t reads[2] = {step->a, step->binary ? step->b : (int16_t)-1};
    for (int k = 0; k < 2 && written; k++)
      if (reads[k] >= 0 && p->operands[reads[k]].tensor < p->input_count) refused |= 1u << p->operands[reads[k]].tensor;
    written = written || (step->out >= 0 && p->operands[step->out].tensor == p->input_count + output);
  }
  return ~refused;
}

static tfc_status add_op(struct tfc_ir *ir, const struct program *p, const uint32_t *ops, uint32_t count) {
  struct tfc_chain_op *state = tfc_arena_zalloc(&ir->arena, sizeof *state + p->output_count * sizeof *state->shapes);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, p->input_count + 1);
  uint32_t *outputs = TFC_ARENA_ARRAY(&ir->arena, uint32_t, p->output_count + 1);
  uint32_t *in_place = TFC_ARENA_ARRAY(&ir->arena, uint32_t, p->output_count + 1), id;
  struct tfc_chain_step *steps = TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_step, p->step_count);
  struct tfc_chain_operand *operands = TFC_ARENA_ARRAY(&ir->arena, struct tfc_chain_operand, p->operand_count);
  if (!state || !inputs || !outputs || !in_place || !steps || !operands) return tfc_status_no_memory("planning a step");
  state->chain = (struct tfc_chain){.rows = p->rows,
                                    .columns = p->columns,
                                    .step_count = p->step_count,
                                    .operand_count = p->operand_count,
                                    .steps = memcpy(steps, p->steps, p->step_count * sizeof *steps),
                                    .operands = memcpy(operands, p->operands, p->operand_count * sizeof *operands)};
  state->input_count = p->input_count, state->output_count = p->output_count;
  memcpy(inputs, p->inputs, p->input_count * sizeof *inputs);
  memcpy(outputs, p->outputs, p->output_count * sizeof *outputs);
  struct tfc_ir_op op = {.node = ir->ops.data[ops[count - 1]].node,
                         .def = &tfc_rows_def,
                         .device = ir->ops.data[ops[0]].device,
                         .inputs = inputs,
                         .input_count = p->input_count,
                         .outputs = outputs,
                         .output_count = p->output_count,
                         .in_place = in_place,
                         .prepared = true,
                         .state = state};
  for (uint32_t i = 0; i < p->output_count; i++) {
    state->shapes[i] = ir->values.data[outputs[i]].shape;
    in_place[i] = inputs_to_overwrite(p, i);
  }
  for (uint32_t i = 0; i < count; i++) op.cost_us += 0.5 * ir->ops.data[ops[i]].cost_us;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &id));
  for (uint32_t i = 0; i < count; i++) tfc_ir_replace(ir, ops[i], id);
  return NULL;
}

// Makes the program of the first `count` members. Returns for how many of them there is room.
static uint32_t write_down(struct program *p, const struct tfc_rows_member *members, const struct parts *parts,
                           uint32_t *made) {
  uint32_t taken = 0;
  const struct tfc_rows_member *first = &members[parts->ops[0]];
  p->rows = first->rows, p->columns = first->columns;
  p->count = p->input_count = p->output_count = 0;
  p->operand_count = p->step_count = 0;
  while (taken < parts->count && add_member(p, &members[parts->ops[taken]], made)) taken++;
  for (uint32_t i = 0; i < p->output_count; i++) made[p->outputs[i]] = TFC_NONE;
  if (taken < parts->count) return taken;
  return finish(p, parts) ? taken : taken - 1;
}

tfc_status tfc_rows_make(struct tfc_ir *ir, const struct tfc_ir_readers *readers, const struct tfc_rows_member *members,
                         const uint32_t *ops, uint32_t count, uint32_t *made) {
  for (uint32_t begin = 0; begin < count;) {
    struct parts parts = {ir, readers, ops + begin, count - begin};
    struct program p;
    if (parts.count > TFC_ROWS_MOST_MEMBERS) parts.count = TFC_ROWS_MOST_MEMBERS;
    for (uint32_t room = 0; parts.count; parts.count = room) // what is read outside depends on where it ends
      if ((room = write_down(&p, members, &parts, made)) == parts.count) break;
    bool reduces = false;
    for (uint32_t i = 0; i < parts.count; i++) reduces |= members[parts.ops[i]].reduces;
    if (reduces && parts.count > 1) {
      settle(&p);
      TFC_RETURN_IF_ERROR(add_op(ir, &p, parts.ops, parts.count));
    }
    begin += parts.count ? parts.count : 1;
  }
  return NULL;
}
