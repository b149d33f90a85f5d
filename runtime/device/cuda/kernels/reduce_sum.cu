// Sums, sums of squares and products, and the entry point for reductions of all kinds.
#include "runtime/device/cuda/kernels/reduce.cuh"

namespace tfc {
int reduce_extreme(int kind, int type, const tfc_cuda_reduction *r, const void *x, void *y, void *scratch,
                   void *stream); // defined in reduce_extreme.cu
}

// Chooses so many pieces that there are `wanted` blocks, which is enough for the largest GPU of today, but no pieces so
// short that threads of a group have nothing to do.
TFC_CUDA_API void tfc_cuda_reduction_split(tfc_cuda_reduction *r) {
  const int64_t wanted = 528, least = 16;
  int64_t lanes = 8; // there are more lanes if they read neighbouring elements, or if there are too few outputs for all
                     // threads
  while (lanes < tfc::THREADS && lanes * 4 < r->count && (r->along || tfc::THREADS / lanes >= 2 * r->outputs))
    lanes *= 2;
  r->lanes = (int32_t)lanes;
  int64_t width = tfc::THREADS / lanes, blocks = (r->outputs + width - 1) / width, pieces = 1;
  if (blocks < wanted / 2) {
    pieces = wanted / (blocks < 1 ? 1 : blocks);
    int64_t most = r->count / (lanes * least);
    pieces = pieces > most ? most : pieces;
  }
  pieces = pieces < 1 ? 1 : pieces;
  r->piece = (r->count + pieces - 1) / pieces;
  // so that each piece begins where a vector access may begin
  if (pieces > 1) r->piece = (r->piece + least - 1) / least * least;
  if (r->piece < 1) r->piece = 1;
  r->pieces = (r->count + r->piece - 1) / r->piece;
  if (r->pieces < 1) r->pieces = 1;
}

TFC_CUDA_API int tfc_cuda_reduce(int kind, int type, const tfc_cuda_reduction *r, const void *x, void *y, void *scratch,
                                 void *stream) {
  using namespace tfc;
#define CASE(t, Op)                                                                                                    \
  case OPS_DT_##t: return reduce<Op<t>, t>(r, x, y, scratch, stream);
  switch (kind) {
  case TFC_CUDA_REDUCE_SUM:
    switch (type) {
      TFC_CUDA_REALS(CASE, sum_of)
    default: return TFC_CUDA_INVALID_VALUE;
    }
  case TFC_CUDA_REDUCE_SQUARES:
    switch (type) {
      OPS_FLOATS(CASE, squares_of)
    default: return TFC_CUDA_INVALID_VALUE;
    }
  case TFC_CUDA_REDUCE_PROD:
    switch (type) {
      TFC_CUDA_REALS(CASE, product_of)
    default: return TFC_CUDA_INVALID_VALUE;
    }
  default: return reduce_extreme(kind, type, r, x, y, scratch, stream);
  }
}
