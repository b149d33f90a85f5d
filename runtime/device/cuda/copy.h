// Copies to, from and between GPUs, beside compute.
#ifndef TFC_RUNTIME_DEVICE_CUDA_COPY_H
#define TFC_RUNTIME_DEVICE_CUDA_COPY_H

#include "runtime/device/cuda/device.h"

// Members of the drivers' vtable (struct tfc_device_driver in runtime/device/driver.h says what each does).
TFC_MUST_USE tfc_status tfc_cuda_copy(struct tfc_device *device, const struct tfc_copy *copy, struct tfc_step *step,
                                      const struct tfc_timepoint *waits, uint32_t wait_count,
                                      const struct tfc_timepoint *signals, uint32_t signal_count);
TFC_MUST_USE tfc_status tfc_cuda_read_tensor(struct tfc_device *device, const struct tfc_tensor *source, void *target);
TFC_MUST_USE tfc_status tfc_cuda_write_tensor(struct tfc_device *device, const void *source, struct tfc_tensor *target);
TFC_MUST_USE tfc_status tfc_cuda_await(struct tfc_device *device, const struct tfc_timepoint *waits,
                                       uint32_t wait_count);

#endif
