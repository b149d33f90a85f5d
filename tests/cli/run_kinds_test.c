// The recorded steps of a script in a job of several tasks: which steps are of one kind, and what each kind gives to
// the database. Steps and the database are stand-ins.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/run_kinds.h"
#include "cli/run_traces.h"
#include "tests/common/close.h"

static int64_t step_ns; // how long the next step takes; 0: it fails
static tfc_status traced_here(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                              const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                              const struct tfc_run_options *options, struct tfc_cluster_trace *trace) {
  (void)session, (void)spec, (void)feeds, (void)fetches, (void)options;
  if (!step_ns) return tfc_status_make(TFC_INTERNAL, "the step fails");
  *trace = (struct tfc_cluster_trace){.begin_ns = 5000, .end_ns = 5000 + step_ns};
  return NULL;
}

struct stored {
  char name[16];
  size_t steps;
  int64_t last_ns;
  double median;
  bool stopped;
};
static struct stored stored[32];
static size_t stored_count, stored_most = 32; // storing more than `stored_most` kinds fails
static tfc_status store_here(const struct run_traces *traces, const struct run_setup *setup, const char *what,
                             struct tfc_quartiles q, bool stopped) {
  (void)setup;
  if (stored_count == stored_most) return tfc_status_make(TFC_DATA_LOSS, "the disk is full");
  struct stored *s = &stored[stored_count++];
  *s = (struct stored){.steps = traces->steps.count, .median = q.median, .stopped = stopped};
  snprintf(s->name, sizeof s->name, "%s", what);
  const struct tfc_cluster_trace *last = &traces->steps.data[traces->steps.count - 1];
  s->last_ns = last->end_ns - last->begin_ns;
  return NULL;
}

#define tfc_cluster_session_run_traced traced_here
#define run_traces_store store_here
#include "cli/run_kinds.c"

// Each step but the first one differs from it in one thing, so each is a kind of its own.
static void test_kinds(void **state) {
  (void)state;
  struct tfc_output feeds[] = {{3, 0}, {4, 2}}, other_node[] = {{3, 0}, {5, 2}}, other_index[] = {{3, 0}, {4, 1}},
                    other_first[] = {{3, 1}, {4, 2}}, fetches[] = {{6, 0}, {7, 1}}, other_fetch[] = {{6, 0}, {7, 0}},
                    fetched_node[] = {{8, 0}, {7, 1}};
  uint32_t targets[] = {9, 10}, other_target[] = {9, 11};
  const struct tfc_run_spec first = {
      .feeds = feeds, .feed_count = 2, .fetches = fetches, .fetch_count = 2, .targets = targets, .target_count = 2};
  struct tfc_run_spec specs[] = {first, first, first, first, first, first, first, first, first, first, first, first};
  enum { KINDS = sizeof specs / sizeof *specs };
  specs[1].feeds = other_node, specs[2].feeds = other_index, specs[3].feeds = other_first, specs[4].feed_count = 1;
  specs[5].fetches = other_fetch, specs[6].fetches = fetched_node, specs[7].fetch_count = 1;
  specs[8].targets = other_target, specs[9].target_count = 1, specs[10].target_count = 0;
  struct tfc_tensor values[2], longer[2];
  for (int i = 0; i < 2; i++) {
    values[i] = (struct tfc_tensor){.dtype = TFC_FLOAT, .shape = TFC_SHAPE(2, 3)};
    longer[i] = (struct tfc_tensor){.dtype = TFC_FLOAT, .shape = i ? TFC_SHAPE(2, 4) : TFC_SHAPE(2, 3)};
  }
  struct run_setup setup = {.cluster = (struct tfc_cluster_session *)&setup}; // not looked at
  struct run_kinds *kinds = NULL;
  assert_ok(run_kinds_open(&setup, false, &kinds));
  for (int round = 0; round < 3; round++)
    for (int k = 0; k < KINDS; k++) {
      char name[16];
      struct tfc_tensor results[2] = {{0}};
      snprintf(name, sizeof name, "step %d", round * KINDS + k);
      step_ns = round == 1 && k % 2 ? 0 : 1000 * (k + 1) + 100000 * round; // in the second round, steps of odd k fail
      tfc_status s = run_kinds_step(kinds, &setup, name, k % 3 == 0, &specs[k], k == 11 ? longer : values, results,
                                    &(struct tfc_run_options){0});
      if (step_ns)
        assert_ok(s);
      else
        assert_fails(s, TFC_INTERNAL, "the step fails");
    }
  assert_ok(run_kinds_store(kinds, &setup, true));
  assert_int_equal(stored_count, KINDS);
  for (int k = 0; k < KINDS; k++) {
    char name[16];
    snprintf(name, sizeof name, "step %d", k); // a kind has the name of its first step
    assert_string_equal(stored[k].name, name);
    assert_int_equal(stored[k].steps, k % 2 ? 2 : 3);
    assert_int_equal(stored[k].last_ns, 1000 * (k + 1) + 200000);
    // in us: the median of k + 1, k + 101 and k + 201, or of the first and the last of these
    assert_close(stored[k].median, k + 101);
    assert_true(stored[k].stopped);
  }
  stored_count = 0, stored_most = 3; // after the error, no more kinds are stored
  assert_fails(run_kinds_store(kinds, &setup, false), TFC_DATA_LOSS, "the disk is full");
  assert_true(stored_count == 3 && !stored[0].stopped);
  run_kinds_free(kinds);
  run_kinds_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
