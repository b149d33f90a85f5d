// For the C files and the .cu files of each kernel family: the lists of types that families are compiled for, and
// broadcasting. It is valid C and C++ and includes no header of CUDA.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_TYPES_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ops/element_lists.h"

#ifdef __cplusplus
#define TFC_CUDA_API extern "C"
#else
#define TFC_CUDA_API
#endif

// Lists of types in addition to those of element_lists.h. Graphs compute with the wide integers; the narrow ones are
// only stored, compared and cast.
#define TFC_CUDA_REALS(X, ...) OPS_FLOATS(X, __VA_ARGS__) OPS_WIDE_INTS(X, __VA_ARGS__)
#define TFC_CUDA_BYTES(X, ...) X(u8, __VA_ARGS__) X(i8, __VA_ARGS__)
#define TFC_CUDA_NARROW(X, ...)                                                                                        \
  TFC_CUDA_BYTES(X, __VA_ARGS__) X(i16, __VA_ARGS__) X(u16, __VA_ARGS__) X(u32, __VA_ARGS__) X(u64, __VA_ARGS__)
#define TFC_CUDA_BOOL(X, ...) X(b8, __VA_ARGS__)
#define TFC_CUDA_ALL(X, ...)                                                                                           \
  TFC_CUDA_REALS(X, __VA_ARGS__) TFC_CUDA_NARROW(X, __VA_ARGS__) TFC_CUDA_BOOL(X, __VA_ARGS__)

enum { TFC_CUDA_RANK = 8 };

// How up to three operands are broadcast to one output. Neighbouring dimensions that behave equally are joined. Offsets
// are in elements of each operand. The innermost dimension is counted in groups of `vector` elements, which one thread
// handles at once; `step` says whether an operand moves with the elements of a group (1) or has one value for all of it
// (0).
struct tfc_cuda_broadcast {
  int64_t groups; // in the whole output
  int32_t rank;
  int32_t vector;
  int64_t dims[TFC_CUDA_RANK];
  int64_t strides[3][TFC_CUDA_RANK];
  int32_t step[3];
};

#endif
