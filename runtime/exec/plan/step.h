// A step of a static plan.
#ifndef TFC_RUNTIME_EXEC_PLAN_STEP_H
#define TFC_RUNTIME_EXEC_PLAN_STEP_H

#include "runtime/exec/plan/plan_internal.h"

// Runs a step and waits for its end. INVALID_ARGUMENT: a feed has another type or shape than the plan was made for.
TFC_MUST_USE tfc_status tfc_plan_run_static(struct tfc_plan *plan, const struct tfc_tensor *feeds,
                                            struct tfc_tensor *fetches, const struct tfc_run_options *options);
// These check the type and shape of feed `i`, or of all feeds.
TFC_MUST_USE tfc_status tfc_plan_check_feed(const struct tfc_plan *plan, uint32_t i, const struct tfc_tensor *t);
TFC_MUST_USE tfc_status tfc_plan_check_feeds(const struct tfc_plan *plan, const struct tfc_tensor *feeds);
// Take and release a lock of the whole process. Work of several queues that waits for each other is submitted while it
// is held, so that all queues get the work of steps in the same order.
void tfc_submit_begin(void);
void tfc_submit_end(void);
// Makes the error for a fetch of a variable without a value, worded like an error of the variable's node.
TFC_MUST_USE tfc_status tfc_fetch_error(tfc_status s, const struct tfc_session *session, const struct tfc_graph *g,
                                        struct tfc_output o, const struct tfc_variable *v);

#endif
