// The phase of a search in which a learned policy (guide.h) proposes placements, before the rounds.
#ifndef TFC_PLACER_SEARCH_ROLLOUTS_H
#define TFC_PLACER_SEARCH_ROLLOUTS_H

#include "placer/search/finder.h"

// Lets the search's policy propose placements, as long as these may lead to something; they join the elite. The policy
// must be open (finder->guidance). Errors are the policy's own.
TFC_MUST_USE tfc_status tfc_rollouts_ask(struct tfc_finder *finder);
// Whether rollouts made the best step of the search shorter. It compares only the steps' times, so memory must have no
// limits.
bool tfc_rollouts_gained(const struct tfc_finder *finder);
// The same, but by at least the share from which on rollouts continue.
bool tfc_rollouts_led(const struct tfc_finder *finder);

#endif
