// Reductions over any dimensions, and what is made of rows: softmax, cross entropies, the place of the largest.
//
// The order of every sum follows from the shape alone, so that results do not depend on the device's size: each output
// is made by a group of threads, whose partial results are joined pairwise; few outputs of many elements are made in
// pieces that a second launch joins.
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
  TFC_CUDA_FINISH_DIVIDE, // by the number of elements
  TFC_CUDA_FINISH_ROOT,
  TFC_CUDA_FINISH_HALF,
};

struct tfc_cuda_reduction {
  int64_t outputs, count; // how many outputs, of how many elements each
  int32_t kept_rank, reduced_rank;
  int64_t kept_dims[TFC_CUDA_RANK], kept_strides[TFC_CUDA_RANK]; // of the input, in elements; outputs are dense
  int64_t reduced_dims[TFC_CUDA_RANK], reduced_strides[TFC_CUDA_RANK];
  bool along;            // neighbouring threads take neighbouring reduced elements; else neighbouring outputs
  int32_t lanes;         // threads that share an output; a power of two
  int64_t pieces, piece; // pieces of that many elements each
  int32_t finish;
};
// Chooses lanes and pieces.
TFC_CUDA_API void tfc_cuda_reduction_split(struct tfc_cuda_reduction *r);
// Device bytes that a launch needs.
static inline size_t tfc_cuda_reduction_scratch(const struct tfc_cuda_reduction *r) {
  return r->pieces > 1 ? (size_t)(r->pieces * r->outputs) * 8 : 0;
}
TFC_CUDA_API int tfc_cuda_reduce(int kind, int type, const struct tfc_cuda_reduction *r, const void *x, void *y,
                                 void *scratch, void *stream);

// y [outer, inner] = place along n of the largest (smallest) of x [outer, n, inner]; the first of equals, a NaN only
// where there is nothing else. A launch needs that much device memory.
TFC_CUDA_API size_t tfc_cuda_arg_scratch(int64_t outer, int64_t n, int64_t inner);
TFC_CUDA_API int tfc_cuda_arg(int type, int out_type, bool least, int64_t outer, int64_t n, int64_t inner,
                              const void *x, void *y, void *scratch, void *stream);

// y [rows, n]
TFC_CUDA_API int tfc_cuda_softmax(int type, bool log, int64_t rows, int64_t n, const void *x, void *y, void *stream);
// logits, backprop [rows, n], loss [rows]; labels of int32 or int64. A label out of range makes NaN.
TFC_CUDA_API int tfc_cuda_sparse_cross_entropy(int type, int label_type, int64_t rows, int64_t n, const void *logits,
                                               const void *labels, void *loss, void *backprop, void *stream);
struct tfc_cuda_dense_rows { // strides in elements; 0: one value for all
  int64_t rows, n, logits_row, logits_column, labels_row, labels_column;
};
TFC_CUDA_API int tfc_cuda_cross_entropy(int type, const struct tfc_cuda_dense_rows *r, const void *logits,
                                        const void *labels, void *loss, void *backprop, void *stream);

#endif
