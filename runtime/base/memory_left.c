// /proc/meminfo and the limits of cgroups, both versions, this group and its parents. What a cgroup holds in caches of
// files that nobody reads now can be taken back, so it counts as left.
#include "runtime/base/memory_left.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/cgroup.h"
#include "runtime/base/str.h"

// The number behind a word at the begin of a line; 0: not there.
static uint64_t number_of(const char *text, const char *word) {
  size_t n = strlen(word);
  for (const char *line = text; line; line = strchr(line, '\n'), line += line != NULL)
    if (strncmp(line, word, n) == 0) return strtoull(line + n, NULL, 10);
  return 0;
}

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

// What one cgroup leaves.
static uint64_t left_in(const char *folder, bool second) {
  char text[8192];
  uint64_t left = UINT64_MAX;
  char *limit = tfc_format("%s/%s", folder, second ? "memory.max" : "memory.limit_in_bytes");
  char *usage = tfc_format("%s/%s", folder, second ? "memory.current" : "memory.usage_in_bytes");
  char *stat = tfc_format("%s/memory.stat", folder);
  if (!limit || !usage || !stat || !tfc_read_small(limit, text, sizeof text)) goto out;
  uint64_t most = strncmp(text, "max", 3) == 0 ? UINT64_MAX : strtoull(text, NULL, 10);
  if (most >= INT64_MAX / 2) goto out; // version 1 writes "no limit" as a large number
  if (!tfc_read_small(usage, text, sizeof text)) goto out;
  uint64_t used = strtoull(text, NULL, 10), idle = 0;
  if (tfc_read_small(stat, text, sizeof text))
    idle = number_of(text, second ? "inactive_file " : "total_inactive_file ");
  used -= least(used, idle);
  left = most > used ? most - used : 0;
out:
  free(limit), free(usage), free(stat);
  return left;
}

static void visit_group(void *user, const char *folder, bool second) {
  uint64_t *left = user;
  *left = least(*left, left_in(folder, second));
}

static _Atomic uint64_t process_limit = UINT64_MAX;

void tfc_memory_limit(uint64_t bytes) {
  atomic_store(&process_limit, bytes);
}

static uint64_t resident(void) {
  char text[256];
  unsigned long long size = 0, pages = 0;
  if (!tfc_read_small("/proc/self/statm", text, sizeof text) || sscanf(text, "%llu %llu", &size, &pages) != 2) return 0;
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t tfc_memory_left(void) {
  char text[8192];
  uint64_t left = UINT64_MAX;
  if (tfc_read_small("/proc/meminfo", text, sizeof text)) {
    uint64_t available = number_of(text, "MemAvailable:"), swap = number_of(text, "SwapFree:");
    if (available) left = 1024 * (available + swap);
  }
  tfc_cgroup_visit("memory", visit_group, &left);
  const uint64_t most = atomic_load(&process_limit);
  if (most != UINT64_MAX) {
    const uint64_t used = resident();
    left = least(left, most > used ? most - used : 0);
  }
  return left;
}

// What was granted and is not given back yet. Part of it has been touched and is in the resident set: with the rest of
// the process that is what counts as there already, so a grant is never refused for memory that is counted twice.
static _Atomic uint64_t granted;

bool tfc_memory_grant(size_t bytes) {
  if (bytes < TFC_MEMORY_MUCH) return true;
  uint64_t before = atomic_fetch_add(&granted, bytes), left = tfc_memory_left();
  if (left == UINT64_MAX || (bytes <= left + resident() && before <= left + resident() - bytes)) return true;
  atomic_fetch_sub(&granted, bytes);
  return false;
}

void tfc_memory_give_back(size_t bytes) {
  if (bytes >= TFC_MEMORY_MUCH) atomic_fetch_sub(&granted, bytes);
}
