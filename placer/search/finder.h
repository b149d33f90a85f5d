// Finder: what all parts of one search share: its problem and options, the best placement so far, its clock and limits,
// and the state from which it can be resumed. search.c decides what is tried next.
//
// The searching thread owns it. Other threads call only tfc_finder_found, and read `stop`.
#ifndef TFC_PLACER_SEARCH_FINDER_H
#define TFC_PLACER_SEARCH_FINDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "placer/algo/guide.h"
#include "placer/search/course.h"
#include "placer/search/search.h"

struct tfc_finder {
  const struct tfc_problem *p;
  const struct tfc_search_options *o;
  struct tfc_search_outcome *out;
  struct tfc_search_course course;
  struct tfc_guidance *guidance; // of `auto`'s policy; NULL: not asked yet, or there is none
  double begin, deadline;        // seconds; deadline 0: none
  uint64_t limit;                // evaluations, 0: none
  uint32_t threads;
  struct tfc_score shown; // the best that an algorithm reported, for progress
  const char *at_work;
  bool plain_later;     // `auto` runs after the named algorithms: search.c need not try plain placements
  pthread_mutex_t lock; // guards `shown`
  atomic_bool stop;     // cancelled, or optimal
};

uint64_t tfc_finder_spent(const struct tfc_finder *finder); // evaluations so far
// Looks whether the search was cancelled, and reports progress. `finder` is a struct tfc_finder.
void tfc_finder_tick(void *finder);
// Keeps a copy of the placement if it is the best so far. name: what found it; not copied.
TFC_MUST_USE tfc_status tfc_finder_keep(struct tfc_finder *finder, const struct tfc_solution *solution,
                                        struct tfc_score score, const char *name);
// An algorithm calls it when it has found a better placement: for progress only. `finder` is a struct tfc_finder.
void tfc_finder_found(void *finder, uint64_t excess, int64_t value);
bool tfc_finder_is_over(const struct tfc_finder *finder); // cancelled, optimal, or nothing left of a limit
// The algorithm of this name, of the options' own or of all; NULL: there is none.
const struct tfc_algo *tfc_finder_algo(const struct tfc_search_options *options, tfc_str name);

// Hands the state of the search to whoever keeps it. What jobs found that were cut short is not part of a state, unless
// time is what limits the search: if evaluations do, the search has to go on as if it had never been interrupted.
TFC_MUST_USE tfc_status tfc_finder_checkpoint(struct tfc_finder *finder);
// The same when the search has come to the end of a phase. If it was cancelled in the phase, nothing is handed out: a
// resumed search begins the phase again.
TFC_MUST_USE tfc_status tfc_finder_checkpoint_phase(struct tfc_finder *finder, enum tfc_search_stage stage);
// Goes on from the state in the options. INVALID_ARGUMENT: the state is damaged, or of another problem.
TFC_MUST_USE tfc_status tfc_finder_resume(struct tfc_finder *finder);

#endif
