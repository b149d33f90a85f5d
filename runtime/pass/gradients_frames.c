// Brings values from one frame to another. The gradient's loop gets a value of the forward loop in the first of these
// ways that applies: if the forward loop only entered the value, it is the value outside; if the value is a constant,
// it is a copy; otherwise the value is pushed onto a stack in every forward iteration and popped in the gradient's
// loop, which runs backwards. The counters of the two loops keep pushes and pops in the order of iterations: the next
// count waits for them, and they wait for the current one. Values of branches are pushed if the branch is taken, and
// popped if its predicate (kept on a stack too) says so.
#include "runtime/pass/gradients_internal.h"

#include <stdlib.h>

static uint32_t parent_of(const struct tfc_gradients *e, uint32_t frame) {
  if (frame < e->frames.count) return e->frames.frames[frame].parent;
  return tfc_gradients_frame_of_loop(e, e->frames.frames[frame - e->frames.count].parent);
}

tfc_status tfc_gradients_place(struct tfc_gradients *e, uint32_t id, uint32_t frame) {
  size_t before = e->frame_of.count;
  if (id == TFC_NONE) return tfc_status_clone(tfc_builder_status(e->b));
  if (id >= before) {
    if (!tfc_array_resize(&e->frame_of, (size_t)id + 1)) return tfc_status_no_memory("gradients");
    for (size_t i = before; i <= id; i++) e->frame_of.data[i] = TFC_NONE;
  }
  e->frame_of.data[id] = frame;
  return NULL;
}

static uint32_t frame_of(const struct tfc_gradients *e, uint32_t id) {
  return id < e->frame_of.count ? e->frame_of.data[id] : TFC_NONE;
}

// Adds one node to a frame; the builder keeps a failure.
static struct tfc_output add_in(struct tfc_gradients *e, uint32_t frame, const char *op,
                                const struct tfc_output *inputs, uint32_t count, uint32_t control,
                                const struct tfc_attr *attrs, uint32_t attr_count, tfc_str device) {
  uint32_t id = tfc_builder_add(e->b, &(struct tfc_node_spec){.op = op,
                                                              .inputs = inputs,
                                                              .input_count = count,
                                                              .controls = &control,
                                                              .control_count = control != TFC_NONE,
                                                              .attrs = attrs,
                                                              .attr_count = attr_count,
                                                              .device = device});
  tfc_status s = tfc_gradients_place(e, id, frame);
  if (s && !tfc_builder_status(e->b))
    tfc_builder_fail(e->b, s);
  else
    tfc_status_free(s);
  return (struct tfc_output){id, 0};
}

static bool make_key(struct tfc_output o, uint32_t frame, uint64_t *key) {
  if (o.index < 0 || o.index >= 4096 || frame >= 1u << 20) return false;
  *key = (uint64_t)o.node << 32 | (uint64_t)o.index << 20 | frame;
  return true;
}
static struct tfc_output recall(const struct tfc_intmap *map, struct tfc_output o, uint32_t frame) {
  uint64_t key;
  const uint64_t *found = make_key(o, frame, &key) ? tfc_intmap_get(map, key) : NULL;
  if (!found) return TFC_NO_OUTPUT;
  return (struct tfc_output){(uint32_t)(*found >> 32), (int32_t)(*found & UINT32_MAX)};
}
static struct tfc_output remember(struct tfc_intmap *map, struct tfc_output o, uint32_t frame,
                                  struct tfc_output value) {
  uint64_t key;
  // if there is no memory for the key, the node is made a second time, which does no harm
  if (tfc_output_valid(value) && make_key(o, frame, &key))
    tfc_intmap_put(map, key, (uint64_t)value.node << 32 | (uint32_t)value.index, NULL);
  return value;
}

struct tfc_output tfc_gradients_enter(struct tfc_gradients *e, struct tfc_output o, uint32_t frame, bool constant) {
  if (!tfc_output_valid(o) || frame_of(e, o.node) == frame) return o;
  if (frame == 0) {
    if (!tfc_builder_status(e->b))
      tfc_builder_fail(e->b, tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s' is used outside of its loop",
                                             TFC_STR_ARG(tfc_builder_node(e->b, o.node)->name)));
    return TFC_NO_OUTPUT;
  }
  struct tfc_output known = constant ? recall(&e->entered, o, frame) : TFC_NO_OUTPUT;
  if (tfc_output_valid(known)) return known;
  bool forward = frame < e->frames.count;
  const struct tfc_frame *f = &e->frames.frames[forward ? frame : frame - e->frames.count];
  struct tfc_output around = tfc_gradients_enter(e, o, parent_of(e, frame), true);
  if (!tfc_output_valid(around)) return TFC_NO_OUTPUT;
  struct tfc_attr attrs[] = {tfc_attr_string("frame_name", forward ? f->name : e->loops[frame - e->frames.count].name),
                             tfc_attr_bool("is_constant", constant), tfc_attr_int("parallel_iterations", f->parallel)};
  struct tfc_output made = add_in(e, frame, "Enter", &around, 1, TFC_NONE, attrs, 3, (tfc_str){0});
  return constant ? remember(&e->entered, o, frame, made) : made;
}

// --- Forward values in the gradient's loop -------------------------------------------------------------------------
// Finds the guards of a forward output. Nodes that were added to the forward loop have the guards of their inputs.
static tfc_status guards_of(struct tfc_gradients *e, struct tfc_output o, struct tfc_guards *out) {
  if (o.node < e->g->node_count) {
    *out = e->frames.guards[tfc_grad_number(e, o)];
    return NULL;
  }
  *out = (struct tfc_guards){0};
  const struct tfc_op_def *def = tfc_builder_node(e->b, o.node)->def;
  if (def && def->flags & TFC_OP_EXIT) {
    *out = e->frames.frames[frame_of(e, tfc_builder_input(e->b, o.node, 0).node)].around;
    return NULL;
  }
  uint32_t inputs = tfc_builder_node(e->b, o.node)->input_count;
  for (uint32_t k = 0; k < inputs; k++) {
    struct tfc_guards more, both;
    TFC_RETURN_IF_ERROR(guards_of(e, tfc_builder_input(e->b, o.node, k), &more));
    if (!more.count) continue;
    struct tfc_guard *items = TFC_ARENA_ARRAY(&e->frames.arena, struct tfc_guard, (size_t)out->count + more.count);
    if (!items) return tfc_status_no_memory("gradients");
    if (out->count) memcpy(items, out->items, out->count * sizeof *items);
    memcpy(items + out->count, more.items, more.count * sizeof *items);
    both = (struct tfc_guards){items, out->count + more.count};
    *out = both;
  }
  return NULL;
}

static bool equal(const struct tfc_guard *a, const struct tfc_guard *b) {
  return a->pred.node == b->pred.node && a->pred.index == b->pred.index && a->side == b->side;
}

// Whether this guard is not needed, because it occurs twice or follows from the predicate of another guard.
static bool is_implied(struct tfc_gradients *e, const struct tfc_guards *set, uint32_t i) {
  for (uint32_t k = 0; k < set->count; k++) {
    if (k < i && equal(&set->items[k], &set->items[i])) return true;
    const struct tfc_guards *outer = &e->frames.guards[tfc_grad_number(e, set->items[k].pred)];
    for (uint32_t j = 0; j < outer->count; j++)
      if (equal(&outer->items[j], &set->items[i])) return true;
  }
  return false;
}

// Returns the Enter through which this unchanged value comes into its loop, or TFC_NONE.
static uint32_t constant_enter(const struct tfc_gradients *e, struct tfc_output o) {
  while (o.node < e->g->node_count) {
    const struct tfc_node *n = &e->g->nodes[o.node];
    uint32_t flags = n->def ? n->def->flags : 0;
    if (flags & TFC_OP_ENTER) return tfc_node_attr_bool(e->g, n, "is_constant", false) ? o.node : TFC_NONE;
    bool passes = tfc_gradients_is_identity(n) || (flags & TFC_OP_SWITCH && !tfc_frames_is_loop_switch(e->g, n));
    if (!passes) return TFC_NONE;
    o = tfc_node_inputs(e->g, n)[0];
  }
  return TFC_NONE;
}

static struct tfc_output value_in(struct tfc_gradients *e, struct tfc_output o, uint32_t frame);

static struct tfc_output fail(struct tfc_gradients *e, tfc_status s) {
  if (s) tfc_builder_fail(e->b, s);
  return TFC_NO_OUTPUT;
}

// Makes a stack with all values that a forward output has in its loop.
static struct tfc_output keep(struct tfc_gradients *e, struct tfc_output o, uint32_t loop,
                              const struct tfc_guards *guards) {
  struct tfc_grad_loop *l = &e->loops[loop];
  tfc_str device = tfc_builder_node(e->b, o.node)->device;
  struct tfc_attr type = tfc_attr_type("elem_type", tfc_dtype_base(tfc_builder_dtype(e->b, o)));
  struct tfc_output most = tfc_add_i32(e->b, -1);
  tfc_status s = tfc_gradients_place(e, most.node, 0);
  if (s) return fail(e, s);
  struct tfc_output stack = add_in(e, 0, "StackV2", &most, 1, TFC_NONE, &type, 1, device);
  struct tfc_output inputs[] = {tfc_gradients_enter(e, stack, loop, true), o};
  struct tfc_output push = add_in(e, loop, "StackPushV2", inputs, 2, l->count_add, NULL, 0, device);
  if (!tfc_output_valid(push)) return TFC_NO_OUTPUT;
  if (!guards->count) {
    tfc_builder_add_control(e->b, l->count_next, push.node);
  } else if (l->forward_sync == TFC_NONE) { // a node that runs even if the push is dead
    l->forward_sync = add_in(e, loop, "ControlTrigger", NULL, 0, push.node, NULL, 0, (tfc_str){0}).node;
    tfc_builder_add_control(e->b, l->count_next, l->forward_sync);
  } else {
    tfc_builder_add_control(e->b, l->forward_sync, push.node);
  }
  return stack;
}

void tfc_gradients_before_next(struct tfc_gradients *e, uint32_t loop, uint32_t id) {
  struct tfc_grad_loop *l = &e->loops[loop];
  if (l->backward_sync != TFC_NONE) {
    tfc_builder_add_control(e->b, l->backward_sync, id);
    return;
  }
  uint32_t frame = tfc_gradients_frame_of_loop(e, loop);
  l->backward_sync = add_in(e, frame, "ControlTrigger", NULL, 0, id, NULL, 0, (tfc_str){0}).node;
  if (l->backward_sync != TFC_NONE) tfc_builder_add_control(e->b, l->backward_next, l->backward_sync);
}

struct tfc_output tfc_gradients_guarded(struct tfc_gradients *e, struct tfc_output stack, uint32_t frame,
                                        const struct tfc_guards *guards) {
  struct tfc_output handle = tfc_gradients_enter(e, stack, frame, true);
  for (uint32_t i = 0; i < guards->count; i++) {
    if (is_implied(e, guards, i)) continue;
    struct tfc_output pair[] = {handle, value_in(e, guards->items[i].pred, frame)};
    if (!tfc_output_valid(pair[0]) || !tfc_output_valid(pair[1])) return TFC_NO_OUTPUT;
    handle = add_in(e, frame, "Switch", pair, 2, TFC_NONE, NULL, 0, (tfc_str){0});
    handle.index = guards->items[i].side;
  }
  return handle;
}

struct tfc_output tfc_gradients_take_back(struct tfc_gradients *e, struct tfc_output stack, struct tfc_output o,
                                          uint32_t loop, const struct tfc_guards *guards) {
  struct tfc_grad_loop *l = &e->loops[loop];
  uint32_t frame = tfc_gradients_frame_of_loop(e, loop);
  tfc_str device = tfc_builder_node(e->b, o.node)->device;
  struct tfc_output handle = tfc_gradients_guarded(e, stack, frame, guards);
  struct tfc_attr type = tfc_attr_type("elem_type", tfc_dtype_base(tfc_builder_dtype(e->b, o)));
  struct tfc_output pop = add_in(e, frame, "StackPopV2", &handle, 1, l->pivot, &type, 1, device);
  if (!tfc_output_valid(pop)) return TFC_NO_OUTPUT;
  tfc_gradients_before_next(e, loop, pop.node);
  return pop;
}

// Returns the value of a forward tensor in the iteration at which a gradient frame is.
static struct tfc_output value_in(struct tfc_gradients *e, struct tfc_output o, uint32_t frame) {
  struct tfc_output known = recall(&e->values, o, frame), cur = o;
  if (tfc_output_valid(known)) return known;
  uint32_t loop = frame - e->frames.count, enter;
  while (loop && (enter = constant_enter(e, cur)) != TFC_NONE) {
    cur = tfc_node_inputs(e->g, &e->g->nodes[enter])[0];
    loop = e->frames.frames[loop].parent;
  }
  if (!loop) return remember(&e->values, o, frame, tfc_gradients_enter(e, cur, frame, true));
  if (frame_of(e, cur.node) != loop)
    return fail(e, tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s' is in another loop than its gradient",
                                   TFC_STR_ARG(tfc_builder_node(e->b, cur.node)->name)));
  const struct tfc_attr *value = tfc_node_role(tfc_builder_node(e->b, cur.node)) == TFC_ROLE_CONST
                                     ? tfc_builder_attr(e->b, cur.node, "value")
                                     : NULL;
  if (value && value->kind == TFC_ATTR_TENSOR) {
    struct tfc_output copy = tfc_add_const(e->b, NULL, value->tensor);
    tfc_status s = tfc_gradients_place(e, copy.node, frame);
    if (s) return fail(e, s);
    tfc_builder_add_control(e->b, copy.node, e->loops[frame - e->frames.count].pivot);
    return remember(&e->values, o, frame, copy);
  }
  uint32_t near = tfc_gradients_frame_of_loop(e, loop);
  struct tfc_output pop = recall(&e->values, cur, near);
  if (!tfc_output_valid(pop)) {
    struct tfc_guards guards;
    tfc_status s = guards_of(e, cur, &guards);
    if (s) return fail(e, s);
    struct tfc_output stack = keep(e, cur, loop, &guards);
    if (!tfc_output_valid(stack)) return TFC_NO_OUTPUT;
    pop = tfc_gradients_take_back(e, stack, cur, loop, &guards);
    remember(&e->values, cur, near, pop);
  }
  return remember(&e->values, o, frame, tfc_gradients_enter(e, pop, frame, true));
}

// --- New nodes -----------------------------------------------------------------------------------------------------
// Shapes of forward tensors are computed in the forward loop, because a shape is smaller to keep than the tensor.
static bool belongs_forward(const struct tfc_gradients *e, uint32_t id, uint32_t loop) {
  const struct tfc_node *n = tfc_builder_node(e->b, id);
  if (!n->def || !(n->def->flags & TFC_OP_ABOUT_INPUTS) || !n->input_count || n->control_count) return false;
  for (uint32_t k = 0; k < n->input_count; k++) {
    struct tfc_output in = tfc_builder_input(e->b, id, k);
    if (frame_of(e, in.node) != loop || constant_enter(e, in) != TFC_NONE) return false;
  }
  return true;
}

tfc_status tfc_gradients_adopt(struct tfc_gradients *e, uint32_t first, uint32_t frame) {
  uint32_t loop = frame ? frame - e->frames.count : 0;
  for (uint32_t id = first; id < tfc_builder_node_count(e->b) && !tfc_builder_status(e->b); id++) {
    if (frame_of(e, id) != TFC_NONE) continue;
    if (frame && belongs_forward(e, id, loop)) {
      TFC_RETURN_IF_ERROR(tfc_gradients_place(e, id, loop));
      continue;
    }
    TFC_RETURN_IF_ERROR(tfc_gradients_place(e, id, frame));
    if (!frame) continue;
    uint32_t inputs = tfc_builder_node(e->b, id)->input_count;
    for (uint32_t k = 0; k < inputs; k++) {
      struct tfc_output in = tfc_builder_input(e->b, id, k), value = in;
      uint32_t from = frame_of(e, in.node);
      if (from == frame || from == TFC_NONE) continue;
      value = from && from < e->frames.count ? value_in(e, in, frame) : tfc_gradients_enter(e, in, frame, true);
      if (!tfc_output_valid(value)) break;
      tfc_builder_set_input(e->b, id, k, value);
    }
    if (!inputs && !tfc_builder_status(e->b)) tfc_builder_add_control(e->b, id, e->loops[loop].pivot);
  }
  return tfc_status_clone(tfc_builder_status(e->b));
}

// --- Zeros ---------------------------------------------------------------------------------------------------------
// The shape of a forward tensor, or of the content of a handle.
static const struct tfc_shape *known_shape(const struct tfc_gradients *e, struct tfc_output o) {
  uint32_t number = tfc_grad_number(e, o);
  if (tfc_dtype_base(e->g->output_dtypes[number]) == TFC_RESOURCE) return &e->shapes.handles[number].shape;
  return &e->shapes.shapes[number];
}

struct tfc_output tfc_gradients_shape(struct tfc_gradients *e, struct tfc_output o) {
  const struct tfc_shape *shape = known_shape(e, o);
  struct tfc_grad_ctx ctx = {.builder = e->b};
  bool handle = tfc_dtype_base(e->g->output_dtypes[tfc_grad_number(e, o)]) == TFC_RESOURCE;
  if (shape->rank >= 0 && tfc_shape_is_static(shape)) return grad_const_shape(&ctx, shape);
  return tfc_add1(e->b, handle ? "VariableShape" : "Shape", o);
}

struct tfc_output tfc_gradients_zeros(struct tfc_gradients *e, struct tfc_output o, tfc_dtype type, uint32_t frame) {
  const struct tfc_shape *shape = known_shape(e, o);
  tfc_dtype own = tfc_dtype_base(e->g->output_dtypes[tfc_grad_number(e, o)]);
  bool known = shape->rank >= 0 && tfc_shape_is_static(shape);
  if (type == TFC_VARIANT || (own == type && !frame && !known)) return tfc_add1(e->b, "ZerosLike", o);
  return tfc_add2(e->b, "Fill", tfc_gradients_shape(e, o), tfc_add_scalar(e->b, type, 0));
}

struct tfc_output tfc_gradients_zero_rows(struct tfc_gradients *e, struct tfc_output o, tfc_dtype type) {
  struct tfc_builder *b = e->b;
  struct tfc_output begin = tfc_add_i32_vector(b, (int32_t[]){1}, 1), end = tfc_add_i32_vector(b, (int32_t[]){0}, 1);
  struct tfc_output one = tfc_add_i32_vector(b, (int32_t[]){1}, 1);
  struct tfc_attr to_end = tfc_attr_int("end_mask", 1);
  struct tfc_output tail = tfc_add(b, "StridedSlice", NULL,
                                   (struct tfc_output[]){tfc_gradients_shape(e, o), begin, end, one}, 4, &to_end, 1);
  struct tfc_output dims = tfc_add(
      b, "ConcatV2", NULL, (struct tfc_output[]){tfc_add_i32_vector(b, (int32_t[]){0}, 1), tail, tfc_add_i32(b, 0)}, 3,
      (struct tfc_attr[]){tfc_attr_int("N", 2)}, 1);
  return tfc_add2(b, "Fill", dims, tfc_add_scalar(b, type, 0));
}
