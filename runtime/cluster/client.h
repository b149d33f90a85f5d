// A client's session: runs steps of a graph whose nodes are in several tasks, which their device strings choose. Every
// task with a script is a client and makes a session of its own graph. Variables, queues, accumulators and tables
// belong to the tasks: sessions of different clients share them by name, as in TensorFlow.
//
//   struct tfc_cluster_session *session = NULL;
//   TFC_TRY(s, tfc_cluster_session_create(task, graph, &execution, &session));
//   TFC_TRY(s, tfc_cluster_session_run(session, &spec, feeds, fetched, NULL));
//   tfc_cluster_session_free(session);
#ifndef TFC_RUNTIME_CLUSTER_CLIENT_H
#define TFC_RUNTIME_CLUSTER_CLIENT_H

#include "runtime/cluster/member.h"

struct tfc_cluster_session;
// Call it after the graph's functions have been lowered. It retains the graph. UNAVAILABLE: a node's device string
// names a task that does not exist.
TFC_MUST_USE tfc_status tfc_cluster_session_create(struct tfc_member *member, const struct tfc_graph *graph,
                                                   const struct tfc_execution *execution,
                                                   struct tfc_cluster_session **out);
// Call it when no step runs any more, and before the member is freed.
void tfc_cluster_session_free(struct tfc_cluster_session *session);
// Like tfc_session_run, but uses only the feeds, fetches and targets of `spec`. Any thread may call it; several steps
// may run at once.
TFC_MUST_USE tfc_status tfc_cluster_session_run(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                                                const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                                const struct tfc_run_options *options);
struct tfc_cluster_trace;
// The same, and all tasks record when operations ran and tensors came (traces.h). The caller frees *out.
TFC_MUST_USE tfc_status tfc_cluster_session_run_traced(struct tfc_cluster_session *session,
                                                       const struct tfc_run_spec *spec, const struct tfc_tensor *feeds,
                                                       struct tfc_tensor *fetches,
                                                       const struct tfc_run_options *options,
                                                       struct tfc_cluster_trace *out);

// Between these calls the client's queue runners begin no step.
void tfc_cluster_session_pause(struct tfc_cluster_session *session);
void tfc_cluster_session_go_on(struct tfc_cluster_session *session);
// Waits until the steps that queue runners have begun wait for queues or other objects. Call it while this client has
// paused and runs no other step. `everyone`: all clients have paused, and the runners of all have to rest. If they do
// not come to rest for long, `out` gets a line "unsaved<TAB>...". `cancel`: as below.
TFC_MUST_USE tfc_status tfc_cluster_session_rest(struct tfc_cluster_session *session, bool everyone,
                                                 const _Atomic bool *cancel, struct tfc_text *out);
// The state that operations of all tasks keep from step to step beside variables: positions of random generators and
// iterators, contents of queues, also of other clients' sessions. Save it while queue runners rest and no step runs;
// restore it after initialising and before training. The text has "task<TAB>NAME" before each task's lines
// (runtime/exec/saved_state.h). `cancel` may be NULL; CANCELLED: it was set before every task had answered.
TFC_MUST_USE tfc_status tfc_cluster_session_save_state(struct tfc_cluster_session *session, const _Atomic bool *cancel,
                                                       struct tfc_text *out);
// Tasks that the text does not name are left as they are. `out_lost` gets a line, for people, for each task with states
// that nothing takes: the job has no such task, or the task no longer has these nodes.
TFC_MUST_USE tfc_status tfc_cluster_session_restore_state(struct tfc_cluster_session *session, tfc_str text,
                                                          const _Atomic bool *cancel, struct tfc_text *out_lost);

// Each client's own lines, about its local variables: "variable<TAB>NAME<TAB>...". `keep`: the next time that any
// client saves the state, these lines are saved with it. `kept`: what was restored for this task, once; NULL: nothing.
// The caller frees it.
TFC_MUST_USE tfc_status tfc_cluster_session_keep(struct tfc_cluster_session *session, tfc_str lines);
char *tfc_cluster_session_kept(struct tfc_cluster_session *session);

// The rank of the task in which a node of the graph runs.
uint32_t tfc_cluster_session_task_of(const struct tfc_cluster_session *session, uint32_t node);

#endif
