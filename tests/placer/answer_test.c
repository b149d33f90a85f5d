// Tests what a job answers, on candidates with times that are given by hand: which one is the answer, what is called
// the best single device, the rows of the table with their speed-ups, the first line, the exit code, and what is said
// if there is no answer.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/candidates.h"
#include "placer/job/outcome.h"

static double played_simulated(const struct tfc_job_model *m, const struct tfc_solution *s);
#define tfc_job_model_simulate(m, s) played_simulated(m, s)
#include "placer/job/candidates.c"

static bool saved_problem, saved_placement, explained_bound;
static const struct tfc_job_candidate *documented, *explained;
static tfc_status played_document(const struct tfc_job_candidates *c, const struct tfc_job_candidate *k,
                                  struct tfc_job_outcome *out);
static tfc_status played_problem(const struct tfc_job_model *m, const struct tfc_job_clock *clock);
static tfc_status played_placement(const struct tfc_job_model *m, const struct tfc_placement *p);
static tfc_status played_bound(const struct tfc_job_candidates *c, const struct tfc_job_clock *clock,
                               struct tfc_job_outcome *out);
static tfc_status played_path(const struct tfc_job_model *m, const struct tfc_job_candidate *k,
                              struct tfc_job_outcome *out);
#include "placer/job/document.h"
#include "placer/job/explain.h"
#include "placer/job/saved_problem.h"
#define tfc_job_document(c, k, out) played_document(c, k, out)
#define tfc_job_save_problem(m, clock) played_problem(m, clock)
#define tfc_job_save_placement(m, p) played_placement(m, p)
#define tfc_job_explain_bound(c, clock, out) played_bound(c, clock, out)
#define tfc_job_explain_placement(m, k, out) played_path(m, k, out)
#include "placer/job/answer.c"

enum { DEVICES = 3 };
static tfc_device_id somewhere[1];

static double played_simulated(const struct tfc_job_model *m, const struct tfc_solution *s) {
  (void)m, (void)s;
  return 77; // the costs have changed since it was proposed
}
static tfc_status played_document(const struct tfc_job_candidates *c, const struct tfc_job_candidate *k,
                                  struct tfc_job_outcome *out) {
  (void)c, (void)out;
  documented = k;
  return NULL;
}
static tfc_status played_problem(const struct tfc_job_model *m, const struct tfc_job_clock *clock) {
  (void)m, (void)clock;
  saved_problem = true;
  return NULL;
}
static tfc_status played_placement(const struct tfc_job_model *m, const struct tfc_placement *p) {
  (void)m, (void)p;
  saved_placement = true;
  return NULL;
}
static tfc_status played_bound(const struct tfc_job_candidates *c, const struct tfc_job_clock *clock,
                               struct tfc_job_outcome *out) {
  (void)c, (void)clock, (void)out;
  explained_bound = true;
  return NULL;
}
static tfc_status played_path(const struct tfc_job_model *m, const struct tfc_job_candidate *k,
                              struct tfc_job_outcome *out) {
  (void)m, (void)out;
  explained = k;
  return NULL;
}

struct job {
  struct tfc_machine_device devices[DEVICES];
  struct tfc_machine bare;
  struct tfc_subject subject;
  struct tfc_job_options options;
  struct tfc_job_model model;
  struct tfc_job_clock clock;
  struct tfc_job_candidates c;
  struct tfc_job_outcome out;
  uint64_t peaks[16][DEVICES];
};

static void begin(struct job *j, tfc_objective objective) {
  static const char *const names[] = {"cpu:0", "cpu:1", "cpu:2"};
  *j = (struct job){0};
  for (int d = 0; d < DEVICES; d++)
    j->devices[d] = (struct tfc_machine_device){.name = tfc_str_from(names[d]), .memory = 1000000};
  j->bare = (struct tfc_machine){.device_count = DEVICES, .devices = j->devices};
  j->options.request.objective = objective;
  j->model = (struct tfc_job_model){.o = &j->options, .bare = &j->bare, .subject = &j->subject};
  tfc_job_candidates_init(&j->c, &j->clock, &j->model);
  saved_problem = saved_placement = explained_bound = false;
  documented = explained = NULL;
}

static struct tfc_job_candidate *add(struct job *j, const char *name, const char *role, double us,
                                     tfc_result_state state) {
  struct tfc_job_candidate k = {.name = (char *)(uintptr_t)name,
                                .role = role,
                                .whole = strcmp(name, "whole") == 0,
                                .single = strncmp(name, "single:", 7) == 0,
                                .baseline = strcmp(role, "candidate") != 0,
                                .heuristic = strcmp(role, "heuristic") == 0,
                                .digest = j->c.list.count + 1,
                                .state = state,
                                .screened_state = state,
                                .median_us = us,
                                .q1_us = us - 1,
                                .q3_us = us + 1,
                                .steps = 5,
                                .level_us = us,
                                .simulated_us = us,
                                .predicted_us = (double)NAN,
                                .final_us = (double)NAN};
  if (!k.whole) k.solution.device = somewhere;
  assert_true(tfc_array_push(&j->c.list, k));
  return &j->c.list.data[j->c.list.count - 1];
}

// Two blocks of three steps around a median.
static void final_run(struct tfc_job_candidate *k, double us) {
  for (uint32_t i = 0; i < 6; i++) {
    assert_true(tfc_array_push(&k->final_step_us, us + (i % 3 == 0 ? -0.5 : i % 3 == 1 ? 0 : 0.5)));
    assert_true(tfc_array_push(&k->final_block_of, i / 3));
  }
  k->final_us = us, k->final_q1 = us - 0.5, k->final_q3 = us + 0.5, k->final_steps = 6;
}
static void in_flight_run(struct tfc_job_candidate *k, double us, uint32_t at_once) {
  for (uint32_t i = 0; i < 4; i++) {
    assert_true(tfc_array_push(&k->in_flight.us, us));
    assert_true(tfc_array_push(&k->in_flight.block, i / 2));
  }
  k->in_flight.at_once = at_once, k->in_flight.median_us = us;
}

static void end(struct job *j) {
  for (size_t i = 0; i < j->c.list.count; i++) {
    struct tfc_job_candidate *k = &j->c.list.data[i];
    tfc_array_free(&k->final_step_us);
    tfc_array_free(&k->final_block_of);
    tfc_array_free(&k->in_flight.us);
    tfc_array_free(&k->in_flight.block);
  }
  tfc_array_free(&j->c.list);
  tfc_job_outcome_deinit(&j->out);
}

static void is_row(const struct job *j, uint32_t i, const char *kind, const char *name, double us, double speedup) {
  assert_true(i < j->out.row_count);
  const struct tfc_job_row *r = &j->out.rows[i];
  assert_string_equal(r->kind, kind);
  assert_string_equal(r->name, name);
  assert_true(isnan(us) ? isnan(r->median_us) : r->median_us == us);
  assert_true(isnan(speedup) ? isnan(r->speedup) : fabs(r->speedup - speedup) < 1e-9);
}

// The field of a usual job: the undivided machine, two single devices, an expert, a heuristic, a found placement.
static void usual(struct job *j, double whole, double found) {
  begin(j, TFC_OBJECTIVE_STEP);
  final_run(add(j, "whole", "baseline", whole, TFC_RESULT_OK), whole);
  add(j, "single:cpu:0", "baseline", 290, TFC_RESULT_OK); // faster at first, but not measured in the final turns
  final_run(add(j, "single:cpu:1", "baseline", 310, TFC_RESULT_OK), 300);
  add(j, "metis", "heuristic", 250, TFC_RESULT_OK);
  final_run(add(j, "expert", "baseline", 200, TFC_RESULT_OK), 240);
  final_run(add(j, "#5", "candidate", 90, TFC_RESULT_OK), found);
  tfc_job_candidates_lead(&j->c, 5);
}

static void faster(void **state) {
  (void)state;
  struct job j;
  usual(&j, 400, 100);
  j.c.episodes = 7;
  j.model.trace_overhead = 0.25, j.model.trace_overhead_least = 0.2;
  j.c.list.data[5].untraced_us = 80, j.c.list.data[5].untraced_steps = 9;
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_int_equal(j.out.exit_code, 0);
  assert_string_equal(j.out.first_line, "Found: 100.0 us a step.");
  assert_true(saved_problem && saved_placement && explained_bound);
  assert_ptr_equal(documented, &j.c.list.data[5]);
  assert_ptr_equal(explained, &j.c.list.data[5]);
  assert_int_equal(j.out.measured, 7);
  assert_true(j.out.trace_overhead == 0.25 && j.out.trace_told);
  assert_true(j.out.untraced_us == 80 && j.out.untraced_steps == 9);
  assert_int_equal(j.out.row_count, 6);
  is_row(&j, 0, "whole", "whole", 400, 0.75);
  is_row(&j, 1, "answer", "found", 100, 3);
  is_row(&j, 2, "single", "single:cpu:0", 290, 300.0 / 290);
  is_row(&j, 3, "single", "single:cpu:1", 300, 1);
  is_row(&j, 4, "baseline", "expert", 240, 1.25);
  is_row(&j, 5, "heuristic", "metis", 250, 1.2);
  const struct tfc_job_row *found = &j.out.rows[1];
  assert_true(found->q1_us == 99.5 && found->q3_us == 100.5 && found->steps == 6);
  assert_true(found->low > 2.95 && found->low <= 3 && found->high >= 3 && found->high < 3.05);
  assert_true(isnan(j.out.rows[5].low) && j.out.rows[5].q1_us == 249 && j.out.rows[5].steps == 5);
  assert_true(isnan(found->load_us));
  assert_null(found->note);
  // Its first time is not below the answer's, so the report does not mention it.
  assert_null(j.out.rows[5].note);
  end(&j);
}

static void notes(void **state) {
  (void)state;
  struct job j;
  usual(&j, 400, 295);
  j.c.list.data[0].in_lanes = true;
  j.c.list.data[4].note = (char *)(uintptr_t) "its own words";
  add(&j, "heft", "heuristic", (double)NAN, TFC_RESULT_NO_FIT);
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_string_equal(j.out.rows[0].note, "operations side by side");
  assert_string_equal(j.out.rows[2].note, "not in the final turns: the machine was faster then");
  assert_string_equal(j.out.rows[4].note, "its own words");
  // the row of metis, 250 us
  assert_string_equal(j.out.rows[5].note, "not in the final turns: the machine was faster then");
  assert_null(j.out.rows[6].note);
  assert_true(j.out.rows[6].modelled && !j.out.rows[5].modelled);
  assert_int_equal(j.out.rows[6].state, TFC_RESULT_NO_FIT);
  is_row(&j, 6, "heuristic", "heft", (double)NAN, (double)NAN);
  for (size_t i = 0; i < j.c.list.count; i++) j.c.list.data[i].note = NULL;
  end(&j);
  // The row of metis again, which was in the turns that choose, and only there.
  usual(&j, 400, 295);
  j.c.list.data[3].choose_us[0] = 400, j.c.list.data[3].choose_count = 1;
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_string_equal(j.out.rows[5].note, "it lost in the turns that chose the answer");
  end(&j);
}

// The single device is as fast within the noise, or faster: the answer is no gain.
static void no_gain(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    struct job j;
    usual(&j, 400, (double[]){300, 299.9, 305}[i]);
    assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
    assert_int_equal(j.out.exit_code, 7);
    end(&j);
  }
  struct job j;
  usual(&j, 400, 100);
  tfc_job_candidates_lead(&j.c, 2);
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_int_equal(j.out.exit_code, 7);
  assert_string_equal(j.out.first_line, "One device is fastest: everything on cpu:1, 300.0 us a step.");
  is_row(&j, 1, "answer", "single:cpu:1", 300, 1);
  is_row(&j, 2, "single", "single:cpu:0", 290, 300.0 / 290); // the answer has one line only
  assert_int_equal(j.out.row_count, 5);
  end(&j);
  usual(&j, 99, 100);
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_int_equal(j.out.exit_code, 0); // the answer is compared with the single device
  assert_string_equal(j.out.first_line,
                      "The undivided machine is fastest: 99.0 us a step, against 100.0 us for the best placement.");
  end(&j);
  usual(&j, 99, 100);
  j.c.list.data[0].state = TFC_RESULT_FAILED;
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_string_equal(j.out.first_line, "Found: 100.0 us a step.");
  end(&j);
  // No single device could be measured: nothing to compare with.
  usual(&j, 400, 100);
  j.c.list.data[1].state = j.c.list.data[2].state = TFC_RESULT_NO_FIT;
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_int_equal(j.out.exit_code, 0);
  is_row(&j, 1, "answer", "found", 100, (double)NAN);
  end(&j);
}

// The placement that led fails when it runs once more: the best of the others is the answer.
static void failed_best(void **state) {
  (void)state;
  struct job j;
  usual(&j, 400, 100);
  j.c.list.data[5].state = TFC_RESULT_FAILED;
  add(&j, "#6", "candidate", 230, TFC_RESULT_OK);
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_ptr_equal(documented, &j.c.list.data[6]);
  assert_string_equal(j.out.first_line,
                      "Found: 230.0 us a step. It does not beat the best single device (cpu:1, 300.0 us) by more "
                      "than the noise.");
  assert_int_equal(j.out.exit_code, 7); // it was not measured in turns with the single device
  end(&j);
}

static void throughput(void **state) {
  (void)state;
  struct job j;
  // Modelled: they are compared as they are.
  begin(&j, TFC_OBJECTIVE_THROUGHPUT);
  add(&j, "single:cpu:0", "baseline", 300, TFC_RESULT_OK);
  add(&j, "#1", "candidate", 500, TFC_RESULT_OK);
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  // simulated with the costs at the end of the run
  assert_true(j.c.list.data[0].simulated_us == 77 && j.c.list.data[1].simulated_us == 77);
  assert_int_equal(j.out.exit_code, 7);
  end(&j);
  // Measured in flight: the found placement is slower alone and faster in flight.
  begin(&j, TFC_OBJECTIVE_THROUGHPUT);
  in_flight_run(add(&j, "single:cpu:0", "baseline", 300, TFC_RESULT_OK), 310, 1);
  in_flight_run(add(&j, "single:cpu:1", "baseline", 290, TFC_RESULT_OK), 320, 1);
  in_flight_run(add(&j, "#2", "candidate", 400, TFC_RESULT_OK), 155, 2);
  // it was not measured with several steps at once, so it cannot be the answer
  add(&j, "#3", "candidate", 100, TFC_RESULT_OK);
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_ptr_equal(documented, &j.c.list.data[2]);
  assert_int_equal(j.out.exit_code, 0);
  assert_string_equal(j.out.first_line, "Found: with 2 steps in flight one ends every 155.0 us.");
  is_row(&j, 0, "answer", "found", 400, 2);
  is_row(&j, 1, "single", "single:cpu:0", 300, 1);
  is_row(&j, 2, "single", "single:cpu:1", 290, 310.0 / 320);
  assert_true(j.out.rows[0].load_us == 155 && j.out.rows[0].load_steps == 4 && j.out.rows[0].low == 2);
  end(&j);
  // One step after another is better, on several devices and on one; the undivided machine is better still.
  begin(&j, TFC_OBJECTIVE_THROUGHPUT);
  in_flight_run(add(&j, "single:cpu:0", "baseline", 300, TFC_RESULT_OK), 310, 1);
  in_flight_run(add(&j, "#1", "candidate", 400, TFC_RESULT_OK), 200, 1);
  final_run(add(&j, "whole", "baseline", 199, TFC_RESULT_OK), 198);
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_string_equal(j.out.first_line, "The undivided machine is fastest, one step after another: 198.0 us each. "
                                        "Found: one step after another, one ends every 200.0 us.");
  end(&j);
  begin(&j, TFC_OBJECTIVE_THROUGHPUT);
  in_flight_run(add(&j, "single:cpu:0", "baseline", 300, TFC_RESULT_OK), 310, 1);
  in_flight_run(add(&j, "#1", "candidate", 400, TFC_RESULT_OK), 320, 2);
  in_flight_run(add(&j, "whole", "baseline", 199, TFC_RESULT_OK), 311, 1); // with several steps at once, it is slower
  assert_ok(tfc_job_answer(&j.c, &j.clock, &j.out));
  assert_int_equal(j.out.exit_code, 7);
  assert_string_equal(j.out.first_line, "One device is best: on cpu:0 a step ends every 310.0 us.");
  end(&j);
}

static void no_fit(void **state) {
  (void)state;
  struct job j;
  begin(&j, TFC_OBJECTIVE_STEP);
  j.subject.variable_bytes = 2500000;
  struct {
    uint64_t peak[DEVICES];
    tfc_result_state state;
  } rows[] = {
      {{1900000, 10, 1200000}, TFC_RESULT_NO_FIT}, // lacks 900000
      {{10, 1300000, 1400000}, TFC_RESULT_NO_FIT}, // lacks 400000 on cpu:2: the nearest
      {{1500000, 1500000, 0}, TFC_RESULT_NO_FIT},
      {{1400000, 10, 10}, TFC_RESULT_NO_FIT}, // lacks as much: the first of them counts
      // did not fail because of its memory
      {{1000001, 0, 0}, TFC_RESULT_FAILED},
      {{1000000, 0, 0}, TFC_RESULT_NO_FIT}, // lacks nothing by this count
  };
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
    add(&j, "#", "candidate", (double)NAN, rows[i].state)->peak = rows[i].peak;
  assert_fails(tfc_job_answer(&j.c, &j.clock, &j.out), TFC_RESOURCE_EXHAUSTED,
               "the variables alone take 2.5 MB, all devices together may hold 3.0 MB, and a step needs room for its "
               "tensors besides; the nearest of them needs 1.4 MB on cpu:2, 400 kB more than its limit");
  assert_int_equal(j.out.exit_code, 5);
  assert_ptr_equal(documented, &j.c.list.data[1]);
  assert_false(saved_placement);
  end(&j);
  begin(&j, TFC_OBJECTIVE_STEP);
  j.subject.variable_bytes = 3000001;
  add(&j, "#0", "candidate", (double)NAN, TFC_RESULT_NO_FIT);
  assert_fails(tfc_job_answer(&j.c, &j.clock, &j.out), TFC_RESOURCE_EXHAUSTED, "which is too little already");
  assert_null(documented);
  end(&j);
  // If one device has no limit, the sum of the limits is unlimited, too.
  begin(&j, TFC_OBJECTIVE_STEP);
  j.devices[1].memory = TFC_NO_LIMIT, j.subject.variable_bytes = 5000000;
  add(&j, "#0", "candidate", (double)NAN, TFC_RESULT_NO_FIT);
  tfc_status none = tfc_job_answer(&j.c, &j.clock, &j.out);
  assert_non_null(none);
  assert_null(strstr(tfc_status_message(none), "too little"));
  tfc_status_free(none);
  assert_int_equal(j.out.exit_code, 5);
  end(&j);
  // Nothing was tried, as in a run that goes on when its time is over: that says nothing of memory, unless the
  // variables alone are too large.
  begin(&j, TFC_OBJECTIVE_STEP);
  assert_fails(tfc_job_answer(&j.c, &j.clock, &j.out), TFC_ABORTED, "the time was over before the first one");
  assert_int_equal(j.out.exit_code, 1);
  j.subject.variable_bytes = 3000001;
  assert_fails(tfc_job_answer(&j.c, &j.clock, &j.out), TFC_RESOURCE_EXHAUSTED, "which is too little already");
  assert_int_equal(j.out.exit_code, 5);
  end(&j);
  // All candidates failed for another reason, which is reported.
  begin(&j, TFC_OBJECTIVE_STEP);
  add(&j, "#0", "candidate", (double)NAN, TFC_RESULT_FAILED);
  struct tfc_job_candidate *k = add(&j, "#1", "candidate", (double)NAN, TFC_RESULT_ILLEGAL);
  k->code = TFC_UNIMPLEMENTED, k->note = (char *)(uintptr_t) "no such link";
  assert_fails(tfc_job_answer(&j.c, &j.clock, &j.out), TFC_UNIMPLEMENTED,
               "no placement could be measured: no such link");
  assert_int_equal(j.out.exit_code, 1);
  k->code = TFC_OK, k->note = NULL;
  assert_fails(tfc_job_answer(&j.c, &j.clock, &j.out), TFC_ABORTED, "they failed");
  k->code = TFC_CANCELLED;
  assert_fails(tfc_job_answer(&j.c, &j.clock, &j.out), TFC_ABORTED, "they failed");
  add(&j, "#2", "candidate", (double)NAN, TFC_RESULT_NO_FIT); // the candidate that did not fit decides the error
  assert_fails(tfc_job_answer(&j.c, &j.clock, &j.out), TFC_RESOURCE_EXHAUSTED, "nothing that was tried fits");
  assert_int_equal(j.out.exit_code, 5);
  end(&j);
}

// Predictions and times in the same order, but for one pair; a pair that is closer than its spread does not count.
static void agreement(void **state) {
  (void)state;
  struct job j;
  begin(&j, TFC_OBJECTIVE_STEP);
  const double times[] = {100, 200, 300, 400, 400.5}, predicted[] = {10, 30, 20, 40, 15};
  for (int i = 0; i < 5; i++) add(&j, "#", "candidate", times[i], TFC_RESULT_OK)->predicted_us = predicted[i];
  add(&j, "#", "candidate", 50, TFC_RESULT_CUT)->predicted_us = 100;
  add(&j, "single:cpu:0", "baseline", 50, TFC_RESULT_OK);
  assert_ok(tfc_job_table_correlate(&j.c, &j.out));
  assert_int_equal(j.out.tau_placements, 5);
  // There are nine pairs (400 and 400.5 count as equal). Three are in the wrong order: 20 and 30, 15 and 30, 15 and 20.
  assert_true(fabs(j.out.tau - (6 - 3) / 9.0) < 1e-12);
  // A candidate counts with what the database says it took: in the final turns, if it was in them, whatever became of
  // it there. So the second one is slower than all, which makes the pairs with 20 and 15 right and that with 40 wrong.
  struct tfc_job_candidate *k = &j.c.list.data[1];
  k->final_us = 500, k->final_q1 = 499, k->final_q3 = 501, k->state = TFC_RESULT_CUT;
  assert_ok(tfc_job_table_correlate(&j.c, &j.out));
  assert_int_equal(j.out.tau_placements, 5);
  assert_true(fabs(j.out.tau - (7 - 2) / 9.0) < 1e-12);
  k->final_q1 = 250, k->final_q3 = 750; // its steps vary by so much that pairs with 300 and more count no longer
  assert_ok(tfc_job_table_correlate(&j.c, &j.out));
  assert_true(fabs(j.out.tau - (5 - 1) / 6.0) < 1e-12);
  // Where loads are searched, loads are simulated and steps are measured.
  j.options.request.objective = TFC_OBJECTIVE_THROUGHPUT;
  assert_ok(tfc_job_table_correlate(&j.c, &j.out));
  assert_true(isnan(j.out.tau) && j.out.tau_placements == 0);
  end(&j);
}

// Steps of the final turns: those of the first blocks choose, the others are the result; warm-up counts nowhere. If
// devices' own records time the traced steps, steps without a trace stand apart.
static void turns(void **state) {
  (void)state;
  struct job j;
  struct tfc_measure_info info = {.device_count = DEVICES};
  begin(&j, TFC_OBJECTIVE_STEP);
  j.model.info = &info;
  j.c.final_from = 2;
  struct tfc_job_candidate k = {.role = "candidate", .median_us = 5, .final_us = (double)NAN};
  k.solution.device = somewhere;
  assert_true(tfc_array_push(&j.c.list, k));
  const struct tfc_measured_step steps[] = {
      {.block = 0, .traced = true, .warmup = true, .duration_ns = 900000},
      {.block = 0, .traced = true, .duration_ns = 10000},
      {.block = 0, .traced = true, .duration_ns = 30000},
      {.block = 0, .traced = true, .duration_ns = 11000},
      {.block = 1, .traced = true, .duration_ns = 44000},
      {.block = 2, .traced = true, .duration_ns = 20000},
      {.block = 2, .duration_ns = 7000},
      {.block = 3, .traced = true, .duration_ns = 24000},
      {.block = 3, .traced = true, .duration_ns = 22000},
      {.block = 3, .duration_ns = 9000},
  };
  const uint64_t peak[DEVICES] = {1, 2, 3};
  const struct tfc_plan_transfer_row sent[] = {{0, 0, 0, 1, 100}, {1, 0, 2, 0, 30}, {2, 0, 0, 1, 5}, {3, 0, 3, 1, 7}};
  struct tfc_measured m = {.state = TFC_RESULT_OK,
                           .by_records = true,
                           .steps = steps,
                           .step_count = sizeof steps / sizeof *steps,
                           .peak = peak,
                           .peak_count = DEVICES,
                           .transfers = sent,
                           .transfer_count = 4,
                           .ratio = (double)NAN};
  assert_ok(tfc_job_candidates_take(&j.c, 0, &m, true));
  struct tfc_job_candidate *t = &j.c.list.data[0];
  assert_int_equal(t->choose_count, 2);
  assert_true(t->choose_us[0] == 11 && t->choose_us[1] == 44);
  assert_true(fabs(tfc_job_choose_us(t) - sqrt(11.0 * 44)) < 1e-9); // this is a geometric mean
  assert_true(t->final_us == 22 && t->final_q1 == 21 && t->final_q3 == 23 && t->final_steps == 3);
  assert_int_equal(t->final_block_of.data[0], 0);
  assert_int_equal(t->final_block_of.data[2], 1);
  assert_true(t->untraced_us == 8 && t->untraced_steps == 2);
  assert_true(t->median_us == 5); // the first measurement is kept
  assert_int_equal(t->episode, 1);
  assert_true(t->peak[0] == 1 && t->peak[1] == 2 && t->peak[2] == 3 && !t->peak_part);
  assert_true(t->crossing[0 * DEVICES + 1] == 105 && t->crossing[2 * DEVICES + 0] == 30 && t->crossing[1] == 105);
  assert_true(t->transfers == 4 && t->transfer_bytes == 142);
  // Without a step there is no time; the first measurement is all its steps but those of the warm-up.
  struct tfc_measured none = {.state = TFC_RESULT_NO_FIT, .peak = peak, .peak_count = DEVICES, .ratio = (double)NAN};
  assert_ok(tfc_job_candidates_take(&j.c, 0, &none, false));
  assert_true(isnan(j.c.list.data[0].median_us) && isnan(j.c.list.data[0].level_us));
  assert_false(tfc_job_can_answer(&j.c.list.data[0]));
  m.step_count = 4, m.by_records = false, m.ratio = 0.5, m.variables_only = true;
  assert_ok(tfc_job_candidates_take(&j.c, 0, &m, false));
  t = &j.c.list.data[0];
  assert_true(t->median_us == 11 && t->level_us == 11 && t->steps == 3 && t->ratio == 0.5 && t->peak_part);
  assert_int_equal(t->episode, 1); // it was counted before
  // In flight only the better of two ways is kept.
  const struct tfc_measured_step ends[] = {{.duration_ns = 6000}, {.block = 1, .duration_ns = 8000}},
                                 later[] = {{.duration_ns = 9000}, {.duration_ns = 9000}};
  struct tfc_measured flight = {.state = TFC_RESULT_OK,
                                .steps = ends,
                                .step_count = 2,
                                .peak = peak,
                                .peak_count = DEVICES,
                                .ratio = (double)NAN};
  assert_ok(tfc_job_candidates_take_in_flight(&j.c, 0, &flight, 2));
  flight.steps = later;
  assert_ok(tfc_job_candidates_take_in_flight(&j.c, 0, &flight, 1));
  t = &j.c.list.data[0];
  assert_true(t->in_flight.at_once == 2 && t->in_flight.median_us == 7 && t->in_flight.us.count == 2);
  assert_true(t->in_flight.us.data[1] == 8 && t->in_flight.block.data[1] == 1);
  assert_true(tfc_job_load_us(t) == 7);
  flight.state = TFC_RESULT_FAILED, flight.steps = ends;
  t->in_flight.median_us = 100;
  assert_ok(tfc_job_candidates_take_in_flight(&j.c, 0, &flight, 3));
  assert_true(j.c.list.data[0].in_flight.at_once == 2);
  free(t->peak);
  free(t->busy_us);
  free(t->crossing);
  end(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faster),      cmocka_unit_test(notes),      cmocka_unit_test(no_gain),
      cmocka_unit_test(failed_best), cmocka_unit_test(throughput), cmocka_unit_test(no_fit),
      cmocka_unit_test(agreement),   cmocka_unit_test(turns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
