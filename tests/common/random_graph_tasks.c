#include "tests/common/random_graph_tasks.h"

#include "tests/common/cluster.h"
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/map.h"
#include "runtime/graph/export.h"
#include "tests/common/random_graph.h"

enum { STEPS = 2 };

struct trial {
  uint64_t seed;
  struct random_graph graph;
  struct tfc_graph *placed; // the same graph, with device strings
  struct tfc_output fetches[RANDOM_GRAPH_FETCHES];
  struct tfc_tensor want[RANDOM_GRAPH_FETCHES], got[STEPS][RANDOM_GRAPH_FETCHES];
};

static tfc_str random_task(void *arg, tfc_str key, tfc_str device) {
  static const char *const tasks[] = {"/job:chief/task:0", "/job:worker/task:0", "/job:worker/task:1"};
  const struct trial *t = arg;
  (void)device;
  return tfc_str_from(tasks[(tfc_hash_bytes(key.data, key.size) ^ t->seed * 0x9e3779b97f4a7c15ull) % 3]);
}

static tfc_status place(struct trial *t) {
  char path[] = "/tmp/tfc_random_graph_XXXXXX";
  tfc_status s = NULL;
  const int file = mkstemp(path);
  if (file < 0) return tfc_status_make(TFC_NOT_FOUND, "no temporary file");
  TFC_TRY(s, tfc_graph_save(t->graph.graph, TFC_FORMAT_GRAPHDEF, random_task, t, path));
  TFC_TRY(s, tfc_graph_load(path, NULL, &t->placed));
  for (uint32_t i = 0; i < t->graph.fetch_count; i++) {
    const struct tfc_output o = t->graph.fetches[i];
    const tfc_str name = t->graph.graph->nodes[o.node].name;
    t->fetches[i] = (struct tfc_output){tfc_graph_find(t->placed, name), o.index};
  }
out:
  close(file);
  unlink(path);
  return s;
}

static tfc_status run_in_one(struct trial *t) {
  struct tfc_device_set devices = {0};
  struct tfc_session *session = NULL;
  tfc_status s = tfc_devices_open("cpu:0", NULL, 0, &devices);
  const struct tfc_run_spec spec = {.fetches = t->graph.fetches, .fetch_count = t->graph.fetch_count};
  if (!s) s = tfc_session_create(t->graph.graph, &(struct tfc_session_options){.devices = &devices}, &session);
  if (!s) s = tfc_session_run(session, &spec, NULL, t->want, NULL);
  tfc_session_free(session);
  tfc_devices_close(&devices);
  return s;
}

static tfc_status run_in_tasks(struct tfc_member *member, void *arg) {
  struct trial *t = arg;
  struct tfc_cluster_session *session = NULL;
  if (tfc_member_rank(member) != 0) return NULL; // this task only serves the other tasks
  const struct tfc_run_spec spec = {.fetches = t->fetches, .fetch_count = t->graph.fetch_count};
  tfc_status s = tfc_cluster_session_create(member, t->placed, &(struct tfc_execution){0}, &session);
  for (int i = 0; i < STEPS && !s; i++) s = tfc_cluster_session_run(session, &spec, NULL, t->got[i], NULL);
  // One by one, too: what one fetch needs has often neither branches nor loops, and then it runs by static plans.
  for (uint32_t i = 0; i < t->graph.fetch_count && !s; i++) {
    const struct tfc_run_spec one = {.fetches = &t->fetches[i], .fetch_count = 1};
    tfc_tensor_release(&t->got[STEPS - 1][i]);
    s = tfc_cluster_session_run(session, &one, NULL, &t->got[STEPS - 1][i], NULL);
  }
  tfc_cluster_session_free(session);
  return s;
}

static bool same(const struct trial *t) {
  for (uint32_t i = 0; i < STEPS * t->graph.fetch_count; i++) {
    const uint32_t k = i % t->graph.fetch_count;
    const struct tfc_tensor *a = &t->want[k], *b = &t->got[i / t->graph.fetch_count][k];
    if (a->dtype == b->dtype && tfc_shape_equal(&a->shape, &b->shape) && !memcmp(a->data, b->data, a->size)) continue;
    const tfc_str name = t->graph.graph->nodes[t->graph.fetches[k].node].name;
    print_message("random graph %llu over tasks: %.*s:%d has other bits\n", (unsigned long long)t->seed,
                  TFC_STR_ARG(name), t->graph.fetches[k].index);
    return false;
  }
  return true;
}

static bool check(uint64_t seed, int64_t most_delay_ns, uint64_t *static_parts) {
  struct trial t = {.seed = seed};
  const struct tfc_faults faults = {.seed = seed, .most_delay_ns = most_delay_ns};
  struct tfc_test_job job = {.cluster = "chief=1,worker=2",
                             .script = run_in_tasks,
                             .arg = &t,
                             .serves = "worker",
                             .static_us = 1e-9,
                             .faults = most_delay_ns ? &faults : NULL};
  tfc_status s = NULL;
  TFC_TRY(s, random_graph_make(seed, &t.graph));
  TFC_TRY(s, place(&t));
  TFC_TRY(s, run_in_one(&t));
  tfc_test_job_run(&job);
  for (uint32_t r = 0; r < 3; r++) s = tfc_status_join(s, job.status[r]), *static_parts += job.static_parts[r];
out:
  if (s) print_message("random graph %llu over tasks: %s\n", (unsigned long long)seed, tfc_status_message(s));
  const bool good = !s && same(&t);
  tfc_status_free(s);
  for (uint32_t i = 0; i < RANDOM_GRAPH_FETCHES; i++) {
    tfc_tensor_release(&t.want[i]);
    for (int k = 0; k < STEPS; k++) tfc_tensor_release(&t.got[k][i]);
  }
  tfc_graph_release(t.placed);
  random_graph_deinit(&t.graph);
  return good;
}

int random_graphs_differ_over_tasks(uint64_t first, int count, int64_t most_delay_ns) {
  int bad = 0;
  uint64_t static_parts = 0;
  for (int i = 0; i < count; i++) bad += !check(first + (uint64_t)i, most_delay_ns, &static_parts);
  print_message("%d random graphs over tasks: %llu parts of steps ran by static plans\n", count,
                (unsigned long long)static_parts);
  return bad + !static_parts;
}
