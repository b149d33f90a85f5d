// Tests the store: rows that were written are read through the views, and a failing disk loses nothing that was
// committed.
#include "tests/common/test.h"

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/activity.h"
#include "profiler/collector.h"
#include "profiler/schema.h"
#include "profiler/store.h"
#include "profiler/store_rows.h"
#include "profiler/store_runs.h"
#include "tests/common/change.h"
#include "tests/profiler/stores.h"

// --- A VFS whose n-th write, sync or truncation fails, and every one after it, as on a disk that is full ------------
static sqlite3_vfs *real_vfs, failing_vfs;
// Files of different sorts (database, journal) have different methods.
static struct {
  const sqlite3_io_methods *real;
  sqlite3_io_methods failing;
} methods[8];
static long calls_left = -1; // -1: no call fails
static long calls;

static bool fails_now(void) {
  calls++;
  if (calls_left < 0) return false;
  if (calls_left == 0) return true;
  calls_left--;
  return false;
}
static const sqlite3_io_methods *real(sqlite3_file *f) {
  for (int i = 0; i < 8; i++)
    if (f->pMethods == &methods[i].failing) return methods[i].real;
  abort();
}
static int failing_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 at) {
  if (fails_now()) return SQLITE_FULL;
  return real(f)->xWrite(f, data, n, at);
}
static int failing_sync(sqlite3_file *f, int flags) {
  if (fails_now()) return SQLITE_IOERR_FSYNC;
  return real(f)->xSync(f, flags);
}
static int failing_truncate(sqlite3_file *f, sqlite3_int64 size) {
  if (fails_now()) return SQLITE_IOERR_TRUNCATE;
  return real(f)->xTruncate(f, size);
}
static int failing_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags) {
  (void)vfs;
  int rc = real_vfs->xOpen(real_vfs, name, f, flags, out_flags);
  if (rc == SQLITE_OK && f->pMethods) {
    int i = 0;
    while (methods[i].real && methods[i].real != f->pMethods) i++;
    methods[i].real = f->pMethods;
    methods[i].failing = *f->pMethods;
    methods[i].failing.xWrite = failing_write;
    methods[i].failing.xSync = failing_sync;
    methods[i].failing.xTruncate = failing_truncate;
    f->pMethods = &methods[i].failing;
  }
  return rc;
}
static void install_failing_vfs(void) {
  if (real_vfs) return;
  real_vfs = sqlite3_vfs_find(NULL);
  failing_vfs = *real_vfs;
  failing_vfs.zName = "failing";
  failing_vfs.pNext = NULL;
  failing_vfs.xOpen = failing_open;
  sqlite3_vfs_register(&failing_vfs, 0);
}

// --- Tests -------------------------------------------------------------------------------------------------------
static void test_views_have_rows(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  int64_t run = 0;
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(add_run(store, &run));
  assert_ok(add_candidate(store, run, 0, 10));
  assert_ok(add_candidate(store, run, 1, 8));
  assert_ok(tfc_store_begin(store));
  assert_ok(tfc_store_finish_run(store, run,
                                 &(struct tfc_store_answer){.state = "done",
                                                            .placement_id = 1,
                                                            .speedup = 1.25,
                                                            .speedup_low = NAN,
                                                            .speedup_high = NAN,
                                                            .bound_us = 3,
                                                            .trace_overhead = NAN,
                                                            .tau = 0.5,
                                                            .tau_placements = 2,
                                                            .document = "{\"run\": 1}"}));
  assert_ok(tfc_store_commit(store));
  assert_ok(tfc_store_index(store));
  tfc_store_close(store);

  assert_ok(tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  static const char *const views[] = {
      "v_run",    "v_device",  "v_node", "v_edge", "v_placement",       "v_step",      "v_op", "v_busy", "v_transfer",
      "v_memory", "v_episode", "v_cost", "v_link", "v_synchronization", "v_allocation"};
  for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT COUNT(*) FROM %s WHERE run_id = 1", views[i]);
    if (ask(store, sql) <= 0) fail_msg("%s has no rows", views[i]);
  }
  assert_true(ask(store, "SELECT step_median_us FROM v_run") == 8);
  assert_true(ask(store, "SELECT best_so_far_us FROM v_episode WHERE episode = 2") == 8);
  assert_true(ask(store, "SELECT SUM(duration_us) FROM v_synchronization WHERE waited_for = 'stream' AND stream = 7") ==
              8);
  assert_true(ask(store, "SELECT SUM(bytes) FROM v_allocation WHERE kind = 'allocate' AND stream IS NULL") == 2048);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_placement WHERE placement_id = 1 AND device = 'cpu:1'") == 1);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_busy b WHERE b.operations_us > b.busy_us OR b.busy_us > b.step_us OR"
                         " b.operations_us <> (SELECT SUM(duration_us) FROM v_op o WHERE o.placement_id ="
                         " b.placement_id AND o.step = b.step AND o.device_id = b.device_id)") == 0);
  // Each cause of idle time has its own column.
  static const struct {
    const char *column;
    double us;
  } causes[] = {{"operations_us", 4},
                {"busy_us", 4.1},
                {"idle_launch_us", 1},
                {"idle_transfer_us", 2},
                {"idle_dependency_us", 0.9},
                {"idle_end_us", 2},
                {"longest_launch_gap_us", 0.7},
                {"operations", 1},
                {"step_us", 10}};
  for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
    char sql[128];
    snprintf(sql, sizeof sql, "SELECT %s FROM v_busy WHERE device = 'cpu:0' AND step = 1 AND placement_id = 0",
             causes[i].column);
    if (fabs(ask(store, sql) - causes[i].us) > 1e-9) fail_msg("%s is %g", causes[i].column, ask(store, sql));
  }
  struct tfc_profile_busy counted = {.operations = 1, .operations_ns = 2, .busy_ns = 3};
  counted.idle.launch_ns = 4, counted.idle.transfer_ns = 5, counted.idle.dependency_ns = 6, counted.idle.end_ns = 7;
  counted.idle.longest_launch_gap_ns = 8;
  struct tfc_store_busy row = tfc_store_busy_of(9, 10, &counted);
  assert_true(row.operations == 1 && row.operations_ns == 2 && row.busy_ns == 3 && row.launch_ns == 4);
  assert_true(row.transfer_ns == 5 && row.dependency_ns == 6 && row.end_ns == 7 && row.launch_gap_ns == 8);
  assert_true(row.step == 9 && row.device_id == 10);
  struct tfc_text text = {0};
  assert_ok(tfc_store_get_answer(store, run, &text));
  assert_string_equal(text.data, "{\"run\": 1}");
  tfc_text_deinit(&text);
  assert_ok(tfc_store_get_state(store, run, "options", &text));
  assert_string_equal(text.data, "{}");
  tfc_text_deinit(&text);
  int64_t found = 0;
  assert_ok(tfc_store_find_run(store, -1, &found));
  assert_int_equal(found, 1);
  assert_fails(tfc_store_find_run(store, 7, &found), TFC_NOT_FOUND, "no run 7");
  assert_fails(tfc_store_find_interrupted(store, -1, "options", &found), TFC_NOT_FOUND, "no interrupted run");
  assert_fails(tfc_store_set_label(store, run, "x"), TFC_DATA_LOSS, "readonly"); // readers cannot write
  tfc_store_close(store);
}

// Tests how a transfer is made: devices of one memory space hand tensors over, virtual devices of several spaces copy
// on one GPU.
static void test_how(void **state) {
  (void)state;
  static const struct {
    const char *labels[2];
    uint32_t spaces[2];
    const char *how;
  } cases[] = {{{"measured", "measured"}, {0, 0}, "handed over"},
               {{"measured", "measured"}, {2000, 2001}, "copy"},
               {{"virtual", "virtual"}, {3000, 3001}, "copy on one GPU"},
               {{"virtual", "virtual"}, {3000, 3000}, "handed over"},
               {{"virtual", "measured"}, {3000, 0}, "copy"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct tfc_store *store = NULL;
    int64_t run = 0;
    char sql[128];
    assert_ok(tfc_store_open(path, &writing, &store));
    assert_ok(add_run(store, &run));
    assert_ok(tfc_store_begin(store));
    for (uint32_t d = 0; d < 2; d++) {
      const struct tfc_store_device device = {.device_id = d,
                                              .name = d ? "b" : "a",
                                              .kind = "x",
                                              .label = cases[i].labels[d],
                                              .memory_limit = UINT64_MAX,
                                              .memory_space = cases[i].spaces[d]};
      assert_ok(tfc_store_add_devices(store, run, &device, 1));
    }
    assert_ok(tfc_store_commit(store));
    assert_ok(add_candidate(store, run, 0, 10));
    for (int k = 0; k < 2; k++) {
      snprintf(sql, sizeof sql, "SELECT COUNT(*) > 0 AND MIN(how = '%s') FROM %s WHERE run_id = %lld", cases[i].how,
               k ? "v_link" : "v_transfer", (long long)run);
      if (ask(store, sql) != 1) fail_msg("%s: not '%s'", k ? "v_link" : "v_transfer", cases[i].how);
    }
    tfc_store_close(store);
  }
}

// Works of a captured segment depend on each other in order; there is no such order between works of two launches.
static void test_gaps_of_segments(void **state) {
  (void)state;
  static const struct { // the second launch has higher numbers and its works begin first, on another stream
    uint32_t launch, node;
    int64_t start_ns, end_ns;
  } seen[] = {{9, 2, 500, 900},   {5, 1, 1000, 3000}, {9, 3, 950, 4000},
              {5, 2, 2900, 5000}, {0, 0, 7000, 8000}, {5, 3, 25000, 26000}};
  struct tfc_activity_work works[6] = {0};
  struct tfc_store *store = NULL;
  int64_t run = 0;
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(add_run(store, &run));
  assert_ok(add_candidate(store, run, 0, 10));
  for (int i = 0; i < 6; i++) {
    works[i] = (struct tfc_activity_work){.kind = i == 5 ? TFC_ACTIVITY_COPY : TFC_ACTIVITY_KERNEL,
                                          .start_ns = seen[i].start_ns,
                                          .end_ns = seen[i].end_ns,
                                          .correlation = seen[i].launch ? seen[i].launch : 77,
                                          .graph_node = seen[i].launch ? 100 + (uint64_t)i : 0,
                                          .uid = seen[i].node,
                                          .grid = {2, 3, 5},
                                          .block = {7, 11, 13},
                                          .registers = 17,
                                          .shared = 19};
    snprintf(works[i].name, sizeof works[i].name, "work %d", i);
  }
  assert_ok(tfc_store_begin(store));
  assert_ok(tfc_store_add_works(store, (int64_t)ask(store, "SELECT MAX(placement) FROM placement"), 3, 0, works, 6));
  assert_ok(tfc_store_commit(store));
  assert_true(ask(store, "SELECT COUNT(*) FROM v_segment_gap") == 3);
  assert_true(ask(store, "SELECT gap_us FROM v_segment_gap WHERE segment = 5 AND place = 1 AND name = 'work 3'") == 0);
  assert_true(ask(store, "SELECT gap_us FROM v_segment_gap WHERE segment = 5 AND place = 2 AND name_before = 'work 3'"
                         " AND name = 'work 5' AND step = 3") == 20);
  assert_true(fabs(ask(store, "SELECT gap_us FROM v_segment_gap WHERE segment = 9 AND place = 1") - 0.05) < 1e-9);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_kernel WHERE segment IS NULL") == 1);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_kernel WHERE grid = '2x3x5' AND block = '7x11x13' AND registers = 17"
                         " AND shared_bytes = 19") == 5);
  assert_true(ask(store, "SELECT SUM(segment) FROM v_copy") == 5);
  tfc_store_close(store);
}

static void test_nan_is_refused(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  int64_t run = 0;
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(add_run(store, &run));
  assert_ok(tfc_store_begin(store));
  int64_t key = 0;
  struct tfc_store_placement p = {.role = "candidate",
                                  .name = "#",
                                  .state = "ok",
                                  .label = "measured",
                                  .episode = 1,
                                  .simulated_us = NAN,
                                  .median_us = NAN,
                                  .reward = -1};
  assert_fails(tfc_store_add_placement(store, run, &p, NULL, 0, &key), TFC_DATA_LOSS, "CHECK constraint");
  assert_ok(tfc_store_begin(store));
  p.median_us = 1;
  p.reward = INFINITY;
  assert_fails(tfc_store_add_placement(store, run, &p, NULL, 0, &key), TFC_INVALID_ARGUMENT, "finite");
  p.reward = -1, p.median_us = 1;
  assert_ok(tfc_store_add_placement(store, run, &p, NULL, 0, &key));
  assert_fails(tfc_store_set_final(store, key, NULL, NAN, 1, 1, 5), TFC_INVALID_ARGUMENT, "finite");
  tfc_store_close(store);
}

static void test_run_ids_ascend(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  int64_t run = 0, deleted = 0, key = 0;
  assert_ok(tfc_store_open(path, &writing, &store));
  for (int i = 1; i <= 3; i++) {
    assert_ok(add_run(store, &run));
    assert_int_equal(run, i);
    assert_ok(add_candidate(store, run, 0, 5));
  }
  assert_ok(tfc_store_gc(store, 0, &deleted));
  assert_int_equal(deleted, 3);
  assert_true(ask(store, "SELECT COUNT(*) FROM op") == 0);
  assert_true(ask(store, "SELECT COUNT(*) FROM assignment") == 0);
  assert_ok(add_run(store, &run));
  assert_int_equal(run, 4); // the id of a removed run is not used again
  assert_ok(tfc_store_find_interrupted(store, -1, "options", &key));
  assert_int_equal(key, 4);
  assert_ok(add_run(store, &run));
  assert_ok(tfc_store_gc(store, 1, &deleted));
  assert_int_equal(deleted, 1);
  assert_true(ask(store, "SELECT MIN(run_id) FROM v_run") == 5);
  assert_fails(tfc_store_gc(store, -1, &deleted), TFC_INVALID_ARGUMENT, "-1");
  tfc_store_close(store);
}

static void test_raw_rows_can_be_dropped(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  int64_t run = 0;
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(add_run(store, &run));
  assert_ok(add_candidate(store, run, 0, 5));
  assert_ok(tfc_store_begin(store));
  assert_ok(tfc_store_drop_raw(store, 1));
  assert_ok(tfc_store_commit(store));
  assert_true(ask(store, "SELECT COUNT(*) FROM v_op") == 0);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_synchronization") == 0);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_op_total") == 1);
  assert_true(ask(store, "SELECT COUNT(*) FROM v_step") == 2);
  tfc_store_close(store);
}

// A database from elsewhere may have a view whose query never ends, or a trigger. Views of tfc's are made again, for
// readers in a copy; what stands in the place of a table, or on it, is refused. The user's own views stay.
static void test_changed_by_others(void **state) {
  (void)state;
#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
#define VERSION "PRAGMA user_version = " TEXT_OF(TFC_SCHEMA_VERSION)
#define ENDLESS "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT x AS run_id FROM t"
  static const struct {
    const char *make, *undo;
  } refused[] = {
      {"ALTER TABLE run RENAME TO other; CREATE VIEW run AS " ENDLESS,
       "DROP VIEW run; ALTER TABLE other RENAME TO run"},
      {"CREATE TRIGGER t AFTER UPDATE ON run BEGIN DELETE FROM device; END", "DROP TRIGGER t"},
      {"CREATE TRIGGER t INSTEAD OF DELETE ON v_run BEGIN DELETE FROM device; END", "DROP TRIGGER t"},
      {"PRAGMA user_version = -5", VERSION},
      {"PRAGMA user_version = 0", VERSION},
  };
  const struct tfc_store_options reading = {.write = false};
  struct tfc_store *store = NULL;
  int64_t run = 0;
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(tfc_store_begin(store));
  assert_ok(tfc_store_add_run(store, &(struct tfc_store_run){.program = "test", .graph = "g"}, &run));
  assert_ok(tfc_store_commit(store));
  tfc_store_close(store);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    change_database(path, refused[i].make);
    tfc_status s = tfc_store_open(path, &reading, &store);
    if (tfc_status_code(s) != TFC_INVALID_ARGUMENT) fail_msg("%s: was read", refused[i].make);
    tfc_status_free(s);
    s = tfc_store_open(path, &writing, &store);
    if (tfc_status_code(s) != TFC_DATA_LOSS) fail_msg("%s: was written", refused[i].make);
    tfc_status_free(s);
    change_database(path, refused[i].undo);
  }
  change_database(path, "DROP VIEW v_run; CREATE VIEW v_run AS " ENDLESS
                        "; CREATE VIEW mine AS SELECT COUNT(*) AS n FROM run");
  for (int writes = 0; writes < 2; writes++) {
    static const char *const queries[] = {"SELECT COUNT(*) FROM v_run", "SELECT n FROM mine"};
    assert_ok(tfc_store_open(path, writes ? &writing : &reading, &store));
    for (int k = 0; k < 2; k++) {
      sqlite3_stmt *q = NULL;
      assert_int_equal(sqlite3_prepare_v2(tfc_store_handle(store), queries[k], -1, &q, NULL), SQLITE_OK);
      assert_int_equal(sqlite3_step(q), SQLITE_ROW);
      assert_int_equal(sqlite3_column_int64(q, 0), 1);
      sqlite3_finalize(q);
    }
    tfc_store_close(store);
  }
}

// Measurements that drivers store are replaced by device and key, and kept when runs are removed. A database of schema
// 2 is upgraded.
static void test_tuning(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  char *lines = NULL;
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(tfc_store_get_tuning(store, &lines));
  assert_string_equal(lines, "");
  free(lines);
  assert_ok(tfc_store_put_tuning(store, "A GPU\tconv 1\t0 1 3\nno fields\nA GPU\tconv 2\t1 4 0\n"));
  assert_ok(tfc_store_put_tuning(store, "A GPU\tconv 1\t1 7 0"));
  assert_ok(tfc_store_put_tuning(store, NULL));
  assert_ok(tfc_store_get_tuning(store, &lines));
  assert_string_equal(lines, "A GPU\tconv 1\t1 7 0\nA GPU\tconv 2\t1 4 0\n");
  free(lines);
  const int undone = sqlite3_exec(
      tfc_store_handle(store),
      "DROP VIEW v_op; DROP VIEW v_tuning; DROP TABLE tuning; DROP VIEW v_synchronization;"
      " DROP VIEW v_allocation; DROP TABLE gpu_call; ALTER TABLE op DROP COLUMN launched_ns;"
      " DROP VIEW v_device; DROP VIEW v_link; DROP VIEW v_transfer; ALTER TABLE device DROP COLUMN memory_space;"
      " ALTER TABLE device DROP COLUMN math; DROP VIEW v_segment_gap; DROP VIEW v_kernel; DROP VIEW v_copy;"
      " DROP VIEW v_stream; ALTER TABLE work DROP COLUMN segment;"
      "PRAGMA user_version = 2",
      NULL, NULL, NULL);
  assert_int_equal(undone, SQLITE_OK);
  tfc_store_close(store);
  // opened for reading only, the database is not upgraded
  assert_ok(tfc_store_open(path, &(struct tfc_store_options){0}, &store));
  assert_ok(tfc_store_get_tuning(store, &lines));
  assert_string_equal(lines, "");
  free(lines);
  tfc_store_close(store);
  int64_t run = 0;
  assert_ok(tfc_store_open(path, &writing, &store));
  assert_ok(add_run(store, &run));
  assert_ok(add_candidate(store, run, 0, 10));
  assert_ok(tfc_store_put_tuning(store, "A GPU\tconv 3\t0 0 0\n"));
  sqlite3_stmt *q = NULL;
  assert_int_equal(sqlite3_prepare_v2(tfc_store_handle(store),
                                      "SELECT COUNT(*), SUM(launched_us), SUM(launch_to_start_us) FROM v_op WHERE"
                                      " launched_us IS NOT NULL",
                                      -1, &q, NULL),
                   SQLITE_OK);
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  int count = sqlite3_column_int(q, 0);
  assert_true(count > 0);
  assert_true(fabs(sqlite3_column_double(q, 1) - 1.5 * count) < 1e-9);
  assert_true(fabs(sqlite3_column_double(q, 2) - 3.0 * count) < 1e-9);
  sqlite3_finalize(q);
  tfc_store_close(store);
}

// Makes every write from the n-th on fail, for every n, and checks the database: it has every batch whose commit
// succeeded, no part of another, is intact, and can be written again.
static void test_every_write_fails_once(void **state) {
  (void)state;
  install_failing_vfs();
  struct tfc_store_options failing = {.write = true, .purpose = "store test", .vfs = "failing"};
  bool finished = false;
  int rounds = 0;
  for (long n = 0; !finished; n++, rounds++) {
    assert_true(n < 5000);
    int committed = -1; // -1: there is no run yet
    struct tfc_store *store = NULL;
    int64_t run = 0;
    unlink(path);
    char journal[128];
    snprintf(journal, sizeof journal, "%s-journal", path);
    unlink(journal);
    calls_left = n;
    tfc_status s = tfc_store_open(path, &failing, &store);
    if (!s) s = add_run(store, &run);
    if (!s) committed = 0;
    for (int i = 0; i < 4 && !s; i++) {
      s = add_candidate(store, run, i, 10 - i);
      if (!s) committed++;
    }
    finished = !s;
    if (s && tfc_status_code(s) != TFC_DATA_LOSS) fail_msg("write %ld: %s", n, tfc_status_message(s));
    tfc_status_free(s);
    tfc_store_close(store); // the disk is still full
    calls_left = -1;
    assert_ok(tfc_store_open(path, &failing, &store));
    sqlite3_stmt *q = NULL;
    sqlite3_prepare_v2(tfc_store_handle(store), "PRAGMA integrity_check", -1, &q, NULL);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(q, 0), "ok");
    sqlite3_finalize(q);
    double runs = ask(store, "SELECT COUNT(*) FROM v_run"), episodes = ask(store, "SELECT COUNT(*) FROM v_episode");
    // A commit that reported failure may still have reached the disk (its last sync failed), so there may be one batch
    // more.
    if (committed < 0) assert_true(runs <= 1 && episodes == 0);
    if (committed >= 0) assert_true(runs == 1 && episodes >= committed && episodes <= committed + 1);
    assert_true(ask(store, "SELECT COUNT(*) FROM op") == 4 * episodes);
    assert_true(ask(store, "SELECT COUNT(*) FROM assignment") == 2 * episodes);
    if (runs == 1) assert_true(ask(store, "SELECT COUNT(*) FROM node") == 3);
    assert_ok(add_run(store, &run)); // and the database can be written to again
    tfc_store_close(store);
  }
  assert_true(rounds > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_views_have_rows, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_how, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_gaps_of_segments, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_nan_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_run_ids_ascend, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_raw_rows_can_be_dropped, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_changed_by_others, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_tuning, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_every_write_fails_once, set_up, tear_down),
  };
  return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
