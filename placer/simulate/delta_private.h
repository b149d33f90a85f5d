// For the delta*.c files only: the recorded simulation of the incumbent, the instant at which a trial begins to differ
// from it (delta_leave.c), and the instant from which on it equals it again (delta_join.c).
#ifndef TFC_PLACER_SIMULATE_DELTA_PRIVATE_H
#define TFC_PLACER_SIMULATE_DELTA_PRIVATE_H

#include "placer/simulate/delta.h"
#include "placer/simulate/engine.h"
#include "placer/simulate/loads.h"

#define SAVES 48        // the most saved states of the incumbent
#define MOST_SILENT 24  // the most silent transfers of one trial
#define MOST_DELAYED 16 // the most transfers that one silent transfer may delay

struct undo {
  uint32_t unit;
  tfc_device_id from;
};

// A silent transfer: one that only the trial has (`added`) or only the incumbent has, and that has no effect on any
// operation. Until `end`, other transfers on its wire may be earlier or later because of it, but no operation starts at
// another time.
struct silent {
  uint32_t tensor, wire;
  tfc_device_id device;
  bool added;
  int64_t begin, arrives, end; // when it joins the queue; when it arrives; when the wire is as in the incumbent again
};

// A recorded simulation.
struct record {
  int64_t *end, *start, *arrival; // [node]
  uint32_t *sequence;
  struct tfc_engine_ends ends;    // the order in which operations end; empty: trials are not compared with it
  int64_t *arrived;               // [tensor * device_count + device] ends of transfers; NULL: they are not stored
  struct tfc_engine_rides *rides; // [lane] transfers; NULL without `arrived`
};

struct tfc_delta {
  const struct tfc_problem *problem;
  bool step;
  tfc_device_id *device;    // [unit] devices of the incumbent, changed by the trial's moves while a trial is open
  tfc_device_id *incumbent; // [unit] devices of the incumbent
  struct tfc_verdict verdict;
  uint64_t *memory; // [device] static bytes
  int64_t *load;    // [device] ps of operations (step)
  TFC_ARRAY(struct undo) moved;
  TFC_ARRAY(uint32_t) swapped;
  bool open;   // the moves of a trial were made, and it was not committed
  bool peeked; // the trial is one move that was evaluated without making it (throughput)
  struct tfc_move peek;
  // Throughput objective: the load of each device.
  struct tfc_loads loads;
  // Step objective, about the incumbent:
  struct tfc_engine engine;
  struct tfc_engine_save save[SAVES];
  uint32_t patience;           // how many operations end before the trial is compared with the incumbent again
  uint32_t most_saves, stride; // save i is the state when i * stride operations have ended; time TFC_TIME_MAX: there is
                               // none
  struct record now;
  struct record next;  // memory for the record that a commit makes; only if trials are compared with the incumbent
  uint32_t lane_count; // number of lanes: wires or, if each device has an inbox, devices
  int64_t *tail;       // [node] longest remaining path with its devices and transfers
  uint64_t *stale;     // set of positions whose tails must be computed again; empty between calls
  uint32_t *position;  // [node] in the topological order
  // Step objective, about the trial:
  struct silent silent[MOST_SILENT];
  uint32_t silent_count;
  uint32_t *mark, stamp; // [node] the number of the last trial that moved it
  tfc_device_id *was;    // [node] its device in the incumbent, if the trial moves it
  uint32_t highest;      // one more than the highest position of a node that it moved; 0: none
  uint32_t from_save;    // the saved state from which it began; TFC_NONE: it began at time 0
  int64_t leaves;        // the first instant at which the trial may differ, silent transfers excepted
};

// Returns the node's device in the incumbent while the moves of a trial are made.
static inline uint32_t tfc_delta_incumbent_device(const struct tfc_delta *d, uint32_t n) {
  return d->mark[n] == d->stamp ? d->was[n] : d->engine.device[n];
}

#endif
