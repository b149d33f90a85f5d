// Copies of single tensors on the host, for the drivers of host-backed devices.
#ifndef TFC_RUNTIME_DEVICE_COPY_H
#define TFC_RUNTIME_DEVICE_COPY_H

#include "runtime/device/driver.h"

// Copies once, on the calling thread: between the host and devices of any address space. Allocates the target if it has
// no place.
TFC_MUST_USE tfc_status tfc_runner_copy(const struct tfc_copy *copy);
// Runs a copy of a step, and writes its trace record. If it cannot be made, the step fails.
void tfc_runner_copy_step(struct tfc_device *device, const struct tfc_copy *copy, struct tfc_step *step);

// `read` and `write` of a driver whose tensors are in the host's memory.
TFC_MUST_USE tfc_status tfc_host_read(struct tfc_device *device, const struct tfc_tensor *source, void *target);
TFC_MUST_USE tfc_status tfc_host_write(struct tfc_device *device, const void *source, struct tfc_tensor *target);

#endif
