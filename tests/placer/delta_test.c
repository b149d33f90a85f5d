// Delta evaluation against full evaluation: every trial and every commit of random walks.
#include "tests/common/test.h"

#include "tests/placer/instances.h"

static void walk(struct tfc_random *r, const struct instance *i, uint64_t number) {
  const struct tfc_problem *p = i->problem;
  struct tfc_delta *delta = NULL, *fresh = NULL;
  struct tfc_simulator *sim = NULL;
  tfc_device_id *device = calloc(p->unit_count, sizeof *device), *other = calloc(p->unit_count, sizeof *other);
  uint32_t *rank = calloc(p->node_count, sizeof *rank), *other_rank = calloc(p->node_count, sizeof *rank);
  assert_ok(tfc_delta_create(p, &delta));
  assert_ok(tfc_delta_create(p, &fresh));
  assert_ok(tfc_simulator_create(p, &sim));
  struct tfc_verdict v = {0}, full = {0};
  bool legal = false;
  for (int tries = 0; tries < 50 && !legal; tries++) {
    random_devices(r, p, device);
    tfc_delta_reset(delta, device, NULL, &v);
    tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &full);
    assert_int_equal(v.legal, full.legal);
    legal = full.legal;
  }
  memcpy(rank, p->rank, sizeof *rank * p->node_count);
  for (int step = 0; step < 40 && legal; step++) {
    struct tfc_move moves[4];
    uint32_t swaps[4], move_count = (uint32_t)pick(r, 4),
                       swap_count = move_count && pick(r, 2) ? 0 : (uint32_t)pick(r, 3);
    memcpy(other, device, sizeof *other * p->unit_count);
    memcpy(other_rank, rank, sizeof *rank * p->node_count);
    for (uint32_t k = 0; k < move_count; k++) {
      bool again = false;
      moves[k] = (struct tfc_move){(uint32_t)pick(r, p->unit_count), (tfc_device_id)pick(r, p->device_count)};
      for (uint32_t j = 0; j < k; j++) again |= moves[j].unit == moves[k].unit;
      if (again || !tfc_problem_allows(p, moves[k].unit, moves[k].device)) {
        move_count = k;
        break;
      }
      other[moves[k].unit] = moves[k].device;
    }
    if (p->objective != TFC_OBJECTIVE_STEP) swap_count = 0;
    for (uint32_t k = 0; k < swap_count; k++) {
      swaps[2 * k] = (uint32_t)pick(r, p->node_count), swaps[2 * k + 1] = (uint32_t)pick(r, p->node_count);
      uint32_t x = other_rank[swaps[2 * k]];
      other_rank[swaps[2 * k]] = other_rank[swaps[2 * k + 1]], other_rank[swaps[2 * k + 1]] = x;
    }
    int64_t cutoff = pick(r, 3) ? TFC_TIME_MAX : tfc_delta_verdict(delta)->value + (int64_t)pick(r, 1000000);
    tfc_simulate(sim, other, other_rank, cutoff, &full);
    tfc_delta_try(delta, moves, move_count, swaps, swap_count, cutoff, &v);
    if (full.legal != v.legal && !v.cut && !full.cut)
      fail_msg("case %llu: legal %d", (unsigned long long)number, v.legal);
    if (v.value != full.value)
      fail_msg("case %llu, step %d: %lld, full %lld", (unsigned long long)number, step, (long long)v.value,
               (long long)full.value);
    if (!full.legal || full.cut) continue;
    assert_int_equal(v.excess, full.excess);
    if (pick(r, 2)) continue;
    tfc_delta_commit(delta);
    memcpy(device, other, sizeof *other * p->unit_count);
    memcpy(rank, other_rank, sizeof *rank * p->node_count);
    const struct tfc_verdict *now = tfc_delta_verdict(delta);
    assert_int_equal(now->value, full.value);
    assert_int_equal(now->transfers, full.transfers);
    assert_int_equal(now->transfer_bytes, full.transfer_bytes);
    assert_int_equal(now->excess, full.excess);
    assert_memory_equal(tfc_delta_device(delta), device, sizeof *device * p->unit_count);
    // What is recorded is what would be recorded from the start.
    tfc_delta_reset(fresh, device, rank, &v);
    assert_memory_equal(now->busy, tfc_delta_verdict(fresh)->busy, sizeof *now->busy * p->device_count);
    assert_memory_equal(now->memory, tfc_delta_verdict(fresh)->memory, sizeof *now->memory * p->device_count);
    if (!tfc_delta_start(delta)) continue;
    assert_memory_equal(tfc_delta_start(delta), tfc_delta_start(fresh), sizeof(int64_t) * p->node_count);
    assert_memory_equal(tfc_delta_end(delta), tfc_delta_end(fresh), sizeof(int64_t) * p->node_count);
    assert_memory_equal(tfc_delta_arrival(delta), tfc_delta_arrival(fresh), sizeof(int64_t) * p->node_count);
  }
  tfc_delta_free(delta);
  tfc_delta_free(fresh);
  tfc_simulator_free(sim);
  free(device), free(other), free(rank), free(other_rank);
}

static void run_walks(uint32_t count, tfc_objective objective, uint64_t seed) {
  for (uint64_t number = 0; number < count; number++) {
    struct tfc_random r;
    tfc_random_init(&r, seed * 1000003 + number);
    uint32_t rich = number % 2 ? (uint32_t)pick(&r, RICH_ALL + 1) : 0;
    if (number % 5 == 3) rich = (rich & ~RICH_LIVE) | RICH_INBOX;
    struct instance i =
        random_instance(&r, 2 + (uint32_t)pick(&r, number % 10 ? 40 : 200), 1 + (uint32_t)pick(&r, 5), rich, objective);
    walk(&r, &i, number);
    instance_free(&i);
  }
}
static void test_step(void **state) {
  (void)state;
  run_walks(1500, TFC_OBJECTIVE_STEP, 11);
}
// Chains with short cuts, run forwards and then backwards, the two ends of a unit far apart: trials join the incumbent
// again and again, later or earlier than it is, and skip what lies between the differences.
static struct instance there_and_back(struct tfc_random *r, uint32_t length, uint32_t devices, uint32_t rich) {
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, cpu, node;
  const bool fine = pick(r, 2), grouped = pick(r, 3);
  const uint64_t salt = tfc_random_u64(r);
  char name[32];
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  MUST(tfc_cost_builder_kind(b, TFC_STR("cpu"), &cpu));
  for (uint32_t n = 0; n < 2 * length; n++) {
    const uint32_t layer = n < length ? n : 2 * length - 1 - n;
    const double us = fine ? tfc_random_unit(r) * 20 : (double)pick(r, 5);
    snprintf(name, sizeof name, "n%u", n);
    MUST(tfc_cost_builder_node(b, tfc_str_from(name), &node));
    MUST(tfc_cost_builder_time(b, node, acc, us));
    MUST(tfc_cost_builder_time(b, node, cpu, us * 3));
    snprintf(name, sizeof name, "g%u", layer);
    if (grouped && layer % 3) MUST(tfc_cost_builder_group(b, node, tfc_str_from(name)));
    for (uint32_t k = n && pick(r, 20) ? 1 + (uint32_t)pick(r, 2) : 0; k > 0; k--) {
      const uint32_t back = 1 + (uint32_t)pick(r, pick(r, 6) ? 3 : 30), from = n < back ? 0 : n - back;
      uint64_t state = salt + from;
      MUST(tfc_cost_builder_edge(b, from, 0, n, tfc_splitmix64(&state) % 20000, TFC_LIVE_ABSENT));
    }
    uint64_t state = salt + layer;
    if (n >= length && pick(r, 2))
      MUST(tfc_cost_builder_edge(b, layer, 0, n, tfc_splitmix64(&state) % 20000, TFC_LIVE_ABSENT));
  }
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  do {
    tfc_machine_free(i.machine);
    i.machine = random_machine(r, devices, rich, 0);
  } while (i.machine->links[0].bandwidth < 1e7); // else all that ever happens is a transfer
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  return i;
}
static void test_there_and_back(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 600; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 13000 + number);
    static const uint32_t riches[] = {0, RICH_WIRES, RICH_KINDS, RICH_INBOX, RICH_INBOX | RICH_CALIBRATION};
    const uint32_t rich = riches[number % 5];
    struct instance i =
        there_and_back(&r, 20 + (uint32_t)pick(&r, number % 10 ? 60 : 500), 1 + (uint32_t)pick(&r, 5), rich);
    walk(&r, &i, number);
    instance_free(&i);
  }
}
// The loop that records against the one that does not, with more operations than two levels of words hold.
static void test_large(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 6; number++) {
    struct tfc_random r;
    struct tfc_delta *delta = NULL;
    struct tfc_simulator *sim = NULL;
    struct tfc_verdict recorded = {0}, full = {0};
    tfc_random_init(&r, 77 + number);
    struct instance i = random_instance(&r, 4097 + (uint32_t)pick(&r, 3000), 2 + (uint32_t)pick(&r, 5),
                                        number % 2 ? RICH_GROUPS : 0, TFC_OBJECTIVE_STEP);
    tfc_device_id *device = calloc(i.problem->unit_count, sizeof *device);
    random_devices(&r, i.problem, device);
    assert_ok(tfc_delta_create(i.problem, &delta));
    assert_ok(tfc_simulator_create(i.problem, &sim));
    tfc_delta_reset(delta, device, NULL, &recorded);
    tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &full);
    assert_true(full.legal && full.value > 0);
    assert_int_equal(recorded.value, full.value);
    assert_int_equal(recorded.transfers, full.transfers);
    for (int k = 0; k < 20; k++) {
      const struct tfc_move move = {(uint32_t)pick(&r, i.problem->unit_count),
                                    (tfc_device_id)pick(&r, i.problem->device_count)};
      const tfc_device_id was = device[move.unit];
      device[move.unit] = move.device;
      tfc_simulate(sim, device, NULL, TFC_TIME_MAX, &full);
      tfc_delta_try(delta, &move, 1, NULL, 0, TFC_TIME_MAX, &recorded);
      assert_int_equal(recorded.value, full.value);
      device[move.unit] = was;
    }
    tfc_simulator_free(sim);
    tfc_delta_free(delta);
    free(device);
    instance_free(&i);
  }
}
static void test_throughput(void **state) {
  (void)state;
  run_walks(1500, TFC_OBJECTIVE_THROUGHPUT, 12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_step), cmocka_unit_test(test_there_and_back),
                                     cmocka_unit_test(test_large), cmocka_unit_test(test_throughput)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
