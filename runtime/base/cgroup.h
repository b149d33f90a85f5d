// Finds the control groups that this process is in. With them, Linux limits the cores and the memory of a container.
// Any thread may call this.
#ifndef TFC_RUNTIME_BASE_CGROUP_H
#define TFC_RUNTIME_BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>

// Calls `visit` with the folder of each group that limits this process for `controller` ("cpu", "memory"): its own
// group, all above it, and the root (where a container sees its own limit). `second`: the folder is of control groups
// version 2, whose files have other names. The folder need not exist.
void tfc_cgroup_visit(const char *controller, void (*visit)(void *user, const char *folder, bool second), void *user);
// Reads the beginning of a small file of the kernel as a string; false: the file does not exist, or is empty.
bool tfc_read_small(const char *path, char *out, size_t size);

#endif
