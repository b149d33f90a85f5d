// Removes repetitions (Tile or BroadcastTo, say in the gradient of a sum or a mean) whose only reader combines the
// repeated tensor with a tensor of the full shape: that reader broadcasts the small tensor itself. The results are
// bit-identical.
#include "runtime/exec/rewrites/rewrite.h"

static bool broadcasts(const struct tfc_ir_op *op) {
  if (op->dead || op->joint || op->prepared || !op->def || op->input_count != 2 || op->output_count != 1) return false;
  return op->outputs[0] != TFC_NONE && op->def->broadcasts;
}

// Returns the tensor that `input` repeats along dimensions of size 1, or NULL if it repeats none. waits: [ops] an
// ordering edge ends there; what the repetition waits for its reader has to wait for, too.
static const struct tfc_ir_input *unrepeated(const struct tfc_ir *ir, const bool *waits,
                                             const struct tfc_ir_input *input) {
  if (input->value == TFC_NONE || input->view || input->variable != TFC_NONE) return NULL;
  const struct tfc_ir_value *v = &ir->values.data[input->value];
  if (v->kind != TFC_IR_OP || v->op == TFC_NONE) return NULL;
  const struct tfc_ir_op *made = &ir->ops.data[v->op];
  if (made->dead || made->prepared || !made->def || waits[v->op]) return NULL;
  if (made->def->role != TFC_ROLE_REPEATS) return NULL;
  const struct tfc_ir_input *from = &made->inputs[0];
  if (from->value == TFC_NONE || from->variable != TFC_NONE) return NULL;
  // A variable may be updated before this operation runs.
  if (ir->values.data[from->value].kind == TFC_IR_VARIABLE) return NULL;
  const struct tfc_shape *a = tfc_ir_shape(ir, from), *b = &v->shape;
  if (!tfc_shape_is_static(a) || !tfc_shape_is_static(b) || a->rank > b->rank) return NULL;
  for (int i = 1; i <= a->rank; i++)
    if (a->dims[a->rank - i] != 1 && a->dims[a->rank - i] != b->dims[b->rank - i]) return NULL;
  return from;
}

static tfc_status read_unrepeated(struct tfc_ir *ir) {
  tfc_status s = NULL;
  struct tfc_arena arena = {0};
  bool *waits = NULL;
  TFC_TRY(s, tfc_ir_waits(ir, &arena, &waits));
  for (size_t i = 0; i < ir->ops.count; i++) {
    struct tfc_ir_op *op = &ir->ops.data[i];
    if (!broadcasts(op)) continue;
    const struct tfc_device_driver *driver = ir->devices[op->device]->driver;
    if (!driver->host_kernels && !driver->chains) continue;
    const struct tfc_shape *whole = &ir->values.data[op->outputs[0]].shape;
    for (uint32_t k = 0; k < 2; k++) {
      const struct tfc_ir_input *from = unrepeated(ir, waits, &op->inputs[k]);
      struct tfc_shape together;
      if (!from || !tfc_shape_is_static(tfc_ir_shape(ir, &op->inputs[!k]))) continue;
      TFC_TRY(s, tfc_shape_broadcast(tfc_ir_shape(ir, from), tfc_ir_shape(ir, &op->inputs[!k]), &together));
      if (tfc_shape_equal(&together, whole)) op->inputs[k] = *from;
    }
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

// Rank 4: this runs before the rewrite that removes operations without readers (unused.c).
static const struct tfc_rewrite rows[] = {{"repeated tensors", 4, true, read_unrepeated}};
TFC_REWRITES(rows);
