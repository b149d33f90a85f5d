// Compares delta evaluation with full evaluation, after every trial and every commit of random walks.
#include "tests/common/test.h"

#include "tests/placer/walks.h"

// Under sanitizers, which are several times slower, fewer cases are drawn: memory errors would show in the first ones.
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
    const char *differs = walk(&r, &i, 40);
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
    const char *differs = walk(&r, &i, 40);
    if (differs) fail_msg("case %llu: %s", (unsigned long long)number, differs);
    instance_free(&i);
  }
}
// Compares the simulator's loop that records with the one that does not, in a problem with so many operations that the
// sets of ready operations need three levels of words.
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
// If every device could hold all tensors at once, searches do not count live bytes: the values are those of a machine
// whose memory is one byte too small for that. If the caller asks for peaks, both machines give the same ones.
static void test_live_that_cannot_matter(void **state) {
  (void)state;
  for (uint64_t number = 0; number < 200 / SHARE; number++) {
    struct tfc_random r;
    struct tfc_problem *tight = NULL;
    struct tfc_simulator *sim[2] = {NULL};
    struct tfc_machine *m = NULL;
    struct tfc_link link = tfc_link_default();
    uint64_t memory[8], all = 0;
    tfc_random_init(&r, 31000 + number);
    link.latency_us = 1, link.bandwidth = 1e8;
    struct instance i =
        random_instance(&r, 5 + (uint32_t)pick(&r, 60), 1 + (uint32_t)pick(&r, 4), RICH_LIVE, TFC_OBJECTIVE_STEP);
    const uint32_t devices = i.problem->device_count;
    if (!i.problem->has_live) { // the problem has no edges
      instance_free(&i);
      continue;
    }
    for (uint32_t n = 0; n < i.graph->node_count; n++) all += i.graph->memory[n];
    for (uint32_t t = 0; t < i.graph->tensor_count; t++) all += i.graph->live[t];
    for (uint32_t d = 0; d < devices; d++) memory[d] = all;
    tfc_problem_free(i.problem), tfc_machine_free(i.machine);
    i.machine = even_machine(devices, memory, &link);
    memory[devices - 1]--;
    m = even_machine(devices, memory, &link);
    MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
    MUST(tfc_problem_create(i.graph, m, TFC_OBJECTIVE_STEP, &tight));
    assert_true(!i.problem->live_matters && tight->live_matters);
    const char *differs = walk(&r, &i, 40);
    if (differs) fail_msg("case %llu: %s", (unsigned long long)number, differs);
    for (int k = 0; k < 2; k++) MUST(tfc_simulator_create(k ? tight : i.problem, &sim[k]));
    for (int turn = 0; turn < 10; turn++) {
      tfc_device_id device[128];
      uint64_t peak[2][8];
      random_devices(&r, i.problem, device);
      struct tfc_verdict quick = {0}, of[2] = {{.memory = peak[0]}, {.memory = peak[1]}};
      tfc_simulate(sim[0], device, NULL, TFC_TIME_MAX, &quick);
      for (int k = 0; k < 2; k++) tfc_simulate(sim[k], device, NULL, TFC_TIME_MAX, &of[k]);
      assert_memory_equal(peak[0], peak[1], devices * sizeof *peak[0]);
      assert_true(quick.legal && quick.feasible && of[0].feasible);
      assert_true(quick.value == of[1].value && of[0].value == of[1].value);
      assert_true(quick.transfers == of[1].transfers && quick.transfer_bytes == of[1].transfer_bytes);
    }
    for (int k = 0; k < 2; k++) tfc_simulator_free(sim[k]);
    tfc_problem_free(tight);
    tfc_machine_free(m);
    instance_free(&i);
  }
}
static void test_throughput(void **state) {
  (void)state;
  run_walks(1500, TFC_OBJECTIVE_THROUGHPUT, 12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_step), cmocka_unit_test(test_there_and_back),
                                     cmocka_unit_test(test_large), cmocka_unit_test(test_live_that_cannot_matter),
                                     cmocka_unit_test(test_throughput)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
