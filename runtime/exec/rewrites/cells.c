// On devices that launch kernels, divides the products of an unrolled recurrent cell. In each step such a cell
// multiplies its input and its state, side by side, with one matrix: [x, h] W = x W_x + h W_h, where W_x and W_h are
// rows of W. The products with x do not wait for the step before, so the rewrite of unrolled steps (stacks.c) computes
// them for all steps at once; what is left of a step is one product with h that adds to them, and [x, h] need not be
// put together. Back, [dx, dh] = d W^T becomes dx = d W_x^T, for all steps at once, and dh = d W_h^T, which need not be
// taken apart. Sums are rounded in another order, so this needs `--rewrites all`.
//
// Products are divided only if x is made on the same device as they are: a device that computes the layer above would
// otherwise wait until all steps of the layer below are done.
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/exec/rewrites/operands.h"

enum { LEAST = 4 }; // the fewest steps

// a [m, k], b [K, n], first: the first row of b. The result is a times k rows of b; or a [m, n] times the transposed
// rows, of which there are as many as the result has columns.
#define ROWS "a: float, b: float, first: int32"
static const struct tfc_op_def rows_def = {
    .name = "_RowsProduct", .role = TFC_ROLE_PRODUCT, .inputs = ROWS, .outputs = "product: float", .host_inputs = 4};
static const struct tfc_op_def transposed_def = {.name = "_TransposedRowsProduct",
                                                 .role = TFC_ROLE_PRODUCT,
                                                 .inputs = ROWS,
                                                 .outputs = "product: float",
                                                 .host_inputs = 4};
static const struct tfc_op_def add_def = {
    .name = "_RowsProductAdd", .inputs = ROWS ", addend: float", .outputs = "sum: float", .host_inputs = 4};

struct cells {
  struct tfc_ir *ir;
  struct tfc_arena arena;
  struct tfc_ir_readers readers;
  struct tfc_ir_followers followers;
  uint32_t op_count;
  uint32_t *next, *last; // [ops] products with the same matrix, linked from the first; last: the end of its list
  bool *waits;           // [ops] an ordering edge ends there
  bool *reached;         // [ops] for the running search
  uint32_t *todo;
};

// The products of one matrix and device, from the operation `first` on.
struct cell {
  uint32_t first;
  int64_t widths[2]; // columns of x and h, in the order in which they are side by side
  int free;          // which of the two does not depend on any of the products
  // [transposed][part] constants, the first row of W_x and of W_h; TFC_NONE: not made yet
  uint32_t begins[2][2];
};

static bool is_plain(const struct cells *c, uint32_t id) {
  const struct tfc_ir_op *op = &c->ir->ops.data[id];
  return !op->dead && !op->joint && !op->prepared && !op->wanted && op->def && !op->output_variables &&
         tfc_ir_launches(c->ir, op->device, &rows_def);
}

// Whether all inputs are float32 matrices of known shape, except those from `end` on.
static bool are_matrices(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t end) {
  for (uint32_t k = 0; k < end; k++) {
    const struct tfc_ir_input *in = &op->inputs[k];
    if (in->value == TFC_NONE || in->variable != TFC_NONE || ir->values.data[in->value].dtype != TFC_FLOAT)
      return false;
    if (tfc_ir_shape(ir, in)->rank != 2 || !tfc_shape_is_static(tfc_ir_shape(ir, in))) return false;
  }
  return true;
}

static bool is_made(const struct tfc_ir *ir, uint32_t value) {
  const struct tfc_ir_value *v = &ir->values.data[value];
  return v->kind == TFC_IR_OP && v->op != TFC_NONE && v->planned && v->alias == TFC_NONE;
}

static bool is_product(const struct cells *c, uint32_t id, bool transposed_b) {
  const struct tfc_ir *ir = c->ir;
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (!is_plain(c, id) || c->waits[id] || op->def->role != TFC_ROLE_PRODUCT || op->input_count != 2 ||
      op->output_count != 1)
    return false;
  if (op->outputs[0] == TFC_NONE || !is_made(ir, op->outputs[0]) || !are_matrices(ir, op, 2)) return false;
  const struct tfc_node *node = &ir->graph->nodes[op->node];
  return !tfc_node_attr_bool(ir->graph, node, "transpose_a", false) &&
         tfc_node_attr_bool(ir->graph, node, "transpose_b", false) == transposed_b;
}

// Returns the operation that puts two matrices side by side for the product; TFC_NONE: there is none.
static uint32_t joined_for(const struct cells *c, uint32_t product, int64_t *widths) {
  const struct tfc_ir *ir = c->ir;
  const struct tfc_ir_input *in = &ir->ops.data[product].inputs[0];
  struct tfc_operands from;
  uint32_t count = 0;
  if (in->view || !is_made(ir, in->value)) return TFC_NONE;
  const uint32_t id = ir->values.data[in->value].op;
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (!is_plain(c, id) || op->device != ir->ops.data[product].device || !tfc_operands_of(ir, op, &from))
    return TFC_NONE;
  if (!tfc_joins_columns(&from.of, &count) || count != 2 || !are_matrices(ir, op, 2)) return TFC_NONE;
  for (int k = 0; k < 2; k++) {
    if (ir->values.data[op->inputs[k].value].kind == TFC_IR_VARIABLE) return TFC_NONE; // may be updated before
    widths[k] = from.shapes[k]->dims[1];
  }
  return id;
}

// Finds all operations that come after one of the cell's products.
static void search(struct cells *c, const struct cell *cell) {
  uint32_t pushed = 0;
  memset(c->reached, 0, (c->op_count + 1) * sizeof *c->reached);
  for (uint32_t id = cell->first, at = 0; id != TFC_NONE || at < pushed;) {
    uint32_t from = id;
    if (id != TFC_NONE)
      id = c->next[id];
    else
      from = c->todo[at++];
    for (uint32_t e = c->followers.begin[from]; e < c->followers.begin[from + 1]; e++) {
      const uint32_t to = c->followers.ops[e];
      if (c->reached[to]) continue;
      c->reached[to] = true;
      c->todo[pushed++] = to;
    }
  }
}

// Whether operand `k` of the joins is known before the first of the products, on their device, in every step.
static bool is_free(const struct cells *c, const struct cell *cell, int k) {
  const struct tfc_ir *ir = c->ir;
  for (uint32_t id = cell->first; id != TFC_NONE; id = c->next[id]) {
    int64_t widths[2];
    const struct tfc_ir_op *join = &ir->ops.data[joined_for(c, id, widths)];
    const struct tfc_ir_value *v = &ir->values.data[join->inputs[k].value];
    // operations from op_count on were added for a cell that was divided before; c->reached does not cover them
    if (!is_made(ir, join->inputs[k].value) || v->op >= c->op_count || c->reached[v->op] ||
        ir->ops.data[v->op].device != join->device)
      return false;
  }
  return true;
}

static tfc_status begin_of(struct cells *c, struct cell *cell, bool transposed, int k, uint32_t node, uint32_t *out) {
  struct tfc_ir *ir = c->ir;
  uint32_t *begin = &cell->begins[transposed][k];
  if (*begin == TFC_NONE) {
    void *data;
    TFC_RETURN_IF_ERROR(tfc_ir_add_constant(ir, &(struct tfc_ir_tensor){{node, 0}, TFC_INT32, {0}}, &data, begin));
    *(int32_t *)data = k ? (int32_t)cell->widths[0] : 0;
  }
  *out = *begin;
  return NULL;
}

// Adds a product with rows of a matrix. addend: a value, or TFC_NONE.
static tfc_status add_rows(struct cells *c, struct cell *cell, const struct tfc_op_def *def, uint32_t node,
                           uint16_t device, const struct tfc_ir_input *a, const struct tfc_ir_input *matrix, int part,
                           uint32_t addend, uint32_t *outputs, double cost_us, uint32_t *out_id) {
  struct tfc_ir *ir = c->ir;
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 4);
  uint32_t *in_place = TFC_ARENA_NEW(&ir->arena, uint32_t);
  if (!inputs || !in_place) return tfc_status_no_memory("planning a step");
  inputs[0] = *a, inputs[1] = *matrix;
  inputs[2] = (struct tfc_ir_input){.variable = TFC_NONE};
  TFC_RETURN_IF_ERROR(begin_of(c, cell, def == &transposed_def, part, node, &inputs[2].value));
  inputs[3] = (struct tfc_ir_input){.value = addend, .variable = TFC_NONE};
  *in_place = addend == TFC_NONE ? 0 : 1u << 3;
  return tfc_ir_add_op(ir,
                       &(struct tfc_ir_op){.node = node,
                                           .def = def,
                                           .device = device,
                                           .inputs = inputs,
                                           .input_count = addend == TFC_NONE ? 3 : 4,
                                           .outputs = outputs,
                                           .output_count = 1,
                                           .in_place = in_place,
                                           .cost_us = cost_us},
                       out_id);
}

static tfc_status divide_forward(struct cells *c, struct cell *cell, uint32_t id) {
  struct tfc_ir *ir = c->ir;
  const struct tfc_ir_op product = ir->ops.data[id];
  int64_t widths[2];
  const struct tfc_ir_op join = ir->ops.data[joined_for(c, id, widths)];
  struct tfc_ir_value between = ir->values.data[product.outputs[0]];
  uint32_t *outputs = TFC_ARENA_NEW(&ir->arena, uint32_t), new_id;
  const double all = (double)(widths[0] + widths[1]);
  const int free = cell->free;
  if (!outputs) return tfc_status_no_memory("planning a step");
  between.fetched = false;
  TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &between, outputs));
  TFC_RETURN_IF_ERROR(add_rows(c, cell, &rows_def, product.node, product.device, &join.inputs[free], &product.inputs[1],
                               free, TFC_NONE, outputs, product.cost_us * (double)widths[free] / all, &new_id));
  TFC_RETURN_IF_ERROR(add_rows(c, cell, &add_def, product.node, product.device, &join.inputs[!free], &product.inputs[1],
                               !free, *outputs, product.outputs, product.cost_us * (double)widths[!free] / all,
                               &new_id));
  tfc_ir_replace(ir, id, new_id);
  return NULL;
}

// Whether the operation takes the columns of one of the cell's two operands from what a product made. *out_part: which.
static bool takes_part(const struct cells *c, const struct cell *cell, uint32_t id, uint32_t wide, int *out_part) {
  const struct tfc_ir *ir = c->ir;
  const struct tfc_ir_op *op = &ir->ops.data[id];
  struct tfc_operands from;
  uint32_t input = 0;
  int64_t first = 0;
  if (!is_plain(c, id) || op->output_count != 1 || op->outputs[0] == TFC_NONE || !is_made(ir, op->outputs[0]))
    return false;
  if (!tfc_operands_of(ir, op, &from) || !tfc_takes_columns(&from.of, 0, &input, &first)) return false;
  const struct tfc_shape *y = &ir->values.data[op->outputs[0]].shape;
  if (op->inputs[input].value != wide || op->inputs[input].view || y->rank != 2) return false;
  *out_part = first != 0;
  return first == (*out_part ? cell->widths[0] : 0) && y->dims[1] == cell->widths[*out_part];
}

// Divides a product of the transposed matrix if its result is only taken apart as the cell's operands are.
static tfc_status divide_back(struct cells *c, struct cell *cell, uint32_t id) {
  struct tfc_ir *ir = c->ir;
  const struct tfc_ir_op product = ir->ops.data[id];
  const uint32_t v = product.outputs[0], begin = c->readers.begin[v], end = c->readers.begin[v + 1];
  const size_t edges = ir->edges.count;
  uint32_t new_id = TFC_NONE;
  int part = 0;
  if (ir->values.data[v].fetched || begin == end) return NULL;
  for (uint32_t r = begin; r < end; r++) {
    const uint32_t taker = c->readers.ops[r];
    if (!takes_part(c, cell, taker, v, &part) || ir->ops.data[taker].device != product.device) return NULL;
    if (part != cell->free) continue;
    const uint32_t y = ir->ops.data[taker].outputs[0];
    for (uint32_t q = c->readers.begin[y]; q < c->readers.begin[y + 1]; q++)
      if (ir->ops.data[c->readers.ops[q]].device != product.device) return NULL;
  }
  for (uint32_t r = begin; r < end; r++) {
    const struct tfc_ir_op taker = ir->ops.data[c->readers.ops[r]];
    takes_part(c, cell, c->readers.ops[r], v, &part);
    const double share = (double)cell->widths[part] / (double)(cell->widths[0] + cell->widths[1]);
    TFC_RETURN_IF_ERROR(add_rows(c, cell, &transposed_def, taker.node, taker.device, &product.inputs[0],
                                 &product.inputs[1], part, TFC_NONE, taker.outputs, product.cost_us * share, &new_id));
    // what has to come after the product (an update of the matrix) comes after all of them
    for (size_t e = 0; e < edges; e++)
      if (ir->edges.data[e].from == id) TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, new_id, ir->edges.data[e].to));
    tfc_ir_replace(ir, c->readers.ops[r], new_id);
  }
  tfc_ir_replace(ir, id, new_id);
  return NULL;
}

// Divides the products of one matrix, if they are those of a cell.
static tfc_status divide_all(struct cells *c, uint32_t first) {
  struct tfc_ir *ir = c->ir;
  struct cell cell = {.first = first, .begins = {{TFC_NONE, TFC_NONE}, {TFC_NONE, TFC_NONE}}};
  uint32_t count = 0;
  for (uint32_t id = first; id != TFC_NONE; id = c->next[id], count++) {
    int64_t widths[2];
    if (joined_for(c, id, widths) == TFC_NONE) return NULL;
    if (!count) memcpy(cell.widths, widths, sizeof widths);
    if (memcmp(cell.widths, widths, sizeof widths) || ir->ops.data[id].device != ir->ops.data[first].device ||
        !tfc_shape_equal(tfc_ir_shape(ir, &ir->ops.data[id].inputs[0]),
                         tfc_ir_shape(ir, &ir->ops.data[first].inputs[0])))
      return NULL;
  }
  if (count < LEAST || cell.widths[0] + cell.widths[1] > INT32_MAX) return NULL;
  if (!cell.widths[0] || !cell.widths[1] || !tfc_shape_elements(&ir->values.data[ir->ops.data[first].outputs[0]].shape))
    return NULL; // the kernels take no empty matrices
  search(c, &cell);
  const bool free[2] = {is_free(c, &cell, 0), is_free(c, &cell, 1)};
  if (free[0] == free[1]) return NULL; // the steps do not wait for each other, or for each other's inputs, too
  cell.free = free[1];
  const struct tfc_ir_input matrix = ir->ops.data[first].inputs[1];
  for (uint32_t id = first; id != TFC_NONE; id = c->next[id]) TFC_RETURN_IF_ERROR(divide_forward(c, &cell, id));
  for (uint32_t r = c->readers.begin[matrix.value]; r < c->readers.begin[matrix.value + 1]; r++) {
    const uint32_t id = c->readers.ops[r];
    if (is_product(c, id, true) && ir->ops.data[id].inputs[1].value == matrix.value &&
        ir->ops.data[id].device == ir->ops.data[first].device)
      TFC_RETURN_IF_ERROR(divide_back(c, &cell, id));
  }
  return NULL;
}

static tfc_status divide_cells(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct cells c = {.ir = ir, .op_count = (uint32_t)ir->ops.count};
  struct tfc_intmap first = {0}; // by matrix, the first product with it
  if (!tfc_ir_any_launches(ir, &rows_def)) return NULL;
  c.next = TFC_ARENA_ARRAY(&c.arena, uint32_t, c.op_count + 1),
  c.last = TFC_ARENA_ARRAY(&c.arena, uint32_t, c.op_count + 1);
  c.todo = TFC_ARENA_ARRAY(&c.arena, uint32_t, c.op_count + 1);
  c.reached = TFC_ARENA_ARRAY(&c.arena, bool, c.op_count + 1);
  if (!c.next || !c.last || !c.todo || !c.reached) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, tfc_ir_waits(ir, &c.arena, &c.waits));
  TFC_TRY(s, tfc_ir_readers(ir, &c.arena, &c.readers));
  TFC_TRY(s, tfc_ir_followers(ir, &c.arena, &c.readers, &c.followers));
  for (uint32_t i = 0; i < c.op_count; i++) {
    c.next[i] = TFC_NONE, c.last[i] = i;
    if (!is_product(&c, i, false)) continue;
    bool found = false;
    uint64_t *slot = tfc_intmap_put(&first, ir->ops.data[i].inputs[1].value, i, &found);
    if (!slot) TFC_TRY(s, tfc_status_no_memory("planning a step"));
    if (found) c.next[c.last[*slot]] = i, c.last[*slot] = i;
  }
  for (uint32_t i = 0; i < c.op_count; i++)
    if (c.next[i] != TFC_NONE && c.last[i] != i) TFC_TRY(s, divide_all(&c, i)); // it is the first of its list
out:
  tfc_intmap_deinit(&first);
  tfc_arena_deinit(&c.arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"products of cells", 7, false, divide_cells}};
TFC_REWRITES(rows);
