// Pinned memory through which tensors of the host are copied. Any thread may call these functions.
#ifndef TFC_RUNTIME_DEVICE_CUDA_STAGING_H
#define TFC_RUNTIME_DEVICE_CUDA_STAGING_H

#include "runtime/device/cuda/device.h"

// Takes one piece of at least `bytes`, from the device's list or newly allocated.
TFC_MUST_USE tfc_status tfc_cuda_staging_take(struct tfc_cuda_device *d, size_t bytes, struct tfc_cuda_staging **out);
// Allocates pieces for that many bytes; all but the last are filled completely. If an allocation fails, *out has the
// pieces before it.
TFC_MUST_USE tfc_status tfc_cuda_staging_take_pieces(struct tfc_cuda_device *d, size_t bytes,
                                                     struct tfc_cuda_staging **out);
// Gives back all pieces that `next` links; NULL is fine.
void tfc_cuda_staging_give(struct tfc_cuda_device *d, struct tfc_cuda_staging *pieces);
void tfc_cuda_staging_free(struct tfc_cuda_device *d);

#endif
