#include "runtime/base/spare.h"

#include <stdlib.h>

#include "runtime/base/memory_account.h"

enum { LEAST = 32 << 10 };

static _Thread_local struct tfc_spare *current;

void tfc_spare_init(struct tfc_spare *spare) {
  *spare = (struct tfc_spare){0};
  pthread_mutex_init(&spare->lock, NULL);
}

void tfc_spare_deinit(struct tfc_spare *spare) {
  for (size_t i = 0; i < spare->count; i++) {
    tfc_account_give(tfc_account_host(), spare->pieces[i].bytes);
    free(spare->pieces[i].memory);
  }
  spare->count = 0;
  pthread_mutex_destroy(&spare->lock);
}

struct tfc_spare *tfc_spare_enter(struct tfc_spare *spare) {
  struct tfc_spare *before = current;
  current = spare;
  return before;
}

void *tfc_spare_take(size_t least, size_t *out_bytes) {
  enum { LARGER = 4 };
  struct tfc_spare *spare = current;
  if (!spare || least < LEAST) return NULL;
  void *found = NULL;
  pthread_mutex_lock(&spare->lock);
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < spare->count; i++) {
    const size_t bytes = spare->pieces[i].bytes;
    if (bytes < least || bytes / LARGER > least) continue;
    if (best == SIZE_MAX || bytes < spare->pieces[best].bytes) best = i;
  }
  if (best != SIZE_MAX) {
    found = spare->pieces[best].memory;
    *out_bytes = spare->pieces[best].bytes;
    spare->pieces[best] = spare->pieces[--spare->count];
  }
  pthread_mutex_unlock(&spare->lock);
  if (found) tfc_account_give(tfc_account_host(), *out_bytes);
  return found;
}

void tfc_spare_give(void *memory, size_t bytes) {
  struct tfc_spare *spare = current;
  if (!memory) return;
  bool kept = false;
  if (spare && bytes >= LEAST && atomic_load_explicit(&spare->keeps, memory_order_relaxed) &&
      tfc_account_take(tfc_account_host(), bytes)) {
    pthread_mutex_lock(&spare->lock);
    kept = spare->count < TFC_SPARE_MOST;
    if (kept) {
      spare->pieces[spare->count].memory = memory;
      spare->pieces[spare->count++].bytes = bytes;
    }
    pthread_mutex_unlock(&spare->lock);
    if (!kept) tfc_account_give(tfc_account_host(), bytes);
  }
  if (!kept) free(memory);
}

void tfc_spare_take_array_(void **data, size_t *capacity, size_t wanted, size_t size) {
  size_t bytes;
  if (*data || __builtin_mul_overflow(wanted, size, &bytes)) return;
  if ((*data = tfc_spare_take(bytes, &bytes))) *capacity = bytes / size;
}
