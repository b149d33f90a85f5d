// What tfc-place was asked for, and its jobs.
#ifndef TFC_CLI_PLACE_H
#define TFC_CLI_PLACE_H

#include "cli/flags.h"
#include "runtime/exec/execution.h"

enum { TFC_STRINGS_BASELINE, TFC_STRINGS_CONSTRAIN, TFC_STRINGS_IGNORE }; // --device-strings, as in its choices

struct place_options {
  struct tfc_common common;
  const char *graph, *devices, *machine;
  struct tfc_texts fetches, targets, inits, feeds;
  int64_t batch;
  const char *step, *checkpoint, *algorithm;
  int objective;
  int64_t measurements, evaluations;
  struct tfc_execution execution; // without limits: --memory is read by what needs it
  double time;                    // seconds; 0: not given
  int device_strings;
  struct tfc_texts baselines, pins, limits;
  bool no_early_stop, wait;
  const char *measure_with;
  double measure_timeout; // seconds; 0: not given
  int model;              // 1: prior
  const char *config, *evaluate, *db, *out, *report, *save_problem, *resume;
  const char *policy, *save_policy; // policy NULL: the one that is shipped
};

// What is placed, and where: a cost graph or a TensorFlow graph on a modelled machine; a TensorFlow graph on local
// devices. Both print the answer and return the exit code.
int place_modelled(const struct place_options *options, bool cost_graph);
int place_local(const struct place_options *options);

// What --measure-with asks for; without the flag NULL. Lives as long as the options.
struct tfc_elsewhere_settings;
const struct tfc_elsewhere_settings *place_elsewhere(const struct place_options *options);

// A TensorFlow graph on a described machine, as tfc_place_modelled does it for a cost graph: the outcome's exit code is
// right where the status is OK.
struct tfc_search_options;
struct tfc_place_outcome;
TFC_MUST_USE tfc_status place_machine(const struct place_options *options, const struct tfc_search_options *search,
                                      struct tfc_place_outcome *out);

// The whole command line, for the database; free() it. NULL where it cannot be had.
char *place_command_line(void);

// Algorithms beside those of the placer, ended by NULL (placer/algo/algo.h): learned policies and their controls; and
// those that learn from measurements, none without a policy.
struct tfc_algo;
struct tfc_policy;
const struct tfc_algo *const *place_extra(void);
const struct tfc_algo *const *place_learned(const struct tfc_policy *policy);
// The policy that --policy names, or the shipped one: ../share/tfc/policy.json beside the program's folder. *out NULL:
// "none", or there is nothing to search.
TFC_MUST_USE tfc_status place_read_policy(const struct place_options *options, struct tfc_policy **out);
// Writes what the run learned where --save-policy asked for it.
TFC_MUST_USE tfc_status place_save_policy(const struct place_options *options, const struct tfc_policy *policy);
// Prints them, and those that are built in; the exit code.
int place_list_algorithms(void);

// Usage errors of names, of lists and pairs in texts, and of flags that a cost graph has no use for: it has no tensors,
// no feeds and no runs that could go on. They print what is wrong; 0, or the exit code.
int place_check_algorithms(const struct tfc_program *program, const struct place_options *options);
int place_check_texts(const struct tfc_program *program, const struct place_options *options);
int place_check_cost_graph(const struct tfc_program *program, const struct place_options *options);
// Of flags that go with --measure-with, or not.
int place_check_elsewhere(const struct tfc_program *program, const struct place_options *options);

// Whether the file begins like JSON: a placement, and not a graph.
bool place_is_json(const char *path);

// What --evaluate and --baseline name is readable, and what --out, --report and --save-problem name can be written:
// found out before anything is measured. NOT_FOUND, INVALID_ARGUMENT or DATA_LOSS, with the path.
TFC_MUST_USE tfc_status place_check_files(const struct place_options *options);

// Prints why there is no placement, with --json also as a document: {"format", "version", "graph", "feasible" (false
// where nothing fits), "error": {"code", "message"}}. Takes the status; the exit code.
int place_fail(const struct place_options *options, tfc_status status);

// "<graph>.placement.json" beside the graph; free() it. NULL when memory is out.
char *place_default_path(const char *graph, const char *suffix);

#endif
