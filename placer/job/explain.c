#include "placer/job/explain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/exact/bound.h"

// --- Lower bound ---------------------------------------------------------------------------------------------------
// Returns the shortest step that was measured for any placement. It may be another one's than the answer's, measured
// while the machine was faster.
static double least_us(const struct tfc_job_candidates *c, double least) {
  for (uint32_t i = 0; i < c->list.count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[i];
    if (!tfc_job_can_answer(k)) continue;
    least = fmin(least, fmin(k->median_us, tfc_job_final_us(k)));
  }
  return least;
}

tfc_status tfc_job_explain_bound(const struct tfc_job_candidates *c, const struct tfc_job_clock *clock,
                                 struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  const struct tfc_job_model *m = c->model;
  struct tfc_bound bound = {0};
  struct tfc_cost_graph *graph = NULL;
  struct tfc_machine *machine = NULL;
  struct tfc_problem *problem = NULL;
  // The bound is that of a problem in which each operation takes the fastest time that was ever seen, and dispatch,
  // slow-downs and links cost nothing.
  TFC_TRY(s, tfc_local_machine(m->info, NULL, m->o->execution.limits, m->o->execution.limit_count, &machine));
  TFC_TRY(s, tfc_subject_cost_graph(m->subject, m->costs, true, NULL, &graph));
  TFC_TRY(s, tfc_problem_create(graph, machine, m->o->request.objective, &problem));
  TFC_TRY(s, tfc_bound_compute(problem, NULL, &bound));
  tfc_bound_share_cores(&bound, m->info->device_count, m->info->whole.cores);
  const double us = 1e-6 * (double)bound.value;
  out->bound_us = us;
  out->bound_name = tfc_bound_name(bound.kind);
  const struct tfc_job_candidate *best = tfc_job_candidates_best(c);
  double value = !best                                                 ? (double)NAN
                 : m->o->request.objective == TFC_OBJECTIVE_THROUGHPUT ? tfc_job_load_us(best)
                                                                       : tfc_job_final_us(best);
  if (isfinite(value)) {
    out->gap = value / us - 1;
    if (m->o->request.objective == TFC_OBJECTIVE_STEP) value = least_us(c, value);
    if (us > value) {
      tfc_job_say(clock, true,
                  "the lower bound, %.1f us, is above what was measured, %.1f us: the cost model is wrong here", us,
                  value);
      out->bound_us = 0, out->bound_name = NULL, out->gap = (double)NAN;
    }
  }
out:
  tfc_problem_free(problem);
  tfc_cost_graph_free(graph);
  tfc_machine_free(machine);
  return s;
}

// --- Critical path and traffic -------------------------------------------------------------------------------------
struct share {
  tfc_str op;
  int64_t ps;
};
static int by_share(const void *a, const void *b) {
  const struct share *x = a, *y = b;
  return (x->ps < y->ps) - (x->ps > y->ps);
}

tfc_status tfc_job_explain_placement(const struct tfc_job_model *m, const struct tfc_job_candidate *k,
                                     struct tfc_job_outcome *out) {
  tfc_status s = NULL;
  struct tfc_timeline t = {0};
  struct share *share = NULL;
  struct tfc_text text = {0};
  uint32_t devices = m->info->device_count, count = 0;
  out->peak = calloc(devices + 1u, sizeof *out->peak);
  out->limit = calloc(devices + 1u, sizeof *out->limit);
  out->crossing = calloc((size_t)devices * devices + 1, sizeof *out->crossing);
  if (!out->peak || !out->limit || !out->crossing) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t d = 0; d < devices; d++) {
    out->peak[d] = k->peak ? k->peak[d] : 0;
    out->peak_part |= k->peak_part && out->peak[d] > 0;
    out->limit[d] = m->bare->devices[d].memory;
  }
  TFC_TRY(s, tfc_simulate_timeline(m->simulator, k->solution.device, k->solution.rank, &t));
  out->crossing_modelled = k->crossing == NULL;
  if (k->crossing) memcpy(out->crossing, k->crossing, (size_t)devices * devices * sizeof *k->crossing);
  for (uint32_t i = 0; i < t.transfer_count && !k->crossing; i++)
    out->crossing[(size_t)t.transfers[i].from * devices + t.transfers[i].to] +=
        m->problem->graph->bytes[t.transfers[i].tensor];
  if (!(share = calloc(t.path_count + 1u, sizeof *share))) TFC_TRY(s, tfc_status_no_memory(NULL));
  int64_t total = 0;
  for (uint32_t i = 0; i < t.path_count; i++) {
    uint32_t item = t.path[i];
    bool node = item < t.node_count;
    const struct tfc_transfer *x = node ? NULL : &t.transfers[item - t.node_count];
    tfc_str op = node ? m->o->graph->nodes[m->subject->node_of[item]].op : TFC_STR("transfers");
    int64_t ps = node ? t.end[item] - t.start[item] : x->end - x->start;
    uint32_t n = 0;
    while (n < count && !tfc_str_equal(share[n].op, op)) n++;
    if (n == count) share[count++].op = op;
    share[n].ps += ps;
    total += ps;
  }
  qsort(share, count, sizeof *share, by_share);
  for (uint32_t i = 0; i < count && i < 6 && total > 0; i++)
    tfc_text_printf(&text, "%s%.*s %.0f %%", i ? ", " : "", TFC_STR_ARG(share[i].op),
                    100 * (double)share[i].ps / (double)total);
  out->path = text.data, text.data = NULL;
out:
  tfc_text_deinit(&text);
  free(share);
  tfc_timeline_deinit(&t);
  return s;
}
