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

// Between these calls the client's queue runners begin no step.
void tfc_cluster_session_pause(struct tfc_cluster_session *session);
void tfc_cluster_session_go_on(struct tfc_cluster_session *session);
// The state that operations of all tasks keep from step to step beside variables: positions of random generators and
// iterators, contents of queues, also of other clients' sessions. Save it while this client's only steps are those of
// its queue runners, which it lets come to rest; restore it after initialising and before training. The text has
// "task<TAB>NAME" before each task's lines (runtime/exec/saved_state.h). `cancel` may be
// NULL; CANCELLED: it was set before every task had answered.
TFC_MUST_USE tfc_status tfc_cluster_session_save_state(struct tfc_cluster_session *session, const _Atomic bool *cancel,
                                                       struct tfc_text *out);
// Tasks that the text does not name are left as they are. `out_lost` gets a line, for people, for each task with states
// that nothing takes: the job has no such task, or the task no longer has these nodes.
TFC_MUST_USE tfc_status tfc_cluster_session_restore_state(struct tfc_cluster_session *session, tfc_str text,
                                                          const _Atomic bool *cancel, struct tfc_text *out_lost);

#endif
