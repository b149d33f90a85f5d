#include "runtime/base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/memory_account.h"
#include "runtime/base/pages.h"
#include "runtime/base/spare.h"

enum { alignment = 16, default_block = 64 * 1024, largest_block = 16 << 20 };

// Under the address sanitizer each piece is a block of its own, of exactly its size: then the sanitizer sees when a
// piece is left, which within a block it cannot.
#if defined(__SANITIZE_ADDRESS__)
enum { single_pieces = true };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { single_pieces = true };
#else
enum { single_pieces = false };
#endif
#else
enum { single_pieces = false };
#endif

struct tfc_arena_block {
  struct tfc_arena_block *next;
  size_t size; // size of the whole block; counted on the host's account
  _Alignas(alignment) char data[];
};

void tfc_arena_init(struct tfc_arena *arena, size_t block_size) {
  *arena = (struct tfc_arena){.block_size = block_size};
}

void tfc_arena_deinit(struct tfc_arena *arena) {
  for (struct tfc_arena_block *b = arena->blocks, *next; b; b = next) {
    next = b->next;
    tfc_account_give(tfc_account_host(), b->size);
    tfc_spare_give(b, b->size);
  }
  *arena = (struct tfc_arena){.block_size = arena->block_size};
}

static void *alloc_single(struct tfc_arena *arena, size_t size) {
  const size_t bytes = sizeof(struct tfc_arena_block) + (size ? size : 1);
  if (!tfc_account_take(tfc_account_host(), bytes)) return NULL;
  struct tfc_arena_block *b = malloc(bytes);
  if (!b) {
    tfc_account_give(tfc_account_host(), bytes);
    return NULL;
  }
  *b = (struct tfc_arena_block){.next = arena->blocks, .size = bytes};
  arena->blocks = b;
  arena->used += size;
  return b->data;
}

void *tfc_arena_alloc(struct tfc_arena *arena, size_t size) {
  if (size > SIZE_MAX / 2) return NULL;
  if (single_pieces) return alloc_single(arena, size);
  size = (size + alignment - 1) & ~(size_t)(alignment - 1);
  if (!arena->next || size > (size_t)(arena->end - arena->next)) {
    size_t block_size = arena->block_size ? arena->block_size : default_block;
    size_t grown = arena->used < largest_block ? arena->used : largest_block; // blocks grow with the arena
    if (grown > block_size) block_size = grown;
    size_t capacity = size > block_size ? size : block_size;
    size_t bytes = sizeof(struct tfc_arena_block) + capacity;
    struct tfc_arena_block *b = tfc_spare_take(bytes, &bytes);
    if (!tfc_account_take(tfc_account_host(), bytes)) {
      free(b);
      return NULL;
    }
    if (!b) {
      b = malloc(bytes);
      if (!b) {
        tfc_account_give(tfc_account_host(), bytes);
        return NULL;
      }
      tfc_pages_advise(b, bytes);
    }
    b->size = bytes;
    capacity = bytes - sizeof *b;
    // a large block is put behind the current one, so that the current one is used further
    if (size > block_size && arena->blocks) {
      b->next = arena->blocks->next;
      arena->blocks->next = b;
      arena->used += size;
      return b->data;
    }
    b->next = arena->blocks;
    arena->blocks = b;
    arena->next = b->data;
    arena->end = b->data + capacity;
  }
  void *p = arena->next;
  arena->next += size;
  arena->used += size;
  return p;
}

void *tfc_arena_zalloc(struct tfc_arena *arena, size_t size) {
  void *p = tfc_arena_alloc(arena, size);
  if (p) memset(p, 0, size);
  return p;
}

void *tfc_arena_array(struct tfc_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
  return tfc_arena_zalloc(arena, bytes);
}

tfc_str tfc_arena_str(struct tfc_arena *arena, tfc_str text) {
  char *copy = tfc_arena_alloc(arena, text.size + 1);
  if (!copy) return (tfc_str){0};
  if (text.size) memcpy(copy, text.data, text.size);
  copy[text.size] = 0;
  return (tfc_str){copy, text.size};
}

tfc_str tfc_arena_printf(struct tfc_arena *arena, const char *format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = n < 0 ? NULL : tfc_arena_alloc(arena, (size_t)n + 1);
  if (text) vsnprintf(text, (size_t)n + 1, format, args);
  va_end(args);
  return text ? (tfc_str){text, (size_t)n} : (tfc_str){0};
}
