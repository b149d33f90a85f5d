// If options.prove asks for it, raises the lower bound of a search for throughput by what a device pays at the border
// of its part (placer/exact/border.h). The bound is the better, the nearer the best placement found so far is to the
// optimum. So under a time limit it is computed on a thread of its own, which begins after a third of the time; if only
// evaluations limit the search, it is computed when the search has ended, and does not depend on the clock.
#ifndef TFC_PLACER_SEARCH_PROVER_H
#define TFC_PLACER_SEARCH_PROVER_H

#include "placer/search/finder.h"

struct tfc_prover {
  struct tfc_finder *finder;
  pthread_t thread;
  bool started;
  int64_t bound; // ps
};

void tfc_prover_begin(struct tfc_finder *finder, struct tfc_prover *out);
// Called after finder->stop was set, when nothing else searches. `fine`: the search had no error.
void tfc_prover_end(struct tfc_finder *finder, bool fine, struct tfc_prover *prover);

#endif
