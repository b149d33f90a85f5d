// Models: a graph with its devices, its session and its variables, as tfc-run sets them up.
#include "libtfc/model.h"

#include <stdlib.h>

#include "placer/model/placed.h"
#include "runtime/exec/model.h"
#include "runtime/exec/model_checkpoint.h"
#include "runtime/exec/queue_threads.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "runtime/pass/queue_runners.h"
#include "runtime/pass/step.h"

// Finds the initialiser in `file`, the graph as it was read, and runs it.
static tfc_status initialise(struct tfc_model *m, const struct tfc_graph *file) {
  tfc_status s = NULL;
  struct tfc_step_spec step = {0};
  TFC_TRY(s, tfc_step_infer_init(file, &step));
  if (!step.init_count) goto out;
  struct tfc_run_spec spec = {.targets = step.inits, .target_count = step.init_count, .placement = m->placement};
  s = tfc_status_annotate(tfc_session_run(m->session, &spec, NULL, NULL, NULL),
                          "initialising variables (uninitialised leaves that to the caller)");
out:
  tfc_step_spec_deinit(&step);
  return s;
}

// Decides how many steps may run at a time. If queue runners fill queues, one: a step that would wait for ever is then
// detected. Otherwise there is no such limit, because another thread of the caller may run the step that a waiting step
// needs.
static tfc_status count_callers(const struct tfc_graph *g, uint32_t *out) {
  struct tfc_queue_runners runners = {0};
  TFC_RETURN_IF_ERROR(tfc_queue_runners_read(g, &runners));
  *out = runners.count ? 1 : 0;
  tfc_queue_runners_deinit(&runners);
  return NULL;
}

static tfc_status open_model(const char *path, const tfc_model_options *o, struct tfc_model *m) {
  tfc_status s = NULL;
  struct tfc_graph *file = NULL;
  struct tfc_placed placed = {0};
  struct tfc_restored restored;
  struct tfc_session_options options = {.devices = &m->devices};
  TFC_TRY(s, tfc_graph_load(path, NULL, &m->graph));
  file = m->graph;
  tfc_graph_retain(file);
  TFC_TRY(s, tfc_lower_loaded(&m->graph));
  if (o->execution) TFC_TRY(s, tfc_execution_parse(tfc_str_from(o->execution), &options.execution));
  if (o->placement) TFC_TRY(s, tfc_placed_read(o->placement, m->graph, &placed));
  const char *devices = o->devices ? o->devices : placed.devices ? placed.devices : "cpu:0";
  TFC_TRY(s, tfc_devices_open(devices, options.execution.limits, options.execution.limit_count, &m->devices));
  if (o->placement) TFC_TRY(s, tfc_placed_assign(&placed, &m->devices, &m->placement, &m->order));
  if (o->placement && !options.execution.gpu_math) options.execution.gpu_math = placed.gpu_math;
  TFC_TRY(s, count_callers(m->graph, &options.callers));
  TFC_TRY(s, tfc_session_create(m->graph, &options, &m->session));
  TFC_TRY(s, tfc_session_fill_queues(m->session, m->placement));
  if (m->graph->variables_prefix.size)
    TFC_TRY(s, tfc_session_load_model(m->session, m->graph, m->placement, !o->checkpoint));
  else if (!o->checkpoint && !o->uninitialised)
    TFC_TRY(s, initialise(m, file));
  if (o->checkpoint) TFC_TRY(s, tfc_session_load_checkpoint(m->session, m->graph, o->checkpoint, &restored));
out:
  tfc_placed_deinit(&placed);
  tfc_execution_deinit(&options.execution);
  tfc_graph_release(file);
  return s;
}

tfc_error *tfc_model_open(const char *path, const tfc_model_options *options, tfc_model **out) {
  static const tfc_model_options defaults;
  if (!path || !out) return tfc_error_missing("tfc_model_open", "a path, or a place for the model");
  struct tfc_model *m = calloc(1, sizeof *m);
  if (!m) return tfc_error_of(tfc_status_no_memory(NULL));
  tfc_status s = open_model(path, options ? options : &defaults, m);
  if (s)
    tfc_model_close(m);
  else
    *out = m;
  return tfc_error_of(s);
}

void tfc_model_close(tfc_model *m) {
  if (!m) return;
  tfc_session_free(m->session);
  tfc_devices_close(&m->devices);
  tfc_graph_release(m->graph);
  free(m->placement);
  free(m->order);
  free(m);
}

tfc_error *tfc_model_restore(tfc_model *m, const char *prefix) {
  if (!m || !prefix) return tfc_error_missing("tfc_model_restore", "a model, or a prefix");
  struct tfc_restored restored;
  return tfc_error_of(tfc_session_load_checkpoint(m->session, m->graph, prefix, &restored));
}

tfc_error *tfc_model_save(tfc_model *m, const char *prefix) {
  if (!m || !prefix) return tfc_error_missing("tfc_model_save", "a model, or a prefix");
  size_t saved;
  return tfc_error_of(tfc_session_save_checkpoint(m->session, m->graph, prefix, &saved));
}

int32_t tfc_model_device_count(const tfc_model *m) {
  return m ? (int32_t)m->devices.count : 0;
}

const char *tfc_model_device_name(const tfc_model *m, int32_t index) {
  return m && index >= 0 && (uint32_t)index < m->devices.count ? m->devices.devices[index]->info.name : NULL;
}

tfc_error *tfc_model_tensor_type(const tfc_model *m, const char *tensor, int32_t *out_dtype) {
  if (!m || !tensor || !out_dtype)
    return tfc_error_missing("tfc_model_tensor_type", "a model, a tensor, or a place for the type");
  struct tfc_output output;
  tfc_status s = tfc_graph_parse_output(m->graph, tfc_str_from(tensor), &output);
  if (s) return tfc_error_of(s);
  *out_dtype = (int32_t)tfc_dtype_base(tfc_output_dtype(m->graph, output));
  return NULL;
}
