// The gradient of a while loop, as TensorFlow builds it. The forward loop gets a counter. The gradient's loop starts
// with that count and the gradients of the forward loop's results, and counts down. Its variables are the gradients of
// the forward loop's variables, and one sum for each value that the forward loop reads unchanged (for rows: a list that
// grows). Its body is the gradient of the forward body.
#include "runtime/pass/gradients_internal.h"

#include <stdlib.h>

struct grad_variable {
  const struct tfc_frame_variable *forward;
  struct tfc_output merge, inside, exit; // of the gradient
};
struct backward {
  struct tfc_gradients *e;
  const struct tfc_frame *f;
  struct tfc_grad_loop *l;
  uint32_t loop, around, frame; // the forward frame; the frame around the gradient's frame; the gradient's frame
  uint32_t forward_around;
};

static tfc_status failed(const struct tfc_gradients *e) {
  return tfc_status_clone(tfc_builder_status(e->b));
}

static struct tfc_output add_at(struct backward *w, uint32_t frame, const char *op, struct tfc_output x,
                                struct tfc_output y) {
  struct tfc_output inputs[] = {x, y};
  bool valid = tfc_output_valid(x);
  uint32_t id = tfc_builder_add(
      w->e->b, &(struct tfc_node_spec){.op = op, .inputs = inputs, .input_count = valid + tfc_output_valid(y)});
  tfc_status s = tfc_gradients_place(w->e, id, frame);
  if (s && !tfc_builder_status(w->e->b))
    tfc_builder_fail(w->e->b, s);
  else
    tfc_status_free(s);
  return (struct tfc_output){id, 0};
}

// Makes a scalar in a frame. If the frame is a loop, the scalar runs after `after`.
static struct tfc_output scalar_in(struct backward *w, uint32_t frame, int32_t value, uint32_t after) {
  struct tfc_output o = tfc_add_i32(w->e->b, value);
  tfc_status s = tfc_gradients_place(w->e, o.node, frame);
  if (s) {
    if (!tfc_builder_status(w->e->b)) tfc_builder_fail(w->e->b, s);
    return TFC_NO_OUTPUT;
  }
  if (frame) tfc_builder_add_control(w->e->b, o.node, after);
  return o;
}

static struct tfc_output taken(struct tfc_output o) { // the output of a Switch that is alive while the loop continues
  o.index = 1;
  return o;
}

// Adds a counter of the iterations to the forward loop.
static tfc_status count_forward(struct backward *w) {
  struct tfc_gradients *e = w->e;
  struct tfc_grad_loop *l = w->l;
  // In an outer loop, the count starts after the outer loop has done its earlier pushes.
  struct tfc_output zero = scalar_in(w, w->forward_around, 0, e->loops[w->forward_around].count_add);
  struct tfc_output enter = tfc_gradients_enter(e, zero, w->loop, false);
  struct tfc_output merge = add_at(w, w->loop, "Merge", enter, enter);
  struct tfc_output go = {w->f->condition, 0};
  struct tfc_output split = add_at(w, w->loop, "Switch", merge, go);
  if (!tfc_output_valid(split)) return failed(e);
  struct tfc_output pivot = add_at(w, w->loop, "Identity", taken(split), TFC_NO_OUTPUT);
  struct tfc_output one = scalar_in(w, w->loop, 1, pivot.node);
  struct tfc_output sum = add_at(w, w->loop, "Add", pivot, one);
  struct tfc_output next = add_at(w, w->loop, "NextIteration", sum, TFC_NO_OUTPUT);
  TFC_RETURN_IF_ERROR(failed(e));
  tfc_builder_set_input(e->b, merge.node, 1, next);
  l->count_add = sum.node;
  l->count_next = next.node;
  l->count_exit = add_at(w, w->forward_around, "Exit", split, TFC_NO_OUTPUT);
  return failed(e);
}

// Makes the gradient's loop: its frame, its condition, and its counter, which goes down to zero.
static tfc_status count_backward(struct backward *w) {
  struct tfc_gradients *e = w->e;
  struct tfc_grad_loop *l = w->l;
  uint32_t first = tfc_builder_node_count(e->b);
  l->name = tfc_arena_printf(tfc_builder_arena(e->b), "%s/%.*s_%u", e->scope, TFC_STR_ARG(w->f->name), w->loop);
  if (!l->name.data) return tfc_status_no_memory("gradients");
  // An Identity passes the count to the surrounding gradient.
  struct tfc_output count = tfc_add1(e->b, "Identity", l->count_exit);
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, w->around));
  uint32_t pivot_around = w->around ? e->loops[w->forward_around].pivot : TFC_NONE;
  struct tfc_output one = tfc_gradients_enter(e, scalar_in(w, w->around, 1, pivot_around), w->frame, true);
  struct tfc_output enter = tfc_gradients_enter(e, count, w->frame, false);
  struct tfc_output merge = add_at(w, w->frame, "Merge", enter, enter);
  struct tfc_output more = add_at(w, w->frame, "GreaterEqual", merge, one);
  struct tfc_output go = add_at(w, w->frame, "LoopCond", more, TFC_NO_OUTPUT);
  struct tfc_output split = add_at(w, w->frame, "Switch", merge, go);
  if (!tfc_output_valid(split)) return failed(e);
  struct tfc_output pivot = add_at(w, w->frame, "Identity", taken(split), TFC_NO_OUTPUT);
  struct tfc_output less = add_at(w, w->frame, "Sub", pivot, one);
  struct tfc_output next = add_at(w, w->frame, "NextIteration", less, TFC_NO_OUTPUT);
  TFC_RETURN_IF_ERROR(failed(e));
  tfc_builder_set_input(e->b, merge.node, 1, next);
  l->pivot = pivot.node;
  l->condition = go.node;
  l->backward_next = next.node;
  l->backward_sync = TFC_NONE;
  // In an outer loop, later pops of the next outer iteration come after this loop.
  struct tfc_output over = add_at(w, w->around, "Exit", split, TFC_NO_OUTPUT);
  TFC_RETURN_IF_ERROR(failed(e));
  l->over = over.node;
  if (w->around) tfc_gradients_before_next(e, w->forward_around, over.node);
  return failed(e);
}

// Adds a variable to the gradient's loop that begins with `start`, which is in the surrounding frame.
static tfc_status make_variable(struct backward *w, struct tfc_output start, struct grad_variable *v) {
  struct tfc_output enter = tfc_gradients_enter(w->e, start, w->frame, false);
  v->merge = add_at(w, w->frame, "Merge", enter, enter);
  v->inside = add_at(w, w->frame, "Switch", v->merge, (struct tfc_output){w->l->condition, 0});
  if (tfc_output_valid(v->inside)) {
    v->exit = add_at(w, w->around, "Exit", v->inside, TFC_NO_OUTPUT);
    v->inside.index = 1;
  }
  return failed(w->e);
}

static tfc_status close_variable(struct backward *w, struct grad_variable *v, struct tfc_output next) {
  next = add_at(w, w->frame, "NextIteration", next, TFC_NO_OUTPUT);
  TFC_RETURN_IF_ERROR(failed(w->e));
  tfc_builder_set_input(w->e->b, v->merge.node, 1, next);
  return NULL;
}

// Finds the gradient of the loop's result for this variable: zeros if the result has no consumer.
static tfc_status start_of(struct backward *w, const struct tfc_frame_variable *v, struct tfc_output *out) {
  struct tfc_gradients *e = w->e;
  uint32_t first = tfc_builder_node_count(e->b);
  struct tfc_output result = {v->exit, 0}, inside = {v->switch_, 0};
  tfc_dtype type = tfc_dtype_base(e->g->output_dtypes[tfc_grad_number(e, inside)]);
  struct tfc_grad_list *list = v->exit == TFC_NONE ? NULL : &e->grads[tfc_grad_number(e, result)];
  if (list && list->count) {
    *out = tfc_gradients_to_dense(e, &list->data[0]);
  } else if (v->exit != TFC_NONE) {
    *out = tfc_gradients_zeros(e, result, type, w->around);
  } else if (type != TFC_VARIANT && tfc_shape_is_static(tfc_grad_shape(e, inside))) {
    *out = tfc_gradients_zeros(e, inside, type, w->around);
  } else { // the result of the loop had no consumer, so this new Exit reads it
    struct tfc_output made = add_at(w, w->forward_around, "Exit", inside, TFC_NO_OUTPUT);
    *out = tfc_add1(e->b, "ZerosLike", made);
  }
  return tfc_gradients_adopt(e, first, w->around);
}

static tfc_status finish_variable(struct backward *w, struct grad_variable *v) {
  struct tfc_gradients *e = w->e;
  struct tfc_output body = {v->forward->switch_, 1};
  struct tfc_grad_list *list = &e->grads[tfc_grad_number(e, body)];
  uint32_t first = tfc_builder_node_count(e->b);
  struct tfc_output next;
  TFC_RETURN_IF_ERROR(tfc_gradients_sum(e, tfc_grad_number(e, body)));
  if (list->count)
    next = tfc_gradients_to_dense(e, &list->data[0]);
  else // the next value does not depend on this one
    next = tfc_gradients_zeros(e, body, tfc_builder_dtype(e->b, v->merge), w->frame);
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, w->frame));
  TFC_RETURN_IF_ERROR(close_variable(w, v, next));
  uint32_t enter = v->forward->enter;
  if (enter == TFC_NONE || !e->between[enter]) return NULL;
  return tfc_gradients_push_from(e, &w->f->around, tfc_node_inputs(e->g, &e->g->nodes[enter])[0],
                                 tfc_grad_dense(v->exit), w->around);
}

// --- Values that the loop reads but does not change ----------------------------------------------------------------
static tfc_status accumulate(struct backward *w, struct tfc_output source, struct tfc_output grad,
                             struct tfc_output *out) {
  struct tfc_gradients *e = w->e;
  struct grad_variable v = {0};
  tfc_dtype type = tfc_dtype_base(tfc_builder_dtype(e->b, grad));
  uint32_t first = tfc_builder_node_count(e->b);
  struct tfc_output zeros = tfc_gradients_zeros(e, source, type, w->around);
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, w->around));
  TFC_RETURN_IF_ERROR(make_variable(w, zeros, &v));
  TFC_RETURN_IF_ERROR(close_variable(w, &v, add_at(w, w->frame, type == TFC_VARIANT ? "AddN" : "Add", v.inside, grad)));
  *out = v.exit;
  return NULL;
}

static tfc_status append(struct backward *w, struct tfc_output start, struct tfc_output more, struct tfc_output *out) {
  struct tfc_gradients *e = w->e;
  struct grad_variable v = {0};
  TFC_RETURN_IF_ERROR(make_variable(w, start, &v));
  uint32_t first = tfc_builder_node_count(e->b);
  struct tfc_attr two = tfc_attr_int("N", 2);
  struct tfc_output all =
      tfc_add(e->b, "ConcatV2", NULL, (struct tfc_output[]){v.inside, more, tfc_add_i32(e->b, 0)}, 3, &two, 1);
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, w->frame));
  *out = v.exit;
  return close_variable(w, &v, all);
}

static tfc_status finish_constant(struct backward *w, uint32_t enter) {
  struct tfc_gradients *e = w->e;
  struct tfc_output inside = {enter, 0}, source = tfc_node_inputs(e->g, &e->g->nodes[enter])[0];
  struct tfc_grad_list *list = &e->grads[tfc_grad_number(e, inside)];
  struct tfc_grad sum;
  if (!list->count) return NULL;
  uint32_t first = tfc_builder_node_count(e->b);
  TFC_RETURN_IF_ERROR(tfc_gradients_sum(e, tfc_grad_number(e, inside)));
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, w->frame));
  struct tfc_grad g = list->data[0];
  if (!tfc_grad_is_rows(&g)) {
    sum = tfc_grad_dense(TFC_NO_OUTPUT);
    TFC_RETURN_IF_ERROR(accumulate(w, source, g.values, &sum.values));
    return tfc_gradients_push_from(e, &w->f->around, source, sum, w->around);
  }
  first = tfc_builder_node_count(e->b);
  struct tfc_output values = tfc_gradients_zero_rows(e, source, tfc_dtype_base(tfc_builder_dtype(e->b, g.values)));
  struct tfc_output indices = tfc_add2(e->b, "Fill", tfc_add_i32_vector(e->b, (int32_t[]){0}, 1),
                                       tfc_add_scalar(e->b, tfc_builder_dtype(e->b, g.indices), 0));
  sum.dense_shape = tfc_gradients_shape(e, source);
  // The Identity takes it out of the forward loop.
  if (w->around) sum.dense_shape = tfc_add1(e->b, "Identity", sum.dense_shape);
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, w->around));
  TFC_RETURN_IF_ERROR(append(w, values, g.values, &sum.values));
  TFC_RETURN_IF_ERROR(append(w, indices, g.indices, &sum.indices));
  return tfc_gradients_push_from(e, &w->f->around, source, sum, w->around);
}

// --- The gradient of one loop --------------------------------------------------------------------------------------
// Checks that only node `only` can add gradients to this output.
static tfc_status check_consumers(const struct tfc_gradients *e, uint32_t id, int32_t output, uint32_t only) {
  const struct tfc_graph *g = e->g;
  for (uint32_t k = g->consumer_begin[id]; e->between[id] && k < g->consumer_begin[id + 1]; k++) {
    const struct tfc_consumer *c = &g->consumers[k];
    if (c->output != output || c->node == only || !e->between[c->node] || !g->nodes[c->node].output_count) continue;
    if (!tfc_dtype_is_trainable(g->output_dtypes[g->nodes[c->node].output_begin])) continue;
    return tfc_status_make(TFC_UNIMPLEMENTED,
                           "gradients: node '%.*s' uses the loop's variable '%.*s' outside of its body",
                           TFC_STR_ARG(g->nodes[c->node].name), TFC_STR_ARG(g->nodes[id].name));
  }
  return NULL;
}

static tfc_status check(struct backward *w) {
  const struct tfc_gradients *e = w->e;
  if (w->f->condition == TFC_NONE)
    return tfc_status_make(TFC_UNIMPLEMENTED, "gradients: the loop '%.*s' has no LoopCond", TFC_STR_ARG(w->f->name));
  for (uint32_t i = 0; i < w->f->variable_count; i++) {
    const struct tfc_frame_variable *v = &w->f->variables[i];
    if (e->between[v->merge] && v->switch_ == TFC_NONE)
      return tfc_status_make(TFC_UNIMPLEMENTED, "gradients: node '%.*s' has no Switch of its loop",
                             TFC_STR_ARG(e->g->nodes[v->merge].name));
    tfc_dtype type = tfc_dtype_base(e->g->output_dtypes[e->g->nodes[v->merge].output_begin]);
    if (e->between[v->merge] && type == TFC_RESOURCE)
      return tfc_status_make(TFC_UNIMPLEMENTED, "gradients: the loop's variable '%.*s' is a resource that changes",
                             TFC_STR_ARG(e->g->nodes[v->merge].name));
    TFC_RETURN_IF_ERROR(check_consumers(e, v->merge, 0, v->switch_));
    if (v->switch_ != TFC_NONE) TFC_RETURN_IF_ERROR(check_consumers(e, v->switch_, 0, v->exit));
  }
  for (uint32_t i = 0; i < w->f->constant_count; i++) {
    const struct tfc_node *n = &e->g->nodes[w->f->constants[i]];
    if (e->between[w->f->constants[i]] && !tfc_node_attr_bool(e->g, n, "is_constant", false))
      return tfc_status_make(TFC_UNIMPLEMENTED, "gradients: node '%.*s' enters a loop for its first iteration alone",
                             TFC_STR_ARG(n->name));
  }
  return NULL;
}

static tfc_status differentiate(struct backward *w, struct grad_variable *variables) {
  struct tfc_gradients *e = w->e;
  uint32_t count = 0;
  TFC_RETURN_IF_ERROR(count_forward(w));
  TFC_RETURN_IF_ERROR(count_backward(w));
  w->l->made = true;
  struct tfc_grad_queue queue = {0}, *outer = e->queue;
  tfc_status s = NULL;
  e->queue = &queue;
  for (uint32_t i = 0; i < w->f->variable_count; i++) {
    const struct tfc_frame_variable *v = &w->f->variables[i];
    struct tfc_output start;
    if (v->switch_ == TFC_NONE || !e->between[v->switch_]) continue;
    if (!tfc_dtype_is_trainable(e->g->output_dtypes[e->g->nodes[v->merge].output_begin])) continue;
    TFC_TRY(s, start_of(w, v, &start));
    variables[count].forward = v;
    TFC_TRY(s, make_variable(w, start, &variables[count]));
    if (v->next != TFC_NONE && e->between[v->next]) {
      struct tfc_output result = tfc_node_inputs(e->g, &e->g->nodes[v->next])[0];
      TFC_TRY(s, tfc_gradients_push(e, result, tfc_grad_dense(variables[count].inside)));
    }
    count++;
  }
  for (uint32_t i = 0; i < count; i++) {
    uint32_t next = variables[i].forward->next;
    if (next != TFC_NONE && e->between[next]) TFC_TRY(s, tfc_gradients_release(e, next));
  }
  TFC_TRY(s, tfc_gradients_begin_pushed(e, w->loop, w->frame));
  TFC_TRY(s, tfc_gradients_drain(e, w->frame));
  for (uint32_t i = 0; i < count; i++) TFC_TRY(s, finish_variable(w, &variables[i]));
  for (uint32_t i = 0; i < w->f->constant_count; i++)
    if (e->between[w->f->constants[i]]) TFC_TRY(s, finish_constant(w, w->f->constants[i]));
out:
  tfc_array_free(&queue.ids);
  e->queue = outer;
  return s;
}

tfc_status tfc_gradients_of_loop(struct tfc_gradients *e, uint32_t loop, uint32_t frame) {
  const struct tfc_frame *f = &e->frames.frames[loop];
  struct backward w = {.e = e,
                       .f = f,
                       .l = &e->loops[loop],
                       .loop = loop,
                       .around = frame,
                       .frame = tfc_gradients_frame_of_loop(e, loop),
                       .forward_around = f->parent};
  bool any = tfc_gradients_came_by_stack(e, loop);
  tfc_status s = NULL;
  for (uint32_t i = 0; i < f->variable_count; i++) {
    uint32_t exit = f->variables[i].exit;
    any |= exit != TFC_NONE && e->grads[e->g->nodes[exit].output_begin].count;
  }
  struct grad_variable *variables = calloc((size_t)f->variable_count + 1, sizeof *variables);
  if (!variables) return tfc_status_no_memory("gradients");
  if (any) {
    TFC_TRY(s, check(&w));
    TFC_TRY(s, differentiate(&w, variables));
  }
  for (uint32_t i = 0; i < f->variable_count; i++)
    if (f->variables[i].enter != TFC_NONE && e->between[f->variables[i].enter])
      TFC_TRY(s, tfc_gradients_release(e, f->variables[i].enter));
  for (uint32_t i = 0; i < f->constant_count; i++)
    if (e->between[f->constants[i]]) TFC_TRY(s, tfc_gradients_release(e, f->constants[i]));
out:
  free(variables);
  if (s) return tfc_status_annotate(s, "gradient of the loop '%.*s'", TFC_STR_ARG(f->name));
  return tfc_gradients_end_popped(e, loop);
}
