// Ready order: graphs with frames, queues and functions.
#include "runtime/exec/plan_internal.h"

tfc_status tfc_plan_make_dynamic(struct tfc_build *b, struct tfc_plan *plan) {
  (void)b, (void)plan;
  return tfc_status_make(TFC_UNIMPLEMENTED, "graphs with control flow, queues or functions cannot be run yet");
}
tfc_status tfc_plan_run_dynamic(struct tfc_plan *plan, const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                                const struct tfc_run_options *options) {
  (void)plan, (void)feeds, (void)fetches, (void)options;
  return tfc_status_make(TFC_INTERNAL, "not a dynamic plan");
}
void tfc_plan_dynamic_deinit(struct tfc_plan *plan) {
  (void)plan;
}
