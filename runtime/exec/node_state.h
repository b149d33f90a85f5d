// What operations keep from step to step. Private to runtime/exec.
#ifndef TFC_RUNTIME_EXEC_NODE_STATE_H
#define TFC_RUNTIME_EXEC_NODE_STATE_H

#include "runtime/exec/session_internal.h"

// Finds the state of a node of the session's graph or of a function's body, and makes it if there is none. `states`:
// the number of the iterator that calls the function; 0: none does. The session owns *out; NULL: this kind of operation
// has no state.
TFC_MUST_USE tfc_status tfc_session_node_state(struct tfc_session *session, const struct tfc_graph *graph,
                                               uint64_t states, uint32_t node, void **out);

#endif
