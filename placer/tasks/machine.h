// The devices of all tasks and the links between them, as the machine of a placement problem. Devices have TensorFlow's
// names, "/job:worker/task:1/device:CPU:0"; devices that describe themselves alike are of one kind.
#ifndef TFC_PLACER_TASKS_MACHINE_H
#define TFC_PLACER_TASKS_MACHINE_H

#include "placer/model/machine.h"
#include "placer/tasks/links.h"

// `patterns`: the value of --devices, TensorFlow names with '*', separated by commas; a device that no pattern matches
// is left out. NULL: all devices are used. UNAVAILABLE: a pattern matches no device.
TFC_MUST_USE tfc_status tfc_task_machine(const struct tfc_member *member, const struct tfc_cluster_spec *spec,
                                         const char *patterns, const struct tfc_task_link *links, uint32_t link_count,
                                         struct tfc_machine **out);
// The task that has a device of the machine, and the device's number in the task.
struct tfc_task_device {
  uint32_t rank, number;
};
// out [the machine's device count].
TFC_MUST_USE tfc_status tfc_task_devices(const struct tfc_member *member, const struct tfc_cluster_spec *spec,
                                         const struct tfc_machine *machine, struct tfc_task_device *out);

#endif
