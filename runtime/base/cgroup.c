#include "runtime/base/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"

bool tfc_read_small(const char *path, char *out, size_t size) {
  FILE *f = fopen(path, "re");
  if (!f) return false;
  size_t n = fread(out, 1, size - 1, f);
  fclose(f);
  out[n] = 0;
  return n > 0;
}

// Whether the controller is in a list like "cpu,cpuacct".
static bool is_listed(const char *controllers, const char *controller) {
  size_t n = strlen(controller);
  for (const char *c = controllers;; c++) {
    if (strncmp(c, controller, n) == 0 && (c[n] == 0 || c[n] == ',')) return true;
    if (!(c = strchr(c, ','))) return false;
  }
}

void tfc_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder, bool second), void *user) {
  char line[4096];
  FILE *f = fopen("/proc/self/cgroup", "re");
  while (f && fgets(line, sizeof line, f)) {
    // a line is "number:controllers:group"; in version 2 there are no controllers
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) continue;
    *group++ = 0, controllers++;
    group[strcspn(group, "\n")] = 0;
    bool second = controllers[0] == 0;
    if (!second && !is_listed(controllers, controller)) continue;
    for (;;) { // visits this group and then its parents
      char *folder =
          second ? tfc_format("/sys/fs/cgroup%s", group) : tfc_format("/sys/fs/cgroup/%s%s", controller, group);
      if (folder) visit(user, folder, second);
      free(folder);
      char *slash = strrchr(group, '/');
      if (!slash || group[1] == 0) break;
      slash[slash == group ? 1 : 0] = 0;
    }
  }
  if (f) fclose(f);
  char *first = tfc_format("/sys/fs/cgroup/%s", controller);
  visit(user, "/sys/fs/cgroup", true);
  if (first) visit(user, first, false);
  free(first);
}
