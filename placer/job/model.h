// Model: what a job knows about its graph and its machine: the graph as a subject, the times of operations and links,
// and the problem that is made of both for the searches. Measurements improve it. It knows nothing of the placements
// that were tried.
//
// Owned by the job; one thread. The cost graph, the machine and the problem are made anew by each rebuild: pointers to
// them do not outlive it.
#ifndef TFC_PLACER_JOB_MODEL_H
#define TFC_PLACER_JOB_MODEL_H

#include "placer/job/options.h"
#include "placer/measure/local_machine.h"
#include "placer/subject/subject.h"

struct tfc_job_model {
  const struct tfc_job_options *o; // graph, step, constraints, limits, objective
  const struct tfc_measure_info *info;
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
  double memory_ratio; // of what placements need to what they need as simulated, lately; at least 1
  bool profiled;       // costs and links are known: of this run, or of the one that it goes on from
  double trace_overhead, trace_overhead_least; // of tracing, a share of a step, and what it surely is (95 %); NaN
  tfc_trace_mode trace;                        // how rewards are traced, therefore
};

// The machine only: `bare`.
TFC_MUST_USE tfc_status tfc_job_model_init(struct tfc_job_model *model, const struct tfc_job_options *options,
                                           const struct tfc_measure_info *info);
TFC_MUST_USE tfc_status tfc_job_model_take_graph(struct tfc_job_model *model); // as the subject
void tfc_job_model_deinit(struct tfc_job_model *model);                        // zeroed is fine
// What stays with what it is fused into, and the coarse subject: needs what each operation takes by itself (`plain`).
TFC_MUST_USE tfc_status tfc_job_model_keep_together(struct tfc_job_model *model, const struct tfc_job_clock *clock);
// Machine, costs and problem from what is known now.
TFC_MUST_USE tfc_status tfc_job_model_rebuild(struct tfc_job_model *model);
void tfc_job_model_set_trace_overhead(struct tfc_job_model *model, double overhead, double least);

// Learning from steps. `plain`: of steps without rewrites, for `plain`; else of one device, for `alone` and `costs`.
TFC_MUST_USE tfc_status tfc_job_model_learn(struct tfc_job_model *model, const struct tfc_measured *measured,
                                            bool plain);
// From steps on several devices: each operation's time without the slow-down of its moment.
TFC_MUST_USE tfc_status tfc_job_model_refit(struct tfc_job_model *model, const struct tfc_measured *measured);
// How much more memory placements need than simulated.
void tfc_job_model_learn_memory(struct tfc_job_model *model, const struct tfc_solution *solution,
                                const struct tfc_measured *measured);
// Searches aim nearer to the limits again; false: they are at them.
bool tfc_job_model_aim_nearer(struct tfc_job_model *model);

// Asking.
double tfc_job_model_simulate(const struct tfc_job_model *model,
                              const struct tfc_solution *solution);                            // us; NaN: illegal
uint64_t tfc_job_model_digest(const struct tfc_job_model *model, const tfc_device_id *device); // by unit
bool tfc_job_model_runs_in_flight(const struct tfc_job_model *model); // several steps at once are what counts
// Where searches and learners move units: the graph's own, or those with what is fused on one device kept together.
const struct tfc_problem *tfc_job_model_search_problem(const struct tfc_job_model *model);
const struct tfc_subject *tfc_job_model_search_subject(const struct tfc_job_model *model);
// What was found there, as a solution of model->problem (owned; also after an error).
TFC_MUST_USE tfc_status tfc_job_model_found(const struct tfc_job_model *model, const struct tfc_solution *found,
                                            struct tfc_solution *out);
// Says it where a placement's times are of other arithmetic than this job's.
void tfc_job_model_compare_math(const struct tfc_job_model *model, const struct tfc_job_clock *clock, const char *file,
                                const struct tfc_placement *placement);

#endif
