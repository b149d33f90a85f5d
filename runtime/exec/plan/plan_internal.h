// Declarations for all files of this folder: sessions, plans, and the stages that make a static plan.
//
//   build.c     graph → ir        which operations run, values, versions of variables, ordering edges
//   rewrite.c   ir → ir
//   order.c     ir → sequence     the order in which operations start
//   lane_schedule.c times → sequence  the same, and on which of a device's cores
//   adapt.c     times             another way to run the same operations, if times of the first steps show a gain
//   idle.c      sequence          moves weight packing to where a device would wait
//   arrange.c   sequence → items  queues, transfers, clocks, waits and signals
//   memory.c    items → places    the arena of each device
//   lane_steps.c  → lanes         what each operation in lanes waits for
//   segments.c  items → segments  prepared segments, and what is submitted in each step
//   step.c                        runs a step
#ifndef TFC_RUNTIME_EXEC_PLAN_PLAN_INTERNAL_H
#define TFC_RUNTIME_EXEC_PLAN_PLAN_INTERNAL_H

#include <pthread.h>

#include "runtime/base/no_memory.h"
#include "runtime/exec/gate.h"
#include "runtime/exec/groundwork.h"
#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/exec/session.h"
#include "runtime/pass/pass.h"

// --- Session -----------------------------------------------------------------------------------------------------
struct tfc_session_arena { // shared by the static plans of a session, one per device and one for the host
  struct tfc_buffer *buffer;
  uint64_t size;
  uint64_t generation; // increases when the address changes
};

// State of the nodes of a graph: the session's own graph, or a function's body, which has one for the session and one
// for each iterator that calls it.
struct tfc_session_graph {
  const struct tfc_graph *graph;
  uint64_t states;    // the iterator's number; 0: the session's own
  void **node_states; // [node_count], made when a plan needs one
};

struct tfc_cached_plan {
  uint64_t hash;
  void *key;
  size_t key_size;
  struct tfc_plan *plan;
};

struct tfc_timeline { // counts the copies to a device, in steps in ready order
  struct tfc_semaphore *semaphore;
  uint64_t last; // the semaphore's value after the last submitted copy; guarded by tfc_submit_begin's lock
};

// Functions of the session, for code at a lower level than session.c that needs further plans: for functions' bodies,
// for another way to run the same graph, for steps of its own.
struct tfc_planner {
  tfc_status (*create)(struct tfc_session *session, const struct tfc_graph *graph, const struct tfc_run_spec *spec,
                       struct tfc_plan **out); // of the session's graph or a function's body
  void (*free)(struct tfc_plan *plan);
  tfc_status (*run)(struct tfc_session *session, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                    struct tfc_tensor *fetches, const struct tfc_run_options *options);
};

struct tfc_session {
  const struct tfc_graph *graph; // retained
  const struct tfc_planner *planner;
  struct tfc_session_options options;
  struct tfc_device *const *devices;
  uint32_t device_count;
  struct tfc_resources *resources;
  struct tfc_timeline *timelines;   // [device_count]; semaphore NULL: the device has no memory of its own
  struct tfc_session_arena *arenas; // [device_count + 1]
  pthread_mutex_t run_lock;         // a static step holds it while it runs; guards the arenas
  uint32_t dynamic_steps;           // steps in ready order since the last static one; guarded by run_lock
  pthread_mutex_t lock;             // guards the members below
  TFC_ARRAY(struct tfc_session_graph) graphs;
  // The variables that plans of this session use; the session has one reference to each.
  TFC_ARRAY(struct tfc_variable *) variables;
  TFC_ARRAY(struct tfc_cached_plan) cache;
  TFC_ARRAY(struct tfc_plan *) function_plans;
  struct tfc_groundwork *ground; // of the last plan, or NULL
  _Atomic int64_t next_step;
  _Atomic uint32_t next_stream;
  struct tfc_gate gate;
  struct tfc_queue_threads *queue_threads; // or NULL
};
// Finds the session's variable that a VariableV2 or VarHandleOp node names, and creates it if there is none. The
// session owns *out.
TFC_MUST_USE tfc_status tfc_session_variable(struct tfc_session *session, const struct tfc_graph *graph, uint32_t node,
                                             struct tfc_variable **out);
TFC_MUST_USE tfc_status tfc_session_node_state(struct tfc_session *session, const struct tfc_graph *graph,
                                               uint64_t states, uint32_t node,
                                               void **out); // *out NULL: this kind of operation has no state
// Moves a variable's value to a device if it is elsewhere.
TFC_MUST_USE tfc_status tfc_session_move_variable(struct tfc_session *session, struct tfc_variable *v, uint16_t device);

// --- Building ----------------------------------------------------------------------------------------------------
struct tfc_plan_fetch {
  uint32_t value;
  const struct tfc_shape *view;
};
struct tfc_build {
  struct tfc_session *session;
  const struct tfc_graph *graph;
  const struct tfc_run_spec *spec;
  const struct tfc_groundwork *ground;
  struct tfc_plan_fetch *fetches; // [fetch_count], arena of the ir
};
// INVALID_ARGUMENT: a node is placed on no device.
TFC_MUST_USE tfc_status tfc_build_begin(struct tfc_session *session, const struct tfc_graph *graph,
                                        const struct tfc_run_spec *spec, const struct tfc_groundwork *ground,
                                        struct tfc_build *out);
TFC_MUST_USE tfc_status tfc_build_ir(struct tfc_build *b, struct tfc_ir *ir);

// Fills out_sequence with the ids of all operations that are not dead (joints, too), so that each comes after
// everything that it waits for. `sequence`, `order`: as in struct tfc_run_spec.
TFC_MUST_USE tfc_status tfc_order_make(const struct tfc_ir *ir, const struct tfc_run_spec *spec,
                                       uint32_t **out_sequence, uint32_t *out_count);

// The successors of each operation, as CSR; `waiting`: how many operations must come before each one.
struct tfc_order_graph {
  uint32_t *begin, *to;
  uint32_t *waiting;
};
TFC_MUST_USE tfc_status tfc_order_graph_make(const struct tfc_ir *ir, struct tfc_order_graph *out);
void tfc_order_graph_deinit(struct tfc_order_graph *g);
// Moves operations without inputs to a point where their device would wait anyway.
TFC_MUST_USE tfc_status tfc_order_fill_idle(const struct tfc_ir *ir, const struct tfc_order_graph *g,
                                            uint32_t *sequence, uint32_t count);
// *out_us: when the last operation of a sequence ends, if each takes cost_us and every device runs its operations in
// this order. idle (NULL: not needed) [count]: how long the device waits before each; waits (given with `idle`) [ops]:
// whether it waits for another operation.
TFC_MUST_USE tfc_status tfc_order_replay(const struct tfc_ir *ir, const struct tfc_order_graph *g,
                                         const uint32_t *sequence, uint32_t count, double *idle, bool *waits,
                                         double *out_us);
// Makes two other sequences of the same operations and replays the measured times with each: one starts the ready
// operation with the longest remaining path first, the other the ready operation that comes first in the given
// sequence. *out_sequence becomes the one that ends earlier, if it also ends earlier than the given one (then
// *out_better is set to true), else the one by longest paths. The caller frees it.
TFC_MUST_USE tfc_status tfc_order_improve(const struct tfc_ir *ir, const uint32_t *sequence, uint32_t count,
                                          uint32_t **out_sequence, uint32_t *out_count, bool *out_better);

// A schedule of operations side by side on the cores of the only device. Each operation belongs to one lane; other
// lanes may help with it.
struct tfc_lane_schedule {
  uint32_t lanes;
  uint32_t *sequence; // [sequence_count] as tfc_order_make's
  uint32_t sequence_count;
  uint16_t *lane;       // [ops]
  uint32_t *helpers;    // [ops] a bit for each lane that helps with it
  bool *open;           // [ops] other idle lanes may help, too
  double predicted_us;  // time of a step
  double one_by_one_us; // the time for running the operations one after another
};
// Makes the schedule from the times of the operations [ops] in ticks, which were measured while they ran one after
// another, each on all `cores`; wall 0: the operation takes no time.
TFC_MUST_USE tfc_status tfc_lane_schedule_make(const struct tfc_ir *ir, const struct tfc_op_time *times, uint32_t cores,
                                               struct tfc_lane_schedule *out);
void tfc_lane_schedule_deinit(struct tfc_lane_schedule *s);

// The numbers of queues: d for operations of device d, device_count + d for copies to it; in a plan with lanes each
// lane is a queue. The locations of memory: device d, or device_count for the host's memory if devices have memory of
// their own.
struct tfc_item {
  uint32_t op;       // TFC_NONE: a copy
  uint32_t transfer; // the copy's index in transfers; only if `op` is TFC_NONE
  uint16_t queue;
  uint32_t position; // in the order of its queue
  bool signals;
  uint32_t wait_begin, wait_count;
  uint32_t arrival_begin, arrival_count;
};
struct tfc_wait {
  uint16_t queue;
  uint32_t position; // position of the item that must have ended
};
struct tfc_plan_copy { // a value that is moved, or is handed over (item TFC_NONE)
  uint32_t value;
  uint16_t source, target; // locations
  uint32_t item;
};
struct tfc_arrangement {
  struct tfc_item *items;
  uint32_t item_count;
  struct tfc_wait *waits;
  uint32_t *arrivals;
  struct tfc_plan_copy *transfers;
  uint32_t transfer_count;
  uint32_t *first_copy, *next_copy; // [values], [transfers]: for each value, a linked list of its transfers
  uint32_t queue_count;
  uint32_t *clocks;      // [item * queue_count + queue]: how many items of each queue have ended when the item starts
  uint32_t *queue_items; // [queue] number of items
  uint32_t *item_of_op;  // [ops]
};
TFC_MUST_USE tfc_status tfc_arrange(const struct tfc_ir *ir, const uint32_t *sequence, uint32_t count,
                                    const struct tfc_lane_schedule *lanes, // NULL: the plan has no lanes
                                    struct tfc_arena *arena, struct tfc_arrangement *out);
// These return the location of a value's memory, and the location where an operation needs its input `i`.
uint16_t tfc_value_location(const struct tfc_ir *ir, const struct tfc_ir_value *v);
uint16_t tfc_input_location(const struct tfc_ir *ir, const struct tfc_ir_op *op, uint32_t input);
bool tfc_location_on_host(const struct tfc_ir *ir, uint16_t location);
// Finds the copy of a value at a location: its index among transfers, or TFC_NONE if the value needs no copy there.
uint32_t tfc_find_copy(const struct tfc_arrangement *a, const struct tfc_ir *ir, uint32_t value, uint16_t location);

// --- Memory ------------------------------------------------------------------------------------------------------
struct tfc_memory_plan {
  uint64_t *value_offset; // [values] offset in the arena of the value's location; UINT64_MAX: it has no place
  uint64_t *copy_offset;  // [transfers]
  uint64_t *size;         // [device_count + 1] size of each arena
};
TFC_MUST_USE tfc_status tfc_memory_plan_make(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                                             struct tfc_arena *arena, struct tfc_memory_plan *out);

// Makes the lists of what the lanes of the plan's only device run. *out is in `arena`.
TFC_MUST_USE tfc_status tfc_lane_steps_make(const struct tfc_ir *ir, const struct tfc_arrangement *a,
                                            const struct tfc_memory_plan *memory, const struct tfc_lane_schedule *by,
                                            struct tfc_arena *arena, const struct tfc_lanes **out);

// --- Plan --------------------------------------------------------------------------------------------------------
struct tfc_place { // a slot with a place in an arena
  struct tfc_tensor *slot;
  uint64_t offset;
  uint16_t location;
  size_t size;
  tfc_dtype dtype;
  const struct tfc_shape *shape;
};
struct tfc_feed_view { // a slot that gets a feed's tensor in each step
  struct tfc_tensor *slot;
  uint32_t feed;
  const struct tfc_shape *view;
};
struct tfc_submission {
  struct tfc_device *device;
  struct tfc_prepared *prepared; // a segment, or
  struct tfc_copy copy;          // a copy (copy.source set)
  uint32_t point_begin, wait_count, signal_count;
};
struct tfc_point { // where the value of a timepoint comes from
  uint16_t queue;
  uint32_t offset;
};

struct tfc_dynamic;
struct tfc_plan {
  struct tfc_session *session;
  uint32_t users; // steps that run a cached plan; under session->lock
  struct tfc_arena arena;
  struct tfc_ir ir;
  struct tfc_groundwork *ground; // views and folded constants of the ir point into it
  struct tfc_plan_info info;
  struct tfc_dynamic *dynamic;          // NULL: static
  struct tfc_run_spec spec;             // of a static plan: a copy, from which the twin is made
  struct tfc_session_arena *own_arenas; // [device_count + 1] for steps that run side by side; NULL: the session's
                                        // arenas are used
  pthread_mutex_t own_lock;             // with own_arenas: the running step of this plan holds it
  uint32_t stream;                      // with own_arenas: see struct tfc_step
  // static: a plan of the same step in ready order, made when it is first needed; guarded by session->lock
  struct tfc_plan *twin;
  struct tfc_adaptation *adaptation; // static: NULL: it does not adapt. Under session->run_lock
  bool borrows;             // it is the second way of an adapted plan: its ir, feeds and shapes belong to the first one
  const uint32_t *sequence; // static: from tfc_order_make
  uint32_t sequence_count;
  uint64_t *most_bytes; // [devices] the most memory that the second way may need; NULL: the devices' limits
  bool refit;           // the second way was dropped, so the arenas shrink to the size that this plan needs
  const struct tfc_plan_fetch *fetch_values;
  uint32_t *segment_ops;                  // static: operations of the ir, segment by segment
  const struct tfc_output *fetch_outputs; // dynamic: [fetch_count]
  uint16_t function_device;               // the device of a function's plan
  uint64_t function_states;               // whose state its nodes keep
  // The following members are for static plans only.
  struct tfc_place *places;
  uint32_t place_count;
  uint64_t *arena_generation, *arena_size; // [locations]
  struct tfc_feed_view *feed_views;
  uint32_t feed_view_count;
  struct tfc_tensor **unplanned; // slots to release after a step
  uint32_t unplanned_count;
  struct tfc_segment *segments;
  uint32_t segment_count;
  struct tfc_submission *submissions;
  uint32_t submission_count;
  struct tfc_point *points;
  struct tfc_timepoint *timepoints; // [points], set in each step
  uint32_t point_count;
  struct tfc_semaphore **semaphores; // [queues]
  uint64_t *base;                    // [queues] value of each semaphore before the step
  uint32_t *queue_items;
  uint32_t queue_count;
  struct tfc_span *spans; // [devices]
  struct tfc_tensor **fetch_slots;
  uint16_t *fetch_locations;
  const struct tfc_shape **fetch_views; // an entry NULL: the slot's shape
  uint32_t fetch_count, feed_count;
  tfc_dtype *feed_dtypes;
  struct tfc_shape *feed_shapes;
  const struct tfc_output *feeds; // copies in the arena
  struct tfc_resources *step_resources;
  bool uses_step_resources;
  _Atomic double last_step_us;              // several threads may run the plan one after another, and read this
  TFC_ARRAY(struct tfc_buffer *) constants; // constants that were copied to devices with their own memory
};
TFC_MUST_USE tfc_status tfc_plan_make_static(struct tfc_build *b, struct tfc_plan *plan);
TFC_MUST_USE tfc_status tfc_plan_run_static(struct tfc_plan *plan, const struct tfc_tensor *feeds,
                                            struct tfc_tensor *fetches, const struct tfc_run_options *options);
TFC_MUST_USE tfc_status tfc_plan_check_feed(const struct tfc_plan *plan, uint32_t i, const struct tfc_tensor *t);
TFC_MUST_USE tfc_status tfc_plan_check_feeds(const struct tfc_plan *plan, const struct tfc_tensor *feeds);
void tfc_plan_static_deinit(struct tfc_plan *plan);
// Makes the arenas large enough, and sets the addresses of slots with places. Under run_lock, or own_lock for a plan
// with its own arenas.
TFC_MUST_USE tfc_status tfc_plan_settle(struct tfc_plan *plan);
// Take and release a lock of the whole process. Work of several queues that waits for each other is submitted while it
// is held, so that all queues get the work of steps in the same order.
void tfc_submit_begin(void);
void tfc_submit_end(void);
// Call it under run_lock when a step in ready order begins. After some such steps in a row it frees the arenas.
void tfc_session_note_dynamic(struct tfc_session *session);

// Makes a static plan from its ir.
TFC_MUST_USE tfc_status tfc_plan_lay_out(struct tfc_plan *plan, const uint32_t *sequence, uint32_t sequence_count,
                                         const struct tfc_lane_schedule *lanes);
// --- Adapting: operations are timed in the first steps, and then run in the faster way -----------------------------
TFC_MUST_USE tfc_status tfc_plan_adapt_create(struct tfc_plan *plan, const struct tfc_run_spec *spec);
// tfc_plan_adapt_begin returns the plan that the next step runs: `plan`, or its second way. Call both under
// session->run_lock.
struct tfc_plan *tfc_plan_adapt_begin(struct tfc_plan *plan, const struct tfc_run_options *options);
void tfc_plan_adapt_end(struct tfc_plan *plan, struct tfc_plan *used, bool failed);
void tfc_plan_adapt_free(struct tfc_adaptation *adaptation);

TFC_MUST_USE tfc_status tfc_plan_make_dynamic(struct tfc_build *b, struct tfc_plan *plan);
TFC_MUST_USE tfc_status tfc_plan_run_dynamic(struct tfc_plan *plan, const struct tfc_tensor *feeds,
                                             struct tfc_tensor *fetches, const struct tfc_run_options *options);
void tfc_plan_dynamic_deinit(struct tfc_plan *plan);

// Makes the error for a fetch of a variable without a value, worded like an error of the variable's node.
TFC_MUST_USE tfc_status tfc_fetch_error(tfc_status s, const struct tfc_session *session, const struct tfc_graph *g,
                                        struct tfc_output o, const struct tfc_variable *v);

// Whether kernels may use the tile unit, which rounds in another way. Only in plans of one device: devices side by side
// share the unit, and four of them were 1.7 times as slow with it as without.
static inline bool tfc_rounding_welcome(const struct tfc_ir *ir) {
  return ir->all_rewrites && ir->device_count == 1;
}

// Returns the block size for the arenas of a plan with so many operations: about the bytes that they need in all, so
// that large plans get large pages.
static inline size_t tfc_plan_block_size(uint32_t operations) {
  enum { LEAST = 64 << 10, EACH = 512 };
  return (size_t)operations * EACH + LEAST;
}

// Whether a variable's value is in the host's memory, although the variable is on a device with memory of its own.
static inline bool tfc_variable_beside(const struct tfc_device *d, tfc_dtype dtype) {
  return d->info.address_space && (!tfc_dtype_is_plain(dtype) || tfc_host_variable(dtype));
}

#define TFC_PLAN_NO_MEMORY() tfc_status_no_memory("planning a step")

// Whether the node has an input or output of type variant. A list's tensors may come from any device. So on devices
// with memory of their own such nodes run on the host, where the tensors are.
static inline bool tfc_plan_touches_variant(const struct tfc_graph *g, const struct tfc_node *n) {
  bool found = false;
  for (uint32_t k = 0; k < n->input_count; k++) found |= tfc_output_dtype(g, tfc_node_inputs(g, n)[k]) == TFC_VARIANT;
  for (uint32_t k = 0; k < n->output_count; k++) found |= g->output_dtypes[n->output_begin + k] == TFC_VARIANT;
  return found;
}

#endif
