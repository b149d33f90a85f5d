// A database in a folder of its own for each test, and the rows that tests of the store write into it.
#ifndef TFC_TESTS_PROFILER_STORES_H
#define TFC_TESTS_PROFILER_STORES_H

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "profiler/activity.h"
#include "profiler/store.h"
#include "profiler/store_rows.h"
#include "tests/common/folder.h"

static char folder[64], path[96];

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "store")) return -1;
  snprintf(path, sizeof path, "%s/t.db", folder);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  chmod(folder, 0700);
  return test_folder_remove(folder);
}

static double ask(struct tfc_store *store, const char *sql) {
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(tfc_store_handle(store), sql, -1, &q, NULL) != SQLITE_OK)
    fail_msg("%s: %s", sql, sqlite3_errmsg(tfc_store_handle(store)));
  double x = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_double(q, 0) : -1;
  sqlite3_finalize(q);
  return x;
}
static const struct tfc_store_options writing = {.write = true, .purpose = "store test"};

static tfc_status add_run(struct tfc_store *store, int64_t *run) {
  tfc_status s = NULL;
  TFC_TRY(s, tfc_store_begin(store));
  TFC_TRY(s, tfc_store_add_run(store,
                               &(struct tfc_store_run){.program = "tfc-place",
                                                       .graph = "g.pb",
                                                       .graph_nodes = 3,
                                                       .objective = "step",
                                                       .label = "measured",
                                                       .seed = 1},
                               run));
  struct tfc_store_device devices[] = {
      {0, "cpu:0", "cpu", "model", "/device:CPU:0", "measured", 1, UINT64_MAX, NAN, NULL, 0, NULL},
      {1, "cpu:1", "cpu", NULL, NULL, "measured", 1, 1 << 30, 1.5, "[1, 1.1]", 0, NULL}};
  TFC_TRY(s, tfc_store_add_devices(store, *run, devices, 2));
  struct tfc_store_node nodes[] = {{0, TFC_STR("a"), TFC_STR("MatMul"), 0, 10, 20, 0, 64},
                                   {1, TFC_STR("b"), TFC_STR("Add"), 1, NAN, NAN, 128, 64},
                                   {2, TFC_STR("unused"), TFC_STR("NoOp"), TFC_NONE, NAN, NAN, 0, 0}};
  TFC_TRY(s, tfc_store_add_nodes(store, *run, nodes, 3));
  TFC_TRY(s, tfc_store_add_costs(store, *run, &(struct tfc_store_cost){0, "cpu", 5, 4, 6, 3, 5}, 1));
  TFC_TRY(s, tfc_store_add_edges(store, *run, &(struct tfc_store_edge){0, 0, 1, 64}, 1));
  TFC_TRY(s, tfc_store_add_links(store, *run, &(struct tfc_store_link){0, 1, 4096, 2.5, 9}, 1));
  TFC_TRY(s, tfc_store_set_state(store, *run, "options", TFC_STR("{}")));
  TFC_TRY(s, tfc_store_commit(store));
out:
  return s;
}

// Adds a candidate with two steps of two operations each, in one transaction.
static tfc_status add_candidate(struct tfc_store *store, int64_t run, int64_t id, double median_us) {
  tfc_status s = NULL;
  int64_t key = 0;
  TFC_TRY(s, tfc_store_begin(store));
  struct tfc_store_placement p = {.placement_id = id,
                                  .role = "candidate",
                                  .name = "#",
                                  .algorithm = "heft",
                                  .episode = id + 1,
                                  .state = "ok",
                                  .label = "measured",
                                  .simulated_us = 9,
                                  .median_us = median_us,
                                  .q1_us = 9,
                                  .q3_us = 11,
                                  .steps = 2,
                                  .ratio = NAN,
                                  .reward = -median_us,
                                  .cost_s = 0.1,
                                  .at_s = (double)id};
  TFC_TRY(s, tfc_store_add_placement(store, run, &p, (uint16_t[]){0, 1}, 2, &key));
  for (uint32_t step = 0; step < 2; step++) {
    TFC_TRY(s, tfc_store_add_steps(store, key, &(struct tfc_store_step){step, "screen", 0, true, 1000, 10000}, 1));
    struct tfc_store_busy busy[] = {{step, 0, 1, 4000, 4100, 1000, 2000, 900, 2000, 700},
                                    {step, 1, 1, 5000, 5000, 0, 0, 0, 5000, 0}};
    TFC_TRY(s, tfc_store_add_busy(store, key, busy, 2));
    struct tfc_store_op ops[] = {{step, 0, 0, 0, 0, 4000, -1, -1}, {step, 1, 1, 1, 4500, 5000, 700, 1500}};
    TFC_TRY(s, tfc_store_add_ops(store, key, ops, 2));
    TFC_TRY(s,
            tfc_store_add_transfers(store, key, &(struct tfc_store_transfer){step, 0, 0, 0, 0, 1, 64, 4000, 300}, 1));
    const struct tfc_activity_call gpu_calls[] = {
        {.kind = TFC_ACTIVITY_ALLOCATE, .start_ns = -50, .end_ns = -50, .stream = TFC_NONE, .bytes = 512},
        {.kind = TFC_ACTIVITY_SYNCHRONIZE, .start_ns = 100, .end_ns = 2100, .stream = 7, .name = "stream"}};
    TFC_TRY(s, tfc_store_add_calls(store, key, step, gpu_calls, 2));
  }
  TFC_TRY(s, tfc_store_add_op_totals(store, key, &(struct tfc_store_op_total){0, 0, 2, 4000, 3900, 8000}, 1));
  TFC_TRY(s, tfc_store_add_memory(store, key, &(struct tfc_store_memory){0, 4096, false}, 1));
  TFC_TRY(s, tfc_store_commit(store));
out:
  return s;
}

#endif
