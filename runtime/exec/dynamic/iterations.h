// Loops that run as a list of nodes, iteration after iteration.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_ITERATIONS_H
#define TFC_RUNTIME_EXEC_DYNAMIC_ITERATIONS_H

#include "runtime/exec/dynamic/run.h"

void tfc_run_iterate(struct tfc_run *r, const struct tfc_run_item *item);

#endif
