// Branches of a captured graph: which stream captures which call of a segment, and what it waits for before.
#ifndef TFC_RUNTIME_DEVICE_CUDA_BRANCHES_H
#define TFC_RUNTIME_DEVICE_CUDA_BRANCHES_H

#include "runtime/device/cuda/segment.h"

struct tfc_cuda_branches {           // of calls begin..end of a segment; `at` is a call's number, counted from `begin`
  uint32_t count;                    // streams; the first one is the device's capture stream
  uint8_t *stream;                   // [calls]
  uint32_t *event;                   // [calls] the event that is recorded after it; TFC_NONE: none is
  uint32_t *wait_begin;              // [calls + 2] where in `waits` the events are that its stream waits for before it;
                                     // the last ones are those that the first stream waits for in the end
  uint32_t *waits;                   // event 0 is recorded at the beginning of the capture
  uint32_t event_count;              // without event 0
  size_t scratch[TFC_CUDA_BRANCHES]; // the most that a call of the stream needs
};
// False: one stream is enough, or memory ran out. The segment has an order.
bool tfc_cuda_branches_plan(const struct tfc_prepared *p, uint32_t begin, uint32_t end, struct tfc_cuda_branches *out);
void tfc_cuda_branches_deinit(struct tfc_cuda_branches *b);
tfc_cuda_stream tfc_cuda_branch_stream(const struct tfc_cuda_device *d, uint32_t stream);
// Makes the streams and events that are missing; before the capture begins.
TFC_MUST_USE tfc_status tfc_cuda_branches_open(struct tfc_cuda_device *d, const struct tfc_cuda_branches *b);
void tfc_cuda_branches_close(struct tfc_cuda_device *d);
// To be called when the capture has begun; before a stream captures a call; and after that.
TFC_MUST_USE tfc_status tfc_cuda_branch_begin(struct tfc_cuda_device *d);
TFC_MUST_USE tfc_status tfc_cuda_branch_wait(struct tfc_cuda_device *d, const struct tfc_cuda_branches *b, uint32_t at,
                                             uint32_t stream);
TFC_MUST_USE tfc_status tfc_cuda_branch_ended(struct tfc_cuda_device *d, const struct tfc_cuda_branches *b,
                                              uint32_t at);

#endif
