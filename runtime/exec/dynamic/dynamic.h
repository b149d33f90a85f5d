// The dynamic path: graphs with frames, queues and function calls run in ready order.
//
// Nodes become an array with their edges; static frames (one per loop nest) say how much an iteration holds. One
// thread, the caller's, owns all the state of a run, so that nothing of it is locked; kernels run on it when the plan
// has one device, else on the devices' threads, and come back through a completion list. Kernels that wait for the
// outside (queues) come back through the same list from any thread.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_DYNAMIC_H
#define TFC_RUNTIME_EXEC_DYNAMIC_DYNAMIC_H

#include "runtime/exec/plan/plan_internal.h"

enum { TFC_ON_HOST = UINT16_MAX }; // location of a value in host memory

typedef enum tfc_dnode_kind {
  TFC_DNODE_OP,     // a kernel
  TFC_DNODE_PASS,   // output 0 is input 0: Identity, LoopCond, NextIteration, Enter, Exit
  TFC_DNODE_SPREAD, // output i is input i: IdentityN
  TFC_DNODE_NONE,   // NoOp
  TFC_DNODE_CONST,
  TFC_DNODE_VARIABLE, // a reference
  TFC_DNODE_HANDLE,
  TFC_DNODE_SWITCH,
  TFC_DNODE_MERGE,
  TFC_DNODE_FEED,
  TFC_DNODE_FETCH,
  TFC_DNODE_LOOP, // a frame that runs iteration by iteration
} tfc_dnode_kind;

// When a node that is ready runs, in the outermost frame.
typedef enum tfc_dturn {
  TFC_TURN_ANY,
  TFC_TURN_UPDATE, // when nothing of the first kind is ready
  TFC_TURN_LAST,   // when nothing else is
} tfc_dturn;

struct tfc_dedge {
  uint32_t to;    // dnode
  int32_t output; // TFC_CONTROL: control
  uint32_t slot;  // of the consumer's inputs
  uint32_t value; // of an iteration's values: that input
  bool last;      // of this output
};
struct tfc_dnode {
  tfc_dnode_kind kind;
  uint32_t node; // of the graph; fetches and feeds: index
  const struct tfc_op_def *def;
  uint16_t device;
  uint32_t kernel;      // index in the device's prepared segment
  uint32_t input_begin; // into an iteration's values
  uint32_t moves;       // into the plan's: its inputs
  uint32_t local;       // into an iteration's counts
  uint32_t input_count, control_count, output_count;
  uint32_t edge_begin, edge_end; // sorted by output
  uint32_t frame;
  uint32_t enters;  // the frame that an Enter leads into
  uint32_t ordered; // 1 + its number among those of its frame that run in the order of iterations (generators), or 0
  bool is_constant; // Enter: the value is the same in every iteration
  tfc_dturn turn;
  bool is_async, is_trigger, is_exit;
  bool tells_dead;           // runs with dead inputs too, to tell another task
  bool wants_index;          // Merge: somebody reads its second output
  bool keeps_reference;      // a pass that hands a reference on
  uint32_t reference_inputs; // bits of inputs that are taken by reference
  uint32_t reusable_inputs;  // bits of inputs that output 0 may be computed in
  uint32_t kept_inputs;      // in a frame with a loop: bits of inputs that are the same in each iteration
  const struct tfc_tensor *constant;
  struct tfc_variable *variable;
  const struct tfc_tensor *handle;
  void *node_state;
  struct tfc_host_memory host; // which operands are in host memory where the device has its own
  // Runs on the host with host tensors, whatever the device: functions, kernels that wait, host ops of other devices.
  bool direct;
  void *state;
  void (*release)(void *state);
};
struct tfc_dloop {        // dnodes in order
  struct tfc_dnode start; // what begins it on the ready list
  uint32_t *before, *body, *leaving;
  uint32_t before_count, body_count, leaving_count;
  uint32_t condition; // dnode: a Switch by it
};
struct tfc_dframe { // static
  uint32_t parent;
  tfc_str name;
  uint32_t node_count, value_count; // of one iteration
  uint32_t enter_count, ordered_count;
  uint32_t parallel;      // iterations at once
  uint32_t ring_mask;     // a power of two beyond `parallel`, less one
  uint32_t *initial;      // [node_count] pending counts
  struct tfc_dloop *loop; // or NULL: it runs in ready order
};
struct tfc_dynamic {
  struct tfc_dnode *nodes;
  uint32_t node_count;
  struct tfc_dedge *edges;
  uint32_t edge_count;
  struct tfc_dframe *frames; // 0 is the root
  uint32_t frame_count;
  uint32_t *roots; // nodes that wait for nothing
  uint32_t root_count;
  struct tfc_segment *segments;   // [devices]
  struct tfc_prepared **prepared; // [devices]
  uint32_t *moves;                // by input: its first row among the plan's transfers, or TFC_NONE32; NULL: none move
  bool inline_only;               // one device: kernels run on the caller's thread
  uint32_t most_outputs;
};

// By node: the product whose sum with something this addition is, and whose work it does (TFC_NONE32: none). In
// `arena`.
TFC_MUST_USE tfc_status tfc_dynamic_find_sums(const struct tfc_build *b, const struct tfc_session *session,
                                              struct tfc_arena *arena, uint32_t **out);
// What may move between devices: info.transfers, and `moves`.
TFC_MUST_USE tfc_status tfc_dynamic_find_transfers(const struct tfc_build *b, struct tfc_plan *plan);
// The row of a value that is there and that a node wants elsewhere, as input `slot`; TFC_COPY_UNTRACED: it has none.
uint32_t tfc_dynamic_transfer(const struct tfc_plan *plan, const struct tfc_dnode *n, uint32_t slot, uint16_t from);
// Sets the turns of nodes. after [nodes]: the dnode that one has to wait for although it reads nothing of it, or
// TFC_NONE32. Edges in any order; sources: the dnodes that they leave.
TFC_MUST_USE tfc_status tfc_dynamic_find_late(const struct tfc_build *b, struct tfc_dynamic *d,
                                              const struct tfc_dedge *edges, const uint32_t *sources,
                                              uint32_t edge_count, uint32_t *after);
// Lets pushes onto stacks keep shapes where nobody reads more.
TFC_MUST_USE tfc_status tfc_dynamic_find_unread(struct tfc_dynamic *d, const struct tfc_graph *g,
                                                const struct tfc_session *session);
// The same for lists that a function's body pushes to.
void tfc_dynamic_find_unread_lists(struct tfc_dynamic *d, const struct tfc_graph *g, const struct tfc_session *session);
// Sets the loops of frames that run iteration by iteration. In `arena`.
TFC_MUST_USE tfc_status tfc_dynamic_find_loops(struct tfc_dynamic *d, struct tfc_arena *arena);
// Instead of AddV2 and of AddN. Inputs: what is added to, A, B; their node is the product's.
extern const struct tfc_op_def tfc_add_product_def, tfc_add_n_product_def;

// Runs a function of the library: env->call. Inputs that have a buffer are taken over, and left without.
TFC_MUST_USE tfc_status tfc_dynamic_call(struct tfc_kernel_env *env, const struct tfc_func_attr *func,
                                         const struct tfc_tensor *inputs, uint32_t input_count,
                                         struct tfc_tensor *outputs, uint32_t output_count);
// Runs inside of another run: its step's resources, cancellation and trace.
struct tfc_dynamic_parent {
  struct tfc_step *step;
  int64_t deadline; // CLOCK_MONOTONIC_RAW ns, 0: none
  const _Atomic bool *cancel;
  void *run; // that the call is in
};
TFC_MUST_USE tfc_status tfc_plan_run_inside(struct tfc_plan *plan, const struct tfc_dynamic_parent *parent,
                                            const struct tfc_tensor *feeds, struct tfc_tensor *fetches);

#endif
