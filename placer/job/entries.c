#include "placer/job/entries.h"

#include <stdlib.h>
#include <string.h>

// Finds the device of each node and the order of operations. If memory is limited, that is the order with which the
// placement was found to fit; otherwise the order of a simulation with the current costs.
static tfc_status assign(const struct tfc_job_model *m, const struct tfc_job_candidate *k, uint16_t *placement,
                         uint32_t *sequence, uint32_t *out_count) {
  TFC_RETURN_IF_ERROR(tfc_subject_assign(m->subject, m->problem, &k->solution, placement, sequence, out_count));
  if (k->sequence && k->sequence_count == *out_count) memcpy(sequence, k->sequence, *out_count * sizeof *sequence);
  return NULL;
}

tfc_status tfc_job_entries_make(const struct tfc_job_candidates *c, const uint32_t *index, uint32_t count,
                                uint32_t last, struct tfc_job_entries *out) {
  const size_t nodes = c->model->o->graph->node_count, costs = c->model->subject->cost_count, all = (size_t)count + 1;
  *out = (struct tfc_job_entries){calloc(all, sizeof *out->list), malloc((all * nodes + 1) * sizeof *out->placements),
                                  malloc((all * costs + 1) * sizeof *out->sequences)};
  if (!out->list || !out->placements || !out->sequences) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < all; i++) {
    const uint32_t at = i < count ? index[i] : last;
    if (at == TFC_NONE) break;
    struct tfc_measure_entry *e = &out->list[i];
    uint16_t *placement = out->placements + i * nodes;
    uint32_t *sequence = out->sequences + i * costs;
    e->whole = c->list.data[at].whole;
    if (e->whole) continue;
    e->placement = placement, e->sequence = sequence;
    TFC_RETURN_IF_ERROR(assign(c->model, &c->list.data[at], placement, sequence, &e->sequence_count));
  }
  return NULL;
}

void tfc_job_entries_deinit(struct tfc_job_entries *e) {
  free(e->list);
  free(e->placements);
  free(e->sequences);
}
