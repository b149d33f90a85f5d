// Runs whole jobs in suites: the sources of the job, played on a machine whose step times are known (played_job.h), and
// what the suites read of the log, the database and the outcome.
#ifndef TFC_TESTS_PLACER_PLAYED_WHOLE_JOB_H
#define TFC_TESTS_PLACER_PLAYED_WHOLE_JOB_H

#include "tests/common/test.h"

#include <sqlite3.h>
#include <unistd.h>

#include "placer/measure/evaluator.h"
#include "tests/placer/played_job.h"

// The sources of the job, whose calls of the measurer, of searches and of the clock are played.
#include "placer/job/clock.c"
#include "placer/job/measuring.c"
#include "placer/job/turns.c"
#define measuring flight_measuring
#define measured flight_measured
#include "placer/job/in_flight.c"
#undef measuring
#undef measured
#include "placer/job/evaluate.c"
#include "placer/job/final.c"
#include "placer/job/job.c"
// A database that is only read by this process: it need not wait for the disk.
static tfc_status played_store(const char *path, const struct tfc_store_options *options, struct tfc_store **to) {
  TFC_RETURN_IF_ERROR(tfc_store_open(path, options, to));
  assert_int_equal(sqlite3_exec(tfc_store_handle(*to), "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
  return NULL;
}
#define tfc_store_open played_store
#include "placer/job/journal.c"
#undef tfc_store_open
#include "placer/job/learn.c"
#include "placer/job/profile.c"
#include "placer/job/repeat.c"
#include "placer/job/resume.c"
#include "placer/job/rivals.c"
#include "placer/job/search.c"
#include "placer/measure/evaluator.c"

static char db_path[64];
static struct tfc_job_outcome out;

// A job of 100 s whose searches find nothing that the model does not know (--model prior).
static struct tfc_job_options options_of(void) {
  return (struct tfc_job_options){.program = "played",
                                  .command = "played job",
                                  .graph_path = TFC_SOURCE_DIR "/examples/mlp.pb",
                                  .graph = play.graph,
                                  .step = &play.step,
                                  .devices = "3",
                                  .execution = {.seed = 3, .threads = 1},
                                  .measurements = 40,
                                  .seconds = 100,
                                  .prior = true,
                                  .database = db_path,
                                  .cancel = &play.cancel,
                                  .event = heard};
}

static void remove_files(void) {
  static const char *const more[] = {"", "-wal", "-shm", "-journal", ".lock"};
  char path[80];
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
    snprintf(path, sizeof path, "%s%s", db_path, more[i]);
    unlink(path);
  }
}

// --- Reading the log and the database --------------------------------------------------------------------------------
// The log has this line, with any second before it if `line` has none.
__attribute__((unused)) static void logged(const char *line) {
  char whole[1024];
  snprintf(whole, sizeof whole, "%s%s\n", line[0] >= '0' && line[0] <= '9' ? "\n" : " ", line);
  if (!strstr(play.log.data, whole)) fail_msg("no line '%s' in:\n%s", line, play.log.data);
}
__attribute__((unused)) static void not_logged(const char *text) {
  if (strstr(play.log.data, text)) fail_msg("'%s' in:\n%s", text, play.log.data);
}
__attribute__((unused)) static void logged_part(const char *text) {
  if (!strstr(play.log.data, text)) fail_msg("no '%s' in:\n%s", text, play.log.data);
}
__attribute__((unused)) static uint32_t times_logged(const char *text) {
  uint32_t n = 0;
  for (const char *at = play.log.data; (at = strstr(at, text)); at++) n++;
  return n;
}

// The rows of a query, columns separated by blanks and rows by semicolons.
__attribute__((unused)) static void rows_are(const char *sql, const char *expected) {
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  struct tfc_text got = {0};
  assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  tfc_text_printf(&got, "%s", "");
  while (sqlite3_step(q) == SQLITE_ROW) {
    if (got.size) tfc_text_printf(&got, "; ");
    for (int c = 0; c < sqlite3_column_count(q); c++) {
      if (c) tfc_text_printf(&got, " ");
      if (sqlite3_column_type(q, c) == SQLITE_FLOAT)
        tfc_text_printf(&got, "%.6g", sqlite3_column_double(q, c));
      else if (sqlite3_column_type(q, c) == SQLITE_NULL)
        tfc_text_printf(&got, "-");
      else
        tfc_text_printf(&got, "%s", (const char *)sqlite3_column_text(q, c));
    }
  }
  sqlite3_finalize(q);
  sqlite3_close(db);
  if (strcmp(got.data ? got.data : "", expected) != 0)
    fail_msg("%s:\n   %s\nis not\n   %s", sql, got.data ? got.data : "", expected);
  tfc_text_deinit(&got);
}

static void begin(void) {
  remove_files();
  play_begin();
}
static void end(void) {
  tfc_job_outcome_deinit(&out);
  play_end();
  remove_files();
}

// The second at which a line with this text came.
__attribute__((unused)) static double second_of(const char *text) {
  const char *at = strstr(play.log.data, text);
  if (!at) fail_msg("no '%s' in:\n%s", text, play.log.data);
  while (at > play.log.data && at[-1] != '\n') at--;
  return atof(at);
}
// How many candidates the database has measurements of.
__attribute__((unused)) static uint32_t play_measured(void) {
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
  assert_int_equal(sqlite3_prepare_v2(db, "SELECT MAX(episode) FROM placement", -1, &q, NULL), SQLITE_OK);
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  const uint32_t n = (uint32_t)sqlite3_column_int(q, 0);
  sqlite3_finalize(q);
  sqlite3_close(db);
  return n;
}

// The table of the answer, "KIND NAME TIME, ...".
__attribute__((unused)) static void table_is(const char *expected) {
  struct tfc_text got = {0};
  for (uint32_t i = 0; i < out.row_count; i++)
    tfc_text_printf(&got, "%s%s %s %.0f", i ? ", " : "", out.rows[i].kind, out.rows[i].name, out.rows[i].median_us);
  assert_string_equal(got.data, expected);
  tfc_text_deinit(&got);
}

__attribute__((unused)) static void show_log(void) {
  if (getenv("TFC_SHOW_LOG")) fprintf(stderr, "%s", play.log.data);
}
// The best placement has the chain a on "acc:0" and the rest on a CPU: 403 us for the chain b with its dispatches, and
// 21 us for "j"; it is what the second round finds. The first finds one that takes 10 us more.
__attribute__((unused)) static const char *const two_rounds[] = {"2220001 heft:1110000 policy:2220002",
                                                                 "2220000 policy:2220001", NULL};

#endif
