// Single moves: which unit, if it alone went to another device, would make a placement better. Each is simulated, with
// all other units where they are and the order in which operations start now as their precedence: as the placement's
// file gives it, so --evaluate of a file with that change has the same result.
#ifndef TFC_PLACER_SIMULATE_SINGLE_MOVES_H
#define TFC_PLACER_SIMULATE_SINGLE_MOVES_H

#include "placer/model/problem.h"
#include "profiler/store.h"
#include "runtime/base/array.h"

struct tfc_single_move {
  uint32_t unit, nodes, node; // how many nodes the unit has, and the one that takes longest where it is now
  tfc_device_id from, to;
  int64_t won; // ps, more than 0: by so much the problem's objective falls
};
// Zeroed is empty. The caller frees it with tfc_single_moves_deinit, also after an error.
struct tfc_single_moves {
  TFC_ARRAY(struct tfc_single_move) list; // a unit's best move, if one wins; those that win most come first
  uint32_t tried;                         // units that were tried
  int64_t value;                          // ps: the objective of the placement as it is
};

// Tries the units of the simulated step's critical path, those that take longest in it first, on every other device
// that may run them. It simulates at most some 4 million operations, and at least 16 moves (if there are so many), so
// that graphs of up to 250,000 operations take about as long as small ones. Moves that exceed a memory limit by more
// than the placement does are not listed. A placement that is illegal has none. RESOURCE_EXHAUSTED: out of memory.
TFC_MUST_USE tfc_status tfc_single_moves_find(const struct tfc_problem *problem, const struct tfc_solution *solution,
                                              struct tfc_single_moves *out);
// Stores them as the moves of the placement with this key. `named`: the problem whose units the database has; it may
// have finer ones than the problem of the moves, with the same nodes. `ids`: [node_count] the nodes' numbers in the
// database; NULL: those of the problem. The store needs an open transaction; its errors are those of profiler/store.h.
TFC_MUST_USE tfc_status tfc_single_moves_write(const struct tfc_single_moves *moves, const struct tfc_problem *named,
                                               const uint32_t *ids, struct tfc_store *store, int64_t key);
void tfc_single_moves_deinit(struct tfc_single_moves *moves);

#endif
