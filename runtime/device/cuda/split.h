// Parts of one GPU (green contexts) as devices. Any thread may call these functions.
#ifndef TFC_RUNTIME_DEVICE_CUDA_SPLIT_H
#define TFC_RUNTIME_DEVICE_CUDA_SPLIT_H

#include "runtime/base/status.h"
#include "runtime/device/cuda/api.h"

// *out_size is the number of multiprocessors of each of `count` virtual devices on this GPU. INVALID_ARGUMENT: the GPU
// cannot be divided into so many equal parts.
TFC_MUST_USE tfc_status tfc_cuda_split_plan(const struct tfc_cuda_api *api, int ordinal, uint32_t count, int *out_size);
// Returns partition `index` of these `count`; the first call makes all of them. They are freed when the last device is
// closed.
TFC_MUST_USE tfc_status tfc_cuda_split_take(const struct tfc_cuda_api *api, int ordinal, uint32_t index,
                                            struct tfc_cuda_partition **out);
void tfc_cuda_split_give(struct tfc_cuda_partition *partition);

#endif
