#include "runtime/ops/io_feature.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ops/array_copy.h"
#include "runtime/ops/row.h"

static size_t element_size(tfc_dtype t) {
  return t == TFC_FLOAT ? sizeof(float) : t == TFC_INT64 ? sizeof(int64_t) : sizeof(tfc_str);
}
static void *column_next(struct tfc_column *c) {
  size_t size = element_size(c->dtype);
  if (c->count == c->capacity) {
    size_t more = c->capacity ? 2 * c->capacity : 16;
    void *grown = realloc(c->data, more * size);
    if (!grown) return NULL;
    c->data = grown;
    c->capacity = more;
  }
  return (char *)c->data + size * c->count++;
}
static tfc_status put(struct tfc_column *c, uint64_t bits, tfc_str bytes) {
  void *place = column_next(c);
  if (!place) return tfc_status_no_memory(NULL);
  if (c->dtype == TFC_FLOAT) {
    uint32_t word = (uint32_t)bits;
    memcpy(place, &word, sizeof word);
  } else if (c->dtype == TFC_INT64) {
    memcpy(place, &bits, sizeof bits);
  } else {
    memcpy(place, &bytes, sizeof bytes);
  }
  return NULL;
}

// --- Messages --------------------------------------------------------------------------------------------------------
static tfc_status broken(const struct tfc_wire *w, int64_t message) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "Could not parse example input, value %lld: %s", (long long)message,
                         w->error);
}
// Appends the values of a list message (field 1, packed or not) to the column.
static tfc_status read_list(struct tfc_column *c, tfc_str list, int64_t message) {
  struct tfc_wire w = tfc_wire_of(list);
  struct tfc_field f;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1) continue;
    if (c->dtype == TFC_STRING || f.type != TFC_WIRE_BYTES) {
      bool fits = c->dtype == TFC_STRING  ? f.type == TFC_WIRE_BYTES
                  : c->dtype == TFC_FLOAT ? f.type == TFC_WIRE_32
                                          : f.type == TFC_WIRE_VARINT;
      if (!fits) {
        w.error = "a value has another type than its list";
        break;
      }
      TFC_RETURN_IF_ERROR(put(c, f.value, f.bytes));
      continue;
    }
    struct tfc_wire packed = tfc_wire_of(f.bytes);
    while (packed.at != packed.end && !packed.error) {
      uint64_t value = 0;
      if (c->dtype == TFC_FLOAT) {
        tfc_str four;
        uint32_t word;
        if (!tfc_wire_take(&packed, sizeof word, &four)) break;
        memcpy(&word, four.data, sizeof word);
        value = word;
      } else if (!tfc_wire_varint(&packed, &value)) {
        break;
      }
      TFC_RETURN_IF_ERROR(put(c, value, (tfc_str){NULL, 0}));
    }
    if (packed.error) w.error = packed.error;
  }
  return w.error ? broken(&w, message) : NULL;
}
// Reads a Feature: its list is field 1 (bytes), 2 (floats) or 3 (integers).
tfc_status tfc_column_read_feature(struct tfc_column *c, tfc_str feature, int64_t message) {
  static const tfc_dtype types[4] = {TFC_DTYPE_NONE, TFC_STRING, TFC_FLOAT, TFC_INT64};
  struct tfc_wire w = tfc_wire_of(feature);
  struct tfc_field f;
  tfc_str list = {NULL, 0};
  tfc_dtype type = TFC_DTYPE_NONE;
  while (tfc_wire_next(&w, &f))
    if (f.number >= 1 && f.number <= 3 && f.type == TFC_WIRE_BYTES) type = types[f.number], list = f.bytes;
  if (w.error) return broken(&w, message);
  if (type == TFC_DTYPE_NONE) return NULL;
  if (type != c->dtype)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "Key: %.*s.  Data types don't match. Data type: %s but expected type: %s",
                           TFC_STR_ARG(c->key), tfc_dtype_name(type), tfc_dtype_name(c->dtype));
  c->there[message] = true;
  return read_list(c, list, message);
}
static bool same(tfc_str a, tfc_str b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}
tfc_status tfc_columns_read_example(struct tfc_column *columns, uint32_t count, tfc_str *found, tfc_str example,
                                    int64_t message) {
  struct tfc_wire w = tfc_wire_of(example);
  struct tfc_field f, entry, part;
  for (uint32_t i = 0; i < count; i++) found[i] = (tfc_str){NULL, 0};
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
    struct tfc_wire features = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&features, &entry)) {
      if (entry.number != 1 || entry.type != TFC_WIRE_BYTES) continue;
      struct tfc_wire pair = tfc_wire_of(entry.bytes);
      tfc_str key = {NULL, 0}, value = {"", 0};
      while (tfc_wire_next(&pair, &part)) {
        if (part.type != TFC_WIRE_BYTES) continue;
        if (part.number == 1) key = part.bytes;
        if (part.number == 2) value = part.bytes;
      }
      if (pair.error) return broken(&pair, message);
      for (uint32_t i = 0; i < count; i++)
        if (same(columns[i].key, key)) found[i] = value;
    }
    if (features.error) return broken(&features, message);
  }
  if (w.error) return broken(&w, message);
  for (uint32_t i = 0; i < count; i++) {
    if (found[i].data) TFC_RETURN_IF_ERROR(tfc_column_read_feature(&columns[i], found[i], message));
    columns[i].ends[message] = (int64_t)columns[i].count;
  }
  return NULL;
}

// --- Outputs ---------------------------------------------------------------------------------------------------------
tfc_status tfc_column_copy(const struct tfc_column *c, int64_t from, int64_t n, struct tfc_tensor *y, int64_t at) {
  if (c->dtype != TFC_STRING) {
    size_t size = element_size(c->dtype);
    if (n) memcpy((char *)y->data + (size_t)at * size, (const char *)c->data + (size_t)from * size, (size_t)n * size);
    return NULL;
  }
  for (int64_t i = 0; i < n; i++)
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(y, at + i, ((const tfc_str *)c->data)[from + i]));
  return NULL;
}
static int64_t length_of(const struct tfc_column *c, int64_t message) {
  return c->ends[message] - (message ? c->ends[message - 1] : 0);
}
tfc_status tfc_column_sparse(struct tfc_kernel_ctx *ctx, const struct tfc_column *c, int64_t messages, uint32_t first,
                             uint32_t step) {
  struct tfc_tensor *at = NULL, *values = NULL, *dims = NULL;
  int64_t count = (int64_t)c->count, batch = messages < 0 ? 1 : messages, longest = 0;
  int rank = messages < 0 ? 1 : 2;
  struct tfc_shape places = TFC_SHAPE(count, rank), list = TFC_SHAPE(count), two = TFC_SHAPE(rank);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first, TFC_INT64, &places, &at));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first + step, c->dtype, &list, &values));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, first + 2 * step, TFC_INT64, &two, &dims));
  int64_t *to = at->data, *out = dims->data;
  for (int64_t m = 0; m < batch; m++)
    for (int64_t i = 0, n = length_of(c, m); i < n; i++) {
      if (rank == 2) *to++ = m;
      *to++ = i;
      if (i + 1 > longest) longest = i + 1;
    }
  if (rank == 2) *out++ = batch;
  *out = longest;
  return tfc_column_copy(c, 0, count, values, 0);
}
tfc_status tfc_column_dense(struct tfc_kernel_ctx *ctx, const struct tfc_column *c, const struct tfc_shape *shape,
                            const struct tfc_tensor *otherwise, int64_t messages, uint32_t output) {
  int64_t batch = messages < 0 ? 1 : messages, each = 1, longest = 0;
  bool padded = shape->rank > 0 && shape->dims[0] < 0;
  struct tfc_shape full = *shape;
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(padded ? tfc_tensor_elements(otherwise) == 1
                          : tfc_tensor_elements(otherwise) == 0 || tfc_shape_equal(&otherwise->shape, shape),
                   "Key: %.*s: a default of shape %s does not fit the feature's", TFC_STR_ARG(c->key),
                   tfc_shape_show(&otherwise->shape, (char[TFC_SHAPE_TEXT]){0}));
  for (int d = padded; d < shape->rank; d++) each *= shape->dims[d];
  for (int64_t m = 0; m < batch; m++) {
    int64_t n = length_of(c, m);
    if (padded) {
      TFC_KERNEL_CHECK(each > 0 && n % each == 0,
                       "Key: %.*s, Index: %lld.  Number of values (%lld) is not a multiple of stride length (%lld)",
                       TFC_STR_ARG(c->key), (long long)m, (long long)n, (long long)each);
      if (n / each > longest) longest = n / each;
    } else if (c->there[m]) {
      TFC_KERNEL_CHECK(n == each,
                       "Key: %.*s, Index: %lld.  Number of %s values != expected.  Values size: %lld, not %lld",
                       TFC_STR_ARG(c->key), (long long)m, tfc_dtype_name(c->dtype), (long long)n, (long long)each);
    } else {
      TFC_KERNEL_CHECK(tfc_tensor_elements(otherwise) == each,
                       "Index: %lld.  Feature: %.*s (data type: %s) is required but could not be found.", (long long)m,
                       TFC_STR_ARG(c->key), tfc_dtype_name(c->dtype));
    }
  }
  if (padded) {
    full.dims[0] = longest;
    each *= longest;
  }
  if (messages >= 0) {
    memmove(full.dims + 1, full.dims, (size_t)full.rank * sizeof *full.dims);
    full.dims[0] = batch;
    full.rank++;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, output, c->dtype, &full, &y));
  for (int64_t m = 0; m < batch; m++) {
    int64_t n = length_of(c, m), from = m ? c->ends[m - 1] : 0;
    if (!padded && !c->there[m]) {
      TFC_RETURN_IF_ERROR(ops_copy_elements(y, m * each, otherwise, 0, each));
      continue;
    }
    TFC_RETURN_IF_ERROR(tfc_column_copy(c, from, n, y, m * each));
    if (n < each) TFC_RETURN_IF_ERROR(ops_fill_with(y, m * each + n, each - n, otherwise, 0));
  }
  return NULL;
}
tfc_status tfc_column_ragged(struct tfc_kernel_ctx *ctx, const struct tfc_column *c, int64_t messages, tfc_dtype split,
                             uint32_t values_at, uint32_t splits_at) {
  struct tfc_tensor *values = NULL, *splits = NULL;
  struct tfc_shape list = TFC_SHAPE((int64_t)c->count), ends = TFC_SHAPE(messages < 0 ? 0 : messages + 1);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, values_at, c->dtype, &list, &values));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, splits_at, split, &ends, &splits));
  for (int64_t m = 0; m <= messages; m++) {
    int64_t end = m ? c->ends[m - 1] : 0;
    if (split == TFC_INT32)
      ((int32_t *)splits->data)[m] = (int32_t)end;
    else
      ((int64_t *)splits->data)[m] = end;
  }
  return tfc_column_copy(c, 0, (int64_t)c->count, values, 0);
}
