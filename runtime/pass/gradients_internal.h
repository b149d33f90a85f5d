// Declarations that the files gradients*.c share.
//
// Frames: frames of the forward graph have the numbers of tfc_frames. The gradient of loop f runs in frame
// `frames.count + f`, and the gradient of nodes outside of loops in the root, 0. `frame_of` has the frame of every node
// of the builder. Code that adds nodes for frame x must end with tfc_gradients_adopt(e, first, x): new nodes without a
// frame are put there, and their inputs from forward loops are replaced by values from stacks.
#ifndef TFC_RUNTIME_PASS_GRADIENTS_INTERNAL_H
#define TFC_RUNTIME_PASS_GRADIENTS_INTERNAL_H

#include "runtime/base/array.h"
#include "runtime/ops/gradient.h"
#include "runtime/pass/frames.h"
#include "runtime/pass/pass.h"

struct tfc_grad { // a dense gradient or, if indices is valid, rows
  struct tfc_output values, indices, dense_shape;
};
struct tfc_grad_list {
  struct tfc_grad *data;
  size_t count, capacity;
};
struct tfc_grad_loop { // the gradient of a forward frame; the record is made when the frame is visited
  bool made;
  uint32_t exits_left; // Exits between xs and ys that have not been visited yet
  uint32_t count_add, count_next, forward_sync;
  struct tfc_output count_exit;
  tfc_str name; // of the gradient's frame
  uint32_t pivot, condition, backward_next, backward_sync, over;
  uint32_t waits; // the number of stacks popped by another loop that still have no gradient
  bool keeps;     // this loop, or a loop inside it, pushes onto such stacks
};
struct tfc_grad_stack { // a stack onto which one loop pushes, and from which another, later loop pops
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
  struct tfc_graph *g; // the forward nodes, with the builder's ids
  struct tfc_shapes shapes;
  struct tfc_frames frames;
  struct tfc_grad_loop *loops;  // by forward frame
  TFC_ARRAY(uint32_t) frame_of; // [node] the frame that a node is made in; TFC_NONE: it is not decided yet
  struct tfc_intmap entered;    // (output, frame) → the Enter's output that has this value in the frame
  struct tfc_intmap values;     // (forward output, gradient frame) → its value in that frame
  struct tfc_grad_list *grads;  // by output number
  TFC_ARRAY(struct tfc_grad_stack_use) stack_uses;
  TFC_ARRAY(struct tfc_grad_stack) stacks; // between xs and ys
  bool *between, *stop;
  uint32_t *pending;
  char scope[32];               // "gradients", "gradients_1", ...
  struct tfc_grad_queue *queue; // of the current frame
};

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

static inline const struct tfc_guards *tfc_grad_guards(const struct tfc_gradients *e, uint32_t id) { // for a node
  return &e->frames.guards[e->g->output_total + id];
}

// --- gradients.c ---------------------------------------------------------------------------------------------------
// Processes the queue; new nodes belong to `frame`.
TFC_MUST_USE tfc_status tfc_gradients_drain(struct tfc_gradients *e, uint32_t frame);

// --- gradients_sum.c -----------------------------------------------------------------------------------------------
TFC_MUST_USE tfc_status tfc_gradients_push(struct tfc_gradients *e, struct tfc_output to, struct tfc_grad grad);
// Records that a consumer of this node's inputs is done. Nodes whose consumers are all done are put into the queue.
TFC_MUST_USE tfc_status tfc_gradients_release(struct tfc_gradients *e, uint32_t id);
// Sums the gradients of an output to one, which then is the only one in the list.
TFC_MUST_USE tfc_status tfc_gradients_sum(struct tfc_gradients *e, uint32_t number);
struct tfc_output tfc_gradients_to_dense(struct tfc_gradients *e, const struct tfc_grad *g);

// --- gradients_frames.c --------------------------------------------------------------------------------------------
// Puts a node into a frame.
TFC_MUST_USE tfc_status tfc_gradients_place(struct tfc_gradients *e, uint32_t id, uint32_t frame);
TFC_MUST_USE tfc_status tfc_gradients_adopt(struct tfc_gradients *e, uint32_t first, uint32_t frame);
static inline uint32_t tfc_gradients_frame_of_loop(const struct tfc_gradients *e, uint32_t forward) {
  return forward ? e->frames.count + forward : 0;
}
// Makes an Enter into a forward or gradient frame; `constant`: its value is the same in all iterations (such an Enter
// is made only once).
struct tfc_output tfc_gradients_enter(struct tfc_gradients *e, struct tfc_output o, uint32_t frame, bool constant);
// Makes the next iteration of a loop's gradient start after this node, whether the node is dead or not.
void tfc_gradients_before_next(struct tfc_gradients *e, uint32_t loop, uint32_t id);
// Returns a stack in the gradient of a loop, alive if these branches were taken.
struct tfc_output tfc_gradients_guarded(struct tfc_gradients *e, struct tfc_output stack, uint32_t frame,
                                        const struct tfc_guards *guards);
// In the loop's gradient, pops the values that a stack holds for a forward output.
struct tfc_output tfc_gradients_take_back(struct tfc_gradients *e, struct tfc_output stack, struct tfc_output o,
                                          uint32_t loop, const struct tfc_guards *guards);
// Makes zeros with the shape of a forward tensor (of a resource: of its content), for the gradient in `frame`.
struct tfc_output tfc_gradients_zeros(struct tfc_gradients *e, struct tfc_output o, tfc_dtype type, uint32_t frame);
// Returns the shape of a forward tensor (for a resource, of its content), as a vector.
struct tfc_output tfc_gradients_shape(struct tfc_gradients *e, struct tfc_output o);
// Makes a gradient of rows that has no row, for such a tensor.
struct tfc_output tfc_gradients_zero_rows(struct tfc_gradients *e, struct tfc_output o, tfc_dtype type);

// --- gradients_branch.c --------------------------------------------------------------------------------------------
// These two build the gradient of a Merge that ends branches, and of a Switch that begins them.
TFC_MUST_USE tfc_status tfc_gradients_of_merge(struct tfc_gradients *e, uint32_t id, uint32_t frame);
TFC_MUST_USE tfc_status tfc_gradients_of_switch(struct tfc_gradients *e, uint32_t id, uint32_t frame);
// Adds the gradient that a consumer inside the branches `here` gives to its input `to`. If `to` is outside of some of
// these branches, its gradient is zero when they are not taken.
TFC_MUST_USE tfc_status tfc_gradients_push_from(struct tfc_gradients *e, const struct tfc_guards *here,
                                                struct tfc_output to, struct tfc_grad grad, uint32_t frame);

// --- gradients_loop.c ----------------------------------------------------------------------------------------------
// Called when all Exits have been visited: builds the loop's gradient, in `frame`.
TFC_MUST_USE tfc_status tfc_gradients_of_loop(struct tfc_gradients *e, uint32_t loop, uint32_t frame);

// --- gradients_stacks.c --------------------------------------------------------------------------------------------
// Finds all pushes and pops of the graph.
TFC_MUST_USE tfc_status tfc_gradients_find_stacks(struct tfc_gradients *e);
// Pairs pushes and pops between xs and ys. UNIMPLEMENTED: they do not form pairs.
TFC_MUST_USE tfc_status tfc_gradients_pair_stacks(struct tfc_gradients *e);
TFC_MUST_USE tfc_status tfc_gradients_of_pop(struct tfc_gradients *e, uint32_t id, uint32_t frame);
TFC_MUST_USE tfc_status tfc_gradients_of_push(struct tfc_gradients *e, uint32_t id);
// Whether values that this loop, or one inside it, pushed have a gradient.
bool tfc_gradients_came_by_stack(const struct tfc_gradients *e, uint32_t loop);
// Called when a loop's gradient begins: queues its pushes, and the loops inside it that are between xs and ys only
// because of pushes.
TFC_MUST_USE tfc_status tfc_gradients_begin_pushed(struct tfc_gradients *e, uint32_t loop, uint32_t frame);
// Called when a loop's gradient is built: it wakes loops that waited for it.
TFC_MUST_USE tfc_status tfc_gradients_end_popped(struct tfc_gradients *e, uint32_t loop);

#endif
