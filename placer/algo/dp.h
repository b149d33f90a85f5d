// Inside dynamic programming over contiguous splits (dp.c): devices by types, units by runs of an order, the piece at
// hand and what it costs (dp_piece.c), ideals (dp_ideals.c), and the search where links are not alike (dp_unlike.c).
#ifndef TFC_PLACER_ALGO_DP_H
#define TFC_PLACER_ALGO_DP_H

#include "placer/search/local.h"
#include "runtime/base/array.h"

#define TFC_DP_TYPES 12

// Devices that are alike to every unit: of one kind and limit, and without pins, or a device alone that has some.
struct tfc_dp_type {
  uint32_t first, count; // one of its devices, how many there are
  uint64_t limit;
  bool pinned;
  double *in, *out; // [net] what receiving and sending it costs one of them at least; INFINITY: no link
};
struct tfc_dp_step { // an ideal without one of its last runs
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
  uint32_t *first, *member; // units of a run
  uint32_t type_count, state_count;
  struct tfc_dp_type type[TFC_DP_TYPES];
  uint32_t *type_of;             // [device]
  uint32_t stride[TFC_DP_TYPES]; // of a type's count in a state
  // The piece at hand.
  bool *inside;     // [run]
  uint32_t *net_in; // [net] consuming units inside
  double *table;    // of the types' costs
  bool even;        // all links are alike
  double time[TFC_DP_TYPES], wire_in[TFC_DP_TYPES], wire_out[TFC_DP_TYPES];
  uint32_t barred[TFC_DP_TYPES];  // its units that may not be there
  uint32_t missing[TFC_DP_TYPES]; // tensors of it for which there is no link
  uint64_t memory;
};

struct tfc_dp_frame { // depth-first through smaller ideals
  uint32_t ideal, next, run;
};

// Adds (sign 1) a run to the piece at hand or takes it out (-1).
void tfc_dp_change(struct tfc_dp *dp, uint32_t run, int sign);
// What the piece costs a device of a type at least, ps; INFINITY: it cannot be there.
double tfc_dp_cost(const struct tfc_dp *dp, uint32_t type);
// What each net costs a device of each type at least, on the best of its links; whether all links are alike.
TFC_MUST_USE tfc_status tfc_dp_find_wires(struct tfc_dp *dp);

// The ideals of the forward graph of runs, the whole one last; *out_all false: there are too many.
TFC_MUST_USE tfc_status tfc_dp_find_ideals(const struct tfc_dp *dp, struct tfc_dp_ideals *ideals, bool *out_all);
// Only the beginnings of the linear order.
TFC_MUST_USE tfc_status tfc_dp_linear_ideals(const struct tfc_dp *dp, struct tfc_dp_ideals *ideals);

// The best split where links are not alike; value [ideal * state_count + state]: lower bounds, with exactly so many
// devices of each type, which it changes. `all`: ideals by their bits, else by their length. *out_load INFINITY: there
// is none; *out_done: that is certain.
TFC_MUST_USE tfc_status tfc_dp_split_unlike(struct tfc_dp *dp, const struct tfc_dp_ideals *ideals, bool all,
                                            double *value, tfc_device_id *device, double *out_load, bool *out_done);

#endif
