// Round robin: units in topological order, one to each device in turn.
#include <stdlib.h>

#include "placer/search/local.h"

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  (void)out_evaluations;
  struct tfc_random random;
  bool *seen = calloc((size_t)p->unit_count + 1, sizeof *seen);
  if (!seen) return tfc_status_no_memory("round robin");
  tfc_random_init(&random, budget->seed);
  uint32_t turn = 0;
  for (uint32_t i = 0; i < p->node_count; i++) {
    uint32_t u = p->unit[p->graph->topological[i]];
    if (seen[u]) continue;
    seen[u] = true;
    uint32_t d = turn++ % p->device_count;
    while (!tfc_problem_allows(p, u, d)) d = (d + 1) % p->device_count;
    out->device[u] = (tfc_device_id)d;
  }
  free(seen);
  if (p->has_missing_links || p->has_limits) tfc_local_repair(p, &random, out->device, NULL);
  return NULL;
}

const struct tfc_algo tfc_algo_robin = {
    .name = "round-robin",
    .help = "operations dealt out in turn: TensorFlow's own default for parameter servers; balances, ignores transfers",
    .paper = "TensorFlow, tf.train.replica_device_setter",
    .propose = propose,
};
