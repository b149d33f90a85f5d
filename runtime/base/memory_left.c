// Reads /proc/meminfo, the limits of control groups (both versions, this group and its parents), and the limits of the
// address space. Memory that a group uses for caches of files counts as left, because the kernel can reclaim it.
//
// One look costs as much as touching a hundred pages. So each look allows a quarter of what is left, at most 64 MiB, to
// be granted before the next look: near the limit, looks are more frequent. Memory that is not granted (small
// allocations of plans, threads and libraries) grows meanwhile, so a margin is kept for it.
#include "runtime/base/memory_left.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/cgroup.h"
#include "runtime/base/str.h"

// Returns the number after a word at the beginning of a line; 0: the word is not there.
static uint64_t number_of(const char *text, const char *word) {
  size_t n = strlen(word);
  for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
    if (strncmp(line, word, n) == 0) return strtoull(line + n, NULL, 10);
  return 0;
}

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static void tighten(struct tfc_memory_bound *b, const char *what, uint64_t limit, uint64_t used) {
  uint64_t left = limit > used ? limit - used : 0;
  if (left < b->left) *b = (struct tfc_memory_bound){what, limit, used, left};
}

static void visit_group(void *user, const char *folder, bool second) {
  char text[8192];
  char *limit = tfc_format("%s/%s", folder, second ? "memory.max" : "memory.limit_in_bytes");
  char *usage = tfc_format("%s/%s", folder, second ? "memory.current" : "memory.usage_in_bytes");
  char *stat = tfc_format("%s/memory.stat", folder);
  if (!limit || !usage || !stat || !tfc_read_small(limit, text, sizeof text)) goto out;
  uint64_t most = strncmp(text, "max", 3) == 0 ? UINT64_MAX : strtoull(text, NULL, 10);
  if (most >= INT64_MAX / 2) goto out; // version 1 writes a large number for "no limit"
  if (!tfc_read_small(usage, text, sizeof text)) goto out;
  uint64_t used = strtoull(text, NULL, 10), idle = 0;
  if (tfc_read_small(stat, text, sizeof text))
    idle = number_of(text, second ? "inactive_file " : "total_inactive_file ");
  used -= least(used, idle);
  tighten(user, "its control group", most, used);
out:
  free(limit), free(usage), free(stat);
}

// The memory of this process: the size of its address space, of the part that is resident, of that without the pages of
// files (libraries), and of its own data.
struct pages {
  uint64_t size, resident, anonymous, data; // bytes
};
static struct pages own_pages(void) {
  char text[256];
  unsigned long long size = 0, resident = 0, shared = 0, data = 0;
  if (!tfc_read_small("/proc/self/statm", text, sizeof text) ||
      sscanf(text, "%llu %llu %llu %*u %*u %llu", &size, &resident, &shared, &data) != 4)
    return (struct pages){0};
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  return (struct pages){size * page, resident * page, (resident - least(resident, shared)) * page, data * page};
}

static _Atomic uint64_t process_limit = UINT64_MAX;

void tfc_memory_limit(uint64_t bytes) {
  atomic_store(&process_limit, bytes);
}

void tfc_memory_bound(struct tfc_memory_bound *out) {
  char text[8192];
  struct tfc_memory_bound b = {.what = "this machine", .left = UINT64_MAX};
  struct pages own = own_pages();
  if (tfc_read_small("/proc/meminfo", text, sizeof text)) {
    uint64_t all = number_of(text, "MemTotal:") + number_of(text, "SwapTotal:");
    uint64_t left = number_of(text, "MemAvailable:") + number_of(text, "SwapFree:");
    if (number_of(text, "MemAvailable:")) tighten(&b, "this machine", 1024 * all, 1024 * (all - least(all, left)));
  }
  tfc_cgroup_visit("memory", visit_group, &b);
  uint64_t most = atomic_load(&process_limit);
  if (most != UINT64_MAX) tighten(&b, "this process", most, own.resident);
  struct rlimit r;
  if (own.size && getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
    tighten(&b, "ulimit -v", r.rlim_cur, own.size);
  if (own.data && getrlimit(RLIMIT_DATA, &r) == 0 && r.rlim_cur != RLIM_INFINITY)
    tighten(&b, "ulimit -d", r.rlim_cur, own.data);
  if (b.left == UINT64_MAX) b.used = own.resident;
  *out = b;
}

uint64_t tfc_memory_kills(void) {
  char text[32768];
  return tfc_read_small("/proc/vmstat", text, sizeof text) ? number_of(text, "oom_kill ") : 0;
}

enum { MOST_AHEAD = 64 << 20, LEAST_MARGIN = 8 << 20, MARGIN_SHARE = 32 };
static _Atomic uint64_t granted; // without what was given back
static _Atomic uint64_t allowed; // `granted` may grow up to this without another look
static uint64_t other;           // the least memory seen that was resident but not granted; guarded by the lock
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Whether there is memory for all that is granted. Pages of it that were touched are resident, so the system counts
// them already. `now`: `granted` with this request. Sets how far `granted` may grow before the next look.
static bool look(uint64_t now, uint64_t bytes) {
  struct tfc_memory_bound b;
  tfc_memory_bound(&b);
  if (b.left == UINT64_MAX) {
    atomic_store(&allowed, now + MOST_AHEAD);
    return true;
  }
  // Libraries are read page by page while the first steps run. Counted here, these pages would look like granted memory
  // that was touched.
  uint64_t resident = own_pages().anonymous;
  uint64_t before = now - bytes;
  if (resident > before && resident - before > other) other = resident - before;
  uint64_t touched = least(before, resident > other ? resident - other : 0);
  uint64_t margin = b.limit / MARGIN_SHARE > MOST_AHEAD ? MOST_AHEAD : b.limit / MARGIN_SHARE;
  if (margin < LEAST_MARGIN) margin = LEAST_MARGIN;
  uint64_t wanted = now - touched + margin;
  if (wanted > b.left) return false;
  atomic_store(&allowed, now + least((b.left - wanted) / 4, MOST_AHEAD));
  return true;
}

// Gives the memory that the heap does not use back to the system. Called with the lock held: where another allocator
// stands in for the C library's (a sanitizer's, jemalloc), this call is the first that the library's own one sees, and
// it must not be set up by two threads at once (glibc aborts when the second of them ends).
static void trim_heap(void) {
  malloc_trim(0);
}

bool tfc_memory_grant(size_t bytes) {
  uint64_t now = atomic_fetch_add_explicit(&granted, bytes, memory_order_relaxed) + bytes;
  if (now <= atomic_load_explicit(&allowed, memory_order_relaxed)) return true;
  pthread_mutex_lock(&lock);
  bool good = look(now, bytes);
  if (!good) { // the heap may still hold memory that was freed
    trim_heap();
    good = look(now, bytes);
  }
  pthread_mutex_unlock(&lock);
  if (!good) atomic_fetch_sub_explicit(&granted, bytes, memory_order_relaxed);
  return good;
}

void tfc_memory_give_back(size_t bytes) {
  atomic_fetch_sub_explicit(&granted, bytes, memory_order_relaxed);
}

void tfc_memory_mark(void) {
  pthread_mutex_lock(&lock);
  trim_heap();
  uint64_t resident = own_pages().anonymous, now = atomic_load(&granted);
  other = resident > now ? resident - now : 0;
  atomic_store(&allowed, 0);
  pthread_mutex_unlock(&lock);
}
