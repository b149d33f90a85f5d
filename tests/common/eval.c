#include "tests/common/eval.h"

#include <stdlib.h>
#include <string.h>

tfc_status eval_create(const struct tfc_graph *graph, struct eval *out) {
  *out = (struct eval){.graph = graph, .check_shapes = true};
  out->values = calloc(graph->output_total + 1, sizeof *out->values);
  out->done = calloc(graph->node_count + 1, 1);
  if (!out->values || !out->done) return tfc_status_no_memory(NULL);
  return NULL;
}

void eval_deinit(struct eval *e) {
  for (uint32_t i = 0; e->values && i < e->graph->output_total; i++) tfc_tensor_release(&e->values[i]);
  free(e->values);
  free(e->done);
  tfc_arena_deinit(&e->arena);
}

void eval_feed(struct eval *e, uint32_t node, const struct tfc_tensor *value) {
  tfc_tensor_share(value, &e->values[e->graph->nodes[node].output_begin]);
  e->done[node] = 1;
}

static int64_t next_symbol(struct tfc_shape_ctx *ctx) {
  (void)ctx;
  static int64_t last = -1;
  return --last;
}

// Runs the shape function on these inputs, once with all values known and once with shapes alone. Neither result may
// contradict the shapes of the computed tensors.
static tfc_status check_shapes(const struct eval *e, const struct tfc_node *n, const struct tfc_tensor *const *inputs,
                               bool known) {
  struct tfc_shape *outputs = calloc(n->output_count + 1u, sizeof *outputs);
  struct tfc_shape *partial = calloc(n->output_count + 1u, sizeof *partial);
  const struct tfc_shape **shapes = calloc(n->input_count + 1u, sizeof *shapes);
  const struct tfc_shape **as_shape = calloc(n->input_count + 1u, sizeof *as_shape);
  struct tfc_shape *described = calloc(n->input_count + 1u, sizeof *described);
  const struct tfc_tensor **values = calloc(n->input_count + 1u, sizeof *values);
  tfc_status s = NULL;
  if (!outputs || !shapes || !as_shape || !values || !partial || !described) abort();
  for (uint32_t i = 0; i < n->input_count; i++) {
    const struct tfc_tensor *t = inputs[i];
    shapes[i] = &t->shape;
    described[i] = TFC_SHAPE_UNKNOWN;
    as_shape[i] = &described[i];
    if (!known || !tfc_dtype_is_plain(t->dtype)) continue;
    values[i] = t;
    if (tfc_dtype_is_integer(t->dtype) && t->shape.rank <= 1 && tfc_tensor_elements(t) <= TFC_MAX_RANK) {
      described[i].rank = (int32_t)tfc_tensor_elements(t);
      for (int k = 0; k < described[i].rank; k++) {
        int64_t v = tfc_tensor_int(t, k);
        described[i].dims[k] = v < 0 ? TFC_DIM_UNKNOWN : v;
      }
    }
  }
  for (uint32_t i = 0; i < n->output_count; i++) outputs[i] = partial[i] = TFC_SHAPE_UNKNOWN;
  struct tfc_shape_ctx ctx = {.graph = e->graph,
                              .node = n,
                              .inputs = shapes,
                              .input_values = values,
                              .input_as_shape = as_shape,
                              .outputs = outputs,
                              .output_as_shape = partial,
                              .new_symbol = next_symbol};
  TFC_TRY(s, n->def->shape(&ctx));
  for (uint32_t i = 0; i < n->output_count; i++) {
    const struct tfc_tensor *t = &e->values[n->output_begin + i];
    char a[TFC_SHAPE_TEXT], b[TFC_SHAPE_TEXT];
    if (!tfc_shape_compatible(&outputs[i], &t->shape))
      TFC_FAIL(s, TFC_INTERNAL, "%.*s: output %u has shape %s where its shape function says %s", TFC_STR_ARG(n->name),
               i, tfc_shape_show(&t->shape, a), tfc_shape_show(&outputs[i], b));
    if (partial[i].rank < 0 || !tfc_dtype_is_integer(t->dtype)) continue;
    bool agrees = tfc_tensor_elements(t) == partial[i].rank;
    for (int k = 0; agrees && k < partial[i].rank; k++)
      agrees = !tfc_dim_known(partial[i].dims[k]) || partial[i].dims[k] == tfc_tensor_int(t, k);
    if (!agrees)
      TFC_FAIL(s, TFC_INTERNAL, "%.*s: output %u is not the value that its shape function says: %s",
               TFC_STR_ARG(n->name), i, tfc_shape_show(&partial[i], a));
  }
out:
  free(outputs);
  free(partial);
  free(shapes);
  free(as_shape);
  free(described);
  free(values);
  return s;
}

static tfc_status run_node(struct eval *e, uint32_t id) {
  const struct tfc_graph *g = e->graph;
  const struct tfc_node *n = &g->nodes[id];
  const struct tfc_op_def *def = n->def;
  const struct tfc_output *in = tfc_node_inputs(g, n);
  const struct tfc_tensor **inputs = calloc(n->input_count + 1u, sizeof *inputs);
  struct tfc_tensor **outputs = calloc(n->output_count + 1u, sizeof *outputs);
  struct tfc_shape *shapes = calloc(n->input_count + n->output_count + 1u, sizeof *shapes);
  tfc_dtype *types = calloc(n->input_count + 1u, sizeof *types);
  struct tfc_prepare_ctx prepare = {.graph = g, .node = n, .def = def, .arena = &e->arena};
  tfc_status s = NULL;
  if (!inputs || !outputs || !shapes || !types) abort();
  if (!def || !def->kernel) TFC_FAIL(s, TFC_UNIMPLEMENTED, "op %.*s", TFC_STR_ARG(n->op));
  for (uint32_t i = 0; i < n->input_count; i++) {
    TFC_TRY(s, eval_output(e, in[i], &inputs[i]));
    shapes[i] = inputs[i]->shape;
    types[i] = inputs[i]->dtype;
  }
  for (uint32_t i = 0; i < n->output_count; i++) {
    shapes[n->input_count + i] = TFC_SHAPE_UNKNOWN;
    outputs[i] = &e->values[n->output_begin + i];
  }
  prepare.input_shapes = shapes;
  prepare.output_shapes = shapes + n->input_count;
  prepare.input_dtypes = types;
  prepare.input_values = inputs;
  TFC_TRY(s, tfc_kernel_prepare(&prepare));
  struct tfc_kernel_env env = {.threads = 1};
  struct tfc_kernel_ctx ctx = {.graph = g,
                               .node = n,
                               .env = &env,
                               .inputs = inputs,
                               .outputs = outputs,
                               .input_count = n->input_count,
                               .output_count = n->output_count,
                               .state = prepare.state};
  s = def->kernel(&ctx);
  if (prepare.release) prepare.release(prepare.state);
  if (s) goto out;
  for (uint32_t i = 0; i < n->output_count; i++)
    if (outputs[i]->dtype != tfc_dtype_base(g->output_dtypes[n->output_begin + i]))
      TFC_FAIL(s, TFC_INTERNAL, "%.*s: output %u is %s, declared %s", TFC_STR_ARG(n->name), i,
               tfc_dtype_name(outputs[i]->dtype), tfc_dtype_name(g->output_dtypes[n->output_begin + i]));
  if (e->check_shapes && def->shape) {
    TFC_TRY(s, check_shapes(e, n, inputs, true));
    TFC_TRY(s, check_shapes(e, n, inputs, false));
  }
out:
  free(inputs);
  free(outputs);
  free(shapes);
  free(types);
  return s;
}

tfc_status eval_output(struct eval *e, struct tfc_output o, const struct tfc_tensor **out) {
  if (!e->done[o.node]) {
    TFC_RETURN_IF_ERROR(run_node(e, o.node));
    e->done[o.node] = 1;
  }
  *out = &e->values[e->graph->nodes[o.node].output_begin + (uint32_t)o.index];
  return NULL;
}
