// Loads values for a session's variables and tables from SavedModels.
#ifndef TFC_RUNTIME_EXEC_MODEL_H
#define TFC_RUNTIME_EXEC_MODEL_H

#include "runtime/base/arena.h"
#include "runtime/exec/session.h"
#include "runtime/io/checkpoint.h"

// Loads the SavedModel from which the session's graph was read (for another graph it does nothing): first the
// variables, by the model's own restore operation (unless `variables` is false, because they come from elsewhere), then
// the initialiser with its assets. placement: as in tfc_run_spec. Errors name the model and the operation.
TFC_MUST_USE tfc_status tfc_session_load_model(struct tfc_session *session, const struct tfc_graph *graph,
                                               const uint16_t *placement, bool variables);

#endif
