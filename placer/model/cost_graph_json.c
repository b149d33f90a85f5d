// Reads and writes the format "tfc-cost-graph". Every error message names the node, edge or field that is wrong.
#include <math.h>
#include <stdlib.h>

#include "placer/model/cost_graph_json.h"
#include "placer/model/json.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"

#define FORMAT "tfc-cost-graph"

// An unknown number must be left out of the file: null is an error.
static tfc_status check_given(const json_t *object, const char *const *names) {
  for (; *names; names++)
    if (json_is_null(json_object_get(object, *names)))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is null, not a whole number", *names);
  return NULL;
}

static tfc_status read_kinds(const json_t *root, struct tfc_cost_builder *b, uint32_t *out_count) {
  const json_t *kinds = tfc_json_field(root, "kinds");
  if (!json_is_array(kinds)) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"kinds\" is not a list of names");
  *out_count = (uint32_t)json_array_size(kinds);
  for (size_t i = 0; i < json_array_size(kinds); i++) {
    const json_t *kind = json_array_get(kinds, i);
    if (!json_is_string(kind)) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"kinds\" is not a list of names");
    uint32_t index;
    TFC_RETURN_IF_ERROR(tfc_cost_builder_kind(b, (tfc_str){json_string_value(kind), json_string_length(kind)}, &index));
    if (index != i) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"kinds\" names '%s' twice", json_string_value(kind));
  }
  return NULL;
}

static tfc_status read_times(const json_t *object, struct tfc_cost_builder *b, uint32_t node, uint32_t kinds) {
  const json_t *times = tfc_json_field(object, "time_us");
  if (!json_is_object(times))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "\"time_us\" is not an object of times by kind");
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)times, key, value) {
    if (json_is_null(value)) continue;
    uint32_t kind;
    TFC_RETURN_IF_ERROR(tfc_cost_builder_kind(b, tfc_str_from(key), &kind));
    if (kind >= kinds)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "\"time_us\" has kind '%s', which is not among \"kinds\"", key);
    if (!json_is_number(value))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "\"time_us\" on '%s' is not a number", key);
    TFC_RETURN_IF_ERROR(tfc_cost_builder_time(b, node, kind, json_number_value(value)));
  }
  return NULL;
}

static tfc_status read_node(const json_t *object, struct tfc_cost_builder *b, uint32_t kinds,
                            struct tfc_strmap *index) {
  tfc_str name = {0}, group = {0}, pin = {0};
  uint64_t memory = 0;
  double order = NAN;
  uint32_t node;
  if (!json_is_object(object)) return tfc_status_make(TFC_INVALID_ARGUMENT, "not an object");
  TFC_RETURN_IF_ERROR(tfc_json_string(object, "name", &name));
  if (!name.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "no \"name\"");
  tfc_status s = tfc_cost_builder_node(b, name, &node);
  if (s) return s;
  // The key is the document's own string, which outlives the map, so it is not copied.
  if (!tfc_strmap_put(index, name, node, NULL)) return tfc_status_no_memory(NULL);
  TFC_TRY(s, read_times(object, b, node, kinds));
  TFC_TRY(s, check_given(object, (const char *const[]){"memory", NULL}));
  TFC_TRY(s, tfc_json_whole(object, "memory", &memory));
  TFC_TRY(s, tfc_json_string(object, "group", &group));
  TFC_TRY(s, tfc_json_string(object, "pin", &pin));
  TFC_TRY(s, tfc_json_number(object, "order", &order));
  tfc_cost_builder_memory(b, node, memory);
  if (group.data) TFC_TRY(s, tfc_cost_builder_group(b, node, group));
  if (pin.data) TFC_TRY(s, tfc_cost_builder_pin(b, node, pin));
  if (!isnan(order)) TFC_TRY(s, tfc_cost_builder_order(b, node, order));
out:
  return tfc_status_annotate(s, "node '%.*s'", TFC_STR_ARG(name));
}

static tfc_status read_end(const json_t *object, const char *field, const struct tfc_strmap *index, uint32_t *out) {
  tfc_str name = {0};
  TFC_RETURN_IF_ERROR(tfc_json_string(object, field, &name));
  if (!name.data) return tfc_status_make(TFC_INVALID_ARGUMENT, "no \"%s\"", field);
  const uint64_t *node = tfc_strmap_get(index, name);
  if (!node)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is '%.*s': there is no such node", field, TFC_STR_ARG(name));
  *out = (uint32_t)*node;
  return NULL;
}

static tfc_status read_edge(const json_t *object, struct tfc_cost_builder *b, const struct tfc_strmap *index) {
  uint32_t from = 0, to = 0;
  int64_t output = 0;
  uint64_t bytes = UINT64_MAX, live = TFC_LIVE_ABSENT;
  if (!json_is_object(object)) return tfc_status_make(TFC_INVALID_ARGUMENT, "not an object");
  TFC_RETURN_IF_ERROR(read_end(object, "from", index, &from));
  TFC_RETURN_IF_ERROR(read_end(object, "to", index, &to));
  TFC_RETURN_IF_ERROR(check_given(object, (const char *const[]){"output", "bytes", "live", NULL}));
  TFC_RETURN_IF_ERROR(tfc_json_i64(object, "output", &output));
  TFC_RETURN_IF_ERROR(tfc_json_whole(object, "bytes", &bytes));
  TFC_RETURN_IF_ERROR(tfc_json_whole(object, "live", &live));
  if (output < -1 || output > INT32_MAX)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "output %lld (at least 0, or -1 for a control dependency)",
                           (long long)output);
  if (bytes == UINT64_MAX) {
    if (output != TFC_OUTPUT_CONTROL) return tfc_status_make(TFC_INVALID_ARGUMENT, "no \"bytes\"");
    bytes = 0;
  }
  return tfc_cost_builder_edge(b, from, (int32_t)output, to, bytes, live);
}

tfc_status tfc_cost_graph_parse(tfc_str text, const char *path, struct tfc_cost_graph **out) {
  tfc_status s = NULL;
  json_t *root = NULL;
  struct tfc_cost_builder *b = NULL;
  struct tfc_strmap index = {0};
  uint32_t kinds = 0;
  TFC_RETURN_IF_ERROR(tfc_json_document(text, path, FORMAT, &root));
  if (!tfc_json_field(root, "version")) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "no \"version\": expected 1");
  TFC_TRY(s, tfc_cost_builder_create(&b));
  TFC_TRY(s, read_kinds(root, b, &kinds));
  const json_t *nodes = tfc_json_field(root, "nodes"), *edges = tfc_json_field(root, "edges");
  if (!json_is_array(nodes)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "\"nodes\" is not a list");
  if (edges && !json_is_array(edges)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "\"edges\" is not a list");
  for (size_t i = 0; i < json_array_size(nodes); i++) {
    s = read_node(json_array_get(nodes, i), b, kinds, &index);
    if (s) TFC_TRY(s, tfc_status_annotate(s, "nodes[%zu]", i));
  }
  for (size_t i = 0; i < json_array_size(edges); i++) {
    s = read_edge(json_array_get(edges, i), b, &index);
    if (s) TFC_TRY(s, tfc_status_annotate(s, "edges[%zu]", i));
  }
  TFC_TRY(s, tfc_cost_builder_finish(b, out));
out:
  tfc_strmap_deinit(&index);
  tfc_cost_builder_free(b);
  json_decref(root);
  return tfc_status_annotate(s, "%s", path);
}

tfc_status tfc_cost_graph_read(const char *path, struct tfc_cost_graph **out) {
  struct tfc_file file = {0};
  TFC_RETURN_IF_ERROR(tfc_file_map_document(path, &file));
  tfc_status s = tfc_cost_graph_parse((tfc_str){(const char *)file.data, file.size}, path, out);
  tfc_file_unmap(&file);
  return s;
}

// A text that begins with an object or a list can only be meant as a cost graph, because a GraphDef as text begins with
// a field's name. A binary GraphDef may also begin with a line feed and a bracket (if its first node has 91 or 123
// bytes), but then other control characters follow soon (say, the tag of the node's op).
bool tfc_cost_graph_sniff(tfc_str content) {
  enum { LOOKED_AT = 4096 };
  size_t i = tfc_json_has_mark(content) ? 3 : 0;
  for (size_t k = i; k < content.size && k < LOOKED_AT; k++) {
    unsigned char c = (unsigned char)content.data[k];
    if (c < ' ' && c != '\t' && c != '\r' && c != '\n') return false;
  }
  while (i < content.size && strchr(" \t\r\n", content.data[i]) && content.data[i]) i++;
  return i < content.size && (content.data[i] == '{' || content.data[i] == '[');
}

tfc_status tfc_cost_graph_format(const struct tfc_cost_graph *g, struct tfc_text *out) {
  struct tfc_text t = {0};
  tfc_text_add(&t, TFC_STR("{\"format\": \"" FORMAT "\", \"version\": 1, \"kinds\": ["));
  for (uint32_t k = 0; k < g->kind_count; k++) {
    if (k) tfc_text_add(&t, TFC_STR(", "));
    tfc_json_add_string(&t, g->kind_names[k]);
  }
  tfc_text_add(&t, TFC_STR("],\n \"nodes\": [\n"));
  for (uint32_t n = 0; n < g->node_count; n++) {
    tfc_text_add(&t, TFC_STR("  {\"name\": "));
    tfc_json_add_string(&t, g->names[n]);
    tfc_text_add(&t, TFC_STR(", \"time_us\": {"));
    bool first = true;
    for (uint32_t k = 0; k < g->kind_count; k++) {
      double time = g->time_us[(size_t)n * g->kind_count + k];
      if (isnan(time)) continue;
      if (!first) tfc_text_add(&t, TFC_STR(", "));
      tfc_json_add_string(&t, g->kind_names[k]);
      tfc_text_add(&t, TFC_STR(": "));
      tfc_json_add_number(&t, time);
      first = false;
    }
    tfc_text_printf(&t, "}, \"memory\": %llu", (unsigned long long)g->memory[n]);
    if (g->group[n] != TFC_NONE) {
      tfc_text_add(&t, TFC_STR(", \"group\": "));
      tfc_json_add_string(&t, g->group_names[g->group[n]]);
    }
    if (g->pin[n].data) {
      tfc_text_add(&t, TFC_STR(", \"pin\": "));
      tfc_json_add_string(&t, g->pin[n]);
    }
    if (!isnan(g->order[n])) {
      tfc_text_add(&t, TFC_STR(", \"order\": "));
      tfc_json_add_number(&t, g->order[n]);
    }
    tfc_text_add(&t, n + 1 < g->node_count ? TFC_STR("},\n") : TFC_STR("}\n"));
  }
  tfc_text_add(&t, TFC_STR(" ],\n \"edges\": [\n"));
  for (uint32_t i = 0, c = 0; i < g->tensor_count; i++)
    for (; c < g->first_consumer[i + 1]; c++) {
      tfc_text_add(&t, TFC_STR("  {\"from\": "));
      tfc_json_add_string(&t, g->names[g->producer[i]]);
      tfc_text_add(&t, TFC_STR(", \"to\": "));
      tfc_json_add_string(&t, g->names[g->consumer[c]]);
      tfc_text_printf(&t, ", \"bytes\": %llu, \"output\": %d", (unsigned long long)g->bytes[i], (int)g->output[i]);
      if (g->live[i]) tfc_text_printf(&t, ", \"live\": %llu", (unsigned long long)g->live[i]);
      tfc_text_add(&t, c + 1 < g->consumer_count ? TFC_STR("},\n") : TFC_STR("}\n"));
    }
  tfc_text_add(&t, TFC_STR(" ]}\n"));
  if (t.failed) {
    tfc_text_deinit(&t);
    return tfc_status_no_memory("writing the cost graph");
  }
  *out = t;
  return NULL;
}

tfc_status tfc_cost_graph_write(const struct tfc_cost_graph *graph, const char *path) {
  struct tfc_text text = {0};
  TFC_RETURN_IF_ERROR(tfc_cost_graph_format(graph, &text));
  tfc_status s = tfc_file_write(path, (tfc_str){text.data, text.size});
  tfc_text_deinit(&text);
  return s;
}
