// Arena: memory that is freed all at once. Allocating moves a pointer; single pieces are never freed. Only one thread
// at a time may use it. A zeroed arena is empty (tfc_arena_init sets a block size); deinit frees everything.
#ifndef TFC_RUNTIME_BASE_ARENA_H
#define TFC_RUNTIME_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/str.h"

struct tfc_arena_block;
struct tfc_arena {
  struct tfc_arena_block *blocks;
  char *next, *end;
  size_t block_size; // 0: 64 KiB
  size_t used;       // bytes handed out
};

void tfc_arena_init(struct tfc_arena *arena, size_t block_size);
void tfc_arena_deinit(struct tfc_arena *arena);
// Returns memory aligned to 16 bytes; tfc_arena_zalloc clears it. NULL: out of memory, or the size overflows.
void *tfc_arena_alloc(struct tfc_arena *arena, size_t size);
void *tfc_arena_zalloc(struct tfc_arena *arena, size_t size);
void *tfc_arena_array(struct tfc_arena *arena, size_t count, size_t size); // zeroed, overflow-checked
// Returns a copy with a terminating zero, which is not part of the view.
tfc_str tfc_arena_str(struct tfc_arena *arena, tfc_str text);
tfc_str tfc_arena_printf(struct tfc_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define TFC_ARENA_NEW(arena, type) ((type *)tfc_arena_zalloc((arena), sizeof(type)))
#define TFC_ARENA_ARRAY(arena, type, count) ((type *)tfc_arena_array((arena), (count), sizeof(type)))

#endif
