// Removes operations whose results nothing reads and that neither change nor check anything (say, the gradient with
// respect to the input images of a network, which only control edges keep in the step), and then the operations whose
// results only these read.
#include "runtime/exec/rewrites/rewrite.h"

static bool changes_or_checks(const struct tfc_op_def *def) {
  enum {
    flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_ASYNC | TFC_OP_SAVES | TFC_OP_FUNCTIONAL |
            TFC_OP_DEAD_INPUTS | TFC_OP_CHECKS
  };
  return !def || def->flags & flags || def->node_state;
}

// Keeps the order around a removed operation: whatever ran before it still runs before whatever ran after it, and so
// do the operations that make its inputs.
static tfc_status bridge(struct tfc_ir *ir, uint32_t op) {
  const size_t count = ir->edges.count;
  for (size_t k = 0; k < count; k++) {
    if (ir->edges.data[k].from != op) continue;
    const uint32_t to = ir->edges.data[k].to;
    for (size_t i = 0; i < count; i++)
      if (ir->edges.data[i].to == op) TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, ir->edges.data[i].from, to));
    for (uint32_t i = 0; i < ir->ops.data[op].input_count; i++) {
      const uint32_t v = ir->ops.data[op].inputs[i].value;
      if (v != TFC_NONE) TFC_RETURN_IF_ERROR(tfc_ir_add_edge(ir, ir->values.data[v].op, to));
    }
  }
  return NULL;
}

static tfc_status drop_unused(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct tfc_arena arena;
  struct tfc_ir_readers readers;
  tfc_arena_init(&arena, 65536);
  uint32_t *read = TFC_ARENA_ARRAY(&arena, uint32_t, ir->values.count + 1); // [values] number of readers that are kept
  if (!read) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
  for (size_t v = 0; v < ir->values.count; v++) {
    read[v] = readers.begin[v + 1] - readers.begin[v];
    // Another value uses its memory, so it is kept.
    if (ir->values.data[v].alias != TFC_NONE) read[ir->values.data[v].alias]++;
  }
  for (size_t i = ir->ops.count; i-- > 0;) { // backwards, because readers come after the operations that they read
    struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || op->prepared || op->wanted || op->output_variables || changes_or_checks(op->def))
      continue;
    bool used = op->output_count == 0;
    for (uint32_t k = 0; k < op->output_count && !used; k++)
      used = op->outputs[k] != TFC_NONE && (read[op->outputs[k]] || ir->values.data[op->outputs[k]].fetched ||
                                            !tfc_dtype_is_plain(ir->values.data[op->outputs[k]].dtype));
    for (uint32_t k = 0; k < op->input_count && !used; k++) used = op->inputs[k].variable != TFC_NONE;
    if (used) continue;
    TFC_TRY(s, bridge(ir, (uint32_t)i));
    op = &ir->ops.data[i];
    for (uint32_t k = 0; k < op->input_count; k++)
      if (op->inputs[k].value != TFC_NONE) read[op->inputs[k].value]--;
    tfc_ir_replace(ir, (uint32_t)i, TFC_NONE);
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite unused_rows[] = {{"unused operations", 6, true, drop_unused}};
TFC_REWRITES(unused_rows);
