// Large pieces of memory that were used and wait to be used again. A plan of 50,000 nodes takes some 100 MB from the
// system, which clears every page before it gives it. A plan for another placement needs pieces of the same sizes as
// the one before it: these have their pages already.
//
// Pieces are memory of malloc, so that whoever took one may also free it, or make it larger by realloc. What is kept
// counts on the host's memory account. A thread that plans enters the spare memory of its plans; arenas then take their
// blocks from there, and give them back to what the thread that frees them has entered. Any thread may call these
// functions.
//
//   struct tfc_spare *before = tfc_spare_enter(spare);
//   size_t bytes;
//   void *piece = tfc_spare_take(wanted, &bytes);
//   if (!piece) piece = malloc(bytes = wanted);
//   ...
//   tfc_spare_give(piece, bytes);
//   tfc_spare_enter(before);
#ifndef TFC_RUNTIME_BASE_SPARE_H
#define TFC_RUNTIME_BASE_SPARE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/array.h"

enum { TFC_SPARE_MOST = 64 };

struct tfc_spare {
  pthread_mutex_t lock; // guards the pieces
  _Atomic bool keeps;   // false: what is given is freed
  size_t count;
  struct {
    void *memory;
    size_t bytes;
  } pieces[TFC_SPARE_MOST];
};

void tfc_spare_init(struct tfc_spare *spare);
void tfc_spare_deinit(struct tfc_spare *spare); // frees all pieces
// Makes `spare` (NULL: none) the thread's spare memory; returns the one before it.
struct tfc_spare *tfc_spare_enter(struct tfc_spare *spare);
// Returns the smallest piece of at least `least` bytes in the thread's spare memory, or NULL; larger pieces than four
// times as much stay. Its contents are undefined.
void *tfc_spare_take(size_t least, size_t *out_bytes);
// Keeps a piece in the thread's spare memory, or frees it if it is small, if enough pieces are kept, or if nothing is
// to be kept.
void tfc_spare_give(void *memory, size_t bytes);

// The same for the memory of an array (runtime/base/array.h). `wanted`: items; the array must be empty. False: out of
// memory.
#define tfc_spare_take_array(array, wanted)                                                                            \
  (tfc_spare_take_array_((void **)&(array)->data, &(array)->capacity, (size_t)(wanted), sizeof *(array)->data),        \
   tfc_array_reserve((array), (wanted)))
#define tfc_spare_give_array(array)                                                                                    \
  (tfc_spare_give((array)->data, (array)->capacity * sizeof *(array)->data), (array)->data = NULL,                     \
   (array)->count = (array)->capacity = 0)
void tfc_spare_take_array_(void **data, size_t *capacity, size_t wanted, size_t size);

#endif
