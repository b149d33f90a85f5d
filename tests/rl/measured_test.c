// `rl` with measured placements: on a machine whose truth differs from its description (one device is
// slower than it says, and readings are noisy), the answer is better than what the simulator alone leads to.
#include "tests/rl/shared.h"

#include <math.h>

#define ONE_SLOW                                                                                                       \
  "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, slowdown: [2]}\n"                       \
  "  - {name: \"acc:1\", kind: acc}\n  - {name: \"acc:2\", kind: acc}\n  - {name: \"acc:3\", kind: acc}\n"             \
  "links:\n  - {from: \"*\", to: \"*\", latency: 5us, bandwidth: 20GB/s}\n"

struct hidden {
  struct tfc_evaluator base;
  const struct tfc_problem *truth;
  struct tfc_simulator *sim;
  struct tfc_random random;
  uint64_t measured, fails;
  const struct tfc_guide_samples *samples; // what the policy says of its placements
};

static double true_value(struct hidden *h, const tfc_device_id *device) {
  struct tfc_verdict v = {0};
  tfc_simulate(h->sim, device, NULL, TFC_TIME_MAX, &v);
  return (double)v.value;
}

static tfc_status evaluate(struct tfc_evaluator *self, const struct tfc_solution *candidates, uint32_t count,
                           const struct tfc_rules *rules, struct tfc_result *results) {
  struct hidden *h = (struct hidden *)self;
  const double drift = 1 + 0.25 * sin((double)h->measured / 9); // the machine is slower for a while, then faster
  // What the policy proposed until now is known before its placements are measured: some 200 were simulated.
  assert_true(h->samples->count >= 200 && h->samples->count <= 200 + h->measured);
  assert_true(h->samples->entropy > 0 && h->samples->entropy <= 1 && h->samples->invalid_share <= 1);
  for (uint32_t i = 0; i < count; i++) {
    const double noise = 1 + 0.03 * tfc_random_normal(&h->random);
    results[i] = (struct tfc_result){.state = TFC_RESULT_OK, .label = TFC_LABEL_MEASURED, .steps = 5, .ratio = NAN};
    results[i].value = (int64_t)(true_value(h, candidates[i].device) * noise * drift);
    if (rules->reference)
      results[i].ratio = (double)results[i].value / (true_value(h, rules->reference->device) * drift);
    if (++h->measured % 11 == 0) { // every eleventh measurement fails, as if a worker had died
      results[i].state = TFC_RESULT_FAILED, results[i].value = TFC_TIME_MAX, results[i].ratio = NAN;
      h->fails++;
    }
  }
  return NULL;
}
static void release(struct tfc_evaluator *self) {
  (void)self;
}

static void measuring_teaches(void **state) {
  (void)state;
  static const struct tfc_evaluator_vtable vtable = {"hidden", evaluate, release};
  struct grid believed = {0}, truth = {0};
  struct tfc_policy *policy = NULL;
  double gain = 0;
  grid_make(5, 16, 0, FOUR_ALIKE, "cell", 1, &believed);
  grid_make(5, 16, 0, ONE_SLOW, "cell", 1, &truth);
  assert_ok(tfc_policy_untrained(2, &policy));
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct hidden h = {.base = {&vtable, believed.problem}, .truth = truth.problem};
    struct tfc_evaluator *simulated = NULL;
    struct tfc_solution blind = {0}, found = {0};
    uint64_t used = 0;
    struct tfc_guide_samples samples = {0};
    const struct tfc_budget budget = {
        .evaluations = 100, .seed = seed, .threads = 1, .guide = &policy->guide, .samples = &samples};
    h.samples = &samples;
    tfc_random_init(&h.random, seed);
    assert_ok(tfc_simulator_create(truth.problem, &h.sim));
    assert_ok(tfc_evaluator_simulated(believed.problem, 1, &simulated));
    assert_ok(tfc_solution_init(&blind, believed.problem));
    assert_ok(tfc_solution_init(&found, believed.problem));
    assert_ok(tfc_algo_rl.propose(believed.problem, simulated, &budget, &blind, &used));
    assert_true(samples.count > 0 && samples.count <= 100 && samples.entropy > 0); // the rollouts, simulated
    used = 0;
    assert_ok(tfc_algo_rl.propose(believed.problem, &h.base, &budget, &found, &used));
    assert_true(used <= 100 && used == h.measured);
    assert_true(h.fails > 0);
    const double without = true_value(&h, blind.device), with = true_value(&h, found.device);
    print_message("seed %d: %.0f us as the simulator has it, %.0f us as measured\n", (int)seed, without * 1e-6,
                  with * 1e-6);
    gain += log(without / with) / 5;
    // With at most 240 simulated placements there are two batches of 16 to choose from after the first 200, and with
    // 100 none: then the best simulated one is the answer.
    for (int more = 0; more < 2; more++) {
      const uint64_t most = more ? 240 : 100;
      uint64_t simulations = 0;
      struct tfc_budget few = budget;
      few.simulations = most, few.simulated = &simulations;
      used = h.measured = 0;
      assert_ok(tfc_algo_rl.propose(believed.problem, &h.base, &few, &found, &used));
      assert_true(used == h.measured && used <= 8 && (used > 0) == more);
      assert_int_equal(simulations, more ? 232 : 100);
    }
    tfc_solution_deinit(&blind), tfc_solution_deinit(&found);
    tfc_evaluator_free(simulated);
    tfc_simulator_free(h.sim);
  }
  assert_true(gain > 0.03);
  tfc_policy_free(policy);
  grid_free(&believed), grid_free(&truth);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(measuring_teaches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
