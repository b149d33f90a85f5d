// Scotch's static mapping of the graph of units onto an architecture graph, whose vertices are the devices, weighted by
// their speed: the way TensorFlow's early placement studies used Scotch.
#include <stdio.h>
// scotch.h needs stdio.h before it
#include <pthread.h>
#include <scotch.h>
#include <stdlib.h>

#include "placer/algo/partition.h"

// Scotch is called by one thread at a time, in a context of its own with one thread and a fixed seed: on several
// threads its answers differ from run to run.
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  (void)out_evaluations;
  tfc_status s = NULL;
  struct tfc_partition_graph g = {0};
  SCOTCH_Num *part = calloc((size_t)p->unit_count + 1, sizeof *part);
  SCOTCH_Num *weights = calloc(p->device_count, sizeof *weights);
  int32_t *plain = calloc((size_t)p->unit_count + 1, sizeof *plain);
  double *share = calloc(p->device_count, sizeof *share);
  SCOTCH_Graph graph, bound;
  SCOTCH_Context context;
  SCOTCH_Arch arch;
  SCOTCH_Strat strat;
  _Static_assert(sizeof(SCOTCH_Num) == 4, "Scotch with 32-bit numbers");
  pthread_mutex_lock(&one_at_a_time);
  if (!part || !weights || !plain || !share) TFC_TRY(s, tfc_status_no_memory("Scotch"));
  TFC_TRY(s, tfc_partition_graph_make(p, &g));
  tfc_partition_shares(p, share);
  for (uint32_t d = 0; d < p->device_count; d++) weights[d] = 1 + (SCOTCH_Num)(share[d] * 10000);
  if (p->device_count > 1 && g.vertex_count > 1) {
    SCOTCH_contextInit(&context);
    SCOTCH_graphInit(&graph);
    SCOTCH_graphInit(&bound);
    SCOTCH_archInit(&arch);
    SCOTCH_stratInit(&strat);
    int failed = SCOTCH_contextThreadSpawn(&context, 1, NULL);
    if (!failed) failed = SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMDETERMINISTIC, 1);
    if (!failed) failed = SCOTCH_contextRandomClone(&context); // a random state of its own
    if (!failed) {
      SCOTCH_contextRandomSeed(&context, (SCOTCH_Num)(budget->seed & 0x3fffffff));
      SCOTCH_contextRandomReset(&context);
    }
    if (!failed)
      failed = SCOTCH_graphBuild(&graph, 0, g.vertex_count, g.first, NULL, g.weight, NULL, g.edge_count, g.to,
                                 g.edge_weight);
    if (!failed) failed = SCOTCH_archCmpltw(&arch, (SCOTCH_Num)p->device_count, weights);
    if (!failed) failed = SCOTCH_contextBindGraph(&context, &graph, &bound);
    if (!failed) failed = SCOTCH_graphMap(&bound, &arch, &strat, part);
    SCOTCH_stratExit(&strat);
    SCOTCH_archExit(&arch);
    SCOTCH_graphExit(&bound);
    SCOTCH_graphExit(&graph);
    SCOTCH_contextExit(&context);
    if (failed) TFC_FAIL(s, TFC_FAILED_PRECONDITION, "Scotch could not map the graph");
  }
  for (uint32_t u = 0; u < p->unit_count; u++) plain[u] = part[u];
  tfc_partition_place(p, budget->seed, plain, out->device);
out:
  pthread_mutex_unlock(&one_at_a_time);
  tfc_partition_graph_free(&g);
  free(part), free(weights), free(plain), free(share);
  return s;
}

const struct tfc_algo tfc_algo_scotch = {
    .name = "scotch",
    .help = "static mapping by recursive bipartitioning: like metis, better on devices of different speed",
    .paper = "Pellegrini 1996, Scotch: static mapping by dual recursive bipartitioning, section 3",
    .propose = propose,
};
