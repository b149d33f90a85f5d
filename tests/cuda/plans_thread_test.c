// The table of plans of libraries: to make one takes time and memory, and meanwhile another thread finds the plans that
// are known. A device that captures gets those only.
#include "tests/common/test.h"

#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/device/cuda/kernels/library/plans.h"

enum { KNOWN, SLOW, OTHER };
static sem_t begun, go_on; // the plan SLOW is being made; it may be finished
static _Atomic int made;

static tfc_status make(struct tfc_cuda_library *library, const void *key, void **out) {
  (void)library;
  const int number = *(const int *)key;
  made++;
  if (number == SLOW) {
    sem_post(&begun);
    sem_wait(&go_on);
  }
  int *plan = malloc(sizeof *plan);
  if (!plan) return tfc_status_no_memory(NULL);
  *plan = number;
  *out = plan;
  return NULL;
}
static struct tfc_cuda_plans plans = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                      .making = PTHREAD_MUTEX_INITIALIZER,
                                      .key_size = sizeof(int),
                                      .make = make,
                                      .free = free};

struct request {
  int key;
  struct tfc_cuda_library library;
  const void *found;
  tfc_status status;
  pthread_t thread;
};
static void *find(void *argument) {
  struct request *r = argument;
  r->status = tfc_cuda_plans_find(&plans, &r->library, &r->key, &r->found);
  return NULL;
}
static void ask(struct request *r, int key, bool captures) {
  *r = (struct request){.key = key, .library = {.captures = captures}};
  assert_int_equal(pthread_create(&r->thread, NULL, find, r), 0);
}
static void answered(struct request *r) { // within seconds
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 60;
  assert_int_equal(pthread_timedjoin_np(r->thread, NULL, &until), 0);
}

static void while_one_is_made(void **state) {
  (void)state;
  struct request first, slow, twice, known, captured, refused;
  assert_true(!sem_init(&begun, 0, 0) && !sem_init(&go_on, 0, 0));
  ask(&first, KNOWN, false);
  answered(&first);
  assert_ok(first.status);
  ask(&slow, SLOW, false);
  sem_wait(&begun);
  ask(&twice, SLOW, false); // waits, and makes none
  ask(&known, KNOWN, false);
  ask(&captured, KNOWN, true);
  ask(&refused, OTHER, true);
  answered(&known);
  answered(&captured);
  answered(&refused);
  assert_ok(known.status);
  assert_ok(captured.status);
  assert_true(known.found == first.found && captured.found == first.found);
  assert_fails(refused.status, TFC_ABORTED, "while a segment is captured");
  assert_null(refused.found);
  sem_post(&go_on);
  answered(&slow);
  answered(&twice);
  assert_ok(slow.status);
  assert_ok(twice.status);
  assert_true(slow.found == twice.found && *(const int *)slow.found == SLOW);
  assert_int_equal(made, 2);
  for (size_t i = 0; i < plans.made.count; i++) free(plans.made.data[i]);
  tfc_array_free(&plans.made);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(while_one_is_made)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
