// Makes what steps of tfc-run need, from its flags: cores, graph, devices, placement and session; and reads --feed.
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/feed_cast.h"
#include "cli/program.h"
#include "cli/run.h"
#include "cli/run_kinds.h"
#include "placer/model/placed.h"
#include "profiler/gpu.h"
#include "runtime/base/memory_account.h"
#include "runtime/base/units.h"
#include "runtime/exec/queue_threads.h"
#include "runtime/graph/import.h"
#include "runtime/io/npy.h"
#include "runtime/pass/pass.h"

// Restricts the process to the first N cores that it may use.
static tfc_status limit_threads(int64_t threads) {
  cpu_set_t allowed, fewer;
  CPU_ZERO(&fewer);
  if (threads <= 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return NULL;
  int64_t taken = 0;
  for (int c = 0; c < CPU_SETSIZE && taken < threads; c++)
    if (CPU_ISSET(c, &allowed)) CPU_SET(c, &fewer), taken++;
  if (taken < threads) tfc_warn("--threads %lld: only %lld cores may be used", (long long)threads, (long long)taken);
  sched_setaffinity(0, sizeof fewer, &fewer);
  return NULL;
}

tfc_math run_choose_math(const struct run_options *o, tfc_math said) {
  tfc_math asked = (tfc_math)o->execution.gpu_math;
  if (!asked && o->execution.rewrites == TFC_REWRITES_ALL) asked = TFC_MATH_TF32;
  if (asked && said && asked != said)
    tfc_warn("%s was measured with products in %s on GPUs; they are in %s now", o->placement, tfc_math_name(said),
             tfc_math_name(asked));
  return asked ? asked : said;
}

tfc_status run_setup_open(const struct run_options *o, struct run_setup *out) {
  tfc_status s = NULL;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct run_setup setup = {.options = o, .began_unix_s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec};
  struct tfc_placed placed = {0};
  tfc_graph_format format;
  TFC_TRY(s, tfc_graph_load(o->graph, &format, &setup.graph));
  setup.file = setup.graph; // the step is found in the file's graph, but the graph that runs has lowered functions
  tfc_graph_retain(setup.file);
  TFC_TRY(s, tfc_lower_loaded(&setup.graph));
  if (o->placement) TFC_TRY(s, tfc_placed_read(o->placement, setup.graph, &placed));
  const char *devices = o->devices ? o->devices : placed.devices ? placed.devices : "cpu:0";
  TFC_TRY(s, limit_threads(o->execution.threads));
  tfc_gpu_profiler_prepare(devices);
  TFC_TRY(s, tfc_devices_open(devices, NULL, 0, &setup.devices));
  // Devices that share cores slow each other down. Times measured on them do not show how long the same step takes on
  // devices that do not share cores, so this is a warning.
  const bool shared = strcmp(setup.devices.devices[0]->info.label, "oversubscribed") == 0;
  if (setup.devices.note && shared)
    tfc_warn("%s", setup.devices.note);
  else if (setup.devices.note)
    tfc_say("%s", setup.devices.note);
  if (o->placement) TFC_TRY(s, tfc_placed_assign(&placed, &setup.devices, &setup.placement, &setup.order));
  struct tfc_session_options options = {.devices = &setup.devices, .execution = o->execution, .callers = 1};
  options.execution.gpu_math = (int)run_choose_math(o, placed.gpu_math);
  tfc_account_restart(tfc_account_host());
  setup.host_before = tfc_account_peak(tfc_account_host());
  TFC_TRY(s, tfc_session_create(setup.graph, &options, &setup.session));
  TFC_TRY(s, tfc_session_fill_queues(setup.session, setup.placement));
  if (o->execution.gpu_math && !run_math(&setup)) tfc_warn("no GPU is among the devices: --gpu-math changes nothing");
  *out = setup, setup = (struct run_setup){0};
out:
  run_setup_close(&setup);
  tfc_placed_deinit(&placed);
  return s;
}

const char *run_math(const struct run_setup *setup) {
  const char *math = NULL;
  for (uint32_t d = 0; d < setup->devices.count && !math; d++)
    math = tfc_devices_math(&setup->devices.devices[d]->info, 1);
  return math;
}

tfc_status run_step(const struct run_setup *setup, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                    struct tfc_tensor *fetches, const struct tfc_run_options *options) {
  tfc_program_step(true);
  tfc_status s = setup->cluster ? tfc_cluster_session_run(setup->cluster, spec, feeds, fetches, options)
                                : tfc_session_run(setup->session, spec, feeds, fetches, options);
  tfc_program_step(false);
  return s;
}

void run_setup_close(struct run_setup *setup) {
  run_kinds_free(setup->kinds); // first: it has plans of the session and watches the devices
  tfc_cluster_session_free(setup->cluster);
  tfc_session_free(setup->session);
  tfc_devices_close(&setup->devices);
  tfc_graph_release(setup->graph);
  tfc_graph_release(setup->file);
  free(setup->placement);
  free(setup->order);
  *setup = (struct run_setup){0};
}

// Parses the type and shape of a feed, such as "int32[32,20]".
static tfc_status parse_type(const char *feed, tfc_str text, struct run_feed *out) {
  size_t bracket = tfc_str_find(text, '[');
  tfc_str type = tfc_str_sub(text, 0, bracket == SIZE_MAX ? text.size : bracket);
  out->dtype = tfc_dtype_parse(type);
  if (out->dtype == TFC_DTYPE_NONE)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "--feed %s: '%.*s' is neither an .npy file nor a type", feed,
                           TFC_STR_ARG(type));
  if (bracket == SIZE_MAX) return NULL;
  if (!tfc_str_ends(text, "]"))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "--feed %s: the shape has no closing ']'", feed);
  tfc_str rest = tfc_str_sub(text, bracket + 1, text.size - 1);
  while (rest.size) {
    const tfc_str one = tfc_str_take(&rest, ',');
    int64_t dim;
    tfc_status s = tfc_parse_i64(one, &dim);
    if (s) return tfc_status_annotate(s, "--feed %s", feed);
    if (dim < 0 || out->shape.rank == TFC_MAX_RANK)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "--feed %s: not a shape", feed);
    out->shape.dims[out->shape.rank++] = dim;
  }
  return NULL;
}

tfc_status run_parse_feed(const struct tfc_graph *g, const char *text, struct run_feed *out) {
  tfc_str all = tfc_str_from(text);
  size_t equals = tfc_str_find(all, '=');
  struct run_feed feed = {0};
  if (equals == SIZE_MAX)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "--feed %s: want NAME=FILE.npy or NAME=DTYPE[SHAPE]", text);
  tfc_status s = tfc_graph_parse_output(g, tfc_str_sub(all, 0, equals), &feed.output);
  if (s) return tfc_status_annotate(s, "--feed %s", text);
  tfc_str value = tfc_str_sub(all, equals + 1, all.size);
  if (tfc_str_ends(value, ".npy")) {
    s = tfc_npy_read(value.data, &feed.value);
    if (!s) s = tfc_feed_cast(tfc_dtype_base(tfc_output_dtype(g, feed.output)), &feed.value);
    if (s) return tfc_status_annotate(s, "--feed %.*s", TFC_STR_ARG(tfc_str_sub(all, 0, equals)));
    feed.has_value = true;
    feed.dtype = feed.value.dtype, feed.shape = feed.value.shape;
  } else {
    TFC_RETURN_IF_ERROR(parse_type(text, value, &feed));
  }
  *out = feed;
  return NULL;
}

void run_feed_deinit(struct run_feed *feed) {
  tfc_tensor_release(&feed->value);
}
