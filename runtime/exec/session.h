// Session: a graph, its devices, its state (variables, queues, generators), and the plans that run it.
//
// A plan is made once for a signature (feeds, fetches, targets, placement, order) and run many times; the step path
// does no hashing, string work, locking or allocation per node where shapes are static. Several threads may run plans
// of one session at once, on the same variables; then plans run in ready order. Control edges order the operations of
// one step, but nothing orders those of two steps that run at the same time. An operation that reads or writes a
// variable is atomic: no other step sees it half done.
//
//   struct tfc_session *session = NULL;
//   TFC_TRY(s, tfc_session_create(graph, &(struct tfc_session_options){.devices = &set}, &session));
//   TFC_TRY(s, tfc_session_run(session, &(struct tfc_run_spec){.targets = init, .target_count = 1}, NULL, NULL));
//   struct tfc_plan *plan = NULL;
//   TFC_TRY(s, tfc_plan_create(session, &spec, &plan)); // spec: a struct tfc_run_spec with feeds and fetches
//   for (int i = 0; i < 100; i++) TFC_TRY(s, tfc_plan_run(plan, feeds, fetched, NULL));
#ifndef TFC_RUNTIME_EXEC_SESSION_H
#define TFC_RUNTIME_EXEC_SESSION_H

#include "runtime/exec/execution.h"

struct tfc_session;
struct tfc_plan;
struct tfc_resources;
struct tfc_rendezvous;

struct tfc_session_options {
  const struct tfc_device_set *devices; // borrowed; must outlive the session
  struct tfc_execution execution;       // without its limits: devices were opened with those
  bool no_rewrites;                     // run the graph without rewrites (tests, dispatch benchmarks)
  // How many threads run steps of this session, 0: not known. If it is known, a step that waits in queues for something
  // that no thread can bring any more ends with ABORTED and a message of what waits for what; otherwise it waits for
  // ever, or until its deadline.
  uint32_t callers;
  // Variables, queues and tables of a task (runtime/cluster), shared by all sessions of the task; borrowed. NULL: the
  // session has its own. Steps of a session with shared resources have to be run with `dynamic`.
  struct tfc_resources *resources;
  struct tfc_rendezvous *rendezvous; // borrowed; NULL: there are no other tasks
};
TFC_MUST_USE tfc_status tfc_session_create(const struct tfc_graph *graph, const struct tfc_session_options *options,
                                           struct tfc_session **out); // keeps a reference to the graph
void tfc_session_free(struct tfc_session *session);
// Changes the number of threads that run steps (if one of them has ended, say). Any thread.
void tfc_session_set_callers(struct tfc_session *session, uint32_t callers);

// Whether a plan may switch to another way of running the same operations, chosen from their times in its first steps.
// The resulting bits are the same. With one CPU device of several cores, independent operations run in parallel on them
// (but one at a time in steps with a trace). With several CPU devices, each starts its operations in another order.
// Other devices: nothing changes.
typedef enum tfc_adapt {
  TFC_ADAPT_OFF,
  TFC_ADAPT_WHERE_FASTER,
  TFC_ADAPT_ALWAYS, // as soon as there are times (tests)
} tfc_adapt;
enum {
  TFC_ADAPT_STEPS = 6,       // untraced steps of one device, after which the faster way is known
  TFC_ADAPT_ORDER_STEPS = 2, // steps whose operations are timed before the order of several devices is changed
};

struct tfc_run_spec {
  const struct tfc_output *feeds;
  uint32_t feed_count;
  const struct tfc_output *fetches;
  uint32_t fetch_count;
  const uint32_t *targets; // node ids
  uint32_t target_count;
  const struct tfc_shape *feed_shapes; // NULL, or one per feed: static shapes make a static plan
  // Device index by node of the graph (node_count of them); NULL: everything on device 0. Nodes that the step does
  // not run are ignored. Colocation must hold; otherwise INVALID_ARGUMENT names both nodes.
  const uint16_t *placement;
  // Position by node (any finite numbers; NaN: none), NULL: none. A priority for the simulation that gives the
  // executed order; see `sequence`.
  const double *order;
  // Executed order by device, strict positions, from the placer's simulation: node ids in order of start. NULL: the
  // plan makes one by list scheduling on op costs.
  const uint32_t *sequence;
  uint32_t sequence_count;
  bool dynamic; // force ready order (tests)
  // The plan has its own memory for results, so its steps may overlap with steps of other such plans (copies of it,
  // with variables in the same places): a device that waits in one step works on another. Such a plan does not adapt.
  // FAILED_PRECONDITION: the step updates variables, or its shapes are not static.
  bool side_by_side;
  // For a profile of one device that predicts times on several: sums of matrix products are computed in parts, as in a
  // plan of several devices, although all nodes are on one device.
  bool in_parts;
  tfc_adapt adapt;
  // [devices] the most memory that a plan may need after adapting; NULL: the devices' limits.
  const uint64_t *most_bytes;
};

struct tfc_run_options {
  struct tfc_trace_sink *trace;
  int64_t deadline_ns;        // for the step, 0: none
  const _Atomic bool *cancel; // any thread may set it: then the step ends with CANCELLED
  int64_t step;               // number by which kernels know the step; 0: the session chooses one
};

TFC_MUST_USE tfc_status tfc_plan_create(struct tfc_session *session, const struct tfc_run_spec *spec,
                                        struct tfc_plan **out);
void tfc_plan_free(struct tfc_plan *plan);
// feeds: host tensors in the order of the spec; fetches: filled with host tensors that the caller releases. An error
// names node, op, device, input types and shapes; the session stays usable.
TFC_MUST_USE tfc_status tfc_plan_run(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                     const struct tfc_run_options *options);
// Makes a plan, or takes the cached plan of this signature, and runs it.
TFC_MUST_USE tfc_status tfc_session_run(struct tfc_session *session, const struct tfc_run_spec *spec,
                                        const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                        const struct tfc_run_options *options);

// A step that is fed and fetched piece by piece. `spec` names all feeds and fetches of the step. Each feed is given
// once, each fetch taken once; targets run as soon as their inputs were fed. One thread at a time.
//
//   TFC_TRY(s, tfc_partial_begin(session, &spec, &partial));
//   TFC_TRY(s, tfc_partial_run(partial, &(struct tfc_partial_call){.feeds = &first, .values = &x, .feed_count = 1,
//                                                                  .fetches = &first, .fetch_count = 1}, &y, NULL));
//   ... tfc_partial_end(partial);
//
// An error in an operation ends the step. A fetch that needs more feeds is INVALID_ARGUMENT; it may be asked for again
// later.
struct tfc_partial;
struct tfc_partial_call {
  const uint32_t *feeds, *fetches; // indices into the spec's
  const struct tfc_tensor *values; // values[i] is fed to feeds[i]
  uint32_t feed_count, fetch_count;
};
TFC_MUST_USE tfc_status tfc_partial_begin(struct tfc_session *session, const struct tfc_run_spec *spec,
                                          struct tfc_partial **out);
TFC_MUST_USE tfc_status tfc_partial_run(struct tfc_partial *partial, const struct tfc_partial_call *call,
                                        struct tfc_tensor *fetches, const struct tfc_run_options *options);
void tfc_partial_end(struct tfc_partial *partial); // NULL is fine

// A plan's content, for the profiler to measure and the placer to model.
struct tfc_plan_op {
  uint32_t node;
  uint16_t device;
  uint32_t position; // in its device's order
};
struct tfc_plan_transfer { // one tensor to one device
  struct tfc_output tensor;
  uint16_t source, target; // devices; TFC_PLAN_HOST: the host
  uint64_t bytes;
  bool handed_over; // no copy: the devices share an address space
};
// Dependencies, with elided nodes left out: from the real producer (an operation, a variable's node or a fed node) to
// an operation that runs. They do not depend on the placement.
struct tfc_plan_edge {
  uint32_t from, to; // node ids
  int32_t output;    // which tensor of `from`; TFC_CONTROL: order only (an update waits for readers, ...)
  uint64_t bytes;    // 0 where the shape is not static
};
struct tfc_plan_shared { // two nodes for which a device makes one packed form of a weight per step
  uint32_t node, with;   // on another device it would be packed once more
  uint64_t bytes;
};
struct tfc_plan_continued { // a node's operation that continues a sum from the result of another operation
  uint32_t node, before;
  bool same; // true: it computes other rows of the same sum; false: it adds further terms
};
struct tfc_plan_variable { // a variable that occupies memory on its device for the whole session
  uint32_t node;           // VariableV2 or VarHandleOp
  uint16_t device;
  uint64_t bytes;
};
enum { TFC_PLAN_HOST = UINT16_MAX }; // the host's memory, if devices have memory of their own (for feeds, shapes)
struct tfc_plan_info {
  const struct tfc_plan_op *ops; // operations that run (elided nodes do not), in order of start
  uint32_t op_count;
  const struct tfc_plan_edge *edges;
  uint32_t edge_count;
  const struct tfc_plan_variable *variables;
  uint32_t variable_count;
  const struct tfc_plan_transfer *transfers;
  uint32_t transfer_count;
  const uint32_t *runs_in; // [node]: the node whose operation does this node's work (fused); usually itself
  const struct tfc_plan_continued *continued;
  uint32_t continued_count;
  const struct tfc_plan_shared *shared;
  uint32_t shared_count;
  const uint64_t *peak_bytes; // [device] bytes of its arena and its variables
  uint32_t device_count;
  bool is_static;
};
const struct tfc_plan_info *tfc_plan_info(const struct tfc_plan *plan); // lives as long as the plan
// Operations that a device runs on the host between copies because it has no kernel for them, and those that a library
// declined and a plainer kernel of the device runs, with the reason (which lives as long as the plan). Operations of
// called functions are not among them.
struct tfc_plan_fallback {
  uint32_t node;
  uint16_t device;
  bool on_device; // by a plainer kernel
  const char *reason;
};
// Returns their number; the first `capacity` of them are written to `out` (NULL with 0).
uint32_t tfc_plan_fallbacks(const struct tfc_plan *plan, struct tfc_plan_fallback *out, uint32_t capacity);
bool tfc_plan_in_lanes(const struct tfc_plan *plan);         // the last step ran operations side by side
bool tfc_plan_in_another_order(const struct tfc_plan *plan); // the last step ran in an order made from measured times
double tfc_plan_last_step_us(const struct tfc_plan *plan);   // first op's start to last op's end, all devices

// Variables. Snapshot copies every variable and generator; restore puts them back (measuring has no side effects).
struct tfc_snapshot;
TFC_MUST_USE tfc_status tfc_session_snapshot(struct tfc_session *session, struct tfc_snapshot **out);
TFC_MUST_USE tfc_status tfc_session_restore(struct tfc_session *session, const struct tfc_snapshot *snapshot);
void tfc_snapshot_free(struct tfc_snapshot *snapshot);
TFC_MUST_USE tfc_status tfc_session_get_variable(struct tfc_session *session, tfc_str name, struct tfc_tensor *out);
TFC_MUST_USE tfc_status tfc_session_set_variable(struct tfc_session *session, tfc_str name,
                                                 const struct tfc_tensor *value);
uint64_t tfc_session_variable_bytes(const struct tfc_session *session, uint16_t device);

#endif
