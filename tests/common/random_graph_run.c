#include "tests/common/random_graph_run.h"

#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/random.h"
#include "runtime/exec/session.h"
#include "runtime/graph/export.h"
#include "tests/common/random_graph.h"

enum { PLACEMENTS = 2 };

struct results {
  struct tfc_tensor t[RANDOM_GRAPH_FETCHES];
};
static void release(struct results *r) {
  for (int i = 0; i < RANDOM_GRAPH_FETCHES; i++) tfc_tensor_release(&r->t[i]);
}

static tfc_status run(const struct random_graph *g, const struct tfc_device_set *devices, bool no_rewrites,
                      bool dynamic, const uint16_t *placement, struct results *out) {
  struct tfc_session *session = NULL;
  struct tfc_run_spec spec = {
      .fetches = g->fetches, .fetch_count = g->fetch_count, .placement = placement, .dynamic = dynamic};
  tfc_status s = tfc_session_create(
      g->graph, &(struct tfc_session_options){.devices = devices, .no_rewrites = no_rewrites}, &session);
  if (!s) s = tfc_session_run(session, &spec, NULL, out->t, NULL);
  tfc_session_free(session);
  return s;
}

// Compares two results. If they differ, prints where, and returns false.
static bool same(uint64_t seed, const char *how, const struct random_graph *g, const struct results *want,
                 const struct results *got) {
  for (uint32_t i = 0; i < g->fetch_count; i++) {
    const struct tfc_tensor *a = &want->t[i], *b = &got->t[i];
    if (a->dtype == b->dtype && tfc_shape_equal(&a->shape, &b->shape) && !memcmp(a->data, b->data, a->size)) continue;
    tfc_str name = g->graph->nodes[g->fetches[i].node].name;
    print_message("random graph %llu, %s: %.*s:%d has other bits\n", (unsigned long long)seed, how, TFC_STR_ARG(name),
                  g->fetches[i].index);
    return false;
  }
  return true;
}

static bool check(uint64_t seed, const struct tfc_device_set *one, const struct tfc_device_set *many) {
  static const struct {
    const char *how;
    bool no_rewrites, dynamic;
  } ways[] = {
      {"as it stands", true, false}, {"in ready order", false, true}, {"as it stands, in ready order", true, true}};
  struct random_graph g = {0};
  struct results want = {0};
  struct tfc_random random;
  const char *how = "one device";
  bool good = true;
  uint16_t *placement = NULL;
  tfc_status s = NULL;
  tfc_random_init(&random, seed);
  TFC_TRY(s, random_graph_make(seed, &g));
  TFC_TRY(s, run(&g, one, false, false, NULL, &want));
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    struct results got = {0};
    how = ways[i].how;
    TFC_TRY(s, run(&g, one, ways[i].no_rewrites, ways[i].dynamic, NULL, &got));
    good = same(seed, how, &g, &want, &got) && good;
    release(&got);
  }
  how = "placed";
  placement = malloc((g.graph->node_count + 1) * sizeof *placement);
  for (int k = 0; placement && k < PLACEMENTS; k++) {
    struct results got = {0};
    for (uint32_t i = 0; i < g.graph->node_count; i++) placement[i] = (uint16_t)tfc_random_below(&random, many->count);
    TFC_TRY(s, run(&g, many, false, k & 1, placement, &got));
    good = same(seed, how, &g, &want, &got) && good;
    release(&got);
  }
out:
  if (s) print_message("random graph %llu, %s: %s\n", (unsigned long long)seed, how, tfc_status_message(s));
  good = good && !s;
  tfc_status_free(s);
  release(&want);
  free(placement);
  random_graph_deinit(&g);
  return good;
}

int random_graphs_differ(const char *devices, uint64_t first, int count) {
  struct tfc_device_set one = {0}, many = {0};
  int bad = 0;
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &one));
  assert_ok(tfc_devices_open(devices, NULL, 0, &many));
  for (int i = 0; i < count; i++) bad += !check(first + (uint64_t)i, &one, &many);
  tfc_devices_close(&one);
  tfc_devices_close(&many);
  return bad;
}

// Runs steps of a graph. For every third graph rewrites are off, so that more operations can run side by side.
static tfc_status run_steps(const struct random_graph *g, uint64_t seed, const struct tfc_device_set *devices,
                            const uint16_t *placement, tfc_adapt adapt, struct results *out, int steps) {
  struct tfc_session *session = NULL;
  struct tfc_run_spec spec = {
      .fetches = g->fetches, .fetch_count = g->fetch_count, .placement = placement, .adapt = adapt};
  tfc_status s = tfc_session_create(
      g->graph, &(struct tfc_session_options){.devices = devices, .no_rewrites = seed % 3 == 0}, &session);
  for (int i = 0; i < steps && !s; i++) s = tfc_session_run(session, &spec, NULL, out[i].t, NULL);
  tfc_session_free(session);
  return s;
}

int random_graphs_differ_adapted(const char *devices, uint64_t first, int count) {
  enum { STEPS = 5 };
  struct tfc_device_set one = {0}, many = {0};
  int bad = 0;
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &one));
  assert_ok(tfc_devices_open(devices, NULL, 0, &many));
  for (uint64_t seed = first; seed < first + (uint64_t)count; seed++) {
    struct random_graph g = {0};
    struct results want[STEPS] = {0}, got[STEPS] = {0};
    struct tfc_random random;
    bool good = true;
    tfc_random_init(&random, seed);
    assert_ok(random_graph_make(seed, &g));
    uint16_t *placement = malloc((g.graph->node_count + 1) * sizeof *placement);
    assert_non_null(placement);
    for (uint32_t i = 0; i < g.graph->node_count; i++) placement[i] = (uint16_t)tfc_random_below(&random, many.count);
    assert_ok(run_steps(&g, seed, &one, NULL, TFC_ADAPT_OFF, want, STEPS));
    assert_ok(run_steps(&g, seed, &many, many.count > 1 ? placement : NULL, TFC_ADAPT_ALWAYS, got, STEPS));
    for (int i = 0; i < STEPS; i++) {
      good = same(seed, "adapted", &g, &want[i], &got[i]) && good;
      release(&want[i]);
      release(&got[i]);
    }
    bad += !good;
    free(placement);
    random_graph_deinit(&g);
  }
  tfc_devices_close(&one);
  tfc_devices_close(&many);
  return bad;
}

static tfc_status write_one(const char *directory, uint64_t seed) {
  struct random_graph g = {0};
  char path[1024];
  FILE *f = NULL;
  tfc_status s = NULL;
  TFC_TRY(s, random_graph_make(seed, &g));
  snprintf(path, sizeof path, "%s/%llu.pb", directory, (unsigned long long)seed);
  TFC_TRY(s, tfc_graph_save(g.graph, TFC_FORMAT_GRAPHDEF, NULL, NULL, path));
  snprintf(path, sizeof path, "%s/%llu.json", directory, (unsigned long long)seed);
  f = fopen(path, "w");
  if (!f) TFC_FAIL(s, TFC_NOT_FOUND, "%s cannot be written", path);
  for (uint32_t i = 0; i < g.fetch_count; i++)
    fprintf(f, "%s\"%.*s:%d\"", i ? ", " : "[", TFC_STR_ARG(g.graph->nodes[g.fetches[i].node].name),
            g.fetches[i].index);
  fputs(g.fetch_count ? "]\n" : "[]\n", f);
out:
  if (f) fclose(f);
  random_graph_deinit(&g);
  return s;
}

int random_graphs_write(const char *directory, uint64_t first, int count) {
  mkdir(directory, 0777);
  for (int i = 0; i < count; i++) {
    tfc_status s = write_one(directory, first + (uint64_t)i);
    if (!s) continue;
    print_message("random graph %llu: %s\n", (unsigned long long)(first + (uint64_t)i), tfc_status_message(s));
    tfc_status_free(s);
    return 0;
  }
  return 1;
}
