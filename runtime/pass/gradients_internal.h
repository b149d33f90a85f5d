// Shared by gradients*.c.
//
// Frames: those of the forward graph have the numbers of tfc_frames; the gradient of loop f runs in the frame
// `frames.count + f`, and the gradient of what is in no loop in the root, 0. Every node of the builder has its frame in
// `frame_of`. Whoever adds nodes for frame x ends with tfc_gradients_adopt(e, first, x): new nodes that have none yet
// are put there, and their inputs from forward loops are replaced by what stacks kept of them.
#ifndef TFC_RUNTIME_PASS_GRADIENTS_INTERNAL_H
#define TFC_RUNTIME_PASS_GRADIENTS_INTERNAL_H

#include "runtime/base/array.h"
#include "runtime/ops/gradient.h"
#include "runtime/pass/frames.h"
#include "runtime/pass/pass.h"

struct tfc_grad { // dense, or rows where indices are valid
  struct tfc_output values, indices, dense_shape;
};
struct tfc_grad_list {
  struct tfc_grad *data;
  size_t count, capacity;
};
struct tfc_grad_loop { // of a forward frame, made when its gradient is
  bool made;
  uint32_t exits_left; // those between xs and ys that have not been visited
  uint32_t count_add, count_next, forward_sync;
  struct tfc_output count_exit;
  tfc_str name; // of the gradient's frame
  uint32_t pivot, condition, backward_next, backward_sync, over;
  uint32_t waits; // stacks that another loop pops, and whose gradients are not there yet
  bool keeps;     // pushes onto such stacks, itself or a loop in it
};
struct tfc_grad_stack { // what a loop pushes and another, later one pops
  uint32_t push, pop;
  uint32_t from, to;          // the outermost loops of the two
  struct tfc_output gradient; // a stack of the gradients of what was popped
};
struct tfc_grad_stack_use {
  uint32_t stack, node;
  bool pops;
};

struct tfc_grad_queue {
  TFC_ARRAY(uint32_t) ids;
};

struct tfc_gradients {
  struct tfc_builder *b;
  struct tfc_graph *g; // the forward nodes; ids are those of the builder
  struct tfc_shapes shapes;
  struct tfc_frames frames;
  struct tfc_grad_loop *loops; // by forward frame
  TFC_ARRAY(uint32_t) frame_of;
  struct tfc_intmap entered;   // output, frame → what an Enter brings there
  struct tfc_intmap values;    // forward output, gradient frame → its value there
  struct tfc_grad_list *grads; // by output number
  TFC_ARRAY(struct tfc_grad_stack_use) stack_uses;
  TFC_ARRAY(struct tfc_grad_stack) stacks; // those on the way
  bool *between, *stop;
  uint32_t *pending;
  char scope[32];               // "gradients", "gradients_1", ...
  struct tfc_grad_queue *queue; // of the frame at work
};

enum { TFC_FRAME_UNSET = UINT32_MAX };

static inline tfc_status tfc_gradients_no_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: gradients");
}
static inline bool tfc_gradients_is_identity(const struct tfc_node *n) {
  return tfc_node_role(n) == TFC_ROLE_IDENTITY || tfc_node_role(n) == TFC_ROLE_REF_IDENTITY;
}
static inline struct tfc_grad tfc_grad_dense(struct tfc_output o) {
  return (struct tfc_grad){o, TFC_NO_OUTPUT, TFC_NO_OUTPUT};
}
static inline bool tfc_grad_is_rows(const struct tfc_grad *g) {
  return tfc_output_valid(g->indices);
}
static inline uint32_t tfc_grad_number(const struct tfc_gradients *e, struct tfc_output o) {
  return e->g->nodes[o.node].output_begin + (uint32_t)o.index;
}
static inline const struct tfc_shape *tfc_grad_shape(const struct tfc_gradients *e, struct tfc_output o) { // forward
  return &e->shapes.shapes[tfc_grad_number(e, o)];
}

static inline const struct tfc_guards *tfc_grad_guards(const struct tfc_gradients *e, uint32_t id) { // of a node
  return &e->frames.guards[e->g->output_total + id];
}

// --- gradients.c ---------------------------------------------------------------------------------------------------
// Works off the queue; new nodes belong to `frame`.
TFC_MUST_USE tfc_status tfc_gradients_drain(struct tfc_gradients *e, uint32_t frame);

// --- gradients_sum.c -----------------------------------------------------------------------------------------------
TFC_MUST_USE tfc_status tfc_gradients_push(struct tfc_gradients *e, struct tfc_output to, struct tfc_grad grad);
// One consumer of this node's inputs has been dealt with; nodes without others go to the queue.
TFC_MUST_USE tfc_status tfc_gradients_release(struct tfc_gradients *e, uint32_t id);
// One gradient instead of several; leaves it in the list.
TFC_MUST_USE tfc_status tfc_gradients_sum(struct tfc_gradients *e, uint32_t number);
struct tfc_output tfc_gradients_to_dense(struct tfc_gradients *e, const struct tfc_grad *g);

// --- gradients_frames.c --------------------------------------------------------------------------------------------
// Puts a node into a frame.
TFC_MUST_USE tfc_status tfc_gradients_place(struct tfc_gradients *e, uint32_t id, uint32_t frame);
TFC_MUST_USE tfc_status tfc_gradients_adopt(struct tfc_gradients *e, uint32_t first, uint32_t frame);
static inline uint32_t tfc_gradients_frame_of_loop(const struct tfc_gradients *e, uint32_t forward) {
  return forward ? e->frames.count + forward : 0;
}
// An Enter into a frame, forward or gradient; `constant`: the same in all iterations (then made once).
struct tfc_output tfc_gradients_enter(struct tfc_gradients *e, struct tfc_output o, uint32_t frame, bool constant);
// The next iteration of a loop's gradient comes after this node, be it alive or dead.
void tfc_gradients_before_next(struct tfc_gradients *e, uint32_t loop, uint32_t id);
// A stack in the gradient of a loop, alive where these branches were taken.
struct tfc_output tfc_gradients_guarded(struct tfc_gradients *e, struct tfc_output stack, uint32_t frame,
                                        const struct tfc_guards *guards);
// What a stack holds for a forward output in its loop, popped in the loop's gradient.
struct tfc_output tfc_gradients_take_back(struct tfc_gradients *e, struct tfc_output stack, struct tfc_output o,
                                          uint32_t loop, const struct tfc_guards *guards);
// Zeros like a forward tensor, for the gradient in `frame`. `zeros_of`: of this type; of a resource, like what it
// holds.
struct tfc_output tfc_gradients_zeros(struct tfc_gradients *e, struct tfc_output o, tfc_dtype type, uint32_t frame);
// Its shape as a vector; of a resource, the shape of what it holds.
struct tfc_output tfc_gradients_shape(struct tfc_gradients *e, struct tfc_output o);
// No rows of such a tensor.
struct tfc_output tfc_gradients_zero_rows(struct tfc_gradients *e, struct tfc_output o, tfc_dtype type);

// --- gradients_branch.c --------------------------------------------------------------------------------------------
// Gradients of a Merge that ends branches and of a Switch that begins them.
TFC_MUST_USE tfc_status tfc_gradients_of_merge(struct tfc_gradients *e, uint32_t id, uint32_t frame);
TFC_MUST_USE tfc_status tfc_gradients_of_switch(struct tfc_gradients *e, uint32_t id, uint32_t frame);
// What one who is in the branches `here` gives for its input `to`: zeros stand for those that `to` is not in.
TFC_MUST_USE tfc_status tfc_gradients_push_from(struct tfc_gradients *e, const struct tfc_guards *here,
                                                struct tfc_output to, struct tfc_grad grad, uint32_t frame);

// --- gradients_loop.c ----------------------------------------------------------------------------------------------
// All its Exits have been visited: the loop's gradient, in `frame`.
TFC_MUST_USE tfc_status tfc_gradients_of_loop(struct tfc_gradients *e, uint32_t loop, uint32_t frame);

// --- gradients_stacks.c --------------------------------------------------------------------------------------------
// All pushes and pops of the graph.
TFC_MUST_USE tfc_status tfc_gradients_find_stacks(struct tfc_gradients *e);
// Pairs those on the way. UNIMPLEMENTED where they are no such pair.
TFC_MUST_USE tfc_status tfc_gradients_pair_stacks(struct tfc_gradients *e);
TFC_MUST_USE tfc_status tfc_gradients_of_pop(struct tfc_gradients *e, uint32_t id, uint32_t frame);
TFC_MUST_USE tfc_status tfc_gradients_of_push(struct tfc_gradients *e, uint32_t id);
// Did a gradient come to what this loop, or one in it, pushed?
bool tfc_gradients_came_by_stack(const struct tfc_gradients *e, uint32_t loop);
// A loop's gradient begins: what it pushed goes to the queue, and loops in it that are on the way by that alone.
TFC_MUST_USE tfc_status tfc_gradients_begin_pushed(struct tfc_gradients *e, uint32_t loop, uint32_t frame);
// A loop's gradient is there: loops that waited for it may go on.
TFC_MUST_USE tfc_status tfc_gradients_end_popped(struct tfc_gradients *e, uint32_t loop);

#endif
