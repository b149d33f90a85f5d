// Element-wise ops: one macro line makes an op's loops for every type of a list, the table of these loops, and the
// kernel. The drivers below broadcast, split the work over cores and choose the loop for the input's type.
//
//   OPS_UNARY(Square, OPS_NUMBERS, (U)x * (U)x)        // kernel_Square, types_Square
//   OPS_BINARY(Maximum, OPS_REALS, a < b ? b : a)
//
// In an expression `x` (or `a`, `b`) is the element as ops_t_c; `C` and `U` are ops_t_c and ops_t_u.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_MATH_ELEMENTWISE_H
#define TFC_RUNTIME_OPS_MATH_ELEMENTWISE_H

#include "runtime/ops/element_types.h"
#include "runtime/ops/kernel.h"

// y[i] = f(x[i]), i < n
typedef tfc_unary_loop ops_unary_fn;
// y[i] = f(a[i * a_step], b[i * b_step]); steps are 0 or 1
typedef tfc_binary_loop ops_binary_fn;
// One run of a broadcast: y[i] = f(in[k][i * step[k]]…), i < n; steps are 0 or 1
typedef void ops_run_fn(void *arg, const void *const in[3], const int64_t step[3], void *y, int64_t n);

// How up to three operands are broadcast to one output; neighbouring dimensions with the same broadcast are joined.
struct ops_broadcast {
  struct tfc_shape shape; // of the output
  int64_t total;          // its elements
  int rank;               // of the joined dimensions; at least 1; the last dimension is the inner loop
  int64_t dims[TFC_MAX_RANK];
  int64_t strides[3][TFC_MAX_RANK]; // in elements; 0 where the operand is repeated
};
TFC_MUST_USE tfc_status ops_broadcast_plan(const struct tfc_shape *const *shapes, int count, struct ops_broadcast *out);
struct ops_broadcast_job {
  struct ops_broadcast plan;
  int count; // how many operands
  ops_run_fn *fn;
  void *arg;
  const void *in[3];
  size_t size[3]; // bytes of an element
  void *out;
  size_t out_size;
};
// Calls `fn` on runs of the innermost dimension for the output elements [begin, end).
void ops_broadcast_run(const struct ops_broadcast_job *job, int64_t begin, int64_t end);
// Computes the whole output, on the device's cores.
void ops_broadcast_all(struct tfc_kernel_ctx *ctx, struct ops_broadcast_job *job, int64_t grain);

// The bodies of kernels. `grain`: how many elements are worth a core of their own.
enum { OPS_GRAIN_CHEAP = 32768, OPS_GRAIN_COSTLY = 4096 };
TFC_MUST_USE tfc_status ops_unary_kernel(struct tfc_kernel_ctx *ctx, ops_unary_fn *const *table, tfc_dtype out,
                                         int64_t grain); // `out` NONE: the input's type
TFC_MUST_USE tfc_status ops_binary_kernel(struct tfc_kernel_ctx *ctx, ops_binary_fn *const *table, tfc_dtype out,
                                          int64_t grain);
TFC_MUST_USE tfc_status ops_paired_kernel(struct tfc_kernel_ctx *ctx, ops_binary_fn *const *table, int64_t grain);
// As ops_unary_kernel, but with the loop as an argument, for kernels that choose it themselves.
TFC_MUST_USE tfc_status ops_unary_apply(struct tfc_kernel_ctx *ctx, ops_unary_fn *fn, tfc_dtype out, int64_t grain);
tfc_status ops_unsupported_type(const struct tfc_kernel_ctx *ctx, tfc_dtype dtype);

#define OPS_UNUSED __attribute__((unused))

#define OPS_UNARY_LOOP(t, name, r, ...)                                                                                \
  OPS_CLONES_##t static void loop_##name##_##t(const void *xv, void *yv, int64_t n) {                                  \
    typedef ops_##t##_c C OPS_UNUSED;                                                                                  \
    typedef ops_##t##_u U OPS_UNUSED;                                                                                  \
    const ops_##t *xs = xv;                                                                                            \
    ops_##r *ys = yv;                                                                                                  \
    OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                                  \
      const C x = OPS_GET_##t(xs[i]);                                                                                  \
      ys[i] = OPS_PUT_##r(__VA_ARGS__);                                                                                \
    }                                                                                                                  \
  }
#define OPS_UNARY_SAME_LOOP(t, name, ...) OPS_UNARY_LOOP(t, name, t, __VA_ARGS__)
#define OPS_UNARY_TO_BOOL_LOOP(t, name, ...) OPS_UNARY_LOOP(t, name, b8, __VA_ARGS__)
#define OPS_TABLE_ROW(t, name) [OPS_DT_##t] = loop_##name##_##t,
#define OPS_UNARY_TABLE(name, LIST, out, grain)                                                                        \
  static ops_unary_fn *const table_##name[TFC_DTYPE_COUNT] = {LIST(OPS_TABLE_ROW, name)};                              \
  OPS_UNUSED static const struct tfc_elementwise loops_##name = {.unary = table_##name};                               \
  enum { types_##name = (int)OPS_BITS(LIST) };                                                                         \
  static tfc_status kernel_##name(struct tfc_kernel_ctx *ctx) {                                                        \
    return ops_unary_kernel(ctx, table_##name, out, grain);                                                            \
  }
#define OPS_UNARY(name, LIST, ...)                                                                                     \
  LIST(OPS_UNARY_SAME_LOOP, name, __VA_ARGS__)                                                                         \
  OPS_UNARY_TABLE(name, LIST, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)
#define OPS_UNARY_COSTLY(name, LIST, ...)                                                                              \
  LIST(OPS_UNARY_SAME_LOOP, name, __VA_ARGS__)                                                                         \
  OPS_UNARY_TABLE(name, LIST, TFC_DTYPE_NONE, OPS_GRAIN_COSTLY)
#define OPS_PREDICATE(name, LIST, ...)                                                                                 \
  LIST(OPS_UNARY_TO_BOOL_LOOP, name, __VA_ARGS__)                                                                      \
  OPS_UNARY_TABLE(name, LIST, TFC_BOOL, OPS_GRAIN_CHEAP)

#define OPS_BINARY_STEP(t, r, ai, bi, ...)                                                                             \
  OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                                    \
    const C a = OPS_GET_##t(as[ai]), b = OPS_GET_##t(bs[bi]);                                                          \
    ys[i] = OPS_PUT_##r(__VA_ARGS__);                                                                                  \
  }
#define OPS_BINARY_LOOP(t, name, r, ...)                                                                               \
  OPS_CLONES_##t static void loop_##name##_##t(const void *av, int64_t a_step, const void *bv, int64_t b_step,         \
                                               void *yv, int64_t n) {                                                  \
    typedef ops_##t##_c C OPS_UNUSED;                                                                                  \
    typedef ops_##t##_u U OPS_UNUSED;                                                                                  \
    const ops_##t *as = av, *bs = bv;                                                                                  \
    ops_##r *ys = yv;                                                                                                  \
    if (a_step && b_step) {                                                                                            \
      OPS_BINARY_STEP(t, r, i, i, __VA_ARGS__)                                                                         \
    } else if (a_step) {                                                                                               \
      const ops_##t once[1] = {bs[0]};                                                                                 \
      bs = once;                                                                                                       \
      OPS_BINARY_STEP(t, r, i, 0, __VA_ARGS__)                                                                         \
    } else {                                                                                                           \
      const ops_##t once[1] = {as[0]};                                                                                 \
      as = once;                                                                                                       \
      if (b_step) {                                                                                                    \
        OPS_BINARY_STEP(t, r, 0, i, __VA_ARGS__)                                                                       \
      } else {                                                                                                         \
        OPS_BINARY_STEP(t, r, 0, 0, __VA_ARGS__)                                                                       \
      }                                                                                                                \
    }                                                                                                                  \
  }
#define OPS_BINARY_SAME_LOOP(t, name, ...) OPS_BINARY_LOOP(t, name, t, __VA_ARGS__)
#define OPS_BINARY_TO_BOOL_LOOP(t, name, ...) OPS_BINARY_LOOP(t, name, b8, __VA_ARGS__)
#define OPS_BINARY_TABLE(name, LIST, out, grain)                                                                       \
  static ops_binary_fn *const table_##name[TFC_DTYPE_COUNT] = {LIST(OPS_TABLE_ROW, name)};                             \
  OPS_UNUSED static const struct tfc_elementwise loops_##name = {.binary = table_##name};                              \
  enum { types_##name = (int)OPS_BITS(LIST) };                                                                         \
  OPS_UNUSED static tfc_status kernel_##name(struct tfc_kernel_ctx *ctx) {                                             \
    return ops_binary_kernel(ctx, table_##name, out, grain);                                                           \
  }
// For operands with the same number of elements; the result has the shape of the first.
#define OPS_PAIRED_TABLE(name, LIST, out, grain)                                                                       \
  static ops_binary_fn *const table_##name[TFC_DTYPE_COUNT] = {LIST(OPS_TABLE_ROW, name)};                             \
  OPS_UNUSED static const struct tfc_elementwise loops_##name = {.binary = table_##name};                              \
  enum { types_##name = (int)OPS_BITS(LIST) };                                                                         \
  static tfc_status kernel_##name(struct tfc_kernel_ctx *ctx) {                                                        \
    return ops_paired_kernel(ctx, table_##name, grain);                                                                \
  }
#define OPS_BINARY(name, LIST, ...)                                                                                    \
  LIST(OPS_BINARY_SAME_LOOP, name, __VA_ARGS__)                                                                        \
  OPS_BINARY_TABLE(name, LIST, TFC_DTYPE_NONE, OPS_GRAIN_CHEAP)
#define OPS_BINARY_COSTLY(name, LIST, ...)                                                                             \
  LIST(OPS_BINARY_SAME_LOOP, name, __VA_ARGS__)                                                                        \
  OPS_BINARY_TABLE(name, LIST, TFC_DTYPE_NONE, OPS_GRAIN_COSTLY)
#define OPS_COMPARE(name, LIST, ...)                                                                                   \
  LIST(OPS_BINARY_TO_BOOL_LOOP, name, __VA_ARGS__)                                                                     \
  OPS_BINARY_TABLE(name, LIST, TFC_BOOL, OPS_GRAIN_CHEAP)

#endif
