// Cost graph: what a profiled graph costs, independent of any machine. For each node: its time on each kind of device,
// the memory it holds, its group (nodes that must share a device), its pin (the device it must be on), its priority.
// For each tensor: its producer, bytes and consumers. Read from JSON (the format "tfc-cost-graph"), or built node by
// node from a profile:
//
//   struct tfc_cost_builder *b = NULL;
//   TFC_TRY(s, tfc_cost_builder_create(&b));
//   TFC_TRY(s, tfc_cost_builder_kind(b, TFC_STR("cpu"), &cpu));
//   TFC_TRY(s, tfc_cost_builder_node(b, TFC_STR("a"), &a));
//   TFC_TRY(s, tfc_cost_builder_time(b, a, cpu, 5.0));
//   TFC_TRY(s, tfc_cost_builder_edge(b, a, 0, c, 4096, TFC_LIVE_ABSENT));
//   TFC_TRY(s, tfc_cost_builder_finish(b, &graph));
//   tfc_cost_builder_free(b);
//
// A finished graph is immutable except for the pins; any number of threads may read it. All arrays are indexed by node,
// tensor or kind as marked. Errors are INVALID_ARGUMENT and name the node, edge or field.
#ifndef TFC_PLACER_MODEL_COST_GRAPH_H
#define TFC_PLACER_MODEL_COST_GRAPH_H

#include "runtime/base/arena.h"
#include "runtime/base/none.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"

#define TFC_LIVE_ABSENT UINT64_MAX // the edge does not give live bytes
#define TFC_OUTPUT_CONTROL (-1)    // the output of control dependencies; their bytes are 0

struct tfc_cost_graph {
  struct tfc_arena arena; // owns all arrays and strings below
  uint32_t kind_count, node_count, tensor_count, consumer_count, group_count;
  const tfc_str *kind_names;      // [kind]
  const tfc_str *names;           // [node], unique
  const double *time_us;          // [node * kind_count + kind]; NaN: this kind cannot run the node
  const uint64_t *memory;         // [node] bytes held for the whole step
  const uint32_t *group;          // [node] or TFC_NONE
  const tfc_str *group_names;     // [group]
  tfc_str *pin;                   // [node] device name; data NULL: not pinned
  const double *order;            // [node] priority, lowest first; NaN: none
  const uint32_t *first_tensor;   // [node_count + 1]; a node's tensors lie together, by output
  const uint32_t *producer;       // [tensor]
  const int32_t *output;          // [tensor], TFC_OUTPUT_CONTROL for control dependencies
  const uint64_t *bytes;          // [tensor]
  const uint64_t *live;           // [tensor] bytes that the tensor occupies while it is live; 0: not given
  const uint32_t *first_consumer; // [tensor_count + 1]
  const uint32_t *consumer;       // [consumer_count] nodes, ascending within a tensor, no node twice
  const uint32_t *first_input;    // [node_count + 1]
  const uint32_t *input;          // [consumer_count] the tensors that a node reads, ascending
  const uint32_t *topological;    // [node_count] nodes, producers before consumers
  bool has_live;
};

struct tfc_cost_builder;
TFC_MUST_USE tfc_status tfc_cost_builder_create(struct tfc_cost_builder **out);
void tfc_cost_builder_free(struct tfc_cost_builder *builder); // NULL is fine
TFC_MUST_USE tfc_status tfc_cost_builder_kind(struct tfc_cost_builder *builder, tfc_str name, uint32_t *out_kind);
TFC_MUST_USE tfc_status tfc_cost_builder_node(struct tfc_cost_builder *builder, tfc_str name, uint32_t *out_node);
TFC_MUST_USE tfc_status tfc_cost_builder_time(struct tfc_cost_builder *builder, uint32_t node, uint32_t kind,
                                              double time_us); // finite, >= 0
void tfc_cost_builder_memory(struct tfc_cost_builder *builder, uint32_t node, uint64_t bytes);
TFC_MUST_USE tfc_status tfc_cost_builder_group(struct tfc_cost_builder *builder, uint32_t node, tfc_str group);
TFC_MUST_USE tfc_status tfc_cost_builder_pin(struct tfc_cost_builder *builder, uint32_t node, tfc_str device);
TFC_MUST_USE tfc_status tfc_cost_builder_order(struct tfc_cost_builder *builder, uint32_t node, double order);
// An edge that is given twice counts once. All edges of one (from, output) must have the same `bytes`, and the same
// `live` where it is given.
TFC_MUST_USE tfc_status tfc_cost_builder_edge(struct tfc_cost_builder *builder, uint32_t from, int32_t output,
                                              uint32_t to, uint64_t bytes, uint64_t live);
// The builder cannot be used after this call, even if it failed; free it. A cycle is an error that names one of its
// nodes.
TFC_MUST_USE tfc_status tfc_cost_builder_finish(struct tfc_cost_builder *builder, struct tfc_cost_graph **out);

void tfc_cost_graph_free(struct tfc_cost_graph *graph);

TFC_MUST_USE tfc_status tfc_cost_graph_find(const struct tfc_cost_graph *graph, tfc_str name, uint32_t *out_node);
// Pins every node whose whole name matches the POSIX extended regular expression, and counts them in *out_count
// (optional). A pin that contradicts another one is an error, and so is an expression that matches no node.
TFC_MUST_USE tfc_status tfc_cost_graph_pin(struct tfc_cost_graph *graph, const char *regex, tfc_str device,
                                           uint32_t *out_count);

#endif
