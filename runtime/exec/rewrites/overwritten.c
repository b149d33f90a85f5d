// Allows a SoftmaxCrossEntropyWithLogits on CPU devices to compute its second output in the memory of its first input:
// the kernel reads a row of logits before it writes the row of their gradient.
#include "runtime/exec/rewrites/rewrite.h"

static tfc_status overwrite(struct tfc_ir *ir) {
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || op->prepared || op->in_place || !op->def || op->output_count != 2) continue;
    if (op->def->role != TFC_ROLE_CROSS_ENTROPY) continue;
    const struct tfc_device_driver *driver = ir->devices[op->device]->driver;
    if (!driver->host_kernels) continue;
    if (ir->values.data[op->inputs[0].value].dtype != TFC_FLOAT) continue;
    uint32_t *in_place = TFC_ARENA_ARRAY(&ir->arena, uint32_t, 2);
    if (!in_place) return tfc_status_no_memory("planning a step");
    in_place[0] = 0, in_place[1] = 1;
    op->in_place = in_place;
  }
  return NULL;
}

static const struct tfc_rewrite rows[] = {{"overwritten inputs", 70, true, overwrite}};
TFC_REWRITES(rows);
