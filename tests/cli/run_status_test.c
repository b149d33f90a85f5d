// How fast a job trains: the rates of tasks that tell their steps now and then, on the terminal and in the events file.
// Clock, tasks and file are the test's own.
#include "tests/common/test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "cli/run_status.h"
#include "runtime/base/clock.h"
#include "runtime/cluster/member.h"
#include "runtime/io/events.h"
#include "tests/common/caught.h"

// --- Stand-ins -------------------------------------------------------------------------------------------------------

static int64_t clock_ns;
static int64_t clock_here(void) {
  return clock_ns;
}
enum { PS, FIRST, SECOND, TASKS };
static struct {
  uint64_t steps;
  int64_t ns;
} telling[TASKS];
static uint64_t steps_here(const struct tfc_member *m, uint32_t rank, int64_t *out_ns) {
  (void)m;
  *out_ns = telling[rank].ns;
  return telling[rank].steps;
}
static bool is_client_here(const struct tfc_member *m, uint32_t rank) {
  (void)m;
  return rank != PS;
}
static uint32_t rank_here(const struct tfc_member *m) {
  (void)m;
  return FIRST;
}
static char events_text[1000]; // "STEP TAG VALUE", a line each
static bool full, no_folder;
static int closed_files;
static tfc_status create_here(const char *folder, struct tfc_events **out) {
  if (no_folder) return tfc_status_make(TFC_DATA_LOSS, "no %s", folder);
  *out = (struct tfc_events *)(uintptr_t)&events_text;
  return NULL;
}
static tfc_status scalar_here(struct tfc_events *e, int64_t step, tfc_str tag, float value) {
  const size_t at = strlen(events_text);
  assert_true((char *)e == events_text);
  snprintf(events_text + at, sizeof events_text - at, "%lld %.*s %g\n", (long long)step, TFC_STR_ARG(tag),
           (double)value);
  return full ? tfc_status_make(TFC_DATA_LOSS, "full") : NULL;
}
static tfc_status close_here(struct tfc_events *e) {
  if (e) closed_files++;
  return NULL;
}
#define tfc_now_ns clock_here
#define tfc_member_steps steps_here
#define tfc_member_is_client is_client_here
#define tfc_member_rank rank_here
#define tfc_events_create create_here
#define tfc_events_scalar scalar_here
#define tfc_events_close close_here
#include "cli/run_status.c"
#undef tfc_now_ns

static void at(double seconds) {
  clock_ns = 1000000000 + (int64_t)(1e9 * seconds);
}
static void tells(uint32_t rank, uint64_t steps, double seconds) {
  telling[rank].steps = steps, telling[rank].ns = 1000000000 + (int64_t)(1e9 * seconds);
}

static void test_rates(void **state) {
  (void)state;
  static struct test_caught err;
  struct tfc_cluster_spec spec = {0};
  const char *fetched_names[] = {"loss:0", "vector:0", "count:0"};
  const struct run_options o = {.fetches = {fetched_names, 3}};
  const struct run_setup setup = {.options = &o, .tasks = &spec};
  struct run_status *status = NULL;
  struct tfc_tensor fetched[3] = {{0}};
  assert_ok(tfc_cluster_spec_parse(TFC_STR("ps=1,worker=2"), &spec));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE_SCALAR, &fetched[0]));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(2), &fetched[1]));
  assert_ok(tfc_tensor_create(TFC_INT32, &TFC_SHAPE_SCALAR, &fetched[2]));
  *(float *)fetched[0].data = 0.5f;
  // The ps has told of 100 parts two seconds ago, and the second worker has told nothing yet.
  at(10), tells(PS, 100, 8), tells(FIRST, 7, 10);
  telling[SECOND].ns = 0, telling[SECOND].steps = 0;
  assert_ok(run_status_open(&setup, "folder", &status));
  assert_string_equal(run_status_text(status), "");
  tells(PS, 700, 14), tells(FIRST, 19, 14.9), tells(SECOND, 2, 14);
  at(14.9);
  assert_string_equal(run_status_text(status), ""); // it looks every five seconds
  at(15), tells(FIRST, 20, 15);
  assert_string_equal(run_status_text(status), // 600 in 6 s, 13 in 5 s, 2 in 4 s
                      "a second: ps:0 100 parts of steps, worker:0 2.60 steps, worker:1 0.50 steps");
  at(16), tells(FIRST, 30, 16);
  assert_string_equal(run_status_text(status),
                      "a second: ps:0 100 parts of steps, worker:0 2.60 steps, worker:1 0.50 steps");
  // Only who has told something new has a rate; a task that began anew has none.
  at(20), tells(FIRST, 270, 20), tells(SECOND, 1, 19);
  assert_string_equal(run_status_text(status), "a second: worker:0 50.0 steps");
  at(25);
  assert_string_equal(run_status_text(status), "");
  // Events: every ten seconds, or at once; since they were last written.
  assert_ok(run_status_write(status, 5, fetched, true));
  assert_string_equal(events_text, "5 parts_of_steps_per_second/ps/0 100\n"
                                   "5 global_step/sec 26.3\n5 steps_per_second/worker/0 26.3\n"
                                   "5 steps_per_second/worker/1 0.111111\n5 loss:0 0.5\n");
  events_text[0] = 0;
  at(34.9), tells(FIRST, 272, 34);
  assert_ok(run_status_write(status, 6, fetched, false));
  assert_string_equal(events_text, "");
  at(35);
  assert_ok(run_status_write(status, 7, fetched, false)); // 2 in 14 s
  assert_string_equal(events_text, "7 global_step/sec 0.142857\n7 steps_per_second/worker/0 0.142857\n7 loss:0 0.5\n");
  events_text[0] = 0;
  at(36), tells(FIRST, 282, 36);
  assert_ok(run_status_write(status, 8, fetched, false));
  assert_string_equal(events_text, "");
  full = true;
  assert_fails(run_status_write(status, 8, fetched, true), TFC_DATA_LOSS, "full");
  full = false;
  // In the end: since the beginning.
  test_catch(&err, stderr);
  run_status_say(status);
  test_caught_end(&err);
  assert_string_equal(err.text, "a second: ps:0 100 parts of steps, worker:0 10.6 steps, worker:1 0.11 steps\n");
  test_catch(&err, stderr);
  run_status_say(status); // nothing is new
  test_caught_end(&err);
  assert_string_equal(err.text, "");
  assert_ok(run_status_close(status));
  assert_int_equal(closed_files, 1);
  assert_ok(run_status_close(NULL));
  no_folder = true;
  assert_fails(run_status_open(&setup, "folder", &status), TFC_DATA_LOSS, "no folder");
  assert_int_equal(closed_files, 1);
  for (int i = 0; i < 3; i++) tfc_tensor_release(&fetched[i]);
  tfc_cluster_spec_deinit(&spec);
}

static void test_one_rate(void **state) {
  (void)state;
  static const struct {
    struct told from, to;
    double rate;
  } cases[] = {{{10, 1000000000}, {20, 3000000000}, 5},  {{10, 1000000000}, {10, 2000000000}, 0},
               {{10, 1000000000}, {20, 1000000000}, -1}, {{10, 1000000000}, {20, 999999999}, -1},
               {{10, 1000000000}, {9, 2000000000}, -1},  {{0, 0}, {0, 1}, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_true(rate(&cases[i].from, &cases[i].to) == cases[i].rate);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_rate), cmocka_unit_test(test_rates)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
