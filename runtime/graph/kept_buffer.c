// A single list for the whole process. It has few blocks; the block that was released last is first.
#include "runtime/graph/kept_buffer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SMALLEST = 1 << 20, MOST_BLOCKS = 8 };
#define MOST_BYTES ((size_t)1 << 30)

struct block {
  struct tfc_buffer buffer;
  struct block *next; // in the list
  size_t capacity;    // bytes
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the fields below
static struct block *blocks;
static uint32_t block_count;
static size_t block_bytes;

static void block_free(struct block *b) {
  free(b->buffer.data);
  free(b);
}

static void keep(struct tfc_buffer *buffer) {
  struct block *b = (struct block *)(void *)buffer;
  pthread_mutex_lock(&lock);
  const bool room = block_count < MOST_BLOCKS && b->capacity <= MOST_BYTES - block_bytes;
  if (room) {
    b->next = blocks;
    blocks = b;
    block_count++;
    block_bytes += b->capacity;
  }
  pthread_mutex_unlock(&lock);
  if (!room) block_free(b);
}

// Returns a block that fits and is at most twice as large; NULL: there is none.
static struct block *take(size_t size) {
  struct block *found = NULL;
  pthread_mutex_lock(&lock);
  for (struct block **at = &blocks; *at && !found; at = &(*at)->next) {
    if ((*at)->capacity < size || (*at)->capacity / 2 > size) continue;
    found = *at;
    *at = found->next;
    block_count--;
    block_bytes -= found->capacity;
    break;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

tfc_status tfc_buffer_create_kept(size_t size, struct tfc_buffer **out) {
  if (size < SMALLEST) return tfc_buffer_create_host(size, out);
  struct block *b = take(size);
  if (!b) {
    const size_t whole = size <= SIZE_MAX - 63 ? (size + 63) & ~(size_t)63 : 0;
    b = calloc(1, sizeof *b);
    void *data = b && whole ? aligned_alloc(64, whole) : NULL;
    if (!data) {
      free(b);
      return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of host memory: %zu bytes", size);
    }
    b->buffer.data = data;
    b->capacity = whole;
  }
  b->buffer = (struct tfc_buffer){.references = 1, .data = b->buffer.data, .size = size, .destroy = keep};
  *out = &b->buffer;
  return NULL;
}

tfc_status tfc_tensor_clone_kept(const struct tfc_tensor *t, struct tfc_tensor *out) {
  struct tfc_tensor copy = {.dtype = t->dtype, .shape = t->shape, .size = t->size};
  if (!tfc_dtype_is_plain(t->dtype) || !t->size) return tfc_tensor_clone(t, out);
  TFC_RETURN_IF_ERROR(tfc_buffer_create_kept(t->size, &copy.buffer));
  copy.data = copy.buffer->data;
  memcpy(copy.data, t->data, t->size);
  *out = copy;
  return NULL;
}
