// The state that operations keep from step to step beside variables, as text that a checkpoint keeps: how far random
// generators have drawn, and how many elements iterators have given. A line is one of
//
//   node<TAB>NUMBERS DRAWN<TAB>FUNCTION OR NOTHING<TAB>NODE
//   iterator<TAB>ELEMENTS<TAB>CONTAINER<TAB>NAME
//   unsaved<TAB>WHAT CANNOT BE SAVED, for people
//
// Write them while no step of the client runs whose training is to go on in the same way; read them while none runs.
#ifndef TFC_RUNTIME_EXEC_SAVED_STATE_H
#define TFC_RUNTIME_EXEC_SAVED_STATE_H

#include "runtime/exec/session.h"

struct tfc_text;
// Appends the lines of a session's operations. Functions that only build the elements of datasets are left out: they
// draw the same numbers again when iterators go back to where they were.
TFC_MUST_USE tfc_status tfc_session_write_state(struct tfc_session *session, struct tfc_text *out);
// Takes the lines about operations; other lines, and nodes that the graph does not have, are skipped. INVALID_ARGUMENT:
// a line makes no sense.
TFC_MUST_USE tfc_status tfc_session_read_state(struct tfc_session *session, tfc_str text);
// The same for iterators, with lines about all that cannot be saved (queues with elements, readers, ...).
TFC_MUST_USE tfc_status tfc_resources_write_state(struct tfc_resources *resources, struct tfc_text *out);
TFC_MUST_USE tfc_status tfc_resources_read_state(struct tfc_resources *resources, tfc_str text);

// Takes the first line off `text`, without its end. False: there is none.
bool tfc_state_line(tfc_str *text, tfc_str *out_line);
// Takes the first word off a line, up to a tab.
tfc_str tfc_state_word(tfc_str *line);

#endif
