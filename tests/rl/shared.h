// A grid of cells, layers by steps, as the suites of this folder place it.
#ifndef TFC_TESTS_RL_SHARED_H
#define TFC_TESTS_RL_SHARED_H

#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/model/machine_yaml.h"
#include "placer/placer.h"
#include "rl/rl.h"
#include "rl/tuner.h"

struct grid {
  struct tfc_cost_graph *graph;
  struct tfc_machine *machine;
  struct tfc_problem *problem;
};

// Nodes are added in an order that depends on `turn`, and are named by `prefix`.
static inline void grid_make(uint32_t layers, uint32_t steps, uint64_t memory, const char *machine, const char *prefix,
                             uint32_t turn, struct grid *out) {
  struct tfc_cost_builder *b = NULL;
  uint32_t kind, *ids = calloc((size_t)layers * steps, sizeof *ids);
  assert_ok(tfc_cost_builder_create(&b));
  assert_ok(tfc_cost_builder_kind(b, TFC_STR("acc"), &kind));
  for (uint32_t i = 0; i < layers * steps; i++) {
    const uint32_t at = (i * (turn ? turn : 1)) % (layers * steps);
    char name[48];
    snprintf(name, sizeof name, "%s%u", prefix, at);
    assert_ok(tfc_cost_builder_node(b, tfc_str_from(name), &ids[at]));
    assert_ok(tfc_cost_builder_time(b, ids[at], kind, 100 + 10 * (at % 3) + 0.013 * at));
    tfc_cost_builder_memory(b, ids[at], memory);
  }
  for (uint32_t l = 0; l < layers; l++)
    for (uint32_t t = 0; t < steps; t++) {
      const uint32_t n = ids[l * steps + t];
      if (t) assert_ok(tfc_cost_builder_edge(b, ids[l * steps + t - 1], 0, n, 400000, TFC_LIVE_ABSENT));
      if (l) assert_ok(tfc_cost_builder_edge(b, ids[(l - 1) * steps + t], 0, n, 400000, TFC_LIVE_ABSENT));
    }
  assert_ok(tfc_cost_builder_finish(b, &out->graph));
  tfc_cost_builder_free(b);
  free(ids);
  assert_ok(tfc_machine_parse(tfc_str_from(machine), "machine.yaml", &out->machine));
  assert_ok(tfc_problem_create(out->graph, out->machine, TFC_OBJECTIVE_STEP, &out->problem));
}
static inline void grid_free(struct grid *g) {
  tfc_problem_free(g->problem);
  tfc_machine_free(g->machine);
  tfc_cost_graph_free(g->graph);
  *g = (struct grid){0};
}

#define FOUR_ALIKE                                                                                                     \
  "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, count: 4}\n"                            \
  "links:\n  - {from: \"*\", to: \"*\", latency: 5us, bandwidth: 20GB/s}\n"

#endif
