// A search that is interrupted and resumed under a budget of evaluations has the same end as one without interruption:
// the same placement, the same value, the same books, bit for bit.
#include "tests/common/test.h"

#include "placer/search/search.h"
#include "rl/rl.h"
#include "tests/placer/instances.h"

// The state that the caller keeps of a search, and when the caller interrupts it.
struct keeper {
  struct tfc_text state;
  uint32_t kept, stop_at; // number of states so far in this part of the search; it stops with state number stop_at (0:
                          // never)
  uint64_t evaluations;   // the search is stopped after so many evaluations, between two states; 0: never
  atomic_bool cancel;
};
static tfc_status keep(void *user, tfc_str state) {
  struct keeper *k = user;
  tfc_text_deinit(&k->state);
  tfc_text_add(&k->state, state);
  if (++k->kept == k->stop_at) atomic_store(&k->cancel, true);
  return NULL;
}
static void watch(void *user, const struct tfc_search_progress *progress) {
  struct keeper *k = user;
  if (k->evaluations && progress->evaluations >= k->evaluations) atomic_store(&k->cancel, true);
}

// One part of a search: from the kept state until it is interrupted or over. The policy is created again, as in a new
// process; what it learned is in *out_learned.
static void part(const struct tfc_problem *p, const struct tfc_search_options *options, bool guided, struct keeper *k,
                 struct tfc_search_outcome *out, struct tfc_text *out_learned) {
  struct tfc_search_options o = *options;
  struct tfc_policy *policy = NULL, *learned = NULL;
  struct tfc_text begin = k->state;
  k->state = (struct tfc_text){0}, k->kept = 0;
  atomic_store(&k->cancel, false);
  if (guided) assert_ok(tfc_policy_untrained(3, &policy));
  o.settings.guide = policy ? &policy->guide : NULL;
  o.settings.extra = tfc_rl_algos();
  o.cancel = &k->cancel, o.kept = keep, o.kept_user = k, o.progress = watch, o.user = k;
  o.state = (tfc_str){begin.data, begin.size};
  assert_ok(tfc_search(p, &o, out));
  if (!k->state.size) { // interrupted before the next state
    k->state = begin, begin = (struct tfc_text){0};
  }
  if (policy) assert_ok(tfc_policy_learned(policy, &learned));
  if (learned) assert_ok(tfc_policy_format(learned, out_learned));
  tfc_policy_free(learned);
  tfc_policy_free(policy);
  tfc_text_deinit(&begin);
}

static void assert_same_solution(const struct tfc_problem *p, const struct tfc_solution *a,
                                 const struct tfc_solution *b) {
  assert_true(!a->device == !b->device && !a->rank == !b->rank);
  if (a->device) assert_memory_equal(a->device, b->device, p->unit_count * sizeof *a->device);
  if (a->rank) assert_memory_equal(a->rank, b->rank, p->node_count * sizeof *a->rank);
}

static void assert_same_turns(const struct tfc_search_turns *a, const struct tfc_search_turns *b) {
  assert_int_equal(a->count, b->count);
  assert_int_equal(a->wins, b->wins);
  assert_int_equal(a->evaluations, b->evaluations);
  assert_memory_equal(&a->gained, &b->gained, sizeof a->gained);
}

static void assert_same(const struct tfc_problem *p, const struct tfc_search_outcome *a,
                        const struct tfc_search_outcome *b) {
  assert_false(b->cancelled);
  assert_same_solution(p, &a->best, &b->best);
  assert_true(a->value == b->value && a->excess == b->excess && a->evaluations == b->evaluations);
  assert_true(a->optimal == b->optimal && a->bound.value == b->bound.value && a->bound.kind == b->bound.kind);
  assert_string_equal(a->algorithm, b->algorithm);
  assert_int_equal(a->entry_count, b->entry_count);
  for (uint32_t i = 0; i < a->entry_count; i++) {
    const struct tfc_search_entry *x = &a->entries[i], *y = &b->entries[i];
    assert_string_equal(x->algorithm, y->algorithm);
    assert_true(x->value == y->value && x->excess == y->excess && x->evaluations == y->evaluations);
    assert_same_solution(p, &x->solution, &y->solution);
    assert_string_equal(x->note ? x->note : "", y->note ? y->note : "");
  }
  assert_memory_equal(&a->learned.samples, &b->learned.samples, sizeof a->learned.samples);
  assert_true(a->learned.before == b->learned.before && a->learned.after == b->learned.after);
  assert_same_turns(&a->learned.moves, &b->learned.moves);
  assert_same_turns(&a->learned.others, &b->learned.others);
}

// Interrupts the search again and again, and compares the final results. Returns the number of interruptions.
static uint32_t compare(const struct tfc_problem *p, const struct tfc_search_options *options, bool guided,
                        uint32_t stop_at, uint64_t evaluations, uint32_t most) {
  struct keeper straight = {0}, k = {0};
  struct tfc_search_outcome a = {0}, b = {0};
  struct tfc_text learned = {0}, again = {0};
  uint32_t count = 0;
  struct tfc_search_options o = *options;
  part(p, &o, guided, &straight, &a, &learned);
  assert_false(a.cancelled);
  for (;; count++) {
    // A continued part does not store the state with which it begins: its first new state is one step later.
    k.stop_at = count < most ? stop_at : 0;
    k.evaluations = count < most ? evaluations * (count + 1) : 0;
    o.threads = 1 + count % 2; // the number of threads does not matter
    tfc_search_outcome_deinit(&b);
    tfc_text_deinit(&again);
    part(p, &o, guided, &k, &b, &again);
    if (!b.cancelled) break;
  }
  assert_same(p, &a, &b);
  if (guided) assert_string_equal(learned.data, again.data);
  tfc_search_outcome_deinit(&a);
  tfc_search_outcome_deinit(&b);
  tfc_text_deinit(&learned);
  tfc_text_deinit(&again);
  tfc_text_deinit(&straight.state);
  tfc_text_deinit(&k.state);
  return count;
}

static struct instance problem(uint64_t seed, uint32_t nodes, uint32_t devices, uint32_t rich,
                               tfc_objective objective) {
  struct tfc_random r;
  tfc_random_init(&r, seed);
  return random_instance(&r, nodes, devices, rich, objective);
}

static void at_every_state(void **state) {
  (void)state;
  struct instance step = problem(5, 120, 3, RICH_LIMITS | RICH_GROUPS, TFC_OBJECTIVE_STEP),
                  load = problem(6, 80, 4, 0, TFC_OBJECTIVE_THROUGHPUT);
  // So many that rounds go before the job that cools down, which has 4,000 on so small a problem.
  const struct tfc_search_options o = {.evaluations = 12000, .seed = 4, .threads = 2};
  // Each part ends where it has kept its second state: its first is where it begins.
  assert_true(compare(step.problem, &o, true, 2, 0, TFC_NONE) >= 8);
  assert_true(compare(step.problem, &o, false, 2, 0, TFC_NONE) >= 6);
  assert_true(compare(load.problem, &o, false, 2, 0, TFC_NONE) >= 4);
  const struct tfc_search_options named = {
      .settings.algorithms = "heft,rl,anneal,auto", .evaluations = 2000, .seed = 4, .threads = 2};
  assert_true(compare(step.problem, &named, true, 2, 0, TFC_NONE) >= 8);
  instance_free(&step);
  instance_free(&load);
}

// Interrupted in the midst of a round, the search repeats that round.
static void in_the_midst(void **state) {
  (void)state;
  struct instance i = problem(7, 200, 3, 0, TFC_OBJECTIVE_STEP);
  const struct tfc_search_options o = {.evaluations = 40000, .seed = 9, .threads = 2};
  assert_true(compare(i.problem, &o, true, 0, 9000, 5) >= 1);
  instance_free(&i);
}

// A state of another search, or a damaged one, is refused, and says why.
static void refusals(void **state) {
  (void)state;
  struct instance i = problem(5, 60, 3, 0, TFC_OBJECTIVE_STEP), other = problem(6, 60, 3, 0, TFC_OBJECTIVE_STEP);
  struct keeper k = {.stop_at = 4};
  struct tfc_search_outcome out = {0};
  struct tfc_text none = {0};
  struct tfc_search_options o = {.evaluations = 3000, .seed = 4, .threads = 1};
  part(i.problem, &o, false, &k, &out, &none);
  assert_true(out.cancelled);
  tfc_search_outcome_deinit(&out);
  o.state = (tfc_str){k.state.data, k.state.size};
  assert_fails(tfc_search(other.problem, &o, &out), TFC_INVALID_ARGUMENT, "another problem");
  o.seed = 5;
  assert_fails(tfc_search(i.problem, &o, &out), TFC_INVALID_ARGUMENT, "other settings");
  o.seed = 4, o.settings.algorithms = "auto,heft";
  assert_fails(tfc_search(i.problem, &o, &out), TFC_INVALID_ARGUMENT, "other settings");
  o.settings.algorithms = NULL;
  for (size_t size = 1; size < k.state.size; size += 1 + size / 8) { // the state is cut off at any place
    o.state.size = size;
    assert_fails(tfc_search(i.problem, &o, &out), TFC_INVALID_ARGUMENT, "");
  }
  o.state.size = k.state.size;
  // whichever byte is changed, the program must not crash
  for (size_t at = 0; at < k.state.size; at += 1 + k.state.size / 300) {
    const char was = k.state.data[at];
    k.state.data[at] = (char)~was;
    o.cancel = &k.cancel; // the search could take long if a changed number is large
    tfc_status s = tfc_search(i.problem, &o, &out);
    if (!s) tfc_search_outcome_deinit(&out);
    tfc_status_free(s);
    k.state.data[at] = was;
  }
  tfc_text_deinit(&k.state);
  instance_free(&i);
  instance_free(&other);
}

// A guide that is the policy's, and notes where its part begins in a state that is written.
static const struct tfc_guide *real;
static size_t part_at;
static tfc_status open_real(const struct tfc_guide *guide, const struct tfc_problem *p, struct tfc_guidance **out) {
  (void)guide;
  return real->open(real, p, out);
}
static tfc_status archive_real(const struct tfc_guide *guide, const struct tfc_problem *p, uint32_t threads,
                               struct tfc_guidance **guidance, struct tfc_archive *a) {
  (void)guide;
  if (a->out) part_at = a->out->size;
  return real->archive(real, p, threads, guidance, a);
}

// A state that another version of tfc kept, of its search or of its policy, is refused and says so: neither is read as
// if it were of this one.
static void other_versions(void **state) {
  (void)state;
  struct instance i = problem(5, 60, 3, 0, TFC_OBJECTIVE_STEP);
  struct tfc_policy *policy = NULL;
  struct tfc_search_outcome out = {0};
  struct keeper k = {.stop_at = 6};
  assert_ok(tfc_policy_untrained(3, &policy));
  real = &policy->guide;
  struct tfc_guide guide = *real;
  guide.open = open_real, guide.archive = archive_real;
  struct tfc_search_options o = {.evaluations = 3000, .seed = 4, .threads = 1, .settings.guide = &guide};
  o.cancel = &k.cancel, o.kept = keep, o.kept_user = &k;
  assert_ok(tfc_search(i.problem, &o, &out));
  assert_true(out.cancelled && out.learned.samples.count); // the policy has learned something
  tfc_search_outcome_deinit(&out);
  o.state = (tfc_str){k.state.data, k.state.size}, o.kept = NULL;
  k.state.data[0] ^= 64;
  assert_fails(tfc_search(i.problem, &o, &out), TFC_INVALID_ARGUMENT,
               "it was kept by another version of tfc, in format");
  k.state.data[0] ^= 64;
  for (size_t at = part_at; at <= part_at + sizeof(uint32_t); at += sizeof(uint32_t)) { // its format, number of weights
    k.state.data[at] ^= 64;
    assert_fails(tfc_search(i.problem, &o, &out), TFC_INVALID_ARGUMENT,
                 "its learned policy was kept by another version of tfc, in format");
    k.state.data[at] ^= 64;
  }
  assert_ok(tfc_search(i.problem, &o, &out)); // it was stopped before, so that it stops at once
  tfc_search_outcome_deinit(&out);
  tfc_text_deinit(&k.state);
  tfc_policy_free(policy);
  instance_free(&i);
}

static tfc_status note(void *user, const struct tfc_solution *solution, struct tfc_score score) {
  int64_t *best = user;
  (void)solution;
  if (score.value < *best) *best = score.value;
  return NULL;
}

static void propose(struct tfc_policy *policy, struct tfc_guidance *g, uint64_t evaluations, int64_t *best) {
  const struct tfc_budget budget = {.evaluations = evaluations, .seed = 7, .threads = 1};
  uint64_t used = 0;
  *best = INT64_MAX;
  assert_ok(policy->guide.propose(g, &budget, 4, note, best, &used));
  assert_int_equal(used, evaluations);
}

// What the policy's moves find from a placement with all units on the first device.
static struct tfc_solution improved(const struct tfc_problem *p, struct tfc_policy *policy, struct tfc_guidance *g) {
  const struct tfc_budget budget = {.evaluations = 200, .seed = 8, .threads = 1};
  struct tfc_solution s = {0};
  struct tfc_score score = TFC_SCORE_NONE;
  uint64_t used = 0;
  assert_ok(tfc_solution_init(&s, p));
  assert_ok(policy->guide.improve(g, &budget, &s, &score, &used));
  return s;
}

// A policy that begins anew proposes other placements. Its moves, and a state that is kept, use what led to the best
// one, and all samples count.
static void begins_anew(void **state) {
  (void)state;
  enum { PROPOSALS = 200 };
  struct instance i = problem(7, 120, 3, 0, TFC_OBJECTIVE_STEP);
  struct tfc_policy *policy = NULL;
  struct tfc_guidance *g = NULL, *plain = NULL, *read = NULL;
  struct tfc_guide_samples samples = {0};
  int64_t first, second, head;
  assert_ok(tfc_policy_untrained(3, &policy));
  assert_ok(policy->guide.open(&policy->guide, i.problem, &g));
  assert_ok(policy->guide.open(&policy->guide, i.problem, &plain));
  policy->guide.begin_anew(g); // there is nothing to forget yet
  propose(policy, g, PROPOSALS, &first);
  propose(policy, plain, PROPOSALS, &second);
  assert_true(first == second);
  policy->guide.begin_anew(g);
  propose(policy, g, 1, &head); // the first head, which was also tried first
  assert_true(head >= first);
  struct tfc_solution a = improved(i.problem, policy, g), b = improved(i.problem, policy, plain);
  assert_same_solution(i.problem, &a, &b);
  propose(policy, g, PROPOSALS - 1, &second);
  assert_true(first != second); // other random numbers
  policy->guide.begin_anew(g);
  propose(policy, g, 1, &head);
  policy->guide.samples(g, &samples);
  assert_int_equal(samples.count, 2 * PROPOSALS + 1);
  assert_true(samples.entropy > 0 && samples.entropy < 1);
  struct tfc_text text = {0};
  struct tfc_archive out = {.out = &text};
  assert_ok(policy->guide.archive(&policy->guide, i.problem, 1, &g, &out));
  struct tfc_archive in = {.rest = {text.data, text.size}};
  assert_ok(policy->guide.archive(&policy->guide, i.problem, 1, &read, &in));
  assert_false(in.broken || in.rest.size);
  struct tfc_solution c = improved(i.problem, policy, g), d = improved(i.problem, policy, read);
  assert_same_solution(i.problem, &c, &d);
  struct tfc_solution *const all[] = {&a, &b, &c, &d};
  for (int k = 0; k < 4; k++) tfc_solution_deinit(all[k]);
  tfc_text_deinit(&text);
  policy->guide.close(g), policy->guide.close(plain), policy->guide.close(read);
  tfc_policy_free(policy);
  instance_free(&i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(at_every_state), cmocka_unit_test(in_the_midst),
                                     cmocka_unit_test(refusals), cmocka_unit_test(other_versions),
                                     cmocka_unit_test(begins_anew)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
