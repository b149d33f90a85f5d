// The state that operations keep from step to step beside variables, as text that a checkpoint keeps: how far random
// generators have drawn, how many elements iterators have given, and what queues, readers, mutable hash tables and
// other objects hold. A line is one of
//
//   node<TAB>NUMBERS DRAWN<TAB>FUNCTION OR NOTHING<TAB>NODE
//   iterator<TAB>ELEMENTS<TAB>CONTAINER<TAB>NAME
//   object<TAB>CONTAINER<TAB>NAME<TAB>TYPE<TAB>WORDS...: runtime/ops/saved.h
//   waits<TAB>NUMBER OF A STEP that waits for an object; not for files (runtime/cluster/states.h has more such lines)
//   unsaved<TAB>WHAT CANNOT BE SAVED, for people; not for files
//
// Names are written as runtime/base/state_text.h says. Write the lines while no step of the client runs whose training
// is to go on in the same way; read them while none runs.
#ifndef TFC_RUNTIME_EXEC_SAVED_STATE_H
#define TFC_RUNTIME_EXEC_SAVED_STATE_H

#include "runtime/base/state_text.h"
#include "runtime/exec/session.h"

// Appends the lines of a session's operations. What the functions of an iterator's dataset have drawn is left out: they
// draw the same numbers again when the iterator goes back to where it was.
TFC_MUST_USE tfc_status tfc_session_write_state(struct tfc_session *session, struct tfc_text *out);
// Takes the lines about operations; other lines, and nodes that the graph does not have, are skipped. INVALID_ARGUMENT:
// a line makes no sense.
TFC_MUST_USE tfc_status tfc_session_read_state(struct tfc_session *session, tfc_str text);
// The same for iterators and other objects. An object that does not exist yet gets what was saved when it is made.
TFC_MUST_USE tfc_status tfc_resources_write_state(struct tfc_resources *resources, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_resources_read_state(struct tfc_resources *resources, tfc_str text);

#endif
