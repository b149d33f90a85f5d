// State that operations keep for the whole session, such as that of a random generator: one for each graph and node,
// made when a plan first needs it.
#include <stdlib.h>

#include "runtime/exec/node_state.h"
#include "runtime/exec/session_internal.h"

tfc_status tfc_session_node_state(struct tfc_session *session, const struct tfc_graph *graph, uint64_t states,
                                  uint32_t node, void **out) {
  tfc_status s = NULL;
  const struct tfc_op_def *def = graph->nodes[node].def;
  *out = NULL;
  if (!def || !def->node_state) return NULL;
  pthread_mutex_lock(&session->lock);
  struct tfc_session_graph *g = NULL;
  for (size_t i = 0; i < session->graphs.count; i++)
    if (session->graphs.data[i].graph == graph && session->graphs.data[i].states == states)
      g = &session->graphs.data[i];
  if (!g) {
    struct tfc_session_graph made = {graph, states, calloc(graph->node_count + 1u, sizeof *made.node_states)};
    if (!made.node_states || !tfc_array_push(&session->graphs, made)) {
      free(made.node_states);
      TFC_TRY(s, tfc_status_no_memory("the state of operations"));
    }
    tfc_graph_retain(graph);
    g = &session->graphs.data[session->graphs.count - 1];
  }
  if (!g->node_states[node] && !(g->node_states[node] = calloc(1, def->node_state)))
    TFC_TRY(s, tfc_status_no_memory("the state of operations"));
  *out = g->node_states[node];
out:
  pthread_mutex_unlock(&session->lock);
  return s;
}
