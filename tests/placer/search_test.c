// Tests that a search on one thread finds known answers.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "placer/exact/exhaust.h"
#include "placer/search/guide.h"
#include "placer/search/local.h"
#include "tests/placer/instances.h"

// A long and a short operation are on one device, each followed by an operation on another device; all are pinned. The
// short one must run first, although its path is shorter. No priority rule finds that; only exchanging the two does.
static void test_orders(void **state) {
  (void)state;
  struct instance i = {0};
  struct tfc_cost_builder *b = NULL;
  uint32_t acc, node;
  static const double times[] = {2, 0.5, 1.2, 1};
  MUST(tfc_cost_builder_create(&b));
  MUST(tfc_cost_builder_kind(b, TFC_STR("acc"), &acc));
  for (uint32_t n = 0; n < 4; n++) {
    static const char *const names[] = {"long", "short", "after long", "after short"};
    MUST(tfc_cost_builder_node(b, tfc_str_from(names[n]), &node));
    MUST(tfc_cost_builder_time(b, node, acc, times[n]));
    MUST(tfc_cost_builder_pin(b, node, n < 2 ? TFC_STR("acc:0") : TFC_STR("acc:1")));
  }
  for (uint32_t n = 0; n < 2; n++) MUST(tfc_cost_builder_edge(b, n, 0, n + 2, 1000, TFC_LIVE_ABSENT));
  MUST(tfc_cost_builder_finish(b, &i.graph));
  tfc_cost_builder_free(b);
  MUST(tfc_machine_create(&i.machine));
  for (uint32_t d = 0; d < 2; d++)
    MUST(tfc_machine_add_device(i.machine, &(struct tfc_machine_device){.name = d ? TFC_STR("acc:1") : TFC_STR("acc:0"),
                                                                        .kind = TFC_STR("acc"),
                                                                        .memory = TFC_NO_LIMIT,
                                                                        .label = TFC_LABEL_MODELLED}));
  struct tfc_link l = tfc_link_default();
  l.bandwidth = 1e10;
  MUST(tfc_machine_add_link(i.machine, &l));
  MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &i.problem));
  for (uint64_t seed = 1; seed <= 3; seed++) {
    struct tfc_search_outcome out = {0};
    struct tfc_search_options options = {.evaluations = 20000, .seed = seed, .threads = 1};
    assert_ok(tfc_search(i.problem, &options, &out));
    if (out.value != 3800000)
      fail_msg("seed %llu: %lld ps, not 3800000", (unsigned long long)seed, (long long)out.value);
    tfc_search_outcome_deinit(&out);
  }
  instance_free(&i);
}

// Returns the best value of a placement under any priorities, found without the code under test, by trying all
// permutations.
static struct tfc_score best_of_all(const struct tfc_problem *p, bool orders) {
  struct tfc_score best = TFC_SCORE_NONE;
  struct tfc_simulator *sim = NULL;
  tfc_device_id device[8] = {0};
  uint32_t rank[8], turn[8];
  uint64_t placements = 1;
  MUST(tfc_simulator_create(p, &sim));
  for (uint32_t u = 0; u < p->unit_count; u++) placements *= p->device_count;
  for (uint64_t k = 0; k < placements; k++) {
    uint64_t digits = k;
    bool allowed = true;
    for (uint32_t u = 0; u < p->unit_count; u++, digits /= p->device_count) {
      device[u] = (tfc_device_id)(digits % p->device_count);
      allowed &= tfc_problem_allows(p, u, device[u]);
    }
    if (!allowed) continue;
    for (uint32_t n = 0; n < p->node_count; n++) rank[n] = n, turn[n] = 0;
    for (uint32_t i = 0; i < p->node_count;) { // Heap's algorithm: each simulation sees another permutation
      struct tfc_verdict v = {0};
      if (i == 0 || turn[i] < i) {
        if (i) {
          const uint32_t j = i % 2 ? turn[i] : 0, x = rank[j];
          rank[j] = rank[i], rank[i] = x;
          turn[i]++;
        }
        tfc_simulate(sim, device, orders ? rank : NULL, TFC_TIME_MAX, &v);
        const struct tfc_score score = tfc_score_of(&v);
        if (tfc_score_better(score, best)) best = score;
        if (!orders) break;
        i = 1;
      } else {
        turn[i++] = 0;
      }
    }
  }
  tfc_simulator_free(sim);
  return best;
}

static void test_everything(void **state) {
  (void)state;
  struct tfc_random r;
  uint32_t fewer = 0;
  tfc_random_init(&r, 77);
  for (int k = 0; k < 120; k++) {
    const bool step = k % 4 != 3;
    struct instance i = random_instance(&r, 2 + (uint32_t)pick(&r, 5), 1 + (uint32_t)pick(&r, 3), RICH_ALL,
                                        step ? TFC_OBJECTIVE_STEP : TFC_OBJECTIVE_THROUGHPUT);
    const struct tfc_problem *p = i.problem;
    const struct tfc_score best = best_of_all(p, step);
    struct tfc_solution solution = {0};
    struct tfc_score score;
    uint64_t used;
    bool complete;
    const uint64_t count = tfc_exhaust_count(p, 10000000, step);
    assert_ok(tfc_solution_init(&solution, p));
    assert_ok(tfc_exhaust(p, &(struct tfc_budget){.threads = 1}, step, -1, &solution, &score, &used, &complete));
    assert_true(complete);
    assert_int_equal(used, count);
    if (score.excess != best.excess || score.value != best.value)
      fail_msg("instance %d: %lld ps, not %lld", k, (long long)score.value, (long long)best.value);
    // The value that is reported is that of the returned solution.
    if (best.value != TFC_TIME_MAX) {
      struct tfc_simulator *sim = NULL;
      struct tfc_verdict v = {0};
      MUST(tfc_simulator_create(p, &sim));
      tfc_simulate(sim, solution.device, solution.rank, TFC_TIME_MAX, &v);
      assert_int_equal(v.value, best.value);
      assert_int_equal(v.excess, best.excess);
      tfc_simulator_free(sim);
    }
    // The lower bound is not above the optimum.
    if (best.value != TFC_TIME_MAX && !best.excess) {
      struct tfc_bound bound;
      assert_ok(tfc_bound_compute(p, NULL, &bound));
      assert_true(bound.value <= best.value);
    }
    // A budget that is too small ends the search, and it makes no more evaluations than that.
    if (count > 1) {
      fewer++;
      assert_int_equal(tfc_exhaust_count(p, count - 1, step), UINT64_MAX);
      assert_ok(tfc_exhaust(p, &(struct tfc_budget){.threads = 1, .evaluations = count - 1}, step, -1, &solution,
                            &score, &used, &complete));
      assert_false(complete);
      assert_int_equal(used, count - 1);
    }
    tfc_solution_deinit(&solution);
    // `auto` finds the optimum, too, on any number of threads.
    for (uint32_t threads = 1; threads <= 3 && k % 8 == 0 && best.value != TFC_TIME_MAX && count < 20000;
         threads += 2) {
      struct tfc_search_outcome out = {0};
      struct tfc_search_options options = {.evaluations = 60000, .seed = 1, .threads = threads};
      assert_ok(tfc_search(p, &options, &out));
      assert_int_equal(out.value, best.value);
      assert_int_equal(out.excess, best.excess);
      tfc_search_outcome_deinit(&out);
    }
    instance_free(&i);
  }
  assert_true(fewer > 80);
}

// Five nodes fit only in one order: while a tensor is live, there is no memory for the next one.
static void test_order_that_fits(void **state) {
  (void)state;
  struct instance i = parsed(
      "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
      "{\"name\": \"n0\", \"time_us\": {\"acc\": 2}}, {\"name\": \"n1\", \"time_us\": {\"acc\": 1}},"
      "{\"name\": \"n2\", \"time_us\": {\"acc\": 0}, \"memory\": 365},"
      "{\"name\": \"n3\", \"time_us\": {\"acc\": 2}, \"memory\": 100}, {\"name\": \"n4\", \"time_us\": {\"acc\": 0}}],"
      "\"edges\": [{\"from\": \"n2\", \"to\": \"n3\", \"bytes\": 1, \"output\": 1, \"live\": 100},"
      "{\"from\": \"n1\", \"to\": \"n0\", \"bytes\": 1, \"live\": 596}]}",
      "format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'acc:0', kind: acc, memory: 698}\n"
      "  - {name: 'acc:1', kind: acc, memory: 558}\nlinks:\n"
      "  - {from: '*', to: '*', latency: 1, bandwidth: 11790815.968035912, duplex: true}\n"
      "  - {from: 'acc:1', to: 'acc:0', bandwidth: 1000000000.0, occupies: receiver}\n");
  struct tfc_search_outcome out = {0};
  assert_ok(tfc_search(i.problem, &(struct tfc_search_options){.evaluations = 1500, .seed = 100086}, &out));
  assert_int_equal(out.excess, 0);
  assert_int_equal(out.value, 5001000);
  assert_true(out.evaluations <= 1500);
  tfc_search_outcome_deinit(&out);
  instance_free(&i);
}

// A list scheduler fills the small device, and the placement does not fit: then the answer is the device without a
// limit.
static void test_falls_back(void **state) {
  (void)state;
  struct instance i =
      parsed("{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
             "{\"name\": \"n0\", \"time_us\": {\"acc\": 1}}, {\"name\": \"n1\", \"time_us\": {\"acc\": 1}}],"
             "\"edges\": [{\"from\": \"n0\", \"to\": \"n1\", \"bytes\": 48201, \"output\": 1, \"live\": 144}]}",
             "format: tfc-machine\nversion: 1\ndevices:\n  - {name: 'acc:0', kind: acc, memory: 28}\n"
             "  - {name: 'acc:1', kind: acc}\nlinks:\n  - {from: '*', to: '*', bandwidth: 54951414}\n");
  for (size_t k = 0; k < 2; k++) {
    struct tfc_search_outcome out = {0};
    assert_ok(tfc_search(
        i.problem,
        &(struct tfc_search_options){.settings.algorithms = k ? "m-sct" : "heft", .evaluations = 2000, .seed = 1},
        &out));
    assert_int_equal(out.excess, 0);
    assert_int_equal(out.value, 2000000);
    tfc_search_outcome_deinit(&out);
  }
  instance_free(&i);
}

// A guide that proposes nothing, uses all that it is given, and counts how often it is asked. It can claim that it
// improved the placement, if that is as good as `lucky`; then it leaves nothing of the job to annealing, which would
// see what the placement takes.
struct tfc_guidance {
  uint32_t asked;
};
static int64_t lucky; // ps; 0: never
static struct tfc_guidance guidance;
static tfc_status open_idle(const struct tfc_guide *guide, const struct tfc_problem *p, struct tfc_guidance **out) {
  (void)guide, (void)p;
  guidance = (struct tfc_guidance){0};
  *out = &guidance;
  return NULL;
}
static tfc_status propose_nothing(struct tfc_guidance *g, const struct tfc_budget *budget, uint32_t count,
                                  tfc_status (*found)(void *, const struct tfc_solution *, struct tfc_score),
                                  void *user, uint64_t *out_evaluations) {
  (void)g, (void)budget, (void)count, (void)found, (void)user, (void)out_evaluations;
  return NULL;
}
static tfc_status improve_nothing(const struct tfc_guidance *g, const struct tfc_budget *budget,
                                  struct tfc_solution *solution, struct tfc_score *score, uint64_t *out_evaluations) {
  (void)g, (void)solution;
  const bool wins = score->value == lucky;
  __atomic_fetch_add(&guidance.asked, 1, __ATOMIC_RELAXED);
  if (wins) score->value -= 1;
  while (budget->deadline > 0 && !tfc_budget_over(budget)) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  *out_evaluations += wins ? 16 * budget->evaluations : budget->evaluations;
  return NULL;
}
static void samples_of_idle(const struct tfc_guidance *g, struct tfc_guide_samples *out) {
  (void)g;
  *out = (struct tfc_guide_samples){.count = 200, .invalid_share = 0.1, .entropy = 0.25};
}
static void close_idle(struct tfc_guidance *g) {
  (void)g;
}

static void assert_same_turns(const struct tfc_search_turns *a, const struct tfc_search_turns *b) {
  assert_true(a->count == b->count && a->wins == b->wins && a->evaluations == b->evaluations);
  assert_memory_equal(&a->gained, &b->gained, sizeof a->gained);
}

// Searches with one thread and with four, and expects the same of both: the placement, its value, and the account.
static void search_alike(const struct tfc_problem *p, const struct tfc_guide *guide, uint64_t evaluations,
                         struct tfc_search_outcome *out) {
  struct tfc_search_outcome other = {0};
  struct tfc_search_options options = {.evaluations = evaluations, .seed = 1, .threads = 4, .settings.guide = guide};
  assert_ok(tfc_search(p, &options, &other));
  const uint32_t asked = guidance.asked;
  options.threads = 1;
  assert_ok(tfc_search(p, &options, out));
  assert_int_equal(guidance.asked, asked);
  assert_true(out->value == other.value && out->excess == other.excess && out->evaluations == other.evaluations);
  assert_string_equal(out->algorithm, other.algorithm);
  assert_memory_equal(out->best.device, other.best.device, p->unit_count * sizeof *out->best.device);
  assert_same_turns(&out->learned.moves, &other.learned.moves);
  assert_same_turns(&out->learned.others, &other.learned.others);
  tfc_search_outcome_deinit(&other);
}

// A policy that finds nothing has one in three of the first 24 turns and one in eight of the others. With few
// evaluations, a search has only one job, in which the policy has no part.
static void test_policy_share(void **state) {
  (void)state;
  static const struct tfc_guide idle = {open_idle, propose_nothing, improve_nothing, samples_of_idle, close_idle, NULL,
                                        NULL};
  struct tfc_random r;
  tfc_random_init(&r, 7);
  struct instance i = random_instance(&r, 300, 4, 0, TFC_OBJECTIVE_STEP);
  struct tfc_search_outcome out = {0};
  lucky = 0;
  assert_ok(tfc_search(
      i.problem, &(struct tfc_search_options){.seconds = 1, .seed = 1, .threads = 2, .settings.guide = &idle}, &out));
  // Its moves found nothing, so it has its turns and no other, whatever annealing found in them. Every job counts as a
  // turn of `others`.
  uint32_t due = 0;
  for (uint32_t t = 0; t < out.learned.others.count; t++) due += t < 24 ? t % 3 == 1 : t % 8 == 1;
  assert_true(out.learned.moves.count <= due && out.learned.moves.count + 8 >= due);
  assert_int_equal(out.learned.moves.wins, 0);
  tfc_search_outcome_deinit(&out);
  search_alike(i.problem, &idle, 4000, &out);
  const uint32_t asked = out.learned.moves.count, turns = out.learned.others.count;
  uint32_t own = 0, own_too = 0; // the turns that belong to the policy, if the first has the number 0 or 1
  for (uint32_t k = 0; k + 1 < turns; k++) {
    own += k < 24 ? k % 3 == 1 : k % 8 == 1;
    own_too += k + 1 < 24 ? (k + 1) % 3 == 1 : (k + 1) % 8 == 1;
  }
  // Before the last job, which cools down, these are all; that one it may share.
  if (asked != own && asked != own + 1 && asked != own_too && asked != own_too + 1)
    fail_msg("%u of %u turns", asked, turns);
  assert_true(guidance.asked >= asked && out.learned.moves.wins == 0 && out.learned.moves.evaluations > 0);
  assert_true(out.evaluations <= 4000);
  const int64_t first = out.learned.before;
  tfc_search_outcome_deinit(&out);
  search_alike(i.problem, &idle, 200, &out);
  assert_true(out.learned.moves.count == 0 && out.learned.others.count == 1);
  assert_true(out.evaluations <= 200 + 3); // the last order of operations is chosen from three
  tfc_search_outcome_deinit(&out);
  // Where the policy was useful, its credit may also give it other turns (placer/search/credit.h).
  lucky = first;
  search_alike(i.problem, &idle, 4000, &out);
  lucky = 0;
  assert_true(out.learned.moves.count >= asked && out.learned.moves.wins > 0);
  // The account shows what it did: its own samples, and the turns in which its moves improved the best placement.
  char says[100];
  struct tfc_text text = {0};
  tfc_search_account_tell(&out.learned, &text);
  assert_int_equal(out.learned.samples.count, 200);
  assert_true(out.learned.others.count > out.learned.moves.count && out.learned.others.evaluations > 0);
  snprintf(says, sizeof says, "(entropy 0.25, 10 %% invalid); its moves gained 0.0 %% in %u of %u turns",
           out.learned.moves.wins, out.learned.moves.count);
  assert_non_null(strstr(text.data, says));
  tfc_text_deinit(&text);
  tfc_search_outcome_deinit(&out);
  instance_free(&i);
}

// A limit on evaluations holds, however small it is, whatever the algorithms' shares of it are.
static void test_small_limits(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 5);
  struct instance i = random_instance(&r, 60, 3, RICH_LIMITS, TFC_OBJECTIVE_STEP);
  assert_true(i.problem->has_limits);
  for (uint64_t limit = 1; limit < 80; limit += 6) {
    struct tfc_search_outcome out = {0};
    assert_ok(tfc_search(i.problem, &(struct tfc_search_options){.evaluations = limit, .seed = 1, .threads = 1}, &out));
    assert_true(out.evaluations <= limit + 20);
    tfc_search_outcome_deinit(&out);
  }
  instance_free(&i);
}

struct keeping {
  char *state;
  size_t size;
};
static tfc_status keep(void *user, tfc_str state) {
  struct keeping *k = user;
  free(k->state);
  k->state = malloc(state.size + 1);
  MUST(k->state ? NULL : tfc_status_no_memory(NULL));
  memcpy(k->state, state.data, state.size);
  k->size = state.size;
  return NULL;
}

// A search that is cancelled at once leaves a state from which the resumed one runs all phases, whatever limits it;
// with named algorithms before `auto`, too.
static void test_cancelled_at_once(void **state) {
  (void)state;
  struct tfc_random r;
  tfc_random_init(&r, 6);
  struct instance i = random_instance(&r, 60, 3, 0, TFC_OBJECTIVE_STEP);
  for (int k = 0; k < 3; k++) {
    atomic_bool cancel = true;
    struct keeping kept = {0};
    struct tfc_search_outcome out = {0};
    struct tfc_search_options options = {.seed = 1, .threads = 1, .kept = keep, .kept_user = &kept};
    options.cancel = &cancel;
    if (k == 0) options.evaluations = 600;
    if (k > 0) options.seconds = 1;
    if (k == 2) options.settings.algorithms = "random,auto";
    assert_ok(tfc_search(i.problem, &options, &out));
    assert_true(out.cancelled);
    tfc_search_outcome_deinit(&out);
    assert_true(kept.size > 0);
    struct keeping first = kept;
    kept = (struct keeping){0};
    atomic_store(&cancel, false);
    options.state = (tfc_str){first.state, first.size};
    assert_ok(tfc_search(i.problem, &options, &out));
    bool random = false, heft = false;
    for (uint32_t e = 0; e < out.entry_count; e++) {
      const bool ran = out.entries[e].solution.device && !out.entries[e].note;
      random |= ran && strcmp(out.entries[e].algorithm, "random") == 0;
      heft |= ran && strcmp(out.entries[e].algorithm, "heft") == 0;
    }
    assert_true(heft);
    assert_true(random == (k == 2));
    tfc_search_outcome_deinit(&out);
    free(first.state);
    free(kept.state);
  }
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_orders),           cmocka_unit_test(test_everything),
                                     cmocka_unit_test(test_order_that_fits),  cmocka_unit_test(test_falls_back),
                                     cmocka_unit_test(test_policy_share),     cmocka_unit_test(test_small_limits),
                                     cmocka_unit_test(test_cancelled_at_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
