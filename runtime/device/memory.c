// Blocks are the buffer's record, padded to 64 bytes, and then the data: one allocation each. Sizes up to 64 MiB are
// rounded up to classes (four per power of two: at most a quarter is lost) and cached; larger ones go back at once.
#include "runtime/device/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/base/memory_left.h"
#include "runtime/base/units.h"

struct tfc_memory_block {
  struct tfc_buffer buffer;
  struct tfc_memory_block *next;
  size_t capacity; // bytes of data
  uint16_t class;  // TFC_SIZE_CLASSES: not cached
};
enum { HEADER = 128, HUGE_PAGE = 2 << 20 };
static const struct tfc_size_classes classes = {.smallest = 64, .largest = 64 << 20, .unit = 64};
_Static_assert(sizeof(struct tfc_memory_block) <= HEADER, "the header holds the record");

void tfc_memory_init(struct tfc_memory *m, const char *device, uint64_t limit, uint64_t offset) {
  *m = (struct tfc_memory){.device = device, .limit = limit, .offset = offset};
  pthread_mutex_init(&m->lock, NULL);
}

static void unmap(struct tfc_memory_block *b) {
  tfc_memory_give_back(b->capacity);
  if (b->capacity >= HUGE_PAGE)
    munmap(b, HEADER + b->capacity);
  else
    free(b);
}

void tfc_memory_trim(struct tfc_memory *m) {
  pthread_mutex_lock(&m->lock);
  for (int i = 0; i < TFC_SIZE_CLASSES; i++) {
    struct tfc_memory_block *last = atomic_exchange(&m->last[i], NULL);
    if (last) unmap(last);
    while (m->free_lists[i]) {
      struct tfc_memory_block *b = m->free_lists[i];
      m->free_lists[i] = b->next;
      unmap(b);
    }
  }
  m->cached = 0;
  pthread_mutex_unlock(&m->lock);
}

void tfc_memory_deinit(struct tfc_memory *m) {
  tfc_memory_trim(m);
  pthread_mutex_destroy(&m->lock);
}

static void destroy(struct tfc_buffer *self) {
  struct tfc_memory_block *b = (struct tfc_memory_block *)(void *)self;
  struct tfc_memory *m = self->owner;
  atomic_fetch_sub_explicit(&m->held, self->size, memory_order_relaxed);
  if (b->class == TFC_SIZE_CLASSES) {
    unmap(b);
    return;
  }
  struct tfc_memory_block *none = NULL;
  if (atomic_compare_exchange_strong_explicit(&m->last[b->class], &none, b, memory_order_release, memory_order_relaxed))
    return;
  pthread_mutex_lock(&m->lock);
  b->next = m->free_lists[b->class];
  m->free_lists[b->class] = b;
  m->cached += b->capacity;
  pthread_mutex_unlock(&m->lock);
}

static struct tfc_memory_block *map(size_t capacity) {
  if (!tfc_memory_grant(capacity)) return NULL;
  if (capacity < HUGE_PAGE) return aligned_alloc(64, HEADER + capacity);
  void *p = mmap(NULL, HEADER + capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    tfc_memory_give_back(capacity);
    return NULL;
  }
  madvise(p, HEADER + capacity, MADV_HUGEPAGE);
  return p;
}

tfc_status tfc_memory_allocate(struct tfc_memory *m, size_t bytes, struct tfc_buffer **out) {
  uint64_t held = atomic_fetch_add_explicit(&m->held, bytes, memory_order_relaxed);
  struct tfc_memory_block *b = NULL;
  if (bytes <= m->limit && held <= m->limit - bytes && bytes <= SIZE_MAX / 2) {
    size_t capacity = 0;
    uint16_t class = tfc_size_class(&classes, bytes, &capacity);
    if (class < TFC_SIZE_CLASSES && atomic_load_explicit(&m->last[class], memory_order_relaxed))
      b = atomic_exchange_explicit(&m->last[class], NULL, memory_order_acquire);
    if (class < TFC_SIZE_CLASSES && !b) {
      pthread_mutex_lock(&m->lock);
      if ((b = m->free_lists[class])) {
        m->free_lists[class] = b->next;
        m->cached -= b->capacity;
      }
      pthread_mutex_unlock(&m->lock);
    }
    if (!b && (b = map(capacity))) {
      b->capacity = capacity;
      b->class = class;
    }
  }
  if (!b) {
    atomic_fetch_sub_explicit(&m->held, bytes, memory_order_relaxed);
    char a[32], c[32], d[32], e[32];
    uint64_t here = tfc_memory_left();
    if (bytes <= m->limit && held <= m->limit - bytes && here != UINT64_MAX)
      return tfc_status_make(
          TFC_RESOURCE_EXHAUSTED, "%s: out of memory: %s asked for, %s in use, this machine has %s left", m->device,
          tfc_show_bytes(a, (double)bytes), tfc_show_bytes(c, (double)held), tfc_show_bytes(d, (double)here));
    uint64_t left = m->limit == UINT64_MAX ? 0 : m->limit > held ? m->limit - held : 0;
    if (m->limit == UINT64_MAX)
      return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "%s: out of memory: %s asked for, %s in use", m->device,
                             tfc_show_bytes(a, (double)bytes), tfc_show_bytes(c, (double)held));
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED,
                           "%s: out of memory: %s asked for, %s in use, limit %s, largest free block %s", m->device,
                           tfc_show_bytes(a, (double)bytes), tfc_show_bytes(c, (double)held),
                           tfc_show_bytes(d, (double)m->limit), tfc_show_bytes(e, (double)left));
  }
  b->buffer =
      (struct tfc_buffer){.data = (char *)b + HEADER + m->offset, .size = bytes, .destroy = destroy, .owner = m};
  atomic_init(&b->buffer.references, 1);
  *out = &b->buffer;
  return NULL;
}
