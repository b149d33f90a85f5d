// `auto` has three phases. Heuristics run side by side, each once. Then rounds: every worker takes a placement from the
// elite and improves it by its method (annealing on units, on clusters, from nothing, large neighbourhoods), rounds
// getting longer; what they find goes back to the elite in the order of the workers. At last the best ones are polished
// by descent. Under a clock there are as many workers as threads; under a number of evaluations there are always eight,
// and nothing looks at the clock: the outcome depends on the seed alone.
#include "placer/search.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "placer/ilp.h"
#include "placer/lns.h"
#include "placer/local.h"
#include "placer/parallel.h"
#include "runtime/base/array.h"

#define FIXED_WORKERS 8
#define ELITE 8

struct finder {
  const struct tfc_problem *p;
  const struct tfc_search_options *o;
  struct tfc_search_outcome *out;
  double begin, deadline; // seconds; deadline 0: none
  uint64_t limit;         // evaluations, 0: none
  uint32_t threads;
  struct tfc_score best;  // that is kept
  struct tfc_score shown; // by progress: jobs report what they found when they end
  const char *at_work;
  pthread_mutex_t lock; // shown
  atomic_bool stop;     // cancelled, or optimal
};

static uint64_t spent(const struct finder *f) {
  return f->out->evaluations;
}

static void tick(void *user) {
  struct finder *f = user;
  if (f->o->cancel && atomic_load(f->o->cancel)) atomic_store(&f->stop, true);
  if (!f->o->progress) return;
  pthread_mutex_lock(&f->lock);
  struct tfc_search_progress progress = {
      .algorithm = f->at_work,
      .seconds = tfc_seconds_now() - f->begin,
      .seconds_total = f->o->seconds,
      .evaluations = f->out->evaluations,
      .evaluations_total = f->limit,
      .best = f->shown.value,
      .feasible = f->shown.value != TFC_TIME_MAX && f->shown.excess == 0,
      .bound = f->out->bound.value,
  };
  pthread_mutex_unlock(&f->lock);
  f->o->progress(f->o->user, &progress);
}

// Keeps a placement if it is the best so far. Called by the searching thread only.
static tfc_status keep(struct finder *f, const struct tfc_solution *solution, struct tfc_score score,
                       const char *name) {
  if (f->out->best.device && !tfc_score_better(score, f->best)) return NULL;
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&f->out->best, solution, f->p));
  pthread_mutex_lock(&f->lock);
  f->best = score;
  if (tfc_score_better(score, f->shown)) f->shown = score;
  pthread_mutex_unlock(&f->lock);
  f->out->value = score.value, f->out->excess = score.excess, f->out->algorithm = name;
  if (score.value <= f->out->bound.value && score.excess == 0) {
    f->out->optimal = true;
    atomic_store(&f->stop, true);
  }
  return NULL;
}

static bool is_over(const struct finder *f) {
  return atomic_load(&f->stop) || (f->o->cancel && atomic_load(f->o->cancel)) ||
         (f->deadline > 0 && tfc_seconds_now() >= f->deadline) || (f->limit && spent(f) >= f->limit);
}

// --- one algorithm after another, or side by side
// ---------------------------------------------------------------------

struct task {
  const struct tfc_algo *algo;
  struct tfc_budget budget;
  struct tfc_evaluator *evaluator;
  struct tfc_solution solution;
  struct tfc_score score;
  uint64_t evaluations;
  double seconds;
  tfc_status status; // of the algorithm
};
struct task_list {
  struct finder *f;
  struct task *tasks;
};

static tfc_status run_task_(const struct finder *f, struct task *t) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  TFC_TRY(s, tfc_solution_init(&t->solution, f->p));
  TFC_TRY(s, t->algo->propose(f->p, t->evaluator, &t->budget, &t->solution, &t->evaluations));
  TFC_TRY(s, tfc_simulator_create(f->p, &sim));
  // What it proposed, as it proposed it: with its own order, or the problem's.
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
  double begin = tfc_seconds_now();
  t->score = TFC_SCORE_NONE;
  t->status = run_task_(list->f, t);
  t->seconds = tfc_seconds_now() - begin;
}

// Turns a task into an entry of the outcome and keeps its placement if it is the best. The task is spent.
static tfc_status enter(struct finder *f, struct task *t) {
  struct tfc_search_outcome *o = f->out;
  struct tfc_search_entry *entries = realloc(o->entries, (o->entry_count + 1) * sizeof *entries);
  tfc_status s = NULL;
  if (!entries) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a search");
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
  if (solution->device && t->score.value != TFC_TIME_MAX) s = keep(f, solution, t->score, t->algo->name);
out:
  tfc_status_free(t->status);
  t->status = NULL;
  return s;
}

static const struct tfc_algo *find_algo(const struct tfc_search_options *o, tfc_str name) {
  for (size_t i = 0; o->extra && o->extra[i]; i++)
    if (tfc_str_is(name, o->extra[i]->name)) return o->extra[i];
  return tfc_algo_find(name);
}

// Algorithms by name, each with an equal part of what is left for those that take all they get.
static tfc_status run_named(struct finder *f, const struct tfc_algo *const *algos, uint32_t count) {
  tfc_status s = NULL;
  struct tfc_evaluator *simulated = NULL;
  if (!f->o->evaluator) TFC_TRY(s, tfc_evaluator_simulated(f->p, f->threads, &simulated));
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t left = count - i;
    struct task task = {.algo = algos[i], .evaluator = f->o->evaluator ? f->o->evaluator : simulated};
    task.budget = (struct tfc_budget){.seed = f->o->seed + i, .threads = f->threads, .cancel = &f->stop};
    if (i && is_over(f)) break;
    if (f->limit) task.budget.evaluations = (f->limit - spent(f) + left - 1) / left;
    if (f->deadline > 0) {
      double now = tfc_seconds_now();
      task.budget.deadline = now + (f->deadline - now) / left;
    }
    f->at_work = algos[i]->name;
    tfc_parallel_watched(1, 1, run_task, &(struct task_list){f, &task}, tick, f);
    TFC_TRY(s, enter(f, &task));
  }
out:
  tfc_evaluator_free(simulated);
  return s;
}

// --- auto ----------------------------------------------------------------------------------------------------------

struct elite {
  struct tfc_solution solution[ELITE];
  struct tfc_score score[ELITE];
  uint32_t count;
};
// In the order of the scores; one placement for each score.
static tfc_status join_elite(struct elite *e, const struct tfc_problem *p, const struct tfc_solution *solution,
                             struct tfc_score score) {
  uint32_t at = 0;
  if (score.value == TFC_TIME_MAX && e->count) return NULL;
  while (at < e->count && tfc_score_better(e->score[at], score)) at++;
  if (at == ELITE || (at < e->count && !tfc_score_better(score, e->score[at]))) return NULL;
  struct tfc_solution copy = {0};
  TFC_RETURN_IF_ERROR(tfc_solution_copy(&copy, solution, p));
  if (e->count == ELITE) tfc_solution_deinit(&e->solution[--e->count]);
  memmove(&e->solution[at + 1], &e->solution[at], (e->count - at) * sizeof *e->solution);
  memmove(&e->score[at + 1], &e->score[at], (e->count - at) * sizeof *e->score);
  e->solution[at] = copy, e->score[at] = score, e->count++;
  return NULL;
}

// Annealing by units, cool or hot; by clusters of what is together; by clusters of what is together in two placements;
// from nothing; large neighbourhoods.
enum method { METHOD_ANNEAL, METHOD_CLUSTERS, METHOD_LNS, METHOD_HOT, METHOD_COMBINE, METHOD_FRESH };
static const char *const method_names[] = {"auto: anneal", "auto: multilevel", "auto: lns",
                                           "auto: anneal", "auto: combine",    "auto: fresh"};
static const enum method step_methods[] = {METHOD_ANNEAL, METHOD_CLUSTERS, METHOD_LNS, METHOD_HOT, METHOD_COMBINE};
static const enum method throughput_methods[] = {METHOD_FRESH,   METHOD_CLUSTERS, METHOD_ANNEAL,
                                                 METHOD_COMBINE, METHOD_HOT,      METHOD_LNS};
struct job {
  enum method method;
  struct tfc_budget budget;
  struct tfc_solution solution, other; // other: to be combined with
  struct tfc_score score;
  uint64_t evaluations;
  double hot;
  bool fixed; // no clock
  tfc_status status;
};
struct job_list {
  struct finder *f;
  struct job *jobs;
};

// What is left of a budget after `used` evaluations, a share of it.
static struct tfc_budget part_of(const struct tfc_budget *budget, uint64_t used, double share, uint64_t seed) {
  struct tfc_budget part = *budget;
  if (budget->evaluations) {
    uint64_t left = budget->evaluations > used ? budget->evaluations - used : 1;
    part.evaluations = (uint64_t)((double)left * share) + 1;
    if (part.evaluations > left) part.evaluations = left;
  }
  if (budget->deadline > 0) {
    double now = tfc_seconds_now();
    part.deadline = now + (budget->deadline - now) * share;
  }
  part.seed = seed;
  return part;
}

static bool job_over(const struct job *j) {
  return tfc_budget_over(&j->budget) || (j->budget.evaluations && j->evaluations >= j->budget.evaluations);
}

// From coarse to fine: clusters of what has one label now, then of what is on one device, at last units.
static tfc_status anneal_levels(const struct tfc_problem *p, struct job *j, struct tfc_random *random,
                                struct tfc_solution *solution, struct tfc_score *score, const tfc_device_id *label) {
  tfc_status s = NULL;
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1));
  if (!cluster) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for a search");
  uint32_t target = 12 * p->device_count + (uint32_t)tfc_random_below(random, 40 * p->device_count);
  for (int level = 0; level < 4 && !job_over(j); level++, target *= 4) {
    const tfc_device_id *together = level ? solution->device : label;
    if (target >= p->unit_count) level = 3;
    uint32_t count = level < 3 ? tfc_local_coarsen(p, random, together, target, cluster) : p->unit_count;
    struct tfc_anneal_options options = {.hot = j->hot / (1 + level), .cold = 0.0003};
    if (count && level < 3) options.cluster = cluster, options.cluster_count = count;
    struct tfc_budget part = part_of(&j->budget, j->evaluations, level < 3 ? 0.4 : 1, tfc_random_u64(random));
    TFC_TRY(s, tfc_local_anneal(p, &part, &options, solution, score, &j->evaluations));
  }
out:
  free(cluster);
  return s;
}

// From a beginning that has nothing to do with the elite: units anywhere in one long run, or clusters anywhere.
static tfc_status anneal_fresh(const struct tfc_problem *p, struct job *j, struct tfc_random *random) {
  tfc_status s = NULL;
  struct tfc_solution trial = {0};
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1)), *home = NULL;
  const bool units = tfc_random_below(random, 2);
  const uint32_t target = 8 * p->device_count + (uint32_t)tfc_random_below(random, 40 * p->device_count);
  struct tfc_score score = TFC_SCORE_NONE;
  if (!cluster) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a search");
  TFC_TRY(s, tfc_solution_init(&trial, p));
  if (units) {
    struct tfc_anneal_options options = {.hot = 0.03 * pow(10, tfc_random_unit(random)),
                                         .cold = 0.0002,
                                         .squarings = 3 + (uint32_t)tfc_random_below(random, 3)};
    tfc_local_any(p, random, trial.device);
    TFC_TRY(s, tfc_local_anneal(p, &j->budget, &options, &trial, &score, &j->evaluations));
  } else {
    const uint32_t count = tfc_local_coarsen(p, random, NULL, target, cluster);
    home = malloc(sizeof *home * (count + 1u));
    if (!count || !home) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a search");
    for (uint32_t c = 0; c < count; c++) home[c] = (uint32_t)tfc_random_below(random, p->device_count);
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint32_t d = home[cluster[u]];
      while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
      trial.device[u] = (tfc_device_id)d;
    }
    if (p->has_missing_links || p->has_limits) tfc_local_repair(p, random, trial.device, NULL);
    struct tfc_anneal_options options = {.hot = 0.3, .cold = 0.003, .cluster = cluster, .cluster_count = count};
    struct tfc_budget part = part_of(&j->budget, j->evaluations, 0.3, tfc_random_u64(random));
    TFC_TRY(s, tfc_local_anneal(p, &part, &options, &trial, &score, &j->evaluations));
    TFC_TRY(s, anneal_levels(p, j, random, &trial, &score, trial.device));
  }
  if (tfc_score_better(score, j->score)) { // else what it was given stays
    const struct tfc_solution given = j->solution;
    j->solution = trial, trial = given, j->score = score;
  }
out:
  tfc_solution_deinit(&trial);
  free(cluster), free(home);
  return s;
}

static tfc_status run_job_(const struct finder *f, struct job *j) {
  const struct tfc_problem *p = f->p;
  tfc_status s = NULL;
  struct tfc_random random;
  struct tfc_simulator *sim = NULL;
  const bool orders = p->objective == TFC_OBJECTIVE_STEP;
  tfc_random_init(&random, j->budget.seed);
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  if (j->method == METHOD_LNS) {
    TFC_TRY(s, tfc_local_lns(p, &j->budget, &j->solution, &j->score, &j->evaluations));
  } else if (j->method == METHOD_ANNEAL || j->method == METHOD_HOT) {
    struct tfc_anneal_options options = {.hot = j->hot, .cold = fmin(j->hot, 0.0001), .orders = orders};
    TFC_TRY(s, tfc_local_anneal(p, &j->budget, &options, &j->solution, &j->score, &j->evaluations));
  } else if (j->method == METHOD_FRESH) {
    TFC_TRY(s, anneal_fresh(p, j, &random));
  } else if (j->method == METHOD_COMBINE) { // what is together in both stays so at first
    for (uint32_t u = 0; u < p->unit_count; u++)
      j->other.device[u] = (tfc_device_id)(j->solution.device[u] * p->device_count + j->other.device[u]);
    TFC_TRY(s, anneal_levels(p, j, &random, &j->solution, &j->score, j->other.device));
  } else {
    TFC_TRY(s, anneal_levels(p, j, &random, &j->solution, &j->score, j->solution.device));
  }
  struct tfc_score settled;
  if (orders) {
    struct tfc_solution trial = {0};
    TFC_TRY(s, tfc_solution_copy(&trial, &j->solution, p));
    s = tfc_local_settle(p, sim, &trial, &settled, &j->evaluations);
    if (!s && tfc_score_better(settled, j->score)) {
      s = tfc_solution_copy(&j->solution, &trial, p);
      j->score = settled;
    }
    tfc_solution_deinit(&trial);
  }
out:
  tfc_simulator_free(sim);
  return s;
}
static void run_job(void *user, uint32_t i) {
  struct job_list *list = user;
  struct job *j = &list->jobs[i];
  j->status = run_job_(list->f, j);
  if (!j->status && list->f->deadline > 0) { // for progress only
    pthread_mutex_lock(&list->f->lock);
    if (tfc_score_better(j->score, list->f->shown)) list->f->shown = j->score;
    pthread_mutex_unlock(&list->f->lock);
  }
}

static tfc_status heuristics(struct finder *f, struct elite *elite) {
  static const char *const names[] = {"single", "split", "dp",    "m-topo", "m-etf",       "heft",
                                      "peft",   "m-sct", "metis", "scotch", "round-robin", "multilevel"};
  enum { COUNT = sizeof names / sizeof *names };
  struct task tasks[COUNT] = {0};
  tfc_status s = NULL;
  uint32_t count = 0;
  uint64_t planned = 0;
  for (uint32_t i = 0; i < COUNT; i++) {
    struct task *t = &tasks[count];
    t->algo = tfc_algo_find(tfc_str_from(names[i]));
    t->budget = (struct tfc_budget){.seed = f->o->seed + i, .threads = 1, .cancel = &f->stop};
    if (f->limit) { // each evaluates a few placements only
      uint64_t few = i == 0 ? f->p->device_count : 6;
      bool searching = t->algo->needs & TFC_NEEDS_BUDGET;
      if (searching) few = f->limit / 20;
      if (i && planned + few > f->limit / 2) continue;
      planned += few;
      t->budget.evaluations = searching ? few : i == 0 ? f->limit : 0;
      if (strcmp(names[i], "m-sct") == 0 && f->p->node_count > 600) continue; // its program has no clock here
    }
    if (f->deadline > 0) t->budget.deadline = f->begin + (f->deadline - f->begin) * (i == 0 ? 0.5 : 0.2);
    count++;
  }
  f->at_work = "heuristics";
  tfc_parallel_watched(count, f->threads, run_task, &(struct task_list){f, tasks}, tick, f);
  for (uint32_t i = 0; i < count; i++) {
    tfc_status entered = enter(f, &tasks[i]);
    if (entered) {
      s = tfc_status_join(s, entered);
      continue;
    }
    const struct tfc_search_entry *e = &f->out->entries[f->out->entry_count - 1];
    if (!s && e->solution.device) s = join_elite(elite, f->p, &e->solution, (struct tfc_score){e->excess, e->value});
  }
  return s;
}

struct program_thread {
  struct finder *f;
  pthread_t thread;
  bool started;
  struct tfc_ilp_answer answer;
  tfc_device_id *device;
  tfc_status status;
  double seconds;
};
static void *run_program(void *argument) {
  struct program_thread *t = argument;
  const struct tfc_problem *p = t->f->p;
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1));
  if (!cluster) return NULL;
  for (uint32_t u = 0; u < p->unit_count; u++) cluster[u] = u;
  t->status = tfc_ilp_solve(p, cluster, p->unit_count, t->seconds, 0, NULL, t->device, &t->answer);
  free(cluster);
  return NULL;
}

static tfc_status finish_program(struct finder *f, struct program_thread *t) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  if (!t->started) return NULL;
  pthread_join(t->thread, NULL);
  t->started = false;
  if (t->status) { // the search has its own answer
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
  TFC_TRY(s, tfc_local_settle(f->p, sim, &solution, &score, &f->out->evaluations));
  if (score.value != TFC_TIME_MAX) TFC_TRY(s, keep(f, &solution, score, "ilp"));
out:
  tfc_solution_deinit(&solution);
  tfc_simulator_free(sim);
  return s;
}

static void clear_elite(struct elite *e) {
  for (uint32_t i = 0; i < e->count; i++) tfc_solution_deinit(&e->solution[i]);
  e->count = 0;
}
static tfc_status join_all(struct elite *to, const struct elite *from, const struct tfc_problem *p) {
  for (uint32_t i = 0; i < from->count; i++) TFC_RETURN_IF_ERROR(join_elite(to, p, &from->solution[i], from->score[i]));
  return NULL;
}

// Where a valley is searched through (the first one thoroughly), the search goes to another one:
// what was found is put aside in `hall`, and the elite is one placement of no merit. In the last fifth of the time all
// that was put aside comes together.
static tfc_status leave_valley(const struct tfc_problem *p, struct tfc_random *random, struct elite *elite,
                               struct elite *hall) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution any = {0};
  struct tfc_verdict v = {0};
  TFC_TRY(s, join_all(hall, elite, p));
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_solution_init(&any, p));
  tfc_local_any(p, random, any.device);
  tfc_simulate(sim, any.device, NULL, TFC_TIME_MAX, &v);
  clear_elite(elite);
  TFC_TRY(s, join_elite(elite, p, &any, tfc_score_of(&v)));
out:
  tfc_solution_deinit(&any);
  tfc_simulator_free(sim);
  return s;
}

static tfc_status rounds(struct finder *f, struct elite *elite, struct program_thread *program) {
  const struct tfc_problem *p = f->p;
  tfc_status s = NULL;
  const bool fixed = f->deadline <= 0;
  const uint32_t workers = fixed ? FIXED_WORKERS : f->threads;
  struct job *jobs = calloc(workers, sizeof *jobs);
  struct tfc_random random;
  struct elite hall = {0};
  const bool valleys = !fixed && p->objective == TFC_OBJECTIVE_THROUGHPUT;
  bool together = !valleys, left_one = false; // together: no valley is left any more
  uint32_t idle_rounds = 0, idle_here = 0;
  uint64_t turn = 0, last_better = 0;
  if (!jobs) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for a search");
  tfc_random_init(&random, f->o->seed ^ 0x5eed);
  // Long enough to cool down a placement of this size.
  const double first_slice = 0.15 + 6e-4 * p->unit_count * p->device_count;
  double slice = 0;
  uint64_t quota = 0, total_left = f->limit > spent(f) ? f->limit - spent(f) : 0;
  for (uint32_t round = 0; !is_over(f) && elite->count && p->device_count > 0; round++) {
    uint32_t busy = workers;
    if (f->limit) {
      uint64_t left = f->limit - spent(f);
      quota = round == 0 ? total_left / 10 : quota + quota / 2;
      if (quota > left || left - quota < quota / 4) quota = left;
      if (quota < workers) busy = 1;
    }
    if (!fixed) {
      double now = tfc_seconds_now(), left = f->deadline - now;
      slice = round == 0 ? fmax(0.15, left / 30) : slice * 1.35;
      if (slice > left || left - slice < slice / 3) slice = left;
    }
    const struct tfc_score before = f->best, here = elite->score[0];
    for (uint32_t w = 0; w < busy; w++, turn++) {
      struct job *j = &jobs[w];
      uint64_t seed = tfc_random_u64(&random);
      // The best one most of the time, another of the elite else.
      uint32_t pick = seed % 5 < 3 ? 0 : (uint32_t)(seed / 5 % elite->count);
      *j = (struct job){.score = elite->score[pick], .fixed = fixed};
      TFC_TRY(s, tfc_solution_copy(&j->solution, &elite->solution[pick], p));
      j->method = p->objective == TFC_OBJECTIVE_STEP
                      ? step_methods[turn % (sizeof step_methods / sizeof *step_methods)]
                      : throughput_methods[turn % (sizeof throughput_methods / sizeof *throughput_methods)];
      if (j->method == METHOD_COMBINE && (elite->count < 2 || p->device_count > 250)) j->method = METHOD_CLUSTERS;
      if (j->method == METHOD_COMBINE) {
        uint32_t with = (uint32_t)(seed / 40 % (elite->count - 1));
        TFC_TRY(s, tfc_solution_copy(&j->other, &elite->solution[with + (with >= pick)], p));
      }
      // Temperatures from one to another round: hot runs leave the valley, the others search in it.
      double u = tfc_random_unit(&random);
      if (j->method == METHOD_HOT || j->method == METHOD_FRESH)
        j->hot = 0.03 * pow(0.2, u);
      else
        j->hot = (j->method == METHOD_CLUSTERS || j->method == METHOD_COMBINE ? 0.02 : 0.004) * pow(0.1, u);
      j->budget = (struct tfc_budget){.seed = seed, .threads = 1, .cancel = &f->stop};
      if (f->limit) j->budget.evaluations = quota / busy ? quota / busy : 1;
      if (!fixed) j->budget.deadline = tfc_seconds_now() + slice;
    }
    f->at_work = "search";
    tfc_parallel_watched(busy, f->threads, run_job, &(struct job_list){f, jobs}, tick, f);
    for (uint32_t w = 0; w < busy; w++) {
      struct job *j = &jobs[w];
      f->out->evaluations += j->evaluations;
      if (!s && j->status) s = j->status, j->status = NULL;
      if (!s) s = keep(f, &j->solution, j->score, method_names[j->method]);
      if (!s) s = join_elite(elite, p, &j->solution, j->score);
      tfc_status_free(j->status);
      tfc_solution_deinit(&j->solution);
      tfc_solution_deinit(&j->other);
    }
    if (s) goto out;
    const bool better = tfc_score_better(f->best, before);
    idle_here = tfc_score_better(elite->score[0], here) ? 0 : idle_here + 1;
    idle_rounds = better ? 0 : idle_rounds + 1;
    // On small problems, many thorough rounds in vain are enough.
    if (better) last_better = f->out->evaluations;
    uint64_t thorough = 50000 * (uint64_t)p->unit_count * p->device_count + 1000000;
    const bool proving = program->started && tfc_seconds_now() < f->begin + program->seconds;
    if (!fixed && !proving && idle_rounds >= 6 && f->out->evaluations - last_better > thorough &&
        f->deadline - f->begin > 2)
      break;
    if (together) continue;
    if (tfc_seconds_now() > f->deadline - 0.2 * (f->deadline - f->begin)) {
      together = true;
      TFC_TRY(s, join_all(elite, &hall, p));
    } else if (idle_here >= 3 && (left_one || slice >= 4 * first_slice)) {
      left_one = true;
      idle_here = 0, slice = first_slice;
      TFC_TRY(s, leave_valley(p, &random, elite, &hall));
    }
  }
out:
  for (uint32_t w = 0; w < workers; w++) tfc_solution_deinit(&jobs[w].solution), tfc_solution_deinit(&jobs[w].other);
  clear_elite(&hall);
  free(jobs);
  return s;
}

static tfc_status run_auto(struct finder *f) {
  const struct tfc_problem *p = f->p;
  tfc_status s = NULL;
  struct elite elite = {0};
  struct program_thread program = {.f = f};
  if (f->o->start && f->o->start->device) {
    struct tfc_simulator *sim = NULL;
    struct tfc_verdict v = {0};
    TFC_TRY(s, tfc_simulator_create(p, &sim));
    tfc_simulate(sim, f->o->start->device, f->o->start->rank, TFC_TIME_MAX, &v);
    tfc_simulator_free(sim);
    f->out->evaluations++;
    if (v.legal) TFC_TRY(s, keep(f, f->o->start, tfc_score_of(&v), "start"));
    if (v.legal) TFC_TRY(s, join_elite(&elite, p, f->o->start, tfc_score_of(&v)));
  }
  double seconds = f->deadline > 0 ? f->deadline - tfc_seconds_now() : 0;
  if (seconds >= 4 && p->unit_count <= TFC_ILP_UNITS && p->node_count <= 2000 && p->device_count > 1 &&
      p->device_count <= 16) {
    program.device = calloc((size_t)p->unit_count + 1, sizeof *program.device);
    program.seconds = seconds * 0.5;
    program.started = program.device && pthread_create(&program.thread, NULL, run_program, &program) == 0;
  }
  TFC_TRY(s, heuristics(f, &elite));
  TFC_TRY(s, rounds(f, &elite, &program));
out:
  s = tfc_status_join(s, finish_program(f, &program));
  free(program.device);
  clear_elite(&elite);
  return s;
}

tfc_status tfc_search(const struct tfc_problem *p, const struct tfc_search_options *o, struct tfc_search_outcome *out) {
  tfc_status s = NULL;
  struct tfc_search_outcome outcome = {.value = TFC_TIME_MAX};
  struct finder f = {
      .p = p, .o = o, .out = &outcome, .best = TFC_SCORE_NONE, .shown = TFC_SCORE_NONE, .limit = o->evaluations};
  TFC_ARRAY(const struct tfc_algo *) algos = {0};
  bool automatic = !o->algorithms;
  pthread_mutex_init(&f.lock, NULL);
  f.begin = tfc_seconds_now();
  f.threads = o->threads ? o->threads : tfc_parallel_cores();
  if (o->seconds > 0) f.deadline = f.begin + o->seconds;
  if (!f.limit && f.deadline <= 0) f.limit = 100000;
  for (tfc_str rest = tfc_str_from(o->algorithms ? o->algorithms : ""); rest.size;) {
    size_t comma = tfc_str_find(rest, ',');
    tfc_str name = tfc_str_sub(rest, 0, comma);
    if (tfc_str_is(name, "auto")) {
      automatic = true;
    } else {
      const struct tfc_algo *algo = find_algo(o, name);
      if (!algo)
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "there is no algorithm '%.*s' (--algorithm help lists them)",
                 TFC_STR_ARG(name));
      if (!tfc_array_push(&algos, algo)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for a search");
    }
    rest = comma == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(rest, comma + 1, rest.size);
  }
  if (!automatic && !algos.count) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "no algorithm is named");
  TFC_TRY(s, tfc_bound_compute(p, NULL, &outcome.bound));
  if (algos.count) {
    const double deadline = f.deadline;
    const uint64_t limit = f.limit;
    if (automatic && deadline > 0) f.deadline = f.begin + o->seconds / 2;
    if (automatic && limit) f.limit = limit / 2 + 1;
    TFC_TRY(s, run_named(&f, algos.data, (uint32_t)algos.count));
    f.deadline = deadline, f.limit = limit;
  }
  if (automatic) TFC_TRY(s, run_auto(&f));
  outcome.cancelled = o->cancel && atomic_load(o->cancel);
  if (outcome.best.device && outcome.excess == 0 && outcome.value <= outcome.bound.value) outcome.optimal = true;
  tick(&f);
  *out = outcome;
  outcome = (struct tfc_search_outcome){0};
out:
  pthread_mutex_destroy(&f.lock);
  tfc_array_free(&algos);
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
