// Candidates: every placement that was proposed or measured in a job, with all that is known of it. Only this file
// writes the list, the incumbent (`best`) and the number of measured episodes; all others only read them.
#ifndef TFC_PLACER_JOB_CANDIDATES_H
#define TFC_PLACER_JOB_CANDIDATES_H

#include "placer/job/model.h"
#include "placer/search/account.h"

struct tfc_store_placement;

enum { TFC_JOB_CHOOSE_ROUNDS = 4, TFC_JOB_MOST_FINALISTS = 16 };

// the times between the ends of steps, in the mode that is faster: one step after another, or several in flight
struct tfc_job_samples {
  uint32_t at_once; // how many steps are in flight; 1: one after another
  double median_us, q1_us, q3_us;
  TFC_ARRAY(double) us; // in order; `block`: the number of each one's block
  TFC_ARRAY(uint32_t) block;
};

struct tfc_job_candidate { // a placement that was measured, or that has a name
  char *name, *algorithm;
  const char *role; // a string constant
  bool whole, baseline, heuristic, single;
  bool in_lanes;                // for the undivided machine: its operations ran in lanes, side by side
  struct tfc_solution solution; // device NULL for whole
  uint64_t digest;
  uint32_t episode; // its number among the measured candidates, from 1; 0: it was not measured as a candidate
  tfc_result_state state;
  tfc_result_state screened_state; // what its first measurement ended with, as in the database
  tfc_code code;                   // the code of the error that stopped it; TFC_OK: none
  double median_us, q1_us, q3_us;  // NaN: not measured
  uint32_t steps;
  double ratio; // its step time divided by that of its batch's reference
  // Its step time at the speed that the machine had when the first reference was measured. It is computed from the
  // ratio to its own reference, the ratio of that one to an earlier reference, and so on; without a reference it is the
  // median.
  double level_us;
  double simulated_us; // with the costs at the time when it was simulated
  // The simulated time that the database and Kendall's tau use. It is made with the costs of the profile or description
  // for all candidates, so that they can be compared, whatever had been learned when they were proposed. NaN: not
  // simulated.
  double predicted_us;
  // Step times predicted before it was measured: by the profile alone, and by all that had been learned; and the
  // standard deviation of the logarithm of the second. 0: not known.
  double prior_us, learned_us, learned_sd;
  struct tfc_search_account policy; // what a learned policy did in the search that proposed it; samples.count 0: none
  // Medians of the final turns that chose the answer, in order. The fields final_... below are from the turns after
  // those, which did not influence the choice.
  double choose_us[TFC_JOB_CHOOSE_ROUNDS];
  uint32_t choose_count;
  // median of the steps without a trace in the final turns, if only traced steps count as the result
  double untraced_us;
  uint32_t untraced_steps;
  double final_us, final_q1, final_q3; // NaN: the candidate was not measured in these turns
  uint32_t final_steps;
  TFC_ARRAY(double) final_step_us; // in order; `final_block_of`: the number of each step's block
  TFC_ARRAY(uint32_t) final_block_of;
  struct tfc_job_samples in_flight; // us.count 0: the candidate was not measured with several steps at once
  uint64_t *peak;                   // [device]
  bool peak_part;                   // `peak` is that of variables alone
  // If memory is limited: the order of operations with which the placement was found to fit. A simulation with newer
  // costs could give another order, which might not fit. NULL: memory is not limited.
  uint32_t *sequence, sequence_count;
  double *busy_us; // [device]
  uint64_t transfers, transfer_bytes;
  uint64_t *crossing; // [from * device_count + to] bytes per step, by the plan that ran; NULL: it did not run
  char *note;
};
struct tfc_job_unordered { // the answer when the runtime chooses the order of operations itself
  double us, q1_us, q3_us; // NaN: not measured
  uint32_t steps;
};

struct tfc_job_candidates {
  struct tfc_job_clock *clock; // shows the best time and the number of episodes
  const struct tfc_job_model *model;
  TFC_ARRAY(struct tfc_job_candidate) list;
  uint32_t episodes;   // measured candidates of this run, and of the run that it resumes
  uint32_t best;       // index of the incumbent, TFC_NONE: none
  double best_seen_us; // the shortest median among candidates that can be the answer
  uint32_t seen;       // the candidate with that median, which was reported as the best so far; TFC_NONE: none
  uint32_t final_from; // number of the first block of the final turns that has no part in the choice
  struct tfc_job_unordered unordered;
};
void tfc_job_candidates_init(struct tfc_job_candidates *candidates, struct tfc_job_clock *clock,
                             const struct tfc_job_model *model);
void tfc_job_candidates_deinit(struct tfc_job_candidates *candidates);
void tfc_job_candidates_clear(struct tfc_job_candidates *candidates); // for a profile that did not end

// --- Adding ----------------------------------------------------------------------------------------------------------
// Adds a copy of a placement under a name (NULL: its number). If an equal placement was already measured, nothing is
// added, and *out_index is that one.
TFC_MUST_USE tfc_status tfc_job_candidates_add(struct tfc_job_candidates *candidates, const char *name,
                                               const char *algorithm, const char *role,
                                               const struct tfc_solution *solution, uint32_t *out_index, bool *out_new);
// Adds everything on one device (`device`: its name), or the undivided machine (NULL). solution: NULL for the undivided
// machine, and if the device may not run everything.
TFC_MUST_USE tfc_status tfc_job_candidates_add_device(struct tfc_job_candidates *candidates, const char *device,
                                                      const struct tfc_solution *solution, uint32_t *out_index);
// Adds a candidate of the run that is resumed. level_us: NaN: it is not known. solution: NULL for the undivided
// machine, and if it is not known.
TFC_MUST_USE tfc_status tfc_job_candidates_restore(struct tfc_job_candidates *candidates,
                                                   const struct tfc_store_placement *row, tfc_result_state state,
                                                   double level_us, const struct tfc_solution *solution,
                                                   uint32_t *out_index);
// The candidate was measured, but cannot be the answer: it violates limits or pins of this run.
void tfc_job_candidates_rule_out(struct tfc_job_candidates *candidates, uint32_t index, tfc_result_state state);
// Stores what the learned policy did in the search that proposed the candidate.
void tfc_job_candidates_searched(struct tfc_job_candidates *candidates, uint32_t index,
                                 const struct tfc_search_account *policy);
// Adds another measurement of the placement `index`, as an episode of its own.
TFC_MUST_USE tfc_status tfc_job_candidates_add_again(struct tfc_job_candidates *candidates, uint32_t index,
                                                     const struct tfc_solution *solution, const char *algorithm,
                                                     uint32_t *out_index);

// --- Measurements ----------------------------------------------------------------------------------------------------
// The final turns begin: the blocks before number `choosing` choose the answer (`final_from`).
void tfc_job_candidates_begin_final(struct tfc_job_candidates *candidates, uint32_t choosing);
// Stores the figures of a measurement in the candidate. `final`: it was made in the final turns; the blocks before
// number `final_from` choose the answer.
TFC_MUST_USE tfc_status tfc_job_candidates_take(struct tfc_job_candidates *candidates, uint32_t index,
                                                const struct tfc_measured *measured, bool final);
// Stores the times between the ends of steps with `at_once` steps in flight, if they are shorter than those that the
// candidate already has.
TFC_MUST_USE tfc_status tfc_job_candidates_take_in_flight(struct tfc_job_candidates *candidates, uint32_t index,
                                                          const struct tfc_measured *measured, uint32_t at_once);
TFC_MUST_USE tfc_status tfc_job_candidates_take_unordered(struct tfc_job_candidates *candidates,
                                                          const struct tfc_measured *measured);
// Sets the candidate's `level_us` after a measurement in turns with a reference: the ratio to the reference times
// `reference_us`, the reference's own `level_us`. If the ratio or `reference_us` is NaN (say, there was no reference),
// it becomes the candidate's own median.
void tfc_job_candidates_level(struct tfc_job_candidates *candidates, uint32_t index, double reference_us);
// If memory is limited, stores the order of operations with which the candidate ran.
TFC_MUST_USE tfc_status tfc_job_candidates_keep_sequence(struct tfc_job_candidates *candidates, uint32_t index,
                                                         const uint32_t *sequence, uint32_t count);
void tfc_job_candidates_predict(struct tfc_job_candidates *candidates); // simulates the candidates without a prediction
// Simulates every candidate without measured loads again, with the costs as they are now.
void tfc_job_candidates_simulate(struct tfc_job_candidates *candidates);

// --- The incumbent ---------------------------------------------------------------------------------------------------
// Makes the candidate the incumbent if it is better.
void tfc_job_candidates_consider(struct tfc_job_candidates *candidates, uint32_t index);
// Makes the candidate the incumbent even if it is not better; TFC_NONE: from now on there is none.
void tfc_job_candidates_lead(struct tfc_job_candidates *candidates, uint32_t index);
// The incumbent was measured again in turns with `former`, and took `ratio` times as long. If the ratio is above 1,
// `former` becomes the incumbent again.
void tfc_job_candidates_confirm(struct tfc_job_candidates *candidates, uint32_t former, double ratio);
// Make the best candidate the incumbent if it is better, by the time of its first measurement, by its level, or by the
// final run.
void tfc_job_candidates_choose_by_median(struct tfc_job_candidates *candidates);
void tfc_job_candidates_choose_by_level(struct tfc_job_candidates *candidates);
void tfc_job_candidates_choose_by_final(struct tfc_job_candidates *candidates);
// Of the candidates index[count], the one that is fastest in the final turns that choose (see `choose_us`) becomes the
// incumbent.
void tfc_job_candidates_choose_finalist(struct tfc_job_candidates *candidates, const uint32_t *index, uint32_t count);
// For the throughput objective, compares by load: the load measured with several steps in flight, if any candidate has
// one; otherwise the load that is modelled from the measured times of operations and links. True: loads were measured.
// *out_single: the index of the best single device, or TFC_NONE.
bool tfc_job_candidates_choose_by_load(struct tfc_job_candidates *candidates, uint32_t *out_single);

// --- Facts about candidates ------------------------------------------------------------------------------------------
const struct tfc_job_candidate *tfc_job_candidates_best(const struct tfc_job_candidates *candidates); // NULL: none
bool tfc_job_can_answer(const struct tfc_job_candidate *candidate);
double tfc_job_final_us(const struct tfc_job_candidate *candidate); // its median in the final run; if there is none, in
                                                                    // its first measurement
double tfc_job_choose_us(
    const struct tfc_job_candidate *candidate); // its mean in the final turns that choose; NaN: it was not in them
// Returns the load of a step on the busiest device: measured with several steps in flight, or, if that was not done,
// modelled.
double tfc_job_load_us(const struct tfc_job_candidate *candidate);

#endif
