// What is ready in a run, and whether the run has failed.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_READY_H
#define TFC_RUNTIME_EXEC_DYNAMIC_READY_H

#include "runtime/exec/dynamic/run.h"

void tfc_run_fail(struct tfc_run *r, tfc_status s);
void tfc_run_make_ready(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_run_frame *f,
                        struct tfc_run_iteration *it, bool dead);
// Resumes parked nodes; call it when nothing else can continue. False: no node is parked.
bool tfc_run_unpark(struct tfc_run *r);
// Whether what is kept for other tasks has to be sent before this node, because it may take a while. It need not be
// sent before another send, nor before a node that only passes a value on, often to a send.
bool tfc_run_takes_time(const struct tfc_dnode *n);
// Whether the next ready node probably sends a tensor to another task, too.
bool tfc_run_sends_more(const struct tfc_run *r);

#endif
