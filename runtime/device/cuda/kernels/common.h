// Helpers that the rows of all kernel families use.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_COMMON_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_COMMON_H

#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/kernel.h"
#include "runtime/device/cuda/kernels/memory.h"
#include "runtime/device/cuda/kernels/types.h"

// Returns from a `prepare` function whose row cannot run the operation. The driver then tries the op's next row; if
// none is left, the host runs the operation, and reports show the reason given here.
#define TFC_CUDA_DECLINE(...) return tfc_status_make(TFC_UNIMPLEMENTED, __VA_ARGS__)

// Declares `name`, the state that a row of the kernel table keeps for one operation: zeroed, in the plan's arena.
// Returns from the `prepare` function if memory runs out.
#define TFC_CUDA_STATE(p, type, name)                                                                                  \
  type *name = TFC_ARENA_NEW((p)->base->arena, type);                                                                  \
  if (!name) return tfc_status_no_memory(NULL);                                                                        \
  (p)->base->state = name

#define TFC_CUDA_LAUNCHED(l, ...)                                                                                      \
  do {                                                                                                                 \
    int launched_ = (__VA_ARGS__);                                                                                     \
    if (__builtin_expect(launched_ != 0, 0)) return tfc_cuda_status(l, launched_);                                     \
  } while (0)

// The value of input `i` on the host: `constant` if it was known at `prepare`; otherwise its current value, if the
// input is in host memory or is small enough to be copied there (then the launch depends on the step, and the row needs
// TFC_CUDA_NO_CAPTURE).
struct tfc_cuda_value {
  const struct tfc_tensor *tensor;
  struct tfc_tensor copy; // of a value that was on the device
  _Alignas(16) char bytes[256];
};
// For prepare functions: whether the input is a constant, and whether it will be in host memory at launch.
static inline bool tfc_cuda_is_constant(const struct tfc_cuda_prepare *p, uint32_t i) {
  return p->base->input_values && p->base->input_values[i];
}
static inline bool tfc_cuda_on_host(const struct tfc_cuda_prepare *p, uint32_t i) {
  return tfc_host_bit(p->host_inputs, i);
}
// For launch functions: `constant` is the value that `prepare` found, or NULL; `on_host` is what tfc_cuda_on_host
// returned then.
TFC_MUST_USE tfc_status tfc_cuda_value(struct tfc_cuda_launch *l, uint32_t i, const struct tfc_tensor *constant,
                                       bool on_host, struct tfc_cuda_value *out);

// An input whose value decides what is launched: `prepare` stores it, `launch` reads it.
struct tfc_cuda_argument {
  const struct tfc_tensor *constant; // in the plan
  uint32_t input;
  bool on_host;
};
static inline struct tfc_cuda_argument tfc_cuda_argument(const struct tfc_cuda_prepare *p, uint32_t i) {
  return (struct tfc_cuda_argument){tfc_cuda_is_constant(p, i) ? p->base->input_values[i] : NULL, i,
                                    tfc_cuda_on_host(p, i)};
}
static inline tfc_status tfc_cuda_get(struct tfc_cuda_launch *l, const struct tfc_cuda_argument *a,
                                      struct tfc_cuda_value *out) {
  return tfc_cuda_value(l, a->input, a->constant, a->on_host, out);
}

// Makes output `i` equal to this tensor: both share memory, or the tensor is copied on the stream if the plan gave the
// output memory of its own.
TFC_MUST_USE tfc_status tfc_cuda_set_output(struct tfc_cuda_launch *l, uint32_t i, const struct tfc_tensor *value);

// Broadcasts `count` shapes (at most 3); *out_shape: the shape of the result. UNIMPLEMENTED: more than TFC_CUDA_RANK
// dimensions remain after joining.
TFC_MUST_USE tfc_status tfc_cuda_broadcast_plan(const struct tfc_shape *const *shapes, int count,
                                                struct tfc_shape *out_shape, struct tfc_cuda_broadcast *out);
// Changes the plan so that a thread computes `vector` neighbouring elements, if dimensions and addresses allow it; else
// the plan stays as it is. `size`, `out_size`: bytes of an element of the operands and of the result.
void tfc_cuda_broadcast_group(struct tfc_cuda_broadcast *plan, int count, int vector, const void *const *operands,
                              size_t size, const void *out, size_t out_size);
// Makes a plan for one contiguous operand x and a result y of the same shape.
struct tfc_cuda_broadcast tfc_cuda_flat_plan(int64_t n, const void *x, size_t size, const void *y, size_t out_size);

// Masks for a row's `types`, which are those of the op's first input: all plain types, resource handles, indices.
#define TFC_CUDA_PLAIN                                                                                                 \
  (((1u << TFC_DTYPE_COUNT) - 2u) &                                                                                    \
   ~(TFC_TYPE_BIT(TFC_STRING) | TFC_TYPE_BIT(TFC_RESOURCE) | TFC_TYPE_BIT(TFC_VARIANT)))
#define TFC_CUDA_HANDLE TFC_TYPE_BIT(TFC_RESOURCE)
#define TFC_CUDA_INDEX (TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64))
// Returns the types that a row accepts for the op's first type attribute.
static inline uint32_t tfc_cuda_row_types(const struct tfc_cuda_kernel *row) {
  return row->flags & TFC_CUDA_ON_FLOATS  ? OPS_BITS(OPS_FLOATS)
         : row->flags & TFC_CUDA_ON_REALS ? OPS_BITS(TFC_CUDA_REALS)
         : row->flags & TFC_CUDA_ON_WORDS ? TFC_CUDA_INDEX | TFC_TYPE_BIT(TFC_UINT32) | TFC_TYPE_BIT(TFC_UINT64)
         : row->flags & TFC_CUDA_ON_SMALL ? TFC_CUDA_PLAIN & ~TFC_TYPE_BIT(TFC_COMPLEX128)
         : row->flags & TFC_CUDA_ON_PLAIN ? TFC_CUDA_PLAIN
         : row->types                     ? row->types
                                          : ~0u;
}

static inline int64_t tfc_cuda_count(const struct tfc_tensor *t) {
  return tfc_tensor_elements(t);
}
static inline tfc_dtype tfc_cuda_type(const struct tfc_cuda_prepare *p, uint32_t i) {
  return tfc_dtype_base(p->base->input_dtypes[i]);
}
static inline bool tfc_cuda_type_in(tfc_dtype t, uint32_t bits) {
  return t < 32 && (bits >> t & 1);
}

#endif
