// Reports of databases in which somebody has put extreme values: every column of every table gets each of them. Reports
// then say something, or name what is wrong, where texts changed in lines of at most 80 columns; under the sanitizers
// nothing overflows, is read or written where it does not belong.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/compare.h"
#include "reports/critical.h"
#include "reports/gaps.h"
#include "reports/lists.h"
#include "reports/memory.h"
#include "reports/nodes.h"
#include "reports/reports.h"
#include "tests/common/change.h"
#include "tests/common/folder.h"
#include "tests/reports/by_hand.h"

static char folder[TEST_FOLDER_SIZE];
static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "extremes");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

// What the run of by_hand.h lacks, so that each table that reports read has rows.
static const char more_rows[] =
    "INSERT INTO link VALUES (1, 0, 1, 1000, 20, 5), (1, 0, 1, 100000, 60, 5), (1, 1, 0, 1000, 20, 5);"
    "INSERT INTO cost VALUES (1, 0, 'cpu', 100, 99, 101, 98, 9), (1, 1, 'cpu', 300, 299, 301, 298, 9);"
    "INSERT INTO op_total SELECT 1, node_id, node_id % 2, 2, 100000, 90000, 200000 FROM node WHERE node_id < 5;"
    "INSERT INTO warning VALUES (1, 1, 'a warning'), (1, 2, 'another');"
    "INSERT INTO placement (placement, run_id, placement_id, role, name, state, label, median_us, q1_us, q3_us, steps,"
    " simulated_us) VALUES (2, 1, 1, 'baseline', 'single:cpu:0', 'ok', 'measured', 700, 690, 710, 9, 650),"
    " (3, 1, 2, 'candidate', 'c', 'ok', 'measured', 590, 580, 599, 9, 500);"
    "INSERT INTO step VALUES (2, 0, 'final', 0, 1, 5000000, 700000), (2, 1, 'in flight', 0, 0, 6000000, 700000);"
    "UPDATE run SET speedup = 1.2, speedup_low = 1.1, speedup_high = 1.3, bound_us = 500, bound_name = 'work',"
    " tau = 0.5, tau_placements = 3, exit_code = 0, cpu_model = 'a processor', host = 'h', message = 'm';";

static int problems; // all are printed, before the test fails

static bool numbers; // numbers were changed: then lines may be too long
static void check_text(const char *what, const struct tfc_text *text) {
  if (numbers) return;
  for (const char *line = text->data; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
    size_t columns = 0;
    for (size_t i = 0, n = strcspn(line, "\n"); i < n; i++) columns += ((unsigned char)line[i] & 0xc0) != 0x80;
    if (columns <= 80) continue;
    problems++;
    print_message("%s: %zu columns: %.200s\n", what, columns, line);
  }
}

// An error is about the database; a report that itself asks something wrong is INTERNAL.
static void check_status(const char *what, tfc_status s) {
  const tfc_code code = tfc_status_code(s);
  // DATA_LOSS: SQLite cannot read what a store that was opened for writing has
  if (s && code != TFC_INVALID_ARGUMENT && code != TFC_NOT_FOUND && code != TFC_DATA_LOSS) {
    problems++;
    print_message("%s: %s: %s\n", what, tfc_code_name(code), tfc_status_message(s));
  }
  tfc_status_free(s);
}

static void report(struct tfc_store *store, const char *what) {
  static tfc_status (*const texts[])(struct tfc_store *, int64_t, struct tfc_text *) = {tfc_report_show,
                                                                                        tfc_report_explain};
  static tfc_status (*const all[])(struct tfc_store *, int64_t, struct tfc_report_lists *) = {
      tfc_report_nodes, tfc_report_critical, tfc_report_gaps, tfc_report_memory};
  struct tfc_text text = {0};
  check_status(what, tfc_report_list(store, &text));
  check_text(what, &text);
  tfc_text_deinit(&text);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    check_status(what, texts[i](store, -1, &text));
    check_text(what, &text);
    tfc_text_deinit(&text);
  }
  for (size_t i = 0; i <= sizeof all / sizeof *all; i++) {
    struct tfc_report_lists lists = {0};
    tfc_status s = i < sizeof all / sizeof *all ? all[i](store, -1, &lists)
                                                : tfc_report_compare(store, (const int64_t[]){1, 1}, 2, &lists);
    if (!s) check_text(what, &lists.text);
    for (uint32_t t = 0; !s && t < lists.count; t++) tfc_table_csv(&lists.tables[t], &text);
    tfc_text_deinit(&text);
    if (!s) tfc_report_lists_deinit(&lists);
    check_status(what, s);
  }
  char path[96];
  uint64_t events;
  snprintf(path, sizeof path, "%s/trace.json", folder);
  check_status(what, tfc_report_trace(store, -1, &(struct tfc_report_trace_options){.last = INT64_MAX}, path, &events));
}

static const char *const integers[] = {"-1", "9223372036854775807"}, *const reals[] = {"9e999"},
                         *const words[] = {"''", "printf('%.*c', 700, 'y')", "'a' || char(27, 10, 8364) || '<\"&'''"};

static int columns_tried;
static void try_column(struct tfc_store *store, const char *table, const char *column, const char *type) {
  const char *const *values = !strcmp(type, "INTEGER") ? integers : !strcmp(type, "REAL") ? reals : words;
  const size_t count = !strcmp(type, "INTEGER") ? sizeof integers / sizeof *integers
                       : !strcmp(type, "REAL")  ? sizeof reals / sizeof *reals
                                                : sizeof words / sizeof *words;
  struct sqlite3 *db = tfc_store_handle(store);
  columns_tried++;
  numbers = strcmp(type, "TEXT") != 0;
  for (size_t i = 0; i <= count; i++) {
    char sql[400], what[500];
    snprintf(sql, sizeof sql, "UPDATE OR IGNORE %.39s SET %.39s = %s", table, column, i < count ? values[i] : "NULL");
    snprintf(what, sizeof what, "%s", sql);
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db)) report(store, what);
    if (sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", what, sqlite3_errmsg(db));
  }
}

// Gives a node or a device another number in all tables, so that their rows still belong together.
static void renumber(struct tfc_store *store, bool device, const char *from, const char *to) {
  static const char *const places[2][12] = {{"node.node_id", "op.node_id", "op_total.node_id", "transfer.node_id",
                                             "edge.producer", "edge.consumer", "cost.node_id"},
                                            {"device.device_id", "op.device_id", "op_total.device_id", "busy.device_id",
                                             "memory.device_id", "assignment.device_id", "transfer.source",
                                             "transfer.target", "link.source", "link.target"}};
  struct sqlite3 *db = tfc_store_handle(store);
  char sql[200], what[80];
  if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
  for (size_t i = 0; places[device][i]; i++) {
    const char *place = places[device][i], *column = strchr(place, '.') + 1;
    snprintf(sql, sizeof sql, "UPDATE %.*s SET %s = %s WHERE %s = %s", (int)(column - place - 1), place, column, to,
             column, from);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  }
  snprintf(what, sizeof what, "%s %s becomes %s", device ? "device" : "node", from, to);
  numbers = true;
  report(store, what);
  struct tfc_text page = {0};
  check_status(what, tfc_report_html(store, -1, &page));
  tfc_text_deinit(&page);
  if (sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
}

static void open_run(struct tfc_store **out) {
  char path[96];
  static int count;
  snprintf(path, sizeof path, "%s/run%d.db", folder, count++);
  assert_ok(write_by_hand(path, "measured"));
  change_database(path, more_rows);
  assert_ok(tfc_store_open(path, &(struct tfc_store_options){.write = true, .purpose = "test"}, out));
}

static void test_numbers(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  open_run(&store);
  static const char *const to[] = {"-1", "65", "65536", "16777216", "2147483647", "4294967295", "4294967296"};
  for (int device = 0; device < 2; device++)
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) renumber(store, device, device ? "1" : "4", to[i]);
  assert_int_equal(problems, 0);
  tfc_store_close(store);
}

static void test_extremes(void **state) {
  (void)state;
  struct tfc_store *store = NULL;
  open_run(&store);
  report(store, "unchanged");
  struct sqlite3_stmt *q = NULL;
  assert_int_equal(
      sqlite3_prepare_v2(tfc_store_handle(store),
                         "SELECT t.name, c.name, c.type FROM pragma_table_list t, pragma_table_info(t.name) c WHERE"
                         " t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND c.type IN ('INTEGER', 'REAL', 'TEXT')",
                         -1, &q, NULL),
      SQLITE_OK);
  char names[400][3][40];
  int count = 0;
  for (; sqlite3_step(q) == SQLITE_ROW && count < 400; count++)
    for (int i = 0; i < 3; i++) snprintf(names[count][i], 40, "%s", (const char *)sqlite3_column_text(q, i));
  sqlite3_finalize(q);
  for (int i = 0; i < count; i++) try_column(store, names[i][0], names[i][1], names[i][2]);
  assert_true(columns_tried > 150);
  assert_int_equal(problems, 0);
  tfc_store_close(store);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_extremes), cmocka_unit_test(test_numbers)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
