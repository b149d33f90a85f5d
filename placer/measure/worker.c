// The measuring worker: a process that opens the devices, initialises the graph's variables, and then measures what the
// parent asks for, until the pipe closes. It ends with its parent, and ignores the terminal's interrupts, because the
// parent decides what they mean.
#include "placer/measure/batch.h"
#include "placer/measure/links.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "placer/measure/guard.h"
#include "placer/measure/worker.h"
#include "placer/model/machine.h"
#include "profiler/gpu.h"
#include "runtime/base/file.h"
#include "runtime/base/sandbox.h"
#include "runtime/exec/model.h"
#include "runtime/exec/queue_threads.h"
#include "runtime/graph/import.h"
#include "runtime/graph/op_def.h"
#include "runtime/ops/data_iterator.h"
#include "runtime/pass/pass.h"

#define WORKER_FLAG "--tfc-measuring-worker"

bool tfc_measure_is_worker(int argc, char **argv) {
  return (argc == 3 || argc == 4) && strcmp(argv[1], WORKER_FLAG) == 0;
}

static tfc_status fail_back(struct tfc_worker *w, tfc_status status) {
  struct tfc_pack p = {0};
  tfc_pack_u32(&p, (uint32_t)tfc_status_code(status));
  tfc_pack_str(&p, tfc_str_from(tfc_status_message(status)));
  tfc_status_free(status);
  tfc_status s = tfc_wire_send(w->fd, TFC_WIRE_FAILED, &p);
  tfc_wire_free(&p.bytes);
  return s;
}

// --- Setting up ------------------------------------------------------------------------------------------------------
static tfc_status read_feed(struct tfc_worker *w, struct tfc_unpack *u, uint32_t i) {
  tfc_str name = tfc_unpack_str(u);
  tfc_dtype type = (tfc_dtype)tfc_unpack_u32(u);
  struct tfc_shape shape = {.rank = (int32_t)tfc_unpack_u32(u)};
  if (shape.rank < 0 || shape.rank > TFC_MAX_RANK) shape.rank = 0, u->failed = true;
  for (int32_t d = 0; d < shape.rank; d++) shape.dims[d] = (int64_t)tfc_unpack_u64(u);
  size_t size = 0;
  const void *data = tfc_unpack_array(u, 1, &size);
  if (u->failed) return tfc_status_make(TFC_INTERNAL, "a broken message");
  TFC_RETURN_IF_ERROR(tfc_graph_parse_output(w->graph, name, &w->feeds[i]));
  w->shapes[i] = shape;
  TFC_RETURN_IF_ERROR(
      tfc_status_annotate(tfc_tensor_create(type, &shape, &w->values[i]), "the feed '%.*s'", TFC_STR_ARG(name)));
  if (type != TFC_STRING) {
    if (size != w->values[i].size) return tfc_status_make(TFC_INTERNAL, "a feed of the wrong size");
    memcpy(w->values[i].data, data, size);
    return NULL;
  }
  struct tfc_unpack strings = {data, (const char *)data + size, false};
  for (int64_t k = 0; k < tfc_tensor_elements(&w->values[i]); k++)
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(&w->values[i], k, tfc_unpack_str(&strings)));
  return NULL;
}

static tfc_status read_node(const struct tfc_graph *g, tfc_str name, uint32_t *out) {
  *out = tfc_graph_find(g, name);
  return *out != TFC_NONE ? NULL : tfc_status_make(TFC_INVALID_ARGUMENT, "there is no node '%.*s'", TFC_STR_ARG(name));
}

static void pack_device(struct tfc_pack *p, const struct tfc_device_info *d) {
  tfc_pack_array(p, d, 1, sizeof *d);
}

static void pack_work(const struct tfc_graph *g, const struct tfc_shapes *shapes, struct tfc_pack *p) {
  tfc_pack_u64(p, g->node_count);
  for (uint32_t i = 0; i < g->node_count; i++) {
    struct tfc_op_cost work;
    if (!tfc_node_cost(g, &g->nodes[i], shapes, &work)) work = (struct tfc_op_cost){(double)NAN, (double)NAN};
    tfc_pack_bytes(p, &work, sizeof work);
  }
}

// Packs which nodes each kind of device can run, as its driver reports it.
static void pack_supported(struct tfc_worker *w, struct tfc_pack *p) {
  const struct tfc_device_set *set = &w->sides[0].set;
  uint32_t kinds = 0;
  for (uint32_t d = 0; d < set->count; d++) {
    bool seen = false;
    for (uint32_t e = 0; e < d; e++) seen |= strcmp(set->devices[e]->info.kind, set->devices[d]->info.kind) == 0;
    kinds += !seen;
  }
  tfc_pack_u32(p, kinds);
  for (uint32_t d = 0; d < set->count; d++) {
    struct tfc_device *device = set->devices[d];
    bool seen = false;
    for (uint32_t e = 0; e < d; e++) seen |= strcmp(set->devices[e]->info.kind, device->info.kind) == 0;
    if (seen) continue;
    for (uint32_t i = 0; i < w->graph->node_count; i++) {
      const struct tfc_node *n = &w->graph->nodes[i];
      bool can = true;
      if (n->def && n->def->kernel && device->driver->supports) {
        can = device->driver->supports(device, n->def, tfc_kernel_type(w->graph, n), NULL);
      }
      tfc_pack_bytes(p, &(char){(char)can}, 1);
    }
  }
}

static void pack_fallbacks(const struct tfc_plan *plan, struct tfc_pack *p) {
  uint32_t count = tfc_plan_fallbacks(plan, NULL, 0);
  struct tfc_plan_fallback *list = calloc(count + 1u, sizeof *list);
  if (!list) {
    p->failed = true;
    return;
  }
  (void)tfc_plan_fallbacks(plan, list, count);
  uint32_t on_host = 0;
  for (uint32_t i = 0; i < count; i++) on_host += !list[i].on_device;
  tfc_pack_u32(p, on_host);
  for (uint32_t i = 0; i < count; i++) {
    if (list[i].on_device) continue;
    tfc_pack_u32(p, list[i].node);
    tfc_pack_str(p, tfc_str_from(list[i].reason));
  }
  free(list);
}

static tfc_status set_up(struct tfc_worker *w, struct tfc_unpack *u) {
  tfc_status s = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_pack p = {0};
  struct tfc_shapes shapes = {0};
  struct tfc_shape_override *known = NULL;
  char *path = tfc_str_dup(tfc_unpack_str(u)), *devices = tfc_str_dup(tfc_unpack_str(u));
  w->checkpoint = tfc_str_dup(tfc_unpack_str(u));
  char *tuning = NULL;
  if (!path || !devices || !w->checkpoint) TFC_TRY(s, tfc_status_no_memory(NULL));
  tfc_gpu_profiler_prepare(devices);
  TFC_TRY(s, tfc_execution_parse(tfc_unpack_str(u), &w->execution));
  tuning = tfc_str_dup(tfc_unpack_str(u));
  if (u->failed) TFC_FAIL(s, TFC_INTERNAL, "a broken message");
  TFC_TRY(s, tfc_graph_load(path, NULL, &w->graph));
  // functions are lowered as in the placer's graph, so that both number the nodes equally
  TFC_TRY(s, tfc_lower_loaded(&w->graph));
  const struct tfc_graph *g = w->graph;
  uint32_t counts[4]; // numbers of feeds, fetches, targets and inits
  for (int i = 0; i < 4; i++) {
    counts[i] = tfc_unpack_u32(u);
    if (counts[i] > g->output_total + g->node_count) TFC_FAIL(s, TFC_INTERNAL, "a broken message");
  }
  w->feeds = calloc(counts[0] + 1u, sizeof *w->feeds);
  w->shapes = calloc(counts[0] + 1u, sizeof *w->shapes);
  w->values = calloc(counts[0] + 1u, sizeof *w->values);
  w->fetches = calloc(counts[1] + 1u, sizeof *w->fetches);
  w->results = calloc(counts[1] + 1u, sizeof *w->results);
  w->targets = calloc(counts[2] + 1u, sizeof *w->targets);
  w->inits = calloc(counts[3] + 1u, sizeof *w->inits);
  w->async = calloc(g->node_count + 1u, sizeof *w->async);
  w->runs = calloc(g->node_count + 1u, sizeof *w->runs);
  known = calloc(counts[0] + 1u, sizeof *known);
  if (!w->feeds || !w->shapes || !w->values || !w->fetches || !w->results || !w->targets || !w->inits || !w->async ||
      !w->runs || !known)
    TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < counts[0]; i++) {
    TFC_TRY(s, read_feed(w, u, i));
    known[i] = (struct tfc_shape_override){.output = w->feeds[i], .shape = w->shapes[i], .value = &w->values[i]};
  }
  for (uint32_t i = 0; i < counts[1]; i++) TFC_TRY(s, tfc_graph_parse_output(g, tfc_unpack_str(u), &w->fetches[i]));
  for (uint32_t i = 0; i < counts[2]; i++) TFC_TRY(s, read_node(g, tfc_unpack_str(u), &w->targets[i]));
  for (uint32_t i = 0; i < counts[3]; i++) TFC_TRY(s, read_node(g, tfc_unpack_str(u), &w->inits[i]));
  w->step = (struct tfc_run_spec){.feeds = w->feeds,
                                  .feed_count = counts[0],
                                  .fetches = w->fetches,
                                  .fetch_count = counts[1],
                                  .targets = w->targets,
                                  .target_count = counts[2],
                                  .feed_shapes = w->shapes};
  w->init = (struct tfc_run_spec){.targets = w->inits, .target_count = counts[3]};
  for (uint32_t i = 0; i < g->node_count; i++) w->async[i] = g->nodes[i].def && (g->nodes[i].def->flags & TFC_OP_ASYNC);
  // The allocator does not enforce the user's limits; they are compared with what each plan needs. Otherwise the
  // profile could not run a graph that fits on no single device.
  TFC_TRY(s, tfc_devices_open(devices, NULL, 0, &w->sides[0].set));
  TFC_TRY(s, tfc_devices_open_whole(w->sides[0].set.devices[0], &w->sides[1].set));
  if (!(w->most_bytes = malloc((w->sides[0].set.count + 1) * sizeof *w->most_bytes)))
    TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t d = 0; d < w->sides[0].set.count; d++) {
    const char *name = w->sides[0].set.devices[d]->info.name;
    w->most_bytes[d] = UINT64_MAX;
    for (uint32_t i = 0; i < w->execution.limit_count; i++) {
      const struct tfc_memory_limit *limit = &w->execution.limits[i];
      if (tfc_glob_match(tfc_str_from(limit->pattern), tfc_str_from(name))) w->most_bytes[d] = limit->bytes;
    }
  }
  // The undivided machine's session is created when it is measured; only its description is sent now.
  TFC_TRY(s, tfc_execution_apply(&w->execution, &w->sides[1].set));
  if (tuning && *tuning && w->sides[0].set.devices[0]->driver->set_tuning)
    w->sides[0].set.devices[0]->driver->set_tuning(tuning);
  TFC_TRY(s, tfc_worker_side_open(w, 0));
  TFC_TRY(s, tfc_infer_fed_shapes(g, known, counts[0], &shapes));
  struct tfc_run_spec alone = w->step; // one device, with operations split as when several devices run
  alone.in_parts = w->sides[0].set.count > 1;
  TFC_TRY(s, tfc_plan_create(w->sides[0].session, &alone, &plan));
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  tfc_pack_u32(&p, w->sides[0].set.count);
  for (uint32_t d = 0; d < w->sides[0].set.count; d++) pack_device(&p, &w->sides[0].set.devices[d]->info);
  pack_device(&p, &w->sides[1].set.devices[0]->info);
  tfc_pack_str(&p, tfc_str_from(w->sides[0].set.note));
  tfc_pack_u32(&p, g->node_count);
  tfc_pack_u32(&p, info->is_static);
  bool *runs = w->runs;
  uint32_t run_count = 0;
  for (uint32_t i = 0; i < info->op_count; i++) runs[info->ops[i].node] = true;
  for (uint32_t i = 0; i < g->node_count; i++) runs[i] |= tfc_plan_done_by(info, i) != TFC_NONE;
  for (uint32_t i = 0; i < g->node_count; i++) run_count += runs[i];
  tfc_pack_u64(&p, run_count);
  for (uint32_t i = 0; i < g->node_count; i++)
    if (runs[i]) tfc_pack_u32(&p, i);
  tfc_worker_pack_fused(w, info, &p);
  tfc_pack_array(&p, info->continued, info->continued_count, sizeof *info->continued);
  tfc_pack_array(&p, info->shared, info->shared_count, sizeof *info->shared);
  tfc_pack_array(&p, info->variables, info->variable_count, sizeof *info->variables);
  tfc_pack_u64(&p, g->output_total);
  for (uint32_t i = 0; i < g->output_total; i++) {
    size_t bytes = 0;
    if (tfc_shape_is_static(&shapes.shapes[i]) && g->output_dtypes[i]) {
      tfc_status t = tfc_tensor_bytes(tfc_dtype_base(g->output_dtypes[i]), &shapes.shapes[i], &bytes);
      if (t) bytes = 0;
      tfc_status_free(t);
    }
    tfc_pack_u64(&p, bytes);
  }
  pack_work(g, &shapes, &p);
  pack_supported(w, &p);
  free(tuning);
  tuning = w->sides[0].set.devices[0]->driver->tuning ? w->sides[0].set.devices[0]->driver->tuning() : NULL;
  tfc_pack_str(&p, tfc_str_from(tuning));
  pack_fallbacks(plan, &p);
  TFC_TRY(s, tfc_wire_send(w->fd, TFC_WIRE_SETUP, &p));
out:
  tfc_plan_free(plan);
  tfc_wire_free(&p.bytes);
  tfc_shapes_deinit(&shapes);
  free(known);
  free(path);
  free(devices);
  free(tuning);
  return s;
}

static void tear_down(struct tfc_worker *w) {
  for (int i = 2; i >= 0; i--) {
    struct tfc_worker_side *side = &w->sides[i];
    tfc_snapshot_free(side->snapshot);
    tfc_session_free(side->session);
    tfc_collector_free(side->collector);
    if (side->set.count && i != 2) tfc_devices_close(&side->set);
  }
  for (uint32_t i = 0; i < w->step.feed_count; i++) tfc_tensor_release(&w->values[i]);
  tfc_execution_deinit(&w->execution);
  free(w->most_bytes);
  free(w->checkpoint);
  free(w->feeds);
  free(w->shapes);
  free(w->values);
  free(w->fetches);
  free(w->results);
  free(w->targets);
  free(w->inits);
  free(w->async);
  free(w->runs);
  tfc_graph_release(w->graph);
}

// Does what a message asks for. `first`: it is the first one, which must be the set-up.
static tfc_status answer(struct tfc_worker *w, uint32_t type, bool first, struct tfc_unpack *u) {
  if (type == TFC_WIRE_SETUP && first) return set_up(w, u);
  if (type == TFC_WIRE_BATCH && !first) return tfc_worker_batch(w, u);
  if (type == TFC_WIRE_LINKS && !first) return tfc_worker_links(w, u);
  return tfc_status_make(TFC_INTERNAL, "an unexpected message");
}

int tfc_measure_worker_main(int argc, char **argv) {
  struct tfc_worker w = {.fd = atoi(argv[2])};
  tfc_wire_buffer message = {0};
  tfc_status s = NULL;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGINT, SIG_IGN);
  // applies the limits that a program under --untrusted has set for itself
  if (argc == 4) tfc_sandbox_inherit(strtoull(argv[3], NULL, 10));
  tfc_file_forbid_writing(); // a safeguard: tfc-place never runs nodes that write files
  tfc_iterators_repeat();    // measuring takes more steps than the data of a graph may last for
  signal(SIGHUP, SIG_IGN);   // as with SIGINT: closing a terminal sends it to both processes
  tfc_guard_start(w.fd);
  for (bool first = true; !s; first = false) {
    uint32_t type = 0;
    tfc_status done = tfc_wire_receive(w.fd, -1, NULL, &type, &message);
    if (done && tfc_status_code(done) != TFC_RESOURCE_EXHAUSTED) {
      s = done; // the parent has closed the pipe, which is the normal end
      break;
    }
    if (!done) done = answer(&w, type, first, &(struct tfc_unpack){message.data, message.data + message.count, false});
    if (first) tfc_wire_free(&message); // it held the feeds
    if (done && w.lost)
      s = done; // the parent notices the closed pipe
    else if (done)
      s = fail_back(&w, done);
  }
  if (w.lost) close(w.fd);
  tfc_status_free(s);
  tear_down(&w);
  tfc_wire_free(&message);
  return 0;
}
