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

struct tfc_lock {
  int fd;
};

tfc_status tfc_lock_take(const char *path, const char *purpose, struct tfc_lock **out) {
  tfc_status s = NULL;
  struct tfc_lock *lock = NULL;
  char text[512];
  // An existing file is opened without O_CREAT: in a sticky folder, somebody else's could not be opened with it.
  int fd = tfc_os.open(path, O_RDWR | O_CLOEXEC, 0);
  if (fd < 0 && errno == ENOENT) {
    fd = tfc_os.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0) (void)!fchmod(fd, 0666);
  }
  if (fd < 0) return tfc_status_make(TFC_DATA_LOSS, "%s: cannot be written: %s", path, strerror(errno));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be locked: %s", path, strerror(errno));
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = 0;
    text[strcspn(text, "\n")] = 0;
    TFC_FAIL(s, TFC_FAILED_PRECONDITION, "%s: held by %s", path, n > 0 ? text : "another process");
  }
  lock = malloc(sizeof *lock);
  if (!lock) TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory");
  time_t now = time(NULL);
  struct tm local;
  char when[32] = "";
  if (localtime_r(&now, &local)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
  int n = snprintf(text, sizeof text, "process %d (%s) since %s\n", (int)getpid(), purpose ? purpose : "tfc", when);
  // Who holds it is a courtesy: a full disk does not matter here, the database's own check will say so.
  if (ftruncate(fd, 0) == 0) (void)!pwrite(fd, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1, 0);
  *lock = (struct tfc_lock){fd}, fd = -1;
  *out = lock;
out:
  if (fd >= 0) close(fd);
  return s;
}

void tfc_lock_release(struct tfc_lock *lock) {
  if (!lock) return;
  (void)!ftruncate(lock->fd, 0);
  close(lock->fd);
  free(lock);
}

bool tfc_lock_held(const char *path) {
  int fd = tfc_os.open(path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return held;
}
