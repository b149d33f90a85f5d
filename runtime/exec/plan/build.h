// The first stage of a plan: the operations that run, as an intermediate representation (ir).
#ifndef TFC_RUNTIME_EXEC_PLAN_BUILD_H
#define TFC_RUNTIME_EXEC_PLAN_BUILD_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/exec/session_internal.h"

struct tfc_plan_fetch {
  uint32_t value;
  const struct tfc_shape *view;
};
struct tfc_build {
  struct tfc_session *session;
  const struct tfc_graph *graph;
  const struct tfc_run_spec *spec;
  const struct tfc_groundwork *ground;
  struct tfc_plan_fetch *fetches; // [fetch_count], arena of the ir
};
// INVALID_ARGUMENT: a node is placed on no device.
TFC_MUST_USE tfc_status tfc_build_begin(struct tfc_session *session, const struct tfc_graph *graph,
                                        const struct tfc_run_spec *spec, const struct tfc_groundwork *ground,
                                        struct tfc_build *out);
// Fills the ir with the operations that run, their values, and the edges between them.
TFC_MUST_USE tfc_status tfc_build_ir(struct tfc_build *b, struct tfc_ir *ir);

#endif
