// What all .cu files use: for each element type the type to compute in, and launching. nvcc compiles this as CUDA; in
// tests a host compiler compiles the same source for the CPU, with host.h.
//
//   get(x)       converts an element from memory to the type to compute in
//   put<T>(v)    converts it back to an element of type T
//   number<T>::C the type to compute in: float for the 16-bit floats
//   number<T>::U the type of sums and products: unsigned for integers, so that they wrap
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_DEVICE_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_DEVICE_CUH

#include "runtime/device/cuda/kernels/types.h"

#include <math.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define TFC_HD __host__ __device__ __forceinline__
#else
#include "runtime/device/cuda/kernels/host.h"
#define TFC_HD inline
#endif

extern "C" void tfc_cuda_count_launch(void); // kernel.h
extern "C" float tfc_half_to_float(uint16_t h);
extern "C" uint16_t tfc_float_to_half(float f);
extern "C" uint16_t tfc_float_to_bfloat16(float f);

namespace tfc {

struct f16 {
  uint16_t bits;
};
struct b16 {
  uint16_t bits;
};
typedef float f32;
typedef double f64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef bool b8;

template <class T> struct number {
  typedef T C;
  typedef T U;
};
template <> struct number<f16> {
  typedef float C;
  typedef float U;
};
template <> struct number<b16> {
  typedef float C;
  typedef float U;
};
#define TFC_WRAPS(t, u)                                                                                                \
  template <> struct number<t> {                                                                                       \
    typedef t C;                                                                                                       \
    typedef u U;                                                                                                       \
  };
TFC_WRAPS(i8, u32)
TFC_WRAPS(i16, u32)
TFC_WRAPS(i32, u32)
TFC_WRAPS(i64, u64)
TFC_WRAPS(u8, u32)
TFC_WRAPS(u16, u32)
#undef TFC_WRAPS

template <class T> struct is_float { static const bool value = false; };
template <> struct is_float<f32> { static const bool value = true; };
template <> struct is_float<f64> { static const bool value = true; };
template <> struct is_float<f16> { static const bool value = true; };
template <> struct is_float<b16> { static const bool value = true; };

template <class T> TFC_HD T get(T x) {
  return x;
}
TFC_HD float get(f16 x) {
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(x.bits));
#else
  return tfc_half_to_float(x.bits);
#endif
}
TFC_HD float get(b16 x) {
  union {
    uint32_t u;
    float f;
  } v = {(uint32_t)x.bits << 16};
  return v.f;
}
// The 16-bit floats can be made from float only.
template <class T> struct putter {
  template <class V> static TFC_HD T of(V v) { return (T)v; }
};
template <> struct putter<f16> {
  static TFC_HD f16 of(float v) {
#ifdef __CUDA_ARCH__
    f16 r = {__half_as_ushort(__float2half_rn(v))};
#else
    f16 r = {tfc_float_to_half(v)};
#endif
    return r;
  }
};
template <> struct putter<b16> {
  static TFC_HD b16 of(float v) {
#ifdef __CUDA_ARCH__
    b16 r = {__bfloat16_as_ushort(__float2bfloat16_rn(v))};
#else
    b16 r = {tfc_float_to_bfloat16(v)};
#endif
    return r;
  }
};
template <class T, class V> TFC_HD T put(V v) {
  return putter<T>::of((typename number<T>::C)v);
}
// Rounds a value as storing it to memory would: arithmetic in 16-bit floats rounds after every operation.
template <class T> TFC_HD typename number<T>::C rounded(typename number<T>::C v) {
  return get(put<T>(v));
}

template <class T> TFC_HD T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T> TFC_HD T larger(T a, T b) {
  return a < b ? b : a;
}

// The elements that one memory access reads or writes together.
template <class T, int V> struct alignas(sizeof(T) * V) pack { T v[V]; };

// Returns n / d and sets *rest to n % d. Most tensors have fewer than 2^32 elements, and 64-bit division is slow on
// GPUs.
TFC_HD int64_t divide(int64_t n, int64_t d, int64_t *rest) {
  int64_t q;
  if (((uint64_t)n | (uint64_t)d) >> 32) {
    q = n / d;
    *rest = n - q * d;
  } else {
    uint32_t small = (uint32_t)n / (uint32_t)d;
    q = small;
    *rest = (int64_t)((uint32_t)n - small * (uint32_t)d);
  }
  return q;
}

// Computes the offset of each operand for group number `group` of a broadcast (see struct tfc_cuda_broadcast).
template <int K> TFC_HD void place(const tfc_cuda_broadcast &p, int64_t group, int64_t *offset) {
  for (int k = 0; k < K; k++) offset[k] = 0;
  for (int d = p.rank - 1; d > 0; d--) {
    int64_t at;
    group = divide(group, p.dims[d], &at);
    for (int k = 0; k < K; k++) offset[k] += at * p.strides[k][d];
  }
  for (int k = 0; k < K; k++) offset[k] += group * p.strides[k][0];
}

const int64_t THREADS = 256, BLOCKS = 8192;

// Returns how many blocks to launch for `count` items: at most BLOCKS, because kernels are grid-stride loops.
inline unsigned blocks_for(int64_t count, int64_t threads = THREADS) {
  int64_t blocks = (count + threads - 1) / threads;
  return (unsigned)(blocks < 1 ? 1 : smaller(blocks, BLOCKS));
}

// launch() is for kernels without shared memory, launch_shared() for the others: on a GPU both do the same, but when
// compiled for the CPU the threads of the second kind must take turns. Returns the launch's own cudaError_t, not the
// thread's last error, which a library may have left. A thread may have up to 255 registers and a block 65536, so more
// than THREADS threads need a kernel with __launch_bounds__(BOUND).
#ifdef __CUDACC__
template <class... P, class... A>
int launch(void (*kernel)(P...), unsigned blocks, int64_t threads, void *stream, A... args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3((unsigned)threads);
  config.stream = (cudaStream_t)stream;
  int error = (int)cudaLaunchKernelEx(&config, kernel, args...);
  if (!error) tfc_cuda_count_launch();
  return error;
}
template <int64_t BOUND = THREADS, class... P, class... A>
int launch_shared(void (*kernel)(P...), unsigned blocks, int64_t threads, void *stream, A... args) {
  return launch(kernel, blocks, threads, stream, args...);
}
#else
template <class... P, class... A>
int launch(void (*kernel)(P...), unsigned blocks, int64_t threads, void *stream, A... args) {
  return host_launch(THREADS, false, kernel, blocks, threads, stream, args...);
}
template <int64_t BOUND = THREADS, class... P, class... A>
int launch_shared(void (*kernel)(P...), unsigned blocks, int64_t threads, void *stream, A... args) {
  return host_launch(BOUND, true, kernel, blocks, threads, stream, args...);
}
#endif

// A grid-stride loop: for (int64_t i = first(); i < n; i += stride())
#ifdef __CUDACC__
__device__ __forceinline__ int64_t first() {
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ int64_t stride() {
  return (int64_t)gridDim.x * blockDim.x;
}
#else
inline int64_t first() {
  return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
inline int64_t stride() {
  return (int64_t)gridDim.x * blockDim.x;
}
#endif

} // namespace tfc

// cudaErrorInvalidValue: a launcher returns it if it has no kernel for these types.
enum { TFC_CUDA_INVALID_VALUE = 1 };

#endif
