// Evaluates nodes of a graph with the ops' reference kernels, one after another on this thread: no plan, no session. It
// is for tests of kernels, shape functions and gradients, and only for stateless graphs without control flow.
#ifndef TFC_TESTS_COMMON_EVAL_H
#define TFC_TESTS_COMMON_EVAL_H

#include "runtime/ops/kernel.h"

struct eval {
  const struct tfc_graph *graph;
  struct tfc_tensor *values; // [graph->output_total]
  uint8_t *done;             // [graph->node_count]
  struct tfc_arena arena;
  bool check_shapes; // compares the results of shape functions with the computed tensors
};
TFC_MUST_USE tfc_status eval_create(const struct tfc_graph *graph, struct eval *out);
void eval_deinit(struct eval *e);
// Sets the value of output 0 of a node (a placeholder); the tensor is shared.
void eval_feed(struct eval *e, uint32_t node, const struct tfc_tensor *value);
// Computes an output; the tensor is borrowed. UNIMPLEMENTED: an op has no row or no kernel.
TFC_MUST_USE tfc_status eval_output(struct eval *e, struct tfc_output o, const struct tfc_tensor **out);

#endif
