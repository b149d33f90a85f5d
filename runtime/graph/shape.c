#include "runtime/graph/shape.h"

#include <stdio.h>
#include <string.h>

struct tfc_shape tfc_shape_unknown_of_rank(int rank) {
  struct tfc_shape s = {.rank = rank};
  for (int i = 0; i < TFC_MAX_RANK; i++) s.dims[i] = i < rank ? TFC_DIM_UNKNOWN : 0;
  return s;
}

bool tfc_shape_is_static(const struct tfc_shape *s) {
  if (s->rank < 0) return false;
  for (int i = 0; i < s->rank; i++)
    if (s->dims[i] < 0) return false;
  return true;
}

int64_t tfc_shape_elements(const struct tfc_shape *s) {
  if (!tfc_shape_is_static(s)) return -1;
  int64_t n = 1;
  bool overflow = false;
  for (int i = 0; i < s->rank; i++) {
    if (s->dims[i] == 0) return 0;
    overflow |= __builtin_mul_overflow(n, s->dims[i], &n);
  }
  return overflow ? -1 : n;
}

bool tfc_shape_equal(const struct tfc_shape *a, const struct tfc_shape *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

bool tfc_shape_compatible(const struct tfc_shape *a, const struct tfc_shape *b) {
  if (a->rank < 0 || b->rank < 0) return true;
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (a->dims[i] >= 0 && b->dims[i] >= 0 && a->dims[i] != b->dims[i]) return false;
  return true;
}

tfc_status tfc_dim_merge(int64_t a, int64_t b, int64_t *out) {
  if (a >= 0 && b >= 0 && a != b)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "dimensions %lld and %lld differ", (long long)a, (long long)b);
  // A known size is preferred to a symbol and a symbol to an unknown size; of two symbols, the older one (a higher
  // number).
  *out = a >= 0 ? a : b >= 0 ? b : a == TFC_DIM_UNKNOWN ? b : b == TFC_DIM_UNKNOWN ? a : a > b ? a : b;
  return NULL;
}

tfc_status tfc_shape_merge(const struct tfc_shape *a, const struct tfc_shape *b, struct tfc_shape *out) {
  if (a->rank < 0 || b->rank < 0) {
    struct tfc_shape r = a->rank < 0 ? *b : *a;
    *out = r;
    return NULL;
  }
  struct tfc_shape r = {.rank = a->rank};
  bool fits = a->rank == b->rank;
  for (int i = 0; fits && i < a->rank; i++) {
    tfc_status s = tfc_dim_merge(a->dims[i], b->dims[i], &r.dims[i]);
    fits = s == NULL;
    tfc_status_free(s);
  }
  if (!fits) {
    char x[TFC_SHAPE_TEXT], y[TFC_SHAPE_TEXT];
    return tfc_status_make(TFC_INVALID_ARGUMENT, "shapes %s and %s do not agree", tfc_shape_show(a, x),
                           tfc_shape_show(b, y));
  }
  *out = r;
  return NULL;
}

tfc_status tfc_shape_broadcast(const struct tfc_shape *a, const struct tfc_shape *b, struct tfc_shape *out) {
  if (a->rank < 0 || b->rank < 0) {
    *out = TFC_SHAPE_UNKNOWN;
    return NULL;
  }
  struct tfc_shape r = {.rank = a->rank > b->rank ? a->rank : b->rank};
  for (int i = 0; i < r.rank; i++) {
    int ia = i - (r.rank - a->rank), ib = i - (r.rank - b->rank);
    int64_t x = ia < 0 ? 1 : a->dims[ia], y = ib < 0 ? 1 : b->dims[ib], d;
    if (x >= 0 && y >= 0) {
      if (x != y && x != 1 && y != 1) {
        char p[TFC_SHAPE_TEXT], q[TFC_SHAPE_TEXT];
        return tfc_status_make(TFC_INVALID_ARGUMENT, "shapes %s and %s cannot be broadcast", tfc_shape_show(a, p),
                               tfc_shape_show(b, q));
      }
      d = x == 1 ? y : x;
    } else if (x == y) { // the same symbol; two unknowns stay unknown
      d = x;
    } else if (x >= 0) { // y is unknown. If x is 1, the result is y; otherwise y must be 1 or x, so the result is x
      d = x == 1 ? y : x;
    } else if (y >= 0) {
      d = y == 1 ? x : y;
    } else {
      d = TFC_DIM_UNKNOWN;
    }
    r.dims[i] = d;
  }
  *out = r;
  return NULL;
}

const char *tfc_shape_show(const struct tfc_shape *s, char *buffer) {
  if (s->rank < 0) return strcpy(buffer, "?");
  size_t n = 0;
  buffer[n++] = '[';
  for (int i = 0; i < s->rank && i < TFC_MAX_RANK; i++) {
    if (i) buffer[n++] = ',';
    int64_t d = s->dims[i];
    if (d >= 0)
      n += (size_t)sprintf(buffer + n, "%lld", (long long)d);
    else if (d == TFC_DIM_UNKNOWN)
      buffer[n++] = '?';
    else { // -2 is ?a, -27 is ?z, -28 is ?a1
      uint64_t k = (uint64_t)(-(d + 2));
      n += (size_t)sprintf(buffer + n, "?%c", (int)('a' + k % 26));
      if (k >= 26) n += (size_t)sprintf(buffer + n, "%llu", (unsigned long long)(k / 26));
    }
  }
  buffer[n++] = ']';
  buffer[n] = 0;
  return buffer;
}

void tfc_shape_strides(const struct tfc_shape *s, int64_t *out_strides) {
  int64_t stride = 1;
  for (int i = s->rank - 1; i >= 0; i--) {
    out_strides[i] = stride;
    stride *= s->dims[i];
  }
}
