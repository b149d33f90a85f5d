// Tests what the integer program is asked as a rival, and what is made of its answers.
#include "tests/placer/methods.h"

#include "placer/exact/ilp.h"

static struct {
  uint32_t count;
  struct tfc_program_limits limits;
  bool own, started; // each unit is a cluster of its own
  tfc_device_id start[64];
  struct tfc_ilp_answer answer;
  tfc_device_id everything_on;
} program;
static tfc_status noted_ilp(const struct tfc_problem *p, const uint32_t *cluster, uint32_t count,
                            const struct tfc_program_limits *limits, const tfc_device_id *start, tfc_device_id *device,
                            struct tfc_ilp_answer *out) {
  program.count = count, program.limits = *limits, program.started = start != NULL, program.own = true;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    program.own = program.own && cluster[u] == u;
    if (start && u < 64) program.start[u] = start[u];
    device[u] = program.everything_on;
  }
  *out = program.answer;
  return NULL;
}

#define tfc_ilp_solve noted_ilp
#define tfc_algo_ilp own_ilp // the library has it, too
#include "placer/algo/ilp.c"

static tfc_code solve(const struct tfc_problem *p, const struct tfc_budget *budget, struct tfc_score *out) {
  struct tfc_solution s = {0};
  uint64_t used = 0;
  MUST(tfc_solution_init(&s, p));
  tfc_status failed = own_ilp.propose(p, NULL, budget, &s, &used);
  const tfc_code code = tfc_status_code(failed);
  *out = failed ? TFC_SCORE_NONE : score_of(p, &s);
  tfc_status_free(failed);
  tfc_solution_deinit(&s);
  return code;
}
static void test_integer_program(void **state) {
  (void)state;
  struct tfc_score score;
  const struct tfc_budget untimed = {.threads = 1};
  const uint64_t small[] = {100, 700};
  // Two kinds of sizes: as it is up to 64 units, about 40 clusters above.
  for (uint32_t count = 63; count <= 66; count++) {
    struct instance i = equal_nodes(count, 2, true, 10, NULL, TFC_OBJECTIVE_STEP);
    program.answer = (struct tfc_ilp_answer){.found = true}, program.everything_on = 1;
    assert_int_equal(solve(i.problem, &untimed, &score), TFC_OK);
    assert_true(program.own == (count <= 64));
    assert_true(count <= 64 ? program.count == count : program.count <= 50 && program.count >= 30);
    assert_true(program.limits.nodes == 200 && program.limits.seconds == 0);
    assert_true(program.started); // everything on one device is to be improved upon
    for (uint32_t u = 1; u < 60; u++) assert_int_equal(program.start[u], program.start[0]);
    assert_int_equal(score.value, (int64_t)count * 10000000);
    const struct tfc_budget timed = {.threads = 1, .deadline = tfc_now_s() + 5000};
    assert_int_equal(solve(i.problem, &timed, &score), TFC_OK);
    assert_true(program.limits.nodes == 0 && program.limits.seconds > 4000 && program.limits.seconds <= 5000);
    const struct tfc_budget late = {.threads = 1, .deadline = tfc_now_s() - 5};
    assert_int_equal(solve(i.problem, &late, &score), TFC_OK);
    is_near(program.limits.seconds, 0.05);
    // Each way to fail.
    program.answer = (struct tfc_ilp_answer){.gave_up = true};
    assert_int_equal(solve(i.problem, &untimed, &score), TFC_FAILED_PRECONDITION);
    assert_int_equal(solve(i.problem, &late, &score), TFC_DEADLINE_EXCEEDED); // too late is the better reason
    program.answer = (struct tfc_ilp_answer){.infeasible = true};
    assert_int_equal(solve(i.problem, &untimed, &score), TFC_FAILED_PRECONDITION);
    program.answer = (struct tfc_ilp_answer){0};
    assert_int_equal(solve(i.problem, &untimed, &score), TFC_DEADLINE_EXCEEDED);
    instance_free(&i);
  }
  // No device has room for all: there is no placement to improve upon; what the program returns is repaired.
  struct instance i = equal_nodes(50, 2, true, 10, (uint64_t[]){300, 300}, TFC_OBJECTIVE_STEP);
  program.answer = (struct tfc_ilp_answer){.found = true};
  assert_int_equal(solve(i.problem, &untimed, &score), TFC_OK);
  assert_true(!program.started && score.excess == 0);
  instance_free(&i);
  // All on the second device fits and is kept, since what is repaired is slower.
  i = equal_nodes(50, 2, true, 10, small, TFC_OBJECTIVE_STEP);
  program.everything_on = 0;
  assert_int_equal(solve(i.problem, &untimed, &score), TFC_OK);
  assert_true(program.started && program.start[0] == 1);
  assert_true(score.value == 500000000 && score.excess == 0);
  instance_free(&i);
  // Limits.
  for (uint32_t devices = 16; devices <= 17; devices++) {
    i = equal_nodes(5, devices, true, 0, NULL, TFC_OBJECTIVE_STEP);
    assert_int_equal(solve(i.problem, &untimed, &score), devices == 16 ? TFC_OK : TFC_FAILED_PRECONDITION);
    instance_free(&i);
  }
  i = equal_nodes(20001, 2, true, 0, NULL, TFC_OBJECTIVE_STEP);
  assert_int_equal(solve(i.problem, &untimed, &score), TFC_FAILED_PRECONDITION);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_integer_program)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
