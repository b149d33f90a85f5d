// CUDA kernels: one row per op, in runtime/device/cuda/kernels. If an op has no row, or all its rows decline, the host
// runs it, with copies before and after it, and reports list it.
//
// Rows and their prepare and launch functions are C (kernels/<family>.c); device code is CUDA C++ (kernels/<family>.cu)
// behind extern "C" launchers that take plain values, so that no C++ compiler needs to read tfc's headers.
//
//   static tfc_status tanh_prepare(struct tfc_cuda_prepare *p) { p->base->state = ...; return NULL; }
//   static tfc_status tanh_launch(struct tfc_cuda_launch *l) {
//     struct tfc_tensor *y = NULL;
//     TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, 0, l->ctx->inputs[0], &y));
//     return tfc_cuda_status(l, tfc_tanh_f32(l->ctx->inputs[0]->data, y->data, tfc_tensor_elements(y), l->stream));
//   }
//   static const struct tfc_cuda_kernel rows[] = {{"Tanh", TFC_TYPE_BIT(TFC_FLOAT), tanh_prepare, tanh_launch, 0}};
//   TFC_CUDA_KERNELS(rows);
//
// A launch function only enqueues on l->stream: it never synchronises, allocates through CUDA, or uses another stream.
// It runs on the device's thread; a virtual GPU's stream belongs to its green context. It is called for every step,
// unless the segment was captured as a CUDA graph: then once per capture, with the pointers of that capture. So
// everything that differs between steps must come through device memory, or the row carries TFC_CUDA_NO_CAPTURE.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNEL_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNEL_H

#include "runtime/device/driver.h"
#include "runtime/ops/host_memory.h"

// CUDA's own types by their tags, so that this header needs no toolkit: cudaStream_t is struct CUstream_st *,
// cudaEvent_t struct CUevent_st *, cublasLtHandle_t struct cublasLtContext *, cudnnHandle_t struct cudnnContext *.
struct CUstream_st;
struct CUevent_st;
struct cublasLtContext;
struct cudnnContext;

// The libraries and properties that a device offers to its kernels. Each device has one; only its thread uses it, and
// `prepare` before the first launch.
struct tfc_cuda_library {
  struct tfc_device *device;
  // These return the libraries' handles, made at first use in this device's context. For virtual devices, kernels set
  // cuBLASLt's SM target (CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET) to sm_count below. UNAVAILABLE, with the library's
  // message: the handle cannot be made. cudnn: its stream is the device's compute stream.
  tfc_status (*blaslt)(struct tfc_cuda_library *library, struct cublasLtContext **out);
  tfc_status (*cudnn)(struct tfc_cuda_library *library, struct cudnnContext **out);
  // Makes an event that can be recorded on the device's streams, which a virtual device's may refuse of any other;
  // returns CUDA's error. The caller destroys it.
  int (*event)(struct tfc_cuda_library *library, bool timing, struct CUevent_st **out);
  int sm_count;            // multiprocessors of this device (of its green context)
  int capability;          // 90 stands for compute capability 9.0
  size_t shared_per_block; // bytes that a kernel may ask for (opt-in)
  size_t l2_bytes;
  tfc_math math; // the arithmetic of products and convolutions of float32
  bool is_virtual;
  bool captures; // launches are captured now, so that nothing can be measured
};

struct tfc_cuda_prepare {
  struct tfc_prepare_ctx
      *base; // node, attributes, shapes as inferred, dtypes, constant inputs; state and release go here
  const struct tfc_segment_op *op; // its slots: an output whose data is set has a planned place. NULL: a single launch
  struct tfc_cuda_library *library;
  // Bit i: input/output i is in host memory when the kernel is launched (tfc_host_bit).
  uint32_t host_inputs, host_outputs;
  int variant;    // the row's
  size_t scratch; // out: device bytes that launch gets in l->scratch, 256-byte aligned, shared by all kernels of the
                  // device and undefined at first. Kernels of unknown shapes call tfc_kernel_scratch instead.
  tfc_filter_form filter_form;  // out, of a convolution: the form in which it reads its filter (input 1) fastest
  double channels_last_gain_us; // out, of a convolution: see struct tfc_device_driver
  const char *library_note;     // out, optional: static text for reports: which algorithm was chosen
  bool declined; // out: the message in the returned status is a library's, which declined; reports say so
};
struct tfc_cuda_launch {
  // As for every kernel: inputs, outputs (tfc_kernel_output and the like return planned or allocated device memory),
  // variables; `data` are device addresses, except those in host_inputs and host_outputs.
  struct tfc_kernel_ctx *ctx;
  struct CUstream_st *stream;
  struct tfc_cuda_library *library;
  void *scratch; // as much as `prepare` asked for
};

enum tfc_cuda_kernel_flags {
  TFC_CUDA_NO_CAPTURE = 1 << 0, // what it enqueues depends on values of the step in host memory (seeds, host inputs,
                                // node_state)
  // The types of the op's first type attribute, if input 0 does not have that type (a handle, a shape, indices).
  TFC_CUDA_ON_FLOATS = 1 << 1,
  TFC_CUDA_ON_REALS = 1 << 2,
  TFC_CUDA_ON_WORDS = 1 << 3, // integers of 4 and 8 bytes
  TFC_CUDA_ON_SMALL = 1 << 4, // plain types of at most 8 bytes
  TFC_CUDA_ON_PLAIN = 1 << 5,
};
// For a `prepare` that serves several ops: a number, chosen by the file, which says for which op it is called.
// `prepare` gets it as `variant`.
#define TFC_CUDA_VARIANT(number) ((uint32_t)(number) << 16)
static inline int tfc_cuda_variant(uint32_t flags) {
  return (int)(flags >> 16);
}
struct tfc_cuda_kernel {
  const char *op;
  uint32_t types; // bits of the dtypes of input 0 (of output 0 where there is no input); 0: any
  // Optional. UNIMPLEMENTED declines (an attribute, an unknown shape, a type): the next row of the op is tried. Reports
  // show its message as the reason if no row is left. Any other error makes the plan fail.
  tfc_status (*prepare)(struct tfc_cuda_prepare *p);
  tfc_status (*launch)(struct tfc_cuda_launch *l);
  uint32_t flags; // and TFC_CUDA_VARIANT
};
struct tfc_cuda_kernels {
  const struct tfc_cuda_kernel *rows;
  size_t count;
};
#define TFC_CUDA_KERNELS(rows)                                                                                         \
  static const struct tfc_cuda_kernels tfc_cuda_kernels_##rows                                                         \
      __attribute__((used, section("tfc_cuda_kernels"))) = {rows, sizeof(rows) / sizeof *(rows)}

// Returns the next row of an op: the first one if `after` is NULL, otherwise the one that follows `after`; NULL: there
// are no more. Any thread may call it.
const struct tfc_cuda_kernel *tfc_cuda_kernel_next(tfc_str op, tfc_dtype type, const struct tfc_cuda_kernel *after);

// Returns the chosen convolution algorithms as lines of text, for `tuning` of struct tfc_device_driver. NULL in builds
// without the library, as are the functions below.
char *tfc_cuda_conv_tuning(void) __attribute__((weak));
void tfc_cuda_conv_set_tuning(const char *lines) __attribute__((weak));
// As the functions above, for the algorithms of matrix products.
char *tfc_cuda_product_tuning(void) __attribute__((weak));
void tfc_cuda_product_set_tuning(const char *lines) __attribute__((weak));
// As the functions above, for operations that cuDNN runs faster than tfc's kernels.
char *tfc_cuda_dnn_tuning(void) __attribute__((weak));
void tfc_cuda_dnn_set_tuning(const char *lines) __attribute__((weak));

// Whether an op can be a step of a chain of element-wise float32 operations that one kernel runs. NULL in builds
// without that kernel.
bool tfc_cuda_chains(const struct tfc_op_def *def) __attribute__((weak));

// Optimizer updates that follow each other in a segment share launches. tfc_cuda_together: whether the rows and states
// of two updates allow it. tfc_cuda_launch_together: launches `count` of them, each computing what its own launch
// function would. *out_at: the one that failed.
bool tfc_cuda_together(const struct tfc_cuda_kernel *row, const void *state, const struct tfc_cuda_kernel *next,
                       const void *next_state) __attribute__((weak));
TFC_MUST_USE tfc_status tfc_cuda_launch_together(struct tfc_cuda_launch *l, struct tfc_kernel_ctx *const *contexts,
                                                 uint32_t count, uint32_t *out_at) __attribute__((weak));

// Turns what a launcher returned (a cudaError_t; 0: no error) into a status with the error's name; the driver adds
// node, op, device and shapes. Launchers of cuBLASLt and cuDNN instead make a status with the library's own message.
TFC_MUST_USE tfc_status tfc_cuda_status(const struct tfc_cuda_launch *l, int cuda_error);

// Every kernel, copy and fill is counted once, on the thread that launches it, so that a profiler's records can be
// checked. The code that calls CUDA or a library counts it (kernels/device.cuh does it for the .cu files).
void tfc_cuda_count_launch(void);
uint64_t tfc_cuda_launches(void); // how many the calling thread has launched so far

// For rows that need the value of a small tensor to decide what to enqueue, if that tensor is in device memory:
// synchronises the stream and copies the value to the host. Only for rows with TFC_CUDA_NO_CAPTURE; the copy is counted
// and reported.
TFC_MUST_USE tfc_status tfc_cuda_read(struct tfc_cuda_launch *l, const struct tfc_tensor *source, void *target);

#endif
