// Describes the local machine for the simulator: its devices, and its links with the times that calibration measured.
#ifndef TFC_PLACER_MEASURE_LOCAL_MACHINE_H
#define TFC_PLACER_MEASURE_LOCAL_MACHINE_H

#include "placer/measure/measure.h"
#include "placer/model/machine.h"

// The measurements of one kind of device. Kinds are numbered in the order in which they first appear among the devices.
struct tfc_kind_calibration {
  uint32_t cores;      // how many cores its devices share if there are more devices than cores; 0: each device has its
                       // own cores
  double dispatch_us;  // time that an operation takes in addition to its own
  double *measured_us; // [device_count + 1] for each number of busy devices, the sum of the operations' times
  double *alone_us;    // for each number, the sum of what the same operations take alone; the slow-down is measured_us
                       // / alone_us
};
struct tfc_calibration {
  uint32_t kind_count, device_count;
  struct tfc_kind_calibration *kinds;
  struct tfc_link_time *links;
  uint32_t link_count;
};
TFC_MUST_USE tfc_status tfc_calibration_init(struct tfc_calibration *calibration, const struct tfc_measure_info *info);
void tfc_calibration_deinit(struct tfc_calibration *calibration);
uint32_t tfc_kind_of_device(const struct tfc_measure_info *info, uint32_t device);

// Fills out [device_count] with the slow-down for 1, 2, ... busy devices. The first one is 1; where there are few
// samples, it is interpolated between the neighbours. No slow-down is below 1 or below the one before. For devices that
// share cores, it is at least the number of busy devices divided by the number of cores.
void tfc_calibration_slowdown(const struct tfc_calibration *calibration, uint32_t kind, double *out);

// `limits` are applied in addition to the devices' own. `calibration` NULL: only devices, and links that cost nothing.
TFC_MUST_USE tfc_status tfc_local_machine(const struct tfc_measure_info *info,
                                          const struct tfc_calibration *calibration,
                                          const struct tfc_memory_limit *limits, uint32_t limit_count,
                                          struct tfc_machine **out);

#endif
