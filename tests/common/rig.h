// The example mlp, with narrow layers, over several devices: variables and their updates are on device 0, other nodes
// on all devices in turn. For tests that make a step fail and check that the next one succeeds.
#ifndef TFC_TESTS_COMMON_RIG_H
#define TFC_TESTS_COMMON_RIG_H

#include "tests/common/example.h"

struct rig {
  struct example e;
  struct tfc_device_set set;
  struct tfc_session *session;
  struct tfc_snapshot *start; // the state after the initialiser, before the first step
  struct tfc_plan *plan;
  struct tfc_run_spec spec;
  uint16_t placement[512];
  float loss; // the loss of a successful step, for comparison
};
void rig_open(struct rig *r, const char *devices, bool dynamic);
tfc_status rig_step(struct rig *r, float *out_loss);
void rig_close(struct rig *r); // fails the test if a device still holds memory

#endif
