// A task: this process as one of a job's. It joins the others, serves the parts of graphs that they give it, and gives
// them parts of its own (client.h). Every process of a job makes one.
//
//   struct tfc_member *member = NULL;
//   TFC_TRY(s, tfc_member_join(&(struct tfc_member_options){.spec = &spec, .transport = t, .devices = &set,
//                                                      .has_script = true}, &member));
//   ... run steps ...
//   TFC_TRY(s, tfc_member_end(member, NULL)); // serves until all others have ended, too
//   ... free sessions ...
//   TFC_TRY(s, tfc_member_leave(member));
//   tfc_member_free(member);
#ifndef TFC_RUNTIME_CLUSTER_MEMBER_H
#define TFC_RUNTIME_CLUSTER_MEMBER_H

#include "runtime/cluster/spec.h"
#include "runtime/exec/session.h"
#include "runtime/transport/transport.h"

struct tfc_member;
struct tfc_member_options {
  const struct tfc_cluster_spec *spec;  // outlives the task
  struct tfc_transport *transport;      // taken, also where joining fails
  const struct tfc_device_set *devices; // outlive the task
  bool has_script;                      // it runs steps of its own; else it only serves
  int64_t silence_ns;                   // a task that says nothing for so long is gone; 0: 8 s
  // Called once, on any thread, when the job has failed, before it is ended: says so to people. `code`: what the
  // program is to end with.
  void (*failed)(void *arg, int code, const char *why);
  void *arg;
  char *last; // [TFC_TASK_LAST] where to write what the task did last, besides telling the others; NULL: nowhere
};
enum { TFC_TASK_LAST = 160 };
// Waits until all tasks have joined. INVALID_ARGUMENT: the transport connects another number of tasks.
TFC_MUST_USE tfc_status tfc_member_join(const struct tfc_member_options *options, struct tfc_member **out);
// Closes the transport. Sessions of clients are freed before.
void tfc_member_free(struct tfc_member *member); // NULL is fine

uint32_t tfc_member_rank(const struct tfc_member *member);
// "host" and "cpu:0 (model), ..." of a task, as it said when it joined. Live as long as the task.
const char *tfc_member_host(const struct tfc_member *member, uint32_t rank);
const char *tfc_member_devices(const struct tfc_member *member, uint32_t rank);

// Waits until every task with a script has come here. ABORTED: one of them has ended and never will.
TFC_MUST_USE tfc_status tfc_member_barrier(struct tfc_member *member, const char *name, const _Atomic bool *cancel);
// This task's script has ended: serves until all have. Its sessions still run what queue runners do for others; then
// they are freed, and it leaves.
TFC_MUST_USE tfc_status tfc_member_end(struct tfc_member *member, const _Atomic bool *cancel);
// Waits until all are about to leave: nobody needs what others serve.
TFC_MUST_USE tfc_status tfc_member_leave(struct tfc_member *member);
// Ends the whole job. With MPI this does not return.
void tfc_member_fail(struct tfc_member *member, int code, const char *why);

#endif
