// Runs CUDA code on the CPU, for tests: a grid becomes loops. In kernels with shared memory and barriers, the threads
// of a block are fibers that take turns at each __syncthreads (tests/cuda_kernels/host.c). A launch runs at once; in a
// test with streams it runs when its stream reaches it, with copies of its arguments, as on a GPU. In builds for the
// thread sanitizer (TFC_HOST_RACES) two blocks run at the same time, each on its own thread.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_HOST_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_HOST_H

#include <initializer_list>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__ __restrict
#ifdef TFC_HOST_RACES
#define TFC_HOST_OWN __thread
#else
#define TFC_HOST_OWN // one block runs at a time
#endif
#define __shared__ static TFC_HOST_OWN
#define __launch_bounds__(...)

struct tfc_host_index {
  unsigned x, y, z;
};
extern "C" TFC_HOST_OWN struct tfc_host_index threadIdx, blockIdx, blockDim, gridDim;
extern "C" void tfc_host_barrier(void);
extern "C" void tfc_cuda_count_launch(void);
// Called before and after every access to device memory. They let one thread at a time do it, and tests make that
// memory inaccessible in between.
extern "C" void tfc_host_begin(void);
extern "C" void tfc_host_end(void);
// Runs `run` with a copy of `argument` when the stream reaches it; returns a cudaError_t.
extern "C" int tfc_host_enqueue(void *stream, void (*run)(void *argument), const void *argument, size_t size);
// What a GPU answers to such a launch, a cudaError_t: too many or no blocks, more threads than a block may have, or
// more than `bound`, the number for which the compiler makes sure that there are registers. (nvcc itself refuses a
// kernel with more shared memory than a block may have.)
extern "C" int tfc_host_refusal(int64_t blocks, int64_t threads, int64_t bound);
// Runs body(arg) once for each thread of each block. takes_turns: threads of a block may wait for each other
// (__syncthreads), so each gets a stack of its own and runs from barrier to barrier; otherwise each runs to its end
// before the next one begins.
extern "C" void tfc_host_grid(unsigned blocks, unsigned threads, bool takes_turns, void (*body)(void *arg), void *arg);

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
template <class... P> constexpr bool fits_parameters() { // false: the kernel has more than 4096 bytes of parameters
  size_t sum = 0;
  for (size_t size : {(size_t)0, sizeof(P)...}) sum += (size + 7) / 8 * 8;
  return sum <= 4096;
}
template <class... P, class... A>
int host_launch(int64_t bound, bool takes_turns, void (*kernel)(P...), unsigned blocks, int64_t threads, void *stream,
                A... args) {
  static_assert(fits_parameters<P...>(), "a kernel takes at most 4 KiB of parameters");
  if (int error = tfc_host_refusal(blocks, threads, bound)) return error;
  return counted(host_enqueue(stream, [=] {
    auto body = [&] { kernel(args...); };
    tfc_host_grid(blocks, (unsigned)threads, takes_turns, host_call<decltype(body)>, &body);
  }));
}
} // namespace tfc

#endif
