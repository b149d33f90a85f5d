#include "cli/run_backup_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"

struct one_run {
  TFC_ARRAY(struct tfc_output) feeds;
  TFC_ARRAY(struct tfc_tensor) values; // borrowed
  TFC_ARRAY(uint32_t) targets;
};
struct tower {
  struct one_run compute, accept, drop;
};
struct run_backup_runs {
  const struct run_setup *setup;
  struct run_backup_step step;
  struct tower *towers;
  uint32_t count;
  uint32_t *tower_of_rank; // TFC_NONE: the task is no tower
  struct one_run apply;
};

// The tower in whose task a node is; TFC_NONE: it is in a store.
static uint32_t tower_of(const struct run_backup_runs *r, uint32_t node) {
  return r->tower_of_rank[tfc_cluster_session_task_of(r->setup->cluster, node)];
}

static tfc_status add_feed(const struct run_backup_runs *r, struct one_run *run, uint32_t feed) {
  const bool added =
      tfc_array_push(&run->feeds, r->step.feeds[feed]) && tfc_array_push(&run->values, r->step.values[feed]);
  return added ? NULL : tfc_status_no_memory("replicas");
}

// A feed of one tower is for this tower's run, others are for all runs in which something is computed.
static tfc_status add_feeds(struct run_backup_runs *r) {
  for (uint32_t i = 0; i < r->step.step->feed_count; i++) {
    const uint32_t tower = tower_of(r, r->step.feeds[i].node);
    for (uint32_t t = 0; t < r->count; t++)
      if (tower == TFC_NONE || tower == t) TFC_RETURN_IF_ERROR(add_feed(r, &r->towers[t].compute, i));
    if (tower == TFC_NONE) TFC_RETURN_IF_ERROR(add_feed(r, &r->apply, i));
  }
  return NULL;
}

// Adds the node "VALUE/WHAT_TOWER" to a run's targets. Sets *out_found if it exists.
static tfc_status add_named(const struct run_backup_runs *r, struct one_run *run, const char *value, const char *what,
                            uint32_t tower, bool *out_found) {
  char name[128];
  snprintf(name, sizeof name, "%s/%s_%u", value, what, tower);
  const uint32_t node = tfc_graph_find(r->setup->graph, tfc_str_from(name));
  *out_found = node != TFC_NONE;
  return !*out_found || tfc_array_push(&run->targets, node) ? NULL : tfc_status_no_memory("replicas");
}

// Adds the queues of a value that is joined from all towers.
static tfc_status add_joined(struct run_backup_runs *r, const char *value, bool *out_found) {
  for (uint32_t t = 0; t < r->count; t++) {
    TFC_RETURN_IF_ERROR(add_named(r, &r->towers[t].compute, value, "give", t, out_found));
    TFC_RETURN_IF_ERROR(add_named(r, &r->towers[t].accept, value, "accept", t, out_found));
    TFC_RETURN_IF_ERROR(add_named(r, &r->towers[t].drop, value, "take", t, out_found));
  }
  return NULL;
}

static tfc_status add_targets(struct run_backup_runs *r) {
  bool found = true;
  char name[64];
  for (uint32_t c = 0; found; c++) {
    snprintf(name, sizeof name, "replicas/mean_%u", c);
    TFC_RETURN_IF_ERROR(add_joined(r, name, &found));
  }
  for (uint32_t i = 0; i < r->step.step->fetch_count; i++) {
    snprintf(name, sizeof name, "replicas/fetch_%u", i);
    TFC_RETURN_IF_ERROR(add_joined(r, name, &found));
  }
  for (uint32_t t = 0; t < r->count; t++)
    TFC_RETURN_IF_ERROR(add_named(r, &r->towers[t].compute, "replicas", "after", t, &found));
  for (uint32_t i = 0; i < r->step.step->target_count; i++) {
    const uint32_t node = r->step.step->targets[i], tower = tower_of(r, node);
    struct one_run *run = tower == TFC_NONE ? &r->apply : &r->towers[tower].compute;
    if (!tfc_array_push(&run->targets, node)) return tfc_status_no_memory("replicas");
  }
  return NULL;
}

tfc_status run_backup_runs_create(const struct run_setup *setup, const struct run_backup_step *step,
                                  struct run_backup_runs **out) {
  tfc_status s = NULL;
  const uint32_t ranks = (uint32_t)setup->tasks->tasks.count;
  struct run_backup_runs *r = calloc(1, sizeof *r);
  if (!r) return tfc_status_no_memory("replicas");
  *r = (struct run_backup_runs){.setup = setup, .step = *step};
  r->towers = calloc(ranks, sizeof *r->towers);
  r->tower_of_rank = calloc(ranks, sizeof *r->tower_of_rank);
  if (!r->towers || !r->tower_of_rank) {
    s = tfc_status_no_memory("replicas");
    goto out;
  }
  for (uint32_t k = 0; k < ranks; k++)
    r->tower_of_rank[k] = strcmp(setup->tasks->tasks.data[k].job, "ps") ? r->count++ : TFC_NONE;
  TFC_TRY(s, add_feeds(r));
  TFC_TRY(s, add_targets(r));
  *out = r;
  r = NULL;
out:
  run_backup_runs_free(r);
  return s;
}

static void one_run_deinit(struct one_run *run) {
  tfc_array_free(&run->feeds);
  tfc_array_free(&run->values);
  tfc_array_free(&run->targets);
}
void run_backup_runs_free(struct run_backup_runs *r) {
  if (!r) return;
  for (uint32_t t = 0; r->towers && t < r->count; t++) {
    one_run_deinit(&r->towers[t].compute);
    one_run_deinit(&r->towers[t].accept);
    one_run_deinit(&r->towers[t].drop);
  }
  one_run_deinit(&r->apply);
  free(r->towers);
  free(r->tower_of_rank);
  free(r);
}

// Not run_step: that is for one thread.
static tfc_status run_one(const struct run_backup_runs *r, const struct one_run *run, const _Atomic bool *cancel) {
  const bool fetches = run == &r->apply;
  const struct tfc_run_spec spec = {.feeds = run->feeds.data,
                                    .feed_count = (uint32_t)run->feeds.count,
                                    .fetches = fetches ? r->step.step->fetches : NULL,
                                    .fetch_count = fetches ? r->step.step->fetch_count : 0,
                                    .targets = run->targets.data,
                                    .target_count = (uint32_t)run->targets.count};
  return tfc_cluster_session_run(r->setup->cluster, &spec, run->values.data, fetches ? r->step.results : NULL,
                                 &(struct tfc_run_options){.cancel = cancel});
}
static tfc_status compute(void *arg, uint32_t tower, const _Atomic bool *cancel) {
  struct run_backup_runs *r = arg;
  return run_one(r, &r->towers[tower].compute, cancel);
}
static tfc_status accept(void *arg, uint32_t tower) {
  struct run_backup_runs *r = arg;
  return run_one(r, &r->towers[tower].accept, run_cut_off(r->setup->options));
}
static tfc_status drop(void *arg, uint32_t tower) {
  struct run_backup_runs *r = arg;
  return run_one(r, &r->towers[tower].drop, run_cut_off(r->setup->options));
}
static tfc_status apply(void *arg) {
  struct run_backup_runs *r = arg;
  return run_one(r, &r->apply, run_cut_off(r->setup->options));
}

struct run_backups_calls run_backup_runs_calls(struct run_backup_runs *r) {
  return (struct run_backups_calls){.compute = compute,
                                    .accept = accept,
                                    .drop = drop,
                                    .apply = apply,
                                    .arg = r,
                                    .cancel = run_cut_off(r->setup->options)};
}
