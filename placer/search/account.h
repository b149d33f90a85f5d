// Account: what a learned policy did in searches, for reports and the database.
#ifndef TFC_PLACER_SEARCH_ACCOUNT_H
#define TFC_PLACER_SEARCH_ACCOUNT_H

#include "placer/algo/guide.h"
#include "profiler/store.h"
#include "runtime/base/str.h"

struct tfc_search_account {
  struct tfc_guide_samples samples; // its own placements, with which it began; count 0: there was no policy
  int64_t before, after;            // ps, the best placement before them and with them; TFC_TIME_MAX: none
  // Turns of local search in which it proposed the moves, those that improved the best placement, by how much in sum
  // (logarithms of before / after), and what they cost. `others`: the turns of all other methods.
  struct tfc_search_turns {
    uint32_t count, wins;
    uint64_t evaluations;
    double seconds, gained;
  } moves, others;
};
// Adds a later search of the same run; `before` stays, entropy and invalid share become means over all samples.
void tfc_search_account_add(struct tfc_search_account *account, const struct tfc_search_account *later);
struct tfc_store_policy_search tfc_search_account_row(const struct tfc_search_account *account); // for the database
// One sentence, and a line break; nothing where there was no policy.
void tfc_search_account_tell(const struct tfc_search_account *account, struct tfc_text *out);

#endif
