// PEFT: like HEFT, with look-ahead by the optimistic cost table: OCT(n, d) is the longest path from n's consumers to
// the end if n is on d and every later node is on its best device. The next operation is the ready one with the largest
// mean OCT; it goes to the device with the smallest sum of its end and OCT.
#include <stdlib.h>
#include <string.h>

#include "placer/algo/lister.h"
#include "runtime/base/heap.h"

// Fills the table: one column per device where links differ; one per class where all links are alike, because devices
// of one class differ only by their links.
static void fill_oct(const struct tfc_problem *p, double *oct) {
  const struct tfc_cost_graph *g = p->graph;
  const uint32_t devices = p->device_count;
  double mean[TFC_MAX_DEVICES];
  for (size_t i = p->node_count; i-- > 0;) {
    const uint32_t n = g->topological[i];
    double *row = oct + (size_t)n * devices;
    memset(row, 0, sizeof *row * devices);
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) {
      const double wire = tfc_lister_mean_wire(p, t);
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
        const uint32_t m = g->consumer[c];
        const double *next = oct + (size_t)m * devices;
        double best = -1; // over all devices of the consumer, with the transfer
        for (uint32_t d = 0; d < devices; d++) {
          int64_t time = tfc_problem_time(p, m, d);
          mean[d] = time < 0 ? -1 : next[d] + (double)time;
          if (time >= 0 && (best < 0 || mean[d] + wire < best)) best = mean[d] + wire;
        }
        for (uint32_t d = 0; d < devices; d++) {
          double here = mean[d] >= 0 && mean[d] < best ? mean[d] : best;
          if (here > row[d]) row[d] = here;
        }
      }
    }
  }
}

static inline bool ranks_above(const double *rank, uint32_t a, uint32_t b) {
  return rank[a] > rank[b];
}
TFC_HEAP(ready, uint32_t, const double *, ranks_above)

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  tfc_status s = NULL;
  struct tfc_lister l = {0};
  size_t cells = (size_t)p->node_count * p->device_count;
  if (cells > (1u << 27))
    return tfc_status_make(TFC_FAILED_PRECONDITION, "PEFT's table of %zu cells would be too large", cells);
  double *oct = malloc(sizeof *oct * (cells + 1)), *rank = calloc(p->node_count, sizeof *rank);
  uint32_t *heap = malloc(sizeof *heap * ((size_t)p->node_count + 1)), seen = 0;
  size_t count = 0;
  if (!oct || !rank || !heap) TFC_TRY(s, tfc_status_no_memory("PEFT"));
  TFC_TRY(s, tfc_lister_init(&l, p, true));
  fill_oct(p, oct);
  for (uint32_t n = 0; n < p->node_count; n++)
    for (uint32_t d = 0; d < p->device_count; d++) rank[n] += oct[(size_t)n * p->device_count + d];
  for (uint32_t i = 0;; i++) {
    while (seen < l.ready_count) ready_push(heap, count++, l.ready[seen++], rank);
    if (!count) break;
    const uint32_t n = ready_pop(heap, count--, rank);
    uint32_t best = TFC_NONE;
    double least = 0;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!tfc_lister_can(&l, n, d)) continue;
      double cost =
          (double)(tfc_lister_start(&l, n, d) + tfc_problem_time(p, n, d)) + oct[(size_t)n * p->device_count + d];
      if (best == TFC_NONE || cost < least) least = cost, best = d;
    }
    if (best == TFC_NONE) best = tfc_lister_last_resort(&l, n);
    if (!tfc_lister_put(&l, n, best)) TFC_TRY(s, tfc_status_no_memory("PEFT"));
    if (i % 256 == 0 && tfc_budget_over(budget)) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "no time left for PEFT");
  }
  TFC_TRY(s, tfc_lister_finish(&l, budget, out, out_evaluations));
out:
  free(oct), free(rank), free(heap);
  if (l.problem) tfc_lister_deinit(&l);
  return s;
}

const struct tfc_algo tfc_algo_peft = {
    .name = "peft",
    .help = "list scheduling with a look ahead: often better than heft on devices of different kinds",
    .paper = "Arabnejad and Barbosa 2014, List Scheduling Algorithm for Heterogeneous Systems by an Optimistic Cost "
             "Table, sections 4 and 5",
    .propose = propose,
};
