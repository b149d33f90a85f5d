// Running the CUDA kernels' own source on the CPU: what the tests of this folder share.
#ifndef TFC_TESTS_CUDA_KERNELS_HOST_H
#define TFC_TESTS_CUDA_KERNELS_HOST_H

#include "runtime/device/cuda/kernel.h"

// What runtime/device/cuda/kernels/host.h needs.
struct tfc_host_index {
  unsigned x, y, z;
};
extern struct tfc_host_index threadIdx, blockIdx, blockDim, gridDim;
void tfc_host_barrier(void);
void tfc_host_begin(void);
void tfc_host_end(void);
void tfc_host_fibers(unsigned threads, void (*run)(void *arg), void *arg);
int tfc_host_enqueue(void *stream, void (*run)(void *argument), const void *argument, size_t size);

// Memory that host code cannot touch but between tfc_host_begin and tfc_host_end. All of it is free after a reset.
void *cuda_host_allocate(size_t bytes);
void cuda_host_reset(void);
extern void (*cuda_host_enter)(void), (*cuda_host_leave)(void); // around every kernel; NULL: nothing
// What a launch becomes; NULL: it runs at once.
extern int (*cuda_host_enqueue)(void *stream, void (*run)(void *argument), const void *argument, size_t size);

// The rows of all families, in no order.
typedef void cuda_host_row_fn(void *arg, const struct tfc_cuda_kernel *row);
void cuda_host_each_row(cuda_host_row_fn *fn, void *arg);
// A row of the op that takes the node: its state and scratch are in `prepare`. Declines are UNIMPLEMENTED with the last
// row's reason.
TFC_MUST_USE tfc_status cuda_host_choose(struct tfc_cuda_prepare *prepare, const struct tfc_cuda_kernel **out);
TFC_MUST_USE tfc_status cuda_host_launch(const struct tfc_cuda_kernel *row, struct tfc_kernel_ctx *ctx, size_t scratch);
struct tfc_cuda_library *cuda_host_library(void);
extern bool cuda_host_no_conv; // convolutions by plain loops
extern bool cuda_host_no_room; // to measure in

// A CPU device whose operations are run by the CUDA kernels where there is one: give it to a device before a session
// is made.
const struct tfc_device_driver *cuda_host_driver(void);
// What prepared segments had since the last reset: operations with a row, and those without (op and reason).
struct cuda_host_miss {
  char op[48], type[16], reason[160];
  uint32_t count;
};
struct cuda_host_census {
  uint32_t rows;
  uint32_t uncaptured; // operations that keep their segment from being captured
  struct cuda_host_miss misses[64];
  uint32_t miss_count;
};
extern struct cuda_host_census cuda_host_census;

// How often the fakes of the libraries computed something.
extern uint32_t cuda_fake_products, cuda_fake_convolutions, cuda_fake_measurements;
// Of float32 operands, by what these were turned into.
enum { CUDA_FAKE_MATHS = TFC_MATH_BFLOAT16 + 1 };
extern uint32_t cuda_fake_products_in[CUDA_FAKE_MATHS], cuda_fake_convolutions_in[CUDA_FAKE_MATHS];
enum { CUDA_FAKE_ALGORITHMS = 3 };
extern uint32_t cuda_fake_products_by[CUDA_FAKE_ALGORITHMS]; // the algorithms that cuBLASLt names
void cuda_fake_clock(int64_t ns);                            // that much later for whoever times something
extern bool cuda_fake_is_timed;                              // nobody looks at what is computed now
extern uint32_t cuda_fake_refused; // bits of tfc_math: matrix products that cuBLASLt has no algorithm for
// A float32 operand as that arithmetic takes it.
float cuda_fake_operand(tfc_math math, float v);
extern bool cuda_fake_no_measurement; // cuDNN's measuring fails
extern uint32_t cuda_fake_dnn_calls;  // of pools, norms, softmax and local responses, measuring included
extern uint32_t cuda_fake_timings;    // events that were made to time something
extern int64_t cuda_fake_dnn_cost_ns; // what each of those calls seems to take more than it does; below 0: less
// Is a captured graph of four nodes followed from its root? The second has so many successors; edges may have data.
bool cuda_fake_chain(uint32_t successors, bool early);

#endif
