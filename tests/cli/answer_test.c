// Compares what tfc-place prints of an answer with outcomes that were made by hand: the table under both objectives,
// devices, what they send, and the sentences below.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/place_local.c"
#include "tests/common/caught.h"

static const double *busy; // [device] the shares of the step that devices were busy, as the database has them
// Expects that the answer is printed as this text.
static void prints(const struct place_options *o, const struct tfc_job_outcome *out, const char *expected) {
  static struct test_caught caught;
  test_catch(&caught, stdout);
  print_answer(o, out, NULL, busy);
  test_caught_end(&caught);
  const char *text = caught.text;
  size_t same = 0;
  while (text[same] && text[same] == expected[same]) same++;
  if (text[same] || expected[same]) fail_msg("'%.300s' where '%.300s' is expected", text + same, expected + same);
}

static char *copy(const char *text) {
  return (char *)(uintptr_t)text; // nothing here is freed
}

#define NOTHING .median_us = NAN, .q1_us = NAN, .q3_us = NAN, .simulated_us = NAN, .load_us = NAN
#define UNTIMED .speedup = NAN, .low = NAN, .high = NAN

// The row of an answer that was measured in 30 steps, and whose load was measured, too.
static struct tfc_job_row answer_row(double speedup, double low, double high) {
  return (struct tfc_job_row){.name = copy("found"),
                              .kind = "answer",
                              .median_us = 900,
                              .q1_us = 890,
                              .q3_us = 910,
                              .steps = 30,
                              .simulated_us = NAN,
                              .load_us = 200,
                              .load_steps = 24,
                              .speedup = speedup,
                              .low = low,
                              .high = high,
                              .interval_steps = 24};
}

static void test_step(void **state) {
  (void)state;
  struct tfc_job_row rows[] = {
      {.name = copy("whole"),
       .kind = "whole",
       .median_us = 204.44,
       .q1_us = 198.31,
       .q3_us = 253.4,
       .steps = 30,
       .simulated_us = NAN,
       .load_us = NAN,
       .speedup = 2.978,
       .low = 2.234,
       .high = 3.651,
       .interval_steps = 30,
       .note = copy("operations side by side")},
      {.name = copy("found"),
       .kind = "answer",
       .median_us = 500,
       .q1_us = 990,
       .q3_us = 1010,
       .steps = 30,
       .simulated_us = 480,
       .load_us = NAN,
       .speedup = 2,
       .low = 1.5,
       .high = 2.5,
       .interval_steps = 30},
      {.name = copy("single:cpu:0"),
       .kind = "single",
       .median_us = 1000,
       .q1_us = 1000,
       .q3_us = 1100,
       .steps = 7,
       .simulated_us = NAN,
       .load_us = NAN,
       .speedup = 1,
       .low = 1,
       .high = 1},
      {.name = copy("single:cpu:1"),
       .kind = "single",
       .state = TFC_RESULT_NO_FIT,
       NOTHING,
       UNTIMED,
       .note = copy("cpu:1 needs 2.0 MB")},
      {.name = copy("expert"),
       .kind = "baseline",
       .state = TFC_RESULT_CUT,
       .median_us = 750,
       .q1_us = 740,
       .q3_us = 760,
       .steps = 2,
       .simulated_us = NAN,
       .load_us = NAN,
       UNTIMED},
      {.name = copy("heft"),
       .kind = "heuristic",
       .modelled = true,
       .median_us = NAN,
       .q1_us = NAN,
       .q3_us = NAN,
       .steps = 9,
       .simulated_us = 625,
       .load_us = NAN,
       UNTIMED},
      {.name = copy("etf"), .kind = "heuristic", .state = TFC_RESULT_ILLEGAL, NOTHING, UNTIMED},
      {.name = copy("dls"),
       .kind = "heuristic",
       .state = TFC_RESULT_FAILED,
       NOTHING,
       UNTIMED,
       .note = copy("a message that is so long that it has no room behind the row and goes below it, in two lines")},
  };
  struct tfc_placement_device devices[2] = {{.name = TFC_STR("cpu:0")}, {.name = TFC_STR("cpu:1")}};
  struct tfc_placement placement = {.devices = devices, .device_count = 2};
  static const double shares[] = {0.755, NAN};
  uint64_t peak[] = {1500000, 999}, limit[] = {2000000, TFC_NO_LIMIT}, crossing[] = {9, 7000, 0, 9};
  const struct place_options o = {.db = "t.db"};
  struct tfc_job_outcome out = {.rows = rows,
                                .row_count = sizeof rows / sizeof *rows,
                                .placement = &placement,
                                .device_count = 2,
                                .peak = peak,
                                .limit = limit,
                                .crossing = crossing,
                                .first_line = copy("The first line."),
                                .bound_us = 400,
                                .gap = 0.25,
                                .bound_name = "work",
                                .path = copy("MatMul 61 %"),
                                .tau = 0.8,
                                .tau_placements = 12,
                                .learning = copy("What was learned."),
                                .trace_overhead = 0.0123,
                                .trace_told = true,
                                .untraced_us = 470,
                                .untraced_steps = 20,
                                .lost_workers = 3};
  busy = shares;
  prints(
      &o, &out,
      "The first line.\n\n"
      "  placement           step  quartiles         steps to found  speed-up (95 %)\n"
      "  whole           204.4 us  198.3 .. 253.4 us    30    0.409  2.98 (2.23-3.65)\n"
      "      operations side by side\n"
      "  found           500.0 us  990.0 us .. 1.010 ms    30           2.00 (1.50-2.50)\n"
      "  single:cpu:0    1.000 ms  1.000 .. 1.100 ms     7    2.000\n"
      "  single:cpu:1           -  does not fit in memory, cpu:1 needs 2.0 MB\n"
      "  expert          750.0 us  740.0 .. 760.0 us     2    1.500  stopped early\n"
      "  etf                    -  not allowed\n"
      "  dls                    -\n"
      "      failed, a message that is so long that it has no room behind the row and\n"
      "      goes below it, in two lines\n"
      "  only simulated: heft 625.0 us\n"
      "\n"
      "  device         busy  peak memory  sends\n"
      "  cpu:0        75.5 %       1.5 MB  (its limit is 2.0 MB) 7.0 kB to cpu:1\n"
      "  cpu:1             -        999 B  \n"
      "\n"
      "Lower bound 400.0 us (work); the answer is 25.0 % above it.\n"
      "Critical path (simulated): MatMul 61 %\n"
      "Simulated against measured: Kendall's tau 0.80 over 12 placements.\n"
      "What was learned.\n"
      "Tracing costs 1.2 % of a step.\n"
      "GPUs' records time the steps above; untraced, by the host's clock, the answer takes 470.0 us (median of 20).\n"
      "3 measuring processes were lost on the way.\n");
  busy = NULL;
  // What is not known is left out.
  struct tfc_job_outcome none = {.bound_us = NAN, .tau = NAN, .trace_overhead = NAN};
  prints(&o, &none, "\n");
  none.bound_us = 0;
  prints(&o, &none, "\n");
  none.bound_us = 7, none.gap = 0.001, none.trace_overhead = 0.03;
  prints(&o, &none,
         "\nLower bound 7.00 us; the answer is 0.1 % above it.\n"
         "Tracing costs no more than steps vary (3.0 % of one, as measured).\n");
  none = (struct tfc_job_outcome){.bound_us = NAN,
                                  .tau = NAN,
                                  .trace_overhead = NAN,
                                  .placement = &placement,
                                  .device_count = 2,
                                  .crossing_modelled = true};
  prints(&o, &none,
         "\n  device         busy  peak memory  sends (simulated)\n"
         "  cpu:0             -            -  \n"
         "  cpu:1             -            -  \n"
         "\n");
  // A peak of variables alone is marked; a device without any has none.
  uint64_t variables[] = {1500000, 0};
  none.peak = variables, none.peak_part = true;
  prints(&o, &none,
         "\n  device         busy  peak memory  sends (simulated)\n"
         "  cpu:0             -      >1.5 MB  \n"
         "  cpu:1             -          0 B  \n"
         "  >: of the variables alone; the tensors of the step come on top\n"
         "\n");
  none.peak = NULL, none.device_count = 0;
  prints(&o, &none, "\n");
}

static void test_throughput(void **state) {
  (void)state;
  struct tfc_job_row rows[] = {answer_row(4, 3.5, 4.5),
                               {.name = copy("single:cpu:0"),
                                .kind = "single",
                                .median_us = 800,
                                .q1_us = 790,
                                .q3_us = 810,
                                .steps = 24,
                                .simulated_us = NAN,
                                .load_us = 800,
                                .load_steps = 24,
                                .speedup = 1,
                                .low = 1,
                                .high = 1},
                               {.name = copy("heft"),
                                .kind = "heuristic",
                                .modelled = true,
                                .median_us = NAN,
                                .q1_us = NAN,
                                .q3_us = NAN,
                                .simulated_us = 700,
                                .load_us = 300,
                                UNTIMED},
                               {.name = copy("etf"), .kind = "heuristic", .state = TFC_RESULT_FAILED, NOTHING, UNTIMED},
                               {.name = copy("dp"),
                                .kind = "heuristic",
                                .median_us = 950,
                                .q1_us = 940,
                                .q3_us = 960,
                                .steps = 5,
                                .simulated_us = 700,
                                .load_us = 180,
                                UNTIMED}};
  // A load that was computed does not compare with the answer's, which was measured.
  const struct place_options o = {.db = "t.db", .request.objective = TFC_OBJECTIVE_THROUGHPUT};
  const struct tfc_job_outcome out = {.rows = rows, .row_count = 5, .bound_us = NAN, .tau = NAN, .trace_overhead = NAN};
  prints(&o, &out,
         "  placement           step  steps         load a step to found  speed-up (95 %)\n"
         "  found           900.0 us     30 200.0 us (measured)           4.00 (3.50-4.50)\n"
         "  single:cpu:0    800.0 us     24 800.0 us (measured)    4.000\n"
         "  etf                    -  failed\n"
         "  dp              950.0 us      5 180.0 us (modelled)\n"
         "  only simulated (their loads): heft 300.0 us\n"
         "\n");
}

// Speed-ups have three digits: with an interval as wide as on a busy machine a row still has 80 columns. Two steps make
// no interval.
static void test_wide_interval(void **state) {
  (void)state;
  struct tfc_job_row rows[] = {{.name = copy("whole"),
                                .kind = "whole",
                                .median_us = 10530,
                                .q1_us = 10000,
                                .q3_us = 11000,
                                .steps = 6,
                                .simulated_us = NAN,
                                .load_us = NAN,
                                .speedup = 2.01,
                                .low = 0.11,
                                .high = 10.11,
                                .interval_steps = 6},
                               answer_row(12.345, 9.996, 123.4),
                               {.name = copy("expert"),
                                .kind = "baseline",
                                .median_us = 950,
                                .q1_us = 940,
                                .q3_us = 960,
                                .steps = 2,
                                .simulated_us = NAN,
                                .load_us = NAN,
                                .speedup = 1.5,
                                .low = 1.4,
                                .high = 1.6,
                                .interval_steps = 2}};
  const struct place_options o = {.db = "t.db", .request.objective = TFC_OBJECTIVE_THROUGHPUT};
  const struct tfc_job_outcome out = {.rows = rows, .row_count = 3, .bound_us = NAN, .tau = NAN, .trace_overhead = NAN};
  prints(&o, &out,
         "  placement           step  steps         load a step to found  speed-up (95 %)\n"
         "  whole           10.53 ms      6                               2.01 (0.11-10.1)\n"
         "  found           900.0 us     30 200.0 us (measured)           12.3 (10.0-123)\n"
         "  expert          950.0 us      2                               1.50 (2 steps)\n"
         "\n");
}

static void test_limits(void **state) {
  (void)state;
  char *texts[] = {copy("cpu:*=3kB"), copy("a=b=1MiB"), copy("=7")};
  struct place_options o = {.limits = {.items = (const char **)(uintptr_t)texts, .count = 3}};
  struct tfc_memory_limit limits[3] = {{0}};
  assert_ok(parse_limits(&o, limits));
  assert_string_equal(limits[0].pattern, "cpu:*");
  assert_string_equal(limits[1].pattern, "a=b"); // the last "=" divides
  assert_string_equal(limits[2].pattern, "");
  assert_true(limits[0].bytes == 3000 && limits[1].bytes == 1048576 && limits[2].bytes == 7);
  for (int i = 0; i < 3; i++) free((char *)(uintptr_t)limits[i].pattern);
  texts[0] = copy("cpu:0=many");
  o.limits.count = 1;
  assert_fails(parse_limits(&o, limits), TFC_INVALID_ARGUMENT, "--memory cpu:0=many: 'many' is not a number");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_step), cmocka_unit_test(test_throughput),
                                     cmocka_unit_test(test_limits), cmocka_unit_test(test_wide_interval)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
