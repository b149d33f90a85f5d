// Flags in pinned memory, one for each stream whose marks a thread waits for: after a mark, the stream counts its flag
// up. The waiting thread reads the flag and does not ask CUDA, whose answer would take a lock that launching threads
// need.
//
// A flag can be missing (CUDA refuses it, or has no pinned memory): then marks have none, and the event is asked for.
#ifndef TFC_RUNTIME_DEVICE_CUDA_FLAG_H
#define TFC_RUNTIME_DEVICE_CUDA_FLAG_H

#include "runtime/device/cuda/device.h"

void tfc_cuda_flags_open(struct tfc_cuda_device *d);
void tfc_cuda_flags_close(struct tfc_cuda_device *d); // after everything that was launched has ended
// Lets the stream count its flag after `mark`, which was recorded last. `which`: one of the copy streams, or
// TFC_CUDA_COMPUTE. Only one thread may call this for a stream.
enum { TFC_CUDA_COMPUTE = TFC_CUDA_COPY_STREAMS };
void tfc_cuda_flag_after(struct tfc_cuda_device *d, unsigned which, struct tfc_cuda_mark *mark);
static inline bool
tfc_cuda_flags_used(const struct tfc_cuda_device *d) { // false: there are none, or they cannot be relied on
  return atomic_load_explicit(&d->flags_used, memory_order_relaxed);
}
// Whether the mark was reached, which only its flag can tell; false if it has none.
static inline bool tfc_cuda_flag_reached(const struct tfc_cuda_mark *mark) {
  return mark->flag && (int32_t)(atomic_load_explicit(mark->flag, memory_order_acquire) - mark->flag_value) >= 0;
}
// The event of this mark was reached, but its flag stays behind: flags are not used any more.
void tfc_cuda_flags_distrust(struct tfc_cuda_device *d);

#endif
