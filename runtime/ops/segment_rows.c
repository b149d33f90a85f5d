// Combines rows for the segment operations (segment_rows.h).
#include "runtime/ops/segment_rows.h"

#include <limits.h>
#include <math.h>

#include "runtime/ops/math_elementwise.h"

#define COMBINE(t, name, ...)                                                                                          \
  static void name##_##t(void *yv, const void *xv, int64_t n) {                                                        \
    typedef ops_##t##_c C OPS_UNUSED;                                                                                  \
    typedef ops_##t##_u U OPS_UNUSED;                                                                                  \
    ops_##t *y = yv;                                                                                                   \
    const ops_##t *x = xv;                                                                                             \
    OPS_INDEPENDENT for (int64_t i = 0; i < n; i++) {                                                                  \
      const C a = OPS_GET_##t(y[i]), b = OPS_GET_##t(x[i]);                                                            \
      y[i] = OPS_PUT_##t(__VA_ARGS__);                                                                                 \
    }                                                                                                                  \
  }
OPS_NUMBERS(COMBINE, sum, (U)a + (U)b)
OPS_NUMBERS(COMBINE, prod, (U)a *(U)b)
OPS_REALS(COMBINE, max, a < b ? b : a)
OPS_REALS(COMBINE, min, b < a ? b : a)
#define ENTRY(t, name) [OPS_DT_##t] = name##_##t,
static ops_combine_fn *const loops[4][TFC_DTYPE_COUNT] = {
    {OPS_NUMBERS(ENTRY, sum)}, {OPS_NUMBERS(ENTRY, prod)}, {OPS_REALS(ENTRY, max)}, {OPS_REALS(ENTRY, min)}};

ops_combine_fn *ops_combine_loop(enum ops_combine how, tfc_dtype dtype) {
  return loops[how][dtype];
}

// The greatest finite values and not infinities, like the std::numeric_limits that TensorFlow uses.
#define LIMITS_f32 -3.402823466e+38f, 3.402823466e+38f
#define LIMITS_f64 -1.7976931348623157e+308, 1.7976931348623157e+308
#define LIMITS_f16 -65504.0f, 65504.0f
#define LIMITS_b16 -3.38953139e+38f, 3.38953139e+38f
#define LIMITS_i8 INT8_MIN, INT8_MAX
#define LIMITS_i16 INT16_MIN, INT16_MAX
#define LIMITS_i32 INT32_MIN, INT32_MAX
#define LIMITS_i64 INT64_MIN, INT64_MAX
#define LIMITS_u8 0, UINT8_MAX
#define LIMITS_u16 0, UINT16_MAX
#define LIMITS_u32 0, UINT32_MAX
#define LIMITS_u64 0, UINT64_MAX
#define FILL(t, ...)                                                                                                   \
  case OPS_DT_##t: {                                                                                                   \
    const ops_##t##_c limits[2] = {LIMITS_##t};                                                                        \
    const ops_##t v = OPS_PUT_##t(how == OPS_COMBINE_MAX   ? limits[0]                                                 \
                                  : how == OPS_COMBINE_MIN ? limits[1]                                                 \
                                                           : (ops_##t##_c)(how == OPS_COMBINE_PROD));                  \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)y)[i] = v;                                                             \
    break;                                                                                                             \
  }
#define FILL_COMPLEX(t, ...)                                                                                           \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) ((ops_##t *)y)[i] = how == OPS_COMBINE_PROD;                                       \
    break;
void ops_combine_identity(enum ops_combine how, tfc_dtype dtype, void *y, int64_t n) {
  switch (dtype) {
    OPS_REALS(FILL, ~)
    OPS_COMPLEX(FILL_COMPLEX, ~)
  default: break;
  }
}

#define SCALE(t, ...)                                                                                                  \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
      ops_##t *p = (ops_##t *)y + i;                                                                                   \
      *p = divide ? OPS_PUT_##t(OPS_GET_##t(*p) / (ops_##t##_c)factor)                                                 \
                  : OPS_PUT_##t(OPS_GET_##t(*p) * (ops_##t##_c)factor);                                                \
    }                                                                                                                  \
    break;
#define DIVIDE_INTS(t, ...)                                                                                            \
  case OPS_DT_##t:                                                                                                     \
    for (int64_t i = 0; i < n && (ops_##t)(int64_t)factor; i++)                                                        \
      ((ops_##t *)y)[i] = (ops_##t)(((ops_##t *)y)[i] / (ops_##t)(int64_t)factor);                                     \
    break;
void ops_scale_rows(tfc_dtype dtype, void *y, int64_t n, double factor, bool divide) {
  switch (dtype) {
    OPS_FLOATS_COMPLEX(SCALE, ~)
    OPS_INTS(DIVIDE_INTS, ~)
  default: break;
  }
}
