// Packing a few items, compared with every way to do it: into all bins by branch and bound, and into two by sums of
// subsets.
#include "tests/common/test.h"

#define tfc_pack_bins pack_bins_here // the library has it, too: below, its name is that of the copy here
#include "placer/search/pack.c"

static uint64_t pick(struct tfc_random *r, uint64_t n) {
  return tfc_random_below(r, n);
}

struct small {
  uint32_t items, bins;
  uint64_t size[12], limit[4];
  bool allowed[12][4];
};
static bool small_may(const void *user, uint32_t item, uint32_t bin) {
  return ((const struct small *)user)->allowed[item][bin];
}
static uint64_t excess_of(const struct small *s, const tfc_device_id *bin) {
  uint64_t used[4] = {0}, excess = 0;
  for (uint32_t k = 0; k < s->items; k++) used[bin[k]] += s->size[k];
  for (uint32_t b = 0; b < s->bins; b++) excess += used[b] > s->limit[b] ? used[b] - s->limit[b] : 0;
  return excess;
}
// The least excess of all ways to put the items from `k` on into bins that they may be in; those in `kept` stay.
static uint64_t least_excess(const struct small *s, tfc_device_id *bin, uint32_t k, const bool *kept) {
  uint64_t best = UINT64_MAX;
  const tfc_device_id was = bin[k];
  if (k == s->items) return excess_of(s, bin);
  for (uint32_t b = 0; b < s->bins; b++) {
    if (kept && kept[k] ? b != was : !s->allowed[k][b]) continue;
    bin[k] = (tfc_device_id)b;
    const uint64_t least = least_excess(s, bin, k + 1, kept);
    if (least < best) best = least;
  }
  bin[k] = was;
  return best;
}
// Sizes are small, so that several ways fill a bin; one item in six has size 0. Each item may be in its own bin.
static struct small small_problem(struct tfc_random *r, uint32_t most_items, tfc_device_id *bin) {
  struct small s = {.items = 2 + (uint32_t)pick(r, most_items - 1), .bins = 2 + (uint32_t)pick(r, 3)};
  const bool bounded = pick(r, 2), exact = pick(r, 2);
  for (uint32_t k = 0; k < s.items; k++) {
    s.size[k] = pick(r, 6) ? 1 + pick(r, 12) : 0;
    bin[k] = (tfc_device_id)pick(r, s.bins);
    for (uint32_t b = 0; b < s.bins; b++) s.allowed[k][b] = !bounded || b == bin[k] || pick(r, 2);
    if (exact) s.limit[pick(r, s.bins)] += s.size[k];
  }
  for (uint32_t b = 0; b < s.bins && !exact; b++) s.limit[b] = pick(r, 20);
  return s;
}

// With 0 rounds of dividing, branch and bound alone packs few items: it succeeds if and only if there is a way.
static void test_every_way(void **state) {
  (void)state;
  uint32_t fits = 0, moved = 0;
  for (uint64_t number = 0; number < 1000; number++) {
    struct tfc_random r;
    tfc_device_id bin[12], was[12], tried[12];
    tfc_random_init(&r, 7000 + number);
    const struct small s = small_problem(&r, 6, bin);
    memcpy(was, bin, sizeof bin), memcpy(tried, bin, sizeof bin);
    const uint64_t before = excess_of(&s, bin), least = least_excess(&s, tried, 0, NULL);
    const struct tfc_pack pack = {s.items, s.bins, s.size, s.limit, small_may, &s, number % 2};
    const uint64_t excess = tfc_pack_bins(&pack, &r, 0, bin);
    if (excess != (least ? before : 0) || excess_of(&s, bin) != excess)
      fail_msg("case %llu: %llu, at best %llu", (unsigned long long)number, (unsigned long long)excess,
               (unsigned long long)least);
    if (least || !before) assert_memory_equal(bin, was, s.items * sizeof *bin);
    for (uint32_t k = 0; k < s.items; k++) assert_true(s.allowed[k][bin[k]]);
    fits += !least, moved += !least && before;
  }
  print_message("%u of 1000 fit, %u of them not as they were\n", fits, moved);
  assert_true(fits > 200 && fits < 800 && moved > 100);
}

// Two bins are divided as well as their items can be: those that may only be in one of them stay, and so do the others.
static void test_two_bins(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 1000; number++) {
    struct tfc_random r;
    tfc_device_id bin[12], tried[12];
    bool kept[12] = {0};
    uint64_t used[4] = {0};
    uint32_t item[12];
    tfc_random_init(&r, 9000 + number);
    struct small s = small_problem(&r, 8, bin), two;
    const tfc_device_id a = (tfc_device_id)pick(&r, s.bins), b = (tfc_device_id)((a + 1) % s.bins);
    for (uint32_t k = 0; k < s.items; k++) used[bin[k]] += s.size[k];
    two = s;
    for (uint32_t k = 0; k < s.items; k++) {
      kept[k] = (bin[k] != a && bin[k] != b) || !s.allowed[k][a] || !s.allowed[k][b];
      for (uint32_t c = 0; c < s.bins; c++) two.allowed[k][c] = c == a || c == b;
    }
    memcpy(tried, bin, sizeof bin);
    const uint64_t least = least_excess(&two, tried, 0, kept);
    struct packer q = {.pack = &(struct tfc_pack){s.items, s.bins, s.size, s.limit, small_may, &s, false},
                       .random = &r,
                       .bin = bin,
                       .used = used,
                       .item = item};
    q.left = malloc(sizeof *q.left * HALF), q.right = malloc(sizeof *q.right * HALF);
    q.spare = malloc(sizeof *q.spare * HALF);
    memcpy(tried, bin, sizeof bin);
    divide(&q, a, b);
    assert_int_equal(excess_of(&s, bin), least);
    for (uint32_t k = 0; k < s.items; k++) {
      if (kept[k]) assert_int_equal(bin[k], tried[k]);
      assert_true(bin[k] == tried[k] || bin[k] == a || bin[k] == b);
      used[bin[k]] -= s.size[k];
    }
    for (uint32_t c = 0; c < s.bins; c++) assert_int_equal(used[c], 0); // the packer's sums are those of the items
    free(q.left), free(q.right), free(q.spare);
  }
}

// All sums of subsets, ascending, with their sets; and how many of them are at most some bytes.
static void test_sums(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 200; number++) {
    struct tfc_random r;
    uint64_t size[12];
    uint32_t item[6] = {7, 2, 9, 4, 0, 11};
    bool seen[64] = {0};
    tfc_random_init(&r, 500 + number);
    const uint32_t count = (uint32_t)pick(&r, 7);
    for (int k = 0; k < 12; k++) size[k] = pick(&r, 9);
    const struct packer q = {.pack = &(struct tfc_pack){.size = size}};
    struct sum *list = malloc(sizeof *list * 64), *spare = malloc(sizeof *spare * 64);
    assert_int_equal(list_sums(&q, item, count, &list, &spare), 1u << count);
    for (uint32_t i = 0; i < 1u << count; i++) {
      uint64_t bytes = 0;
      for (uint32_t k = 0; k < count; k++) bytes += list[i].set >> k & 1 ? size[item[k]] : 0;
      assert_true(list[i].set < 1u << count && !seen[list[i].set] && bytes == list[i].bytes);
      assert_true(!i || list[i - 1].bytes <= list[i].bytes);
      seen[list[i].set] = true;
    }
    for (uint64_t bytes = 0; bytes < 60; bytes++) {
      uint32_t at_most = 0;
      while (at_most < 1u << count && list[at_most].bytes <= bytes) at_most++;
      assert_int_equal(rank_of(list, 1u << count, bytes), at_most);
    }
    free(list), free(spare);
  }
}

static bool anywhere(const void *user, uint32_t item, uint32_t bin) {
  (void)user, (void)item, (void)bin;
  return true;
}
// A bin with a very large limit is treated like the others, up to the limit from which sums of sizes could overflow.
static void test_large_limits(void **state) {
  (void)state;
  const uint64_t size[] = {6, 5, 4};
  for (int more = 0; more < 2; more++) {
    const uint64_t limit[] = {UINT64_MAX / 4 / 2 + (uint64_t)more, 10};
    tfc_device_id bin[] = {1, 1, 1};
    struct tfc_random r;
    tfc_random_init(&r, 1);
    const struct tfc_pack pack = {3, 2, size, limit, anywhere, NULL, false};
    assert_int_equal(tfc_pack_bins(&pack, &r, 0, bin), more ? 5 : 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_way), cmocka_unit_test(test_two_bins),
                                     cmocka_unit_test(test_sums), cmocka_unit_test(test_large_limits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
