#include "profiler/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/str.h"

// What a lock file contains. Its size never changes, so that it never has to be truncated; the rest is filled with
// spaces.
enum { RECORD = 160 };
static const char record_begin[] = "process ";

struct tfc_lock {
  int fd;
};

// Opens an existing file without O_CREAT: otherwise a file of another user in a sticky folder could not be opened.
// flock does not need the right to write. Anything but a regular file (a link to another file, a pipe) was put there by
// another user.
static tfc_status open_lock(const char *path, int *out_fd) {
  struct stat st;
  const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int fd = tfc_os.open(path, O_RDWR | flags, 0);
  if (fd < 0 && errno == ENOENT) fd = tfc_os.open(path, O_RDWR | O_CREAT | flags, 0644);
  if (fd < 0 && errno == EACCES) fd = tfc_os.open(path, O_RDONLY | flags, 0);
  if (fd < 0 && (errno == ELOOP || errno == ENXIO))
    return tfc_status_make(TFC_DATA_LOSS, "%s: not a regular file; remove it", path);
  if (fd < 0) return tfc_status_make(TFC_DATA_LOSS, "%s: cannot be written: %s", path, strerror(errno));
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    close(fd);
    return tfc_status_make(TFC_DATA_LOSS, "%s: not a regular file; remove it", path);
  }
  *out_fd = fd;
  return NULL;
}

// Writes the holder's name into the file. Errors, such as a full disk, are ignored, because the database finds them
// later. A file that is neither empty nor a lock file of tfc is locked but not changed.
static void say_who(int fd, const char *purpose) {
  char text[RECORD], old[sizeof record_begin - 1], when[32] = "";
  time_t now = time(NULL);
  struct tm local;
  if (localtime_r(&now, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
  const ssize_t there = pread(fd, old, sizeof old, 0);
  if (there != 0 && (there != (ssize_t)sizeof old || memcmp(old, record_begin, sizeof old) != 0)) return;
  int n = snprintf(text, sizeof text, "%s%d (%.80s) since %s", record_begin, (int)getpid(), purpose ? purpose : "tfc",
                   when);
  if (n < 0) return;
  memset(text + n, ' ', sizeof text - (size_t)n);
  text[RECORD - 1] = '\n';
  (void)!pwrite(fd, text, sizeof text, 0);
}

tfc_status tfc_lock_take(const char *path, const char *purpose, struct tfc_lock **out) {
  tfc_status s = NULL;
  struct tfc_lock *lock = NULL;
  char text[512];
  int fd = -1;
  TFC_RETURN_IF_ERROR(open_lock(path, &fd));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be locked: %s", path, strerror(errno));
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    n = (ssize_t)strcspn(text, "\n");
    while (n > 0 && text[n - 1] == ' ') n--;
    text[n] = 0;
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "%s: held by %s", path, n > 0 ? text : "another process");
  }
  lock = malloc(sizeof *lock);
  if (!lock) TFC_TRY(s, tfc_status_no_memory(NULL));
  say_who(fd, purpose);
  *lock = (struct tfc_lock){fd}, fd = -1;
  *out = lock;
out:
  if (fd >= 0) close(fd);
  return s;
}

static bool is_own_folder(const char *path) {
  struct stat st;
  return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 022) == 0;
}

tfc_status tfc_lock_path(const char *name, char **out) {
  char folder[64];
  snprintf(folder, sizeof folder, "/run/user/%u", (unsigned)geteuid());
  if (!is_own_folder(folder) || access(folder, W_OK) != 0) {
    snprintf(folder, sizeof folder, "/tmp/tfc-%u", (unsigned)geteuid());
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
      return tfc_status_make(TFC_DATA_LOSS, "%s: cannot be made: %s", folder, strerror(errno));
    if (!is_own_folder(folder))
      return tfc_status_make(TFC_DATA_LOSS, "%s: not a folder that this user alone may write; remove it", folder);
  }
  *out = tfc_format("%s/%s", folder, name);
  return *out ? NULL : tfc_status_no_memory(NULL);
}

void tfc_lock_release(struct tfc_lock *lock) {
  if (!lock) return;
  close(lock->fd);
  free(lock);
}

bool tfc_lock_held(const char *path) {
  int fd = tfc_os.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (fd < 0) return false;
  bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return held;
}
