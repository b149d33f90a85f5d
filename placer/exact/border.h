// Throughput, devices that pay for what they receive and send: a lower bound from what the border of a device's part
// costs.
//
// Suppose that every load is below T. The part of the graph that a device has is a set S of units whose work and border
// (mincut.h) are together below T. If border(S) >= rate(u) * work(S) for every such set with u in it, then all devices
// together pay at least the sum over units of rate(u) * work(u), because a part's border divides among its units by
// their work. So the largest load is at least (all work + that sum) / devices, or it is not below T.
//
// A unit's rate is the smallest quotient border(S) / work(S) over such sets. It is found by branch and bound over which
// units are inside and outside; a branch ends where a Lagrangian relaxation of "below T", whose value is a minimum cut,
// shows that none of its sets has a smaller quotient. Sets that hold a unit with a higher rate are left out, for they
// are known not to be smaller.
#ifndef TFC_PLACER_EXACT_BORDER_H
#define TFC_PLACER_EXACT_BORDER_H

#include <stdatomic.h>

#include "placer/model/problem.h"

enum { TFC_BORDER_UNITS = 3000 }; // with more units it takes too long

struct tfc_border_limits {
  double deadline;         // seconds on tfc_now_s()'s clock; 0: none
  uint64_t arcs;           // arcs of all networks whose cuts are computed; 0: no limit
  const atomic_bool *stop; // NULL: never
};
// Returns a time in ps that is at most the largest load of every placement; 0: none was found. `best`: the largest load
// of a placement that is known, in ps; the nearer it is to the optimum, the better the bound. The objective is
// throughput. If `arcs` is the only limit, the result depends on nothing else.
int64_t tfc_border_bound(const struct tfc_problem *problem, int64_t best, const struct tfc_border_limits *limits);

#endif
