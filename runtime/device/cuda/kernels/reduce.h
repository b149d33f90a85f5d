// Reductions over any dimensions, and operations on rows: softmax, cross entropies, ArgMax and ArgMin.
//
// The order of every sum follows from the shape alone, so that results do not depend on the size of the device. A group
// of threads computes each output and combines its partial results pairwise. If there are few outputs with many
// elements each, the elements are reduced in pieces, which a second launch combines.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_REDUCE_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_REDUCE_H

#include "runtime/device/cuda/kernels/types.h"

enum tfc_cuda_reduce_kind {
  TFC_CUDA_REDUCE_SUM,
  TFC_CUDA_REDUCE_SQUARES,
  TFC_CUDA_REDUCE_PROD,
  TFC_CUDA_REDUCE_MAX,
  TFC_CUDA_REDUCE_MIN,
  TFC_CUDA_REDUCE_ALL,
  TFC_CUDA_REDUCE_ANY,
};
enum tfc_cuda_reduce_finish {
  TFC_CUDA_FINISH_NOTHING,
  TFC_CUDA_FINISH_DIVIDE, // divide by the number of elements
  TFC_CUDA_FINISH_ROOT,
  TFC_CUDA_FINISH_HALF,
};

struct tfc_cuda_reduction {
  int64_t outputs, count; // number of outputs, and number of elements that are reduced to each
  int32_t kept_rank, reduced_rank;
  int64_t kept_dims[TFC_CUDA_RANK], kept_strides[TFC_CUDA_RANK]; // of the input, in elements; outputs are dense
  int64_t reduced_dims[TFC_CUDA_RANK], reduced_strides[TFC_CUDA_RANK];
  bool along;            // neighbouring threads take neighbouring reduced elements; otherwise neighbouring outputs
  int32_t lanes;         // threads that share an output; a power of two
  int64_t pieces, piece; // number of pieces of an output, and number of elements in one piece
  int32_t finish;
};
// Sets lanes, pieces and piece.
TFC_CUDA_API void tfc_cuda_reduction_split(struct tfc_cuda_reduction *r);
// Returns the bytes of scratch in device memory that a launch needs.
static inline size_t tfc_cuda_reduction_scratch(const struct tfc_cuda_reduction *r) {
  return r->pieces > 1 ? (size_t)(r->pieces * r->outputs) * 8 : 0;
}
TFC_CUDA_API int tfc_cuda_reduce(int kind, int type, const struct tfc_cuda_reduction *r, const void *x, void *y,
                                 void *scratch, void *stream);

// y = half the sum of the squares of x, for many float32 tensors at once; `partial`: a float for each block, of which
// the last tensor in the list has the number (`end`). Passed to the kernels by value.
enum { TFC_CUDA_SQUARES = 64 };
struct tfc_cuda_squares_item {
  const float *x;
  float *y;
  int64_t count, piece;
  int32_t pieces, lanes, end;
};
struct tfc_cuda_squares {
  int32_t count;
  bool in_pieces; // a tensor has several pieces
  struct tfc_cuda_squares_item items[TFC_CUDA_SQUARES];
};
TFC_CUDA_API void tfc_cuda_squares_add(struct tfc_cuda_squares *list, const float *x, float *y, int64_t count);
TFC_CUDA_API int tfc_cuda_squares_run(const struct tfc_cuda_squares *list, float *partial, void *stream);

// y [outer, inner] = the index along n of the largest element (`least`: the smallest) of x [outer, n, inner]. Of equal
// elements the first one counts; NaN counts only if all n are NaN. tfc_cuda_arg_scratch: bytes of scratch in device
// memory that a launch needs.
TFC_CUDA_API size_t tfc_cuda_arg_scratch(int64_t outer, int64_t n, int64_t inner);
TFC_CUDA_API int tfc_cuda_arg(int type, int out_type, bool least, int64_t outer, int64_t n, int64_t inner,
                              const void *x, void *y, void *scratch, void *stream);

// x and y are [rows, n].
TFC_CUDA_API int tfc_cuda_softmax(int type, bool log, int64_t rows, int64_t n, const void *x, void *y, void *stream);
// logits and backprop are [rows, n], labels (int32 or int64) and loss are [rows]. For a label out of range the row's
// results are NaN.
TFC_CUDA_API int tfc_cuda_sparse_cross_entropy(int type, int label_type, int64_t rows, int64_t n, const void *logits,
                                               const void *labels, void *loss, void *backprop, void *stream);
struct tfc_cuda_dense_rows { // strides in elements; 0: the dimension is broadcast
  int64_t rows, n, logits_row, logits_column, labels_row, labels_column;
};
TFC_CUDA_API int tfc_cuda_cross_entropy(int type, const struct tfc_cuda_dense_rows *r, const void *logits,
                                        const void *labels, void *loss, void *backprop, void *stream);

#endif
