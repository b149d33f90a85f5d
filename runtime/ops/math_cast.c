// Conversions between element types: Cast, Bitcast, and complex numbers to and from their parts.
//
// A float out of range becomes an integer as on the hardware of TensorFlow's CPU kernels: the smallest integer of the
// 32- or 64-bit conversion, cut to the type's width. Complex to real drops the imaginary part.
#include <float.h>
#include <limits.h>
#include <math.h>
#include <tgmath.h>

#include "runtime/ops/gradient.h"
#include "runtime/ops/math_elementwise.h"
#include "runtime/ops/row.h"

#ifndef CMPLX // the C library's header defines it for GCC only
#define CMPLX(real, imaginary) __builtin_complex((double)(real), (double)(imaginary))
#define CMPLXF(real, imaginary) __builtin_complex((float)(real), (float)(imaginary))
#endif

// --- Cast --------------------------------------------------------------------------------------------------------
#define INLINE static inline __attribute__((always_inline))
INLINE int32_t f32_to_i32(float x) {
  return x >= -2147483648.0f && x < 2147483648.0f ? (int32_t)x : INT32_MIN;
}
INLINE int32_t f64_to_i32(double x) {
  return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
INLINE int64_t f32_to_i64(float x) {
  return x >= -0x1p63f && x < 0x1p63f ? (int64_t)x : INT64_MIN;
}
INLINE int64_t f64_to_i64(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}
INLINE uint64_t f64_to_u64(double x) {
  return x < 0x1p63 ? (uint64_t)f64_to_i64(x) : (uint64_t)f64_to_i64(x - 0x1p63) ^ (1ull << 63);
}
INLINE uint64_t f32_to_u64(float x) {
  return f64_to_u64((double)x);
}
INLINE int32_t c64_to_i32(float _Complex x) {
  return f32_to_i32(crealf(x));
}
INLINE int32_t c128_to_i32(double _Complex x) {
  return f64_to_i32(creal(x));
}
INLINE int64_t c64_to_i64(float _Complex x) {
  return f32_to_i64(crealf(x));
}
INLINE int64_t c128_to_i64(double _Complex x) {
  return f64_to_i64(creal(x));
}
INLINE uint64_t c64_to_u64(float _Complex x) {
  return f32_to_u64(crealf(x));
}
INLINE uint64_t c128_to_u64(double _Complex x) {
  return f64_to_u64(creal(x));
}
INLINE int64_t same_i64(int64_t x) {
  return x;
}
INLINE uint64_t same_u64(uint64_t x) {
  return x;
}
#define TO32(x)                                                                                                        \
  _Generic((x), float                                                                                                  \
           : f32_to_i32, double                                                                                        \
           : f64_to_i32, float _Complex                                                                                \
           : c64_to_i32, double _Complex                                                                               \
           : c128_to_i32, default                                                                                      \
           : same_i64)((x))
#define TO64(x)                                                                                                        \
  _Generic((x), float                                                                                                  \
           : f32_to_i64, double                                                                                        \
           : f64_to_i64, float _Complex                                                                                \
           : c64_to_i64, double _Complex                                                                               \
           : c128_to_i64, default                                                                                      \
           : same_i64)((x))
#define TOU64(x)                                                                                                       \
  _Generic((x), float                                                                                                  \
           : f32_to_u64, double                                                                                        \
           : f64_to_u64, float _Complex                                                                                \
           : c64_to_u64, double _Complex                                                                               \
           : c128_to_u64, default                                                                                      \
           : same_u64)((x))
#define AS_f32(x) (float)(x)
#define AS_f64(x) (double)(x)
#define AS_f16(x) (float)(x)
#define AS_b16(x) (float)(x)
#define AS_i8(x) TO32(x)
#define AS_i16(x) TO32(x)
#define AS_i32(x) TO32(x)
#define AS_i64(x) TO64(x)
#define AS_u8(x) TO32(x)
#define AS_u16(x) TO32(x)
#define AS_u32(x) TO64(x)
#define AS_u64(x) TOU64(x)
#define AS_b8(x) (x) != 0
#define AS_c64(x) (float _Complex)(x)
#define AS_c128(x) (double _Complex)(x)

#define CAST_LOOP(s, t)                                                                                                \
  static void cast_##s##_##t(const void *xv, void *yv, int64_t n) {                                                    \
    const ops_##s *xs = xv;                                                                                            \
    ops_##t *ys = yv;                                                                                                  \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      const ops_##s##_c x = OPS_GET_##s(xs[i]);                                                                        \
      ys[i] = OPS_PUT_##t(AS_##t(x));                                                                                  \
    }                                                                                                                  \
  }
// OPS_ALL inside OPS_ALL would not expand: the inner list is written out.
#define EACH_TARGET(s, M)                                                                                              \
  M(s, f32)                                                                                                            \
  M(s, f64)                                                                                                            \
  M(s, f16)                                                                                                            \
  M(s, b16) M(s, i8) M(s, i16) M(s, i32) M(s, i64) M(s, u8) M(s, u16) M(s, u32) M(s, u64) M(s, b8) M(s, c64) M(s, c128)
#define CAST_LOOPS(s, ...) EACH_TARGET(s, CAST_LOOP)
#define CAST_ENTRY(s, t) [OPS_DT_##t] = cast_##s##_##t,
#define CAST_ROW(s, ...) [OPS_DT_##s] = {EACH_TARGET(s, CAST_ENTRY)},
OPS_ALL(CAST_LOOPS, ~)
static ops_unary_fn *const cast_table[TFC_DTYPE_COUNT][TFC_DTYPE_COUNT] = {OPS_ALL(CAST_ROW, ~)};

struct cast_state {
  tfc_dtype to;
  bool truncate;
};
static tfc_status prepare_cast(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct cast_state, state);
  state->to = tfc_node_attr_type(ctx->graph, ctx->node, "DstT", TFC_DTYPE_NONE);
  state->truncate = tfc_node_attr_bool(ctx->graph, ctx->node, "Truncate", false);
  return NULL;
}

// Truncate: the mantissa's bits that the target type lacks are cleared first, so that nothing is rounded up.
static int mantissa_bits(tfc_dtype t) {
  return t == TFC_DOUBLE ? 52 : t == TFC_FLOAT ? 23 : t == TFC_HALF ? 10 : t == TFC_BFLOAT16 ? 7 : 0;
}
static tfc_status cast_truncated(struct tfc_kernel_ctx *ctx, tfc_dtype to) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_buffer *held = NULL;
  struct tfc_tensor *y = NULL;
  int drop = mantissa_bits(x->dtype) - mantissa_bits(to);
  int64_t n = tfc_tensor_elements(x);
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, x->size + 1, &held));
  for (int64_t i = 0; i < n; i++) {
    if (x->dtype == TFC_DOUBLE)
      ((uint64_t *)held->data)[i] = ((const uint64_t *)x->data)[i] & (UINT64_MAX << drop);
    else
      ((uint32_t *)held->data)[i] = ((const uint32_t *)x->data)[i] & (UINT32_MAX << drop);
  }
  tfc_status s = tfc_kernel_output(ctx, 0, to, &x->shape, &y);
  if (!s) cast_table[x->dtype][to](held->data, y->data, n);
  tfc_buffer_release(held);
  return s;
}

static tfc_status cast(struct tfc_kernel_ctx *ctx) {
  tfc_dtype to = ((const struct cast_state *)ctx->state)->to, from = ctx->inputs[0]->dtype;
  if (to == from) return tfc_kernel_set_output(ctx, 0, ctx->inputs[0]);
  if (!cast_table[from][to])
    return tfc_status_make(TFC_UNIMPLEMENTED, "Cast from %s to %s", tfc_dtype_name(from), tfc_dtype_name(to));
  bool narrows =
      (from == TFC_DOUBLE || from == TFC_FLOAT) && mantissa_bits(to) && mantissa_bits(to) < mantissa_bits(from);
  if (narrows && !(from == TFC_DOUBLE && to == TFC_BFLOAT16) && ((const struct cast_state *)ctx->state)->truncate)
    return cast_truncated(ctx, to);
  return ops_unary_apply(ctx, cast_table[from][to], to, OPS_GRAIN_CHEAP);
}

static tfc_status shape_cast(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[0];
  const struct tfc_shape *p = ctx->input_as_shape ? ctx->input_as_shape[0] : NULL;
  tfc_dtype to = tfc_node_attr_type(ctx->graph, ctx->node, "DstT", TFC_DTYPE_NONE);
  if (!p || p->rank < 0 || (to != TFC_INT32 && to != TFC_INT64)) return NULL;
  for (int d = 0; d < p->rank; d++)
    if (to == TFC_INT32 && p->dims[d] > INT32_MAX) return NULL;
  ops_set_partial(ctx, 0, p);
  return NULL;
}

static bool is_continuous(tfc_dtype t) {
  return tfc_dtype_is_floating(t) || tfc_dtype_is_complex(t);
}
OPS_GRADIENT(Cast) {
  tfc_dtype from = grad_type(g, X);
  if (is_continuous(from) && is_continuous(grad_type(g, G))) g->grad_inputs[0] = grad_cast(g, G, from);
  return NULL;
}

// --- Bitcast -----------------------------------------------------------------------------------------------------
static tfc_status bitcast_shape(const struct tfc_shape *in, size_t from, size_t to, struct tfc_shape *out) {
  struct tfc_shape s = *in;
  if (s.rank >= 0 && from > to) { // the result has one dimension more: the parts of each element
    if (s.rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "the result has too many dimensions");
    s.dims[s.rank++] = (int64_t)(from / to);
  } else if (s.rank >= 0 && from < to) { // the parts in the last dimension become one element
    int64_t parts = (int64_t)(to / from);
    if (s.rank == 0 || (tfc_dim_known(s.dims[s.rank - 1]) && s.dims[s.rank - 1] != parts)) {
      char text[TFC_SHAPE_TEXT];
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the last dimension of %s must be %lld", tfc_shape_show(in, text),
                             (long long)parts);
    }
    s.rank--;
  }
  *out = s;
  return NULL;
}

static tfc_status shape_bitcast(struct tfc_shape_ctx *ctx) {
  tfc_dtype to = tfc_node_attr_type(ctx->graph, ctx->node, "type", TFC_DTYPE_NONE);
  tfc_dtype from = tfc_node_attr_type(ctx->graph, ctx->node, "T", TFC_DTYPE_NONE);
  if (from == TFC_DTYPE_NONE || to == TFC_DTYPE_NONE) return NULL;
  return bitcast_shape(ctx->inputs[0], tfc_dtype_size(from), tfc_dtype_size(to), &ctx->outputs[0]);
}

static tfc_status prepare_bitcast(struct tfc_prepare_ctx *ctx) {
  OPS_PREPARE_STATE(ctx, struct cast_state, state);
  state->to = tfc_node_attr_type(ctx->graph, ctx->node, "type", TFC_DTYPE_NONE);
  return NULL;
}

static tfc_status bitcast(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor view = *ctx->inputs[0];
  tfc_dtype to = ((const struct cast_state *)ctx->state)->to;
  TFC_RETURN_IF_ERROR(
      bitcast_shape(&ctx->inputs[0]->shape, tfc_dtype_size(view.dtype), tfc_dtype_size(to), &view.shape));
  view.dtype = to;
  return tfc_kernel_set_output(ctx, 0, &view);
}

// --- Complex numbers ---------------------------------------------------------------------------------------------
OPS_UNARY_LOOP(c64, Real, f32, crealf(x))
OPS_UNARY_LOOP(c128, Real, f64, creal(x))
OPS_UNARY_LOOP(c64, Imag, f32, cimagf(x))
OPS_UNARY_LOOP(c128, Imag, f64, cimag(x))
OPS_UNARY_LOOP(c64, Angle, f32, cargf(x))
OPS_UNARY_LOOP(c128, Angle, f64, carg(x))
// As the C library's hypotf computes it, in double, but many at a time.
OPS_CLONES static void loop_ComplexAbs_c64(const void *xv, void *yv, int64_t n) {
  const float *x = xv;
  float *y = yv;
  OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) {
    const double re = (double)x[2 * i], im = (double)x[2 * i + 1];
    const double size = sqrt(re * re + im * im);
    y[i] = fabs(re) > DBL_MAX || fabs(im) > DBL_MAX ? INFINITY : (float)size; // also where the other part is NaN
  }
}
OPS_UNARY_LOOP(c128, ComplexAbs, f64, cabs(x))
// Checks that the declared type of the result fits the operand's type (float with complex64, double with complex128).
static tfc_status check_pair(const struct tfc_kernel_ctx *ctx, tfc_dtype want) {
  tfc_dtype have = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_KERNEL_CHECK(have == want, "Signature mismatch, have: %s->%s expected: %s->%s",
                   tfc_dtype_name(ctx->inputs[0]->dtype), tfc_dtype_name(have), tfc_dtype_name(ctx->inputs[0]->dtype),
                   tfc_dtype_name(want));
  return NULL;
}
#define PART(name)                                                                                                     \
  static ops_unary_fn *const table_##name[TFC_DTYPE_COUNT] = {OPS_COMPLEX(OPS_TABLE_ROW, name)};                       \
  static tfc_status kernel_##name(struct tfc_kernel_ctx *ctx) {                                                        \
    TFC_RETURN_IF_ERROR(check_pair(ctx, ctx->inputs[0]->dtype == TFC_COMPLEX64 ? TFC_FLOAT : TFC_DOUBLE));             \
    return ops_unary_kernel(ctx, table_##name, ctx->inputs[0]->dtype == TFC_COMPLEX64 ? TFC_FLOAT : TFC_DOUBLE,        \
                            OPS_GRAIN_CHEAP);                                                                          \
  }
PART(Real)
PART(Imag)
PART(Angle)
PART(ComplexAbs)

// The number is put together from its parts: computing a + b i would turn infinities into NaN.
OPS_BINARY_LOOP(f32, Complex, c64, CMPLXF(a, b))
OPS_BINARY_LOOP(f64, Complex, c128, CMPLX(a, b))
static ops_binary_fn *const table_Complex[TFC_DTYPE_COUNT] = {OPS_WIDE_FLOATS(OPS_TABLE_ROW, Complex)};
static tfc_status kernel_Complex(struct tfc_kernel_ctx *ctx) {
  TFC_RETURN_IF_ERROR(check_pair(ctx, ctx->inputs[0]->dtype == TFC_FLOAT ? TFC_COMPLEX64 : TFC_COMPLEX128));
  return ops_binary_kernel(ctx, table_Complex, ctx->inputs[0]->dtype == TFC_FLOAT ? TFC_COMPLEX64 : TFC_COMPLEX128,
                           OPS_GRAIN_CHEAP);
}

// Adds a Complex node. Its attribute Tout, the result's type, has a default and so does not follow from the inputs'
// type.
static struct tfc_output to_complex(struct tfc_grad_ctx *g, struct tfc_output re, struct tfc_output im) {
  struct tfc_attr attr = tfc_attr_type("Tout", grad_type(g, re) == TFC_DOUBLE ? TFC_COMPLEX128 : TFC_COMPLEX64);
  return tfc_add(g->builder, "Complex", "", (struct tfc_output[]){re, im}, 2, &attr, 1);
}
static struct tfc_output part_of(struct tfc_grad_ctx *g, const char *op, struct tfc_output z) {
  struct tfc_attr attr = tfc_attr_type("Tout", grad_type(g, z) == TFC_COMPLEX128 ? TFC_DOUBLE : TFC_FLOAT);
  return tfc_add(g->builder, op, "", &z, 1, &attr, 1);
}
OPS_GRADIENT(Complex) {
  struct tfc_output gx = part_of(g, "Real", G), gy = part_of(g, "Imag", G);
  grad_unbroadcast(g, X, g->input_shapes[0], grad_in(g, 1), g->input_shapes[1], &gx, &gy);
  g->grad_inputs[0] = gx;
  g->grad_inputs[1] = gy;
  return NULL;
}
OPS_GRADIENT(Real) {
  g->grad_inputs[0] = to_complex(g, G, grad_const(g, G, 0));
  return NULL;
}
OPS_GRADIENT(Imag) {
  g->grad_inputs[0] = to_complex(g, grad_const(g, G, 0), G);
  return NULL;
}
OPS_GRADIENT(Angle) { // -G / (Im x + i Re x)
  struct tfc_output re = part_of(g, "Real", X), im = part_of(g, "Imag", X);
  struct tfc_output z = grad_op1(g, "Reciprocal", to_complex(g, im, re));
  g->grad_inputs[0] = g_mul(g, g_neg(g, to_complex(g, G, grad_const(g, G, 0))), z);
  return NULL;
}
OPS_GRADIENT(ComplexAbs) {
  struct tfc_output scaled = g_mul(g, to_complex(g, G, grad_op1(g, "ZerosLike", G)), X);
  g->grad_inputs[0] = grad_op2(g, "DivNoNan", scaled, to_complex(g, Y, grad_op1(g, "ZerosLike", Y)));
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
#define PART_ROW(op)                                                                                                   \
  .types = OPS_BITS(OPS_COMPLEX), .shape = ops_shape_same, .cost = ops_cost_outputs, .kernel = kernel_##op,            \
  .gradient = gradient_##op, .samples = "complex64[3,4]; complex128[2] {Tout=double}"

static const struct tfc_op_def math_cast_rows[] = {
    {.name = "Cast",
     .inputs = "x: SrcT",
     .outputs = "y: DstT",
     .attrs = "SrcT: type, DstT: type, Truncate: bool = false",
     .types = OPS_BITS(OPS_ALL),
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_cast,
     .prepare = prepare_cast,
     .kernel = cast,
     .gradient = gradient_Cast,
     .samples = "float[3,4] {DstT=int32}; int32[4] {DstT=float}; half[3] {DstT=float}; bool[2] {DstT=int64}"},
    {.name = "Bitcast",
     .inputs = "input: T",
     .outputs = "output: type",
     .attrs =
         "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, "
         "complex128, qint8, quint8, qint16, quint16, qint32}, type: {bfloat16, half, float, double, int64, int32, "
         "uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_bitcast,
     .cost = ops_cost_nothing,
     .prepare = prepare_bitcast,
     .kernel = bitcast,
     .samples = "float[3,4] {type=int32}; double[2] {type=float}"},
    {.name = "Real",
     .inputs = "input: T",
     .outputs = "output: Tout",
     .attrs = "T: {complex64, complex128} = complex64, Tout: {float, double} = float",
     PART_ROW(Real)},
    {.name = "Imag",
     .inputs = "input: T",
     .outputs = "output: Tout",
     .attrs = "T: {complex64, complex128} = complex64, Tout: {float, double} = float",
     PART_ROW(Imag)},
    {.name = "Angle",
     .inputs = "input: T",
     .outputs = "output: Tout",
     .attrs = "T: {complex64, complex128} = complex64, Tout: {float, double} = float",
     PART_ROW(Angle)},
    {.name = "ComplexAbs",
     .inputs = "x: T",
     .outputs = "y: Tout",
     .attrs = "T: {complex64, complex128} = complex64, Tout: {float, double} = float",
     PART_ROW(ComplexAbs)},
    {.name = "Complex",
     .inputs = "real: T, imag: T",
     .outputs = "out: Tout",
     .attrs = "T: {float, double} = float, Tout: {complex64, complex128} = complex64",
     .types = OPS_BITS(OPS_WIDE_FLOATS),
     .shape = ops_shape_broadcast,
     .cost = ops_cost_outputs,
     .kernel = kernel_Complex,
     .gradient = gradient_Complex,
     .samples = "float[3,4], float[3,4]; double[2], double[] {Tout=complex128}"},
};
TFC_REGISTER_OPS(math_cast_rows);
