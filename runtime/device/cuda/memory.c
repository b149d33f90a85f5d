// Asks CUDA for exactly the requested size, because the limit counts it: with rounded sizes, a step that was planned to
// fit might not fit. Freed blocks of up to 1 GiB are kept in lists by size class. A request first gets a block of its
// own size, otherwise one of its class that is large enough (at most a quarter of that is wasted). Larger blocks are
// freed at once.
#include "runtime/device/cuda/memory.h"

#include <stdlib.h>

#include "runtime/base/units.h"
#include "runtime/device/cuda/device.h"

struct tfc_cuda_block {
  struct tfc_buffer buffer;
  struct tfc_cuda_block *next;
  void *memory;
  size_t capacity;
  uint16_t class; // TFC_SIZE_CLASSES: the block is too large to be cached
};
static const struct tfc_size_classes classes = {.smallest = 256, .largest = (size_t)1 << 30, .unit = 256};
enum { LOOKS = 64 }; // so many blocks of a list are compared; after that, the first one that is large enough is used

// All memories of the process. Several devices may share one GPU (virtual devices, the undivided GPU), so if one needs
// memory, the caches of the others are freed.
static pthread_mutex_t neighbours_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tfc_cuda_memory *neighbours;

// Threads that ask CUDA for memory hold this lock as readers, a thread that captures holds it as the writer. A waiting
// writer goes first.
static pthread_rwlock_t captures = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static _Thread_local bool captures_now; // this thread captures: what it allocates belongs to the graph

void tfc_cuda_memory_capture_begin(void) {
  pthread_rwlock_wrlock(&captures);
  captures_now = true;
}
void tfc_cuda_memory_capture_end(void) {
  captures_now = false;
  pthread_rwlock_unlock(&captures);
}
void tfc_cuda_memory_enter(void) {
  if (!captures_now) pthread_rwlock_rdlock(&captures);
}
void tfc_cuda_memory_leave(void) {
  if (!captures_now) pthread_rwlock_unlock(&captures);
}

void tfc_cuda_memory_init(struct tfc_cuda_memory *m, const struct tfc_cuda_api *api, const char *device, int ordinal,
                          uint64_t limit) {
  *m = (struct tfc_cuda_memory){.api = api, .device = device, .ordinal = ordinal, .limit = limit};
  pthread_mutex_init(&m->lock, NULL);
  pthread_mutex_lock(&neighbours_lock);
  m->neighbour = neighbours;
  neighbours = m;
  pthread_mutex_unlock(&neighbours_lock);
}

void tfc_cuda_memory_deinit(struct tfc_cuda_memory *m) {
  pthread_mutex_lock(&neighbours_lock);
  struct tfc_cuda_memory **at = &neighbours;
  while (*at != m) at = &(*at)->neighbour;
  *at = m->neighbour;
  pthread_mutex_unlock(&neighbours_lock);
  tfc_cuda_memory_trim(m);
  pthread_mutex_destroy(&m->lock);
}

// The thread may be launching on another GPU, to which it returns when CUDA was asked. *out_before: that GPU.
static int enter(const struct tfc_cuda_memory *m, int *out_before) {
  *out_before = tfc_cuda_entered(m->api);
  return tfc_cuda_enter(m->api, m->ordinal);
}
static void leave(const struct tfc_cuda_memory *m, int before) {
  if (before >= 0) (void)tfc_cuda_enter(m->api, before); // an error shows again at the thread's next call
}

// --- Freeing: under the lock ---------------------------------------------------------------------------------
static void free_block(struct tfc_cuda_memory *m, struct tfc_cuda_block *b) {
  int before;
  (void)enter(m, &before);
  (void)m->api->release(b->memory);
  leave(m, before);
  m->taken -= b->capacity;
  free(b);
}

static bool fits(const struct tfc_cuda_memory *m, uint64_t capacity) {
  return capacity <= m->limit && m->taken <= m->limit - capacity;
}

// Frees cached blocks, the largest first, until the new block fits under the limit; UINT64_MAX: frees all of them.
static void make_room(struct tfc_cuda_memory *m, uint64_t capacity) {
  for (int i = TFC_SIZE_CLASSES; i-- > 0 && !m->frozen;)
    while (m->free_lists[i] && !fits(m, capacity)) {
      struct tfc_cuda_block *b = m->free_lists[i];
      m->free_lists[i] = b->next;
      free_block(m, b);
    }
}

static void put_back(struct tfc_cuda_memory *m, struct tfc_cuda_block *b) {
  if (b->class == TFC_SIZE_CLASSES && !m->frozen) {
    free_block(m, b);
    return;
  }
  struct tfc_cuda_block **list = m->frozen ? &m->waiting : &m->free_lists[b->class];
  b->next = *list;
  *list = b;
}

static void destroy(struct tfc_buffer *self) {
  struct tfc_cuda_block *b = (struct tfc_cuda_block *)(void *)self;
  struct tfc_cuda_memory *m = self->owner;
  tfc_cuda_memory_enter();
  pthread_mutex_lock(&m->lock);
  atomic_fetch_sub_explicit(&m->held, b->capacity, memory_order_relaxed);
  put_back(m, b);
  pthread_mutex_unlock(&m->lock);
  tfc_cuda_memory_leave();
}

void tfc_cuda_memory_trim(struct tfc_cuda_memory *m) {
  tfc_cuda_memory_enter();
  pthread_mutex_lock(&m->lock);
  make_room(m, UINT64_MAX);
  pthread_mutex_unlock(&m->lock);
  tfc_cuda_memory_leave();
}

void tfc_cuda_memory_freeze(struct tfc_cuda_memory *m) {
  pthread_mutex_lock(&m->lock);
  m->frozen = true;
  pthread_mutex_unlock(&m->lock);
}

void tfc_cuda_memory_thaw(struct tfc_cuda_memory *m) {
  tfc_cuda_memory_enter();
  pthread_mutex_lock(&m->lock);
  m->frozen = false;
  while (m->waiting) {
    struct tfc_cuda_block *b = m->waiting;
    m->waiting = b->next;
    put_back(m, b);
  }
  pthread_mutex_unlock(&m->lock);
  tfc_cuda_memory_leave();
}

// --- Allocating ------------------------------------------------------------------------------------------------------
static struct tfc_cuda_block *take_kept(struct tfc_cuda_memory *m, uint16_t class, size_t capacity) { // under the lock
  struct tfc_cuda_block **fits = NULL;
  if (class == TFC_SIZE_CLASSES) return NULL;
  int looked = 0;
  for (struct tfc_cuda_block **at = &m->free_lists[class]; *at; at = &(*at)->next) {
    if ((*at)->capacity >= capacity && (!fits || (*at)->capacity < (*fits)->capacity)) fits = at;
    if (fits && ((*fits)->capacity == capacity || ++looked >= LOOKS)) break;
  }
  struct tfc_cuda_block *b = fits ? *fits : NULL;
  if (b) *fits = b->next;
  return b;
}

static int ask_cuda(struct tfc_cuda_memory *m, size_t capacity, void **out) {
  int before, error = enter(m, &before);
  if (!error) error = m->api->allocate(out, capacity);
  if (error == TFC_CUDA_OUT_OF_MEMORY) (void)m->api->last_error(); // running out of memory is not sticky
  leave(m, before);
  return error;
}

static bool trim_neighbours(const struct tfc_cuda_memory *m) { // false: the other caches were empty
  bool some = false;
  pthread_mutex_lock(&neighbours_lock);
  for (struct tfc_cuda_memory *n = neighbours; n; n = n->neighbour) {
    if (n->api != m->api || n->ordinal != m->ordinal) continue;
    pthread_mutex_lock(&n->lock);
    const uint64_t before = n->taken;
    make_room(n, UINT64_MAX);
    some |= n->taken < before;
    pthread_mutex_unlock(&n->lock);
  }
  pthread_mutex_unlock(&neighbours_lock);
  return some;
}

// Returns a block that fits within the limit, or NULL with CUDA's error.
static struct tfc_cuda_block *take(struct tfc_cuda_memory *m, uint16_t class, size_t capacity, int *out_error) {
  struct tfc_cuda_block *b = NULL, *fresh = calloc(1, sizeof *fresh);
  *out_error = TFC_CUDA_OUT_OF_MEMORY;
  if (!fresh) return NULL;
  pthread_mutex_lock(&m->lock);
  if (!(b = take_kept(m, class, capacity))) {
    make_room(m, capacity);
    if (fits(m, capacity)) {
      *fresh = (struct tfc_cuda_block){.capacity = capacity, .class = class};
      b = fresh, fresh = NULL;
      m->taken += capacity; // reserved before CUDA is asked, so that no other thread takes it meanwhile
      m->calls++;
    }
  }
  if (m->taken > m->peak) m->peak = m->taken;
  pthread_mutex_unlock(&m->lock);
  free(fresh);
  if (!b || b->memory) return b;
  *out_error = ask_cuda(m, capacity, &b->memory);
  if (*out_error == TFC_CUDA_OUT_OF_MEMORY && trim_neighbours(m)) *out_error = ask_cuda(m, capacity, &b->memory);
  if (!*out_error) return b;
  pthread_mutex_lock(&m->lock);
  m->taken -= capacity;
  pthread_mutex_unlock(&m->lock);
  free(b);
  return NULL;
}

static tfc_status exhausted(struct tfc_cuda_memory *m, size_t bytes) {
  char a[32], b[32], c[32], d[32], e[32];
  size_t free_bytes = 0, total = 0;
  // memory_info describes the GPU that is current on the thread. If the limit refused the block, CUDA was not called,
  // and another GPU may be current: so this makes the right one current.
  int before;
  if (enter(m, &before) || m->api->memory_info(&free_bytes, &total)) free_bytes = total = 0;
  leave(m, before);
  uint64_t left = free_bytes, held = atomic_load_explicit(&m->held, memory_order_relaxed);
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
  if (bytes > SIZE_MAX / 4) return exhausted(m, bytes);
  size_t capacity = bytes < classes.smallest ? classes.smallest : bytes, room = 0;
  int error = 0;
  tfc_cuda_memory_enter();
  struct tfc_cuda_block *b = take(m, tfc_size_class(&classes, capacity, &room), capacity, &error);
  tfc_cuda_memory_leave();
  if (!b) {
    if (error == TFC_CUDA_OUT_OF_MEMORY) return exhausted(m, bytes);
    char a[32];
    return tfc_status_make(TFC_UNAVAILABLE, "%s: allocating %s: %s (%s)", m->device, tfc_show_bytes(a, (double)bytes),
                           m->api->error_text(error), m->api->error_name(error));
  }
  atomic_fetch_add_explicit(&m->held, b->capacity, memory_order_relaxed);
  b->buffer = (struct tfc_buffer){.data = b->memory, .size = bytes, .destroy = destroy, .owner = m};
  atomic_init(&b->buffer.references, 1);
  *out = &b->buffer;
  return NULL;
}
