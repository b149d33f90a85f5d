// A block of 16 × 16 threads has ROWS queries (or keys, for the gradients of keys and values) and goes over the others
// in blocks of COLUMNS. Of a tile of scores, ROWS × COLUMNS, a thread has 2 × 4 elements; of the result, 2 rows and
// every sixteenth column. Operands come through shared memory, CHUNK columns at a time. All sums have an order that the
// shapes decide, and no two blocks write the same element: results are the same in every run.
#include "runtime/device/cuda/kernels/attention.h"
#include "runtime/device/cuda/kernels/device.cuh"

// The compiler must know which element of an array a thread uses, or it keeps the array in memory.
#ifdef __CUDACC__
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif

namespace tfc {

const int ROWS = 32, COLUMNS = 64, CHUNK = 32, SIDE = 16, SHARERS = 8; // SHARERS: threads that share a row's sums
const int RESIDENT = 2; // blocks that a multiprocessor is to run at once, which bounds the registers of a thread
typedef struct tfc_attention shape_of;
typedef float tile_of[COLUMNS + 1];
typedef float piece_of[CHUNK + 1];

struct matrix { // `count` rows exist
  const float *data;
  int64_t row;
  int count, columns;
};
__device__ __forceinline__ matrix part(const float *data, const tfc_attention_strides &s, int64_t batch, int64_t head,
                                       int64_t begin, int64_t rows, int most, int columns) {
  matrix m = {data + batch * s.batch + head * s.head + begin * s.row, s.row, (int)smaller(rows - begin, (int64_t)most),
              columns};
  return m;
}

__device__ __forceinline__ void load(piece_of *to, int rows, const matrix &m, int first) {
  for (int i = (int)threadIdx.x; i < rows * CHUNK; i += SIDE * SIDE) {
    const int r = i / CHUNK, c = i % CHUNK;
    to[r][c] = r < m.count && first + c < m.columns ? m.data[r * m.row + first + c] : 0.0f;
  }
}

// s[i][j] = a's row y + 16 i times b's row x + 16 j. Begins and ends with the block's threads together.
__device__ __forceinline__ void multiply(float (&s)[2][4], const matrix &a, const matrix &b, piece_of *as,
                                         piece_of *bs) {
  const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 4; j++) s[i][j] = 0;
  for (int first = 0; first < a.columns; first += CHUNK) {
    __syncthreads();
    load(as, ROWS, a, first);
    load(bs, COLUMNS, b, first);
    __syncthreads();
    for (int d = 0; d < CHUNK; d++) {
      const float u[2] = {as[y][d], as[y + SIDE][d]};
      for (int j = 0; j < 4; j++) {
        const float w = bs[x + j * SIDE][d];
        for (int i = 0; i < 2; i++) s[i][j] += u[i] * w;
      }
    }
  }
  __syncthreads();
}

// sum[i][j] += the weights of row y + 16 i, times column x + 16 j of b. Begins with the block's threads together.
template <int PIECES>
__device__ __forceinline__ void weigh(float (&sum)[2][2 * PIECES], const tile_of *weights, const matrix &b,
                                      piece_of *bs) {
  const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
  UNROLLED for (int c = 0; c < PIECES; c++) {
    __syncthreads();
    load(bs, COLUMNS, b, c * CHUNK);
    __syncthreads();
    for (int k = 0; k < COLUMNS; k++) {
      const float u[2] = {bs[k][x], bs[k][x + SIDE]};
      for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) sum[i][2 * c + j] += weights[y + i * SIDE][k] * u[j];
    }
  }
}

template <int PIECES>
__device__ __forceinline__ void store(float *to, const tfc_attention_strides &s, int64_t batch, int64_t head,
                                      int64_t begin, int64_t rows, int columns, const float (&sum)[2][2 * PIECES],
                                      const float (&factor)[2]) {
  const int x = (int)threadIdx.x % SIDE, y = (int)threadIdx.x / SIDE;
  for (int i = 0; i < 2; i++) {
    const int64_t r = begin + y + i * SIDE;
    for (int j = 0; j < 2 * PIECES && r < rows; j++)
      if (x + j * SIDE < columns)
        to[batch * s.batch + head * s.head + r * s.row + x + j * SIDE] = sum[i][j] * factor[i];
  }
}

struct tile { // the first row of a block
  int64_t batch, head, begin;
};
__device__ __forceinline__ tile tile_at(const shape_of &a, int64_t rows) {
  const int64_t tiles = (rows + ROWS - 1) / ROWS;
  tile p;
  int64_t number;
  const int64_t head = divide((int64_t)blockIdx.x, tiles, &number);
  p.batch = divide(head, a.heads, &p.head);
  p.begin = number * ROWS;
  return p;
}
__device__ __forceinline__ float score(const shape_of &a, const float *mask, const tile &p, int64_t query, int64_t key,
                                       float product) {
  const float s = product * a.scale;
  return mask ? s + mask[p.batch * a.mask.batch + p.head * a.mask.head + query * a.mask.row + key * a.mask_column] : s;
}

template <int PIECES>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    forward(shape_of a, const float *q, const float *k, const float *v, const float *mask, float *out, float *logs) {
  __shared__ piece_of as[ROWS], bs[COLUMNS];
  __shared__ tile_of p[ROWS];
  __shared__ float parts[ROWS][SHARERS], most[ROWS], sums[ROWS], shrinks[ROWS];
  const int t = (int)threadIdx.x, x = t % SIDE, y = t / SIDE, row = t / SHARERS, lane = t % SHARERS;
  const tile at = tile_at(a, a.queries);
  const matrix mine = part(q, a.q, at.batch, at.head, at.begin, a.queries, ROWS, a.depth);
  float sum[2][2 * PIECES] = {};
  if (lane == 0) most[row] = -INFINITY, sums[row] = 0;
  for (int64_t first = 0; first < a.keys; first += COLUMNS) {
    float s[2][4];
    const matrix keys = part(k, a.k, at.batch, at.head, first, a.keys, COLUMNS, a.depth);
    multiply(s, mine, keys, as, bs);
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 4; j++) {
        const int r = y + i * SIDE, c = x + j * SIDE;
        const bool is = r < mine.count && c < keys.count;
        p[r][c] = is ? score(a, mask, at, at.begin + r, first + c, s[i][j]) : -INFINITY;
      }
    __syncthreads();
    float top = -INFINITY, e = 0;
    for (int c = lane; c < COLUMNS; c += SHARERS) top = larger(top, p[row][c]);
    parts[row][lane] = top;
    __syncthreads();
    top = most[row];
    for (int i = 0; i < SHARERS; i++) top = larger(top, parts[row][i]);
    for (int c = lane; c < COLUMNS; c += SHARERS) {
      const float one = p[row][c] == -INFINITY ? 0.0f : expf(p[row][c] - top); // NaN stays NaN
      p[row][c] = one;
      e += one;
    }
    __syncthreads();
    parts[row][lane] = e;
    if (lane == 0) {
      shrinks[row] = most[row] == -INFINITY ? 0.0f : expf(most[row] - top);
      most[row] = top;
    }
    __syncthreads();
    if (lane == 0) {
      e = 0;
      for (int i = 0; i < SHARERS; i++) e += parts[row][i];
      sums[row] = sums[row] * shrinks[row] + e;
    }
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 2 * PIECES; j++) sum[i][j] *= shrinks[y + i * SIDE];
    weigh<PIECES>(sum, p, part(v, a.v, at.batch, at.head, first, a.keys, COLUMNS, a.width), bs);
  }
  __syncthreads();
  const float factor[2] = {1 / sums[y], 1 / sums[y + SIDE]};
  store<PIECES>(out, a.out, at.batch, at.head, at.begin, a.queries, a.width, sum, factor);
  if (logs && lane == 0 && row < mine.count)
    logs[(at.batch * a.heads + at.head) * a.queries + at.begin + row] = most[row] + logf(sums[row]);
}

// The gradient to q; and of each query the sum of its weights times their gradients, which is out times d_out.
template <int PIECES>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    backward_queries(shape_of a, const float *q, const float *k, const float *v, const float *mask, const float *out,
                     const float *logs, const float *d_out, float *dq, float *all_sums) {
  __shared__ piece_of as[ROWS], bs[COLUMNS];
  __shared__ tile_of p[ROWS];
  __shared__ float parts[ROWS][SHARERS], sums[ROWS], log_of[ROWS];
  const int t = (int)threadIdx.x, x = t % SIDE, y = t / SIDE, row = t / SHARERS, lane = t % SHARERS;
  const tile at = tile_at(a, a.queries);
  const matrix mine = part(q, a.q, at.batch, at.head, at.begin, a.queries, ROWS, a.depth),
               theirs = part(d_out, a.d_out, at.batch, at.head, at.begin, a.queries, ROWS, a.width),
               made = part(out, a.out, at.batch, at.head, at.begin, a.queries, ROWS, a.width);
  const int64_t line = (at.batch * a.heads + at.head) * a.queries + at.begin;
  float sum[2][2 * PIECES] = {}, e = 0;
  for (int c = lane; c < a.width && row < mine.count; c += SHARERS)
    e += made.data[row * made.row + c] * theirs.data[row * theirs.row + c];
  parts[row][lane] = e;
  __syncthreads();
  if (lane == 0) {
    e = 0;
    for (int i = 0; i < SHARERS; i++) e += parts[row][i];
    sums[row] = e;
    log_of[row] = row < mine.count ? logs[line + row] : 0;
    if (row < mine.count) all_sums[line + row] = e;
  }
  for (int64_t first = 0; first < a.keys; first += COLUMNS) {
    float s[2][4], g[2][4];
    const matrix keys = part(k, a.k, at.batch, at.head, first, a.keys, COLUMNS, a.depth);
    multiply(s, mine, keys, as, bs);
    multiply(g, theirs, part(v, a.v, at.batch, at.head, first, a.keys, COLUMNS, a.width), as, bs);
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 4; j++) {
        const int r = y + i * SIDE, c = x + j * SIDE;
        const bool is = r < mine.count && c < keys.count;
        p[r][c] = is ? expf(score(a, mask, at, at.begin + r, first + c, s[i][j]) - log_of[r]) * (g[i][j] - sums[r]) : 0;
      }
    weigh<PIECES>(sum, p, keys, bs);
  }
  const float factor[2] = {a.scale, a.scale};
  store<PIECES>(dq, a.dq, at.batch, at.head, at.begin, a.queries, a.depth, sum, factor);
}

template <int PIECES>
__global__ void __launch_bounds__(THREADS, RESIDENT)
    backward_keys(shape_of a, const float *q, const float *k, const float *v, const float *mask, const float *logs,
                  const float *d_out, float *dk, float *dv, const float *all_sums) {
  __shared__ piece_of as[ROWS], bs[COLUMNS];
  __shared__ tile_of p[ROWS], ds[ROWS];
  const int t = (int)threadIdx.x, x = t % SIDE, y = t / SIDE;
  const tile at = tile_at(a, a.keys);
  const matrix mine = part(k, a.k, at.batch, at.head, at.begin, a.keys, ROWS, a.depth),
               values = part(v, a.v, at.batch, at.head, at.begin, a.keys, ROWS, a.width);
  float keys[2][2 * PIECES] = {}, sum[2][2 * PIECES] = {};
  for (int64_t first = 0; first < a.queries; first += COLUMNS) {
    float s[2][4], g[2][4];
    const matrix queries = part(q, a.q, at.batch, at.head, first, a.queries, COLUMNS, a.depth),
                 theirs = part(d_out, a.d_out, at.batch, at.head, first, a.queries, COLUMNS, a.width);
    const int64_t line = (at.batch * a.heads + at.head) * a.queries + first;
    multiply(s, mine, queries, as, bs);
    multiply(g, values, theirs, as, bs);
    for (int i = 0; i < 2; i++)
      for (int j = 0; j < 4; j++) {
        const int r = y + i * SIDE, c = x + j * SIDE;
        const bool is = r < mine.count && c < queries.count;
        p[r][c] = is ? expf(score(a, mask, at, first + c, at.begin + r, s[i][j]) - logs[line + c]) : 0;
        ds[r][c] = is ? p[r][c] * (g[i][j] - all_sums[line + c]) : 0;
      }
    weigh<PIECES>(sum, p, theirs, bs);
    weigh<PIECES>(keys, ds, queries, bs);
  }
  const float one[2] = {1, 1}, factor[2] = {a.scale, a.scale};
  store<PIECES>(dv, a.dv, at.batch, at.head, at.begin, a.keys, a.width, sum, one);
  store<PIECES>(dk, a.dk, at.batch, at.head, at.begin, a.keys, a.depth, keys, factor);
}

static int pieces_of(const shape_of *a) {
  const int widest = larger(a->depth, a->width);
  return widest <= CHUNK ? 1 : widest <= 2 * CHUNK ? 2 : 4;
}
static unsigned tiles_of(const shape_of *a, int64_t rows) {
  return (unsigned)(a->batches * a->heads * ((rows + ROWS - 1) / ROWS));
}
template <int PIECES>
static int gradients(const shape_of *a, const float *q, const float *k, const float *v, const float *mask,
                     const float *out, const float *logs, const float *d_out, float *dq, float *dk, float *dv,
                     float *sums, void *stream) {
  int error = launch_shared(backward_queries<PIECES>, tiles_of(a, a->queries), SIDE * SIDE, stream, *a, q, k, v, mask,
                            out, logs, d_out, dq, sums);
  if (error) return error;
  return launch_shared(backward_keys<PIECES>, tiles_of(a, a->keys), SIDE * SIDE, stream, *a, q, k, v, mask, logs, d_out,
                       dk, dv, (const float *)sums);
}

} // namespace tfc

TFC_CUDA_API int tfc_cuda_attention(const struct tfc_attention *a, const float *q, const float *k, const float *v,
                                    const float *mask, float *out, float *logs, void *stream) {
  using namespace tfc;
  const unsigned tiles = tiles_of(a, a->queries);
  switch (pieces_of(a)) {
  case 1: return launch_shared(forward<1>, tiles, SIDE * SIDE, stream, *a, q, k, v, mask, out, logs);
  case 2: return launch_shared(forward<2>, tiles, SIDE * SIDE, stream, *a, q, k, v, mask, out, logs);
  default: return launch_shared(forward<4>, tiles, SIDE * SIDE, stream, *a, q, k, v, mask, out, logs);
  }
}

TFC_CUDA_API int tfc_cuda_attention_gradients(const struct tfc_attention *a, const float *q, const float *k,
                                              const float *v, const float *mask, const float *out, const float *logs,
                                              const float *d_out, float *dq, float *dk, float *dv, float *sums,
                                              void *stream) {
  using namespace tfc;
  switch (pieces_of(a)) {
  case 1: return gradients<1>(a, q, k, v, mask, out, logs, d_out, dq, dk, dv, sums, stream);
  case 2: return gradients<2>(a, q, k, v, mask, out, logs, d_out, dq, dk, dv, sums, stream);
  default: return gradients<4>(a, q, k, v, mask, out, logs, d_out, dq, dk, dv, sums, stream);
  }
}
