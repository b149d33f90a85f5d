// Sliding windows: the geometry that convolutions, pools and dilations share. One, two or three spatial dimensions are
// treated as three; leading ones are 1.
#ifndef TFC_RUNTIME_OPS_NN_WINDOW_H
#define TFC_RUNTIME_OPS_NN_WINDOW_H

#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

enum tfc_padding { TFC_PADDING_VALID, TFC_PADDING_SAME, TFC_PADDING_EXPLICIT };

// A window as the node's attributes describe it.
struct tfc_window {
  int spatial;         // 2 or 3 dimensions
  bool channels_first; // NCHW, NCDHW
  enum tfc_padding padding;
  int64_t size[3], stride[3], dilation[3]; // size: for pools only, from ksize
  int64_t before[3], after[3];             // for EXPLICIT padding
  int64_t channel_size, channel_stride;    // for pools over channels; otherwise 1
  int64_t batch_size, batch_stride;        // must be 1
};
// Reads ksize (optional), strides, dilations, padding, explicit_paddings and data_format of a node whose images have
// `rank` dimensions (4 or 5). INVALID_ARGUMENT says which attribute is wrong.
TFC_MUST_USE tfc_status tfc_window_read(const struct tfc_graph *g, const struct tfc_node *n, int rank,
                                        struct tfc_window *out);
// Takes the window's size and stride from tensors, which have one int32 number for each dimension of the image.
TFC_MUST_USE tfc_status tfc_window_given(struct tfc_window *w, const struct tfc_tensor *size,
                                         const struct tfc_tensor *stride);
// Return the dimension of the image that is spatial dimension `k` of 3 (k >= 3 - spatial), and the dimension of its
// channels.
static inline int tfc_window_axis(const struct tfc_window *w, int k) {
  return (w->channels_first ? 2 : 1) + k - (3 - w->spatial);
}
static inline int tfc_window_channel_axis(const struct tfc_window *w) {
  return w->channels_first ? 1 : w->spatial + 1;
}
// Computes the number of output positions along dimension `k`, for an input of `in` and a window of `size`, and the
// padding before it. Unknown dimensions give unknown ones. INVALID_ARGUMENT: the window does not fit.
TFC_MUST_USE tfc_status tfc_window_output(const struct tfc_window *w, int k, int64_t in, int64_t size, int64_t *out,
                                          int64_t *out_before);
// As tfc_window_output, for shape functions: here, a window that is larger than the padded input does not fit, even if
// a kernel would only return no positions.
TFC_MUST_USE tfc_status tfc_window_infer(const struct tfc_window *w, int k, int64_t in, int64_t size, int64_t *out);

// An image's sizes and its layout in memory.
struct tfc_image {
  int64_t batch, size[3], channels;
  int64_t batch_stride, stride[3], channel_stride; // in elements
};
void tfc_image_of(const struct tfc_window *w, const struct tfc_shape *shape, struct tfc_image *out);
// Returns the shape, in the window's layout, of an image with these sizes.
struct tfc_shape tfc_image_shape(const struct tfc_window *w, int64_t batch, const int64_t size[3], int64_t channels);

// Finds the cells [*first, *last) of the window that are inside the input, along one dimension, for output position
// `at`.
static inline void tfc_window_cells(int64_t at, int64_t stride, int64_t dilation, int64_t before, int64_t size,
                                    int64_t in, int64_t *first, int64_t *last) {
  int64_t origin = at * stride - before;
  *first = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
  int64_t room = in - origin;
  *last = room <= 0 ? 0 : (room + dilation - 1) / dilation < size ? (room + dilation - 1) / dilation : size;
  if (*last < *first) *last = *first;
}

#endif
