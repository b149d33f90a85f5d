// Finder: what all parts of one search share: its problem and options, the best placement so far, its clock and limits,
// and the state from which it can be resumed. search.c decides what is tried next.
//
// The searching thread owns it. Other threads call only tfc_finder_found, and read `stop`.
#ifndef TFC_PLACER_SEARCH_FINDER_H
#define TFC_PLACER_SEARCH_FINDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "placer/search/course.h"
#include "placer/search/guide.h"
#include "placer/search/search.h"

struct tfc_finder {
  const struct tfc_problem *p;
  const struct tfc_search_options *o;
  struct tfc_search_outcome *out;
  struct tfc_search_course course;
  struct tfc_guidance *guidance; // the learned policy's state for `auto`; NULL: not opened yet, or there is no policy
  double begin, deadline;        // seconds; deadline 0: none
  uint64_t limit;                // evaluations, 0: none
  uint32_t threads;
  struct tfc_score shown; // the best score that an algorithm has reported, shown as progress
  const char *at_work;
  bool plain_later;     // `auto` runs after the named algorithms, so search.c need not try the plain placements (single
                        // devices, random ones)
  pthread_mutex_t lock; // guards `shown`
  atomic_bool stop;     // set when the search is cancelled, or when its best placement is proven optimal
};

uint64_t tfc_finder_spent(const struct tfc_finder *finder); // evaluations used so far
// Checks whether the search was cancelled, and reports progress. `finder` is a struct tfc_finder.
void tfc_finder_tick(void *finder);
// Keeps a copy of the placement if it is the best so far. `name`: the algorithm that found it; the string is not
// copied.
TFC_MUST_USE tfc_status tfc_finder_keep(struct tfc_finder *finder, const struct tfc_solution *solution,
                                        struct tfc_score score, const char *name);
// Algorithms call it when they have found a better placement; it is used for progress only. `finder` is a struct
// tfc_finder.
void tfc_finder_found(void *finder, uint64_t excess, int64_t value);
#define TFC_SEARCH_ENOUGH 600 // with fewer evaluations than this there is too little for rounds of several methods
// Whether the search is short: evaluations alone limit it, and they are fewer than that.
bool tfc_finder_is_short(const struct tfc_finder *finder);
// Whether the problem is so small that with so many evaluations annealing on units finds nearly all that it can find.
bool tfc_finder_is_small(const struct tfc_finder *finder, uint64_t evaluations);
bool tfc_finder_is_over(const struct tfc_finder *finder); // the search was cancelled, or its best placement is optimal,
                                                          // or a limit is reached
// Returns the deadline that is `seconds` after the beginning of the search: more than 0, also if the search began
// (before it was interrupted) when the machine had not been started yet.
double tfc_finder_moment(const struct tfc_finder *finder, double seconds);
// Whether the caller has cancelled the search.
bool tfc_finder_is_cancelled(const struct tfc_finder *finder);
// Finds the algorithm of this name among options->settings.extra and the registered ones; NULL: there is none.
const struct tfc_algo *tfc_finder_algo(const struct tfc_search_options *options, tfc_str name);

// Passes the state of the search to options.kept. Results of jobs that were cut short are part of the state only if
// time limits the search: if evaluations do, the resumed search must go on as if it had never been interrupted.
TFC_MUST_USE tfc_status tfc_finder_checkpoint(struct tfc_finder *finder);
// The same before anything was searched, so that an interrupted search can be resumed from its beginning.
TFC_MUST_USE tfc_status tfc_finder_first_checkpoint(struct tfc_finder *finder);
// The same at the end of a phase. If the search was cancelled during the phase, no state is passed on: a resumed search
// begins the phase again.
TFC_MUST_USE tfc_status tfc_finder_checkpoint_phase(struct tfc_finder *finder, enum tfc_search_stage stage);
// Continues from the state in the options. INVALID_ARGUMENT: the state is damaged, or belongs to another problem.
TFC_MUST_USE tfc_status tfc_finder_resume(struct tfc_finder *finder);

#endif
