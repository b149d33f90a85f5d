#include "placer/search/lns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 40

struct search {
  const struct tfc_problem *p;
  struct tfc_random random;
  struct tfc_delta *delta;
  uint32_t *mark, stamp;
};

static uint32_t below(struct search *q, uint64_t n) {
  return (uint32_t)tfc_random_below(&q->random, n);
}

// Collects up to `want` units around a random one, along nets in both directions.
static uint32_t around(struct search *q, uint32_t want, uint32_t *out) {
  const struct tfc_problem *p = q->p;
  uint32_t count = 0;
  out[count++] = below(q, p->unit_count);
  q->mark[out[0]] = ++q->stamp;
  for (uint32_t tries = 0; count < want && tries < 6 * want; tries++) {
    uint32_t u = out[below(q, count)], v = u;
    uint32_t nets = p->first_net[u + 1] - p->first_net[u], needs = p->first_need[u + 1] - p->first_need[u];
    if (!(nets + needs)) break;
    uint32_t i = below(q, nets + needs);
    if (i < needs) {
      v = p->unit[p->graph->producer[p->net_tensor[p->need[p->first_need[u] + i]]]];
    } else {
      uint32_t net = p->first_net[u] + i - needs;
      v = p->net_unit[p->net_first[net] + below(q, p->net_first[net + 1] - p->net_first[net])];
    }
    if (q->mark[v] == q->stamp) continue;
    q->mark[v] = q->stamp;
    out[count++] = v;
  }
  return count;
}

// Collects up to `want` units whose operations run at about one instant of the simulated step. It finds them by walking
// from random nodes.
static uint32_t at_a_time(struct search *q, uint32_t want, uint32_t *out) {
  const struct tfc_problem *p = q->p;
  const int64_t *start = tfc_delta_start(q->delta), *end = tfc_delta_end(q->delta);
  const int64_t value = tfc_delta_verdict(q->delta)->value;
  uint32_t count = 0, pivot = below(q, p->node_count);
  int64_t width = (int64_t)((double)value * (0.005 + 0.1 * tfc_random_unit(&q->random)));
  q->stamp++;
  for (uint32_t tries = 0; count < want && tries < 60 * want; tries++) {
    uint32_t n = below(q, p->node_count), u = p->unit[n];
    if (end[n] < start[pivot] - width || start[n] > end[pivot] + width || q->mark[u] == q->stamp) continue;
    q->mark[u] = q->stamp;
    out[count++] = u;
  }
  return count;
}

struct keyed {
  int64_t key;
  uint32_t unit;
};
static int compare_keyed(const void *a, const void *b) {
  const struct keyed *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return (x->unit > y->unit) - (x->unit < y->unit);
}

tfc_status tfc_local_lns(const struct tfc_problem *p, const struct tfc_budget *budget, struct tfc_solution *solution,
                         struct tfc_score *score, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct search q = {.p = p};
  struct tfc_meter meter;
  struct tfc_verdict v = {0};
  tfc_device_id *was = malloc(sizeof *was * LARGEST);
  uint32_t chosen[LARGEST];
  struct keyed order[LARGEST];
  const bool step = p->objective == TFC_OBJECTIVE_STEP;
  tfc_random_init(&q.random, budget->seed);
  tfc_meter_init(&meter, budget);
  q.mark = calloc((size_t)p->unit_count + 1, sizeof *q.mark);
  if (!q.mark || !was) TFC_TRY(s, tfc_status_no_memory("a large neighbourhood"));
  TFC_TRY(s, tfc_delta_create(p, &q.delta));
  tfc_delta_reset(q.delta, solution->device, solution->rank, &v);
  struct tfc_score now = tfc_score_of(&v), best = now;
  uint64_t idle = 0, used = 0; // idle: rounds in which no move was possible
  while (!meter.over && p->device_count > 1) {
    idle = meter.used == used ? idle + 1 : 0;
    used = meter.used;
    if (idle > 1000 || (idle && tfc_budget_over(budget))) break;
    const uint32_t want = 2 + below(&q, LARGEST - 2);
    const uint32_t count = step && below(&q, 2) ? at_a_time(&q, want, chosen) : around(&q, want, chosen);
    const struct tfc_score before = now;
    const tfc_device_id *device = tfc_delta_device(q.delta);
    for (uint32_t i = 0; i < count; i++) {
      const uint32_t u = chosen[i];
      order[i] = (struct keyed){
          step ? tfc_delta_start(q.delta)[p->member[p->first_member[u]]] : (int64_t)below(&q, 1u << 30), u};
    }
    if (count > 1) qsort(order, count, sizeof *order, compare_keyed);
    for (uint32_t i = 0; i < count; i++) was[i] = device[order[i].unit];
    // First moves several units to random devices, so that the search continues from another point.
    struct tfc_move shake[LARGEST];
    uint32_t shaken = 0;
    tfc_device_id to = (tfc_device_id)below(&q, p->device_count);
    for (uint32_t i = 0; i < count; i++)
      if (below(&q, 3) && device[order[i].unit] != to && tfc_problem_allows(p, order[i].unit, to))
        shake[shaken++] = (struct tfc_move){order[i].unit, to};
    if (shaken) {
      // If this placement is much worse, it is useless: then the units are put back one at a time.
      int64_t cutoff = now.value == TFC_TIME_MAX ? TFC_TIME_MAX : (int64_t)fmin((double)now.value * 1.25, 9e18) + 1;
      tfc_delta_try(q.delta, shake, shaken, NULL, 0, cutoff, &v);
      tfc_meter_spend(&meter, p->node_count > 3000 ? 3 : 63);
      if (!v.legal || v.cut || tfc_score_of(&v).excess > now.excess) continue;
      tfc_delta_commit(q.delta);
      now = tfc_score_of(&v);
    }
    for (uint32_t i = 0; i < count && !meter.over; i++) {
      const uint32_t u = order[i].unit;
      struct tfc_score least = now;
      uint32_t where = TFC_NONE;
      for (uint32_t k = 0, first = below(&q, p->device_count); k < p->device_count && k < 8 && !meter.over; k++) {
        const uint32_t d = (first + k) % p->device_count;
        if (d == device[u] || !tfc_problem_allows(p, u, d)) continue;
        int64_t cutoff = least.excess ? TFC_TIME_MAX : least.value;
        tfc_delta_try(q.delta, &(struct tfc_move){u, (tfc_device_id)d}, 1, NULL, 0, cutoff, &v);
        tfc_meter_spend(&meter, p->node_count > 3000 ? 3 : 63);
        if (v.legal && !v.cut && tfc_score_better(tfc_score_of(&v), least)) least = tfc_score_of(&v), where = d;
      }
      if (where == TFC_NONE) continue;
      tfc_delta_try(q.delta, &(struct tfc_move){u, (tfc_device_id)where}, 1, NULL, 0, TFC_TIME_MAX, &v);
      tfc_delta_commit(q.delta);
      now = tfc_score_of(&v);
    }
    if (tfc_score_better(before, now)) { // the result is worse: undoes it
      uint32_t back = 0;
      for (uint32_t i = 0; i < count; i++)
        if (device[order[i].unit] != was[i]) shake[back++] = (struct tfc_move){order[i].unit, was[i]};
      tfc_delta_try(q.delta, shake, back, NULL, 0, TFC_TIME_MAX, &v);
      tfc_delta_commit(q.delta);
      now = before;
    }
    if (tfc_score_better(now, best)) {
      best = now;
      tfc_budget_found(budget, best);
      memcpy(solution->device, device, sizeof *device * p->unit_count);
    }
  }
  *score = best;
  *out_evaluations += meter.used;
out:
  tfc_delta_free(q.delta);
  free(q.mark), free(was);
  return s;
}
