// Lanes of a CPU device: independent operations of a segment side by side, each on one core or on a few. The threads
// of the device's team take a lane each.
#ifndef TFC_RUNTIME_DEVICE_CPU_LANES_H
#define TFC_RUNTIME_DEVICE_CPU_LANES_H

#include "runtime/device/runner.h"

struct tfc_cpu_lanes;
enum { TFC_CPU_MOST_LANES = 16 };
// For a prepared segment with lanes: at most TFC_CPU_MOST_LANES, and at most the number of threads of the team. Freed
// with the segment.
TFC_MUST_USE tfc_status tfc_cpu_lanes_create(struct tfc_runner *r, struct tfc_prepared *p);
// On the team's leading thread. Where somebody else has the team, the operations run one by one.
void tfc_cpu_lanes_run(struct tfc_runner *r, struct tfc_team *team, struct tfc_prepared *p, struct tfc_step *step);

#endif
