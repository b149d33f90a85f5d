// Tests parts of a job by hand: how its time is divided, whether the variables alone can fit, which nodes a search
// keeps together, and which candidates are measured with several steps in flight.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/job/clock.h"
#include "placer/job/finalists.h"
#include "placer/job/proposers.h"
#include "placer/job/room.h"
#include "placer/job/schedule.h"
#include "placer/job/together.h"

static void close_to(double a, double b) {
  if (!(fabs(a - b) < 1e-9)) fail_msg("%.12g is not %.12g", a, b);
}

// --- Time ------------------------------------------------------------------------------------------------------------
// A run that goes on soon after the machine was started has used more time than the machine's clock shows. What it has
// no time for any more has a deadline nevertheless: 0 would be none.
static void moments_are_deadlines(void **state) {
  (void)state;
  const struct tfc_job_clock c = {.begin_ns = INT64_C(60000000000), .before_s = 100};
  close_to(tfc_job_moment(&c, 45), 5);
  assert_true(tfc_job_moment(&c, 40) > 0 && tfc_job_moment(&c, 40) < 1);
  assert_true(tfc_job_moment(&c, 10) > 0 && tfc_job_moment(&c, 10) < 1);
}

static void schedule(void **state) {
  (void)state;
  struct tfc_job_schedule s = tfc_job_schedule_of(0, 0);
  assert_true(s.total_s == 600 && s.measurements == 200 && s.search_until_s == 0);
  s = tfc_job_schedule_of(100, 7);
  assert_true(s.total_s == 100 && s.measurements == 7);
  close_to(tfc_job_until(&s, 0.2), 20);
  close_to(tfc_job_report_s(&s), 5);
  // The final run has a quarter; in a short job 14 % and a second; at most 110 s, unless it needs more; at most half.
  close_to(tfc_job_search_end_s(&s, 0), 75);
  close_to(tfc_job_search_end_s(&(struct tfc_job_schedule){.total_s = 4}, 0), 2.44);
  close_to(tfc_job_search_end_s(&(struct tfc_job_schedule){.total_s = 1000}, 0), 890);
  close_to(tfc_job_search_end_s(&(struct tfc_job_schedule){.total_s = 1000}, 200), 800);
  close_to(tfc_job_search_end_s(&s, 40), 60);
  close_to(tfc_job_search_end_s(&s, 80), 50);
  // After a profile that took long, the search still gets a tenth of the time, but ends after 90 % of it at the latest.
  tfc_job_begin_search(&s, 72);
  close_to(s.search_until_s, 82);
  close_to(tfc_job_search_end_s(&s, 0), 82);
  tfc_job_begin_search(&s, 85);
  close_to(s.search_until_s, 90);
  // A round of search takes the least of an eighth of the time that is left, 40 s, and 50 ms for each unit; a third of
  // that if the last round improved nothing.
  close_to(tfc_job_round_s(80, 1000, true), 10);
  close_to(tfc_job_round_s(800, 1000, true), 40);
  close_to(tfc_job_round_s(80, 100, true), 5);
  close_to(tfc_job_round_s(72, 1000, false), 3);
  close_to(tfc_job_round_s(80, 2, true), 0.5);
  close_to(tfc_job_round_s(0.3, 1000, true), 0.3);
  // If evaluations are limited, a round gets an eighth of those that are left, but at least 200.
  assert_int_equal(tfc_job_round_evaluations(8000), 1000);
  assert_int_equal(tfc_job_round_evaluations(1600), 200);
  assert_int_equal(tfc_job_round_evaluations(300), 200);
  assert_int_equal(tfc_job_round_evaluations(150), 150);
  // A search may use the evaluations of the budget except those that earlier searches used and those kept for learners.
  const struct tfc_job_proposers proposers = {.evaluations = 70};
  uint64_t evaluations = 1;
  assert_true(tfc_job_proposers_may_search(&proposers, 0, 30, &evaluations) && evaluations == 0);
  assert_true(tfc_job_proposers_may_search(&proposers, 101, 30, &evaluations) && evaluations == 1);
  assert_false(tfc_job_proposers_may_search(&proposers, 100, 30, &evaluations));
  assert_false(tfc_job_proposers_may_search(&proposers, 60, 0, &evaluations));
  assert_int_equal(tfc_job_measurements_left(&s, 2), 5);
  assert_int_equal(tfc_job_measurements_left(&s, 9), 0);
}

// --- Room ------------------------------------------------------------------------------------------------------------
struct machine { // three variables on two devices
  struct tfc_node nodes[3];
  struct tfc_graph graph;
  struct tfc_plan_variable variables[3];
  struct tfc_measure_info info;
  struct tfc_machine_device devices[2];
  struct tfc_machine bare;
  uint32_t anchor[3], unit[3], pin[3], device_class[2];
  int64_t unit_time[3];
  struct tfc_subject subject;
  struct tfc_problem problem;
  struct tfc_job_options options;
  struct tfc_job_model model;
};

// Makes a machine whose first device has `limit` bytes of memory and the second `other_limit`. `units`: a digit for
// each variable, the number of its unit, as in "011".
static void make(struct machine *m, uint64_t limit, uint64_t other_limit, const char *units) {
  static const uint64_t bytes[] = {600000, 300000, 200000};
  static const char *const names[] = {"v0", "v1", "v2"};
  *m = (struct machine){0};
  for (uint32_t i = 0; i < 3; i++) {
    m->nodes[i].name = tfc_str_from(names[i]);
    m->variables[i] = (struct tfc_plan_variable){.node = i, .bytes = bytes[i]};
    m->anchor[i] = i, m->unit[i] = (uint32_t)(units[i] - '0'), m->pin[i] = TFC_NONE;
  }
  m->graph = (struct tfc_graph){.nodes = m->nodes, .node_count = 3};
  m->info = (struct tfc_measure_info){.variables = m->variables, .variable_count = 3, .device_count = 2};
  m->devices[0] = (struct tfc_machine_device){.name = TFC_STR("cpu:0"), .memory = limit};
  m->devices[1] = (struct tfc_machine_device){.name = TFC_STR("cpu:1"), .memory = other_limit};
  m->bare = (struct tfc_machine){.device_count = 2, .devices = m->devices};
  m->subject.anchor = m->anchor;
  m->problem = (struct tfc_problem){.unit_count = 3,
                                    .device_count = 2,
                                    .unit = m->unit,
                                    .unit_pin = m->pin,
                                    .unit_time = m->unit_time,
                                    .device_class = m->device_class};
  m->options.graph = &m->graph;
  m->model = (struct tfc_job_model){
      .o = &m->options, .info = &m->info, .subject = &m->subject, .bare = &m->bare, .problem = &m->problem};
}

static void room(void **state) {
  (void)state;
  struct machine m;
  make(&m, 500000, 500000, "012");
  assert_fails(tfc_job_check_room(&m.model), TFC_RESOURCE_EXHAUSTED,
               "the 3 variables of the step alone take 1.1 MB, all devices together may hold 1.0 MB, which is 100 kB "
               "too little already");
  make(&m, 600000, 500000, "012"); // the variables fit exactly
  assert_ok(tfc_job_check_room(&m.model));
  make(&m, 10, TFC_NO_LIMIT, "000");
  assert_ok(tfc_job_check_room(&m.model));
  make(&m, 599999, 599999, "012");
  assert_fails(tfc_job_check_room(&m.model), TFC_RESOURCE_EXHAUSTED, "variable 'v0': 600 kB, and cpu:0");
  make(&m, 650000, 700000, "101"); // v0 and v2 are together
  assert_fails(tfc_job_check_room(&m.model), TFC_RESOURCE_EXHAUSTED,
               "variable 'v0' and 1 more that must be on one device with it: 800 kB, and cpu:1, which has the most "
               "room of those that it may be on, may hold 700 kB: 100 kB are missing");
  make(&m, 500000, 800000, "101");
  assert_ok(tfc_job_check_room(&m.model));
  m.pin[1] = 0; // the variables of this unit may only be on the smaller device
  assert_fails(tfc_job_check_room(&m.model), TFC_RESOURCE_EXHAUSTED,
               "800 kB, and cpu:0, which has the most room of those that it may be on, may hold 500 kB: 300 kB are");
  m.anchor[0] = TFC_NONE; // the variable is not in the step
  assert_ok(tfc_job_check_room(&m.model));
}

// --- Together --------------------------------------------------------------------------------------------------------
enum { NODES = 8 };
struct parts {
  struct tfc_node nodes[NODES];
  struct tfc_graph graph;
  uint64_t bytes[NODES];
  uint32_t done_by[NODES], anchor[NODES], node_of[NODES];
  struct tfc_measure_info info;
  struct tfc_subject subject;
  struct tfc_cost_table *plain;
  struct tfc_job_together given;
  bool *kept;
  struct tfc_node_pair *pairs;
  uint32_t pair_count;
};

static void parts_make(struct parts *p) {
  *p = (struct parts){0};
  for (uint32_t i = 0; i < NODES; i++) {
    p->nodes[i].output_begin = i, p->nodes[i].output_count = 1;
    p->done_by[i] = UINT32_MAX, p->anchor[i] = i, p->node_of[i] = i;
  }
  p->graph = (struct tfc_graph){.nodes = p->nodes, .node_count = NODES};
  p->info = (struct tfc_measure_info){.done_by = p->done_by, .output_bytes = p->bytes, .node_count = NODES};
  p->subject = (struct tfc_subject){.anchor = p->anchor, .node_of = p->node_of};
  assert_ok(tfc_cost_table_create(NODES, 2, &p->plain));
  p->given = (struct tfc_job_together){&p->graph, &p->info, &p->subject, p->plain, 2};
}

// `expected`: pairs of nodes, "01 23".
static void finds(struct parts *p, const char *expected, const char *kept) {
  assert_ok(tfc_job_find_together(&p->given, &p->kept, &p->pairs, &p->pair_count));
  assert_int_equal(p->pair_count, (strlen(expected) + 1) / 3);
  for (uint32_t i = 0; i < p->pair_count; i++) {
    assert_int_equal(p->pairs[i].a, expected[3 * i] - '0');
    assert_int_equal(p->pairs[i].b, expected[3 * i + 1] - '0');
  }
  for (uint32_t i = 0; i < NODES; i++) assert_int_equal(p->kept[i], strchr(kept, (int)('0' + i)) != NULL);
  free(p->kept);
  free(p->pairs);
}

static void together(void **state) {
  (void)state;
  struct parts p;
  parts_make(&p);
  // Fused nodes stay if their outputs take more than a twentieth of their time to be written and read again, at 10
  // GB/s.
  for (uint32_t i = 1; i < 5; i++) p.done_by[i] = 0, p.nodes[i].output_count = 1;
  assert_ok(tfc_cost_table_put(p.plain, 1, 0, 100));
  p.bytes[1] = 25000; // 5 µs
  assert_ok(tfc_cost_table_put(p.plain, 2, 0, 100));
  p.bytes[2] = 25100;
  assert_ok(tfc_cost_table_put(p.plain, 3, 0, 400)); // the time on the faster kind is used
  assert_ok(tfc_cost_table_put(p.plain, 3, 1, 90));
  p.bytes[3] = 25000;
  p.bytes[4] = 1; // the time of this node is not known
  finds(&p, "20 30 40", "234");
  p.nodes[1].output_count = 2; // both of its outputs count
  finds(&p, "10 20 30 40", "1234");
  for (uint32_t i = 0; i < NODES; i++) p.done_by[i] = UINT32_MAX;
  struct tfc_plan_continued continued[] = {{5, 4, true}, {6, 5, false}, {7, 6, true}};
  p.info.continued = continued, p.info.continued_count = 3;
  finds(&p, "54 76", "");
  p.info.continued_count = 0;
  // Four nodes read a weight whose packing takes 10 µs (50 kB at 5 GB/s); a fifth of their time may go into it.
  struct tfc_plan_shared shared[] = {{6, 4, 50000}, {5, 4, 50000}, {7, 4, 50000}};
  p.info.shared = shared, p.info.shared_count = 3;
  finds(&p, "54 65 76", ""); // the times of the readers are not known
  for (uint32_t i = 4; i < 8; i++) assert_ok(tfc_cost_table_put(p.plain, i, 0, 25));
  finds(&p, "54 76", ""); // two packings: two sequences
  for (uint32_t i = 4; i < 8; i++) assert_ok(tfc_cost_table_put(p.plain, i, 1, 24.9));
  finds(&p, "54 65 76", ""); // one packing: one sequence
  tfc_cost_table_free(p.plain);
  parts_make(&p);
  for (uint32_t i = 4; i < 8; i++) assert_ok(tfc_cost_table_put(p.plain, i, 0, 50));
  p.info.shared = shared, p.info.shared_count = 3;
  finds(&p, "", ""); // four packings: four sequences
  // The graph itself keeps two of the four readers (4 and 5) together: they are one set already.
  p.anchor[5] = 4;
  for (uint32_t i = 0; i < 3; i++) shared[i].bytes = 90000; // two packings
  finds(&p, "76", "");
  tfc_cost_table_free(p.plain);
}

// --- Several steps in flight -----------------------------------------------------------------------------------------
static void by_load(void **state) {
  (void)state;
  static tfc_device_id somewhere[1];
  static const struct {
    double us;
    bool whole, single, baseline, heuristic;
    tfc_result_state state;
    uint64_t digest;
  } rows[] = {
      {10, true, false, true, false, TFC_RESULT_OK, 1},
      {60, false, true, true, false, TFC_RESULT_OK, 2},
      {50, false, true, true, false, TFC_RESULT_OK, 3},
      {90, false, false, true, false, TFC_RESULT_OK, 4}, // expert
      {30, false, false, true, true, TFC_RESULT_OK, 5},
      {20, false, false, false, false, TFC_RESULT_OK, 6},
      {20, false, false, false, false, TFC_RESULT_OK, 6}, // the same placement again
      {5, false, false, false, false, TFC_RESULT_NO_FIT, 7},
      {25, false, false, false, false, TFC_RESULT_OK, 8},
      {28, false, false, false, false, TFC_RESULT_OK, 9},
      {NAN, false, false, false, false, TFC_RESULT_OK, 10},
  };
  struct tfc_job_options o = {.request.objective = TFC_OBJECTIVE_THROUGHPUT};
  const struct tfc_job_model model = {.o = &o};
  struct tfc_job_candidates c = {.best = UINT32_MAX, .seen = UINT32_MAX, .model = &model};
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct tfc_job_candidate k = {.whole = rows[i].whole,
                                  .single = rows[i].single,
                                  .baseline = rows[i].baseline,
                                  .heuristic = rows[i].heuristic,
                                  .state = rows[i].state,
                                  .digest = rows[i].digest,
                                  .median_us = 100 - rows[i].us,
                                  .simulated_us = rows[i].us};
    if (isnan(rows[i].us)) k.median_us = 1;
    if (!k.whole) k.solution.device = somewhere;
    assert_true(tfc_array_push(&c.list, k));
  }
  uint32_t list[TFC_JOB_MOST_FINALISTS], count = tfc_job_finalists_by_load(&c, list);
  const uint32_t expected[] = {5, 8, 9, 2, 3, 0}; // three on several devices, the best single, the rival, the whole
  assert_int_equal(count, 6);
  for (uint32_t i = 0; i < 6; i++) assert_int_equal(list[i], expected[i]);
  o.request.objective = TFC_OBJECTIVE_STEP;
  assert_int_equal(tfc_job_finalists_by_load(&c, list), 0);
  tfc_array_free(&c.list);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(moments_are_deadlines),
      cmocka_unit_test(schedule),
      cmocka_unit_test(room),
      cmocka_unit_test(together),
      cmocka_unit_test(by_load),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
