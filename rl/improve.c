// Uses the policy in local search: it frees some units of a placement, and the policy places them again while all
// others stay. The result is kept if it is not worse. Three choices are arms of a bandit, credited with their gain per
// evaluation: which units to free (a window of the order, the neighbourhood of a unit, one device in a window, units of
// one kind), how many, and which weights to use.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/simulate/delta.h"
#include "rl/guidance.h"

enum { WAYS = 4, SIZES = 4, HEADS = 8, IDLE = 400 };

struct arm {
  double gained, pulls;
};
struct improver {
  const struct tfc_problem *p;
  const struct tfc_tuner *tuner;
  struct tfc_random random;
  struct tfc_rollout *rollout;
  struct tfc_delta *delta;
  bool *kept;             // [unit]
  uint32_t *freed, count; // [unit]
  uint32_t *by_order;     // units by their first node in the scene's order
  tfc_device_id *trial;   // [unit]
  struct tfc_move *moves; // [unit]
  struct arm way[WAYS], size[SIZES], head[HEADS];
};

static uint32_t below(struct improver *m, uint64_t n) {
  return (uint32_t)tfc_random_below(&m->random, n ? n : 1);
}

// Draws an arm with probability in proportion to its gain per pull; every arm has some probability.
static uint32_t pull(struct improver *m, struct arm *arms, uint32_t count) {
  double worth[HEADS], sum = 0, best = 0;
  for (uint32_t i = 0; i < count; i++) best = fmax(best, worth[i] = arms[i].gained / (arms[i].pulls + 8));
  for (uint32_t i = 0; i < count; i++) sum += worth[i] = worth[i] + 0.15 * best + 1e-12;
  double at = tfc_random_unit(&m->random) * sum;
  for (uint32_t i = 0; i + 1 < count; i++)
    if ((at -= worth[i]) < 0) return i;
  return count - 1;
}
static void credit(struct arm *arm, double gain) {
  arm->gained = 0.98 * arm->gained + gain, arm->pulls = 0.98 * arm->pulls + 1;
}

static void set_free(struct improver *m, uint32_t u) {
  if (m->kept[u]) m->kept[u] = false, m->freed[m->count++] = u;
}

static void free_around(struct improver *m, uint32_t wanted) {
  const struct tfc_problem *p = m->p;
  set_free(m, below(m, p->unit_count));
  for (uint32_t tries = 0; m->count < wanted && tries < 6 * wanted; tries++) {
    const uint32_t u = m->freed[below(m, m->count)];
    const uint32_t nets = p->first_net[u + 1] - p->first_net[u], needs = p->first_need[u + 1] - p->first_need[u];
    if (!(nets + needs)) break;
    const uint32_t i = below(m, nets + needs);
    const uint32_t net = i < needs ? p->need[p->first_need[u] + i] : p->first_net[u] + i - needs;
    const uint32_t readers = p->net_first[net + 1] - p->net_first[net];
    set_free(m, i < needs && below(m, 2) ? m->tuner->scene->source[net]
                                         : p->net_unit[p->net_first[net] + below(m, readers)]);
  }
}

static void choose_units(struct improver *m, uint32_t way, uint32_t wanted) {
  const struct tfc_problem *p = m->p;
  const tfc_device_id *device = tfc_delta_device(m->delta);
  const uint32_t units = p->unit_count, from = below(m, units), seed = m->by_order[from];
  for (uint32_t i = 0; i < m->count; i++) m->kept[m->freed[i]] = true;
  m->count = 0;
  if (way == 0)
    for (uint32_t i = 0; i < units && m->count < wanted; i++) set_free(m, m->by_order[(from + i) % units]);
  else if (way == 1)
    free_around(m, wanted);
  else if (way == 2)
    for (uint32_t i = 0; i < units && m->count < wanted; i++) {
      const uint32_t u = m->by_order[(from + i) % units];
      if (device[u] == device[seed]) set_free(m, u);
    }
  else
    for (uint32_t i = 0; i < units && m->count < wanted; i++) {
      const uint32_t u = m->by_order[(from + i) % units];
      if (m->tuner->scene->kind[u] == m->tuner->scene->kind[seed]) set_free(m, u);
    }
}

static void choose_weights(struct improver *m, uint32_t head, float *weights) {
  const struct tfc_tuner *t = m->tuner;
  const double step = 0.5 * pow(0.1, 1.5 * tfc_random_unit(&m->random));
  memcpy(weights, t->elite[head].weights, sizeof *weights * TFC_WEIGHTS);
  for (int i = 0; i < TFC_WEIGHTS; i++)
    weights[i] += (float)(step * (double)t->policy->spread[i] * tfc_random_normal(&m->random));
}

static tfc_status prepare(struct improver *m) {
  const struct tfc_problem *p = m->p;
  const size_t units = (size_t)p->unit_count + 1;
  uint32_t count = 0;
  m->kept = malloc(units * sizeof *m->kept);
  m->freed = calloc(units, sizeof *m->freed), m->by_order = calloc(units, sizeof *m->by_order);
  m->trial = calloc(units, sizeof *m->trial), m->moves = calloc(units, sizeof *m->moves);
  if (!m->kept || !m->freed || !m->by_order || !m->trial || !m->moves) return tfc_status_no_memory("a policy");
  memset(m->kept, 0, units * sizeof *m->kept);
  for (uint32_t i = 0; i < p->node_count; i++) { // here `kept` marks units that are already listed
    const uint32_t u = p->unit[m->tuner->scene->order[i]];
    if (!m->kept[u]) m->kept[u] = true, m->by_order[count++] = u;
  }
  for (int i = 0; i < WAYS; i++) m->way[i] = (struct arm){1e-3, 1};
  for (int i = 0; i < SIZES; i++) m->size[i] = (struct arm){1e-3, 1};
  for (int i = 0; i < HEADS; i++) m->head[i] = (struct arm){1e-3, 1};
  TFC_RETURN_IF_ERROR(tfc_rollout_create(m->tuner->scene, &m->rollout));
  return tfc_delta_create(p, &m->delta);
}

tfc_status tfc_improve(const struct tfc_tuner *tuner, const struct tfc_budget *budget, struct tfc_solution *solution,
                       struct tfc_score *score, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  const struct tfc_problem *p = tuner->problem;
  struct improver m = {.p = p, .tuner = tuner};
  struct tfc_meter meter;
  struct tfc_verdict v = {0};
  tfc_random_init(&m.random, budget->seed);
  tfc_meter_init(&meter, budget);
  TFC_TRY(s, prepare(&m));
  tfc_delta_reset(m.delta, solution->device, solution->rank, &v);
  struct tfc_score now = tfc_score_of(&v);
  const uint32_t heads = tuner->elite_count < HEADS ? tuner->elite_count : HEADS;
  for (uint32_t idle = 0; heads && p->unit_count && idle < IDLE && now.value != TFC_TIME_MAX;) {
    const uint32_t way = pull(&m, m.way, WAYS), size = pull(&m, m.size, SIZES), head = pull(&m, m.head, heads);
    const double most = fmax(2, p->unit_count * (size == 3 ? 0.6 : size == 2 ? 0.15 : size == 1 ? 0.04 : 0.01));
    float weights[TFC_WEIGHTS];
    choose_units(&m, way, 1 + below(&m, (uint64_t)most));
    choose_weights(&m, head, weights);
    const tfc_device_id *device = tfc_delta_device(m.delta);
    memcpy(m.trial, device, sizeof *m.trial * p->unit_count);
    const struct tfc_rollout_options o = {.random = &m.random,
                                          .kept = m.kept,
                                          .temperature = below(&m, 2) ? 0 : 0.02 * pow(10, tfc_random_unit(&m.random))};
    tfc_rollout_run(m.rollout, weights, &o, m.trial);
    uint32_t moves = 0;
    for (uint32_t i = 0; i < m.count; i++)
      if (m.trial[m.freed[i]] != device[m.freed[i]])
        m.moves[moves++] = (struct tfc_move){m.freed[i], m.trial[m.freed[i]]};
    idle++;
    if (!moves) { // the policy proposed the same placement: no evaluation
      if (idle % 8 == 0 && tfc_budget_over(budget)) break;
      credit(&m.way[way], 0), credit(&m.size[size], 0), credit(&m.head[head], 0);
      continue;
    }
    const int64_t cutoff = now.excess ? TFC_TIME_MAX : now.value + 1;
    tfc_delta_try(m.delta, m.moves, moves, NULL, 0, cutoff, &v);
    const bool more = tfc_meter_spend(&meter, 3);
    const struct tfc_score then = tfc_score_of(&v);
    const bool better = v.legal && !v.cut && tfc_score_better(then, now);
    const double gain = better && then.excess == now.excess ? 1 - (double)then.value / (double)now.value : better;
    credit(&m.way[way], gain), credit(&m.size[size], gain), credit(&m.head[head], gain);
    if (v.legal && !v.cut && !tfc_score_better(now, then)) {
      tfc_delta_commit(m.delta);
      now = then;
    }
    if (better) {
      idle = 0;
      tfc_budget_found(budget, now);
      memcpy(solution->device, tfc_delta_device(m.delta), sizeof *solution->device * p->unit_count);
      *score = now;
    }
    if (!more) break;
  }
  *out_evaluations += meter.used;
out:
  tfc_rollout_free(m.rollout);
  tfc_delta_free(m.delta);
  free(m.kept), free(m.freed), free(m.by_order), free(m.trial), free(m.moves);
  return s;
}
