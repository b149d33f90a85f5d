// What can be had when a step begins, as the packed form of a weight, runs where its device would wait anyway, and not
// right before the first that needs it, for which others may be waiting by then.
//
// The order is simulated on estimates; an operation that rewrites made of variables and constants alone moves to the
// last wait before it that is long enough. Memory is planned afterwards.
#include <math.h>
#include <stdlib.h>

#include "runtime/exec/plan_internal.h"

static const double shortest_us = 20; // a wait that counts

struct filler {
  const struct tfc_ir *ir;
  const uint32_t *sequence;
  bool *waits;      // [op] for another operation
  double *idle;     // [position] for how long its device waits before it
  uint32_t *before; // [position] where it moves: right before the operation of that position
};

// Where the operation at position `i` had better run: the last wait of its device that is long enough; or i.
static uint32_t better_place(struct filler *f, uint32_t i, const uint32_t *wait, uint32_t last) {
  double us = f->ir->ops.data[f->sequence[i]].cost_us;
  for (uint32_t k = last, tries = 0; k != TFC_NONE32 && tries < 256; k = wait[k], tries++) {
    if (f->idle[k] < us) continue;
    f->idle[k] -= us;
    return k;
  }
  return i;
}

tfc_status tfc_order_fill_idle(const struct tfc_ir *ir, const struct tfc_order_graph *g, uint32_t *sequence,
                               uint32_t count) {
  tfc_status s = NULL;
  struct filler f = {.ir = ir, .sequence = sequence};
  uint32_t moves = 0, at = 0;
  double length_us;
  uint32_t *wait = malloc((count + 1) * sizeof *wait);   // [position] the wait of its device before this one
  uint32_t *moved = malloc((count + 1) * sizeof *moved); // [position] the first that moves to before it
  uint32_t *next = malloc((count + 1) * sizeof *next);   // [position] the next that moves to the same place
  uint32_t *last = malloc((ir->device_count + 1) * sizeof *last), *old = malloc((count + 1) * sizeof *old);
  f.waits = calloc(ir->ops.count + 1, sizeof *f.waits);
  f.idle = calloc(count + 1, sizeof *f.idle);
  f.before = malloc((count + 1) * sizeof *f.before);
  if (!wait || !moved || !next || !last || !old || !f.waits || !f.idle || !f.before)
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory planning a step");
  TFC_TRY(s, tfc_order_replay(ir, g, sequence, count, f.idle, f.waits, &length_us));
  for (uint32_t d = 0; d <= ir->device_count; d++) last[d] = TFC_NONE32;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[sequence[i]];
    uint16_t device = op->device;
    bool at_once = op->prepared && !op->joint && !f.waits[sequence[i]];
    f.before[i] = at_once ? better_place(&f, i, wait, last[device]) : i;
    moves += f.before[i] != i;
    moved[i] = TFC_NONE32;
    if (f.idle[i] < shortest_us) continue;
    wait[i] = last[device];
    last[device] = i;
  }
  if (!moves) goto out;
  memcpy(old, sequence, count * sizeof *old);
  for (uint32_t i = count; i-- > 0;) {
    if (f.before[i] == i) continue;
    next[i] = moved[f.before[i]];
    moved[f.before[i]] = i;
  }
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = moved[i]; k != TFC_NONE32; k = next[k]) sequence[at++] = old[k];
    if (f.before[i] == i) sequence[at++] = old[i];
  }
out:
  free(wait), free(moved), free(next), free(last), free(old);
  free(f.waits), free(f.idle), free(f.before);
  return s;
}
