#include "runtime/base/array.h"

#include <string.h>

#include "runtime/base/pages.h"

bool tfc_array_grow(void **data, size_t *held, size_t capacity, size_t size) {
  size_t wanted = *held + *held / 2 + 8, bytes;
  if (wanted < capacity) wanted = capacity;
  if (__builtin_mul_overflow(wanted, size, &bytes)) return false;
  void *grown = realloc(*data, bytes);
  if (!grown) return false;
  tfc_pages_advise(grown, bytes);
  *data = grown;
  *held = wanted;
  return true;
}

void tfc_array_zero_(void *data, size_t from, size_t to, size_t size) {
  if (to > from) memset((char *)data + from * size, 0, (to - from) * size);
}
