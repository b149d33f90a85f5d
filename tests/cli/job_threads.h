// The tasks of a job as threads of a suite. The suite includes this file, and then the file of cli/ that it tests, with
// the functions below in the place of those that need a process for each task.
//
//   #define cli_task_connect connect_here
//   #define tfc_guard_enter guard_here
//   #include "cli/place_tasks.c"
//   ...
//   test_tasks_run(3, place, &options, 0); // `place` is what a task does
//   test_tasks[1].code, test_out.text, test_err.text
#ifndef TFC_TESTS_CLI_JOB_THREADS_H
#define TFC_TESTS_CLI_JOB_THREADS_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cli/guard.h"
#include "cli/task.h"
#include "tests/common/caught.h"
#include "tests/common/test.h"

static _Thread_local struct tfc_transport *test_transport; // of the task that the thread is
static _Thread_local struct tfc_guard *test_guard;
static bool test_guarded = true; // false: guard_here returns as in the parent process of a task that ended with code 17
// As in an MPI program: without --cluster every process is a worker.
static inline tfc_status connect_here(struct tfc_cluster_spec *spec, const char *text, struct tfc_transport **out) {
  char workers[32];
  (void)text;
  if (!test_transport) return tfc_status_make(TFC_UNAVAILABLE, "no transport");
  snprintf(workers, sizeof workers, "worker=%u", test_transport->count);
  if (!spec->tasks.count) TFC_RETURN_IF_ERROR(tfc_cluster_spec_parse(tfc_str_from(workers), spec));
  *out = test_transport;
  return NULL;
}
static const char *test_program; // the name with which guard_here is to be called
static inline bool guard_here(const char *program, struct tfc_guard **out, int *out_code) {
  if (!test_guarded) *out_code = strcmp(program, test_program) ? 99 : 17;
  *out = test_guard;
  return test_guarded;
}

struct test_task {
  int (*run)(const void *options);
  const void *options;
  struct tfc_transport *transport;
  struct tfc_guard guard;
  pthread_t thread;
  int code;
};
static struct test_task test_tasks[4];
static struct test_caught test_out, test_err;
static inline void *test_task_thread(void *arg) {
  struct test_task *t = arg;
  test_transport = t->transport, test_guard = &t->guard;
  t->code = t->run(t->options);
  return NULL;
}
// Runs a job. The options of task r are at `options` + r * `size` bytes; `size` 0: all tasks have the same.
static inline void test_tasks_run(uint32_t count, int (*run)(const void *options), const void *options, size_t size) {
  struct tfc_transport *transports[4];
  memset(test_tasks, 0, sizeof test_tasks);
  assert_ok(tfc_transport_local(count, transports));
  test_catch(&test_out, stdout), test_catch(&test_err, stderr);
  for (uint32_t r = 0; r < count; r++) {
    test_tasks[r] =
        (struct test_task){.run = run, .options = (const char *)options + r * size, .transport = transports[r]};
    assert_int_equal(pthread_create(&test_tasks[r].thread, NULL, test_task_thread, &test_tasks[r]), 0);
  }
  for (uint32_t r = 0; r < count; r++) pthread_join(test_tasks[r].thread, NULL);
  test_caught_end(&test_out), test_caught_end(&test_err);
}

#endif
