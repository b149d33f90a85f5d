// Makes random problems that use every field of the formats, for the placer's suites. Everything follows from the seed.
#ifndef TFC_TESTS_PLACER_INSTANCES_H
#define TFC_TESTS_PLACER_INSTANCES_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "placer/model/cost_graph_json.h"
#include "placer/model/machine_yaml.h"
#include "placer/placer.h"
#include "runtime/base/random.h"

struct instance {
  struct tfc_cost_graph *graph;
  struct tfc_machine *machine;
  struct tfc_problem *problem;
};
static inline void instance_free(struct instance *i) {
  tfc_problem_free(i->problem);
  tfc_cost_graph_free(i->graph);
  tfc_machine_free(i->machine);
  *i = (struct instance){0};
}

#define MUST(call)                                                                                                     \
  do {                                                                                                                 \
    tfc_status must_status_ = (call);                                                                                  \
    if (must_status_) {                                                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, tfc_status_message(must_status_));                            \
      abort();                                                                                                         \
    }                                                                                                                  \
  } while (0)

// An instance from the texts of its two files.
static inline struct instance parsed(const char *graph, const char *machine) {
  struct instance i = {0};
  MUST(tfc_cost_graph_parse(tfc_str_from(graph), "g.json", &i.graph));
  MUST(tfc_machine_parse(tfc_str_from(machine), "m.yaml", &i.machine));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  return i;
}

static inline struct tfc_score score_of(const struct tfc_problem *p, const struct tfc_solution *s) {
  struct tfc_simulator *sim = NULL;
  struct tfc_verdict v = {0};
  MUST(tfc_simulator_create(p, &sim));
  tfc_simulate(sim, s->device, s->rank, TFC_TIME_MAX, &v);
  tfc_simulator_free(sim);
  return tfc_score_of(&v);
}

// What a random instance may have in addition to devices, nodes and edges.
#define RICH_GROUPS 1u
#define RICH_PINS 2u
#define RICH_ORDER 4u
#define RICH_LIVE 8u
#define RICH_WIRES 16u // named wires, the wire "none", half-duplex links
#define RICH_OCCUPIES 32u
#define RICH_CALIBRATION 64u // dispatch, slowdown, curves
#define RICH_KINDS 128u      // two kinds, some nodes run on one only
#define RICH_MISSING 256u    // missing links
#define RICH_LIMITS 512u     // memory limits that some placements break
#define RICH_ALL 1023u
#define RICH_BOTH 2048u  // all transfers occupy both ends
#define RICH_INBOX 1024u // there are no wires, and all transfers occupy their receiver, as between groups of cores

static inline uint64_t pick(struct tfc_random *r, uint64_t n) {
  return tfc_random_below(r, n);
}

static inline struct tfc_machine *random_machine(struct tfc_random *r, uint32_t devices, uint32_t rich,
                                                 uint64_t memory) {
  struct tfc_machine *m = NULL;
  static const double factors[] = {1, 1.1, 1.37, 2};
  char name[32];
  MUST(tfc_machine_create(&m));
  for (uint32_t d = 0; d < devices; d++) {
    bool second = (rich & RICH_KINDS) && d >= (devices + 1) / 2;
    snprintf(name, sizeof name, "%s:%u", second ? "cpu" : "acc", d);
    struct tfc_machine_device x = {.name = tfc_str_from(name),
                                   .kind = second ? TFC_STR("cpu") : TFC_STR("acc"),
                                   .memory = TFC_NO_LIMIT,
                                   .label = TFC_LABEL_MODELLED};
    if ((rich & RICH_LIMITS) && pick(r, 3)) x.memory = memory / devices + pick(r, memory + 1);
    if (rich & RICH_CALIBRATION) {
      if (pick(r, 2)) x.dispatch_us = (double)pick(r, 30) / 10;
      if (pick(r, 2)) x.slowdown = factors, x.slowdown_count = 1 + (uint32_t)pick(r, 4);
    }
    MUST(tfc_machine_add_device(m, &x));
  }
  uint32_t rows = rich & (RICH_WIRES | RICH_OCCUPIES | RICH_MISSING | RICH_INBOX) ? 1 + (uint32_t)pick(r, 5) : 1;
  for (uint32_t i = 0; i < rows; i++) {
    struct tfc_link l = tfc_link_default();
    char from[32], to[32];
    struct tfc_link_point points[3];
    if (i || ((rich & RICH_MISSING) && pick(r, 4) == 0)) {
      static const char *const patterns[] = {"*", "acc:*", "cpu:*", "*:0", "*:1", "acc:0", "*:2"};
      snprintf(from, sizeof from, "%s", patterns[pick(r, 7)]);
      snprintf(to, sizeof to, "%s", patterns[pick(r, 7)]);
      l.from = tfc_str_from(from), l.to = tfc_str_from(to);
    }
    l.latency_us = pick(r, 3) ? (double)pick(r, 40) / 4 : 0;
    if (pick(r, 5)) l.bandwidth = (double)(1 + pick(r, 4000)) * 1e5;
    if (rich & RICH_WIRES) {
      static const char *const wires[] = {"none", "a", "b"};
      l.duplex = pick(r, 2);
      if (pick(r, 2)) l.wire = tfc_str_from(wires[pick(r, 3)]);
    }
    if (rich & RICH_OCCUPIES) l.occupies = (tfc_occupies)pick(r, 4);
    if (rich & RICH_BOTH) l.occupies = TFC_OCCUPIES_BOTH;
    if (rich & RICH_INBOX) l.occupies = TFC_OCCUPIES_RECEIVER, l.wire = TFC_STR("none");
    if ((rich & RICH_CALIBRATION) && pick(r, 3) == 0) {
      l.curve_count = 1 + (uint32_t)pick(r, 3);
      for (uint32_t k = 0; k < l.curve_count; k++)
        points[k] = (struct tfc_link_point){(double)(k * 2000 + pick(r, 1000)), (double)(k * 3 + pick(r, 20)) / 3};
      l.curve = points;
    }
    MUST(tfc_machine_add_link(m, &l));
  }
  return m;
}

// Makes devices "acc:0", ... of one kind that are linked alike; memory [device] bytes, NULL: no limit.
static inline struct tfc_machine *even_machine(uint32_t devices, const uint64_t *memory, const struct tfc_link *link) {
  struct tfc_machine *m = NULL;
  char name[32];
  MUST(tfc_machine_create(&m));
  for (uint32_t d = 0; d < devices; d++) {
    snprintf(name, sizeof name, "acc:%u", d);
    MUST(tfc_machine_add_device(m, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                                .kind = TFC_STR("acc"),
                                                                .memory = memory ? memory[d] : TFC_NO_LIMIT,
                                                                .label = TFC_LABEL_MODELLED}));
  }
  MUST(tfc_machine_add_link(m, link));
  return m;
}

// In two of three instances, times are small multiples of 1 us or of 1/8 us, so that many events happen at the same
// time; in the others, times are arbitrary, up to 20 us.
static inline struct tfc_cost_graph *random_graph(struct tfc_random *r, uint32_t nodes, uint32_t devices, uint32_t rich,
                                                  uint64_t *out_memory) {
  struct tfc_cost_builder *b = NULL;
  struct tfc_cost_graph *g = NULL;
  char name[32];
  uint32_t acc, cpu, node;
  uint64_t memory = 0;
  uint32_t *shuffled = malloc(sizeof *shuffled * nodes); // the topological position of each index
  int fine = (int)pick(r, 3);
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  MUST(tfc_cost_builder_kind(b, TFC_STR("cpu"), &cpu));
  for (uint32_t i = 0; i < nodes; i++) shuffled[i] = i;
  for (uint32_t i = nodes; i > 1; i--) {
    uint32_t j = (uint32_t)pick(r, i), x = shuffled[i - 1];
    shuffled[i - 1] = shuffled[j], shuffled[j] = x;
  }
  for (uint32_t n = 0; n < nodes; n++) {
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    double us = fine == 0 ? (double)pick(r, 4) : fine == 1 ? (double)pick(r, 50) / 8 : tfc_random_unit(r) * 20;
    uint64_t which = rich & RICH_KINDS ? pick(r, 8) : 2;
    if (which != 0) MUST(tfc_cost_builder_time(b, node, acc, us));
    if (which != 1) MUST(tfc_cost_builder_time(b, node, cpu, us * (double)(1 + pick(r, 10))));
    uint64_t bytes = pick(r, 100);
    memory += bytes;
    tfc_cost_builder_memory(b, node, bytes);
    if ((rich & RICH_GROUPS) && pick(r, 3) == 0) {
      snprintf(name, sizeof name, "g%u", (uint32_t)pick(r, nodes / 4 + 1));
      MUST(tfc_cost_builder_group(b, node, tfc_str_from(name)));
    } else if ((rich & RICH_PINS) && pick(r, 12) == 0 && which > 1) {
      uint32_t d = (uint32_t)pick(r, devices);
      bool second = (rich & RICH_KINDS) && d >= (devices + 1) / 2;
      snprintf(name, sizeof name, "%s:%u", second ? "cpu" : "acc", d);
      MUST(tfc_cost_builder_pin(b, node, tfc_str_from(name)));
    }
    if ((rich & RICH_ORDER) && pick(r, 3)) MUST(tfc_cost_builder_order(b, node, (double)pick(r, 20) / 2 - 3));
  }
  uint32_t edges = (uint32_t)pick(r, nodes * 2 + 1);
  uint64_t salt = tfc_random_u64(r);
  for (uint32_t i = 0; i < edges && nodes > 1; i++) {
    uint32_t x = (uint32_t)pick(r, nodes), y = (uint32_t)pick(r, nodes);
    if (shuffled[x] == shuffled[y]) continue;
    uint32_t from = shuffled[x] < shuffled[y] ? x : y, to = from == x ? y : x;
    int32_t output = (int32_t)pick(r, 4) - 1;
    uint64_t state = salt ^ (from * 64u + (uint32_t)(output + 1)), hash = tfc_splitmix64(&state);
    uint64_t bytes = output < 0 ? 0 : hash % 5 == 0 ? 0 : hash % 10000;
    MUST(tfc_cost_builder_edge(b, from, output, to, bytes, rich & RICH_LIVE ? hash % 97 : TFC_LIVE_ABSENT));
  }
  tfc_status s = tfc_cost_builder_finish(b, &g);
  MUST(s);
  tfc_cost_builder_free(b);
  free(shuffled);
  *out_memory = memory;
  return g;
}

// Draws again until the problem is valid: the nodes of a group may have no kind of device in common.
static inline struct instance random_instance(struct tfc_random *r, uint32_t nodes, uint32_t devices, uint32_t rich,
                                              tfc_objective objective) {
  for (;;) {
    struct instance i = {0};
    uint64_t memory;
    i.graph = random_graph(r, nodes, devices, rich, &memory);
    i.machine = random_machine(r, devices, rich, memory);
    tfc_status s = tfc_problem_create(i.graph, i.machine, objective, &i.problem);
    if (!s) return i;
    tfc_status_free(s);
    instance_free(&i);
  }
}

static inline void random_devices(struct tfc_random *r, const struct tfc_problem *p, tfc_device_id *device) {
  for (uint32_t u = 0; u < p->unit_count; u++) do
      device[u] = (tfc_device_id)pick(r, p->device_count);
    while (!tfc_problem_allows(p, u, device[u]));
}

#endif
