// Candidates: every placement that was proposed or measured in a job, with all that is known of it. Only this file
// writes the list, the incumbent (`best`) and the number of measured episodes; all others only read them.
#ifndef TFC_PLACER_JOB_CANDIDATES_H
#define TFC_PLACER_JOB_CANDIDATES_H

#include "placer/job/model.h"
#include "placer/search/account.h"

enum { TFC_JOB_CHOOSE_ROUNDS = 4, TFC_JOB_MOST_FINALISTS = 16 };

struct tfc_job_samples { // how far apart steps end, one by one or with several in flight, whichever is faster
  uint32_t at_once;      // in flight; 1: one by one
  double median_us, q1_us, q3_us;
  TFC_ARRAY(double) us; // in order; `block` of each
  TFC_ARRAY(uint32_t) block;
};

struct tfc_job_candidate { // a placement that was measured, or that has a name
  char *name, *algorithm;
  const char *role; // static
  bool whole, baseline, heuristic, single;
  bool in_lanes;                // whole: its operations ran side by side
  struct tfc_solution solution; // device NULL for whole
  uint64_t digest;
  uint32_t episode; // measured candidates are numbered from 1; 0: not measured as a candidate
  tfc_result_state state;
  tfc_code code;                  // the code of the error that stopped it; TFC_OK: none
  double median_us, q1_us, q3_us; // NaN: not measured
  uint32_t steps;
  double ratio; // to the reference of its batch
  // Its step time at the speed that the machine had when the first reference was measured: computed from its ratio to
  // its own reference, that reference's ratio to an earlier one, and so on. Without a reference, its median.
  double level_us;
  double simulated_us; // with the costs as they were known when it was simulated
  // What the database and tau take for simulated: with the costs of the profile or description for all candidates, so
  // that they can be compared with each other whatever had been learned when they were proposed. NaN: not simulated.
  double predicted_us;
  // Step times predicted by the profile alone, and by all that was learned before it was measured; and the standard
  // deviation of the logarithm of the latter. 0: not known.
  double prior_us, learned_us, learned_sd;
  struct tfc_search_account policy; // what a learned policy did in the search that proposed it; samples.count 0: none
  // Medians of the final turns that chose the answer, in order. The figures of the final run, below, are of the turns
  // after them, which had no part in the choice.
  double choose_us[TFC_JOB_CHOOSE_ROUNDS];
  uint32_t choose_count;
  double untraced_us; // of the final turns' steps without a trace, where others have the result
  uint32_t untraced_steps;
  double final_us, final_q1, final_q3; // NaN: not measured in these turns
  uint32_t final_steps;
  TFC_ARRAY(double) final_step_us; // in order; `final_block_of`: the number of each step's block
  TFC_ARRAY(uint32_t) final_block_of;
  struct tfc_job_samples in_flight; // us.count 0: not measured
  uint64_t *peak;                   // [device]
  // Where memory is limited: the order in which the placement was found to fit. With newer costs the simulation would
  // give another order, which might not fit. NULL: none.
  uint32_t *sequence, sequence_count;
  double *busy_us, *share;
  uint64_t transfers, transfer_bytes;
  uint64_t *crossing; // [from * device_count + to] bytes per step as it ran; NULL: it did not run
  char *note;
};
struct tfc_job_unordered { // the answer without its order of operations
  double us, q1_us, q3_us; // NaN: not measured
  uint32_t steps;
};

struct tfc_job_candidates {
  struct tfc_job_clock *clock; // is told the best time and the number of episodes
  const struct tfc_job_model *model;
  TFC_ARRAY(struct tfc_job_candidate) list;
  uint32_t episodes;   // measured candidates of this run and of the run that it resumes
  uint32_t best;       // index of the incumbent, UINT32_MAX: none
  double best_seen_us; // the shortest median among candidates that can be the answer
  uint32_t seen;       // the candidate with that median, which was reported as the best so far; UINT32_MAX: none
  uint32_t final_from; // number of the first block of the final turns that has no part in the choice
  struct tfc_job_unordered unordered;
};
void tfc_job_candidates_init(struct tfc_job_candidates *candidates, struct tfc_job_clock *clock,
                             const struct tfc_job_model *model);
void tfc_job_candidates_deinit(struct tfc_job_candidates *candidates);
void tfc_job_candidates_clear(struct tfc_job_candidates *candidates); // forgets all, after a profile that did not end

// --- Adding ----------------------------------------------------------------------------------------------------------
// Adds a placement (copied) under a name (NULL: its number). If an equal placement was measured already, *out_index is
// that one and nothing is added.
TFC_MUST_USE tfc_status tfc_job_candidates_add(struct tfc_job_candidates *candidates, const char *name,
                                               const char *algorithm, const char *role,
                                               const struct tfc_solution *solution, uint32_t *out_index, bool *out_new);
// Takes over a candidate that the caller filled; on an error it still belongs to the caller.
TFC_MUST_USE tfc_status tfc_job_candidates_push(struct tfc_job_candidates *candidates,
                                                struct tfc_job_candidate *candidate, uint32_t *out_index);
// Notes what the learned policy did in the search that proposed the candidate.
void tfc_job_candidates_searched(struct tfc_job_candidates *candidates, uint32_t index,
                                 const struct tfc_search_account *policy);
// Adds another measurement of the placement `index`, as an episode of its own.
TFC_MUST_USE tfc_status tfc_job_candidates_add_again(struct tfc_job_candidates *candidates, uint32_t index,
                                                     const struct tfc_solution *solution, const char *algorithm,
                                                     uint32_t *out_index);
void tfc_job_candidate_deinit(struct tfc_job_candidate *candidate);

// --- Measurements ----------------------------------------------------------------------------------------------------
// Takes over a measurement; `final`: it was made in the final turns, of which the blocks before number `final_from`
// choose the answer.
TFC_MUST_USE tfc_status tfc_job_candidates_take(struct tfc_job_candidates *candidates, uint32_t index,
                                                const struct tfc_measured *measured, bool final);
// Takes over the times between the ends of steps with `at_once` steps in flight, if they are shorter than those that
// the candidate has.
TFC_MUST_USE tfc_status tfc_job_candidates_take_in_flight(struct tfc_job_candidates *candidates, uint32_t index,
                                                          const struct tfc_measured *measured, uint32_t at_once);
TFC_MUST_USE tfc_status tfc_job_candidates_take_unordered(struct tfc_job_candidates *candidates,
                                                          const struct tfc_measured *measured);
// Sets the candidate's `level_us` after a measurement in turns with a reference: its ratio to the reference times
// `reference_us`, which is the reference's `level_us`. If one of the two is NaN (there was no reference, say), it
// becomes the candidate's own median.
void tfc_job_candidates_level(struct tfc_job_candidates *candidates, uint32_t index, double reference_us);
// Keeps the order in which the candidate ran, where memory is limited.
TFC_MUST_USE tfc_status tfc_job_candidates_keep_sequence(struct tfc_job_candidates *candidates, uint32_t index,
                                                         const uint32_t *sequence, uint32_t count);
void tfc_job_candidates_predict(struct tfc_job_candidates *candidates); // simulates those without a prediction

// --- The incumbent ---------------------------------------------------------------------------------------------------
// Makes the candidate the incumbent if it is better.
void tfc_job_candidates_consider(struct tfc_job_candidates *candidates, uint32_t index);
// Makes the candidate the incumbent, whether or not it is better; UINT32_MAX: there is none any more.
void tfc_job_candidates_lead(struct tfc_job_candidates *candidates, uint32_t index);
// The incumbent was measured again in turns with `former`, and takes `ratio` times as long: if that is longer, `former`
// becomes the incumbent again.
void tfc_job_candidates_confirm(struct tfc_job_candidates *candidates, uint32_t former, double ratio);
// Makes the best candidate the incumbent if it is better: by the time of its first measurement, by its level, or by the
// final run.
void tfc_job_candidates_choose_by_median(struct tfc_job_candidates *candidates);
void tfc_job_candidates_choose_by_level(struct tfc_job_candidates *candidates);
void tfc_job_candidates_choose_by_final(struct tfc_job_candidates *candidates);
// Of the candidates index[count], the one that is fastest in the final turns that choose (see `choose_us`) becomes the
// incumbent.
void tfc_job_candidates_choose_finalist(struct tfc_job_candidates *candidates, const uint32_t *index, uint32_t count);
// For the throughput objective, compares by load: the load measured with several steps in flight, if any candidate has
// one; else the load modelled from the measured times of operations and links. True: measured. *out_single: index of
// the best single device or UINT32_MAX.
bool tfc_job_candidates_choose_by_load(struct tfc_job_candidates *candidates, uint32_t *out_single);

// --- Facts about candidates ------------------------------------------------------------------------------------------
const struct tfc_job_candidate *tfc_job_candidates_best(const struct tfc_job_candidates *candidates); // NULL: none
bool tfc_job_can_answer(const struct tfc_job_candidate *candidate);
double tfc_job_final_us(
    const struct tfc_job_candidate *candidate); // its median in the final run, else in its first measurement
double tfc_job_choose_us(
    const struct tfc_job_candidate *candidate); // its mean in the final turns that choose; NaN: it was not in them
// A step's load on the busiest device: as measured with several steps in flight, else as modelled.
double tfc_job_load_us(const struct tfc_job_candidate *candidate);

#endif
