// Communities: units that have much to send to each other and little to others, however unequal in work or memory they
// are. Internal to the placer.
//
// Modularity with a resolution is made large by moving units between communities, then communities as one, as long as
// that helps (Blondel et al. 2008, Fast Unfolding of Communities in Large Networks; Reichardt and Bornholdt 2006,
// Statistical Mechanics of Community Detection, equation 15).
#ifndef TFC_PLACER_SEARCH_COMMUNITIES_H
#define TFC_PLACER_SEARCH_COMMUNITIES_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"

struct tfc_community_options {
  double resolution; // higher: more communities, smaller ones; 1 is Newman's modularity
  double power;      // of a tensor's time on a wire: 1 counts costs, 0 counts edges
  double fan;        // of the number of its consumers, that its weight is divided by
};
// Fills community [unit_count] with communities from 0 and returns how many there are; 0: out of memory. Units that may
// not run on the same devices are never in one community, and none has more memory than the largest device.
uint32_t tfc_communities_find(const struct tfc_problem *problem, struct tfc_random *random,
                              const struct tfc_community_options *options, uint32_t *community);
// Whether memory decides where things can be: the units need most of what all devices together have.
bool tfc_communities_tight(const struct tfc_problem *problem);
// Units of one device that hang together: the pieces of a placement, numbered from 0; device NULL: of the graph. 0: out
// of memory.
uint32_t tfc_communities_pieces(const struct tfc_problem *problem, const tfc_device_id *device, uint32_t *piece);

#endif
