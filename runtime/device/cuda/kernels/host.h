// Runs CUDA code on the CPU, for tests: a grid becomes loops. In kernels with shared memory and barriers, the threads
// of a block are fibers that take turns at each __syncthreads (tests/cuda_kernels/host.c). A launch runs at once; in a
// test with streams it runs when its stream reaches it, with copies of its arguments, as on a GPU.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_HOST_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_HOST_H

#include <initializer_list>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#define __shared__ static // static is enough, because one block runs at a time
#define __launch_bounds__(...)

struct tfc_host_index {
  unsigned x, y, z;
};
extern "C" struct tfc_host_index threadIdx, blockIdx, blockDim, gridDim;
extern "C" void tfc_host_barrier(void);
extern "C" void tfc_cuda_count_launch(void);
// Called before and after every access to device memory. They let one thread at a time do it, and tests make that
// memory inaccessible in between.
extern "C" void tfc_host_begin(void);
extern "C" void tfc_host_end(void);
// Runs `run` with a copy of `argument` when the stream reaches it; returns a cudaError_t.
extern "C" int tfc_host_enqueue(void *stream, void (*run)(void *argument), const void *argument, size_t size);
// Runs body(arg) once per thread of a block, all of them alive at once.
extern "C" void tfc_host_fibers(unsigned threads, void (*body)(void *arg), void *arg);

inline void __syncthreads() {
  tfc_host_barrier();
}

namespace tfc {
template <class F> void host_call(void *f) {
  (*(F *)f)();
}
template <class F> int host_enqueue(void *stream, F work) {
  static_assert(std::is_trivially_copyable<F>::value, "what a kernel takes is copied");
  return tfc_host_enqueue(stream, host_call<F>, &work, sizeof work);
}
inline int counted(int error) {
  if (!error) tfc_cuda_count_launch();
  return error;
}
template <class F> void host_grid(unsigned blocks, unsigned threads, F run_block) {
  tfc_host_begin(); // no other thread's kernel runs until tfc_host_end
  gridDim = {blocks, 1, 1};
  blockDim = {threads, 1, 1};
  for (unsigned b = 0; b < blocks; b++) {
    blockIdx = {b, 0, 0};
    run_block();
  }
  tfc_host_end();
}
// Refuses what a GPU refuses, with cudaErrorInvalidConfiguration (9): no block, too many blocks, or too many threads in
// a block.
inline int refused(unsigned blocks, int64_t threads) {
  return blocks == 0 || blocks > 0x7fffffffu || threads < 1 || threads > 1024 ? 9 : 0;
}
template <class... P> constexpr bool fits_parameters() { // false: the kernel has more than 4096 bytes of parameters
  size_t sum = 0;
  for (size_t size : {(size_t)0, sizeof(P)...}) sum += (size + 7) / 8 * 8;
  return sum <= 4096;
}
template <class... P, class... A>
int launch(void (*kernel)(P...), unsigned blocks, int64_t count, void *stream, A... args) {
  static_assert(fits_parameters<P...>(), "a kernel takes at most 4 KiB of parameters");
  unsigned threads = (unsigned)count;
  if (int error = refused(blocks, count)) return error;
  return counted(host_enqueue(stream, [=] {
    host_grid(blocks, threads, [&] {
      for (unsigned t = 0; t < threads; t++) {
        threadIdx = {t, 0, 0};
        kernel(args...);
      }
    });
  }));
}
template <class... P, class... A>
int launch_shared(void (*kernel)(P...), unsigned blocks, int64_t count, void *stream, A... args) {
  static_assert(fits_parameters<P...>(), "a kernel takes at most 4 KiB of parameters");
  unsigned threads = (unsigned)count;
  if (int error = refused(blocks, count)) return error;
  return counted(host_enqueue(stream, [=] {
    auto body = [&] { kernel(args...); };
    host_grid(blocks, threads, [&] { tfc_host_fibers(threads, host_call<decltype(body)>, &body); });
  }));
}
} // namespace tfc

#endif
