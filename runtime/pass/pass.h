// Passes over graphs: they find what a step needs, infer shapes, build gradients, and lower functions.
#ifndef TFC_RUNTIME_PASS_PASS_H
#define TFC_RUNTIME_PASS_PASS_H

#include "runtime/graph/op_def.h"

// --- Shape inference ---------------------------------------------------------------------------------------------
struct tfc_shapes { // arrays by output number (node.output_begin + index), which the arena owns
  struct tfc_shape *shapes;
  const struct tfc_tensor **values; // constants that were found (small integer tensors are folded too); otherwise NULL
  struct tfc_handle_info *handles;
  struct tfc_arena arena;
};
struct tfc_shape_override { // a feed, which replaces what the graph would compute
  struct tfc_output output;
  struct tfc_shape shape;
  const struct tfc_tensor *value; // optional
  bool keep_shape;                // true if only the attribute of a placeholder says something about its shape
};
// Infers all shapes. INVALID_ARGUMENT names the node, the op and the shapes that contradict each other. Loops are
// inferred to a fixed point. Values other than the overrides may be fed later, so the values of defaults
// (PlaceholderWithDefault) are not used.
TFC_MUST_USE tfc_status tfc_infer_shapes(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                                         uint32_t override_count, struct tfc_shapes *out);
// As tfc_infer_shapes, but a node that contradicts its inputs gets unknown outputs, and `note` gets the error, whose
// status it takes over (in a loop perhaps several times).
typedef void (*tfc_shape_note)(void *arg, const struct tfc_node *node, tfc_status status);
TFC_MUST_USE tfc_status tfc_infer_shapes_noting(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                                                uint32_t override_count, tfc_shape_note note, void *arg,
                                                struct tfc_shapes *out);
// As tfc_infer_shapes, for a step in which nothing but the overrides is fed. A node that contradicts the feeds may
// belong to another step, or to a branch that is not taken, so this is no error here: its outputs are unknown, and it
// fails when it runs.
TFC_MUST_USE tfc_status tfc_infer_fed_shapes(const struct tfc_graph *g, const struct tfc_shape_override *overrides,
                                             uint32_t override_count, struct tfc_shapes *out);
void tfc_shapes_deinit(struct tfc_shapes *shapes);

// Estimates the FLOP and bytes of one run of a node, by the row of its op (runtime/graph/op_def.h). A node without a
// row counts no FLOP, and the bytes of all its inputs and outputs. False: a shape is not static, and the result is the
// known part.
bool tfc_node_cost(const struct tfc_graph *graph, const struct tfc_node *node, const struct tfc_shapes *shapes,
                   struct tfc_op_cost *out);

// --- Pruning -----------------------------------------------------------------------------------------------------
// out_needed[node_count]: true for all nodes that fetches and targets depend on, by data and control edges, up to the
// feeds.
TFC_MUST_USE tfc_status tfc_prune(const struct tfc_graph *g, const struct tfc_output *feeds, uint32_t feed_count,
                                  const struct tfc_output *fetches, uint32_t fetch_count, const uint32_t *targets,
                                  uint32_t target_count, bool *out_needed);

// --- Gradients ---------------------------------------------------------------------------------------------------
// Makes a new graph with d(sum of ys)/dx for each x. grad_ys (optional): weights of the ys; an entry TFC_NO_OUTPUT
// means ones. out_grads[i] is TFC_NO_OUTPUT if x does not influence any y. Works through Switch/Merge, while frames and
// functional If/While. UNIMPLEMENTED names a node whose op has no gradient. The nodes are those of tf.gradients
// (several gradients are summed by AddN in order of consumers).
TFC_MUST_USE tfc_status tfc_gradients(const struct tfc_graph *g, const struct tfc_output *ys, uint32_t y_count,
                                      const struct tfc_output *xs, uint32_t x_count, const struct tfc_output *grad_ys,
                                      struct tfc_graph **out, struct tfc_output *out_grads);
// As tfc_gradients, in a builder that already holds the forward nodes.
TFC_MUST_USE tfc_status tfc_builder_gradients(struct tfc_builder *b, const struct tfc_output *ys, uint32_t y_count,
                                              const struct tfc_output *xs, uint32_t x_count,
                                              const struct tfc_output *grad_ys, struct tfc_output *out_grads);

// --- Functions ---------------------------------------------------------------------------------------------------
// Replaces a graph that calls functions by one in which they are lowered (and releases the old one), so that placing
// and running see the nodes inside. Calls that cannot be lowered stay. A graph without calls stays as it is.
TFC_MUST_USE tfc_status tfc_lower_loaded(struct tfc_graph **graph);
// Inlines PartitionedCall/StatefulPartitionedCall/RemoteCall/SymbolicGradient/direct calls, and lowers If/Case/While to
// Switch/Merge and frames, also inside of bodies. Nodes of the old graph keep id, name and outputs (a call becomes an
// Identity of its results). Calls of bodies with ops that tfc does not know stay, and so do recursive calls. out_origin
// (optional, malloc'd, one entry per node of the new graph): the old node from which a node comes. Nodes of a body have
// their key, "function/NAME:node", in the attribute _tfc_key.
// The readers of a loop's results read them where they leave the loop, so that a step runs only those variables of a
// loop that it needs.
TFC_MUST_USE tfc_status tfc_lower_functions(const struct tfc_graph *g, struct tfc_graph **out, uint32_t **out_origin);
// Whether `o` is a result of a loop that was lowered, which its readers read from *out. Who feeds `o` feeds both.
bool tfc_lowered_result(const struct tfc_graph *g, struct tfc_output o, struct tfc_output *out);

#endif
