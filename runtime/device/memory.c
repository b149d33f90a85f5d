// A block is one allocation: the buffer's record, padded to HEADER bytes, and the data behind it. Sizes up to 64 MiB
// are rounded up to a size class (size_class.h) and cached when they are freed; larger blocks go back to the system at
// once. If there is a limit, sizes are not rounded, because a step that was planned to fit might exceed the limit then.
// Blocks of one class then differ in size, and take_kept searches for one that is large enough.
#include "runtime/device/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/memory_left.h"
#include "runtime/base/no_memory.h"

struct tfc_memory_block {
  struct tfc_buffer buffer;
  struct tfc_memory_block *next;
  size_t capacity; // bytes of data
  uint16_t class;  // TFC_SIZE_CLASSES: not cached
};
enum { HEADER = 128, HUGE_PAGE = 2 << 20, LOOKS = 64 };
static const struct tfc_size_classes classes = {.smallest = 64, .largest = 64 << 20, .unit = 64};
_Static_assert(sizeof(struct tfc_memory_block) <= HEADER, "the header holds the record");

// Numbers threads in the order in which they first need a shelf.
static uint32_t own_shelf(void) {
  static _Atomic uint32_t next;
  static _Thread_local uint32_t number; // plus one; 0: none yet
  if (!number) number = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % TFC_MEMORY_SHELVES + 1;
  return number - 1;
}

static void unmap(struct tfc_memory *m, struct tfc_memory_block *b) {
  tfc_account_give(m->account, b->capacity);
  if (b->capacity >= HUGE_PAGE)
    munmap(b, HEADER + b->capacity);
  else
    free(b);
}

// Frees cached blocks, the largest first, until `capacity` more bytes fit under the limit; false: they do not fit even
// then. With UINT64_MAX it frees all cached blocks.
static bool make_room(void *memory, uint64_t capacity) {
  struct tfc_memory *m = memory;
  bool done = capacity != UINT64_MAX && tfc_account_reserve(m->account, capacity);
  if (done) return true;
  for (int i = 0; i < TFC_MEMORY_SHELVES; i++) pthread_mutex_lock(&m->shelves[i].lock);
  for (int i = TFC_SIZE_CLASSES * TFC_MEMORY_SHELVES; i-- > 0 && !done;) {
    struct tfc_memory_shelf *shelf = &m->shelves[i % TFC_MEMORY_SHELVES];
    struct tfc_memory_block *b = atomic_exchange(&shelf->last[i / TFC_MEMORY_SHELVES], NULL);
    struct tfc_memory_block **list = &shelf->free_lists[i / TFC_MEMORY_SHELVES];
    if (b) b->next = *list, *list = b;
    while ((b = *list) && !done) {
      *list = b->next;
      unmap(m, b);
      done = capacity != UINT64_MAX && tfc_account_reserve(m->account, capacity);
    }
  }
  for (int i = TFC_MEMORY_SHELVES; i-- > 0;) pthread_mutex_unlock(&m->shelves[i].lock);
  return done;
}

static void trim(struct tfc_memory *m) { // gives the cache back to the system
  (void)make_room(m, UINT64_MAX);
}

tfc_status tfc_memory_init(struct tfc_memory *m, const char *device, uint64_t limit, uint64_t offset) {
  *m = (struct tfc_memory){.offset = offset};
  m->shelves = aligned_alloc(_Alignof(struct tfc_memory_shelf), TFC_MEMORY_SHELVES * sizeof *m->shelves);
  if (!m->shelves) return tfc_status_no_memory_for("opening %s", device);
  memset(m->shelves, 0, TFC_MEMORY_SHELVES * sizeof *m->shelves);
  tfc_status s = tfc_account_open(device, limit, &m->account);
  if (s) {
    free(m->shelves);
    m->shelves = NULL;
    return s;
  }
  for (int i = 0; i < TFC_MEMORY_SHELVES; i++) pthread_mutex_init(&m->shelves[i].lock, NULL);
  tfc_account_keeps(m->account, make_room, m);
  return NULL;
}

void tfc_memory_deinit(struct tfc_memory *m) {
  if (!m->account) return;
  trim(m);
  tfc_account_close(m->account);
  m->account = NULL;
  for (int i = 0; i < TFC_MEMORY_SHELVES; i++) pthread_mutex_destroy(&m->shelves[i].lock);
  free(m->shelves);
  m->shelves = NULL;
}

uint64_t tfc_memory_peak(struct tfc_memory *m, bool restart) {
  const uint64_t most = tfc_account_peak(m->account);
  if (restart) tfc_account_restart(m->account);
  return most;
}

uint64_t tfc_memory_held(const struct tfc_memory *m) {
  uint64_t sum = 0;
  for (int i = 0; i < TFC_MEMORY_SHELVES; i++) sum += atomic_load_explicit(&m->shelves[i].held, memory_order_relaxed);
  return sum;
}

static void keep(struct tfc_memory_shelf *shelf, struct tfc_memory_block *b) {
  pthread_mutex_lock(&shelf->lock);
  b->next = shelf->free_lists[b->class];
  shelf->free_lists[b->class] = b;
  pthread_mutex_unlock(&shelf->lock);
}

static void destroy(struct tfc_buffer *self) {
  struct tfc_memory_block *b = (struct tfc_memory_block *)(void *)self, *none = NULL;
  struct tfc_memory *m = self->owner;
  struct tfc_memory_shelf *shelf = &m->shelves[own_shelf()];
  atomic_fetch_sub_explicit(&shelf->held, b->capacity, memory_order_relaxed);
  if (b->class == TFC_SIZE_CLASSES)
    unmap(m, b);
  else if (!atomic_compare_exchange_strong_explicit(&shelf->last[b->class], &none, b, memory_order_release,
                                                    memory_order_relaxed))
    keep(shelf, b);
}

// Takes a cached block of the class off a shelf. Without a limit all of them have the same size, so any block is large
// enough.
static struct tfc_memory_block *take_from(struct tfc_memory_shelf *shelf, uint16_t class, size_t capacity) {
  struct tfc_memory_block *b = NULL, **fits = NULL;
  if (atomic_load_explicit(&shelf->last[class], memory_order_relaxed))
    b = atomic_exchange_explicit(&shelf->last[class], NULL, memory_order_acquire);
  if (b && b->capacity >= capacity) return b;
  if (b) keep(shelf, b);
  pthread_mutex_lock(&shelf->lock);
  int looked = 0;
  for (struct tfc_memory_block **at = &shelf->free_lists[class]; *at; at = &(*at)->next) {
    if ((*at)->capacity >= capacity && (!fits || (*at)->capacity < (*fits)->capacity)) fits = at;
    if (fits && ((*fits)->capacity == capacity || ++looked >= LOOKS)) break;
  }
  b = fits ? *fits : NULL;
  if (b) *fits = b->next;
  pthread_mutex_unlock(&shelf->lock);
  return b;
}
static struct tfc_memory_block *take_kept(struct tfc_memory *m, uint16_t class, size_t capacity) {
  struct tfc_memory_block *b = NULL;
  const uint32_t own = own_shelf();
  for (uint32_t i = 0; i < TFC_MEMORY_SHELVES && class != TFC_SIZE_CLASSES && !b; i++)
    b = take_from(&m->shelves[(own + i) % TFC_MEMORY_SHELVES], class, capacity);
  return b;
}

static struct tfc_memory_block *map(size_t capacity) {
  if (!tfc_memory_grant(capacity)) return NULL;
  if (capacity < HUGE_PAGE) {
    void *small = aligned_alloc(64, HEADER + capacity);
    if (!small) tfc_memory_give_back(capacity);
    return small;
  }
  void *p = mmap(NULL, HEADER + capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    tfc_memory_give_back(capacity);
    return NULL;
  }
  madvise(p, HEADER + capacity, MADV_HUGEPAGE);
  return p;
}

tfc_status tfc_memory_allocate(struct tfc_memory *m, size_t bytes, struct tfc_buffer **out) {
  size_t capacity = 0;
  if (bytes > SIZE_MAX / 2) return tfc_account_exhausted(m->account, bytes);
  const uint16_t class = tfc_size_class(&classes, bytes, &capacity);
  if (m->account->limit != UINT64_MAX) capacity = (bytes + classes.unit - 1 + (bytes == 0)) & ~(classes.unit - 1);
  struct tfc_memory_block *b = take_kept(m, class, capacity);
  if (!b) {
    if (!make_room(m, capacity)) return tfc_account_exhausted(m->account, bytes);
    if (!(b = map(capacity))) { // the machine has no more memory: freeing the cache may be enough
      trim(m);
      b = map(capacity);
    }
    if (!b) {
      tfc_account_unreserve(m->account, capacity);
      return tfc_account_exhausted(m->account, bytes);
    }
    b->capacity = capacity;
    b->class = class;
  }
  atomic_fetch_add_explicit(&m->shelves[own_shelf()].held, b->capacity, memory_order_relaxed);
  b->buffer =
      (struct tfc_buffer){.data = (char *)b + HEADER + m->offset, .size = bytes, .destroy = destroy, .owner = m};
  atomic_init(&b->buffer.references, 1);
  *out = &b->buffer;
  return NULL;
}
