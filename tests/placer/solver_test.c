// Tests integer programs against brute force, programs whose numbers make CBC abort, time limits and cancellation.
#include "tests/common/test.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "placer/exact/solver.h"
#include "placer/search/local.h"
#include "runtime/base/random.h"

#define ITEMS 8
#define BINS 3

// Makes a program that assigns items to bins so that the largest load is as small as possible; sizes span `decades`
// powers of ten.
static void make(struct tfc_program *p, struct tfc_random *random, int items, double decades, double *size) {
  const int span = tfc_program_variable(p, 1, 0, INFINITY, false);
  for (int i = 0; i < items; i++) {
    size[i] = pow(10, decades * (tfc_random_unit(random) - 0.5));
    for (int b = 0; b < BINS; b++) tfc_program_variable(p, 0, 0, 1, true);
    tfc_program_row(p, 1, 1);
    for (int b = 0; b < BINS; b++) tfc_program_term(p, span + 1 + i * BINS + b, 1);
  }
  for (int b = 0; b < BINS; b++) {
    tfc_program_row(p, 0, INFINITY);
    tfc_program_term(p, span, 1);
    for (int i = 0; i < items; i++) tfc_program_term(p, span + 1 + i * BINS + b, -size[i]);
  }
}

static double least_load(const double *size, int items) {
  double best = INFINITY;
  int choice[ITEMS] = {0};
  for (;;) {
    double load[BINS] = {0}, most = 0;
    for (int i = 0; i < items; i++) load[choice[i]] += size[i];
    for (int b = 0; b < BINS; b++) most = fmax(most, load[b]);
    best = fmin(best, most);
    int i = 0;
    while (i < items && ++choice[i] == BINS) choice[i++] = 0;
    if (i == items) return best;
  }
}

static void equals_brute_force(void **state) {
  (void)state;
  struct tfc_random random;
  tfc_random_init(&random, 7);
  for (int round = 0; round < 20; round++) {
    struct tfc_program p = {0};
    struct tfc_program_answer answer;
    double size[ITEMS];
    make(&p, &random, ITEMS, 2, size);
    assert_ok(tfc_program_solve(&p, &(struct tfc_program_limits){0}, &answer));
    assert_true(answer.optimal && answer.x && !answer.gave_up);
    const double best = least_load(size, ITEMS);
    assert_true(fabs(answer.value - best) <= 1e-5 * best);
    free(answer.x);
    tfc_program_deinit(&p);
  }
}

// The sizes span 24 powers of ten, and there are start times along a chain: about one such program in twenty makes an
// assertion in CBC fail.
static void survives_its_numbers(void **state) {
  (void)state;
#ifdef TFC_SANITIZED
  skip(); // under sanitizers programs are solved in this process, which an abort would end
#endif
  int lost = 0;
  for (uint64_t round = 0; round < 80; round++) {
    struct tfc_random random;
    struct tfc_program p = {0};
    struct tfc_program_answer answer;
    double size[ITEMS];
    tfc_random_init(&random, 100 + round);
    make(&p, &random, ITEMS, 24, size);
    int before = tfc_program_variable(&p, 0, 0, INFINITY, false);
    for (int i = 0; i < ITEMS; i++) {
      const int end = tfc_program_variable(&p, 0, 0, INFINITY, false);
      tfc_program_row(&p, 0, INFINITY);
      tfc_program_term(&p, end, 1), tfc_program_term(&p, before, -1);
      for (int b = 0; b < BINS; b++) tfc_program_term(&p, 1 + i * BINS + b, -size[i] * (b + 1));
      before = end;
    }
    tfc_program_row(&p, 0, INFINITY);
    tfc_program_term(&p, 0, 1), tfc_program_term(&p, before, -1);
    assert_ok(tfc_program_solve(&p, &(struct tfc_program_limits){.seconds = 20}, &answer));
    assert_true(answer.x || answer.gave_up || answer.infeasible);
    lost += !answer.x;
    free(answer.x);
    tfc_program_deinit(&p);
  }
  if (lost > 4) fail_msg("%d of 80 programs without a solution", lost); // each program has a solution
}

static void ends_in_time(void **state) {
  (void)state;
  struct tfc_random random;
  struct tfc_program p = {0};
  struct tfc_program_answer answer;
  double size[60];
  tfc_random_init(&random, 3);
  make(&p, &random, 60, 1, size); // too large to be solved to optimality
  assert_ok(tfc_program_solve(&p, &(struct tfc_program_limits){.seconds = 0.3}, &answer));
  assert_false(answer.optimal);
  free(answer.x);
  atomic_bool cancel = true;
  assert_ok(tfc_program_solve(&p, &(struct tfc_program_limits){.cancel = &cancel}, &answer));
  assert_true(answer.gave_up && !answer.x);
  tfc_program_deinit(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equals_brute_force), cmocka_unit_test(survives_its_numbers),
                                     cmocka_unit_test(ends_in_time)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
