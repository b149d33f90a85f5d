// Groundwork: all that plans of one signature (feeds, fetches, targets, shapes of feeds) have in common under every
// placement: which nodes run, in which order, with which shapes, and about how long they take. A session keeps the last
// one, so that planning another placement starts from it.
#ifndef TFC_RUNTIME_EXEC_GROUNDWORK_H
#define TFC_RUNTIME_EXEC_GROUNDWORK_H

#include "runtime/base/spare.h"
#include "runtime/exec/session.h"
#include "runtime/ops/host_memory.h"
#include "runtime/pass/pass.h"

struct tfc_groundwork { // all but `spare` is immutable once made
  _Atomic uint32_t references;
  const struct tfc_graph *graph; // retained
  struct tfc_run_spec spec;      // only the members that make the signature; copies
  bool is_static;                // a plan in fixed order can run it
  bool *needed;                  // [node]
  uint32_t *fed;                 // [output] index of the feed + 1; 0: not fed
  uint32_t *order;               // if is_static: the needed nodes in the canonical order
  uint32_t *position;            // if is_static: [node] its index in `order`
  double *cost_us;               // if is_static: [node] an estimate
  struct tfc_host_memory *host;  // if is_static: [node] which of its operands are in host memory
  uint32_t order_count;
  struct tfc_shapes shapes;
  struct tfc_arena arena;
  // Memory of plans that were freed, for plans of other placements; kept from the second plan on.
  struct tfc_spare spare;
};

// Whether a step that runs this node runs in ready order: the node may be dead, waits for something outside of the
// step, or has an effect that only the step knows. (A node that sends a tensor to another task, or receives one, does
// not need it.)
bool tfc_needs_ready_order(const struct tfc_node *n);

// Prunes the graph, checks feeds and ops, infers shapes; or returns the session's last groundwork if it has the
// same signature. The caller gets one reference.
TFC_MUST_USE tfc_status tfc_groundwork_get(struct tfc_session *session, const struct tfc_graph *graph,
                                           const struct tfc_run_spec *spec, struct tfc_groundwork **out);
void tfc_groundwork_release(struct tfc_groundwork *ground); // NULL is fine

static inline bool tfc_is_fed(const struct tfc_groundwork *ground, struct tfc_output o) {
  return o.index >= 0 && ground->fed[ground->graph->nodes[o.node].output_begin + (uint32_t)o.index];
}
static inline bool tfc_all_fed(const struct tfc_groundwork *ground, const struct tfc_node *n) {
  for (uint32_t i = 0; i < n->output_count; i++)
    if (!ground->fed[n->output_begin + i]) return false;
  return n->output_count > 0;
}

// Whether the node has an input or output of type variant. A list's tensors may come from any device. So on devices
// with memory of their own such nodes run on the host, where the tensors are.
static inline bool tfc_touches_variant(const struct tfc_graph *g, const struct tfc_node *n) {
  bool found = false;
  for (uint32_t k = 0; k < n->input_count; k++) found |= tfc_output_dtype(g, tfc_node_inputs(g, n)[k]) == TFC_VARIANT;
  for (uint32_t k = 0; k < n->output_count; k++) found |= g->output_dtypes[n->output_begin + k] == TFC_VARIANT;
  return found;
}

#endif
