// Packs parts of the graph into devices by memory and work. The parts are first the connected components of the graph,
// between which nothing is sent; then communities, if memory is nearly full; then clusters of strongly connected units,
// finer and finer, as long as the coarser ones do not fit. Each part goes, longest first, to the device with the least
// work among those with room. If none has room, the units of two devices at a time are divided again
// (placer/search/pack.h). The answer is the best of all placements that fit.
#include <stdlib.h>
#include <string.h>

#include "placer/search/communities.h"
#include "placer/search/local.h"
#include "placer/search/parts.h"

#define MOST_FITTING 3 // after so many ways that fit, no more are tried

struct packer {
  const struct tfc_problem *p;
  struct tfc_random random;
  struct tfc_simulator *sim;
  tfc_device_id *home; // [part] its device
  uint32_t *of;        // [unit] its part
  struct tfc_solution trial;
  struct tfc_score best;
  bool any;            // a best solution exists
  uint64_t used, most; // evaluations; most: before it settles on an order
};

// Assigns parts to devices, from two starting points. *fits: every device has enough memory.
static tfc_status place_parts(struct packer *q, uint32_t count, struct tfc_solution *out, bool *fits) {
  const struct tfc_problem *p = q->p;
  struct tfc_parts parts;
  tfc_status s = NULL;
  if (!count) return tfc_status_no_memory("packing");
  TFC_TRY(s, tfc_parts_init(&parts, p, q->of, count));
  *fits = false;
  for (int order = TFC_PARTS_BY_WORK; parts.any && order <= TFC_PARTS_BY_MEMORY && q->used < q->most; order++) {
    tfc_parts_spread(&parts, &q->random, (enum tfc_parts_order)order, q->home);
    *fits = tfc_parts_pack(&parts, &q->random, order == TFC_PARTS_BY_WORK, q->home);
    for (uint32_t u = 0; u < p->unit_count; u++) q->trial.device[u] = q->home[q->of[u]];
    if (!*fits || p->has_missing_links) tfc_local_repair(p, &q->random, q->trial.device, NULL);
    struct tfc_verdict v = {0};
    tfc_simulate(q->sim, q->trial.device, NULL, TFC_TIME_MAX, &v);
    q->used++;
    const struct tfc_score score = tfc_score_of(&v);
    if (q->any && !tfc_score_better(score, q->best)) continue;
    TFC_TRY(s, tfc_solution_copy(out, &q->trial, p));
    q->any = true, q->best = score;
  }
out:
  tfc_parts_deinit(&parts);
  return s;
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  static const double resolutions[] = {1, 0.4, 2, 4};
  tfc_status s = NULL;
  struct packer q = {.p = p, .best = TFC_SCORE_NONE};
  uint32_t fitting = 0, target = 2 * p->device_count;
  bool fits = false;
  q.home = malloc(sizeof *q.home * ((size_t)p->unit_count + 1));
  q.of = malloc(sizeof *q.of * ((size_t)p->unit_count + 1));
  tfc_random_init(&q.random, budget->seed);
  q.most = tfc_budget_left(budget, budget->evaluations > TFC_SETTLE_MOST ? TFC_SETTLE_MOST : 0);
  if (!q.home || !q.of) TFC_TRY(s, tfc_status_no_memory("packing"));
  TFC_TRY(s, tfc_simulator_create(p, &q.sim));
  TFC_TRY(s, tfc_solution_init(&q.trial, p));
  TFC_TRY(s, place_parts(&q, tfc_communities_pieces(p, NULL, q.of), out, &fits));
  fitting += fits;
  for (size_t i = 0; i < sizeof resolutions / sizeof *resolutions && tfc_communities_tight(p); i++) {
    const struct tfc_community_options options = {.resolution = resolutions[i], .power = 1, .fan = 0.5};
    if (q.used >= q.most || (q.any && tfc_budget_over(budget))) break;
    const uint32_t count = tfc_communities_find(p, &q.random, &options, q.of);
    TFC_TRY(s, place_parts(&q, count, out, &fits));
  }
  for (bool last = false; !last && fitting < MOST_FITTING; target *= 4) {
    if (q.used >= q.most || (q.any && tfc_budget_over(budget))) break;
    last = target >= p->unit_count;
    for (uint32_t u = 0; u < p->unit_count; u++) q.of[u] = u;
    const uint32_t count = last ? p->unit_count : tfc_local_coarsen(p, &q.random, NULL, target, q.of);
    TFC_TRY(s, place_parts(&q, count, out, &fits));
    fitting += fits;
  }
  TFC_TRY(s, tfc_local_settle_within(p, q.sim, tfc_budget_left(budget, q.used), out, &q.best, &q.used));
out:
  *out_evaluations += q.used;
  free(q.of), free(q.home);
  tfc_solution_deinit(&q.trial);
  tfc_simulator_free(q.sim);
  return s;
}

const struct tfc_algo tfc_algo_pack = {
    .name = "pack",
    .help =
        "connected parts into devices by work and memory: for graphs that come apart, and memory that is nearly full",
    .paper = "Graham 1969, Bounds on Multiprocessing Timing Anomalies, section 4; Horowitz and Sahni 1974, Computing "
             "Partitions with Applications to the Knapsack Problem, section 2",
    .propose = propose,
};
