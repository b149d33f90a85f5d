// Rivals: simulates the placements that exist without a search (the expert's device strings, the user's files, the
// heuristics), and measures the best of them.
#include "placer/job/rivals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/turns.h"
#include "placer/model/placement_json.h"
#include "runtime/base/units.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

enum { RIVALS_MEASURED = 3 };

static tfc_status add_rival(struct tfc_job_measuring *t, const char *name, const struct tfc_solution *solution,
                            const char *role, uint32_t *list, uint32_t *count) {
  bool is_new = false;
  for (uint32_t i = 0; i < t->candidates->list.count; i++) // does nothing if a resumed run has this candidate already
    if (strcmp(t->candidates->list.data[i].name, name) == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_job_candidates_add(t->candidates, name, NULL, role, solution, &list[*count], &is_new));
  if (is_new) ++*count;
  return NULL;
}

static tfc_status add_expert(struct tfc_job_measuring *t, uint32_t *list, uint32_t *count) {
  struct tfc_solution solution = {0};
  char *note = NULL;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_solution_init(&solution, t->model->problem));
  s = tfc_subject_strings(t->model->subject, t->model->problem, t->model->o->graph, &solution, &note);
  if (s) {
    tfc_job_say(t->clock, tfc_status_code(s) != TFC_NOT_FOUND, "no expert: %s", tfc_status_message(s));
    tfc_status_free(s);
    s = NULL;
    goto out;
  }
  if (note) tfc_job_say(t->clock, true, "expert: device strings mapped to the devices in use: %s", note);
  TFC_TRY(s, add_rival(t, "expert", &solution, "baseline", list, count));
out:
  free(note);
  tfc_solution_deinit(&solution);
  return s;
}

static tfc_status add_file(struct tfc_job_measuring *t, const char *text, uint32_t *list, uint32_t *count) {
  struct tfc_solution solution = {0};
  struct tfc_placement *placement = NULL;
  struct tfc_graph *graph = NULL;
  tfc_status s = NULL;
  const char *equals = strchr(text, '=');
  char *name = NULL;
  if (!equals) return tfc_status_make(TFC_INVALID_ARGUMENT, "baseline '%s' is not NAME=FILE", text);
  if (!(name = tfc_str_dup((tfc_str){text, (size_t)(equals - text)}))) return tfc_status_no_memory(NULL);
  TFC_TRY(s, tfc_solution_init(&solution, t->model->problem));
  if (tfc_str_ends(tfc_str_from(text), ".json")) {
    TFC_TRY(s, tfc_placement_read(equals + 1, &placement));
    tfc_job_model_compare_math(t->model, t->clock, equals + 1, placement);
    TFC_TRY(s, tfc_subject_resolve(t->model->subject, t->model->problem, placement, &solution));
  } else {
    TFC_TRY(s, tfc_graph_load(equals + 1, NULL, &graph));
    TFC_TRY(s, tfc_lower_loaded(&graph));
    TFC_TRY(s, tfc_subject_strings(t->model->subject, t->model->problem, graph, &solution, NULL));
  }
  TFC_TRY(s, add_rival(t, name, &solution, "baseline", list, count));
out:
  free(name);
  tfc_placement_free(placement);
  tfc_graph_release(graph);
  tfc_solution_deinit(&solution);
  return tfc_status_annotate(s, "baseline %s", text);
}

static int by_value(const void *a, const void *b) {
  const double *x = a, *y = b;
  return (x[0] > y[0]) - (x[0] < y[0]);
}

// Returns how many heuristics there is time to measure in addition to the rivals that must be measured. After four
// tenths of the job the time belongs to the search, which usually finds better placements than any heuristic.
static uint32_t measured_heuristics(const struct tfc_job_measuring *t, uint32_t must) {
  double step_us = INFINITY,
         left = tfc_job_until(t->schedule, tfc_job_shares.heuristics_until) - tfc_job_seconds(t->clock);
  for (uint32_t i = 0; i < t->candidates->list.count; i++)
    if (t->candidates->list.data[i].single && t->candidates->list.data[i].median_us < step_us)
      step_us = t->candidates->list.data[i].median_us;
  double fit =
      // five steps each: two to adapt, one to warm up, two timed; after these a slower one is stopped
      left / (5e-6 * step_us) - must;
  return fit >= RIVALS_MEASURED ? RIVALS_MEASURED : fit > 1 ? (uint32_t)fit : left > 0 ? 1 : 0;
}

// Simulates the heuristics, and measures the best ones that differ from each other.
static tfc_status add_heuristics(struct tfc_job_measuring *t, struct tfc_job_proposers *proposers, uint32_t *list,
                                 uint32_t *count) {
  tfc_status s = NULL;
  double(*order)[2] = NULL;
  uint32_t first = (uint32_t)t->candidates->list.count;
  for (const struct tfc_algo *const *a = tfc_algos(); *a; a++) {
    struct tfc_search_outcome outcome = {0};
    bool is_new;
    uint32_t index;
    if ((*a)->needs & (TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET | TFC_NEEDS_SMALL | TFC_NEEDS_THROUGHPUT)) continue;
    if (strcmp((*a)->name, "single") == 0 || strcmp((*a)->name, "random") == 0) continue;
    if (tfc_job_cancelled(t->clock)) return tfc_status_make(TFC_CANCELLED, "interrupted");
    for (uint32_t i = 0; i < first; i++)
      if (strcmp(t->candidates->list.data[i].name, (*a)->name) == 0) goto next;
    struct tfc_search_options options = {.settings.algorithms = (*a)->name,
                                         .seconds = tfc_job_until(t->schedule, tfc_job_shares.heuristic),
                                         .seed = (uint64_t)t->model->o->execution.seed,
                                         .threads = (uint32_t)t->model->o->execution.threads,
                                         .cancel = t->model->o->cancel};
    struct tfc_solution fine = {0};
    if (!tfc_job_proposers_may_search(proposers, t->model->o->evaluations, 0, &options.evaluations)) break;
    s = tfc_search(tfc_job_model_search_problem(t->model), &options, &outcome);
    tfc_job_proposers_simulated(proposers, outcome.evaluations);
    if (!s && outcome.best.device && outcome.value < TFC_TIME_MAX && outcome.excess == 0) {
      s = tfc_job_model_found(t->model, &outcome.best, &fine);
      if (!s) s = tfc_job_candidates_add(t->candidates, (*a)->name, (*a)->name, "heuristic", &fine, &index, &is_new);
      if (fine.device) tfc_solution_deinit(&fine);
    }
    if (s) tfc_job_say(t->clock, true, "%s: %s", (*a)->name, tfc_status_message(s));
    if (s && tfc_status_code(s) == TFC_FAILED_PRECONDITION) tfc_status_free(s), s = NULL;
    tfc_search_outcome_deinit(&outcome);
    if (s) return s;
  next:;
  }
  uint32_t n = (uint32_t)t->candidates->list.count - first;
  if (!(order = calloc(n + 1u, sizeof *order))) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < n; i++)
    order[i][0] = t->candidates->list.data[first + i].simulated_us, order[i][1] = first + i;
  qsort(order, n, sizeof *order, by_value);
  uint32_t taken = 0, most = measured_heuristics(t, *count);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = (uint32_t)order[i][1];
    bool twin = false;
    for (uint32_t e = 0; e < t->candidates->list.count; e++)
      twin |= e != k && t->candidates->list.data[e].digest == t->candidates->list.data[k].digest &&
              t->candidates->list.data[e].solution.device &&
              (e < first || isfinite(t->candidates->list.data[e].median_us));
    for (uint32_t e = 0; e < *count; e++)
      twin |= t->candidates->list.data[list[e]].digest == t->candidates->list.data[k].digest;
    if (twin || taken == most) {
      TFC_TRY(s, tfc_job_journal_modelled(t->journal, t->candidates, k));
      continue;
    }
    list[(*count)++] = k;
    taken++;
  }
out:
  free(order);
  return s;
}

tfc_status tfc_job_rivals(struct tfc_job_measuring *t, struct tfc_job_proposers *proposers) {
  tfc_status s = NULL;
  const struct tfc_job_options *o = t->model->o;
  struct tfc_job_candidates *c = t->candidates;
  uint32_t list[64], count = 0;
  for (uint32_t i = 0; i < c->list.count; i++)
    if (c->list.data[i].single && c->best == TFC_NONE) tfc_job_candidates_consider(c, i);
  const uint32_t former = c->best; // a single device, or the incumbent of the run that is resumed
  if (o->request.device_strings == TFC_STRINGS_BASELINE) TFC_TRY(s, add_expert(t, list, &count));
  for (uint32_t i = 0; i < o->request.baselines.count && count < 32; i++)
    TFC_TRY(s, add_file(t, o->request.baselines.items[i], list, &count));
  if (t->model->info->device_count > 1) TFC_TRY(s, add_heuristics(t, proposers, list, &count));
  if (count == 0) goto out;
  // the first batch has no reference: it would be a single device, which takes too long to be run again
  tfc_job_candidates_lead(c, TFC_NONE);
  tfc_job_limit_batches(t->schedule, tfc_job_until(t->schedule, tfc_job_shares.rivals));
  s = tfc_job_turns_measure(t, list, count, false);
  tfc_job_limit_batches(t->schedule, 0);
  tfc_job_candidates_choose_by_median(c); // after an interruption, too: what was measured before it can be the answer
  if (c->best == TFC_NONE) tfc_job_candidates_lead(c, former);
  if (s) goto out;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[list[i]];
    char a[32], b[32];
    if (isfinite(k->median_us))
      tfc_job_say(t->clock, false, "%s: %s a step (simulated %s)%s", k->name, tfc_show_us(a, k->median_us),
                  tfc_show_us(b, k->simulated_us), k->state == TFC_RESULT_CUT ? ", stopped" : "");
    else if (k->note)
      tfc_job_say(t->clock, true, "%s: %s", k->name, k->note);
  }
out:
  return s ? s : tfc_job_journal_rebuild(t->journal, t->model);
}
