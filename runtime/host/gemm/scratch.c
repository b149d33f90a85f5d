#include "runtime/host/gemm/scratch.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "runtime/base/memory_account.h"

struct held {
  void *data[TFC_SCRATCH_PLACES];
  size_t size[TFC_SCRATCH_PLACES];
  struct tfc_memory_account *account[TFC_SCRATCH_PLACES]; // the account on which `size` is counted
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static _Thread_local struct held *mine;

static void drop(struct held *h, int place) {
  free(h->data[place]);
  if (h->size[place]) tfc_account_give_scratch(h->account[place], h->size[place]);
  h->data[place] = NULL, h->size[place] = 0;
}

static void let_go(void *record) {
  struct held *h = record;
  for (int i = 0; i < TFC_SCRATCH_PLACES; i++) drop(h, i);
  free(h);
}

static void at_exit(void) { // frees the main thread's memory
  if (mine) let_go(mine);
  mine = NULL;
}

static void make_key(void) {
  if (pthread_key_create(&key, let_go) != 0) abort();
  atexit(at_exit);
}

static void *take(size_t bytes) {
  enum { HUGE_PAGE = 2 << 20 };
  void *p = NULL;
  if (posix_memalign(&p, bytes < 2 * HUGE_PAGE ? 64 : HUGE_PAGE, bytes)) return NULL;
  // If this fails, the memory has small pages and is just slower.
  if (bytes >= 2 * HUGE_PAGE) madvise(p, bytes, MADV_HUGEPAGE);
  return p;
}

void *tfc_thread_scratch(int place, size_t bytes) {
  pthread_once(&once, make_key);
  if (!mine) {
    mine = calloc(1, sizeof *mine);
    if (!mine) return NULL;
    pthread_setspecific(key, mine);
  }
  if (mine->size[place] >= bytes) return mine->data[place];
  size_t wanted = (bytes + bytes / 4 + 4095) / 4096 * 4096;
  drop(mine, place);
  struct tfc_memory_account *account = tfc_account_current();
  if (!tfc_account_take_scratch(account, wanted)) return NULL;
  if (!(mine->data[place] = take(wanted))) {
    tfc_account_give_scratch(account, wanted);
    return NULL;
  }
  mine->size[place] = wanted, mine->account[place] = account;
  return mine->data[place];
}
