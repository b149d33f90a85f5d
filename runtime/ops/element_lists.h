// Lists of element types by suffix (f32, b16, i64, c64, ...): OPS_FLOATS(X, ...) calls X(t, ...) for each of its types,
// and OPS_DT_t is the tfc_dtype of a suffix t. Valid C and C++: kernels of ops (element_types.h) and of GPUs
// (device/cuda/kernels/types.h) are made from them.
#ifndef TFC_RUNTIME_OPS_ELEMENT_LISTS_H
#define TFC_RUNTIME_OPS_ELEMENT_LISTS_H

#include "runtime/graph/dtype_enum.h"

#define OPS_DT_f32 TFC_FLOAT
#define OPS_DT_f64 TFC_DOUBLE
#define OPS_DT_f16 TFC_HALF
#define OPS_DT_b16 TFC_BFLOAT16
#define OPS_DT_i8 TFC_INT8
#define OPS_DT_i16 TFC_INT16
#define OPS_DT_i32 TFC_INT32
#define OPS_DT_i64 TFC_INT64
#define OPS_DT_u8 TFC_UINT8
#define OPS_DT_u16 TFC_UINT16
#define OPS_DT_u32 TFC_UINT32
#define OPS_DT_u64 TFC_UINT64
#define OPS_DT_b8 TFC_BOOL
#define OPS_DT_c64 TFC_COMPLEX64
#define OPS_DT_c128 TFC_COMPLEX128

// clang-format off
#define OPS_WIDE_FLOATS(X, ...) X(f32, __VA_ARGS__) X(f64, __VA_ARGS__)
#define OPS_FLOATS(X, ...) OPS_WIDE_FLOATS(X, __VA_ARGS__) X(f16, __VA_ARGS__) X(b16, __VA_ARGS__)
#define OPS_WIDE_INTS(X, ...) X(i32, __VA_ARGS__) X(i64, __VA_ARGS__)
#define OPS_SIGNED(X, ...) X(i8, __VA_ARGS__) X(i16, __VA_ARGS__) X(i32, __VA_ARGS__) X(i64, __VA_ARGS__)
#define OPS_UNSIGNED(X, ...) X(u8, __VA_ARGS__) X(u16, __VA_ARGS__) X(u32, __VA_ARGS__) X(u64, __VA_ARGS__)
#define OPS_INTS(X, ...) OPS_SIGNED(X, __VA_ARGS__) OPS_UNSIGNED(X, __VA_ARGS__)
#define OPS_COMPLEX(X, ...) X(c64, __VA_ARGS__) X(c128, __VA_ARGS__)
#define OPS_REALS(X, ...) OPS_FLOATS(X, __VA_ARGS__) OPS_INTS(X, __VA_ARGS__)
#define OPS_NUMBERS(X, ...) OPS_REALS(X, __VA_ARGS__) OPS_COMPLEX(X, __VA_ARGS__)
#define OPS_FLOATS_COMPLEX(X, ...) OPS_FLOATS(X, __VA_ARGS__) OPS_COMPLEX(X, __VA_ARGS__)
#define OPS_ALL(X, ...) OPS_NUMBERS(X, __VA_ARGS__) X(b8, __VA_ARGS__)
#define OPS_BIT(t, ...) | 1u << OPS_DT_##t
#define OPS_BITS(LIST) (0u LIST(OPS_BIT, ~)) // a row's `types` from a list
// clang-format on

#endif
