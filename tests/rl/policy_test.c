// Tests policies as files, what a run learns in addition, and training.
#include "tests/rl/shared.h"

#include <unistd.h>

#include "rl/train.h"
#include "runtime/base/file.h"

static void reads_what_it_writes(void **state) {
  (void)state;
  struct tfc_policy *p = NULL, *q = NULL;
  struct tfc_text t = {0}, u = {0};
  assert_ok(tfc_policy_untrained(1, &p));
  assert_ok(tfc_policy_add_seen(p, "a", "00"));
  p->without = strdup("seq2seq");
  assert_ok(tfc_policy_format(p, &t));
  assert_ok(tfc_policy_parse((tfc_str){t.data, t.size}, "p.json", &q));
  assert_int_equal(p->head_count, q->head_count);
  assert_memory_equal(p->head, q->head, p->head_count * sizeof *p->head);
  assert_memory_equal(p->spread, q->spread, sizeof p->spread);
  assert_string_equal(q->without, "seq2seq");
  assert_int_equal(q->seen_count, 1);
  assert_ok(tfc_policy_format(q, &u));
  assert_string_equal(t.data, u.data);
  tfc_text_deinit(&t), tfc_text_deinit(&u);
  tfc_policy_free(p), tfc_policy_free(q);
}

static void replaced(const char *text, const char *what, const char *with, const char *expected) {
  struct tfc_policy *p = NULL;
  const char *at = strstr(text, what);
  assert_non_null(at);
  char *bad = tfc_format("%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
  assert_fails(tfc_policy_parse(tfc_str_from(bad), "p.json", &p), TFC_INVALID_ARGUMENT, expected);
  assert_null(p);
  free(bad);
}

static void refuses_what_is_wrong(void **state) {
  (void)state;
  struct tfc_policy *p = NULL;
  struct tfc_text t = {0};
  assert_ok(tfc_policy_create(2, &p));
  assert_ok(tfc_policy_add_seen(p, "a", "00"));
  assert_ok(tfc_policy_format(p, &t));
  tfc_policy_free(p);
  p = NULL;
  assert_fails(tfc_policy_parse(TFC_STR(""), "p.json", &p), TFC_INVALID_ARGUMENT, "not a policy");
  assert_fails(tfc_policy_parse(TFC_STR("[]"), "p.json", &p), TFC_INVALID_ARGUMENT, "not a policy");
  assert_fails(tfc_policy_parse((tfc_str){t.data, t.size / 2}, "p.json", &p), TFC_INVALID_ARGUMENT, "p.json:");
  assert_fails(tfc_policy_read("/nowhere/p.json", &p), TFC_NOT_FOUND, "/nowhere/p.json");
  replaced(t.data, "tfc-policy", "tfc-placement", "format");
  replaced(t.data, "\"version\": 1", "\"version\": 2", "version");
  replaced(t.data, "\"FINISH\"", "\"LUCK\"", "features[1] is 'LUCK' and not 'FINISH'");
  replaced(t.data, "\"CRITICAL\", ", "", "the policy has 7");
  replaced(t.data, "\"spread\": [1,", "\"spread\": [-1,", "spread 0: weight 0");
  replaced(t.data, "\"spread\": [1,", "\"spread\": [", "has not 168 weights");
  replaced(t.data, "[0,0,", "[0,\"x\",", "head 0: weight 1");
  replaced(t.data, "[0,0,", "[0,1e300,", "head 0: weight 1");
  replaced(t.data, "\"heads\"", "\"hats\"", "heads");
  replaced(t.data, "\"sha256\"", "\"sha\"", "seen[0]");
  tfc_text_deinit(&t);
}

// The shipped policy can be loaded by this version, and was not trained on the family that it is compared on.
static void shipped_policy(void **state) {
  (void)state;
  struct tfc_policy *p = NULL;
  assert_ok(tfc_policy_read(TFC_SOURCE_DIR "/configs/policy.json", &p));
  assert_true(p->head_count >= 20 && p->seen_count > 10);
  assert_string_equal(p->without, "seq2seq");
  for (uint32_t i = 0; i < p->seen_count; i++) {
    assert_null(strstr(p->seen[i].name, "nmt"));
    assert_null(strstr(p->seen[i].name, "seq2seq"));
    assert_int_equal(strlen(p->seen[i].sha256), 64);
  }
  tfc_policy_free(p);
}

// The same for the policy that is compared on recurrent graphs.
static void held_out_policy(void **state) {
  (void)state;
  static const char *const family[] = {"rnnlm", "rnnlm_large", "lstm_grid", "generated:recurrent"};
  struct tfc_policy *p = NULL;
  assert_ok(tfc_policy_read(TFC_SOURCE_DIR "/configs/policies/without_recurrent.json", &p));
  assert_true(p->head_count >= 20 && p->seen_count > 10);
  assert_string_equal(p->without, "recurrent");
  for (uint32_t i = 0; i < p->seen_count; i++)
    for (size_t k = 0; k < sizeof family / sizeof *family; k++) assert_string_not_equal(p->seen[i].name, family[k]);
  tfc_policy_free(p);
}

static void keeps_what_was_learned(void **state) {
  (void)state;
  struct grid g = {0};
  struct tfc_policy *p = NULL, *learned = NULL;
  struct tfc_tuner *t = NULL;
  const struct tfc_budget budget = {.evaluations = 200, .threads = 1};
  grid_make(4, 12, 0, FOUR_ALIKE, "cell", 1, &g);
  assert_ok(tfc_policy_untrained(1, &p));
  assert_ok(tfc_tuner_create(g.problem, p, 1, 1, &t));
  assert_ok(tfc_tuner_run(t, &budget));
  assert_ok(tfc_policy_learn(p, t));
  assert_ok(tfc_policy_learned(p, &learned));
  assert_int_equal(learned->head_count, p->head_count + 4);
  assert_memory_equal(learned->head[0], t->elite[0].weights, sizeof *learned->head);
  assert_memory_equal(learned->head[4], p->head[0], sizeof *p->head);
  // One rollout of the saved policy is as good as the run that learned it.
  const int64_t best = t->elite[0].score.value;
  tfc_tuner_free(t);
  assert_ok(tfc_tuner_create(g.problem, learned, 1, 1, &t));
  assert_ok(tfc_tuner_run(t, &(struct tfc_budget){.evaluations = 1, .threads = 1}));
  assert_int_equal(t->elite[0].score.value, best);
  tfc_tuner_free(t);
  tfc_policy_free(p), tfc_policy_free(learned);
  grid_free(&g);
}

// Tuning on one problem makes its rollouts better, for every seed, also compared with the best of 20 random
// heads, with which it begins.
static void tuning_learns(void **state) {
  (void)state;
  struct grid g = {0};
  double gain = 0;
  grid_make(6, 20, 0, FOUR_ALIKE, "cell", 1, &g);
  for (uint64_t seed = 1; seed <= 5; seed++) {
    struct tfc_policy *p = NULL;
    struct tfc_tuner *t = NULL;
    assert_ok(tfc_policy_untrained(seed, &p));
    assert_ok(tfc_tuner_create(g.problem, p, seed, 1, &t));
    assert_ok(tfc_tuner_run(t, &(struct tfc_budget){.evaluations = 20, .threads = 1}));
    const double first = (double)t->elite[0].score.value;
    assert_ok(tfc_tuner_run(t, &(struct tfc_budget){.evaluations = 280, .threads = 1}));
    const double last = (double)t->elite[0].score.value;
    print_message("seed %d: %.0f us after 20 rollouts, %.0f us after 300\n", (int)seed, first * 1e-6, last * 1e-6);
    assert_true(last <= first);
    gain += 1 - last / first;
    tfc_tuner_free(t);
    tfc_policy_free(p);
  }
  assert_true(gain / 5 > 0.05);
  grid_free(&g);
}

struct said {
  uint32_t lines;
  atomic_bool *cancel;
};
static void say(void *user, const char *line) {
  struct said *s = user;
  (void)line;
  if (++s->lines == 2 && s->cancel) atomic_store(s->cancel, true);
}

// A policy that was trained on grids is better than untrained weights on a new grid. Training that was interrupted and
// resumed gives the same policy.
static void training_transfers_and_goes_on(void **state) {
  (void)state;
  struct grid lesson[3] = {0}, unseen = {0};
  struct tfc_policy *p = NULL, *again = NULL, *untrained = NULL;
  struct tfc_text a = {0}, b = {0};
  char path[] = "train_state_XXXXXX";
  const int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  unlink(path);
  grid_make(3, 8, 0, FOUR_ALIKE, "a", 1, &lesson[0]);
  grid_make(4, 9, 0, FOUR_ALIKE, "b", 1, &lesson[1]);
  grid_make(5, 7, 0, FOUR_ALIKE, "c", 1, &lesson[2]);
  grid_make(5, 16, 0, FOUR_ALIKE, "d", 1, &unseen);
  const struct tfc_lesson lessons[] = {{lesson[0].problem, 0}, {lesson[1].problem, 1}, {lesson[2].problem, 2}};
  struct said said = {0};
  struct tfc_train_options o = {.lessons = lessons,
                                .lesson_count = 3,
                                .seed = 1,
                                .threads = 1,
                                .generations = 40,
                                .rollouts = 60,
                                .heads = 4,
                                .say = say,
                                .user = &said};
  assert_ok(tfc_train(&o, &p));
  assert_int_equal(p->head_count, 4);
  atomic_bool cancel = false;
  said = (struct said){.cancel = &cancel};
  o.cancel = &cancel, o.state = path;
  assert_fails(tfc_train(&o, &again), TFC_CANCELLED, "interrupted");
  said.cancel = NULL;
  atomic_store(&cancel, false);
  assert_ok(tfc_train(&o, &again));
  assert_ok(tfc_policy_format(p, &a));
  assert_ok(tfc_policy_format(again, &b));
  assert_string_equal(a.data, b.data);
  o.seed = 2;
  struct tfc_policy *other = NULL;
  assert_fails(tfc_train(&o, &other), TFC_INVALID_ARGUMENT, "not the state of this training");
  unlink(path);
  int64_t best[2];
  assert_ok(tfc_policy_untrained(1, &untrained));
  for (int k = 0; k < 2; k++) {
    struct tfc_tuner *t = NULL;
    assert_ok(tfc_tuner_create(unseen.problem, k ? untrained : p, 1, 1, &t));
    assert_ok(tfc_tuner_run(t, &(struct tfc_budget){.evaluations = 4, .threads = 1}));
    best[k] = t->elite[0].score.value;
    tfc_tuner_free(t);
  }
  print_message("unseen grid: trained %.0f us, untrained %.0f us\n", (double)best[0] * 1e-6, (double)best[1] * 1e-6);
  assert_true((double)best[0] < 0.95 * (double)best[1]);
  tfc_text_deinit(&a), tfc_text_deinit(&b);
  tfc_policy_free(p), tfc_policy_free(again), tfc_policy_free(untrained);
  for (int i = 0; i < 3; i++) grid_free(&lesson[i]);
  grid_free(&unseen);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reads_what_it_writes),
                                     cmocka_unit_test(refuses_what_is_wrong),
                                     cmocka_unit_test(shipped_policy),
                                     cmocka_unit_test(held_out_policy),
                                     cmocka_unit_test(keeps_what_was_learned),
                                     cmocka_unit_test(tuning_learns),
                                     cmocka_unit_test(training_transfers_and_goes_on)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
