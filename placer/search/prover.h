// If options.prove asks for it, raises the lower bound of a search for throughput: what the borders of parts cost
// (placer/exact/border.h). That needs a placement that is nearly the best, so it begins when a third of the time has
// passed, on a thread of its own. If evaluations limit the search, it runs at the end instead, and what it does depends
// on nothing else.
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
