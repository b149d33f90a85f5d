// /proc/meminfo and the limits of cgroups, both versions, this group and its parents. What a cgroup holds in caches of
// files that nobody reads now can be taken back, so it counts as left.
#include "runtime/base/memory_left.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/str.h"

static bool read_text(const char *path, char *out, size_t size) {
  FILE *f = fopen(path, "re");
  if (!f) return false;
  size_t n = fread(out, 1, size - 1, f);
  fclose(f);
  out[n] = 0;
  return n > 0;
}

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
  if (!limit || !usage || !stat || !read_text(limit, text, sizeof text)) goto out;
  uint64_t most = strncmp(text, "max", 3) == 0 ? UINT64_MAX : strtoull(text, NULL, 10);
  if (most >= INT64_MAX / 2) goto out; // version 1 writes "no limit" as a large number
  if (!read_text(usage, text, sizeof text)) goto out;
  uint64_t used = strtoull(text, NULL, 10), idle = 0;
  if (read_text(stat, text, sizeof text)) idle = number_of(text, second ? "inactive_file " : "total_inactive_file ");
  used -= least(used, idle);
  left = most > used ? most - used : 0;
out:
  free(limit), free(usage), free(stat);
  return left;
}

static uint64_t left_in_groups(void) {
  char line[4096];
  uint64_t left = UINT64_MAX;
  FILE *f = fopen("/proc/self/cgroup", "re");
  while (f && fgets(line, sizeof line, f)) {
    char *path = strchr(line, ':');
    char *group = path ? strchr(path + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    bool second = path[1] == 0;
    if (!second && strcmp(path + 1, "memory") != 0) continue;
    for (;;) { // this group and its parents
      char *folder = tfc_format("/sys/fs/cgroup%s%s", second ? "" : "/memory", group);
      if (folder) left = least(left, left_in(folder, second));
      free(folder);
      char *slash = strrchr(group, '/');
      if (!slash || group[1] == 0) break;
      slash[slash == group ? 1 : 0] = 0;
    }
  }
  if (f) fclose(f);
  // In a container the group above is not visible, but its own limit is at the root.
  return least(left, least(left_in("/sys/fs/cgroup", true), left_in("/sys/fs/cgroup/memory", false)));
}

uint64_t tfc_memory_left(void) {
  char text[8192];
  uint64_t left = UINT64_MAX;
  if (read_text("/proc/meminfo", text, sizeof text)) {
    uint64_t available = number_of(text, "MemAvailable:"), swap = number_of(text, "SwapFree:");
    if (available) left = 1024 * (available + swap);
  }
  return least(left, left_in_groups());
}

// What was granted and is not given back yet. Part of it has been touched and is in the resident set: with the rest of
// the process that is what counts as there already, so a grant is never refused for memory that is counted twice.
static _Atomic uint64_t granted;

static uint64_t resident(void) {
  char text[256];
  unsigned long long size = 0, pages = 0;
  if (!read_text("/proc/self/statm", text, sizeof text) || sscanf(text, "%llu %llu", &size, &pages) != 2) return 0;
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

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
