// Finds the canonical order: a topological order of the needed nodes, by data and control edges, in which updates of
// variables come as late as possible; of equal nodes the one with the smaller id comes first. It does not depend on the
// placement.
#include "runtime/exec/groundwork.h"

#include <stdlib.h>

#include "runtime/exec/order_heap.h"
#include "runtime/exec/session_internal.h"
#include "runtime/ops/effect.h"

enum {
  DYNAMIC_FLAGS = TFC_OP_SWITCH | TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION | TFC_OP_LOOP_COND |
                  TFC_OP_ASYNC | TFC_OP_FUNCTIONAL
};

static bool crosses_tasks(const struct tfc_node *n) {
  return tfc_node_role(n) == TFC_ROLE_SEND || tfc_node_role(n) == TFC_ROLE_RECEIVE;
}

bool tfc_needs_ready_order(const struct tfc_node *n) {
  if (n->function != TFC_NONE || !n->def) return true;
  return (n->def->flags & DYNAMIC_FLAGS && !crosses_tasks(n)) || n->def->role == TFC_ROLE_TEMPORARY;
}

// --- Order ---------------------------------------------------------------------------------------------------------
// Compares ready nodes: updates of variables last, then by id.
static bool push(struct tfc_order_heap *ready, const struct tfc_graph *g, uint32_t node) {
  const struct tfc_op_def *def = g->nodes[node].def;
  return tfc_order_heap_push(ready, (struct tfc_order_entry){def && def->flags & TFC_OP_UPDATE, 0, node});
}

// Makes the nodes that send or receive come one after another, in the common order of all tasks: `after` [node] gets
// the one that comes right after a node, and that one waits for the node. (The parts of all tasks are linked by one
// order in this way, so no two tasks can wait for each other: plan/build.c.)
static tfc_status link_crossings(const struct tfc_groundwork *ground, uint32_t *waiting, uint32_t *after) {
  const struct tfc_graph *g = ground->graph;
  struct tfc_order_heap crossings = {0};
  tfc_status s = NULL;
  for (uint32_t i = 0; i < g->node_count; i++) {
    after[i] = TFC_NONE;
    const double at =
        ground->needed[i] && crosses_tasks(&g->nodes[i]) ? (double)tfc_node_attr_int(g, &g->nodes[i], "_order", 0) : -1;
    if (at >= 0 && !tfc_order_heap_push(&crossings, (struct tfc_order_entry){at, 0, i}))
      TFC_TRY(s, tfc_status_no_memory("planning a step"));
  }
  for (uint32_t last = TFC_NONE; crossings.count;) {
    const uint32_t i = tfc_order_heap_pop(&crossings).id;
    if (last != TFC_NONE) after[last] = i, waiting[i]++;
    last = i;
  }
out:
  tfc_order_heap_deinit(&crossings);
  return s;
}

static tfc_status make_order(struct tfc_groundwork *ground) {
  const struct tfc_graph *g = ground->graph;
  tfc_status s = NULL;
  struct tfc_order_heap ready = {0};
  uint32_t *waiting = calloc(g->node_count + 1u, sizeof *waiting);
  uint32_t *after = malloc((g->node_count + 1u) * sizeof *after);
  ground->order = tfc_arena_alloc(&ground->arena, (g->node_count + 1u) * sizeof *ground->order);
  ground->position = tfc_arena_alloc(&ground->arena, (g->node_count + 1u) * sizeof *ground->position);
  if (!waiting || !after || !ground->order || !ground->position) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, link_crossings(ground, waiting, after));
  uint32_t needed = 0;
  for (uint32_t i = 0; i < g->node_count; i++) {
    if (!ground->needed[i]) continue;
    needed++;
    const struct tfc_node *n = &g->nodes[i];
    const struct tfc_output *in = tfc_node_inputs(g, n);
    bool cut = tfc_all_fed(ground, n);
    for (uint32_t k = 0; !cut && k < n->input_count + n->control_count; k++)
      if (ground->needed[in[k].node] && !tfc_is_fed(ground, in[k])) waiting[i]++;
    if (!waiting[i] && !push(&ready, g, i)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  while (ready.count) {
    uint32_t i = tfc_order_heap_pop(&ready).id;
    ground->position[i] = ground->order_count;
    ground->order[ground->order_count++] = i;
    if (after[i] != TFC_NONE && --waiting[after[i]] == 0 && !push(&ready, g, after[i]))
      TFC_TRY(s, tfc_status_no_memory(NULL));
    for (uint32_t c = g->consumer_begin[i]; c < g->consumer_begin[i + 1]; c++) {
      const struct tfc_consumer *k = &g->consumers[c];
      if (!ground->needed[k->node] || tfc_all_fed(ground, &g->nodes[k->node])) continue;
      if (k->output >= 0 && ground->fed[g->nodes[i].output_begin + (uint32_t)k->output]) continue;
      if (--waiting[k->node] == 0 && !push(&ready, g, k->node)) TFC_TRY(s, tfc_status_no_memory(NULL));
    }
  }
  if (ground->order_count != needed)
    for (uint32_t i = 0; i < g->node_count; i++)
      if (ground->needed[i] && waiting[i])
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s' (%.*s) is on a cycle", TFC_STR_ARG(g->nodes[i].name),
                 TFC_STR_ARG(g->nodes[i].op));
out:
  free(waiting);
  free(after);
  tfc_order_heap_deinit(&ready);
  return s;
}

static double estimate_us(const struct tfc_groundwork *ground, const struct tfc_node *n) {
  const struct tfc_graph *g = ground->graph;
  struct tfc_shape few_in[16], *in = few_in;
  struct tfc_op_cost cost = {0};
  double bytes = 0;
  bool known = n->input_count <= 16;
  for (uint32_t i = 0; i < n->input_count && known; i++) {
    struct tfc_output from = tfc_node_inputs(g, n)[i];
    uint32_t o = g->nodes[from.node].output_begin + (uint32_t)from.index;
    in[i] = ground->shapes.shapes[o];
    int64_t count = tfc_shape_elements(&in[i]);
    known = tfc_shape_is_static(&in[i]);
    bytes += (double)(count > 0 ? count : 0) * (double)tfc_dtype_size(g->output_dtypes[o]);
  }
  for (uint32_t i = 0; i < n->output_count && known; i++) {
    const struct tfc_shape *s = &ground->shapes.shapes[n->output_begin + i];
    int64_t count = tfc_shape_elements(s);
    known = tfc_shape_is_static(s);
    bytes += (double)(count > 0 ? count : 0) * (double)tfc_dtype_size(g->output_dtypes[n->output_begin + i]);
  }
  if (!known) return 1;
  cost.bytes = bytes;
  if (n->def->cost) n->def->cost(g, n, in, &ground->shapes.shapes[n->output_begin], &cost);
  double compute = cost.flops / 50e3, memory = cost.bytes / 10e3; // 50 GFLOP/s, 10 GB/s
  return 0.2 + (compute > memory ? compute : memory);
}

// --- Which nodes run -----------------------------------------------------------------------------------------------
static tfc_status copy_signature(struct tfc_groundwork *ground, const struct tfc_run_spec *spec) {
  struct tfc_output *feeds = TFC_ARENA_ARRAY(&ground->arena, struct tfc_output, spec->feed_count + 1);
  struct tfc_output *fetches = TFC_ARENA_ARRAY(&ground->arena, struct tfc_output, spec->fetch_count + 1);
  uint32_t *targets = TFC_ARENA_ARRAY(&ground->arena, uint32_t, spec->target_count + 1);
  struct tfc_shape *shapes = TFC_ARENA_ARRAY(&ground->arena, struct tfc_shape, spec->feed_count + 1);
  struct tfc_crossing *crossings = TFC_ARENA_ARRAY(&ground->arena, struct tfc_crossing, spec->crossing_count + 1);
  if (!feeds || !fetches || !targets || !shapes || !crossings) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < spec->crossing_count; i++) crossings[i] = spec->crossings[i];
  for (uint32_t i = 0; i < spec->feed_count; i++) feeds[i] = spec->feeds[i];
  for (uint32_t i = 0; i < spec->fetch_count; i++) fetches[i] = spec->fetches[i];
  for (uint32_t i = 0; i < spec->target_count; i++) targets[i] = spec->targets[i];
  for (uint32_t i = 0; i < spec->feed_count && spec->feed_shapes; i++) shapes[i] = spec->feed_shapes[i];
  ground->spec = (struct tfc_run_spec){.feeds = feeds,
                                       .feed_count = spec->feed_count,
                                       .fetches = fetches,
                                       .fetch_count = spec->fetch_count,
                                       .targets = targets,
                                       .target_count = spec->target_count,
                                       .crossings = crossings,
                                       .crossing_count = spec->crossing_count,
                                       .feed_shapes = spec->feed_shapes ? shapes : NULL};
  return NULL;
}

static bool same_outputs(const struct tfc_output *a, const struct tfc_output *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (a[i].node != b[i].node || a[i].index != b[i].index) return false;
  return true;
}

static bool is_of(const struct tfc_groundwork *ground, const struct tfc_graph *graph, const struct tfc_run_spec *spec) {
  const struct tfc_run_spec *own = &ground->spec;
  if (ground->graph != graph || own->feed_count != spec->feed_count || own->fetch_count != spec->fetch_count ||
      own->target_count != spec->target_count || own->crossing_count != spec->crossing_count ||
      !own->feed_shapes != !spec->feed_shapes)
    return false;
  for (uint32_t i = 0; i < own->feed_count && own->feed_shapes; i++)
    if (!tfc_shape_equal(&own->feed_shapes[i], &spec->feed_shapes[i])) return false;
  for (uint32_t i = 0; i < own->target_count; i++)
    if (own->targets[i] != spec->targets[i]) return false;
  for (uint32_t i = 0; i < own->crossing_count; i++)
    if (own->crossings[i].node != spec->crossings[i].node ||
        !tfc_shape_equal(&own->crossings[i].shape, &spec->crossings[i].shape))
      return false;
  return same_outputs(own->feeds, spec->feeds, own->feed_count) &&
         same_outputs(own->fetches, spec->fetches, own->fetch_count);
}

static tfc_status describe_nodes(struct tfc_groundwork *ground) {
  const struct tfc_graph *g = ground->graph;
  ground->cost_us = TFC_ARENA_ARRAY(&ground->arena, double, g->node_count + 1u);
  ground->host = TFC_ARENA_ARRAY(&ground->arena, struct tfc_host_memory, g->node_count + 1u);
  if (!ground->cost_us || !ground->host) return tfc_status_no_memory("planning a step");
  for (uint32_t i = 0; i < ground->order_count; i++) {
    const uint32_t id = ground->order[i];
    const struct tfc_node *n = &g->nodes[id];
    if (tfc_all_fed(ground, n)) continue;
    ground->cost_us[id] = estimate_us(ground, n);
    ground->host[id] = tfc_host_memory(g, n, n->def);
  }
  return NULL;
}

static tfc_status make(struct tfc_session *session, const struct tfc_graph *graph, const struct tfc_run_spec *spec,
                       struct tfc_groundwork **out) {
  tfc_status s = NULL;
  struct tfc_shape_override *overrides = calloc(2 * spec->feed_count + spec->crossing_count + 1u, sizeof *overrides);
  // A feed of a loop's result is two outputs: the result, and what its readers read (tfc_lowered_result).
  struct tfc_output *feeds = calloc(2 * spec->feed_count + 1u, sizeof *feeds);
  uint32_t feed_count = 0;
  struct tfc_groundwork *ground = calloc(1, sizeof *ground);
  if (!overrides || !feeds || !ground) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  ground->references = 1;
  tfc_spare_init(&ground->spare);
  ground->graph = graph;
  tfc_graph_retain(graph);
  ground->needed = TFC_ARENA_ARRAY(&ground->arena, bool, graph->node_count + 1u);
  ground->fed = TFC_ARENA_ARRAY(&ground->arena, uint32_t, graph->output_total + 1u);
  if (!ground->needed || !ground->fed) TFC_TRY(s, tfc_status_no_memory("planning a step"));
  TFC_TRY(s, copy_signature(ground, spec));
  for (uint32_t i = 0; i < spec->feed_count; i++) {
    struct tfc_output o = spec->feeds[i];
    if (o.node >= graph->node_count || o.index < 0 || (uint32_t)o.index >= graph->nodes[o.node].output_count)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "feed %u is not an output of the graph", i);
    if (tfc_is_fed(ground, o))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s:%d' is fed twice", TFC_STR_ARG(graph->nodes[o.node].name), o.index);
    struct tfc_output fed[2] = {o};
    const uint32_t fed_count = tfc_lowered_result(graph, o, &fed[1]) && !tfc_is_fed(ground, fed[1]) ? 2 : 1;
    for (uint32_t k = 0; k < fed_count; k++) {
      ground->fed[graph->nodes[fed[k].node].output_begin + (uint32_t)fed[k].index] = i + 1;
      overrides[feed_count] = (struct tfc_shape_override){.output = fed[k], .shape = TFC_SHAPE_UNKNOWN};
      if (spec->feed_shapes) overrides[feed_count].shape = spec->feed_shapes[i];
      overrides[feed_count].keep_shape = !spec->feed_shapes;
      feeds[feed_count++] = fed[k];
    }
  }
  for (uint32_t i = 0; i < spec->fetch_count; i++) {
    struct tfc_output o = spec->fetches[i];
    if (o.node >= graph->node_count || o.index < 0 || (uint32_t)o.index >= graph->nodes[o.node].output_count)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "fetch %u is not an output of the graph", i);
  }
  for (uint32_t i = 0; i < spec->target_count; i++)
    if (spec->targets[i] >= graph->node_count) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "target %u is not a node", i);
  TFC_TRY(s, tfc_prune(graph, feeds, feed_count, spec->fetches, spec->fetch_count, spec->targets, spec->target_count,
                       ground->needed));
  bool is_static = true, foreign = false;
  for (uint32_t d = 0; d < session->device_count; d++) foreign |= session->devices[d]->info.address_space != 0;
  // this error is reported first, because the caller cannot correct it
  for (uint32_t i = 0; i < graph->node_count; i++) {
    const struct tfc_node *n = &graph->nodes[i];
    if (ground->needed[i] && !n->def && n->function == TFC_NONE && !tfc_all_fed(ground, n))
      TFC_FAIL(s, TFC_UNIMPLEMENTED, "node '%.*s': op %.*s is not known", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
  }
  for (uint32_t i = 0; i < graph->node_count; i++) {
    const struct tfc_node *n = &graph->nodes[i];
    if (!ground->needed[i] || tfc_all_fed(ground, n)) continue;
    if (n->function != TFC_NONE) {
      is_static = false;
      continue;
    }
    TFC_TRY(s, tfc_node_may_run(graph, n));
    if (n->def->flags & TFC_OP_PLACEHOLDER)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s' (%.*s) must be fed", TFC_STR_ARG(n->name), TFC_STR_ARG(n->op));
    if (foreign && (tfc_touches_variant(graph, n) || crosses_tasks(n))) is_static = false;
    if (tfc_needs_ready_order(n)) is_static = false;
  }
  uint32_t override_count = feed_count;
  for (uint32_t i = 0; i < spec->crossing_count; i++) {
    const struct tfc_crossing *c = &spec->crossings[i];
    if (tfc_node_role(&graph->nodes[c->node]) == TFC_ROLE_RECEIVE)
      overrides[override_count++] = (struct tfc_shape_override){.output = {c->node, 0}, .shape = c->shape};
  }
  TFC_TRY(s, tfc_infer_fed_shapes(graph, overrides, override_count, &ground->shapes));
  if (is_static) {
    TFC_TRY(s, make_order(ground));
    TFC_TRY(s, describe_nodes(ground));
  }
  ground->is_static = is_static;
  *out = ground, ground = NULL;
out:
  free(overrides);
  free(feeds);
  tfc_groundwork_release(ground);
  return s;
}

tfc_status tfc_groundwork_get(struct tfc_session *session, const struct tfc_graph *graph,
                              const struct tfc_run_spec *spec, struct tfc_groundwork **out) {
  struct tfc_groundwork *ground = NULL;
  pthread_mutex_lock(&session->lock);
  if (session->ground && is_of(session->ground, graph, spec)) ground = session->ground, ground->references++;
  pthread_mutex_unlock(&session->lock);
  if (ground) {
    atomic_store_explicit(&ground->spare.keeps, true, memory_order_relaxed);
  } else {
    TFC_RETURN_IF_ERROR(make(session, graph, spec, &ground));
    pthread_mutex_lock(&session->lock);
    struct tfc_groundwork *last = session->ground;
    session->ground = ground, ground->references++;
    pthread_mutex_unlock(&session->lock);
    tfc_groundwork_release(last);
  }
  *out = ground;
  return NULL;
}

void tfc_groundwork_release(struct tfc_groundwork *ground) {
  if (!ground || atomic_fetch_sub(&ground->references, 1) > 1) return;
  tfc_shapes_deinit(&ground->shapes);
  tfc_graph_release(ground->graph);
  tfc_arena_deinit(&ground->arena);
  tfc_spare_deinit(&ground->spare);
  free(ground);
}
