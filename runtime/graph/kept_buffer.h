// Large host buffers whose memory is kept when they are released, for the next one. New memory costs a page fault for
// every 4 KB, which takes longer than filling it. Used for tensors that are sent between tasks.
#ifndef TFC_RUNTIME_GRAPH_KEPT_BUFFER_H
#define TFC_RUNTIME_GRAPH_KEPT_BUFFER_H

#include "runtime/graph/tensor.h"

// As tfc_buffer_create_host, but takes the memory of a kept block if one fits. Small buffers are not kept. Any thread.
TFC_MUST_USE tfc_status tfc_buffer_create_kept(size_t size, struct tfc_buffer **out);
// As tfc_tensor_clone, but into a buffer of tfc_buffer_create_kept if the elements are plain.
TFC_MUST_USE tfc_status tfc_tensor_clone_kept(const struct tfc_tensor *t, struct tfc_tensor *out);

#endif
