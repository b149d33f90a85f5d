// Multilevel: units are joined along heavy edges until few clusters are left; the clusters are placed; and the
// placement is refined while the clusters are divided again, level by level. Refinement for throughput is a pass of
// Fiduccia and Mattheyses, with the norm of the loads as the cost: each cluster moves at most once, the best gain
// first, even if it is negative, and the best prefix of the moves is kept. For the step objective it is a descent on
// the simulated time, cluster by cluster.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/search/anneal.h"
#include "placer/search/local.h"
#include "placer/simulate/loads.h"
#include "runtime/base/heap.h"

struct gain {
  double value;
  uint32_t cluster, device;
};

static double energy_of(const struct tfc_loads *l, double scale) {
  double sum = 0;
  for (uint32_t d = 0; d < l->problem->device_count; d++) {
    double x = (double)l->load[d] * scale;
    x *= x, x *= x, x *= x;
    sum += x;
  }
  return sqrt(sqrt(sqrt(sum))) + 1e3 * (double)l->missing;
}

struct passer {
  const struct tfc_problem *p;
  struct tfc_loads loads;
  uint32_t *first, *member;
  double scale;
};

static void shift(struct passer *q, uint32_t cluster, tfc_device_id to) {
  for (uint32_t i = q->first[cluster]; i < q->first[cluster + 1]; i++) tfc_loads_move(&q->loads, q->member[i], to);
}

// Finds the best other device for the cluster, and its gain over the current device.
static struct gain best_move(struct passer *q, uint32_t cluster, double now, uint64_t excess) {
  const struct tfc_problem *p = q->p;
  const uint32_t u = q->member[q->first[cluster]];
  const tfc_device_id home = q->loads.device[u];
  struct gain best = {-INFINITY, cluster, home};
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (d == home || !tfc_problem_allows(p, u, d)) continue;
    shift(q, cluster, (tfc_device_id)d);
    double gain = now - energy_of(&q->loads, q->scale);
    uint64_t over = tfc_loads_excess(&q->loads);
    if (over > excess) gain = -INFINITY;
    if (over < excess) gain += 10;
    if (gain > best.value) best = (struct gain){gain, cluster, d};
  }
  shift(q, cluster, home);
  return best;
}

static inline bool gains_more(const void *none, struct gain a, struct gain b) {
  (void)none;
  return a.value > b.value;
}
TFC_HEAP(gains, struct gain, const void *, gains_more)

// Makes one pass; true: the placement became better.
static bool fm_pass(struct passer *q, uint32_t clusters, struct tfc_meter *meter, struct gain *heap,
                    struct gain *done) {
  uint32_t count = 0, moved = 0, best_prefix = 0, downhill = 0;
  double begin = energy_of(&q->loads, q->scale), now = begin, best = begin;
  uint64_t excess = tfc_loads_excess(&q->loads), best_excess = excess;
  for (uint32_t c = 0; c < clusters; c++) {
    struct gain g = best_move(q, c, now, excess);
    if (g.value > -INFINITY) gains_push(heap, count++, g, NULL);
    if (!tfc_meter_spend(meter, 15)) break;
  }
  while (count && downhill < 200 + clusters / 20 && !meter->over) {
    struct gain g = gains_pop(heap, count--, NULL);
    struct gain fresh = best_move(q, g.cluster, now, excess);
    tfc_meter_spend(meter, 15);
    if (fresh.value == -INFINITY) continue;
    // The cluster's gain has fallen since it was put on the heap: it is put back with its present gain, and others are
    // tried first.
    if (count && fresh.value < heap[0].value - 1e-12 && fresh.value < g.value - 1e-12) {
      gains_push(heap, count++, fresh, NULL);
      continue;
    }
    done[moved++] = (struct gain){0, g.cluster, q->loads.device[q->member[q->first[g.cluster]]]};
    shift(q, g.cluster, (tfc_device_id)fresh.device);
    now = energy_of(&q->loads, q->scale), excess = tfc_loads_excess(&q->loads);
    downhill++;
    if (excess < best_excess || (excess == best_excess && now < best - 1e-12))
      best = now, best_excess = excess, best_prefix = moved, downhill = 0;
  }
  while (moved > best_prefix) {
    moved--;
    shift(q, done[moved].cluster, (tfc_device_id)done[moved].device);
  }
  return best_prefix > 0;
}

static tfc_status refine_throughput(const struct tfc_problem *p, struct tfc_meter *meter, const uint32_t *cluster,
                                    uint32_t clusters, tfc_device_id *device) {
  tfc_status s = NULL;
  struct passer q = {.p = p};
  struct gain *heap = malloc(sizeof *heap * (clusters + 1u)), *done = malloc(sizeof *done * (clusters + 1u));
  q.first = calloc(clusters + 3u, sizeof *q.first);
  q.member = malloc(sizeof *q.member * ((size_t)p->unit_count + 1));
  if (!heap || !done || !q.first || !q.member) TFC_TRY(s, tfc_status_no_memory("refinement"));
  TFC_TRY(s, tfc_loads_init(&q.loads, p));
  for (uint32_t u = 0; u < p->unit_count; u++) q.first[cluster[u] + 2]++;
  for (uint32_t c = 0; c < clusters; c++) q.first[c + 2] += q.first[c + 1];
  for (uint32_t u = 0; u < p->unit_count; u++) q.member[q.first[cluster[u] + 1]++] = u;
  tfc_loads_reset(&q.loads, device);
  q.scale = (double)p->device_count / ((double)p->total_fastest + 1);
  for (int pass = 0; pass < 12 && !meter->over; pass++)
    if (!fm_pass(&q, clusters, meter, heap, done)) break;
  memcpy(device, q.loads.device, sizeof *device * p->unit_count);
  tfc_budget_found(meter->budget, (struct tfc_score){tfc_loads_excess(&q.loads), tfc_loads_value(&q.loads)});
out:
  tfc_loads_deinit(&q.loads);
  free(heap), free(done), free(q.first), free(q.member);
  return s;
}

// Spreads the work over the devices: puts each cluster on the device where the norm of the loads stays smallest.
static tfc_status spread(const struct tfc_problem *p, const uint32_t *cluster, uint32_t clusters,
                         tfc_device_id *device) {
  tfc_status s = NULL;
  double *load = calloc(p->device_count, sizeof *load), *time = calloc((size_t)clusters * p->class_count, sizeof *time);
  uint64_t *memory = calloc(p->device_count, sizeof *memory), *need = calloc(clusters + 1u, sizeof *need);
  uint32_t *home = malloc(sizeof *home * (clusters + 1u)), *any = malloc(sizeof *any * (clusters + 1u));
  if (!load || !time || !memory || !need || !home || !any) TFC_TRY(s, tfc_status_no_memory("a first placement"));
  for (uint32_t u = 0; u < p->unit_count; u++) {
    need[cluster[u]] += p->unit_memory[u], any[cluster[u]] = u;
    for (uint32_t c = 0; c < p->class_count; c++)
      time[(size_t)cluster[u] * p->class_count + c] += (double)p->unit_time[(size_t)c * p->unit_count + u];
  }
  // Clusters are numbered in the graph's order (by their first units), so consecutive ones go to the same device.
  double target = (double)p->total_fastest / p->device_count;
  for (uint32_t k = 0; k < clusters; k++) {
    uint32_t best = TFC_NONE;
    double least = INFINITY;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!tfc_problem_allows(p, any[k], d)) continue;
      double after = load[d] + time[(size_t)k * p->class_count + p->device_class[d]];
      double cost = after > target ? after : target + (double)d * 1e-3 * target; // fill one device, then the next
      if (memory[d] + need[k] > p->limit[d]) cost += 100 * (double)p->total_fastest;
      if (cost < least) least = cost, best = d;
    }
    home[k] = best;
    load[best] += time[(size_t)k * p->class_count + p->device_class[best]];
    memory[best] += need[k];
  }
  for (uint32_t u = 0; u < p->unit_count; u++) device[u] = (tfc_device_id)home[cluster[u]];
out:
  free(load), free(time), free(memory), free(need), free(home), free(any);
  return s;
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_simulator *sim = NULL;
  struct tfc_random random;
  struct tfc_score score = TFC_SCORE_NONE;
  struct tfc_meter meter;
  uint32_t *cluster = malloc(sizeof *cluster * ((size_t)p->unit_count + 1));
  struct tfc_budget own = *budget; // without the evaluations that choosing an order takes
  if (budget->evaluations > TFC_SETTLE_MOST) own.evaluations -= TFC_SETTLE_MOST;
  tfc_random_init(&random, budget->seed);
  tfc_meter_init(&meter, &own);
  if (!cluster) return tfc_status_no_memory("multilevel placement");
  TFC_TRY(s, tfc_simulator_create(p, &sim));
  uint32_t target = 10 * p->device_count < 60 ? 60 : 10 * p->device_count, levels = 1;
  for (uint32_t t = target; t < p->unit_count; t *= 3) levels++;
  for (uint32_t level = 0; !meter.over; level++, target = target > p->unit_count / 3 ? p->unit_count : 3 * target) {
    uint32_t clusters = tfc_local_coarsen(p, &random, level ? out->device : NULL, target, cluster);
    if (!clusters) TFC_TRY(s, tfc_status_no_memory("multilevel placement"));
    if (level == 0) {
      TFC_TRY(s, spread(p, cluster, clusters, out->device));
      if (p->has_missing_links || p->has_limits) tfc_local_repair(p, &random, out->device, NULL);
    }
    if (p->objective == TFC_OBJECTIVE_THROUGHPUT) {
      TFC_TRY(s, refine_throughput(p, &meter, cluster, clusters, out->device));
    } else {
      struct tfc_budget part = *budget;
      struct tfc_anneal_options options = {.hot = 0.01, .cold = 0.0005, .cluster = cluster, .cluster_count = clusters};
      uint64_t used = 0, want = 12 * (uint64_t)clusters * p->device_count;
      part.seed = tfc_random_u64(&random);
      part.evaluations = want;
      if (budget->evaluations) {
        uint64_t left = own.evaluations - meter.used, share = left / (levels - (level < levels ? level : levels - 1));
        part.evaluations = want < share ? want : share ? share : 1;
      }
      if (budget->deadline > 0) {
        double now = tfc_now_s(), left = budget->deadline - now;
        part.deadline = now + left / (levels - (level < levels ? level : levels - 1));
      }
      TFC_TRY(s, tfc_local_anneal(p, &part, &options, out, &score, &used));
      meter.used += used;
      if (tfc_budget_over(budget) || (own.evaluations && meter.used >= own.evaluations)) meter.over = true;
    }
    if (clusters >= p->unit_count || target >= p->unit_count) break;
  }
  TFC_TRY(s, tfc_local_settle_within(p, sim, tfc_budget_left(budget, meter.used), out, &score, &meter.used));
out:
  *out_evaluations += meter.used;
  free(cluster);
  tfc_simulator_free(sim);
  return s;
}

const struct tfc_algo tfc_algo_multilevel = {
    .name = "multilevel",
    .help = "coarsen, place, refine level by level: good on large graphs, for either objective",
    .paper =
        "Hendrickson and Leland 1995, A Multilevel Algorithm for Partitioning Graphs; Fiduccia and Mattheyses 1982, "
        "A Linear-Time Heuristic for Improving Network Partitions, section 3",
    .needs = TFC_NEEDS_BUDGET,
    .propose = propose,
};
