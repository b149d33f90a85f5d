// Course: the state of a search between two of its parts, with all that the rest of the search depends on. A search
// that was interrupted is resumed from the last course that was saved. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_COURSE_H
#define TFC_PLACER_SEARCH_COURSE_H

#include "placer/search/archive.h"
#include "placer/search/credit.h"
#include "placer/search/search.h"

// The parts of `auto`, in order; the course has the last one that is complete.
enum tfc_search_stage {
  TFC_STAGE_NONE,
  TFC_STAGE_HEURISTICS,
  TFC_STAGE_TRIED, // for tiny problems: every placement was tried
  TFC_STAGE_SETTLED,
  TFC_STAGE_POLICY,
  TFC_STAGE_ROUNDS, // the rounds have begun
  TFC_STAGE_COUNT
};
struct tfc_search_course {
  uint32_t stage, named; // named: how many of the algorithms that the user named have run
  double seconds;        // time that the search has taken so far
  struct tfc_score best;
  struct tfc_elite elite, hall; // hall: the elite of valleys that the search has left
  // The state of the rounds.
  struct tfc_random random;
  struct tfc_credits credits;
  double temperature, slice;
  uint64_t total_left, cooling; // total_left: evaluations that were left when the rounds began; cooling: evaluations
                                // that the last part, which only cools down, gets
  uint64_t turn, better_turn, last_better;
  uint32_t idle_rounds, idle_here;
  uint32_t round; // number of the next round
  uint8_t complete, together, left_one;
};

// Writes the course and the results of the outcome so far, or reads them. `find` looks up the name of an algorithm, or
// of a part of the search, and returns a copy of it that exists as long as the outcome; NULL: no such name.
// INVALID_ARGUMENT: the text that was read belongs to another problem, seed or guide, or is no course.
struct tfc_course_names {
  const char *(*find)(void *user, tfc_str name);
  void *user;
};
TFC_MUST_USE tfc_status tfc_course_archive(struct tfc_archive *archive, const struct tfc_problem *problem,
                                           const struct tfc_search_options *options,
                                           const struct tfc_course_names *names, struct tfc_search_course *course,
                                           struct tfc_search_outcome *outcome);

#endif
