// The variables of a session. Private to runtime/exec.
#ifndef TFC_RUNTIME_EXEC_VARIABLES_H
#define TFC_RUNTIME_EXEC_VARIABLES_H

#include "runtime/exec/session_internal.h"

// Finds the session's variable that a VariableV2 or VarHandleOp node names, and creates it if there is none. The
// session owns *out.
TFC_MUST_USE tfc_status tfc_session_variable(struct tfc_session *session, const struct tfc_graph *graph, uint32_t node,
                                             struct tfc_variable **out);
// Moves a variable's value to a device if it is elsewhere.
TFC_MUST_USE tfc_status tfc_session_move_variable(struct tfc_session *session, struct tfc_variable *v, uint16_t device);
// Whether a variable's value is in the host's memory, although the variable is on a device with memory of its own.
static inline bool tfc_variable_beside(const struct tfc_device *d, tfc_dtype dtype) {
  return d->info.address_space && (!tfc_dtype_is_plain(dtype) || tfc_host_variable(dtype));
}

#endif
