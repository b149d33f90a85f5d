// Evaluates nodes of a graph with the ops' reference kernels, one after another on this thread: no plan, no session.
// For tests of kernels, shape functions and gradients. Stateless graphs without control flow only.
#ifndef TFC_TESTS_COMMON_EVAL_H
#define TFC_TESTS_COMMON_EVAL_H

#include "runtime/ops/kernel.h"

struct eval {
  const struct tfc_graph *graph;
  struct tfc_tensor *values; // [graph->output_total]
  uint8_t *done;             // [graph->node_count]
  struct tfc_arena arena;
  bool check_shapes; // compare the results of shape functions with the computed tensors
};
TFC_MUST_USE tfc_status eval_create(const struct tfc_graph *graph, struct eval *out);
void eval_deinit(struct eval *e);
// Gives output 0 of a node (a placeholder) a value; shared.
void eval_feed(struct eval *e, uint32_t node, const struct tfc_tensor *value);
// The value of an output, borrowed. UNIMPLEMENTED: an op without row or kernel.
TFC_MUST_USE tfc_status eval_output(struct eval *e, struct tfc_output o, const struct tfc_tensor **out);

#endif
