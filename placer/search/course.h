// Course: where a search stands between two of its parts, and all that the rest of it depends on. A search that was
// interrupted begins again at the last point where its course was kept. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_COURSE_H
#define TFC_PLACER_SEARCH_COURSE_H

#include "placer/search/archive.h"
#include "placer/search/credit.h"
#include "placer/search/search.h"

// What of `auto` is done.
enum tfc_search_stage {
  TFC_STAGE_NONE,
  TFC_STAGE_HEURISTICS,
  TFC_STAGE_TRIED, // tiny problems: everything was tried
  TFC_STAGE_SETTLED,
  TFC_STAGE_POLICY,
  TFC_STAGE_ROUNDS, // rounds have begun
  TFC_STAGE_COUNT
};
struct tfc_search_course {
  uint32_t stage, named; // named: so many of the algorithms that were asked for by name have run
  double seconds;        // that the search has taken
  struct tfc_score best;
  struct tfc_elite elite, hall; // hall: what earlier valleys had left
  // Of the rounds.
  struct tfc_random random;
  struct tfc_credits credits;
  double temperature, slice;
  uint64_t total_left, cooling; // evaluations when the rounds began, and for the last part
  uint64_t turn, better_turn, last_better;
  uint32_t idle_rounds, idle_here;
  uint32_t round; // the next one
  uint8_t complete, together, left_one;
};

// Writes or reads the course and what the outcome has so far. `name` turns the name of an algorithm or of a part of the
// search into one that lives as long as the outcome; NULL: there is none of that name. INVALID_ARGUMENT: what is read
// is of another problem, another seed or another guide, or is no course.
struct tfc_course_names {
  const char *(*find)(void *user, tfc_str name);
  void *user;
};
TFC_MUST_USE tfc_status tfc_course_archive(struct tfc_archive *archive, const struct tfc_problem *problem,
                                           const struct tfc_search_options *options,
                                           const struct tfc_course_names *names, struct tfc_search_course *course,
                                           struct tfc_search_outcome *outcome);

#endif
