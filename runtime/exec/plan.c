// Plans: making one for a signature, keeping those of session_run, running.
#include <stdlib.h>

#include "runtime/exec/plan_internal.h"

tfc_status tfc_plan_create(struct tfc_session *session, const struct tfc_run_spec *spec, struct tfc_plan **out) {
  tfc_status s = NULL;
  struct tfc_build build = {0};
  bool is_static = false;
  struct tfc_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return TFC_PLAN_NO_MEMORY();
  plan->session = session;
  TFC_TRY(s, tfc_resources_create(&plan->step_resources));
  TFC_TRY(s, tfc_build_begin(session, session->graph, spec, &build, &is_static));
  TFC_TRY(s, is_static ? tfc_plan_make_static(&build, plan) : tfc_plan_make_dynamic(&build, plan));
  *out = plan, plan = NULL;
out:
  tfc_build_deinit(&build);
  tfc_plan_free(plan);
  return s;
}

void tfc_plan_free(struct tfc_plan *plan) {
  if (!plan) return;
  if (plan->dynamic) tfc_plan_dynamic_deinit(plan);
  tfc_plan_static_deinit(plan);
  tfc_shapes_deinit(&plan->shapes);
  tfc_resources_free(plan->step_resources);
  tfc_arena_deinit(&plan->arena);
  free(plan);
}

tfc_status tfc_plan_run(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                        const struct tfc_run_options *options) {
  return plan->dynamic ? tfc_plan_run_dynamic(plan, feeds, fetches, options)
                       : tfc_plan_run_static(plan, feeds, fetches, options);
}

const struct tfc_plan_info *tfc_plan_info(const struct tfc_plan *plan) {
  return &plan->info;
}
double tfc_plan_last_step_us(const struct tfc_plan *plan) {
  return plan->last_step_us;
}

// --- Plans of tfc_session_run --------------------------------------------------------------------------------------
static bool add(struct tfc_text *key, const void *data, size_t size) {
  if (size) tfc_text_add(key, (tfc_str){data, size});
  return !key->failed;
}

// Everything that a plan depends on, as bytes. Shapes of feeds are part of it: another batch size is another plan.
static bool signature(const struct tfc_session *session, const struct tfc_run_spec *spec, struct tfc_text *key) {
  size_t nodes = session->graph->node_count;
  uint32_t counts[] = {spec->feed_count,     spec->fetch_count, spec->target_count,   spec->dynamic,
                       spec->placement != 0, spec->order != 0,  spec->sequence_count, spec->feed_shapes != 0};
  return add(key, counts, sizeof counts) && add(key, spec->feeds, spec->feed_count * sizeof *spec->feeds) &&
         add(key, spec->fetches, spec->fetch_count * sizeof *spec->fetches) &&
         add(key, spec->targets, spec->target_count * sizeof *spec->targets) &&
         (!spec->feed_shapes || add(key, spec->feed_shapes, spec->feed_count * sizeof *spec->feed_shapes)) &&
         (!spec->placement || add(key, spec->placement, nodes * sizeof *spec->placement)) &&
         (!spec->order || add(key, spec->order, nodes * sizeof *spec->order)) &&
         (!spec->sequence || add(key, spec->sequence, spec->sequence_count * sizeof *spec->sequence));
}

tfc_status tfc_session_run(struct tfc_session *session, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                           struct tfc_tensor *fetches, const struct tfc_run_options *options) {
  tfc_status s = NULL;
  struct tfc_text key = {0};
  struct tfc_shape *shapes = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_run_spec shaped = *spec;
  if (!spec->feed_shapes && spec->feed_count) {
    shapes = calloc(spec->feed_count, sizeof *shapes);
    if (!shapes) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    for (uint32_t i = 0; i < spec->feed_count; i++) shapes[i] = feeds[i].shape;
    shaped.feed_shapes = shapes;
  }
  if (!signature(session, &shaped, &key)) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  uint64_t hash = tfc_hash_bytes(key.data, key.size);
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->cache.count && !plan; i++) {
    const struct tfc_cached_plan *c = &session->cache.data[i];
    if (c->hash == hash && c->key_size == key.size && memcmp(c->key, key.data, key.size) == 0) plan = c->plan;
  }
  pthread_mutex_unlock(&session->lock);
  if (!plan) {
    TFC_TRY(s, tfc_plan_create(session, &shaped, &plan));
    pthread_mutex_lock(&session->lock);
    bool kept = tfc_array_push(&session->cache, (struct tfc_cached_plan){hash, key.data, key.size, plan});
    pthread_mutex_unlock(&session->lock);
    if (!kept) {
      tfc_plan_free(plan);
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
    }
    key = (struct tfc_text){0}; // the cache has it
  }
  TFC_TRY(s, tfc_plan_run(plan, feeds, fetches, options));
out:
  tfc_text_deinit(&key);
  free(shapes);
  return s;
}
