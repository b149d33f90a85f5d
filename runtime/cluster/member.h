// A member: this process as one task of a job. It joins the other tasks, runs the parts of graphs that they send it,
// and sends them parts of its own graph (client.h). Every process of a job makes one.
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
  const struct tfc_cluster_spec *spec;  // outlives the member
  struct tfc_transport *transport;      // the member owns it, also if joining fails
  const struct tfc_device_set *devices; // outlive the member
  bool has_script; // this task runs steps of its own; false: it only runs parts of other tasks' steps
  // Steps that are estimated to take at least this long (us; 0 stands for 5 ms) run by static plans, if they can.
  // Shorter ones are quicker in ready order, because fewer threads are woken for a message.
  double static_us;
  // A variable is copied before it is sent. False: it is sent from its own memory, so that an update of it waits for
  // the task that receives it.
  bool never_lends;
  int64_t silence_ns; // a task that sent nothing for this long counts as lost; 0: 6 s
  // Is called once, on any thread, when the job has failed and before it is ended, so that the program can tell the
  // user. `code`: the exit code that the program should end with.
  void (*failed)(void *arg, int code, const char *why);
  void *arg;
  // Set when somebody has asked this task to stop its work. Then `stopped` is called in all other tasks, once, on any
  // thread. NULL: nobody asks this task.
  const _Atomic bool *stop;
  void (*stopped)(void *arg);
  char *last; // [TFC_TASK_LAST] here the member writes what the task did last, for error messages; NULL: nowhere
};
enum { TFC_TASK_LAST = 160 };
// Waits until all tasks have joined. INVALID_ARGUMENT: the number of tasks that the transport connects is not that of
// the spec.
TFC_MUST_USE tfc_status tfc_member_join(const struct tfc_member_options *options, struct tfc_member **out);
// Closes the transport. Free the client's sessions before.
void tfc_member_free(struct tfc_member *member); // NULL is fine

const char *tfc_member_name(const struct tfc_member *member, char out[TFC_TASK_TEXT]); // "/job:worker/task:0"
uint32_t tfc_member_rank(const struct tfc_member *member);
// Return what a task reported when it joined: the name of its host, and its devices. They are valid as long as the
// member.
const char *tfc_member_host(const struct tfc_member *member, uint32_t rank);
uint32_t tfc_member_device_count(const struct tfc_member *member, uint32_t rank);
const struct tfc_device_info *tfc_member_device(const struct tfc_member *member, uint32_t rank, uint32_t index);
// Appends the devices for people: "cpu:0 (AMD EPYC, 2 cores), cpu:1 (AMD EPYC, 2 cores)".
void tfc_member_show_devices(const struct tfc_member *member, uint32_t rank, struct tfc_text *out);
// Whether a task runs steps of its own, and how many tasks do. One that has freed its sessions when it ends its script
// does not, from then on.
bool tfc_member_is_client(const struct tfc_member *member, uint32_t rank);
uint32_t tfc_member_clients(const struct tfc_member *member);

// Returns how many parts of steps ran here in the fixed order of a static plan.
uint64_t tfc_member_static_parts(const struct tfc_member *member);

// Tells the other tasks, within about a second, how many steps this task has taken.
void tfc_member_took_steps(struct tfc_member *member, uint64_t steps);
// Returns how many steps a task has taken, as it told last; of a task that takes none of its own, how many parts of
// other tasks' steps it has run. `out_ns`: when that came here (tfc_now_ns); 0: it has told nothing yet.
uint64_t tfc_member_steps(const struct tfc_member *member, uint32_t rank, int64_t *out_ns);

// Returns whether the job has failed. Then no step can run any more.
bool tfc_member_has_failed(struct tfc_member *member);
// Waits until every task with a script has come to the barrier `name`. ABORTED: a task has ended without coming.
TFC_MUST_USE tfc_status tfc_member_barrier(struct tfc_member *member, const char *name, const _Atomic bool *cancel);
// The same, and every task gets the bits that any of them has set in its `votes`.
TFC_MUST_USE tfc_status tfc_member_vote(struct tfc_member *member, const char *name, uint32_t votes,
                                        const _Atomic bool *cancel, uint32_t *out_votes);
// Waits until no other task runs steps of its own. Then this task's steps can run by static plans in all tasks.
TFC_MUST_USE tfc_status tfc_member_wait_alone(struct tfc_member *member, const _Atomic bool *cancel);
// Call it when this task's script has ended. It serves other tasks until the scripts of all tasks have ended; queue
// runners of this task's sessions continue until then. After it, free the sessions and leave.
TFC_MUST_USE tfc_status tfc_member_end(struct tfc_member *member, const _Atomic bool *cancel);
// Waits until all tasks have freed their sessions, so that no task needs another one any more.
TFC_MUST_USE tfc_status tfc_member_leave(struct tfc_member *member);
// Ends the job for all tasks, with this exit code and reason. With MPI all processes are killed, this one too, so the
// function does not return. With other transports the steps of all tasks end with the reason as their error, and the
// function returns; the caller ends its script, frees its sessions and then frees the member.
void tfc_member_fail(struct tfc_member *member, int code, const char *why);

#endif
