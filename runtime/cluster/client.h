// A client's session: a graph whose nodes run in several tasks, chosen by their device strings. Every task with a
// script is a client and makes a session of its own graph. Variables, queues, accumulators and tables belong to the
// tasks: sessions of different clients share them by name, as in TensorFlow.
//
//   struct tfc_cluster_session *session = NULL;
//   TFC_TRY(s, tfc_cluster_session_create(task, graph, &execution, &session));
//   TFC_TRY(s, tfc_cluster_session_run(session, &spec, feeds, fetched, NULL));
//   tfc_cluster_session_free(session);
#ifndef TFC_RUNTIME_CLUSTER_CLIENT_H
#define TFC_RUNTIME_CLUSTER_CLIENT_H

#include "runtime/cluster/member.h"

struct tfc_cluster_session;
// Call after the graph's functions have been lowered. UNAVAILABLE: a node's device string names a task that does not
// exist. Retains the graph.
TFC_MUST_USE tfc_status tfc_cluster_session_create(struct tfc_member *member, const struct tfc_graph *graph,
                                                   const struct tfc_execution *execution,
                                                   struct tfc_cluster_session **out);
// Call when no step runs any more, and before the member is freed.
void tfc_cluster_session_free(struct tfc_cluster_session *session);
// As tfc_session_run. Only the feeds, fetches and targets of `spec` are used. Any thread; several steps may run at
// once.
TFC_MUST_USE tfc_status tfc_cluster_session_run(struct tfc_cluster_session *session, const struct tfc_run_spec *spec,
                                                const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                                const struct tfc_run_options *options);

#endif
