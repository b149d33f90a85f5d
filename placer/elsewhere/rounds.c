// Rounds: search with the current costs, measure the best and most different placements, learn, search again. With a
// learned model each round searches several draws from the model's uncertainty, and measures what is best under a draw
// (Thompson 1933; Russo, Van Roy, Kazerouni, Osband, Wen, "A tutorial on Thompson sampling", 2018): so
// placements are measured as long as the model's uncertainty allows that they are the best. Without a model, rounds
// start from the best measured placements and their neighbours. A bandit (bandit.h) divides the batch: among the best
// by the mean of the model, the best under draws, and neighbours; or among what the search found, and neighbours.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/elsewhere/bandit.h"
#include "placer/elsewhere/final.h"
#include "placer/elsewhere/readings.h"
#include "placer/elsewhere/rounds.h"

// How many draws (worlds) a round searches. With traced operations there is little uncertainty left, so one deeper
// search finds more.
enum { BATCH = 8, DRAWS = 6, DRAWS_OF_TRACES = 2, IDLE = 4 };

static uint32_t distance(const struct tfc_problem *p, const struct tfc_solution *a, const struct tfc_solution *b) {
  uint32_t n = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) n += a->device[u] != b->device[u];
  return n;
}

struct round {
  struct tfc_elsewhere *run;
  uint32_t list[BATCH + 1], count, wanted;
};

// Adds a placement to the batch, unless it is known or very similar to one in the batch. `world`: the problem in which
// it was found; the precedence of that problem is stored with the placement.
static tfc_status offer(struct round *x, const struct tfc_problem *world, const struct tfc_solution *found,
                        const char *algorithm) {
  tfc_status s = NULL;
  struct tfc_elsewhere *r = x->run;
  const struct tfc_problem *p = r->problem;
  struct tfc_solution solution = {0};
  uint32_t index, learned = 0;
  bool is_new = false;
  if (x->count >= x->wanted) return NULL;
  for (uint32_t i = 0; i < x->count; i++) learned += tfc_elsewhere_is_learned(r->known.data[x->list[i]].algorithm);
  if (!tfc_elsewhere_may_propose(r, algorithm, learned)) return NULL;
  for (uint32_t i = 0; i < x->count; i++)
    if (distance(p, found, &r->known.data[x->list[i]].solution) <= p->unit_count / 300) return NULL;
  TFC_TRY(s, tfc_solution_copy(&solution, found, p));
  if (!solution.rank && world != p) {
    if (!(solution.rank = malloc((p->node_count + 1u) * sizeof *solution.rank))) TFC_TRY(s, tfc_status_no_memory(NULL));
    memcpy(solution.rank, world->rank, p->node_count * sizeof *solution.rank);
  }
  TFC_TRY(s, tfc_elsewhere_add(r, NULL, algorithm, "candidate", &solution, &index, &is_new));
  if (is_new) x->list[x->count++] = index;
out:
  tfc_solution_deinit(&solution);
  return s;
}

// Makes a neighbour of a placement: moves a few units with nearby numbers to random devices.
static tfc_status perturb(struct tfc_elsewhere *r, const struct tfc_solution *from, struct tfc_solution *out) {
  const struct tfc_problem *p = r->problem;
  TFC_RETURN_IF_ERROR(tfc_solution_copy(out, from, p));
  const uint32_t moves = 1 + (uint32_t)tfc_random_below(&r->random, 1 + p->unit_count / 50);
  uint32_t u = (uint32_t)tfc_random_below(&r->random, p->unit_count);
  for (uint32_t i = 0; i < moves; i++) {
    const uint32_t d = (uint32_t)tfc_random_below(&r->random, p->device_count);
    if (tfc_problem_allows(p, u, d)) out->device[u] = (tfc_device_id)d;
    u = (u + 1 + (uint32_t)tfc_random_below(&r->random, 3)) % p->unit_count;
  }
  return NULL;
}

// Searches one world. Offers the best placement, and those of other algorithms that are almost as good.
static tfc_status search_world(struct round *x, const struct tfc_problem *world, double seconds, uint64_t evaluations,
                               uint32_t most, const struct tfc_solution *start, const char *algorithm) {
  tfc_status s = NULL;
  struct tfc_elsewhere *r = x->run;
  struct tfc_search_options options = r->o->search;
  struct tfc_search_outcome outcome = {0};
  const uint64_t limit = options.evaluations, left = limit > r->evaluations ? limit - r->evaluations : 0;
  if (limit && !left) return NULL;
  options.seconds = seconds, options.evaluations = limit && evaluations > left ? left : evaluations;
  options.start = start;
  options.seed = tfc_random_u64(&r->random);
  options.progress = NULL;
  TFC_TRY(s, tfc_search(world, &options, &outcome));
  r->evaluations += outcome.evaluations;
  if (tfc_elsewhere_cancelled(r)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
  tfc_search_account_add(&r->searches, &outcome.learned);
  const uint32_t begin = x->count;
  if (!outcome.best.device || outcome.value == TFC_TIME_MAX || outcome.excess) goto out;
  const uint32_t wanted = x->wanted;
  if (x->count + most < x->wanted) x->wanted = x->count + most;
  s = offer(x, world, &outcome.best, algorithm ? algorithm : outcome.algorithm);
  for (uint32_t i = 0; i < outcome.entry_count && !s; i++) {
    const struct tfc_search_entry *e = &outcome.entries[i];
    if (e->solution.device && e->excess == 0 && e->value < TFC_TIME_MAX &&
        (double)e->value < 1.12 * (double)outcome.value)
      s = offer(x, world, &e->solution, algorithm ? algorithm : e->algorithm);
  }
  x->wanted = wanted;
  for (uint32_t i = begin; i < x->count; i++) r->known.data[x->list[i]].policy = outcome.learned;
out:
  tfc_search_outcome_deinit(&outcome);
  return s;
}

// The arms (groups of proposals) of a batch; the first line with a learned model, the second without one.
enum { BY_MEAN, BY_DRAWS, NEAR_LEARNED, LEARNED_ARMS };
enum { SEARCHED, NEAR, ARMS };

// Searches the problem with the mean of the learned costs, and problems with costs that are drawn from the model's
// posterior distribution, for as many placements as their arms have places. What the mean does not fill goes to draws.
static tfc_status search_learned(struct round *x, double seconds, uint64_t evaluations,
                                 const struct tfc_elsewhere_arm *arms, const struct tfc_solution *start) {
  tfc_status s = NULL;
  struct tfc_elsewhere *r = x->run;
  struct tfc_learned_world world = {0};
  const uint32_t draws = tfc_command_has_operations(r->program) ? DRAWS_OF_TRACES : DRAWS;
  TFC_TRY(s, tfc_learned_fit(r->learned));
  const uint32_t places = arms[BY_MEAN].places + arms[BY_DRAWS].places;
  for (uint32_t i = 0; i < draws && x->count < places; i++) {
    const uint32_t most = i == 0                  ? arms[BY_MEAN].places
                          : arms[BY_DRAWS].places ? (places - x->count) / (draws - i) + 1
                                                  : 0;
    if (!most) continue;
    TFC_TRY(s, tfc_learned_world(r->learned, r->problem, i ? &r->random : NULL, &world));
    // At least one: a search takes 0 evaluations as "no limit".
    const uint64_t each = evaluations && evaluations < draws ? 1 : evaluations / draws;
    TFC_TRY(s, search_world(x, world.problem, seconds / draws, each,
                            most < places - x->count ? most : places - x->count, start, i ? "thompson" : "learned"));
    tfc_learned_world_deinit(&world);
  }
out:
  tfc_learned_world_deinit(&world);
  return s;
}

// Fills the rest of the batch with neighbours of the best.
static tfc_status fill_up(struct round *x) {
  tfc_status s = NULL;
  struct tfc_elsewhere *r = x->run;
  struct tfc_solution near = {0};
  for (int tries = 0; tries < 40 && x->count < x->wanted && r->best != TFC_NONE; tries++) {
    TFC_TRY(s, perturb(r, &r->known.data[r->best].solution, &near));
    if (!isnan(r->known.data[r->best].simulated_us)) TFC_TRY(s, offer(x, r->problem, &near, "neighbour"));
    tfc_solution_deinit(&near);
  }
out:
  tfc_solution_deinit(&near);
  return s;
}

// Stores the current model's predictions for the batch, before it is measured.
static void predict(const struct round *x) {
  struct tfc_elsewhere *r = x->run;
  for (uint32_t i = 0; i < x->count; i++) {
    struct tfc_elsewhere_known *k = &r->known.data[x->list[i]];
    double us;
    if (tfc_learned_predict(r->learned, &k->solution, &us, NULL)) k->predicted_us = us;
  }
}

// Returns how long a round may search, so that time remains for measurements and the final turns.
static double round_seconds(const struct tfc_elsewhere *r, uint32_t rounds_left) {
  if (r->seconds <= 0) return 0;
  const double reading = r->reading_s * (tfc_elsewhere_left(r) * (1 + 0.5) + 2);
  const double left = r->seconds - tfc_elsewhere_seconds(r) - tfc_elsewhere_final_seconds(r);
  const double searching = fmax(left - reading, 0.3 * left) / (rounds_left ? rounds_left : 1);
  const double most = 1 + 0.004 * r->problem->unit_count;
  return searching < most ? searching : most;
}

tfc_status tfc_elsewhere_search(struct tfc_elsewhere *r) {
  tfc_status s = NULL;
  uint32_t idle = 0;
  const uint32_t rounds = (tfc_elsewhere_left(r) + BATCH - 1) / BATCH + 1;
  const uint64_t evaluations = r->o->search.evaluations ? r->o->search.evaluations / (rounds + 2) + 1 : 0;
  r->phase = "screen";
  for (uint32_t round = 0; idle < IDLE && tfc_elsewhere_left(r); round++) {
    const bool begun = round || r->episodes; // there are measured candidates, perhaps from before the run was resumed
    struct round x = {.run = r, .wanted = tfc_elsewhere_left(r) < BATCH ? tfc_elsewhere_left(r) : BATCH};
    const uint32_t rounds_left = (tfc_elsewhere_left(r) + BATCH - 1) / BATCH;
    const double left = r->seconds - tfc_elsewhere_seconds(r) - tfc_elsewhere_final_seconds(r);
    if (tfc_elsewhere_cancelled(r)) TFC_FAIL(s, TFC_CANCELLED, "interrupted");
    if (r->seconds > 0 && left <= r->reading_s) break;
    // In addition to the batch, the reference and the incumbent are measured; together they may take two thirds of the
    // time left.
    if (r->seconds > 0 && r->reading_s > 0 && x.wanted > 0.67 * left / (1.5 * r->reading_s))
      x.wanted = 1 + (uint32_t)(0.67 * left / (1.5 * r->reading_s));
    if (r->o->search.evaluations && r->evaluations >= r->o->search.evaluations) break;
    const double seconds = round_seconds(r, rounds_left) * (begun ? 1 : 2);
    struct tfc_solution start = {0};
    if (r->best != TFC_NONE && begun) start = r->known.data[r->best].solution;
    if (r->learned && tfc_learned_readings(r->learned) > 0 && begun) {
      struct tfc_elsewhere_arm arms[LEARNED_ARMS] = {{"learned", 0}, {"thompson", 0}, {"neighbour", 0}};
      tfc_elsewhere_divide(r, &r->random, arms, LEARNED_ARMS, x.wanted);
      s = search_learned(&x, seconds, evaluations, arms, start.device ? &start : NULL);
    } else {
      struct tfc_elsewhere_arm arms[ARMS] = {{NULL, x.wanted}, {"neighbour", 0}};
      if (start.device) tfc_elsewhere_divide(r, &r->random, arms, ARMS, x.wanted);
      s = search_world(&x, r->problem, seconds, begun ? evaluations : 2 * evaluations, arms[SEARCHED].places,
                       start.device ? &start : NULL, NULL);
    }
    if (!s) s = fill_up(&x);
    if (s) goto out;
    idle = x.count ? 0 : idle + 1;
    if (!x.count) continue;
    const uint32_t added = x.count;
    if (r->learned && begun) predict(&x);
    if (r->best != TFC_NONE && r->best != r->reference) x.list[x.count++] = r->best;
    TFC_TRY(s, tfc_elsewhere_read(r, x.list, x.count));
    tfc_elsewhere_say(r, false, "round %u: %u placements measured, %u in all; the best takes %.4g us", round + 1, added,
                      (uint32_t)r->known.count, r->best == TFC_NONE ? (double)NAN : exp(r->known.data[r->best].log_us));
  }
out:
  return s;
}
