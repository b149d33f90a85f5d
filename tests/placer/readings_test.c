// Tests what becomes of the readings of a measuring program: ratios to a reference that drifts, quartiles, failures,
// candidates that break a constraint, how long an answer is waited for, and which of several entries leads. The program
// is played here: its times are known.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/choice.h"
#include "placer/measure/command.h"
#include "placer/measure/command_evaluator.h"
#include "placer/measure/lines.c"
#include "placer/model/placement_json.h"
#include "tests/common/close.h"
#include "tests/placer/instances.h"

// --- readings ------------------------------------------------------------------------------------------------------

struct played { // answers by the device that the placement's first node is on: times, or why not
  uint32_t asked, warmup, steps;
  char order[64]; // the devices, in the order of the requests
  double reference_us[8];
  uint32_t references;
};

// Writes the document: it has one node, on the device of unit 0.
static tfc_status describe(void *user, const struct tfc_solution *solution, struct tfc_placement **out) {
  char text[200];
  (void)user;
  snprintf(text, sizeof text, "{\"format\": \"tfc-placement\", \"version\": 1, \"placement\": {\"n0\": \"acc:%u\"}}",
           solution->device[0]);
  return tfc_placement_parse(tfc_str_from(text), "test", out);
}
// acc:0 is the reference, and slows down; acc:1 takes 100 us, acc:2 200 us, acc:3 does not fit, acc:4 fails.
static tfc_status answer(void *user, const struct tfc_placement *placement, uint32_t warmup, uint32_t steps,
                         struct tfc_command_answer *a) {
  struct played *p = user;
  const char digit = placement->nodes[0].device.data[4];
  const size_t n = strlen(p->order);
  p->asked++, p->warmup = warmup, p->steps = steps;
  p->order[n] = digit, p->order[n + 1] = 0;
  a->state = TFC_RESULT_OK;
  if (digit == '3') return a->state = TFC_RESULT_NO_FIT, a->message = strdup("too large"), NULL;
  if (digit == '4') return a->state = TFC_RESULT_FAILED, a->message = strdup("it broke"), NULL;
  if (digit == '5') return tfc_status_make(TFC_UNAVAILABLE, "the program is gone");
  const double us = digit == '0' ? p->reference_us[p->references++] : digit == '1' ? 100 : 200;
  const double times[] = {0.9 * us, us, 1.2 * us}; // quartiles 0.95 and 1.1
  for (int i = 0; i < 3; i++)
    if (!tfc_array_push(&a->step_us, times[i])) return tfc_status_no_memory(NULL);
  return NULL;
}

struct shown {
  uint32_t count, index[16];
  double ratio[16];
  const struct tfc_solution *candidate[16];
};
static tfc_status show(void *user, uint32_t index, const struct tfc_solution *candidate,
                       const struct tfc_command_answer *a, const struct tfc_result *r) {
  struct shown *s = user;
  (void)a;
  assert_true(s->count < 16);
  s->index[s->count] = index, s->candidate[s->count] = candidate, s->ratio[s->count++] = r->ratio;
  return NULL;
}

static void test_ratios(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 1);
  struct instance i = random_instance(&r, 3, 6, 0, TFC_OBJECTIVE_STEP);
  struct played p = {.reference_us = {100, 200, 400}};
  struct shown seen = {0};
  struct tfc_command *program = NULL;
  struct tfc_evaluator *e = NULL;
  const struct tfc_command_options options = {.ask = answer, .ask_user = &p};
  tfc_device_id device[7][3] = {{0}, {1}, {2}, {1}, {3}, {2}, {4}};
  struct tfc_solution reference = {.device = device[0]}, candidates[6];
  struct tfc_result results[6] = {0};
  for (int k = 0; k < 6; k++) candidates[k] = (struct tfc_solution){.device = device[k + 1]};
  assert_ok(tfc_command_start(&options, &program));
  assert_ok(tfc_evaluator_command(program, i.problem, describe, NULL, show, &seen, &e));
  struct tfc_rules rules = {.cutoff = TFC_TIME_MAX, .reference = &reference};
  assert_ok(tfc_evaluate(e, candidates, 6, &rules, results));
  // The reference is measured before, after four, and at the end.
  assert_string_equal(p.order, "012130240");
  assert_true(p.warmup == 1 && p.steps == 5);
  // Between two readings of the reference its logarithm is taken to change evenly: from 100 to 200 us in five parts,
  // then from 200 to 400 us in three.
  static const double us[] = {100, 200, 100, NAN, 200, NAN};
  const double level[] = {100 * pow(2, 0.2), 100 * pow(2, 0.4), 100 * pow(2, 0.6), NAN, 200 * pow(2, 1 / 3.0), NAN};
  for (int k = 0; k < 6; k++) {
    const bool fine = us[k] > 0;
    assert_int_equal(results[k].label, TFC_LABEL_MEASURED);
    if (!fine) {
      assert_true(isnan(results[k].ratio) && results[k].value == TFC_TIME_MAX && results[k].q1 == TFC_TIME_MAX);
      assert_true(results[k].steps == 0 && results[k].q3 == TFC_TIME_MAX);
      continue;
    }
    assert_int_equal(results[k].state, TFC_RESULT_OK);
    assert_int_equal(results[k].value, (int64_t)(us[k] * 1e6));
    assert_int_equal(results[k].q1, (int64_t)(us[k] * 0.95e6));
    assert_int_equal(results[k].q3, (int64_t)(us[k] * 1.1e6));
    assert_int_equal(results[k].steps, 3);
    assert_close(results[k].ratio, us[k] / level[k]);
  }
  assert_int_equal(results[3].state, TFC_RESULT_NO_FIT);
  assert_string_equal(results[3].message, "too large");
  assert_int_equal(results[5].state, TFC_RESULT_FAILED);
  assert_string_equal(results[5].message, "it broke");
  // What is observed: the reference, then candidates with their ratios once the reference came again.
  static const uint32_t order[] = {TFC_NONE, TFC_NONE, 0, 1, 2, 3, TFC_NONE, 4, 5};
  assert_int_equal(seen.count, 9);
  for (uint32_t k = 0; k < 9; k++) {
    assert_int_equal(seen.index[k], order[k]);
    assert_ptr_equal(seen.candidate[k], order[k] == TFC_NONE ? &reference : &candidates[order[k]]);
    if (order[k] < 3) assert_close(seen.ratio[k], results[order[k]].ratio);
  }
  // Without a reference there are no ratios; the rules' numbers of steps are asked for.
  memset(&p, 0, sizeof p);
  rules = (struct tfc_rules){.cutoff = TFC_TIME_MAX, .warmup = 2, .steps = 9};
  assert_ok(tfc_evaluate(e, candidates, 2, &rules, results));
  assert_string_equal(p.order, "12");
  assert_true(isnan(results[0].ratio) && p.warmup == 2 && p.steps == 9 && results[0].value == 100000000);
  // A reference that fails before or after: the other reading alone counts.
  memset(&p, 0, sizeof p);
  device[0][0] = 4;
  rules.reference = &reference;
  assert_ok(tfc_evaluate(e, candidates, 1, &rules, results));
  assert_true(isnan(results[0].ratio) && results[0].state == TFC_RESULT_OK);
  // A candidate that breaks a constraint is not measured. If the program has ended, the evaluation ends.
  memset(&p, 0, sizeof p);
  device[1][0] = 250;
  assert_ok(tfc_evaluate(e, candidates, 1, &(struct tfc_rules){.cutoff = TFC_TIME_MAX}, results));
  assert_int_equal(p.asked, 0);
  assert_int_equal(results[0].state, TFC_RESULT_ILLEGAL);
  assert_non_null(results[0].message);
  device[1][0] = 5;
  assert_fails(tfc_evaluate(e, candidates, 1, &(struct tfc_rules){.cutoff = TFC_TIME_MAX}, results), TFC_UNAVAILABLE,
               "gone");
  for (int k = 0; k < 6; k++) tfc_result_deinit(&results[k]);
  tfc_evaluator_free(e);
  tfc_command_stop(program);
  instance_free(&i);
}

// --- choice --------------------------------------------------------------------------------------------------------

static void test_choice(void **state) {
  (void)state;
  // Three entries, turns 0 to 3. Of the first two turns entry 1 is the fastest, of all four entry 0; entry 2 lacks one.
  const double all[] = {1.0, 1.0, 1.0, 1.0, 0.9, 0.9, 1.3, 1.3, 0.1, 0.1, 0.1, NAN};
  assert_int_equal(tfc_choice_leader(all, 2, 4, 2), 1);
  assert_int_equal(tfc_choice_leader(all, 3, 4, 3), 2);
  assert_int_equal(tfc_choice_leader(all, 3, 4, 4), 0);
  assert_int_equal(tfc_choice_leader(all, 3, 4, 0), TFC_NONE);
  const double alike[] = {1.0, 1.0};
  assert_int_equal(tfc_choice_leader(alike, 2, 1, 1), 0); // of equal candidates, the first one leads
  // Differences of 0.1 and 0.3: mean 0.2, standard deviation sqrt(0.02), standard error 0.1. Four of these are more
  // than the mean. Of 0.19 and 0.21 the standard error is 0.01, but the least standard deviation makes it 0.0141.
  const double leader[] = {0, 0}, wide[] = {0.1, 0.3}, narrow[] = {0.19, 0.21}, close[] = {0.055, 0.055},
               farther[] = {0.058, 0.058}, faster[] = {-0.5, -0.5};
  assert_false(tfc_choice_surely_slower(leader, wide, 2));
  assert_true(tfc_choice_surely_slower(leader, narrow, 2));
  assert_false(tfc_choice_surely_slower(leader, close, 2)); // 4 * 0.02 / sqrt(2) = 0.0566
  assert_true(tfc_choice_surely_slower(leader, farther, 2));
  assert_false(tfc_choice_surely_slower(leader, faster, 2));
}

// --- lines ---------------------------------------------------------------------------------------------------------

// The last 400 bytes of what a command wrote to its stderr are kept, whatever the sizes of its writes.
static void test_tail(void **state) {
  (void)state;
  static const size_t sizes[] = {1, 7, 100, 399, 400, 401, 1000};
  char all[8000];
  for (size_t i = 0; i < sizeof all; i++) all[i] = (char)('a' + i % 23);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    struct tfc_lines l = {0};
    for (size_t at = 0; at + sizes[k] <= 3000; at += sizes[k]) {
      keep_tail(&l, all + at, sizes[k]);
      const size_t end_at = at + sizes[k], kept = end_at < TAIL ? end_at : TAIL;
      assert_int_equal(l.tail_size, kept);
      assert_memory_equal(l.tail, all + end_at - kept, kept);
    }
  }
}

static void test_lines(void **state) {
  (void)state;
  struct tfc_lines l = {0};
  tfc_str line;
  static const char *const parts[] = {"one\ntw", "o\n", "\nthree", " more\nrest"};
  static const char *const expected[] = {"one", "two", "", "three more"};
  uint32_t found = 0;
  for (size_t k = 0; k < 4; k++) {
    const size_t size = strlen(parts[k]);
    assert_true(tfc_array_reserve(&l.text, l.text.count + size));
    memcpy(l.text.data + l.text.count, parts[k], size);
    l.text.count += size;
    while (next_line(&l, &line)) {
      assert_true(found < 4 && tfc_str_is(line, expected[found]));
      found++;
    }
  }
  assert_int_equal(found, 4);
  tfc_array_free(&l.text);
}

// Each line that is sent gets one line back. The time that is left becomes shorter. When the program ends, its last
// line and the reason are reported.
static void test_dialogue(void **state) {
  (void)state;
  struct tfc_lines *l = NULL;
  tfc_str line;
  int64_t left = (int64_t)60000000000, before = left;
  assert_ok(tfc_lines_start("while read -r x; do echo \"got $x\"; done; printf 'first\\nlast words \\n\\n' >&2; exit 9",
                            -1, &l));
  for (int k = 0; k < 3; k++) {
    char text[32], back[24];
    snprintf(text, sizeof text, "line %d", k);
    snprintf(back, sizeof back, "got line %d", k);
    assert_ok(tfc_lines_exchange(l, tfc_str_from(text), 1 << 20, &left, NULL, &line));
    assert_true(tfc_str_is(line, back));
    assert_true(left <= before && left > 0);
    before = left;
  }
  char *how = tfc_lines_stop(l, false);
  assert_string_equal(how, "it ended with code 9: last words");
  free(how);
  // Several lines at once are returned one by one, also after the command has ended.
  assert_ok(tfc_lines_start("read -r x; printf 'a\\nb\\nc'", -1, &l));
  assert_ok(tfc_lines_exchange(l, TFC_STR("go"), 1 << 20, &left, NULL, &line));
  assert_true(tfc_str_is(line, "a"));
  assert_ok(tfc_lines_exchange(l, (tfc_str){0}, 1 << 20, &left, NULL, &line));
  assert_true(tfc_str_is(line, "b"));
  assert_fails(tfc_lines_exchange(l, (tfc_str){0}, 1 << 20, &left, NULL, &line), TFC_UNAVAILABLE, "has ended");
  assert_null(tfc_lines_stop(l, false));
  // One that says nothing: the time is over, and nothing is left of it.
  assert_ok(tfc_lines_start("cat > /dev/null", -1, &l));
  left = 30000000;
  assert_fails(tfc_lines_exchange(l, TFC_STR("go"), 1 << 20, &left, NULL, &line), TFC_DEADLINE_EXCEEDED,
               "does not answer");
  assert_true(left <= 0);
  assert_null(tfc_lines_stop(l, false));
  // A signal.
  assert_ok(tfc_lines_start("kill -9 $$", -1, &l));
  left = (int64_t)60000000000;
  assert_fails(tfc_lines_exchange(l, (tfc_str){0}, 1 << 20, &left, NULL, &line), TFC_UNAVAILABLE, "has ended");
  how = tfc_lines_stop(l, false);
  assert_string_equal(how, "it was ended by signal 9");
  free(how);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_ratios), cmocka_unit_test(test_choice),
                                     cmocka_unit_test(test_tail), cmocka_unit_test(test_lines),
                                     cmocka_unit_test(test_dialogue)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
