#include "cli/run_profile.h"

#include <math.h>
#include <stdlib.h>

#include "cli/graph_digest.h"
#include "cli/program.h"
#include "cli/run_traces.h"
#include "profiler/collector.h"
#include "profiler/host.h"
#include "profiler/store_rows.h"
#include "profiler/warnings.h"
#include "runtime/base/interrupt.h"
#include "runtime/pass/pass.h"

static tfc_status store_steps(const struct run_profile *r, struct tfc_store *store, int64_t key) {
  for (uint32_t i = 0; i < r->recorded->profiles.count; i++) {
    const struct tfc_step_profile *p = &r->recorded->profiles.data[i];
    struct tfc_store_step step = {i, "profile", 0, true, p->start_ns, p->duration_ns};
    TFC_RETURN_IF_ERROR(tfc_store_add_steps(store, key, &step, 1));
    for (uint32_t d = 0; d < p->busy.count; d++) {
      struct tfc_store_busy busy = tfc_store_busy_of(i, d, &p->busy.data[d]);
      TFC_RETURN_IF_ERROR(tfc_store_add_busy(store, key, &busy, 1));
    }
    for (uint32_t k = 0; k < p->ops.count; k++) {
      const struct tfc_profile_op *q = &p->ops.data[k];
      struct tfc_store_op op = {i, k, q->node, q->device, q->start_ns, q->duration_ns, q->dispatch_ns, q->launched_ns};
      TFC_RETURN_IF_ERROR(tfc_store_add_ops(store, key, &op, 1));
    }
    const struct tfc_plan_info *info = tfc_plan_info(r->recorded->plan);
    for (uint32_t k = 0; k < p->transfers.count; k++) {
      const struct tfc_profile_transfer *q = &p->transfers.data[k];
      if (q->id >= info->transfer_count) continue;
      const struct tfc_plan_transfer *t = &info->transfers[q->id];
      struct tfc_store_transfer row = {i,
                                       k,
                                       t->tensor.node,
                                       t->tensor.index,
                                       t->source,
                                       t->target,
                                       q->bytes ? q->bytes : t->bytes,
                                       q->start_ns,
                                       q->duration_ns};
      TFC_RETURN_IF_ERROR(tfc_store_add_transfers(store, key, &row, 1));
    }
    TFC_RETURN_IF_ERROR(tfc_store_add_works(store, key, i, 0, p->works.data, p->works.count));
    TFC_RETURN_IF_ERROR(tfc_store_add_calls(store, key, i, p->calls.data, p->calls.count));
  }
  return NULL;
}

static int by_node(const void *a, const void *b) {
  const struct tfc_profile_op *x = *(const struct tfc_profile_op *const *)a,
                              *y = *(const struct tfc_profile_op *const *)b;
  if (x->node != y->node) return x->node < y->node ? -1 : 1;
  return (x->device > y->device) - (x->device < y->device);
}

// Sums each operation over all steps, for v_op_total.
static tfc_status store_totals(const struct run_profile *r, struct tfc_store *store, int64_t key) {
  tfc_status s = NULL;
  size_t count = 0, at = 0;
  for (uint32_t i = 0; i < r->recorded->profiles.count; i++) count += r->recorded->profiles.data[i].ops.count;
  const struct tfc_profile_op **all = calloc(count + 1, sizeof *all);
  double *ns = calloc(count + 1, sizeof *ns);
  if (!all || !ns) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < r->recorded->profiles.count; i++)
    for (size_t k = 0; k < r->recorded->profiles.data[i].ops.count; k++)
      all[at++] = &r->recorded->profiles.data[i].ops.data[k];
  qsort(all, count, sizeof *all, by_node);
  for (size_t i = 0; i < count;) {
    struct tfc_store_op_total row = {.node_id = all[i]->node, .device_id = all[i]->device};
    for (; i < count && all[i]->node == row.node_id && all[i]->device == row.device_id; i++) {
      ns[row.samples++] = (double)all[i]->duration_ns;
      row.total_ns += all[i]->duration_ns;
    }
    const struct tfc_quartiles q = tfc_quartiles_of(ns, row.samples);
    row.median_ns = (int64_t)q.median, row.fastest_ns = (int64_t)q.least;
    TFC_TRY(s, tfc_store_add_op_totals(store, key, &row, 1));
  }
out:
  free(all);
  free(ns);
  return s;
}

bool run_recorded_init(struct run_recorded *r, uint32_t feed_count) {
  *r = (struct run_recorded){.feeds = calloc(feed_count + 1u, sizeof *r->feeds),
                             .feed_shapes = calloc(feed_count + 1u, sizeof *r->feed_shapes),
                             .values = calloc(feed_count + 1u, sizeof *r->values),
                             .feed_count = feed_count};
  const bool good = r->feeds && r->feed_shapes && r->values;
  if (!good) run_recorded_deinit(r);
  return good;
}
void run_recorded_deinit(struct run_recorded *r) {
  for (uint32_t i = 0; r->values && i < r->feed_count; i++) tfc_tensor_release(&r->values[i]);
  for (size_t i = 0; i < r->profiles.count; i++) tfc_step_profile_deinit(&r->profiles.data[i]);
  tfc_array_free(&r->profiles);
  tfc_plan_free(r->plan);
  free(r->feeds), free(r->feed_shapes), free(r->values);
  *r = (struct run_recorded){0};
}

tfc_status run_profile_open(const struct run_setup *setup, struct tfc_store **out) {
  if (setup->tasks || setup->options->wait) return run_traces_open(setup, 0, tfc_program_cancel(), out);
  return tfc_store_open(setup->options->db, &(struct tfc_store_options){.write = true, .purpose = "tfc-run"}, out);
}

// Returns the driver that measures which algorithm of a library is the fastest for a shape; NULL: no device has such a
// driver. The database keeps what it measured, so that later runs do not measure the same shape again.
static const struct tfc_device_driver *tuned_driver(const struct run_setup *setup) {
  for (uint32_t d = 0; d < setup->devices.count; d++)
    if (setup->devices.devices[d]->driver->set_tuning) return setup->devices.devices[d]->driver;
  return NULL;
}
tfc_status run_profile_take_tuning(const struct run_setup *setup, struct tfc_store *store) {
  const struct tfc_device_driver *driver = tuned_driver(setup);
  char *lines = NULL;
  if (!driver) return NULL;
  TFC_RETURN_IF_ERROR(tfc_store_get_tuning(store, &lines));
  driver->set_tuning(lines);
  free(lines);
  return NULL;
}
static tfc_status keep_tuning(const struct run_setup *setup, struct tfc_store *store) {
  const struct tfc_device_driver *driver = tuned_driver(setup);
  char *lines = driver && driver->tuning ? driver->tuning() : NULL;
  tfc_status s = tfc_store_put_tuning(store, lines);
  free(lines);
  return s;
}

// Units of the run: each operation of the plan is one, and each variable. unit [node]: TFC_NONE for nodes that do not
// run.
struct units {
  uint32_t *unit;
  uint64_t *variable_bytes; // [node]
  uint16_t *device;         // [count]
  uint32_t count;
};

static tfc_status make_units(const struct run_profile *r, struct units *out) {
  const struct tfc_plan_info *info = tfc_plan_info(r->recorded->plan);
  const uint32_t nodes = r->setup->graph->node_count;
  *out = (struct units){.unit = malloc((nodes + 1u) * sizeof *out->unit),
                        .variable_bytes = calloc(nodes + 1u, sizeof *out->variable_bytes),
                        .device = calloc(info->op_count + info->variable_count + 1u, sizeof *out->device)};
  if (!out->unit || !out->variable_bytes || !out->device) return tfc_status_no_memory("a profile");
  for (uint32_t i = 0; i < nodes; i++) out->unit[i] = TFC_NONE;
  for (uint32_t i = 0; i < info->op_count; i++) {
    if (out->unit[info->ops[i].node] != TFC_NONE) continue; // computed in several pieces
    out->unit[info->ops[i].node] = out->count;
    out->device[out->count++] = info->ops[i].device;
  }
  for (uint32_t i = 0; i < info->variable_count; i++) {
    const struct tfc_plan_variable *v = &info->variables[i];
    out->variable_bytes[v->node] = v->bytes;
    if (out->unit[v->node] != TFC_NONE) continue;
    out->unit[v->node] = out->count;
    out->device[out->count++] = v->device;
  }
  for (uint32_t i = 0; i < nodes; i++) { // what is fused into an operation runs where that does
    const uint32_t by = out->unit[i] == TFC_NONE ? tfc_plan_done_by(info, i) : TFC_NONE;
    if (by != TFC_NONE) out->unit[i] = out->unit[by];
  }
  return NULL;
}
static void units_deinit(struct units *u) {
  free(u->unit), free(u->variable_bytes), free(u->device);
}

static tfc_status store_edges(const struct run_profile *r, struct tfc_store *store, int64_t run) {
  const struct tfc_plan_info *info = tfc_plan_info(r->recorded->plan);
  struct tfc_store_edge *edges = calloc(info->edge_count + 1u, sizeof *edges);
  if (!edges) return tfc_status_no_memory("a profile");
  for (uint32_t i = 0; i < info->edge_count; i++) {
    const struct tfc_plan_edge *e = &info->edges[i];
    edges[i] = (struct tfc_store_edge){e->from, e->output, e->to, e->bytes};
  }
  tfc_status s = tfc_store_add_edges(store, run, edges, info->edge_count);
  free(edges);
  return s;
}

static tfc_status store_nodes(const struct run_profile *r, const struct units *units, struct tfc_store *store,
                              int64_t run) {
  const struct tfc_graph *g = r->setup->graph;
  const uint32_t feeds = r->recorded->feed_count;
  struct tfc_shapes shapes = {0};
  struct tfc_shape_override *known = calloc(feeds + 1u, sizeof *known);
  tfc_status s = NULL;
  if (!known) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < feeds; i++)
    known[i] = (struct tfc_shape_override){
        .output = r->recorded->feeds[i], .shape = r->recorded->feed_shapes[i], .value = &r->recorded->values[i]};
  TFC_TRY(s, tfc_infer_fed_shapes(g, known, feeds, &shapes));
  for (uint32_t i = 0; i < g->node_count; i++) {
    const struct tfc_node *n = &g->nodes[i];
    struct tfc_op_cost work;
    const bool is_known = tfc_node_cost(g, n, &shapes, &work);
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < n->output_count; k++) {
      const struct tfc_shape *shape = &shapes.shapes[n->output_begin + k];
      size_t size = 0;
      if (!tfc_shape_is_static(shape) || !g->output_dtypes[n->output_begin + k]) continue;
      tfc_status_free(tfc_tensor_bytes(tfc_dtype_base(g->output_dtypes[n->output_begin + k]), shape, &size));
      bytes += size;
    }
    struct tfc_store_node node = {.node_id = i,
                                  .name = n->name,
                                  .op = n->op,
                                  .unit_id = units->unit[i],
                                  .memory = units->variable_bytes[i],
                                  .flops = is_known ? work.flops : NAN,
                                  .bytes_touched = is_known ? work.bytes : NAN,
                                  .output_bytes = bytes};
    TFC_TRY(s, tfc_store_add_nodes(store, run, &node, 1));
  }
out:
  tfc_shapes_deinit(&shapes);
  free(known);
  return s;
}

// Why the run ended, which `tfc-report show` says.
static tfc_status store_ending(const struct run_profile *r, struct tfc_store *store, int64_t run) {
  char text[160];
  int size = snprintf(text, sizeof text,
                      r->interrupted ? "It was interrupted after %u of its %lld steps and %u of warm-up."
                                     : "It ended with the %u of %lld steps that it was to time, after %u of warm-up.",
                      r->steps, (long long)r->setup->options->steps, r->warmup);
  if (r->what)
    size = snprintf(text, sizeof text, "Its script %s. These are %u of its steps, those that are like %s.",
                    r->interrupted ? "was interrupted" : "ended", r->steps, r->what);
  return tfc_store_set_state(store, run, "ending", (tfc_str){text, (size_t)size});
}

tfc_status run_profile_store(const struct run_profile *r, struct tfc_quartiles q, struct tfc_store *store,
                             int64_t *out_run) {
  tfc_status s = NULL;
  const struct run_options *o = r->setup->options;
  const struct tfc_graph *g = r->setup->graph;
  const struct tfc_plan_info *info = tfc_plan_info(r->recorded->plan);
  int64_t run = -1, key = -1;
  struct tfc_host host;
  struct units units = {0};
  char digest[65];
  char *line = tfc_program_command_line();
  char *command = tfc_format("%s%s%s", line ? line : "tfc-run", r->what ? ", " : "", r->what ? r->what : "");
  free(line);
  tfc_host_describe(&host);
  // The interrupt that ended the steps must not stop the storing of their results, which infers shapes again.
  tfc_interrupt_on(NULL);
  tfc_interrupt_at(0, NULL);
  if (!command) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, cli_graph_digest(o->graph, digest));
  TFC_TRY(s, tfc_store_begin(store));
  struct tfc_store_run row = {.program = "tfc-run",
                              .command = command,
                              .graph = o->graph,
                              .graph_sha256 = digest[0] ? digest : NULL,
                              .graph_nodes = g->node_count,
                              .seed = (uint64_t)o->execution.seed,
                              .started_unix_s = r->setup->began_unix_s,
                              .host = host.name,
                              .cpu_model = host.cpu_model,
                              .blas_core = host.blas_core,
                              .label = r->setup->devices.devices[0]->info.label};
  TFC_TRY(s, tfc_store_add_run(store, &row, &run));
  for (uint32_t d = 0; d < r->setup->devices.count; d++) {
    const struct tfc_device_info *i = &r->setup->devices.devices[d]->info;
    struct tfc_store_device device = {.device_id = d,
                                      .name = i->name,
                                      .kind = i->kind,
                                      .model = i->model,
                                      .tensorflow = i->tensorflow,
                                      .label = i->label,
                                      .cores = i->cores,
                                      .memory_limit = i->memory,
                                      .memory_space = i->address_space,
                                      .math = i->math[0] ? i->math : NULL,
                                      .dispatch_us = NAN};
    TFC_TRY(s, tfc_store_add_devices(store, run, &device, 1));
  }
  TFC_TRY(s, make_units(r, &units));
  TFC_TRY(s, store_nodes(r, &units, store, run));
  TFC_TRY(s, store_edges(r, store, run));
  struct tfc_store_placement placement = {.placement_id = 0,
                                          .role = "baseline",
                                          .name = "run",
                                          .episode = -1,
                                          .state = "ok",
                                          .label = row.label,
                                          .simulated_us = NAN,
                                          .median_us = q.median,
                                          .q1_us = q.q1,
                                          .q3_us = q.q3,
                                          .steps = r->steps,
                                          .ratio = NAN,
                                          .reward = NAN,
                                          .cost_s = NAN,
                                          .at_s = NAN,
                                          .transfers = info->transfer_count};
  TFC_TRY(s, tfc_store_add_placement(store, run, &placement, units.device, units.count, &key));
  TFC_TRY(s, store_steps(r, store, key));
  TFC_TRY(s, store_totals(r, store, key));
  for (uint32_t d = 0; d < r->setup->devices.count && info->peak_bytes; d++) {
    const bool counted = r->setup->devices.devices[d]->driver->peak != NULL;
    // The memory that a step needs, as tfc-place stores it. Without a plan of the step's memory that is not known; then
    // it is the most that the device's allocator has held since the program began, with the initialiser's and kept
    // blocks.
    const uint64_t peak = info->is_static ? info->peak_bytes[d] : run_peak(r->setup, info, d);
    struct tfc_store_memory memory = {d, peak, !counted && !info->is_static};
    TFC_TRY(s, tfc_store_add_memory(store, key, &memory, 1));
  }
  TFC_TRY(s, keep_tuning(r->setup, store));
  TFC_TRY(s, tfc_warnings_store(tfc_program_warnings(), store, run));
  TFC_TRY(s, store_ending(r, store, run));
  TFC_TRY(s, tfc_store_finish_measured(store, run, r->interrupted ? "interrupted" : "done"));
  TFC_TRY(s, tfc_store_commit(store));
  *out_run = run;
  tfc_say("profile:%s%s run %lld in %s (tfc-report --db %s show %lld)", r->what ? " " : "", r->what ? r->what : "",
          (long long)run, o->db, o->db, (long long)run);
out:
  units_deinit(&units);
  free(command);
  return s;
}
