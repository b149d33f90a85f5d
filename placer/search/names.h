// Clusters of operations with similar names. Whoever wrote a graph named its layers and steps
// ("encoder/layer1/step7/MatMul"), and experts place operations with similar names together. Internal to the placer.
#ifndef TFC_PLACER_SEARCH_NAMES_H
#define TFC_PLACER_SEARCH_NAMES_H

#include "placer/model/problem.h"
#include "runtime/base/random.h"

// Fills cluster [unit_count] with clusters from 0 and returns how many there are; 0: out of memory. How deep names are
// read, and which of the numbers in them count, is chance: a few layers may stay apart and many steps be one, or in
// runs. Units that may not run on the same devices are never in one cluster.
uint32_t tfc_names_cluster(const struct tfc_problem *problem, struct tfc_random *random, uint32_t *cluster);

#endif
