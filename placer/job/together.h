// Finds which nodes a search moves together: nodes that are fused into one operation, and sequences of nodes that read
// the same weights.
#ifndef TFC_PLACER_JOB_TOGETHER_H
#define TFC_PLACER_JOB_TOGETHER_H

#include "placer/measure/measure.h"
#include "placer/subject/subject.h"

struct tfc_job_together {
  const struct tfc_graph *graph;
  const struct tfc_measure_info *info;
  const struct tfc_subject *subject;
  const struct tfc_cost_table *plain; // how long each operation takes by itself
  uint32_t kind_count;
};
// out_kept [node]: the node stays with the operation that it is fused into. out: pairs of nodes that stay together. The
// caller frees both.
TFC_MUST_USE tfc_status tfc_job_find_together(const struct tfc_job_together *given, bool **out_kept,
                                              struct tfc_node_pair **out, uint32_t *out_count);

#endif
