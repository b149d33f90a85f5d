#include "tests/common/cuda_fake_memory.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/device/runner.h"

struct block {
  void *memory;
  size_t bytes;
  bool pinned;
  int device;
  struct block *next;
};

static struct block *blocks;
static bool readable;
static uint64_t bytes_out;

// The thread sanitizer notes each word of a range that memset or memmove touches, which takes far longer than anything
// else here. Of large ranges it is shown the ends: whoever uses a block at the wrong time uses these, too.
#ifdef __SANITIZE_THREAD__
enum { SHOWN = 4096 };
#define UNSEEN __attribute__((noinline, no_sanitize("thread"), optimize("O2")))
UNSEEN static void fill_unseen(volatile char *to, int value, size_t size) {
  const uint64_t word = 0x0101010101010101u * (uint8_t)value;
  for (; size % 8; size--) to[size - 1] = (char)value;
  for (size_t i = 0; i < size; i += 8) *(volatile uint64_t *)(to + i) = word;
}
UNSEEN static void copy_unseen(volatile char *to, const volatile char *from, size_t size) {
  for (; size % 8; size--) to[size - 1] = from[size - 1];
  for (size_t i = 0; i < size; i += 8) *(volatile uint64_t *)(to + i) = *(const volatile uint64_t *)(from + i);
}
#endif
void tfc_fake_memory_fill(char *to, int value, size_t size) {
#ifdef __SANITIZE_THREAD__
  if (size > 2 * SHOWN) {
    fill_unseen(to + SHOWN, value, size - 2 * SHOWN);
    memset(to + size - SHOWN, value, SHOWN);
    size = SHOWN;
  }
#endif
  memset(to, value, size);
}
void tfc_fake_memory_copy(char *to, const char *from, size_t size) {
#ifdef __SANITIZE_THREAD__
  if (size > 2 * SHOWN && (to >= from + size || from >= to + size)) {
    copy_unseen(to + SHOWN, from + SHOWN, size - 2 * SHOWN);
    memcpy(to + size - SHOWN, from + size - SHOWN, SHOWN);
    size = SHOWN;
  }
#endif
  memmove(to, from, size);
}

void tfc_fake_memory_readable(bool yes) {
  readable = yes;
}

bool tfc_fake_memory_allocate(void **out, size_t bytes, bool pinned, int device) {
  struct block *b = malloc(sizeof *b);
  void *memory = NULL;
  if (!b || posix_memalign(&memory, 256, bytes ? bytes : 1)) {
    free(b);
    return false;
  }
  tfc_fake_memory_fill(memory, 0xa5, bytes);
  *b = (struct block){memory, bytes, pinned, device, blocks};
  blocks = b;
  *out = pinned || readable ? memory : tfc_to_foreign(memory);
  if (!pinned) bytes_out += bytes;
  return true;
}

bool tfc_fake_memory_free(void *p) {
  struct block **at = &blocks;
  while (*at && (*at)->memory != tfc_to_host(p)) at = &(*at)->next;
  struct block *b = *at;
  if (!b) return false;
  *at = b->next;
  if (!b->pinned) bytes_out -= b->bytes;
  tfc_fake_memory_fill(b->memory, 0xdd, b->bytes);
  free(b->memory);
  free(b);
  return true;
}

uint64_t tfc_fake_memory_bytes(void) {
  return bytes_out;
}

uint64_t tfc_fake_memory_held_by(int device) {
  uint64_t bytes = 0;
  for (const struct block *b = blocks; b; b = b->next)
    if (!b->pinned && b->device == device) bytes += b->bytes;
  return bytes;
}

bool tfc_fake_memory_is_valid(const void *p, size_t bytes) {
  for (const struct block *b = blocks; b && bytes; b = b->next) {
    const char *at = b->pinned || readable ? p : tfc_to_host(p), *memory = b->memory;
    if ((b->pinned || readable || tfc_is_foreign(p)) && at >= memory && at < memory + b->bytes)
      return at + bytes <= memory + b->bytes;
  }
  return !bytes || !tfc_is_foreign(p);
}

bool tfc_fake_memory_is_on(int device, const void *p) {
  for (const struct block *b = blocks; b; b = b->next) {
    const char *at = readable ? p : tfc_to_host(p), *memory = b->memory;
    if (!b->pinned && at >= memory && at < memory + b->bytes) return b->device == device;
  }
  return true;
}

bool tfc_fake_memory_is_pageable(const void *p) {
  if (tfc_is_foreign(p)) return false;
  for (const struct block *b = blocks; b; b = b->next)
    if ((b->pinned || readable) && (const char *)p >= (const char *)b->memory &&
        (const char *)p < (const char *)b->memory + b->bytes)
      return false;
  return true;
}
