// Bandit: divides the places of a batch among those that propose placements. A proposer has won if a placement of its
// own became the incumbent in the interleaved readings of its batch. Each place goes to the proposer that is the most
// likely to win under a draw from what is known of it (Thompson 1933), so one whose placements lose gets fewer and
// fewer measurements, and never none for good.
#ifndef TFC_PLACER_ELSEWHERE_BANDIT_H
#define TFC_PLACER_ELSEWHERE_BANDIT_H

#include "placer/elsewhere/state.h"

struct tfc_elsewhere_arm {
  const char *proposer; // the algorithm in the database; NULL: every algorithm that is not another arm's
  uint32_t places;      // of the batch; set by tfc_elsewhere_divide
};
void tfc_elsewhere_divide(const struct tfc_elsewhere *run, struct tfc_random *random, struct tfc_elsewhere_arm *arms,
                          uint32_t arm_count, uint32_t places);
// Whether the algorithm is a learned policy: `rl`, or the policy in a search ("auto: policy").
bool tfc_elsewhere_is_learned(const char *algorithm);
// Whether a placement of `algorithm` may be measured: learned policies that have not won yet get at most a quarter of
// the run's measurements, all together. `pending`: their placements in the batch so far.
bool tfc_elsewhere_may_propose(const struct tfc_elsewhere *run, const char *algorithm, uint32_t pending);

#endif
