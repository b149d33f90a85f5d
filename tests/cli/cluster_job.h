// Jobs of tfc-run whose tasks are threads of a suite (job_threads.h). The suite includes this file, and then
// "cli/run_cluster.c", which calls the stand-ins that are defined here, and defines `fail()` again.
//
//   struct run_options o = options(in("g.pbtxt"), "ps=1,worker=2");
//   run_same(3, &o);          // in all tasks
//   codes(0, 0, 0);           // what they returned
//   SAYS(test_out, "...", 1); // what they printed: test_out and test_err
#ifndef TFC_TESTS_CLI_CLUSTER_JOB_H
#define TFC_TESTS_CLI_CLUSTER_JOB_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/restart.h"
#include "cli/run.h"
#include "tests/cli/in_process.h"
#include "tests/cli/job_threads.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"
#include "tests/common/test.h"

static _Thread_local jmp_buf *test_at_exit;
static _Thread_local int test_exit_code;
static inline _Noreturn void end_of_task(int code) {
  test_exit_code = code;
  longjmp(*test_at_exit, 1);
}
// Tasks that are threads do not divide the host's cores. They count how many of them asked for a share, and how many
// gave it up again.
static atomic_int test_shared, test_left;
static inline void share_here(const struct tfc_transport *t, const struct tfc_cluster_spec *spec,
                              struct cli_task_mask *out_mask) {
  (void)t, (void)out_mask;
  atomic_fetch_add(&test_shared, spec != NULL);
}
static inline void leave_here(const struct cli_task_mask *mask) {
  (void)mask;
  atomic_fetch_add(&test_left, 1);
}
static struct cli_restart test_restarted;
static char test_restarted_folder[200];
static inline int restart_here(const struct cli_restart *r) {
  test_restarted = *r;
  snprintf(test_restarted_folder, sizeof test_restarted_folder, "%s", r->folder ? r->folder : "-");
  return 77;
}
static char folder[TEST_FOLDER_SIZE];
static inline int set_up(void **state) {
  (void)state;
  test_program_start(test_program = "tfc-run");
  return test_folder_make(folder, "job");
}
static inline int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}
static inline const char *in(const char *name) {
  return test_folder_path(folder, name);
}

#define NODE(name, op, inputs, device, attrs)                                                                          \
  "node { name: '" name "' op: '" op "' device: '" device "' " inputs " " attrs " }\n"
#define FLOAT " attr { key: 'dtype' value { type: DT_FLOAT } }"
#define NUMBER(name, value)                                                                                            \
  NODE(name, "Const", "", "",                                                                                          \
       FLOAT " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: " value " } } }")
#define GRAPH(device, amount)                                                                                          \
  NODE("v", "VarHandleOp", "", device,                                                                                 \
       FLOAT " attr { key: 'shape' value { shape { } } } attr { key: 'shared_name' value { s: 'v' } }")                \
  NUMBER("one", "1")                                                                                                   \
  NUMBER("amount", amount)                                                                                             \
  NODE("init", "AssignVariableOp", "input: 'v' input: 'one'", device, FLOAT)                                           \
  NODE("read", "ReadVariableOp", "input: 'v'", device, FLOAT)                                                          \
  NODE("update", "AssignSubVariableOp", "input: 'v' input: 'amount' input: '^read'", device, FLOAT)

static const char *const test_fetches[] = {"read:0"}, *const test_targets[] = {"update"},
                         *const test_inits[] = {"init"};
static inline struct run_options options(const char *graph, const char *cluster) {
  return (struct run_options){.graph = graph,
                              .cluster = cluster,
                              .steps = 3,
                              .warmup = 1,
                              .restarts = -1,
                              .save_every = 1000,
                              .out = "out",
                              .fetches = {(const char **)(uintptr_t)test_fetches, 1},
                              .targets = {(const char **)(uintptr_t)test_targets, 1},
                              .inits = {(const char **)(uintptr_t)test_inits, 1}};
}

static inline int run_task(const void *o) {
  return run_cluster(o, NULL);
}
// Runs a job in which task r has the options o[r].
static inline void run_tasks(uint32_t count, const struct run_options *o) {
  test_tasks_run(count, run_task, o, sizeof *o);
}
// Runs a job in which all tasks have the same options.
static inline void run_same(uint32_t count, const struct run_options *o) {
  test_tasks_run(count, run_task, o, 0);
}
static inline void codes(int a, int b, int c) {
  const int wanted[] = {a, b, c};
  for (int i = 0; i < 3; i++)
    if (test_tasks[i].code != wanted[i])
      fail_msg("task %d: exit code %d, not %d\n%s%s", i, test_tasks[i].code, wanted[i], test_out.text, test_err.text);
}

#undef fail // a macro of CMocka, and a name in the file below
#define cli_task_connect connect_here
#define cli_task_share_cores share_here
#define cli_task_leave_cores leave_here
#define tfc_guard_enter guard_here
#define cli_restart(...) restart_here(__VA_ARGS__)
#define _exit end_of_task

#endif
