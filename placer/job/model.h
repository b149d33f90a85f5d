// Model: what a job knows about its graph and its machine: the graph as a subject, the times of operations and links,
// and the problem that is made of both for the searches. Measurements improve it. It has no data of the placements that
// were tried (candidates.h).
//
// The job owns it, and only one thread may use it. Each rebuild makes a new cost graph, machine and problem: pointers
// to them are valid only until then.
#ifndef TFC_PLACER_JOB_MODEL_H
#define TFC_PLACER_JOB_MODEL_H

#include "placer/job/options.h"
#include "placer/learned/learned.h"
#include "placer/measure/local_machine.h"
#include "placer/subject/subject.h"

struct tfc_job_model {
  const struct tfc_job_options *o; // graph, step, constraints, limits, objective
  const struct tfc_measure_info *info;
  struct tfc_subject *subject;
  struct tfc_machine *bare; // without calibration; the subject borrows it
  struct tfc_calibration calibration;
  struct tfc_cost_table *plain; // times of operations in steps without rewrites, in which each node is an operation of
                                // its own
  bool *kept;                   // [node] it stays with the operation that it is fused into; NULL: nothing is fused
  struct tfc_cost_table *alone; // times from the profile
  struct tfc_cost_table *costs; // also times from candidates, because bounds need the fastest time ever seen
  uint32_t *kind_of_device;
  // The profile's machine, costs and problem, which learning corrects; and the learned model. NULL: the profile has not
  // ended, or costs are not corrected (--model prior).
  struct tfc_machine *prior_machine;
  struct tfc_cost_graph *prior_graph;
  struct tfc_problem *prior_problem;
  struct tfc_simulator *prior_simulator;
  struct tfc_learned *learned;
  // The current machine, costs and problem, corrected by what was learned.
  struct tfc_machine *machine;
  struct tfc_cost_graph *cost_graph;
  struct tfc_problem *problem;
  // The same with fused nodes in one unit: the costs of fused operations are valid only there. NULL: nothing is fused.
  struct tfc_subject *coarse;
  struct tfc_machine *coarse_machine;
  struct tfc_cost_graph *coarse_graph;
  struct tfc_problem *coarse_problem;
  struct tfc_simulator *simulator;
  double memory_ratio; // memory that recent placements needed, divided by what was simulated for them; at least 1
  bool profiled;       // costs and links were measured, in this run or in the one that it resumes
  double trace_overhead, trace_overhead_least; // by which share tracing makes a step longer, and the lower end of its
                                               // 95 % interval; NaN: not known
  bool by_records;                             // GPUs' own records time the steps
  tfc_trace_mode trace; // how candidates' steps are traced: fewer of them if the overhead is large
};

// Creates only the machine `bare`.
TFC_MUST_USE tfc_status tfc_job_model_init(struct tfc_job_model *model, const struct tfc_job_options *options,
                                           const struct tfc_measure_info *info);
TFC_MUST_USE tfc_status
tfc_job_model_take_graph(struct tfc_job_model *model);  // makes the subject of the options' graph
void tfc_job_model_deinit(struct tfc_job_model *model); // zeroed is fine
// Makes `kept` and the coarse subject, from the times of operations without rewrites (`plain`).
TFC_MUST_USE tfc_status tfc_job_model_keep_together(struct tfc_job_model *model, const struct tfc_job_clock *clock);
// Makes a new machine, costs and problem from all measurements so far.
TFC_MUST_USE tfc_status tfc_job_model_rebuild(struct tfc_job_model *model);
void tfc_job_model_set_trace_overhead(struct tfc_job_model *model, double overhead, double least);
// Remembers whether GPUs' own records time the steps.
void tfc_job_model_set_timing(struct tfc_job_model *model, const struct tfc_measured *measured);
// Of a device and all of its kind: how long dispatching an operation takes, and by which factor operations take longer
// while `busy` (from 1) devices are busy.
void tfc_job_model_set_dispatch(struct tfc_job_model *model, uint32_t device, double us);
void tfc_job_model_set_slowdown(struct tfc_job_model *model, uint32_t device, uint32_t busy, double factor);
// Replaces the times of links; the model owns the list from then on.
void tfc_job_model_set_links(struct tfc_job_model *model, struct tfc_link_time *links, uint32_t count);
TFC_MUST_USE tfc_status tfc_job_model_add_link(struct tfc_job_model *model, const struct tfc_link_time *link);
// Adds a node's time on a kind of device, as another run of the graph measured it.
TFC_MUST_USE tfc_status tfc_job_model_add_cost(struct tfc_job_model *model, uint32_t node, uint32_t kind,
                                               double median_us, double fastest_us);
// Returns how steps are traced if only their time is needed.
static inline tfc_trace_mode tfc_job_model_least_trace(const struct tfc_job_model *model) {
  return model->by_records ? TFC_TRACE_MODE_ALL : TFC_TRACE_MODE_NONE;
}

// Learns from measured steps. `plain`: the steps ran without rewrites; their times go to the table `plain`. Otherwise
// they ran on one device; their times go to `alone` and `costs`.
TFC_MUST_USE tfc_status tfc_job_model_learn(struct tfc_job_model *model, const struct tfc_measured *measured,
                                            bool plain);
// Call it at the end of the profile, also if the run that is resumed made it: learning begins with its costs.
TFC_MUST_USE tfc_status tfc_job_model_begin_learning(struct tfc_job_model *model);
// Adds the times of measured steps on several devices to `costs`, because bounds use the fastest time of each
// operation.
TFC_MUST_USE tfc_status tfc_job_model_see(struct tfc_job_model *model, const struct tfc_measured *measured);
// Gives the learned model the measured time of a placement's step and, if `trace` is not NULL, the times of its
// operations and transfers. Does nothing if there is no learned model.
TFC_MUST_USE tfc_status tfc_job_model_learn_step(struct tfc_job_model *model, const struct tfc_solution *solution,
                                                 double step_us, const struct tfc_learned_trace *trace);
// Gives the learned model what an interrupted run had learned of operations, as the text that tfc_learned_save made.
// model->learned must not be NULL. INVALID_ARGUMENT: the text is malformed, or is about another problem.
TFC_MUST_USE tfc_status tfc_job_model_load_learned(struct tfc_job_model *model, tfc_str text);
// Draws costs at random from the learned model's posterior distribution, and makes a problem with them for a search.
// FAILED_PRECONDITION: nothing was learned.
TFC_MUST_USE tfc_status tfc_job_model_draw(const struct tfc_job_model *model, struct tfc_random *random,
                                           struct tfc_learned_world *out);
// Learns how much more memory placements need than simulated.
void tfc_job_model_learn_memory(struct tfc_job_model *model, const struct tfc_solution *solution,
                                const struct tfc_measured *measured);
// Allows searches more of the memory limits again. False: they already use all of it.
bool tfc_job_model_aim_nearer(struct tfc_job_model *model);

// With the current costs, sets out_us [device_count] to each device's load, for the throughput objective. False: the
// placement is not legal, or there is no memory.
bool tfc_job_model_loads(const struct tfc_job_model *model, const struct tfc_solution *solution, double *out_us);
// Simulates a step with the current costs.
double tfc_job_model_simulate(const struct tfc_job_model *model,
                              const struct tfc_solution *solution);                                 // us; NaN: illegal
double tfc_job_model_prior(const struct tfc_job_model *model, const struct tfc_solution *solution); // by the profile
bool tfc_job_model_predicts(const struct tfc_job_model *model); // whether anything was learned that predicts step times
// Predicts the step time with all that was learned, in us; NaN: nothing was learned, or the placement is illegal.
// *out_sd: standard deviation of its logarithm.
double tfc_job_model_predict(const struct tfc_job_model *model, const struct tfc_solution *solution, double *out_sd);
// Draws the step time from the posterior distribution of the prediction; NaN as above.
double tfc_job_model_draw_time(const struct tfc_job_model *model, const struct tfc_solution *solution,
                               const struct tfc_learned_opinion *opinion, struct tfc_random *random);
uint64_t tfc_job_model_digest(const struct tfc_job_model *model, const tfc_device_id *device); // by unit
bool tfc_job_model_runs_in_flight(const struct tfc_job_model *model); // throughput objective, and steps may overlap
// Returns the problem in which searches and learners move units: the graph's own units, or those with fused nodes kept
// together.
const struct tfc_problem *tfc_job_model_search_problem(const struct tfc_job_model *model);
const struct tfc_subject *tfc_job_model_search_subject(const struct tfc_job_model *model);
// Converts a solution of that problem to one of model->problem; the caller owns it, also after an error.
TFC_MUST_USE tfc_status tfc_job_model_found(const struct tfc_job_model *model, const struct tfc_solution *found,
                                            struct tfc_solution *out);
// Reports if a placement was measured with another type of GPU arithmetic than the one of this job.
void tfc_job_model_compare_math(const struct tfc_job_model *model, const struct tfc_job_clock *clock, const char *file,
                                const struct tfc_placement *placement);

#endif
