// What tfc-place does around a job on local devices: what it asks of the job, how events become progress, and what is
// printed, written and returned for each outcome. The job itself is a stand-in, whose outcome the test chooses.
#include "tests/common/test.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/job/job.h"
#include "reports/reports.h"
#include "runtime/base/clock.h"
#include "runtime/base/interrupt.h"
#include "runtime/io/npy.h"
#include "tests/cli/place_stand_ins.h"

// --- Stand-ins -------------------------------------------------------------------------------------------------------

static tfc_status (*stand_in)(const struct tfc_job_options *o, struct tfc_job_outcome *to);
static int jobs; // how many were run
static tfc_status job_here(const struct tfc_job_options *o, struct tfc_job_outcome *to) {
  *to = (struct tfc_job_outcome){.bound_us = NAN, .tau = NAN, .trace_overhead = NAN};
  printf("a library prints\n");   // only results go to stdout
  assert_int_equal(forgotten, 0); // a signal interrupts the job
  jobs++;
  return stand_in(o, to);
}
static tfc_status explain_here(struct tfc_store *store, int64_t run, struct tfc_text *to) {
  tfc_text_printf(to, "Explained: run %d of %s.\n", (int)run, tfc_store_path(store));
  return NULL;
}
static tfc_status busy_here(struct tfc_store *store, int64_t run, uint32_t count, double *to) {
  (void)store, (void)run;
  for (uint32_t d = 0; d < count; d++) to[d] = 0.25;
  return NULL;
}
static char page_said[200];
static tfc_status page_here(struct tfc_store *store, int64_t run, const char *dir) {
  snprintf(page_said, sizeof page_said, "run %d of %s in %s", (int)run, tfc_store_path(store), dir);
  return strstr(dir, "full") ? tfc_status_make(TFC_DATA_LOSS, "no space in %s", dir) : NULL;
}

#define tfc_job_run job_here
#define tfc_report_explain explain_here
#define tfc_report_busy_shares busy_here
#define tfc_report_page page_here
#include "cli/place_local.c"

static const char graph_text[] = "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
                                 "       attr { key: 'shape' value { shape { dim { size: -1 } dim { size: 2 } } } } }"
                                 "node { name: 'y' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } "
                                 "       attr { key: 'shape' value { shape { dim { size: 3 } } } } }"
                                 "node { name: 'a' op: 'Square' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }"
                                 "node { name: 'b' op: 'Exp' input: 'y' attr { key: 'T' value { type: DT_FLOAT } } }";
static int set_up(void **state) {
  (void)state;
  return make_folder("place-local", "g.pbtxt", graph_text);
}

static struct place_options options(void) {
  static const char *const fetches[] = {"a:0", "b:0"};
  return (struct place_options){.graph = graph_path,
                                .db = db_path,
                                .policy = "none",
                                .report = "none",
                                .restarts = -1,
                                .fetches = {(const char **)(uintptr_t)fetches, 2}};
}
static int place(const struct place_options *o) {
  calls[0] = page_said[0] = 0, forgotten = jobs = 0;
  test_catch(&caught_out, stdout), test_catch(&caught_err, stderr);
  const int code = place_local(o);
  test_caught_end(&caught_out), test_caught_end(&caught_err);
  if (strstr(caught_out.text, "a library")) fail_msg("%s", caught_out.text);
  assert_int_equal(forgotten, jobs);
  return code;
}

// --- What the job is asked -------------------------------------------------------------------------------------------

static struct tfc_job_options asked;
static char asked_devices[64], asked_pattern[64];
static float asked_value[2];
static uint64_t asked_limit;
static char asked_step[200];
static tfc_status ask(const struct tfc_job_options *o, struct tfc_job_outcome *to) {
  asked = *o;
  snprintf(asked_devices, sizeof asked_devices, "%s", o->devices);
  if (o->value_count) memcpy(asked_value, o->values[0].value.data, sizeof asked_value);
  snprintf(asked_pattern, sizeof asked_pattern, "%s",
           o->execution.limit_count ? o->execution.limits[o->execution.limit_count - 1].pattern : "");
  asked_limit = o->execution.limit_count ? o->execution.limits[o->execution.limit_count - 1].bytes : 0;
  const uint32_t x = tfc_str_is(o->step->feeds[0].name, "x:0") ? 0 : 1;
  snprintf(asked_step, sizeof asked_step, "%u nodes, %u fetches, %u feeds, %lld", o->graph->node_count,
           o->step->fetch_count, o->step->feed_count, (long long)o->step->feeds[x].shape.dims[0]);
  to->exit_code = 5;
  return NULL;
}

static void test_request(void **state) {
  (void)state;
  struct place_options o = options();
  char cores[32], value[160];
  cpu_set_t own;
  assert_int_equal(sched_getaffinity(0, sizeof own, &own), 0);
  snprintf(cores, sizeof cores, "%d", CPU_COUNT(&own));
  stand_in = ask;
  assert_int_equal(place(&o), 5);
  assert_string_equal(asked_devices, cores);
  assert_string_equal(asked_step, "4 nodes, 2 fetches, 2 feeds, 32");
  assert_string_equal(caught_out.text, "");
  assert_true(!strcmp(asked.program, "tfc-place") && !strcmp(asked.graph_path, graph_path) &&
              !strcmp(asked.database, db_path));
  assert_true(!asked.resume && !asked.value_count && !asked.measurements && asked.seconds == 0 && !asked.evaluations);
  assert_true(!asked.prior && !asked.no_early_stop && !asked.wait && !asked.save_problem && !asked.evaluate);
  assert_true(!asked.checkpoint && !asked.execution.limit_count && asked.warnings == tfc_program_warnings());
  assert_true(asked.cancel == tfc_program_cancel() && asked.learned == place_learned(NULL));
  SAYS(caught_err, "graph: 4 nodes of 3 types", 1);
  SAYS(caught_err, "Interrupted", 0);

  struct tfc_tensor x = {0};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(5, 2), &x));
  for (int i = 0; i < 10; i++) ((float *)x.data)[i] = (float)i + 0.5f;
  assert_ok(tfc_npy_write(in("x.npy"), &x));
  tfc_tensor_release(&x);
  snprintf(value, sizeof value, "x:0=%s", in("x.npy"));
  const char *feeds[] = {"y:0=float32[3]", value}, *limits[] = {"cpu:0=1MB", "cpu:*=3kB"};
  o.feeds = (struct tfc_texts){feeds, 2}, o.limits = (struct tfc_texts){limits, 2};
  o.devices = "cpu:0-1", o.time = 123, o.measurements = 17, o.evaluations = 1000, o.model = 1, o.no_early_stop = true;
  o.wait = true, o.resume = "12", o.checkpoint = "ck", o.save_problem = in("problem"), o.execution.seed = 4;
  o.request.objective = TFC_OBJECTIVE_THROUGHPUT;
  assert_int_equal(place(&o), 5);
  assert_string_equal(asked_devices, "cpu:0-1");
  assert_string_equal(asked_step, "4 nodes, 2 fetches, 2 feeds, 5");
  assert_true(asked.value_count == 1 && asked_value[0] == 0.5f && asked_value[1] == 1.5f); // the other has no value
  assert_true(asked.execution.limit_count == 2 && asked_limit == 3000 && !strcmp(asked_pattern, "cpu:*"));
  assert_true(asked.resume == 12 && asked.seconds == 123 && asked.measurements == 17 && asked.evaluations == 1000);
  assert_true(asked.prior && asked.no_early_stop && asked.wait && !strcmp(asked.checkpoint, "ck"));
  assert_true(asked.execution.seed == 4 && asked.request.objective == TFC_OBJECTIVE_THROUGHPUT);
  assert_string_equal(asked.save_problem, in("problem"));
  o.model = 2, o.resume = "";
  assert_int_equal(place(&o), 5);
  assert_true(!asked.prior && asked.resume == -1);
  assert_ok(tfc_interrupted("test")); // the time for reading the graph is over, and that of the job is the job's
  o.resume = "none";
  asked.resume = 99;
  assert_int_equal(place(&o), 2);
  assert_string_equal(caught_err.text, "tfc-place: --resume none: not a run's number (tfc-report list shows them)\n");
  assert_int_equal(asked.resume, 99); // it was not run
  o.resume = NULL, limits[0] = "cpu:0=many";
  assert_int_equal(place(&o), 3);
  SAYS(caught_err, "--memory cpu:0=many", 1);
  o = options(), o.graph = in("nowhere.pb");
  assert_int_equal(place(&o), 3);
  SAYS(caught_err, "nowhere.pb", 1);
}

// --- Events ----------------------------------------------------------------------------------------------------------

static tfc_status tell(const struct tfc_job_options *o, struct tfc_job_outcome *to) {
  static const struct tfc_job_event events[] = {
      {.phase = TFC_JOB_IMPORT, .seconds = 1, .seconds_total = 10, .best_us = NAN},
      {.phase = TFC_JOB_PROFILE, .seconds = 2, .seconds_total = 10, .best_us = NAN, .text = "said"},
      {.phase = TFC_JOB_PROFILE, .seconds = 2.5, .measured = 3, .best_us = NAN, .text = "warned", .warning = true},
      {.phase = TFC_JOB_SEARCH, .seconds = 5, .seconds_total = 10, .measured = 4, .measured_total = 9, .best_us = 1500},
      {.phase = TFC_JOB_SEARCH, .seconds = 6, .seconds_total = 10, .measured = 5, .measured_total = 9, .best_us = 1200},
      {.phase = TFC_JOB_FINAL, .seconds = 8, .seconds_total = 10, .measured = 6, .measured_total = 9, .best_us = 1100},
      {.phase = TFC_JOB_DONE, .seconds = 9, .seconds_total = 10, .measured = 6, .measured_total = 9, .best_us = 1100}};
  for (size_t i = 0; i < sizeof events / sizeof *events; i++) o->event(o->user, &events[i]);
  to->exit_code = 5;
  return NULL;
}

static void test_events(void **state) {
  (void)state;
  struct place_options o = options();
  stand_in = tell;
  assert_int_equal(place(&o), 5);
  assert_string_equal(calls, "begin prepare\n0.1 of 9: 0 measured\n"
                             "end done\nbegin profile\n0.2 of 8: 0 measured\n"
                             "-1 of -2.5: 3 measured\n"
                             "end done\nbegin search\n0.5 of 5: 4 measured (at most 9), best 1.500 ms\n"
                             "0.6 of 4: 5 measured (at most 9), best 1.200 ms\n"
                             "end 5 placements measured, best 1.200 ms\n"
                             "begin final\n0.8 of 2: 6 measured (at most 9), best 1.100 ms\n"
                             "end 6 placements measured, best 1.100 ms\n"
                             "begin report\n0.9 of 1: 6 measured (at most 9), best 1.100 ms\n"
                             "end 6 placements measured, best 1.100 ms\n");
  SAYS(caught_err, "  said\n", 1);
  SAYS(caught_err, "warning: warned\n", 1);
}

// --- Outcomes --------------------------------------------------------------------------------------------------------

static struct {
  int code, run;
  bool placed, infeasible, interrupted, rows;
  tfc_code error;
} outcome;
static tfc_status answer(const struct tfc_job_options *o, struct tfc_job_outcome *to) {
  (void)o;
  to->exit_code = outcome.code, to->run = outcome.run, to->interrupted = outcome.interrupted;
  to->first_line = tfc_format("The first line.");
  if (outcome.placed) {
    assert_ok(tfc_placement_create(&to->placement));
    struct tfc_placement *p = to->placement;
    p->run = -1, p->graph_file = TFC_STR("g.pbtxt"), p->feasible = !outcome.infeasible, p->algorithm = TFC_STR("auto");
    p->value_us = p->step_median_us = p->step_q1_us = p->step_q3_us = 1000;
    p->unordered_median_us = p->unordered_q1_us = p->unordered_q3_us = p->bound_us = NAN;
  }
  return outcome.error ? tfc_status_make(outcome.error, "it went wrong") : NULL;
}
static void outcome_is(int code, int run, bool placed) {
  memset(&outcome, 0, sizeof outcome);
  outcome.code = code, outcome.run = run, outcome.placed = placed;
  unlink(in("g.placement.json")), unlink(in("o.json"));
}

static void test_outcomes(void **state) {
  (void)state;
  char expected[600];
  struct place_options o = options();
  stand_in = answer;
  // Without --out the placement lies beside the graph.
  outcome_is(7, 0, true);
  assert_int_equal(place(&o), 7);
  snprintf(expected, sizeof expected, "The first line.\n\n\nWritten: %s\n", in("g.placement.json"));
  assert_string_equal(caught_out.text, expected);
  assert_true(test_file_exists(in("g.placement.json")));
  // With a run of the database it is explained.
  outcome_is(0, 3, true);
  o.out = in("o.json");
  assert_int_equal(place(&o), 0);
  snprintf(expected, sizeof expected, "The first line.\n\n\nRun 3 of %s.\nExplained: run 3 of %s.\nWritten: %s\n",
           db_path, db_path, in("o.json"));
  assert_string_equal(caught_out.text, expected);
  assert_true(test_file_exists(in("o.json")) && !test_file_exists(in("g.placement.json")));
  SAYS(caught_err, "Interrupted", 0);
  // As a document.
  outcome_is(0, 3, true);
  o.common.json = true;
  assert_int_equal(place(&o), 0);
  is_document(caught_out.text);
  assert_true(test_file_exists(in("o.json")));
  SAYS(caught_err, "Interrupted", 0);
  // Interrupted: where the answer is, and how to go on.
  outcome.interrupted = true, outcome.code = 130;
  assert_int_equal(place(&o), 130);
  is_document(caught_out.text);
  snprintf(expected, sizeof expected,
           "Interrupted. Run 3 is kept in %s; go on with: tfc-place ... --resume 3\n"
           "Interrupted. The best placement so far is in %s\n",
           db_path, in("o.json"));
  SAYS(caught_err, expected, 1);
  o.common.json = false;
  assert_int_equal(place(&o), 130);
  SAYS(caught_err, "Interrupted. Run 3 is kept", 1);
  SAYS(caught_err, "best placement so far", 0); // "Written: ..." says it
  outcome.run = 0;
  assert_int_equal(place(&o), 130);
  SAYS(caught_err, "Interrupted", 0);
  // What does not fit is not written, unless it was asked for what a file says.
  outcome_is(5, 0, true);
  outcome.infeasible = true;
  assert_int_equal(place(&o), 5);
  assert_false(test_file_exists(in("o.json")));
  SAYS(caught_out, "Written", 0);
  o.evaluate = "single:cpu:0";
  assert_int_equal(place(&o), 5);
  assert_true(test_file_exists(in("o.json")));
  SAYS(caught_out, "Written", 1);
  outcome_is(0, 0, true);
  o.out = NULL;
  assert_int_equal(place(&o), 0);
  assert_false(test_file_exists(in("g.placement.json")));
  SAYS(caught_out, "Written", 0);
  SAYS(caught_out, "The first line.", 1);
  // No placement, and nothing to say of rows.
  o = options();
  outcome_is(5, 0, false);
  assert_int_equal(place(&o), 5);
  assert_string_equal(caught_out.text, "");
  o.common.json = true;
  assert_int_equal(place(&o), 5);
  assert_string_equal(caught_out.text, "");
}

static void test_errors(void **state) {
  (void)state;
  static const struct {
    tfc_code error;
    int code, expected;
    bool placed;
  } cases[] = {{TFC_INVALID_ARGUMENT, 0, 3, false},   {TFC_INVALID_ARGUMENT, 5, 5, false},
               {TFC_RESOURCE_EXHAUSTED, 0, 5, false}, {TFC_DATA_LOSS, 0, 6, true},
               {TFC_DATA_LOSS, 7, 7, true},           {TFC_UNAVAILABLE, 0, 4, false}};
  struct place_options o = options();
  stand_in = answer;
  o.out = in("o.json"), o.devices = "cpu:0";
  for (int json = 0; json < 2; json++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      o.common.json = json;
      outcome_is(cases[i].code, 0, cases[i].placed);
      outcome.error = cases[i].error;
      assert_int_equal(place(&o), cases[i].expected);
      SAYS(caught_err,
           cases[i].error == TFC_UNAVAILABLE ? "tfc-place: --devices cpu:0: it went wrong\n" : ": it went wrong\n", 1);
      SAYS(caught_err, "--devices", cases[i].error == TFC_UNAVAILABLE);
      SAYS(caught_out, "\"error\"", json && !cases[i].placed); // with a placement, the document is that
      if (json) is_document(caught_out.text);
      assert_true(test_file_exists(in("o.json")) == cases[i].placed);
    }
  // A file that cannot be written is an error, too. (Before the job it could be.)
  o = options();
  outcome_is(0, 0, true);
  o.out = "/dev/full";
  assert_int_equal(place(&o), 6);
  SAYS(caught_out, "Written", 1); // it says which file it was
  o.out = in("no/such/folder/o.json");
  assert_int_equal(place(&o), 6);
  SAYS(caught_out, "The first line.", 0); // nothing ran
}

static void test_reports(void **state) {
  (void)state;
  char expected[400];
  struct place_options o = options();
  stand_in = answer;
  outcome_is(0, 4, true);
  assert_int_equal(place(&o), 0);
  assert_string_equal(page_said, ""); // "none"
  o.report = NULL;
  assert_int_equal(place(&o), 0);
  snprintf(expected, sizeof expected, "run 4 of %s in %s", db_path, in("g.report"));
  assert_string_equal(page_said, expected);
  snprintf(expected, sizeof expected, "Written: %s/index.html\n", in("g.report"));
  SAYS(caught_err, expected, 1);
  o.report = in("r");
  assert_int_equal(place(&o), 0);
  snprintf(expected, sizeof expected, "run 4 of %s in %s", db_path, in("r"));
  assert_string_equal(page_said, expected);
  o.evaluate = "single:cpu:0";
  assert_int_equal(place(&o), 0);
  assert_string_equal(page_said, expected);
  o.report = NULL;
  assert_int_equal(place(&o), 0);
  assert_string_equal(page_said, "");
  o = options();
  o.report = in("full");
  assert_int_equal(place(&o), 6);
  SAYS(caught_err, "no space in", 1), SAYS(caught_err, "index.html", 0);
  outcome_is(0, 0, true);
  assert_int_equal(place(&o), 0);
  assert_string_equal(page_said, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_request), cmocka_unit_test(test_events),
                                     cmocka_unit_test(test_outcomes), cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_reports)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
