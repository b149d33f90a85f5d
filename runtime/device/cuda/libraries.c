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
  int failed = 0;
  if (!d->blaslt) {
    tfc_cuda_memory_enter();
    failed = d->api->blaslt_create ? d->api->blaslt_create(&d->blaslt, &error) : 1;
    tfc_cuda_memory_leave();
  }
  if (failed) return library_failed(d, "cuBLASLt", error);
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

static int make_cudnn(struct tfc_cuda_device *d, const char **out_error) {
  if (!d->api->cudnn_create) return 1;
  tfc_cuda_memory_enter(); // after green_lock, which others, too, hold when they allocate in the green context
  const int error = d->api->cudnn_create(d->compute, &d->cudnn, out_error);
  tfc_cuda_memory_leave();
  return error;
}

// A library may require that its handle belongs to the context of its stream. So if a handle for a green context's
// stream cannot be made in the primary context, it is made with the green context current, and then also used in that
// way.
tfc_status tfc_cuda_cudnn_enter(struct tfc_cuda_device *d, struct cudnnContext **out) {
  const struct tfc_cuda_api *api = d->api;
  const char *error = "it is not there", *green_error = error;
  if (!d->cudnn && make_cudnn(d, &error)) {
    if (!api->cudnn_create || !d->partition || !api->push || tfc_cuda_green_enter(d))
      return library_failed(d, "cuDNN", error);
    d->pushed = true;
    if (make_cudnn(d, &green_error))
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
void tfc_cuda_libraries_close(struct tfc_cuda_device *d) {
  struct cudnnContext *handle = NULL;
  if (d->cudnn) tfc_status_free(tfc_cuda_cudnn_enter(d, &handle));
  tfc_cuda_memory_enter();
  if (d->blaslt) (void)d->api->blaslt_destroy(d->blaslt);
  if (d->cudnn) (void)d->api->cudnn_destroy(d->cudnn);
  tfc_cuda_memory_leave();
  tfc_cuda_cudnn_leave(d);
}

tfc_status tfc_cuda_cudnn(struct tfc_cuda_library *library, struct cudnnContext **out) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(library->device);
  d->cudnn_used = true;
  return tfc_cuda_cudnn_enter(d, out);
}
