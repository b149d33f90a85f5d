// Passes over graphs: what a step needs, what shapes it has, gradients, lowered functions.
#ifndef TFC_RUNTIME_PASS_PASS_H
#define TFC_RUNTIME_PASS_PASS_H

#include "runtime/graph/op_def.h"

// --- Shape inference ---------------------------------------------------------------------------------------------
struct tfc_shapes { // by output number (node.output_begin + index); arena-owned
  struct tfc_shape *shapes;
  const struct tfc_tensor **values; // constants found on the way (folded small integers too), else NULL
  struct tfc_handle_info *handles;
  struct tfc_arena arena;
};
struct tfc_shape_override { // a feed: what the graph would compute does not count
  struct tfc_output output;
  struct tfc_shape shape;
  const struct tfc_tensor *value; // optional
  bool keep_shape;                // nothing is known of its shape but what a placeholder's attribute says
};
// INVALID_ARGUMENT names the node, the op and the shapes that contradict. Through loops to a fixed point. Other feeds
// than the overrides may come: the values of defaults (PlaceholderWithDefault) do not count.
TFC_MUST_USE tfc_status tfc_infer_shapes(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                                         uint32_t override_count, struct tfc_shapes *out);
// The same, but a node that contradicts its inputs has outputs of which nothing is known, and is told to `note`, which
// takes the status over (in a loop perhaps more than once).
typedef void (*tfc_shape_note)(void *arg, const struct tfc_node *node, tfc_status status);
TFC_MUST_USE tfc_status tfc_infer_shapes_noting(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                                                uint32_t override_count, tfc_shape_note note, void *arg,
                                                struct tfc_shapes *out);
// The same for a step, which feeds nothing else: a node that contradicts what is fed may be in another step, or in a
// branch that is not taken. It is no error here: its outputs are unknown, and it fails when it runs.
TFC_MUST_USE tfc_status tfc_infer_fed_shapes(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                                             uint32_t override_count, struct tfc_shapes *out);
void tfc_shapes_deinit(struct tfc_shapes *shapes);

// FLOP and bytes of one run of a node: its row's (runtime/graph/op_def.h), or without one no FLOP and the bytes of all
// inputs and outputs. False where a shape is not static: then what is known.
bool tfc_node_cost(const struct tfc_graph *graph, const struct tfc_node *node, const struct tfc_shapes *shapes,
                   struct tfc_op_cost *out);

// --- Pruning -----------------------------------------------------------------------------------------------------
// out_needed[node_count]: true for what fetches and targets need, walking back over data and control edges, stopping
// at feeds.
TFC_MUST_USE tfc_status tfc_prune(const struct tfc_graph *g, const struct tfc_output *feeds, uint32_t feed_count,
                                  const struct tfc_output *fetches, uint32_t fetch_count, const uint32_t *targets,
                                  uint32_t target_count, bool *out_needed);

// --- Gradients ---------------------------------------------------------------------------------------------------
// A new graph with d(sum of ys)/dx for each x (grad_ys optional: weights of the ys; entries may be TFC_NO_OUTPUT =
// ones). out_grads[i] is TFC_NO_OUTPUT where x does not influence any y. Through Switch/Merge, while frames and
// functional If/While. UNIMPLEMENTED names the node whose op has no gradient. As tf.gradients builds them (sums of
// several gradients by AddN in order of consumers).
TFC_MUST_USE tfc_status tfc_gradients(const struct tfc_graph *g, const struct tfc_output *ys, uint32_t y_count,
                                      const struct tfc_output *xs, uint32_t x_count, const struct tfc_output *grad_ys,
                                      struct tfc_graph **out, struct tfc_output *out_grads);
// The same into a builder that holds the forward nodes already.
TFC_MUST_USE tfc_status tfc_builder_gradients(struct tfc_builder *b, const struct tfc_output *ys, uint32_t y_count,
                                              const struct tfc_output *xs, uint32_t x_count,
                                              const struct tfc_output *grad_ys, struct tfc_output *out_grads);

// --- Functions ---------------------------------------------------------------------------------------------------
// Where a graph calls functions, it is replaced (and the old one released) by one in which they are lowered, so that
// whoever places it or runs it sees inside; what cannot be lowered stays. Not where there is nothing to lower.
TFC_MUST_USE tfc_status tfc_lower_loaded(struct tfc_graph **graph);
// Inlines PartitionedCall/StatefulPartitionedCall/RemoteCall/SymbolicGradient/direct calls and lowers If/Case/While to
// Switch/Merge and frames, bodies inside bodies too. Nodes of the old graph keep id, name and outputs (a call becomes
// an Identity of its results); calls of bodies with ops that tfc does not know stay, and those of functions that call
// themselves. out_origin (optional, malloc'd,
// one entry per node of the new graph): the old node that a node comes from. Nodes out of a body carry its key,
// "function/NAME:node", in the attribute _tfc_key.
TFC_MUST_USE tfc_status tfc_lower_functions(const struct tfc_graph *g, struct tfc_graph **out, uint32_t **out_origin);

#endif
