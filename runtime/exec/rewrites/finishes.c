// A chain that reads the result of a convolution or a matrix product becomes part of that operation: its kernel runs
// the chain on rows that it has just computed, while they are in the cache, and writes only the chain's result.
// Examples are a bias, a frozen normalisation, an activation, a residual. The results are bit-identical: the chain's
// loops run on the same elements, and the result does not depend on how the rows are divided.
//
// The merged operation needs all inputs of the chain when it starts. If one of these inputs were computed from the
// operation's own result, the merged operation would wait for itself. So a chain is merged only if the producers of all
// its other inputs have a lower level than the operation. Here the level of an operation is the number of operations on
// the longest path that leads to it.
#include <string.h>

#include "runtime/exec/rewrites/chains.h"

struct finishes {
  struct tfc_ir *ir;
  struct tfc_arena arena; // scratch
  struct tfc_ir_readers readers;
  uint32_t *level;    // [ops]
  uint32_t *after;    // [ops] one more than the highest level of the operations that an ordering edge to this one
                      // begins at; 0: there are none
  uint32_t *producer; // [values] or TFC_NONE
};

// Sets the level of each operation. False: the operations form a cycle; tfc_order_make reports it.
static tfc_status find_levels(struct finishes *f, bool *out_found) {
  const struct tfc_ir *ir = f->ir;
  const uint32_t n = (uint32_t)ir->ops.count;
  uint32_t *missing = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 1), *order = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 1);
  uint32_t *begin = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 2), *to = NULL, total = 0, done = 0;
  f->level = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 1);
  f->producer = TFC_ARENA_ARRAY(&f->arena, uint32_t, ir->values.count + 1);
  if (!missing || !order || !begin || !f->level || !f->producer) return tfc_status_no_memory("planning a step");
  for (size_t v = 0; v < ir->values.count; v++) {
    const struct tfc_ir_value *value = &ir->values.data[v];
    const bool made = value->kind == TFC_IR_OP || value->kind == TFC_IR_VARIABLE;
    f->producer[v] = made && value->op != TFC_NONE && !ir->ops.data[value->op].dead ? value->op : TFC_NONE;
  }
  // The first pass counts the successors of each operation, the second lists them.
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t i = 0; i < n; i++) {
      const struct tfc_ir_op *op = &ir->ops.data[i];
      for (uint32_t k = 0; !op->dead && k < op->input_count; k++) {
        const uint32_t v = op->inputs[k].value, from = v == TFC_NONE ? TFC_NONE : f->producer[v];
        if (from == TFC_NONE) continue;
        if (pass == 0)
          begin[from + 1]++, missing[i]++, total++;
        else
          to[begin[from]++] = i;
      }
    }
    for (size_t e = 0; e < ir->edges.count; e++) {
      const struct tfc_ir_edge edge = ir->edges.data[e];
      if (pass == 0)
        begin[edge.from + 1]++, missing[edge.to]++, total++;
      else
        to[begin[edge.from]++] = edge.to;
    }
    if (pass == 1) break;
    for (uint32_t i = 0; i < n; i++) begin[i + 1] += begin[i];
    to = TFC_ARENA_ARRAY(&f->arena, uint32_t, total + 1);
    if (!to) return tfc_status_no_memory("planning a step");
  }
  // After the second pass, begin[i] is where the list of operation i ends.
  for (uint32_t i = 0; i < n; i++)
    if (!missing[i]) order[done++] = i;
  for (uint32_t at = 0; at < done; at++) {
    const uint32_t id = order[at];
    for (uint32_t k = id ? begin[id - 1] : 0; k < begin[id]; k++) {
      if (f->level[to[k]] <= f->level[id]) f->level[to[k]] = f->level[id] + 1;
      if (--missing[to[k]] == 0) order[done++] = to[k];
    }
  }
  f->after = TFC_ARENA_ARRAY(&f->arena, uint32_t, n + 1);
  if (!f->after) return tfc_status_no_memory("planning a step");
  for (size_t e = 0; e < ir->edges.count; e++) {
    const struct tfc_ir_edge *edge = &ir->edges.data[e];
    if (f->after[edge->to] <= f->level[edge->from]) f->after[edge->to] = f->level[edge->from] + 1;
  }
  *out_found = done == n;
  return NULL;
}

// Whether all inputs of the chain except the result of operation `id` are known at the earliest time when that
// operation can start.
static bool is_ready(const struct finishes *f, uint32_t id, uint32_t chain) {
  const struct tfc_ir *ir = f->ir;
  const struct tfc_ir_op *op = &ir->ops.data[chain];
  for (uint32_t k = 0; k < op->input_count; k++) {
    const uint32_t from = f->producer[op->inputs[k].value];
    if (from == TFC_NONE || from == id) continue;
    if (f->level[from] >= f->level[id] || ir->ops.data[from].device != op->device) return false;
  }
  return f->after[chain] <= f->level[id];
}

static bool takes_chains(const struct tfc_ir_op *op) {
  return !op->dead && !op->joint && !op->prepared && !op->wanted && !op->finish && op->output_count == 1 && op->def &&
         op->def->flags & TFC_OP_FINISHES;
}

static bool is_chain(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  return tfc_rewrites_chain_of(op) && op->output_count == 1 && ir->devices[op->device]->driver->host_kernels;
}

// Whether the chain could become part of the operation that makes its input `k`, as far as these two tell.
static bool fits(const struct tfc_ir *ir, const struct tfc_ir_op *chain, uint32_t k) {
  const struct tfc_ir_value *value = &ir->values.data[chain->inputs[k].value];
  if (value->kind != TFC_IR_OP || value->op == TFC_NONE || value->fetched || !value->planned) return false;
  if (value->alias != TFC_NONE || value->dtype != TFC_FLOAT || !(chain->in_place[0] >> k & 1)) return false;
  const struct tfc_ir_op *made = &ir->ops.data[value->op];
  if (!takes_chains(made) || made->device != chain->device) return false;
  const struct tfc_shape *before = &value->shape, *after = &ir->values.data[chain->outputs[0]].shape;
  if (before->rank < 1 || after->rank < 1 || tfc_shape_elements(before) != tfc_shape_elements(after)) return false;
  if (before->dims[before->rank - 1] != after->dims[after->rank - 1]) return false;
  const struct tfc_node *node = &ir->graph->nodes[made->node];
  return !tfc_str_starts(tfc_node_attr_string(ir->graph, node, "data_format", ""), "NC");
}

// Returns the operation that a chain can become part of; TFC_NONE: there is none.
static uint32_t part_of(const struct finishes *f, uint32_t chain) {
  const struct tfc_ir *ir = f->ir;
  const struct tfc_ir_op *op = &ir->ops.data[chain];
  uint32_t best = TFC_NONE;
  if (!is_chain(ir, op)) return TFC_NONE;
  for (uint32_t k = 0; k < op->input_count && k < 32; k++) {
    if (!fits(ir, op, k)) continue;
    const uint32_t v = op->inputs[k].value, id = ir->values.data[v].op;
    bool only = true;
    for (uint32_t r = f->readers.begin[v]; r < f->readers.begin[v + 1]; r++) only = only && f->readers.ops[r] == chain;
    if (!only || !is_ready(f, id, chain)) continue;
    if (best == TFC_NONE || f->level[id] > f->level[best]) best = id;
  }
  return best;
}

static tfc_status merge(struct finishes *f, uint32_t id, uint32_t chain_id) {
  struct tfc_ir *ir = f->ir;
  struct tfc_ir_op op = ir->ops.data[id];
  const struct tfc_ir_op *chain = &ir->ops.data[chain_id];
  const uint32_t own_value = op.outputs[0];
  struct tfc_chain_finish *finish = TFC_ARENA_NEW(&ir->arena, struct tfc_chain_finish);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, op.input_count + chain->input_count);
  uint32_t *from = TFC_ARENA_ARRAY(&ir->arena, uint32_t, chain->input_count), new_id;
  if (!finish || !inputs || !from) return tfc_status_no_memory("planning a step");
  const struct tfc_shape *before = &ir->values.data[own_value].shape;
  *finish = (struct tfc_chain_finish){.chain = *tfc_rewrites_chain_of(chain),
                                      .columns = before->dims[before->rank - 1],
                                      .own = op.input_count,
                                      .input_count = chain->input_count,
                                      .from = from,
                                      .before = *before,
                                      .after = ir->values.data[chain->outputs[0]].shape};
  memcpy(inputs, op.inputs, op.input_count * sizeof *inputs);
  for (uint32_t k = 0; k < chain->input_count; k++) {
    from[k] = chain->inputs[k].value == own_value ? TFC_NONE : op.input_count;
    if (from[k] != TFC_NONE) inputs[op.input_count++] = chain->inputs[k];
  }
  op.inputs = inputs;
  op.outputs = chain->outputs;
  op.finish = finish;
  op.cost_us += chain->cost_us / 2;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &op, &new_id));
  tfc_ir_replace(ir, id, new_id);
  tfc_ir_replace(ir, chain_id, new_id);
  return NULL;
}

static tfc_status finish_products(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct finishes f = {.ir = ir};
  const uint32_t count = (uint32_t)ir->ops.count;
  bool found = false;
  uint32_t *level = NULL;
  bool any = false;
  for (uint32_t i = 0; i < count && !any; i++)
    for (uint32_t k = 0; is_chain(ir, &ir->ops.data[i]) && k < ir->ops.data[i].input_count && k < 32; k++)
      any = any || fits(ir, &ir->ops.data[i], k);
  if (!any) return NULL;
  TFC_TRY(s, tfc_ir_readers(ir, &f.arena, &f.readers));
  TFC_TRY(s, find_levels(&f, &found));
  level = TFC_ARENA_ARRAY(&f.arena, uint32_t, 2 * (size_t)count + 1); // with room for the merged operations
  if (!level) TFC_TRY(s, tfc_status_no_memory(NULL));
  memcpy(level, f.level, count * sizeof *level);
  f.level = level;
  for (uint32_t i = 0; i < count && found; i++) {
    const uint32_t id = ir->ops.data[i].dead ? TFC_NONE : part_of(&f, i);
    if (id == TFC_NONE) continue;
    const uint32_t merged = (uint32_t)ir->ops.count;
    f.level[merged] = f.level[id]; // its level is lower than that of every operation that reads the merged operation's
                                   // results
    TFC_TRY(s, merge(&f, id, i));
    f.producer[ir->ops.data[merged].outputs[0]] = merged;
  }
out:
  tfc_arena_deinit(&f.arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"finished products", 67, true, finish_products}};
TFC_REWRITES(rows);
