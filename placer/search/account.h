// Account: what a learned policy contributed to a search, for reports and the database.
#ifndef TFC_PLACER_SEARCH_ACCOUNT_H
#define TFC_PLACER_SEARCH_ACCOUNT_H

#include "placer/search/guide.h"
#include "profiler/store.h"
#include "profiler/store_rows.h"
#include "runtime/base/str.h"

struct tfc_search_account {
  struct tfc_guide_samples samples; // the placements that the policy itself proposed before the rounds; count 0: there
                                    // was no policy
  int64_t before, after;            // ps, the best placement before and after these; TFC_TIME_MAX: none
  // `moves`: the policy's moves in local search; `others`: all other methods. A job in which the policy's moves take
  // turns with annealing counts as one of both, each with the evaluations, the time and the gain that are its own.
  // wins: how many of them improved the best placement; the gain is summed as log(before / after).
  struct tfc_search_turns {
    uint32_t count, wins;
    uint64_t evaluations;
    double seconds, gained;
  } moves, others;
};
// Adds a later search of the same run. `before` stays; entropy and the share of invalid placements become means over
// all samples.
void tfc_search_account_add(struct tfc_search_account *account, const struct tfc_search_account *later);
struct tfc_store_policy_search tfc_search_account_row(const struct tfc_search_account *account); // for the database
// Writes one sentence with a line break; nothing if there was no policy.
void tfc_search_account_tell(const struct tfc_search_account *account, struct tfc_text *out);

#endif
