#include "tests/common/rig.h"

#include <string.h>

#include "tests/common/test.h"

void rig_open(struct rig *r, const char *devices, bool dynamic) {
  *r = (struct rig){0};
  assert_ok(example_load_narrow_mlp(&r->e));
  assert_true(r->e.graph->node_count < 512);
  assert_ok(tfc_devices_open(devices, NULL, 0, &r->set));
  assert_ok(tfc_session_create(r->e.graph, &(struct tfc_session_options){.devices = &r->set}, &r->session));
  assert_ok(
      tfc_session_run(r->session, &(struct tfc_run_spec){.targets = &r->e.init, .target_count = 1}, NULL, NULL, NULL));
  assert_ok(tfc_session_snapshot(r->session, &r->start));
  example_spec(&r->e, &r->spec);
  r->spec.dynamic = dynamic;
  for (uint32_t i = 0; i < r->e.graph->node_count; i++) {
    const struct tfc_op_def *def = r->e.graph->nodes[i].def;
    r->placement[i] = (uint16_t)(def && def->flags & (TFC_OP_VARIABLE | TFC_OP_UPDATE) ? 0 : i % r->set.count);
  }
  r->spec.placement = r->placement;
  assert_ok(tfc_plan_create(r->session, &r->spec, &r->plan));
}

tfc_status rig_step(struct rig *r, float *out_loss) {
  struct tfc_tensor loss = {0};
  TFC_RETURN_IF_ERROR(tfc_plan_run(r->plan, r->e.values[0], &loss, NULL));
  memcpy(out_loss, loss.data, sizeof *out_loss);
  tfc_tensor_release(&loss);
  return NULL;
}

void rig_close(struct rig *r) {
  tfc_plan_free(r->plan);
  tfc_snapshot_free(r->start);
  tfc_session_free(r->session);
  for (uint32_t d = 0; d < r->set.count; d++) assert_true(r->set.devices[d]->driver->in_use(r->set.devices[d]) == 0);
  tfc_devices_close(&r->set);
  example_deinit(&r->e);
}
