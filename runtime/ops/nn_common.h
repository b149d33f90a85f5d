// What the families of neural-network, state, training, random, data and string ops share: element access for every
// dtype in one kernel body, and the common shape functions.
//
//   TFC_FLOAT_CASES(x->dtype, {                 // S: stored type, C: type to compute in
//     const S *in = x->data;
//     S *out = y->data;
//     for (int64_t i = begin; i < end; i++) TFC_PUT(out[i], TFC_GET(in[i]) * (C)2);
//   })
//
// half and bfloat16 are stored as structs, so that _Generic tells them apart, and computed in float.
#ifndef TFC_RUNTIME_OPS_NN_COMMON_H
#define TFC_RUNTIME_OPS_NN_COMMON_H

#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/kernel.h"

typedef struct {
  uint16_t bits;
} tfc_half;
typedef struct {
  uint16_t bits;
} tfc_bf16;

static inline float tfc_get_half(tfc_half x) {
  return tfc_half_to_float(x.bits);
}
static inline float tfc_get_bf16(tfc_bf16 x) {
  return tfc_bfloat16_to_float(x.bits);
}
static inline tfc_half tfc_put_half(float x) {
  return (tfc_half){tfc_float_to_half(x)};
}
static inline tfc_bf16 tfc_put_bf16(float x) {
  return (tfc_bf16){tfc_float_to_bfloat16(x)};
}
#define TFC_IDENTITY_(type, name)                                                                                      \
  static inline type tfc_same_##name(type x) {                                                                         \
    return x;                                                                                                          \
  }
TFC_IDENTITY_(float, f32)
TFC_IDENTITY_(double, f64)
TFC_IDENTITY_(int8_t, i8)
TFC_IDENTITY_(int16_t, i16)
TFC_IDENTITY_(int32_t, i32)
TFC_IDENTITY_(int64_t, i64)
TFC_IDENTITY_(uint8_t, u8)
TFC_IDENTITY_(uint16_t, u16)
TFC_IDENTITY_(uint32_t, u32)
TFC_IDENTITY_(uint64_t, u64)
TFC_IDENTITY_(bool, b)
TFC_IDENTITY_(float _Complex, c64)
TFC_IDENTITY_(double _Complex, c128)
#undef TFC_IDENTITY_

#define TFC_GENERIC_(x, half, bf16)                                                                                    \
  _Generic((x), tfc_half                                                                                               \
           : half, tfc_bf16                                                                                            \
           : bf16, float                                                                                               \
           : tfc_same_f32, double                                                                                      \
           : tfc_same_f64, int8_t                                                                                      \
           : tfc_same_i8, int16_t                                                                                      \
           : tfc_same_i16, int32_t                                                                                     \
           : tfc_same_i32, int64_t                                                                                     \
           : tfc_same_i64, uint8_t                                                                                     \
           : tfc_same_u8, uint16_t                                                                                     \
           : tfc_same_u16, uint32_t                                                                                    \
           : tfc_same_u32, uint64_t                                                                                    \
           : tfc_same_u64, bool                                                                                        \
           : tfc_same_b, float _Complex                                                                                \
           : tfc_same_c64, double _Complex                                                                             \
           : tfc_same_c128)
// The value of a stored element, in its type to compute in.
#define TFC_GET(place) TFC_GENERIC_((place), tfc_get_half, tfc_get_bf16)(place)
// Stores; integer results are cut to the stored type, as C's conversions do.
#define TFC_PUT(place, value) ((place) = TFC_GENERIC_((place), tfc_put_half, tfc_put_bf16)((C)(value)))

#define TFC_CASE_(number, stored, computed, ...)                                                                       \
  case number: {                                                                                                       \
    typedef stored S;                                                                                                  \
    typedef computed C;                                                                                                \
    (void)(C *)0;                                                                                                      \
    __VA_ARGS__                                                                                                        \
  } break;
#define TFC_FLOAT_CASES_(...)                                                                                          \
  TFC_CASE_(TFC_FLOAT, float, float, __VA_ARGS__)                                                                      \
  TFC_CASE_(TFC_DOUBLE, double, double, __VA_ARGS__)                                                                   \
  TFC_CASE_(TFC_HALF, tfc_half, float, __VA_ARGS__)                                                                    \
  TFC_CASE_(TFC_BFLOAT16, tfc_bf16, float, __VA_ARGS__)
#define TFC_INT_CASES_(...)                                                                                            \
  TFC_CASE_(TFC_INT8, int8_t, int8_t, __VA_ARGS__)                                                                     \
  TFC_CASE_(TFC_INT16, int16_t, int16_t, __VA_ARGS__)                                                                  \
  TFC_CASE_(TFC_INT32, int32_t, int32_t, __VA_ARGS__)                                                                  \
  TFC_CASE_(TFC_INT64, int64_t, int64_t, __VA_ARGS__)                                                                  \
  TFC_CASE_(TFC_UINT8, uint8_t, uint8_t, __VA_ARGS__)                                                                  \
  TFC_CASE_(TFC_UINT16, uint16_t, uint16_t, __VA_ARGS__)                                                               \
  TFC_CASE_(TFC_UINT32, uint32_t, uint32_t, __VA_ARGS__)                                                               \
  TFC_CASE_(TFC_UINT64, uint64_t, uint64_t, __VA_ARGS__)
#define TFC_COMPLEX_CASES_(...)                                                                                        \
  TFC_CASE_(TFC_COMPLEX64, float _Complex, float _Complex, __VA_ARGS__)                                                \
  TFC_CASE_(TFC_COMPLEX128, double _Complex, double _Complex, __VA_ARGS__)

#define TFC_SWITCH_(dtype, cases)                                                                                      \
  switch ((int)(dtype)) { cases default : tfc_nn_bad_dtype(dtype); }
#define TFC_FLOAT_CASES(dtype, ...) TFC_SWITCH_(dtype, TFC_FLOAT_CASES_(__VA_ARGS__))
#define TFC_REAL_CASES(dtype, ...) TFC_SWITCH_(dtype, TFC_FLOAT_CASES_(__VA_ARGS__) TFC_INT_CASES_(__VA_ARGS__))
#define TFC_NUMBER_CASES(dtype, ...)                                                                                   \
  TFC_SWITCH_(dtype, TFC_FLOAT_CASES_(__VA_ARGS__) TFC_INT_CASES_(__VA_ARGS__) TFC_COMPLEX_CASES_(__VA_ARGS__))
// Index types: I is int32_t or int64_t. May surround one of the above.
#define TFC_INDEX_CASES(dtype, ...)                                                                                    \
  switch ((int)(dtype)) {                                                                                              \
  case TFC_INT32: {                                                                                                    \
    typedef int32_t I;                                                                                                 \
    __VA_ARGS__                                                                                                        \
  } break;                                                                                                             \
  case TFC_INT64: {                                                                                                    \
    typedef int64_t I;                                                                                                 \
    __VA_ARGS__                                                                                                        \
  } break;                                                                                                             \
  default: tfc_nn_bad_dtype(dtype);                                                                                    \
  }
// The dtype was checked against the row's `types` before; reaching this is a programmer's mistake.
void tfc_nn_bad_dtype(tfc_dtype dtype);

// Bits for tfc_op_def.types.
#define TFC_TYPES_FLOAT                                                                                                \
  (TFC_TYPE_BIT(TFC_FLOAT) | TFC_TYPE_BIT(TFC_DOUBLE) | TFC_TYPE_BIT(TFC_HALF) | TFC_TYPE_BIT(TFC_BFLOAT16))
#define TFC_TYPES_INT                                                                                                  \
  (TFC_TYPE_BIT(TFC_INT8) | TFC_TYPE_BIT(TFC_INT16) | TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64) |              \
   TFC_TYPE_BIT(TFC_UINT8) | TFC_TYPE_BIT(TFC_UINT16) | TFC_TYPE_BIT(TFC_UINT32) | TFC_TYPE_BIT(TFC_UINT64))
#define TFC_TYPES_COMPLEX (TFC_TYPE_BIT(TFC_COMPLEX64) | TFC_TYPE_BIT(TFC_COMPLEX128))
#define TFC_TYPES_REAL (TFC_TYPES_FLOAT | TFC_TYPES_INT)
#define TFC_TYPES_NUMBER (TFC_TYPES_REAL | TFC_TYPES_COMPLEX)

// Hot loops, compiled for several generations of x86-64; every version gives the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TFC_SANITIZED) && defined(__OPTIMIZE__)
#define TFC_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define TFC_CLONES
#endif

// A real number out of a scalar of any real dtype.
double tfc_nn_scalar(const struct tfc_tensor *t);
int64_t tfc_nn_int(const struct tfc_tensor *t); // scalar of any integer dtype

// --- Shapes ------------------------------------------------------------------------------------------------------
tfc_status tfc_nn_shape_first(struct tfc_shape_ctx *ctx);     // every output has input 0's shape
tfc_status tfc_nn_shape_scalar(struct tfc_shape_ctx *ctx);    // every output is a scalar
tfc_status tfc_nn_shape_unknown(struct tfc_shape_ctx *ctx);   // nothing can be said
tfc_status tfc_nn_shape_none(struct tfc_shape_ctx *ctx);      // no outputs to tell of
tfc_status tfc_nn_shape_merge_all(struct tfc_shape_ctx *ctx); // all inputs agree, outputs are like them
// Input `i` has this rank (or an unknown one, then `out` has unknown dimensions).
TFC_MUST_USE tfc_status tfc_nn_rank(struct tfc_shape_ctx *ctx, uint32_t i, int rank, struct tfc_shape *out);
TFC_MUST_USE tfc_status tfc_nn_rank_at_least(struct tfc_shape_ctx *ctx, uint32_t i, int rank);
// The shape given as data by input `i` (constants, partial values); unknown rank where nothing is known.
struct tfc_shape tfc_nn_shape_input(struct tfc_shape_ctx *ctx, uint32_t i);
// Merges the shape of a list of inputs.
TFC_MUST_USE tfc_status tfc_nn_merge_inputs(struct tfc_shape_ctx *ctx, uint32_t from, uint32_t to,
                                            struct tfc_shape *out);
// Unknown stays unknown; dimensions >= 0 are added or multiplied.
static inline int64_t tfc_dim_add(int64_t a, int64_t b) {
  return a < 0 || b < 0 ? TFC_DIM_UNKNOWN : a + b;
}
static inline int64_t tfc_dim_mul(int64_t a, int64_t b) {
  int64_t c;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &c) ? TFC_DIM_UNKNOWN : c;
}

// Element-wise costs: `flops` per element of output 0 beside all bytes.
void tfc_nn_cost_elementwise(double flops, const struct tfc_graph *g, const struct tfc_node *n,
                             const struct tfc_shape *inputs, const struct tfc_shape *outputs, struct tfc_op_cost *out);
// Bytes of all inputs and outputs.
double tfc_nn_bytes(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs);
#define TFC_COST_PER_ELEMENT(name, flops)                                                                              \
  static void name(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,                \
                   const struct tfc_shape *outputs, struct tfc_op_cost *out) {                                         \
    tfc_nn_cost_elementwise(flops, g, n, inputs, outputs, out);                                                        \
  }

// --- Gradients ---------------------------------------------------------------------------------------------------
// A node with the same-named attributes copied from the forward node: names is "strides padding data_format".
struct tfc_output tfc_grad_add(const struct tfc_grad_ctx *c, const char *op, const struct tfc_output *inputs,
                               uint32_t count, const char *copied);
#define TFC_OUTPUTS(...)                                                                                               \
  ((struct tfc_output[]){__VA_ARGS__}),                                                                                \
      (uint32_t)(sizeof((struct tfc_output[]){__VA_ARGS__}) / sizeof(struct tfc_output))
tfc_status tfc_grad_status(const struct tfc_grad_ctx *c); // NULL, or a copy of the builder's failure
// Nothing arrives there: no edge, or zeros that the gradient builder put in.
bool tfc_grad_is_zero(const struct tfc_grad_ctx *c, struct tfc_output g);
tfc_status tfc_grad_identity(struct tfc_grad_ctx *c); // dx = dy
tfc_status ops_grad_batch_norm_grad(struct tfc_grad_ctx *ctx);

#endif
