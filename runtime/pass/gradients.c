// Gradients, as TensorFlow's builder makes them: the nodes between xs and ys are visited from the ys back, each when
// all its consumers in between have been; several gradients of one output are summed by AddN in the order of their
// arrival, those on one device first; trainable outputs without a gradient get zeros as soon as another output has one.
//
// Gradients of gathered rows stay rows (values, indices, shape) through Identity and reads of variables, are joined
// when there are several, and become dense where anything else wants them.
#include "runtime/ops/gradient.h"

#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/pass/pass.h"

struct grad { // dense, or rows where indices are valid
  struct tfc_output values, indices, dense_shape;
};
struct grad_list {
  struct grad *data;
  size_t count, capacity;
};

struct engine {
  struct tfc_builder *b;
  struct tfc_graph *g; // the forward nodes; ids are those of the builder
  struct tfc_shapes shapes;
  struct grad_list *grads; // by output number
  bool *between, *stop, *is_x;
  uint32_t *pending;
  TFC_ARRAY(uint32_t) queue;
};

static tfc_status out_of_memory(void) {
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory: gradients");
}

static bool is_sparse(const struct grad *g) {
  return tfc_output_valid(g->indices);
}

static struct grad dense_grad(struct tfc_output o) {
  return (struct grad){o, TFC_NO_OUTPUT, TFC_NO_OUTPUT};
}

// Rows added into zeros: indices may repeat.
static struct tfc_output to_dense(struct engine *e, const struct grad *g) {
  if (!is_sparse(g)) return g->values;
  struct tfc_builder *b = e->b;
  struct tfc_output begin = tfc_add_i32_vector(b, (int32_t[]){0}, 1), end = tfc_add_i32_vector(b, (int32_t[]){1}, 1);
  struct tfc_attr shrink = tfc_attr_int("shrink_axis_mask", 1);
  struct tfc_output rows =
      tfc_add(b, "StridedSlice", NULL, (struct tfc_output[]){g->dense_shape, begin, end, end}, 4, &shrink, 1);
  return tfc_add3(b, "UnsortedSegmentSum", g->values, g->indices, rows);
}

// Sum of dense gradients, grouped by device.
static struct tfc_output add_all(struct engine *e, const struct tfc_output *items, size_t count) {
  struct tfc_builder *b = e->b;
  struct tfc_output sums[64], group[256];
  tfc_str devices[64];
  size_t device_count = 0;
  if (count == 1) return items[0];
  for (size_t i = 0; i < count; i++) {
    if (!tfc_output_valid(items[i])) return TFC_NO_OUTPUT;
    tfc_str device = tfc_builder_node(b, items[i].node)->device;
    size_t at = 0;
    while (at < device_count && tfc_str_compare(devices[at], device) < 0) at++;
    if (at < device_count && tfc_str_equal(devices[at], device)) continue;
    if (device_count == 64) return tfc_add(b, "AddN", NULL, items, (uint32_t)count, NULL, 0);
    memmove(devices + at + 1, devices + at, (device_count - at) * sizeof *devices);
    devices[at] = device;
    device_count++;
  }
  if (device_count == 1 || count > 256) return tfc_add(b, "AddN", NULL, items, (uint32_t)count, NULL, 0);
  for (size_t d = 0; d < device_count; d++) {
    uint32_t n = 0;
    for (size_t i = 0; i < count; i++)
      if (tfc_str_equal(tfc_builder_node(b, items[i].node)->device, devices[d])) group[n++] = items[i];
    sums[d] = n == 1 ? group[0] : tfc_add(b, "AddN", NULL, group, n, NULL, 0);
  }
  return tfc_add(b, "AddN", NULL, sums, (uint32_t)device_count, NULL, 0);
}

// Rows of several gradients, one behind the other.
static tfc_status join_rows(struct engine *e, const struct grad_list *list, struct grad *out) {
  struct tfc_builder *b = e->b;
  uint32_t n = (uint32_t)list->count;
  struct tfc_output *values = calloc(2 * ((size_t)n + 1), sizeof *values), *indices = values ? values + n + 1 : NULL;
  if (!values) return out_of_memory();
  bool wide = false;
  for (uint32_t i = 0; i < n; i++) wide |= tfc_builder_dtype(b, list->data[i].indices) == TFC_INT64;
  for (uint32_t i = 0; i < n; i++) {
    values[i] = list->data[i].values;
    indices[i] = list->data[i].indices;
    if (wide && tfc_builder_dtype(b, indices[i]) != TFC_INT64) {
      struct tfc_attr to = tfc_attr_type("DstT", TFC_INT64);
      indices[i] = tfc_add(b, "Cast", NULL, &indices[i], 1, &to, 1);
    }
  }
  struct tfc_attr count = tfc_attr_int("N", n);
  values[n] = indices[n] = tfc_add_i32(b, 0);
  *out = (struct grad){tfc_add(b, "ConcatV2", NULL, values, n + 1, &count, 1),
                       tfc_add(b, "ConcatV2", NULL, indices, n + 1, &count, 1), list->data[0].dense_shape};
  free(values);
  return NULL;
}

// One gradient instead of several; leaves it in the list.
static tfc_status aggregate(struct engine *e, uint32_t number) {
  struct grad_list *list = &e->grads[number];
  struct grad sum;
  if (list->count < 2) return NULL;
  bool all_sparse = true;
  for (size_t i = 0; i < list->count; i++) all_sparse &= is_sparse(&list->data[i]);
  if (all_sparse) {
    TFC_RETURN_IF_ERROR(join_rows(e, list, &sum));
  } else {
    struct tfc_output *items = calloc(list->count, sizeof *items);
    if (!items) return out_of_memory();
    for (size_t i = 0; i < list->count; i++) items[i] = to_dense(e, &list->data[i]);
    sum = dense_grad(add_all(e, items, list->count));
    free(items);
  }
  list->data[0] = sum;
  list->count = 1;
  return NULL;
}

static bool is_trainable(const struct engine *e, uint32_t number) {
  return tfc_dtype_is_trainable(e->g->output_dtypes[number]);
}

// Nodes on a way of trainable tensors from xs to ys.
static tfc_status mark(struct engine *e, const struct tfc_output *ys, uint32_t y_count, const struct tfc_output *xs,
                       uint32_t x_count) {
  const struct tfc_graph *g = e->g;
  bool *reached = calloc((size_t)g->node_count + 1, sizeof *reached);
  uint32_t *stack = malloc(((size_t)g->node_count + 1) * sizeof *stack), depth = 0;
  if (!reached || !stack) {
    free(reached);
    free(stack);
    return out_of_memory();
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
  }
  for (uint32_t i = 0; i < y_count; i++)
    if (reached[ys[i].node] && !e->between[ys[i].node]) e->between[ys[i].node] = true, stack[depth++] = ys[i].node;
  while (depth) {
    const struct tfc_node *n = &g->nodes[stack[--depth]];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    for (uint32_t k = 0; k < n->input_count; k++)
      if (reached[in[k].node] && !e->between[in[k].node]) e->between[in[k].node] = true, stack[depth++] = in[k].node;
  }
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_output *in = tfc_node_inputs(g, &g->nodes[i]);
    for (uint32_t k = 0; e->between[i] && k < g->nodes[i].input_count; k++)
      if (e->between[in[k].node]) e->pending[in[k].node]++;
  }
  // An x that depends on no other x ends the way.
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

static tfc_status push_grad(struct engine *e, struct tfc_output to, struct grad grad) {
  uint32_t number = e->g->nodes[to.node].output_begin + (uint32_t)to.index;
  return tfc_array_push(&e->grads[number], grad) ? NULL : out_of_memory();
}

static tfc_status unsupported(const struct tfc_node *n) {
  return tfc_status_make(TFC_UNIMPLEMENTED, "node '%.*s': op %.*s has no gradient", TFC_STR_ARG(n->name),
                         TFC_STR_ARG(n->op));
}

// Passes a gradient on unchanged, rows too.
static bool passes_rows(const struct tfc_node *n) {
  return tfc_str_is(n->op, "Identity") || tfc_str_is(n->op, "ReadVariableOp") || tfc_str_is(n->op, "RefIdentity");
}

// Calls the op's gradient function and hands its results to the producers of the inputs.
static tfc_status differentiate(struct engine *e, uint32_t id) {
  tfc_status s = NULL;
  const struct tfc_graph *g = e->g;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_output *in = tfc_node_inputs(g, n);
  bool any = false;
  uint32_t most = n->input_count + n->output_count + 1;
  struct tfc_output *grad_outputs = NULL, *grad_inputs = NULL;
  struct tfc_indexed_slices *indexed = NULL;
  const struct tfc_shape **in_shapes = NULL, **out_shapes = NULL;
  char *scope = NULL;
  for (uint32_t i = 0; i < n->output_count; i++) {
    TFC_TRY(s, aggregate(e, n->output_begin + i));
    any |= e->grads[n->output_begin + i].count > 0;
  }
  if (!any || e->stop[id]) goto out;
  if (n->def && (n->def->flags & TFC_OP_NOT_DIFFERENTIABLE)) goto out;
  if (!n->def || !n->def->gradient) {
    s = unsupported(n);
    goto out;
  }
  if (passes_rows(n) && is_sparse(&e->grads[n->output_begin].data[0])) {
    s = push_grad(e, in[0], e->grads[n->output_begin].data[0]);
    goto out;
  }
  grad_outputs = calloc(most, sizeof *grad_outputs);
  grad_inputs = calloc(most, sizeof *grad_inputs);
  indexed = calloc(most, sizeof *indexed);
  in_shapes = calloc(most, sizeof *in_shapes);
  out_shapes = calloc(most, sizeof *out_shapes);
  scope = tfc_format("gradients/%.*s_grad", TFC_STR_ARG(n->name));
  if (!grad_outputs || !grad_inputs || !indexed || !in_shapes || !out_shapes || !scope) {
    s = out_of_memory();
    goto out;
  }
  tfc_builder_set_scope(e->b, scope);
  for (uint32_t i = 0; i < n->output_count; i++) {
    struct grad_list *list = &e->grads[n->output_begin + i];
    tfc_dtype type = tfc_dtype_base(g->output_dtypes[n->output_begin + i]);
    out_shapes[i] = &e->shapes.shapes[n->output_begin + i];
    grad_outputs[i] = list->count ? to_dense(e, &list->data[0]) : TFC_NO_OUTPUT;
    if (!list->count && tfc_dtype_is_trainable(type) && type != TFC_RESOURCE)
      grad_outputs[i] = tfc_add1(e->b, "ZerosLike", (struct tfc_output){id, (int32_t)i});
  }
  for (uint32_t k = 0; k < n->input_count; k++) {
    in_shapes[k] = &e->shapes.shapes[g->nodes[in[k].node].output_begin + (uint32_t)in[k].index];
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
  s = n->def->gradient(&ctx);
  if (!s) s = tfc_status_clone(tfc_builder_status(e->b));
  if (s) {
    s = tfc_status_annotate(s, "gradient of node '%.*s' (%.*s)", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
    goto out;
  }
  for (uint32_t k = 0; k < n->input_count; k++) {
    if (tfc_output_valid(indexed[k].values))
      TFC_TRY(s, push_grad(e, in[k], (struct grad){indexed[k].values, indexed[k].indices, indexed[k].dense_shape}));
    else if (tfc_output_valid(grad_inputs[k]))
      TFC_TRY(s, push_grad(e, in[k], dense_grad(grad_inputs[k])));
  }
out:
  free(grad_outputs);
  free(grad_inputs);
  free(indexed);
  free(in_shapes);
  free(out_shapes);
  free(scope);
  return s;
}

static tfc_status run(struct engine *e, const struct tfc_output *ys, uint32_t y_count) {
  const struct tfc_graph *g = e->g;
  for (uint32_t i = 0; i < y_count; i++) {
    uint32_t id = ys[i].node;
    bool queued = !e->between[id] || e->pending[id];
    for (uint32_t k = 0; k < i; k++) queued |= ys[k].node == id;
    if (!queued && !tfc_array_push(&e->queue, id)) return out_of_memory();
  }
  for (size_t head = 0; head < e->queue.count; head++) {
    uint32_t id = e->queue.data[head];
    const struct tfc_node *n = &g->nodes[id];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    TFC_RETURN_IF_ERROR(differentiate(e, id));
    for (uint32_t k = 0; k < n->input_count; k++)
      if (e->between[in[k].node] && --e->pending[in[k].node] == 0 && !tfc_array_push(&e->queue, in[k].node))
        return out_of_memory();
  }
  return NULL;
}

static tfc_status start(struct engine *e, const struct tfc_output *ys, uint32_t y_count,
                        const struct tfc_output *grad_ys) {
  tfc_builder_set_scope(e->b, "gradients");
  for (uint32_t i = 0; i < y_count; i++) {
    tfc_dtype type = tfc_dtype_base(tfc_builder_dtype(e->b, ys[i]));
    struct tfc_output given = grad_ys ? grad_ys[i] : TFC_NO_OUTPUT;
    if (!tfc_output_valid(given)) {
      const struct tfc_shape *shape = &e->shapes.shapes[e->g->nodes[ys[i].node].output_begin + (uint32_t)ys[i].index];
      struct tfc_grad_ctx ctx = {.builder = e->b};
      if (!tfc_dtype_is_floating(type) && !tfc_dtype_is_integer(type))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s': a gradient of %s must be given",
                               TFC_STR_ARG(e->g->nodes[ys[i].node].name), tfc_dtype_name(type));
      struct tfc_output dims =
          tfc_shape_is_static(shape) ? tfc_grad_const_shape(&ctx, shape) : tfc_add1(e->b, "Shape", ys[i]);
      given = tfc_add2(e->b, "Fill", dims, tfc_add_scalar(e->b, type, 1));
    }
    TFC_RETURN_IF_ERROR(push_grad(e, ys[i], dense_grad(given)));
  }
  return NULL;
}

static tfc_status check_outputs(const struct tfc_graph *g, const struct tfc_output *list, uint32_t count,
                                const char *what) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i].node >= g->node_count || list[i].index < 0 ||
        (uint32_t)list[i].index >= g->nodes[list[i].node].output_count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "gradients: %s %u is no output of the graph", what, i);
  return NULL;
}

tfc_status tfc_builder_gradients(struct tfc_builder *b, const struct tfc_output *ys, uint32_t y_count,
                                 const struct tfc_output *xs, uint32_t x_count, const struct tfc_output *grad_ys,
                                 struct tfc_output *out_grads) {
  tfc_status s = NULL;
  struct engine e = {.b = b};
  TFC_RETURN_IF_ERROR(tfc_builder_snapshot(b, &e.g));
  TFC_TRY(s, check_outputs(e.g, ys, y_count, "y"));
  TFC_TRY(s, check_outputs(e.g, xs, x_count, "x"));
  TFC_TRY(s, tfc_infer_shapes(e.g, NULL, 0, &e.shapes));
  e.grads = calloc((size_t)e.g->output_total + 1, sizeof *e.grads);
  e.between = calloc((size_t)e.g->node_count + 1, sizeof *e.between);
  e.stop = calloc((size_t)e.g->node_count + 1, sizeof *e.stop);
  e.pending = calloc((size_t)e.g->node_count + 1, sizeof *e.pending);
  if (!e.grads || !e.between || !e.stop || !e.pending) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory: gradients");
  TFC_TRY(s, mark(&e, ys, y_count, xs, x_count));
  TFC_TRY(s, start(&e, ys, y_count, grad_ys));
  TFC_TRY(s, run(&e, ys, y_count));
  tfc_builder_set_scope(b, "gradients");
  for (uint32_t i = 0; i < x_count; i++) {
    uint32_t number = e.g->nodes[xs[i].node].output_begin + (uint32_t)xs[i].index;
    TFC_TRY(s, aggregate(&e, number));
    out_grads[i] = e.grads[number].count ? to_dense(&e, &e.grads[number].data[0]) : TFC_NO_OUTPUT;
  }
  s = tfc_status_clone(tfc_builder_status(b));
out:
  tfc_builder_set_scope(b, NULL);
  if (e.grads)
    for (uint32_t i = 0; i < e.g->output_total; i++) tfc_array_free(&e.grads[i]);
  free(e.grads);
  free(e.between);
  free(e.stop);
  free(e.pending);
  tfc_array_free(&e.queue);
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
