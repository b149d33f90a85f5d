// Tests which candidates take part in the final run. Those that must be compared always take part, with fewer steps if
// time is short.
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>

#include "placer/job/finalists.h"
#include "placer/measure/choice.h"
#include "runtime/base/random.h"

static const struct tfc_job_options for_steps = {.request.objective = TFC_OBJECTIVE_STEP};
static const struct tfc_job_model by_steps = {.o = &for_steps};
// all candidates have this solution, because only their digests distinguish them here
static tfc_device_id somewhere[1];

static uint32_t add(struct tfc_job_candidates *c, const char *name, const char *role, double median_us,
                    tfc_result_state state) {
  const bool whole = strcmp(name, "whole") == 0, single = strncmp(name, "single:", 7) == 0;
  struct tfc_job_candidate k = {.name = (char *)(uintptr_t)name,
                                .role = role,
                                .whole = whole,
                                .single = single,
                                .baseline = strcmp(role, "candidate") != 0,
                                .heuristic = strcmp(role, "heuristic") == 0,
                                .digest = c->list.count + 1,
                                .state = state,
                                .median_us = median_us,
                                .level_us = median_us,
                                .final_us = (double)NAN};
  if (!whole) k.solution.device = somewhere;
  assert_true(tfc_array_push(&c->list, k));
  return (uint32_t)c->list.count - 1;
}

static bool holds(const uint32_t *list, uint32_t count, uint32_t index) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == index) return true;
  return false;
}

struct field {
  struct tfc_job_clock clock;
  struct tfc_job_candidates job;
  uint32_t whole, single, expert, own, incumbent, fastest, more;
};
static void make(struct field *f, double expert_us, tfc_result_state expert) {
  *f = (struct field){0};
  tfc_job_candidates_init(&f->job, &f->clock, &by_steps);
  f->whole = add(&f->job, "whole", "baseline", 400e3, TFC_RESULT_OK);
  f->single = add(&f->job, "single:cpu:0", "baseline", 800e3, TFC_RESULT_OK);
  f->expert = add(&f->job, "expert", "baseline", expert_us, expert);
  f->own = add(&f->job, "own", "baseline", 900e3, TFC_RESULT_OK);
  f->fastest = add(&f->job, "metis", "heuristic", 250e3, TFC_RESULT_OK);
  f->incumbent =
      // it is faster than the candidate before it, measured in turns
      add(&f->job, "#5", "candidate", 260e3, TFC_RESULT_OK);
  f->more = add(&f->job, "#6", "candidate", 280e3, TFC_RESULT_OK);
  add(&f->job, "#7", "candidate", 200e3, TFC_RESULT_NO_FIT);
  tfc_job_candidates_lead(&f->job, f->incumbent);
}
static void unmake(struct field *f) {
  tfc_array_free(&f->job.list);
}

static void assert_competitors(const struct field *f, const uint32_t *list, uint32_t count) {
  assert_true(holds(list, count, f->whole));
  assert_true(holds(list, count, f->single));
  assert_true(holds(list, count, f->expert));
  assert_true(holds(list, count, f->incumbent));
  assert_true(holds(list, count, f->fastest));
}

static void test_time_enough(void **state) {
  (void)state;
  struct field f;
  uint32_t list[TFC_JOB_MOST_FINALISTS], block = 0;
  make(&f, 500e3, TFC_RESULT_OK);
  uint32_t count = tfc_job_finalists(&f.job, 1000, list, &block);
  assert_competitors(&f, list, count);
  assert_true(holds(list, count, f.own));
  assert_true(holds(list, count, f.more));
  assert_int_equal(count, 7); // every candidate once, and none that did not fit in memory
  assert_int_equal(block, 5);
  unmake(&f);
}

static void test_short_of_time(void **state) {
  (void)state;
  uint32_t last = TFC_NONE;
  for (double left = 100; left > -10; left -= 5) {
    struct field f;
    uint32_t list[TFC_JOB_MOST_FINALISTS], block = 0;
    make(&f, 1100e3, TFC_RESULT_CUT); // it was stopped while the machine was disturbed, so it is compared all the same
    uint32_t count = tfc_job_finalists(&f.job, left, list, &block);
    assert_competitors(&f, list, count);
    assert_true(block >= 2 && block <= 5);
    if (left <= 0) assert_int_equal(block, 2);
    assert_true(count <= last);
    last = count;
    unmake(&f);
  }
  assert_int_equal(last, 5); // the user's own placement is dropped first
}

// The less time there is, the more of the user's placements are left out, the slowest first; the others keep their
// order.
static void test_left_out(void **state) {
  (void)state;
  struct tfc_job_clock clock = {0};
  struct tfc_job_candidates c;
  uint32_t list[TFC_JOB_MOST_FINALISTS], block, left_out = 0, seen = 0;
  tfc_job_candidates_init(&c, &clock, &by_steps);
  add(&c, "#0", "candidate", 100e3, TFC_RESULT_OK);
  add(&c, "single:cpu:0", "baseline", 800e3, TFC_RESULT_OK);
  const double us[] = {500e3, 900e3, 300e3, 700e3}; // the user's
  for (int i = 0; i < 4; i++) add(&c, "own", "baseline", us[i], TFC_RESULT_OK);
  tfc_job_candidates_lead(&c, 0);
  for (double left = 200; left > -1; left -= 0.1) {
    const uint32_t count = tfc_job_finalists(&c, left, list, &block);
    assert_true(count <= 6 && count + left_out <= 6);
    left_out = 6 - count;
    seen |= 1u << left_out;
    static const uint32_t slowest[] = {3, 5, 2, 4};
    uint32_t n = 0;
    for (uint32_t i = 0; i < count; i++) {
      for (uint32_t k = 0; k < left_out; k++) assert_true(list[i] != slowest[k]);
      for (uint32_t k = 0; k < i; k++) assert_true(list[i] != list[k]);
      n += list[i] < 6;
    }
    assert_int_equal(n, count);
    assert_int_equal(list[0], 0);
  }
  assert_int_equal(seen, 31); // one after another, all four
  tfc_array_free(&c.list);
}

static void test_hopeless_expert(void **state) {
  (void)state;
  struct field f;
  uint32_t list[TFC_JOB_MOST_FINALISTS], block = 0;
  make(&f, 20e6, TFC_RESULT_CUT);
  uint32_t count = tfc_job_finalists(&f.job, 1000, list, &block);
  assert_true(holds(list, count, f.expert));
  count = tfc_job_finalists(&f.job, 30, list, &block);
  assert_false(holds(list, count, f.expert));
  unmake(&f);
}

// Many placements that the user gave: the list is full then, and no candidate goes beyond its end.
static void test_full(void **state) {
  (void)state;
  struct tfc_job_clock clock = {0};
  struct tfc_job_candidates c;
  uint32_t list[TFC_JOB_MOST_FINALISTS + 2], block = 0;
  tfc_job_candidates_init(&c, &clock, &by_steps);
  for (uint32_t i = 0; i < TFC_JOB_MOST_FINALISTS; i++) add(&c, "own", "baseline", 1e3 + i, TFC_RESULT_OK);
  for (uint32_t i = 0; i < 5; i++) add(&c, "#9", "candidate", 900 + i, TFC_RESULT_OK);
  tfc_job_candidates_lead(&c, TFC_JOB_MOST_FINALISTS);
  for (uint32_t given = TFC_JOB_MOST_FINALISTS; given >= TFC_JOB_MOST_FINALISTS - 3; given--) {
    for (uint32_t i = 0; i < TFC_JOB_MOST_FINALISTS + 2; i++) list[i] = 12345;
    const uint32_t count = tfc_job_finalists(&c, 1e6, list, &block);
    assert_int_equal(count, TFC_JOB_MOST_FINALISTS);
    assert_true(list[count] == 12345 && list[count + 1] == 12345);
    c.list.data[given - 1].state = TFC_RESULT_FAILED; // with room for some of the candidates
  }
  tfc_array_free(&c.list);
}

static void test_nothing_measured(void **state) {
  (void)state;
  struct tfc_job_candidates c = {.best = TFC_NONE, .seen = TFC_NONE, .model = &by_steps};
  uint32_t list[TFC_JOB_MOST_FINALISTS], block = 0;
  assert_int_equal(tfc_job_finalists(&c, 10, list, &block), 0);
}

// The machine was fast when one candidate was measured and slow later, so candidates are compared by their ratio to the
// reference that ran in the same turns.
static void test_drift(void **state) {
  (void)state;
  struct field f;
  uint32_t list[TFC_JOB_MOST_FINALISTS], block = 0, many[12];
  make(&f, 500e3, TFC_RESULT_OK);
  for (uint32_t i = 0; i < 12; i++) many[i] = add(&f.job, "#8", "candidate", 300e3 + i, TFC_RESULT_OK);
  f.job.list.data[many[7]].level_us = 240e3;
  f.job.list.data[many[3]].level_us = 245e3;
  tfc_job_candidates_consider(&f.job, many[7]);
  assert_int_equal(f.job.best, many[7]);
  tfc_job_candidates_consider(&f.job,
                              many[3]); // better than the common reference, but not better than the candidate before it
  assert_int_equal(f.job.best, many[7]);
  uint32_t count = tfc_job_finalists(&f.job, 1000, list, &block);
  assert_competitors(&f, list, count);
  assert_true(holds(list, count, many[7]) && holds(list, count, many[3]));
  assert_int_equal(count, 4 + 8); // whole, the best single device, two rivals, and as many others as are allowed
  count = tfc_job_finalists(&f.job, 120, list, &block);
  assert_true(holds(list, count, many[7]) && holds(list, count, many[3]));
  assert_true(count < 4 + 8); // with more candidates each would get fewer rounds
  assert_int_equal(block, 5);
  unmake(&f);
}

// A candidate that was reported as the best so far takes part, however short the time is and whichever candidate leads
// then.
static void test_best_so_far(void **state) {
  (void)state;
  struct field f;
  uint32_t list[TFC_JOB_MOST_FINALISTS], block = 0;
  make(&f, 500e3, TFC_RESULT_OK);
  const uint32_t said = add(&f.job, "#8", "candidate", 150e3, TFC_RESULT_OK);
  const uint32_t leader = add(&f.job, "#9", "candidate", 245e3, TFC_RESULT_OK);
  // the machine was fast when it was measured, so it takes longer at the common level
  f.job.list.data[said].level_us = 255e3;
  f.job.list.data[leader].level_us = 240e3;
  tfc_job_candidates_lead(&f.job, TFC_NONE);
  tfc_job_candidates_consider(&f.job, said);
  tfc_job_candidates_consider(&f.job, leader);
  assert_int_equal(f.job.best, leader);
  for (double left = 1000; left > -10; left -= 101) {
    uint32_t count = tfc_job_finalists(&f.job, left, list, &block);
    assert_true(holds(list, count, said) && holds(list, count, leader));
  }
  unmake(&f);
}

// A fake measurer whose steps take 100 us, times noise. It measures the turns that choose, and then the turns of the
// chosen candidate.
enum { ALIKE = 12, RUNS = 200 };
static void measure_alike(struct tfc_job_candidates *c, const uint32_t *index, struct tfc_random *random) {
  struct tfc_measured_step steps[ALIKE][(TFC_JOB_CHOOSE_ROUNDS + TFC_JOB_FINAL_ROUNDS) * TFC_JOB_FINAL_BLOCK];
  double log_us[ALIKE * TFC_JOB_CHOOSE_ROUNDS];
  uint32_t count[ALIKE] = {0}, leader = TFC_NONE;
  for (uint32_t turn = 0; turn < TFC_JOB_CHOOSE_ROUNDS + TFC_JOB_FINAL_ROUNDS; turn++) {
    if (turn == TFC_JOB_CHOOSE_ROUNDS)
      leader = tfc_choice_leader(log_us, ALIKE, TFC_JOB_CHOOSE_ROUNDS, TFC_JOB_CHOOSE_ROUNDS);
    for (uint32_t i = 0; i < ALIKE; i++) {
      double us[TFC_JOB_FINAL_BLOCK];
      const double slow = exp(0.15 * tfc_random_normal(random)); // one factor for all steps of a block
      if (leader != TFC_NONE && i != leader) continue;
      for (uint32_t k = 0; k < TFC_JOB_FINAL_BLOCK; k++) {
        us[k] = 100 * slow;
        steps[i][count[i]++] =
            (struct tfc_measured_step){.block = turn, .start_ns = 1, .duration_ns = (int64_t)(1e3 * us[k])};
      }
      if (turn < TFC_JOB_CHOOSE_ROUNDS) log_us[i * TFC_JOB_CHOOSE_ROUNDS + turn] = log(us[0]);
    }
  }
  for (uint32_t i = 0; i < ALIKE; i++) {
    const struct tfc_measured m = {.state = TFC_RESULT_OK, .steps = steps[i], .step_count = count[i]};
    assert_ok(tfc_job_candidates_take(c, index[i], &m, true));
  }
  tfc_job_candidates_choose_finalist(c, index, ALIKE);
  assert_int_equal(c->best, index[leader]);
}

// If many candidates are equally fast, the chosen one was lucky in its turns. The reported figure comes from later
// turns, which did not choose it.
static void test_the_figure_is_not_the_lucky_one(void **state) {
  (void)state;
  const struct tfc_measure_info info = {.device_count = 1};
  const struct tfc_job_model model = {.info = &info};
  struct tfc_random random;
  double chosen = 0, told = 0;
  tfc_random_init(&random, 5);
  for (int run = 0; run < RUNS; run++) {
    struct tfc_job_clock clock = {0};
    struct tfc_job_candidates c;
    uint32_t index[ALIKE];
    tfc_job_candidates_init(&c, &clock, &model);
    for (uint32_t i = 0; i < ALIKE; i++) index[i] = add(&c, "#1", "candidate", 100, TFC_RESULT_OK);
    c.final_from = TFC_JOB_CHOOSE_ROUNDS;
    measure_alike(&c, index, &random);
    const struct tfc_job_candidate *best = tfc_job_candidates_best(&c);
    chosen += log(tfc_job_choose_us(best) / 100) / RUNS, told += log(tfc_job_final_us(best) / 100) / RUNS;
    assert_int_equal(best->final_steps, TFC_JOB_FINAL_ROUNDS * TFC_JOB_FINAL_BLOCK);
    for (uint32_t i = 0; i < ALIKE; i++) {
      struct tfc_job_candidate *k = &c.list.data[i];
      assert_true(i == c.best || isnan(k->final_us));
      free(k->peak), free(k->busy_us), free(k->crossing);
      tfc_array_free(&k->final_step_us), tfc_array_free(&k->final_block_of);
    }
    tfc_array_free(&c.list);
  }
  // In the turns that chose it, the candidate seems 10 % faster than it is. The reported figure has only random error,
  // with a standard deviation of 0.15 / sqrt(6 * 200); four of these are allowed.
  assert_true(chosen < -0.08);
  assert_true(fabs(told) < 0.018);
}

// Where the records of GPUs time the steps (by_records), the result of the final turns comes from traced steps alone;
// the times of untraced ones are kept beside it. Otherwise both kinds of steps count for the result.
static void test_untraced_steps_stand_beside(void **state) {
  (void)state;
  enum { BLOCKS = TFC_JOB_CHOOSE_ROUNDS + 4 };
  const struct tfc_measure_info info = {.device_count = 1};
  const struct tfc_job_model model = {.info = &info};
  struct tfc_measured_step steps[BLOCKS];
  for (uint32_t b = 0; b < BLOCKS; b++) // traced steps take 100 us, others 104
    steps[b] = (struct tfc_measured_step){.block = b, .traced = b % 2 == 0, .duration_ns = b % 2 ? 104000 : 100000};
  for (int by_records = 0; by_records < 2; by_records++) {
    struct tfc_job_clock clock = {0};
    struct tfc_job_candidates c;
    tfc_job_candidates_init(&c, &clock, &model);
    const uint32_t index = add(&c, "#1", "candidate", 100, TFC_RESULT_OK);
    c.final_from = TFC_JOB_CHOOSE_ROUNDS;
    const struct tfc_measured m = {
        .state = TFC_RESULT_OK, .steps = steps, .step_count = BLOCKS, .by_records = by_records};
    assert_ok(tfc_job_candidates_take(&c, index, &m, true));
    struct tfc_job_candidate *k = &c.list.data[index];
    assert_int_equal(k->choose_count, TFC_JOB_CHOOSE_ROUNDS);
    assert_int_equal(k->final_steps, by_records ? 2 : 4);
    assert_int_equal(k->untraced_steps, by_records ? 2 : 0);
    assert_true(fabs(k->final_us - (by_records ? 100 : 102)) < 1e-9);
    assert_true(by_records ? fabs(k->untraced_us - 104) < 1e-9 : isnan(k->untraced_us));
    free(k->peak), free(k->busy_us), free(k->crossing);
    tfc_array_free(&k->final_step_us), tfc_array_free(&k->final_block_of);
    tfc_array_free(&c.list);
  }
}

static void test_surely_slower(void **state) {
  (void)state;
  const double leader[] = {1, 1.1, 0.9, 1}, alike[] = {1.03, 1.1, 0.95, 1.02}, slower[] = {1.2, 1.31, 1.1, 1.2};
  assert_false(tfc_choice_surely_slower(leader, slower, 1)); // one reading is not enough to be sure
  assert_true(tfc_choice_surely_slower(leader, slower, 2));
  assert_true(tfc_choice_surely_slower(leader, slower, 4));
  assert_false(tfc_choice_surely_slower(leader, alike, 4));
  const double all[] = {NAN, 0.1, 2, 2, 1, 1};
  assert_int_equal(tfc_choice_leader(all, 3, 2, 2), 2);
  assert_int_equal(tfc_choice_leader(all, 1, 2, 2), TFC_NONE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_drift),
      cmocka_unit_test(test_best_so_far),
      cmocka_unit_test(test_time_enough),
      cmocka_unit_test(test_short_of_time),
      cmocka_unit_test(test_left_out),
      cmocka_unit_test(test_hopeless_expert),
      cmocka_unit_test(test_full),
      cmocka_unit_test(test_nothing_measured),
      cmocka_unit_test(test_surely_slower),
      cmocka_unit_test(test_untraced_steps_stand_beside),
      cmocka_unit_test(test_the_figure_is_not_the_lucky_one),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
