// For all files that call cuDNN: turns its errors into statuses, and element types into its names for them.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_CUDNN_CALL_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_LIBRARY_CUDNN_CALL_H

#include <cudnn.h>

#include "runtime/base/status.h"
#include "runtime/graph/dtype.h"

static inline tfc_status tfc_cudnn_failed(cudnnStatus_t code, const char *what) {
  return tfc_status_make(code == CUDNN_STATUS_NOT_SUPPORTED ? TFC_UNIMPLEMENTED : TFC_INTERNAL, "cuDNN: %s: %s", what,
                         cudnnGetErrorString(code));
}
// For functions that have a status `s` and a label `out`.
#define TFC_CUDNN_CHECK(call)                                                                                          \
  do {                                                                                                                 \
    cudnnStatus_t code_ = (call);                                                                                      \
    if (code_ != CUDNN_STATUS_SUCCESS) {                                                                               \
      s = tfc_cudnn_failed(code_, #call);                                                                              \
      goto out;                                                                                                        \
    }                                                                                                                  \
  } while (0)

static inline cudnnDataType_t tfc_cudnn_type(int32_t t) {
  return t == TFC_FLOAT    ? CUDNN_DATA_FLOAT
         : t == TFC_DOUBLE ? CUDNN_DATA_DOUBLE
         : t == TFC_HALF   ? CUDNN_DATA_HALF
                           : CUDNN_DATA_BFLOAT16;
}

#endif
