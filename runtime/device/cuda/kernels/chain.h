// Chains of element-wise float32 operations in one kernel, also with sums of rows between them. The kernel reads the
// steps of the chain (runtime/host/chain/chain.h) while it runs, so that no plan waits for a compiler. Each step
// computes and rounds exactly as the op's own kernel does (expressions.cuh), so results are bit-identical to those of
// single operations.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_CHAIN_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_CHAIN_H

#include "runtime/device/cuda/kernels/types.h"

// The ops that can be a step of a chain: those whose kernels need few registers and have no branches.
#define TFC_CUDA_CHAIN_UNARY(X)                                                                                        \
  X(Neg)                                                                                                               \
  X(Abs)                                                                                                               \
  X(Square)                                                                                                            \
  X(Sqrt)                                                                                                              \
  X(Rsqrt)                                                                                                             \
  X(Reciprocal)                                                                                                        \
  X(Sign)                                                                                                              \
  X(Floor)                                                                                                             \
  X(Ceil)                                                                                                              \
  X(Rint)                                                                                                              \
  X(Round)                                                                                                             \
  X(Relu)                                                                                                              \
  X(Relu6)                                                                                                             \
  X(Exp)                                                                                                               \
  X(Expm1)                                                                                                             \
  X(Log)                                                                                                               \
  X(Log1p)                                                                                                             \
  X(Tanh)                                                                                                              \
  X(Sigmoid)                                                                                                           \
  X(Erf)                                                                                                               \
  X(Elu)                                                                                                               \
  X(Selu)                                                                                                              \
  X(Softplus)                                                                                                          \
  X(Softsign)
#define TFC_CUDA_CHAIN_BINARY(X)                                                                                       \
  X(Add)                                                                                                               \
  X(Sub)                                                                                                               \
  X(Mul)                                                                                                               \
  X(Div)                                                                                                               \
  X(Maximum)                                                                                                           \
  X(Minimum)                                                                                                           \
  X(SquaredDifference)                                                                                                 \
  X(DivNoNan)                                                                                                          \
  X(MulNoNan)                                                                                                          \
  X(ReciprocalGrad)                                                                                                    \
  X(SqrtGrad)                                                                                                          \
  X(RsqrtGrad)                                                                                                         \
  X(TanhGrad)                                                                                                          \
  X(SigmoidGrad)                                                                                                       \
  X(ReluGrad)                                                                                                          \
  X(Relu6Grad)                                                                                                         \
  X(EluGrad)                                                                                                           \
  X(SeluGrad)                                                                                                          \
  X(SoftplusGrad)                                                                                                      \
  X(SoftsignGrad)                                                                                                      \
  X(AtLeast)                                                                                                           \
  X(Keep)
enum tfc_cuda_chain_expression {
#define TFC_CUDA_CHAIN_ENUM(name) TFC_CUDA_CHAIN_##name,
  TFC_CUDA_CHAIN_UNARY(TFC_CUDA_CHAIN_ENUM) TFC_CUDA_CHAIN_FIRST_BINARY,
  TFC_CUDA_CHAIN_BINARY(TFC_CUDA_CHAIN_ENUM)
#undef TFC_CUDA_CHAIN_ENUM
  // only in rows: a copy, and the sum and the mean of a row
  TFC_CUDA_CHAIN_COPY,
  TFC_CUDA_CHAIN_ROW_SUM,
  TFC_CUDA_CHAIN_ROW_MEAN,
};

enum { TFC_CUDA_CHAIN_STEPS = 64, TFC_CUDA_CHAIN_OPERANDS = 32, TFC_CUDA_CHAIN_REGISTERS = 12 };
struct tfc_cuda_chain_operand { // in device memory; its fields are those of struct tfc_chain_operand
  void *data;                   // the first element
  int64_t row, each, cycle;
  int32_t column;
};
struct tfc_cuda_chain_step {
  uint8_t expression;
  int8_t a, b, out; // an operand, or a register (-1 - r)
};
struct tfc_cuda_chain { // passed to the kernel by value
  int64_t rows, columns;
  int32_t step_count, operand_count;
  struct tfc_cuda_chain_step steps[TFC_CUDA_CHAIN_STEPS];
  struct tfc_cuda_chain_operand operands[TFC_CUDA_CHAIN_OPERANDS];
};
TFC_CUDA_API int tfc_cuda_chain_run(const struct tfc_cuda_chain *chain, void *stream);

// The same with sums and means of rows among the steps. `lanes` threads share a row, as in a reduction of these rows
// (tfc_cuda_reduction_split), and each has at most TFC_CUDA_ROW_PACKS times four elements of it. An operand with column
// 0 has one number for each row.
enum { TFC_CUDA_ROW_PACKS = 4 };
TFC_CUDA_API int tfc_cuda_chain_run_rows(const struct tfc_cuda_chain *chain, int32_t lanes, void *stream);

#endif
