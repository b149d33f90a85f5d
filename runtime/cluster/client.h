// A client's session: a graph whose nodes are in several tasks, by their device strings. Every task with a script makes
// one of its own graph; variables, queues, accumulators and tables are those of the tasks, shared by name, as in
// TensorFlow.
//
//   struct tfc_cluster_session *session = NULL;
//   TFC_TRY(s, tfc_cluster_session_create(task, graph, &execution, &session));
//   TFC_TRY(s, tfc_cluster_session_run(session, &spec, feeds, fetched, NULL));
//   tfc_cluster_session_free(session);
#ifndef TFC_RUNTIME_CLUSTER_CLIENT_H
#define TFC_RUNTIME_CLUSTER_CLIENT_H

#include "runtime/cluster/member.h"

struct tfc_cluster_session;
// Functions of the graph have been lowered. UNAVAILABLE: a node's device is of no task. Retains the graph.
TFC_MUST_USE tfc_status tfc_cluster_session_create(struct tfc_member *member, const struct tfc_graph *graph,
                                                   const struct tfc_execution *execution,
                                                   struct tfc_cluster_session **out);
void tfc_cluster_session_free(struct tfc_cluster_session *session); // nobody runs steps of it; before its task
// As tfc_session_run; of the spec feeds, fetches and targets count. Any thread, several at a time.
TFC_MUST_USE tfc_status tfc_cluster_session_run(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                                                const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                                const struct tfc_run_options *options);

#endif
