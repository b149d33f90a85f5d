// Delta evaluation: the exact value of a placement that differs a little from an incumbent, without evaluating all of
// it. For throughput, loads are stored per device, and moving a unit changes only those that its own tensors concern.
// For the step, the simulation restarts from the last saved state of the incumbent before the first possible
// difference, and stops as soon as the value cannot be below the cutoff.
//
//   tfc_delta_reset(d, device, rank, &verdict);
//   tfc_delta_try(d, &(struct tfc_move){.unit = u, .device = 2}, 1, NULL, verdict.value, &tried);
//   if (better(tried)) tfc_delta_commit(d); else nothing;
//
// Each thread needs its own tfc_delta.
#ifndef TFC_PLACER_SIMULATE_DELTA_H
#define TFC_PLACER_SIMULATE_DELTA_H

#include "placer/simulate/simulate.h"

struct tfc_move {
  uint32_t unit;
  tfc_device_id device;
};

struct tfc_delta;
TFC_MUST_USE tfc_status tfc_delta_create(const struct tfc_problem *problem, struct tfc_delta **out);
void tfc_delta_free(struct tfc_delta *delta);
// Copies a placement, which becomes the incumbent. `rank` NULL: the problem's ranks. `out` may be NULL.
void tfc_delta_reset(struct tfc_delta *delta, const tfc_device_id *device, const uint32_t *rank,
                     struct tfc_verdict *out);
// Evaluates a trial: the incumbent after these moves (each unit at most once) and, for the step objective, after
// swapping the ranks of pairs of nodes (swaps[2 * i], swaps[2 * i + 1], one after the other). `cutoff` as in
// tfc_simulate. The verdict's arrays are not filled, and its transfers are not counted (0).
void tfc_delta_try(struct tfc_delta *delta, const struct tfc_move *moves, uint32_t move_count, const uint32_t *swaps,
                   uint32_t swap_count, int64_t cutoff, struct tfc_verdict *out);
// The last trial becomes the incumbent (it must have been legal and not cut off).
void tfc_delta_commit(struct tfc_delta *delta);
const tfc_device_id *tfc_delta_device(const struct tfc_delta *delta); // [unit] of the incumbent
// Returns the incumbent's ranks, [node]; they are valid until the next trial.
const uint32_t *tfc_delta_rank(const struct tfc_delta *delta);
// the verdict of the incumbent, with its arrays
const struct tfc_verdict *tfc_delta_verdict(const struct tfc_delta *delta);
// Return [node] the times in ps at which the incumbent's operations start, end and become ready; NULL if the objective
// is not the step.
const int64_t *tfc_delta_start(const struct tfc_delta *delta);
const int64_t *tfc_delta_end(const struct tfc_delta *delta);
const int64_t *tfc_delta_arrival(const struct tfc_delta *delta);

#endif
