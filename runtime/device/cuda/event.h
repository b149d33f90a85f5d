// CUDA events with several waiters, and the timeline semaphores that CUDA devices signal with them.
//
// The device's thread records an event after its work and publishes it for a value of the semaphore. Another CUDA
// stream that waits for that value waits for the event on the device, without the host. When the event is reached, the
// device's finisher also sets the value on the host, for all other waiters.
#ifndef TFC_RUNTIME_DEVICE_CUDA_EVENT_H
#define TFC_RUNTIME_DEVICE_CUDA_EVENT_H

#include <pthread.h>

#include "runtime/device/cuda/api.h"
#include "runtime/device/cuda/kernel.h"
#include "runtime/device/driver.h"

struct tfc_cuda_pool;  // the events of one device; it exists until the last mark has returned
struct tfc_cuda_mark { // a recorded event
  struct tfc_cuda_pool *pool;
  tfc_cuda_event event;
  tfc_cuda_stream stream; // the stream that it was recorded on
  _Atomic int32_t references;
  // When the stream has come to the mark, it writes this value to the flag (flag.h). NULL: it writes none.
  _Atomic uint32_t *flag;
  uint32_t flag_value;
  struct tfc_cuda_mark *next;        // links marks that are not in use
  struct tfc_cuda_mark *made_before; // links all marks of the pool
};
struct tfc_cuda_device;
// By CUDA's documentation an event and the stream that it is recorded on are of one context, and a green context's
// stream is of the green context. Drivers are known to take events of the primary context, too, which any thread can
// make at any time; where one does not, all events of the device are made with its green context current.
//
// Finds out which, once the device's streams are there and before any event is made.
TFC_MUST_USE tfc_status tfc_cuda_events_open(struct tfc_cuda_device *d);
// Makes an event that the device's streams take. Returns CUDA's error.
TFC_MUST_USE int tfc_cuda_event_make(struct tfc_cuda_device *d, bool timing, tfc_cuda_event *out);
// The same for a library's kernels (kernel.h). The caller holds launch_lock.
TFC_MUST_USE int tfc_cuda_library_event(struct tfc_cuda_library *library, bool timing, struct CUevent_st **out);

TFC_MUST_USE tfc_status tfc_cuda_pool_create(struct tfc_cuda_device *d, bool timing, struct tfc_cuda_pool **out);
// Destroys the events and releases the creator's reference; NULL is fine. All work of the device has ended.
void tfc_cuda_pool_release(struct tfc_cuda_pool *pool);
// Records a mark on the stream now; the caller holds its only reference. *out_error: CUDA's error if it failed.
TFC_MUST_USE tfc_status tfc_cuda_mark_record(struct tfc_cuda_pool *pool, tfc_cuda_stream stream,
                                             struct tfc_cuda_mark **out, int *out_error);
void tfc_cuda_mark_retain(struct tfc_cuda_mark *mark);
void tfc_cuda_mark_release(struct tfc_cuda_mark *mark); // NULL is fine

// Publishes that `value` is reached when all `marks` are reached. One thread publishes the values of a semaphore, in
// ascending order. `host_only`: the value tells host code something (that a copy to host memory has ended), so waiters
// wait on the host.
TFC_MUST_USE tfc_status tfc_cuda_publish(struct tfc_semaphore *s, uint64_t value, struct tfc_cuda_mark *const *marks,
                                         uint32_t count, bool host_only);
// Returns when `value` is reached, or when the stream waits for the marks that were published for it. *out_from: the
// ticks at which it was reached (0: before the call).
TFC_MUST_USE tfc_status tfc_cuda_wait(const struct tfc_cuda_api *api, tfc_cuda_stream stream, struct tfc_semaphore *s,
                                      uint64_t value, bool on_host, int64_t spin_ns, uint64_t *out_from,
                                      int *out_error);

#endif
