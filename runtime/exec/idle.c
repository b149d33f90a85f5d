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
  uint32_t count;
  double *end;                 // [op]
  double *free_at;             // [device]
  double *idle;                // [position] for how long its device waits before it
  uint32_t *first_edge, *edge; // ordering edges into an operation, CSR
  uint32_t *before;            // [position] where it moves: right before the operation of that position
};

// The rule of the simulation: a tensor between devices takes 5 µs and 10 GB/s.
static void simulate(struct filler *f) {
  const struct tfc_ir *ir = f->ir;
  for (uint32_t i = 0; i < f->count; i++) {
    uint32_t id = f->sequence[i];
    const struct tfc_ir_op *op = &ir->ops.data[id];
    double start = 0;
    for (uint32_t k = f->first_edge[id]; k < f->first_edge[id + 1]; k++) start = fmax(start, f->end[f->edge[k]]);
    for (uint32_t k = 0; k < op->input_count; k++) {
      uint32_t v = op->inputs[k].value, from = v == TFC_NONE32 ? TFC_NONE32 : ir->values.data[v].op;
      if (from == TFC_NONE32) continue;
      bool away = !op->joint && !ir->ops.data[from].joint && ir->ops.data[from].device != op->device;
      start = fmax(start, f->end[from] + (away ? 5 + (double)ir->values.data[v].bytes / 10e3 : 0));
    }
    f->end[id] = start;
    if (op->joint) continue;
    f->idle[i] = fmax(0, start - f->free_at[op->device]);
    f->end[id] = f->free_at[op->device] = fmax(start, f->free_at[op->device]) + op->cost_us;
  }
}

static bool can_begin_at_once(const struct filler *f, uint32_t id) {
  const struct tfc_ir_op *op = &f->ir->ops.data[id];
  if (!op->prepared || op->joint || f->first_edge[id + 1] > f->first_edge[id]) return false;
  for (uint32_t k = 0; k < op->input_count; k++) {
    uint32_t v = op->inputs[k].value;
    if (v != TFC_NONE32 && f->ir->values.data[v].op != TFC_NONE32) return false;
  }
  return true;
}

static tfc_status gather_edges(struct filler *f) {
  const struct tfc_ir *ir = f->ir;
  size_t n = ir->ops.count;
  f->first_edge = calloc(n + 2, sizeof *f->first_edge);
  f->edge = malloc((ir->edges.count + 1) * sizeof *f->edge);
  if (!f->first_edge || !f->edge) return TFC_PLAN_NO_MEMORY();
  for (int pass = 0; pass < 2; pass++) {
    for (size_t k = 0; k < ir->edges.count; k++) {
      struct tfc_ir_edge e = ir->edges.data[k];
      if (ir->ops.data[e.from].dead || ir->ops.data[e.to].dead) continue;
      if (pass == 0)
        f->first_edge[e.to + 1]++;
      else
        f->edge[f->first_edge[e.to]++] = e.from;
    }
    for (size_t i = 0; pass == 0 && i < n; i++) f->first_edge[i + 1] += f->first_edge[i];
  }
  memmove(f->first_edge + 1, f->first_edge, n * sizeof *f->first_edge); // each now is where the next one begins
  f->first_edge[0] = 0;
  return NULL;
}

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

tfc_status tfc_order_fill_idle(const struct tfc_ir *ir, uint32_t *sequence, uint32_t count) {
  tfc_status s = NULL;
  struct filler f = {.ir = ir, .sequence = sequence, .count = count};
  uint32_t moves = 0, at = 0;
  uint32_t *wait = malloc((count + 1) * sizeof *wait);   // [position] the wait of its device before this one
  uint32_t *moved = malloc((count + 1) * sizeof *moved); // [position] the first that moves to before it
  uint32_t *next = malloc((count + 1) * sizeof *next);   // [position] the next that moves to the same place
  uint32_t *last = malloc((ir->device_count + 1) * sizeof *last), *old = malloc((count + 1) * sizeof *old);
  f.end = calloc(ir->ops.count + 1, sizeof *f.end);
  f.idle = calloc(count + 1, sizeof *f.idle);
  f.free_at = calloc(ir->device_count + 1, sizeof *f.free_at);
  f.before = malloc((count + 1) * sizeof *f.before);
  if (!wait || !moved || !next || !last || !old || !f.end || !f.idle || !f.free_at || !f.before)
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory planning a step");
  TFC_TRY(s, gather_edges(&f));
  simulate(&f);
  for (uint32_t d = 0; d <= ir->device_count; d++) last[d] = TFC_NONE32;
  for (uint32_t i = 0; i < count; i++) {
    uint16_t device = ir->ops.data[sequence[i]].device;
    f.before[i] = can_begin_at_once(&f, sequence[i]) ? better_place(&f, i, wait, last[device]) : i;
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
  free(f.end), free(f.idle), free(f.free_at), free(f.before), free(f.first_edge), free(f.edge);
  return s;
}
