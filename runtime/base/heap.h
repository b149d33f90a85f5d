// Binary heaps (priority queues) in the caller's array. TFC_HEAP defines the functions of one kind of heap:
//
//   static bool sooner(const double *time, uint32_t a, uint32_t b) { return time[a] < time[b]; }
//   TFC_HEAP(waiting, uint32_t, const double *, sooner)
//
//   waiting_push(heap, count++, node, time);
//   uint32_t first = waiting_pop(heap, count--, time);
//
// before(order, a, b) says whether entry a comes out before entry b; `order` is what it needs for that, or NULL. Which
// of two equal entries comes out first depends on what else is in the heap, but is the same in every run.
#ifndef TFC_RUNTIME_BASE_HEAP_H
#define TFC_RUNTIME_BASE_HEAP_H

#include <stddef.h>

#define TFC_HEAP_FUNCTION static inline __attribute__((always_inline, unused))
#define TFC_HEAP(name, type, order_type, before)                                                                       \
  /* Adds an entry to a heap of `count`; the array has room for one more. */                                           \
  TFC_HEAP_FUNCTION void name##_push(type *heap, size_t count, type entry, order_type order) {                         \
    size_t hole = count;                                                                                               \
    for (; hole && before(order, entry, heap[(hole - 1) / 2]); hole = (hole - 1) / 2)                                  \
      heap[hole] = heap[(hole - 1) / 2];                                                                               \
    heap[hole] = entry;                                                                                                \
  }                                                                                                                    \
  /* Replaces heap[hole] by an entry, which must not come before the parent of heap[hole]. */                          \
  TFC_HEAP_FUNCTION void name##_sink(type *heap, size_t count, size_t hole, type entry, order_type order) {            \
    for (size_t child; (child = 2 * hole + 1) < count; hole = child) {                                                 \
      if (child + 1 < count && before(order, heap[child + 1], heap[child])) child++;                                   \
      if (!before(order, heap[child], entry)) break;                                                                   \
      heap[hole] = heap[child];                                                                                        \
    }                                                                                                                  \
    heap[hole] = entry;                                                                                                \
  }                                                                                                                    \
  /* Takes the first of `count` > 0 entries out. */                                                                    \
  TFC_HEAP_FUNCTION type name##_pop(type *heap, size_t count, order_type order) {                                      \
    type first = heap[0];                                                                                              \
    name##_sink(heap, count - 1, 0, heap[count - 1], order);                                                           \
    return first;                                                                                                      \
  }

#endif
