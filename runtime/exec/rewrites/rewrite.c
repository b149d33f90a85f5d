// Functions that edit the intermediate representation of a plan (`ir`), and the one that runs all registered rewrites.
#include "runtime/exec/rewrites/rewrite.h"

#include <stdlib.h>
#include <string.h>

extern const struct tfc_rewrites __start_tfc_rewrites[] __attribute__((weak));
extern const struct tfc_rewrites __stop_tfc_rewrites[] __attribute__((weak));

tfc_status tfc_ir_add_op(struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t *out_id) {
  uint32_t id = (uint32_t)ir->ops.count;
  if (!tfc_array_push(&ir->ops, *op)) return tfc_status_no_memory("planning a step");
  const struct tfc_node *node = &ir->graph->nodes[op->node];
  const bool known = ir->host && op->def == node->def;
  ir->ops.data[id].host = known ? ir->host[op->node] : tfc_host_memory(ir->graph, node, op->def);
  for (uint32_t i = 0; i < op->output_count; i++)
    if (op->outputs[i] != TFC_NONE) {
      ir->values.data[op->outputs[i]].op = id;
      ir->values.data[op->outputs[i]].output = i;
    }
  if (ir->rewriting && !tfc_array_push(&ir->replaced, TFC_NONE)) return tfc_status_no_memory("planning a step");
  *out_id = id;
  return NULL;
}

tfc_status tfc_ir_add_value(struct tfc_ir *ir, const struct tfc_ir_value *value, uint32_t *out_id) {
  *out_id = (uint32_t)ir->values.count;
  return tfc_array_push(&ir->values, *value) ? NULL : tfc_status_no_memory("planning a step");
}

// Makes the value of a tensor that an operation or, with a `constant`, nothing has to compute.
static tfc_status value_of(const struct tfc_ir_tensor *t, const struct tfc_tensor *constant, struct tfc_ir_value *out) {
  size_t bytes;
  TFC_RETURN_IF_ERROR(tfc_tensor_bytes(t->dtype, &t->shape, &bytes));
  *out = (struct tfc_ir_value){.kind = constant ? TFC_IR_CONST : TFC_IR_OP,
                               .op = TFC_NONE,
                               .origin = t->origin,
                               .dtype = t->dtype,
                               .shape = t->shape,
                               .bytes = bytes,
                               .planned = !constant,
                               .constant = constant,
                               .variable = TFC_NONE,
                               .alias = TFC_NONE};
  return NULL;
}

tfc_status tfc_ir_add_constant(struct tfc_ir *ir, const struct tfc_ir_tensor *tensor, void **out_data,
                               uint32_t *out_value) {
  struct tfc_tensor *t = TFC_ARENA_NEW(&ir->arena, struct tfc_tensor);
  struct tfc_ir_value value;
  if (!t) return tfc_status_no_memory("planning a step");
  TFC_RETURN_IF_ERROR(value_of(tensor, t, &value));
  *t = (struct tfc_tensor){.dtype = tensor->dtype, .shape = tensor->shape, .size = value.bytes};
  if (!(t->data = tfc_arena_alloc(&ir->arena, value.bytes + 1))) return tfc_status_no_memory("planning a step");
  *out_data = t->data;
  return tfc_ir_add_value(ir, &value, out_value);
}

static tfc_status copy_inputs(struct tfc_ir *ir, struct tfc_ir_op *op) {
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, op->input_count);
  if (!inputs) return tfc_status_no_memory("planning a step");
  op->inputs = memcpy(inputs, op->inputs, op->input_count * sizeof *inputs);
  return NULL;
}

tfc_status tfc_ir_copy_op(struct tfc_ir *ir, uint32_t id, struct tfc_ir_op *out) {
  *out = ir->ops.data[id];
  return copy_inputs(ir, out);
}

tfc_status tfc_ir_add_maker(struct tfc_ir *ir, const struct tfc_ir_op *op, const struct tfc_ir_tensor *made,
                            uint32_t *out_value) {
  struct tfc_ir_op maker = *op;
  struct tfc_ir_value value;
  uint32_t id;
  maker.outputs = TFC_ARENA_NEW(&ir->arena, uint32_t), maker.output_count = 1;
  if (!maker.outputs) return tfc_status_no_memory("planning a step");
  TFC_RETURN_IF_ERROR(copy_inputs(ir, &maker));
  TFC_RETURN_IF_ERROR(value_of(made, NULL, &value));
  TFC_RETURN_IF_ERROR(tfc_ir_add_value(ir, &value, maker.outputs));
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, &maker, &id));
  *out_value = *maker.outputs;
  return NULL;
}

tfc_status tfc_ir_add_instead(struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t old) {
  uint32_t id;
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir, op, &id));
  tfc_ir_replace(ir, old, id);
  return NULL;
}

tfc_status tfc_ir_add_edge(struct tfc_ir *ir, uint32_t from, uint32_t to) {
  if (from == to || from == TFC_NONE || to == TFC_NONE) return NULL;
  return tfc_array_push(&ir->edges, (struct tfc_ir_edge){from, to}) ? NULL : tfc_status_no_memory("planning a step");
}

void tfc_ir_replace(struct tfc_ir *ir, uint32_t old, uint32_t by) {
  ir->ops.data[old].dead = true;
  ir->replaced.data[old] = by;
}

bool tfc_ir_launches(const struct tfc_ir *ir, uint16_t device, const struct tfc_op_def *def) {
  const struct tfc_device_driver *driver = ir->devices[device]->driver;
  return !driver->host_kernels && driver->chains &&
         (!def || (driver->has_kernel && driver->has_kernel(def, TFC_FLOAT)));
}

bool tfc_ir_any_launches(const struct tfc_ir *ir, const struct tfc_op_def *def) {
  for (uint16_t d = 0; d < ir->device_count; d++)
    if (tfc_ir_launches(ir, d, def)) return true;
  return false;
}

bool tfc_ir_adds(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  const struct tfc_node *node = &ir->graph->nodes[op->node];
  return !op->prepared && op->input_count == 2 && op->output_count == 1 && tfc_ir_is_sum(op->def) &&
         !tfc_str_starts(tfc_node_attr_string(ir->graph, node, "data_format", ""), "NC");
}

tfc_status tfc_ir_readers(const struct tfc_ir *ir, struct tfc_arena *arena, struct tfc_ir_readers *out) {
  uint32_t *begin = TFC_ARENA_ARRAY(arena, uint32_t, ir->values.count + 2), *ops = NULL;
  if (!begin) return tfc_status_no_memory("planning a step");
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < ir->ops.count; i++) {
      const struct tfc_ir_op *op = &ir->ops.data[i];
      for (uint32_t k = 0; !op->dead && k < op->input_count; k++) {
        uint32_t v = op->inputs[k].value;
        if (v == TFC_NONE) continue;
        if (pass == 0)
          begin[v + 2]++;
        else
          ops[begin[v + 1]++] = (uint32_t)i;
      }
    }
    for (size_t v = 1; pass == 0 && v <= ir->values.count; v++) begin[v + 1] += begin[v];
    if (pass == 0) ops = tfc_arena_alloc(arena, (begin[ir->values.count + 1] + (size_t)1) * sizeof *ops);
    if (!ops) return tfc_status_no_memory("planning a step");
  }
  *out = (struct tfc_ir_readers){begin, ops};
  return NULL;
}

tfc_status tfc_ir_waits(const struct tfc_ir *ir, struct tfc_arena *arena, bool **out) {
  bool *waits = TFC_ARENA_ARRAY(arena, bool, ir->ops.count + 1);
  if (!waits) return tfc_status_no_memory("planning a step");
  for (size_t e = 0; e < ir->edges.count; e++) waits[ir->edges.data[e].to] = true;
  *out = waits;
  return NULL;
}

tfc_status tfc_ir_followers(const struct tfc_ir *ir, struct tfc_arena *arena, const struct tfc_ir_readers *readers,
                            struct tfc_ir_followers *out) {
  const uint32_t n = (uint32_t)ir->ops.count;
  uint32_t *begin = TFC_ARENA_ARRAY(arena, uint32_t, n + 2), *ops = NULL;
  if (!begin) return tfc_status_no_memory("planning a step");
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t v = 0; v < ir->values.count; v++) {
      const struct tfc_ir_value *value = &ir->values.data[v];
      if (value->op == TFC_NONE || (value->kind != TFC_IR_OP && value->kind != TFC_IR_VARIABLE)) continue;
      for (uint32_t r = readers->begin[v]; r < readers->begin[v + 1]; r++) {
        if (pass)
          ops[begin[value->op + 1]++] = readers->ops[r];
        else
          begin[value->op + 2]++;
      }
    }
    for (size_t e = 0; e < ir->edges.count; e++) {
      const struct tfc_ir_edge *edge = &ir->edges.data[e];
      if (pass)
        ops[begin[edge->from + 1]++] = edge->to;
      else
        begin[edge->from + 2]++;
    }
    for (uint32_t i = 1; pass == 0 && i <= n; i++) begin[i + 1] += begin[i];
    if (pass == 0) ops = tfc_arena_alloc(arena, (begin[n + 1] + (size_t)1) * sizeof *ops);
    if (!ops) return tfc_status_no_memory("planning a step");
  }
  *out = (struct tfc_ir_followers){begin, ops};
  return NULL;
}

static int by_rank(const void *a, const void *b) {
  const struct tfc_rewrite *x = *(const struct tfc_rewrite *const *)a, *y = *(const struct tfc_rewrite *const *)b;
  int c = (x->rank > y->rank) - (x->rank < y->rank);
  return c ? c : strcmp(x->name, y->name);
}

// Moves ordering edges from operations that were replaced to the operations that replaced them.
static void settle(struct tfc_ir *ir) {
  size_t kept = 0;
  for (size_t i = 0; i < ir->edges.count; i++) {
    struct tfc_ir_edge e = ir->edges.data[i];
    while (e.from != TFC_NONE && ir->ops.data[e.from].dead) e.from = ir->replaced.data[e.from];
    while (e.to != TFC_NONE && ir->ops.data[e.to].dead) e.to = ir->replaced.data[e.to];
    if (e.from != e.to && e.from != TFC_NONE && e.to != TFC_NONE) ir->edges.data[kept++] = e;
  }
  ir->edges.count = kept;
}

tfc_status tfc_ir_rewrite(struct tfc_ir *ir) {
  tfc_status s = NULL;
  const struct tfc_rewrite **rows = NULL;
  size_t count = 0;
  for (const struct tfc_rewrites *f = __start_tfc_rewrites; f < __stop_tfc_rewrites; f++) count += f->count;
  if (count == 0) return NULL;
  rows = calloc(count, sizeof *rows);
  if (!rows || !tfc_array_reserve(&ir->replaced, 2 * ir->ops.count) || !tfc_array_resize(&ir->replaced, ir->ops.count))
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  for (size_t i = 0; i < ir->replaced.count; i++) ir->replaced.data[i] = TFC_NONE;
  ir->rewriting = true;
  count = 0;
  for (const struct tfc_rewrites *f = __start_tfc_rewrites; f < __stop_tfc_rewrites; f++)
    for (size_t i = 0; i < f->count; i++)
      if (f->rows[i].exact || ir->all_rewrites) rows[count++] = &f->rows[i];
  qsort(rows, count, sizeof *rows, by_rank);
  for (size_t i = 0; i < count; i++) {
    s = rows[i]->apply(ir);
    if (s) {
      s = tfc_status_annotate(s, "rewrite %s", rows[i]->name);
      goto out;
    }
    settle(ir);
  }
  for (uint32_t i = 0; i < ir->replaced.count; i++) {
    uint32_t by = i;
    while (by != TFC_NONE && ir->ops.data[by].dead) by = ir->replaced.data[by];
    if (by == TFC_NONE || ir->ops.data[i].joint || ir->ops.data[by].node == ir->ops.data[i].node) continue;
    if (!tfc_array_push(&ir->fused, (struct tfc_ir_fused){ir->ops.data[i].node, ir->ops.data[by].node}))
      TFC_TRY(s, tfc_status_no_memory("planning a step"));
  }
out:
  free(rows);
  tfc_array_free(&ir->replaced);
  ir->rewriting = false;
  return s;
}
