// tfc-run --shapes and --list-ops.
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/program.h"
#include "cli/run.h"
#include "runtime/device/cpu/kernels.h"
#include "runtime/device/driver.h"
#include "runtime/graph/import.h"
#include "runtime/ops/host_memory.h"

static json_t *shape_json(const struct tfc_shape *shape) { // null for an unknown rank; unknown dimensions are null
  if (shape->rank < 0) return json_null();
  json_t *dims = json_array();
  for (int i = 0; i < shape->rank; i++)
    json_array_append_new(dims, shape->dims[i] >= 0 ? json_integer(shape->dims[i]) : json_null());
  return dims;
}

// Returns how an op is run: by a kernel for these types, by the executor, or not at all.
static const char *way_of(const struct tfc_op_def *def) {
  const uint32_t executor = TFC_OP_SWITCH | TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION |
                            TFC_OP_LOOP_COND | TFC_OP_FUNCTIONAL | TFC_OP_NOP | TFC_OP_PLACEHOLDER | TFC_OP_VARIABLE;
  return def->kernel ? "kernel" : def->flags & executor ? "executor" : "none";
}

static bool is_supported(const struct tfc_node *n) {
  return n->function != TFC_NONE || (n->def && strcmp(way_of(n->def), "none") != 0);
}

// Adds the dtypes and shapes of the node's outputs by name ("x:0").
static void add_tensors(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shapes *shapes,
                        json_t *tensors) {
  for (uint32_t i = 0; i < n->output_count; i++) {
    char *name = tfc_format("%.*s:%u", TFC_STR_ARG(n->name), i);
    if (name)
      json_object_set_new(tensors, name,
                          json_pack("{s:s, s:o}", "dtype", tfc_dtype_name(g->output_dtypes[n->output_begin + i]),
                                    "shape", shape_json(&shapes->shapes[n->output_begin + i])));
    free(name);
  }
}

static json_t *node_json(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shapes *shapes) {
  json_t *outputs = json_array();
  for (uint32_t i = 0; i < n->output_count; i++)
    json_array_append_new(outputs,
                          json_pack("{s:s, s:o}", "dtype", tfc_dtype_name(g->output_dtypes[n->output_begin + i]),
                                    "shape", shape_json(&shapes->shapes[n->output_begin + i])));
  return json_pack("{s:s%, s:s%, s:b, s:o}", "name", n->name.data, n->name.size, "op", n->op.data, n->op.size,
                   "supported", is_supported(n), "outputs", outputs);
}

// The errors of nodes whose declared shapes contradict their inputs, by node. The error of the first node is reported.
struct contradictions {
  const struct tfc_graph *graph;
  tfc_status *of; // [node_count]
  uint32_t count;
};
static void contradiction(void *arg, const struct tfc_node *node, tfc_status status) {
  struct contradictions *c = arg;
  tfc_status *kept = &c->of[node - c->graph->nodes];
  if (*kept)
    tfc_status_free(status);
  else
    *kept = status, c->count++;
}

// Makes one status of all these errors, which names the first node; `json` (optional) lists all of them.
static tfc_status join_contradictions(struct contradictions *c, json_t *json) {
  tfc_status first = NULL;
  for (uint32_t i = 0; i < c->graph->node_count; i++) {
    const struct tfc_node *n = &c->graph->nodes[i];
    if (!c->of[i]) continue;
    tfc_status s = tfc_status_annotate(c->of[i], "node '%.*s' (%.*s)", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
    c->of[i] = NULL;
    if (json) json_array_append_new(json, cli_json_error(s));
    if (!first)
      first = s;
    else if (!json)
      tfc_warn("%s", tfc_status_message(s));
    if (first != s) tfc_status_free(s);
  }
  return first;
}

tfc_status run_shapes(const struct run_options *o) {
  tfc_status s = NULL;
  struct contradictions wrong = {0};
  struct tfc_graph *g = NULL;
  struct tfc_shapes shapes = {0};
  tfc_graph_format format;
  struct tfc_shape_override *overrides = calloc(o->feeds.count + 1u, sizeof *overrides);
  struct run_feed *feeds = calloc(o->feeds.count + 1u, sizeof *feeds);
  if (!overrides || !feeds) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_graph_load(o->graph, &format, &g));
  for (uint32_t i = 0; i < o->feeds.count; i++) {
    TFC_TRY(s, run_parse_feed(g, o->feeds.items[i], &feeds[i]));
    overrides[i] = (struct tfc_shape_override){.output = feeds[i].output, .shape = feeds[i].shape};
  }
  wrong = (struct contradictions){.graph = g, .of = calloc(g->node_count + 1u, sizeof *wrong.of)};
  if (!wrong.of) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_infer_shapes_noting(g, overrides, o->feeds.count, contradiction, &wrong, &shapes));
  if (o->common.json) {
    json_t *nodes = json_array(), *tensors = json_object();
    for (uint32_t i = 0; i < g->node_count; i++) {
      json_array_append_new(nodes, node_json(g, &g->nodes[i], &shapes));
      add_tensors(g, &g->nodes[i], &shapes, tensors);
    }
    json_t *document =
        json_pack("{s:o, s:o, s:o}", "graph", cli_json_string(o->graph), "nodes", nodes, "tensors", tensors);
    json_t *errors = wrong.count ? json_array() : NULL;
    s = join_contradictions(&wrong, errors);
    if (errors) {
      json_object_set(document, "error", json_array_get(errors, 0));
      json_object_set_new(document, "errors", errors);
    }
    s = tfc_status_join(s, cli_json_print(document));
    json_decref(document);
    goto out;
  }
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    char text[TFC_SHAPE_TEXT];
    printf("%.*s (%.*s%s)", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op), is_supported(n) ? "" : ", not supported");
    for (uint32_t k = 0; k < n->output_count; k++)
      printf(" %s%s", tfc_dtype_name(g->output_dtypes[n->output_begin + k]),
             tfc_shape_show(&shapes.shapes[n->output_begin + k], text));
    printf("\n");
  }
  s = join_contradictions(&wrong, NULL);
out:
  for (uint32_t i = 0; wrong.of && i < g->node_count; i++) tfc_status_free(wrong.of[i]);
  free(wrong.of);
  for (uint32_t i = 0; feeds && i < o->feeds.count; i++) run_feed_deinit(&feeds[i]);
  free(overrides);
  free(feeds);
  tfc_shapes_deinit(&shapes);
  tfc_graph_release(g);
  return s;
}

// Returns the element types for which the op's kernel runs on the host even if its device has memory of its own.
static json_t *host_types(const struct tfc_op_def *def) {
  json_t *types = json_array();
  for (int t = 1; t < TFC_DTYPE_COUNT && def->kernel; t++)
    if (def->host.types & TFC_TYPE_BIT(t)) json_array_append_new(types, json_string(tfc_dtype_name((tfc_dtype)t)));
  return types;
}

static bool has_on_cpu(const struct tfc_op_def *def, tfc_dtype type) {
  return tfc_cpu_kernel_next(tfc_str_from(def->name), type, NULL) != NULL;
}

// Returns the element types, among those that the op takes, for which a kind of device has kernels of its own.
static json_t *kernel_types(const struct tfc_op_def *def, bool (*has)(const struct tfc_op_def *def, tfc_dtype type)) {
  json_t *types = json_array();
  bool all = true, every = true;
  for (int t = 1; t < TFC_DTYPE_COUNT && def->kernel; t++) {
    bool here = has(def, (tfc_dtype)t), taken = !def->types || def->types & TFC_TYPE_BIT(t);
    bool beside = has != has_on_cpu && def->host.types & TFC_TYPE_BIT(t);
    every &= here || beside;
    all &= here || beside || !taken;
    if (here && taken) json_array_append_new(types, json_string(tfc_dtype_name((tfc_dtype)t)));
  }
  if (!def->kernel || !(def->types ? every && all : every)) return types;
  if (def->types && json_array_size(types)) return types;
  json_array_clear(types); // an empty list stands for every type
  json_array_append_new(types, json_string("any"));
  return types;
}

static void print_types(const char *before, const json_t *types, const char *none) {
  size_t k;
  json_t *type;
  if (!json_array_size(types) && !none) return;
  printf("%s", before);
  json_array_foreach(types, k, type) printf(" %s", json_string_value(type));
  if (!json_array_size(types)) printf(" %s", none);
}

tfc_status run_list_ops(const struct run_options *o) {
  size_t count = 0;
  const struct tfc_op_def *const *list = tfc_op_list(&count);
  size_t built_in_count = 0;
  const struct tfc_device_driver *const *built_in = tfc_driver_built_in(&built_in_count);
  const struct tfc_device_driver *gpu = NULL; // even without a GPU, the plug-in lists its kernels
  json_t *document = json_array();
  tfc_status_free(tfc_driver_find("gpu", &gpu));
  for (size_t i = 0; i < count; i++) {
    const struct tfc_op_def *def = list[i];
    json_t *types = json_array(), *devices = json_array(), *kernels = json_object();
    for (size_t k = 0; k < built_in_count; k++) // these run every op, if need be with its reference kernel
      json_array_append_new(devices, json_string(built_in[k]->kind));
    for (int t = 1; t < TFC_DTYPE_COUNT; t++)
      if (def->types & TFC_TYPE_BIT(t)) json_array_append_new(types, json_string(tfc_dtype_name((tfc_dtype)t)));
    bool fast = tfc_cpu_kernel_next(tfc_str_from(def->name), TFC_FLOAT, NULL) != NULL;
    json_object_set_new(kernels, "cpu", kernel_types(def, has_on_cpu));
    if (gpu && gpu->has_kernel) {
      json_t *here = kernel_types(def, gpu->has_kernel);
      if (json_array_size(here)) json_array_append_new(devices, json_string("gpu"));
      json_object_set_new(kernels, "gpu", here);
    }
    json_array_append_new(document,
                          json_pack("{s:s, s:s, s:o, s:o, s:b, s:o, s:o, s:b}", "op", def->name, "runs", way_of(def),
                                    "dtypes", types, "devices", devices, "fast_cpu_kernel", fast, "kernels", kernels,
                                    "host", host_types(def), "gradient", def->gradient != NULL));
  }
  tfc_status s = NULL;
  if (o->common.json) {
    s = cli_json_print(document);
  } else {
    size_t i;
    json_t *row;
    json_array_foreach(document, i, row) {
      const json_t *kernels = json_object_get(row, "kernels");
      printf("%-36s %-9s", json_string_value(json_object_get(row, "op")),
             json_string_value(json_object_get(row, "runs")));
      print_types("", json_object_get(row, "dtypes"), "any");
      print_types("; cpu:", json_object_get(kernels, "cpu"), NULL);
      print_types("; gpu:", json_object_get(kernels, "gpu"), NULL);
      print_types("; host beside a gpu:", json_object_get(row, "host"), NULL);
      printf("\n");
    }
    if (!gpu) printf("No GPU plug-in: what GPUs have kernels for is not listed.\n");
  }
  json_decref(document);
  return s;
}
