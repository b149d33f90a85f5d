// Runs that wait, or whose time is over.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_WAIT_H
#define TFC_RUNTIME_EXEC_DYNAMIC_WAIT_H

#include "runtime/exec/dynamic/run.h"

// Returns the number of kernels on devices' threads that have not returned yet.
uint32_t tfc_run_at_work(const struct tfc_run *r);
// Sends the tensors for other tasks that are kept.
void tfc_run_flush(struct tfc_run *r);
// Sleeps until a kernel returns. Ends the run if that can never happen.
void tfc_run_wait(struct tfc_run *r);
// appends the names of nodes that wait, and what they wait for
void tfc_run_name_waiting(struct tfc_run *r, struct tfc_text *text);
void tfc_run_check_time(struct tfc_run *r);

#endif
