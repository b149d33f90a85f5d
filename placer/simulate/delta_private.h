// Inside delta evaluation of the step objective: the incumbent's recorded simulation, where a trial leaves it
// (delta_leave.c) and where it joins it again (delta_join.c). Included by delta*.c only.
#ifndef TFC_PLACER_SIMULATE_DELTA_PRIVATE_H
#define TFC_PLACER_SIMULATE_DELTA_PRIVATE_H

#include "placer/simulate/delta.h"
#include "placer/simulate/engine.h"
#include "placer/simulate/loads.h"

#define SAVES 48        // saved states of the incumbent
#define MOST_SILENT 24  // silent transfers of one trial
#define MOST_DELAYED 16 // transfers that one silent transfer may delay

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
  int64_t begin, arrives, end; // when it joins the list, when it arrives, when the wire is as in the incumbent again
};

// A recorded simulation.
struct record {
  int64_t *end, *start, *arrival; // [node]
  uint32_t *sequence;
  struct tfc_engine_ends ends;    // in which order its operations end; empty: trials are not compared for joins
  int64_t *arrived;               // [tensor * device_count + device] ends of transfers; NULL: not kept
  struct tfc_engine_rides *rides; // [lane] transfers; NULL without `arrived`
};

struct tfc_delta {
  const struct tfc_problem *problem;
  bool step;
  tfc_device_id *device;    // [unit] of the incumbent, with the trial's moves while one is open
  tfc_device_id *incumbent; // [unit] without them
  struct tfc_verdict verdict;
  uint64_t *memory; // [device] static bytes
  int64_t *load;    // [device] ps of operations (step)
  TFC_ARRAY(struct undo) moved;
  TFC_ARRAY(uint32_t) swapped;
  bool open;   // a trial is applied and not committed
  bool peeked; // the trial is one move that was evaluated without applying it (throughput)
  struct tfc_move peek;
  // Throughput.
  struct tfc_loads loads;
  // Step: the incumbent.
  struct tfc_engine engine;
  struct tfc_engine_save save[SAVES];
  uint32_t patience;           // operations that end before the next comparison for a join
  uint32_t most_saves, stride; // save i: when i * stride operations have ended; time TFC_TIME_MAX: none
  struct record now;
  struct record next;  // room for the record that a commit makes; only if trials are compared for joins
  uint32_t lane_count; // lanes are wires, or devices where each has an inbox
  int64_t *tail;       // [node] longest remaining path with its devices and transfers
  uint64_t *stale;     // set of positions whose tails have to be computed again; empty between calls
  uint32_t *position;  // [node] in the topological order
  // Step: the trial.
  struct silent silent[MOST_SILENT];
  uint32_t silent_count;
  uint32_t *mark, stamp; // [node] the last trial that moved it
  tfc_device_id *was;    // [node] device in the incumbent, for nodes that a trial moves
  uint32_t highest;      // one more than the highest position of a node that it moved; 0: none
  uint32_t from_save;    // the saved state from which it began; TFC_NONE: it began at time 0
  int64_t leaves;        // the first instant at which it may differ, silent transfers not counted
};

// --- leaving ---------------------------------------------------------------------------------------------------------

// The first instant of the incumbent at which the trial, which is applied, may differ. Fills `silent`.
int64_t tfc_delta_leaves(struct tfc_delta *delta);
// The same after an instant `past` of the incumbent at which the trial had the state that the incumbent has. Returns
// `past` if the two may differ at once. No transfer counts as silent.
int64_t tfc_delta_leaves_after(const struct tfc_delta *delta, int64_t past);
// Whether the trial and the incumbent differ at that instant by a silent transfer that is under way.
bool tfc_delta_within_silence(const struct tfc_delta *delta, int64_t time);
// Changes a saved state of the incumbent, of the instant `time` (`block`), into the trial's state at that instant,
// which must be before the first difference; `past` as above, or -1.
void tfc_delta_adjust(const struct tfc_delta *delta, uint8_t *block, int64_t time, int64_t past);

// --- recording -------------------------------------------------------------------------------------------------------

tfc_status tfc_delta_init_records(struct tfc_delta *delta);
void tfc_delta_deinit_records(struct tfc_delta *delta);
// Records the engine's placement from the start, with saved states. Returns false where it is not legal.
bool tfc_delta_record(struct tfc_delta *delta, struct tfc_verdict *out);
// Records the trial, which is applied and legal: what differs is simulated again, the rest is copied with its shift in
// time.
void tfc_delta_record_trial(struct tfc_delta *delta, struct tfc_verdict *out);
// Index of the last saved state at `time` or before, where more than `ended` operations have ended, or TFC_NONE.
uint32_t tfc_delta_save_before(const struct tfc_delta *delta, int64_t time, uint32_t ended);
// Operations that have ended before an instant of the incumbent.
uint32_t tfc_delta_ended_before(const struct tfc_delta *delta, int64_t time);
// How many operations of the incumbent have ended when all operations that the trial moves or swaps have ended.
uint32_t tfc_delta_ended_with_all(const struct tfc_delta *delta);

// --- joining ---------------------------------------------------------------------------------------------------------

// Whether the engine's state equals the incumbent's at *out_past, shifted by *out_shift ps, apart from the inputs that
// moved nodes wait for. The engine runs the trial and has paused where `reach` operations have ended.
bool tfc_delta_joins(const struct tfc_delta *delta, int64_t *out_past, int64_t *out_shift);

// Index of the first of a lane's transfers that has not ended after the instant `past`.
size_t tfc_delta_first_under_way(const struct tfc_engine_rides *lane, int64_t past);

// Where the node is in the incumbent, while a trial is applied.
static inline uint32_t tfc_delta_incumbent_device(const struct tfc_delta *d, uint32_t n) {
  return d->mark[n] == d->stamp ? d->was[n] : d->engine.device[n];
}

#endif
