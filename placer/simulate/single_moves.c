#include "placer/simulate/single_moves.h"

#include <stdlib.h>

#include "placer/simulate/simulate.h"
#include "profiler/store_rows.h"

enum { MOST_SIMULATED = 4000000, LEAST_SIMULATIONS = 16 };

struct trial { // a unit of the critical path
  uint32_t unit;
  int64_t time; // ps that the path spends in its nodes
};

static int longest_first(const void *a, const void *b) {
  const struct trial *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? 1 : -1;
  return (x->unit > y->unit) - (x->unit < y->unit);
}

static int most_won(const void *a, const void *b) {
  const struct tfc_single_move *x = a, *y = b;
  if (x->won != y->won) return x->won < y->won ? 1 : -1;
  return (x->unit > y->unit) - (x->unit < y->unit);
}

// Sets trials[unit_count] to the units of the path, in the order in which they are tried.
static uint32_t units_of_path(const struct tfc_problem *p, const struct tfc_timeline *t, struct trial *trials) {
  uint32_t count = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) trials[u] = (struct trial){u, 0};
  for (uint32_t i = 0; i < t->path_count; i++)
    if (t->path[i] < t->node_count) trials[p->unit[t->path[i]]].time += t->end[t->path[i]] - t->start[t->path[i]];
  qsort(trials, p->unit_count, sizeof *trials, longest_first);
  while (count < p->unit_count && trials[count].time > 0) count++;
  return count;
}

static uint32_t longest_node(const struct tfc_problem *p, uint32_t unit, uint32_t device) {
  uint32_t longest = p->member[p->first_member[unit]];
  for (uint32_t m = p->first_member[unit]; m < p->first_member[unit + 1]; m++)
    if (tfc_problem_time(p, p->member[m], device) > tfc_problem_time(p, longest, device)) longest = p->member[m];
  return longest;
}

tfc_status tfc_single_moves_find(const struct tfc_problem *p, const struct tfc_solution *solution,
                                 struct tfc_single_moves *out) {
  tfc_status s = NULL;
  struct tfc_simulator *simulator = NULL;
  struct tfc_timeline timeline = {0};
  struct tfc_verdict now = {0};
  struct tfc_solution moved = {0};
  struct trial *trials = calloc(p->unit_count + 1u, sizeof *trials);
  uint32_t left = MOST_SIMULATED / (p->node_count + 1u);
  *out = (struct tfc_single_moves){0};
  if (left < LEAST_SIMULATIONS) left = LEAST_SIMULATIONS;
  if (!trials) {
    s = tfc_status_no_memory("what to move");
    goto out;
  }
  TFC_TRY(s, tfc_simulator_create(p, &simulator));
  TFC_TRY(s, tfc_solution_copy(&moved, solution, p));
  tfc_simulate(simulator, moved.device, moved.rank, TFC_TIME_MAX, &now);
  out->value = now.value;
  if (!now.legal || p->device_count < 2) goto out;
  TFC_TRY(s, tfc_simulate_timeline(simulator, moved.device, moved.rank, &timeline));
  free(moved.rank);
  moved.rank = timeline.sequence, timeline.sequence = NULL;
  const uint32_t count = units_of_path(p, &timeline, trials);
  for (uint32_t i = 0; i < count && left > 0; i++, out->tried++) {
    const uint32_t unit = trials[i].unit;
    const tfc_device_id from = moved.device[unit];
    struct tfc_single_move best = {.unit = unit,
                                   .nodes = p->first_member[unit + 1] - p->first_member[unit],
                                   .node = longest_node(p, unit, from),
                                   .from = from};
    for (uint32_t d = 0; d < p->device_count; d++) {
      struct tfc_verdict then = {0};
      if (d == from || !tfc_problem_allows(p, unit, d)) continue;
      left -= left > 0; // a unit is tried on all devices
      moved.device[unit] = (tfc_device_id)d;
      tfc_simulate(simulator, moved.device, moved.rank, now.value - best.won, &then);
      if (then.legal && !then.cut && then.excess <= now.excess && now.value - then.value > best.won)
        best.won = now.value - then.value, best.to = (tfc_device_id)d;
    }
    moved.device[unit] = from;
    if (best.won > 0 && !tfc_array_push(&out->list, best)) {
      s = tfc_status_no_memory("what to move");
      goto out;
    }
  }
  if (out->list.count) qsort(out->list.data, out->list.count, sizeof *out->list.data, most_won);
out:
  tfc_timeline_deinit(&timeline);
  tfc_solution_deinit(&moved);
  tfc_simulator_free(simulator);
  free(trials);
  return s;
}

tfc_status tfc_single_moves_write(const struct tfc_single_moves *moves, const struct tfc_problem *named,
                                  const uint32_t *ids, struct tfc_store *store, int64_t key) {
  if (moves->value == TFC_TIME_MAX) return NULL; // nothing was tried
  TFC_RETURN_IF_ERROR(tfc_store_add_moves_tried(store, key, moves->tried, 1e-6 * (double)moves->value));
  for (size_t i = 0; i < moves->list.count; i++) {
    const struct tfc_single_move *m = &moves->list.data[i];
    const struct tfc_store_move row = {named->unit[m->node], ids ? ids[m->node] : m->node, m->nodes, m->from, m->to,
                                       1e-6 * (double)m->won};
    TFC_RETURN_IF_ERROR(tfc_store_add_moves(store, key, &row, 1));
  }
  return NULL;
}

void tfc_single_moves_deinit(struct tfc_single_moves *moves) {
  tfc_array_free(&moves->list);
}
