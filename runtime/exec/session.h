// Session: a graph, its devices, its state (variables, queues, generators), and the plans that run it.
//
// A plan is made once for a signature (feeds, fetches, targets, placement, order) and run many times; if shapes are
// static, a step does no hashing, string work, locking or allocation per node. Several threads may run plans of one
// session at once, on the same variables; then plans run in ready order. Control edges order the operations of one
// step, but nothing orders those of two steps that run at the same time. An operation that reads or writes a variable
// is atomic: no other step sees it half done.
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
  struct tfc_execution execution;       // its limits are not used: devices were opened with them
  bool no_rewrites;                     // run the graph without rewrites (tests, dispatch benchmarks)
  // How many threads run steps of this session, 0: not known. If it is known, a step that waits in queues for something
  // that no thread can bring any more ends with ABORTED, and the message says what waits for what; otherwise it waits
  // until its deadline, if it has one.
  uint32_t callers;
  // Variables, queues and tables of a task (runtime/cluster), which all sessions of the task share; borrowed. NULL: the
  // session has its own. Steps of a session with shared resources must be run with `dynamic`, unless no other step runs
  // on these resources at the same time.
  struct tfc_resources *resources;
  struct tfc_rendezvous *rendezvous; // borrowed; NULL: there are no other tasks
};
TFC_MUST_USE tfc_status tfc_session_create(const struct tfc_graph *graph, const struct tfc_session_options *options,
                                           struct tfc_session **out); // keeps a reference to the graph
void tfc_session_free(struct tfc_session *session);
// Changes the number of threads that run steps, say because one of them has ended. Any thread may call it.
void tfc_session_set_callers(struct tfc_session *session, uint32_t callers);

// Whether a plan may switch to another way of running the same operations, chosen from their times in its first steps.
// The resulting bits are the same. With one CPU device of several cores, independent operations run in parallel on them
// (but one at a time in steps with a trace). With several CPU devices, each starts its operations in another order.
// Other devices: nothing changes.
typedef enum tfc_adapt {
  TFC_ADAPT_OFF,
  TFC_ADAPT_WHERE_FASTER,
  TFC_ADAPT_ALWAYS, // as soon as times are known (for tests)
} tfc_adapt;
enum {
  TFC_ADAPT_STEPS = 6, // number of untraced steps of one device after which the faster way is known
  // number of steps whose operations are timed before the order of several devices is changed
  TFC_ADAPT_ORDER_STEPS = 2,
};

// A node that sends a tensor to another task, or receives one.
struct tfc_crossing {
  uint32_t node;
  struct tfc_shape shape; // of what is received
  double tail_us;         // how long the other tasks need for what depends on the sent tensor: the longest path
};

struct tfc_run_spec {
  const struct tfc_output *feeds;
  uint32_t feed_count;
  const struct tfc_output *fetches;
  uint32_t fetch_count;
  const uint32_t *targets; // node ids
  uint32_t target_count;
  const struct tfc_shape *feed_shapes; // NULL, or one for each feed: static shapes make a static plan
  // Device index of each node of the graph [node_count]; NULL: all are on device 0. Nodes that the step does not run
  // are ignored. Colocated nodes must be on one device; otherwise INVALID_ARGUMENT names both nodes.
  const uint16_t *placement;
  // The priority of each node (any finite number; NaN: none) in the simulation that makes the executed order; NULL:
  // none. See `sequence`.
  const double *order;
  // The executed order of each device, as strict positions from the placer's simulation: node ids in order of start.
  // NULL: the plan makes one by list scheduling with the ops' costs.
  const uint32_t *sequence;
  uint32_t sequence_count;
  const struct tfc_crossing *crossings; // what is known of tensors that go to other tasks or come from them
  uint32_t crossing_count;
  bool dynamic;    // force ready order (tests)
  uint64_t states; // of a function's body: whose state its nodes keep (struct tfc_kernel_env)
  // The plan has memory of its own for results, so its steps may overlap with steps of other such plans (copies of it,
  // whose variables are on the same devices): a device that waits in one step works on another. Such a plan does not
  // adapt. FAILED_PRECONDITION: the step updates variables, or its shapes are not static.
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
  int64_t deadline_ns;        // for the step; 0: there is none
  const _Atomic bool *cancel; // any thread may set it to end the step with CANCELLED
  int64_t step;               // the number of the step for kernels; 0: the session chooses one
  bool *in_fixed_order;       // out, optional: the step was run by a static plan
};

TFC_MUST_USE tfc_status tfc_plan_create(struct tfc_session *session, const struct tfc_run_spec *spec,
                                        struct tfc_plan **out);
void tfc_plan_free(struct tfc_plan *plan);
// feeds: host tensors in the order of the spec; fetches: filled with host tensors that the caller releases. An error
// names node, op, device, input types and shapes; the session can still be used after it.
TFC_MUST_USE tfc_status tfc_plan_run(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                     const struct tfc_run_options *options);
// Makes a plan, or takes the cached plan of this signature, and runs it.
TFC_MUST_USE tfc_status tfc_session_run(struct tfc_session *session, const struct tfc_run_spec *spec,
                                        const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                        const struct tfc_run_options *options);

// A step that is fed and fetched piece by piece. `spec` names all feeds and fetches of the step. Each feed is given
// once, each fetch is taken once; targets run as soon as their inputs were fed. Only one thread at a time may use it.
//
//   TFC_TRY(s, tfc_partial_begin(session, &spec, &partial));
//   TFC_TRY(s, tfc_partial_run(partial, &(struct tfc_partial_call){.feeds = &first, .values = &x, .feed_count = 1,
//                                                                  .fetches = &first, .fetch_count = 1}, &y, NULL));
//   ... tfc_partial_end(partial);
//
// An error in an operation ends the step. INVALID_ARGUMENT: a fetch needs feeds that were not given yet; a later call
// may request it again.
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

// The content of a plan, which the profiler measures and the placer models.
struct tfc_plan_op {
  uint32_t node;
  uint16_t device;
  uint32_t position; // in the order of its device
};
struct tfc_plan_transfer { // one tensor to one device
  struct tfc_output tensor;
  uint16_t source, target; // devices; TFC_PLAN_HOST: the host
  uint64_t bytes;
  bool handed_over; // no copy: the devices share an address space
};
// Dependencies without elided nodes: from the real producer (an operation, a variable's node or a fed node) to an
// operation that runs. They do not depend on the placement.
struct tfc_plan_edge {
  uint32_t from, to; // node ids
  int32_t output;    // the tensor of `from`; TFC_CONTROL: it only gives an order (an update waits for readers, ...)
  uint64_t bytes;    // 0 where the shape is not static
};
struct tfc_plan_shared { // two nodes that use the same packed form of a weight
  uint32_t node, with;   // if they are on different devices, the weight is packed twice
  uint64_t bytes;
};
struct tfc_plan_continued { // an operation that continues a sum from the result of another operation
  uint32_t node, before;
  bool same; // true: it computes other rows of the same sum; false: it adds further terms
};
struct tfc_plan_variable { // a variable that occupies memory on its device for the whole session
  uint32_t node;           // VariableV2 or VarHandleOp
  uint16_t device;
  uint64_t bytes;
};
// In place of a device: the host's memory, if devices have memory of their own (for feeds, shapes).
enum { TFC_PLAN_HOST = UINT16_MAX };
struct tfc_plan_info {
  const struct tfc_plan_op *ops; // the operations that run (not the elided nodes), in order of start
  uint32_t op_count;
  const struct tfc_plan_edge *edges;
  uint32_t edge_count;
  const struct tfc_plan_variable *variables;
  uint32_t variable_count;
  const struct tfc_plan_transfer *transfers;
  uint32_t transfer_count;
  const uint32_t *runs_in; // [node]: the node of the operation into which this node is fused; usually the node itself
  const struct tfc_plan_continued *continued;
  uint32_t continued_count;
  const struct tfc_plan_shared *shared;
  uint32_t shared_count;
  const uint64_t *peak_bytes; // [device] bytes of the device's arena and variables
  uint32_t device_count;
  bool is_static;
};
const struct tfc_plan_info *tfc_plan_info(const struct tfc_plan *plan); // exists as long as the plan
// Returns the node of the operation that a node is fused into, also through several fusions; otherwise TFC_NONE.
uint32_t tfc_plan_done_by(const struct tfc_plan_info *info, uint32_t node);
// Operations that a device runs on the host because it has no kernel for them, and operations that a library declined,
// so that a simpler kernel of the device runs them; with the reason (which exists as long as the plan). Operations in
// called functions are not listed.
struct tfc_plan_fallback {
  uint32_t node;
  uint16_t device;
  bool on_device; // by a plainer kernel
  const char *reason;
};
// Returns their number; the first `capacity` of them are written to `out` (NULL with 0).
uint32_t tfc_plan_fallbacks(const struct tfc_plan *plan, struct tfc_plan_fallback *out, uint32_t capacity);
bool tfc_plan_in_lanes(const struct tfc_plan *plan); // the last step ran operations side by side
// the last step ran in an order that was made from measured times
bool tfc_plan_in_another_order(const struct tfc_plan *plan);
// from the first op's start to the last op's end, over all devices
double tfc_plan_last_step_us(const struct tfc_plan *plan);

// Variables. A snapshot copies every variable and generator; restoring it sets them back, so that measuring has no side
// effects.
struct tfc_snapshot;
TFC_MUST_USE tfc_status tfc_session_snapshot(struct tfc_session *session, struct tfc_snapshot **out);
TFC_MUST_USE tfc_status tfc_session_restore(struct tfc_session *session, const struct tfc_snapshot *snapshot);
void tfc_snapshot_free(struct tfc_snapshot *snapshot);
TFC_MUST_USE tfc_status tfc_session_get_variable(struct tfc_session *session, tfc_str name, struct tfc_tensor *out);
TFC_MUST_USE tfc_status tfc_session_set_variable(struct tfc_session *session, tfc_str name,
                                                 const struct tfc_tensor *value);
uint64_t tfc_session_variable_bytes(const struct tfc_session *session, uint16_t device);

#endif
