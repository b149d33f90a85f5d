// Tests how a search draws the method that may try next (placer/search/credit.h).
#include "tests/common/test.h"

#include "placer/search/credit.h"

static const enum tfc_search_method methods[] = {TFC_METHOD_ANNEAL, TFC_METHOD_CLUSTERS, TFC_METHOD_LNS};
enum { METHODS = sizeof methods / sizeof *methods, DRAWS = 3000 };

static void count(struct tfc_credits c, uint32_t *counts) {
  struct tfc_random r;
  tfc_random_init(&r, 4);
  memset(counts, 0, sizeof *counts * TFC_METHOD_COUNT);
  for (int i = 0; i < DRAWS; i++) {
    struct tfc_credits copy = c;
    counts[tfc_credits_draw(&copy, methods, METHODS, &r)]++;
  }
}

// Methods are drawn equally often until one has been tried. Then the method with the largest gain per effort (not the
// largest total gain) is drawn most, but every method is still drawn sometimes.
static void gains_are_credited_by_their_cost(void **state) {
  (void)state;
  struct tfc_credits c = {0};
  uint32_t counts[TFC_METHOD_COUNT];
  count(c, counts);
  for (int i = 0; i < METHODS; i++) assert_in_range(counts[methods[i]], DRAWS / 4, DRAWS / 2);
  tfc_credits_add(&c, TFC_METHOD_ANNEAL, 0.02, 1000);
  tfc_credits_add(&c, TFC_METHOD_CLUSTERS, 0.01, 100);
  tfc_credits_add(&c, TFC_METHOD_LNS, 0, 100);
  count(c, counts);
  assert_true(counts[TFC_METHOD_CLUSTERS] > 2 * counts[TFC_METHOD_ANNEAL]);
  assert_true(counts[TFC_METHOD_ANNEAL] > counts[TFC_METHOD_LNS]);
  assert_true(counts[TFC_METHOD_LNS] > DRAWS / 40);
  assert_int_equal(counts[TFC_METHOD_ANNEAL] + counts[TFC_METHOD_CLUSTERS] + counts[TFC_METHOD_LNS], DRAWS);
}

// A method that gained once and then no more loses its credit, even if no other method gains anything.
static void credit_does_not_last(void **state) {
  (void)state;
  struct tfc_credits c = {0};
  struct tfc_random r;
  uint32_t counts[TFC_METHOD_COUNT], first;
  tfc_random_init(&r, 5);
  for (int i = 0; i < METHODS; i++) tfc_credits_add(&c, methods[i], i ? 0 : 0.01, 100);
  count(c, counts);
  first = counts[methods[0]];
  assert_true(first > DRAWS / 2);
  for (int turn = 0; turn < 30; turn++) tfc_credits_add(&c, tfc_credits_draw(&c, methods, METHODS, &r), 0, 100);
  count(c, counts);
  assert_true(counts[methods[0]] < first / 2 + DRAWS / 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(gains_are_credited_by_their_cost),
                                     cmocka_unit_test(credit_does_not_last)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
