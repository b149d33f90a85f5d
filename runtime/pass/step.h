// What one step of a graph is, when nobody says: targets, fetches, initialiser, feeds. And the values that synthetic
// feeds may take.
//
// Targets: the train_op collection, or a SavedModel's serving signature (its outputs are fetches); else the nodes
// without consumers that update variables or queues; else the nodes without consumers. Nodes without consumers whose
// every update assigns an initial or restored value are initialiser or restore and never part of the step, nor is what
// only they, or operations that save, need. Files and summaries are never written unless named as target.
//
//   struct tfc_step_spec step = {0};
//   TFC_TRY(s, tfc_step_infer(graph, &(struct tfc_step_request){.batch = 32}, &step));
//   for (uint32_t i = 0; i < step.feed_count; i++) ...
//   tfc_step_spec_deinit(&step);
#ifndef TFC_RUNTIME_PASS_STEP_H
#define TFC_RUNTIME_PASS_STEP_H

#include "runtime/pass/pass.h"

// What the user said; zeroed: nothing.
struct tfc_step_feed_request {
  struct tfc_output output;
  bool has_shape; // "NAME=DTYPE[SHAPE]" or a file's
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
  const struct tfc_step_feed_request *feeds;
  uint32_t feed_count;
  int64_t batch; // size of unknown leading dimensions; 0: a given feed's, else 32
};

struct tfc_step_feed {
  struct tfc_output output;
  tfc_str name; // "x:0"
  tfc_dtype dtype;
  struct tfc_shape shape; // static
  bool given;             // by the request: the caller has the value, or wants one of this type and shape
  // Synthetic values: integers are uniform in [low, high); floats in [low, high) as well, by default [0, 1).
  double low, high;
  tfc_str why; // "index into embedding/table [8000, 256]", "" where nothing limits it
};

struct tfc_step_spec { // everything lives in the arena, and the graph
  struct tfc_output *fetches;
  uint32_t *targets, *inits;   // node ids; inits run in one step, before anything else
  struct tfc_step_feed *feeds; // what the step needs fed: targets and fetches
  struct tfc_step_feed *init_feeds;
  uint32_t fetch_count, target_count, init_count, feed_count, init_feed_count;
  tfc_str *notes; // what was inferred, one line each, for people
  uint32_t note_count;
  struct tfc_arena arena;
};

// INVALID_ARGUMENT: nothing to run, a feed whose shape cannot be known or contradicts; names it and what to give.
TFC_MUST_USE tfc_status tfc_step_infer(const struct tfc_graph *g, const struct tfc_step_request *request,
                                       struct tfc_step_spec *out);
// The initialiser alone, of every variable, for callers whose steps are their own: `inits` of *out.
TFC_MUST_USE tfc_status tfc_step_infer_init(const struct tfc_graph *g, struct tfc_step_spec *out);
void tfc_step_spec_deinit(struct tfc_step_spec *spec);

// What a placeholder says of the shape of its feeds.
struct tfc_shape tfc_step_placeholder_shape(const struct tfc_graph *g, const struct tfc_node *n);

// A value for a feed: a host tensor, the same for the same seed and feed name.
TFC_MUST_USE tfc_status tfc_step_synthetic(const struct tfc_step_feed *feed, uint64_t seed, struct tfc_tensor *out);

#endif
