// Subject: a TensorFlow graph as the subject of placing. It contains which operations of the step take time, which must
// share a device (loc:@ classes, reference edges, resource handles, elided nodes), where each may run, and which
// tensors go between them. With a profile's costs it becomes a cost graph that algorithms search. A solution of that
// search is turned back into what a session runs, and into the placement document.
//
// clang-format off
//   TFC_TRY(s, tfc_subject_create(graph, &options, &subject)); // once: the structure
//   // After profiling, and again whenever costs were refit:
//   TFC_TRY(s, tfc_subject_cost_graph(subject, costs, false, NULL, &cost_graph));
//   TFC_TRY(s, tfc_problem_create(cost_graph, machine, objective, &problem));
//   // The arrays for tfc_run_spec, from a solution of the problem:
//   TFC_TRY(s, tfc_subject_assign(subject, problem, &solution, placement, sequence, &count));
// clang-format on
//
// A node of the cost graph is an operation that runs, or a variable (no time, its memory, the tensor that readers on
// other devices need). Elided nodes (identities, views, reads, constants) are not in it: tensors go from the real
// producer to the real consumers. Immutable once made; any number of threads may read it.
#ifndef TFC_PLACER_SUBJECT_SUBJECT_H
#define TFC_PLACER_SUBJECT_SUBJECT_H

#include "placer/model/placement.h"
#include "placer/model/request.h"
#include "placer/simulate/simulate.h"
#include "profiler/cost_table.h"
#include "runtime/exec/session.h"
#include "runtime/graph/graph.h"

struct tfc_node_pair {
  uint32_t a, b;
};

struct tfc_subject_options {
  const struct tfc_output *feeds;
  uint32_t feed_count;
  const struct tfc_output *fetches;
  uint32_t fetch_count;
  const uint32_t *targets;
  uint32_t target_count;
  const uint32_t *ops; // nodes that run as operations, as found by a plan
  uint32_t op_count;
  const uint64_t *output_bytes; // [graph->output_total] from shape inference or a profile; 0: not known
  const struct tfc_machine *machine;
  struct tfc_request request; // pins are constraints, and so are device strings with TFC_STRINGS_CONSTRAIN
  tfc_str host;               // the device for operations that run only on the host
  // Which kinds can run a node: supported[kind * node_count + node], kinds in the order in which they first appear
  // among the machine's devices; NULL: all can.
  const bool *supported;
  // On one device: the operation that a node's work is fused into, [node] as in tfc_measured; NULL: none. What stays
  // inside a fused operation takes no memory.
  const uint32_t *done_by;
  // With several devices: operations that continue the results of others. Borrowed, also by the subject. NULL: none.
  const struct tfc_plan_continued *continued;
  uint32_t continued_count;
  // For coarser units, in searches: pairs of nodes that must share a device. Pins and given placements need not agree
  // with these pairs.
  const struct tfc_node_pair *together;
  uint32_t together_count;
  bool live; // memory of tensors counts by their lifetimes, because some device's limit is below what the whole step
             // needs
};

struct tfc_subject_edge {
  uint32_t from, to; // cost nodes
  int32_t output;    // TFC_OUTPUT_CONTROL for control dependencies
  uint64_t bytes;
};

struct tfc_subject {
  struct tfc_arena arena;
  const struct tfc_graph *graph;     // retained
  const struct tfc_machine *machine; // borrowed
  const bool *needed;                // [node] part of the step
  const uint32_t *anchor;  // [node] the cost node that decides its device; TFC_NONE: the node is not part of the step
  const uint32_t *cost_of; // [node] its own cost node, or TFC_NONE
  uint32_t cost_count;
  const uint32_t *node_of; // [cost] graph node
  const bool *runs;        // [cost] it is an operation; otherwise it is a variable
  const uint64_t *memory;  // [cost] bytes of a variable
  const tfc_str *group;    // [cost] name of its unit; data NULL: the node is not in a group
  const tfc_str *pin;      // [cost] device; data NULL: free
  const tfc_str *reason;   // [node] why it must be on its device; data NULL: no reason
  uint32_t edge_count;
  const struct tfc_subject_edge *edges;
  uint32_t kind_count;
  const tfc_str *kinds; // of the machine's devices, in order of first appearance
  const bool *supported;
  const uint32_t *fused; // [cost] the cost node into which it is fused on one device; its own number: it is not fused
  const struct tfc_plan_continued *continued; // borrowed
  uint32_t continued_count;
  uint32_t unit_count;
  uint32_t host; // device index
  uint64_t variable_bytes;
  bool live;
};

// INVALID_ARGUMENT: constraints contradict each other (the message has the nodes and both reasons), or a pin matches no
// node. UNAVAILABLE: a pin names a device that does not exist. The machine is borrowed and must exist as long as the
// subject.
TFC_MUST_USE tfc_status tfc_subject_create(const struct tfc_graph *graph, const struct tfc_subject_options *options,
                                           struct tfc_subject **out);
void tfc_subject_free(struct tfc_subject *subject); // NULL is fine

// Makes a cost graph with the costs of a profile: medians or, for bounds, the fastest times ever seen. If a node was
// not seen on a kind that can run it (because that kind was never profiled), its time there is the fastest of its times
// on other kinds. `kept` (by node, NULL: none): nodes that stay with the operation into which they are fused. That
// operation includes their cost, and begins when the inputs of all of them are present. If an operation is computed in
// several pieces, its first piece begins when the operands of all pieces are present.
TFC_MUST_USE tfc_status tfc_subject_cost_graph(const struct tfc_subject *subject, const struct tfc_cost_table *costs,
                                               bool fastest, const bool *kept, struct tfc_cost_graph **out);

// Converts a solution of one subject's problem to one of another's, of the same graph and step: the units of `to` may
// be finer (then the result is exact) or coarser (then each gets the device of its first node). The rank stays the
// same.
TFC_MUST_USE tfc_status tfc_subject_convert(const struct tfc_subject *from, const struct tfc_problem *from_problem,
                                            const struct tfc_solution *solution, const struct tfc_problem *to_problem,
                                            struct tfc_solution *out);

// Fills what a session needs to run a solution. placement [graph->node_count]: every node, also those outside the step;
// sequence [cost_count]: graph nodes in the order in which they start in the simulation (NULL: not wanted).
TFC_MUST_USE tfc_status tfc_subject_assign(const struct tfc_subject *subject, const struct tfc_problem *problem,
                                           const struct tfc_solution *solution, uint16_t *placement, uint32_t *sequence,
                                           uint32_t *out_count);

// Makes the expert's solution: the placement that the graph's device strings describe. A device of a type that the
// machine lacks is mapped to one of the devices in use, number k to number k modulo their count; *out_note (malloc'd,
// NULL if nothing was mapped) tells that. NOT_FOUND: the graph has no device strings. INVALID_ARGUMENT: a string cannot
// be read; the message names its node.
TFC_MUST_USE tfc_status tfc_subject_strings(const struct tfc_subject *subject, const struct tfc_problem *problem,
                                            const struct tfc_graph *strings, struct tfc_solution *out, char **out_note);
// Finds the device of a machine that a device string means, or TFC_NONE if it names no type. A type that the machine
// lacks is mapped, and `note` (may be NULL) says so.
TFC_MUST_USE tfc_status tfc_subject_string(const struct tfc_machine *machine, tfc_str text, uint32_t *out,
                                           struct tfc_text *note);
// Makes the solution that a placement file describes (for --evaluate and --baseline). UNAVAILABLE: a device is unknown
// (checked first). INVALID_ARGUMENT: a node of the step is missing, a node is not in the graph, the nodes of a unit are
// on different devices, or a pin or an unsupported kind is violated.
TFC_MUST_USE tfc_status tfc_subject_resolve(const struct tfc_subject *subject, const struct tfc_problem *problem,
                                            const struct tfc_placement *placement, struct tfc_solution *out);
// Fills `nodes` of a document: every node of the graph file, functions included, with order and reason.
TFC_MUST_USE tfc_status tfc_subject_document(const struct tfc_subject *subject, const struct tfc_problem *problem,
                                             const struct tfc_solution *solution, struct tfc_placement *document);

#endif
