// Loops that run as a list of nodes, iteration after iteration; on a device of several cores, loops that are alike and
// do not need each other run side by side, each on one core.
#ifndef TFC_RUNTIME_EXEC_DYNAMIC_ITERATIONS_H
#define TFC_RUNTIME_EXEC_DYNAMIC_ITERATIONS_H

#include "runtime/exec/dynamic/run.h"

void tfc_run_iterate(struct tfc_run *r, const struct tfc_run_item *item);
// Whether the loop should wait in r->loops until nothing else is ready, because another one may then run beside it.
bool tfc_run_waits_for_others(const struct tfc_run *r, const struct tfc_run_item *item);
// Runs loops of r->loops. If there are as many as the device has cores and no kernel is in flight, it runs all of them,
// side by side or one after another, whichever took less time so far; otherwise only the first one.
void tfc_run_loops_that_wait(struct tfc_run *r);

#endif
