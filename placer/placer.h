// The placer's public header: problem files, the simulator, algorithms, bounds, search and the placement document.
#ifndef TFC_PLACER_PLACER_H
#define TFC_PLACER_PLACER_H

#include "placer/algo.h"
#include "placer/bound.h"
#include "placer/cost_graph.h"
#include "placer/delta.h"
#include "placer/evaluator.h"
#include "placer/machine.h"
#include "placer/place.h"
#include "placer/placement.h"
#include "placer/problem.h"
#include "placer/search.h"
#include "placer/simulate.h"

#endif
