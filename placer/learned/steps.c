// Learns from whole steps. A step is as long as its critical path, so the derivative of the logarithm of its time by a
// parameter is the share of the path that this parameter multiplies. Also learns from traces which links share a wire.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/learned/private.h"

enum { MOST_STEPS = 160 };
static const double sd_step = 0.03,
                    sd_model =
                        0.05; // standard deviations of log(time): of one reading; of what the parameters cannot express

// Computes for each parameter the share of a critical path that it multiplies.
static void shares(const struct tfc_learned *l, const struct tfc_problem *world, const struct tfc_timeline *t,
                   const struct tfc_solution *solution, double arrival_us, double total, double *row) {
  memset(row, 0, l->dim * sizeof *row);
  for (uint32_t i = 0; i < t->path_count; i++) {
    const uint32_t item = t->path[i];
    if (item < t->node_count) {
      const uint32_t device = l->slot[(size_t)solution->device[l->problem->unit[item]] * l->problem->device_count];
      const double share = (double)(t->end[item] - t->start[item]) / total;
      row[0] += share, row[1 + device] += share, row[l->at_family + l->family[item]] += share;
      continue;
    }
    const struct tfc_transfer *x = &t->transfers[item - t->node_count];
    const struct tfc_pair *pair = tfc_problem_pair(world, x->from, x->to);
    const double whole = (double)(x->end - x->start), paid = fmin(whole, 1e6 * arrival_us);
    const double latency = fmax(0, fmin((double)pair->latency, whole) - paid), rest = whole - paid - latency;
    const uint32_t at = l->at_pairs + 2 * tfc_learned_pair(l, x->from, x->to);
    row[l->at_links] += latency / total, row[l->at_links + 1] += rest / total;
    row[at] += latency / total, row[at + 1] += rest / total;
    row[l->at_arrival] += 1e6 * l->arrival_unit_us / total;
  }
}

tfc_status tfc_learned_add_steps(struct tfc_learned *l, double *a, double *b) {
  tfc_status s = NULL;
  struct tfc_learned_world world = {0};
  struct tfc_simulator *simulator = NULL;
  struct tfc_timeline t = {0};
  double *row = malloc(l->dim * sizeof *row);
  uint32_t *at = malloc(l->dim * sizeof *at);
  double *x = malloc(l->dim * sizeof *x);
  if (!row || !at || !x) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_learned_build(l, l->problem, l->mean, NULL, &world));
  TFC_TRY(s, tfc_simulator_create(world.problem, &simulator));
  const double arrival_us = fmax(0, l->mean[l->at_arrival]) * l->arrival_unit_us;
  const size_t first = l->steps.count > MOST_STEPS ? l->steps.count - MOST_STEPS : 0;
  for (size_t i = first; i < l->steps.count; i++) {
    const struct tfc_learned_reading *r = &l->steps.data[i];
    double total = 0, y = 0;
    tfc_timeline_deinit(&t);
    t = (struct tfc_timeline){0};
    TFC_TRY(s, tfc_simulate_timeline(simulator, r->solution.device, r->solution.rank, &t));
    for (uint32_t n = 0; n < t.node_count; n++) total = fmax(total, (double)t.end[n]);
    if (!(total > 0)) continue;
    shares(l, world.problem, &t, &r->solution, arrival_us, total, row);
    y = r->log_us - log(1e-6 * total);
    uint32_t count = 0;
    for (uint32_t k = 0; k < l->dim; k++)
      if (row[k] != 0) at[count] = k, x[count++] = row[k], y += row[k] * l->mean[k];
    const double weight = 1 / (sd_model * sd_model + sd_step * sd_step / r->count);
    for (uint32_t k = 0; k < count; k++) {
      for (uint32_t m = 0; m < count; m++) a[(size_t)at[k] * l->dim + at[m]] += weight * x[k] * x[m];
      b[at[k]] += weight * x[k] * y;
    }
  }
out:
  free(row);
  free(at);
  free(x);
  tfc_timeline_deinit(&t);
  tfc_simulator_free(simulator);
  tfc_learned_world_deinit(&world);
  return s;
}

// --- Shared wires --------------------------------------------------------------------------------------------------
struct way {
  uint32_t pair;
  double ready, start, end;
};
static int by_start(const void *a, const void *b) {
  const double x = ((const struct way *)a)->start, y = ((const struct way *)b)->start;
  return (x > y) - (x < y);
}

tfc_status tfc_learned_watch_wires(struct tfc_learned *l, const struct tfc_learned_trace *trace) {
  tfc_status s = NULL;
  const struct tfc_problem *p = l->problem;
  const uint32_t pairs = tfc_learned_pair_count(p);
  if (p->device_count > TFC_LEARNED_MOST_PAIRED || l->alike) return NULL;
  struct way *ways = malloc((trace->transfer_count + 1u) * sizeof *ways);
  double *end = malloc((p->node_count + 1u) * sizeof *end), *last = malloc((pairs + 1u) * sizeof *last);
  uint32_t count = 0;
  if (!ways || !end || !last) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t n = 0; n < p->node_count; n++) end[n] = (double)NAN;
  for (uint32_t i = 0; i < pairs; i++) last[i] = -1;
  for (uint32_t i = 0; i < trace->operation_count; i++)
    end[trace->operations[i].node] = trace->operations[i].start_us + trace->operations[i].time_us;
  for (uint32_t i = 0; i < trace->transfer_count; i++) {
    const struct tfc_learned_transfer *x = &trace->transfers[i];
    const double ready = end[p->graph->producer[x->tensor]];
    if (isfinite(ready) && isfinite(x->start_us) && x->time_us > 0)
      ways[count++] = (struct way){tfc_learned_pair(l, x->from, x->to), ready, x->start_us, x->start_us + x->time_us};
  }
  qsort(ways, count, sizeof *ways, by_start);
  for (uint32_t i = 0; i < count; i++) { // last[pair]: the end of its last transfer so far
    const struct way *x = &ways[i];
    const double eps = 2e-3 + 1e-6 * x->start;
    for (uint32_t q = 0; q < pairs; q++) {
      if (q == x->pair || last[q] < 0) continue;
      if (last[q] > x->start + 0.1 * (x->end - x->start) + eps)
        l->overlapped[(size_t)x->pair * pairs + q]++;
      else if (fabs(last[q] - x->start) <= eps && x->ready < x->start - 10 * eps)
        l->shared[(size_t)x->pair * pairs + q]++;
    }
    last[x->pair] = fmax(last[x->pair], x->end);
  }
out:
  free(ways);
  free(end);
  free(last);
  return s;
}
