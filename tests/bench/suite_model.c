#include "tests/bench/suite_model.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/import.h"
#include "runtime/io/npy.h"
#include "runtime/pass/pass.h"

static tfc_status read_nodes(const struct tfc_graph *g, const json_t *names, uint32_t *out, uint32_t *out_count) {
  for (size_t i = 0; i < json_array_size(names) && i < SUITE_MODEL_MOST; i++)
    TFC_RETURN_IF_ERROR(
        tfc_graph_parse_node(g, tfc_str_from(json_string_value(json_array_get(names, i))), &out[(*out_count)++]));
  return NULL;
}

static tfc_status load(struct suite_model *m, const char *folder) {
  tfc_status s = NULL;
  json_error_t error;
  char *path = tfc_format("%s/model.pb", folder), *about = tfc_format("%s/model.json", folder), *file = NULL;
  json_t *root = about ? json_load_file(about, 0, &error) : NULL, *value;
  const char *key;
  if (!path || !root) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: %s", about ? about : folder, error.text);
  TFC_TRY(s, tfc_graph_load(path, NULL, &m->graph));
  TFC_TRY(s, tfc_lower_loaded(&m->graph));
  TFC_TRY(s, read_nodes(m->graph, json_object_get(root, "targets"), m->targets, &m->target_count));
  TFC_TRY(s, read_nodes(m->graph, json_object_get(root, "init"), m->inits, &m->init_count));
  const json_t *fetches = json_object_get(root, "fetches");
  for (size_t i = 0; i < json_array_size(fetches) && i < SUITE_MODEL_MOST; i++)
    TFC_TRY(s, tfc_graph_parse_output(m->graph, tfc_str_from(json_string_value(json_array_get(fetches, i))),
                                      &m->fetches[m->fetch_count++]));
  json_object_foreach(json_object_get(root, "feeds"), key, value) {
    uint32_t i = m->feed_count;
    if (i == SUITE_MODEL_MOST) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: more than %d feeds", about, SUITE_MODEL_MOST);
    free(file);
    file = tfc_format("%s/%s", folder, json_string_value(value));
    TFC_TRY(s, tfc_graph_parse_output(m->graph, tfc_str_from(key), &m->feeds[i]));
    TFC_TRY(s, tfc_npy_read(file, &m->values[i]));
    m->shapes[i] = m->values[i].shape;
    m->feed_count++;
  }
out:
  json_decref(root);
  free(file);
  free(path);
  free(about);
  return s;
}

static tfc_status plan(struct suite_model *m, const char *rewrites, tfc_adapt adapt) {
  TFC_RETURN_IF_ERROR(tfc_devices_open("1", NULL, 0, &m->devices));
  struct tfc_session_options options = {.devices = &m->devices, .callers = 1, .execution = m->execution};
  options.execution.rewrites = strcmp(rewrites, "all") == 0 ? TFC_REWRITES_ALL : TFC_REWRITES_EXACT;
  TFC_RETURN_IF_ERROR(tfc_session_create(m->graph, &options, &m->session));
  struct tfc_run_spec init = {.targets = m->inits, .target_count = m->init_count};
  if (m->init_count) TFC_RETURN_IF_ERROR(tfc_session_run(m->session, &init, NULL, NULL, NULL));
  m->spec = (struct tfc_run_spec){.feeds = m->feeds,
                                  .feed_count = m->feed_count,
                                  .feed_shapes = m->shapes,
                                  .fetches = m->fetches,
                                  .fetch_count = m->fetch_count,
                                  .targets = m->targets,
                                  .target_count = m->target_count,
                                  .adapt = adapt};
  return tfc_plan_create(m->session, &m->spec, &m->plan);
}

tfc_status suite_model_open(const char *folder, const char *rewrites, tfc_adapt adapt, struct suite_model *out) {
  TFC_RETURN_IF_ERROR(load(out, folder));
  return plan(out, rewrites, adapt);
}

void suite_model_close(struct suite_model *m) {
  tfc_plan_free(m->plan);
  tfc_session_free(m->session);
  tfc_devices_close(&m->devices);
  for (uint32_t i = 0; i < m->feed_count; i++) tfc_tensor_release(&m->values[i]);
  tfc_graph_release(m->graph);
}
