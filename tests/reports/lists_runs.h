// The runs of the suites that test tfc-report's lists: one in which every microsecond was chosen by hand (`hand`), and
// one of many operations (`store`); and what these suites ask of a list.
#ifndef TFC_TESTS_REPORTS_LISTS_RUNS_H
#define TFC_TESTS_REPORTS_LISTS_RUNS_H

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/store.h"
#include "reports/query.h"
#include "tests/common/change.h"
#include "tests/common/folder.h"
#include "tests/common/sample_run.h"
#include "tests/common/test.h"
#include "tests/reports/by_hand.h"

static char folder[TEST_FOLDER_SIZE], path[96], by_hand[96];
static struct sample_run sample;
static struct tfc_store *store, *hand;

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "lists")) return -1;
  snprintf(path, sizeof path, "%s/t.db", folder);
  snprintf(by_hand, sizeof by_hand, "%s/hand.db", folder);
  tfc_status s = sample_run_write(path, 3, &sample);
  if (!s) s = write_by_hand(by_hand, "measured");
  if (!s) s = tfc_store_open(path, &(struct tfc_store_options){0}, &store);
  if (!s) s = tfc_store_open(by_hand, &(struct tfc_store_options){0}, &hand);
  if (s) fprintf(stderr, "%s\n", tfc_status_message(s));
  return s ? -1 : 0;
}
static int tear_down(void **state) {
  (void)state;
  tfc_store_close(store);
  tfc_store_close(hand);
  return test_folder_remove(folder);
}

// Writes another run by hand, in the state of by_hand.h, changes its database by SQL (NULL: not), and opens it.
static inline struct tfc_store *made(const char *name, const char *state, const char *sql) {
  char file[128];
  struct tfc_store *db = NULL;
  snprintf(file, sizeof file, "%s/%s.db", folder, name);
  assert_ok(write_by_hand(file, state));
  if (sql) change_database(file, sql);
  assert_ok(tfc_store_open(file, &(struct tfc_store_options){.write = true, .purpose = "test"}, &db));
  return db;
}

static double ask(struct tfc_store *db, const char *sql) {
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(tfc_store_handle(db), sql, -1, &q, NULL) != SQLITE_OK)
    fail_msg("%s: %s", sql, sqlite3_errmsg(tfc_store_handle(db)));
  double x =
      sqlite3_step(q) == SQLITE_ROW && sqlite3_column_type(q, 0) != SQLITE_NULL ? sqlite3_column_double(q, 0) : NAN;
  sqlite3_finalize(q);
  return x;
}
static void assert_near(double value, double expected) {
  if (!(fabs(value - expected) <= 1e-6 * fmax(1, fabs(expected)))) fail_msg("%.9g instead of %.9g", value, expected);
}
static void assert_fits(const struct tfc_text *text) { // checks that no line is longer than 80 columns
  for (const char *p = text->data; *p;) {
    size_t length = strcspn(p, "\n");
    if (length > 80) fail_msg("%zu columns: %.*s", length, (int)length, p);
    p += length + (p[length] == '\n');
  }
}

// Returns the row whose column has this text.
static uint32_t row_of(const struct tfc_table *t, const char *column, const char *text) {
  for (uint32_t r = 0; r < t->row_count; r++)
    if (tfc_str_is(tfc_table_text(t, r, column), text)) return r;
  fail_msg("no row whose %s is %s", column, text);
  return 0;
}
static void assert_said(const struct tfc_text *text, const char *expected) {
  if (!strstr(text->data, expected)) fail_msg("no '%s' in: %s", expected, text->data);
}

#endif
