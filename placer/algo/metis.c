// METIS's multilevel k-way partitioning of the graph of units; the weight of a part is proportional to its device's
// speed. METIS considers neither the direction of edges nor time, so this is a baseline and a start for searches.
#include <metis.h>
#include <stdlib.h>

#include "placer/algo/partition.h"

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  (void)out_evaluations;
  tfc_status s = NULL;
  struct tfc_partition_graph g = {0};
  idx_t options[METIS_NOPTIONS], parts = (idx_t)p->device_count, constraints = 1, cut = 0;
  int32_t *part = calloc((size_t)p->unit_count + 1, sizeof *part);
  real_t *target = calloc(p->device_count, sizeof *target);
  double *share = calloc(p->device_count, sizeof *share);
  _Static_assert(sizeof(idx_t) == 4, "METIS with 32-bit indices");
  if (!part || !target || !share) TFC_TRY(s, tfc_status_no_memory("METIS"));
  TFC_TRY(s, tfc_partition_graph_make(p, &g));
  tfc_partition_shares(p, share);
  for (uint32_t d = 0; d < p->device_count; d++) target[d] = (real_t)share[d];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = (idx_t)(budget->seed & 0x3fffffff);
  options[METIS_OPTION_NUMBERING] = 0;
  options[METIS_OPTION_UFACTOR] = 50;
  for (uint32_t u = 0; u < p->unit_count; u++) part[u] = (int32_t)(u % p->device_count);
  // METIS prints to the standard output if it is asked for nearly as many parts as there are vertices.
  if (parts > 1 && g.vertex_count > 3 * parts &&
      METIS_PartGraphKway(&g.vertex_count, &constraints, g.first, g.to, g.weight, NULL, g.edge_weight, &parts, target,
                          NULL, options, &cut, part) != METIS_OK)
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "METIS could not partition the graph");
  tfc_partition_place(p, budget->seed, part, out->device);
out:
  tfc_partition_graph_free(&g);
  free(part), free(target), free(share);
  return s;
}

const struct tfc_algo tfc_algo_metis = {
    .name = "metis",
    .help = "balanced parts with few bytes between them: good where transfers are dear and work is parallel",
    .paper = "Karypis and Kumar 1998, Multilevel k-way Partitioning Scheme for Irregular Graphs, section 3",
    .propose = propose,
};
