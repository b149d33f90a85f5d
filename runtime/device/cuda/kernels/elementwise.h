// Element-wise kernels: one list of all ops, with the types that each is compiled for. elementwise.c makes rows of it,
// the files elementwise_*.cu make kernels. An op is one line here and one expression in expressions.cuh.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_ELEMENTWISE_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_ELEMENTWISE_H

#include "runtime/device/cuda/kernels/types.h"

// name, list of types
#define TFC_CUDA_UNARY_ARITHMETIC(X)                                                                                   \
  X(Neg, TFC_CUDA_REALS)                                                                                               \
  X(Abs, TFC_CUDA_REALS)                                                                                               \
  X(Square, TFC_CUDA_REALS)                                                                                            \
  X(Sqrt, OPS_FLOATS)                                                                                                  \
  X(Rsqrt, OPS_FLOATS)                                                                                                 \
  X(Reciprocal, OPS_FLOATS)                                                                                            \
  X(Sign, TFC_CUDA_REALS)                                                                                              \
  X(Floor, OPS_FLOATS)                                                                                                 \
  X(Ceil, OPS_FLOATS)                                                                                                  \
  X(Rint, OPS_FLOATS)                                                                                                  \
  X(Round, OPS_FLOATS)                                                                                                 \
  X(Invert, OPS_WIDE_INTS)                                                                                             \
  X(Relu, TFC_CUDA_REALS)                                                                                              \
  X(Relu6, OPS_FLOATS)                                                                                                 \
  X(LogicalNot, TFC_CUDA_BOOL)
#define TFC_CUDA_UNARY_TRANSCENDENTAL(X)                                                                               \
  X(Exp, OPS_FLOATS)                                                                                                   \
  X(Expm1, OPS_FLOATS)                                                                                                 \
  X(Log, OPS_FLOATS)                                                                                                   \
  X(Log1p, OPS_FLOATS)                                                                                                 \
  X(Tanh, OPS_FLOATS)                                                                                                  \
  X(Sigmoid, OPS_FLOATS)                                                                                               \
  X(Erf, OPS_FLOATS)                                                                                                   \
  X(Erfc, OPS_FLOATS)                                                                                                  \
  X(Sin, OPS_FLOATS)                                                                                                   \
  X(Cos, OPS_FLOATS)                                                                                                   \
  X(Tan, OPS_FLOATS)                                                                                                   \
  X(Atan, OPS_FLOATS)                                                                                                  \
  X(Elu, OPS_FLOATS)                                                                                                   \
  X(Selu, OPS_FLOATS)                                                                                                  \
  X(Softplus, OPS_FLOATS)                                                                                              \
  X(Softsign, OPS_FLOATS)
// Ops with boolean results.
#define TFC_CUDA_PREDICATES(X)                                                                                         \
  X(IsNan, OPS_FLOATS)                                                                                                 \
  X(IsInf, OPS_FLOATS)                                                                                                 \
  X(IsFinite, OPS_FLOATS)

#define TFC_CUDA_BINARY_ARITHMETIC(X)                                                                                  \
  X(Add, TFC_CUDA_REALS)                                                                                               \
  X(Sub, TFC_CUDA_REALS)                                                                                               \
  X(Mul, TFC_CUDA_REALS)                                                                                               \
  X(Div, TFC_CUDA_REALS)                                                                                               \
  X(Maximum, TFC_CUDA_REALS)                                                                                           \
  X(Minimum, TFC_CUDA_REALS)                                                                                           \
  X(SquaredDifference, TFC_CUDA_REALS)                                                                                 \
  X(LogicalAnd, TFC_CUDA_BOOL)                                                                                         \
  X(LogicalOr, TFC_CUDA_BOOL)                                                                                          \
  X(BitwiseAnd, OPS_WIDE_INTS)                                                                                         \
  X(BitwiseOr, OPS_WIDE_INTS)                                                                                          \
  X(BitwiseXor, OPS_WIDE_INTS)
#define TFC_CUDA_BINARY_QUOTIENT(X)                                                                                    \
  X(DivNoNan, OPS_FLOATS)                                                                                              \
  X(MulNoNan, OPS_FLOATS)                                                                                              \
  X(TruncateDiv, OPS_WIDE_INTS)                                                                                        \
  X(FloorDiv, TFC_CUDA_REALS)                                                                                          \
  X(Mod, TFC_CUDA_REALS)                                                                                               \
  X(FloorMod, TFC_CUDA_REALS)                                                                                          \
  X(Pow, TFC_CUDA_REALS)                                                                                               \
  X(Atan2, OPS_FLOATS)                                                                                                 \
  X(Xdivy, OPS_FLOATS)                                                                                                 \
  X(Xlogy, OPS_FLOATS)
// Made by a rewrite of plans (runtime/exec/rewrites/masks.c).
#define TFC_CUDA_SINGLE(X, ...) X(f32, __VA_ARGS__)
#define TFC_CUDA_BINARY_MASKS(X)                                                                                       \
  X(AtLeast, TFC_CUDA_SINGLE)                                                                                          \
  X(Keep, TFC_CUDA_SINGLE)
// Gradients of functions of one operand. `a` is the function's value (or its argument), `b` the gradient of its result.
#define TFC_CUDA_BINARY_SLOPES(X)                                                                                      \
  X(ReciprocalGrad, OPS_FLOATS)                                                                                        \
  X(SqrtGrad, OPS_FLOATS)                                                                                              \
  X(RsqrtGrad, OPS_FLOATS)                                                                                             \
  X(TanhGrad, OPS_FLOATS)                                                                                              \
  X(SigmoidGrad, OPS_FLOATS)                                                                                           \
  X(ReluGrad, TFC_CUDA_REALS)                                                                                          \
  X(Relu6Grad, OPS_FLOATS)                                                                                             \
  X(EluGrad, OPS_FLOATS)                                                                                               \
  X(SeluGrad, OPS_FLOATS)                                                                                              \
  X(SoftplusGrad, OPS_FLOATS)                                                                                          \
  X(SoftsignGrad, OPS_FLOATS)
// Ops with boolean results: the types that can be ordered, and those that can be compared.
#define TFC_CUDA_ORDERED(X, ...) TFC_CUDA_REALS(X, __VA_ARGS__) TFC_CUDA_BYTES(X, __VA_ARGS__)
#define TFC_CUDA_COMPARABLE(X, ...) TFC_CUDA_ORDERED(X, __VA_ARGS__) TFC_CUDA_BOOL(X, __VA_ARGS__)
#define TFC_CUDA_COMPARISONS(X)                                                                                        \
  X(Equal, TFC_CUDA_COMPARABLE)                                                                                        \
  X(NotEqual, TFC_CUDA_COMPARABLE)                                                                                     \
  X(Less, TFC_CUDA_ORDERED)                                                                                            \
  X(LessEqual, TFC_CUDA_ORDERED)                                                                                       \
  X(Greater, TFC_CUDA_ORDERED)                                                                                         \
  X(GreaterEqual, TFC_CUDA_ORDERED)

// All launchers return the launch's cudaError_t; `type` is the number of the operands' type.
#define TFC_CUDA_DECLARE_UNARY(name, LIST)                                                                             \
  TFC_CUDA_API int tfc_cuda_unary_##name(int type, const struct tfc_cuda_broadcast *plan, const void *x, void *y,      \
                                         void *stream);
#define TFC_CUDA_DECLARE_BINARY(name, LIST)                                                                            \
  TFC_CUDA_API int tfc_cuda_binary_##name(int type, const struct tfc_cuda_broadcast *plan, const void *a,              \
                                          const void *b, void *y, void *stream);
TFC_CUDA_UNARY_ARITHMETIC(TFC_CUDA_DECLARE_UNARY)
TFC_CUDA_UNARY_TRANSCENDENTAL(TFC_CUDA_DECLARE_UNARY)
TFC_CUDA_PREDICATES(TFC_CUDA_DECLARE_UNARY)
TFC_CUDA_BINARY_ARITHMETIC(TFC_CUDA_DECLARE_BINARY)
TFC_CUDA_BINARY_QUOTIENT(TFC_CUDA_DECLARE_BINARY)
TFC_CUDA_BINARY_MASKS(TFC_CUDA_DECLARE_BINARY)
TFC_CUDA_BINARY_SLOPES(TFC_CUDA_DECLARE_BINARY)
TFC_CUDA_COMPARISONS(TFC_CUDA_DECLARE_BINARY)

// leaky_relu: y = x > 0 ? x : alpha x; leaky_relu_grad: y = x > 0 ? g : alpha g
TFC_CUDA_API int tfc_cuda_leaky_relu(int type, const struct tfc_cuda_broadcast *plan, const void *x, void *y,
                                     double alpha, void *stream);
TFC_CUDA_API int tfc_cuda_leaky_relu_grad(int type, const struct tfc_cuda_broadcast *plan, const void *x, const void *g,
                                          void *y, double alpha, void *stream);
// y = (to)x; `from` and `to` are numbers of types; `truncate`: conversion to 16-bit floats cuts bits off instead of
// rounding
TFC_CUDA_API int tfc_cuda_cast(int from, int to, bool truncate, const void *x, void *y, int64_t n, void *stream);
// y = c ? t : e, elements of `size` bytes (1, 2, 4, 8)
TFC_CUDA_API int tfc_cuda_select(int size, const struct tfc_cuda_broadcast *plan, const void *c, const void *t,
                                 const void *e, void *y, void *stream);
// y = x[0] + … + x[count - 1], from left to right; count is at most TFC_CUDA_ADDENDS. `more`: y already has a
// sum, to which all x are added.
enum { TFC_CUDA_ADDENDS = 256 };
TFC_CUDA_API int tfc_cuda_add_n(int type, const void *const *x, int count, void *y, int64_t n, bool more, void *stream);
// y[i] = value, elements of `size` bytes (1, 2, 4, 8, 16); `value` in device memory
TFC_CUDA_API int tfc_cuda_fill(int size, const void *value, void *y, int64_t n, void *stream);
// y[i] = one
TFC_CUDA_API int tfc_cuda_ones(int type, void *y, int64_t n, void *stream);

#endif
