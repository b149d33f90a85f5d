// Sessions: the graph, its variables and node states, and the plans that were made for signatures.
#include "runtime/exec/session.h"
#include "runtime/base/memory_left.h"

#include <stdlib.h>

#include "runtime/exec/dynamic/dynamic.h"
#include "runtime/exec/plan/adapt.h"
#include "runtime/exec/plan/segments.h"
#include "runtime/exec/plan/step.h"
#include "runtime/exec/queue_threads.h"

static bool makes_step_resources(const struct tfc_graph *g);
static tfc_status plan_create(struct tfc_session *session, const struct tfc_graph *graph,
                              const struct tfc_run_spec *spec, struct tfc_plan **out);
static const struct tfc_planner planner = {.create = plan_create, .free = tfc_plan_free, .run = tfc_session_run};

tfc_status tfc_session_create(const struct tfc_graph *graph, const struct tfc_session_options *options,
                              struct tfc_session **out) {
  tfc_status s = NULL;
  if (!options->devices || options->devices->count == 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a session needs at least one device");
  struct tfc_session *session = calloc(1, sizeof *session);
  if (!session) return tfc_status_no_memory("a session");
  tfc_memory_mark();
  tfc_graph_retain(graph);
  session->graph = graph;
  session->makes_step_resources = makes_step_resources(graph);
  session->planner = &planner;
  session->options = *options;
  session->devices = options->devices->devices;
  session->device_count = options->devices->count;
  pthread_mutex_init(&session->run_lock, NULL);
  pthread_mutex_init(&session->lock, NULL);
  atomic_init(&session->next_step, 1);
  tfc_gate_init(&session->gate, options->callers);
  session->arenas = calloc(session->device_count + 1, sizeof *session->arenas);
  session->timelines = calloc(session->device_count, sizeof *session->timelines);
  if (!session->arenas || !session->timelines) TFC_TRY(s, tfc_status_no_memory("a session"));
  TFC_TRY(s, tfc_execution_apply(&options->execution, options->devices));
  for (uint32_t d = 0; d < session->device_count; d++)
    if (session->devices[d]->info.address_space != 0)
      TFC_TRY(s, tfc_semaphore_create(&session->timelines[d].semaphore));
  session->resources = options->resources;
  if (!session->resources) TFC_TRY(s, tfc_resources_create(&session->resources));
  *out = session, session = NULL;
out:
  tfc_session_free(session);
  return s;
}

static void free_cached(struct tfc_cached_plan *c) {
  tfc_plan_free(c->plan);
  free(c->key);
}

void tfc_session_free(struct tfc_session *session) {
  if (!session) return;
  tfc_queue_threads_free(session->queue_threads);
  for (size_t i = 0; i < session->cache.count; i++) free_cached(&session->cache.data[i]);
  for (size_t i = 0; i < session->function_plans.count; i++) tfc_plan_free(session->function_plans.data[i]);
  for (uint32_t d = 0; d < session->device_count; d++)
    tfc_status_free(session->devices[d]->driver->synchronize(session->devices[d]));
  tfc_array_free(&session->cache);
  tfc_array_free(&session->function_plans);
  tfc_groundwork_release(session->ground);
  if (!session->options.resources) tfc_resources_free(session->resources);
  for (size_t i = 0; i < session->variables.count; i++) tfc_object_release(&session->variables.data[i]->object);
  tfc_array_free(&session->variables);
  for (size_t i = 0; i < session->graphs.count; i++) {
    struct tfc_session_graph *g = &session->graphs.data[i];
    for (uint32_t n = 0; n < g->graph->node_count; n++) free(g->node_states[n]);
    free(g->node_states);
    tfc_graph_release(g->graph);
  }
  tfc_array_free(&session->graphs);
  for (uint32_t l = 0; session->arenas && l <= session->device_count; l++)
    tfc_buffer_release(session->arenas[l].buffer);
  free(session->arenas);
  for (uint32_t d = 0; session->timelines && d < session->device_count; d++)
    tfc_semaphore_free(session->timelines[d].semaphore);
  free(session->timelines);
  pthread_mutex_destroy(&session->run_lock);
  pthread_mutex_destroy(&session->lock);
  tfc_gate_deinit(&session->gate);
  tfc_graph_release(session->graph);
  free(session);
}

void tfc_session_set_callers(struct tfc_session *session, uint32_t callers) {
  tfc_gate_set_callers(&session->gate, callers);
}

// --- Plans -------------------------------------------------------------------------------------------------------
static bool makes_step_resources(const struct tfc_graph *g) {
  for (uint32_t i = 0; i < g->function_count; i++)
    if (g->functions[i].body && makes_step_resources(g->functions[i].body)) return true;
  for (uint32_t i = 0; i < g->node_count; i++) {
    tfc_op_role role = tfc_node_role(&g->nodes[i]);
    if (role == TFC_ROLE_TENSOR_ARRAY || role == TFC_ROLE_STACK || role == TFC_ROLE_PUSH || role == TFC_ROLE_POP ||
        role == TFC_ROLE_STACK_CLOSE || role == TFC_ROLE_TEMPORARY)
      return true;
  }
  return false;
}

static tfc_status describe_feeds(struct tfc_plan *plan, const struct tfc_build *b) {
  const struct tfc_run_spec *spec = b->spec;
  struct tfc_output *feeds = TFC_ARENA_ARRAY(&plan->arena, struct tfc_output, spec->feed_count + 1);
  plan->feed_dtypes = TFC_ARENA_ARRAY(&plan->arena, tfc_dtype, spec->feed_count + 1);
  plan->feed_shapes = TFC_ARENA_ARRAY(&plan->arena, struct tfc_shape, spec->feed_count + 1);
  if (!feeds || !plan->feed_dtypes || !plan->feed_shapes) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < spec->feed_count; i++) {
    feeds[i] = spec->feeds[i];
    plan->feed_dtypes[i] = tfc_dtype_base(tfc_output_dtype(b->graph, feeds[i]));
    plan->feed_shapes[i] =
        b->ground->shapes.shapes[b->graph->nodes[feeds[i].node].output_begin + (uint32_t)feeds[i].index];
  }
  plan->feeds = feeds;
  plan->feed_count = spec->feed_count;
  return NULL;
}

// Stores what is needed to make a twin plan (the same step in ready order) later.
static tfc_status keep_spec(struct tfc_plan *plan, const struct tfc_run_spec *spec, uint32_t node_count) {
  struct tfc_output *fetches = TFC_ARENA_ARRAY(&plan->arena, struct tfc_output, spec->fetch_count + 1);
  uint32_t *targets = TFC_ARENA_ARRAY(&plan->arena, uint32_t, spec->target_count + 1);
  uint16_t *placement = TFC_ARENA_ARRAY(&plan->arena, uint16_t, spec->placement ? node_count + 1 : 1);
  if (!fetches || !targets || !placement) return tfc_status_no_memory("planning a step");
  if (spec->fetch_count) memcpy(fetches, spec->fetches, spec->fetch_count * sizeof *fetches);
  if (spec->target_count) memcpy(targets, spec->targets, spec->target_count * sizeof *targets);
  if (spec->placement) memcpy(placement, spec->placement, node_count * sizeof *placement);
  plan->spec = (struct tfc_run_spec){.feeds = plan->feeds,
                                     .feed_count = plan->feed_count,
                                     .fetches = fetches,
                                     .fetch_count = spec->fetch_count,
                                     .targets = targets,
                                     .target_count = spec->target_count,
                                     .placement = spec->placement ? placement : NULL,
                                     .dynamic = true};
  return NULL;
}

// Whether steps of copies of this plan may overlap: no operation must see the effects of another step.
static tfc_status check_side_by_side(const struct tfc_build *b, bool is_static) {
  if (!is_static)
    return tfc_status_make(TFC_FAILED_PRECONDITION,
                           "steps side by side need static shapes: this one runs in ready order");
  for (uint32_t i = 0; i < b->ground->order_count; i++) {
    const struct tfc_node *n = &b->graph->nodes[b->ground->order[i]];
    if (n->def && (n->def->flags & TFC_OP_UPDATE))
      return tfc_status_make(TFC_FAILED_PRECONDITION,
                             "steps that update variables follow one another: node '%.*s' (%.*s)", TFC_STR_ARG(n->name),
                             TFC_STR_ARG(n->op));
  }
  return NULL;
}

static tfc_status own_arenas(struct tfc_plan *plan) {
  pthread_mutex_init(&plan->own_lock, NULL);
  plan->stream = 1 + atomic_fetch_add(&plan->session->next_stream, 1) % (TFC_STREAMS - 1);
  plan->own_arenas = calloc(plan->ir.device_count + 1u, sizeof *plan->own_arenas);
  return plan->own_arenas ? NULL : tfc_status_no_memory("planning a step");
}

tfc_status tfc_plan_create(struct tfc_session *session, const struct tfc_run_spec *spec, struct tfc_plan **out) {
  return plan_create(session, session->graph, spec, out);
}

static tfc_status plan_create(struct tfc_session *session, const struct tfc_graph *graph,
                              const struct tfc_run_spec *spec, struct tfc_plan **out) {
  tfc_status s = NULL;
  struct tfc_build b = {0};
  bool is_static = false, locked = false;
  struct tfc_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return tfc_status_no_memory("planning a step");
  struct tfc_spare *before = tfc_spare_enter(NULL);
  plan->session = session;
  plan->ir.graph = plan->ir.source = graph;
  plan->ir.devices = session->devices;
  plan->ir.device_count = session->device_count;
  TFC_TRY(s, tfc_groundwork_get(session, graph, spec, &plan->ground));
  tfc_spare_enter(&plan->ground->spare);
  TFC_TRY(s, tfc_build_begin(session, graph, spec, plan->ground, &b));
  plan->arena.block_size = tfc_plan_block_size(plan->ground->order_count);
  plan->ir.arena.block_size = plan->arena.block_size / 2;
  is_static = plan->ground->is_static && !spec->dynamic;
  if (spec->side_by_side) {
    TFC_TRY(s, check_side_by_side(&b, is_static));
    TFC_TRY(s, own_arenas(plan));
  }
  TFC_TRY(s, describe_feeds(plan, &b));
  TFC_TRY(s, tfc_resources_create(&plan->step_resources));
  plan->uses_step_resources = session->makes_step_resources;
  if (is_static) {
    TFC_TRY(s, keep_spec(plan, spec, graph->node_count));
    pthread_mutex_lock(&session->run_lock);
    locked = true;
    TFC_TRY(s, tfc_plan_make_static(&b, plan));
  } else {
    TFC_TRY(s, tfc_plan_make_dynamic(&b, plan));
  }
  *out = plan, plan = NULL;
out:
  if (locked) pthread_mutex_unlock(&session->run_lock);
  tfc_spare_enter(before);
  tfc_plan_free(plan);
  return s;
}

static void free_ir(struct tfc_plan *plan) {
  for (size_t i = 0; i < plan->ir.variables.count; i++) {
    struct tfc_tensor *handle = (struct tfc_tensor *)(uintptr_t)plan->ir.variables.data[i].handle;
    if (handle) tfc_tensor_release(handle);
  }
  for (size_t i = 0; i < plan->ir.ops.count; i++)
    if (plan->ir.ops.data[i].release) plan->ir.ops.data[i].release(plan->ir.ops.data[i].state);
  tfc_spare_give_array(&plan->ir.ops);
  tfc_spare_give_array(&plan->ir.values);
  tfc_spare_give_array(&plan->ir.edges);
  tfc_array_free(&plan->ir.variables);
  tfc_array_free(&plan->ir.fused);
  tfc_array_free(&plan->ir.continued);
  tfc_array_free(&plan->ir.shared);
  tfc_arena_deinit(&plan->ir.arena);
}

void tfc_plan_free(struct tfc_plan *plan) {
  if (!plan) return;
  struct tfc_spare *before = tfc_spare_enter(plan->ground ? &plan->ground->spare : NULL);
  tfc_plan_free(plan->twin);
  tfc_plan_adapt_free(plan->adaptation);
  if (plan->dynamic)
    tfc_plan_dynamic_deinit(plan);
  else
    tfc_plan_static_deinit(plan);
  if (!plan->borrows) free_ir(plan);
  tfc_resources_free(plan->step_resources);
  for (uint32_t l = 0; plan->own_arenas && l <= plan->ir.device_count; l++)
    tfc_buffer_release(plan->own_arenas[l].buffer);
  if (plan->own_arenas) pthread_mutex_destroy(&plan->own_lock);
  free(plan->own_arenas);
  tfc_arena_deinit(&plan->arena);
  tfc_spare_enter(before);
  if (!plan->borrows) tfc_groundwork_release(plan->ground); // last, because it keeps the memory of the arenas
  free(plan);
}

static tfc_status twin_of(struct tfc_plan *plan, struct tfc_plan **out) {
  struct tfc_session *session = plan->session;
  struct tfc_plan *made = NULL;
  pthread_mutex_lock(&session->lock);
  *out = plan->twin;
  pthread_mutex_unlock(&session->lock);
  if (*out) return NULL;
  struct tfc_run_spec spec = plan->spec;
  spec.feed_shapes = plan->feed_shapes;
  TFC_RETURN_IF_ERROR(plan_create(session, plan->ir.source, &spec, &made));
  pthread_mutex_lock(&session->lock);
  if (!plan->twin) plan->twin = made, made = NULL;
  *out = plan->twin;
  pthread_mutex_unlock(&session->lock);
  tfc_plan_free(made);
  return NULL;
}

tfc_status tfc_plan_run(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                        const struct tfc_run_options *options) {
  struct tfc_gate *gate = &plan->session->gate;
  if (plan->own_arenas) {
    tfc_gate_enter_dynamic(gate);
    tfc_status s = tfc_plan_run_static(plan, feeds, fetches, options);
    tfc_gate_leave(gate, false);
    return s;
  }
  bool is_static = !plan->dynamic && tfc_gate_enter_static(gate);
  struct tfc_plan *used = plan;
  if (!is_static) {
    if (!plan->dynamic) TFC_RETURN_IF_ERROR(twin_of(plan, &used));
    tfc_gate_enter_dynamic(gate);
  }
  if (options && options->in_fixed_order) *options->in_fixed_order = is_static;
  tfc_status s = is_static ? tfc_plan_run_static(plan, feeds, fetches, options)
                           : tfc_plan_run_dynamic(used, feeds, fetches, options);
  tfc_gate_leave(gate, is_static);
  return tfc_queue_threads_explain(plan->session->queue_threads, s);
}

const struct tfc_plan_info *tfc_plan_info(const struct tfc_plan *plan) {
  return &plan->info;
}

uint32_t tfc_plan_done_by(const struct tfc_plan_info *info, uint32_t node) {
  if (!info->runs_in || info->runs_in[node] == node) return TFC_NONE;
  for (int hops = 0; hops < 64 && info->runs_in[node] != node && info->runs_in[node] != TFC_NONE; hops++)
    node = info->runs_in[node];
  return node;
}

double tfc_plan_last_step_us(const struct tfc_plan *plan) {
  return plan->last_step_us;
}

// --- Plans by signature ------------------------------------------------------------------------------------------
static bool add_bytes(struct tfc_text *key, const void *data, size_t size) {
  uint64_t n = data ? size : UINT64_MAX;
  tfc_text_add(key, (tfc_str){(const char *)&n, sizeof n});
  if (data) tfc_text_add(key, (tfc_str){data, size});
  return !key->failed;
}

static bool make_key(const struct tfc_session *session, const struct tfc_run_spec *spec, struct tfc_text *key) {
  size_t nodes = session->graph->node_count;
  add_bytes(key, spec->feeds, spec->feed_count * sizeof *spec->feeds);
  add_bytes(key, spec->fetches, spec->fetch_count * sizeof *spec->fetches);
  add_bytes(key, spec->targets, spec->target_count * sizeof *spec->targets);
  for (uint32_t i = 0; i < spec->feed_count && spec->feed_shapes; i++) {
    int rank = spec->feed_shapes[i].rank;
    add_bytes(key, &rank, sizeof rank);
    add_bytes(key, spec->feed_shapes[i].dims, (size_t)(rank > 0 ? rank : 0) * sizeof *spec->feed_shapes[i].dims);
  }
  for (uint32_t i = 0; i < spec->crossing_count; i++) {
    const struct tfc_crossing *c = &spec->crossings[i];
    add_bytes(key, &c->node, sizeof c->node);
    add_bytes(key, c->shape.dims, (size_t)(c->shape.rank > 0 ? c->shape.rank : 0) * sizeof *c->shape.dims);
  }
  add_bytes(key, spec->placement, nodes * sizeof *spec->placement);
  add_bytes(key, spec->order, nodes * sizeof *spec->order);
  add_bytes(key, spec->sequence, spec->sequence_count * sizeof *spec->sequence);
  add_bytes(key, &spec->in_parts, sizeof spec->in_parts);
  add_bytes(key, &spec->adapt, sizeof spec->adapt);
  add_bytes(key, &spec->side_by_side, sizeof spec->side_by_side);
  add_bytes(key, spec->most_bytes, session->device_count * sizeof *spec->most_bytes);
  return add_bytes(key, &spec->dynamic, sizeof spec->dynamic);
}

enum { MOST_CACHED = 32 };

tfc_status tfc_session_run(struct tfc_session *session, const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                           struct tfc_tensor *fetches, const struct tfc_run_options *options) {
  tfc_status s = NULL;
  struct tfc_run_spec with_shapes = *spec;
  struct tfc_shape *shapes = NULL;
  struct tfc_text key = {0};
  struct tfc_plan *plan = NULL;
  if (!spec->feed_shapes && spec->feed_count) {
    shapes = malloc(spec->feed_count * sizeof *shapes);
    if (!shapes) TFC_TRY(s, tfc_status_no_memory("running a step"));
    for (uint32_t i = 0; i < spec->feed_count; i++) shapes[i] = feeds[i].shape;
    with_shapes.feed_shapes = shapes;
  }
  if (!make_key(session, &with_shapes, &key)) TFC_TRY(s, tfc_status_no_memory("running a step"));
  uint64_t hash = tfc_hash_bytes(key.data, key.size);
  pthread_mutex_lock(&session->lock);
  for (size_t i = 0; i < session->cache.count && !plan; i++) {
    const struct tfc_cached_plan *c = &session->cache.data[i];
    if (c->hash == hash && c->key_size == key.size && !memcmp(c->key, key.data, key.size)) plan = c->plan;
  }
  if (plan) plan->users++;
  pthread_mutex_unlock(&session->lock);
  if (!plan) {
    TFC_TRY(s, tfc_plan_create(session, &with_shapes, &plan));
    struct tfc_cached_plan made = {hash, key.data, key.size, plan};
    pthread_mutex_lock(&session->lock);
    plan->users = 1;
    struct tfc_cached_plan dropped = {0};
    for (size_t i = 0; session->cache.count >= MOST_CACHED && i < session->cache.count; i++)
      if (session->cache.data[i].plan->users == 0) { // frees the oldest plan that is not running
        dropped = session->cache.data[i];
        memmove(&session->cache.data[i], &session->cache.data[i + 1], (session->cache.count - 1 - i) * sizeof dropped);
        session->cache.count--;
        break;
      }
    bool kept = tfc_array_push(&session->cache, made);
    pthread_mutex_unlock(&session->lock);
    if (dropped.plan) free_cached(&dropped);
    if (!kept) {
      tfc_plan_free(plan);
      TFC_TRY(s, tfc_status_no_memory("running a step"));
    }
    key = (struct tfc_text){0};
  }
  s = tfc_plan_run(plan, feeds, fetches, options);
  pthread_mutex_lock(&session->lock);
  plan->users--;
  pthread_mutex_unlock(&session->lock);
out:
  tfc_text_deinit(&key);
  free(shapes);
  return s;
}
