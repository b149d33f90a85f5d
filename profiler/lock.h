// Lock: a file that only one process can hold at a time, and that contains the process's name. It is held by flock, so
// that the system frees it when the process ends, even if it is killed. Used for the database's writer and for
// measuring runs of a machine.
#ifndef TFC_PROFILER_LOCK_H
#define TFC_PROFILER_LOCK_H

#include <stdbool.h>

#include "runtime/base/status.h"

// Finds the path of the lock `name` that all processes of a user share: in the user's runtime directory (/run/user/UID)
// or, if the system has none, in /tmp/tfc-UID, which must belong to this user. The caller frees it.
TFC_MUST_USE tfc_status tfc_lock_path(const char *name, char **out);

struct tfc_lock;
// FAILED_PRECONDITION "PATH: held by process 123 (tfc-place) since 2026-01-31 12:00:00"; DATA_LOSS: the file cannot be
// made, or is a link or a pipe. The file stays when the lock is given back; an existing
// file is never truncated.
TFC_MUST_USE tfc_status tfc_lock_take(const char *path, const char *purpose, struct tfc_lock **out);
void tfc_lock_release(struct tfc_lock *lock); // NULL is fine
bool tfc_lock_held(const char *path);         // whether a running process holds it, this one or another

#endif
