// Candidates: every placement that was proposed or measured in a job, with all that is known of it. This file alone
// writes the list, the incumbent (`best`) and the number of measured episodes; all others only read them.
#ifndef TFC_PLACER_JOB_CANDIDATES_H
#define TFC_PLACER_JOB_CANDIDATES_H

#include "placer/job/model.h"

enum { TFC_JOB_CHOOSE_ROUNDS = 4, TFC_JOB_MOST_FINALISTS = 16 };

struct tfc_job_samples { // how far apart steps end, one by one or with several in flight, whichever is faster
  uint32_t at_once;      // in flight; 1: one by one
  double median_us, q1_us, q3_us;
  TFC_ARRAY(double) us; // in order; `block` of each
  TFC_ARRAY(uint32_t) block;
};

struct tfc_job_candidate { // a placement that was measured or has a name
  char *name, *algorithm;
  const char *role; // static
  bool whole, baseline, heuristic, single;
  bool in_lanes;                // whole: its operations ran side by side
  struct tfc_solution solution; // device NULL for whole
  uint64_t digest;
  uint32_t episode; // measured candidates count up from 1; 0: not one of them
  tfc_result_state state;
  tfc_code code;                  // of what stopped it, TFC_OK: nothing did
  double median_us, q1_us, q3_us; // NaN: not measured
  uint32_t steps;
  double ratio; // to its batch's reference
  // Its step time at the speed that the machine had when the first reference was measured, by its ratio to its own
  // reference, and that one's to an earlier one, and so on. Its median where it had no reference.
  double level_us;
  double simulated_us; // with the costs as they were known when it was simulated
  double predicted_us; // the same before it was measured, as it is stored; NaN: not simulated then
  // Medians of the final turns that chose the answer, in order. The figures of the final run, below, are of the turns
  // after them, which had no part in the choice.
  double choose_us[TFC_JOB_CHOOSE_ROUNDS];
  uint32_t choose_count;
  double final_us, final_q1, final_q3; // NaN: not measured in those
  uint32_t final_steps;
  TFC_ARRAY(double) final_step_us; // in order; blocks of `final_block`
  TFC_ARRAY(uint32_t) final_block_of;
  struct tfc_job_samples in_flight; // us.count 0: not measured
  uint64_t *peak;                   // [device]
  // Where memory is limited: the order in which it was found to fit. With newer costs the simulation would give another
  // order. NULL: none.
  uint32_t *sequence, sequence_count;
  double *busy_us, *share;
  uint64_t transfers, transfer_bytes;
  uint64_t *crossing; // [from * device_count + to] bytes a step as it ran; NULL: it did not
  char *note;
};
struct tfc_job_unordered { // the answer without its order of operations
  double us, q1_us, q3_us; // NaN: not measured
  uint32_t steps;
};

struct tfc_job_candidates {
  struct tfc_job_clock *clock; // is shown the best and the number of episodes
  const struct tfc_job_model *model;
  TFC_ARRAY(struct tfc_job_candidate) list;
  uint32_t episodes;   // measured candidates, of this run and what it goes on from
  uint32_t best;       // index of the incumbent, UINT32_MAX: none
  double best_seen_us; // the shortest median of any that could be the answer
  uint32_t seen;       // whose that was, as the clock was told; UINT32_MAX: nobody's
  uint32_t final_from; // number of the first block of the final turns that has no part in the choice
  struct tfc_job_unordered unordered;
};
void tfc_job_candidates_init(struct tfc_job_candidates *candidates, struct tfc_job_clock *clock,
                             const struct tfc_job_model *model);
void tfc_job_candidates_deinit(struct tfc_job_candidates *candidates);
void tfc_job_candidates_clear(struct tfc_job_candidates *candidates); // forgets all (of a profile that did not end)

// --- Adding ----------------------------------------------------------------------------------------------------------
// Adds a placement (copied) under a name (NULL: its number). Where an equal one was measured, *out_index is that one
// and nothing is new.
TFC_MUST_USE tfc_status tfc_job_candidates_add(struct tfc_job_candidates *candidates, const char *name,
                                               const char *algorithm, const char *role,
                                               const struct tfc_solution *solution, uint32_t *out_index, bool *out_new);
// Takes over one that the caller filled; on an error it stays the caller's.
TFC_MUST_USE tfc_status tfc_job_candidates_push(struct tfc_job_candidates *candidates,
                                                struct tfc_job_candidate *candidate, uint32_t *out_index);
// A placement equal to `index` is measured again: an episode of its own.
TFC_MUST_USE tfc_status tfc_job_candidates_add_again(struct tfc_job_candidates *candidates, uint32_t index,
                                                     const struct tfc_solution *solution, const char *algorithm,
                                                     uint32_t *out_index);
void tfc_job_candidate_deinit(struct tfc_job_candidate *candidate);

// --- What was measured -----------------------------------------------------------------------------------------------
// Takes over what was measured; `final`: in the final turns, whose blocks before `final_from` choose.
TFC_MUST_USE tfc_status tfc_job_candidates_take(struct tfc_job_candidates *candidates, uint32_t index,
                                                const struct tfc_measured *measured, bool final);
// With so many steps at once: how far apart they end. Kept where it is the faster way so far.
TFC_MUST_USE tfc_status tfc_job_candidates_take_in_flight(struct tfc_job_candidates *candidates, uint32_t index,
                                                          const struct tfc_measured *measured, uint32_t at_once);
TFC_MUST_USE tfc_status tfc_job_candidates_take_unordered(struct tfc_job_candidates *candidates,
                                                          const struct tfc_measured *measured);
// It was measured in turns with a reference of this level; NaN: without one.
void tfc_job_candidates_level(struct tfc_job_candidates *candidates, uint32_t index, double reference_us);
// It has been run in this order: kept where memory is limited.
TFC_MUST_USE tfc_status tfc_job_candidates_keep_sequence(struct tfc_job_candidates *candidates, uint32_t index,
                                                         const uint32_t *sequence, uint32_t count);
void tfc_job_candidates_predict(struct tfc_job_candidates *candidates); // what has no prediction yet

// --- Who leads -------------------------------------------------------------------------------------------------------
void tfc_job_candidates_consider(struct tfc_job_candidates *candidates, uint32_t index); // as the incumbent
void tfc_job_candidates_lead(struct tfc_job_candidates *candidates, uint32_t index);     // it is; UINT32_MAX: nobody is
// Makes the best candidate the incumbent if it is better: by the time of its first measurement, by its level, or by the
// final run.
void tfc_job_candidates_choose_by_median(struct tfc_job_candidates *candidates);
void tfc_job_candidates_choose_by_level(struct tfc_job_candidates *candidates);
void tfc_job_candidates_choose_by_final(struct tfc_job_candidates *candidates);
// Of index[count], the fastest of the final turns that choose becomes the incumbent.
void tfc_job_candidates_choose_finalist(struct tfc_job_candidates *candidates, const uint32_t *index, uint32_t count);
// Pipelined, the load counts: as measured with several steps in flight, where any was; else as modelled now from what
// was measured of operations and links. True: measured. *out_single: index of the best single device or UINT32_MAX.
bool tfc_job_candidates_choose_by_load(struct tfc_job_candidates *candidates, uint32_t *out_single);

// --- Asking ----------------------------------------------------------------------------------------------------------
const struct tfc_job_candidate *tfc_job_candidates_best(const struct tfc_job_candidates *candidates); // NULL: none
bool tfc_job_can_answer(const struct tfc_job_candidate *candidate);
double tfc_job_final_us(const struct tfc_job_candidate *candidate);  // of the final run, else of its first
double tfc_job_choose_us(const struct tfc_job_candidate *candidate); // in the final turns that choose; NaN: not there
// A step's load on the busiest device: as measured with several steps in flight, else as modelled.
double tfc_job_load_us(const struct tfc_job_candidate *candidate);

#endif
