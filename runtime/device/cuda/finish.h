// Work that was submitted: a thread waits for its end on the device, and does what comes after it.
#ifndef TFC_RUNTIME_DEVICE_CUDA_FINISH_H
#define TFC_RUNTIME_DEVICE_CUDA_FINISH_H

#include "runtime/device/cuda/device.h"

struct tfc_cuda_timing { // an interval on the device; its times are read when its end was reached
  struct tfc_cuda_mark *begin, *end;
  uint32_t id;
  uint16_t kind;
  uint64_t bytes;
};
struct tfc_cuda_end { // malloc'd; freed after it was handled
  struct tfc_cuda_device *device;
  struct tfc_step *step;
  struct tfc_cuda_mark *marks[TFC_CUDA_COPY_STREAMS];
  uint32_t mark_count;
  bool span;            // extend the step's span of the device (tfc_span) to the end of this work
  uint32_t first, last; // for a segment: 1 + its first and its last node, to name the segment if it does not end
  struct tfc_trace_buffer *trace;
  struct tfc_cuda_timing *timings;
  uint32_t timing_count;
  bool host_dated; // a transfer without timings: the trace gets the times at which the host issued it and saw its end
  uint32_t host_id;
  uint64_t host_begin, host_traced_bytes;
  struct tfc_cuda_staging *staging; // given back to the pool; before that, copied to `host_target` if that is set
  void *host_target;
};
// Passes `end` to the thread that waits for the device; that thread sets the signals when the marks are reached. Takes
// `end` also on failure (then the caller must set the signals).
TFC_MUST_USE tfc_status tfc_cuda_finish(struct tfc_queue *queue, struct tfc_cuda_end *end,
                                        const struct tfc_timepoint *signals, uint32_t signal_count);
// Sets the clock again at the beginning of a step, if it was set long ago and the device is idle. Each launching thread
// calls this before its first timed event.
TFC_MUST_USE tfc_status tfc_cuda_clock_set(struct tfc_cuda_device *d, const struct tfc_step *step);

#endif
