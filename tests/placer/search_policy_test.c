// Tests what a search gives its learned policy: how many placements it may propose, which jobs have its moves, and what
// is left for annealing. The policy and the jobs are played here.
#include "tests/common/test.h"

#include <stdio.h>

#include "tests/common/close.h"
#include "tests/placer/played_rounds.h"

struct tfc_guidance {
  uint32_t asked;
  uint64_t evaluations[700], told;
  uint64_t anew[40]; // the number of its proposals each time that it began anew
  uint32_t anew_count;
  int64_t better_by; // thousandths: how much shorter the policy's first placement is than the best of the heuristics
  int64_t best;      // of its own placements
  int64_t learns;    // thousandths: how much shorter each later answer makes it
  bool waits;        // it proposes nothing until it is told to end
};
static struct tfc_guidance guidance;
static tfc_status open_it(const struct tfc_guide *guide, const struct tfc_problem *p, struct tfc_guidance **out) {
  (void)guide, (void)p;
  *out = &guidance;
  return NULL;
}
static tfc_status propose_it(struct tfc_guidance *g, const struct tfc_budget *budget, uint32_t count,
                             tfc_status (*found)(void *, const struct tfc_solution *, struct tfc_score), void *user,
                             uint64_t *used) {
  struct proposals *own = user;
  struct tfc_finder *f = own->f;
  struct tfc_score score = f->course.best;
  assert_int_equal(count, 4);
  assert_true(g->asked < 700);
  if (!g->asked) g->best = score.value - score.value * g->better_by / 1000;
  if (g->asked && g->told % 16 == 0) g->best -= g->best * g->learns / 1000; // once in each 16 proposals
  g->evaluations[g->asked++] = budget->evaluations;
  g->told += budget->evaluations;
  for (int ms = 0; g->waits && ms < 20000 && !tfc_budget_over(budget); ms++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  if (g->waits && !tfc_budget_over(budget)) return tfc_status_make(TFC_INTERNAL, "nobody told the policy to end");
  if (g->waits) return NULL;
  *used += budget->evaluations;
  score.value = g->best;
  // A placement joins the elite with a score that is not its own only if it is the only one that does.
  if (g->asked == 1 && g->better_by > 0) return found(user, &f->out->best, score);
  if (tfc_score_better(score, own->best)) own->best = score;
  if (tfc_score_better(score, own->here)) own->here = score;
  return tfc_finder_keep(f, &f->out->best, score, "auto: policy");
}
static tfc_status improve_it(const struct tfc_guidance *g, const struct tfc_budget *budget, struct tfc_solution *s,
                             struct tfc_score *score, uint64_t *used) {
  (void)g, (void)budget, (void)s, (void)score, (void)used;
  return NULL;
}
static void samples_of_it(const struct tfc_guidance *g, struct tfc_guide_samples *out) {
  (void)g;
  *out = (struct tfc_guide_samples){.count = 7};
}
static void begin_it_anew(struct tfc_guidance *g) {
  assert_true(g->anew_count < 40);
  g->anew[g->anew_count++] = g->told;
}
static void close_it(struct tfc_guidance *g) {
  assert_ptr_equal(g, &guidance);
}

// A problem whose bound is far below what the heuristics find: nothing that the policy claims is proven optimal. It is
// so large that a few thousand evaluations of annealing do not find nearly everything.
static struct instance far_from_bound(void) {
  for (uint64_t seed = 1;; seed++) {
    struct tfc_search_outcome plain = {0};
    struct instance i = of_size(900, seed, 4, TFC_OBJECTIVE_STEP);
    search(i.problem, 20000, 1, 0, &plain);
    const bool far = 10 * plain.bound.value < 8 * plain.value;
    tfc_search_outcome_deinit(&plain);
    if (far) return i;
    instance_free(&i);
    assert_true(seed < 100);
  }
}

// The policy proposes 48 placements, then more in blocks of 16: if it is ahead of the heuristics, up to 1,000 or 60 %
// of what is left; if it is level, as long as it learns; if it is far behind, none, or in a long search up to 5 % of
// it. Then it has one job in three at first and one in eight later.
static void test_policy(void **state) {
  (void)state;
  static const struct tfc_guide guide = {open_it, propose_it, improve_it, samples_of_it, close_it, NULL, begin_it_anew};
  struct instance i = far_from_bound();
  // The window in which it has to learn is 48 proposals, or half of them: it is over after 96. Of 10,000 evaluations,
  // 5 % are over after 500 proposals.
  static const struct {
    uint64_t evaluations;
    int64_t better_by, learns;
    uint32_t asked, anew;
  } cases[] = {{3300, -60, 1, 1, 0}, {3300, -40, 0, 4, 0},  {3300, 0, 0, 4, 0},   {3300, 5, 0, 4, 0},
               {3300, -40, 1, 4, 0}, {3300, -40, 2, 61, 0}, {3300, 20, 0, 61, 1}, {10000, -60, 0, 30, 1}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct tfc_search_outcome out = {0}, plain = {0};
    const struct tfc_search_options options = {
        .evaluations = cases[k].evaluations, .seed = 1, .threads = 1, .settings.guide = &guide};
    guidance = (struct tfc_guidance){.better_by = cases[k].better_by, .learns = cases[k].learns};
    // It proposes the best placement so far, with another score: jobs begin with that score.
    search(i.problem, cases[k].evaluations, 1, 0, &plain);
    played_count = 0;
    const uint32_t later = cases[k].asked - 1;
    int64_t best = plain.value - plain.value * cases[k].better_by / 1000;
    for (uint32_t n = 0; n < later; n++) best -= best * cases[k].learns / 1000;
    const bool leads = best < plain.value;
    best_found = (struct tfc_score){0, leads ? best : plain.value};
    assert_ok(tfc_search(i.problem, &options, &out));
    if (guidance.asked != cases[k].asked) fail_msg("case %zu: asked %u times", k, guidance.asked);
    assert_int_equal(guidance.anew_count, cases[k].anew);
    if (cases[k].anew) assert_int_equal(guidance.anew[0], 48 + 256);
    assert_int_equal(guidance.evaluations[0], 48);
    uint64_t all = 0;
    for (uint32_t n = 0; n < guidance.asked; n++) {
      if (n) assert_int_equal(guidance.evaluations[n], n < 60 ? 16 : 1000 - 48 - 59 * 16);
      all += guidance.evaluations[n];
    }
    assert_true(all <= 1000 && (cases[k].asked < 61 || all == 1000));
    assert_true(out.learned.before == plain.value && out.learned.after == best_found.value);
    assert_true(out.value == best_found.value && out.learned.samples.count == 7);
    assert_string_equal(out.algorithm, leads ? "auto: policy" : plain.algorithm);
    uint32_t policies = 0;
    const uint32_t first = cases[k].evaluations < 5000; // 1: there are so few jobs that the first one is the policy's
    for (uint32_t j = 0; j + 1 < played_count; j++) {
      assert_true((plans[j].method == TFC_METHOD_POLICY) ==
                  (j + first < 24 ? (j + first) % 3 == 1 : (j + first) % 8 == 1));
      policies += plans[j].method == TFC_METHOD_POLICY;
    }
    // Nobody gained anything, so the policy's moves are part of the last job too.
    assert_true(plans[played_count - 1].method == TFC_METHOD_POLICY && plans[played_count - 1].rounds == 0);
    assert_false(plans[played_count - 1].policy_first);
    assert_close(plans[played_count - 1].cold, 0.01 * plans[played_count - 1].hot);
    assert_int_equal(out.learned.moves.count, policies + 1);
    tfc_search_outcome_deinit(&plain);
    tfc_search_outcome_deinit(&out);
  }
  // Of a short search it has 60 % at most, and the rest is one job, whose temperature is not looked for. It is asked in
  // blocks of 16 from the beginning, four at a time: two, if it is far behind then; three, if it is level and the last
  // two made its step shorter by less than 0.5 %. The best placements of the heuristics get new orders if it is not 1 %
  // ahead, and its moves come first in the job if it made the step shorter at all.
  static const struct {
    int64_t better_by, learns;
    uint32_t blocks; // 0: 60 % of the budget
  } brief[] = {{-40, 0, 3}, {-60, 0, 2}, {-40, 2, 3}, {-40, 3, 0}, {0, 0, 3}, {5, 0, 3}, {20, 0, 0}};
  struct tfc_search_outcome out = {0};
  // Of the heuristics, and of these with new orders: what the first case, which leads to nothing, ends with.
  int64_t plain_value = 0, settled_value = 0;
  for (size_t k = 0; k < sizeof brief / sizeof *brief; k++) {
    uint64_t asked = 0;
    guidance = (struct tfc_guidance){.better_by = brief[k].better_by, .learns = brief[k].learns};
    int64_t best = plain_value - plain_value * brief[k].better_by / 1000;
    for (uint32_t n = 1; n < (brief[k].blocks ? brief[k].blocks : 22); n++) best -= best * brief[k].learns / 1000;
    const bool leads = best <= 0.99 * (double)plain_value, gains = best < plain_value;
    played_count = 0, settled = 0;
    best_found = !k ? TFC_SCORE_NONE : (struct tfc_score){0, best < settled_value ? best : settled_value};
    tfc_search_outcome_deinit(&out);
    assert_ok(tfc_search(
        i.problem, &(struct tfc_search_options){.evaluations = 580, .seed = 1, .threads = 1, .settings.guide = &guide},
        &out));
    if (!k) plain_value = out.learned.before, settled_value = out.value;
    for (uint32_t n = 0; n < guidance.asked; n++) asked += guidance.evaluations[n];
    if (brief[k].blocks && guidance.asked != 4 * brief[k].blocks)
      fail_msg("case %zu: asked %u times", k, guidance.asked);
    if (brief[k].blocks) assert_int_equal(asked, 16 * brief[k].blocks);
    if (!brief[k].blocks) assert_in_range(asked, 338, 348);
    for (uint32_t n = 0; n + 1 < guidance.asked; n++) assert_int_equal(guidance.evaluations[n], 4);
    assert_true(played_count == 1 && plans[0].spent == 0);
    assert_int_equal(plans[0].policy_first, plans[0].method == TFC_METHOD_POLICY);
    assert_int_equal(plans[0].method, k && gains ? TFC_METHOD_POLICY : TFC_METHOD_ANNEAL);
    assert_int_equal(settled, k && leads ? 0 : 3);
    assert_close(plans[0].hot, SHORT_HOT);
    assert_true(out.evaluations <= 580 && out.evaluations >= 575);
  }
  // Its heuristics are six, with one evaluation for each (`single` has one for each device that is unlike the others);
  // without a policy there are seven more.
  assert_int_equal(out.entry_count, 6);
  for (uint32_t n = 0; n < 6; n++)
    assert_true(serves_brief(out.entries[n].algorithm) && (!n || out.entries[n].evaluations == 1));
  tfc_search_outcome_deinit(&out);
  search(i.problem, 200, 1, 0, &out);
  assert_int_equal(out.entry_count, 13);
  tfc_search_outcome_deinit(&out);
  // With a clock too, the policy's moves are part of the one job that the rest is; all heuristics run, because the
  // clock could end the search before the policy has proposed anything.
  guidance = (struct tfc_guidance){.better_by = -40};
  played_count = 0;
  assert_ok(tfc_search(i.problem,
                       &(struct tfc_search_options){
                           .evaluations = 200, .seconds = 1000, .seed = 1, .threads = 1, .settings.guide = &guide},
                       &out));
  assert_true(guidance.asked > 0 && out.entry_count == 13);
  assert_true(played_count == 1 && !plans[0].policy_first && plans[0].method == TFC_METHOD_POLICY &&
              plans[0].rounds == 0);
  assert_true(out.learned.moves.count == 1 && out.evaluations <= 200 + 3);
  tfc_search_outcome_deinit(&out);
  // With a time limit, too, the policy has one in three of the first 24 turns and one in eight of the others.
  guidance = (struct tfc_guidance){0};
  played_count = 0;
  assert_ok(tfc_search(i.problem,
                       &(struct tfc_search_options){
                           .evaluations = 40000, .seconds = 1000, .seed = 1, .threads = 1, .settings.guide = &guide},
                       &out));
  assert_true(played_count > 40);
  for (uint32_t k = 0; k + 1 < played_count; k++)
    assert_true((plans[k].method == TFC_METHOD_POLICY) == (k < 24 ? k % 3 == 1 : k % 8 == 1));
  tfc_search_outcome_deinit(&out);
  // The first heuristic may use half of the time, any other one a fifth, but `multilevel` only a twentieth, because it
  // uses all that it may.
  struct tfc_finder f = {.p = i.problem};
  assert_close(time_share(&f, "single"), 0.5);
  assert_close(time_share(&f, "heft"), 0.2);
  assert_close(time_share(&f, "multilevel"), 0.05);
  // What annealing gains in a job of the policy gives it no turns beside its own; what its moves gain does.
  uint32_t more[2] = {0};
  for (int own = 0; own < 2; own++) {
    guidance = (struct tfc_guidance){0};
    // The second job is the first of the policy. What it finds is still above the bound, which would end the search.
    played_count = 0, improves = 2, by_moves = own, parts = 16;
    best_found = TFC_SCORE_NONE;
    assert_ok(tfc_search(
        i.problem,
        &(struct tfc_search_options){.evaluations = 40000, .seed = 1, .threads = 1, .settings.guide = &guide}, &out));
    assert_int_equal(improver, TFC_METHOD_POLICY);
    assert_string_equal(out.algorithm, own ? "auto: policy" : "auto: anneal");
    assert_int_equal(out.learned.moves.wins, own);
    for (uint32_t k = 0; k + 1 < played_count; k++)
      more[own] += plans[k].method == TFC_METHOD_POLICY && (k < 24 ? k % 3 != 1 : k % 8 != 1);
    tfc_search_outcome_deinit(&out);
  }
  assert_true(more[0] == 0 && more[1] > 0);
  improves = 0, parts = 2;
  instance_free(&i);
  // The last phase is annealing's alone if the policy's turns gained less for what they cost.
  struct tfc_credits credits = {0};
  assert_true(policy_cools(&credits));
  credits.of[TFC_METHOD_ANNEAL] = (struct tfc_credit){0.1, 10};
  assert_true(policy_cools(&credits));
  credits.of[TFC_METHOD_POLICY] = (struct tfc_credit){0.1, 11};
  assert_false(policy_cools(&credits));
  credits.of[TFC_METHOD_POLICY].effort = 9;
  assert_true(policy_cools(&credits));
}

// On a small problem the policy is asked for more only if it learns, once 5 % of a long search are over, and what is
// left goes to one job of annealing, or as much as that gets at most.
static void test_policy_of_a_small_problem(void **state) {
  (void)state;
  static const struct tfc_guide guide = {open_it, propose_it, improve_it, samples_of_it, close_it, NULL, NULL};
  // 1,454 evaluations are six and more for each unit and device of the last problem, but not eight.
  static const struct {
    uint64_t evaluations;
    int64_t better_by;
    uint32_t asked, nodes;
  } cases[] = {{1454, -60, 1, 30}, {1454, 20, 4, 30}, {3500, 20, 4, 30}, {40000, -60, 123, 30}, {1454, 20, 4, 100}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    struct instance i = of_size(cases[k].nodes, 5, 2, TFC_OBJECTIVE_STEP);
    struct tfc_search_outcome out = {0}, plain = {0};
    const struct tfc_search_options options = {
        .evaluations = cases[k].evaluations, .seed = 1, .threads = 1, .settings.guide = &guide};
    guidance = (struct tfc_guidance){.better_by = cases[k].better_by};
    search(i.problem, cases[k].evaluations, 1, 0, &plain);
    assert_false(plain.optimal);
    played_count = 0, best_found = (struct tfc_score){0, plain.value};
    if (cases[k].better_by > 0) best_found.value -= plain.value * cases[k].better_by / 1000;
    assert_ok(tfc_search(i.problem, &options, &out));
    assert_int_equal(guidance.asked, cases[k].asked);
    assert_true(played_count > 0);
    const struct planned *last = &plans[played_count - 1];
    assert_true(last->method == TFC_METHOD_ANNEAL && last->rounds == 6);
    if (cases[k].evaluations < MOST_COOLING)
      assert_true(played_count == 1 && out.evaluations + TFC_SETTLE_MOST >= cases[k].evaluations);
    else
      assert_in_range(last->evaluations, MOST_COOLING, MOST_COOLING + FEWEST);
    tfc_search_outcome_deinit(&plain);
    tfc_search_outcome_deinit(&out);
    instance_free(&i);
  }
}

// If rollouts left only some hundred evaluations of a longer search, all of these are for the job that cools down.
static void test_few_left_by_a_policy(void **state) {
  (void)state;
  static const struct tfc_guide guide = {open_it, propose_it, improve_it, samples_of_it, close_it, NULL, NULL};
  struct instance i = far_from_bound();
  const struct tfc_search_options options = {.evaluations = 1454, .seed = 1, .threads = 1, .settings.guide = &guide};
  struct tfc_search_outcome out = {0};
  search(i.problem, 1454, 1, 0, &out);
  best_found = (struct tfc_score){0, out.value - out.value * 20 / 1000};
  tfc_search_outcome_deinit(&out);
  guidance = (struct tfc_guidance){.better_by = 20};
  played_count = 0;
  assert_ok(tfc_search(i.problem, &options, &out));
  assert_true(guidance.asked > 40 && !out.optimal);
  assert_true(played_count == 1 && plans[0].method == TFC_METHOD_POLICY && plans[0].is_best);
  assert_in_range(plans[0].evaluations, 300, TFC_SEARCH_ENOUGH - 1);
  tfc_search_outcome_deinit(&out);
  instance_free(&i);
}

// In a longer search the policy may propose three tenths of the evaluations that are left. It begins anew whenever 256
// proposals made the best step since its last beginning shorter by less than 0.5 %, and 640 proposals are left.
static void test_policy_that_begins_anew(void **state) {
  (void)state;
  static const struct tfc_guide guide = {open_it, propose_it, improve_it, samples_of_it, close_it, NULL, begin_it_anew};
  struct instance i = far_from_bound();
  static const struct {
    uint64_t evaluations, least, most; // of its proposals
    uint32_t anew;
  } cases[] = {{10000, 2800, 3000, 8}, {1454, 800, 872, 0}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const struct tfc_search_options options = {
        .evaluations = cases[k].evaluations, .seed = 1, .threads = 1, .settings.guide = &guide};
    struct tfc_search_outcome out = {0};
    search(i.problem, options.evaluations, 1, 0, &out);
    best_found = (struct tfc_score){0, out.value - out.value * 20 / 1000};
    tfc_search_outcome_deinit(&out);
    guidance = (struct tfc_guidance){.better_by = 20};
    played_count = 0;
    assert_ok(tfc_search(i.problem, &options, &out));
    assert_in_range(guidance.told, cases[k].least, cases[k].most);
    assert_int_equal(guidance.anew_count, cases[k].anew);
    for (uint32_t n = 1; n < guidance.anew_count; n++)
      assert_int_equal(guidance.anew[n] - guidance.anew[n - 1], 16 + 256);
    if (guidance.anew_count) assert_in_range(guidance.told - guidance.anew[guidance.anew_count - 1], 640, 640 + 271);
    tfc_search_outcome_deinit(&out);
  }
  instance_free(&i);
}

static void cancel_at_policy(void *user, const struct tfc_search_progress *progress) {
  if (strcmp(progress->algorithm, "policy") == 0) atomic_store((atomic_bool *)user, true);
}

// Cancelling and progress are seen while the policy proposes placements.
static void test_cancelled_policy(void **state) {
  (void)state;
  static const struct tfc_guide guide = {open_it, propose_it, improve_it, samples_of_it, close_it, NULL, NULL};
  struct instance i = medium(1, 4, TFC_OBJECTIVE_STEP);
  struct tfc_search_outcome out = {0};
  atomic_bool cancel = false;
  guidance = (struct tfc_guidance){.waits = true};
  played_count = 0, improves = 0, best_found = TFC_SCORE_NONE;
  assert_ok(tfc_search(i.problem,
                       &(struct tfc_search_options){.evaluations = 20000,
                                                    .seed = 1,
                                                    .threads = 1,
                                                    .settings.guide = &guide,
                                                    .cancel = &cancel,
                                                    .progress = cancel_at_policy,
                                                    .user = &cancel},
                       &out));
  assert_true(out.cancelled && guidance.asked == 1 && played_count == 0);
  tfc_search_outcome_deinit(&out);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_policy), cmocka_unit_test(test_policy_of_a_small_problem),
                                     cmocka_unit_test(test_policy_that_begins_anew),
                                     cmocka_unit_test(test_few_left_by_a_policy),
                                     cmocka_unit_test(test_cancelled_policy)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
