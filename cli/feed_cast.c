#include "cli/feed_cast.h"

#include <inttypes.h>

static double real_at(const struct tfc_tensor *t, int64_t i) {
  switch (t->dtype) {
  case TFC_FLOAT: return (double)((const float *)t->data)[i];
  case TFC_DOUBLE: return ((const double *)t->data)[i];
  case TFC_HALF: return (double)tfc_half_to_float(((const uint16_t *)t->data)[i]);
  case TFC_BFLOAT16: return (double)tfc_bfloat16_to_float(((const uint16_t *)t->data)[i]);
  case TFC_UINT64: return (double)((const uint64_t *)t->data)[i];
  case TFC_BOOL: return ((const uint8_t *)t->data)[i] != 0;
  default: return (double)tfc_tensor_int(t, i);
  }
}
static void put_real(struct tfc_tensor *t, int64_t i, double v) {
  switch (t->dtype) {
  case TFC_FLOAT: ((float *)t->data)[i] = (float)v; break;
  case TFC_DOUBLE: ((double *)t->data)[i] = v; break;
  case TFC_HALF: ((uint16_t *)t->data)[i] = tfc_float_to_half((float)v); break;
  default: ((uint16_t *)t->data)[i] = tfc_float_to_bfloat16((float)v); break;
  }
}

// Stores a whole number as element i; false: it is outside of the type's range. `large`: v holds the bits of a uint64
// above 2^63, as a negative number.
static bool put_whole(struct tfc_tensor *t, int64_t i, int64_t v, bool large) {
#define FITS(type, low, high)                                                                                          \
  {                                                                                                                    \
    if (large || v < (low) || v > (high)) return false;                                                                \
    ((type *)t->data)[i] = (type)v;                                                                                    \
    return true;                                                                                                       \
  }
  switch (t->dtype) {
  case TFC_INT8: FITS(int8_t, INT8_MIN, INT8_MAX)
  case TFC_INT16: FITS(int16_t, INT16_MIN, INT16_MAX)
  case TFC_INT32: FITS(int32_t, INT32_MIN, INT32_MAX)
  case TFC_INT64: FITS(int64_t, INT64_MIN, INT64_MAX)
  case TFC_UINT8: FITS(uint8_t, 0, UINT8_MAX)
  case TFC_UINT16: FITS(uint16_t, 0, UINT16_MAX)
  case TFC_UINT32: FITS(uint32_t, 0, UINT32_MAX)
  default:
    if (v < 0 && !large) return false;
    ((uint64_t *)t->data)[i] = (uint64_t)v;
    return true;
  }
#undef FITS
}

tfc_status tfc_feed_cast(tfc_dtype want, struct tfc_tensor *t) {
  bool from_whole = tfc_dtype_is_integer(t->dtype) || t->dtype == TFC_BOOL;
  if (want == t->dtype || !((tfc_dtype_is_floating(want) && (from_whole || tfc_dtype_is_floating(t->dtype))) ||
                            (tfc_dtype_is_integer(want) && from_whole)))
    return NULL;
  struct tfc_tensor made = {0};
  tfc_status s = NULL;
  TFC_TRY(s, tfc_tensor_create(want, &t->shape, &made));
  for (int64_t i = 0, n = tfc_tensor_elements(t); i < n; i++) {
    if (tfc_dtype_is_floating(want)) {
      put_real(&made, i, real_at(t, i));
      continue;
    }
    int64_t v = t->dtype == TFC_BOOL ? ((const uint8_t *)t->data)[i] != 0 : tfc_tensor_int(t, i);
    bool large = t->dtype == TFC_UINT64 && v < 0;
    if (!put_whole(&made, i, v, large))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "is %s, the graph wants %s, which cannot hold %" PRId64 "%s",
               tfc_dtype_name(t->dtype), tfc_dtype_name(want), large ? INT64_MAX : v, large ? " and more" : "");
  }
  tfc_tensor_release(t);
  *t = made;
  made = (struct tfc_tensor){0};
out:
  tfc_tensor_release(&made);
  return s;
}
