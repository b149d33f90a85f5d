// m-ETF: among all pairs of a ready operation and a device with enough memory, the pair that can start earliest is
// scheduled next; of several such pairs, the one whose operation has the longer remaining path. If very many operations
// are ready, only the WINDOW first by rank are considered.
#include <stdlib.h>

#include "placer/algo/etf.h"
#include "placer/algo/lister.h"
#include "runtime/base/heap.h"

#define WINDOW 48

static inline bool ranks_before(const uint32_t *rank, uint32_t a, uint32_t b) {
  return rank[a] < rank[b];
}
TFC_HEAP(waiting, uint32_t, const uint32_t *, ranks_before)

tfc_status tfc_etf_run(const struct tfc_problem *p, const struct tfc_budget *budget, const uint32_t *favourite,
                       struct tfc_solution *out, uint64_t *out_evaluations) {
  tfc_status s = NULL;
  struct tfc_lister l = {0};
  // A window of ready operations is sorted by rank; the others wait in a heap.
  uint32_t window[WINDOW], held = 0, seen = 0, *heap = malloc(sizeof *heap * ((size_t)p->node_count + 1));
  size_t count = 0;
  if (!heap) return tfc_status_no_memory("m-ETF");
  TFC_TRY(s, tfc_lister_init(&l, p, false));
  for (uint32_t done = 0; done < p->node_count; done++) {
    while (seen < l.ready_count) waiting_push(heap, count++, l.ready[seen++], p->rank);
    while (held < WINDOW && count) window[held++] = waiting_pop(heap, count--, p->rank);
    uint32_t best = TFC_NONE, where = TFC_NONE;
    int64_t soonest = TFC_TIME_MAX;
    for (uint32_t k = 0; k < held; k++)
      for (uint32_t d = 0; d < p->device_count; d++) {
        const uint32_t n = window[k];
        if (!tfc_lister_can(&l, n, d)) continue;
        int64_t start = tfc_lister_start(&l, n, d);
        // The additional time that the operation takes on a slow device counts as waiting, so that such a device does
        // not win only because it is idle.
        start += tfc_problem_time(p, n, d);
        int64_t fastest = TFC_TIME_MAX;
        for (uint32_t c = 0; c < p->class_count; c++) {
          int64_t t = p->time[(size_t)c * p->node_count + n];
          if (t >= 0 && t < fastest) fastest = t;
        }
        start -= fastest;
        // Of equal starts, that of a favourite child on its parent's device is preferred.
        if (favourite && favourite[n] != TFC_NONE && l.device[p->unit[favourite[n]]] == d)
          start = start > 0 ? start - 1 : 0;
        if (best == TFC_NONE || start < soonest || (start == soonest && p->rank[n] < p->rank[window[best]]))
          soonest = start, best = k, where = d;
      }
    if (best == TFC_NONE) best = 0, where = tfc_lister_last_resort(&l, window[0]);
    const uint32_t n = window[best];
    window[best] = window[--held];
    if (!tfc_lister_put(&l, n, where)) TFC_TRY(s, tfc_status_no_memory("m-ETF"));
    if (done % 256 == 0 && tfc_budget_over(budget)) TFC_FAIL(s, TFC_DEADLINE_EXCEEDED, "no time left for m-ETF");
  }
  TFC_TRY(s, tfc_lister_finish(&l, budget, out, out_evaluations));
out:
  free(heap);
  if (l.problem) tfc_lister_deinit(&l);
  return s;
}

static tfc_status propose(const struct tfc_problem *p, struct tfc_evaluator *evaluator, const struct tfc_budget *budget,
                          struct tfc_solution *out, uint64_t *out_evaluations) {
  (void)evaluator;
  return tfc_etf_run(p, budget, NULL, out, out_evaluations);
}

const struct tfc_algo tfc_algo_etf = {
    .name = "m-etf",
    .help = "earliest task first within memory: quick, fills idle devices, knows transfers only one step ahead",
    .paper = "Jeon et al. 2020, Baechi, section 3.2; Hwang et al. 1989, Scheduling Precedence Graphs, section 3",
    .propose = propose,
};
