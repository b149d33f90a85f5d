// Moves work that depends on nothing in the step, such as packing a weight, to a moment when its device would be idle.
// Otherwise it would run directly before its first reader, where it may be on the critical path.
//
// The order is simulated with estimated times. An operation that was added by a rewrite and depends only on variables
// and constants moves to the last wait before it that is long enough. Memory is planned afterwards.
#include <math.h>
#include <stdlib.h>

#include "runtime/exec/plan/idle.h"
#include "runtime/exec/plan/plan_internal.h"

static const double shortest_us = 20; // shorter waits are ignored

struct filler {
  const struct tfc_ir *ir;
  const uint32_t *sequence;
  bool *waits;      // [op] for another operation
  bool *at_once;    // [op] it can run when the step begins, or as soon as the operations that it continues have run
  double *idle;     // [position] how long its device waits before it
  uint32_t *wait;   // [position] the last position before it at which its device waits
  uint32_t *before; // [position] the position before which the operation moves
  // [op] a position that it must stay before, because the operation there continues it (adds to its result); TFC_NONE:
  // it has no such limit.
  uint32_t *at_most;
};

// Returns the position to which the operation at `i` should move: the last wait of its device that is long enough, or
// `i` if there is none.
static uint32_t better_place(struct filler *f, uint32_t i) {
  double us = f->ir->ops.data[f->sequence[i]].cost_us;
  uint32_t most = f->at_most[f->sequence[i]], end = most < i ? most : i, tries = 0;
  for (uint32_t k = end < i && f->idle[end] >= shortest_us ? end : f->wait[end]; k != TFC_NONE && tries < 256;
       k = f->wait[k], tries++) {
    if (f->idle[k] < us) continue;
    f->idle[k] -= us;
    return k;
  }
  return end;
}

static uint32_t goes_on_with(const struct tfc_ir *ir, const struct tfc_ir_op *op) {
  return op->goes_on ? ir->values.data[op->inputs[op->input_count - 1].value].op : TFC_NONE;
}

tfc_status tfc_order_fill_idle(const struct tfc_ir *ir, const struct tfc_order_graph *g, uint32_t *sequence,
                               uint32_t count) {
  tfc_status s = NULL;
  struct filler f = {.ir = ir, .sequence = sequence};
  uint32_t moves = 0, at = 0;
  double length_us;
  // [position] the first operation that moves to directly before it
  uint32_t *moved = malloc((count + 1) * sizeof *moved);
  uint32_t *next = malloc((count + 1) * sizeof *next); // [position] the next operation that moves to the same position
  uint32_t *last = malloc((ir->device_count + 1) * sizeof *last), *old = malloc((count + 1) * sizeof *old);
  f.waits = calloc(ir->ops.count + 1, sizeof *f.waits);
  f.at_once = calloc(ir->ops.count + 1, sizeof *f.at_once);
  f.at_most = malloc((ir->ops.count + 1) * sizeof *f.at_most);
  f.idle = calloc(count + 1, sizeof *f.idle);
  f.wait = malloc((count + 1) * sizeof *f.wait);
  f.before = malloc((count + 1) * sizeof *f.before);
  if (!moved || !next || !last || !old || !f.waits || !f.at_once || !f.at_most || !f.idle || !f.wait || !f.before)
    TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, tfc_order_replay(ir, g, sequence, count, f.idle, f.waits, &length_us));
  for (uint32_t d = 0; d <= ir->device_count; d++) last[d] = TFC_NONE;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[sequence[i]];
    uint32_t begun = goes_on_with(ir, op);
    f.at_once[sequence[i]] =
        op->prepared && !op->joint && (begun == TFC_NONE ? !f.waits[sequence[i]] : f.at_once[begun]);
    f.at_most[sequence[i]] = TFC_NONE;
    moved[i] = TFC_NONE;
    f.wait[i] = last[op->device];
    if (f.idle[i] >= shortest_us) last[op->device] = i;
  }
  for (uint32_t i = count; i-- > 0;) { // goes backwards, because an operation that continues another one comes after it
    const struct tfc_ir_op *op = &ir->ops.data[sequence[i]];
    f.before[i] = f.at_once[sequence[i]] ? better_place(&f, i) : i;
    moves += f.before[i] != i;
    uint32_t begun = goes_on_with(ir, op);
    if (begun != TFC_NONE && f.before[i] != i) f.at_most[begun] = f.before[i];
  }
  if (!moves) goto out;
  memcpy(old, sequence, count * sizeof *old);
  for (uint32_t i = count; i-- > 0;) {
    if (f.before[i] == i) continue;
    next[i] = moved[f.before[i]];
    moved[f.before[i]] = i;
  }
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = moved[i]; k != TFC_NONE; k = next[k]) sequence[at++] = old[k];
    if (f.before[i] == i) sequence[at++] = old[i];
  }
out:
  free(moved), free(next), free(last), free(old);
  free(f.waits), free(f.at_once), free(f.at_most), free(f.idle), free(f.wait), free(f.before);
  return s;
}
