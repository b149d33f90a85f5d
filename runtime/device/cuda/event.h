// Events that many may wait for, and what is behind a timeline semaphore that a CUDA device signals.
//
// The device's thread records an event behind its work and publishes it for a value of the semaphore; another CUDA
// stream that waits for that value waits for the event on the device, without the host. When the event was reached the
// value is also set on the host (by the device's finisher), for everybody else.
#ifndef TFC_RUNTIME_DEVICE_CUDA_EVENT_H
#define TFC_RUNTIME_DEVICE_CUDA_EVENT_H

#include <pthread.h>

#include "runtime/device/cuda/api.h"
#include "runtime/device/driver.h"

struct tfc_cuda_pool;  // of one device's events; lives until the last event is back
struct tfc_cuda_mark { // a recorded event
  struct tfc_cuda_pool *pool;
  tfc_cuda_event event;
  tfc_cuda_stream stream; // where it was recorded
  _Atomic int32_t references;
  struct tfc_cuda_mark *next; // in the pool
};
TFC_MUST_USE tfc_status tfc_cuda_pool_create(const struct tfc_cuda_api *api, int ordinal, const char *device,
                                             bool timing, struct tfc_cuda_pool **out);
void tfc_cuda_pool_release(struct tfc_cuda_pool *pool); // its creator's share; NULL is fine
// Records a mark on the stream now; one reference. *out_error: CUDA's, where it failed.
TFC_MUST_USE tfc_status tfc_cuda_mark_record(struct tfc_cuda_pool *pool, tfc_cuda_stream stream,
                                             struct tfc_cuda_mark **out, int *out_error);
void tfc_cuda_mark_retain(struct tfc_cuda_mark *mark);
void tfc_cuda_mark_release(struct tfc_cuda_mark *mark); // NULL is fine

// Publishes that `value` is reached when `marks` are. Values of one semaphore are published in ascending order by one
// thread. `host_only`: what is signalled is for host code (a copy to host memory): waiters wait on the host.
TFC_MUST_USE tfc_status tfc_cuda_publish(struct tfc_semaphore *s, uint64_t value, struct tfc_cuda_mark *const *marks,
                                         uint32_t count, bool host_only);
// Returns when `value` is reached, or when the stream has been told to wait for what was published for it. `from`:
// ticks since when it was there (0: it was there already).
TFC_MUST_USE tfc_status tfc_cuda_wait(const struct tfc_cuda_api *api, tfc_cuda_stream stream, struct tfc_semaphore *s,
                                      uint64_t value, bool on_host, int64_t spin_ns, uint64_t *out_from,
                                      int *out_error);

#endif
