// The local machine as the simulator sees it: devices and links with what calibration has measured.
#ifndef TFC_PLACER_MEASURE_LOCAL_MACHINE_H
#define TFC_PLACER_MEASURE_LOCAL_MACHINE_H

#include "placer/measure/measure.h"
#include "placer/model/machine.h"

// What was measured of one kind of device. Kinds are numbered in the order in which they first appear among the
// devices.
struct tfc_kind_calibration {
  uint32_t cores;      // that its devices share because there are more devices than cores; 0: each has its own
  double dispatch_us;  // what an operation takes in addition to its own time
  double *measured_us; // [device_count + 1] by number of busy devices: sum of the operations' times
  double *alone_us;    // sum of what they take alone; the slow-down is measured_us / alone_us
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

// Fills out [device_count] with the slow-down for 1, 2, ... busy devices: the first is 1; those with few samples are
// interpolated between their neighbours. They are never below 1, never fall, and for devices that share cores they are
// at least the number of busy devices divided by the number of cores.
void tfc_calibration_slowdown(const struct tfc_calibration *calibration, uint32_t kind, double *out);

// Limits: the devices' own and those asked for. `calibration` NULL: devices and free links only.
TFC_MUST_USE tfc_status tfc_local_machine(const struct tfc_measure_info *info,
                                          const struct tfc_calibration *calibration,
                                          const struct tfc_memory_limit *limits, uint32_t limit_count,
                                          struct tfc_machine **out);

#endif
