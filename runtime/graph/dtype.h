// What is known of an element type. A reference to a variable (the outputs of VariableV2) is the type plus TFC_REF.
#ifndef TFC_RUNTIME_GRAPH_DTYPE_H
#define TFC_RUNTIME_GRAPH_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/str.h"
#include "runtime/graph/dtype_enum.h"

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
