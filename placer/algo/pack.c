// Parts of the graph into devices by memory and work: first its connected components, which nothing has to be sent
// between, then clusters of what hangs together most, finer and finer, as long as coarser ones do not fit. Each part
// goes where the work is least among the devices with room (longest first); where no device has any, devices are
// divided anew two at a time (placer/pack.h). The best of all that fits.
#include "placer/pack.h"

#include <stdlib.h>
#include <string.h>

#include "placer/local.h"

#define TRIES 2        // from other beginnings, for each way to take the graph apart
#define MOST_FITTING 3 // ways that fit are enough

struct part {
  uint64_t memory;
  double work; // at its fastest, ps
  uint32_t number;
};
struct parts {
  const struct tfc_problem *p;
  uint32_t count;
  uint32_t *of;     // [unit]
  bool *may;        // [part * device_count + device]
  uint64_t *memory; // [part]
  double *time;     // [part * class_count + class]
  struct part *sorted;
};

static uint32_t root_of(uint32_t *parent, uint32_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

// Units that hang together over tensors; their number, 0: out of memory.
static uint32_t components(const struct tfc_problem *p, uint32_t *of) {
  uint32_t *parent = malloc(sizeof *parent * ((size_t)p->unit_count + 1)), count = 0;
  if (!parent) return 0;
  for (uint32_t u = 0; u < p->unit_count; u++) parent[u] = u, of[u] = TFC_NONE;
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++)
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++)
        parent[root_of(parent, p->net_unit[j])] = root_of(parent, u);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const uint32_t root = root_of(parent, u);
    if (of[root] == TFC_NONE) of[root] = count++;
    of[u] = of[root];
  }
  free(parent);
  return count;
}

static bool may_be(const void *user, uint32_t part, uint32_t device) {
  const struct parts *q = user;
  return q->may[(size_t)part * q->p->device_count + device];
}

static void parts_deinit(struct parts *q) {
  free(q->may), free(q->memory), free(q->time), free(q->sorted);
  q->may = NULL, q->memory = NULL, q->time = NULL, q->sorted = NULL;
}

// *out_any false: a part may be on no device.
static tfc_status weigh(struct parts *q, bool *out_any) {
  const struct tfc_problem *p = q->p;
  q->may = malloc(((size_t)q->count * p->device_count + 1) * sizeof *q->may);
  q->memory = calloc(q->count + 1u, sizeof *q->memory);
  q->time = calloc((size_t)q->count * p->class_count + 1, sizeof *q->time);
  q->sorted = malloc(sizeof *q->sorted * (q->count + 1u));
  if (!q->may || !q->memory || !q->time || !q->sorted)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for packing");
  memset(q->may, 1, (size_t)q->count * p->device_count * sizeof *q->may);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    q->memory[q->of[u]] += p->unit_memory[u];
    for (uint32_t d = 0; d < p->device_count; d++)
      q->may[(size_t)q->of[u] * p->device_count + d] &= tfc_problem_allows(p, u, d);
    for (uint32_t c = 0; c < p->class_count; c++)
      q->time[(size_t)q->of[u] * p->class_count + c] += (double)p->unit_time[(size_t)c * p->unit_count + u];
  }
  *out_any = true;
  for (uint32_t k = 0; k < q->count; k++) {
    bool any = false;
    q->sorted[k] = (struct part){q->memory[k], 1e300, k};
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!may_be(q, k, d)) continue;
      const double time = q->time[(size_t)k * p->class_count + p->device_class[d]];
      any = true;
      if (time < q->sorted[k].work) q->sorted[k].work = time;
    }
    *out_any &= any;
  }
  return NULL;
}

static int by_memory(const void *a, const void *b) {
  const struct part *x = a, *y = b;
  if (x->memory != y->memory) return x->memory > y->memory ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}
static int by_work(const void *a, const void *b) {
  const struct part *x = a, *y = b;
  if (x->work != y->work) return x->work > y->work ? -1 : 1;
  return by_memory(a, b);
}

// Longest first (or largest first), each to the device that is done first among those with room, else to the one with
// most room.
static void spread(const struct parts *q, double *load, uint64_t *used, tfc_device_id *home) {
  const struct tfc_problem *p = q->p;
  memset(load, 0, sizeof *load * p->device_count);
  memset(used, 0, sizeof *used * p->device_count);
  for (uint32_t i = 0; i < q->count; i++) {
    const uint32_t k = q->sorted[i].number;
    uint32_t best = TFC_NONE;
    double least = 0;
    bool fits = false;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!may_be(q, k, d)) continue;
      const uint64_t room = p->limit[d] > used[d] ? p->limit[d] - used[d] : 0;
      const bool has_room = room >= q->memory[k];
      const double cost = has_room ? load[d] + q->time[(size_t)k * p->class_count + p->device_class[d]] : -(double)room;
      if (best != TFC_NONE && (has_room != fits ? fits : cost >= least)) continue;
      best = d, least = cost, fits = has_room;
    }
    home[k] = (tfc_device_id)best;
    used[best] += q->memory[k], load[best] += q->time[(size_t)k * p->class_count + p->device_class[best]];
  }
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_solution trial = {0};
  struct tfc_score best = TFC_SCORE_NONE, score;
  struct tfc_random random;
  struct parts q = {.p = p};
  double *load = calloc(p->device_count, sizeof *load);
  uint64_t *used = calloc(p->device_count, sizeof *used);
  tfc_device_id *home = malloc(sizeof *home * ((size_t)p->unit_count + 1));
  uint32_t fitting = 0, target = 2 * p->device_count;
  bool any = false;
  q.of = malloc(sizeof *q.of * ((size_t)p->unit_count + 1));
  tfc_random_init(&random, budget->seed);
  if (!load || !used || !home || !q.of) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for packing");
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  TFC_TRY(s, tfc_solution_init(&trial, p));
  for (int level = 0; fitting < MOST_FITTING; level++) {
    const bool last = target >= p->unit_count;
    if (any && tfc_budget_over(budget)) break;
    if (last && level)
      for (uint32_t u = 0; u < p->unit_count; u++) q.of[u] = u;
    q.count = level == 0 ? components(p, q.of)
              : last     ? p->unit_count
                         : tfc_local_coarsen(p, &random, NULL, target, q.of);
    if (!q.count) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for packing");
    bool placed = false, fits = false;
    TFC_TRY(s, weigh(&q, &placed));
    for (uint32_t attempt = 0; placed && attempt < TRIES; attempt++) {
      const struct tfc_pack pack = {q.count, p->device_count, q.memory, p->limit, may_be, &q};
      qsort(q.sorted, q.count, sizeof *q.sorted, attempt ? by_memory : by_work);
      spread(&q, load, used, home);
      fits = tfc_pack_bins(&pack, &random, 64, home) == 0;
      for (uint32_t u = 0; u < p->unit_count; u++) trial.device[u] = home[q.of[u]];
      if (!fits || p->has_missing_links) tfc_local_repair(p, &random, trial.device, NULL);
      struct tfc_verdict v = {0};
      tfc_simulate(sim, trial.device, NULL, TFC_TIME_MAX, &v);
      ++*out_evaluations;
      score = tfc_score_of(&v);
      if (!any || tfc_score_better(score, best)) TFC_TRY(s, tfc_solution_copy(out, &trial, p));
      if (!any || tfc_score_better(score, best)) best = score;
      any = true;
    }
    fitting += fits;
    parts_deinit(&q);
    if (last && level) break;
    if (level) target *= 4;
  }
  TFC_TRY(s, tfc_local_settle(p, sim, out, &score, out_evaluations));
out:
  parts_deinit(&q);
  free(q.of), free(load), free(used), free(home);
  tfc_solution_deinit(&trial);
  tfc_simulator_free(sim);
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
