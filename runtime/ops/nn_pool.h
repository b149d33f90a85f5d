// What pooling (nn_pool.c) and its gradients (nn_pool_grad.c) share: where the windows are, which cells they have, and
// the shape functions and costs of both.
#ifndef TFC_RUNTIME_OPS_NN_POOL_H
#define TFC_RUNTIME_OPS_NN_POOL_H

#include "runtime/ops/nn_window.h"

struct tfc_pool {
  struct tfc_image x, y; // the image, and what pooling makes of it
  struct tfc_window w;
  int64_t before[3]; // padding before the image
  tfc_dtype dtype;
  const void *in, *grad;
  void *out;
  int64_t *argmax; // [elements of y] the element of x that is each window's maximum
  bool average;
};

enum { TFC_POOL_CHANNELS = 256 }; // how many channels of a window are computed at a time

// Returns the rank of the op's images: 5 for ops named ...3D..., otherwise 4.
int tfc_pool_rank(const struct tfc_node *n);
TFC_MUST_USE tfc_status tfc_pool_prepare(struct tfc_prepare_ctx *ctx); // a row's `prepare`
// Describes the pooling of an image of shape `x` by the kernel's node; *out_y: the shape that it gives.
TFC_MUST_USE tfc_status tfc_pool_describe(struct tfc_kernel_ctx *ctx, const struct tfc_shape *x, tfc_dtype dtype,
                                          struct tfc_pool *p, struct tfc_shape *out_y);
// Describes the pooling of float32 images of shape `x` by a node whose window is in its attributes.
TFC_MUST_USE tfc_status tfc_pool_of_node(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *x,
                                         struct tfc_pool *out, struct tfc_shape *out_y);
// Writes maxima of float32 with channels last, not pooled over: output positions [begin, end). Any thread.
void tfc_pool_maxima(struct tfc_pool *p, int64_t begin, int64_t end);
// Finds the index of each maximum, with channels last, within the batch: for images [begin, end) of the struct tfc_pool
// `arg`. Writes the maxima, too, if `out` is set.
void tfc_pool_argmax(void *arg, int64_t begin, int64_t end);

tfc_status tfc_pool_shape(struct tfc_shape_ctx *ctx); // of pooling input 0
void tfc_pool_cost(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                   const struct tfc_shape *outputs, struct tfc_op_cost *out);
// Estimates the cost if the window's size is not known before the step: each output is assumed to come from 4 cells.
void tfc_pool_cost_given(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                         const struct tfc_shape *outputs, struct tfc_op_cost *out);

// Finds the window of output position `at`: cells [lo, hi) of the image in each dimension.
static inline void tfc_pool_window(const struct tfc_pool *p, const int64_t at[3], int64_t lo[3], int64_t hi[3]) {
  for (int k = 0; k < 3; k++) {
    lo[k] = at[k] * p->w.stride[k] - p->before[k];
    hi[k] = lo[k] + p->w.size[k] < p->x.size[k] ? lo[k] + p->w.size[k] : p->x.size[k];
    if (lo[k] < 0) lo[k] = 0;
  }
}
// Converts the number of an output position to its image and its place in it.
static inline void tfc_pool_position(const struct tfc_pool *p, int64_t row, int64_t *n, int64_t at[3]) {
  for (int k = 2; k >= 0; k--) at[k] = row % p->y.size[k], row /= p->y.size[k];
  *n = row;
}
// Goes on to the next output position; behind the last one of an image comes the first one of the next image.
static inline void tfc_pool_next(const struct tfc_pool *p, int64_t *n, int64_t at[3]) {
  for (int k = 2; k >= 0 && ++at[k] == p->y.size[k]; k--) at[k] = 0, *n += k == 0;
}
// Returns the index of the first channel of a place in image `n`.
static inline int64_t tfc_pool_place(const struct tfc_image *im, int64_t n, const int64_t at[3]) {
  return n * im->batch_stride + at[0] * im->stride[0] + at[1] * im->stride[1] + at[2] * im->stride[2];
}
#define TFC_POOL_EACH_CELL(at, lo, hi)                                                                                 \
  for (int64_t at[3] = {lo[0], 0, 0}; at[0] < hi[0]; at[0]++)                                                          \
    for (at[1] = lo[1]; at[1] < hi[1]; at[1]++)                                                                        \
      for (at[2] = lo[2]; at[2] < hi[2]; at[2]++)

#endif
