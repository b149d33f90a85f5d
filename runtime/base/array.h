// Growing arrays. TFC_ARRAY(T) declares one as a member of a struct or as a local variable. A zeroed array is empty.
//
//   TFC_ARRAY(uint32_t) ids = {0};
//   if (!tfc_array_push(&ids, 7u)) TFC_TRY(s, tfc_status_no_memory(NULL));
//   for (size_t i = 0; i < ids.count; i++) use(ids.data[i]);
//   tfc_array_free(&ids);
#ifndef TFC_RUNTIME_BASE_ARRAY_H
#define TFC_RUNTIME_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define TFC_ARRAY(type)                                                                                                \
  struct {                                                                                                             \
    type *data;                                                                                                        \
    size_t count, capacity;                                                                                            \
  }

// Makes room for `capacity` items of `size` bytes; false: out of memory (the array stays as it was).
bool tfc_array_grow(void **data, size_t *held, size_t capacity, size_t size);

#define tfc_array_reserve(array, wanted)                                                                               \
  ((size_t)(wanted) <= (array)->capacity ||                                                                            \
   tfc_array_grow((void **)&(array)->data, &(array)->capacity, (size_t)(wanted), sizeof *(array)->data))
#define tfc_array_push(array, ...)                                                                                     \
  (tfc_array_reserve((array), (array)->count + 1) ? ((array)->data[(array)->count++] = (__VA_ARGS__), true) : false)
// Resizes; new items are zero.
#define tfc_array_resize(array, wanted)                                                                                \
  (tfc_array_reserve((array), (wanted))                                                                                \
       ? (tfc_array_zero_((array)->data, (array)->count, (size_t)(wanted), sizeof *(array)->data),                     \
          (array)->count = (size_t)(wanted), true)                                                                     \
       : false)
#define tfc_array_free(array) (free((array)->data), (array)->data = NULL, (array)->count = (array)->capacity = 0)
void tfc_array_zero_(void *data, size_t from, size_t to, size_t size);

#endif
