#include "runtime/exec/plan/order_heap.h"

#include <stdlib.h>

static bool before(const struct tfc_order_entry *a, const struct tfc_order_entry *b) {
  if (a->key != b->key) return a->key < b->key;
  if (a->tie != b->tie) return a->tie < b->tie;
  return a->id < b->id;
}

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
  uint32_t i = h->count++;
  for (; i > 0 && before(&e, &h->data[(i - 1) / 2]); i = (i - 1) / 2) h->data[i] = h->data[(i - 1) / 2];
  h->data[i] = e;
  return true;
}

struct tfc_order_entry tfc_order_heap_pop(struct tfc_order_heap *h) {
  struct tfc_order_entry top = h->data[0], last = h->data[--h->count];
  uint32_t i = 0;
  for (;;) {
    uint32_t child = 2 * i + 1;
    if (child >= h->count) break;
    if (child + 1 < h->count && before(&h->data[child + 1], &h->data[child])) child++;
    if (!before(&h->data[child], &last)) break;
    h->data[i] = h->data[child];
    i = child;
  }
  h->data[i] = last;
  return top;
}

void tfc_order_heap_deinit(struct tfc_order_heap *h) {
  free(h->data);
  *h = (struct tfc_order_heap){0};
}
