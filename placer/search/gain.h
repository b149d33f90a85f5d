// Gain: how much a job, or a block of its budget, shortened a step, and whose gain that is: in a job of
// TFC_METHOD_POLICY, the policy's own moves and annealing take turns.
#ifndef TFC_PLACER_SEARCH_GAIN_H
#define TFC_PLACER_SEARCH_GAIN_H

#include "placer/search/account.h"
#include "placer/search/credit.h"

// Whether times say how much better `after` is: not if there is no time before, or if the placement now exceeds the
// memory limits by less.
bool tfc_gain_timed(struct tfc_score before, struct tfc_score after);
// log(time before / time after); 1 if `after` is better but times do not say how much; 0 if it is not better.
double tfc_gain(struct tfc_score before, struct tfc_score after);

// Adds a job that has ended to the account, and its gain to the credit of its method. by_evaluations: the effort of a
// job is its evaluations; otherwise it is its seconds.
void tfc_gain_count(const struct tfc_search_job *job, bool by_evaluations, struct tfc_search_account *account,
                    struct tfc_credits *credits);
// Returns the name under which the job's placement is kept: that of the method that made most of the gain.
const char *tfc_gain_name(const struct tfc_search_job *job);

#endif
