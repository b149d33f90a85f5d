// Builds gradients as TensorFlow does. Nodes between xs and ys are visited from the ys backwards, each one after all
// its consumers in between. Several gradients of one output are summed by AddN in the order in which they come, those
// on the same device first. Trainable outputs without a gradient get zeros as soon as another output of the node has
// one.
//
// The gradient of gathered rows stays rows (values, indices, shape) through Identity and reads of variables. Several
// such gradients are joined; any other operation gets them as a dense tensor.
//
// A loop is visited as a whole after all its Exits in between (gradients_loop.c). Calls of functions in between are
// lowered first, so that only frames and branches remain.
#include "runtime/pass/gradients_internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/pass/functions.h"

static bool is_trainable(const struct tfc_gradients *e, uint32_t number) {
  return tfc_dtype_is_trainable(e->g->output_dtypes[number]);
}

// From use `k` on, finds the next pop of what node `id` pushed or, if `pops`, the next push of what it pops.
static uint32_t stack_partner(const struct tfc_gradients *e, uint32_t id, bool pops, uint32_t k) {
  uint32_t stack = TFC_NONE;
  const struct tfc_node *n = &e->g->nodes[id];
  if (tfc_node_role(n) != (pops ? TFC_ROLE_POP : TFC_ROLE_PUSH)) return TFC_NONE;
  for (size_t i = 0; i < e->stack_uses.count && stack == TFC_NONE; i++)
    if (e->stack_uses.data[i].node == id) stack = e->stack_uses.data[i].stack;
  for (; k < e->stack_uses.count && stack != TFC_NONE; k++)
    if (e->stack_uses.data[k].stack == stack && e->stack_uses.data[k].pops != pops) return k;
  return TFC_NONE;
}

// Marks the nodes that lie on a path of trainable tensors from xs to ys.
static tfc_status mark(struct tfc_gradients *e, const struct tfc_output *ys, uint32_t y_count,
                       const struct tfc_output *xs, uint32_t x_count) {
  const struct tfc_graph *g = e->g;
  bool *reached = calloc((size_t)g->node_count + 1, sizeof *reached);
  uint32_t *stack = malloc(((size_t)g->node_count + 1) * sizeof *stack), depth = 0;
  if (!reached || !stack) {
    free(reached);
    free(stack);
    return tfc_status_no_memory("gradients");
  }
  for (uint32_t i = 0; i < x_count; i++)
    if (!reached[xs[i].node]) reached[xs[i].node] = true, stack[depth++] = xs[i].node;
  while (depth) {
    uint32_t id = stack[--depth];
    for (uint32_t k = g->consumer_begin[id]; k < g->consumer_begin[id + 1]; k++) {
      const struct tfc_consumer *c = &g->consumers[k];
      if (c->output < 0 || reached[c->node]) continue;
      if (!is_trainable(e, g->nodes[id].output_begin + (uint32_t)c->output)) continue;
      reached[c->node] = true;
      stack[depth++] = c->node;
    }
    for (uint32_t k = 0; (k = stack_partner(e, id, false, k)) != TFC_NONE; k++) {
      uint32_t pop = e->stack_uses.data[k].node;
      if (!reached[pop] && is_trainable(e, g->nodes[pop].output_begin)) reached[pop] = true, stack[depth++] = pop;
    }
  }
  for (uint32_t i = 0; i < y_count; i++)
    if (reached[ys[i].node] && !e->between[ys[i].node]) e->between[ys[i].node] = true, stack[depth++] = ys[i].node;
  while (depth) {
    uint32_t id = stack[--depth];
    const struct tfc_node *n = &g->nodes[id];
    for (uint32_t k = 0; (k = stack_partner(e, id, true, k)) != TFC_NONE; k++) {
      uint32_t push = e->stack_uses.data[k].node;
      if (reached[push] && !e->between[push]) e->between[push] = true, stack[depth++] = push;
    }
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; k < n->input_count; k++)
      if (reached[in[k].node] && !e->between[in[k].node]) e->between[in[k].node] = true, stack[depth++] = in[k].node;
  }
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_output *in = tfc_node_inputs(g, &g->nodes[i]);
    for (uint32_t k = 0; e->between[i] && k < g->nodes[i].input_count; k++)
      if (e->between[in[k].node]) e->pending[in[k].node]++;
  }
  // Visiting stops at an x that depends on no other x.
  for (uint32_t i = 0; i < x_count; i++) {
    const struct tfc_node *n = &g->nodes[xs[i].node];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    bool stop = true;
    for (uint32_t k = 0; k < n->input_count; k++) stop &= !e->between[in[k].node] || !e->pending[in[k].node];
    e->stop[xs[i].node] = stop;
  }
  free(reached);
  free(stack);
  return NULL;
}

static tfc_status unsupported(const struct tfc_node *n) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s': op %.*s has no gradient", TFC_STR_ARG(n->name),
                         TFC_STR_ARG(n->op));
}

// Whether the node passes a gradient on unchanged, even one that consists of rows.
static bool passes_rows(const struct tfc_node *n) {
  return tfc_gradients_is_identity(n) || tfc_node_role(n) == TFC_ROLE_READ;
}

static const struct tfc_function *with_gradient(const struct tfc_gradients *e, const struct tfc_node *n) {
  const struct tfc_function *fn = n->def ? NULL : tfc_graph_function(e->g, n->op);
  return fn && fn->gradient.size ? fn : NULL;
}

// Returns the row whose gradient function a node uses: its own row, or the row of the op that its attribute for custom
// gradients names, if the gradient of that op can be used for this node. NULL: there is no gradient function.
static const struct tfc_op_def *rule_of(const struct tfc_gradients *e, const struct tfc_node *n, tfc_str *out_name) {
  const struct tfc_attr *a = n->def ? tfc_node_attr(e->g, n, "_gradient_op_type") : NULL;
  bool flow = n->def && n->def->flags & (TFC_OP_MERGE | TFC_OP_SWITCH | TFC_OP_EXIT | TFC_OP_FUNCTIONAL);
  *out_name = n->op;
  if (!a || a->kind != TFC_ATTR_STRING || flow || tfc_str_equal(a->s, n->op)) return n->def;
  const struct tfc_op_def *other = tfc_op_find(a->s);
  *out_name = a->s;
  // A gradient function for one input, one output and at most one attribute reads nothing that this node lacks.
  bool simple = other && other->gradient && n->input_count == 1 && n->output_count == 1 &&
                !strpbrk(other->inputs, ",*") && !strpbrk(other->outputs, ",*") &&
                strchr(other->attrs, ':') == strrchr(other->attrs, ':');
  return simple || (other && other->flags & TFC_OP_NOT_DIFFERENTIABLE) ? other : NULL;
}

// Calls the gradient function that a function names, with the inputs and the gradients of the outputs.
static tfc_status call_gradient(struct tfc_grad_ctx *ctx, const struct tfc_node *n, const struct tfc_function *fn) {
  uint32_t count = n->input_count + n->output_count;
  struct tfc_output *inputs = calloc((size_t)count + 1, sizeof *inputs);
  tfc_dtype *types = calloc((size_t)n->input_count + 1, sizeof *types);
  if (!inputs || !types) {
    free(inputs);
    free(types);
    return tfc_status_no_memory("gradients");
  }
  for (uint32_t k = 0; k < n->input_count; k++) {
    inputs[k] = grad_in(ctx, k);
    types[k] = grad_in_type(ctx, k);
  }
  for (uint32_t i = 0; i < n->output_count; i++) {
    struct tfc_output g = ctx->grad_outputs[i];
    inputs[n->input_count + i] = tfc_output_valid(g) ? g : tfc_add1(ctx->builder, "ZerosLike", grad_out(ctx, i));
  }
  struct tfc_func_attr f = {.name = fn->gradient};
  struct tfc_attr attrs[] = {
      {.name = TFC_STR("f"), .kind = TFC_ATTR_FUNC, .func = &f},
      {.name = TFC_STR("Tout"), .kind = TFC_ATTR_LIST_TYPE, .count = n->input_count, .types = types}};
  struct tfc_output made = tfc_add(ctx->builder, "PartitionedCall", NULL, inputs, count, attrs, 2);
  for (uint32_t k = 0; k < n->input_count && tfc_output_valid(made); k++)
    if (tfc_dtype_is_trainable(types[k])) ctx->grad_inputs[k] = (struct tfc_output){made.node, (int32_t)k};
  free(inputs);
  free(types);
  return NULL;
}

// Makes the gradients of a node's inputs, and passes them to the producers of the inputs. They come from the function
// that computes the gradient of this type of op; if the node calls a function of the graph that has a gradient function
// of its own, from that.
static tfc_status call_rule(struct tfc_gradients *e, uint32_t id, const struct tfc_op_def *rule, uint32_t frame) {
  tfc_status s = NULL;
  const struct tfc_graph *g = e->g;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  const struct tfc_function *fn = with_gradient(e, n);
  uint32_t most = n->input_count + n->output_count + 1, first = tfc_builder_node_count(e->b);
  struct tfc_output *grad_outputs = calloc(2 * (size_t)most, sizeof *grad_outputs);
  struct tfc_indexed_slices *indexed = calloc(most, sizeof *indexed);
  const struct tfc_shape **in_shapes = calloc(2 * (size_t)most, sizeof *in_shapes);
  if (!grad_outputs || !indexed || !in_shapes) TFC_TRY(s, tfc_status_no_memory("gradients"));
  struct tfc_output *grad_inputs = grad_outputs + most;
  const struct tfc_shape **out_shapes = in_shapes + most;
  for (uint32_t i = 0; i < n->output_count; i++) {
    struct tfc_output o = {id, (int32_t)i};
    struct tfc_grad_list *list = &e->grads[n->output_begin + i];
    tfc_dtype type = tfc_dtype_base(g->output_dtypes[n->output_begin + i]);
    out_shapes[i] = &e->shapes.shapes[n->output_begin + i];
    grad_outputs[i] = list->count ? tfc_gradients_to_dense(e, &list->data[0]) : TFC_NO_OUTPUT;
    if (!list->count && tfc_dtype_is_trainable(type) && type != TFC_RESOURCE)
      grad_outputs[i] = frame ? tfc_gradients_zeros(e, o, type, frame) : tfc_add1(e->b, "ZerosLike", o);
  }
  for (uint32_t k = 0; k < n->input_count; k++) {
    in_shapes[k] = &e->shapes.shapes[tfc_grad_number(e, in[k])];
    grad_inputs[k] = TFC_NO_OUTPUT;
    indexed[k] = (struct tfc_indexed_slices){TFC_NO_OUTPUT, TFC_NO_OUTPUT, TFC_NO_OUTPUT};
  }
  struct tfc_grad_ctx ctx = {.builder = e->b,
                             .node = id,
                             .grad_outputs = grad_outputs,
                             .grad_inputs = grad_inputs,
                             .grad_indexed = indexed,
                             .input_shapes = in_shapes,
                             .output_shapes = out_shapes,
                             .owner = e};
  TFC_TRY(s, fn ? call_gradient(&ctx, n, fn) : rule->gradient(&ctx));
  TFC_TRY(s, tfc_gradients_adopt(e, first, frame));
  for (uint32_t k = 0; k < n->input_count; k++) {
    if (tfc_output_valid(indexed[k].values))
      TFC_TRY(s, tfc_gradients_push_from(
                     e, tfc_grad_guards(e, id), in[k],
                     (struct tfc_grad){indexed[k].values, indexed[k].indices, indexed[k].dense_shape}, frame));
    else if (tfc_output_valid(grad_inputs[k]))
      TFC_TRY(s, tfc_gradients_push_from(e, tfc_grad_guards(e, id), in[k], tfc_grad_dense(grad_inputs[k]), frame));
  }
out:
  free(grad_outputs);
  free(indexed);
  free(in_shapes);
  return s;
}

static tfc_status differentiate(struct tfc_gradients *e, uint32_t id, uint32_t frame) {
  const struct tfc_graph *g = e->g;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  uint32_t flags = n->def ? n->def->flags : 0, first = tfc_builder_node_count(e->b);
  bool any = false;
  tfc_str rule_name;
  const struct tfc_op_def *rule = rule_of(e, n, &rule_name);
  char scope[256];
  snprintf(scope, sizeof scope, "%s/%.*s_grad", e->scope, (int)(n->name.size < 200 ? n->name.size : 200), n->name.data);
  tfc_builder_set_scope(e->b, scope);
  for (uint32_t i = 0; i < n->output_count; i++) {
    TFC_RETURN_IF_ERROR(tfc_gradients_sum(e, n->output_begin + i));
    any |= e->grads[n->output_begin + i].count > 0;
  }
  TFC_RETURN_IF_ERROR(tfc_gradients_adopt(e, first, frame));
  if (flags & TFC_OP_EXIT) {
    uint32_t loop = e->frames.of_node[in[0].node];
    bool wait = --e->loops[loop].exits_left || e->loops[loop].waits;
    return wait || e->stop[id] ? NULL : tfc_gradients_of_loop(e, loop, frame);
  }
  if (tfc_node_role(n) == TFC_ROLE_PUSH && !e->stop[id]) {
    TFC_RETURN_IF_ERROR(tfc_gradients_of_push(e, id));
  } else if (any && tfc_node_role(n) == TFC_ROLE_POP) {
    TFC_RETURN_IF_ERROR(tfc_gradients_of_pop(e, id, frame));
  } else if (any && !e->stop[id] && !(rule && rule->flags & TFC_OP_NOT_DIFFERENTIABLE)) {
    if (n->def && !rule)
      return tfc_status_make(TFC_UNIMPLEMENTED,
                             "node '%.*s': its attribute _gradient_op_type names the gradient '%.*s', which tfc does "
                             "not have or cannot take for op %.*s",
                             TFC_STR_ARG(n->name), TFC_STR_ARG(rule_name), TFC_STR_ARG(n->op));
    if (flags & TFC_OP_MERGE)
      TFC_RETURN_IF_ERROR(tfc_gradients_of_merge(e, id, frame));
    else if (flags & TFC_OP_SWITCH)
      TFC_RETURN_IF_ERROR(tfc_gradients_of_switch(e, id, frame));
    else if (rule == n->def && passes_rows(n) && e->grads[n->output_begin].count &&
             tfc_grad_is_rows(&e->grads[n->output_begin].data[0]))
      TFC_RETURN_IF_ERROR(
          tfc_gradients_push_from(e, tfc_grad_guards(e, id), in[0], e->grads[n->output_begin].data[0], frame));
    else if (!(rule && rule->gradient) && !with_gradient(e, n))
      return unsupported(n);
    else
      TFC_RETURN_IF_ERROR(call_rule(e, id, rule, frame));
  }
  return tfc_gradients_release(e, id);
}

tfc_status tfc_gradients_drain(struct tfc_gradients *e, uint32_t frame) {
  for (size_t head = 0; head < e->queue->ids.count; head++) {
    uint32_t id = e->queue->ids.data[head];
    tfc_status s = differentiate(e, id, frame);
    const struct tfc_node *n = &e->g->nodes[id];
    if (s && n->def && n->def->flags & TFC_OP_EXIT) return s;
    if (s) return tfc_status_annotate(s, "gradient of node '%.*s' (%.*s)", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
  }
  return NULL;
}

// --- The complete gradient pass ------------------------------------------------------------------------------------
static tfc_status run(struct tfc_gradients *e, const struct tfc_output *ys, uint32_t y_count) {
  struct tfc_grad_queue queue = {0};
  tfc_status s = NULL;
  e->queue = &queue;
  for (uint32_t i = 0; i < e->g->node_count; i++)
    if (e->between[i] && e->g->nodes[i].def && e->g->nodes[i].def->flags & TFC_OP_EXIT)
      e->loops[e->frames.of_node[tfc_node_inputs(e->g, &e->g->nodes[i])[0].node]].exits_left++;
  for (uint32_t i = 0; i < y_count; i++) {
    uint32_t id = ys[i].node;
    bool queued = !e->between[id] || e->pending[id];
    for (uint32_t k = 0; k < i; k++) queued |= ys[k].node == id;
    if (!queued && !tfc_array_push(&queue.ids, id)) TFC_TRY(s, tfc_status_no_memory("gradients"));
  }
  s = tfc_gradients_drain(e, 0);
out:
  tfc_array_free(&queue.ids);
  e->queue = NULL;
  return s;
}

static tfc_status start(struct tfc_gradients *e, const struct tfc_output *ys, uint32_t y_count,
                        const struct tfc_output *grad_ys) {
  tfc_builder_set_scope(e->b, e->scope);
  for (uint32_t i = 0; i < y_count; i++) {
    tfc_dtype type = tfc_dtype_base(tfc_builder_dtype(e->b, ys[i]));
    struct tfc_output given = grad_ys ? grad_ys[i] : TFC_NO_OUTPUT;
    if (!tfc_output_valid(given)) {
      const struct tfc_shape *shape = tfc_grad_shape(e, ys[i]);
      struct tfc_grad_ctx ctx = {.builder = e->b};
      if (!tfc_dtype_is_floating(type) && !tfc_dtype_is_integer(type))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s': a gradient of %s must be given",
                               TFC_STR_ARG(e->g->nodes[ys[i].node].name), tfc_dtype_name(type));
      struct tfc_output dims =
          tfc_shape_is_static(shape) ? grad_const_shape(&ctx, shape) : tfc_add1(e->b, "Shape", ys[i]);
      given = tfc_add2(e->b, "Fill", dims, tfc_add_scalar(e->b, type, 1));
    } else { // the name of the Identity belongs to this computation of gradients; TensorArrays need such a name
      given = tfc_add1(e->b, "Identity", given);
    }
    TFC_RETURN_IF_ERROR(tfc_gradients_push(e, ys[i], tfc_grad_dense(given)));
  }
  return tfc_gradients_adopt(e, e->g->node_count, 0);
}

// Chooses a scope that no earlier gradients of this graph use.
static void name_scope(struct tfc_gradients *e) {
  for (uint32_t k = 0;; k++) {
    bool taken = false;
    int n =
        k ? snprintf(e->scope, sizeof e->scope, "gradients_%u/", k) : snprintf(e->scope, sizeof e->scope, "gradients/");
    for (uint32_t i = 0; i < e->g->node_count && !taken; i++) taken = tfc_str_starts(e->g->nodes[i].name, e->scope);
    if (taken) continue;
    e->scope[n - 1] = 0;
    return;
  }
}

// Lowers the calls between xs and ys, and those in the lowered bodies; then e->g and e->between describe a graph
// without such calls.
static tfc_status lower_between(struct tfc_gradients *e, const struct tfc_output *ys, uint32_t y_count,
                                const struct tfc_output *xs, uint32_t x_count) {
  for (int round = 0; round < 100; round++) {
    bool lowered = false;
    e->between = calloc((size_t)e->g->node_count + 1, sizeof *e->between);
    e->stop = calloc((size_t)e->g->node_count + 1, sizeof *e->stop);
    e->pending = calloc((size_t)e->g->node_count + 1, sizeof *e->pending);
    if (!e->between || !e->stop || !e->pending) return tfc_status_no_memory("gradients");
    TFC_RETURN_IF_ERROR(tfc_gradients_find_stacks(e));
    TFC_RETURN_IF_ERROR(mark(e, ys, y_count, xs, x_count));
    TFC_RETURN_IF_ERROR(tfc_frames_find(e->g, &e->frames));
    for (uint32_t i = 0; i < e->g->node_count; i++) {
      const struct tfc_node *n = &e->g->nodes[i];
      bool call = n->def ? n->def->flags & TFC_OP_FUNCTIONAL : n->function != TFC_NONE;
      if (!call || !e->between[i] || e->stop[i] || with_gradient(e, n)) continue;
      TFC_RETURN_IF_ERROR(tfc_builder_lower(e->b, tfc_builder_gradients, i, tfc_frames_is_inside(e->g, &e->frames, i)));
      lowered = true;
    }
    if (!lowered) return NULL;
    tfc_frames_deinit(&e->frames);
    tfc_graph_release(e->g);
    free(e->between);
    free(e->stop);
    free(e->pending);
    e->g = NULL;
    e->between = e->stop = NULL;
    e->pending = NULL;
    TFC_RETURN_IF_ERROR(tfc_builder_snapshot(e->b, &e->g));
  }
  return tfc_status_make(TFC_UNIMPLEMENTED, "gradients of functions that call themselves without end");
}

static tfc_status check_outputs(const struct tfc_graph *g, const struct tfc_output *list, uint32_t count,
                                const char *what) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i].node >= g->node_count || list[i].index < 0 ||
        (uint32_t)list[i].index >= g->nodes[list[i].node].output_count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "gradients: %s %u is no output of the graph", what, i);
  return NULL;
}

// Checks that no x or y is inside of a loop, where it would have one value per iteration.
static tfc_status check_frames(const struct tfc_gradients *e, const struct tfc_output *list, uint32_t count,
                               const char *what) {
  for (uint32_t i = 0; i < count; i++)
    if (e->frames.of_node[list[i].node])
      return tfc_status_make(TFC_INVALID_ARGUMENT, "gradients: %s '%.*s' is inside of the loop '%.*s'", what,
                             TFC_STR_ARG(e->g->nodes[list[i].node].name),
                             TFC_STR_ARG(e->frames.frames[e->frames.of_node[list[i].node]].name));
  return NULL;
}

tfc_status tfc_builder_gradients(struct tfc_builder *b, const struct tfc_output *ys, uint32_t y_count,
                                 const struct tfc_output *xs, uint32_t x_count, const struct tfc_output *grad_ys,
                                 struct tfc_output *out_grads) {
  tfc_status s = NULL;
  struct tfc_gradients e = {.b = b};
  tfc_builder_set_scope(b, NULL);
  TFC_RETURN_IF_ERROR(tfc_builder_snapshot(b, &e.g));
  TFC_TRY(s, check_outputs(e.g, ys, y_count, "y"));
  TFC_TRY(s, check_outputs(e.g, xs, x_count, "x"));
  TFC_TRY(s, lower_between(&e, ys, y_count, xs, x_count));
  TFC_TRY(s, tfc_infer_shapes(e.g, NULL, 0, &e.shapes));
  TFC_TRY(s, check_frames(&e, ys, y_count, "y"));
  TFC_TRY(s, check_frames(&e, xs, x_count, "x"));
  e.grads = calloc((size_t)e.g->output_total + 1, sizeof *e.grads);
  e.loops = calloc(e.frames.count, sizeof *e.loops);
  if (!e.grads || !e.loops) TFC_TRY(s, tfc_status_no_memory("gradients"));
  for (uint32_t f = 0; f < e.frames.count; f++)
    e.loops[f].count_add = e.loops[f].forward_sync = e.loops[f].backward_sync = e.loops[f].pivot = TFC_NONE;
  for (uint32_t i = 0; i < e.g->node_count; i++) TFC_TRY(s, tfc_gradients_place(&e, i, e.frames.of_node[i]));
  TFC_TRY(s, tfc_gradients_pair_stacks(&e));
  name_scope(&e);
  TFC_TRY(s, start(&e, ys, y_count, grad_ys));
  TFC_TRY(s, run(&e, ys, y_count));
  tfc_builder_set_scope(b, e.scope);
  for (uint32_t i = 0; i < x_count; i++) {
    uint32_t number = tfc_grad_number(&e, xs[i]);
    TFC_TRY(s, tfc_gradients_sum(&e, number));
    out_grads[i] = e.grads[number].count ? tfc_gradients_to_dense(&e, &e.grads[number].data[0]) : TFC_NO_OUTPUT;
  }
  s = tfc_status_clone(tfc_builder_status(b));
out:
  tfc_builder_set_scope(b, NULL);
  if (e.grads)
    for (uint32_t i = 0; i < e.g->output_total; i++) tfc_array_free(&e.grads[i]);
  free(e.grads);
  free(e.loops);
  free(e.between);
  free(e.stop);
  free(e.pending);
  tfc_array_free(&e.frame_of);
  tfc_array_free(&e.stack_uses);
  tfc_array_free(&e.stacks);
  tfc_intmap_deinit(&e.entered);
  tfc_intmap_deinit(&e.values);
  tfc_frames_deinit(&e.frames);
  tfc_shapes_deinit(&e.shapes);
  tfc_graph_release(e.g);
  return s;
}

tfc_status tfc_gradients(const struct tfc_graph *g, const struct tfc_output *ys, uint32_t y_count,
                         const struct tfc_output *xs, uint32_t x_count, const struct tfc_output *grad_ys,
                         struct tfc_graph **out, struct tfc_output *out_grads) {
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  TFC_TRY(s, tfc_builder_create(g, &b));
  TFC_TRY(s, tfc_builder_gradients(b, ys, y_count, xs, x_count, grad_ys, out_grads));
  s = tfc_builder_finish(b, out);
out:
  tfc_builder_free(b);
  return s;
}
