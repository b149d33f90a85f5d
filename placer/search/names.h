// Clusters of operations with similar names. Whoever wrote a graph named its layers and steps
// ("encoder/layer1/step7/MatMul"), and experts place operations with similar names together. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_NAMES_H
#define TFC_PLACER_SEARCH_NAMES_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"

// Fills cluster [unit_count] with the number of each unit's cluster, from 0, and returns how many clusters there are;
// 0: out of memory. How many parts of a name count, and which of its numbers, is random: say, layers may be clusters of
// their own while all time steps of a layer, or ranges of steps, are one cluster. Units that may not run on the same
// devices are never in one cluster.
uint32_t tfc_names_cluster(const struct tfc_problem *problem, struct tfc_random *random, uint32_t *cluster);

#endif
