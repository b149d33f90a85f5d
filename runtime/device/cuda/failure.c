// Turns the error of a CUDA call into a status with the device's name. An error after which CUDA refuses every call
// marks the device as lost.
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/device.h"

tfc_status tfc_cuda_error(struct tfc_cuda_device *d, int error, const char *doing) {
  (void)d->api->last_error(); // clears the error, because libraries check for one after their own launches
  if (error == TFC_CUDA_OUT_OF_MEMORY)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "%s: out of memory %s (%s)", d->base.info.name, doing,
                           d->api->error_name(error));
  bool sticky = tfc_cuda_error_is_sticky(error);
  int none = 0;
  if (sticky) (void)atomic_compare_exchange_strong(&d->dead, &none, error);
  return tfc_status_make(TFC_UNAVAILABLE, "%s: %s: %s (%s)%s", d->base.info.name, doing, d->api->error_text(error),
                         d->api->error_name(error), sticky ? ": the device is lost to this process" : "");
}

tfc_status tfc_cuda_library_error(struct tfc_cuda_device *d, tfc_status s) {
  if (atomic_load(&d->dead)) return s;
  size_t left = 0, total = 0;
  int error = d->api->last_error();
  // A library with its own copy of the CUDA runtime does not show its errors here. But the driver returns a sticky
  // error to every caller.
  if (!tfc_cuda_error_is_sticky(error)) error = d->api->memory_info(&left, &total);
  if (!tfc_cuda_error_is_sticky(error)) return s;
  tfc_status lost = tfc_status_annotate(tfc_cuda_error(d, error, "seen by a library, caused here or before"), "%s",
                                        tfc_status_message(s));
  tfc_status_free(s);
  return lost;
}

tfc_status tfc_cuda_check_alive(struct tfc_cuda_device *d) {
  int error = atomic_load_explicit(&d->dead, memory_order_relaxed);
  if (__builtin_expect(error == 0, 1)) return NULL;
  return tfc_status_make(TFC_UNAVAILABLE, "%s stopped working: %s (%s)", d->base.info.name, d->api->error_text(error),
                         d->api->error_name(error));
}
