// Tests how measurements of --measure-with are divided among proposers.
#include "tests/common/test.h"

#include <string.h>

#include "placer/elsewhere/bandit.h"

static struct tfc_elsewhere_settings settings = {.measurements = 100};
static struct tfc_elsewhere_options options = {.settings = &settings};

static void add(struct tfc_elsewhere *r, const char *algorithm, uint32_t count, uint32_t won) {
  for (uint32_t i = 0; i < count; i++) {
    const struct tfc_elsewhere_known k = {.algorithm = algorithm, .readings = 1, .won = i < won};
    assert_true(tfc_array_push(&r->known, k));
  }
}

// Divides 1000 places; returns those of each arm.
static void divide(const struct tfc_elsewhere *r, struct tfc_elsewhere_arm *arms, uint32_t count) {
  struct tfc_random random;
  uint32_t sum = 0;
  tfc_random_init(&random, 4);
  tfc_elsewhere_divide(r, &random, arms, count, 1000);
  for (uint32_t i = 0; i < count; i++) sum += arms[i].places;
  assert_int_equal(sum, 1000);
}

static void test_the_winner_gets_more(void **state) {
  (void)state;
  struct tfc_elsewhere r = {.o = &options};
  struct tfc_elsewhere_arm arms[] = {{"learned", 0}, {"thompson", 0}, {"neighbour", 0}};
  // Before anything is known, all get about as much.
  divide(&r, arms, 3);
  for (int i = 0; i < 3; i++) assert_in_range(arms[i].places, 250, 420);
  // Of twenty placements each, eight of one won and one of another.
  add(&r, "learned", 20, 8), add(&r, "thompson", 20, 1), add(&r, "neighbour", 20, 0);
  divide(&r, arms, 3);
  assert_true(arms[0].places > 950 && arms[1].places >= arms[2].places);
  // Baselines, and placements whose readings failed, count for nobody.
  for (size_t i = 0; i < r.known.count; i++) r.known.data[i].baseline = i % 2, r.known.data[i].readings = i % 2;
  divide(&r, arms, 3);
  for (int i = 0; i < 3; i++) assert_in_range(arms[i].places, 250, 420);
  tfc_array_free(&r.known);
}

// An arm without a name stands for all algorithms without an arm of their own.
static void test_the_rest(void **state) {
  (void)state;
  struct tfc_elsewhere r = {.o = &options};
  struct tfc_elsewhere_arm arms[] = {{NULL, 0}, {"neighbour", 0}};
  add(&r, "lns", 10, 0), add(&r, "auto: anneal", 10, 0), add(&r, "neighbour", 20, 6);
  divide(&r, arms, 2);
  assert_true(arms[1].places > 900);
  add(&r, "heft", 4, 4), add(&r, "metis", 6, 6);
  divide(&r, arms, 2);
  assert_in_range(arms[0].places, 300, 900);
  tfc_array_free(&r.known);
}

// A learned policy gets a quarter of the measurements, and all that it asks for once it has won.
static void test_the_policy_earns_its_measurements(void **state) {
  (void)state;
  struct tfc_elsewhere r = {.o = &options};
  assert_true(tfc_elsewhere_is_learned("rl") && tfc_elsewhere_is_learned("auto: policy"));
  assert_false(tfc_elsewhere_is_learned("learned") || tfc_elsewhere_is_learned("heft"));
  add(&r, "lns", 10, 2), add(&r, "auto: policy", 20, 0);
  assert_true(tfc_elsewhere_may_propose(&r, "rl", 0) && tfc_elsewhere_may_propose(&r, "rl", 4));
  assert_false(tfc_elsewhere_may_propose(&r, "rl", 5));
  assert_true(tfc_elsewhere_may_propose(&r, "lns", 5) && tfc_elsewhere_may_propose(&r, NULL, 5));
  add(&r, "rl", 5, 0);
  assert_false(tfc_elsewhere_may_propose(&r, "auto: policy", 0));
  r.known.data[15].won = true;
  assert_true(tfc_elsewhere_may_propose(&r, "rl", 0) && tfc_elsewhere_may_propose(&r, "auto: policy", 40));
  tfc_array_free(&r.known);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_winner_gets_more), cmocka_unit_test(test_the_rest),
                                     cmocka_unit_test(test_the_policy_earns_its_measurements)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
