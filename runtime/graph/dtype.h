// Element types, numbered as TensorFlow's DataType. A reference to a variable (the outputs of VariableV2) is the type
// plus TFC_REF.
#ifndef TFC_RUNTIME_GRAPH_DTYPE_H
#define TFC_RUNTIME_GRAPH_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/str.h"

// NAME, number in DataType, TensorFlow's lower-case name, bytes of an element, numpy's descriptor
#define TFC_DTYPES(X)                                                                                                  \
  X(FLOAT, 1, "float32", 4, "<f4")                                                                                     \
  X(DOUBLE, 2, "float64", 8, "<f8")                                                                                    \
  X(INT32, 3, "int32", 4, "<i4")                                                                                       \
  X(UINT8, 4, "uint8", 1, "|u1")                                                                                       \
  X(INT16, 5, "int16", 2, "<i2")                                                                                       \
  X(INT8, 6, "int8", 1, "|i1")                                                                                         \
  X(STRING, 7, "string", 16, "|S")                                                                                     \
  X(COMPLEX64, 8, "complex64", 8, "<c8")                                                                               \
  X(INT64, 9, "int64", 8, "<i8")                                                                                       \
  X(BOOL, 10, "bool", 1, "|b1")                                                                                        \
  X(QINT8, 11, "qint8", 1, "|i1")                                                                                      \
  X(QUINT8, 12, "quint8", 1, "|u1")                                                                                    \
  X(QINT32, 13, "qint32", 4, "<i4")                                                                                    \
  X(BFLOAT16, 14, "bfloat16", 2, "<V2")                                                                                \
  X(QINT16, 15, "qint16", 2, "<i2")                                                                                    \
  X(QUINT16, 16, "quint16", 2, "<u2")                                                                                  \
  X(UINT16, 17, "uint16", 2, "<u2")                                                                                    \
  X(COMPLEX128, 18, "complex128", 16, "<c16")                                                                          \
  X(HALF, 19, "float16", 2, "<f2")                                                                                     \
  X(RESOURCE, 20, "resource", 8, "|V8")                                                                                \
  X(VARIANT, 21, "variant", 8, "|V8")                                                                                  \
  X(UINT32, 22, "uint32", 4, "<u4")                                                                                    \
  X(UINT64, 23, "uint64", 8, "<u8")

typedef enum tfc_dtype {
  TFC_DTYPE_NONE = 0,
#define TFC_DTYPE_ENUM(name, number, text, size, npy) TFC_##name = number,
  TFC_DTYPES(TFC_DTYPE_ENUM)
#undef TFC_DTYPE_ENUM
      TFC_DTYPE_COUNT = 24,
  TFC_REF = 100, // TFC_FLOAT + TFC_REF: a reference to a float variable
} tfc_dtype;

static inline bool tfc_dtype_is_ref(tfc_dtype t) {
  return t > TFC_REF;
}
static inline tfc_dtype tfc_dtype_base(tfc_dtype t) {
  return t > TFC_REF ? (tfc_dtype)(t - TFC_REF) : t;
}
bool tfc_dtype_valid(int64_t number);    // a type above, or a reference to one
size_t tfc_dtype_size(tfc_dtype t);      // bytes of one element; references as their base
const char *tfc_dtype_name(tfc_dtype t); // "float32", "float32_ref"
const char *tfc_dtype_npy(tfc_dtype t);  // descriptor in a .npy header
tfc_dtype tfc_dtype_parse(tfc_str name); // also "float", "double", "half", "DT_FLOAT"; NONE if unknown
bool tfc_dtype_is_floating(tfc_dtype t); // half, bfloat16, float32, float64
bool tfc_dtype_is_integer(tfc_dtype t);  // int8–64, uint8–64
bool tfc_dtype_is_complex(tfc_dtype t);
// its elements are bytes that can be copied: true for all types but string, resource, variant
bool tfc_dtype_is_plain(tfc_dtype t);

// Convert the 16-bit floats. They round to the nearest number, of two equally near ones to the even one; NaN stays NaN.
float tfc_half_to_float(uint16_t h);
uint16_t tfc_float_to_half(float f);
static inline float tfc_bfloat16_to_float(uint16_t h) {
  union {
    uint32_t u;
    float f;
  } x = {(uint32_t)h << 16};
  return x.f;
}
uint16_t tfc_float_to_bfloat16(float f);

#endif
