// Lanes of a CPU device: independent operations of a segment run at the same time, each on one core or on a few. Each
// thread of the device's team takes a lane.
#ifndef TFC_RUNTIME_DEVICE_CPU_LANES_H
#define TFC_RUNTIME_DEVICE_CPU_LANES_H

#include "runtime/device/cpu/team.h"
#include "runtime/device/runner.h"

struct tfc_cpu_lanes;
enum { TFC_CPU_MOST_LANES = 16 };
// Makes what is needed to run a prepared segment that has lanes: at most TFC_CPU_MOST_LANES, and at most as many as the
// team has threads. It is freed with the prepared segment.
TFC_MUST_USE tfc_status tfc_cpu_lanes_create(struct tfc_runner *r, struct tfc_prepared *p);
// Runs the segment; called on the team's leading thread. If another caller uses the team, the operations run one by one
// on this thread.
void tfc_cpu_lanes_run(struct tfc_runner *r, struct tfc_team *team, struct tfc_prepared *p, struct tfc_step *step);

#endif
