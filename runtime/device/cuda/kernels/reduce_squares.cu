// Sums of squares of many tensors: one launch for all tensors, and one that combines the pieces of long ones. A tensor
// is divided as tfc_cuda_reduce divides it, so its sum has the same bits.
#include "runtime/device/cuda/kernels/reduce.cuh"

namespace tfc {
namespace {

typedef squares_of<f32> squares;

// Block b reduces a piece of the first tensor whose `end` is greater than b.
__global__ void squares_kernel(tfc_cuda_squares list, f32 *partial) {
  __shared__ f32 shared[THREADS];
  int k = 0, local;
  while ((int)blockIdx.x >= list.items[k].end) k++;
  const tfc_cuda_squares_item &item = list.items[k];
  const int64_t piece = (int)blockIdx.x - (item.end - item.pieces);
  tfc_cuda_reduction r = {};
  r.outputs = 1, r.count = item.count;
  r.kept_rank = r.reduced_rank = 1;
  r.kept_dims[0] = 1;
  r.reduced_dims[0] = item.count, r.reduced_strides[0] = 1;
  r.along = true;
  r.lanes = item.lanes, r.pieces = item.pieces, r.piece = item.piece;
  const group g = group_of((int)threadIdx.x, item.lanes, true, &local);
  f32 a = squares::none();
  if (local == 0) a = take<squares, f32>(r, item.x, 0, piece, g.lane);
  a = join_group(a, shared, g, squares());
  if (local || g.lane) return;
  if (item.pieces > 1)
    partial[blockIdx.x] = a;
  else
    *item.y = finished(a, TFC_CUDA_FINISH_HALF, item.count);
}

// Block k combines the pieces of tensor k.
__global__ void join_squares_kernel(tfc_cuda_squares list, const f32 *partial) {
  __shared__ f32 shared[THREADS];
  const tfc_cuda_squares_item &item = list.items[blockIdx.x];
  const int lanes = join_lanes(item.pieces), begin = item.end - item.pieces;
  int output;
  if (item.pieces <= 1) return;
  const group g = group_of((int)threadIdx.x, lanes, false, &output);
  f32 a = squares::none();
  for (int p = g.lane; output == 0 && p < item.pieces; p += lanes) a = squares()(a, partial[begin + p]);
  a = join_group(a, shared, g, squares());
  if (output == 0 && !g.lane) *item.y = finished(a, TFC_CUDA_FINISH_HALF, item.count);
}

} // namespace
} // namespace tfc

TFC_CUDA_API void tfc_cuda_squares_add(tfc_cuda_squares *list, const float *x, float *y, int64_t count) {
  tfc_cuda_reduction r = {};
  r.outputs = 1, r.count = count, r.along = true;
  tfc_cuda_reduction_split(&r);
  tfc_cuda_squares_item *item = &list->items[list->count++];
  item->x = x, item->y = y, item->count = count;
  item->piece = r.piece, item->pieces = (int32_t)r.pieces, item->lanes = r.lanes;
  item->end = (item > list->items ? item[-1].end : 0) + item->pieces;
  list->in_pieces = list->in_pieces || r.pieces > 1;
}

TFC_CUDA_API int tfc_cuda_squares_run(const tfc_cuda_squares *list, float *partial, void *stream) {
  using namespace tfc;
  const unsigned blocks = (unsigned)list->items[list->count - 1].end;
  int failed = launch_shared(squares_kernel, blocks, THREADS, stream, *list, partial);
  if (failed || !list->in_pieces) return failed;
  return launch_shared(join_squares_kernel, (unsigned)list->count, THREADS, stream, *list, (const f32 *)partial);
}
