// Writes a run to a database, for tests of reports; all its numbers were chosen by hand.
#ifndef TFC_TESTS_REPORTS_BY_HAND_H
#define TFC_TESTS_REPORTS_BY_HAND_H

#include <math.h>

#include "profiler/store.h"
#include "profiler/store_rows.h"

// Writes a run on two devices; times in microseconds:
//   cpu:0   a 0-100, b 100-400, d 400-450
//   cpu:1   c 155-255 (reads a), e 482-600 (reads d)
//   a goes to cpu:1 100-150, c to cpu:0 255-275, d to cpu:1 450-480
static inline tfc_status write_by_hand(const char *file, const char *label) {
  static const struct {
    const char *name, *op;
    uint16_t device;
    int64_t start, end;
  } ops[] = {{"net/a", "MatMul", 0, 0, 100},
             {"net/b", "MatMul", 0, 100, 400},
             {"net/c", "Relu", 1, 155, 255},
             {"net/d", "AddV2", 0, 400, 450},
             {"net/e", "Softmax", 1, 482, 600}};
  static const struct {
    uint32_t node;
    uint16_t from, to;
    uint64_t bytes;
    int64_t start, end;
  } moves[] = {{0, 0, 1, 1000, 100, 150}, {2, 1, 0, 2000, 255, 275}, {3, 0, 1, 4000, 450, 480}};
  static const uint16_t devices[] = {0, 0, 1, 0, 1};
  const struct tfc_store_edge edges[] = {
      {0, 0, 1, 1000}, {0, 0, 2, 1000}, {1, 0, 3, 3000}, {2, 0, 3, 2000}, {3, 0, 4, 4000}};
  struct tfc_store *db = NULL;
  int64_t run, key;
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_open(file, &(struct tfc_store_options){.write = true, .purpose = "test"}, &db));
  TFC_TRY(s, tfc_store_begin(db));
  TFC_TRY(s, tfc_store_add_run(db,
                               &(struct tfc_store_run){.program = "tfc-place",
                                                       .command = "tfc-place",
                                                       .graph = "net.pb",
                                                       .graph_nodes = 6,
                                                       .objective = "step",
                                                       .label = label,
                                                       .seed = 1},
                               &run));
  struct tfc_store_device rows[] = {{0, "cpu:0", "cpu", "model", NULL, label, 1, 1 << 20, NAN, NULL, 0, NULL},
                                    {1, "cpu:1", "cpu", "model", NULL, label, 1, UINT64_MAX, NAN, NULL, 1, NULL}};
  TFC_TRY(s, tfc_store_add_devices(db, run, rows, 2));
  struct tfc_store_node nodes[6];
  for (uint32_t i = 0; i < 5; i++)
    nodes[i] = (struct tfc_store_node){.node_id = i,
                                       .name = tfc_str_from(ops[i].name),
                                       .op = tfc_str_from(ops[i].op),
                                       .unit_id = i,
                                       .output_bytes = 1000 * (i + 1)};
  nodes[5] = (struct tfc_store_node){
      .node_id = 5, .name = TFC_STR("net/weights"), .op = TFC_STR("VariableV2"), .unit_id = 1, .memory = 5000};
  TFC_TRY(s, tfc_store_add_nodes(db, run, nodes, 6));
  TFC_TRY(s, tfc_store_add_edges(db, run, edges, 5));
  TFC_TRY(s, tfc_store_add_placement(db, run,
                                     &(struct tfc_store_placement){.placement_id = 0,
                                                                   .role = "answer",
                                                                   .name = "answer",
                                                                   .algorithm = "lns",
                                                                   .episode = -1,
                                                                   .state = "ok",
                                                                   .label = label,
                                                                   .simulated_us = 590,
                                                                   .median_us = 600,
                                                                   .q1_us = 600,
                                                                   .q3_us = 602,
                                                                   .steps = 2,
                                                                   .ratio = 1,
                                                                   .transfers = 3,
                                                                   .transfer_bytes = 7000},
                                     devices, 5, &key));
  for (uint32_t step = 0; step < 2; step++) { // in the second step e takes 4 us longer
    int64_t more = 4 * step;
    struct tfc_store_step timed = {.step = step,
                                   .phase = "final",
                                   .traced = true,
                                   .start_ns = 1000000 * (int64_t)step,
                                   .duration_ns = 1000 * (600 + more)};
    struct tfc_store_op traced[5];
    struct tfc_store_transfer moved[3];
    struct tfc_store_busy busy[2] = {
        {.step = step, .device_id = 0, .operations = 3, .operations_ns = 450000, .busy_ns = 450000},
        {.step = step,
         .device_id = 1,
         .operations = 2,
         .operations_ns = 1000 * (218 + more),
         .busy_ns = 1000 * (218 + more)}};
    for (uint32_t i = 0; i < 5; i++)
      traced[i] = (struct tfc_store_op){.step = step,
                                        .position = i,
                                        .node_id = i,
                                        .device_id = ops[i].device,
                                        .start_ns = 1000 * ops[i].start,
                                        .duration_ns = 1000 * (ops[i].end - ops[i].start + (i == 4 ? more : 0)),
                                        .dispatch_ns = -1};
    for (uint32_t i = 0; i < 3; i++)
      moved[i] = (struct tfc_store_transfer){.step = step,
                                             .position = i,
                                             .node_id = moves[i].node,
                                             .source = moves[i].from,
                                             .target = moves[i].to,
                                             .bytes = moves[i].bytes,
                                             .start_ns = 1000 * moves[i].start,
                                             .duration_ns = 1000 * (moves[i].end - moves[i].start)};
    TFC_TRY(s, tfc_store_add_steps(db, key, &timed, 1));
    TFC_TRY(s, tfc_store_add_busy(db, key, busy, 2));
    TFC_TRY(s, tfc_store_add_ops(db, key, traced, 5));
    TFC_TRY(s, tfc_store_add_transfers(db, key, moved, 3));
  }
  struct tfc_store_memory memory[] = {{0, 15000, false}, {1, 9000, false}};
  TFC_TRY(s, tfc_store_add_memory(db, key, memory, 2));
  TFC_TRY(s, tfc_store_finish_run(db, run,
                                  &(struct tfc_store_answer){.state = "done",
                                                             .algorithm = "lns",
                                                             .placement_id = 0,
                                                             .speedup = NAN,
                                                             .speedup_low = NAN,
                                                             .speedup_high = NAN,
                                                             .bound_us = NAN,
                                                             .trace_overhead = NAN,
                                                             .tau = NAN}));
  TFC_TRY(s, tfc_store_commit(db));
out:
  tfc_store_close(db);
  return s;
}

#endif
