// tfc-run --graph G --steps N: runs and times the step, which is inferred or given by flags.
#include <math.h>
#include <stdlib.h>

#include "cli/json.h"
#include "cli/measuring.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/run.h"
#include "cli/run_profile.h"
#include "cli/untrusted.h"
#include "profiler/collector.h"
#include "profiler/collector_gpu.h"
#include "profiler/statistics.h"
#include "profiler/store.h"
#include "runtime/base/units.h"
#include "runtime/device/settle.h"
#include "runtime/io/npy.h"

struct fetch_file { // --fetch NAME[=FILE.npy]
  struct tfc_output output;
  tfc_str name;
  const char *path; // NULL: only its value is printed
};

struct measurement {
  struct run_setup *setup;
  struct tfc_step_spec step;
  struct run_feed *given; // [feeds of the options]
  struct fetch_file *files;
  uint32_t *targets, *inits;
  struct tfc_output *fetches;
  struct tfc_tensor *results; // [fetch]
  struct run_recorded recorded;
  double *times_us; // [steps]
  uint32_t taken;
  // With GPUs, steps are traced, because a step's time is that of the GPUs' work. Some steps are not traced, to measure
  // what tracing costs.
  bool traces;
  double *host_us, *plain_us; // [steps] by the host's clock: of traced and of untraced steps
  uint32_t plain;
  uint32_t untrusted; // steps whose records could not be used; the host's clock timed them
  int64_t warmup;     // steps that are not timed
  struct tfc_collector *collector;
  struct tfc_store *store; // with --profile
  struct tfc_lock *lock;   // with --wait: no other run measures meanwhile
  bool interrupted;
};

// --- Reading the flags ---------------------------------------------------------------------------------------------
static tfc_status read_names(struct measurement *m) {
  const struct run_options *o = m->setup->options;
  const struct tfc_graph *g = m->setup->graph;
  m->files = calloc(o->fetches.count + 1u, sizeof *m->files);
  m->targets = calloc(o->targets.count + 1u, sizeof *m->targets);
  m->inits = calloc(o->inits.count + 1u, sizeof *m->inits);
  m->given = calloc(o->feeds.count + 1u, sizeof *m->given);
  if (!m->files || !m->targets || !m->inits || !m->given) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < o->fetches.count; i++) {
    tfc_str text = tfc_str_from(o->fetches.items[i]);
    size_t equals = tfc_str_find(text, '=');
    m->files[i].name = tfc_str_sub(text, 0, equals == SIZE_MAX ? text.size : equals);
    m->files[i].path = equals == SIZE_MAX ? NULL : text.data + equals + 1;
    tfc_status s = tfc_graph_parse_output(g, m->files[i].name, &m->files[i].output);
    if (s) return tfc_status_annotate(s, "--fetch %s", text.data);
  }
  for (uint32_t i = 0; i < o->targets.count + o->inits.count; i++) {
    bool target = i < o->targets.count;
    const char *name = target ? o->targets.items[i] : o->inits.items[i - o->targets.count];
    uint32_t node;
    tfc_status s = tfc_graph_parse_node(g, tfc_str_from(name), &node);
    if (s) return tfc_status_annotate(s, "--%s %s", target ? "target" : "init", name);
    if (target)
      m->targets[i] = node;
    else
      m->inits[i - o->targets.count] = node;
  }
  for (uint32_t i = 0; i < o->feeds.count; i++) TFC_RETURN_IF_ERROR(run_parse_feed(g, o->feeds.items[i], &m->given[i]));
  return NULL;
}

static tfc_status infer(struct measurement *m) {
  tfc_status s = NULL;
  const struct run_options *o = m->setup->options;
  struct tfc_step_feed_request *requests = calloc(o->feeds.count + 1u, sizeof *requests);
  struct tfc_output *fetches = calloc(o->fetches.count + 1u, sizeof *fetches);
  if (!requests || !fetches) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < o->feeds.count; i++)
    requests[i] = (struct tfc_step_feed_request){
        .output = m->given[i].output, .has_shape = true, .dtype = m->given[i].dtype, .shape = m->given[i].shape};
  for (uint32_t i = 0; i < o->fetches.count; i++) fetches[i] = m->files[i].output;
  struct tfc_step_request request = {.fetches = fetches,
                                     .fetch_count = o->fetches.count,
                                     .targets = m->targets,
                                     .target_count = o->targets.count,
                                     .inits = m->inits,
                                     .init_count =
                                         o->checkpoint ? 0 : o->inits.count, // with a checkpoint they have run already
                                     .no_init = o->checkpoint != NULL || m->setup->graph->variables_prefix.size > 0,
                                     .feeds = requests,
                                     .feed_count = o->feeds.count,
                                     .batch = o->batch};
  TFC_TRY(s, tfc_step_infer(m->setup->file, &request, &m->step));
  for (uint32_t i = 0; i < m->step.note_count; i++) tfc_say("%.*s", TFC_STR_ARG(m->step.notes[i]));
out:
  free(requests);
  free(fetches);
  return s;
}

static tfc_status feed_value(const struct measurement *m, const struct tfc_step_feed *feed, struct tfc_tensor *out) {
  const struct run_options *o = m->setup->options;
  for (uint32_t i = 0; i < o->feeds.count; i++) {
    const struct run_feed *given = &m->given[i];
    if (given->output.node != feed->output.node || given->output.index != feed->output.index) continue;
    if (!given->has_value) break;
    tfc_tensor_share(&given->value, out);
    return NULL;
  }
  return tfc_step_synthetic(feed, (uint64_t)o->execution.seed, out);
}

static tfc_status initialize(struct measurement *m) {
  if (!m->step.init_count) return NULL;
  tfc_status s = NULL;
  uint32_t n = m->step.init_feed_count;
  struct tfc_output *feeds = calloc(n + 1u, sizeof *feeds);
  struct tfc_tensor *values = calloc(n + 1u, sizeof *values);
  if (!feeds || !values) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < n; i++) {
    feeds[i] = m->step.init_feeds[i].output;
    TFC_TRY(s, feed_value(m, &m->step.init_feeds[i], &values[i]));
  }
  struct tfc_run_spec spec = {.feeds = feeds,
                              .feed_count = n,
                              .targets = m->step.inits,
                              .target_count = m->step.init_count,
                              .placement = m->setup->placement};
  s = run_step(m->setup, &spec, values, NULL,
               &(struct tfc_run_options){.cancel = tfc_program_cancel(), .deadline_ns = cli_untrusted_left(0)});
  if (s) s = tfc_status_annotate(s, "initialising variables");
out:
  for (uint32_t i = 0; values && i < n; i++) tfc_tensor_release(&values[i]);
  free(feeds);
  free(values);
  return s;
}

static tfc_status make_plan(struct measurement *m) {
  struct run_recorded *r = &m->recorded;
  uint32_t n = m->step.feed_count, f = m->step.fetch_count;
  m->results = calloc(f + 1u, sizeof *m->results);
  if (!m->results || !run_recorded_init(r, n)) return tfc_status_no_memory(NULL);
  for (uint32_t i = 0; i < n; i++) {
    r->feeds[i] = m->step.feeds[i].output;
    TFC_RETURN_IF_ERROR(feed_value(m, &m->step.feeds[i], &r->values[i]));
    r->feed_shapes[i] = r->values[i].shape;
  }
  struct tfc_run_spec spec = {.feeds = r->feeds,
                              .feed_count = n,
                              .feed_shapes = r->feed_shapes,
                              .fetches = m->step.fetches,
                              .fetch_count = f,
                              .targets = m->step.targets,
                              .target_count = m->step.target_count,
                              .placement = m->setup->placement,
                              .order = m->setup->order,
                              .adapt = TFC_ADAPT_WHERE_FASTER};
  return tfc_plan_create(m->setup->session, &spec, &r->plan);
}

// --- Running the steps ---------------------------------------------------------------------------------------------
static void release_results(struct measurement *m) {
  for (uint32_t i = 0; m->results && i < m->step.fetch_count; i++) tfc_tensor_release(&m->results[i]);
}

// Stores the profile of a traced step. *us: the time of the devices' work.
static tfc_status take_profile(struct measurement *m, double *us) {
  enum { MOST_KEPT = 16 }; // without --profile, profiles are kept only to report what fallbacks cost
  const struct tfc_collector_names names = {m->setup->graph, tfc_plan_info(m->recorded.plan)};
  const bool stored = m->setup->options->profile, by_profiler = tfc_collector_has_profiler(m->collector);
  struct tfc_step_profile profile = {0};
  tfc_status s = tfc_collector_drain(m->collector, &names, NULL, &profile);
  if (s && !stored && tfc_status_code(s) == TFC_ABORTED) { // the user did not ask for records
    if (!m->untrusted++) tfc_say("a step is timed by the host's clock: %s", tfc_status_message(s));
    tfc_status_free(s);
    tfc_step_profile_deinit(&profile);
    m->traces = tfc_collector_has_profiler(m->collector);
    return NULL;
  }
  if (s) return s;
  if (by_profiler) *us = 1e-3 * (double)profile.duration_ns;
  if ((stored || m->recorded.profiles.count < MOST_KEPT) && tfc_array_push(&m->recorded.profiles, profile)) return NULL;
  tfc_step_profile_deinit(&profile);
  return stored ? tfc_status_no_memory(NULL) : NULL;
}

static tfc_status one_step(struct measurement *m, bool warmup, bool profiled) {
  struct tfc_run_options options = {.cancel = run_cut_off(m->setup->options), .deadline_ns = cli_untrusted_left(0)};
  if (profiled) {
    tfc_collector_reset(m->collector);
    options.trace = tfc_collector_sink(m->collector);
  } else if (m->collector) {
    TFC_RETURN_IF_ERROR(tfc_collector_rest(m->collector));
  }
  release_results(m);
  tfc_program_step(true);
  tfc_status s = tfc_plan_run(m->recorded.plan, m->recorded.values, m->results, &options);
  tfc_program_step(false);
  if (s) return s;
  m->setup->steps++;
  double us = tfc_plan_last_step_us(m->recorded.plan);
  if (!profiled) {
    if (warmup) return NULL;
    *(m->traces ? &m->plain_us[m->plain++] : &m->times_us[m->taken++]) = us;
    return NULL;
  }
  const struct tfc_collector_names names = {m->setup->graph, tfc_plan_info(m->recorded.plan)};
  struct tfc_step_profile profile = {0};
  if (warmup) { // the first profile shows how large the records are, and whether they are valid
    if (!tfc_collector_make_room(m->collector))
      tfc_status_free(tfc_collector_drain(m->collector, &names, NULL, &profile));
    tfc_step_profile_deinit(&profile);
    return NULL;
  }
  m->host_us[m->taken] = us;
  TFC_RETURN_IF_ERROR(take_profile(m, &us));
  m->times_us[m->taken++] = us;
  return NULL;
}

// Returns the number of warm-up steps: as many as the user asked for, or more, until every device that captures its
// segments has captured them. A step in which a device captures is not timed.
static int64_t warmup_of(const struct measurement *m) {
  const struct run_options *o = m->setup->options;
  bool captures = false;
  for (uint32_t d = 0; d < m->setup->devices.count; d++)
    captures |= m->setup->devices.devices[d]->driver->on_its_own && o->execution.captures != TFC_CAPTURES_OFF;
  return captures && o->warmup <= TFC_RUNS_BEFORE_CAPTURE ? TFC_RUNS_BEFORE_CAPTURE + 1 : o->warmup;
}

static bool has_own(const struct measurement *m) { // whether a device works asynchronously
  bool any = false;
  for (uint32_t d = 0; d < m->setup->devices.count; d++) any |= m->setup->devices.devices[d]->driver->on_its_own;
  return any;
}

// Whether a step is traced. With --profile every step is. Otherwise, on GPUs, all are except some of the first blocks,
// which show what tracing costs.
static bool is_traced(const struct measurement *m, int64_t step) {
  enum { BLOCK = 5, LEAST = 4 * BLOCK, MOST = 8 * BLOCK };
  const struct run_options *o = m->setup->options;
  if (!m->traces || o->profile || o->steps < LEAST || step < 0 || step >= MOST) return m->traces;
  return step / BLOCK % 2 == 0;
}

// Returns what share tracing adds to a step's time by the host's clock; NaN: not known.
static double trace_overhead(const struct measurement *m) {
  if (!m->plain || !m->taken) return NAN;
  return tfc_quartiles_of(m->host_us, m->taken).median / tfc_quartiles_of(m->plain_us, m->plain).median - 1;
}

static tfc_status run_steps(struct measurement *m) {
  const struct run_options *o = m->setup->options;
  m->warmup = warmup_of(m);
  int64_t total = m->warmup + o->steps;
  m->times_us = calloc((size_t)o->steps + 1, sizeof *m->times_us);
  m->host_us = calloc((size_t)o->steps + 1, sizeof *m->host_us);
  m->plain_us = calloc((size_t)o->steps + 1, sizeof *m->plain_us);
  if (!m->times_us || !m->host_us || !m->plain_us) return tfc_status_no_memory(NULL);
  if (o->profile || has_own(m)) {
    TFC_RETURN_IF_ERROR(
        tfc_collector_create(m->setup->devices.count, 4096 + 2 * (size_t)m->setup->graph->node_count, &m->collector));
    TFC_RETURN_IF_ERROR(tfc_collector_watch(m->collector, &m->setup->devices));
    m->traces = o->profile || tfc_collector_has_profiler(m->collector);
  }
  run_finish_steps(o);
  tfc_progress_begin("run");
  for (int64_t i = 0; i < total; i++) {
    if (atomic_load(tfc_program_cancel()))
      return tfc_status_make(TFC_CANCELLED, "stopped after %lld steps", (long long)i);
    tfc_progress_update((double)i / (double)total, -1, "step %lld of %lld", (long long)(i + 1), (long long)total);
    TFC_RETURN_IF_ERROR(one_step(m, i < m->warmup, is_traced(m, i - m->warmup)));
  }
  tfc_progress_end("%lld steps after %lld of warm-up", (long long)o->steps, (long long)m->warmup);
  return NULL;
}

// --- Reporting the results -----------------------------------------------------------------------------------------
static double quantile(const double *sorted, uint32_t n, double q) {
  if (!n) return NAN;
  double at = q * (n - 1);
  uint32_t low = (uint32_t)at;
  return low + 1 < n ? sorted[low] + (at - low) * (sorted[low + 1] - sorted[low]) : sorted[n - 1];
}

// Returns the time of an operation that the device cannot run itself, if it was traced: host time, with a copy before
// and after.
static double cost_of(const struct measurement *m, const struct tfc_plan_fallback *f) { // NaN: not known
  double us[64];
  size_t n = 0;
  for (size_t i = 0; i < m->recorded.profiles.count && n < 64; i++)
    for (size_t k = 0; k < m->recorded.profiles.data[i].ops.count; k++) {
      const struct tfc_profile_op *o = &m->recorded.profiles.data[i].ops.data[k];
      if (o->node != f->node || o->device != f->device) continue;
      us[n++] = 1e-3 * (double)(o->dispatch_ns > o->duration_ns ? o->dispatch_ns : o->duration_ns);
      break;
    }
  return n ? tfc_quartiles_of(us, n).median : NAN;
}

static tfc_status list_fallbacks(const struct measurement *m, json_t *document) { // document NULL: prints text
  uint32_t count = tfc_plan_fallbacks(m->recorded.plan, NULL, 0);
  struct tfc_plan_fallback *list = calloc(count + 1u, sizeof *list);
  if (!list) return tfc_status_no_memory(NULL);
  (void)tfc_plan_fallbacks(m->recorded.plan, list, count);
  json_t *rows = json_array();
  uint32_t on_host = 0;
  for (uint32_t i = 0; i < count; i++) on_host += !list[i].on_device;
  if (on_host && !document) printf("%u operations ran on the host for want of a kernel:\n", on_host);
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_node *n = &m->setup->graph->nodes[list[i].node];
    const char *device = m->setup->devices.devices[list[i].device]->info.name;
    double us = cost_of(m, &list[i]);
    char text[32];
    if (document)
      json_array_append_new(rows, json_pack("{s:s%, s:s%, s:s, s:s, s:s, s:o}", "node", n->name.data, n->name.size,
                                            "op", n->op.data, n->op.size, "device", device, "runs",
                                            list[i].on_device ? "plain kernel" : "host", "reason", list[i].reason,
                                            "median_us", cli_json_number(us)));
    else if (list[i].on_device)
      printf("%.*s (%.*s) of %s%s%s runs by a plainer kernel, because a library declined: %s\n", TFC_STR_ARG(n->name),
             TFC_STR_ARG(n->op), device, isfinite(us) ? ", " : "", isfinite(us) ? tfc_show_us(text, us) : "",
             list[i].reason);
    else
      printf("  %.*s (%.*s) of %s%s%s: %s\n", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op), device,
             isfinite(us) ? ", " : "", isfinite(us) ? tfc_show_us(text, us) : "", list[i].reason);
  }
  free(list);
  if (document)
    json_object_set_new(document, "fallbacks", rows);
  else
    json_decref(rows);
  return NULL;
}

// How the records came: before such figures are known of a machine, nobody can say which limits are right for it.
static json_t *records_of(const struct tfc_collector_records *r) {
  json_t *flushes = json_object(), *overlaps = json_object();
  char name[32];
  for (int i = 0; i <= TFC_COLLECTOR_FLUSHES; i++) {
    snprintf(name, sizeof name, "%d", i < TFC_COLLECTOR_FLUSHES ? tfc_collector_flushes[i] : 0);
    json_object_set_new(flushes, i < TFC_COLLECTOR_FLUSHES ? name : "more", json_integer((json_int_t)r->flushes[i]));
  }
  for (int i = 0; i <= TFC_ACTIVITY_BOUNDS; i++) {
    snprintf(name, sizeof name, "%g", i < TFC_ACTIVITY_BOUNDS ? 1e-3 * (double)tfc_activity_bounds_ns[i] : 0);
    json_object_set_new(overlaps, i < TFC_ACTIVITY_BOUNDS ? name : "more",
                        json_integer((json_int_t)r->overlaps.pairs[i]));
  }
  return json_pack("{s:o, s:o, s:o, s:o}", "flushes", flushes, "overlaps_us", overlaps, "longest_overlap_us",
                   cli_json_number(1e-3 * (double)r->overlaps.longest_ns), "overlap_limit_us",
                   cli_json_number(1e-3 * (double)r->overlaps.limit_ns));
}

// Reports what timed the steps, and what tracing adds; above 2 %, also the time of untraced steps.
static tfc_status add_timer(const struct measurement *m, json_t *document) { // NULL: as text
  const double overhead = trace_overhead(m);
  const char *timer = m->collector ? tfc_collector_timer(m->collector) : NULL,
             *colon = timer ? strchr(timer, ':') : NULL;
  if (!timer) return NULL;
  // Events are used only if records were asked for, because they would change the step.
  const bool by_host = !m->setup->options->profile && !m->traces;
  char *text = by_host ? tfc_format("the host's clock%s", colon ? colon : "") : tfc_format("%s", timer);
  if (!text) return tfc_status_no_memory(NULL);
  const struct tfc_quartiles plain = tfc_quartiles_of(m->plain_us, m->plain);
  char a[32];
  if (document) {
    json_object_set_new(document, "timer", json_string(text));
    json_object_set_new(document, "trace_overhead", cli_json_number(overhead));
    if (m->plain)
      json_object_set_new(document, "untraced",
                          json_pack("{s:o, s:i}", "median_us", cli_json_number(plain.median), "steps", (int)m->plain));
    struct tfc_collector_records records;
    if (!by_host && tfc_collector_records_get(m->collector, &records))
      json_object_set_new(document, "trace_records", records_of(&records));
    if (m->untrusted) json_object_set_new(document, "untrusted_steps", json_integer(m->untrusted));
  } else if (by_host || m->plain) {
    printf("timed by %s", text);
    if (isfinite(overhead)) printf("; tracing costs %.1f %% of a step", 100 * overhead);
    if (overhead > 0.02)
      printf(" (untraced, by the host's clock: median %s of %u)", tfc_show_us(a, plain.median), m->plain);
    printf("\n");
  }
  free(text);
  return NULL;
}

static tfc_status print_json(const struct measurement *m, struct tfc_quartiles q, int64_t run) {
  const struct tfc_plan_info *info = tfc_plan_info(m->recorded.plan);
  const struct run_options *o = m->setup->options;
  json_t *devices = json_array(), *fetched = json_object();
  const char *label = "measured";
  for (uint32_t d = 0; d < m->setup->devices.count; d++) {
    const struct tfc_device_info *i = &m->setup->devices.devices[d]->info;
    if (d == 0 || strcmp(label, "measured") == 0) label = i->label;
    json_t *device = json_pack("{s:s, s:s, s:i, s:s, s:I}", "name", i->name, "kind", i->kind, "cores", (int)i->cores,
                               "label", i->label, "peak_bytes", (json_int_t)run_peak(m->setup, info, d));
    if (device && info->is_static && info->peak_bytes)
      json_object_set_new(device, "step_bytes", json_integer((json_int_t)info->peak_bytes[d]));
    json_array_append_new(devices, device);
  }
  for (uint32_t i = 0; i < o->fetches.count; i++) {
    const struct tfc_tensor *t = &m->results[i];
    if (t->dtype == TFC_FLOAT && tfc_tensor_elements(t) == 1)
      json_object_setn_new(fetched, m->files[i].name.data, m->files[i].name.size,
                           cli_json_number((double)*(const float *)t->data));
  }
  json_t *document = json_pack(
      "{s:o, s:{s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:s}, s:i, s:i, s:o, s:o}", "graph", cli_json_string(o->graph),
      "step", "median_us", cli_json_number(q.median), "q1_us", cli_json_number(q.q1), "q3_us", cli_json_number(q.q3),
      "p50_us", cli_json_number(q.median), "p95_us", cli_json_number(quantile(m->times_us, m->taken, 0.95)), "p99_us",
      cli_json_number(quantile(m->times_us, m->taken, 0.99)), "steps", (int)(m->taken + m->plain), "warmup",
      (int)m->warmup, "label", label, "operations", (int)info->op_count, "transfers", (int)info->transfer_count,
      "devices", devices, "fetched", fetched);
  if (!document) return tfc_status_no_memory(NULL);
  if (run > 0) json_object_set_new(document, "run", json_integer(run));
  if (run_math(m->setup)) json_object_set_new(document, "gpu_math", json_string(run_math(m->setup)));
  TFC_RETURN_IF_ERROR(add_timer(m, document));
  tfc_status listed = list_fallbacks(m, document);
  if (listed) {
    json_decref(document);
    return listed;
  }
  tfc_status s = cli_json_print(document);
  json_decref(document);
  return s;
}

static void print_text(const struct measurement *m, struct tfc_quartiles q) {
  const struct tfc_plan_info *info = tfc_plan_info(m->recorded.plan);
  const struct run_options *o = m->setup->options;
  char a[32], b[32], c[32];
  for (uint32_t i = 0; i < o->fetches.count; i++) {
    const struct tfc_tensor *t = &m->results[i];
    char shape[TFC_SHAPE_TEXT];
    if (t->dtype == TFC_FLOAT && tfc_tensor_elements(t) == 1)
      printf("%.*s = %.9g\n", TFC_STR_ARG(m->files[i].name), (double)*(const float *)t->data);
    else
      printf("%.*s: %s%s\n", TFC_STR_ARG(m->files[i].name), tfc_dtype_name(t->dtype), tfc_shape_show(&t->shape, shape));
  }
  printf("step: median %s, quartiles %s to %s, %u steps\n", tfc_show_us(a, q.median), tfc_show_us(b, q.q1),
         tfc_show_us(c, q.q3), m->taken);
  printf("a step: %u operations, %u transfers\n", info->op_count, info->transfer_count);
  const char *math = run_math(m->setup);
  if (math && strcmp(math, tfc_math_name(TFC_MATH_FLOAT32)))
    printf("GPUs computed products and convolutions of float32 tensors in %s\n", math);
  for (uint32_t d = 0; d < m->setup->devices.count && info->peak_bytes; d++) {
    const struct tfc_device_info *i = &m->setup->devices.devices[d]->info;
    printf("%s (%s, %u cores): ", i->name, i->label, i->cores);
    if (info->is_static) printf("a step needs %s of memory; ", tfc_show_bytes(b, (double)info->peak_bytes[d]));
    printf("most taken in all: %s\n", tfc_show_bytes(a, (double)run_peak(m->setup, info, d)));
  }
}

static tfc_status write_files(const struct measurement *m) {
  const struct run_options *o = m->setup->options;
  for (uint32_t i = 0; i < o->fetches.count; i++)
    if (m->files[i].path) TFC_RETURN_IF_ERROR(tfc_npy_write(m->files[i].path, &m->results[i]));
  return NULL;
}

static tfc_status store_run(const struct measurement *m, struct tfc_quartiles q, int64_t *out_run) {
  const struct run_profile profile = {.setup = m->setup,
                                      .recorded = &m->recorded,
                                      .steps = m->taken,
                                      .warmup = (uint32_t)m->warmup,
                                      .interrupted = m->interrupted};
  return run_profile_store(&profile, q, m->store, out_run);
}

// --- The mode --steps ----------------------------------------------------------------------------------------------
tfc_status run_measure(struct run_setup *setup) {
  tfc_status s = NULL;
  struct measurement m = {.setup = setup};
  int64_t run = 0;
  TFC_TRY(s, read_names(&m));
  if (setup->options->wait) TFC_TRY(s, cli_measuring_lock(true, &m.lock));
  if (setup->options->profile) TFC_TRY(s, run_profile_open(setup, &m.store));
  if (m.store) TFC_TRY(s, run_profile_take_tuning(setup, m.store));
  TFC_TRY(s, infer(&m));
  TFC_TRY(s, initialize(&m));
  TFC_TRY(s, make_plan(&m));
  s = run_steps(&m);
  if (tfc_status_code(s) == TFC_CANCELLED && m.store && m.taken > 0) { // what was measured before the interrupt is kept
    m.interrupted = true;
    tfc_status lost = store_run(&m, tfc_quartiles_of(m.times_us, m.taken), &run);
    if (lost) { // losing data is worse than the interrupt, so it decides the exit code
      tfc_status_free(s);
      s = lost;
    }
  }
  if (s) goto out;
  struct tfc_quartiles q = tfc_quartiles_of(m.times_us, m.taken);
  TFC_TRY(s, write_files(&m));
  if (setup->options->profile) TFC_TRY(s, store_run(&m, q, &run));
  if (setup->options->common.json) {
    TFC_TRY(s, print_json(&m, q, run));
  } else {
    print_text(&m, q);
    TFC_TRY(s, add_timer(&m, NULL));
    TFC_TRY(s, list_fallbacks(&m, NULL));
  }
out:
  tfc_store_close(m.store);
  tfc_lock_release(m.lock);
  release_results(&m);
  for (uint32_t i = 0; m.given && i < setup->options->feeds.count; i++) run_feed_deinit(&m.given[i]);
  tfc_collector_free(m.collector);
  run_recorded_deinit(&m.recorded);
  free(m.results), free(m.times_us), free(m.host_us), free(m.plain_us);
  free(m.files), free(m.targets), free(m.inits), free(m.given);
  tfc_step_spec_deinit(&m.step);
  return s;
}
