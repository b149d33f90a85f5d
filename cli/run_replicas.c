#include "cli/run_replicas.h"

#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "runtime/pass/replicas.h"

struct tasks { // the device strings of the towers' tasks and of the stores' tasks
  char **towers, **stores;
  uint32_t tower_count, store_count, own;
};

static bool is_store(const struct tfc_cluster_spec *spec, uint32_t rank) {
  return strcmp(spec->tasks.data[rank].job, "ps") == 0;
}
static bool has_stores(const struct run_options *o, const struct tfc_cluster_spec *spec) {
  bool any = false;
  for (uint32_t r = 0; r < spec->tasks.count; r++) any |= is_store(spec, r);
  return any && o->reduce != RUN_REDUCE_ALL;
}

tfc_status run_replicas_check(const struct run_options *o, const struct tfc_cluster_spec *spec) {
  uint32_t towers = 0;
  if (!o->replicas) return NULL;
  for (uint32_t r = 0; r < spec->tasks.count; r++) towers += !is_store(spec, r);
  if (towers != (uint64_t)o->replicas)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "--replicas %lld needs as many tasks whose job is not ps; --cluster %s has %u",
                           (long long)o->replicas, o->cluster, towers);
  if ((o->async || o->backup || o->reduce == RUN_REDUCE_PS) && !has_stores(o, spec))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%s needs tasks of a job ps; --cluster %s has none",
                           o->async    ? "--async"
                           : o->backup ? "--backup"
                                       : "--reduce ps",
                           o->cluster);
  if (strstr(o->graph, "{job}") || strstr(o->graph, "{task}"))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "--replicas makes the replicas of one graph; --graph %s names several",
                           o->graph);
  return NULL;
}

static void tasks_deinit(struct tasks *t) {
  for (uint32_t i = 0; t->towers && i < t->tower_count; i++) free(t->towers[i]);
  for (uint32_t i = 0; t->stores && i < t->store_count; i++) free(t->stores[i]);
  free(t->towers), free(t->stores);
}

static tfc_status find_tasks(const struct run_setup *setup, struct tasks *out) {
  const struct tfc_cluster_spec *spec = setup->tasks;
  const bool stores = has_stores(setup->options, spec);
  struct tasks t = {.towers = calloc(spec->tasks.count, sizeof(char *)),
                    .stores = calloc(spec->tasks.count, sizeof(char *))};
  bool failed = !t.towers || !t.stores;
  for (uint32_t r = 0; !failed && r < spec->tasks.count; r++) {
    char name[TFC_TASK_TEXT];
    char *device = tfc_format("%s", tfc_cluster_task_name(spec, r, name));
    failed = !device;
    if (r == tfc_member_rank(setup->member)) t.own = t.tower_count;
    if (is_store(spec, r) && stores)
      t.stores[t.store_count++] = device;
    else if (is_store(spec, r)) // with --reduce all there are no stores, so this task serves nothing
      free(device);
    else
      t.towers[t.tower_count++] = device;
  }
  *out = t;
  return failed ? tfc_status_no_memory("replicas") : NULL;
}

tfc_status run_replicas_part(const struct run_setup *setup, struct tfc_output feed, struct tfc_shape *shape) {
  const int64_t n = setup->options->replicas;
  const struct tfc_node *node = &setup->file->nodes[feed.node];
  const struct tfc_shape declared = tfc_step_placeholder_shape(setup->file, node);
  if (n < 2 || shape->rank < 1 || tfc_shape_equal(&declared, shape)) return NULL;
  if (shape->dims[0] % n)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "the first dimension of the feed '%.*s' is %lld, which %lld replicas cannot share",
                           TFC_STR_ARG(node->name), (long long)shape->dims[0], (long long)n);
  shape->dims[0] /= n;
  return NULL;
}

tfc_str run_replicas_original(tfc_str name) {
  size_t at = strlen("replica_");
  if (!tfc_str_starts(name, "replica_")) return name;
  while (at < name.size && name.data[at] >= '0' && name.data[at] <= '9') at++;
  return at < name.size && name.data[at] == '/' ? tfc_str_sub(name, at + 1, name.size) : name;
}

// --- Feeds -----------------------------------------------------------------------------------------------------------
static tfc_status part_of(const struct tfc_tensor *whole, uint32_t part, uint32_t count, struct tfc_tensor *out) {
  struct tfc_shape shape = whole->shape;
  if (!tfc_dtype_is_plain(whole->dtype))
    return tfc_status_make(TFC_UNIMPLEMENTED, "--replicas: a feed of type %s cannot be split",
                           tfc_dtype_name(whole->dtype));
  shape.dims[0] /= count;
  TFC_RETURN_IF_ERROR(tfc_tensor_create(whole->dtype, &shape, out));
  if (out->size) memcpy(out->data, (const char *)whole->data + part * out->size, out->size);
  return NULL;
}

// Returns the node of `tower`, in the graph of all replicas, that corresponds to node NAME of the given graph.
// TFC_NONE: the tower does not have it.
static uint32_t node_of(const struct tfc_graph *all, tfc_str name, uint32_t tower) {
  char *own = tower ? tfc_format("replica_%u/%.*s", tower, TFC_STR_ARG(name)) : tfc_format("%.*s", TFC_STR_ARG(name));
  const uint32_t node = own ? tfc_graph_find(all, tfc_str_from(own)) : TFC_NONE;
  free(own);
  return node;
}

// Fills in the feeds: with --async (`all` NULL) this replica's part of each feed, otherwise the parts of all replicas.
static tfc_status spread_feeds(const struct tfc_graph *g, const struct tfc_graph *all, const struct tasks *t,
                               const bool *split, struct run_replicas_feeds *feeds) {
  tfc_status s = NULL;
  struct run_replicas_feeds made = {0};
  made.outputs = calloc((size_t)feeds->count * t->tower_count + 1, sizeof *made.outputs);
  made.values = calloc((size_t)feeds->count * t->tower_count + 1, sizeof *made.values);
  if (!made.outputs || !made.values) {
    s = tfc_status_no_memory("replicas");
    goto out;
  }
  for (uint32_t i = 0; i < feeds->count; i++)
    for (uint32_t k = 0; k < (split[i] && all ? t->tower_count : 1); k++) {
      struct tfc_output o = feeds->outputs[i];
      if (all) o.node = node_of(all, g->nodes[o.node].name, k);
      if (o.node == TFC_NONE) TFC_FAIL(s, TFC_INTERNAL, "a feed has no copy");
      if (split[i])
        TFC_TRY(s, part_of(&feeds->values[i], all ? k : t->own, t->tower_count, &made.values[made.count]));
      else
        tfc_tensor_share(&feeds->values[i], &made.values[made.count]);
      made.outputs[made.count++] = o;
    }
  const struct run_replicas_feeds before = *feeds;
  *feeds = made, made = before;
out:
  for (uint32_t i = 0; made.values && i < made.count; i++) tfc_tensor_release(&made.values[i]);
  free(made.outputs), free(made.values);
  return s;
}

// --- The graph of all replicas -------------------------------------------------------------------------------------
// Replaces each of these nodes by the nodes of all towers that correspond to it.
static tfc_status spread_nodes(const struct tfc_graph *g, const struct tfc_graph *all, uint32_t towers,
                               struct tfc_arena *arena, uint32_t **nodes, uint32_t *count) {
  uint32_t made = 0, *out = tfc_arena_alloc(arena, ((size_t)*count * towers + 1) * sizeof *out);
  if (!out) return tfc_status_no_memory("replicas");
  for (uint32_t i = 0; i < *count; i++)
    for (uint32_t k = 0; k < towers; k++) {
      const uint32_t node = node_of(all, g->nodes[(*nodes)[i]].name, k);
      if (node != TFC_NONE) out[made++] = node;
    }
  *nodes = out, *count = made;
  return NULL;
}

static tfc_status spread_step(const struct tfc_graph *g, const struct tfc_graph *all, uint32_t towers,
                              struct tfc_step_spec *step, struct tfc_output *init_feeds) {
  TFC_RETURN_IF_ERROR(spread_nodes(g, all, towers, &step->arena, &step->targets, &step->target_count));
  TFC_RETURN_IF_ERROR(spread_nodes(g, all, towers, &step->arena, &step->inits, &step->init_count));
  for (uint32_t i = 0; i < step->fetch_count; i++) {
    struct tfc_output *o = &step->fetches[i];
    char *name = tfc_format("replicas/fetch_%u", i);
    const uint32_t joined = name ? tfc_graph_find(all, tfc_str_from(name)) : TFC_NONE;
    free(name);
    if (joined != TFC_NONE)
      *o = (struct tfc_output){joined, 0};
    else
      o->node = node_of(all, g->nodes[o->node].name, 0);
  }
  for (uint32_t i = 0; i < step->init_feed_count; i++)
    init_feeds[i].node = node_of(all, g->nodes[init_feeds[i].node].name, 0);
  return NULL;
}

tfc_status run_replicas_make(struct run_setup *setup, const bool *split, struct tfc_step_spec *step,
                             struct run_replicas_feeds *feeds, struct tfc_output *init_feeds) {
  tfc_status s = NULL;
  struct tasks t = {0};
  struct tfc_graph *all = NULL;
  TFC_TRY(s, find_tasks(setup, &t));
  const char *const *stores = (const char *const *)t.stores;
  if (setup->options->async) {
    TFC_TRY(s, spread_feeds(setup->graph, NULL, &t, split, feeds));
    s = tfc_replicas_place(setup->graph, t.towers[t.own], stores, t.store_count);
    goto out;
  }
  const struct tfc_replicas_request request = {.count = t.tower_count,
                                               .backups = (uint32_t)setup->options->backup,
                                               .towers = (const char *const *)t.towers,
                                               .stores = stores,
                                               .store_count = t.store_count,
                                               .step = step,
                                               .split = split};
  TFC_TRY(s, tfc_replicas_make(setup->graph, &request, &all));
  TFC_TRY(s, spread_feeds(setup->graph, all, &t, split, feeds));
  TFC_TRY(s, spread_step(setup->graph, all, t.tower_count, step, init_feeds));
  if (setup->options->backup)
    tfc_say("replicas: %u towers; the first %u gradients of a step are averaged and applied where the variables are",
            t.tower_count, t.tower_count - (uint32_t)setup->options->backup);
  else
    tfc_say("replicas: %u towers; gradients are averaged %s", t.tower_count,
            t.store_count ? "and applied where the variables are"
                          : "for all, and each applies them to its own variables");
  if (!t.store_count) setup->mirrors = t.tower_count;
  tfc_graph_release(setup->graph);
  tfc_graph_release(setup->file);
  setup->graph = setup->file = all;
  tfc_graph_retain(all);
  all = NULL;
out:
  tfc_graph_release(all);
  tasks_deinit(&t);
  return s;
}
