// Errors of CUDA calls as statuses, and devices that are lost. Any thread may call these functions.
#ifndef TFC_RUNTIME_DEVICE_CUDA_FAILURE_H
#define TFC_RUNTIME_DEVICE_CUDA_FAILURE_H

#include "runtime/device/cuda/device.h"

// Makes a status that names what was being done: RESOURCE_EXHAUSTED where memory ran out, otherwise UNAVAILABLE. A
// sticky error marks the device as dead.
TFC_MUST_USE tfc_status tfc_cuda_error(struct tfc_cuda_device *d, int error, const char *doing);
#define TFC_CUDA_TRY(device, call, doing)                                                                              \
  do {                                                                                                                 \
    int tfc_cuda_error_ = (call);                                                                                      \
    if (__builtin_expect(tfc_cuda_error_ != 0, 0)) return tfc_cuda_error(device, tfc_cuda_error_, doing);              \
  } while (0)
// UNAVAILABLE: an earlier error has made the device unusable.
TFC_MUST_USE tfc_status tfc_cuda_check_alive(struct tfc_cuda_device *d);
// Takes the error `s` of a row's `prepare` or `launch`. A library may report an error of earlier work that made the
// device unusable; then the device is marked as dead, and the returned status says so.
TFC_MUST_USE tfc_status tfc_cuda_library_error(struct tfc_cuda_device *d, tfc_status s);

#endif
