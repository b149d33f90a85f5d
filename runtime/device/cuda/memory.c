// Sizes up to 1 GiB are rounded up to classes (four per power of two: at most a quarter is lost) and cached; larger
// ones go back at once. When CUDA has no more, or more would be held and kept than the limit, the cache goes back
// first.
#include "runtime/device/cuda/memory.h"

#include <stdlib.h>

#include "runtime/base/units.h"
#include "runtime/device/cuda/device.h"

struct tfc_cuda_block {
  struct tfc_buffer buffer;
  struct tfc_cuda_block *next;
  void *memory;
  size_t capacity;
  uint16_t class; // TFC_SIZE_CLASSES: not cached
};
static const struct tfc_size_classes classes = {.smallest = 256, .largest = (size_t)1 << 30, .unit = 256};

void tfc_cuda_memory_init(struct tfc_cuda_memory *m, const struct tfc_cuda_api *api, const char *device, int ordinal,
                          uint64_t limit) {
  *m = (struct tfc_cuda_memory){.api = api, .device = device, .ordinal = ordinal, .limit = limit};
  pthread_mutex_init(&m->lock, NULL);
}

static void destroy_block(struct tfc_cuda_memory *m, struct tfc_cuda_block *b) {
  (void)tfc_cuda_enter(m->api, m->ordinal);
  (void)m->api->release(b->memory);
  free(b);
}

void tfc_cuda_memory_trim(struct tfc_cuda_memory *m) {
  pthread_mutex_lock(&m->lock);
  for (int i = 0; i < TFC_SIZE_CLASSES; i++)
    while (m->free_lists[i]) {
      struct tfc_cuda_block *b = m->free_lists[i];
      m->free_lists[i] = b->next;
      destroy_block(m, b);
    }
  m->cached = 0;
  pthread_mutex_unlock(&m->lock);
}

void tfc_cuda_memory_deinit(struct tfc_cuda_memory *m) {
  tfc_cuda_memory_trim(m);
  pthread_mutex_destroy(&m->lock);
}

static void destroy(struct tfc_buffer *self) {
  struct tfc_cuda_block *b = (struct tfc_cuda_block *)(void *)self;
  struct tfc_cuda_memory *m = self->owner;
  atomic_fetch_sub_explicit(&m->held, self->size, memory_order_relaxed);
  if (b->class == TFC_SIZE_CLASSES) {
    destroy_block(m, b);
    return;
  }
  pthread_mutex_lock(&m->lock);
  b->next = m->free_lists[b->class];
  m->free_lists[b->class] = b;
  m->cached += b->capacity;
  pthread_mutex_unlock(&m->lock);
}

static struct tfc_cuda_block *take_cached(struct tfc_cuda_memory *m, uint16_t class) {
  if (class == TFC_SIZE_CLASSES) return NULL;
  pthread_mutex_lock(&m->lock);
  struct tfc_cuda_block *b = m->free_lists[class];
  if (b) {
    m->free_lists[class] = b->next;
    m->cached -= b->capacity;
  }
  pthread_mutex_unlock(&m->lock);
  return b;
}

// Virtual devices share one GPU: what one of them keeps beyond its limit, another one lacks.
static bool keeps_too_much(struct tfc_cuda_memory *m) {
  uint64_t held = atomic_load_explicit(&m->held, memory_order_relaxed); // the request included
  pthread_mutex_lock(&m->lock);
  bool too_much = m->cached && (held >= m->limit || m->cached > m->limit - held);
  pthread_mutex_unlock(&m->lock);
  return too_much;
}

// What CUDA gives, the cache given back first if need be.
static struct tfc_cuda_block *make_block(struct tfc_cuda_memory *m, size_t capacity, int *out_error) {
  struct tfc_cuda_block *b = calloc(1, sizeof *b);
  *out_error = TFC_CUDA_OUT_OF_MEMORY;
  if (!b) return NULL;
  if (keeps_too_much(m)) tfc_cuda_memory_trim(m);
  *out_error = tfc_cuda_enter(m->api, m->ordinal);
  for (int attempt = 0; !*out_error && attempt < 2; attempt++) {
    *out_error = m->api->allocate(&b->memory, capacity);
    if (*out_error != TFC_CUDA_OUT_OF_MEMORY || attempt) break;
    (void)m->api->last_error(); // running out is not sticky
    pthread_mutex_lock(&m->lock);
    bool empty = m->cached == 0;
    pthread_mutex_unlock(&m->lock);
    if (empty) break;
    tfc_cuda_memory_trim(m);
    *out_error = 0;
  }
  if (*out_error) {
    free(b);
    return NULL;
  }
  pthread_mutex_lock(&m->lock);
  m->calls++;
  pthread_mutex_unlock(&m->lock);
  return b;
}

static tfc_status exhausted(struct tfc_cuda_memory *m, size_t bytes, uint64_t held) {
  char a[32], b[32], c[32], d[32], e[32];
  size_t free_bytes = 0, total = 0;
  // What is left is asked of the GPU that the thread has entered: after a limit's refusal that may be another one.
  if (tfc_cuda_enter(m->api, m->ordinal) || m->api->memory_info(&free_bytes, &total)) free_bytes = total = 0;
  uint64_t left = free_bytes;
  if (m->limit == UINT64_MAX)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED,
                           "%s: out of memory: %s asked for, %s in use, %s on the device, largest free block %s",
                           m->device, tfc_show_bytes(a, (double)bytes), tfc_show_bytes(b, (double)held),
                           tfc_show_bytes(c, (double)total), tfc_show_bytes(e, (double)left));
  uint64_t below = m->limit > held ? m->limit - held : 0;
  if (total == 0 || below < left) left = below;
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED,
                         "%s: out of memory: %s asked for, %s in use, limit %s, largest free block %s", m->device,
                         tfc_show_bytes(a, (double)bytes), tfc_show_bytes(b, (double)held),
                         tfc_show_bytes(d, (double)m->limit), tfc_show_bytes(e, (double)left));
}

tfc_status tfc_cuda_memory_allocate(struct tfc_cuda_memory *m, size_t bytes, struct tfc_buffer **out) {
  uint64_t held = atomic_fetch_add_explicit(&m->held, bytes, memory_order_relaxed);
  struct tfc_cuda_block *b = NULL;
  int error = TFC_CUDA_OUT_OF_MEMORY;
  if (bytes <= m->limit && held <= m->limit - bytes && bytes <= SIZE_MAX / 4) {
    size_t capacity = 0;
    uint16_t class = tfc_size_class(&classes, bytes, &capacity);
    b = take_cached(m, class);
    if (!b && (b = make_block(m, capacity, &error))) {
      b->capacity = capacity;
      b->class = class;
    }
  }
  if (!b) {
    atomic_fetch_sub_explicit(&m->held, bytes, memory_order_relaxed);
    if (error == TFC_CUDA_OUT_OF_MEMORY) return exhausted(m, bytes, held);
    char a[32];
    return tfc_status_make(TFC_UNAVAILABLE, "%s: allocating %s: %s (%s)", m->device, tfc_show_bytes(a, (double)bytes),
                           m->api->error_text(error), m->api->error_name(error));
  }
  uint64_t peak = atomic_load_explicit(&m->peak, memory_order_relaxed);
  while (peak < held + bytes && !atomic_compare_exchange_weak(&m->peak, &peak, held + bytes)) {
  }
  b->buffer = (struct tfc_buffer){.data = b->memory, .size = bytes, .destroy = destroy, .owner = m};
  atomic_init(&b->buffer.references, 1);
  *out = &b->buffer;
  return NULL;
}
