// Element types inside kernels. A kernel is written once and made for each type of a list, in one of two forms:
//
//   #define LOOP(t, ...) static void loop_##t(const ops_##t *x, ops_##t *y) { *y = OPS_PUT_##t(OPS_GET_##t(*x) * 2); }
//   OPS_FLOATS(LOOP, ~)                         // a function for each type, for tables of functions
//
//   OPS_SWITCH(OPS_FLOATS, x->dtype, {          // a case for each type, within a function
//     const S *in = x->data;                    // S: what lies in memory; C: what arithmetic is done in; U: what
//     S *out = y->data;                         // sums and products are done in
//     for (int64_t i = begin; i < end; i++) OPS_PUT(out[i], OPS_GET(in[i]) * (C)2);
//   })
//
// For a suffix t (f32, b16, i64, c64, ...):
//   ops_t      what lies in memory; f16 and b16 are structs, so that _Generic tells them from uint16_t
//   ops_t_c    what arithmetic is done in (float for the 16-bit floats)
//   ops_t_u    what sums and products of integers are done in, so that they wrap; else the same as ops_t_c
//   OPS_GET_t / OPS_PUT_t  between memory and arithmetic
//   OPS_DT_t   the tfc_dtype (element_lists.h, with the lists of types)
//
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_ELEMENT_TYPES_H
#define TFC_RUNTIME_OPS_ELEMENT_TYPES_H

#include <assert.h>
#include <complex.h>
#ifndef CMPLX // with clang, glibc's header does not define it
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#define CMPLXF(x, y) __builtin_complex((float)(x), (float)(y))
#endif
#include <stdint.h>

#include "runtime/graph/dtype.h"
#include "runtime/ops/element_lists.h"
#include "runtime/ops/narrow_values.h"

typedef float ops_f32, ops_f32_c, ops_f32_u;
typedef double ops_f64, ops_f64_c, ops_f64_u;
typedef struct {
  uint16_t bits;
} ops_f16;
typedef struct {
  uint16_t bits;
} ops_b16;
typedef float ops_f16_c, ops_f16_u, ops_b16_c, ops_b16_u;
typedef int8_t ops_i8, ops_i8_c;
typedef int16_t ops_i16, ops_i16_c;
typedef int32_t ops_i32, ops_i32_c;
typedef int64_t ops_i64, ops_i64_c;
typedef uint8_t ops_u8, ops_u8_c;
typedef uint16_t ops_u16, ops_u16_c;
typedef uint32_t ops_u32, ops_u32_c;
typedef uint64_t ops_u64, ops_u64_c;
typedef uint32_t ops_i8_u, ops_i16_u, ops_i32_u, ops_u8_u, ops_u16_u, ops_u32_u;
typedef uint64_t ops_i64_u, ops_u64_u;
typedef bool ops_b8, ops_b8_c, ops_b8_u;
typedef float _Complex ops_c64, ops_c64_c, ops_c64_u;
typedef double _Complex ops_c128, ops_c128_c, ops_c128_u;

#define OPS_GET_f32(v) (v)
#define OPS_GET_f64(v) (v)
#define OPS_GET_f16(v) ops_widen_half((v).bits)
#define OPS_GET_b16(v) ops_widen_bfloat16((v).bits)
#define OPS_GET_i8(v) (v)
#define OPS_GET_i16(v) (v)
#define OPS_GET_i32(v) (v)
#define OPS_GET_i64(v) (v)
#define OPS_GET_u8(v) (v)
#define OPS_GET_u16(v) (v)
#define OPS_GET_u32(v) (v)
#define OPS_GET_u64(v) (v)
#define OPS_GET_b8(v) (v)
#define OPS_GET_c64(v) (v)
#define OPS_GET_c128(v) (v)
#define OPS_PUT_f32(v) ((float)(v))
#define OPS_PUT_f64(v) ((double)(v))
#define OPS_PUT_f16(v) ((ops_f16){ops_narrow_half((float)(v))})
#define OPS_PUT_b16(v) ((ops_b16){ops_narrow_bfloat16((float)(v))})
#define OPS_PUT_i8(v) ((int8_t)(v))
#define OPS_PUT_i16(v) ((int16_t)(v))
#define OPS_PUT_i32(v) ((int32_t)(v))
#define OPS_PUT_i64(v) ((int64_t)(v))
#define OPS_PUT_u8(v) ((uint8_t)(v))
#define OPS_PUT_u16(v) ((uint16_t)(v))
#define OPS_PUT_u32(v) ((uint32_t)(v))
#define OPS_PUT_u64(v) ((uint64_t)(v))
#define OPS_PUT_b8(v) ((bool)(v))
#define OPS_PUT_c64(v) ((float _Complex)(v))
#define OPS_PUT_c128(v) ((double _Complex)(v))

// Rounds a value as storing it in memory would: TensorFlow's arithmetic in 16-bit floats rounds after every operation.
#define OPS_ROUND_f32(v) (v)
#define OPS_ROUND_f64(v) (v)
#define OPS_ROUND_f16(v) ops_widen_half(ops_narrow_half(v))
#define OPS_ROUND_b16(v) ops_widen_bfloat16(ops_narrow_bfloat16(v))

// Called if a switch over types has no case for `dtype`. Types are checked against the row's `types` before a kernel
// runs, so this is a programmer's mistake.
static inline void ops_bad_dtype(tfc_dtype dtype) {
  (void)dtype;
  assert(0 && "a kernel was given a dtype that its row does not list");
}
#define OPS_CASE(t, ...)                                                                                               \
  case OPS_DT_##t: {                                                                                                   \
    typedef ops_##t S;                                                                                                 \
    typedef ops_##t##_c C;                                                                                             \
    typedef ops_##t##_u U;                                                                                             \
    (void)(C *)0, (void)(U *)0;                                                                                        \
    __VA_ARGS__                                                                                                        \
  } break;
#define OPS_SWITCH(LIST, dtype, ...)                                                                                   \
  switch ((int)(dtype)) { LIST(OPS_CASE, __VA_ARGS__) default : ops_bad_dtype(dtype); }
#define OPS_MOVE(t, ...)                                                                                               \
  static inline ops_##t##_c ops_get_##t(ops_##t x) {                                                                   \
    return OPS_GET_##t(x);                                                                                             \
  }                                                                                                                    \
  static inline ops_##t ops_put_##t(ops_##t##_c x) {                                                                   \
    return OPS_PUT_##t(x);                                                                                             \
  }
OPS_ALL(OPS_MOVE, ~)
#undef OPS_MOVE
#define OPS_BY_TYPE(x, f)                                                                                              \
  _Generic((x), ops_f32                                                                                                \
           : f##_f32, ops_f64                                                                                          \
           : f##_f64, ops_f16                                                                                          \
           : f##_f16, ops_b16                                                                                          \
           : f##_b16, ops_i8                                                                                           \
           : f##_i8, ops_i16                                                                                           \
           : f##_i16, ops_i32                                                                                          \
           : f##_i32, ops_i64                                                                                          \
           : f##_i64, ops_u8                                                                                           \
           : f##_u8, ops_u16                                                                                           \
           : f##_u16, ops_u32                                                                                          \
           : f##_u32, ops_u64                                                                                          \
           : f##_u64, ops_b8                                                                                           \
           : f##_b8, ops_c64                                                                                           \
           : f##_c64, ops_c128                                                                                         \
           : f##_c128)
// OPS_GET reads an element of type S as a C; OPS_PUT writes one, cutting integers to the stored type as C does.
#define OPS_GET(place) OPS_BY_TYPE((place), ops_get)(place)
#define OPS_PUT(place, value) ((place) = OPS_BY_TYPE((place), ops_put)((C)(value)))

// For loops whose iterations touch only their own index: their outputs may be the memory of an input.
#if defined(__clang__)
#define OPS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define OPS_INDEPENDENT _Pragma("GCC ivdep")
#endif

// Compiles a function for several generations of x86-64; all give the same bits (no contraction, no reordering).
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TFC_SANITIZED) && defined(__OPTIMIZE__)
#define OPS_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define OPS_CLONES
#endif
// The element types for which several versions are worth their size.
#define OPS_CLONES_f32 OPS_CLONES
#define OPS_CLONES_f64 OPS_CLONES
#define OPS_CLONES_f16 OPS_CLONES
#define OPS_CLONES_b16 OPS_CLONES
#define OPS_CLONES_i8
#define OPS_CLONES_i16
#define OPS_CLONES_i32 OPS_CLONES
#define OPS_CLONES_i64
#define OPS_CLONES_u8
#define OPS_CLONES_u16
#define OPS_CLONES_u32
#define OPS_CLONES_u64
#define OPS_CLONES_b8
#define OPS_CLONES_c64
#define OPS_CLONES_c128

// Division of complex numbers as TensorFlow's vector code does it: both operands are first divided by the larger part
// of the divisor, which avoids overflow. If a part of the divisor is infinite, the result is NaN.
#define OPS_DIVIDE(t, r, make)                                                                                         \
  static inline ops_##t ops_divide_##t(ops_##t x, ops_##t y) {                                                         \
    const ops_##r a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y;                                      \
    const ops_##r p = c < 0 ? -c : c, q = d < 0 ? -d : d, most = p > q ? p : q, sc = c / most, sd = d / most;          \
    const ops_##r norm = sc * sc + sd * sd;                                                                            \
    return make((a * sc + b * sd) / norm / most, (b * sc - a * sd) / norm / most);                                     \
  }
OPS_DIVIDE(c64, f32, CMPLXF)
OPS_DIVIDE(c128, f64, CMPLX)
#undef OPS_DIVIDE

#endif
