// Rivals: the expert's device strings, the user's files, the heuristics; the best are measured.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "runtime/base/units.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

enum { RIVALS_MEASURED = 3 };

static tfc_status add_rival(struct tfc_job *j, const char *name, const struct tfc_solution *solution, const char *role,
                            uint32_t *list, uint32_t *count) {
  bool is_new = false;
  for (uint32_t i = 0; i < j->known.count; i++) // a resumed run has it already
    if (strcmp(j->known.data[i].name, name) == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_job_add(j, name, NULL, role, solution, &list[*count], &is_new));
  if (is_new) ++*count;
  return NULL;
}

static tfc_status add_expert(struct tfc_job *j, uint32_t *list, uint32_t *count) {
  struct tfc_solution solution = {0};
  char *note = NULL;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_solution_init(&solution, j->problem));
  s = tfc_subject_strings(j->subject, j->problem, j->o->graph, &solution, &note);
  if (s) {
    tfc_job_say(j, tfc_status_code(s) != TFC_NOT_FOUND, "no expert: %s", tfc_status_message(s));
    tfc_status_free(s);
    s = NULL;
    goto out;
  }
  if (note) tfc_job_say(j, true, "expert: device strings mapped to the devices in use: %s", note);
  TFC_TRY(s, add_rival(j, "expert", &solution, "baseline", list, count));
out:
  free(note);
  tfc_solution_deinit(&solution);
  return s;
}

static tfc_status add_file(struct tfc_job *j, const char *text, uint32_t *list, uint32_t *count) {
  struct tfc_solution solution = {0};
  struct tfc_placement *placement = NULL;
  struct tfc_graph *graph = NULL;
  tfc_status s = NULL;
  const char *equals = strchr(text, '=');
  char *name = NULL;
  if (!equals) return tfc_status_make(TFC_INVALID_ARGUMENT, "baseline '%s' is not NAME=FILE", text);
  if (!(name = tfc_str_dup((tfc_str){text, (size_t)(equals - text)})))
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_solution_init(&solution, j->problem));
  if (tfc_str_ends(tfc_str_from(text), ".json")) {
    TFC_TRY(s, tfc_placement_read(equals + 1, &placement));
    tfc_job_compare_math(j, equals + 1, placement);
    TFC_TRY(s, tfc_subject_resolve(j->subject, j->problem, placement, &solution));
  } else {
    TFC_TRY(s, tfc_graph_load(equals + 1, NULL, &graph));
    TFC_TRY(s, tfc_lower_loaded(&graph));
    TFC_TRY(s, tfc_subject_strings(j->subject, j->problem, graph, &solution, NULL));
  }
  TFC_TRY(s, add_rival(j, name, &solution, "baseline", list, count));
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

// How many heuristics there is time to measure beside the rivals that must be: what is not gone at four tenths of it is
// the search's, which has more to offer than any of them where those are over already.
static uint32_t measured_heuristics(const struct tfc_job *j, uint32_t must) {
  double step_us = INFINITY, left = 0.4 * tfc_job_total_seconds(j) - tfc_job_seconds(j);
  for (uint32_t i = 0; i < j->known.count; i++)
    if (j->known.data[i].single && j->known.data[i].median_us < step_us) step_us = j->known.data[i].median_us;
  double fit =
      left / (5e-6 * step_us) - must; // two to adapt, one to warm up, two that are timed: that stops what is slower
  return fit >= RIVALS_MEASURED ? RIVALS_MEASURED : fit > 1 ? (uint32_t)fit : left > 0 ? 1 : 0;
}

// The heuristics by simulation; the best of them, as far as they differ, are measured.
static tfc_status add_heuristics(struct tfc_job *j, uint32_t *list, uint32_t *count) {
  tfc_status s = NULL;
  double(*order)[2] = NULL;
  uint32_t first = (uint32_t)j->known.count;
  for (const struct tfc_algo *const *a = tfc_algos(); *a; a++) {
    struct tfc_search_outcome outcome = {0};
    bool is_new;
    uint32_t index;
    if ((*a)->needs & (TFC_NEEDS_EVALUATOR | TFC_NEEDS_BUDGET | TFC_NEEDS_SMALL | TFC_NEEDS_THROUGHPUT)) continue;
    if (strcmp((*a)->name, "single") == 0 || strcmp((*a)->name, "random") == 0) continue;
    if (tfc_job_cancelled(j)) return tfc_status_make(TFC_CANCELLED, "interrupted");
    for (uint32_t i = 0; i < first; i++)
      if (strcmp(j->known.data[i].name, (*a)->name) == 0) goto next;
    struct tfc_search_options options = {.algorithms = (*a)->name,
                                         .seconds = 0.005 * tfc_job_total_seconds(j),
                                         .seed = (uint64_t)j->o->execution.seed,
                                         .threads = (uint32_t)j->o->execution.threads,
                                         .cancel = j->o->cancel};
    struct tfc_solution fine = {0};
    s = tfc_search(tfc_job_search_problem(j), &options, &outcome);
    if (!s && outcome.best.device && outcome.value < TFC_TIME_MAX && outcome.excess == 0) {
      s = tfc_job_found(j, &outcome.best, &fine);
      if (!s) s = tfc_job_add(j, (*a)->name, (*a)->name, "heuristic", &fine, &index, &is_new);
      if (fine.device) tfc_solution_deinit(&fine);
    }
    if (s) tfc_job_say(j, true, "%s: %s", (*a)->name, tfc_status_message(s));
    if (s && tfc_status_code(s) == TFC_FAILED_PRECONDITION) tfc_status_free(s), s = NULL;
    tfc_search_outcome_deinit(&outcome);
    if (s) return s;
  next:;
  }
  uint32_t n = (uint32_t)j->known.count - first;
  if (!(order = calloc(n + 1u, sizeof *order))) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t i = 0; i < n; i++) order[i][0] = j->known.data[first + i].simulated_us, order[i][1] = first + i;
  qsort(order, n, sizeof *order, by_value);
  uint32_t taken = 0, most = measured_heuristics(j, *count);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = (uint32_t)order[i][1];
    bool twin = false;
    for (uint32_t e = 0; e < j->known.count; e++)
      twin |= e != k && j->known.data[e].digest == j->known.data[k].digest && j->known.data[e].solution.device &&
              (e < first || isfinite(j->known.data[e].median_us));
    for (uint32_t e = 0; e < *count; e++) twin |= j->known.data[list[e]].digest == j->known.data[k].digest;
    if (twin || taken == most) {
      TFC_TRY(s, tfc_job_store_modelled(j, &j->known.data[k]));
      continue;
    }
    list[(*count)++] = k;
    taken++;
  }
out:
  free(order);
  return s;
}

tfc_status tfc_job_baselines(struct tfc_job *j) {
  tfc_status s = NULL;
  uint32_t list[64], count = 0;
  for (uint32_t i = 0; i < j->known.count; i++)
    if (j->known.data[i].single && j->best == UINT32_MAX) tfc_job_consider(j, i);
  uint32_t single = j->best;
  if (j->o->device_strings == TFC_STRINGS_RIVAL) TFC_TRY(s, add_expert(j, list, &count));
  for (uint32_t i = 0; i < j->o->baseline_count && count < 32; i++)
    TFC_TRY(s, add_file(j, j->o->baselines[i], list, &count));
  if (j->info->device_count > 1) TFC_TRY(s, add_heuristics(j, list, &count));
  j->best = UINT32_MAX; // the first batch has no reference: one device is too slow to be run again and again
  j->batch_end_s = 0.35 * tfc_job_total_seconds(j); // after it, two steps of each are all
  if (count) TFC_TRY(s, tfc_job_measure(j, list, count, "screen"));
  j->batch_end_s = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_known *k = &j->known.data[list[i]];
    char a[32], b[32];
    if (isfinite(k->median_us))
      tfc_job_say(j, false, "%s: %s a step (simulated %s)%s", k->name, tfc_show_us(a, k->median_us),
                  tfc_show_us(b, k->simulated_us), k->state == TFC_RESULT_CUT ? ", stopped" : "");
    else if (k->note)
      tfc_job_say(j, true, "%s: %s", k->name, k->note);
  }
  for (uint32_t i = 0; i < j->known.count; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->state == TFC_RESULT_OK && k->solution.device && isfinite(k->median_us) &&
        (j->best == UINT32_MAX || k->median_us < j->known.data[j->best].median_us))
      j->best = i;
  }
  if (j->best == UINT32_MAX) j->best = single;
  TFC_TRY(s, tfc_job_rebuild(j));
out:
  return s;
}
