// Segments of operations on a GPU: which kernel each uses, preparing, running, single launches.
#ifndef TFC_RUNTIME_DEVICE_CUDA_SEGMENT_H
#define TFC_RUNTIME_DEVICE_CUDA_SEGMENT_H

#include "runtime/device/cuda/device.h"

struct tfc_cuda_call {               // one operation of a segment
  const struct tfc_cuda_kernel *row; // NULL: on the host, or a view
  bool is_view;
  const char *note;     // for reports: why the host runs it, or which algorithm was chosen
  const char *declined; // why a library declined the operation, so that a simpler kernel runs it on the device; NULL:
                        // no library did
  struct tfc_kernel_ctx ctx;
  uint32_t node;
  const struct tfc_segment_op *op;
  void (*release)(void *state);
  size_t scratch;                  // what it needs of the memory that all kernels of a stream share
  bool uses_cudnn;                 // a launch of it did
  uint32_t first_node, node_count; // the call's nodes in the captured graph
  uint32_t together;               // how many calls, this one and those after it, share its launches; at least 1
};

struct tfc_cuda_capture;
struct tfc_prepared { // a prepared segment; it belongs to the caller of tfc_cuda_prepare_segment
  struct tfc_cuda_device *device;
  const struct tfc_segment *segment;
  struct tfc_cuda_call *calls;
  uint32_t call_count;
  struct tfc_arena arena;
  struct tfc_cuda_capture *capture; // NULL: never tried
};

// Members of the drivers' vtable (struct tfc_device_driver in runtime/device/driver.h says what each does).
TFC_MUST_USE tfc_status tfc_cuda_prepare_segment(struct tfc_device *device, const struct tfc_segment *segment,
                                                 struct tfc_prepared **out);
void tfc_cuda_release_segment(struct tfc_device *device, struct tfc_prepared *prepared);
TFC_MUST_USE tfc_status tfc_cuda_submit(struct tfc_device *device, struct tfc_prepared *prepared, struct tfc_step *step,
                                        const struct tfc_timepoint *waits, uint32_t wait_count,
                                        const struct tfc_timepoint *signals, uint32_t signal_count);
TFC_MUST_USE tfc_status tfc_cuda_launch_one(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                                            struct tfc_kernel_ctx *ctx);
TFC_MUST_USE tfc_status tfc_cuda_launch_timed(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                                              struct tfc_kernel_ctx *ctx, struct tfc_step *step);
bool tfc_cuda_supports(struct tfc_device *device, const struct tfc_op_def *def, tfc_dtype type,
                       const char **out_reason);
const char *tfc_cuda_fallback(const struct tfc_prepared *prepared, uint32_t index);
const char *tfc_cuda_declined(const struct tfc_prepared *prepared, uint32_t index);
tfc_filter_form tfc_cuda_filter_form(struct tfc_device *device, struct tfc_prepare_ctx *ctx);
double tfc_cuda_channels_last_gain_us(struct tfc_device *device, struct tfc_prepare_ctx *ctx);
bool tfc_cuda_has_kernel(const struct tfc_op_def *def, tfc_dtype type);

// Runs call `index` of a segment on the segment's own slots, together with those calls before `end` that share its
// launches. It releases slots after their last reader. *out_next: the next call, or the call that failed.
TFC_MUST_USE tfc_status tfc_cuda_calls_next(struct tfc_cuda_device *d, struct tfc_prepared *p, uint32_t index,
                                            uint32_t end, tfc_cuda_stream stream, uint32_t *out_next);

#endif
