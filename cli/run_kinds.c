// A kind keeps the lists of its first step; a later step is compared with them. Scripts have few kinds. One process has
// a plan for each kind, because a run in the database has the edges and units of one plan.
#include "cli/run_kinds.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "cli/run_profile.h"
#include "cli/run_traces.h"
#include "profiler/collector.h"
#include "profiler/collector_gpu.h"

struct kind {
  char *name;
  // recorded.values: what the first step of the kind was fed. In a job of several tasks, only recorded.feeds and
  // recorded.feed_shapes are set.
  struct run_recorded recorded;
  struct tfc_output *fetches;
  uint32_t *targets;
  uint32_t fetch_count, target_count;
  TFC_ARRAY(double) times_us;
  struct run_traces traces; // of several tasks
};
struct run_kinds {
  pthread_mutex_t lock; // guards the list and the collector
  TFC_ARRAY(struct kind) list;
  struct tfc_collector *collector; // of one process
  bool told;                       // that some steps are not recorded
};

tfc_status run_kinds_open(const struct run_setup *setup, bool checks, struct run_kinds **out) {
  tfc_status s = NULL;
  struct tfc_store *store = NULL;
  struct run_kinds *k = calloc(1, sizeof *k);
  if (!k) return tfc_status_no_memory("a profile");
  pthread_mutex_init(&k->lock, NULL);
  if (checks) TFC_TRY(s, run_profile_open(setup, &store));
  if (!setup->cluster) {
    TFC_TRY(s, run_profile_take_tuning(setup, store));
    TFC_TRY(s, tfc_collector_create(setup->devices.count, 4096 + 2 * (size_t)setup->graph->node_count, &k->collector));
    TFC_TRY(s, tfc_collector_watch(k->collector, &setup->devices));
  }
  *out = k, k = NULL;
out:
  tfc_store_close(store);
  run_kinds_free(k);
  return s;
}

static void kind_deinit(struct kind *k) {
  free(k->name), free(k->fetches), free(k->targets);
  tfc_array_free(&k->times_us);
  run_traces_deinit(&k->traces);
  run_recorded_deinit(&k->recorded);
}
void run_kinds_free(struct run_kinds *kinds) {
  if (!kinds) return;
  for (size_t i = 0; i < kinds->list.count; i++) kind_deinit(&kinds->list.data[i]);
  tfc_array_free(&kinds->list);
  tfc_collector_free(kinds->collector);
  pthread_mutex_destroy(&kinds->lock);
  free(kinds);
}

static bool same_outputs(const struct tfc_output *a, uint32_t count, const struct tfc_output *b, uint32_t other) {
  if (count != other) return false;
  for (uint32_t i = 0; i < count; i++)
    if (a[i].node != b[i].node || a[i].index != b[i].index) return false;
  return true;
}
static bool is_of(const struct kind *k, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds) {
  if (!same_outputs(k->recorded.feeds, k->recorded.feed_count, spec->feeds, spec->feed_count) ||
      !same_outputs(k->fetches, k->fetch_count, spec->fetches, spec->fetch_count) ||
      k->target_count != spec->target_count)
    return false;
  for (uint32_t i = 0; i < k->recorded.feed_count; i++)
    if (!tfc_shape_equal(&k->recorded.feed_shapes[i], &feeds[i].shape)) return false;
  return !k->target_count || !memcmp(k->targets, spec->targets, k->target_count * sizeof *k->targets);
}

static void *copy_of(const void *list, uint32_t count, size_t size) {
  void *copy = calloc(count + 1u, size);
  if (copy && count) memcpy(copy, list, count * size);
  return copy;
}

// Finds the kind of a step, or adds it. Under the lock. NULL: out of memory.
static struct kind *kind_of(struct run_kinds *kinds, const char *name, const struct tfc_run_spec *spec,
                            const struct tfc_tensor *feeds) {
  const uint32_t count = spec->feed_count;
  for (size_t i = 0; i < kinds->list.count; i++)
    if (is_of(&kinds->list.data[i], spec, feeds)) return &kinds->list.data[i];
  struct kind made = {.name = strdup(name),
                      .fetches = copy_of(spec->fetches, spec->fetch_count, sizeof *spec->fetches),
                      .targets = copy_of(spec->targets, spec->target_count, sizeof *spec->targets),
                      .fetch_count = spec->fetch_count,
                      .target_count = spec->target_count};
  struct run_recorded *r = &made.recorded;
  bool good = made.name && made.fetches && made.targets && run_recorded_init(r, count);
  for (uint32_t i = 0; good && i < count; i++) {
    r->feeds[i] = spec->feeds[i];
    r->feed_shapes[i] = feeds[i].shape;
    if (kinds->collector) tfc_tensor_share(&feeds[i], &r->values[i]);
  }
  good = good && tfc_array_push(&kinds->list, made);
  if (!good) kind_deinit(&made);
  return good ? &kinds->list.data[kinds->list.count - 1] : NULL;
}

// --- Steps of several tasks ------------------------------------------------------------------------------------------
static tfc_status step_of_tasks(struct run_kinds *kinds, const struct run_setup *setup, const char *name,
                                const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                                struct tfc_tensor *fetches, const struct tfc_run_options *options) {
  struct tfc_cluster_trace trace = {0};
  tfc_program_step(true);
  tfc_status s = tfc_cluster_session_run_traced(setup->cluster, spec, feeds, fetches, options, &trace);
  tfc_program_step(false);
  if (s) return s;
  const double us = (double)(trace.end_ns - trace.begin_ns) * 1e-3;
  pthread_mutex_lock(&kinds->lock);
  struct kind *k = kind_of(kinds, name, spec, feeds);
  if (k && tfc_array_push(&k->times_us, us)) {
    s = run_traces_add(&k->traces, &trace);
  } else {
    tfc_cluster_trace_deinit(&trace);
    s = tfc_status_no_memory("a profile");
  }
  pthread_mutex_unlock(&kinds->lock);
  for (uint32_t i = 0; s && i < spec->fetch_count; i++) tfc_tensor_release(&fetches[i]);
  return s;
}

// --- Steps of one process --------------------------------------------------------------------------------------------
// Keeps the records of a step that has run. A first step may have more than there was room for, or (GPUs) records that
// are no measurement; then they are dropped, and there is room from then on.
static tfc_status keep_records(struct run_kinds *kinds, const struct run_setup *setup, struct kind *k, double us) {
  const struct tfc_collector_names names = {setup->graph, tfc_plan_info(k->recorded.plan)};
  struct tfc_step_profile profile = {0};
  if (tfc_collector_make_room(kinds->collector)) return NULL;
  tfc_status s = tfc_collector_drain(kinds->collector, &names, NULL, &profile);
  if (tfc_status_code(s) == TFC_ABORTED) {
    if (!kinds->told) tfc_warn("--profile: a step is not recorded: %s", tfc_status_message(s));
    kinds->told = true;
    tfc_status_free(s);
    tfc_step_profile_deinit(&profile);
    return NULL;
  }
  if (!s && tfc_collector_has_profiler(kinds->collector)) us = 1e-3 * (double)profile.duration_ns;
  if (!s && tfc_array_push(&k->times_us, us) && tfc_array_push(&k->recorded.profiles, profile)) return NULL;
  tfc_step_profile_deinit(&profile);
  return s ? s : tfc_status_no_memory("a profile");
}

static tfc_status step_of_process(struct run_kinds *kinds, const struct run_setup *setup, const char *name,
                                  const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                                  struct tfc_tensor *fetches, const struct tfc_run_options *options) {
  tfc_status s = NULL;
  struct tfc_run_options traced = *options;
  struct kind *k = kind_of(kinds, name, spec, feeds);
  bool ran = false;
  if (!k) return tfc_status_no_memory("a profile");
  if (!k->recorded.plan) {
    struct tfc_run_spec with_shapes = *spec;
    with_shapes.feed_shapes = k->recorded.feed_shapes;
    TFC_TRY(s, tfc_plan_create(setup->session, &with_shapes, &k->recorded.plan));
  }
  tfc_collector_reset(kinds->collector);
  traced.trace = tfc_collector_sink(kinds->collector);
  tfc_program_step(true);
  s = tfc_plan_run(k->recorded.plan, feeds, fetches, &traced);
  tfc_program_step(false);
  ran = !s;
  if (ran) s = keep_records(kinds, setup, k, tfc_plan_last_step_us(k->recorded.plan));
out:
  for (uint32_t i = 0; s && ran && i < spec->fetch_count; i++) tfc_tensor_release(&fetches[i]);
  return s;
}

tfc_status run_kinds_step(struct run_kinds *kinds, const struct run_setup *setup, const char *name, bool beside,
                          const struct tfc_run_spec *spec, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                          const struct tfc_run_options *options) {
  if (setup->cluster) return step_of_tasks(kinds, setup, name, spec, feeds, fetches, options);
  if (beside) return run_step(setup, spec, feeds, fetches, options);
  pthread_mutex_lock(&kinds->lock);
  tfc_status s = step_of_process(kinds, setup, name, spec, feeds, fetches, options);
  pthread_mutex_unlock(&kinds->lock);
  return s;
}

// --- The database ----------------------------------------------------------------------------------------------------
static tfc_status store_of_process(const struct kind *k, const struct run_setup *setup, struct tfc_quartiles q,
                                   bool stopped) {
  struct tfc_store *store = NULL;
  int64_t run = 0;
  const struct run_profile profile = {.setup = setup,
                                      .recorded = &k->recorded,
                                      .what = k->name,
                                      .steps = (uint32_t)k->times_us.count,
                                      .interrupted = stopped};
  TFC_RETURN_IF_ERROR(run_traces_open(setup, 0, stopped ? tfc_program_cut_off() : tfc_program_cancel(), &store));
  tfc_status s = run_profile_store(&profile, q, store, &run);
  tfc_store_close(store);
  return s;
}

tfc_status run_kinds_store(const struct run_kinds *kinds, const struct run_setup *setup, bool stopped) {
  for (size_t i = 0; i < kinds->list.count; i++) {
    const struct kind *k = &kinds->list.data[i];
    const struct tfc_quartiles q = tfc_quartiles_of(k->times_us.data, k->times_us.count);
    if (!k->times_us.count) continue;
    TFC_RETURN_IF_ERROR(setup->cluster ? run_traces_store(&k->traces, setup, k->name, q, stopped)
                                       : store_of_process(k, setup, q, stopped));
  }
  return NULL;
}
