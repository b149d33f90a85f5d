#include "tests/common/sample_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "profiler/store_rows.h"
#include "runtime/base/random.h"

enum { NODES = 160, DEVICES = 4, EPISODES = 40, STEPS = 30, LAYER = 16 };

struct node {
  char name[48];
  const char *op;
  double us;
};
struct timing { // of one step
  double start[NODES], end[NODES], busy[DEVICES], step;
  struct tfc_store_transfer transfers[NODES * DEVICES];
  uint32_t transfer_count;
};

// Every node of a layer reads two of the layer before; devices run their nodes in order.
static void run_step(const struct node *nodes, const uint16_t *device, double noise, struct tfc_random *r,
                     struct timing *t) {
  double free_at[DEVICES] = {0};
  *t = (struct timing){0};
  for (uint32_t i = 0; i < NODES; i++) {
    double ready = 0;
    for (uint32_t k = 0; k < 2 && i >= LAYER; k++) {
      uint32_t from = (i / LAYER - 1) * LAYER + (i + 5 * k) % LAYER;
      double at = t->end[from];
      if (device[from] != device[i]) {
        double takes = 12 + 4096.0 * (1 + from % 5) / 9000;
        t->transfers[t->transfer_count] = (struct tfc_store_transfer){.position = t->transfer_count,
                                                                      .node_id = from,
                                                                      .source = device[from],
                                                                      .target = device[i],
                                                                      .bytes = 4096 * (uint64_t)(1 + from % 5),
                                                                      .start_ns = (int64_t)(at * 1e3),
                                                                      .duration_ns = (int64_t)(takes * 1e3)};
        t->transfer_count++;
        at += takes;
      }
      if (at > ready) ready = at;
    }
    double begin = ready > free_at[device[i]] ? ready : free_at[device[i]];
    double takes = nodes[i].us * (1 + noise * fabs(tfc_random_normal(r)));
    t->start[i] = begin, t->end[i] = free_at[device[i]] = begin + takes;
    t->busy[device[i]] += takes;
    if (t->end[i] > t->step) t->step = t->end[i];
  }
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

struct measured {
  double median, q1, q3, simulated;
};

static tfc_status add_placement(struct tfc_store *store, int64_t run, int64_t id, const char *role, const char *name,
                                const char *algorithm, int64_t episode, const struct node *nodes,
                                const uint16_t *device, uint32_t steps, const char *phase, struct tfc_random *r,
                                struct measured *m, struct sample_run *sample, int64_t *key) {
  static struct timing times[STEPS], exact;
  double totals[STEPS];
  tfc_status s = NULL;
  run_step(nodes, device, 0, r, &exact);
  for (uint32_t i = 0; i < steps; i++) {
    run_step(nodes, device, 0.06, r, &times[i]);
    totals[i] = times[i].step;
  }
  qsort(totals, steps, sizeof *totals, compare);
  *m = (struct measured){totals[steps / 2], totals[steps / 4], totals[3 * steps / 4], exact.step};
  bool cut = episode > 0 && episode % 6 == 0;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < exact.transfer_count; i++) bytes += exact.transfers[i].bytes;
  TFC_TRY(s, tfc_store_add_placement(store, run,
                                     &(struct tfc_store_placement){.placement_id = id,
                                                                   .role = role,
                                                                   .name = name,
                                                                   .algorithm = algorithm,
                                                                   .episode = episode,
                                                                   .digest = (uint64_t)id,
                                                                   .state = cut ? "cut" : "ok",
                                                                   .label = "measured",
                                                                   .simulated_us = exact.step,
                                                                   .median_us = m->median,
                                                                   .q1_us = m->q1,
                                                                   .q3_us = m->q3,
                                                                   .steps = steps,
                                                                   .ratio = 1,
                                                                   .reward = -sqrt(m->median),
                                                                   .cost_s = 0.5,
                                                                   .at_s = 2.0 * (double)id,
                                                                   .transfers = exact.transfer_count,
                                                                   .transfer_bytes = bytes},
                                     device, NODES, key));
  double nearest = INFINITY;
  for (uint32_t i = 0; i < steps; i++) {
    struct timing *t = &times[i];
    int64_t begin = 1000000000000 + (int64_t)(id * 40 + i) * 50000000 + (i / 5) * 300000000;
    struct tfc_store_step row = {.step = i,
                                 .phase = phase,
                                 .block = i / 5,
                                 .traced = true,
                                 .start_ns = begin,
                                 .duration_ns = (int64_t)(t->step * 1e3)};
    TFC_TRY(s, tfc_store_add_steps(store, *key, &row, 1));
    struct tfc_store_busy busy[DEVICES];
    struct tfc_store_op ops[NODES];
    struct tfc_store_memory memory[DEVICES];
    for (uint32_t d = 0; d < DEVICES; d++) {
      busy[d] = (struct tfc_store_busy){.step = i,
                                        .device_id = d,
                                        .operations_ns = (int64_t)(t->busy[d] * 1e3),
                                        .busy_ns = (int64_t)(t->busy[d] * 1e3),
                                        .dependency_ns = (int64_t)((t->step - t->busy[d]) * 1e3)};
      for (uint32_t n = 0; n < NODES; n++) busy[d].operations += device[n] == d;
      memory[d] = (struct tfc_store_memory){d, (uint64_t)(20 + 7 * d) << 20, false};
    }
    for (uint32_t n = 0; n < NODES; n++)
      ops[n] = (struct tfc_store_op){.step = i,
                                     .position = n,
                                     .node_id = n,
                                     .device_id = device[n],
                                     .start_ns = (int64_t)(t->start[n] * 1e3),
                                     .duration_ns = (int64_t)((t->end[n] - t->start[n]) * 1e3),
                                     .dispatch_ns = -1};
    for (uint32_t k = 0; k < t->transfer_count; k++) t->transfers[k].step = i;
    TFC_TRY(s, tfc_store_add_busy(store, *key, busy, DEVICES));
    TFC_TRY(s, tfc_store_add_ops(store, *key, ops, NODES));
    TFC_TRY(s, tfc_store_add_transfers(store, *key, t->transfers, t->transfer_count));
    if (i == 0) TFC_TRY(s, tfc_store_add_memory(store, *key, memory, DEVICES));
    if (sample && fabs(t->step - m->median) < nearest) {
      nearest = fabs(t->step - m->median);
      for (uint32_t d = 0; d < DEVICES; d++) sample->busy_us[d] = (double)(int64_t)(t->busy[d] * 1e3) * 1e-3;
    }
  }
  struct tfc_store_op_total op_totals[NODES];
  if (sample) sample->matmul_us = 0;
  for (uint32_t n = 0; n < NODES; n++) {
    double each[STEPS], total = 0;
    for (uint32_t i = 0; i < steps; i++) total += each[i] = times[i].end[n] - times[i].start[n];
    qsort(each, steps, sizeof *each, compare);
    op_totals[n] = (struct tfc_store_op_total){.node_id = n,
                                               .device_id = device[n],
                                               .samples = steps,
                                               .median_ns = (int64_t)(each[steps / 2] * 1e3),
                                               .fastest_ns = (int64_t)(each[0] * 1e3),
                                               .total_ns = (int64_t)(total * 1e3)};
    if (sample && nodes[n].op[0] == 'M' && nodes[n].op[1] == 'a')
      sample->matmul_us += (double)op_totals[n].median_ns * 1e-3;
  }
  TFC_TRY(s, tfc_store_add_op_totals(store, *key, op_totals, NODES));
  if (sample) sample->transfer_bytes = bytes;
out:
  return s;
}

tfc_status sample_run_write(const char *path, uint64_t seed, struct sample_run *out) {
  static const char *const ops[] = {"MatMul",   "Sigmoid", "Mul",   "AddV2", "Tanh", "MatMul",    "Softmax",
                                    "ConcatV2", "BiasAdd", "Slice", "Split", "Sum",  "ApplyAdam", "Tile"};
  struct sample_run sample = {0};
  struct tfc_store *store = NULL;
  struct tfc_random random;
  struct node nodes[NODES];
  uint16_t device[NODES], best[NODES];
  struct tfc_store_node rows[NODES];
  struct tfc_store_edge edges[2 * NODES];
  uint32_t edge_count = 0;
  struct measured m;
  double best_us = INFINITY;
  int64_t key, id = 0;
  tfc_status s = NULL;
  tfc_random_init(&random, seed);
  for (uint32_t i = 0; i < NODES; i++) {
    nodes[i].op = ops[(i * 7 + i / LAYER) % 14];
    nodes[i].us = nodes[i].op[0] == 'M' && nodes[i].op[1] == 'a' ? 900 : 40 + (double)(i % 11) * 12;
    snprintf(nodes[i].name, sizeof nodes[i].name, "layer_%u/%s_%u", i / LAYER, nodes[i].op, i % LAYER);
    rows[i] = (struct tfc_store_node){.node_id = i,
                                      .name = tfc_str_from(nodes[i].name),
                                      .op = tfc_str_from(nodes[i].op),
                                      .unit_id = i,
                                      .flops = 1e6,
                                      .bytes_touched = 1e4,
                                      .memory = 0,
                                      .output_bytes = 4096};
  }
  TFC_TRY(s, tfc_store_open(path, &(struct tfc_store_options){.write = true, .purpose = "test"}, &store));
  TFC_TRY(s, tfc_store_begin(store));
  TFC_TRY(s, tfc_store_add_run(store,
                               &(struct tfc_store_run){.program = "tfc-place",
                                                       .command = "tfc-place --graph examples/sample.pb --devices 4",
                                                       .graph = "examples/sample.pb",
                                                       .graph_sha256 = "0123abcd",
                                                       .graph_nodes = NODES,
                                                       .objective = "step",
                                                       .algorithms = "auto",
                                                       .label = "measured",
                                                       .seed = seed,
                                                       .host = "test",
                                                       .cpu_model = "A processor",
                                                       .blas_core = "SkylakeX"},
                               &sample.run_id));
  struct tfc_store_device devices[DEVICES + 1];
  static char names[DEVICES][16];
  for (uint32_t d = 0; d < DEVICES; d++) {
    snprintf(names[d], sizeof names[d], "cpu:%u", d);
    devices[d] = (struct tfc_store_device){.device_id = d,
                                           .name = names[d],
                                           .kind = "cpu",
                                           .model = "1 core of A processor",
                                           .label = "measured",
                                           .cores = 1,
                                           .memory_limit = d == 0 ? 64u << 20 : UINT64_MAX,
                                           .dispatch_us = 0.2};
  }
  devices[DEVICES] = (struct tfc_store_device){.device_id = DEVICES,
                                               .name = "whole",
                                               .kind = "cpu",
                                               .model = "4 cores",
                                               .label = "measured",
                                               .cores = 4,
                                               .memory_limit = UINT64_MAX};
  TFC_TRY(s, tfc_store_add_devices(store, sample.run_id, devices, DEVICES + 1));
  TFC_TRY(s, tfc_store_add_nodes(store, sample.run_id, rows, NODES));
  for (uint32_t i = LAYER; i < NODES; i++)
    for (uint32_t k = 0; k < 2; k++) {
      uint32_t from = (i / LAYER - 1) * LAYER + (i + 5 * k) % LAYER;
      edges[edge_count++] = (struct tfc_store_edge){from, 0, i, 4096 * (uint64_t)(1 + from % 5)};
    }
  TFC_TRY(s, tfc_store_add_edges(store, sample.run_id, edges, edge_count));
  for (uint32_t i = 0; i < NODES; i++) device[i] = 0;
  struct tfc_random whole = random;
  TFC_TRY(s, add_placement(store, sample.run_id, id++, "baseline", "single:cpu:0", "single", -1, nodes, device, 10,
                           "final", &random, &m, NULL, &key));
  sample.single_us = m.median;
  for (uint32_t i = 0; i < NODES; i++) nodes[i].us *= 0.45; // on the undivided machine a node takes 0.45 times as long
  TFC_TRY(s, add_placement(store, sample.run_id, id++, "baseline", "whole", "single", -1, nodes, device, 10, "final",
                           &whole, &m, NULL, &key));
  for (uint32_t i = 0; i < NODES; i++) nodes[i].us /= 0.45;
  sample.whole_us = m.median;
  for (uint32_t i = 0; i < NODES; i++) device[i] = (uint16_t)(i / (NODES / DEVICES));
  TFC_TRY(s, add_placement(store, sample.run_id, id++, "baseline", "expert", "expert", -1, nodes, device, 10, "final",
                           &random, &m, NULL, &key));
  sample.expert_us = m.median;
  TFC_TRY(s, tfc_store_add_placement(store, sample.run_id,
                                     &(struct tfc_store_placement){.placement_id = id++,
                                                                   .role = "baseline",
                                                                   .name = "heft",
                                                                   .algorithm = "heft",
                                                                   .episode = -1,
                                                                   .digest = 7,
                                                                   .state = "modelled",
                                                                   .label = "modelled",
                                                                   .simulated_us = 20000,
                                                                   .median_us = NAN,
                                                                   .q1_us = NAN,
                                                                   .q3_us = NAN,
                                                                   .ratio = NAN,
                                                                   .reward = NAN,
                                                                   .cost_s = 0,
                                                                   .at_s = 1},
                                     NULL, 0, &key));
  for (uint32_t i = 0; i < NODES; i++) best[i] = (uint16_t)(i % DEVICES);
  for (int64_t e = 1; e <= EPISODES; e++) {
    static const char *const by[] = {"anneal", "rl", "lns", "rl"};
    char name[24];
    for (uint32_t i = 0; i < NODES; i++)
      device[i] =
          tfc_random_below(&random, 100) < (uint64_t)(60 - e) ? (uint16_t)tfc_random_below(&random, DEVICES) : best[i];
    snprintf(name, sizeof name, "#%lld", (long long)e);
    TFC_TRY(s, add_placement(store, sample.run_id, id++, "candidate", name, by[e % 4], e, nodes, device, 5, "screen",
                             &random, &m, NULL, &key));
    if (m.median < best_us) {
      best_us = m.median;
      for (uint32_t i = 0; i < NODES; i++) best[i] = device[i];
    }
  }
  TFC_TRY(s, add_placement(store, sample.run_id, id, "answer", "answer", "lns", -1, nodes, best, STEPS, "final",
                           &random, &m, &sample, &key));
  sample.answer_us = m.median;
  TFC_TRY(s, tfc_store_finish_run(store, sample.run_id,
                                  &(struct tfc_store_answer){.state = "done",
                                                             .exit_code = 0,
                                                             .algorithm = "lns",
                                                             .placement_id = id,
                                                             .speedup = sample.single_us / m.median,
                                                             .speedup_low = sample.single_us / m.median * 0.98,
                                                             .speedup_high = sample.single_us / m.median * 1.02,
                                                             .bound_us = m.median * 0.7,
                                                             .bound_name = "critical path",
                                                             .trace_overhead = 0.004,
                                                             .tau = 0.87,
                                                             .tau_placements = 40}));
  TFC_TRY(s, tfc_store_commit(store));
  *out = sample;
out:
  tfc_store_close(store);
  return s;
}
