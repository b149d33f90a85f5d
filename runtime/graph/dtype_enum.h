// Element types, numbered as TensorFlow's DataType. Valid C and C++, and includes nothing: kernels for GPUs use it,
// too.
#ifndef TFC_RUNTIME_GRAPH_DTYPE_ENUM_H
#define TFC_RUNTIME_GRAPH_DTYPE_ENUM_H

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

#endif
