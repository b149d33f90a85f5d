// Rivals and search: the expert, the heuristics, user's baselines; then rounds of simulated search, each of whose few
// best and different placements are measured, after which costs and slow-down are refit.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job_private.h"
#include "runtime/base/clock.h"
#include "runtime/base/random.h"
#include "runtime/base/units.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

enum { BATCH = 4, FEWEST = 2, RIVALS_MEASURED = 3 };

static tfc_status no_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
}
static double total_seconds(const struct tfc_job *j) {
  return j->o->seconds > 0 ? j->o->seconds : 600;
}
static uint32_t total_measurements(const struct tfc_job *j) {
  return j->o->measurements ? j->o->measurements : 200;
}
// Until when there is searching: a quarter of the time is held back for the final run and the report, of long budgets
// what these take.
static double search_end_s(const struct tfc_job *j) {
  return total_seconds(j) - fmin(0.25 * total_seconds(j), 110);
}

// --- What is known ---------------------------------------------------------------------------------------------------
tfc_status tfc_job_add(struct tfc_job *j, const char *name, const char *algorithm, const char *role,
                       const struct tfc_solution *solution, uint32_t *out_index, bool *out_new) {
  tfc_status s = NULL;
  uint64_t digest = tfc_job_digest(j->problem, solution->device);
  bool rival = strcmp(role, "candidate") != 0;
  for (uint32_t i = 0; i < j->known.count && !rival; i++) {
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->digest != digest || !k->solution.device || isnan(k->median_us)) continue;
    *out_index = i, *out_new = false;
    return NULL;
  }
  struct tfc_job_known k = {.role = strcmp(role, "candidate") == 0   ? "candidate"
                                    : strcmp(role, "heuristic") == 0 ? "heuristic"
                                                                     : "baseline",
                            .baseline = rival,
                            .heuristic = strcmp(role, "heuristic") == 0,
                            .digest = digest,
                            .median_us = (double)NAN,
                            .q1_us = (double)NAN,
                            .q3_us = (double)NAN,
                            .ratio = (double)NAN,
                            .final_us = (double)NAN};
  k.simulated_us = tfc_job_simulate(j, solution);
  k.name = name ? tfc_str_dup(tfc_str_from(name)) : tfc_format("#%zu", j->known.count);
  k.algorithm = algorithm ? tfc_str_dup(tfc_str_from(algorithm)) : NULL;
  if (!k.name || (algorithm && !k.algorithm)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  TFC_TRY(s, tfc_solution_copy(&k.solution, solution, j->problem));
  if (!tfc_array_push(&j->known, k)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  *out_index = (uint32_t)j->known.count - 1, *out_new = true;
  k = (struct tfc_job_known){0};
out:
  free(k.name);
  free(k.algorithm);
  if (s && k.solution.device) tfc_solution_deinit(&k.solution);
  return s;
}

// --- Measuring -------------------------------------------------------------------------------------------------------
static void consider(struct tfc_job *j, uint32_t index) {
  const struct tfc_job_known *k = &j->known.data[index];
  if (k->state != TFC_RESULT_OK || !k->solution.device || isnan(k->median_us)) return;
  // Beside its reference, which the incumbent was: the machine may have drifted since that was measured.
  const struct tfc_job_known *best = j->best == UINT32_MAX ? NULL : &j->known.data[j->best];
  if (best && !(isfinite(k->ratio) ? k->ratio < 1 : k->median_us < best->median_us)) return;
  j->best = index;
  char text[32];
  if (k->median_us >= j->best_seen_us) return; // better than its reference, but the machine was slower then
  j->best_seen_us = k->median_us;
  tfc_job_say(j, false, "best so far: %s a step, by %s", tfc_show_us(text, k->median_us),
              k->algorithm ? k->algorithm : k->name);
}

struct measuring {
  struct tfc_job *job;
  const uint32_t *index; // [entry] of known; the reference is last
  uint32_t count;
  const char *phase;
};
static tfc_status measured(void *user, const struct tfc_measured *m) {
  struct measuring *b = user;
  struct tfc_job *j = b->job;
  if (m->entry >= b->count) return NULL; // the reference again
  struct tfc_job_known *k = &j->known.data[b->index[m->entry]];
  if (m->state == TFC_RESULT_CUT && m->step_count == 0) return NULL; // no time was left for it
  TFC_RETURN_IF_ERROR(tfc_job_record(j, k, m, b->phase));
  if (m->state == TFC_RESULT_FAILED) tfc_job_say(j, true, "%s: %s", k->name, m->message ? m->message : "failed");
  if (!k->baseline || !k->heuristic) consider(j, b->index[m->entry]);
  tfc_job_say(j, false, NULL);
  return NULL;
}

tfc_status tfc_job_measure(struct tfc_job *j, const uint32_t *index, uint32_t count, const char *phase) {
  tfc_status s = NULL;
  struct measuring b = {j, index, count, phase};
  size_t nodes = j->o->graph->node_count;
  bool reference = j->best != UINT32_MAX;
  uint32_t entries = count + reference;
  struct tfc_measure_entry *entry = calloc(entries + 1u, sizeof *entry);
  uint16_t *placement = malloc((entries * nodes + 1) * sizeof *placement);
  uint32_t *sequence = malloc(((size_t)entries * j->subject->cost_count + 1) * sizeof *sequence);
  if (!entry || !placement || !sequence) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  double best = (double)NAN;
  for (uint32_t i = 0; i < entries; i++) {
    const struct tfc_job_known *k = &j->known.data[i < count ? index[i] : j->best];
    entry[i].placement = placement + i * nodes;
    entry[i].sequence = sequence + (size_t)i * j->subject->cost_count;
    TFC_TRY(s, tfc_subject_assign(j->subject, j->problem, &k->solution, placement + i * nodes,
                                  sequence + (size_t)i * j->subject->cost_count, &entry[i].sequence_count));
  }
  for (uint32_t i = 0; i < j->known.count; i++) { // hopeless is measured by the best there is, one device included
    const struct tfc_job_known *k = &j->known.data[i];
    if (k->state == TFC_RESULT_OK && k->solution.device && isfinite(k->median_us) &&
        (isnan(best) || k->median_us < best))
      best = k->median_us;
  }
  struct tfc_measure_batch batch = {.entries = entry,
                                    .count = entries,
                                    .reference = reference ? count : UINT32_MAX,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = j->o->evaluate                         ? 4
                                              : j->trace == TFC_TRACE_MODE_ALTERNATE ? 2
                                                                                     : 1,
                                    .stop_ratio = j->o->no_early_stop || j->o->evaluate ? 0 : 1.5,
                                    .best_us = best,
                                    .trace = j->trace,
                                    .deadline_s = 1e-9 * (double)j->begin_ns - j->before_s + search_end_s(j)};
  TFC_TRY(s, tfc_measurer_run(j->measurer, &batch, measured, &b));
out:
  free(entry);
  free(placement);
  free(sequence);
  return s;
}

// Where a round searches: the graph's own units, or those with what is fused on one device kept together.
static const struct tfc_problem *problem_of(const struct tfc_job *j, bool coarse) {
  return coarse ? j->coarse_problem : j->problem;
}
static const struct tfc_subject *subject_of(const struct tfc_job *j, bool coarse) {
  return coarse ? j->coarse : j->subject;
}

// --- Rivals ----------------------------------------------------------------------------------------------------------
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
  if (!(name = tfc_str_dup((tfc_str){text, (size_t)(equals - text)}))) return no_memory();
  TFC_TRY(s, tfc_solution_init(&solution, j->problem));
  if (tfc_str_ends(tfc_str_from(text), ".json")) {
    TFC_TRY(s, tfc_placement_read(equals + 1, &placement));
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
                                         .seconds = 0.005 * total_seconds(j),
                                         .seed = j->o->seed,
                                         .threads = j->o->threads,
                                         .cancel = j->o->cancel};
    bool coarse = j->coarse_problem != NULL;
    struct tfc_solution fine = {0};
    s = tfc_search(problem_of(j, coarse), &options, &outcome);
    if (!s && outcome.best.device && outcome.value < TFC_TIME_MAX && outcome.excess == 0) {
      s = tfc_solution_init(&fine, j->problem);
      if (!s) s = tfc_subject_convert(subject_of(j, coarse), problem_of(j, coarse), &outcome.best, j->problem, &fine);
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
  if (!(order = calloc(n + 1u, sizeof *order))) return no_memory();
  for (uint32_t i = 0; i < n; i++) order[i][0] = j->known.data[first + i].simulated_us, order[i][1] = first + i;
  qsort(order, n, sizeof *order, by_value);
  uint32_t taken = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = (uint32_t)order[i][1];
    bool twin = false;
    for (uint32_t e = 0; e < j->known.count; e++)
      twin |= e != k && j->known.data[e].digest == j->known.data[k].digest && j->known.data[e].solution.device &&
              (e < first || isfinite(j->known.data[e].median_us));
    for (uint32_t e = 0; e < *count; e++) twin |= j->known.data[list[e]].digest == j->known.data[k].digest;
    if (twin || taken == RIVALS_MEASURED) {
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
    if (j->known.data[i].single && j->best == UINT32_MAX) consider(j, i);
  uint32_t single = j->best;
  if (j->o->device_strings == TFC_STRINGS_RIVAL) TFC_TRY(s, add_expert(j, list, &count));
  for (uint32_t i = 0; i < j->o->baseline_count && count < 32; i++)
    TFC_TRY(s, add_file(j, j->o->baselines[i], list, &count));
  if (j->info->device_count > 1) TFC_TRY(s, add_heuristics(j, list, &count));
  j->best = UINT32_MAX; // the first batch has no reference: one device is too slow to be run again and again
  if (count) TFC_TRY(s, tfc_job_measure(j, list, count, "screen"));
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

// --- Search ----------------------------------------------------------------------------------------------------------
static uint32_t distance(const struct tfc_problem *p, const struct tfc_solution *a, const struct tfc_solution *b) {
  uint32_t n = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) n += a->device[u] != b->device[u];
  return n;
}

// A neighbour of a good placement, so that what is measured differs: a few connected units elsewhere.
static tfc_status perturb(const struct tfc_problem *p, const struct tfc_solution *from, struct tfc_random *random,
                          struct tfc_solution *out) {
  TFC_RETURN_IF_ERROR(tfc_solution_copy(out, from, p));
  uint32_t moves = 1 + (uint32_t)tfc_random_below(random, 1 + p->unit_count / 50);
  uint32_t u = (uint32_t)tfc_random_below(random, p->unit_count);
  for (uint32_t i = 0; i < moves; i++) {
    uint32_t d = (uint32_t)tfc_random_below(random, p->device_count);
    if (tfc_problem_allows(p, u, d)) out->device[u] = (tfc_device_id)d;
    u = (u + 1 + (uint32_t)tfc_random_below(random, 3)) % p->unit_count;
  }
  free(out->rank);
  out->rank = NULL;
  return NULL;
}

static tfc_status offer(struct tfc_job *j, const struct tfc_solution *solution, const char *algorithm, double limit_us,
                        uint32_t *list, uint32_t *count) {
  bool is_new = false;
  uint32_t index;
  double us = tfc_job_simulate(j, solution);
  if (*count >= BATCH || isnan(us) || us > limit_us) return NULL;
  uint32_t least = j->problem->unit_count / 200;
  for (uint32_t i = 0; i < *count; i++)
    if (distance(j->problem, solution, &j->known.data[list[i]].solution) <= least) return NULL;
  TFC_RETURN_IF_ERROR(tfc_job_add(j, NULL, algorithm, "candidate", solution, &index, &is_new));
  if (is_new) list[(*count)++] = index;
  return NULL;
}

// The algorithms of the options without those that learn; NULL: none is left.
static tfc_status searching_names(const struct tfc_job *j, char **out, bool *out_learn) {
  struct tfc_text text = {0};
  const char *names = j->o->algorithms ? j->o->algorithms : "auto";
  *out_learn = strcmp(names, "auto") == 0 && j->o->learned && j->o->learned[0];
  for (const char *at = names; *at;) {
    size_t n = strcspn(at, ",");
    bool learns = false;
    for (const struct tfc_algo *const *a = j->o->learned; a && *a; a++)
      learns |= strlen((*a)->name) == n && strncmp((*a)->name, at, n) == 0;
    if (learns) *out_learn = true;
    if (!learns && n) tfc_text_printf(&text, "%s%.*s", text.size ? "," : "", (int)n, at);
    at += n + (at[n] == ',');
  }
  if (text.failed) return no_memory();
  *out = text.data;
  return NULL;
}

static tfc_status offer_from(struct tfc_job *j, bool coarse, const struct tfc_solution *solution, const char *algorithm,
                             double limit_us, uint32_t *list, uint32_t *count) {
  tfc_status s = NULL;
  struct tfc_solution fine = {0};
  TFC_TRY(s, tfc_solution_init(&fine, j->problem));
  TFC_TRY(s, tfc_subject_convert(subject_of(j, coarse), problem_of(j, coarse), solution, j->problem, &fine));
  TFC_TRY(s, offer(j, &fine, algorithm, limit_us, list, count));
out:
  tfc_solution_deinit(&fine);
  return s;
}

// Where the next round begins: at the best measured, or at what the last search left if costs as they are known now
// still promise more of it.
static const struct tfc_solution *start_of(struct tfc_job *j) {
  const struct tfc_solution *best = j->best == UINT32_MAX ? NULL : &j->known.data[j->best].solution;
  if (!j->searched.device || !best) return best;
  return tfc_job_simulate(j, &j->searched) < tfc_job_simulate(j, best) ? &j->searched : best;
}

static tfc_status keep_searched(struct tfc_job *j, bool coarse, const struct tfc_solution *found) {
  tfc_status s = NULL;
  struct tfc_solution fine = {0};
  TFC_TRY(s, tfc_solution_init(&fine, j->problem));
  TFC_TRY(s, tfc_subject_convert(subject_of(j, coarse), problem_of(j, coarse), found, j->problem, &fine));
  if (j->searched.device) tfc_solution_deinit(&j->searched);
  j->searched = fine, fine = (struct tfc_solution){0};
out:
  if (fine.device) tfc_solution_deinit(&fine);
  return s;
}

static tfc_status search_round(struct tfc_job *j, const char *names, uint32_t round, bool coarse, double seconds,
                               struct tfc_random *random, uint32_t *out_measured) {
  tfc_status s = NULL;
  struct tfc_search_outcome outcome = {0};
  struct tfc_solution near = {0}, start = {0};
  const struct tfc_problem *p = problem_of(j, coarse);
  uint32_t list[BATCH], count = 0;
  TFC_TRY(s, tfc_solution_init(&start, p));
  const struct tfc_solution *from = start_of(j);
  bool started = from != NULL;
  if (started) TFC_TRY(s, tfc_subject_convert(j->subject, j->problem, from, p, &start));
  struct tfc_search_options options = {.algorithms = names,
                                       .seconds = seconds,
                                       .seed = j->o->seed + round * 7919u,
                                       .threads = j->o->threads,
                                       .cancel = j->o->cancel,
                                       .start = started ? &start : NULL};
  if (j->o->evaluations) options.evaluations = j->o->evaluations;
  TFC_TRY(s, tfc_search(p, &options, &outcome));
  if (tfc_job_cancelled(j)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
  if (outcome.best.device && outcome.value < TFC_TIME_MAX && outcome.excess == 0) {
    double limit = 1.12e-6 * (double)outcome.value;
    TFC_TRY(s, keep_searched(j, coarse, &outcome.best));
    TFC_TRY(s, offer_from(j, coarse, &outcome.best, outcome.algorithm, INFINITY, list, &count));
    for (uint32_t i = 0; i < outcome.entry_count; i++) {
      const struct tfc_search_entry *e = &outcome.entries[i];
      if (e->solution.device && e->excess == 0 && e->value < TFC_TIME_MAX)
        TFC_TRY(s, offer_from(j, coarse, &e->solution, e->algorithm, limit, list, &count));
    }
    for (int tries = 0; tries < 40 && count < FEWEST; tries++) { // so that something is learned
      TFC_TRY(s, tfc_solution_init(&near, p));
      TFC_TRY(s, perturb(p, tries % 2 && started ? &start : &outcome.best, random, &near));
      TFC_TRY(s, offer_from(j, coarse, &near, "neighbour", limit, list, &count));
      tfc_solution_deinit(&near);
    }
  }
  uint32_t left = total_measurements(j) > j->episodes ? total_measurements(j) - j->episodes : 0;
  if (count > left) count = left;
  if (count) TFC_TRY(s, tfc_job_measure(j, list, count, "screen"));
  *out_measured = count;
out:
  if (near.device) tfc_solution_deinit(&near);
  if (start.device) tfc_solution_deinit(&start);
  tfc_search_outcome_deinit(&outcome);
  return s;
}

// --- Learning --------------------------------------------------------------------------------------------------------
struct learning {
  struct tfc_job *job;
  const char *algorithm;
  bool coarse;
};
static tfc_status observed(void *user, uint32_t index, const struct tfc_solution *candidate,
                           const struct tfc_measured *m, const struct tfc_result *result) {
  struct learning *l = user;
  struct tfc_job *j = l->job;
  uint32_t at;
  bool is_new;
  (void)result;
  if (index == UINT32_MAX || (m->state == TFC_RESULT_CUT && m->step_count == 0)) return NULL;
  tfc_status s = NULL;
  struct tfc_solution fine = {0};
  TFC_TRY(s, tfc_solution_init(&fine, j->problem));
  TFC_TRY(s, tfc_subject_convert(subject_of(j, l->coarse), problem_of(j, l->coarse), candidate, j->problem, &fine));
  TFC_TRY(s, tfc_job_add(j, NULL, l->algorithm, "candidate", &fine, &at, &is_new));
  struct tfc_job_known *k = &j->known.data[at];
  if (!is_new) { // measured again: an episode of its own
    struct tfc_job_known again = *k;
    again.name = tfc_format("#%zu", j->known.count);
    again.algorithm = tfc_str_dup(tfc_str_from(l->algorithm));
    again.solution = (struct tfc_solution){0};
    again.peak = NULL, again.busy_us = again.share = NULL, again.note = NULL;
    again.role = "candidate", again.baseline = again.heuristic = again.single = again.raw = false;
    again.key = 0, again.next_step = 0, again.median_us = (double)NAN, again.final_us = (double)NAN;
    again.final_steps = 0, again.final_step_us.data = NULL, again.final_block_of.data = NULL;
    again.final_step_us.count = again.final_step_us.capacity = 0;
    again.final_block_of.count = again.final_block_of.capacity = 0;
    if (!again.name || !again.algorithm || !tfc_array_push(&j->known, again))
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    at = (uint32_t)j->known.count - 1;
    TFC_TRY(s, tfc_solution_copy(&j->known.data[at].solution, &fine, j->problem));
    k = &j->known.data[at];
  }
  TFC_TRY(s, tfc_job_record(j, k, m, "screen"));
  consider(j, at);
  tfc_job_say(j, false, NULL);
out:
  if (fine.device) tfc_solution_deinit(&fine);
  return s;
}

static tfc_status learn(struct tfc_job *j, const struct tfc_algo *algo, double until_s, uint32_t measurements) {
  tfc_status s = NULL;
  struct tfc_evaluator *evaluator = NULL;
  struct tfc_solution found = {0};
  bool coarse = j->coarse_problem != NULL;
  const struct tfc_problem *p = problem_of(j, coarse);
  struct learning l = {j, algo->name, coarse};
  double begin = 1e-9 * (double)j->begin_ns - j->before_s;
  struct tfc_measure_settings settings = {.warmup = 1,
                                          .block = 5,
                                          .blocks = j->trace == TFC_TRACE_MODE_ALTERNATE ? 2 : 1,
                                          .stop_ratio = 0,
                                          .trace = j->trace,
                                          .deadline_s = begin + search_end_s(j)};
  struct tfc_budget budget = {.deadline = begin + until_s,
                              .evaluations = measurements,
                              .seed = j->o->seed,
                              .threads = j->o->threads ? j->o->threads : 1,
                              .cancel = j->o->cancel};
  uint64_t evaluations = 0;
  TFC_TRY(s, tfc_solution_init(&found, p));
  TFC_TRY(s, tfc_evaluator_measured(j->measurer, subject_of(j, coarse), p, &settings, observed, &l, &evaluator));
  tfc_job_say(j, false, "%s learns from up to %u measurements", algo->name, measurements);
  s = algo->propose(p, evaluator, &budget, &found, &evaluations);
  if (tfc_status_code(s) == TFC_FAILED_PRECONDITION) {
    tfc_job_say(j, true, "%s: %s", algo->name, tfc_status_message(s));
    tfc_status_free(s);
    s = NULL;
  }
  if (!s && tfc_job_cancelled(j)) s = tfc_status_make(TFC_CANCELLED, "interrupted");
out:
  tfc_evaluator_free(evaluator);
  tfc_solution_deinit(&found);
  return s;
}

// Random placements, as many with one device as with two and so on: what the simulator is checked against.
static tfc_status measure_random(struct tfc_job *j, struct tfc_random *random) {
  tfc_status s = NULL;
  const struct tfc_problem *p = j->problem;
  struct tfc_solution solution = {0};
  for (uint32_t i = 0; i < j->o->random_first && !tfc_job_cancelled(j); i++) {
    uint32_t used = 1 + i % p->device_count, first = (uint32_t)tfc_random_below(random, p->device_count), index;
    bool is_new = false;
    TFC_TRY(s, tfc_solution_init(&solution, p));
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint32_t d = (first + (uint32_t)tfc_random_below(random, used)) % p->device_count;
      for (uint32_t k = 0; k < p->device_count && !tfc_problem_allows(p, u, d); k++) d = (d + 1) % p->device_count;
      solution.device[u] = (tfc_device_id)d;
    }
    TFC_TRY(s, tfc_job_add(j, NULL, "random placement", "candidate", &solution, &index, &is_new));
    tfc_solution_deinit(&solution);
    if (is_new) TFC_TRY(s, tfc_job_measure(j, &index, 1, "screen"));
  }
  TFC_TRY(s, tfc_job_rebuild(j));
out:
  if (solution.device) tfc_solution_deinit(&solution);
  return s;
}

tfc_status tfc_job_search(struct tfc_job *j) {
  tfc_status s = NULL;
  char *names = NULL;
  bool learns = false;
  uint32_t idle = 0;
  struct tfc_random random;
  tfc_random_init(&random, j->o->seed + 17);
  if (j->info->device_count < 2) return NULL;
  TFC_TRY(s, searching_names(j, &names, &learns));
  if (j->o->random_first) TFC_TRY(s, measure_random(j, &random));
  double learn_from = names ? tfc_job_seconds(j) + 0.7 * (search_end_s(j) - tfc_job_seconds(j)) : 0;
  for (uint32_t round = 0; idle < 3; round++) {
    double left = search_end_s(j) - tfc_job_seconds(j);
    uint32_t measured_now = 0, budget = total_measurements(j) > j->episodes ? total_measurements(j) - j->episodes : 0;
    if (tfc_job_cancelled(j)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
    if (left <= 0 || budget == 0) break;
    if (learns && (tfc_job_seconds(j) >= learn_from || j->episodes >= 7 * total_measurements(j) / 10)) {
      learns = false;
      uint32_t count = 0, share;
      for (const struct tfc_algo *const *a = j->o->learned; *a; a++) count++;
      for (const struct tfc_algo *const *a = j->o->learned; *a; a++) {
        budget = total_measurements(j) > j->episodes ? total_measurements(j) - j->episodes : 0;
        left = search_end_s(j) - tfc_job_seconds(j);
        share = names ? budget / (2 * count) : budget / count;
        if (share && left > 0) TFC_TRY(s, learn(j, *a, tfc_job_seconds(j) + (names ? 0.5 : 1) * left / count, share));
      }
      TFC_TRY(s, tfc_job_rebuild(j));
      continue;
    }
    if (!names) break; // only learners were asked for
    double seconds = left / 8;
    if (seconds > 40) seconds = 40;
    if (seconds < 0.5) seconds = 0.5;
    if (seconds > left) seconds = left;
    TFC_TRY(s, search_round(j, names, round, j->coarse_problem != NULL, seconds, &random, &measured_now));
    idle = measured_now ? 0 : idle + 1;
    if (measured_now) {
      TFC_TRY(s, tfc_job_rebuild(j));
      TFC_TRY(s, tfc_job_save_state(j));
    }
  }
out:
  free(names);
  return s;
}
