// The public header of the placer: includes problem files, the simulator, algorithms, bounds, search and the placement
// document.
#ifndef TFC_PLACER_PLACER_H
#define TFC_PLACER_PLACER_H

#include "placer/algo/algo.h"
#include "placer/exact/bound.h"
#include "placer/model/cost_graph.h"
#include "placer/model/machine.h"
#include "placer/model/placement.h"
#include "placer/model/problem.h"
#include "placer/place.h"
#include "placer/search/search.h"
#include "placer/simulate/delta.h"
#include "placer/simulate/evaluator.h"
#include "placer/simulate/simulate.h"

#endif
