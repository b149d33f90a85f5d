// The outcome of a job: the table, the placement document, and explanations.
#ifndef TFC_PLACER_JOB_OUTCOME_H
#define TFC_PLACER_JOB_OUTCOME_H

#include "placer/model/placement.h"
#include "placer/simulate/evaluator.h"

enum { TFC_JOB_INTERVAL_STEPS = 5 }; // with fewer steps on either side, no interval is told

struct tfc_job_row { // one line of the answer's table
  char *name;        // "whole", "found", "single:cpu:0", "expert", an algorithm
  const char *kind;  // "whole", "answer", "single", "baseline", "heuristic"
  tfc_result_state state;
  bool modelled; // the placement was only simulated
  double median_us, q1_us, q3_us;
  uint32_t steps;
  double simulated_us;
  // For throughput, the load of a step. load_steps: how many steps in flight measured it; 0: it is modelled.
  double load_us;
  uint32_t load_steps;
  double speedup, low, high; // speedup: step time of the best single device / step time of this row; low, high: its 95
                             // % interval; NaN: not measured in turns
  uint32_t interval_steps;   // steps of the one of the two that has fewer in it. With fewer than TFC_JOB_INTERVAL_STEPS
                             // low and high decide the answer, but are too few to be told as an interval
  char *note;
};
struct tfc_job_pair {  // a placement's predicted times, and its repeated measurements
  char *algorithm;     // the algorithm that proposed it
  double prior_us,     // predicted by the profile alone
      learned_us,      // predicted by all that was learned before it was measured; NaN: nothing was learned
      predicted_us,    // simulated with the costs before it was measured
      simulated_us;    // simulated with the costs after the search
  double *measured_us; // [measured_count] medians of five steps, minutes apart
  uint32_t measured_count;
};
struct tfc_job_outcome {
  int exit_code;                   // always set
  int64_t run;                     // 0: no run has begun
  struct tfc_placement *placement; // the document; NULL if there is none
  struct tfc_job_row *rows;
  uint32_t row_count;
  double bound_us, gap; // gap: median / bound - 1
  const char *bound_name;
  double tau;
  uint32_t tau_placements;
  double trace_overhead; // traced / untraced - 1, NaN: not known
  double untraced_us; // median of the answer's steps without a trace, by the host's clock; GPUs' own records time the
                      // other steps
  uint32_t untraced_steps; // how many steps without a trace; 0: none
  bool trace_told;         // the overhead is larger than the variation of the steps, so the user is informed
  uint32_t measured, lost_workers;
  bool interrupted;
  uint64_t *peak;         // [device] bytes
  bool peak_part;         // `peak` is that of variables alone
  uint64_t *limit;        // [device] bytes of memory that it may use, or TFC_NO_LIMIT
  uint64_t *crossing;     // [from * device_count + to] bytes per step
  bool crossing_modelled; // the bytes are simulated, because nothing ran
  uint32_t device_count;
  char *path;                 // simulated critical path by op type: "MatMul 61 %, transfers 12 %, ..."; NULL: none
  char *first_line;           // the most important message
  char *learning;             // what learning contributed, as lines; NULL: nothing was learned
  struct tfc_job_pair *pairs; // if repeats were asked for
  uint32_t pair_count;
};
// Returns the row of the answer; NULL: there is no answer.
const struct tfc_job_row *tfc_job_outcome_answer(const struct tfc_job_outcome *outcome);
void tfc_job_outcome_deinit(struct tfc_job_outcome *outcome);

#endif
