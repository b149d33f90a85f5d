// The memory behind the places of a session's plans.
#ifndef TFC_RUNTIME_EXEC_PLAN_ARENAS_H
#define TFC_RUNTIME_EXEC_PLAN_ARENAS_H

#include "runtime/exec/plan/plan_internal.h"

// Makes the arenas large enough, and sets the addresses of slots with places. Under run_lock, or own_lock for a plan
// with its own arenas.
TFC_MUST_USE tfc_status tfc_plan_settle(struct tfc_plan *plan);
// Call it under run_lock when a step in ready order begins. After some such steps in a row it frees the arenas.
void tfc_session_note_dynamic(struct tfc_session *session);

#endif
