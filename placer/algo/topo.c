// m-TOPO: units in topological order go to one device until it holds its share of the memory (of the time if no node
// holds memory), then to the next device.
#include <stdlib.h>

#include "placer/algo/order.h"
#include "placer/search/local.h"

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  (void)out_evaluations;
  tfc_status s = NULL;
  struct tfc_random random;
  uint32_t *order = malloc(sizeof *order * ((size_t)p->unit_count + 1)), at = 0;
  double total = 0, largest = 0, held = 0;
  tfc_random_init(&random, budget->seed);
  if (!order) return tfc_status_no_memory("m-TOPO");
  TFC_TRY(s, tfc_order_units(p, false, order));
  for (uint32_t u = 0; u < p->unit_count; u++) {
    total += (double)p->unit_memory[u];
    if ((double)p->unit_memory[u] > largest) largest = (double)p->unit_memory[u];
  }
  const bool by_time = total <= 0;
  if (by_time) total = (double)p->total_fastest, largest = 0;
  const double cap = total / p->device_count + largest; // the limit of Baechi's load-balanced variant
  for (uint32_t i = 0; i < p->unit_count; i++) {
    const uint32_t u = order[i];
    uint32_t d = at;
    while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
    double more = by_time ? (double)tfc_problem_unit_time(p, u, d) : (double)p->unit_memory[u];
    if (d == at && at + 1 < p->device_count && held + more > cap) {
      at++, held = 0, d = at;
      while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
    }
    if (d == at) held += more;
    out->device[u] = (tfc_device_id)d;
  }
  if (p->has_missing_links || p->has_limits) tfc_local_repair(p, &random, out->device, NULL);
out:
  free(order);
  return s;
}

const struct tfc_algo tfc_algo_topo = {
    .name = "m-topo",
    .help = "fills one device's memory after another in topological order: instant, fits what is too large for one",
    .paper = "Jeon et al. 2020, Baechi: Fast Device Placement of Machine Learning Graphs, section 3.1",
    .propose = propose,
};
