// Makes the handles of cuBLASLt and cuDNN on first use, in the context of their device.
#include "runtime/device/cuda/libraries.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"

static tfc_status library_failed(struct tfc_cuda_device *d, const char *library, const char *error) {
  return tfc_status_make(TFC_UNAVAILABLE, "%s: %s cannot be used: %s", d->base.info.name, library, error);
}

tfc_status tfc_cuda_blaslt(struct tfc_cuda_library *library, struct cublasLtContext **out) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(library->device);
  const char *error = "it is not there";
  if (!d->blaslt && (!d->api->blaslt_create || d->api->blaslt_create(&d->blaslt, &error)))
    return library_failed(d, "cuBLASLt", error);
  *out = d->blaslt;
  return NULL;
}

int tfc_cuda_green_enter(struct tfc_cuda_device *d) {
  pthread_mutex_lock(&d->green_lock);
  int error = tfc_cuda_push(d->api, d->partition);
  if (error) pthread_mutex_unlock(&d->green_lock);
  return error;
}
void tfc_cuda_green_leave(struct tfc_cuda_device *d) {
  tfc_cuda_pop(d->api);
  pthread_mutex_unlock(&d->green_lock);
}

// A library may require that its handle belongs to the context of its stream. So if a handle for a green context's
// stream cannot be made in the primary context, it is made with the green context current, and then also used in that
// way.
tfc_status tfc_cuda_cudnn_enter(struct tfc_cuda_device *d, struct cudnnContext **out) {
  const struct tfc_cuda_api *api = d->api;
  const char *error = "it is not there", *green_error = error;
  if (!d->cudnn && (!api->cudnn_create || api->cudnn_create(d->compute, &d->cudnn, &error))) {
    if (!api->cudnn_create || !d->partition || !api->push || tfc_cuda_green_enter(d))
      return library_failed(d, "cuDNN", error);
    d->pushed = true;
    if (api->cudnn_create(d->compute, &d->cudnn, &green_error))
      return tfc_status_make(TFC_UNAVAILABLE, "%s: cuDNN cannot be used: %s; with its green context current: %s",
                             d->base.info.name, error, green_error);
    d->cudnn_green = true;
  } else if (d->cudnn_green && !d->pushed) {
    TFC_CUDA_TRY(d, tfc_cuda_green_enter(d), "entering its green context");
    d->pushed = true;
  }
  *out = d->cudnn;
  return NULL;
}
void tfc_cuda_cudnn_leave(struct tfc_cuda_device *d) {
  if (d->pushed) tfc_cuda_green_leave(d);
  d->pushed = false;
}
tfc_status tfc_cuda_cudnn(struct tfc_cuda_library *library, struct cudnnContext **out) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(library->device);
  d->cudnn_used = true;
  return tfc_cuda_cudnn_enter(d, out);
}
