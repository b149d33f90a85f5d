#include "rl/repair.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 64 };

struct heavy {
  uint64_t weight;
  uint32_t unit;
};
static int heavier(const void *a, const void *b) {
  const struct heavy *x = a, *y = b;
  if (x->weight != y->weight) return x->weight < y->weight ? 1 : -1;
  return (x->unit > y->unit) - (x->unit < y->unit);
}

// What a unit's nodes keep for the whole step, and what their results hold while somebody needs them.
static uint64_t weight_of(const struct tfc_problem *p, uint32_t u) {
  const struct tfc_cost_graph *g = p->graph;
  uint64_t weight = p->unit_memory[u];
  for (uint32_t i = p->first_member[u]; i < p->first_member[u + 1]; i++)
    for (uint32_t t = g->first_tensor[p->member[i]]; t < g->first_tensor[p->member[i] + 1]; t++)
      if (g->has_live) weight += g->live[t];
  return weight;
}

tfc_status tfc_repair_init(struct tfc_repair *r, const struct tfc_problem *p, const struct tfc_actors *actors) {
  tfc_status s = NULL;
  struct heavy *list = calloc(p->unit_count + 1u, sizeof *list);
  *r = (struct tfc_repair){.problem = p,
                           .actors = actors,
                           .together = calloc(actors->actor_count + 1u, sizeof *r->together),
                           .ratio = 1,
                           .limit = calloc(p->device_count + 1u, sizeof *r->limit),
                           .memory = calloc(p->device_count + 1u, sizeof *r->memory),
                           .weight = calloc(p->unit_count + 1u, sizeof *r->weight),
                           .order = calloc(p->unit_count + 1u, sizeof *r->order),
                           .best = calloc(p->unit_count + 1u, sizeof *r->best)};
  if (!list || !r->limit || !r->memory || !r->weight || !r->order || !r->best || !r->together)
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  for (uint32_t u = 0; u < p->unit_count; u++) list[u] = (struct heavy){r->weight[u] = weight_of(p, u), u};
  qsort(list, p->unit_count, sizeof *list, heavier);
  for (uint32_t i = 0; i < p->unit_count; i++) r->order[i] = list[i].unit;
  memcpy(r->limit, p->limit, p->device_count * sizeof *r->limit);
  TFC_TRY(s, tfc_simulator_create(p, &r->simulator));
out:
  free(list);
  return s;
}

void tfc_repair_deinit(struct tfc_repair *r) {
  tfc_simulator_free(r->simulator);
  free(r->limit), free(r->memory), free(r->weight), free(r->order), free(r->best), free(r->together);
  *r = (struct tfc_repair){0};
}

void tfc_repair_observe(struct tfc_repair *r, const tfc_device_id *device, const uint64_t *memory) {
  struct tfc_verdict verdict = {.memory = r->memory};
  double most = 0;
  tfc_simulate(r->simulator, device, NULL, TFC_TIME_MAX, &verdict);
  if (!verdict.legal) return;
  for (uint32_t d = 0; d < r->problem->device_count; d++)
    if (r->problem->limit[d] != TFC_NO_LIMIT && r->memory[d] > r->problem->limit[d] / 4 && memory[d])
      most = fmax(most, (double)memory[d] / (double)r->memory[d]);
  if (most <= 0) return;
  r->ratio = fmin(3, fmax(1, 0.7 * r->ratio + 0.3 * most));
  for (uint32_t d = 0; d < r->problem->device_count; d++)
    if (r->problem->limit[d] != TFC_NO_LIMIT) r->limit[d] = (uint64_t)((double)r->problem->limit[d] / r->ratio);
}

// Bytes above what is aimed at, and the device that has most of them.
static uint64_t excess_of(struct tfc_repair *r, const tfc_device_id *device, uint32_t *out_fullest) {
  struct tfc_verdict verdict = {.memory = r->memory};
  uint64_t sum = 0, most = 0;
  tfc_simulate(r->simulator, device, NULL, TFC_TIME_MAX, &verdict);
  if (!verdict.legal) return UINT64_MAX;
  for (uint32_t d = 0; d < r->problem->device_count; d++) {
    uint64_t over = r->memory[d] > r->limit[d] ? r->memory[d] - r->limit[d] : 0;
    sum += over;
    if (over > most) most = over, *out_fullest = d;
  }
  return sum;
}

// Is everything of the actor that is on `from`, or the unit alone, allowed there?
static bool may_go(const struct tfc_repair *r, const tfc_device_id *device, uint32_t actor, uint32_t unit,
                   uint32_t from, uint32_t to) {
  if (unit != TFC_NONE) return tfc_problem_allows(r->problem, unit, to);
  for (uint32_t u = 0; u < r->problem->unit_count; u++)
    if (device[u] == from && r->actors->actor[u] == actor && !tfc_problem_allows(r->problem, u, to)) return false;
  return true;
}

// The allowed device with the most room, where it fits; TFC_NONE: none.
static uint32_t lightest_for(const struct tfc_repair *r, const tfc_device_id *device, uint32_t actor, uint32_t unit,
                             uint32_t from) {
  uint64_t weight = unit == TFC_NONE ? r->together[actor] : r->weight[unit], most = 0;
  uint32_t best = TFC_NONE;
  for (uint32_t d = 0; d < r->problem->device_count; d++) {
    uint64_t room = r->limit[d] > r->memory[d] ? r->limit[d] - r->memory[d] : 0;
    if (d == from || room < weight || room <= most || !may_go(r, device, actor, unit, from, d)) continue;
    most = room, best = d;
  }
  return best;
}

// Moves the actor whose share of the device is nearest above what is too much, or the largest that is below it.
static uint64_t move_actor(struct tfc_repair *r, tfc_device_id *device, uint32_t from, uint64_t over) {
  const struct tfc_problem *p = r->problem;
  uint32_t best = TFC_NONE, best_to = TFC_NONE;
  memset(r->together, 0, r->actors->actor_count * sizeof *r->together);
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (device[u] == from) r->together[r->actors->actor[u]] += r->weight[u];
  for (uint32_t a = 0; a < r->actors->actor_count; a++) {
    uint64_t weight = r->together[a], other = best == TFC_NONE ? 0 : r->together[best];
    bool nearer =
        best == TFC_NONE || (weight >= over ? other < over || weight < other : other < over && weight > other);
    uint32_t to = weight && nearer ? lightest_for(r, device, a, TFC_NONE, from) : TFC_NONE;
    if (to != TFC_NONE) best = a, best_to = to;
  }
  if (best == TFC_NONE) return 0;
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (device[u] == from && r->actors->actor[u] == best) device[u] = (tfc_device_id)best_to;
  r->memory[best_to] += r->together[best];
  return r->together[best];
}

// The heaviest that are no heavier than what is too much, and then from the lightest on: little is moved in vain.
static uint64_t move_units(struct tfc_repair *r, tfc_device_id *device, uint32_t from, uint64_t over) {
  const struct tfc_problem *p = r->problem;
  uint64_t moved = 0;
  for (int pass = 0; pass < 2 && moved < over; pass++)
    for (uint32_t i = 0; i < p->unit_count && moved < over; i++) {
      uint32_t u = r->order[pass ? p->unit_count - 1 - i : i];
      if (device[u] != from || r->weight[u] == 0 || (pass == 0 && r->weight[u] > over - moved)) continue;
      uint32_t to = lightest_for(r, device, 0, u, from);
      if (to == TFC_NONE) continue;
      device[u] = (tfc_device_id)to;
      moved += r->weight[u];
      r->memory[to] += r->weight[u];
    }
  return moved;
}

bool tfc_repair_fit(struct tfc_repair *r, tfc_device_id *device) {
  const struct tfc_problem *p = r->problem;
  uint32_t from = 0;
  uint64_t best = excess_of(r, device, &from), now = best;
  if (now == 0 || now == UINT64_MAX) return now == 0;
  memcpy(r->best, device, p->unit_count * sizeof *device);
  for (uint32_t round = 0; round < ROUNDS && now > 0; round++) {
    uint64_t over = r->memory[from] - r->limit[from];
    uint64_t moved = move_actor(r, device, from, over);
    if (!moved) moved = move_units(r, device, from, over);
    if (!moved) break;
    now = excess_of(r, device, &from);
    if (now < best) {
      best = now;
      memcpy(r->best, device, p->unit_count * sizeof *device);
    }
    if (now == UINT64_MAX) break;
  }
  memcpy(device, r->best, p->unit_count * sizeof *device);
  return best == 0;
}
