#include "libtfc/array.h"
#include "runtime/base/no_memory.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)TFC_ARRAY_MAX_RANK <= (int)TFC_MAX_RANK, "every array's shape is a tensor's");

static tfc_status strings_to_tensor(const tfc_array *array, const struct tfc_shape *shape, struct tfc_tensor *out) {
  struct tfc_tensor t = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_STRING, shape, &t));
  const tfc_text_element *from = array->data;
  for (int64_t i = 0; i < tfc_tensor_elements(&t); i++) {
    if (from[i].size && !from[i].data) {
      tfc_tensor_release(&t);
      return tfc_status_make(TFC_INVALID_ARGUMENT, "element %lld has %zu bytes and no data", (long long)i,
                             from[i].size);
    }
    tfc_status s = tfc_tensor_set_string(&t, i, (tfc_str){from[i].data, from[i].size});
    if (!s) continue;
    tfc_tensor_release(&t);
    return s;
  }
  *out = t;
  return NULL;
}

tfc_status tfc_array_to_tensor(const tfc_array *array, const char *name, struct tfc_tensor *out) {
  struct tfc_shape shape = {.rank = array->rank};
  size_t bytes;
  if (array->rank < 0 || array->rank > TFC_ARRAY_MAX_RANK)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%s': rank %d (0 to %d are possible)", name, (int)array->rank,
                           TFC_ARRAY_MAX_RANK);
  tfc_dtype dtype = (tfc_dtype)array->dtype;
  if (!tfc_dtype_valid(array->dtype) || tfc_dtype_is_ref(dtype) || dtype == TFC_RESOURCE || dtype == TFC_VARIANT)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%s': %d is not a type of arrays", name, (int)array->dtype);
  for (int32_t i = 0; i < array->rank; i++) {
    if (array->dims[i] < 0)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%s': dimension %d is %lld", name, (int)i,
                             (long long)array->dims[i]);
    shape.dims[i] = array->dims[i];
  }
  tfc_status s = tfc_tensor_bytes(dtype, &shape, &bytes);
  if (s) return tfc_status_annotate(s, "feed '%s'", name);
  if (bytes != array->bytes)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%s': its shape has %zu bytes, the array says %zu", name, bytes,
                           array->bytes);
  if (bytes && !array->data) return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%s' has no data", name);
  const size_t alignment = dtype == TFC_STRING         ? _Alignof(tfc_text_element)
                           : tfc_dtype_size(dtype) < 8 ? tfc_dtype_size(dtype)
                                                       : 8;
  if ((uintptr_t)array->data % alignment)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "feed '%s': its data is not aligned to %zu bytes", name, alignment);
  if (dtype == TFC_STRING) return tfc_status_annotate(strings_to_tensor(array, &shape, out), "feed '%s'", name);
  *out = (struct tfc_tensor){.dtype = dtype, .shape = shape, .data = array->data, .size = bytes};
  return NULL;
}

static void describe(const struct tfc_tensor *t, tfc_array *out) {
  out->dtype = (int32_t)t->dtype;
  out->rank = t->shape.rank;
  for (int32_t i = 0; i < t->shape.rank; i++) out->dims[i] = t->shape.dims[i];
  out->bytes = t->size;
}

tfc_status tfc_array_check_room(const struct tfc_tensor *t, const char *name, tfc_array *array) {
  if (t->dtype == TFC_RESOURCE || t->dtype == TFC_VARIANT)
    return tfc_status_make(TFC_UNIMPLEMENTED, "fetch '%s': a %s has no value outside of its model", name,
                           tfc_dtype_name(t->dtype));
  if (t->shape.rank > TFC_ARRAY_MAX_RANK)
    return tfc_status_make(TFC_UNIMPLEMENTED, "fetch '%s' has rank %d, arrays have %d at most", name, t->shape.rank,
                           TFC_ARRAY_MAX_RANK);
  if (array->owner || !array->data || t->dtype == TFC_STRING) return NULL;
  size_t room = array->bytes;
  array->bytes = t->size;
  if (room < t->size)
    return tfc_status_make(TFC_OUT_OF_RANGE, "fetch '%s' has %zu bytes, there is room for %zu", name, t->size, room);
  array->bytes = room;
  return NULL;
}

// Makes an array of strings: its elements and their texts are in one allocation.
static tfc_status strings_from_tensor(const struct tfc_tensor *t, const char *name, tfc_array *out) {
  size_t count = (size_t)tfc_tensor_elements(t), total = 0;
  for (size_t i = 0; i < count; i++) total += tfc_tensor_get_string(t, (int64_t)i).size;
  tfc_text_element *list = malloc(count * sizeof *list + total + 1);
  if (!list) return tfc_status_no_memory_for("fetch '%s': copying strings", name);
  char *text = (char *)(list + count);
  for (size_t i = 0; i < count; i++) {
    tfc_str one = tfc_tensor_get_string(t, (int64_t)i);
    if (one.size) memcpy(text, one.data, one.size);
    list[i] = (tfc_text_element){text, one.size};
    text += one.size;
  }
  tfc_array_clear(out);
  describe(t, out);
  out->bytes = count * sizeof *list;
  out->data = list;
  out->owner = list;
  return NULL;
}

tfc_status tfc_array_from_tensor(struct tfc_tensor *t, const char *name, tfc_array *out) {
  if (t->dtype == TFC_STRING) return strings_from_tensor(t, name, out);
  if (out->data && !out->owner) { // the caller's memory: tfc_array_check has found room
    if (t->size) memcpy(out->data, t->data, t->size);
    describe(t, out);
    return NULL;
  }
  void *copy = malloc(t->size ? t->size : 1);
  if (!copy) return tfc_status_no_memory_for("fetch '%s': %zu bytes", name, t->size);
  if (t->size) memcpy(copy, t->data, t->size);
  tfc_array_clear(out);
  describe(t, out);
  out->data = out->owner = copy;
  return NULL;
}

void tfc_array_clear(tfc_array *array) {
  if (!array) return;
  free(array->owner);
  *array = (tfc_array){0};
}
