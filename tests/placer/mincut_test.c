// Minimum cuts of random nets, compared with all sets of units.
#include "tests/common/test.h"

#include <math.h>

#include "placer/exact/mincut.h"
#include "tests/placer/instances.h"

enum { UNITS = 9, NETS = 14 };

struct nets {
  uint32_t first[NETS + 1], unit[NETS * UNITS];
  int64_t cost[NETS], work[UNITS];
  struct tfc_mincut_graph g;
};

static void draw(struct tfc_random *r, struct nets *d) {
  d->g = (struct tfc_mincut_graph){
      2 + (uint32_t)pick(r, UNITS - 1), (uint32_t)pick(r, NETS + 1), d->first, d->unit, d->cost, d->work};
  const int64_t scale = pick(r, 2) ? 1 : INT64_C(1000000000000);
  for (uint32_t u = 0; u < d->g.unit_count; u++) d->work[u] = (int64_t)pick(r, 30) * scale;
  uint32_t pins = 0;
  for (uint32_t n = 0; n < d->g.net_count; n++) {
    d->first[n] = pins;
    d->cost[n] = (int64_t)pick(r, 20) * scale;
    do {
      pins = d->first[n];
      for (uint32_t u = 0; u < d->g.unit_count; u++)
        if (pick(r, 3) == 0) d->unit[pins++] = u;
    } while (pins < d->first[n] + 2);
  }
  d->first[d->g.net_count] = pins;
}

static int64_t border_of(const struct nets *d, uint32_t set) {
  int64_t border = 0;
  for (uint32_t n = 0; n < d->g.net_count; n++) {
    uint32_t in = 0;
    for (uint32_t k = d->first[n]; k < d->first[n + 1]; k++) in += set >> d->unit[k] & 1;
    if (in && in < d->first[n + 1] - d->first[n]) border += d->cost[n];
  }
  return border;
}
static int64_t work_of(const struct nets *d, uint32_t set) {
  int64_t work = 0;
  for (uint32_t u = 0; u < d->g.unit_count; u++) work += set >> u & 1 ? d->work[u] : 0;
  return work;
}

static void test_all_sets(void **state) {
  (void)state;
  static const double prices[][2] = {{1, 1}, {1, 0}, {1, -0.3}, {1.7, 0.4}, {1, -1}, {2.5, -0.01}, {0, 1}};
  for (uint64_t number = 0; number < 700; number++) {
    struct tfc_random r;
    struct nets d;
    uint8_t fixed[UNITS];
    bool inside[UNITS];
    struct tfc_mincut_set found = {.inside = inside};
    tfc_random_init(&r, number);
    draw(&r, &d);
    for (uint32_t u = 0; u < d.g.unit_count; u++) fixed[u] = (uint8_t)(pick(&r, 3) ? TFC_MINCUT_FREE : pick(&r, 3));
    fixed[pick(&r, d.g.unit_count)] = TFC_MINCUT_INSIDE;
    const double border_price = prices[number % 7][0], work_price = prices[number % 7][1];
    struct tfc_mincut *cut = tfc_mincut_create(&d.g);
    assert_non_null(cut);
    tfc_mincut_solve(cut, border_price, work_price, fixed, &found);
    tfc_mincut_free(cut);
    uint32_t set = 0;
    double least = INFINITY;
    for (uint32_t u = 0; u < d.g.unit_count; u++) {
      set |= (uint32_t)inside[u] << u;
      assert_true(fixed[u] == TFC_MINCUT_FREE || inside[u] == (fixed[u] == TFC_MINCUT_INSIDE));
    }
    assert_int_equal(found.border, border_of(&d, set));
    assert_int_equal(found.work, work_of(&d, set));
    for (uint32_t s = 0; s < 1u << d.g.unit_count; s++) {
      bool allowed = true;
      for (uint32_t u = 0; u < d.g.unit_count; u++)
        allowed &= fixed[u] == TFC_MINCUT_FREE || (s >> u & 1) == (fixed[u] == TFC_MINCUT_INSIDE);
      if (allowed) least = fmin(least, border_price * (double)border_of(&d, s) + work_price * (double)work_of(&d, s));
    }
    const double value = border_price * (double)found.border + work_price * (double)found.work;
    if (fabs(value - least) > 1e-12 * (fabs(least) + 1))
      fail_msg("case %llu: a minimum of %g, the least is %g", (unsigned long long)number, value, least);
  }
}

static void test_sums_too_large(void **state) {
  (void)state;
  const int64_t work[2] = {INT64_MAX / 2, 1};
  const uint32_t first[1] = {0};
  assert_null(tfc_mincut_create(&(struct tfc_mincut_graph){.unit_count = 2, .first = first, .work = work}));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_sets), cmocka_unit_test(test_sums_too_large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
