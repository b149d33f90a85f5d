// Search: runs rounds of simulated search. From each round a few of the best placements that differ from each other are
// measured; the model learns from them, and the next round searches with that model. The learners follow.
#include "placer/job/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/learn.h"
#include "placer/job/turns.h"
#include "runtime/base/random.h"

// LEARNS_FROM: with fewer measurements a learner would not learn anything, as it proposes four placements at a time.
enum { BATCH = 4, FEWEST = 2, IDLE_END = 3, LEARNS_FROM = 8 };
// The search ends after so many rounds without a better placement, measured or simulated. After the first such round,
// rounds become shorter: the simulated search has nearly converged, so it pays more to measure its placements.
static const double stale_end = 6;
// A placement is measured if its time is at most the shortest of its round times this factor. Times drawn by the
// learned model contain its uncertainty already, so their factor is smaller than that of simulated times.
static const double near_simulated = 1.12, near_drawn = 1.05;

struct searching {
  struct tfc_job_measuring *t;
  struct tfc_job_proposers *proposers;
  struct tfc_random random;
  struct tfc_solution searched;       // what the last round found; device NULL: there was no round yet
  struct tfc_learned_opinion opinion; // of this round
  double near;                        // of this round: near_simulated or near_drawn
  double begin_s;
  uint32_t begun_with; // measurements that were made before the search began
  uint32_t expected;   // measurements that the run will have made when the search ends
  uint64_t held;       // evaluations that are kept for learners
};

// Estimates `expected`. If steps are slow, the time ends before the measurements do.
static void expect(struct searching *x, double end_s) {
  const struct tfc_job_measuring *t = x->t;
  const double now = tfc_job_seconds(t->clock);
  const uint32_t made = t->candidates->episodes - x->begun_with;
  x->expected = t->schedule->measurements;
  if (!made || now <= x->begin_s || end_s <= now) return;
  const double all = x->begun_with + made * (end_s - x->begin_s) / (now - x->begin_s);
  if (all < x->expected) x->expected = (uint32_t)(all + 0.5);
}

// Whether rounds of search may simulate any more placements. *out_left: how many; 0 with true: any number.
static bool may_search(const struct searching *x, uint64_t *out_left) {
  return tfc_job_proposers_may_search(x->proposers, x->t->model->o->evaluations, x->held, out_left);
}

static uint32_t distance(const struct tfc_problem *p, const struct tfc_solution *a, const struct tfc_solution *b) {
  uint32_t n = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) n += a->device[u] != b->device[u];
  return n;
}

// Moves a few connected units of a good placement, so that different placements are measured.
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

static tfc_status offer(struct tfc_job_measuring *t, const struct tfc_solution *solution, const char *algorithm,
                        double limit_us, uint32_t *list, uint32_t *count) {
  bool is_new = false;
  uint32_t index;
  double us = tfc_job_model_simulate(t->model, solution);
  if (*count >= BATCH || isnan(us) || us > limit_us) return NULL;
  uint32_t least = t->model->problem->unit_count / 200;
  for (uint32_t i = 0; i < *count; i++)
    if (distance(t->model->problem, solution, &t->candidates->list.data[list[i]].solution) <= least) return NULL;
  TFC_RETURN_IF_ERROR(tfc_job_candidates_add(t->candidates, NULL, algorithm, "candidate", solution, &index, &is_new));
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

// Whether this learner is to run: the user named it, or it is part of `auto`.
static bool takes_part(const struct tfc_job_options *o, const struct tfc_algo *learner) {
  const char *names = o->search.algorithms ? o->search.algorithms : "auto";
  return is_named(names, learner->name) || (strcmp(names, "auto") == 0 && !(learner->needs & TFC_NEEDS_NAME));
}

// Lists the names of the options' algorithms without the learners; NULL: no name is left.
static tfc_status searching_names(const struct tfc_job_options *o, char **out, bool *out_learn) {
  struct tfc_text text = {0};
  const char *names = o->search.algorithms ? o->search.algorithms : "auto";
  *out_learn = false;
  for (const struct tfc_algo *const *a = o->learned; a && *a; a++) *out_learn |= takes_part(o, *a);
  for (const char *at = names; *at;) {
    size_t n = strcspn(at, ",");
    bool learns = false;
    for (const struct tfc_algo *const *a = o->learned; a && *a; a++)
      learns |= strlen((*a)->name) == n && strncmp((*a)->name, at, n) == 0;
    if (!learns && n) tfc_text_printf(&text, "%s%.*s", text.size ? "," : "", (int)n, at);
    at += n + (at[n] == ',');
  }
  if (text.failed) return tfc_status_no_memory(NULL);
  *out = text.data;
  return NULL;
}

static tfc_status offer_found(struct tfc_job_measuring *t, const struct tfc_solution *solution, const char *algorithm,
                              double limit_us, uint32_t *list, uint32_t *count) {
  tfc_status s = NULL;
  struct tfc_solution fine = {0};
  TFC_TRY(s, tfc_job_model_found(t->model, solution, &fine));
  TFC_TRY(s, offer(t, &fine, algorithm, limit_us, list, count));
out:
  tfc_solution_deinit(&fine);
  return s;
}

// --- Rounds ----------------------------------------------------------------------------------------------------------
// Returns the placement from which the next round starts: the best measured one, or the one that the last round found,
// if its simulated time with the current costs is shorter.
static const struct tfc_solution *start_of(const struct searching *x) {
  const struct tfc_job_model *m = x->t->model;
  const struct tfc_job_candidate *leader = tfc_job_candidates_best(x->t->candidates);
  const struct tfc_solution *best = leader ? &leader->solution : NULL;
  if (!x->searched.device || !best) return best;
  return tfc_job_model_simulate(m, &x->searched) < tfc_job_model_simulate(m, best) ? &x->searched : best;
}

// Returns the simulated time of the placement that the last round found, with the current costs, in us; infinite: there
// was no round yet.
static double searched_us(const struct searching *x) {
  return x->searched.device ? tfc_job_model_simulate(x->t->model, &x->searched) : INFINITY;
}

// Keeps the placement that a round found for the next round. `drawn`: it was found with randomly drawn costs, and is
// kept only if it is also better with the current costs.
static tfc_status keep_searched(struct searching *x, const struct tfc_solution *found, bool drawn) {
  tfc_status s = NULL;
  struct tfc_solution fine = {0};
  TFC_TRY(s, tfc_job_model_found(x->t->model, found, &fine));
  if (drawn && !(tfc_job_model_simulate(x->t->model, &fine) < searched_us(x))) goto out;
  if (x->searched.device) tfc_solution_deinit(&x->searched);
  x->searched = fine, fine = (struct tfc_solution){0};
out:
  if (fine.device) tfc_solution_deinit(&fine);
  return s;
}

// --- Choosing which placements are measured ------------------------------------------------------------------------
struct proposal {
  struct tfc_solution solution;
  const char *algorithm;
  double us; // the predicted time, drawn from the posterior distribution of the prediction
  bool used;
};
struct proposals {
  struct proposal *list; // the search's best placement comes first
  uint32_t count;
};

static void proposals_deinit(struct proposals *p) {
  for (uint32_t i = 0; i < p->count; i++) tfc_solution_deinit(&p->list[i].solution);
  free(p->list);
}

static tfc_status propose(struct searching *x, struct proposals *to, const struct tfc_solution *found,
                          const char *algorithm) {
  tfc_status s = NULL;
  const struct tfc_job_model *m = x->t->model;
  struct proposal p = {.algorithm = algorithm};
  TFC_TRY(s, tfc_job_model_found(m, found, &p.solution));
  p.us = tfc_job_model_draw_time(m, &p.solution, &x->opinion, &x->random);
  if (isnan(p.us)) p.us = tfc_job_model_simulate(m, &p.solution);
  if (isnan(p.us)) goto out;
  to->list[to->count++] = p, p = (struct proposal){0};
out:
  tfc_solution_deinit(&p.solution);
  return s;
}

// Returns the placement to measure next: the best one of the algorithm that the bandit draws; NULL: none is left.
static struct proposal *next_of(struct searching *x, struct proposals *of) {
  struct proposal *best = NULL;
  double highest = -1, limit = INFINITY;
  const struct tfc_job_options *o = x->t->model->o;
  for (uint32_t i = 0; i < of->count; i++) limit = fmin(limit, x->near * of->list[i].us);
  for (uint32_t i = 0; i < of->count; i++) {
    struct proposal *p = &of->list[i];
    bool first = !p->used && p->us <= limit; // it is the best unused one of its algorithm
    for (uint32_t k = 0; k < of->count && first; k++)
      first = of->list[k].used || k == i || strcmp(of->list[k].algorithm, p->algorithm) != 0 || of->list[k].us >= p->us;
    if (!first) continue;
    const double draw = tfc_job_proposers_draw(x->proposers, p->algorithm, tfc_job_is_learned(o, p->algorithm),
                                               x->expected, &x->random);
    if (draw > highest) highest = draw, best = p;
  }
  return best;
}

// Makes the problem that a round searches: with the current costs or, in every other round, with costs drawn from the
// learned model's posterior distribution (Thompson 1933). So placements that the model wrongly predicts to be slow have
// a chance to be measured.
static tfc_status world_of(struct searching *x, uint32_t round, struct tfc_learned_world *world,
                           const struct tfc_problem **out) {
  const struct tfc_job_model *m = x->t->model;
  *out = tfc_job_model_search_problem(m);
  if (round % 2 == 0 || !m->learned || !tfc_learned_readings(m->learned)) return NULL;
  TFC_RETURN_IF_ERROR(tfc_job_model_draw(m, &x->random, world));
  *out = world->problem;
  return NULL;
}

// Measures candidates in turns, and counts for each algorithm how many of its placements were measured, also if an
// error ends the batch.
static tfc_status measure(struct searching *x, const uint32_t *list, uint32_t count) {
  const struct tfc_job_candidates *c = x->t->candidates;
  const struct tfc_job_options *o = x->t->model->o;
  tfc_status s = tfc_job_turns_measure(x->t, list, count, false);
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_job_candidate *k = &c->list.data[list[i]];
    if (!k->episode) continue; // there was no time to measure it
    tfc_status counted = tfc_job_proposers_measured(x->proposers, k->algorithm, tfc_job_is_learned(o, k->algorithm),
                                                    k->predicted_us, k->median_us);
    if (s)
      tfc_status_free(counted);
    else
      s = counted;
  }
  return s;
}

static tfc_status search_round(struct searching *x, const char *names, uint32_t round, double seconds,
                               uint64_t evaluations, uint32_t *out_measured) {
  tfc_status s = NULL;
  struct tfc_job_measuring *t = x->t;
  const struct tfc_job_model *m = t->model;
  struct tfc_search_outcome outcome = {0};
  struct tfc_learned_world world = {0};
  struct tfc_solution near = {0}, start = {0};
  struct proposals found = {0};
  const struct tfc_problem *p = NULL;
  uint32_t list[BATCH], count = 0;
  const char *winner = NULL;
  if (m->learned) tfc_learned_draw(m->learned, &x->random, &x->opinion);
  x->near = tfc_job_model_predicts(m) ? near_drawn : near_simulated;
  TFC_TRY(s, world_of(x, round, &world, &p));
  TFC_TRY(s, tfc_solution_init(&start, p));
  const struct tfc_solution *from = start_of(x);
  bool started = from != NULL;
  if (started) TFC_TRY(s, tfc_subject_convert(m->subject, m->problem, from, p, &start));
  struct tfc_search_options options = {.settings = m->o->search,
                                       .seconds = seconds,
                                       .evaluations = evaluations,
                                       .seed = (uint64_t)m->o->execution.seed + round * 7919u,
                                       .threads = (uint32_t)m->o->execution.threads,
                                       .cancel = m->o->cancel,
                                       .start = started ? &start : NULL};
  options.settings.algorithms = names; // without the learners
  TFC_TRY(s, tfc_search(p, &options, &outcome));
  tfc_job_proposers_simulated(x->proposers, outcome.evaluations);
  if (tfc_job_cancelled(t->clock)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
  found.list = calloc(outcome.entry_count + 1u, sizeof *found.list);
  if (!found.list) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (outcome.best.device && outcome.value < TFC_TIME_MAX && outcome.excess == 0) {
    TFC_TRY(s, keep_searched(x, &outcome.best, world.problem != NULL));
    TFC_TRY(s, propose(x, &found, &outcome.best, outcome.algorithm));
    for (uint32_t i = 0; i < outcome.entry_count; i++) {
      const struct tfc_search_entry *e = &outcome.entries[i];
      if (e->solution.device && e->excess == 0 && e->value < TFC_TIME_MAX)
        TFC_TRY(s, propose(x, &found, &e->solution, e->algorithm));
    }
    tfc_job_proposers_searched(x->proposers, &outcome.learned);
    for (struct proposal *k = found.count ? found.list : NULL; k && count < BATCH; k = next_of(x, &found)) {
      k->used = true;
      TFC_TRY(s, offer(t, &k->solution, k->algorithm, INFINITY, list, &count));
    }
    const double limit = 1.12e-6 * (double)outcome.value;
    // Measures at least FEWEST placements, so that the model learns something.
    for (int tries = 0; tries < 40 && count < FEWEST; tries++) {
      TFC_TRY(s, tfc_solution_init(&near, p));
      TFC_TRY(s, perturb(p, tries % 2 && started ? &start : &outcome.best, &x->random, &near));
      TFC_TRY(s, offer_found(t, &near, "neighbour", limit, list, &count));
      tfc_solution_deinit(&near);
    }
  }
  for (uint32_t i = 0; i < count; i++) tfc_job_candidates_searched(t->candidates, list[i], &outcome.learned);
  uint32_t left = tfc_job_measurements_left(t->schedule, t->candidates->episodes);
  if (count > left) count = left;
  const uint32_t former = t->candidates->best;
  if (count) TFC_TRY(s, measure(x, list, count));
  if (count) TFC_TRY(s, tfc_job_turns_confirm(t, former, &winner));
  if (winner) tfc_job_proposers_won(x->proposers, winner);
  *out_measured = count;
out:
  if (near.device) tfc_solution_deinit(&near);
  if (start.device) tfc_solution_deinit(&start);
  proposals_deinit(&found);
  tfc_search_outcome_deinit(&outcome);
  tfc_learned_world_deinit(&world);
  return s;
}

// Measures random placements to check the simulator: equally many on two devices, on three, and so on. If devices are
// alike, there are few different placements on few devices; a placement that was already measured is replaced by a new
// draw.
static tfc_status measure_random(struct searching *x) {
  tfc_status s = NULL;
  const struct tfc_job_measuring *t = x->t;
  const struct tfc_job_options *o = t->model->o;
  struct tfc_solution solution = {0};
  uint32_t measured = 0;
  for (uint32_t i = 0; measured < o->random_first && i < 4 * o->random_first && !tfc_job_cancelled(t->clock); i++) {
    const struct tfc_problem *p = t->model->problem; // each rebuild makes a new problem
    uint32_t used = 1 + i % p->device_count, first = (uint32_t)tfc_random_below(&x->random, p->device_count), index;
    bool is_new = false;
    TFC_TRY(s, tfc_solution_init(&solution, p));
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint32_t d = (first + (uint32_t)tfc_random_below(&x->random, used)) % p->device_count;
      for (uint32_t k = 0; k < p->device_count && !tfc_problem_allows(p, u, d); k++) d = (d + 1) % p->device_count;
      solution.device[u] = (tfc_device_id)d;
    }
    TFC_TRY(s,
            tfc_job_candidates_add(t->candidates, NULL, "random placement", "candidate", &solution, &index, &is_new));
    tfc_solution_deinit(&solution);
    measured += is_new;
    if (is_new) TFC_TRY(s, measure(x, &index, 1));
    // as often as searches do
    if (is_new && measured % BATCH == 0) TFC_TRY(s, tfc_job_journal_rebuild(t->journal, t->model));
  }
  TFC_TRY(s, tfc_job_journal_rebuild(t->journal, t->model));
out:
  if (solution.device) tfc_solution_deinit(&solution);
  return s;
}

static uint32_t least_of(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

// Returns how many measurements a learner gets beside other algorithms, if `count` learners in all and `after` after
// this one take part. With credit it gets two shares; without it, only what all learned policies together may take.
static uint32_t learner_budget(const struct searching *x, const struct tfc_algo *algo, uint32_t count, uint32_t after) {
  const struct tfc_job_measuring *t = x->t;
  const uint32_t budget = tfc_job_measurements_left(t->schedule, t->candidates->episodes) / (2 * count);
  const struct tfc_job_proposer *known = tfc_job_proposers_find(x->proposers, algo->name);
  const bool earned = known && known->won;
  const double share = (earned ? 2 : 1) * tfc_job_shares.learner_measurements * x->expected / count;
  const uint32_t most = least_of(budget, (uint32_t)share);
  return earned ? most : least_of(most, tfc_job_proposers_unearned_left(x->proposers, x->expected) / (after + 1));
}

// Runs each learner in turn, with a share of the time and of the measurements that are left.
static tfc_status learn(const struct searching *x, double end_s, bool alone) {
  tfc_status s = NULL;
  struct tfc_job_measuring *t = x->t;
  uint32_t count = 0, begun = 0;
  const struct tfc_job_options *o = t->model->o;
  for (const struct tfc_algo *const *a = o->learned; *a; a++) count += takes_part(o, *a);
  for (const struct tfc_algo *const *a = o->learned; *a; a++) {
    if (!takes_part(o, *a)) continue;
    begun++;
    const uint32_t budget = tfc_job_measurements_left(t->schedule, t->candidates->episodes);
    const uint32_t each = alone ? budget / count : learner_budget(x, *a, count, count - begun);
    const double now = tfc_job_seconds(t->clock), left = end_s - now;
    if (!alone && each < LEARNS_FROM) continue;
    if (each && left > 0)
      TFC_TRY(s, tfc_job_learn(t, x->proposers, *a, now + (alone ? 1 : tfc_job_shares.learner) * left / count, each));
  }
  TFC_TRY(s, tfc_job_journal_rebuild(t->journal, t->model));
out:
  return s;
}

// Whether the learners run now: the search no longer finds anything better, or anything that was not measured yet, or
// it has no evaluations left, or the learners' share of the time or of the measurements begins.
static bool learners_turn(const struct searching *x, double stale, uint32_t idle, double learn_from_s) {
  const struct tfc_job_measuring *t = x->t;
  uint64_t left;
  return stale >= stale_end || idle >= IDLE_END || tfc_job_seconds(t->clock) >= learn_from_s ||
         t->candidates->episodes >= (uint32_t)(tfc_job_shares.learn_measurements * t->schedule->measurements) ||
         !may_search(x, &left);
}

// Returns why there is no further round of the search, as the end of a sentence; NULL: there is one. `goes_on`: rounds
// that find nothing better do not end the search.
static const char *why_over(const struct searching *x, double left_s, double stale, bool goes_on) {
  const struct tfc_job_measuring *t = x->t;
  if (left_s <= 0) return "the time for the search was used up";
  if (tfc_job_measurements_left(t->schedule, t->candidates->episodes) == 0) return "its measurements were used up";
  return stale >= stale_end && !goes_on ? "further rounds of the search found nothing better" : NULL;
}

tfc_status tfc_job_search(struct tfc_job_measuring *t, struct tfc_job_proposers *proposers, const char **out_why) {
  tfc_status s = NULL;
  const struct tfc_job_options *o = t->model->o;
  struct searching x = {.t = t, .proposers = proposers};
  char *names = NULL;
  const char *why = NULL;
  bool learns = false;
  uint32_t idle = 0;
  double stale = 0;
  tfc_random_init(&x.random, (uint64_t)o->execution.seed + 17);
  if (t->model->info->device_count < 2) {
    *out_why = "there is one device, so that nothing is to be searched";
    return NULL;
  }
  TFC_TRY(s, searching_names(o, &names, &learns));
  if (o->random_first) TFC_TRY(s, measure_random(&x));
  // Even if profile and rivals took longer than planned, a little time remains for search and learning.
  const double now = tfc_job_seconds(t->clock);
  tfc_job_begin_search(t->schedule, now);
  const double end = tfc_job_turns_search_end_s(t);
  x.begin_s = now, x.begun_with = t->candidates->episodes;
  const double learn_from = names ? now + tfc_job_shares.learn_from * (end - now) : 0;
  // if steps are slow, batches must end early enough for the learners
  if (learns) tfc_job_limit_batches(t->schedule, learn_from);
  if (learns && names) x.held = (uint64_t)(tfc_job_shares.learner_evaluations * (double)o->evaluations);
  const bool benchmark = o->random_first > 0; // it measures as many placements as it was asked to
  for (uint32_t round = 0; idle < IDLE_END || learns || benchmark; round++) {
    const double left = end - tfc_job_seconds(t->clock);
    uint64_t evaluations;
    uint32_t measured_now = 0;
    if (tfc_job_cancelled(t->clock)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
    if ((why = why_over(&x, left, stale, learns || benchmark))) break;
    expect(&x, end);
    if (learns && learners_turn(&x, stale, idle, learn_from)) {
      learns = false, x.held = 0;
      tfc_job_limit_batches(t->schedule, 0);
      TFC_TRY(s, learn(&x, end, names == NULL));
      continue;
    }
    if (!names) why = "the learned policies that were asked for had come to their end";
    if (!why && !may_search(&x, &evaluations)) why = "the simulated placements of --evaluations were used up";
    if (why) break;
    const uint32_t units = tfc_job_model_search_problem(t->model)->unit_count;
    const double seconds = tfc_job_round_s(left, units, stale <= 0);
    const uint32_t best = t->candidates->best;
    const double promised = searched_us(&x);
    if (evaluations) evaluations = tfc_job_round_evaluations(evaluations);
    TFC_TRY(s, search_round(&x, names, round, seconds, evaluations, &measured_now));
    idle = measured_now ? 0 : idle + 1;
    // No placement fits within the reduced limits: allows more of the limits.
    if (!measured_now && tfc_job_model_aim_nearer(t->model)) {
      idle = 0;
      TFC_TRY(s, tfc_job_journal_rebuild(t->journal, t->model));
    }
    const bool gained = t->candidates->best != best || !(searched_us(&x) > 0.995 * promised);
    stale = gained ? 0 : stale + (stale > 0 ? tfc_job_shares.stale_round : 1);
    if (measured_now) {
      TFC_TRY(s, tfc_job_journal_rebuild(t->journal, t->model));
      TFC_TRY(s, tfc_job_journal_progress(t->journal, t->model, t->candidates, proposers));
    }
  }
  *out_why = why ? why : "the last rounds of the search proposed nothing that had not been measured";
out:
  tfc_job_limit_batches(t->schedule, 0);
  tfc_solution_deinit(&x.searched);
  free(names);
  return s;
}
