// Tests which flags a resumed search must have in common with the interrupted one: each that decides what is found, and
// the content of files, but not how long it may take; and which state it goes on with.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/place_kept.c"
#include "runtime/base/file.h"
#include "tests/common/folder.h"

static char folder[64], graph[128], machine[128], expert[160];
static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "kept")) return -1;
  snprintf(graph, sizeof graph, "%s/g.json", folder);
  snprintf(machine, sizeof machine, "%s/m.yaml", folder);
  snprintf(expert, sizeof expert, "expert=%s/e.json", folder);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  unlink(graph), unlink(machine), unlink(strchr(expert, '=') + 1);
  return rmdir(folder);
}

static void put(const char *path, const char *text) {
  assert_ok(tfc_file_write(path, tfc_str_from(text)));
}
static struct tfc_text flags_of(const struct place_options *o, const struct tfc_policy *policy) {
  struct place_kept k = {.o = o};
  assert_ok(collect_flags(&k, policy));
  return k.flags;
}
// Expects that a run with the flags `o` may go on with what `then` began (says NULL), or why it may not.
static void resume(const struct place_options *then, const struct place_options *o, const char *says) {
  struct tfc_text was = flags_of(then, NULL), now = flags_of(o, NULL);
  struct place_kept k = {.o = o, .run = 17, .flags = now};
  tfc_status s = compare_flags(&k, (tfc_str){was.data, was.size});
  if (!says) {
    assert_ok(s);
  } else {
    assert_fails(s, TFC_INVALID_ARGUMENT, says);
  }
  tfc_text_deinit(&was);
  tfc_text_deinit(&now);
}

static void test_flags(void **state) {
  (void)state;
  put(graph, "{}"), put(machine, "devices"), put(strchr(expert, '=') + 1, "{}");
  const char *pins[] = {"a=cpu:0", "b=cpu:1"}, *limits[] = {"cpu:0=1MB"}, *experts[] = {expert};
  const struct place_options base = {.graph = graph, .machine = machine};
  struct place_options o = base, then = base;
  resume(&base, &o, NULL);
  o.devices = "2";
  resume(&base, &o, "run 17 began with --devices all, not 2: give it the same flags, or leave --resume out");
  resume(&o, &base, "began with --devices 2, not all");
  o = base, o.request.objective = TFC_OBJECTIVE_THROUGHPUT;
  resume(&base, &o, "--objective step, not throughput");
  resume(&o, &base, "--objective throughput, not step");
  o = base, o.search.algorithms = "dp";
  resume(&base, &o, "--algorithm auto, not dp");
  o = base, o.execution.seed = 5;
  resume(&base, &o, "--seed 0, not 5");
  o = base, o.request.device_strings = TFC_STRINGS_BASELINE;
  then = base, then.request.device_strings = TFC_STRINGS_CONSTRAIN;
  resume(&then, &o, "--device-strings constrain, not baseline");
  then.request.device_strings = TFC_STRINGS_IGNORE;
  resume(&then, &o, "--device-strings ignore, not baseline");
  // The time may differ, but not whether there is one beside a number of evaluations.
  o = then = base, o.time = 60;
  resume(&then, &o, NULL);
  then.time = 90;
  resume(&then, &o, NULL);
  o = then = base, o.evaluations = 100;
  resume(&then, &o, "--evaluations (not given), not 100");
  then.evaluations = 100, then.time = 60;
  resume(&then, &o, "--time (given, or no --evaluations), not (not given)");
  o.time = 5;
  resume(&then, &o, NULL);
  // Lists: one more, one less, another one.
  o = then = base, o.request.pins = (struct tfc_texts){pins, 1};
  resume(&then, &o, "--pin (not given), not a=cpu:0");
  resume(&o, &then, "--pin a=cpu:0, not (not given)");
  then.request.pins = (struct tfc_texts){pins + 1, 1};
  resume(&then, &o, "--pin b=cpu:1, not a=cpu:0");
  then.request.pins = (struct tfc_texts){pins, 2};
  resume(&then, &o, "--pin b=cpu:1, not (not given)");
  then.request.pins = o.request.pins;
  resume(&then, &o, NULL);
  o.limits = (struct tfc_texts){limits, 1};
  resume(&then, &o, "--memory (not given), not cpu:0=1MB");
  o = base, o.request.baselines = (struct tfc_texts){experts, 1};
  resume(&base, &o, "--baseline (not given), not a file with sha256 ");
  resume(&o, &o, NULL);
}

// Files count by what is in them.
static void test_files(void **state) {
  (void)state;
  const char *experts[] = {expert};
  char *const files[] = {graph, machine, strchr(expert, '=') + 1};
  static const char *const says[] = {
      "run 17 is about another graph: ", "run 17 is about another machine: ", "--baseline a file with sha256 "};
  const struct place_options o = {.graph = graph, .machine = machine, .request.baselines = {experts, 1}};
  for (int i = 0; i < 3; i++) {
    for (int k = 0; k < 3; k++) put(files[k], "before");
    struct tfc_text was = flags_of(&o, NULL);
    put(files[i], "after");
    struct place_kept k = {.o = &o, .run = 17, .flags = flags_of(&o, NULL)};
    assert_fails(compare_flags(&k, (tfc_str){was.data, was.size}), TFC_INVALID_ARGUMENT, says[i]);
    tfc_text_deinit(&k.flags);
    put(files[i], "before");
    k.flags = flags_of(&o, NULL);
    assert_ok(compare_flags(&k, (tfc_str){was.data, was.size}));
    tfc_text_deinit(&k.flags);
    tfc_text_deinit(&was);
  }
}

static void test_policies(void **state) {
  (void)state;
  struct tfc_policy *policy = NULL;
  put(graph, "{}"), put(machine, "devices");
  const struct place_options o = {.graph = graph, .machine = machine};
  assert_ok(tfc_policy_read(TFC_SOURCE_DIR "/configs/policy.json", &policy));
  struct tfc_text with = flags_of(&o, policy), without = flags_of(&o, NULL);
  struct place_kept k = {.o = &o, .run = 17, .flags = with};
  assert_ok(compare_flags(&k, (tfc_str){with.data, with.size}));
  assert_fails(compare_flags(&k, (tfc_str){without.data, without.size}), TFC_INVALID_ARGUMENT,
               "run 17 began with another policy");
  tfc_text_deinit(&with);
  tfc_text_deinit(&without);
  tfc_policy_free(policy);
}

// Begins or resumes a search, and expects the state that it goes on with.
static struct place_kept *begun(const struct place_options *o, struct tfc_search_options *search, const char *state) {
  struct place_kept *k = NULL;
  *search = (struct tfc_search_options){0};
  assert_ok(place_kept_begin(o, NULL, search, &k));
  assert_true(tfc_str_is(search->state, state));
  return k;
}
static void ended(struct place_kept *k, int exit_code) {
  assert_ok(place_kept_end(k, NULL, NULL, false, exit_code));
  place_kept_free(k);
}

// A search that is interrupted again, before it has a new state, can go on with the one before.
static void test_states(void **state) {
  (void)state;
  char db[128], left[140];
  struct tfc_search_options search;
  put(graph, "{}"), put(machine, "devices");
  snprintf(db, sizeof db, "%s/k.db", folder);
  struct place_options o = {.graph = graph, .machine = machine, .db = db, .db_given = true};
  struct place_kept *k = begun(&o, &search, "");
  assert_ok(search.kept(search.kept_user, TFC_STR("first state")));
  ended(k, 130);
  o.resume = "";
  for (int i = 0; i < 2; i++) {
    k = begun(&o, &search, "first state");
    assert_int_equal(k->run, 1);
    ended(k, 130);
  }
  k = begun(&o, &search, "first state");
  assert_ok(search.kept(search.kept_user, TFC_STR("second state")));
  ended(k, 130);
  ended(begun(&o, &search, "second state"), 5); // it has ended: nothing is kept
  o.resume = "1";
  k = NULL;
  assert_fails(place_kept_begin(&o, NULL, &search, &k), TFC_INVALID_ARGUMENT, "run 1 is done");
  // Without --db the database has only searches that were interrupted and have a state.
  unlink(db);
  o.resume = NULL, o.db_given = false;
  ended(begun(&o, &search, ""), 130);
  k = begun(&o, &search, "");
  assert_ok(search.kept(search.kept_user, TFC_STR("third state")));
  ended(k, 0);
  assert_int_equal(access(db, F_OK), -1);
  k = begun(&o, &search, "");
  assert_ok(search.kept(search.kept_user, TFC_STR("fourth state")));
  ended(k, 130);
  o.resume = "";
  ended(begun(&o, &search, "fourth state"), 130);
  static const char *const files[] = {"", ".lock", "-journal"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(left, sizeof left, "%s%s", db, files[i]);
    unlink(left);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_flags), cmocka_unit_test(test_files),
                                     cmocka_unit_test(test_policies), cmocka_unit_test(test_states)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
