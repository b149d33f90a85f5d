// The control of backup replicas (cli/run_backups.h) without tasks: a slow replica does not hold up steps, what it
// computes is dropped and never applied, and errors and ends come through. Replicas are slow because the test holds
// them, so nothing here depends on time.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run_backups.h"

enum { REPLICAS = 3, MOST = 64 };

struct job {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool held[REPLICAS]; // does not come to an end
  bool fails[REPLICAS];
  int64_t began[REPLICAS];            // how often each has begun
  int64_t version;                    // updates so far
  int64_t of_version[REPLICAS];       // from which variables each replica computes
  int accepted[MOST], accepted_count; // replicas, since the last update
  int dropped[REPLICAS], applied_updates;
  bool stale, unordered, wrong_count;
  _Atomic bool cancel;
};

static tfc_status compute(void *arg, uint32_t replica, const _Atomic bool *cancel) {
  struct job *j = arg;
  pthread_mutex_lock(&j->lock);
  j->began[replica]++;
  j->of_version[replica] = j->version;
  pthread_cond_broadcast(&j->changed);
  while (j->held[replica] && !atomic_load(cancel)) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
    pthread_cond_timedwait(&j->changed, &j->lock, &until);
  }
  const bool fails = j->fails[replica];
  pthread_mutex_unlock(&j->lock);
  if (atomic_load(cancel)) return tfc_status_make(TFC_CANCELLED, "broken off");
  return fails ? tfc_status_make(TFC_INVALID_ARGUMENT, "it does not compute") : NULL;
}
static tfc_status accept(void *arg, uint32_t replica) {
  struct job *j = arg;
  j->stale |= j->of_version[replica] != j->version;
  j->unordered |= j->accepted_count && j->accepted[j->accepted_count - 1] >= (int)replica;
  j->accepted[j->accepted_count++] = (int)replica;
  return NULL;
}
static tfc_status drop(void *arg, uint32_t replica) {
  struct job *j = arg;
  j->dropped[replica]++;
  return NULL;
}
static tfc_status apply(void *arg) {
  struct job *j = arg;
  pthread_mutex_lock(&j->lock); // replicas look at the version
  j->wrong_count |= j->accepted_count != REPLICAS - 1;
  j->accepted_count = 0;
  j->version++;
  pthread_mutex_unlock(&j->lock);
  return NULL;
}

static struct run_backups *start(struct job *j) {
  struct run_backups *b = NULL;
  *j = (struct job){0};
  pthread_mutex_init(&j->lock, NULL);
  pthread_cond_init(&j->changed, NULL);
  const struct run_backups_calls calls = {compute, accept, drop, apply, j, &j->cancel};
  assert_ok(run_backups_start(&calls, REPLICAS, 1, &b));
  return b;
}
static void end(struct job *j, struct run_backups *b) {
  run_backups_end(b);
  assert_false(j->stale || j->unordered || j->wrong_count);
  pthread_cond_destroy(&j->changed);
  pthread_mutex_destroy(&j->lock);
}
static void hold(struct job *j, int replica, bool held) {
  pthread_mutex_lock(&j->lock);
  j->held[replica] = held;
  pthread_cond_broadcast(&j->changed);
  pthread_mutex_unlock(&j->lock);
}
static void wait_for_begin(struct job *j, int replica, int64_t times) {
  pthread_mutex_lock(&j->lock);
  while (j->began[replica] < times) pthread_cond_wait(&j->changed, &j->lock);
  pthread_mutex_unlock(&j->lock);
}

static void slow(void **state) {
  struct job j;
  struct run_backups *b = start(&j);
  (void)state;
  hold(&j, 1, true);
  for (int i = 0; i < 5; i++) assert_ok(run_backups_step(b)); // the others are enough
  struct run_backups_counts counts = run_backups_counts(b);
  assert_int_equal(j.version, 5);
  assert_int_equal(counts.applied, 10);
  assert_int_equal(counts.dropped, 0);
  wait_for_begin(&j, 1, 1);
  hold(&j, 1, false);
  assert_ok(run_backups_rest(b)); // now it has computed: of the first step
  counts = run_backups_counts(b);
  assert_int_equal(counts.dropped, 1);
  assert_int_equal(j.dropped[1], 1);
  assert_int_equal(j.began[1], 1);
  hold(&j, 0, true); // then the steps need replica 1, too
  for (int i = 0; i < 5; i++) assert_ok(run_backups_step(b));
  counts = run_backups_counts(b);
  assert_int_equal(counts.applied, 20);
  assert_int_equal(counts.dropped, 1);
  hold(&j, 0, false);
  assert_ok(run_backups_rest(b));
  assert_int_equal(j.version, 10);
  end(&j, b);
}

// Who is late begins with the step that runs when it comes. Here the step cannot end without it.
static void late_takes_part(void **state) {
  struct job j;
  struct run_backups *b = start(&j);
  (void)state;
  hold(&j, 1, true);
  assert_ok(run_backups_step(b));
  wait_for_begin(&j, 1, 1);
  hold(&j, 2, true);
  hold(&j, 1, false);
  assert_ok(run_backups_step(b)); // of 0 and 1; what 1 had of the first step is dropped
  assert_int_equal(j.dropped[1], 1);
  assert_int_equal(j.began[1], 2);
  hold(&j, 2, false);
  end(&j, b);
}

// Whoever is first: all that is computed is applied or dropped, and only of the step that runs.
static void nobody_held(void **state) {
  struct job j;
  struct run_backups *b = start(&j);
  (void)state;
  for (int i = 0; i < 300; i++) assert_ok(run_backups_step(b));
  assert_ok(run_backups_rest(b));
  const struct run_backups_counts counts = run_backups_counts(b);
  assert_int_equal(j.version, 300);
  assert_int_equal(counts.applied, 600);
  assert_int_equal(counts.applied + counts.dropped, j.began[0] + j.began[1] + j.began[2]);
  assert_int_equal(counts.dropped, j.dropped[0] + j.dropped[1] + j.dropped[2]);
  end(&j, b);
}

static void errors(void **state) {
  struct job j;
  struct run_backups *b = start(&j);
  (void)state;
  assert_ok(run_backups_step(b));
  assert_ok(run_backups_rest(b));
  j.fails[2] = true;
  hold(&j, 0, true); // so the step needs replica 2
  tfc_status s = run_backups_step(b);
  assert_int_equal(tfc_status_code(s), TFC_INVALID_ARGUMENT);
  assert_non_null(strstr(tfc_status_message(s), "replica 2"));
  tfc_status_free(s);
  assert_int_equal(j.version, 1);
  end(&j, b); // breaks replica 0 off
}

static void broken_off(void **state) {
  struct job j;
  struct run_backups *b = start(&j);
  (void)state;
  for (int i = 0; i < REPLICAS; i++) hold(&j, i, true);
  atomic_store(&j.cancel, true);
  tfc_status s = run_backups_step(b);
  assert_int_equal(tfc_status_code(s), TFC_CANCELLED);
  tfc_status_free(s);
  end(&j, b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(slow), cmocka_unit_test(late_takes_part),
                                     cmocka_unit_test(nobody_held), cmocka_unit_test(errors),
                                     cmocka_unit_test(broken_off)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
