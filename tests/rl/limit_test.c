// A limit on evaluations is exact, whatever algorithm runs. The suite is linked with the placer's own object files, in
// which the linker replaces the calls of the simulator by those below; so it counts what is simulated, not what the
// search says of itself. A placement with an order counts once, however often it is simulated.
#include "tests/common/test.h"

#include <pthread.h>

#include "cli/place.h"
#include "placer/search/local.h"
#include "placer/search/search.h"
#include "placer/simulate/delta.h"
#include "placer/simulate/simulate.h"
#include "rl/policy.h"
#include "rl/rl.h"
#include "runtime/base/map.h"
#include "tests/placer/instances.h"

enum { SLOTS = 1 << 16 };

static struct {
  pthread_mutex_t lock;
  const struct tfc_problem *p;
  uint64_t seen[SLOTS]; // a hash set of placements with their orders; 0: free
  uint64_t count, calls;
} counter = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Counts a placement unless it was counted before.
static void count(const tfc_device_id *device, const uint32_t *rank) {
  const struct tfc_problem *p = counter.p;
  if (!p) return;
  const bool orders = p->objective == TFC_OBJECTIVE_STEP;
  uint64_t x = tfc_hash_bytes(device, p->unit_count * sizeof *device);
  if (orders) x = x * 0x9e3779b97f4a7c15u ^ tfc_hash_bytes(rank ? rank : p->rank, p->node_count * sizeof *rank);
  x |= 1;
  pthread_mutex_lock(&counter.lock);
  uint64_t at = (x >> 20) % SLOTS;
  while (counter.seen[at] && counter.seen[at] != x) at = (at + 1) % SLOTS;
  counter.count += !counter.seen[at], counter.calls++;
  counter.seen[at] = x;
  assert_true(counter.count < SLOTS / 2);
  pthread_mutex_unlock(&counter.lock);
}

void __real_tfc_simulate(struct tfc_simulator *, const tfc_device_id *, const uint32_t *, int64_t,
                         struct tfc_verdict *);
void __wrap_tfc_simulate(struct tfc_simulator *, const tfc_device_id *, const uint32_t *, int64_t,
                         struct tfc_verdict *);
void __wrap_tfc_simulate(struct tfc_simulator *sim, const tfc_device_id *device, const uint32_t *rank, int64_t cutoff,
                         struct tfc_verdict *out) {
  count(device, rank);
  __real_tfc_simulate(sim, device, rank, cutoff, out);
}

void __real_tfc_delta_reset(struct tfc_delta *, const tfc_device_id *, const uint32_t *, struct tfc_verdict *);
void __wrap_tfc_delta_reset(struct tfc_delta *, const tfc_device_id *, const uint32_t *, struct tfc_verdict *);
void __wrap_tfc_delta_reset(struct tfc_delta *d, const tfc_device_id *device, const uint32_t *rank,
                            struct tfc_verdict *out) {
  count(device, rank);
  __real_tfc_delta_reset(d, device, rank, out);
}

void __real_tfc_delta_try(struct tfc_delta *, const struct tfc_move *, uint32_t, const uint32_t *, uint32_t, int64_t,
                          struct tfc_verdict *);
void __wrap_tfc_delta_try(struct tfc_delta *, const struct tfc_move *, uint32_t, const uint32_t *, uint32_t, int64_t,
                          struct tfc_verdict *);
void __wrap_tfc_delta_try(struct tfc_delta *d, const struct tfc_move *moves, uint32_t move_count, const uint32_t *swaps,
                          uint32_t swap_count, int64_t cutoff, struct tfc_verdict *out) {
  const struct tfc_problem *p = counter.p;
  if (p) {
    tfc_device_id device[256];
    uint32_t rank[256];
    assert_true(p->unit_count <= 256 && p->node_count <= 256);
    memcpy(device, tfc_delta_device(d), p->unit_count * sizeof *device);
    for (uint32_t i = 0; i < move_count; i++) device[moves[i].unit] = moves[i].device;
    if (p->objective == TFC_OBJECTIVE_STEP) memcpy(rank, tfc_delta_rank(d), p->node_count * sizeof *rank);
    for (uint32_t i = 0; i < swap_count; i++) {
      const uint32_t x = rank[swaps[2 * i]];
      rank[swaps[2 * i]] = rank[swaps[2 * i + 1]], rank[swaps[2 * i + 1]] = x;
    }
    count(device, p->objective == TFC_OBJECTIVE_STEP ? rank : NULL);
  }
  __real_tfc_delta_try(d, moves, move_count, swaps, swap_count, cutoff, out);
}

// Runs a search; returns the evaluations that it made.
static uint64_t made(const struct tfc_problem *p, const struct tfc_policy *policy, const char *algorithms,
                     uint64_t limit, struct tfc_search_outcome *out) {
  const struct tfc_search_options o = {.settings.algorithms = algorithms,
                                       .settings.extra = place_extra(),
                                       .settings.guide = policy ? &policy->guide : NULL,
                                       .evaluations = limit,
                                       .seed = 1 + limit,
                                       .threads = 2};
  memset(counter.seen, 0, sizeof counter.seen);
  counter.count = counter.calls = 0, counter.p = p;
  assert_ok(tfc_search(p, &o, out));
  counter.p = NULL;
  return counter.count;
}

static void check(const struct tfc_problem *p, const struct tfc_policy *policy, const char *name, const char *where) {
  static const uint64_t limits[] = {1, 2, 20, 200, 1454};
  const size_t last = strcmp(name, "auto") == 0 ? 5 : 4; // the largest limit takes rivals that train networks too long
  for (size_t i = 0; i < last; i++) {
    struct tfc_search_outcome out = {0};
    const uint64_t limit = limits[i], count = made(p, policy, name, limit, &out);
    if (count > limit || out.evaluations > limit)
      fail_msg("%s under %llu evaluations, %s: %llu were made, %llu are claimed", name, (unsigned long long)limit,
               where, (unsigned long long)count, (unsigned long long)out.evaluations);
    if (count > out.evaluations)
      fail_msg("%s under %llu evaluations, %s: %llu were made, but only %llu are claimed", name,
               (unsigned long long)limit, where, (unsigned long long)count, (unsigned long long)out.evaluations);
    // The answer is one of the placements that were evaluated, and searches spend what they are given.
    if (out.evaluations) assert_true(counter.calls > 0);
    if (!strcmp(name, "auto") && !out.optimal && out.evaluations + limit / 20 + TFC_SETTLE_MOST < limit)
      fail_msg("auto, %s, spent only %llu of %llu", where, (unsigned long long)out.evaluations,
               (unsigned long long)limit);
    tfc_search_outcome_deinit(&out);
  }
}

// Checks all algorithms; rivals that train a network take long, so `rivals` says whether they are among them.
static void check_all(const struct tfc_problem *p, const struct tfc_policy *policy, bool rivals, const char *where) {
  const struct tfc_algo *const *lists[] = {tfc_algos(), rivals ? place_extra() : tfc_rl_algos()};
  for (size_t k = 0; k < 2; k++)
    for (const struct tfc_algo *const *a = lists[k]; *a; a++) check(p, policy, (*a)->name, where);
  check(p, policy, "auto", where);
  check(p, NULL, "auto", where);
  check(p, policy, "heft,auto", where);
  check(p, policy, "random,anneal,lns", where);
}

static void test_step(void **state) {
  (void)state;
  struct tfc_random r;
  struct tfc_policy *policy = NULL;
  tfc_random_init(&r, 5);
  assert_ok(tfc_policy_untrained(3, &policy));
  struct instance i = random_instance(&r, 40, 4, RICH_GROUPS | RICH_CALIBRATION, TFC_OBJECTIVE_STEP);
  check_all(i.problem, policy, true, "step");
  instance_free(&i);
  tfc_policy_free(policy);
}

// Where memory is nearly full, most placements do not fit, and other algorithms help out.
static void test_limits(void **state) {
  (void)state;
  struct tfc_random r;
  struct tfc_policy *policy = NULL;
  tfc_random_init(&r, 6);
  assert_ok(tfc_policy_untrained(3, &policy));
  struct instance i = random_instance(&r, 40, 3, RICH_LIMITS | RICH_KINDS | RICH_LIVE, TFC_OBJECTIVE_STEP);
  check_all(i.problem, policy, false, "step with limits");
  instance_free(&i);
  tfc_policy_free(policy);
}

static void test_throughput(void **state) {
  (void)state;
  struct tfc_random r;
  struct tfc_policy *policy = NULL;
  tfc_random_init(&r, 7);
  assert_ok(tfc_policy_untrained(3, &policy));
  struct instance i = random_instance(&r, 50, 3, RICH_GROUPS, TFC_OBJECTIVE_THROUGHPUT);
  check_all(i.problem, policy, false, "throughput");
  instance_free(&i);
  tfc_policy_free(policy);
}

// Tiny problems are tried completely if the limit allows it.
static void test_tiny(void **state) {
  (void)state;
  struct tfc_random r;
  struct tfc_policy *policy = NULL;
  tfc_random_init(&r, 8);
  assert_ok(tfc_policy_untrained(3, &policy));
  for (uint32_t k = 0; k < 3; k++) {
    struct instance i = random_instance(&r, 4, 1 + k, 0, TFC_OBJECTIVE_STEP);
    static const uint64_t limits[] = {1, 2, 3, 20, 200};
    for (size_t m = 0; m < sizeof limits / sizeof *limits; m++) {
      struct tfc_search_outcome out = {0};
      const uint64_t count = made(i.problem, policy, "auto", limits[m], &out);
      assert_true(count <= limits[m] && out.evaluations <= limits[m] && count >= 1);
      assert_non_null(out.best.device);
      tfc_search_outcome_deinit(&out);
    }
    instance_free(&i);
  }
  tfc_policy_free(policy);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_step),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_throughput),
      cmocka_unit_test(test_tiny),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
