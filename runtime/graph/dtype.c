#include "runtime/graph/dtype.h"

struct row {
  const char *name, *ref_name, *enum_name, *npy;
  size_t size;
};
static const struct row rows[TFC_DTYPE_COUNT] = {
#define TFC_DTYPE_ROW(name, number, text, size, npy) [number] = {text, text "_ref", "DT_" #name, npy, size},
    TFC_DTYPES(TFC_DTYPE_ROW)
#undef TFC_DTYPE_ROW
};

bool tfc_dtype_valid(int64_t number) {
  if (number > TFC_REF) number -= TFC_REF;
  return number > 0 && number < TFC_DTYPE_COUNT;
}

size_t tfc_dtype_size(tfc_dtype t) {
  return tfc_dtype_valid(t) ? rows[tfc_dtype_base(t)].size : 0;
}

const char *tfc_dtype_name(tfc_dtype t) {
  if (!tfc_dtype_valid(t)) return "unknown type";
  return tfc_dtype_is_ref(t) ? rows[tfc_dtype_base(t)].ref_name : rows[t].name;
}

const char *tfc_dtype_npy(tfc_dtype t) {
  return tfc_dtype_valid(t) ? rows[tfc_dtype_base(t)].npy : "";
}

static tfc_dtype parse_base(tfc_str name) {
  static const struct {
    const char *name;
    tfc_dtype type;
  } aliases[] = {{"float", TFC_FLOAT}, {"double", TFC_DOUBLE}, {"half", TFC_HALF}};
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
    if (tfc_str_is(name, aliases[i].name)) return aliases[i].type;
  for (int t = 1; t < TFC_DTYPE_COUNT; t++)
    if (tfc_str_is(name, rows[t].name) || tfc_str_is(name, rows[t].enum_name)) return (tfc_dtype)t;
  return TFC_DTYPE_NONE;
}

tfc_dtype tfc_dtype_parse(tfc_str name) {
  bool ref = tfc_str_ends(name, "_ref") || tfc_str_ends(name, "_REF");
  if (ref) name.size -= 4;
  tfc_dtype t = parse_base(name);
  return t != TFC_DTYPE_NONE && ref ? (tfc_dtype)(t + TFC_REF) : t;
}

bool tfc_dtype_is_floating(tfc_dtype t) {
  t = tfc_dtype_base(t);
  return t == TFC_HALF || t == TFC_BFLOAT16 || t == TFC_FLOAT || t == TFC_DOUBLE;
}

bool tfc_dtype_is_integer(tfc_dtype t) {
  switch ((int)tfc_dtype_base(t)) {
  case TFC_INT8:
  case TFC_INT16:
  case TFC_INT32:
  case TFC_INT64:
  case TFC_UINT8:
  case TFC_UINT16:
  case TFC_UINT32:
  case TFC_UINT64: return true;
  default: return false;
  }
}

bool tfc_dtype_is_complex(tfc_dtype t) {
  t = tfc_dtype_base(t);
  return t == TFC_COMPLEX64 || t == TFC_COMPLEX128;
}

bool tfc_dtype_is_plain(tfc_dtype t) {
  t = tfc_dtype_base(t);
  return t != TFC_STRING && t != TFC_RESOURCE && t != TFC_VARIANT && t != TFC_DTYPE_NONE;
}

union bits {
  uint32_t u;
  float f;
};

float tfc_half_to_float(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;
  union bits x;
  if (exponent == 31)
    x.u = sign | 0x7f800000u | (mantissa << 13);
  else if (exponent)
    x.u = sign | ((exponent + 112) << 23) | (mantissa << 13);
  else { // zero and subnormal: mantissa * 2^-24
    x.f = (float)mantissa * 0x1p-24f;
    x.u |= sign;
  }
  return x.f;
}

uint16_t tfc_float_to_half(float f) {
  union bits x = {.f = f};
  uint32_t sign = (x.u >> 16) & 0x8000u, magnitude = x.u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);  // NaN
  if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); // 65536 and more, infinity
  if (magnitude < 0x38800000u) {                                   // below 2^-14: subnormal
    if (magnitude < 0x33000000u) return (uint16_t)sign;            // below 2^-25: rounds to 0
    uint32_t shift = 126 - (magnitude >> 23), m = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t half = 1u << (shift - 1), rest = m & ((1u << shift) - 1), r = m >> shift;
    if (rest > half || (rest == half && (r & 1))) r++;
    return (uint16_t)(sign | r);
  }
  uint32_t r = (magnitude - 0x38000000u) >> 13, rest = magnitude & 0x1fffu;
  if (rest > 0x1000u || (rest == 0x1000u && (r & 1))) r++;
  return (uint16_t)(sign | r);
}

uint16_t tfc_float_to_bfloat16(float f) {
  union bits x = {.f = f};
  if ((x.u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((x.u >> 16) | 0x40u);
  return (uint16_t)((x.u + 0x7fffu + ((x.u >> 16) & 1u)) >> 16);
}
