// A job of several tasks in one process: each is a thread, connected by the local transport, which may be wrapped in a
// faulty one.
//
//   static void script(struct tfc_member *member, void *arg) { ... }
//   struct tfc_test_job job = {.cluster = "ps=1,worker=2", .script = script, .arg = &state};
//   tfc_test_job_run(&job);
#ifndef TFC_TESTS_COMMON_CLUSTER_H
#define TFC_TESTS_COMMON_CLUSTER_H

#include "runtime/cluster/client.h"

struct tfc_test_job {
  const char *cluster;
  // The function that a task runs. An error ends the job. A task without a script only serves other tasks.
  tfc_status (*script)(struct tfc_member *member, void *arg);
  void *arg;
  const char *serves;              // the job whose tasks only serve, NULL: none
  const char *model, *label;       // what every device says of itself; NULL: the truth
  const struct tfc_faults *faults; // faults of every task, each with its own seed; NULL: there are none
  uint32_t faulty_rank;            // the only task to which `silent_after` and `garbled_after` apply
  uint32_t cut_ranks[2];           // the two tasks to which `cut_after` applies: they are cut off from each other
  double static_us;                // as in struct tfc_member_options
  int64_t silence_ns;
  // The results, one for each task; the caller frees them.
  tfc_status status[16];
  uint64_t static_parts[16]; // parts of steps that a task has run by static plans
};
void tfc_test_job_run(struct tfc_test_job *job);
// Runs it, and expects that every task ends without an error.
void tfc_test_job_succeed(struct tfc_test_job *job);

// For scripts: if the condition does not hold, `s` is an error that says so, and the script goes on at `out`.
#define WANT(condition)                                                                                                \
  do {                                                                                                                 \
    if (!(condition)) TFC_FAIL(s, TFC_ABORTED, "line %d: %s", __LINE__, #condition);                                   \
  } while (0)

#endif
