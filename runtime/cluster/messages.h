// Messages between tasks: their kinds, and what their heads contain. Numbers are sent as they are in memory, so all
// machines of a job must have the same byte order.
#ifndef TFC_RUNTIME_CLUSTER_MESSAGES_H
#define TFC_RUNTIME_CLUSTER_MESSAGES_H

#include "runtime/device/driver.h"
#include "runtime/transport/transport.h"

#define TFC_MESSAGE_KINDS(X)                                                                                           \
  X(HELLO, "hello")           /* to task 0: a task joins and describes itself and its devices */                       \
  X(WELCOME, "welcome")       /* from task 0, about each task: all have joined */                                      \
  X(PING, "ping")             /* a sign of life, with what the task did last */                                        \
  X(GRAPH, "graph")           /* a client's part of a graph: text of its execution; body: GraphDef */                  \
  X(PLAN, "plan")             /* a part of a plan: names of feeds, fetches and targets */                              \
  X(RUN, "run")               /* a step of a plan */                                                                   \
  X(TENSOR, "tensor")         /* along an edge, fed or fetched; body: elements */                                      \
  X(DONE, "done")             /* how a task's part of a step ended */                                                  \
  X(TRACE, "trace")           /* after it, what the task has recorded of a traced step (traces.h), as body */          \
  X(ABORT, "abort")           /* a step that its client has given up */                                                \
  X(BARRIER, "barrier")       /* to task 0: a task's script has come to a barrier */                                   \
  X(RELEASE, "release")       /* from task 0: all scripts have come to it */                                           \
  X(ENDED, "ended")           /* a task's script has ended */                                                          \
  X(STOP, "stop")             /* somebody has asked a task to stop its work, and so all tasks */                       \
  X(FORGET, "forget")         /* a client's part of a graph that is not needed any more */                             \
  X(COLLECTIVE, "collective") /* of collective operations (runtime/ops/collective.h) */

enum tfc_message_kind {
#define KIND(name, text) TFC_KIND_##name,
  TFC_MESSAGE_KINDS(KIND)
#undef KIND
      TFC_KINDS
};
const char *tfc_message_kind_name(uint32_t kind);

enum {
  TFC_HELLO_VERSION = 7,
  TFC_HOST_TEXT = 64,
  TFC_CLOCK_TEXT = 128,
  TFC_LAST_TEXT = 160,
  TFC_NAME_TEXT = 256,
  // Most devices of one task: a hello lists all of them in its head, behind struct tfc_head_hello, which takes less
  // room than one of them. (A list of devices may name TFC_MAX_DEVICES: runtime/device/list.h.)
  TFC_HELLO_DEVICES = TFC_MESSAGE_MOST_HEAD / sizeof(struct tfc_device_info) - 1,
};
// Head of HELLO and WELCOME messages (there it describes task `rank`). The task's devices follow, each a struct
// tfc_device_info.
struct tfc_head_hello {
  uint32_t version, rank, has_script, pid, device_count, zero;
  char host[TFC_HOST_TEXT];
  char clock[TFC_CLOCK_TEXT]; // tasks whose text is the same have one CLOCK_MONOTONIC_RAW; "": the task does not know
};
struct tfc_head_ping {
  char last[TFC_LAST_TEXT];
  uint64_t steps; // that the task has taken, or parts of steps that it has run for others
  uint64_t tasks; // task 0 says it of so many tasks, each a struct tfc_told_steps that follows; other tasks: 0
};
struct tfc_told_steps {
  uint64_t steps;
  int64_t age_ns; // how long ago the task told it; negative: never
};
struct tfc_head_graph { // the text of the execution options follows
  uint32_t session, zero;
};
// The body holds the names of feeds, fetches and targets, each ended by a zero byte, and what is known of the part's
// crossings, if it may run by a static plan (struct tfc_crossing): for each of them its node, the longest path in
// nanoseconds, and the dimensions, with a space between them, and a zero byte.
struct tfc_head_plan {
  uint32_t session, plan, feeds, fetches, targets, crossings;
};
// Plans that every task has: a step that fetches the state of the task's operations (runtime/exec/saved_state.h), and
// one that is fed with it.
#define TFC_PLAN_SAVE UINT32_MAX
#define TFC_PLAN_RESTORE (UINT32_MAX - 1)
struct tfc_head_run {
  uint32_t session, plan;
  int64_t step, oldest, deadline_ns;
  uint32_t is_static, zero; // is_static: the tasks run no other step meanwhile
};
struct tfc_head_tensor {
  int64_t step, sent_ns; // sent_ns: when a tensor was sent along an edge, if the step is traced
  uint64_t iteration, bytes;
  uint32_t edge, dtype, dead;
  int32_t rank;
  int64_t dims[TFC_MAX_RANK];
};
struct tfc_head_done { // head of DONE and TRACE messages; the error's message follows
  int64_t step;
  uint32_t code, zero;
};
struct tfc_head_abort {
  int64_t step;
};
struct tfc_head_barrier { // head of BARRIER and RELEASE messages
  uint32_t votes, zero;   // of the task that came; in RELEASE, the bits that any task has set
  char name[TFC_NAME_TEXT];
};
struct tfc_head_ended {
  uint32_t leaves; // 1: the task has freed its sessions, too, and no longer needs other tasks
  uint32_t serves; // 1: it has no session open, so from now on it runs only parts of other tasks' steps
};
struct tfc_head_stop {
  uint32_t zero;
};
struct tfc_head_forget {
  uint32_t session, zero;
};
// One of these bits is set in the edge number of a feed or a fetch, to distinguish it from edges of the cut.
#define TFC_EDGE_FEED 0x80000000u
#define TFC_EDGE_FETCH 0x40000000u
// Each task numbers its own fetches, so the field `iteration` of a fetch's key says which task sent it.
#define TFC_FETCHED_FROM(rank) ((uint64_t)(rank) + 1)

// Makes a message with this head, followed by `rest`.
TFC_MUST_USE tfc_status tfc_message_of(uint32_t kind, const void *head, size_t head_size, tfc_str rest,
                                       struct tfc_message **out);
// Copies the head out of a message. `out_rest`: what follows the head; NULL: nothing may follow. INVALID_ARGUMENT: the
// length is wrong.
TFC_MUST_USE tfc_status tfc_message_read(const struct tfc_message *m, void *head, size_t head_size, tfc_str *out_rest);
// Whether the array contains a zero byte, so that the text can be read safely.
bool tfc_message_text(const char *text, size_t size);

// These functions convert a tensor (NULL: dead) into a message, and a message into a tensor. UNIMPLEMENTED: tensors of
// this type cannot be sent to another task.
TFC_MUST_USE tfc_status tfc_message_of_tensor(const struct tfc_head_tensor *key, const struct tfc_tensor *value,
                                              struct tfc_message **out);
TFC_MUST_USE tfc_status tfc_message_tensor(struct tfc_message *m, struct tfc_head_tensor *out_key,
                                           struct tfc_tensor *out); // takes the message's body over

#endif
