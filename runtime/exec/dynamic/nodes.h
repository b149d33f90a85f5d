// Runs single nodes of a step in ready order.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_NODES_H
#define TFC_RUNTIME_EXEC_DYNAMIC_NODES_H

#include "runtime/exec/dynamic/run.h"

void tfc_run_process(struct tfc_run *r, const struct tfc_run_item *item);
// Computes the outputs of a node that is not dead, on this thread.
tfc_status tfc_run_compute(struct tfc_run *r, const struct tfc_run_item *item, struct tfc_run_value *outs);
// Reads input `slot` of a Switch, which selects the branch.
tfc_status tfc_run_index(struct tfc_run *r, const struct tfc_dnode *n, uint32_t slot, struct tfc_run_value *v,
                         int64_t *out);
// Copies to the caller what variables that were fetched by reference hold now. Call it when no node runs any more.
tfc_status tfc_run_fetch_late(struct tfc_run *r);

#endif
