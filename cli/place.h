// The options of tfc-place, and the functions that act on them.
#ifndef TFC_CLI_PLACE_H
#define TFC_CLI_PLACE_H

#include "cli/flags.h"
#include "cli/step_args.h"
#include "placer/model/placement.h"
#include "placer/model/request.h"
#include "placer/search/search.h"
#include "runtime/exec/execution.h"

struct place_options {
  struct tfc_common common;
  const char *graph, *devices, *machine;
  struct tfc_texts fetches, targets, inits, feeds;
  int64_t batch;
  const char *step, *checkpoint;
  struct tfc_search_settings search; // as the flags say it; place_search_settings has the rest
  int64_t measurements, evaluations;
  struct tfc_execution execution; // without memory limits: the functions that need --memory read it themselves
  double time;                    // seconds; 0: not given
  struct tfc_request request;
  struct tfc_texts limits;
  bool no_early_stop, wait;
  const char *measure_with;
  double measure_timeout; // seconds; 0: not given
  int model;              // the number of the choice of --model; 1: prior
  const char *config, *evaluate, *db, *out, *report, *save_problem, *resume;
  bool db_given;
  const char *policy, *save_policy; // policy NULL: the policy that is installed with the program
  const char *cluster;
  int64_t restarts;          // below 0: not given
  struct place_tasks *tasks; // set if this task places over all tasks of a job; NULL: there is no job
  const char *replicas, *step_times;
  bool sync, async;
  int reduce;         // the number of the choice of --reduce: 0: both, 1: all, 2: ps
  int64_t backup, ps; // backup below 0: not given
};

// These place a graph, print the answer and return the exit code. place_modelled: a cost graph or a TensorFlow graph on
// a described machine; place_local: a TensorFlow graph on local devices.
int place_modelled(const struct place_options *options, bool cost_graph);
int place_local(const struct place_options *options);

// Returns the settings for --measure-with or for tasks; NULL: neither is used. They exist as long as the options.
struct tfc_elsewhere_settings;
struct tfc_elsewhere_settings *place_elsewhere(const struct place_options *options);

// Places a TensorFlow graph on a described machine, as tfc_place_modelled does with a cost graph. If the status is OK,
// the outcome's exit code is set. `record`: whether and where the answer is recorded.
struct tfc_search_options;
struct tfc_place_outcome;
struct tfc_record_target;
TFC_MUST_USE tfc_status place_machine(const struct place_options *options, const struct tfc_search_options *search,
                                      const struct tfc_record_target *record, struct tfc_place_outcome *out);

// Makes the problem of a TensorFlow graph on a described machine, and passes it to a function. `sha256`: of the graph's
// file, "" where it cannot be read.
struct tfc_problem;
typedef tfc_status (*place_problem_fn)(void *user, const struct tfc_problem *problem, const char *sha256);
TFC_MUST_USE tfc_status place_machine_problem(const struct place_options *options, place_problem_fn fn, void *user);

// Places over the tasks of a job, of which this process is one (place_tasks.c): task 0 places, the other tasks run its
// steps. Returns the exit code.
int place_tasks(const struct place_options *options);
// For --restarts: starts the tasks with mpirun, and again if one has died. Then the run goes on from the database, and
// the placement that was being tried counts as failed.
int place_tasks_restarted(const struct place_options *options, char **argv);
int place_check_tasks(const struct tfc_program *program, const struct place_options *options);
// For task 0. place_tasks_machine: makes a machine of all tasks' devices, in the order of their names.
// place_tasks_costs: makes the table of the operations' times on it, as cli_cost_model does. place_tasks_steps: makes
// the object that measures placements on it.
struct tfc_machine;
struct tfc_cost_table;
struct tfc_task_steps;
struct tfc_task_steps_options;
TFC_MUST_USE tfc_status place_tasks_machine(const struct place_tasks *tasks, struct tfc_machine **out);
TFC_MUST_USE tfc_status place_tasks_costs(const struct place_tasks *tasks, const struct tfc_machine *machine,
                                          const uint32_t *ops, uint32_t op_count, struct tfc_cost_table **out);
// `options` must have the subject, the problem and the machine; the function sets the other fields.
TFC_MUST_USE tfc_status place_tasks_steps(struct place_tasks *tasks, struct tfc_task_steps_options *options,
                                          struct tfc_task_steps **out);
const char *place_tasks_text(const struct place_tasks *tasks); // "2 tasks"

// Runs that measure nothing (place_kept.c). With --db or --resume, such a run is in the database from its beginning,
// and its answer is recorded there. Without these flags the database gets a run only if the search is interrupted: the
// state from which --resume continues, and no record.
//
// Begins such a run, and sets two fields in `search`: `kept`, the function that saves the state of the search, and
// `state`, the state from which the search continues. `policy`: the learned policy of the run; NULL: there is none.
// INVALID_ARGUMENT: the run that --resume names began with other flags.
struct place_kept;
struct tfc_policy;
struct tfc_search_options;
TFC_MUST_USE tfc_status place_kept_begin(const struct place_options *options, const struct tfc_policy *policy,
                                         struct tfc_search_options *search, struct place_kept **out);
// Where the answer of the run is recorded; without a run in the database: nowhere yet.
struct tfc_record_target place_kept_target(const struct place_kept *kept);
// Call it after the search: marks the run as ended, or as interrupted, and stores the warnings. `document`: the answer;
// NULL: there is none, and `why` says why not. `recorded`: the answer is in the run already.
struct tfc_placement;
TFC_MUST_USE tfc_status place_kept_end(struct place_kept *kept, const struct tfc_placement *document, const char *why,
                                       bool recorded, int exit_code);
void place_kept_free(struct place_kept *kept); // NULL is fine

// For --replicas: simulates replicas of the step, prints everything, and returns the exit code.
int place_replicas(const struct place_options *options, bool cost_graph);
// Finds usage errors of its flags; prints them; returns 0 or the exit code.
int place_check_replicas(const struct tfc_program *program, const struct place_options *options);

// Prints what a run shows: why it ended, and what its traced step says. `store` has the run; NULL: it opens the
// database `db`.
struct tfc_store;
void place_explain(const char *db, struct tfc_store *store, int64_t run);

// Returns the flags that define the step.
static inline struct cli_step_args place_step_args(const struct place_options *o) {
  return (struct cli_step_args){.fetches = o->fetches,
                                .targets = o->targets,
                                .inits = o->inits,
                                .feeds = o->feeds,
                                .batch = o->batch,
                                .no_init = o->checkpoint != NULL};
}

// Lists of algorithms in addition to those in placer/algo, ended by NULL: learned policies and their controls; and
// algorithms that learn from measurements (none if there is no policy).
struct tfc_algo;
struct tfc_policy;
const struct tfc_algo *const *place_extra(void);
// Returns the settings of all searches. `policy` NULL: there is none.
struct tfc_search_settings place_search_settings(const struct place_options *options, const struct tfc_policy *policy);
const struct tfc_algo *const *place_learned(const struct tfc_policy *policy);
// Reads the policy that --policy names, or the installed one, ../share/tfc/policy.json relative to the program's
// folder. *out NULL: --policy none, or nothing is searched.
TFC_MUST_USE tfc_status place_read_policy(const struct place_options *options, struct tfc_policy **out);
// Writes the policy with what the run learned to the file of --save-policy, if that was given.
TFC_MUST_USE tfc_status place_save_policy(const struct place_options *options, const struct tfc_policy *policy);
// Prints all algorithms with one line each; returns the exit code.
int place_list_algorithms(void);

// Finds usage errors: unknown algorithms, malformed lists and pairs, and flags that do not apply to a cost graph (it
// has no tensors and no feeds). Prints them; returns 0 or the exit code.
int place_check_algorithms(const struct tfc_program *program, const struct place_options *options);
int place_check_texts(const struct tfc_program *program, const struct place_options *options);
int place_check_cost_graph(const struct tfc_program *program, const struct place_options *options);
// As place_check, for flags that need --measure-with or cannot be combined with it.
int place_check_elsewhere(const struct tfc_program *program, const struct place_options *options);
// The run that --resume names. 0: there is none; below 0: the run that was interrupted last. false: the text is no
// number.
bool place_resume(const struct place_options *options, int64_t *out);

// Whether the file begins like JSON, so that it is a placement and not a graph.
bool place_is_json(const char *path);

// Checks, before anything is measured, that the files of --evaluate and --baseline can be read, and those of --out,
// --report and --save-problem written. NOT_FOUND, INVALID_ARGUMENT or DATA_LOSS, with the path.
TFC_MUST_USE tfc_status place_check_files(const struct place_options *options);

// Prints why there is no placement, with --json also as a document: {"format", "version", "graph", "feasible" (false if
// nothing fits), "error": {"code", "message"}}. Frees the status and returns the exit code.
int place_fail(const struct place_options *options, tfc_status status);

// Returns "<graph>.placement.json", in the folder of the graph; the caller frees it. NULL: out of memory.
char *place_default_path(const char *graph, const char *suffix);

#endif
