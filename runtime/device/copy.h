// Copies of single tensors on the host, for the drivers of host-backed devices.
#ifndef TFC_RUNTIME_DEVICE_COPY_H
#define TFC_RUNTIME_DEVICE_COPY_H

#include "runtime/device/driver.h"

// Copies once, on the calling thread: between the host and devices of any address space. Allocates the target if it has
// no place.
TFC_MUST_USE tfc_status tfc_runner_copy(const struct tfc_copy *copy);
// Runs a copy of a step, and writes its trace record. If it cannot be made, the step fails.
void tfc_runner_copy_step(struct tfc_device *device, const struct tfc_copy *copy, struct tfc_step *step);

#endif
