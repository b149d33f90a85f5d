// For the C files and the .cu files of each kernel family: element types by TensorFlow's numbers, the lists of types
// that families are compiled for, and broadcasting. It is valid C and C++ and includes no header of tfc or CUDA.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_TYPES_H
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define TFC_CUDA_API extern "C"
#else
#define TFC_CUDA_API
#endif

// suffix, number in DataType
#define TFC_CUDA_TYPES(X)                                                                                              \
  X(f32, 1)                                                                                                            \
  X(f64, 2)                                                                                                            \
  X(i32, 3)                                                                                                            \
  X(u8, 4)                                                                                                             \
  X(i16, 5)                                                                                                            \
  X(i8, 6)                                                                                                             \
  X(i64, 9)                                                                                                            \
  X(b8, 10)                                                                                                            \
  X(b16, 14)                                                                                                           \
  X(u16, 17)                                                                                                           \
  X(f16, 19)                                                                                                           \
  X(u32, 22)                                                                                                           \
  X(u64, 23)
enum {
#define TFC_CUDA_TYPE_ENUM(t, number) TFC_CUDA_##t = number,
  TFC_CUDA_TYPES(TFC_CUDA_TYPE_ENUM)
#undef TFC_CUDA_TYPE_ENUM
};

// Lists of types: LIST(X, ...) calls X(t, ...) for each. TFC_CUDA_INTS are the integers that graphs compute
// with; the narrow ones are only stored and cast.
#define TFC_CUDA_FLOATS(X, ...) X(f32, __VA_ARGS__) X(f64, __VA_ARGS__) X(f16, __VA_ARGS__) X(b16, __VA_ARGS__)
#define TFC_CUDA_INTS(X, ...) X(i32, __VA_ARGS__) X(i64, __VA_ARGS__)
#define TFC_CUDA_REALS(X, ...) TFC_CUDA_FLOATS(X, __VA_ARGS__) TFC_CUDA_INTS(X, __VA_ARGS__)
#define TFC_CUDA_BYTES(X, ...) X(u8, __VA_ARGS__) X(i8, __VA_ARGS__)
#define TFC_CUDA_NARROW(X, ...)                                                                                        \
  TFC_CUDA_BYTES(X, __VA_ARGS__) X(i16, __VA_ARGS__) X(u16, __VA_ARGS__) X(u32, __VA_ARGS__) X(u64, __VA_ARGS__)
#define TFC_CUDA_BOOL(X, ...) X(b8, __VA_ARGS__)
#define TFC_CUDA_ALL(X, ...)                                                                                           \
  TFC_CUDA_REALS(X, __VA_ARGS__) TFC_CUDA_NARROW(X, __VA_ARGS__) TFC_CUDA_BOOL(X, __VA_ARGS__)
#define TFC_CUDA_BIT(t, ...) | 1u << TFC_CUDA_##t
#define TFC_CUDA_BITS(LIST) (0u LIST(TFC_CUDA_BIT, ~)) // for a row's `types`

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
