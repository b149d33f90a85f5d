// Delta evaluation against full evaluation: every trial and every commit of random walks.
#include "tests/common/test.h"

#include "tests/placer/walks.h"

// Sanitizers are several times slower, and what they look for does not hide in one case of thousands.
#ifdef TFC_SANITIZED
enum { SHARE = 5 };
#else
enum { SHARE = 1 };
#endif

static void run_walks(uint32_t count, tfc_objective objective, uint64_t seed) {
  for (uint64_t number = 0; number < count / SHARE; number++) {
    struct tfc_random r;
    tfc_random_init(&r, seed * 1000003 + number);
    uint32_t rich = number % 2 ? (uint32_t)pick(&r, RICH_ALL + 1) : 0;
    if (number % 5 == 3) rich = (rich & ~RICH_LIVE) | RICH_INBOX;
    struct instance i =
        random_instance(&r, 2 + (uint32_t)pick(&r, number % 10 ? 40 : 200), 1 + (uint32_t)pick(&r, 5), rich, objective);
    const char *differs = walk(&r, &i);
    if (differs) fail_msg("case %llu: %s", (unsigned long long)number, differs);
    instance_free(&i);
  }
}
static void test_step(void **state) {
  (void)state;
  run_walks(1500, TFC_OBJECTIVE_STEP, 11);
}
static void test_there_and_back(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 600 / SHARE; number++) {
    struct tfc_random r;
    tfc_random_init(&r, 13000 + number);
    static const uint32_t riches[] = {0, RICH_WIRES, RICH_KINDS, RICH_INBOX, RICH_INBOX | RICH_CALIBRATION};
    const uint32_t rich = riches[number % 5];
    struct instance i =
        there_and_back(&r, 20 + (uint32_t)pick(&r, number % 10 ? 60 : 500), 1 + (uint32_t)pick(&r, 5), rich);
    const char *differs = walk(&r, &i);
    if (differs) fail_msg("case %llu: %s", (unsigned long long)number, differs);
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
