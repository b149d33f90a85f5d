// Tests the gradient on measured times: what slows down a whole block has no influence, although it would turn around
// a gradient of raw times.
#include "tests/common/test.h"

#include <math.h>

#include "rl/gradient.h"

enum { BLOCKS = 2, SAMPLES = 4 };

// Larger weights are better: a step takes 1.1 with -1, and 0.9 with 1. While the second block ran, the machine was
// half as fast; that block has more of the better samples.
static const float weight_of[BLOCKS][SAMPLES] = {{-1, -1, -1, 1}, {1, 1, 1, -1}};
static const double time_of[BLOCKS][SAMPLES] = {{1.1, 1.1, 1.1, 0.9}, {1.8, 1.8, 1.8, 2.2}};

static void test_drift(void **state) {
  (void)state;
  float weights[SAMPLES][TFC_WEIGHTS] = {{0}};
  const float *const list[SAMPLES] = {weights[0], weights[1], weights[2], weights[3]};
  struct tfc_gradient g = {.mean = {0}};
  double raw = 0, mean = 0, own = 0;
  // The gradient of raw rewards, with the mean of all as the baseline: it has the wrong sign.
  for (int b = 0; b < BLOCKS; b++)
    for (int i = 0; i < SAMPLES; i++) mean -= log(time_of[b][i]) / (BLOCKS * SAMPLES);
  for (int b = 0; b < BLOCKS; b++)
    for (int i = 0; i < SAMPLES; i++) raw += (-log(time_of[b][i]) - mean) * (double)weight_of[b][i];
  assert_true(raw < -0.5);
  // Advantages within a block have the right one, and add up to 0 in each block.
  for (int b = 0; b < BLOCKS; b++) {
    double advantage[SAMPLES], sum = 0;
    tfc_gradient_advantages(time_of[b], SAMPLES, advantage);
    for (int i = 0; i < SAMPLES; i++) own += advantage[i] * (double)weight_of[b][i], sum += advantage[i];
    assert_true(fabs(sum) < 1e-12);
  }
  assert_true(own > 0.5);
  for (int b = 0; b < BLOCKS; b++) {
    const double before = g.mean[5];
    for (int i = 0; i < SAMPLES; i++) weights[i][5] = weight_of[b][i];
    tfc_gradient_step(&g, list, time_of[b], SAMPLES);
    assert_true(g.mean[5] > before);
  }
  // Weights that did not differ stay where they are.
  for (int w = 0; w < TFC_WEIGHTS; w++)
    if (w != 5) assert_true(g.mean[w] == 0);
}

// The speed of the machine during a block changes nothing at all.
static void test_speed(void **state) {
  (void)state;
  static const double times[] = {3, 5, 4, 6}, factors[] = {0.125, 1, 8};
  double first[4], other[4];
  tfc_gradient_advantages(times, 4, first);
  assert_true(fabs(first[0] - (log(5 * 4 * 6) / 3 - log(3))) < 1e-12);
  for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
    double scaled[4];
    for (int i = 0; i < 4; i++) scaled[i] = factors[k] * times[i];
    tfc_gradient_advantages(scaled, 4, other);
    for (int i = 0; i < 4; i++) assert_true(fabs(first[i] - other[i]) < 1e-12);
  }
}

// Samples that were not measured teach nothing, and neither does one that was measured alone.
static void test_missing(void **state) {
  (void)state;
  const double some[] = {2, NAN, 8}, alone[] = {NAN, 5, NAN};
  double advantage[3];
  float weights[3][TFC_WEIGHTS] = {{0}};
  const float *const list[] = {weights[0], weights[1], weights[2]};
  struct tfc_gradient g = {.mean = {0}};
  tfc_gradient_advantages(some, 3, advantage);
  assert_true(fabs(advantage[0] - log(4)) < 1e-12 && advantage[1] == 0 && fabs(advantage[2] + log(4)) < 1e-12);
  tfc_gradient_advantages(alone, 3, advantage);
  assert_true(advantage[0] == 0 && advantage[1] == 0 && advantage[2] == 0);
  weights[1][0] = 1;
  tfc_gradient_step(&g, list, alone, 3);
  tfc_gradient_step(&g, list, alone, 0);
  assert_true(g.mean[0] == 0 && g.scale == 0);
}

// With readings that are 15 % off and a drift of a factor of two, the mean comes near the best weight.
static void test_noise(void **state) {
  (void)state;
  struct tfc_random r;
  float weights[8][TFC_WEIGHTS] = {{0}};
  const float *list[8];
  struct tfc_gradient g = {.mean = {0}};
  tfc_random_init(&r, 3);
  for (int b = 0; b < 200; b++) {
    double times[8];
    const double drift = 1.5 + 0.5 * sin(b / 7.0);
    for (int i = 0; i < 8; i++) {
      list[i] = weights[i];
      weights[i][0] = (float)(g.mean[0] + 0.5 * tfc_random_normal(&r));
      const double off = (double)weights[i][0] - 2;
      times[i] = drift * (1 + 0.1 * off * off) * exp(0.15 * tfc_random_normal(&r));
    }
    tfc_gradient_step(&g, list, times, 8);
  }
  assert_true(fabs(g.mean[0] - 2) < 0.5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_drift), cmocka_unit_test(test_speed),
                                     cmocka_unit_test(test_missing), cmocka_unit_test(test_noise)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
