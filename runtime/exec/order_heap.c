#include "runtime/exec/order_heap.h"

#include <stdlib.h>

#include "runtime/base/heap.h"

static inline bool before(const void *none, struct tfc_order_entry a, struct tfc_order_entry b) {
  (void)none;
  if (a.key != b.key) return a.key < b.key;
  if (a.tie != b.tie) return a.tie < b.tie;
  return a.id < b.id;
}
TFC_HEAP(entries, struct tfc_order_entry, const void *, before)

bool tfc_order_heap_reserve(struct tfc_order_heap *h, uint32_t capacity) {
  if (capacity <= h->capacity) return true;
  struct tfc_order_entry *data = realloc(h->data, capacity * sizeof *data);
  if (!data) return false;
  h->data = data;
  h->capacity = capacity;
  return true;
}

bool tfc_order_heap_push(struct tfc_order_heap *h, struct tfc_order_entry e) {
  if (h->count == h->capacity && !tfc_order_heap_reserve(h, h->capacity ? 2 * h->capacity : 64)) return false;
  entries_push(h->data, h->count++, e, NULL);
  return true;
}

struct tfc_order_entry tfc_order_heap_pop(struct tfc_order_heap *h) {
  return entries_pop(h->data, h->count--, NULL);
}

void tfc_order_heap_deinit(struct tfc_order_heap *h) {
  free(h->data);
  *h = (struct tfc_order_heap){0};
}
