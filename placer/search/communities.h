// Communities: sets of units that exchange much data with each other and little with others; they may differ in work
// and memory. Internal to the placer.
//
// Modularity with a resolution is maximized by moving single units between communities, then whole communities, until
// no move increases it (Blondel et al. 2008, Fast Unfolding of Communities in Large Networks; Reichardt and Bornholdt
// 2006, Statistical Mechanics of Community Detection, equation 15).
#ifndef TFC_PLACER_SEARCH_COMMUNITIES_H
#define TFC_PLACER_SEARCH_COMMUNITIES_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"

struct tfc_community_options {
  double resolution; // higher: more communities, smaller ones; 1 is Newman's modularity
  double power;      // exponent of a tensor's time on a wire in its weight: 1 counts times, 0 counts edges
  double fan;        // a tensor's weight is divided by (number of its consumers)^fan
};
// Fills community [unit_count] with the number of each unit's community, from 0, and returns how many communities there
// are; 0: out of memory. Units that may not run on the same devices are never in one community, and no community needs
// more memory than the largest device has.
uint32_t tfc_communities_find(const struct tfc_problem *problem, struct tfc_random *random,
                              const struct tfc_community_options *options, uint32_t *community);
// Whether little memory is free: the units need most of the memory of all devices together.
bool tfc_communities_tight(const struct tfc_problem *problem);
// Fills piece [unit_count] with the number of each unit's piece (connected units on one device), from 0, and returns
// how many pieces there are. device NULL: the pieces of the undivided graph. 0: out of memory.
uint32_t tfc_communities_pieces(const struct tfc_problem *problem, const tfc_device_id *device, uint32_t *piece);

#endif
