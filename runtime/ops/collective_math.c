#include "runtime/ops/collective_math.h"

#include "runtime/ops/element_types.h"

#define TYPES(X, ...) OPS_FLOATS(X, __VA_ARGS__) OPS_WIDE_INTS(X, __VA_ARGS__)

#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((a) < (b) ? (b) : (a))

// Sums and products of integers wrap; they are compared with their sign.
#define LOOP(t, name, op, arithmetic)                                                                                  \
  static void name##_##t(ops_##t *to, const ops_##t *a, const ops_##t *b, int64_t count) {                             \
    for (int64_t i = 0; i < count; i++) {                                                                              \
      const arithmetic x = (arithmetic)OPS_GET_##t(a[i]), y = (arithmetic)OPS_GET_##t(b[i]);                           \
      to[i] = OPS_PUT_##t(op(x, y));                                                                                   \
    }                                                                                                                  \
  }
#define LOOPS(t, ...)                                                                                                  \
  LOOP(t, add, ADD, ops_##t##_u)                                                                                       \
  LOOP(t, mul, MUL, ops_##t##_u)                                                                                       \
  LOOP(t, min, MIN, ops_##t##_c)                                                                                       \
  LOOP(t, max, MAX, ops_##t##_c)                                                                                       \
  static void divide_##t(ops_##t *to, int64_t count, int32_t by) {                                                     \
    for (int64_t i = 0; i < count; i++) to[i] = OPS_PUT_##t(OPS_GET_##t(to[i]) / (ops_##t##_c)by);                     \
  }
TYPES(LOOPS, ~)

bool tfc_collective_takes(tfc_dtype dtype) {
  switch (dtype) {
#define CASE(t, ...) case OPS_DT_##t:
    TYPES(CASE, ~)
#undef CASE
    return true;
  default: return false;
  }
}

void tfc_collective_combine(tfc_collective_math math, tfc_dtype dtype, void *to, const void *a, const void *b,
                            int64_t count) {
  switch (dtype) {
#define CASE(t, ...)                                                                                                   \
  case OPS_DT_##t:                                                                                                     \
    switch (math) {                                                                                                    \
    case TFC_COLLECTIVE_ADD: add_##t(to, a, b, count); return;                                                         \
    case TFC_COLLECTIVE_MUL: mul_##t(to, a, b, count); return;                                                         \
    case TFC_COLLECTIVE_MIN: min_##t(to, a, b, count); return;                                                         \
    case TFC_COLLECTIVE_MAX: max_##t(to, a, b, count); return;                                                         \
    }                                                                                                                  \
    return;
    TYPES(CASE, ~)
#undef CASE
  default: return;
  }
}

void tfc_collective_divide(tfc_dtype dtype, void *values, int64_t count, int32_t by) {
  switch (dtype) {
#define CASE(t, ...)                                                                                                   \
  case OPS_DT_##t: divide_##t(values, count, by); return;
    TYPES(CASE, ~)
#undef CASE
  default: return;
  }
}
