// Each thread computes the lines of the convolution that some lines of maxima need, in memory that stays in its cache,
// and then these maxima. So the convolution's result, which is often larger than the cache, is never written as a
// whole. The lines of two calls do not overlap, because windows do not (runtime/exec/rewrites/pools.c). An element of
// the convolution is the same chain of multiply-adds in whatever part it is computed, so the result stays the same to
// the bit.
#include "runtime/device/cpu/conv/pooled.h"

#include "runtime/host/gemm/scratch.h"

enum { LINES_BYTES = 96 * 1024 }; // half or less of the second-level caches of today; the filter needs the rest

struct job {
  const struct tfc_conv_sizes *sizes;
  const struct tfc_pool *pool;
  const struct tfc_kernel_finish *finish; // NULL: nothing follows on the convolution
  struct tfc_gemm_product product;
  int64_t chunk; // lines of maxima
  float *y;
  _Atomic bool failed;
};

// The lines [lo, hi) of the convolution in each of its dimensions (planes, lines, columns) that maxima at these lines
// of one plane need.
static void needs(const struct tfc_pool *pool, int64_t plane, int64_t first, int64_t last, int64_t lo[3],
                  int64_t hi[3]) {
  int64_t end[3], ignored[3];
  tfc_pool_window(pool, (int64_t[3]){plane, first, 0}, lo, ignored);
  tfc_pool_window(pool, (int64_t[3]){plane, last - 1, 0}, ignored, end);
  hi[0] = end[0], hi[1] = end[1], hi[2] = pool->x.size[2], lo[2] = 0;
}

// Computes lines [first, last) of maxima of one plane of image n.
static bool run_lines(const struct job *j, int64_t n, int64_t plane, int64_t first, int64_t last) {
  const struct tfc_pool *pool = j->pool;
  const int64_t filters = j->sizes->filters, columns = j->sizes->out[1];
  int64_t lo[3], hi[3];
  needs(pool, plane, first, last, lo, hi);
  const int64_t lines = hi[1] - lo[1], rows = lines * columns;
  float *a = tfc_thread_scratch(TFC_SCRATCH_A, tfc_gemm_scratch_bytes(rows, j->product.k) + 64);
  float *to = tfc_thread_scratch(TFC_SCRATCH_IMAGE, (size_t)((hi[0] - lo[0]) * rows * filters) * sizeof *to);
  if (!a || !to) return false;
  for (int64_t z = lo[0]; z < hi[0]; z++) {
    const int64_t row = ((n * j->sizes->out[2] + z) * j->sizes->out[0] + lo[1]) * columns;
    float *c = to + (z - lo[0]) * rows * filters - row * filters; // where row 0 would be
    tfc_gemm_run(&j->product, 1, filters, c, filters, false, row, row + rows, 0, tfc_gemm_panels(filters), a);
    if (j->finish && !j->product.last) j->finish->rows(j->finish, c, row, row + rows);
  }
  struct tfc_pool part = *pool;
  part.x.batch_stride = 0, part.x.stride[0] = rows * filters;
  part.in = to - lo[0] * part.x.stride[0] - lo[1] * part.x.stride[1];
  part.out = j->y;
  const int64_t at = ((n * pool->y.size[0] + plane) * pool->y.size[1] + first) * pool->y.size[2];
  tfc_pool_maxima(&part, at, at + (last - first) * pool->y.size[2]);
  return true;
}

static void run_range(void *arg, int64_t begin, int64_t end) {
  struct job *j = arg;
  const int64_t *size = j->pool->y.size;
  for (int64_t line = begin, next; line < end; line = next) {
    const int64_t first = line % size[1], plane = line / size[1] % size[0], n = line / size[1] / size[0];
    int64_t last = first + j->chunk < size[1] ? first + j->chunk : size[1];
    if (last - first > end - line) last = first + end - line;
    if (!run_lines(j, n, plane, first, last)) j->failed = true;
    next = line + last - first;
  }
}

tfc_status tfc_pooled_run(struct tfc_kernel_ctx *ctx, const struct tfc_conv_sizes *sizes, const struct tfc_product *p,
                          const struct tfc_pool *pool, float *y) {
  struct tfc_kernel_finish *finish = ctx->finish;
  struct job j = {.sizes = sizes, .pool = pool, .finish = finish, .y = y};
  j.product = (struct tfc_gemm_product){.a = p->a, .source = p->source, .packed_b = p->packed_b, .k = p->k};
  if (finish) j.product.last = finish->last, finish->done = true;
  if (!p->packed_b) {
    float *packed = tfc_thread_scratch(TFC_SCRATCH_FILTER, tfc_gemm_packed_bytes(p->k, sizes->filters));
    if (!packed) return tfc_status_no_memory(NULL);
    tfc_products_pack(ctx, p->b, p->k, sizes->filters, packed);
    j.product.packed_b = packed;
  }
  j.product.finite = tfc_gemm_is_finite(j.product.packed_b, p->k, sizes->filters);
  const int64_t line = pool->w.size[0] * pool->w.stride[1] * sizes->out[1] * sizes->filters * (int64_t)sizeof(float);
  j.chunk = LINES_BYTES / line + 1;
  tfc_kernel_parallel_for(ctx, pool->y.batch * pool->y.size[0] * pool->y.size[1], j.chunk, run_range, &j);
  return j.failed ? tfc_status_no_memory(NULL) : NULL;
}
