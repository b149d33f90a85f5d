// Search: rounds of simulated search, each of whose few best and different placements are measured, after which costs
// and slow-down are refit; then the learners.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/private.h"
#include "runtime/base/random.h"

enum { BATCH = 4, FEWEST = 2 };
// Rounds without gain, measured or simulated, that end the search; after one, rounds are shorter: what search believes
// in hardly changes any more, and more of what it believes in is measured.
static const double stale_end = 6, stale_share = 1.0 / 3;

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

static bool is_named(const char *names, const char *name) {
  for (const char *at = names; *at;) {
    size_t n = strcspn(at, ",");
    if (strlen(name) == n && strncmp(name, at, n) == 0) return true;
    at += n + (at[n] == ',');
  }
  return false;
}

// Whether an algorithm that learns is to run: it was named, or it takes part in `auto`.
static bool takes_part(const struct tfc_job *j, const struct tfc_algo *learner) {
  const char *names = j->o->algorithms ? j->o->algorithms : "auto";
  return is_named(names, learner->name) || (strcmp(names, "auto") == 0 && !(learner->needs & TFC_NEEDS_NAME));
}

// The algorithms of the options without those that learn; NULL: none is left.
static tfc_status searching_names(const struct tfc_job *j, char **out, bool *out_learn) {
  struct tfc_text text = {0};
  const char *names = j->o->algorithms ? j->o->algorithms : "auto";
  *out_learn = false;
  for (const struct tfc_algo *const *a = j->o->learned; a && *a; a++) *out_learn |= takes_part(j, *a);
  for (const char *at = names; *at;) {
    size_t n = strcspn(at, ",");
    bool learns = false;
    for (const struct tfc_algo *const *a = j->o->learned; a && *a; a++)
      learns |= strlen((*a)->name) == n && strncmp((*a)->name, at, n) == 0;
    if (!learns && n) tfc_text_printf(&text, "%s%.*s", text.size ? "," : "", (int)n, at);
    at += n + (at[n] == ',');
  }
  if (text.failed) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  *out = text.data;
  return NULL;
}

static tfc_status offer_found(struct tfc_job *j, const struct tfc_solution *solution, const char *algorithm,
                              double limit_us, uint32_t *list, uint32_t *count) {
  tfc_status s = NULL;
  struct tfc_solution fine = {0};
  TFC_TRY(s, tfc_job_found(j, solution, &fine));
  TFC_TRY(s, offer(j, &fine, algorithm, limit_us, list, count));
out:
  tfc_solution_deinit(&fine);
  return s;
}

// --- Rounds ----------------------------------------------------------------------------------------------------------
const struct tfc_problem *tfc_job_search_problem(const struct tfc_job *j) {
  return j->coarse_problem ? j->coarse_problem : j->problem;
}

const struct tfc_subject *tfc_job_search_subject(const struct tfc_job *j) {
  return j->coarse_problem ? j->coarse : j->subject;
}

tfc_status tfc_job_found(const struct tfc_job *j, const struct tfc_solution *found, struct tfc_solution *out) {
  TFC_RETURN_IF_ERROR(tfc_solution_init(out, j->problem));
  return tfc_subject_convert(tfc_job_search_subject(j), tfc_job_search_problem(j), found, j->problem, out);
}

// Where the next round begins: at the best measured, or at what the last search left if costs as they are known now
// still promise more of it.
static const struct tfc_solution *start_of(struct tfc_job *j) {
  const struct tfc_solution *best = j->best == UINT32_MAX ? NULL : &j->known.data[j->best].solution;
  if (!j->searched.device || !best) return best;
  return tfc_job_simulate(j, &j->searched) < tfc_job_simulate(j, best) ? &j->searched : best;
}

// What the last search found takes by the costs as they are known now, us; infinite: nothing yet.
static double searched_us(struct tfc_job *j) {
  return j->searched.device ? tfc_job_simulate(j, &j->searched) : INFINITY;
}

static tfc_status keep_searched(struct tfc_job *j, const struct tfc_solution *found) {
  tfc_status s = NULL;
  struct tfc_solution fine = {0};
  TFC_TRY(s, tfc_job_found(j, found, &fine));
  if (j->searched.device) tfc_solution_deinit(&j->searched);
  j->searched = fine, fine = (struct tfc_solution){0};
out:
  if (fine.device) tfc_solution_deinit(&fine);
  return s;
}

static tfc_status search_round(struct tfc_job *j, const char *names, uint32_t round, double seconds,
                               struct tfc_random *random, uint32_t *out_measured) {
  tfc_status s = NULL;
  struct tfc_search_outcome outcome = {0};
  struct tfc_solution near = {0}, start = {0};
  const struct tfc_problem *p = tfc_job_search_problem(j);
  uint32_t list[BATCH], count = 0;
  TFC_TRY(s, tfc_solution_init(&start, p));
  const struct tfc_solution *from = start_of(j);
  bool started = from != NULL;
  if (started) TFC_TRY(s, tfc_subject_convert(j->subject, j->problem, from, p, &start));
  struct tfc_search_options options = {.algorithms = names,
                                       .extra = j->o->extra,
                                       .guide = j->o->guide,
                                       .seconds = seconds,
                                       .seed = (uint64_t)j->o->execution.seed + round * 7919u,
                                       .threads = (uint32_t)j->o->execution.threads,
                                       .cancel = j->o->cancel,
                                       .start = started ? &start : NULL};
  if (j->o->evaluations) options.evaluations = j->o->evaluations;
  TFC_TRY(s, tfc_search(p, &options, &outcome));
  if (tfc_job_cancelled(j)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
  if (outcome.best.device && outcome.value < TFC_TIME_MAX && outcome.excess == 0) {
    double limit = 1.12e-6 * (double)outcome.value;
    TFC_TRY(s, keep_searched(j, &outcome.best));
    TFC_TRY(s, offer_found(j, &outcome.best, outcome.algorithm, INFINITY, list, &count));
    for (uint32_t i = 0; i < outcome.entry_count; i++) {
      const struct tfc_search_entry *e = &outcome.entries[i];
      if (e->solution.device && e->excess == 0 && e->value < TFC_TIME_MAX)
        TFC_TRY(s, offer_found(j, &e->solution, e->algorithm, limit, list, &count));
    }
    for (int tries = 0; tries < 40 && count < FEWEST; tries++) { // so that something is learned
      TFC_TRY(s, tfc_solution_init(&near, p));
      TFC_TRY(s, perturb(p, tries % 2 && started ? &start : &outcome.best, random, &near));
      TFC_TRY(s, offer_found(j, &near, "neighbour", limit, list, &count));
      tfc_solution_deinit(&near);
    }
  }
  uint32_t left = tfc_job_measurements_left(j);
  if (count > left) count = left;
  if (count) TFC_TRY(s, tfc_job_measure(j, list, count, "screen"));
  *out_measured = count;
out:
  if (near.device) tfc_solution_deinit(&near);
  if (start.device) tfc_solution_deinit(&start);
  tfc_search_outcome_deinit(&outcome);
  return s;
}

// Random placements, as many on two devices as on three and so on: what the simulator is checked against. Where devices
// are alike there are few on one; others take the place of what was measured before.
static tfc_status measure_random(struct tfc_job *j, struct tfc_random *random) {
  tfc_status s = NULL;
  const struct tfc_problem *p = j->problem;
  struct tfc_solution solution = {0};
  uint32_t measured = 0;
  for (uint32_t i = 0; measured < j->o->random_first && i < 4 * j->o->random_first && !tfc_job_cancelled(j); i++) {
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
    measured += is_new;
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
  double stale = 0;
  struct tfc_random random;
  tfc_random_init(&random, (uint64_t)j->o->execution.seed + 17);
  if (j->info->device_count < 2) return NULL;
  TFC_TRY(s, searching_names(j, &names, &learns));
  if (j->o->random_first) TFC_TRY(s, measure_random(j, &random));
  // Where profile and rivals took longer than they should, there is a little searching and learning all the same.
  const double total = tfc_job_total_seconds(j), now = tfc_job_seconds(j);
  j->search_end_s = fmin(now + 0.1 * total, 0.9 * total);
  const double end = tfc_job_search_end_s(j);
  double learn_from = names ? now + 0.7 * (end - now) : 0;
  if (learns) j->batch_end_s = learn_from; // slow steps leave learners their share
  for (uint32_t round = 0; idle < 3; round++) {
    double left = end - tfc_job_seconds(j);
    uint32_t measured_now = 0, budget = tfc_job_measurements_left(j);
    if (tfc_job_cancelled(j)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
    if (left <= 0 || budget == 0) break;
    if (stale >= stale_end && !learns) break;
    if (learns &&
        (stale >= stale_end || tfc_job_seconds(j) >= learn_from || j->episodes >= 7 * tfc_job_measurements(j) / 10)) {
      learns = false, j->batch_end_s = 0;
      uint32_t count = 0, budget_each;
      for (const struct tfc_algo *const *a = j->o->learned; *a; a++) count += takes_part(j, *a);
      for (const struct tfc_algo *const *a = j->o->learned; *a; a++) {
        if (!takes_part(j, *a)) continue;
        budget = tfc_job_measurements_left(j);
        left = end - tfc_job_seconds(j);
        budget_each = names ? budget / (2 * count) : budget / count;
        // What has earned nothing yet gets no more than a quarter of the measurements.
        if (names && budget_each > tfc_job_measurements(j) / (4 * count))
          budget_each = tfc_job_measurements(j) / (4 * count);
        if (budget_each && left > 0)
          TFC_TRY(s, tfc_job_learn(j, *a, tfc_job_seconds(j) + (names ? 0.5 : 1) * left / count, budget_each));
      }
      TFC_TRY(s, tfc_job_rebuild(j));
      continue;
    }
    if (!names) break; // only learners were asked for
    double seconds = left / 8;
    if (seconds > 40) seconds = 40;
    if (seconds > 0.05 * tfc_job_search_problem(j)->unit_count) seconds = 0.05 * tfc_job_search_problem(j)->unit_count;
    double share = stale > 0 ? stale_share : 1;
    seconds *= share;
    if (seconds < 0.5) seconds = 0.5;
    if (seconds > left) seconds = left;
    uint32_t best = j->best;
    double promised = searched_us(j);
    TFC_TRY(s, search_round(j, names, round, seconds, &random, &measured_now));
    idle = measured_now ? 0 : idle + 1;
    if (!measured_now && j->memory_ratio > 1) { // nothing that aims so low: nearer to the limits
      j->memory_ratio = j->memory_ratio > 1.02 ? 1 + 0.6 * (j->memory_ratio - 1) : 1;
      idle = 0;
      TFC_TRY(s, tfc_job_rebuild(j));
    }
    stale = j->best == best && searched_us(j) > 0.995 * promised ? stale + share : 0;
    if (measured_now) {
      TFC_TRY(s, tfc_job_rebuild(j));
      TFC_TRY(s, tfc_job_save_state(j));
    }
  }
out:
  j->batch_end_s = 0;
  free(names);
  return s;
}
