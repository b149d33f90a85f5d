// The job's state, shared by this folder's files.
#ifndef TFC_PLACER_JOB_PRIVATE_H
#define TFC_PLACER_JOB_PRIVATE_H

#include "placer/job/job.h"
#include "placer/measure/evaluator.h"
#include "placer/measure/local_machine.h"
#include "placer/subject/subject.h"
#include "profiler/store.h"

enum { TFC_JOB_RAW_KEPT = 20, TFC_JOB_FINAL_ROUNDS = 6, TFC_JOB_MOST_FINALISTS = 16 };

struct tfc_job_samples { // how far apart steps end, one by one or with several in flight, whichever is faster
  uint32_t at_once;      // in flight; 1: one by one
  double median_us, q1_us, q3_us;
  TFC_ARRAY(double) us; // in order; `block` of each
  TFC_ARRAY(uint32_t) block;
};

struct tfc_job_known { // a placement that was measured or has a name
  char *name, *algorithm;
  const char *role; // static
  bool whole, baseline, heuristic, single;
  bool in_lanes;                // whole: its operations ran side by side
  struct tfc_solution solution; // device NULL for whole
  uint64_t digest;
  int64_t placement_id, key; // in the store
  tfc_result_state state;
  tfc_code code;                  // of what stopped it, TFC_OK: nothing did
  double median_us, q1_us, q3_us; // NaN: not measured
  uint32_t steps;
  double ratio; // to its batch's reference
  // What it takes at the speed that the machine had when the first of the references was measured: ratios, one after
  // the other. Without a reference its median.
  double level_us;
  double simulated_us;                 // by the calibration of its time
  double final_us, final_q1, final_q3; // NaN: not in the final run
  uint32_t final_steps;
  TFC_ARRAY(double) final_step_us; // in order; blocks of `final_block`
  TFC_ARRAY(uint32_t) final_block_of;
  struct tfc_job_samples in_flight; // us.count 0: not measured
  uint64_t *peak;                   // [device]
  // Where memory is limited: the order that it was found to fit with, which newer costs would change. NULL: none.
  uint32_t *sequence, sequence_count;
  double *busy_us, *share;
  uint64_t transfers, transfer_bytes;
  uint32_t next_step; // number of its next step in the store
  bool raw;           // its raw rows are in the store
  char *note;
};

struct tfc_job {
  const struct tfc_job_options *o;
  struct tfc_job_outcome *out;
  int64_t begin_ns;
  double before_s; // spent before a resumed run was interrupted
  tfc_job_phase phase;
  struct tfc_store *store;
  int64_t run;
  struct tfc_measurer *measurer;
  const struct tfc_measure_info *info;
  struct tfc_tensor *feeds; // [step->feed_count], owned where synthetic
  struct tfc_measure_feed *feed_list;
  struct tfc_subject *subject;
  struct tfc_machine *bare; // without calibration: the subject's
  struct tfc_calibration calibration;
  struct tfc_cost_table *plain;         // every operation by itself, without rewrites
  bool *kept;                           // [node] stays with what it is fused into; NULL: nothing runs fused
  struct tfc_cost_table *alone, *costs; // of the profile; refit with candidates
  uint32_t *kind_of_device;
  struct tfc_machine *machine;
  struct tfc_cost_graph *cost_graph;
  struct tfc_problem *problem;
  // The same with what is fused on one device kept together: the costs of fused operations hold only there. NULL: none.
  struct tfc_subject *coarse;
  struct tfc_cost_graph *coarse_graph;
  struct tfc_problem *coarse_problem;
  struct tfc_simulator *simulator;
  struct tfc_bound bound;
  TFC_ARRAY(struct tfc_job_known) known;
  uint32_t episodes;                               // measured candidates, of this run and what it goes on from
  int64_t next_id;                                 // of placements
  uint32_t best;                                   // index in known of the incumbent, UINT32_MAX: none
  struct tfc_solution searched;                    // what the last round of search found; device NULL: none yet
  double unordered_us, unordered_q1, unordered_q3; // the answer without its order of operations, NaN: not measured
  uint32_t unordered_steps;
  double best_seen_us;                         // the shortest median of any that could be the answer
  double trace_overhead, trace_overhead_least; // share of a step, and what it surely is (95 %)
  tfc_trace_mode trace;
  double batch_end_s;  // batches of this phase are to end then, 0: when the search does
  double search_end_s; // the search goes on until then at least, 0: not begun
  bool profiled;       // costs and links are known: of this run, or of the one that it goes on from
  char *trouble;       // why the first of the profile's steps failed, NULL: none did
  tfc_code trouble_code;
  double memory_ratio; // of what placements need to what they need as simulated, lately; at least 1
  char label[16];
};

// job.c
// What stays with what it is fused into, and the coarse subject: needs what each operation takes by itself (`plain`).
TFC_MUST_USE tfc_status tfc_job_keep_together(struct tfc_job *job);
// Sets job->kept, and gives pairs of nodes that a search moves as one; the caller frees them.
TFC_MUST_USE tfc_status tfc_job_find_together(struct tfc_job *job, struct tfc_node_pair **out, uint32_t *out_count);
double tfc_job_seconds(const struct tfc_job *job); // since it began, resumed time included
bool tfc_job_cancelled(const struct tfc_job *job);
// Says it where a placement's times are of other arithmetic than this job's.
void tfc_job_compare_math(struct tfc_job *job, const char *file, const struct tfc_placement *placement);
void tfc_job_say(struct tfc_job *job, bool warning, const char *format, ...) TFC_PRINTF(3, 4);
uint64_t tfc_job_digest(const struct tfc_problem *problem, const tfc_device_id *device);

// profile.c
TFC_MUST_USE tfc_status tfc_job_profile(struct tfc_job *job);
TFC_MUST_USE tfc_status tfc_job_rebuild(struct tfc_job *job); // machine, costs, problem from what is known now
void tfc_job_predict(struct tfc_job *job);                    // what has no prediction yet
double tfc_job_simulate(struct tfc_job *job, const struct tfc_solution *solution); // us; NaN: illegal
// answer.c: what --evaluate names, checked before anything is measured
TFC_MUST_USE tfc_status tfc_job_check_given_devices(struct tfc_job *job); // UNAVAILABLE: one is not there
TFC_MUST_USE tfc_status tfc_job_check_given(struct tfc_job *job);         // all else: needs the problem
// room.c
// RESOURCE_EXHAUSTED where variables alone have no room on the devices, whatever goes where: all of them together, or
// those of a unit. Nothing is said about what a step needs besides.
TFC_MUST_USE tfc_status tfc_job_check_room(const struct tfc_job *job);
// record.c
TFC_MUST_USE tfc_status tfc_job_store_subject(struct tfc_job *job);
TFC_MUST_USE tfc_status tfc_job_store_costs(struct tfc_job *job);
// Stores a measurement of `known` (new: a placement row first) and what it took; refits the costs from its traces.
TFC_MUST_USE tfc_status tfc_job_record(struct tfc_job *job, struct tfc_job_known *known,
                                       const struct tfc_measured *measured, const char *phase);
// The same with so many steps at once: how far apart they end. Kept where it is the faster way so far.
TFC_MUST_USE tfc_status tfc_job_record_in_flight(struct tfc_job *job, struct tfc_job_known *known,
                                                 const struct tfc_measured *measured, uint32_t at_once);
// A placement that was only simulated.
TFC_MUST_USE tfc_status tfc_job_store_modelled(struct tfc_job *job, struct tfc_job_known *known);
TFC_MUST_USE tfc_status tfc_job_save_state(struct tfc_job *job);
TFC_MUST_USE tfc_status tfc_job_resume(struct tfc_job *job, const char *sha256); // of the graph's file
// known.c
double tfc_job_search_end_s(const struct tfc_job *job);   // until when there is searching: the rest is the final run's
uint32_t tfc_job_measurements(const struct tfc_job *job); // that may be made in all
uint32_t tfc_job_measurements_left(const struct tfc_job *job); // of these
// Adds a placement (copied) under a name. Where an equal one was measured, *out_index is that one and nothing is new.
TFC_MUST_USE tfc_status tfc_job_add(struct tfc_job *job, const char *name, const char *algorithm, const char *role,
                                    const struct tfc_solution *solution, uint32_t *out_index, bool *out_new);
// Where it runs and in which order: as it was found to fit, where memory is limited; as simulated now elsewhere.
TFC_MUST_USE tfc_status tfc_job_assign(const struct tfc_job *job, const struct tfc_job_known *known,
                                       uint16_t *placement, uint32_t *sequence, uint32_t *out_count);
// It has been run in this order: kept where memory is limited.
TFC_MUST_USE tfc_status tfc_job_keep_sequence(const struct tfc_job *job, struct tfc_job_known *known,
                                              const uint32_t *sequence, uint32_t count);
void tfc_job_consider(struct tfc_job *job, uint32_t index); // as the incumbent
// Known placements as a batch measures them: where they run and in which order; the undivided machine as such.
struct tfc_job_entries {
  struct tfc_measure_entry *list; // [count]
  uint16_t *placements;           // that the list points into
  uint32_t *sequences;
};
// Of index[count], and of `last` behind them unless it is UINT32_MAX. To be deinitialised also after an error.
TFC_MUST_USE tfc_status tfc_job_entries_make(const struct tfc_job *job, const uint32_t *index, uint32_t count,
                                             uint32_t last, struct tfc_job_entries *out);
void tfc_job_entries_deinit(struct tfc_job_entries *entries);
// Measures known placements as a batch in turns with the incumbent.
TFC_MUST_USE tfc_status tfc_job_measure(struct tfc_job *job, const uint32_t *index, uint32_t count, const char *phase);
// rivals.c
TFC_MUST_USE tfc_status tfc_job_baselines(struct tfc_job *job);
// search.c
TFC_MUST_USE tfc_status tfc_job_search(struct tfc_job *job);
// Where searches and learners move units: the graph's own, or those with what is fused on one device kept together.
const struct tfc_problem *tfc_job_search_problem(const struct tfc_job *job);
const struct tfc_subject *tfc_job_search_subject(const struct tfc_job *job);
// What was found there, as a solution of job->problem (owned; also after an error).
TFC_MUST_USE tfc_status tfc_job_found(const struct tfc_job *job, const struct tfc_solution *found,
                                      struct tfc_solution *out);
// repeat.c
// The options' repeats of all that searches and random placements had measured, and the outcome's pairs.
TFC_MUST_USE tfc_status tfc_job_repeat(struct tfc_job *job);
// learn.c
TFC_MUST_USE tfc_status tfc_job_learn(struct tfc_job *job, const struct tfc_algo *algo, double until_s,
                                      uint32_t measurements);
// final.c
double tfc_job_total_seconds(const struct tfc_job *job);
bool tfc_job_can_answer(const struct tfc_job_known *known);
double tfc_job_final_us(const struct tfc_job_known *known); // of the final run, else of its first
double tfc_job_final_seconds(const struct tfc_job *job); // that few steps of all that must be compared would take now
// Who takes part, by index in known: list[TFC_JOB_MOST_FINALISTS]; those that must be compared (the incumbent, the
// fastest on several devices and on one, the undivided machine, the rivals), and more of the fastest where there is
// time for two full blocks of each. *out_block: timed steps of a block, fewer where there is less time.
uint32_t tfc_job_finalists(const struct tfc_job *job, double left_s, uint32_t *list, uint32_t *out_block);
TFC_MUST_USE tfc_status tfc_job_final(struct tfc_job *job);
// answer.c
// In turns until `until_s`, one by one and with several steps in flight: does nothing where the step updates variables,
// whose steps follow one another, or where the shortest step is what is looked for.
TFC_MUST_USE tfc_status tfc_job_measure_in_flight(struct tfc_job *job, const uint32_t *index, uint32_t count,
                                                  double until_s);
bool tfc_job_runs_in_flight(const struct tfc_job *job);
TFC_MUST_USE tfc_status tfc_job_answer(struct tfc_job *job);
TFC_MUST_USE tfc_status tfc_job_evaluate(struct tfc_job *job);

// saved_problem.c
// Nothing where nobody wants the problem saved, or where there is none yet. DATA_LOSS: it cannot be written.
TFC_MUST_USE tfc_status tfc_job_save_problem(struct tfc_job *job);
TFC_MUST_USE tfc_status tfc_job_save_placement(const struct tfc_job *job); // once there is a document

#endif
