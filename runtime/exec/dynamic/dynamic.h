// The dynamic path: graphs with frames, queues and function calls run in ready order.
//
// Nodes become an array with their edges; a static frame for each loop of the graph has the numbers of nodes and values
// in an iteration. The caller's thread owns all state of a run, so it needs no lock. Kernels run on that thread if the
// plan has one device, else on the devices' threads, and return through a completion list. Kernels that wait for
// something outside of the step (queues) return through the same list from any thread.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_DYNAMIC_H
#define TFC_RUNTIME_EXEC_DYNAMIC_DYNAMIC_H

#include "runtime/exec/plan/build.h"
#include "runtime/exec/plan/plan_internal.h"
#include "runtime/host/chain/chain.h"

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

// When a ready node of the outermost frame runs, relative to other ready nodes.
typedef enum tfc_dturn {
  TFC_TURN_ANY,
  TFC_TURN_UPDATE, // when no TFC_TURN_ANY node is ready
  TFC_TURN_LAST,   // when no other node is ready
} tfc_dturn;

struct tfc_dedge {
  uint32_t to;    // consumer: a dnode
  int32_t output; // TFC_CONTROL: control
  uint32_t slot;  // index among the consumer's inputs
  uint32_t value; // index of that input among an iteration's values
  bool last;      // the last edge of this output
};
struct tfc_dnode {
  tfc_dnode_kind kind;
  uint32_t node; // the graph's node; for fetches and feeds: their index
  const struct tfc_op_def *def;
  uint16_t device;
  uint32_t kernel;      // index in the device's prepared segment
  uint32_t input_begin; // into an iteration's values
  uint32_t moves;       // index of its first input in the plan's `moves`
  uint32_t local;       // index among an iteration's counts
  uint32_t input_count, control_count, output_count;
  uint32_t edge_begin, edge_end;
  uint32_t frame;
  uint32_t enters;  // the frame that an Enter leads into
  uint32_t ordered; // 1 + its index among those of its frame that run in the order of iterations (generators), or 0
  bool is_constant; // Enter: the value is the same in every iteration
  tfc_dturn turn;
  bool is_async, is_trigger, is_exit;
  bool tells_dead;           // _Send: runs also with a dead input, to tell another task that the tensor is dead
  bool wants_index;          // Merge: its second output has a reader
  bool keeps_reference;      // it passes a reference on
  uint32_t reference_inputs; // bits of inputs that are taken by reference
  uint32_t reusable_inputs;  // a bit for each input whose buffer may be used for output 0
  uint32_t kept_inputs;      // in a frame with a loop: a bit for each input that is the same in every iteration
  uint32_t gathers;          // in a loop's body: 1 + the index of the loop's sum to which it adds a product, or 0
  const struct tfc_tensor *constant;
  struct tfc_variable *variable;
  const struct tfc_tensor *handle;
  void *node_state;
  struct tfc_host_memory host; // which operands are in host memory on devices that have memory of their own
  // Runs on the host with host tensors, whatever the device: functions, kernels that wait, host ops of other devices.
  bool direct;
  void *state;
  void (*release)(void *state);
};
// A variable of a loop to which each iteration adds a matrix product and which nothing else in the loop reads, such as
// the gradient of a weight. The products of several iterations may be added together.
struct tfc_dsum {
  uint32_t value; // index among an iteration's values: where the sum is when the loop is left
  bool transpose_a, transpose_b;
};
// A loop that runs iteration by iteration: ordered lists of copies of its nodes. The copies hand their outputs directly
// to the nodes that compute something, past nodes that only pass a value on.
struct tfc_dloop {
  struct tfc_dnode start; // the entry in the ready list that begins the loop
  struct tfc_dnode *before, *body, *leaving;
  uint32_t before_count, body_count, leaving_count;
  uint32_t condition; // dnode: a Switch on the loop's condition
  struct tfc_dsum *sums;
  uint32_t sum_count;
  uint32_t alike; // how many loops of the plan have the same ops, with this one; 0: it may not run beside others
  // What an iteration took side by side with loops like this one, and one after the other: how often that was measured,
  // and the shortest time. Several runs of the plan may write them.
  struct {
    _Atomic uint32_t count;
    _Atomic uint64_t ticks;
  } times[2];
};
struct tfc_dframe { // what is known of a frame before it runs
  uint32_t parent;
  tfc_str name;
  uint32_t node_count, value_count; // of one iteration
  uint32_t enter_count, ordered_count;
  uint32_t parallel;      // how many iterations may run at once
  uint32_t ring_mask;     // size of the ring less one; the size is a power of two above `parallel`
  uint32_t *initial;      // [node_count] pending counts
  struct tfc_dloop *loop; // or NULL: it runs in ready order
};
struct tfc_dynamic {
  struct tfc_dnode *nodes;
  uint32_t node_count;
  struct tfc_dedge *edges;   // behind the graph's edges are those of the nodes of loops
  uint32_t edge_count;       // of the graph
  struct tfc_dframe *frames; // 0 is the root
  uint32_t frame_count;
  uint32_t *roots; // nodes without inputs
  uint32_t root_count;
  struct tfc_segment *segments;   // [devices]
  struct tfc_prepared **prepared; // [devices]
  // [input] its first row among the plan's transfers, or TFC_NONE; NULL: no input changes devices.
  uint32_t *moves;
  bool inline_only; // one device: kernels run on the caller's thread
  uint32_t most_outputs;
};

// Finds the additions that also compute a matrix product, which is one of their summands. *out [nodes]: the product's
// node, or TFC_NONE for all other nodes. In `arena`.
TFC_MUST_USE tfc_status tfc_dynamic_find_sums(const struct tfc_build *b, const struct tfc_session *session,
                                              struct tfc_arena *arena, uint32_t **out);
// Finds element-wise operations that run as one chain. out [nodes]: what a node runs in the place of its operation, or
// NULL; runs_in [nodes]: for the other operations of the chain, the node that runs it. elided [nodes]: the node only
// passes its input on.
struct tfc_dynamic_chain;
TFC_MUST_USE tfc_status tfc_dynamic_find_chains(const struct tfc_build *b, const struct tfc_session *session,
                                                const uint32_t *product, const bool *elided, uint32_t *runs_in,
                                                struct tfc_arena *arena, struct tfc_dynamic_chain **out);
// The op of a node that runs a chain; its kernel's state is the chain.
extern const struct tfc_op_def tfc_dynamic_chain_def;
// Returns how many inputs a node that runs a chain has. *out_reusable: a bit for each input in whose memory the result
// may be computed.
uint32_t tfc_dynamic_chain_inputs(const struct tfc_dynamic_chain *c, uint32_t *out_reusable);
// Returns input k of a node that runs a chain.
struct tfc_output tfc_dynamic_chain_input(const struct tfc_dynamic_chain *c, uint32_t k);
// Returns the node with the product whose operation runs the chain (*out_finish) on its result, and whose inputs come
// first; TFC_NONE: the chain is an operation of its own.
uint32_t tfc_dynamic_chain_product(const struct tfc_dynamic_chain *c, const struct tfc_chain_finish **out_finish);
// Finds the tensors that may move between devices; fills in info.transfers and `moves`.
TFC_MUST_USE tfc_status tfc_dynamic_find_transfers(const struct tfc_build *b, struct tfc_plan *plan);
// Returns the transfer of a value that a node needs on another device as input `slot`; TFC_COPY_UNTRACED: there is
// none.
uint32_t tfc_dynamic_transfer(const struct tfc_plan *plan, const struct tfc_dnode *n, uint32_t slot, uint16_t from);
// Sets the turns of nodes. after [nodes]: a dnode that must run before the node although no edge says so, or
// TFC_NONE. Edges may be in any order; sources [edges]: the dnode that each edge leaves.
TFC_MUST_USE tfc_status tfc_dynamic_find_late(const struct tfc_build *b, struct tfc_dynamic *d,
                                              const struct tfc_dedge *edges, const uint32_t *sources,
                                              uint32_t edge_count, uint32_t *after);
// Finds stacks from which no node reads more than the shapes of values, so that pushes keep only shapes.
TFC_MUST_USE tfc_status tfc_dynamic_find_unread(struct tfc_dynamic *d, const struct tfc_graph *g,
                                                const struct tfc_session *session);
// Does the same for lists to which a function's body pushes.
void tfc_dynamic_find_unread_lists(struct tfc_dynamic *d, const struct tfc_graph *g, const struct tfc_session *session);
// Finds the loops whose frames run iteration by iteration. In `arena`.
TFC_MUST_USE tfc_status tfc_dynamic_find_loops(struct tfc_dynamic *d, struct tfc_arena *arena);
// Finds the sums of loops (struct tfc_dsum), once loops are found. In `arena`.
TFC_MUST_USE tfc_status tfc_dynamic_find_loop_sums(struct tfc_dynamic *d, const struct tfc_graph *g,
                                                   struct tfc_arena *arena);
// Ops that replace an AddV2 or AddN of a matrix product and another tensor. Inputs: the other summand, A, B; their
// kernels take more pairs of A and B, whose products are added one after the other, if all have the sum's shape.
extern const struct tfc_op_def tfc_add_product_def, tfc_add_n_product_def;

// Makes a plan in ready order of `b`, runs a step of it, and frees what it has.
TFC_MUST_USE tfc_status tfc_plan_make_dynamic(struct tfc_build *b, struct tfc_plan *plan);
TFC_MUST_USE tfc_status tfc_plan_run_dynamic(struct tfc_plan *plan, const struct tfc_tensor *feeds,
                                             struct tfc_tensor *fetches, const struct tfc_run_options *options);
void tfc_plan_dynamic_deinit(struct tfc_plan *plan);

// Runs a function of the library: env->call. Takes over inputs that have a buffer.
TFC_MUST_USE tfc_status tfc_dynamic_call(struct tfc_kernel_env *env, const struct tfc_func_attr *func,
                                         const struct tfc_tensor *inputs, uint32_t input_count,
                                         struct tfc_tensor *outputs, uint32_t output_count);
// What a run inside of another run takes from that run.
struct tfc_dynamic_parent {
  struct tfc_step *step;
  int64_t deadline; // CLOCK_MONOTONIC_RAW ns, 0: none
  const _Atomic bool *cancel;
  void *run;       // the run whose kernel makes the call
  uint64_t states; // whose state nodes keep (struct tfc_kernel_env)
};
TFC_MUST_USE tfc_status tfc_plan_run_inside(struct tfc_plan *plan, const struct tfc_dynamic_parent *parent,
                                            const struct tfc_tensor *feeds, struct tfc_tensor *fetches);

#endif
