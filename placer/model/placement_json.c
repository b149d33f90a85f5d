// Reads and writes the format "tfc-placement".
#include <math.h>
#include <stdlib.h>

#include "placer/model/json.h"
#include "placer/model/placement.h"
#include "placer/model/placement_json.h"
#include "runtime/base/file.h"
#include "runtime/base/map.h"

#define FORMAT "tfc-placement"

// Copies a string field into the arena.
static tfc_status own_string(struct tfc_placement *p, const json_t *object, const char *name, tfc_str *out) {
  tfc_str text = {0};
  TFC_RETURN_IF_ERROR(tfc_json_string(object, name, &text));
  if (!text.data) return NULL;
  *out = tfc_arena_str(&p->arena, text);
  return out->data ? NULL : tfc_status_no_memory("a placement");
}

static tfc_status read_label(const json_t *object, const char *name, tfc_label *out) {
  tfc_str text = {0};
  TFC_RETURN_IF_ERROR(tfc_json_string(object, name, &text));
  if (!text.data) return NULL;
#define TFC_LABEL_READ(name, word)                                                                                     \
  if (tfc_str_is(text, word)) return *out = TFC_LABEL_##name, NULL;
  TFC_LABELS(TFC_LABEL_READ)
#undef TFC_LABEL_READ
  return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is '%.*s'", name, TFC_STR_ARG(text));
}

static tfc_status object_field(const json_t *root, const char *name, const json_t **out) {
  *out = tfc_json_field(root, name);
  if (*out && !json_is_object(*out)) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is not an object", name);
  return NULL;
}
static tfc_status array_field(const json_t *root, const char *name, const json_t **out) {
  *out = tfc_json_field(root, name);
  if (*out && !json_is_array(*out)) return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\" is not a list", name);
  for (size_t i = 0; i < json_array_size(*out); i++)
    if (!json_is_object(json_array_get(*out, i)))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "\"%s\"[%zu] is not an object", name, i);
  return NULL;
}

static tfc_status read_devices(const json_t *root, struct tfc_placement *p) {
  const json_t *list;
  TFC_RETURN_IF_ERROR(array_field(root, "devices", &list));
  size_t count = json_array_size(list);
  p->devices = TFC_ARENA_ARRAY(&p->arena, struct tfc_placement_device, count);
  if (!p->devices) return tfc_status_no_memory("a placement");
  for (size_t i = 0; i < count; i++) {
    const json_t *item = json_array_get(list, i);
    struct tfc_placement_device *d = &p->devices[i];
    d->label = TFC_LABEL_MODELLED;
    TFC_RETURN_IF_ERROR(own_string(p, item, "name", &d->name));
    TFC_RETURN_IF_ERROR(own_string(p, item, "tensorflow", &d->tensorflow));
    TFC_RETURN_IF_ERROR(own_string(p, item, "kind", &d->kind));
    TFC_RETURN_IF_ERROR(read_label(item, "label", &d->label));
    TFC_RETURN_IF_ERROR(tfc_json_number(item, "busy_us", &d->busy_us));
    TFC_RETURN_IF_ERROR(tfc_json_whole(item, "memory", &d->memory));
  }
  p->device_count = (uint32_t)count;
  return NULL;
}

static tfc_status read_baselines(const json_t *root, struct tfc_placement *p) {
  const json_t *list;
  TFC_RETURN_IF_ERROR(array_field(root, "baselines", &list));
  size_t count = json_array_size(list);
  p->baselines = TFC_ARENA_ARRAY(&p->arena, struct tfc_placement_baseline, count);
  if (!p->baselines) return tfc_status_no_memory("a placement");
  for (size_t i = 0; i < count; i++) {
    const json_t *item = json_array_get(list, i);
    struct tfc_placement_baseline *b = &p->baselines[i];
    b->median_us = NAN, b->feasible = true;
    TFC_RETURN_IF_ERROR(own_string(p, item, "name", &b->name));
    TFC_RETURN_IF_ERROR(own_string(p, item, "note", &b->note));
    TFC_RETURN_IF_ERROR(tfc_json_number(item, "median_us", &b->median_us));
    TFC_RETURN_IF_ERROR(tfc_json_bool(item, "feasible", &b->feasible));
  }
  p->baseline_count = (uint32_t)count;
  return NULL;
}

static tfc_status read_nodes(const json_t *root, struct tfc_placement *p) {
  const json_t *placement, *order, *reasons;
  const char *key;
  json_t *value;
  struct tfc_strmap index = {0};
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(object_field(root, "placement", &placement));
  TFC_RETURN_IF_ERROR(object_field(root, "order", &order));
  TFC_RETURN_IF_ERROR(object_field(root, "reasons", &reasons));
  if (!placement) return tfc_status_make(TFC_INVALID_ARGUMENT, "no \"placement\"");
  p->nodes = TFC_ARENA_ARRAY(&p->arena, struct tfc_placement_node, json_object_size(placement));
  if (!p->nodes) return tfc_status_no_memory("a placement");
  json_object_foreach((json_t *)placement, key, value) {
    struct tfc_placement_node *n = &p->nodes[p->node_count];
    if (!json_is_string(value)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "\"placement\": node '%s' has no device name", key);
    n->name = tfc_arena_str(&p->arena, tfc_str_from(key));
    n->device = tfc_arena_str(&p->arena, (tfc_str){json_string_value(value), json_string_length(value)});
    n->order = NAN;
    if (!n->name.data || !n->device.data || !tfc_strmap_put(&index, n->name, p->node_count, NULL))
      TFC_TRY(s, tfc_status_no_memory("a placement"));
    p->node_count++;
  }
  json_object_foreach((json_t *)order, key, value) {
    const uint64_t *node = tfc_strmap_get(&index, tfc_str_from(key));
    if (!node) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "\"order\" has node '%s', which \"placement\" lacks", key);
    if (json_is_null(value)) continue;
    if (!json_is_number(value) || !isfinite(json_number_value(value)))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "\"order\": node '%s' has no finite number", key);
    p->nodes[*node].order = json_number_value(value);
  }
  json_object_foreach((json_t *)reasons, key, value) {
    const uint64_t *node = tfc_strmap_get(&index, tfc_str_from(key));
    // the field is only information for readers: a reason that is no string is ignored
    if (!node || !json_is_string(value)) continue;
    p->nodes[*node].reason = tfc_arena_str(&p->arena, (tfc_str){json_string_value(value), json_string_length(value)});
  }
out:
  tfc_strmap_deinit(&index);
  return s;
}

static tfc_status read_root(const json_t *root, struct tfc_placement *p) {
  const json_t *graph, *step, *path;
  tfc_str objective = {0};
  TFC_RETURN_IF_ERROR(tfc_json_i64(root, "run", &p->run));
  TFC_RETURN_IF_ERROR(object_field(root, "graph", &graph));
  if (graph) {
    TFC_RETURN_IF_ERROR(own_string(p, graph, "file", &p->graph_file));
    TFC_RETURN_IF_ERROR(own_string(p, graph, "sha256", &p->graph_sha256));
    TFC_RETURN_IF_ERROR(tfc_json_whole(graph, "nodes", &p->graph_nodes));
  }
  TFC_RETURN_IF_ERROR(read_devices(root, p));
  TFC_RETURN_IF_ERROR(tfc_json_string(root, "objective", &objective));
  if (objective.data) TFC_RETURN_IF_ERROR(tfc_objective_parse(objective, &p->objective));
  TFC_RETURN_IF_ERROR(tfc_json_number(root, "value_us", &p->value_us));
  TFC_RETURN_IF_ERROR(read_label(root, "value_label", &p->value_label));
  TFC_RETURN_IF_ERROR(tfc_json_bool(root, "feasible", &p->feasible));
  TFC_RETURN_IF_ERROR(tfc_json_whole(root, "transfers", &p->transfers));
  TFC_RETURN_IF_ERROR(tfc_json_whole(root, "transfer_bytes", &p->transfer_bytes));
  TFC_RETURN_IF_ERROR(own_string(p, root, "virtual_transfers", &p->virtual_transfers));
  TFC_RETURN_IF_ERROR(own_string(p, root, "gpu_math", &p->gpu_math));
  TFC_RETURN_IF_ERROR(own_string(p, root, "execution", &p->execution));
  TFC_RETURN_IF_ERROR(own_string(p, root, "measured_with", &p->measured_with));
  TFC_RETURN_IF_ERROR(object_field(root, "step", &step));
  if (step) {
    TFC_RETURN_IF_ERROR(tfc_json_number(step, "median_us", &p->step_median_us));
    TFC_RETURN_IF_ERROR(tfc_json_number(step, "q1_us", &p->step_q1_us));
    TFC_RETURN_IF_ERROR(tfc_json_number(step, "q3_us", &p->step_q3_us));
    TFC_RETURN_IF_ERROR(tfc_json_whole(step, "steps", &p->step_count));
    TFC_RETURN_IF_ERROR(read_label(step, "label", &p->step_label));
  }
  TFC_RETURN_IF_ERROR(object_field(root, "step_without_order", &step));
  if (step) {
    TFC_RETURN_IF_ERROR(tfc_json_number(step, "median_us", &p->unordered_median_us));
    TFC_RETURN_IF_ERROR(tfc_json_number(step, "q1_us", &p->unordered_q1_us));
    TFC_RETURN_IF_ERROR(tfc_json_number(step, "q3_us", &p->unordered_q3_us));
    TFC_RETURN_IF_ERROR(tfc_json_whole(step, "steps", &p->unordered_count));
  }
  TFC_RETURN_IF_ERROR(read_baselines(root, p));
  TFC_RETURN_IF_ERROR(tfc_json_number(root, "bound_us", &p->bound_us));
  TFC_RETURN_IF_ERROR(own_string(p, root, "bound", &p->bound_name));
  TFC_RETURN_IF_ERROR(own_string(p, root, "algorithm", &p->algorithm));
  TFC_RETURN_IF_ERROR(tfc_json_whole(root, "seed", &p->seed));
  TFC_RETURN_IF_ERROR(tfc_json_whole(root, "evaluations", &p->evaluations));
  TFC_RETURN_IF_ERROR(read_nodes(root, p));
  TFC_RETURN_IF_ERROR(array_field(root, "critical_path", &path));
  p->path = TFC_ARENA_ARRAY(&p->arena, struct tfc_placement_path_item, json_array_size(path));
  if (!p->path) return tfc_status_no_memory("a placement");
  for (size_t i = 0; i < json_array_size(path); i++, p->path_count++) {
    const json_t *item = json_array_get(path, i);
    struct tfc_placement_path_item *q = &p->path[i];
    TFC_RETURN_IF_ERROR(own_string(p, item, "node", &q->node));
    TFC_RETURN_IF_ERROR(own_string(p, item, "from", &q->from));
    TFC_RETURN_IF_ERROR(own_string(p, item, "to", &q->to));
    TFC_RETURN_IF_ERROR(tfc_json_number(item, "start_us", &q->start_us));
    TFC_RETURN_IF_ERROR(tfc_json_number(item, "end_us", &q->end_us));
  }
  return NULL;
}

tfc_status tfc_placement_parse(tfc_str text, const char *path, struct tfc_placement **out) {
  tfc_status s = NULL;
  json_t *root = NULL;
  struct tfc_placement *p = NULL;
  TFC_RETURN_IF_ERROR(tfc_json_document(text, path, FORMAT, &root));
  TFC_TRY(s, tfc_placement_create(&p));
  TFC_TRY(s, tfc_status_annotate(read_root(root, p), "%s", path));
  *out = p, p = NULL;
out:
  tfc_placement_free(p);
  json_decref(root);
  return s;
}

tfc_status tfc_placement_read(const char *path, struct tfc_placement **out) {
  struct tfc_file file = {0};
  TFC_RETURN_IF_ERROR(tfc_file_map_document(path, &file));
  tfc_status s = tfc_placement_parse((tfc_str){(const char *)file.data, file.size}, path, out);
  tfc_file_unmap(&file);
  return s;
}

// --- Writing -------------------------------------------------------------------------------------------------------

// Writes a time in microseconds. `exact`: the same time in picoseconds, which is written with six exact decimals; 0:
// not known. Then the double is written, with six decimals if that is exact; NaN and infinity are written as null.
static void add_us(struct tfc_text *t, double us, int64_t exact) {
  double ps = us * 1e6;
  if (!isfinite(us))
    tfc_text_add(t, TFC_STR("null"));
  else if (exact)
    tfc_json_add_ps(t, exact);
  else if (fabs(ps) < 0x1p51)
    tfc_json_add_ps(t, (int64_t)rint(ps));
  else
    tfc_json_add_number(t, us);
}
static void add_key(struct tfc_text *t, const char *before, const char *key) {
  tfc_text_printf(t, "%s\"%s\": ", before, key);
}
static void add_string(struct tfc_text *t, const char *before, const char *key, tfc_str value) {
  if (!value.data) return;
  add_key(t, before, key);
  tfc_json_add_string(t, value);
}

static void add_nodes(struct tfc_text *t, const struct tfc_placement *p) {
  bool any = false;
  tfc_text_add(t, TFC_STR(",\n \"placement\": {"));
  for (uint32_t i = 0; i < p->node_count; i++) {
    tfc_text_add(t, i ? TFC_STR(",\n  ") : TFC_STR("\n  "));
    tfc_json_add_string(t, p->nodes[i].name);
    tfc_text_add(t, TFC_STR(": "));
    tfc_json_add_string(t, p->nodes[i].device);
  }
  tfc_text_add(t, TFC_STR("}"));
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (isnan(p->nodes[i].order)) continue;
    tfc_text_add(t, any ? TFC_STR(",\n  ") : TFC_STR(",\n \"order\": {\n  "));
    tfc_json_add_string(t, p->nodes[i].name);
    tfc_text_add(t, TFC_STR(": "));
    tfc_json_add_number(t, p->nodes[i].order);
    any = true;
  }
  if (any) tfc_text_add(t, TFC_STR("}"));
  tfc_text_add(t, TFC_STR(",\n \"reasons\": {"));
  any = false;
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (!p->nodes[i].reason.data) continue;
    tfc_text_add(t, any ? TFC_STR(",\n  ") : TFC_STR("\n  "));
    tfc_json_add_string(t, p->nodes[i].name);
    tfc_text_add(t, TFC_STR(": "));
    tfc_json_add_string(t, p->nodes[i].reason);
    any = true;
  }
  tfc_text_add(t, TFC_STR("}"));
}

tfc_status tfc_placement_format(const struct tfc_placement *p, struct tfc_text *out) {
  struct tfc_text t = {0};
  tfc_text_add(&t, TFC_STR("{\"format\": \"" FORMAT "\", \"version\": 1"));
  if (p->run >= 0) tfc_text_printf(&t, ", \"run\": %lld", (long long)p->run);
  tfc_text_add(&t, TFC_STR(",\n \"graph\": {"));
  add_key(&t, "", "file");
  tfc_json_add_string(&t, p->graph_file);
  add_string(&t, ", ", "sha256", p->graph_sha256);
  tfc_text_printf(&t, ", \"nodes\": %llu},\n \"devices\": [", (unsigned long long)p->graph_nodes);
  for (uint32_t i = 0; i < p->device_count; i++) {
    const struct tfc_placement_device *d = &p->devices[i];
    tfc_text_add(&t, i ? TFC_STR(",\n  {") : TFC_STR("\n  {"));
    add_key(&t, "", "name");
    tfc_json_add_string(&t, d->name);
    add_string(&t, ", ", "tensorflow", d->tensorflow);
    add_string(&t, ", ", "kind", d->kind);
    tfc_text_printf(&t, ", \"label\": \"%s\", \"busy_us\": ", tfc_label_name(d->label));
    add_us(&t, d->busy_us, d->busy_ps);
    tfc_text_printf(&t, ", \"memory\": %llu}", (unsigned long long)d->memory);
  }
  tfc_text_printf(&t, "],\n \"objective\": \"%s\", \"value_us\": ", tfc_objective_name(p->objective));
  add_us(&t, p->value_us, p->value_ps);
  tfc_text_printf(&t, ", \"value_label\": \"%s\"", tfc_label_name(p->value_label));
  tfc_text_printf(&t, ", \"feasible\": %s, \"transfers\": %llu, \"transfer_bytes\": %llu",
                  p->feasible ? "true" : "false", (unsigned long long)p->transfers,
                  (unsigned long long)p->transfer_bytes);
  add_string(&t, ", ", "virtual_transfers", p->virtual_transfers);
  add_string(&t, ", ", "gpu_math", p->gpu_math);
  add_string(&t, ", ", "execution", p->execution);
  add_string(&t, ",\n ", "measured_with", p->measured_with);
  tfc_text_add(&t, TFC_STR(",\n \"step\": {\"median_us\": "));
  add_us(&t, p->step_median_us, p->step_ps);
  tfc_text_add(&t, TFC_STR(", \"q1_us\": "));
  add_us(&t, p->step_q1_us, p->step_ps);
  tfc_text_add(&t, TFC_STR(", \"q3_us\": "));
  add_us(&t, p->step_q3_us, p->step_ps);
  tfc_text_printf(&t, ", \"steps\": %llu, \"label\": \"%s\"},\n ", (unsigned long long)p->step_count,
                  tfc_label_name(p->step_label));
  if (isfinite(p->unordered_median_us)) {
    tfc_text_add(&t, TFC_STR("\"step_without_order\": {\"median_us\": "));
    add_us(&t, p->unordered_median_us, 0);
    tfc_text_add(&t, TFC_STR(", \"q1_us\": "));
    add_us(&t, p->unordered_q1_us, 0);
    tfc_text_add(&t, TFC_STR(", \"q3_us\": "));
    add_us(&t, p->unordered_q3_us, 0);
    tfc_text_printf(&t, ", \"steps\": %llu, \"label\": \"%s\"},\n ", (unsigned long long)p->unordered_count,
                    tfc_label_name(p->step_label));
  }
  tfc_text_add(&t, TFC_STR("\"baselines\": ["));
  for (uint32_t i = 0; i < p->baseline_count; i++) {
    const struct tfc_placement_baseline *b = &p->baselines[i];
    tfc_text_add(&t, i ? TFC_STR(",\n  {") : TFC_STR("\n  {"));
    add_key(&t, "", "name");
    tfc_json_add_string(&t, b->name);
    tfc_text_add(&t, TFC_STR(", \"median_us\": "));
    add_us(&t, b->median_us, b->median_ps);
    if (!b->feasible) tfc_text_add(&t, TFC_STR(", \"feasible\": false"));
    add_string(&t, ", ", "note", b->note);
    tfc_text_add(&t, TFC_STR("}"));
  }
  tfc_text_add(&t, TFC_STR("]"));
  if (!isnan(p->bound_us)) {
    tfc_text_add(&t, TFC_STR(",\n \"bound_us\": "));
    add_us(&t, p->bound_us, p->bound_ps);
    add_string(&t, ", ", "bound", p->bound_name);
  }
  if (p->algorithm.data) {
    add_string(&t, ",\n ", "algorithm", p->algorithm);
    tfc_text_printf(&t, ", \"seed\": %llu, \"evaluations\": %llu", (unsigned long long)p->seed,
                    (unsigned long long)p->evaluations);
  }
  add_nodes(&t, p);
  for (uint32_t i = 0; i < p->path_count; i++) {
    const struct tfc_placement_path_item *q = &p->path[i];
    tfc_text_add(&t, i ? TFC_STR(",\n  {") : TFC_STR(",\n \"critical_path\": [\n  {"));
    add_key(&t, "", "node");
    tfc_json_add_string(&t, q->node);
    add_string(&t, ", ", "from", q->from);
    add_string(&t, ", ", "to", q->to);
    tfc_text_add(&t, TFC_STR(", \"start_us\": "));
    add_us(&t, q->start_us, 0);
    tfc_text_add(&t, TFC_STR(", \"end_us\": "));
    add_us(&t, q->end_us, 0);
    tfc_text_add(&t, i + 1 == p->path_count ? TFC_STR("}]") : TFC_STR("}"));
  }
  tfc_text_add(&t, TFC_STR("}\n"));
  if (t.failed) {
    tfc_text_deinit(&t);
    return tfc_status_no_memory("a placement");
  }
  *out = t;
  return NULL;
}

tfc_status tfc_placement_write(const struct tfc_placement *placement, const char *path) {
  struct tfc_text text = {0};
  TFC_RETURN_IF_ERROR(tfc_placement_format(placement, &text));
  tfc_status s = tfc_file_write(path, (tfc_str){text.data, text.size});
  tfc_text_deinit(&text);
  return s;
}
