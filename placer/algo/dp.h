// Shared by the files of dynamic programming over contiguous splits (dp.c): types of devices, runs of units, the
// current piece and its cost (dp_piece.c), ideals (dp_ideals.c), and the search for links that differ (dp_unlike.c). A
// run is one unit, or several that follow each other in an order; a piece is the set of runs that one device gets; an
// ideal is a set of runs that contains all predecessors of its members.
#ifndef TFC_PLACER_ALGO_DP_H
#define TFC_PLACER_ALGO_DP_H

#include "placer/search/local.h"
#include "runtime/base/array.h"

#define TFC_DP_TYPES 12

// A type is a set of devices with the same kind and memory limit that no unit is pinned to, or a single device that
// some unit is pinned to.
struct tfc_dp_type {
  uint32_t first, count; // index of one of its devices; how many there are
  uint64_t limit;
  bool pinned;
  double *in, *out; // [net] the least time that receiving or sending the net costs one of its devices; INFINITY: there
                    // is no link
};
struct tfc_dp_step { // an ideal from which one of its last runs was removed: the smaller ideal and the run
  uint32_t ideal, run;
};
struct tfc_dp_ideals {
  uint32_t count, words;
  TFC_ARRAY(uint64_t) bits;
  TFC_ARRAY(struct tfc_dp_step) steps;
  TFC_ARRAY(uint32_t) first_step; // [count + 1]
};
struct tfc_dp {
  const struct tfc_problem *p;
  const struct tfc_budget *budget;
  uint32_t run_count;
  uint32_t *run;            // [unit]
  uint32_t *first, *member; // the units of each run, as compressed rows
  uint32_t type_count, state_count;
  struct tfc_dp_type type[TFC_DP_TYPES];
  uint32_t *type_of; // [device]
  // How much one more device of a type adds to the number of a state, which encodes how many devices of each type are
  // used.
  uint32_t stride[TFC_DP_TYPES];
  uint32_t *source; // [net] the run that produces the net
  uint32_t *own;    // [net] how many of its consumers are in that run
  // The current piece.
  bool *inside;     // [run]
  uint32_t *net_in; // [net] how many units inside the piece consume it
  double *table;    // memory of in and out of all types
  bool even;        // all links have the same times
  double time[TFC_DP_TYPES], wire_in[TFC_DP_TYPES], wire_out[TFC_DP_TYPES];
  uint32_t barred[TFC_DP_TYPES];  // how many units of the piece may not be on the type
  uint32_t missing[TFC_DP_TYPES]; // how many tensors of the piece have no link for the type
  uint64_t memory;
};

struct tfc_dp_frame { // one level of the depth-first walk through smaller ideals
  uint32_t ideal, next, run;
};

#endif
