// Tests how a search divides its budget and keeps what it finds: named algorithms, the jobs of its rounds, the cooling
// at the end, and valleys. Jobs and algorithms are played here, so that what each one was given is known.
#include "tests/common/test.h"

#include <stdio.h>

#include "tests/common/close.h"
#include "tests/placer/played_rounds.h"

// If the number of evaluations limits a search for the shortest step, there are rounds of eight jobs with equal parts,
// then one job that cools down from the best placement with what was kept for it.
static void test_rounds(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    struct instance i = medium(seed, 4, TFC_OBJECTIVE_STEP);
    struct tfc_search_outcome out = {0};
    uint64_t jobs = 0;
    uint32_t other_starts = 0;
    search(i.problem, 59, seed, 0, &out);
    assert_int_equal(settled, 0); // not enough evaluations are left for that
    tfc_search_outcome_deinit(&out);
    search(i.problem, 40000, seed, 0, &out);
    assert_int_equal(settled, 3);
    assert_true(played_count > 60 && played_count % 8 == 1);
    const struct planned *last = &plans[played_count - 1];
    for (uint32_t k = 0; k + 1 < played_count; k++) {
      assert_int_equal(plans[k].evaluations, plans[k - k % 8].evaluations);
      assert_int_equal(plans[k].rounds, 0);
      if (k >= 8) assert_true(plans[k].evaluations <= plans[0].evaluations * 5 / 4 + 1);
      for (uint32_t m = 0; m < k; m++) assert_true(plans[m].seed != plans[k].seed);
      other_starts += plans[k].score.value != last->score.value;
      jobs += plans[k].evaluations;
      const enum tfc_search_method method = plans[k].method;
      if (k % 2)
        assert_true(method == TFC_METHOD_REGROUP || method == TFC_METHOD_ANNEAL || method == TFC_METHOD_CLUSTERS ||
                    method == TFC_METHOD_LNS || method == TFC_METHOD_COMBINE);
      else
        assert_int_equal(method, step_methods[k / 2 % 9]);
      const bool wide = method == TFC_METHOD_CLUSTERS || method == TFC_METHOD_COMBINE;
      if (method == TFC_METHOD_HOT) assert_true(plans[k].hot <= 0.03 && plans[k].hot >= 0.006 - 1e-9);
      if (wide) assert_true(plans[k].hot <= 0.02 && plans[k].hot >= 0.002 - 1e-9);
      if (method == TFC_METHOD_REGROUP || method == TFC_METHOD_LNS || method == TFC_METHOD_NAMES)
        assert_true(plans[k].hot <= 0.004 && plans[k].hot >= 0.0004 - 1e-9);
      assert_true(plans[k].cold <= 0.0001 && plans[k].cold > 0);
      assert_true(plans[k].hot > plans[k].cold);
    }
    // Four of five jobs begin at the best placement.
    assert_true(other_starts * 2 < played_count && other_starts > played_count / 20);
    assert_int_equal(last->method, TFC_METHOD_ANNEAL);
    assert_int_equal(last->rounds, 6);
    assert_in_range(last->evaluations, 4000, 4000 + FEWEST);
    assert_int_equal(last->score.value, out.value);
    jobs += last->evaluations;
    assert_true(jobs <= 40000 && jobs > 30000);
    assert_true(out.evaluations <= 40000 && out.evaluations >= 39000);
    // The job's own placement decides its temperature: the same sample gives the same one.
    assert_true(last->hot > 0 && last->spent > 0 && last->spent <= 48);
    assert_int_equal(out.learned.moves.count, 0);
    assert_int_equal(out.learned.others.count, played_count);
    assert_int_equal(out.learned.others.wins, 0);
    tfc_search_outcome_deinit(&out);
    // The same seed plans the same jobs.
    const uint32_t count = played_count;
    const struct planned sixth = plans[5];
    search(i.problem, 40000, seed, 0, &out);
    assert_true(played_count == count && plans[5].seed == sixth.seed && plans[5].method == sixth.method);
    tfc_search_outcome_deinit(&out);
    instance_free(&i);
  }
}

// What a job finds is the answer, under the job's name, and the later jobs begin there.
static void test_what_is_found(void **state) {
  (void)state;
  struct instance i = medium(4, 3, TFC_OBJECTIVE_STEP);
  for (uint32_t winner = 10; winner < 16; winner++) {
    struct tfc_search_outcome out = {0};
    uint32_t there = 0, later = 0;
    search(i.problem, 20000, 2, winner, &out);
    assert_int_equal(out.value, best_found.value);
    assert_string_equal(out.algorithm, tfc_search_method_names[improver]);
    assert_true(out.learned.others.wins >= 1 && out.learned.others.gained > 0);
    for (uint32_t k = 16; k < played_count; k++) later++, there += plans[k].score.value == best_found.value;
    assert_true(there * 2 > later);
    tfc_search_outcome_deinit(&out);
  }
  instance_free(&i);
}

// For the objective throughput, the methods run in turns, and no temperature falls. If memory is nearly full, every
// third job packs.
static void test_other_searches(void **state) {
  (void)state;
  struct instance i = medium(5, 3, TFC_OBJECTIVE_THROUGHPUT);
  struct tfc_search_outcome out = {0};
  search(i.problem, 40000, 1, 0, &out);
  assert_int_equal(settled, 0); // the order of operations has no influence
  assert_true(played_count > 60);
  for (uint32_t k = 0; k < played_count; k++) {
    assert_int_equal(plans[k].method, throughput_methods[k % 10]);
    assert_int_equal(plans[k].rounds, 0);
    if (plans[k].method == TFC_METHOD_FRESH) assert_true(plans[k].hot <= 0.03 && plans[k].hot >= 0.006 - 1e-9);
    if (plans[k].method == TFC_METHOD_ANNEAL) assert_true(plans[k].hot <= 0.004);
  }
  assert_true(out.evaluations <= 40000 && out.evaluations >= 39000);
  tfc_search_outcome_deinit(&out);
  uint64_t need = 0, limit[3];
  for (uint32_t u = 0; u < i.problem->unit_count; u++) need += i.problem->unit_memory[u];
  for (int d = 0; d < 3; d++) limit[d] = need * 45 / 100; // 1.35 times what is needed: 74 % are used
  struct tfc_link l = tfc_link_default();
  struct tfc_machine *machine = even_machine(3, limit, &l);
  struct tfc_problem *p = NULL;
  MUST(tfc_problem_create(i.graph, machine, TFC_OBJECTIVE_THROUGHPUT, &p));
  search(p, 40000, 1, 0, &out);
  assert_true(played_count > 60);
  for (uint32_t k = 0; k < played_count; k++) {
    if (k % 3 == 0)
      assert_int_equal(plans[k].method, TFC_METHOD_PACK);
    else
      assert_int_equal(plans[k].method, throughput_methods[(k / 3 * 2 + k % 3 - 1) % 10]);
  }
  tfc_search_outcome_deinit(&out);
  tfc_problem_free(p);
  tfc_machine_free(machine);
  instance_free(&i);
}

// --- named algorithms ----------------------------------------------------------------------------------------------

struct played {
  uint64_t uses;   // number of evaluations
  uint32_t device; // the device on which all units are put
  const char *fails;
  struct tfc_budget got;
  uint32_t calls;
};
static struct played played[3];
static const struct tfc_algo *const algos[4];

static tfc_status play(struct played *a, const struct tfc_problem *p, const struct tfc_budget *budget,
                       struct tfc_solution *out, uint64_t *used) {
  a->got = *budget, a->calls++;
  *used = a->uses;
  for (uint32_t u = 0; u < p->unit_count; u++) out->device[u] = (tfc_device_id)a->device;
  return a->fails ? tfc_status_make(TFC_FAILED_PRECONDITION, "%s", a->fails) : NULL;
}
static tfc_status play_one(const struct tfc_problem *p, struct tfc_evaluator *e, const struct tfc_budget *b,
                           struct tfc_solution *out, uint64_t *used) {
  (void)e;
  return play(&played[0], p, b, out, used);
}
static tfc_status play_two(const struct tfc_problem *p, struct tfc_evaluator *e, const struct tfc_budget *b,
                           struct tfc_solution *out, uint64_t *used) {
  (void)e;
  return play(&played[1], p, b, out, used);
}
static tfc_status play_three(const struct tfc_problem *p, struct tfc_evaluator *e, const struct tfc_budget *b,
                             struct tfc_solution *out, uint64_t *used) {
  (void)e;
  return play(&played[2], p, b, out, used);
}
static const struct tfc_algo one = {.name = "one", .propose = play_one}, two = {.name = "two", .propose = play_two},
                             three = {.name = "three", .propose = play_three};
static const struct tfc_algo *const algos[4] = {&one, &two, &three, NULL};

static void test_named(void **state) {
  (void)state;
  struct instance i = three_devices(false);
  struct tfc_search_outcome out = {0};
  struct tfc_search_options options = {
      .settings.algorithms = "two,one,three", .settings.extra = algos, .evaluations = 1000, .seed = 50};
  played[0] = (struct played){.uses = 301, .device = 0}; // the fastest device, in the middle
  played[1] = (struct played){.uses = 100, .device = 1};
  played[2] = (struct played){.uses = 0, .device = 2};
  options.threads = 1;
  assert_ok(tfc_search(i.problem, &options, &out));
  assert_true(played[0].calls == 1 && played[1].calls == 1 && played[2].calls == 1);
  assert_int_equal(played[1].got.evaluations, 334); // a third of 1000, rounded up
  assert_int_equal(played[0].got.evaluations, 450); // half of 900
  assert_int_equal(played[2].got.evaluations, 599); // the rest
  assert_int_equal(played[1].got.seed, 50);
  assert_int_equal(played[0].got.seed, 51);
  assert_int_equal(played[2].got.seed, 52);
  assert_int_equal(out.entry_count, 3);
  static const char *const names[] = {"two", "one", "three"};
  static const int64_t values[] = {120000000, 60000000, 180000000};
  static const uint64_t used[] = {100, 301, 1}; // an answer counts as one evaluation at least
  for (int k = 0; k < 3; k++) {
    assert_string_equal(out.entries[k].algorithm, names[k]);
    assert_int_equal(out.entries[k].value, values[k]);
    assert_int_equal(out.entries[k].evaluations, used[k]);
    assert_null(out.entries[k].note);
  }
  assert_true(out.value == 60000000 && out.evaluations == 402 && !out.excess && !out.cancelled);
  assert_string_equal(out.algorithm, "one");
  for (uint32_t u = 0; u < 3; u++) assert_int_equal(out.best.device[u], 0);
  tfc_search_outcome_deinit(&out);
  // If "auto" follows, the algorithms before it get half of the evaluations.
  options.settings.algorithms = "one,auto", options.evaluations = 100;
  assert_ok(tfc_search(i.problem, &options, &out));
  assert_int_equal(played[0].got.evaluations, 51);
  assert_string_equal(out.entries[0].algorithm, "one");
  assert_true(out.entry_count > 2 && out.value == 40000000); // 30 + 10 | 40 us
  tfc_search_outcome_deinit(&out);
  // The same holds for time: an algorithm with "auto" after it gets half, one that is alone gets all.
  for (int alone = 0; alone < 2; alone++) {
    options.settings.algorithms = alone ? "one" : "one,auto", options.seconds = 1000;
    const double before = tfc_now_s(), share = alone ? 1000 : 500;
    assert_ok(tfc_search(i.problem, &options, &out));
    assert_true(played[0].got.deadline >= before + share && played[0].got.deadline <= tfc_now_s() + share);
    tfc_search_outcome_deinit(&out);
  }
  options.seconds = 0;
  // An algorithm that fails leaves its reason in the outcome, and the others still run.
  played[0].fails = "too large for it";
  options.settings.algorithms = "one,two", options.evaluations = 1000;
  assert_ok(tfc_search(i.problem, &options, &out));
  assert_string_equal(out.entries[0].note, "too large for it");
  assert_true(out.entries[0].value == TFC_TIME_MAX && !out.entries[0].solution.device);
  assert_string_equal(out.algorithm, "two");
  assert_int_equal(out.value, 120000000);
  tfc_search_outcome_deinit(&out);
  played[0].fails = NULL;
  options.settings.algorithms = "one,four";
  assert_fails(tfc_search(i.problem, &options, &out), TFC_INVALID_ARGUMENT, "'four'");
  options.settings.algorithms = "";
  assert_fails(tfc_search(i.problem, &options, &out), TFC_INVALID_ARGUMENT, "no algorithm");
  instance_free(&i);
  // A placement that fits in memory is better than a faster one that does not; if none fits, plain placements are
  // tried.
  i = three_devices(true);
  played[2].uses = 7;
  options.settings.algorithms = "one,three,two";
  assert_ok(tfc_search(i.problem, &options, &out));
  assert_string_equal(out.algorithm, "three");
  assert_true(out.value == 180000000 && out.excess == 0 && out.entry_count == 3);
  assert_true(out.entries[0].excess == 25 && out.entries[2].excess == 25 && out.entries[0].value == 60000000);
  tfc_search_outcome_deinit(&out);
  options.settings.algorithms = "one";
  assert_ok(tfc_search(i.problem, &options, &out));
  assert_true(out.excess == 0 && out.value == 180000000 && out.entry_count == 2);
  assert_string_equal(out.algorithm, "single");
  tfc_search_outcome_deinit(&out);
  instance_free(&i);
}

// A cancelled search begins nothing more after its first algorithm, and says so.
static void test_cancelled(void **state) {
  (void)state;
  struct instance i = three_devices(false);
  struct tfc_search_outcome out = {0};
  atomic_bool cancel = true;
  const struct tfc_search_options options = {
      .settings.algorithms = "two,one", .settings.extra = algos, .evaluations = 1000, .threads = 1, .cancel = &cancel};
  for (int k = 0; k < 3; k++) played[k].calls = 0;
  assert_ok(tfc_search(i.problem, &options, &out));
  assert_true(out.cancelled && played[0].calls == 0 && out.entry_count == 1);
  assert_string_equal(out.algorithm, "two");
  tfc_search_outcome_deinit(&out);
  instance_free(&i);
}

// --- the integer program -------------------------------------------------------------------------------------------

// The program begins at the best placement on one device. With little memory only the last device has room for all
// units, with too little none has, and the program begins without a placement.
static void test_start_of_the_program(void **state) {
  (void)state;
  struct tfc_search_outcome out = {0};
  for (int none = 0; none < 2; none++) {
    struct instance i = three_devices(true);
    if (none) i.machine->devices[2].memory = 29;
    struct tfc_problem *p = NULL;
    MUST(tfc_problem_create(i.graph, i.machine, TFC_OBJECTIVE_STEP, &p));
    const struct tfc_search_options options = {.seconds = 1};
    struct tfc_finder f = {.p = p, .o = &options, .out = &out, .threads = 1};
    tfc_device_id device[4] = {9, 9, 9, 9};
    struct program_thread t = {.f = &f, .seconds = 7, .device = device};
    memset(&solver, 0, sizeof solver);
    solver.answers = (struct tfc_ilp_answer){.found = true, .bound = 5};
    assert_null(run_program(&t));
    assert_true(atomic_load(&t.done) && solver.asked == 1 && solver.seconds >= 7 && solver.seconds <= 7);
    assert_true(solver.begins == !none && (none || solver.begins_at == 2));
    assert_true(t.answer.bound == 5 && !t.status && device[2] == 0 && device[3] == 9);
    solver.fails = "no solver";
    assert_null(run_program(&t));
    assert_fails(t.status, TFC_INTERNAL, "no solver");
    tfc_problem_free(p);
    instance_free(&i);
  }
}

static void *nothing(void *unused) {
  return unused;
}

// At the end, the search takes the program's bound if that is higher than its own, and the program's placement if that
// is better. If the program fails, the search succeeds all the same.
static void test_end_of_the_program(void **state) {
  (void)state;
  struct instance i = three_devices(false);
  const struct tfc_search_options options = {.seed = 1};
  static const struct {
    bool begun, fails, found;
    int64_t bound, best; // best: the value of the search's placement; 0: it has none
    int64_t then_bound, then_each, then_value;
  } cases[] = {{false, false, true, 50, 0, 10, 3, 0},
               {true, true, true, 50, 0, 10, 3, 0},
               {true, false, false, 50, 0, 50, 50, 0},
               {true, false, false, 9, 70000000, 10, 9, 70000000},
               {true, false, true, 11, 70000000, 11, 11, 60000000},
               {true, false, true, 10, 50000000, 10, 10, 50000000},
               {true, false, true, 60000000, 0, 60000000, 60000000, 60000000}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
    for (uint64_t limit = 0; limit < 3; limit++) {
      struct tfc_search_outcome out = {.value = TFC_TIME_MAX, .evaluations = 100};
      struct tfc_finder f = {
          .p = i.problem, .o = &options, .out = &out, .course.best = TFC_SCORE_NONE, .shown = TFC_SCORE_NONE};
      tfc_device_id device[4] = {0};
      struct program_thread t = {.f = &f, .device = device, .started = cases[k].begun};
      pthread_mutex_init(&f.lock, NULL);
      f.limit = limit ? 100 + limit : 0;
      out.bound.value = 10, out.bound.kind = TFC_BOUND_WORK, out.bound.each[TFC_BOUND_ILP] = 3;
      if (cases[k].best) {
        struct tfc_solution s = {0};
        MUST(tfc_solution_init(&s, i.problem));
        MUST(tfc_finder_keep(&f, &s, (struct tfc_score){0, cases[k].best}, "other"));
        tfc_solution_deinit(&s);
      }
      t.answer = (struct tfc_ilp_answer){.found = cases[k].found, .bound = cases[k].bound};
      if (cases[k].fails) t.status = tfc_status_make(TFC_INTERNAL, "no solver");
      if (t.started) assert_int_equal(pthread_create(&t.thread, NULL, nothing, NULL), 0);
      assert_ok(finish_program(&f, &t));
      assert_true(!t.started && !t.status);
      assert_int_equal(out.bound.value, cases[k].then_bound);
      assert_int_equal(out.bound.kind, cases[k].then_bound > 10 ? TFC_BOUND_ILP : TFC_BOUND_WORK);
      assert_int_equal(out.bound.each[TFC_BOUND_ILP], cases[k].then_each);
      assert_int_equal(out.value, cases[k].then_value ? cases[k].then_value : TFC_TIME_MAX);
      if (out.value == TFC_TIME_MAX)
        assert_null(out.best.device);
      else
        assert_string_equal(out.algorithm, out.value == 60000000 ? "ilp" : "other");
      // one evaluation of the placement without an order and one with a new order, as far as any are left
      const bool tried = cases[k].begun && !cases[k].fails && cases[k].found;
      assert_int_equal(out.evaluations, 100 + (!tried ? 0 : limit == 1 ? 1 : 2));
      pthread_mutex_destroy(&f.lock);
      tfc_search_outcome_deinit(&out);
    }
  instance_free(&i);
}

// --- parts ---------------------------------------------------------------------------------------------------------

static void test_accounts(void **state) {
  (void)state;
  struct tfc_search_account a = {0};
  struct tfc_credits credits = {0};
  const struct tfc_score before = {0, 1000}, above = {5, 1000}, none = TFC_SCORE_NONE;
  struct tfc_search_job j = {
      .method = TFC_METHOD_LNS, .score = {0, 500}, .before = before, .evaluations = 40, .seconds = 2};
  tfc_gain_count(&j, true, &a, &credits);
  assert_true(a.others.count == 1 && a.others.wins == 1 && a.others.evaluations == 40 && a.moves.count == 0);
  assert_close(a.others.gained, log(2));
  assert_close(a.others.seconds, 2);
  assert_close(credits.of[TFC_METHOD_LNS].gain, log(2));
  assert_close(credits.of[TFC_METHOD_LNS].effort, 40);
  assert_string_equal(tfc_gain_name(&j), "auto: lns");
  // The policy and annealing share a job: each has its own evaluations and seconds; the policy's moves made all of the
  // gain.
  j.method = TFC_METHOD_POLICY, j.score.value = 800;
  j.by_policy.gained = 200, j.by_policy.evaluations = 30, j.by_policy.seconds = 0.5;
  tfc_gain_count(&j, false, &a, &credits);
  assert_true(a.moves.count == 1 && a.moves.wins == 1 && a.moves.evaluations == 30);
  assert_true(a.others.count == 2 && a.others.wins == 1 && a.others.evaluations == 50);
  assert_close(a.moves.gained, log(1.25));
  assert_close(a.moves.seconds, 0.5);
  assert_close(a.others.gained, log(2));
  assert_close(a.others.seconds, 3.5);
  assert_close(credits.of[TFC_METHOD_POLICY].gain, log(1.25));
  assert_close(credits.of[TFC_METHOD_POLICY].effort, 2);
  assert_string_equal(tfc_gain_name(&j), "auto: policy");
  j.score.value = 1000, j.by_policy.gained = 0; // no better than before
  tfc_gain_count(&j, false, &a, &credits);
  assert_true(a.moves.count == 2 && a.moves.wins == 1 && a.others.count == 3 && a.others.wins == 1);
  assert_close(a.moves.gained, log(1.25));
  assert_close(credits.of[TFC_METHOD_POLICY].gain, 0.8 * log(1.25));
  // What annealing gained in a job of the policy is not the policy's gain, but the job's credit. Who made most of it
  // gives its name to the placement.
  for (int64_t own = 0; own <= 500; own += 125) {
    struct tfc_search_account b = {0};
    struct tfc_credits apart = {0};
    j.score.value = 500, j.by_policy.gained = own;
    tfc_gain_count(&j, false, &b, &apart);
    assert_true(b.moves.count == 1 && b.moves.wins == (own > 0) && b.others.count == 1 && b.others.wins == (own < 500));
    assert_close(b.moves.gained, log(2) * (double)own / 500);
    assert_close(b.others.gained, log(2) * (1 - (double)own / 500));
    assert_close(apart.of[TFC_METHOD_POLICY].gain, log(2));
    assert_string_equal(tfc_gain_name(&j), own < 250 ? "auto: anneal" : "auto: policy");
  }
  // It fits at last: a win of whoever did that, whose time says nothing.
  for (int own = 0; own < 2; own++) {
    struct tfc_search_account b = {0};
    struct tfc_credits apart = {0};
    j.before = above, j.score = (struct tfc_score){0, 3000}, j.by_policy.gained = 0, j.by_policy.fits = own;
    tfc_gain_count(&j, true, &b, &apart);
    assert_int_equal(b.moves.wins, own);
    assert_int_equal(b.others.wins, !own);
    assert_close(b.moves.gained, 0);
    assert_close(b.others.gained, 0);
    assert_close(apart.of[TFC_METHOD_POLICY].gain, 1);
    assert_string_equal(tfc_gain_name(&j), own ? "auto: policy" : "auto: anneal");
  }
  a = (struct tfc_search_account){0};
  j = (struct tfc_search_job){.method = TFC_METHOD_HOT, .score = {0, 3000}, .before = above};
  tfc_gain_count(&j, true, &a, &credits);
  assert_true(a.others.wins == 1);
  assert_close(a.others.gained, 0);
  assert_close(credits.of[TFC_METHOD_HOT].gain, 1);
  j.method = TFC_METHOD_FRESH, j.before = none;
  tfc_gain_count(&j, true, &a, &credits);
  assert_true(a.others.wins == 2 && a.others.count == 2);
  assert_close(a.others.gained, 0);
  assert_close(credits.of[TFC_METHOD_FRESH].gain, 1);
  // Whether a share was gained.
  assert_true(gains(before, (struct tfc_score){0, 990}, 0.01) && !gains(before, (struct tfc_score){0, 991}, 0.01));
  assert_true(gains(none, before, 0.01) && !gains(before, none, 0.01) && gains(above, before, 0.01));
  assert_true(gains(above, (struct tfc_score){4, 5000}, 0.01) && !gains(above, (struct tfc_score){6, 10}, 0.01));
  // The policy is drawn once its own moves have gained something; what annealing gained in its jobs does not count.
  struct tfc_random r;
  uint32_t drawn = 0;
  tfc_random_init(&r, 1);
  credits = (struct tfc_credits){0};
  credits.of[TFC_METHOD_POLICY] = (struct tfc_credit){0.1, 1};
  for (int k = 0; k < 500; k++) drawn += draw_method(&credits, false, &r) == TFC_METHOD_POLICY;
  assert_int_equal(drawn, 0);
  for (int k = 0; k < 500; k++) drawn += draw_method(&credits, true, &r) == TFC_METHOD_POLICY;
  assert_in_range(drawn, 50, 450);
}

// All of the elite goes to the hall, sorted; one random legal placement is the new elite.
static void test_valleys(void **state) {
  (void)state;
  struct instance i = medium(6, 3, TFC_OBJECTIVE_THROUGHPUT);
  const struct tfc_problem *p = i.problem;
  struct tfc_elite elite = {0}, hall = {0};
  struct tfc_random r;
  struct tfc_solution s = {0};
  struct tfc_score all[4];
  tfc_random_init(&r, 2);
  MUST(tfc_solution_init(&s, p));
  for (int k = 0; k < 4; k++) {
    random_devices(&r, p, s.device);
    all[k] = score_of(p, &s);
    assert_ok(tfc_elite_join(k % 2 ? &elite : &hall, p, &s, all[k]));
  }
  assert_ok(leave_valley(p, &r, &elite, &hall));
  assert_true(elite.count == 1 && hall.count == 4);
  assert_int_equal(score_of(p, &elite.solution[0]).value, elite.score[0].value);
  for (int k = 0; k < 4; k++) {
    uint32_t here = 0;
    for (uint32_t h = 0; h < 4; h++) here += hall.score[h].value == all[k].value;
    assert_int_equal(here, 1);
    assert_true(elite.score[0].value != all[k].value);
  }
  tfc_elite_clear(&elite), tfc_elite_clear(&hall);
  tfc_solution_deinit(&s);
  instance_free(&i);
}

// Temperatures are drawn so that their logarithms are spread evenly: between a fifth of 0.03 and 0.03 for the hot
// methods, a tenth of 0.02 and 0.02 for clusters, a tenth of 0.004 and 0.004 for the others. If a temperature is known,
// annealing begins between a quarter of it and four times it.
static void test_temperatures_of_jobs(void **state) {
  (void)state;
  enum { DRAWS = 400 };
  struct instance i = medium(6, 3, TFC_OBJECTIVE_STEP);
  const struct tfc_problem *p = i.problem;
  struct tfc_elite elite = {0};
  struct tfc_random r;
  struct tfc_solution s = {0};
  tfc_random_init(&r, 12);
  MUST(tfc_solution_init(&s, p));
  for (int k = 0; k < 3; k++) {
    random_devices(&r, p, s.device);
    MUST(tfc_elite_join(&elite, p, &s, score_of(p, &s)));
  }
  static const struct {
    enum tfc_search_method method;
    double known, low, high;
  } cases[] = {{TFC_METHOD_HOT, 0, 0.006, 0.03},        {TFC_METHOD_FRESH, 0.5, 0.006, 0.03},
               {TFC_METHOD_CLUSTERS, 0, 0.002, 0.02},   {TFC_METHOD_COMBINE, 0.5, 0.002, 0.02},
               {TFC_METHOD_ANNEAL, 0, 0.0004, 0.004},   {TFC_METHOD_LNS, 0.5, 0.0004, 0.004},
               {TFC_METHOD_ANNEAL, 0.01, 0.0025, 0.04}, {TFC_METHOD_POLICY, 0.01, 0.0025, 0.04},
               {TFC_METHOD_ANNEAL, 1e-5, 2.5e-6, 4e-5}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    double sum = 0, least = INFINITY, most = 0;
    uint32_t best = 0;
    for (int k = 0; k < DRAWS; k++) {
      struct tfc_search_job j = {0};
      // an odd turn belongs to the method that was drawn
      MUST(plan_job(p, &r, &elite, false, 2u * (uint32_t)k + 1, cases[c].method, cases[c].known, &j));
      assert_int_equal(j.method, cases[c].method);
      sum += log(j.hot), least = fmin(least, j.hot), most = fmax(most, j.hot);
      const bool known = cases[c].known > 0 && cases[c].high == 4 * cases[c].known;
      assert_true(j.cold == fmin(known ? 0.01 * j.hot : j.hot, 0.0001));
      best += j.score.value == elite.score[0].value;
      tfc_solution_deinit(&j.solution);
      if (j.other.device) tfc_solution_deinit(&j.other);
    }
    const double middle = 0.5 * (log(cases[c].low) + log(cases[c].high)), width = log(cases[c].high / cases[c].low);
    assert_true(least >= cases[c].low * (1 - 1e-12) && most <= cases[c].high * (1 + 1e-12));
    // the mean of 400 even draws has a standard deviation of 0.0144 of the width: five of these
    assert_true(fabs(sum / DRAWS - middle) < 0.072 * width);
    assert_true(least < cases[c].low * exp(0.05 * width) && most > cases[c].high * exp(-0.05 * width));
    // four fifths and a share of the other jobs begin at the best: 0.8 + 0.2 / 3, with five standard deviations
    assert_true(fabs(best / (double)DRAWS - 0.867) < 0.086);
  }
  // If only one placement is known, no two can be combined; every other method still has its turn.
  elite.count = 1;
  static const enum tfc_search_method methods[] = {TFC_METHOD_HOT,    TFC_METHOD_ANNEAL, TFC_METHOD_REGROUP,
                                                   TFC_METHOD_LNS,    TFC_METHOD_NAMES,  TFC_METHOD_CLUSTERS,
                                                   TFC_METHOD_COMBINE};
  for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
    struct tfc_search_job j = {0};
    MUST(plan_job(p, &r, &elite, false, 1, methods[m], 0, &j));
    assert_int_equal(j.method, methods[m] == TFC_METHOD_COMBINE ? TFC_METHOD_CLUSTERS : methods[m]);
    assert_null(j.other.device);
    tfc_solution_deinit(&j.solution);
  }
  elite.count = 3;
  tfc_solution_deinit(&s);
  tfc_elite_clear(&elite);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_temperatures_of_jobs),
                                     cmocka_unit_test(test_rounds),
                                     cmocka_unit_test(test_what_is_found),
                                     cmocka_unit_test(test_other_searches),
                                     cmocka_unit_test(test_named),
                                     cmocka_unit_test(test_cancelled),
                                     cmocka_unit_test(test_start_of_the_program),
                                     cmocka_unit_test(test_end_of_the_program),
                                     cmocka_unit_test(test_accounts),
                                     cmocka_unit_test(test_valleys)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
