// `auto` has three phases. First the heuristics run in parallel, each once; for tiny problems the search then tries
// every placement and ends. A learned policy then proposes placements, as long as these may lead to something. The
// second phase are rounds: each worker takes a placement from the elite and improves it by its method (annealing on
// units or on clusters, starts from nothing, large neighbourhoods, and packing anew where memory is nearly full). Every
// other job's method is drawn by its credit (credit.h). What the jobs find goes back to the elite in the order of the
// workers. The third phase, for the step objective only, cools down from the best placement, with temperatures that fit
// it. A round has eight jobs, or one a thread if that is more, and gets the same share of the budget as every other
// round. (For throughput under a time limit there is one job a thread, and rounds get longer.) With a limit on
// evaluations alone, nothing looks at the clock: the outcome depends on the seed alone.
#include "placer/search/search.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "placer/exact/exhaust.h"
#include "placer/exact/ilp.h"
#include "placer/search/anneal.h"
#include "placer/search/communities.h"
#include "placer/search/finder.h"
#include "placer/search/gain.h"
#include "placer/search/pace.h"
#include "placer/search/prover.h"
#include "placer/search/rollouts.h"
#include "placer/search/search_job.h"
#include "runtime/base/array.h"
#include "runtime/base/parallel.h"

#define FIXED_WORKERS 8
#define POLICY_TURNS 8     // one turn in 8 belongs to the policy,
#define EARLY_TURNS 24     // but of the first 24 turns
#define EARLY_POLICY 3     // one in 3
#define MOST_COOLING 4000  // evaluations that the last phase gets at most
#define VARIED_AFTER 10000 // after this many evaluations no two placements of the elite are nearly alike
#define FEWEST 64        // least number of evaluations of a job, if they are left: with fewer, no method finds anything
#define PLAIN 6          // evaluations that a heuristic gets which takes only a few of them
#define PACKS 40         // evaluations that packing gets at most
#define SETTLED 3        // number of the heuristics' best placements that get a new order of operations
#define SHORT_HOT 0.0005 // the first temperature of a short search, for which a sample of moves would be too dear
#define CHANCE 0.01 // the probability with which the first temperature accepts the median of the changes for the worse

// --- Running algorithms: one after another, or in parallel ---------------------------------------------------------

struct task {
  const struct tfc_algo *algo;
  struct tfc_budget budget;
  struct tfc_evaluator *evaluator;
  struct tfc_solution solution;
  struct tfc_score score;
  uint64_t evaluations;
  double seconds;
  tfc_status status; // how the algorithm ended
};
struct task_list {
  struct tfc_finder *f;
  struct task *tasks;
};

static tfc_status run_task_(const struct tfc_finder *f, struct task *t) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  TFC_TRY(s, tfc_solution_init(&t->solution, f->p));
  TFC_TRY(s, t->algo->propose(f->p, t->evaluator, &t->budget, &t->solution, &t->evaluations));
  TFC_TRY(s, tfc_simulator_create(f->p, &sim));
  // The score of the proposed placement, with its own order if it has one, otherwise with the problem's.
  struct tfc_verdict v = {0};
  tfc_simulate(sim, t->solution.device, t->solution.rank, TFC_TIME_MAX, &v);
  if (!t->evaluations) t->evaluations = 1;
  t->score = tfc_score_of(&v);
out:
  tfc_simulator_free(sim);
  if (s) tfc_solution_deinit(&t->solution);
  return s;
}

static void run_task(void *user, uint32_t i) {
  struct task_list *list = user;
  struct task *t = &list->tasks[i];
  double begin = tfc_now_s();
  t->score = TFC_SCORE_NONE;
  t->status = run_task_(list->f, t);
  t->seconds = tfc_now_s() - begin;
}

// Adds the result of a task to the outcome, and keeps its placement if it is the best so far. Frees the task.
static tfc_status enter(struct tfc_finder *f, struct task *t) {
  struct tfc_search_outcome *o = f->out;
  struct tfc_search_entry *entries = realloc(o->entries, (o->entry_count + 1) * sizeof *entries);
  tfc_status s = NULL;
  if (!entries) TFC_TRY(s, tfc_status_no_memory("a search"));
  o->entries = entries;
  entries[o->entry_count++] = (struct tfc_search_entry){
      .algorithm = t->algo->name,
      .value = t->score.value,
      .excess = t->score.value == TFC_TIME_MAX ? 0 : t->score.excess,
      .evaluations = t->evaluations,
      .seconds = t->seconds,
      .solution = t->solution,
      .note = t->status ? strdup(tfc_status_message(t->status)) : NULL,
  };
  const struct tfc_solution *solution = &entries[o->entry_count - 1].solution;
  t->solution = (struct tfc_solution){0};
  o->evaluations += t->evaluations;
  if (solution->device && t->score.value != TFC_TIME_MAX) s = tfc_finder_keep(f, solution, t->score, t->algo->name);
out:
  tfc_status_free(t->status);
  t->status = NULL;
  return s;
}

// Is called when no named algorithm proposed a placement that is legal and within memory: dynamic programming found no
// split, the integer program no solution, a list scheduler filled a device. Tries the single devices, round-robin, and
// repaired random placements. If none of these fits either, the caller learns how much memory is missing.
static tfc_status run_plain(struct tfc_finder *f, struct tfc_evaluator *evaluator) {
  static const char *const names[] = {"single", "round-robin", "random"};
  for (uint32_t i = 0; i < 3 && !(f->out->best.device && f->out->excess == 0); i++) {
    struct task task = {.algo = tfc_algo_find(tfc_str_from(names[i])), .evaluator = evaluator};
    task.budget = (struct tfc_budget){.seed = f->o->seed, .threads = f->threads, .evaluations = i == 2 ? 8 : 0};
    const uint64_t left = f->limit ? f->limit - tfc_finder_spent(f) : 0;
    if (f->limit && !left) break;
    if (f->limit && (!task.budget.evaluations || task.budget.evaluations > left)) task.budget.evaluations = left;
    run_task(&(struct task_list){f, &task}, 0);
    TFC_RETURN_IF_ERROR(enter(f, &task));
  }
  return NULL;
}

// Runs algorithms by name. Algorithms that search until their budget ends get equal parts of the budget that is left.
static tfc_status run_named(struct tfc_finder *f, const struct tfc_algo *const *algos, uint32_t count) {
  tfc_status s = NULL;
  struct tfc_evaluator *simulated = NULL;
  if (!f->o->evaluator) TFC_TRY(s, tfc_evaluator_simulated(f->p, f->threads, &simulated));
  for (uint32_t i = f->course.named; i < count; i++) {
    const uint32_t left = count - i;
    struct task task = {.algo = algos[i], .evaluator = f->o->evaluator ? f->o->evaluator : simulated};
    task.budget = (struct tfc_budget){.seed = f->o->seed + i, .threads = f->threads, .cancel = &f->stop};
    task.budget.guide = f->o->settings.guide;
    task.budget.found = tfc_finder_found, task.budget.found_user = f;
    if (i && tfc_finder_is_over(f)) break;
    if (f->limit) task.budget.evaluations = (f->limit - tfc_finder_spent(f) + left - 1) / left;
    if (f->deadline > 0) {
      double now = tfc_now_s();
      task.budget.deadline = now + (f->deadline - now) / left;
    }
    struct tfc_guide_samples samples = {0};
    const int64_t before = f->course.best.value;
    task.budget.samples = &samples;
    f->at_work = algos[i]->name;
    tfc_parallel_watched(1, 1, run_task, &(struct task_list){f, &task}, tfc_finder_tick, f);
    TFC_TRY(s, enter(f, &task));
    if (samples.count) { // the algorithm is a learned policy
      f->out->learned.samples = samples;
      f->out->learned.before = before, f->out->learned.after = f->course.best.value;
    }
    f->course.named = i + 1;
    if (!(f->o->cancel && atomic_load(f->o->cancel))) TFC_TRY(s, tfc_finder_checkpoint(f));
  }
  if (!(f->out->best.device && f->out->excess == 0) && !f->plain_later && !(f->o->cancel && atomic_load(f->o->cancel)))
    TFC_TRY(s, run_plain(f, f->o->evaluator ? f->o->evaluator : simulated));
out:
  tfc_evaluator_free(simulated);
  return s;
}

// --- auto ----------------------------------------------------------------------------------------------------------

static const enum tfc_search_method step_methods[] = {TFC_METHOD_NAMES,    TFC_METHOD_ANNEAL,  TFC_METHOD_REGROUP,
                                                      TFC_METHOD_CLUSTERS, TFC_METHOD_REGROUP, TFC_METHOD_LNS,
                                                      TFC_METHOD_REGROUP,  TFC_METHOD_COMBINE, TFC_METHOD_HOT};
static const enum tfc_search_method throughput_methods[] = {
    TFC_METHOD_FRESH,   TFC_METHOD_CLUSTERS, TFC_METHOD_FRESH, TFC_METHOD_ANNEAL, TFC_METHOD_FRESH,
    TFC_METHOD_COMBINE, TFC_METHOD_FRESH,    TFC_METHOD_HOT,   TFC_METHOD_FRESH,  TFC_METHOD_LNS};
struct job_list {
  struct tfc_finder *f;
  struct tfc_search_job *jobs;
};

static void run_job(void *user, uint32_t i) {
  struct job_list *list = user;
  struct tfc_search_job *j = &list->jobs[i];
  const double begin = tfc_now_s();
  if (j->slice > 0 && tfc_finder_is_over(list->f)) return; // there are more jobs than threads: time may be over
  if (j->slice > 0) j->budget.deadline = fmin(begin + j->slice, list->f->deadline);
  j->status = tfc_search_job_run(list->f->p, j);
  j->seconds = tfc_now_s() - begin;
  if (!j->status) tfc_budget_found(&j->budget, j->score);
}

// Whether a brief search (is_brief) runs the heuristic, with one evaluation. The others need more evaluations, or
// hardly ever find the best placement.
static bool serves_brief(const char *name) {
  static const char *const names[] = {"single", "m-etf", "heft", "metis", "scotch", "round-robin"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

// The policy is asked only for the step objective, which it is trained on; on one device there is nothing to choose.
static bool asks_policy(const struct tfc_finder *f) {
  return f->o->settings.guide && f->p->objective == TFC_OBJECTIVE_STEP && f->p->device_count > 1;
}

// Whether the search is brief: it has few evaluations, and gives them to the policy instead of to all heuristics and to
// new orders of operations for their placements (it looks for such orders only if the policy is not ahead). Not if
// memory is limited or links are missing: then a heuristic that was left out may be the only one whose placement is
// legal and fits.
static bool is_brief(const struct tfc_finder *f) {
  return asks_policy(f) && tfc_finder_is_short(f) && !f->p->has_limits && !f->p->has_missing_links;
}

// The share of the time that a heuristic gets at most. `multilevel` uses all of it, and for the step objective the
// rounds find more in that time.
static double time_share(const struct tfc_finder *f, const char *name) {
  if (strcmp(name, "single") == 0) return 0.5;
  return f->p->objective == TFC_OBJECTIVE_STEP && strcmp(name, "multilevel") == 0 ? 0.05 : 0.2;
}

static tfc_status heuristics(struct tfc_finder *f) {
  struct tfc_elite *elite = &f->course.elite;
  static const char *const names[] = {"single", "pack", "split", "layout", "dp",     "m-topo",      "m-etf",
                                      "heft",   "peft", "m-sct", "metis",  "scotch", "round-robin", "multilevel"};
  enum { COUNT = sizeof names / sizeof *names };
  struct task tasks[COUNT] = {0};
  tfc_status s = NULL;
  uint32_t count = 0;
  uint64_t planned = 0;
  const bool brief = is_brief(f);
  const double now = tfc_now_s(); // algorithms that were named may have run before
  const uint64_t left = f->limit ? f->limit - tfc_finder_spent(f) : 0;
  if (f->limit && !left) return NULL;
  for (uint32_t i = 0; i < COUNT; i++) {
    struct task *t = &tasks[count];
    t->algo = tfc_algo_find(tfc_str_from(names[i]));
    t->budget = (struct tfc_budget){.seed = f->o->seed + i, .threads = 1, .cancel = &f->stop};
    if (brief && !serves_brief(names[i])) continue;
    if (f->limit) { // with a limit on evaluations, each heuristic evaluates only a few placements
      uint64_t few = i == 0 ? f->p->device_count : brief ? 1 : PLAIN;
      bool searching = t->algo->needs & TFC_NEEDS_BUDGET || strcmp(names[i], "layout") == 0;
      if (searching) few = f->limit / 60;
      if (searching && !few) continue; // none would mean that there is no limit
      // `pack` may find nothing that fits before it has tried many ways.
      if (strcmp(names[i], "pack") == 0 && f->limit / 10 > few) few = f->limit / 10 < PACKS ? f->limit / 10 : PACKS;
      if (i == 0 && few > left) few = left;
      if (i && planned + few > left / 2) continue;
      planned += few;
      t->budget.evaluations = few;
      // With a limit on evaluations, its linear program would have no limit of time.
      if (strcmp(names[i], "m-sct") == 0 && f->p->node_count > 600) continue;
    }
    if (f->deadline > 0) t->budget.deadline = now + (f->deadline - now) * time_share(f, names[i]);
    count++;
  }
  f->at_work = "heuristics";
  tfc_parallel_watched(count, f->threads, run_task, &(struct task_list){f, tasks}, tfc_finder_tick, f);
  for (uint32_t i = 0; i < count; i++) {
    tfc_status entered = enter(f, &tasks[i]);
    if (entered) {
      s = tfc_status_join(s, entered);
      continue;
    }
    const struct tfc_search_entry *e = &f->out->entries[f->out->entry_count - 1];
    if (!s && e->solution.device)
      s = tfc_elite_join(elite, f->p, &e->solution, (struct tfc_score){e->excess, e->value});
  }
  return s;
}

struct program_thread {
  struct tfc_finder *f;
  pthread_t thread;
  bool started;
  struct tfc_ilp_answer answer;
  tfc_device_id *device;
  tfc_status status;
  double seconds;
  atomic_bool done;
};
static void *run_program(void *argument) {
  struct program_thread *t = argument;
  const struct tfc_problem *p = t->f->p;
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1));
  // the placement that the integer program must beat
  struct task single = {.algo = tfc_algo_find(TFC_STR("single")), .budget = {.threads = 1}};
  if (!cluster) return atomic_store(&t->done, true), NULL;
  for (uint32_t u = 0; u < p->unit_count; u++) cluster[u] = u;
  run_task(&(struct task_list){t->f, &single}, 0);
  const bool fits = !single.status && single.score.value != TFC_TIME_MAX && !single.score.excess;
  t->status = tfc_ilp_solve(p, cluster, p->unit_count,
                            &(struct tfc_program_limits){.seconds = t->seconds, .cancel = &t->f->stop},
                            fits ? single.solution.device : NULL, t->device, &t->answer);
  tfc_status_free(single.status);
  tfc_solution_deinit(&single.solution);
  free(cluster);
  atomic_store(&t->done, true);
  return NULL;
}

static tfc_status finish_program(struct tfc_finder *f, struct program_thread *t) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  if (!t->started) return NULL;
  pthread_join(t->thread, NULL);
  t->started = false;
  if (t->status) { // the search continues if a heuristic fails
    tfc_status_free(t->status);
    t->status = NULL;
    return NULL;
  }
  if (t->answer.bound > f->out->bound.value) f->out->bound.value = t->answer.bound, f->out->bound.kind = TFC_BOUND_ILP;
  f->out->bound.each[TFC_BOUND_ILP] = t->answer.bound;
  if (!t->answer.found) return NULL;
  struct tfc_solution solution = {0};
  struct tfc_score score;
  TFC_TRY(s, tfc_simulator_create(f->p, &sim));
  TFC_TRY(s, tfc_solution_init(&solution, f->p));
  memcpy(solution.device, t->device, sizeof *t->device * f->p->unit_count);
  const uint64_t left = f->limit ? f->limit - tfc_finder_spent(f) : UINT64_MAX;
  TFC_TRY(s, tfc_local_settle_within(f->p, sim, left, &solution, &score, &f->out->evaluations));
  if (score.value != TFC_TIME_MAX) TFC_TRY(s, tfc_finder_keep(f, &solution, score, "ilp"));
out:
  tfc_solution_deinit(&solution);
  tfc_simulator_free(sim);
  return s;
}

// A valley is the region around a local minimum. When the search has tried long enough in one valley (longest in the
// first), it goes to another one: it moves the elite to `hall`, and a random placement becomes the new elite. That
// placement is usually much worse, so even results worse than those in `hall` join the new elite. In the last fifth of
// the time the search continues with the best of `hall`.
static tfc_status leave_valley(const struct tfc_problem *p, struct tfc_random *random, struct tfc_elite *elite,
                               struct tfc_elite *hall) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution any = {0};
  struct tfc_verdict v = {0};
  TFC_TRY(s, tfc_elite_join_all(hall, elite, p));
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_solution_init(&any, p));
  tfc_local_any(p, random, any.device);
  tfc_simulate(sim, any.device, NULL, TFC_TIME_MAX, &v);
  tfc_elite_clear(elite);
  TFC_TRY(s, tfc_elite_join(elite, p, &any, tfc_score_of(&v)));
out:
  tfc_solution_deinit(&any);
  tfc_simulator_free(sim);
  return s;
}

// Plans the next job: the method whose turn it is, on a placement of the elite. For the step objective, every other
// turn goes to `drawn`, a method that was drawn at random, with a higher chance the more it has improved the best so
// far. If memory is nearly full (`tight`), every third turn goes to the method that packs units into the memory of
// devices. The caller sets the budget. `temperature`: about the temperature at which annealing begins; 0: not known.
static tfc_status plan_job(const struct tfc_problem *p, struct tfc_random *random, const struct tfc_elite *elite,
                           bool tight, uint64_t turn, enum tfc_search_method drawn, double temperature,
                           struct tfc_search_job *j) {
  const uint64_t seed = tfc_random_u64(random);
  // Takes the best placement most of the time, otherwise another one of the elite.
  const uint32_t pick =
      seed % 5 < (p->objective == TFC_OBJECTIVE_STEP ? 4 : 3) ? 0 : (uint32_t)(seed / 5 % elite->count);
  *j = (struct tfc_search_job){.score = elite->score[pick], .budget = {.seed = seed, .threads = 1}};
  const bool packs = tight && turn % 3 == 0;
  if (tight) turn = turn / 3 * 2 + turn % 3 - 1;
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&j->solution, &elite->solution[pick], p));
  j->method = p->objective == TFC_OBJECTIVE_STEP
                  ? turn % 2 ? drawn : step_methods[turn / 2 % (sizeof step_methods / sizeof *step_methods)]
                  : throughput_methods[turn % (sizeof throughput_methods / sizeof *throughput_methods)];
  if (packs) j->method = TFC_METHOD_PACK;
  if (j->method == TFC_METHOD_COMBINE && (elite->count < 2 || p->device_count > 250)) j->method = TFC_METHOD_CLUSTERS;
  if (j->method == TFC_METHOD_COMBINE) {
    const uint32_t with = (uint32_t)(seed / 40 % (elite->count - 1));
    TFC_RETURN_IF_ERROR(tfc_solution_copy(&j->other, &elite->solution[with + (with >= pick)], p));
  }
  // Temperatures differ from round to round: annealing that starts hot leaves the valley, annealing that starts cooler
  // searches in it.
  const double u = tfc_random_unit(random);
  if (j->method == TFC_METHOD_HOT || j->method == TFC_METHOD_FRESH)
    j->hot = 0.03 * pow(0.2, u);
  else
    j->hot = (j->method == TFC_METHOD_CLUSTERS || j->method == TFC_METHOD_COMBINE ? 0.02 : 0.004) * pow(0.1, u);
  j->cold = fmin(j->hot, 0.0001);
  if (temperature > 0 && (j->method == TFC_METHOD_ANNEAL || j->method == TFC_METHOD_POLICY)) {
    j->hot = temperature * pow(4, 2 * u - 1);
    j->cold = fmin(0.01 * j->hot, 0.0001);
  }
  return NULL;
}

// Draws the method of a turn by credit. The policy's moves are among the methods once they themselves have improved the
// best placement (`won`); before that, the policy has only its fixed turns. (The credit of its jobs says nothing of
// that: annealing takes part in them.)
static enum tfc_search_method draw_method(struct tfc_credits *credits, bool won, struct tfc_random *random) {
  static const enum tfc_search_method methods[] = {TFC_METHOD_REGROUP, TFC_METHOD_ANNEAL,  TFC_METHOD_CLUSTERS,
                                                   TFC_METHOD_LNS,     TFC_METHOD_COMBINE, TFC_METHOD_POLICY};
  const uint32_t count = sizeof methods / sizeof *methods;
  return tfc_credits_draw(credits, methods, won ? count : count - 1, random);
}

// Whether a turn belongs to the policy, whatever the policy's credit is. Of the first EARLY_TURNS turns, one in
// EARLY_POLICY does: a short search has only a dozen turns, and in a long search the policy's moves gain most in the
// first rounds. Later, one turn in POLICY_TURNS does.
static bool is_policy_turn(uint64_t turn) {
  return turn < EARLY_TURNS ? turn % EARLY_POLICY == 1 : turn % POLICY_TURNS == 1;
}

// Whether the policy's moves share the last phase with annealing: they do if they have gained at least as much per
// effort.
static bool policy_cools(const struct tfc_credits *credits) {
  const struct tfc_credit *policy = &credits->of[TFC_METHOD_POLICY], *anneal = &credits->of[TFC_METHOD_ANNEAL];
  return policy->gain * anneal->effort >= anneal->gain * policy->effort;
}

// Plans a job of simulated annealing that starts at the best placement, with a start temperature found for it. `like`:
// an earlier job of this round, whose temperature is used again (the two jobs then differ only by their random
// numbers); NULL: this is the first job.
static tfc_status plan_cooling(const struct tfc_problem *p, struct tfc_random *random, const struct tfc_elite *elite,
                               const struct tfc_search_job *like, struct tfc_search_job *j) {
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&j->solution, &elite->solution[0], p));
  j->score = elite->score[0], j->method = TFC_METHOD_ANNEAL,
  j->rounds = j->budget.evaluations && j->budget.evaluations < TFC_SEARCH_ENOUGH ? 2 : 6;
  if (like) {
    j->hot = like->hot;
    return NULL;
  }
  return tfc_local_temperature(p, &j->budget, &j->solution, CHANCE, random, &j->hot, &j->evaluations);
}

// How many of the evaluations that are left the last phase gets, which only cools down: all of them, if they are too
// few for rounds and a policy is there to share them, or if annealing on units finds more with them than other methods
// do; otherwise a quarter.
static uint64_t cooling_of(const struct tfc_finder *f, uint64_t left) {
  if (left < TFC_SEARCH_ENOUGH) return f->guidance ? left : 0;
  const uint64_t part = tfc_finder_is_small(f, left) ? left : left / 4;
  return part < MOST_COOLING ? part : MOST_COOLING;
}

// Sets up the state that the rounds begin with.
static tfc_status begin_rounds(struct tfc_finder *f) {
  const struct tfc_problem *p = f->p;
  struct tfc_search_course *c = &f->course;
  tfc_status s = NULL;
  c->together = !(f->deadline > 0 && p->objective == TFC_OBJECTIVE_THROUGHPUT);
  tfc_random_init(&c->random, f->o->seed ^ 0x5eed);
  const bool anneals = p->objective == TFC_OBJECTIVE_STEP && c->elite.count && p->device_count > 1;
  if (anneals && f->guidance && tfc_finder_is_short(f)) {
    c->temperature = SHORT_HOT;
  } else if (anneals) {
    const struct tfc_budget sampling = {.evaluations = f->limit, .deadline = f->deadline, .cancel = &f->stop};
    TFC_TRY(s, tfc_local_temperature(p, &sampling, &c->elite.solution[0], CHANCE, &c->random, &c->temperature,
                                     &f->out->evaluations));
  }
  c->total_left = f->limit > tfc_finder_spent(f) ? f->limit - tfc_finder_spent(f) : 0;
  if (c->temperature > 0) c->cooling = cooling_of(f, c->total_left);
  // If the budget allows only few jobs in the first round, the policy's job comes first.
  if (f->deadline <= 0 && f->guidance && c->total_left / 10 < (uint64_t)FIXED_WORKERS * FEWEST) c->turn = 1;
out:
  return s;
}

static tfc_status rounds(struct tfc_finder *f, struct program_thread *program) {
  const struct tfc_problem *p = f->p;
  struct tfc_search_course *c = &f->course;
  struct tfc_elite *elite = &c->elite;
  tfc_status s = NULL;
  const bool fixed = f->deadline <= 0;
  // Short rounds with many jobs: what one job finds, the next ones improve, and credits know soon which methods gain.
  // (For throughput, starts take long, and rounds grow.)
  const bool paced = !fixed && p->objective == TFC_OBJECTIVE_STEP;
  const uint32_t workers = fixed || (paced && f->threads < FIXED_WORKERS) ? FIXED_WORKERS : f->threads;
  struct tfc_search_job *jobs = calloc(workers, sizeof *jobs);
  const bool tight = tfc_communities_tight(p);
  const uint64_t all_turns =
      (p->objective == TFC_OBJECTIVE_STEP ? 2 * sizeof step_methods / sizeof *step_methods
                                          : sizeof throughput_methods / sizeof *throughput_methods) *
      (tight ? 3 : 2) / 2;
  if (!jobs) return tfc_status_no_memory("a search");
  if (c->stage < TFC_STAGE_ROUNDS) TFC_TRY(s, begin_rounds(f));
  c->stage = TFC_STAGE_ROUNDS;
  // The first slice of time is long enough for annealing a placement of this size once.
  const double first_slice = 0.15 + 6e-4 * p->unit_count * p->device_count;
  uint64_t quota = 0;
  for (; !tfc_finder_is_over(f) && elite->count && p->device_count > 0; c->round++) {
    uint32_t busy = workers;
    bool cools = false, shares = false; // whether the policy's moves share the job that cools down
    double seconds = 0;                 // that each job gets under a time limit
    TFC_TRY(s, tfc_finder_checkpoint(f));
    if (f->limit) {
      uint64_t left = f->limit - tfc_finder_spent(f);
      if (left <= TFC_SETTLE_MOST) break; // too few for a job to find anything
      quota = c->total_left * TFC_PACE_ROUND / 100;
      if (quota < FEWEST) quota = FEWEST;
      cools = c->cooling && left <= c->cooling + FEWEST / 2;
      if (c->cooling && !cools) left -= c->cooling;
      if (cools || quota > left || left - quota < quota / 4) quota = left;
      if (quota < (uint64_t)workers * FEWEST) busy = quota < FEWEST ? 1 : (uint32_t)(quota / FEWEST);
      if (cools) busy = 1;
      shares = cools && f->guidance && policy_cools(&c->credits) && !tfc_finder_is_small(f, quota);
      shares &= !is_brief(f) || tfc_rollouts_gained(f);
    }
    if (!fixed) {
      const double left = f->deadline - tfc_now_s();
      const struct tfc_pace pace = paced ? tfc_pace_step(&c->slice, left, f->threads, workers, c->temperature > 0)
                                         : tfc_pace_throughput(&c->slice, left, f->threads);
      seconds = cools ? left : pace.seconds; // one job gets the evaluations that are left
      if (pace.jobs < busy) busy = pace.jobs;
      cools |= pace.cools;
    }
    const struct tfc_score before = f->course.best, here = elite->score[0];
    for (uint32_t w = 0; w < busy; w++, c->turn++) {
      struct tfc_search_job *j = &jobs[w];
      const bool won = f->out->learned.moves.wins > 0;
      const enum tfc_search_method drawn = c->turn % 2 ? draw_method(&c->credits, won, &c->random) : TFC_METHOD_REGROUP;
      TFC_TRY(s, plan_job(p, &c->random, elite, tight, c->turn, drawn, c->temperature, j));
      j->before = before;
      j->budget.cancel = &f->stop;
      j->guide = f->o->settings.guide, j->guidance = f->guidance;
      if (f->guidance && is_policy_turn(c->turn)) j->method = TFC_METHOD_POLICY;
      if (!fixed) j->budget.found = tfc_finder_found, j->budget.found_user = f;
      if (f->limit) j->budget.evaluations = quota / busy ? quota / busy : 1;
      if (!fixed) j->slice = seconds, j->budget.deadline = f->deadline;
      // In the first round nothing has changed since the temperature was found.
      const struct tfc_search_job first = {.hot = c->temperature};
      if (cools) TFC_TRY(s, plan_cooling(p, &c->random, elite, w ? jobs : c->round ? NULL : &first, j));
      if (shares) {
        j->method = TFC_METHOD_POLICY, j->rounds = 0, j->cold = 0.01 * j->hot;
        j->policy_first = tfc_finder_is_short(f);
      }
    }
    f->at_work = "search";
    tfc_parallel_watched(busy, f->threads, run_job, &(struct job_list){f, jobs}, tfc_finder_tick, f);
    elite->varied = f->out->evaluations >= VARIED_AFTER && p->objective == TFC_OBJECTIVE_STEP;
    for (uint32_t w = 0; w < busy; w++) {
      struct tfc_search_job *j = &jobs[w];
      f->out->evaluations += j->evaluations;
      tfc_gain_count(j, fixed, &f->out->learned, &c->credits);
      if (!s && j->status) s = j->status, j->status = NULL;
      if (!s) s = tfc_finder_keep(f, &j->solution, j->score, tfc_gain_name(j));
      if (!s) s = tfc_elite_join(elite, p, &j->solution, j->score);
      tfc_status_free(j->status);
      tfc_solution_deinit(&j->solution);
      tfc_solution_deinit(&j->other);
    }
    if (s) goto out;
    const bool better = tfc_score_better(f->course.best, before);
    c->idle_here = tfc_score_better(elite->score[0], here) ? 0 : c->idle_here + 1;
    c->idle_rounds = better ? 0 : c->idle_rounds + 1;
    // On small problems the search ends after many thorough rounds without improvement, if every method had its turn.
    if (better) c->last_better = f->out->evaluations, c->better_turn = c->turn;
    uint64_t thorough = 50000 * (uint64_t)p->unit_count * p->device_count + 1000000;
    const bool proving = program->started && tfc_now_s() < f->begin + program->seconds;
    if (!fixed && !proving && c->idle_rounds >= 6 && c->turn - c->better_turn >= all_turns &&
        f->out->evaluations - c->last_better > thorough && f->deadline - f->begin > 2)
      break;
    if (c->together) continue;
    if (tfc_now_s() > f->deadline - 0.2 * (f->deadline - f->begin)) {
      c->together = true;
      TFC_TRY(s, tfc_elite_join_all(elite, &c->hall, p));
    } else if (!tfc_finder_is_over(f) && c->idle_here >= 3 && (c->left_one || c->slice >= 4 * first_slice)) {
      c->left_one = true;
      c->idle_here = 0, c->slice = first_slice;
      f->out->evaluations++;
      TFC_TRY(s, leave_valley(p, &c->random, elite, &c->hall));
    }
  }
  if (!fixed) TFC_TRY(s, tfc_finder_checkpoint(f)); // includes what an interrupted round found
out:
  for (uint32_t w = 0; w < workers; w++) tfc_solution_deinit(&jobs[w].solution), tfc_solution_deinit(&jobs[w].other);
  free(jobs);
  return s;
}

// For tiny problems: tries every placement and, if they are few enough, every order. *out_complete: everything was
// tried, so nothing is better, even if no bound proves it.
static tfc_status try_all(struct tfc_finder *f, bool *out_complete) {
  static const struct tfc_algo everything = {.name = "exhaustive"};
  const struct tfc_problem *p = f->p;
  bool orders = p->objective == TFC_OBJECTIVE_STEP;
  uint64_t most = TFC_EXHAUST_EVALUATIONS;
  tfc_status s = NULL;
  struct task t = {.algo = &everything, .score = TFC_SCORE_NONE, .seconds = tfc_now_s()};
  *out_complete = false;
  if (tfc_finder_is_over(f)) return NULL;
  if (f->limit && f->limit - tfc_finder_spent(f) < most) most = f->limit - tfc_finder_spent(f);
  uint64_t count = tfc_exhaust_count(p, most, orders);
  if (count == UINT64_MAX && orders) orders = false, count = tfc_exhaust_count(p, most / 4, false);
  if (count == UINT64_MAX) return NULL;
  t.budget = (struct tfc_budget){.deadline = f->deadline, .evaluations = most, .threads = 1, .cancel = f->o->cancel};
  TFC_TRY(s, tfc_solution_init(&t.solution, p));
  TFC_TRY(s,
          tfc_exhaust(p, &t.budget, orders, f->out->bound.value, &t.solution, &t.score, &t.evaluations, out_complete));
  t.seconds = tfc_now_s() - t.seconds;
  TFC_TRY(s, enter(f, &t));
  const struct tfc_search_entry *e = &f->out->entries[f->out->entry_count - 1];
  if (e->value != TFC_TIME_MAX)
    s = tfc_elite_join(&f->course.elite, p, &e->solution, (struct tfc_score){e->excess, e->value});
out:
  tfc_solution_deinit(&t.solution);
  return s;
}

// Chooses a new order of operations for the best placements of the elite.
static tfc_status settle_best(struct tfc_finder *f) {
  tfc_status s = NULL;
  struct tfc_elite *elite = &f->course.elite;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution best[SETTLED] = {0};
  const uint32_t count = elite->count < SETTLED ? elite->count : SETTLED;
  if (f->p->objective != TFC_OBJECTIVE_STEP || (f->limit && f->limit < 20 * SETTLED)) return NULL;
  TFC_TRY(s, tfc_simulator_create(f->p, &sim));
  for (uint32_t i = 0; i < count; i++) TFC_TRY(s, tfc_solution_copy(&best[i], &elite->solution[i], f->p));
  for (uint32_t i = 0; i < count && !tfc_finder_is_over(f); i++) {
    struct tfc_score score;
    const uint64_t left = f->limit ? f->limit - tfc_finder_spent(f) : UINT64_MAX;
    TFC_TRY(s, tfc_local_settle_within(f->p, sim, left, &best[i], &score, &f->out->evaluations));
    TFC_TRY(s, tfc_finder_keep(f, &best[i], score, "auto: order"));
    TFC_TRY(s, tfc_elite_join(elite, f->p, &best[i], score));
  }
out:
  for (uint32_t i = 0; i < count; i++) tfc_solution_deinit(&best[i]);
  tfc_simulator_free(sim);
  return s;
}

// Adds the placement that the caller gave (options.start) to the elite.
static tfc_status begin_with_start(struct tfc_finder *f) {
  const struct tfc_problem *p = f->p;
  const struct tfc_solution *start = f->o->start;
  struct tfc_simulator *sim = NULL;
  struct tfc_verdict v = {0};
  if (!start || !start->device) return NULL;
  TFC_RETURN_IF_ERROR(tfc_simulator_create(p, &sim));
  tfc_simulate(sim, start->device, start->rank, TFC_TIME_MAX, &v);
  tfc_simulator_free(sim);
  f->out->evaluations++;
  if (!v.legal) return NULL;
  TFC_RETURN_IF_ERROR(tfc_finder_keep(f, start, tfc_score_of(&v), "start"));
  return tfc_elite_join(&f->course.elite, p, start, tfc_score_of(&v));
}

// Runs the phases before the rounds, without those that an interrupted search has completed.
static tfc_status prepare(struct tfc_finder *f) {
  const struct tfc_problem *p = f->p;
  struct tfc_search_course *c = &f->course;
  tfc_status s = NULL;
  bool complete = c->complete;
  if (c->stage < TFC_STAGE_HEURISTICS) {
    TFC_TRY(s, begin_with_start(f));
    TFC_TRY(s, heuristics(f));
    TFC_TRY(s, tfc_finder_checkpoint_phase(f, TFC_STAGE_HEURISTICS));
  }
  if (c->stage < TFC_STAGE_TRIED) {
    TFC_TRY(s, try_all(f, &complete));
    c->complete = complete;
    TFC_TRY(s, tfc_finder_checkpoint_phase(f, TFC_STAGE_TRIED));
  }
  if (complete) goto out;
  if (c->stage < TFC_STAGE_SETTLED) {
    if (!is_brief(f)) TFC_TRY(s, settle_best(f));
    TFC_TRY(s, tfc_finder_checkpoint_phase(f, TFC_STAGE_SETTLED));
  }
  if (c->stage < TFC_STAGE_POLICY && asks_policy(f)) {
    TFC_TRY(s, f->o->settings.guide->open(f->o->settings.guide, p, &f->guidance));
    TFC_TRY(s, tfc_rollouts_ask(f));
    if (is_brief(f) && !tfc_rollouts_led(f)) TFC_TRY(s, settle_best(f));
    TFC_TRY(s, tfc_finder_checkpoint_phase(f, TFC_STAGE_POLICY));
  }
out:
  return s;
}

static tfc_status run_auto(struct tfc_finder *f) {
  const struct tfc_problem *p = f->p;
  tfc_status s = NULL;
  struct program_thread program = {.f = f};
  struct tfc_prover prover = {0};
  double seconds = f->deadline > 0 ? f->deadline - tfc_now_s() : 0;
  if (seconds >= 4 && p->unit_count <= TFC_ILP_UNITS && p->node_count <= 2000 && p->device_count > 1 &&
      p->device_count <= 16) {
    program.device = calloc((size_t)p->unit_count + 1, sizeof *program.device);
    program.seconds = seconds * 0.5;
    program.started = program.device && pthread_create(&program.thread, NULL, run_program, &program) == 0;
  }
  tfc_prover_begin(f, &prover);
  // The program's placement is evaluated at the end.
  const uint64_t kept = program.started && f->limit > 20 * TFC_SETTLE_MOST ? TFC_SETTLE_MOST : 0;
  f->limit -= kept;
  TFC_TRY(s, prepare(f));
  // If it was cancelled before, a resumed search begins the interrupted phase again.
  if (!f->course.complete && !tfc_finder_is_cancelled(f)) TFC_TRY(s, rounds(f, &program));
  // Everything was tried: waits for the integer program, which may prove that the best is optimal.
  for (; f->course.complete && program.started && !atomic_load(&program.done) && !tfc_finder_is_over(f);
       tfc_finder_tick(f))
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
out:
  f->limit += kept;
  atomic_store(&f->stop, true); // the integer program has the time that the search has
  s = tfc_status_join(s, finish_program(f, &program));
  tfc_prover_end(f, s == NULL, &prover);
  free(program.device);
  return s;
}

tfc_status tfc_search(const struct tfc_problem *p, const struct tfc_search_options *o, struct tfc_search_outcome *out) {
  tfc_status s = NULL;
  struct tfc_search_outcome outcome = {.value = TFC_TIME_MAX};
  struct tfc_finder f = {
      .p = p, .o = o, .out = &outcome, .course.best = TFC_SCORE_NONE, .shown = TFC_SCORE_NONE, .limit = o->evaluations};
  TFC_ARRAY(const struct tfc_algo *) algos = {0};
  bool automatic = !o->settings.algorithms;
  pthread_mutex_init(&f.lock, NULL);
  f.begin = tfc_now_s();
  f.threads = o->threads ? o->threads : tfc_parallel_cores();
  if (o->state.size) {
    TFC_TRY(s, tfc_finder_resume(&f));
  } else {
    TFC_TRY(s, tfc_bound_compute(p, NULL, &outcome.bound));
    TFC_TRY(s, tfc_finder_first_checkpoint(&f));
  }
  if (o->seconds > 0) f.deadline = tfc_finder_moment(&f, o->seconds);
  if (!f.limit && f.deadline <= 0) f.limit = 100000;
  for (tfc_str rest = tfc_str_from(o->settings.algorithms ? o->settings.algorithms : ""); rest.size;) {
    size_t comma = tfc_str_find(rest, ',');
    tfc_str name = tfc_str_sub(rest, 0, comma);
    if (tfc_str_is(name, "auto")) {
      automatic = true;
    } else {
      const struct tfc_algo *algo = tfc_finder_algo(o, name);
      if (!algo)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "there is no algorithm '%.*s' (--algorithm help lists them)",
                 TFC_STR_ARG(name));
      if (!tfc_array_push(&algos, algo)) TFC_TRY(s, tfc_status_no_memory("a search"));
    }
    rest = comma == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(rest, comma + 1, rest.size);
  }
  if (!automatic && !algos.count) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "no algorithm is named");
  if (algos.count && !f.course.stage) {
    const double deadline = f.deadline;
    const uint64_t limit = f.limit;
    if (automatic && deadline > 0) f.deadline = tfc_finder_moment(&f, o->seconds / 2);
    if (automatic && limit) f.limit = limit / 2 + 1;
    f.plain_later = automatic;
    TFC_TRY(s, run_named(&f, algos.data, (uint32_t)algos.count));
    f.deadline = deadline, f.limit = limit;
  }
  if (automatic) TFC_TRY(s, run_auto(&f));
  outcome.cancelled = o->cancel && atomic_load(o->cancel);
  outcome.seconds = tfc_now_s() - f.begin;
  if (outcome.best.device && outcome.excess == 0 && outcome.value <= outcome.bound.value) outcome.optimal = true;
  tfc_finder_tick(&f);
  *out = outcome;
  outcome = (struct tfc_search_outcome){0};
out:
  pthread_mutex_destroy(&f.lock);
  tfc_array_free(&algos);
  tfc_elite_clear(&f.course.elite);
  tfc_elite_clear(&f.course.hall);
  if (o->settings.guide && f.guidance) o->settings.guide->close(f.guidance);
  tfc_search_outcome_deinit(&outcome);
  return s;
}

void tfc_search_outcome_deinit(struct tfc_search_outcome *o) {
  tfc_solution_deinit(&o->best);
  for (uint32_t i = 0; i < o->entry_count; i++) {
    tfc_solution_deinit(&o->entries[i].solution);
    free(o->entries[i].note);
  }
  free(o->entries);
  *o = (struct tfc_search_outcome){0};
}
