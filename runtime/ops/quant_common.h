// Integers that stand for positions in a range of real numbers: the type's least integer for the minimum, its greatest
// for the maximum. Values are rounded as in TensorFlow, in float where it computes in float.
#ifndef TFC_RUNTIME_OPS_QUANT_COMMON_H
#define TFC_RUNTIME_OPS_QUANT_COMMON_H

#include <math.h>

#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

struct tfc_quant_type {
  int64_t lowest, highest;
};
static inline struct tfc_quant_type tfc_quant_type_of(tfc_dtype t) {
  switch ((int)t) {
  case TFC_QINT8: return (struct tfc_quant_type){INT8_MIN, INT8_MAX};
  case TFC_QUINT8: return (struct tfc_quant_type){0, UINT8_MAX};
  default: return (struct tfc_quant_type){INT32_MIN, INT32_MAX};
  }
}
static inline int32_t tfc_quant_get(const struct tfc_tensor *t, int64_t i) {
  switch ((int)t->dtype) {
  case TFC_QINT8: return ((const int8_t *)t->data)[i];
  case TFC_QUINT8: return ((const uint8_t *)t->data)[i];
  default: return ((const int32_t *)t->data)[i];
  }
}
static inline void tfc_quant_put(struct tfc_tensor *t, int64_t i, int32_t v) {
  switch ((int)t->dtype) {
  case TFC_QINT8: ((int8_t *)t->data)[i] = (int8_t)v; break;
  case TFC_QUINT8: ((uint8_t *)t->data)[i] = (uint8_t)v; break;
  default: ((int32_t *)t->data)[i] = v;
  }
}

struct tfc_range {
  float low, high;
};
// Converts v to an integer. NaN and numbers far outside of all types become ±2^62, which is outside of them too.
static inline int64_t tfc_quant_whole(double v) {
  return v >= 0x1p62 ? INT64_C(1) << 62 : v > -0x1p62 ? (int64_t)v : -(INT64_C(1) << 62);
}
// These compute in double: the integer for a number, even if it is outside of the type; the integer limited to the
// type; and the number for an integer.
static inline int64_t tfc_quant_unclamped(tfc_dtype t, float x, struct tfc_range r) {
  struct tfc_quant_type q = tfc_quant_type_of(t);
  if (r.low == r.high) return q.lowest;
  double steps = (double)(q.highest - q.lowest + 1);
  double scale = steps / ((double)(r.high - r.low) * (steps / (steps - 1.0)));
  return tfc_quant_whole(round((double)x * scale) - round((double)r.low * scale)) + q.lowest;
}
static inline int32_t tfc_quant_of(tfc_dtype t, float x, struct tfc_range r) {
  struct tfc_quant_type q = tfc_quant_type_of(t);
  int64_t v = tfc_quant_unclamped(t, x, r);
  return (int32_t)(v < q.lowest ? q.lowest : v > q.highest ? q.highest : v);
}
static inline float tfc_quant_value(tfc_dtype t, int32_t x, struct tfc_range r) {
  struct tfc_quant_type q = tfc_quant_type_of(t);
  if (r.low == r.high) return r.low;
  double steps = (double)(q.highest - q.lowest + 1);
  double scale = (double)(r.high - r.low) * (steps / (steps - 1.0)) / steps;
  double low = (double)(roundf(r.low / (float)scale) * (float)scale);
  return (float)(low + ((double)(float)x - (double)q.lowest) * scale); // goes through float, as in TensorFlow
}
// These compute in float: numbers from integers, and integers from numbers.
struct tfc_quant_from {
  float zero, scale;
};
static inline struct tfc_quant_from tfc_quant_from(tfc_dtype t, struct tfc_range r) {
  struct tfc_quant_type q = tfc_quant_type_of(t);
  float scale = (float)((double)(r.high - r.low) / (double)(q.highest - q.lowest));
  float low = r.low == r.high ? r.low : roundf(r.low / scale) * scale;
  return (struct tfc_quant_from){low - (float)q.lowest * scale, scale};
}
static inline float tfc_quant_float(struct tfc_quant_from f, int32_t x) {
  return f.zero + (float)x * f.scale;
}
struct tfc_quant_to {
  float scale, before, lowest, highest;
};
static inline struct tfc_quant_to tfc_quant_to(tfc_dtype t, struct tfc_range r) {
  struct tfc_quant_type q = tfc_quant_type_of(t);
  float scale = r.low == r.high ? 0.0f : (float)((double)(q.highest - q.lowest) / (double)(r.high - r.low));
  // float cannot represent the greatest int32: the next lower float is used.
  return (struct tfc_quant_to){scale, roundf(r.low * scale) - (float)q.lowest, (float)q.lowest,
                               t == TFC_QINT32 ? 2147483520.0f : (float)q.highest};
}
static inline int32_t tfc_quant_integer(struct tfc_quant_to f, float x) {
  float v = roundf(x * f.scale) - f.before;
  v = v >= f.lowest ? v : f.lowest; // also replaces a NaN
  return (int32_t)(v > f.highest ? f.highest : v);
}

// Reads the range in inputs `i` and `i + 1`, which are scalars; sets outputs `i` and `i + 1` to a range.
TFC_MUST_USE tfc_status tfc_quant_range(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_range *out);
TFC_MUST_USE tfc_status tfc_quant_put_range(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_range r);

#endif
