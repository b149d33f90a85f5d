// What tfc-place does around a search on a described machine: what it asks for, what the progress says, what is printed
// and written of each outcome, and what is kept in the database. The searches are stand-ins with outcomes of the
// test's.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/place.h"
#include "placer/placer.h"
#include "profiler/store_rows.h"
#include "reports/reports.h"
#include "tests/cli/place_stand_ins.h"

// --- Stand-ins -------------------------------------------------------------------------------------------------------

static struct place_kept *const some_kept = (struct place_kept *)(uintptr_t)&folder;
static tfc_status kept_error;
static tfc_status kept_begin_here(const struct place_options *o, const struct tfc_policy *policy,
                                  struct tfc_search_options *search, struct place_kept **to) {
  (void)o;
  called("kept%s\n", policy ? " with a policy" : "");
  search->state = TFC_STR("from before");
  *to = some_kept;
  return NULL;
}
static struct tfc_record_target kept_target_here(const struct place_kept *k) {
  assert_true(k == some_kept);
  return (struct tfc_record_target){.run = 33};
}
static tfc_status kept_end_here(struct place_kept *k, const struct tfc_placement *document, const char *why,
                                bool recorded, int code) {
  assert_true(k == some_kept);
  called("ended with %d: %s%s%s\n", code, document ? "a document" : "none", why ? ", " : "", why ? why : "");
  if (recorded) called("recorded\n");
  tfc_status s = kept_error;
  kept_error = NULL;
  return s;
}
static void kept_free_here(struct place_kept *k) {
  if (k) called("freed\n");
}
static void explain_here(const char *path, struct tfc_store *store, int64_t run) {
  printf("Explained: %s run %d of %s.\n", store ? "the record's" : "the", (int)run, path);
}
static tfc_status page_here(struct tfc_store *store, int64_t run, const char *dir) {
  called("page of run %d of '%s' in %s\n", (int)run, tfc_store_path(store), strrchr(dir, '/') + 1);
  return strstr(dir, "full") ? tfc_status_make(TFC_DATA_LOSS, "no space in %s", dir) : NULL;
}

#define LONG_SUMMARY "word01 word02 word03 word04 word05 word06 word07 word08 word09 word10 word11 word12 word13"
static struct tfc_place_options asked;
static struct {
  int code, run;
  bool placed, cancelled, record, unrecorded, long_summary;
  tfc_code error;
  const char *over_limits;
} wanted;
static tfc_status answer(struct tfc_place_outcome *to) {
  printf("a library prints\n"); // only results go to stdout
  to->exit_code = wanted.code, to->run = wanted.run, to->search.cancelled = wanted.cancelled;
  to->search.evaluations = 1234;
  assert_int_equal(forgotten, 0); // a signal interrupts the search
  // 13 words of 6 characters; a line of 80 characters has room for 11 of them, which take 76
  to->summary = tfc_format("%s", wanted.long_summary ? LONG_SUMMARY : "The summary.");
  if (wanted.over_limits) to->over_limits = tfc_format("%s", wanted.over_limits);
  if (wanted.record) {
    int64_t run;
    assert_ok(tfc_store_open_memory(&to->record));
    assert_ok(tfc_store_begin(to->record));
    assert_ok(tfc_store_add_run(to->record, &(struct tfc_store_run){.program = "tfc-place", .graph = "g"}, &run));
    assert_ok(tfc_store_commit(to->record));
  }
  if (wanted.unrecorded) to->unrecorded = tfc_status_make(TFC_DATA_LOSS, "not recorded");
  if (wanted.placed) {
    assert_ok(tfc_placement_create(&to->placement));
    struct tfc_placement *p = to->placement;
    p->run = -1, p->graph_file = TFC_STR("g"), p->feasible = true, p->algorithm = TFC_STR("heft");
    p->value_us = 1000, p->value_label = p->step_label = TFC_LABEL_MODELLED;
    p->step_median_us = p->step_q1_us = p->step_q3_us = 1000;
    p->unordered_median_us = p->unordered_q1_us = p->unordered_q3_us = p->bound_us = NAN;
  }
  return wanted.error ? tfc_status_make(wanted.error, "it went wrong") : NULL;
}
static tfc_status modelled_here(const struct tfc_place_options *o, struct tfc_place_outcome *to) {
  called("a cost graph\n");
  asked = *o;
  return answer(to);
}
static tfc_status machine_here(const struct place_options *o, const struct tfc_search_options *search,
                               const struct tfc_record_target *record, struct tfc_place_outcome *to) {
  called("a graph\n");
  asked = (struct tfc_place_options){.graph = o->graph, .search = *search, .record = *record};
  return answer(to);
}

#define place_kept_begin kept_begin_here
#define place_kept_target kept_target_here
#define place_kept_end kept_end_here
#define place_kept_free kept_free_here
#define place_explain explain_here
#define place_machine machine_here
#define tfc_place_modelled modelled_here
#define tfc_report_page page_here
#include "cli/place_modelled.c"

static int set_up(void **state) {
  (void)state;
  return make_folder("place-modelled", "g.json", "{}");
}
static struct place_options options(void) {
  return (struct place_options){
      .graph = graph_path, .machine = "m.yaml", .db = db_path, .policy = "none", .report = "none", .restarts = -1};
}
static int place(const struct place_options *o, bool cost_graph) {
  calls[0] = 0, forgotten = 0;
  test_catch(&caught_out, stdout), test_catch(&caught_err, stderr);
  const int code = place_modelled(o, cost_graph);
  test_caught_end(&caught_out), test_caught_end(&caught_err);
  if (strstr(caught_out.text, "a library")) fail_msg("%s", caught_out.text);
  return code;
}
static void outcome_is(int code, int run, bool placed) {
  memset(&wanted, 0, sizeof wanted);
  wanted.code = code, wanted.run = run, wanted.placed = placed;
  unlink(in("g.placement.json")), unlink(in("o.json"));
}

// --- What is asked ---------------------------------------------------------------------------------------------------

static void test_request(void **state) {
  (void)state;
  struct place_options o = options();
  outcome_is(7, 0, true);
  assert_int_equal(place(&o, true), 7);
  assert_string_equal(calls,
                      "kept\nbegin search\na cost graph\nend 1234 placements evaluated\nended with 7: a document\n"
                      "freed\n");
  assert_true(asked.graph == graph_path && !strcmp(asked.machine, "m.yaml") && !asked.devices && !asked.evaluate);
  assert_true(!asked.limit_count && !asked.save_problem && !asked.elsewhere);
  assert_true(asked.search.seconds == 60 && !asked.search.evaluations && !asked.search.seed && asked.search.prove);
  assert_true(asked.search.cancel == tfc_program_cancel() && asked.search.progress == on_progress);
  assert_true(tfc_str_is(asked.search.state, "from before") && asked.record.run == 33);
  assert_true(!asked.record.page && !asked.record.wanted); // --report none
  const char *limits[] = {"a=1", "b=2"};
  o.evaluations = 500, o.execution.seed = 9, o.execution.threads = 3, o.devices = "2", o.save_problem = in("problem");
  o.limits = (struct tfc_texts){limits, 2}, o.report = NULL, o.search.algorithms = "heft";
  assert_int_equal(place(&o, true), 7);
  assert_true(asked.search.seconds == 0 && asked.search.evaluations == 500 && asked.search.seed == 9);
  assert_true(asked.search.threads == 3 && !strcmp(asked.devices, "2") && asked.limits == o.limits.items);
  assert_true(asked.limit_count == 2 && asked.save_problem == o.save_problem && asked.record.page &&
              asked.record.wanted);
  assert_string_equal(asked.search.settings.algorithms, "heft");
  o.time = 5, o.report = "none";
  assert_int_equal(place(&o, false), 7);
  assert_string_equal(calls, "kept\nbegin search\na graph\nend 1234 placements evaluated\nended with 7: a document\n"
                             "freed\n");
  assert_true(asked.search.seconds == 5 && asked.search.evaluations == 500);
  // Evaluating a placement searches nothing, and only --db keeps it.
  o = options();
  o.evaluate = "single:a", o.report = NULL;
  assert_int_equal(place(&o, true), 7);
  assert_string_equal(calls, "a cost graph\n");
  assert_true(!asked.record.page && !asked.record.wanted && !asked.record.run && asked.evaluate == o.evaluate);
  o.db_given = true;
  assert_int_equal(place(&o, true), 7);
  assert_string_equal(calls, "kept\na cost graph\nended with 7: a document\nfreed\n");
  assert_true(asked.record.run == 33);
}

// With a command or over tasks, steps are measured: it takes longer, and the measuring code keeps its own runs.
static void test_measuring(void **state) {
  (void)state;
  struct place_options o = options();
  outcome_is(0, 0, true);
  o.measure_with = "steps {}", o.report = NULL, o.measurements = 40, o.measure_timeout = 2.5, o.model = 1;
  o.resume = "8";
  setenv("TMPDIR", "/some/where", 1);
  assert_int_equal(place(&o, true), 0);
  unsetenv("TMPDIR");
  assert_null(strstr(calls, "begin")), assert_null(strstr(calls, "kept")), assert_null(strstr(calls, "end"));
  assert_true(asked.search.seconds == 600 && !asked.record.page && !asked.record.wanted);
  const struct tfc_elsewhere_settings *e = asked.elsewhere;
  assert_true(e && !strcmp(e->measure_with, "steps {}") && e->timeout_s == 2.5 && e->stderr_to == -1);
  assert_true(!strcmp(e->temporary, "/some/where") && e->measurements == 40 && e->prior && e->database == db_path);
  assert_true(e->resume == 8 && !e->improved && e->warnings == tfc_program_warnings());
  assert_non_null(strstr(e->program_command, "place_modelled_test"));
  o.common.verbose = true, o.model = 2, o.resume = NULL;
  setenv("TMPDIR", "", 1);
  assert_int_equal(place(&o, true), 0);
  unsetenv("TMPDIR");
  assert_true(!e->temporary && !e->prior && !e->resume && e->stderr_to == STDERR_FILENO);
  assert_int_equal(place(&o, true), 0);
  assert_null(e->temporary);
  test_catch(&caught_err, stderr);
  e->say(true, "careful"), e->say(false, "news");
  test_caught_end(&caught_err);
  assert_string_equal(caught_err.text, "warning: careful\nnews\n");
  o.measure_with = NULL;
  assert_null(place_elsewhere(&o));
  // The best so far goes to the file, but not to what is no file.
  struct tfc_placement *best = NULL;
  assert_ok(tfc_placement_create(&best));
  o = options(), o.out = in("best.json");
  assert_ok(write_best(&o, best));
  assert_int_equal(access(o.out, F_OK), 0);
  unlink(o.out);
  assert_int_equal(mkfifo(o.out, 0600), 0); // writing would wait for a reader
  assert_ok(write_best(&o, best));
  unlink(o.out);
  o.out = NULL;
  assert_ok(write_best(&o, best));
  assert_int_equal(access(in("g.placement.json"), F_OK), 0);
  tfc_placement_free(best);
}

static void test_progress(void **state) {
  (void)state;
  static const struct {
    struct tfc_search_progress p;
    const char *says;
  } cases[] = {{{"a", 0, 0, 5, 0, TFC_TIME_MAX, true, 0}, "-1 of -1: a: nothing legal yet\n"},
               {{"a", 2, 8, 5, 0, 1500000000, true, 0}, "0.25 of 6: a: best 1.500 ms\n"},
               {{"b", 2, 8, 1, 10, 1500000000, false, 0}, "0.25 of 6: b: best 1.500 ms (does not fit)\n"},
               {{"b", 2, 8, 5, 10, 1500000000, true, 0}, "0.5 of -1: b: best 1.500 ms\n"}, // the count ends it sooner
               {{"b", 2, 0, 5, 10, 1000000, true, 0}, "0.5 of -1: b: best 1.00 us\n"},
               {{"b", 0, 1, 0, 1, 1000000, true, 0}, "0 of 1: b: best 1.00 us\n"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    calls[0] = 0;
    on_progress(NULL, &cases[i].p);
    if (strcmp(calls, cases[i].says) != 0) fail_msg("case %zu: %s", i, calls);
  }
}

// --- What is printed -------------------------------------------------------------------------------------------------

static void test_table(void **state) {
  (void)state;
  struct tfc_search_entry entries[] = {
      {.algorithm = "heft", .value = 2000000000, .evaluations = 17, .seconds = 0.25},
      {.algorithm = "random", .value = 1500000000, .excess = 8, .evaluations = 1700, .seconds = 12.345},
      {.algorithm = "dp", .value = TFC_TIME_MAX, .note = (char *)(uintptr_t) "too many units"},
      {.algorithm = "etf", .value = TFC_TIME_MAX}};
  struct tfc_placement_baseline baselines[] = {
      {.name = TFC_STR("single:a"), .median_us = 4000},
      {.name = TFC_STR("expert"), .median_us = NAN, .note = TFC_STR("not legal")}};
  struct tfc_placement_device devices[] = {{.name = TFC_STR("a"), .busy_us = 750, .memory = 1500},
                                           {.name = TFC_STR("b"), .busy_us = 250, .memory = 0}};
  struct tfc_placement p = {.feasible = true,
                            .algorithm = TFC_STR("heft"),
                            .value_us = 1000,
                            .device_count = 2,
                            .devices = devices,
                            .baseline_count = 2,
                            .baselines = baselines,
                            .transfers = 12,
                            .transfer_bytes = 3000};
  struct tfc_place_outcome o = {.placement = &p, .search = {.entries = entries, .entry_count = 4}};
  static const char below[] = "\n  device                     busy    share       memory\n"
                              "  a                      750.0 us   75.0 %       1.5 kB\n"
                              "  b                      250.0 us   25.0 %          0 B\n"
                              "\n12 transfers, 3.0 kB\n";
  char expected[2000];
  test_catch(&caught_out, stdout);
  print_table(&o);
  test_caught_end(&caught_out);
  snprintf(expected, sizeof expected,
           "A step under the placement found by heft: 1.000 ms (modelled)\n"
           "\n  algorithm                  step    evaluations   seconds\n"
           "  heft                   2.000 ms             17      0.25\n"
           "  random                 1.500 ms           1700     12.35  does not fit\n"
           "  dp                    not tried  too many units\n"
           "  etf                           -  nothing legal\n"
           "\n  rival                      step\n"
           "  single:a               4.000 ms\n"
           "  expert                        -  not legal\n%s",
           below);
  assert_string_equal(caught_out.text, expected);
  p.objective = TFC_OBJECTIVE_THROUGHPUT, p.feasible = false, p.algorithm = TFC_STR("given");
  p.measured_with = TFC_STR("steps"), p.step_label = TFC_LABEL_MEASURED, p.baseline_count = 1;
  o.search.entry_count = 1;
  test_catch(&caught_out, stdout);
  print_table(&o);
  test_caught_end(&caught_out);
  snprintf(expected, sizeof expected,
           "Does not fit in memory.\nThe largest load under the placement that was given: 1.000 ms (measured)\n"
           "\n  algorithm                  load    evaluations   seconds\n"
           "  heft                   2.000 ms             17      0.25\n"
           "\n  rival                      load\n"
           "  single:a               4.000 ms\n%s",
           below);
  assert_string_equal(caught_out.text, expected);
  p.value_us = 0, p.baseline_count = 0, o.search.entry_count = 0;
  test_catch(&caught_out, stdout);
  print_table(&o);
  test_caught_end(&caught_out);
  SAYS(caught_out, " 0.0 %", 2), SAYS(caught_out, "rival", 0), SAYS(caught_out, "algorithm", 0);
}

static void test_outcomes(void **state) {
  (void)state;
  char line[400];
  struct place_options o = options();
  outcome_is(0, 0, true);
  assert_int_equal(place(&o, true), 0);
  assert_int_equal(forgotten, 1); // once, after the search: a signal that ended the search does not stop the output
  snprintf(line, sizeof line, "\n\nThe summary.\nWritten: %s\n", in("g.placement.json"));
  SAYS(caught_out, line, 1);
  SAYS(caught_out, "A step under the placement found by heft", 1), SAYS(caught_out, "Explained", 0),
      SAYS(caught_out, "Written", 1);
  assert_int_equal(access(in("g.placement.json"), F_OK), 0);
  assert_string_equal(caught_err.text, "");
  // The summary's lines have up to 80 characters, and none is indented.
  outcome_is(0, 0, true);
  wanted.long_summary = true;
  assert_int_equal(place(&o, true), 0);
  SAYS(caught_out,
       "\n\nword01 word02 word03 word04 word05 word06 word07 word08 word09 word10 word11\nword12 word13\nWritten", 1);
  // A run of the database, or a record in memory, is explained and becomes a page.
  outcome_is(0, 6, true);
  o.report = in("r"), o.out = in("o.json");
  assert_int_equal(place(&o, true), 0);
  snprintf(line, sizeof line, "Explained: the run 6 of %s.\n\nWritten: %s\nWritten: %s/index.html\n", db_path,
           in("o.json"), in("r"));
  SAYS(caught_out, line, 1);
  snprintf(line, sizeof line, "page of run 6 of '%s' in r\n", db_path);
  assert_non_null(strstr(calls, line));
  assert_non_null(strstr(calls, "recorded\n"));
  outcome_is(0, 0, true);
  wanted.record = true, o.report = NULL;
  test_catch(&caught_err, stderr);
  tfc_warn("careful");
  test_caught_end(&caught_err);
  assert_int_equal(place(&o, true), 0);
  snprintf(line, sizeof line, "Explained: the record's run -1 of %s.\n\nWritten: ", db_path);
  SAYS(caught_out, line, 1);
  assert_non_null(strstr(calls, "page of run -1 of '' in g.report\n"));
  assert_null(strstr(calls, "recorded\n"));
  // A page that cannot be written loses only itself.
  o.report = in("full");
  assert_int_equal(place(&o, true), 6);
  assert_int_equal(forgotten, 2); // again after the page: a signal that stopped the page does not stop the output
  SAYS(caught_err, "no space in", 1), SAYS(caught_out, "Written", 1), SAYS(caught_out, "The summary.", 1);
  outcome_is(0, 0, true);
  wanted.unrecorded = true, o.report = in("r");
  assert_int_equal(place(&o, true), 6);
  SAYS(caught_err, "not recorded\n", 1), SAYS(caught_out, "index.html", 0);
  assert_null(strstr(calls, "page"));
  o.report = "none";
  assert_int_equal(place(&o, true), 6);
  SAYS(caught_err, "not recorded\n", 1);
  // As a document; an interrupted search says where it is.
  outcome_is(130, 0, true);
  wanted.cancelled = true, o.common.json = true;
  assert_int_equal(place(&o, true), 130);
  is_document(caught_out.text);
  snprintf(line, sizeof line, "Interrupted. The best placement so far is in %s\n", in("o.json"));
  SAYS(caught_err, line, 1);
  o.common.json = false;
  assert_int_equal(place(&o, true), 130);
  SAYS(caught_err, "Interrupted", 0);
  wanted.cancelled = false, o.common.json = true;
  assert_int_equal(place(&o, true), 130);
  SAYS(caught_err, "Interrupted", 0);
  // What was only evaluated is written if a file is named.
  o = options(), o.evaluate = "single:a";
  outcome_is(5, 0, true);
  wanted.over_limits = "a holds too much";
  assert_int_equal(place(&o, true), 5);
  SAYS(caught_err, "warning: does not fit in memory: a holds too much\n", 1);
  SAYS(caught_out, "Written", 0);
  assert_int_equal(access(in("g.placement.json"), F_OK), -1);
  o.out = in("o.json");
  assert_int_equal(place(&o, true), 5);
  SAYS(caught_out, "Written", 1);
  o.out = "/dev/full";
  assert_int_equal(place(&o, true), 6);
}

static void test_errors(void **state) {
  (void)state;
  struct place_options o = options();
  // With a cost graph the exit code is the outcome's, with a graph that of the error; with and without a placement.
  for (int cost_graph = 0; cost_graph < 2; cost_graph++)
    for (int placed = 0; placed < 2; placed++)
      for (int json = 0; json < 2; json++) {
        outcome_is(5, 0, placed);
        wanted.error = TFC_INVALID_ARGUMENT, o.common.json = json;
        assert_int_equal(place(&o, cost_graph), cost_graph ? 5 : 3);
        SAYS(caught_err, "it went wrong\n", 1);
        SAYS(caught_out, "\"error\"", json && !placed);
        if (json) is_document(caught_out.text);
        if (!json && !placed) assert_string_equal(caught_out.text, "");
        assert_null(strstr(calls, "placements evaluated"));
        char line[80];
        snprintf(line, sizeof line, "ended with %d: %s, it went wrong\nfreed\n", cost_graph ? 5 : 3,
                 placed ? "a document" : "none");
        assert_non_null(strstr(calls, line));
      }
  // What cannot be kept is an error for who asked for it.
  for (int given = 0; given < 3; given++) {
    o = options();
    o.db_given = given == 1, o.resume = given == 2 ? "" : NULL;
    outcome_is(0, 0, true);
    kept_error = tfc_status_make(TFC_DATA_LOSS, "a full disk");
    assert_int_equal(place(&o, true), given ? 6 : 0);
    SAYS(caught_err, "a full disk\n", 1);
    SAYS(caught_err, "warning: the search cannot be resumed: a full disk\n", !given);
  }
  o = options(), o.out = in("no/such/folder/o.json");
  assert_int_equal(place(&o, true), 6);
  assert_string_equal(calls, ""); // nothing was searched
  o = options(), o.policy = in("nowhere.json");
  assert_int_equal(place(&o, true), 3);
  assert_string_equal(calls, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_request),  cmocka_unit_test(test_measuring),
                                     cmocka_unit_test(test_progress), cmocka_unit_test(test_table),
                                     cmocka_unit_test(test_outcomes), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
