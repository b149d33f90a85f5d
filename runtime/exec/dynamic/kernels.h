// Kernels of a run: on this thread, or as flights on other threads.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_KERNELS_H
#define TFC_RUNTIME_EXEC_DYNAMIC_KERNELS_H

#include "runtime/exec/dynamic/run.h"

tfc_status tfc_run_dereference(struct tfc_run *r, struct tfc_run_value *v);
// Moves a value that host code needs, as input `slot` of a node, to the host; waits for the device.
tfc_status tfc_run_read(struct tfc_run *r, const struct tfc_dnode *n, uint32_t slot, struct tfc_run_value *v);
// Returns the number of a transfer in traces.
uint32_t tfc_run_transfer(const struct tfc_run *r, const struct tfc_dnode *n, uint32_t slot, uint16_t from);
tfc_status tfc_run_inline(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs);
// Runs the node's kernel with inputs that are ready, and records it if the step has a trace. Errors are not named.
tfc_status tfc_run_launch(struct tfc_run *r, const struct tfc_dnode *n, struct tfc_kernel_ctx *ctx);
void tfc_run_start_flight(struct tfc_run *r, const struct tfc_run_item *item);
void tfc_run_finish(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs);
void tfc_run_collect(struct tfc_run *r);
void tfc_run_mailbox_leave(struct tfc_run_mailbox *m);

#endif
