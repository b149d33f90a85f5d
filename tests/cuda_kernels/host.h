// Runs the CUDA kernels' own source on the CPU; shared by the tests of this folder.
#ifndef TFC_TESTS_CUDA_KERNELS_HOST_H
#define TFC_TESTS_CUDA_KERNELS_HOST_H

#include "runtime/device/cuda/kernel.h"

// These repeat in C what runtime/device/cuda/kernels/host.h declares for C++.
struct tfc_host_index {
  unsigned x, y, z;
};
#ifdef TFC_HOST_RACES
#define TFC_HOST_OWN __thread
#else
#define TFC_HOST_OWN
#endif
extern TFC_HOST_OWN struct tfc_host_index threadIdx, blockIdx, blockDim, gridDim;
void tfc_host_barrier(void);
void tfc_host_begin(void);
void tfc_host_end(void);
int tfc_host_refusal(int64_t blocks, int64_t threads, int64_t bound);
void tfc_host_grid(unsigned blocks, unsigned threads, bool takes_turns, void (*body)(void *arg), void *arg);
int tfc_host_enqueue(void *stream, void (*run)(void *argument), const void *argument, size_t size);

// Allocates memory that host code can touch only between tfc_host_begin and tfc_host_end. A reset frees all of it.
void *cuda_host_allocate(size_t bytes);
void cuda_host_reset(void);
// If set, blocks, and the threads of each, run in the reverse order: the results have to be the same.
extern bool cuda_host_backwards;
extern void (*cuda_host_enter)(void), (*cuda_host_leave)(void); // called before and after every kernel, unless NULL
// If not NULL, called for every launch, to run the kernel later; NULL: the kernel runs at once.
extern int (*cuda_host_enqueue)(void *stream, void (*run)(void *argument), const void *argument, size_t size);

// Calls fn for the rows of all families, in no particular order.
typedef void cuda_host_row_fn(void *arg, const struct tfc_cuda_kernel *row);
void cuda_host_each_row(cuda_host_row_fn *fn, void *arg);
// Finds a row of the op that accepts the node; its state and scratch size are left in `prepare`. If every row declines,
// the status is UNIMPLEMENTED with the last row's reason.
TFC_MUST_USE tfc_status cuda_host_choose(struct tfc_cuda_prepare *prepare, const struct tfc_cuda_kernel **out);
TFC_MUST_USE tfc_status cuda_host_launch(const struct tfc_cuda_kernel *row, struct tfc_kernel_ctx *ctx, size_t scratch);
struct tfc_cuda_library *cuda_host_library(void);
extern bool cuda_host_no_conv;                 // if set, conv.c declines every convolution, and plain loops compute it
extern double cuda_host_channels_last_gain_us; // what conv.c says that each convolution gains by channels last
extern bool cuda_host_channels_first;          // if set, conv.c computes with channels first
extern bool cuda_host_no_room;                 // if set, allocations for measuring fail

// Returns a driver for a CPU device. It runs an operation with the source of its CUDA kernel, compiled for the CPU, or
// with the CPU's kernel if it has no CUDA kernel. Set it as the `driver` of a CPU device before a session is made.
const struct tfc_device_driver *cuda_host_driver(void);
// Counts the operations of all prepared segments since the census was last set to zeros: `rows` have a CUDA row,
// `misses` have none.
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

// The event of the fake of CUDA's libraries; NULL in tests without it.
int cuda_fake_event(struct tfc_cuda_library *library, bool timing, struct CUevent_st **out) __attribute__((weak));
// How many products, convolutions and measurements the fakes of the libraries have made.
extern uint32_t cuda_fake_products, cuda_fake_convolutions, cuda_fake_measurements;
// How many of the products and convolutions have float32 operands, by the arithmetic that the operands were rounded to.
enum { CUDA_FAKE_MATHS = TFC_MATH_BFLOAT16 + 1 };
extern uint32_t cuda_fake_products_in[CUDA_FAKE_MATHS], cuda_fake_convolutions_in[CUDA_FAKE_MATHS];
enum { CUDA_FAKE_ALGORITHMS = 3 };
extern uint32_t cuda_fake_products_by[CUDA_FAKE_ALGORITHMS]; // by the number of cuBLASLt's algorithm
extern _Atomic uint32_t cuda_fake_epilogues;                 // products with a bias
extern bool cuda_fake_no_epilogues;                          // if set, cuBLASLt has no algorithm for those
// What cuBLASLt returns for products with a bias when it is asked for algorithms, and when the epilogue is set (0: no
// error), and how aligned the operands have to be for it to have one.
extern int cuda_fake_epilogue_error, cuda_fake_attribute_error;
extern uint32_t cuda_fake_epilogue_alignment;
extern uint32_t cuda_fake_numbers_nan; // 1 << algorithm: its rectifier makes 0 of NaN
void cuda_fake_clock(int64_t ns);      // moves the clock of the fake CUDA events
extern bool cuda_fake_is_timed;        // if set, a product is being timed: its result is not used, and not computed
extern uint32_t cuda_fake_refused;     // 1 << tfc_math: cuBLASLt has no algorithm for products in this arithmetic
// Rounds an operand in float32 as the arithmetic `math` rounds it.
float cuda_fake_operand(tfc_math math, float v);
extern bool cuda_fake_no_measurement;  // if set, cuDNN's measuring fails
extern size_t cuda_fake_cudnn_version; // which version of cuDNN is loaded
extern float cuda_fake_slower_ms[2];   // how much slower cuDNN seems with channels last, and with channels first
extern uint32_t cuda_fake_dnn_calls;   // calls for pooling, batch normalisation, softmax and LRN, measurements included
extern uint32_t cuda_fake_timings;     // events that were made to time something
extern int64_t cuda_fake_dnn_cost_ns;  // how much each of these calls moves the clock; below 0: cuDNN seems faster than
                                       // tfc's kernel
// Does tfc_cuda_follow_chain list a captured graph of four nodes in its order? The second node has `successors`
// successors; `early`: edges have data.
bool cuda_fake_chain(uint32_t successors, bool early);
// Does tfc_cuda_follow_back list such a graph from its last node back? `joins`: not 0: a node has two predecessors.
bool cuda_fake_chain_back(uint32_t joins, bool early);

#endif
