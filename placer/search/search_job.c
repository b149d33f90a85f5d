#include "placer/search/search_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/search/anneal.h"
#include "placer/search/communities.h"
#include "placer/search/gain.h"
#include "placer/search/guide.h"
#include "placer/search/lns.h"
#include "placer/search/names.h"
#include "placer/search/parts.h"

#define KEPT_STARTS 6
#define MANY_REGIONS 10  // number of moves, of 16, that take a connected region
#define CRITICAL 0.5     // share of the moves of units that begin at a critical operation
#define SHARE_BLOCKS 8   // number of blocks of a job that the policy shares with annealing
#define SHARE_LEAST 12   // least number of evaluations of such a block
#define SHARE_KEPT 0.8   // each newer block multiplies the weight of the older ones of the same way by this
#define FIRST_SHARE 0.8  // in a job of policy_first, share of the budget for the policy's moves
#define SETTLES 20       // a job of at least this many evaluations keeps some of them for the order of operations
#define SHARE_FLOOR 0.15 // this share of the greater worth is added to both, so that either can be drawn

const char *const tfc_search_method_names[] = {"auto: anneal",  "auto: multilevel", "auto: lns",   "auto: anneal",
                                               "auto: combine", "auto: fresh",      "auto: names", "auto: regroup",
                                               "auto: pack",    "auto: policy"};

// Returns a part of a budget: this share of what is left after `used` evaluations.
static struct tfc_budget part_of(const struct tfc_budget *budget, uint64_t used, double share, uint64_t seed) {
  struct tfc_budget part = *budget;
  if (budget->evaluations) {
    uint64_t left = budget->evaluations > used ? budget->evaluations - used : 1;
    part.evaluations = (uint64_t)((double)left * share) + 1;
    if (part.evaluations > left) part.evaluations = left;
  }
  if (budget->deadline > 0) {
    double now = tfc_now_s();
    part.deadline = now + (budget->deadline - now) * share;
  }
  part.seed = seed;
  return part;
}

// Returns a random number of clusters to begin with: between a few for each device and many, but fewer than there are
// units.
static uint32_t any_target(const struct tfc_problem *p, struct tfc_random *random) {
  const double few = 3.0 * p->device_count, many = fmin(48.0 * p->device_count, 0.6 * p->unit_count);
  return many <= few ? (uint32_t)few : (uint32_t)(few * pow(many / few, tfc_random_unit(random)));
}

static bool job_over(const struct tfc_search_job *j) {
  return tfc_budget_over(&j->budget) || (j->budget.evaluations && j->evaluations >= j->budget.evaluations);
}

// Anneals from coarse to fine: first clusters of units whose `label` is equal (the caller's; say, the device in a given
// placement), then clusters of units on one device of the current solution, finally single units.
static tfc_status anneal_levels(const struct tfc_problem *p, struct tfc_search_job *j, struct tfc_random *random,
                                struct tfc_solution *solution, struct tfc_score *score, const tfc_device_id *label) {
  tfc_status s = NULL;
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1));
  if (!cluster) return tfc_status_no_memory("a search");
  uint32_t target = any_target(p, random);
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

// Puts each cluster on a random device.
static void scatter(const struct tfc_problem *p, struct tfc_random *random, const uint32_t *cluster, uint32_t *home,
                    uint32_t count, tfc_device_id *device) {
  for (uint32_t c = 0; c < count; c++) home[c] = (uint32_t)tfc_random_below(random, p->device_count);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    uint32_t d = home[cluster[u]];
    while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
    device[u] = (tfc_device_id)d;
  }
  if (p->has_missing_links || p->has_limits) tfc_local_repair(p, random, device, NULL);
}

// The results of the latest starts.
struct starts {
  tfc_device_id *device[KEPT_STARTS]; // [unit]
  uint32_t count;
};

static void keep_start(const struct tfc_problem *p, struct tfc_random *random, struct starts *starts,
                       const tfc_device_id *device) {
  uint32_t at = starts->count < KEPT_STARTS ? starts->count : (uint32_t)tfc_random_below(random, KEPT_STARTS);
  if (!starts->device[at]) starts->device[at] = malloc(sizeof *device * ((size_t)p->unit_count + 1));
  if (!starts->device[at]) return; // out of memory: this start is not kept
  memcpy(starts->device[at], device, sizeof *device * p->unit_count);
  if (at == starts->count) starts->count++;
}

// Makes clusters of units that several earlier starts put on one device. A cut that is cheap is found by most starts,
// so units that all starts kept together are rarely worth separating. Returns their number; 0: out of memory.
static uint32_t agree(const struct tfc_problem *p, struct tfc_random *random, const struct starts *starts,
                      uint32_t *cluster) {
  tfc_device_id *label = calloc((size_t)p->unit_count + 1, sizeof *label);
  const uint32_t asked = 2 + (uint32_t)tfc_random_below(random, 2);
  uint32_t count = 1;
  // Each new label stands for a pair: the old label and the device in this start.
  for (uint32_t k = 0; label && k < asked; k++) {
    const tfc_device_id *device = starts->device[tfc_random_below(random, starts->count)];
    uint32_t *number = calloc((size_t)count * p->device_count, sizeof *number), next = 0;
    if (!number) break;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint32_t *x = &number[(size_t)label[u] * p->device_count + device[u]];
      if (!*x) *x = ++next;
      label[u] = (tfc_device_id)(*x - 1);
    }
    count = next;
    free(number);
  }
  count = label ? tfc_local_coarsen(p, random, label, 2 * p->device_count, cluster) : 0;
  free(label);
  return count;
}

// One start that does not depend on the elite. Either it begins with single units, from the placement of tfc_local_any;
// or it puts clusters on random devices, and anneals first clusters, then units. The clusters are strongly connected
// units, or units that several earlier starts put together.
static tfc_status anneal_once(const struct tfc_problem *p, struct tfc_search_job *j, struct tfc_random *random,
                              struct starts *starts) {
  tfc_status s = NULL;
  struct tfc_solution trial = {0};
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1)), *home = NULL;
  const bool agreed = starts->count >= 2 && tfc_random_below(random, 3) == 0;
  const bool units = !agreed && tfc_random_below(random, 2);
  struct tfc_score score = TFC_SCORE_NONE;
  if (!cluster) TFC_TRY(s, tfc_status_no_memory("a search"));
  TFC_TRY(s, tfc_solution_init(&trial, p));
  if (units) {
    struct tfc_anneal_options options = {.hot = 0.03 * pow(10, tfc_random_unit(random)),
                                         .cold = 0.0002,
                                         .squarings = 3 + (uint32_t)tfc_random_below(random, 3)};
    tfc_local_any(p, random, trial.device);
    TFC_TRY(s, tfc_local_anneal(p, &j->budget, &options, &trial, &score, &j->evaluations));
  } else {
    const uint32_t count =
        agreed ? agree(p, random, starts, cluster) : tfc_local_coarsen(p, random, NULL, any_target(p, random), cluster);
    home = malloc(sizeof *home * (count + 1u));
    if (!count || !home) TFC_TRY(s, tfc_status_no_memory("a search"));
    scatter(p, random, cluster, home, count, trial.device);
    struct tfc_anneal_options options = {.hot = 0.3, .cold = 0.003, .cluster = cluster, .cluster_count = count};
    struct tfc_budget part = part_of(&j->budget, j->evaluations, 0.3, tfc_random_u64(random));
    TFC_TRY(s, tfc_local_anneal(p, &part, &options, &trial, &score, &j->evaluations));
    TFC_TRY(s, anneal_levels(p, j, random, &trial, &score, trial.device));
  }
  keep_start(p, random, starts, trial.device);
  if (tfc_score_better(score, j->score)) { // otherwise the given placement stays
    const struct tfc_solution given = j->solution;
    j->solution = trial, trial = given, j->score = score;
  }
out:
  tfc_solution_deinit(&trial);
  free(cluster), free(home);
  return s;
}

// Makes many starts, short and longer ones: chance decides in which valley a start ends, and a longer start does not
// find better valleys (operator graphs of Transformers have few, far apart).
static tfc_status anneal_fresh(const struct tfc_problem *p, struct tfc_search_job *j, struct tfc_random *random) {
  const struct tfc_budget whole = j->budget;
  const uint64_t size = (uint64_t)p->unit_count * p->device_count, begin = j->evaluations;
  struct starts starts = {0};
  tfc_status s = NULL;
  do {
    const uint64_t used = j->evaluations - begin;
    uint64_t evaluations = 2000 + (size * 100 << tfc_random_below(random, 4));
    if (whole.evaluations && evaluations > whole.evaluations - used) evaluations = whole.evaluations - used;
    struct tfc_search_job once = *j;
    once.budget.evaluations = evaluations, once.evaluations = 0;
    once.budget.seed = tfc_random_u64(random);
    s = anneal_once(p, &once, random, &starts);
    j->solution = once.solution, j->score = once.score;
    j->evaluations += once.evaluations ? once.evaluations : 1;
  } while (!s && !job_over(j));
  for (uint32_t i = 0; i < KEPT_STARTS; i++) free(starts.device[i]);
  return s;
}

// Makes short runs, each with clusters of units that have similar names and are on one device, so that a layer moves as
// one unit. Each run chooses at random which parts of the names count. Where such clusters are hardly larger than
// single units, it moves units instead.
static tfc_status anneal_groups(const struct tfc_problem *p, struct tfc_search_job *j, struct tfc_random *random,
                                struct tfc_solution *solution, struct tfc_score *score) {
  tfc_status s = NULL;
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1)), *number = NULL;
  if (!cluster) return tfc_status_no_memory("a search");
  while (!job_over(j)) {
    const uint32_t names = tfc_names_cluster(p, random, cluster);
    uint32_t count = 0;
    number = names ? calloc((size_t)names * p->device_count, sizeof *number) : NULL;
    if (!number) TFC_TRY(s, tfc_status_no_memory("a search"));
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint32_t *x = &number[(size_t)cluster[u] * p->device_count + solution->device[u]];
      if (!*x) *x = ++count;
      cluster[u] = *x - 1;
    }
    free(number);
    number = NULL;
    struct tfc_anneal_options options = {.hot = 0.04 * pow(0.1, tfc_random_unit(random)), .cold = 0.0003};
    if (count <= p->unit_count / 2) options.cluster = cluster, options.cluster_count = count;
    struct tfc_budget part = part_of(&j->budget, j->evaluations, 1, tfc_random_u64(random));
    const uint64_t enough = 300 + 4 * (uint64_t)count;
    if (!part.evaluations || part.evaluations > enough) part.evaluations = enough;
    TFC_TRY(s, tfc_local_anneal(p, &part, &options, solution, score, &j->evaluations));
  }
out:
  free(cluster), free(number);
  return s;
}

// Makes several starts with clusters by name, each with another choice of the name parts that count; then improves the
// best of them with regrouped clusters.
static tfc_status anneal_names(const struct tfc_problem *p, struct tfc_search_job *j, struct tfc_random *random) {
  enum { STARTS = 8 };
  tfc_status s = NULL;
  struct tfc_solution trial = {0}, best = {0};
  struct tfc_score best_score = TFC_SCORE_NONE;
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1));
  uint32_t *home = malloc(sizeof *home * ((size_t)p->unit_count + 1));
  if (!cluster || !home) TFC_TRY(s, tfc_status_no_memory("a search"));
  TFC_TRY(s, tfc_solution_init(&trial, p));
  for (int start = 0; start < STARTS && !job_over(j); start++) {
    uint32_t count = 0;
    for (int tries = 0; tries < 8 && (count < 2u * p->device_count || count > 400 + p->unit_count / 4); tries++)
      count = tfc_names_cluster(p, random, cluster);
    if (!count) TFC_TRY(s, tfc_status_no_memory("a search"));
    free(trial.rank);
    trial.rank = NULL;
    scatter(p, random, cluster, home, count, trial.device);
    struct tfc_anneal_options options = {.hot = 0.2, .cold = 0.002, .cluster = cluster, .cluster_count = count};
    struct tfc_budget part = part_of(&j->budget, j->evaluations, 0.5 / (STARTS - start), tfc_random_u64(random));
    const uint64_t enough = 300 + 12 * (uint64_t)count;
    if (!part.evaluations || part.evaluations > enough) part.evaluations = enough;
    struct tfc_score score = TFC_SCORE_NONE;
    TFC_TRY(s, tfc_local_anneal(p, &part, &options, &trial, &score, &j->evaluations));
    if (best.device && !tfc_score_better(score, best_score)) continue;
    TFC_TRY(s, tfc_solution_copy(&best, &trial, p));
    best_score = score;
  }
  if (!best.device) goto out;
  TFC_TRY(s, anneal_groups(p, j, random, &best, &best_score));
  if (tfc_score_better(best_score, j->score)) { // otherwise the given placement stays
    const struct tfc_solution given = j->solution;
    j->solution = best, best = given, j->score = best_score;
  }
out:
  tfc_solution_deinit(&trial);
  tfc_solution_deinit(&best);
  free(cluster), free(home);
  return s;
}

// --- Packing, when memory is nearly full ---------------------------------------------------------------------------

struct packing {
  const struct tfc_problem *p;
  struct tfc_search_job *j;
  struct tfc_random *random;
  struct tfc_simulator *sim;
  uint32_t *part;      // [unit]
  tfc_device_id *home; // [part]
  struct tfc_solution trial;
};

static struct tfc_budget few(const struct tfc_search_job *j, struct tfc_random *random, uint64_t evaluations) {
  struct tfc_budget part = part_of(&j->budget, j->evaluations, 1, tfc_random_u64(random));
  if (!part.evaluations || part.evaluations > evaluations) part.evaluations = evaluations;
  return part;
}

// Finds parts of the graph that should stay together; *out_count: how many. Most of the time these are communities of
// any size; otherwise the units that one device holds, either now or after an annealing that may exceed memory limits
// at a price.
static tfc_status find_parts(struct packing *q, uint32_t *out_count) {
  const struct tfc_problem *p = q->p;
  const uint32_t way = (uint32_t)tfc_random_below(q->random, 6);
  tfc_status s = NULL;
  *out_count = 0;
  if (way < 4) {
    const struct tfc_community_options options = {.resolution = 0.1 * pow(100, tfc_random_unit(q->random)),
                                                  .power = 0.5 * (double)tfc_random_below(q->random, 3),
                                                  .fan = 0.5 * (double)tfc_random_below(q->random, 3)};
    *out_count = tfc_communities_find(p, q->random, &options, q->part);
  } else {
    memcpy(q->trial.device, q->j->solution.device, sizeof *q->trial.device * p->unit_count);
    if (way == 4) {
      const struct tfc_anneal_options options = {
          .hot = 0.05, .cold = 0.0005, .price = 0.3 * pow(10, tfc_random_unit(q->random)), .by_loads = true};
      const struct tfc_budget budget = few(
          q->j, q->random, 2000 + ((uint64_t)p->unit_count * p->device_count * 100 << tfc_random_below(q->random, 3)));
      struct tfc_score score = TFC_SCORE_NONE;
      uint64_t used = 0;
      if (tfc_random_below(q->random, 2)) tfc_local_any(p, q->random, q->trial.device);
      TFC_TRY(s, tfc_local_anneal(p, &budget, &options, &q->trial, &score, &used));
      q->j->evaluations += used;
    }
    *out_count = tfc_communities_pieces(p, q->trial.device, q->part);
  }
  if (!*out_count) s = tfc_status_no_memory("a search");
out:
  return s;
}

static tfc_status pack_once(struct packing *q) {
  const struct tfc_problem *p = q->p;
  struct tfc_search_job *j = q->j;
  const bool step = p->objective == TFC_OBJECTIVE_STEP;
  tfc_status s = NULL;
  struct tfc_parts parts = {0};
  struct tfc_verdict v = {0};
  struct tfc_score score;
  uint32_t count;
  free(q->trial.rank);
  q->trial.rank = NULL;
  TFC_TRY(s, find_parts(q, &count));
  TFC_TRY(s, tfc_parts_init(&parts, p, q->part, count));
  j->evaluations += !parts.any; // an attempt without possible parts counts as one evaluation
  if (!parts.any) goto out;
  tfc_parts_spread(&parts, q->random, (enum tfc_parts_order)tfc_random_below(q->random, 3), q->home);
  bool fits = tfc_parts_pack(&parts, q->random, false, q->home);
  for (uint32_t u = 0; u < p->unit_count; u++) q->trial.device[u] = q->home[q->part[u]];
  for (int turn = 0; turn < 2 && !job_over(j); turn++) {
    if (turn && !fits) { // puts the units back that still exceed the limits
      for (uint32_t u = 0; u < p->unit_count; u++) q->home[q->part[u]] = q->trial.device[u];
      fits = tfc_parts_pack(&parts, q->random, false, q->home);
      for (uint32_t u = 0; u < p->unit_count; u++) q->trial.device[u] = q->home[q->part[u]];
      if (!fits) fits = tfc_local_repair(p, q->random, q->trial.device, NULL);
    }
    tfc_simulate(q->sim, q->trial.device, q->trial.rank, TFC_TIME_MAX, &v);
    j->evaluations++;
    score = tfc_score_of(&v);
    if (tfc_score_better(score, j->score)) {
      TFC_TRY(s, tfc_solution_copy(&j->solution, &q->trial, p));
      j->score = score;
    }
    if (turn || job_over(j)) break;
    // Anneals over parts: it moves and exchanges them. At first, exceeding memory limits costs little.
    struct tfc_anneal_options options = {.hot = 0.2, .cold = 0.001, .cluster = q->part, .cluster_count = count};
    options.price = 0.3 * pow(30, tfc_random_unit(q->random));
    // Loads are quick to compute, and a good start for the step objective.
    options.by_loads = !step || tfc_random_below(q->random, 3);
    const uint64_t size = (uint64_t)count * p->device_count;
    const uint64_t enough = options.by_loads ? 2000 + 200 * size : 300 + 20 * size;
    const struct tfc_budget budget = few(j, q->random, enough << tfc_random_below(q->random, 3));
    TFC_TRY(s, tfc_local_anneal(p, &budget, &options, &q->trial, &score, &j->evaluations));
    fits = score.excess == 0;
  }
  if (!job_over(j)) { // refines the result with moves of single units
    const struct tfc_anneal_options options = {.hot = 0.003, .cold = 0.0002, .orders = step};
    const uint64_t size = (uint64_t)p->unit_count * p->device_count;
    const struct tfc_budget budget = few(j, q->random, step ? 300 + 3 * size : 2000 + 40 * size);
    TFC_TRY(s, tfc_local_anneal(p, &budget, &options, &q->trial, &score, &j->evaluations));
    if (tfc_score_better(score, j->score)) {
      TFC_TRY(s, tfc_solution_copy(&j->solution, &q->trial, p));
      j->score = score;
    }
  }
out:
  tfc_parts_deinit(&parts);
  return s;
}

static tfc_status pack_again(const struct tfc_problem *p, struct tfc_search_job *j, struct tfc_random *random,
                             struct tfc_simulator *sim) {
  tfc_status s = NULL;
  struct packing q = {.p = p, .j = j, .random = random, .sim = sim};
  q.part = malloc(sizeof *q.part * ((size_t)p->unit_count + 1));
  q.home = malloc(sizeof *q.home * ((size_t)p->unit_count + 1));
  if (!q.part || !q.home) TFC_TRY(s, tfc_status_no_memory("a search"));
  TFC_TRY(s, tfc_solution_init(&q.trial, p));
  while (!job_over(j)) TFC_TRY(s, pack_once(&q));
out:
  tfc_solution_deinit(&q.trial);
  free(q.part), free(q.home);
  return s;
}

// Returns how many of 16 moves take connected regions: few in one job, most in another.
static uint32_t regions_of(struct tfc_random *random) {
  return 3 + (uint32_t)tfc_random_below(random, 9);
}

// The two ways in which a job of the policy spends a block of its budget, and what each has gained for its effort.
enum { BY_POLICY, BY_ANNEALING, WAYS };
struct shares {
  double gain[WAYS], effort[WAYS]; // sums in which older blocks count less
};

// Draws who gets the next block, in proportion to gain by effort; nobody's share falls to nothing.
static int draw_share(const struct shares *s, struct tfc_random *random) {
  double worth[WAYS], most = 1e-300;
  for (int i = 0; i < WAYS; i++)
    worth[i] = s->effort[i] > 0 ? s->gain[i] / s->effort[i] : 0, most = fmax(most, worth[i]);
  for (int i = 0; i < WAYS; i++) worth[i] += SHARE_FLOOR * most;
  return tfc_random_unit(random) * (worth[BY_POLICY] + worth[BY_ANNEALING]) < worth[BY_POLICY] ? BY_POLICY
                                                                                               : BY_ANNEALING;
}

// Counts what a block of the policy's moves took, and what it gained: only what is better than the best placement when
// the job was planned, because a job may begin at a worse one.
static void count_moves(struct tfc_search_job *j, struct tfc_score before, uint64_t evaluations, double seconds) {
  const struct tfc_score from = tfc_score_better(j->before, before) ? j->before : before;
  j->by_policy.evaluations += evaluations, j->by_policy.seconds += seconds;
  if (!tfc_score_better(j->score, from)) return;
  if (tfc_gain_timed(from, j->score))
    j->by_policy.gained += from.value - j->score.value;
  else
    j->by_policy.fits = true;
}

// Whether the policy finds no more moves: it returned although the clock did not end its block, and used less than half
// of the block's evaluations.
static bool is_stuck(const struct tfc_budget *block, uint64_t used) {
  return !tfc_budget_over(block) && (!block->evaluations || used < (block->evaluations + 1) / 2);
}

// How much of a job's budget is spent, from 0 to 1, by the limit that is closest.
static double spent_share(const struct tfc_search_job *j, double begin) {
  double share = j->budget.evaluations ? (double)j->evaluations / (double)j->budget.evaluations : 0;
  if (j->budget.deadline > begin) share = fmax(share, (tfc_now_s() - begin) / (j->budget.deadline - begin));
  return fmin(share, 1);
}

// Moves of the policy, which takes some units off their devices and places them again, and annealing on units share a
// job in blocks: each has one, and the others are drawn by what the two have gained. If policy_first is set, there are
// two blocks, first the policy's and then annealing's: in a short search, blocks would be too short to show who gains,
// and the policy's moves learn within a block what to move. When the policy finds no more improvement, annealing gets
// what is left. The temperature falls over the whole job.
static tfc_status anneal_by_policy(const struct tfc_problem *p, struct tfc_search_job *j, struct tfc_random *random) {
  const double begin = tfc_now_s();
  struct shares shares = {0};
  bool stuck = false;
  uint64_t blocks = SHARE_BLOCKS;
  if (j->budget.evaluations && j->budget.evaluations / SHARE_LEAST < blocks)
    blocks = j->budget.evaluations / SHARE_LEAST;
  for (uint64_t b = 0; !job_over(j); b++) {
    const int way = stuck ? BY_ANNEALING : b < WAYS ? (int)b : draw_share(&shares, random);
    const double even = b + 1 < blocks ? 1.0 / (double)(blocks - b) : 1, done = spent_share(j, begin);
    const double part = !j->policy_first ? even : way == BY_POLICY ? FIRST_SHARE : 1;
    const struct tfc_budget budget = part_of(&j->budget, j->evaluations, part, tfc_random_u64(random));
    const struct tfc_score before = j->score;
    const uint64_t used = j->evaluations;
    const double now = tfc_now_s();
    if (way == BY_POLICY) {
      TFC_RETURN_IF_ERROR(j->guide->improve(j->guidance, &budget, &j->solution, &j->score, &j->evaluations));
      stuck = is_stuck(&budget, j->evaluations - used);
    } else {
      const double fall = j->hot > 0 ? j->cold / j->hot : 1;
      const struct tfc_anneal_options options = {.hot = j->hot * pow(fall, done),
                                                 .cold = j->hot * pow(fall, done + (1 - done) * part),
                                                 .orders = true,
                                                 .critical = CRITICAL,
                                                 .regions = regions_of(random),
                                                 .kinds = true};
      TFC_RETURN_IF_ERROR(tfc_local_anneal(p, &budget, &options, &j->solution, &j->score, &j->evaluations));
    }
    const double seconds = tfc_now_s() - now;
    if (way == BY_POLICY) count_moves(j, before, j->evaluations - used, seconds);
    shares.gain[way] = SHARE_KEPT * shares.gain[way] + tfc_gain(before, j->score);
    shares.effort[way] =
        SHARE_KEPT * shares.effort[way] + (j->budget.deadline > 0 ? seconds : (double)(j->evaluations - used));
  }
  return NULL;
}

// Anneals in rounds, as in the algorithm `anneal` (placer/algo/anneal.c): each begins at the best placement so far,
// half as hot as the round before, and cools down to a hundredth.
static tfc_status anneal_rounds(const struct tfc_problem *p, struct tfc_search_job *j, struct tfc_random *random) {
  double hot = j->hot;
  for (uint32_t round = 0; round < j->rounds && !job_over(j); round++, hot *= 0.5) {
    const struct tfc_anneal_options options = {
        .hot = hot, .cold = 0.01 * hot, .orders = true, .critical = CRITICAL, .regions = MANY_REGIONS, .kinds = true};
    const struct tfc_budget part =
        part_of(&j->budget, j->evaluations, 1.0 / (j->rounds - round), tfc_random_u64(random));
    TFC_RETURN_IF_ERROR(tfc_local_anneal(p, &part, &options, &j->solution, &j->score, &j->evaluations));
  }
  return NULL;
}

tfc_status tfc_search_job_run(const struct tfc_problem *p, struct tfc_search_job *j) {
  tfc_status s = NULL;
  struct tfc_random random;
  struct tfc_simulator *sim = NULL;
  const bool orders = p->objective == TFC_OBJECTIVE_STEP;
  const struct tfc_budget whole = j->budget;
  if (orders && whole.evaluations >= SETTLES) j->budget.evaluations -= TFC_SETTLE_MOST;
  tfc_random_init(&random, j->budget.seed);
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  if (j->method == TFC_METHOD_LNS) {
    TFC_TRY(s, tfc_local_lns(p, &j->budget, &j->solution, &j->score, &j->evaluations));
  } else if (j->rounds) {
    TFC_TRY(s, anneal_rounds(p, j, &random));
  } else if (j->method == TFC_METHOD_ANNEAL || j->method == TFC_METHOD_HOT) {
    struct tfc_anneal_options options = {.hot = j->hot,
                                         .cold = j->cold,
                                         .orders = orders,
                                         .critical = CRITICAL,
                                         .regions = regions_of(&random),
                                         .kinds = true};
    TFC_TRY(s, tfc_local_anneal(p, &j->budget, &options, &j->solution, &j->score, &j->evaluations));
  } else if (j->method == TFC_METHOD_FRESH) {
    TFC_TRY(s, anneal_fresh(p, j, &random));
  } else if (j->method == TFC_METHOD_POLICY) {
    TFC_TRY(s, anneal_by_policy(p, j, &random));
  } else if (j->method == TFC_METHOD_PACK) {
    TFC_TRY(s, pack_again(p, j, &random, sim));
  } else if (j->method == TFC_METHOD_NAMES) {
    TFC_TRY(s, anneal_names(p, j, &random));
  } else if (j->method == TFC_METHOD_REGROUP) {
    TFC_TRY(s, anneal_groups(p, j, &random, &j->solution, &j->score));
  } else if (j->method == TFC_METHOD_COMBINE) { // units that are on one device in both placements start as one cluster
    for (uint32_t u = 0; u < p->unit_count; u++)
      j->other.device[u] = (tfc_device_id)(j->solution.device[u] * p->device_count + j->other.device[u]);
    TFC_TRY(s, anneal_levels(p, j, &random, &j->solution, &j->score, j->other.device));
  } else {
    TFC_TRY(s, anneal_levels(p, j, &random, &j->solution, &j->score, j->solution.device));
  }
  struct tfc_score settled;
  j->budget = whole;
  if (orders) {
    const uint64_t left = tfc_budget_left(&whole, j->evaluations);
    struct tfc_solution trial = {0};
    TFC_TRY(s, tfc_solution_copy(&trial, &j->solution, p));
    s = tfc_local_settle_within(p, sim, left, &trial, &settled, &j->evaluations);
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
