// Copies of a run's values to devices whose memory host code cannot read.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_COPIES_H
#define TFC_RUNTIME_EXEC_DYNAMIC_COPIES_H

#include "runtime/exec/dynamic/run.h"

// The outermost run begins and ends copies; `finish` waits until all of them have ended.
tfc_status tfc_run_copies_begin(struct tfc_run *r);
void tfc_run_copies_finish(struct tfc_run *r);
void tfc_run_copies_end(struct tfc_run *r);
// Sends the value, which is input `slot` of a node, to device sending->to; the value becomes the copy's target. The
// copy is submitted (between tfc_submit_begin and _end) with all others of the operation, awaited before the operation
// is launched, and dropped if submitting fails.
tfc_status tfc_run_send(struct tfc_run *r, const struct tfc_dnode *n, uint32_t slot, struct tfc_run_value *v,
                        struct tfc_run_sending *sending);
tfc_status tfc_run_submit(struct tfc_run *r, struct tfc_run_sending *sending);
void tfc_run_drop(struct tfc_run_sending *sending);
tfc_status tfc_run_await(struct tfc_run *r, uint16_t device, uint64_t arrival);
// Call before a variable's memory is written in place: waits until no copy reads it.
void tfc_run_leave(struct tfc_run *r, struct tfc_variable *v);

#endif
