// A binary heap of operations, sorted by key, then tie, then id. Schedulers use it for events and ready lists. Only one
// thread may use a heap.
#ifndef TFC_RUNTIME_EXEC_ORDER_HEAP_H
#define TFC_RUNTIME_EXEC_ORDER_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct tfc_order_entry {
  double key, tie;
  uint32_t id;
};
struct tfc_order_heap { // zeroed: empty; the least entry is data[0]
  struct tfc_order_entry *data;
  uint32_t count, capacity;
};
bool tfc_order_heap_reserve(struct tfc_order_heap *heap, uint32_t capacity);         // false: out of memory
bool tfc_order_heap_push(struct tfc_order_heap *heap, struct tfc_order_entry entry); // false: out of memory
struct tfc_order_entry tfc_order_heap_pop(struct tfc_order_heap *heap);              // needs count > 0
void tfc_order_heap_deinit(struct tfc_order_heap *heap);

#endif
