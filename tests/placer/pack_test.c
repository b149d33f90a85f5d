// Tests problems that fill memory exactly: parts of a graph that fill the devices to the byte, and many nodes on
// devices with just enough memory for them.
#include "tests/common/test.h"

#include "placer/search/local.h"
#define tfc_pack_bins pack_bins_here // the library has it, too: below, its name is that of the copy here
#include "placer/search/pack.c"
#include "tests/placer/instances.h"

#ifdef TFC_SANITIZED
enum { SEEDS = 1, LARGE = 60, BINS = 40, FULL = 4 };
#else
enum { SEEDS = 2, LARGE = 200, BINS = 120, FULL = 8 };
#endif

// Makes connected parts of `size` nodes each, in random order; device d has room for exactly part d. `thin`: how many
// edges each part has to the next.
static struct instance planted(struct tfc_random *r, uint32_t parts, uint32_t size, uint32_t thin,
                               tfc_objective objective, tfc_device_id *home) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, node, nodes = parts * size;
  uint32_t *at = malloc(sizeof *at * nodes); // index of a part's k-th node
  uint64_t *room = calloc(parts, sizeof *room);
  char name[32];
  for (uint32_t n = 0; n < nodes; n++) at[n] = n;
  for (uint32_t n = nodes; n > 1; n--) {
    const uint32_t m = (uint32_t)pick(r, n), x = at[n - 1];
    at[n - 1] = at[m], at[m] = x;
  }
  for (uint32_t n = 0; n < nodes; n++) home[at[n]] = (tfc_device_id)(n / size);
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < nodes; n++) {
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, 1 + 99 * tfc_random_unit(r)));
    const uint64_t bytes = 1 + pick(r, 1000);
    tfc_cost_builder_memory(b, node, bytes);
    room[home[n]] += bytes;
  }
  for (uint32_t n = 0; n < nodes; n++) {
    if (n % size) MUST(tfc_cost_builder_edge(b, at[n - 1 - pick(r, n % size)], 0, at[n], 1 << 20, TFC_LIVE_ABSENT));
    if (n % size > 1 && pick(r, 2))
      MUST(tfc_cost_builder_edge(b, at[n - n % size], 0, at[n], 1 << 20, TFC_LIVE_ABSENT));
    if (n % size == size - 1 && n + 1 < nodes)
      for (uint32_t k = 0; k < thin; k++)
        MUST(tfc_cost_builder_edge(b, at[n - pick(r, size)], 1, at[n + 1 + pick(r, size)], 1000, TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  struct tfc_link l = tfc_link_default();
  l.latency_us = 10, l.bandwidth = 12e9, l.occupies = TFC_OCCUPIES_BOTH;
  i.machine = even_machine(parts, room, &l);
  MUST(tfc_problem_create(i.graph, i.machine, objective, &i.problem));
  free(at), free(room);
  return i;
}

static void check_planted(uint32_t parts, uint32_t size, uint32_t thin, uint64_t seed, double within) {
  for (int objective = 0; objective < 2; objective++) {
    struct tfc_random r;
    struct tfc_simulator *sim = NULL;
    struct tfc_search_outcome out = {0};
    struct tfc_verdict v = {0};
    tfc_device_id *home = malloc(sizeof *home * parts * size);
    tfc_random_init(&r, seed);
    struct instance i = planted(&r, parts, size, thin, (tfc_objective)objective, home);
    assert_ok(tfc_simulator_create(i.problem, &sim));
    tfc_simulate(sim, home, NULL, TFC_TIME_MAX, &v);
    assert_true(v.legal && v.feasible);
    struct tfc_search_options options = {.evaluations = 1000, .seed = seed, .threads = 2};
    assert_ok(tfc_search(i.problem, &options, &out));
    print_message("%u parts of %u nodes, %u thin edges, %s: %.4f of the planted one, by %s\n", parts, size, thin,
                  tfc_objective_name((tfc_objective)objective), (double)out.value / (double)v.value, out.algorithm);
    assert_true(out.excess == 0);
    assert_true((double)out.value <= within * (double)v.value);
    tfc_search_outcome_deinit(&out);
    tfc_simulator_free(sim);
    instance_free(&i);
    free(home);
  }
}

static void test_parts(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    check_planted(4, 20, 0, seed, 1);
    check_planted(8, 20, 0, seed, 1);
    if (seed == 1) check_planted(6, LARGE, 0, seed, 1);
  }
}

static bool anywhere(const void *user, uint32_t item, uint32_t bin) {
  (void)user, (void)item, (void)bin;
  return true;
}
static bool half_of_them(const void *user, uint32_t item, uint32_t bin) {
  (void)user;
  return item % 3 || bin % 2 == item / 3 % 2;
}

// Items of random sizes are divided among bins at random, and the sums become the limits of the bins. The packing must
// then find such a division itself.
static void test_bins(void **state) {
  (void)state;
  uint32_t packed = 0, count = 0;
  for (uint64_t number = 0; number < BINS; number++) {
    struct tfc_random r;
    uint64_t size[60], limit[6] = {0}, total = 0;
    tfc_device_id bin[60], was[60];
    tfc_random_init(&r, 900 + number);
    const uint32_t items = 20 + (uint32_t)pick(&r, 41), bins = 2 + (uint32_t)pick(&r, 5);
    const uint64_t largest = number % 3 == 0 ? 1000 : number % 3 == 1 ? 1000000 : 1 << 30;
    const bool bounded = number % 4 == 3;
    for (uint32_t k = 0; k < items; k++) {
      uint32_t b = (uint32_t)pick(&r, bins);
      if (bounded)
        while (!half_of_them(NULL, k, b)) b = (uint32_t)pick(&r, bins);
      size[k] = 1 + pick(&r, largest);
      limit[b] += size[k], total += size[k];
      uint32_t c = (uint32_t)pick(&r, bins);
      if (bounded)
        while (!half_of_them(NULL, k, c)) c = (uint32_t)pick(&r, bins);
      bin[k] = was[k] = (tfc_device_id)c;
    }
    struct tfc_pack pack = {items, bins, size, limit, bounded ? half_of_them : anywhere, NULL, true};
    const uint64_t excess = tfc_pack_bins(&pack, &r, 400, bin);
    uint64_t used[6] = {0}, after = 0, before = 0;
    for (uint32_t k = 0; k < items; k++) {
      assert_true(bin[k] < bins && pack.may(NULL, k, bin[k]));
      used[bin[k]] += size[k];
    }
    for (uint32_t b = 0; b < bins; b++) after += used[b] > limit[b] ? used[b] - limit[b] : 0;
    assert_int_equal(after, excess);
    memset(used, 0, sizeof used);
    for (uint32_t k = 0; k < items; k++) used[was[k]] += size[k];
    for (uint32_t b = 0; b < bins; b++) before += used[b] > limit[b] ? used[b] - limit[b] : 0;
    assert_true(after <= before);
    count++, packed += excess == 0;
    if (largest == 1000) assert_int_equal(excess, 0);
    assert_true(excess * 10000 <= total); // at most 1/10,000 above the limits: the sizes differ so much that hardly any
                                          // other division fits
  }
  print_message("%u of %u full bins packed\n", packed, count);
  assert_true(packed * 10 >= count * 8);
}

// Items are divided among bins at random; each bin has exactly the room of its items, or a few bytes more. Filling by
// sums of subsets then finds a division that fits, of all items into all bins. If no
// division fits, it changes nothing.
static void test_fillings(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 60; number++) {
    struct tfc_random r;
    uint64_t size[20], limit[5] = {0}, used[5] = {0}, slack = 0;
    uint32_t item[20];
    tfc_device_id bin[20], was[20];
    tfc_random_init(&r, 300 + number);
    const uint32_t items = 10 + (uint32_t)pick(&r, 9), bins = 2 + (uint32_t)pick(&r, 4);
    const bool bounded = number % 5 == 4, even = number % 6 == 5; // `even`: nothing fits
    for (uint32_t k = 0; k < items; k++) {
      uint32_t b = k < bins ? k : (uint32_t)pick(&r, bins);
      if (bounded)
        while (!half_of_them(NULL, k, b)) b = (uint32_t)pick(&r, bins);
      size[k] = 2 * (1 + pick(&r, 1 << 19)), item[k] = k;
      limit[b] += size[k];
      bin[k] = was[k] = 0;
    }
    for (uint32_t b = 0; b < bins && number % 3 == 0; b++) {
      const uint64_t more = pick(&r, 40);
      limit[b] += more, slack += more;
    }
    if (even) limit[0]--, limit[1]++; // no sum of even sizes is odd
    struct packer q = {.pack =
                           &(struct tfc_pack){items, bins, size, limit, bounded ? half_of_them : anywhere, NULL, true},
                       .random = &r,
                       .bin = bin};
    q.left = malloc(sizeof *q.left), q.right = malloc(sizeof *q.right), q.spare = malloc(sizeof *q.spare);
    const bool fits = fill_by_sums(&q, items, item, slack);
    if (even) {
      assert_false(fits);
      assert_memory_equal(bin, was, items * sizeof *bin);
    } else {
      if (!fits) fail_msg("case %llu: not filled", (unsigned long long)number);
      for (uint32_t k = 0; k < items; k++) {
        assert_true(bin[k] < bins && q.pack->may(NULL, k, bin[k]));
        used[bin[k]] += size[k];
      }
      for (uint32_t b = 0; b < bins; b++) assert_true(used[b] <= limit[b]);
    }
    free(q.left), free(q.right), free(q.spare);
  }
}

// There is no room for one item: its size is reported as missing, and the packing ends.
static void test_too_much(void **state) {
  (void)state;
  const uint64_t size[4] = {5, 5, 5, 5}, limit[2] = {9, 10};
  tfc_device_id bin[4] = {0, 0, 0, 0};
  struct tfc_random r;
  tfc_random_init(&r, 1);
  struct tfc_pack pack = {4, 2, size, limit, anywhere, NULL, false};
  assert_int_equal(tfc_pack_bins(&pack, &r, 50, bin), 1);
}

// Tests 60 nodes without edges on four devices that have just enough memory.
static void test_full(void **state) {
  (void)state;
  for (uint64_t number = 0; number < FULL; number++) {
    struct tfc_random r;
    struct instance i = {0};
    struct tfc_cost_builder *b = NULL;
    struct tfc_search_outcome out = {0};
    uint32_t acc, node;
    uint64_t room[4] = {0};
    char name[32];
    tfc_random_init(&r, 60 + number);
    MUST(tfc_cost_builder_create(&b));
    MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
    for (uint32_t n = 0; n < 60; n++) {
      snprintf(name, sizeof name, "n%u", n);
      MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
      MUST(tfc_cost_builder_time(b, node, acc, (double)(1 + pick(&r, 9))));
      const uint64_t bytes = 1 + pick(&r, number % 2 ? 1000000 : 1000);
      tfc_cost_builder_memory(b, node, bytes);
      room[pick(&r, 4)] += bytes;
      if (n) MUST(tfc_cost_builder_edge(b, (uint32_t)pick(&r, n), 0, n, 1000, TFC_LIVE_ABSENT));
    }
    MUST(tfc_cost_builder_finish(b, &i.graph));
    tfc_cost_builder_free(b);
    MUST(tfc_machine_create(&i.machine));
    for (uint32_t d = 0; d < 4; d++) {
      snprintf(name, sizeof name, "acc:%u", d);
      MUST(tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                                          .kind = TFC_STR("acc"),
                                                                          .memory = room[d],
                                                                          .label = TFC_LABEL_MODELLED}));
    }
    struct tfc_link l = tfc_link_default();
    l.latency_us = 1;
    MUST(tfc_machine_add_link(i.machine, &l));
    MUST(tfc_problem_create(i.graph, i.machine, (tfc_objective)(number / 2 % 2), &i.problem));
    struct tfc_search_options options = {.evaluations = 2000, .seed = number, .threads = 2};
    assert_ok(tfc_search(i.problem, &options, &out));
    if (out.excess)
      fail_msg("case %llu: %llu bytes too much", (unsigned long long)number, (unsigned long long)out.excess);
    tfc_search_outcome_deinit(&out);
    instance_free(&i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_bins), cmocka_unit_test(test_fillings),
                                     cmocka_unit_test(test_too_much), cmocka_unit_test(test_full),
                                     cmocka_unit_test(test_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
