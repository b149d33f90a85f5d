// The devices of all tasks and the links between them, as the machine of a placement problem. Devices have TensorFlow's
// names, "/job:worker/task:1/device:CPU:0"; devices that describe themselves alike are of one kind.
#ifndef TFC_PLACER_TASKS_MACHINE_H
#define TFC_PLACER_TASKS_MACHINE_H

#include "placer/model/machine.h"
#include "placer/tasks/links.h"

// `patterns`: as --devices, TensorFlow names with '*', divided by commas: a device that none of them matches is left
// out. NULL: all. UNAVAILABLE: a pattern matches no device.
TFC_MUST_USE tfc_status tfc_task_machine(const struct tfc_member *member, const struct tfc_cluster_spec *spec,
                                         const char *patterns, const struct tfc_task_link *links, uint32_t link_count,
                                         struct tfc_machine **out);
// Which task and which of its devices the machine's device is.
struct tfc_task_device {
  uint32_t rank, number;
};
// out [machine's device count].
TFC_MUST_USE tfc_status tfc_task_devices(const struct tfc_member *member, const struct tfc_cluster_spec *spec,
                                         const struct tfc_machine *machine, struct tfc_task_device *out);

#endif
