// The sizes of a convolution over two or three dimensions with channels last, or of one of its gradients. The kernels
// of conv/ and depthwise/ read them when a plan is made, to decide whether they can run an operation.
#ifndef TFC_RUNTIME_DEVICE_CPU_CONV_SIZES_H
#define TFC_RUNTIME_DEVICE_CPU_CONV_SIZES_H

#include "runtime/device/cpu/kernels.h"

// Which of the three is computed: the convolution, the gradient of its input, or that of its filter. It is the variant
// of a kernel's row.
enum tfc_conv_role { TFC_CONV_FORWARD, TFC_CONV_INPUT, TFC_CONV_FILTER };

// x [batch, in, in, channels], filter [size, size, depth, filters], y [batch, out, out, made]. `depth`: input
// channels that one filter reads; `made`: channels of y. Dimension 0 is rows, 1 columns, 2 the planes of a volume,
// which come before rows in memory (an image has one).
struct tfc_conv_sizes {
  enum tfc_conv_role role;
  tfc_dtype dtype;
  int64_t batch, in[3], out[3], channels, depth, filters, made;
  int64_t size[3], stride[3], dilation[3], before[3]; // before: cells of padding
};
// False: the layout is not channels last, or a shape is unknown, does not match the others, or has no elements.
bool tfc_conv_sizes_read(const struct tfc_cpu_prepare *p, struct tfc_conv_sizes *out);
// Finds a convolution's window and the shape of its result. False: the layout is not channels last, a shape is unknown
// or has no elements, or the window does not fit into x.
bool tfc_conv_result(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *x,
                     const struct tfc_shape *filter, struct tfc_window *out_window, struct tfc_shape *out);

#endif
