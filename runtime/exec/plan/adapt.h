// The operations of a plan are timed in its first steps; the plan is then run in the faster way.
#ifndef TFC_RUNTIME_EXEC_PLAN_ADAPT_H
#define TFC_RUNTIME_EXEC_PLAN_ADAPT_H

#include "runtime/exec/plan/plan_internal.h"

// Prepares the plan for adapting, if its operations could run in another way.
TFC_MUST_USE tfc_status tfc_plan_adapt_create(struct tfc_plan *plan, const struct tfc_run_spec *spec);
// tfc_plan_adapt_begin returns the plan that the next step runs: `plan`, or its second way. Call both under
// session->run_lock.
struct tfc_plan *tfc_plan_adapt_begin(struct tfc_plan *plan, const struct tfc_run_options *options);
void tfc_plan_adapt_end(struct tfc_plan *plan, struct tfc_plan *used, bool failed);
void tfc_plan_adapt_free(struct tfc_adaptation *adaptation);

#endif
