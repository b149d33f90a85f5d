// Saved states of operations (runtime/exec/saved_state.h) that are restored in a job of another shape.
#ifndef TFC_RUNTIME_CLUSTER_STATES_H
#define TFC_RUNTIME_CLUSTER_STATES_H

#include "runtime/cluster/cut.h"

// `text` has the lines that were saved for the task with the name `task`. Appends a line, for people, about those that
// nothing will take: the job has no such task, or no such client, or what they are about is in another task now. Lines
// of other clients' sessions are for graphs that this client, whose rank is `client`, does not know, and are not looked
// into. Returns the task's rank; UINT32_MAX: there is no such task.
uint32_t tfc_states_list_lost(const struct tfc_cut *cut, uint32_t client, tfc_str task, tfc_str text,
                              struct tfc_text *out);

#endif
