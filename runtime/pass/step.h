// Finds out what one step of a graph consists of, as far as the user does not say it: targets, fetches, initialiser,
// feeds. It also finds the values that synthetic feeds may have.
//
// Targets are the train_op collection, or a SavedModel's serving signature (its outputs are fetches); if the graph has
// neither, the nodes without consumers that update variables or queues; if there are none, all nodes without consumers.
// A node without consumers whose updates all assign initial or restored values is an initialiser or restore operation:
// it is never part of the step. Nodes that only such nodes need, or only operations that save, are not part of it
// either. Operations that write files and summaries run only if the user names them as targets.
//
//   struct tfc_step_spec step = {0};
//   TFC_TRY(s, tfc_step_infer(graph, &(struct tfc_step_request){.batch = 32}, &step));
//   for (uint32_t i = 0; i < step.feed_count; i++) ...
//   tfc_step_spec_deinit(&step);
#ifndef TFC_RUNTIME_PASS_STEP_H
#define TFC_RUNTIME_PASS_STEP_H

#include "runtime/pass/pass.h"

// What the user said about a feed. A zeroed record: nothing.
struct tfc_step_feed_request {
  struct tfc_output output;
  bool has_shape; // the user gave "NAME=DTYPE[SHAPE]", or a file that has a type and a shape
  tfc_dtype dtype;
  struct tfc_shape shape; // static
};
struct tfc_step_request {
  const struct tfc_output *fetches;
  uint32_t fetch_count;
  const uint32_t *targets; // node ids
  uint32_t target_count;
  const uint32_t *inits;
  uint32_t init_count;
  bool no_init; // the variables come from elsewhere (a checkpoint)
  // Only local variables, tables and iterators are initialised: another session initialises the variables that all
  // share.
  bool only_local;
  const struct tfc_step_feed_request *feeds;
  uint32_t feed_count;
  int64_t batch; // the size of leading dimensions that are unknown; 0: the size in a given feed, otherwise 32
};

struct tfc_step_feed {
  struct tfc_output output;
  tfc_str name; // "x:0"
  tfc_dtype dtype;
  struct tfc_shape shape; // static
  bool given;             // true if the request has it: with a value, or with a type and shape
  // The range of synthetic values: they are uniform in [low, high). The default for floats is [0, 1).
  double low, high;
  tfc_str why; // "index into embedding/table [8000, 256]"; "": no limit
};

struct tfc_step_spec { // the arena and the graph own everything
  struct tfc_output *fetches;
  uint32_t *targets, *inits;   // node ids; `inits` run in one step, before all other steps
  struct tfc_step_feed *feeds; // the feeds that targets and fetches need
  struct tfc_step_feed *init_feeds;
  uint32_t fetch_count, target_count, init_count, feed_count, init_feed_count;
  tfc_str *notes; // for the user: what was inferred, one line for each note
  uint32_t note_count;
  struct tfc_arena arena;
};

// INVALID_ARGUMENT: there is nothing to run, or a feed's shape is unknown or contradicts the graph; the message names
// the feed and the flag to give.
TFC_MUST_USE tfc_status tfc_step_infer(const struct tfc_graph *g, const struct tfc_step_request *request,
                                       struct tfc_step_spec *out);
// Finds only the initialisers of all variables, `inits` of *out, for callers that define their own steps.
TFC_MUST_USE tfc_status tfc_step_infer_init(const struct tfc_graph *g, struct tfc_step_spec *out);
void tfc_step_spec_deinit(struct tfc_step_spec *spec);

// Whether the graph's collections say that a variable, whose shared name is `name`, belongs to one session alone.
bool tfc_step_is_local_variable(const struct tfc_graph *g, tfc_str name);

// Returns the shape that a placeholder declares for what is fed to it.
struct tfc_shape tfc_step_placeholder_shape(const struct tfc_graph *g, const struct tfc_node *n);

// Makes a value for a feed, a host tensor; the same seed and feed name give the same values.
TFC_MUST_USE tfc_status tfc_step_synthetic(const struct tfc_step_feed *feed, uint64_t seed, struct tfc_tensor *out);

#endif
