#include "runtime/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_bool forbidden;

void tfc_file_forbid_writing(void) {
  atomic_store(&forbidden, true);
}

static tfc_status may_write(const char *path) {
  return atomic_load(&forbidden)
             ? tfc_status_make(TFC_FAILED_PRECONDITION,
                               "%s: not written: this process only measures, and writes nothing", path)
             : NULL;
}

// Fails for callers that did not check whether writing is forbidden.
static int os_open(const char *path, int flags, int mode) {
  if (((flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT) && atomic_load(&forbidden)) return errno = EROFS, -1;
  return open(path, flags, mode);
}
static int os_rename(const char *from, const char *to) {
  if (atomic_load(&forbidden)) return errno = EROFS, -1;
  return rename(from, to);
}
struct tfc_os_calls tfc_os = {os_open, write, fsync, os_rename};

tfc_status tfc_file_map(const char *path, struct tfc_file *out) {
  tfc_status s = NULL;
  void *mapping = NULL;
  struct stat st;
  // without O_NONBLOCK, opening a pipe would wait until another process writes to it
  int fd = tfc_os.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
  if (fd < 0)
    return tfc_status_make(errno == ENOENT || errno == ENOTDIR ? TFC_NOT_FOUND : TFC_INVALID_ARGUMENT, "%s: %s", path,
                           strerror(errno));
  if (fstat(fd, &st) != 0) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  if (!S_ISREG(st.st_mode)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: not a regular file", path);
  if (st.st_size > 0) {
    mapping = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapping == MAP_FAILED) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  }
  *out = (struct tfc_file){mapping, (size_t)st.st_size, mapping};
out:
  close(fd);
  return s;
}

tfc_status tfc_file_map_document(const char *path, struct tfc_file *out) {
  struct tfc_file file = {0};
  TFC_RETURN_IF_ERROR(tfc_file_map(path, &file));
  if (file.size > (size_t)2 << 30) {
    tfc_file_unmap(&file);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: larger than 2 GiB", path);
  }
  *out = file;
  return NULL;
}

void tfc_file_unmap(struct tfc_file *file) {
  if (file->mapping) munmap(file->mapping, file->size);
  *file = (struct tfc_file){0};
}

tfc_status tfc_file_write(const char *path, tfc_str content) {
  TFC_RETURN_IF_ERROR(may_write(path));
  tfc_status s = NULL;
  struct stat info;
  // /dev/stdout and pipes are written to directly
  bool there = stat(path, &info) == 0, direct = there && !S_ISREG(info.st_mode);
  char *target = there && !direct ? realpath(path, NULL) : NULL; // a link stays a link
  char *temporary =
      direct ? tfc_str_dup(tfc_str_from(path)) : tfc_format("%s.%d.tmp", target ? target : path, (int)getpid());
  int fd = -1;
  if (!temporary) TFC_TRY(s, tfc_status_no_memory(NULL));
  // A killed process may have left a file with the temporary name. It is removed first, so that the temporary file is
  // always new and nothing is written through a link with that name.
  if (!direct) unlink(temporary);
  fd = tfc_os.open(temporary, O_WRONLY | O_CLOEXEC | (direct ? O_NONBLOCK : O_CREAT | O_EXCL), 0666);
  if (fd < 0 && direct && errno == ENXIO)
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: a pipe that nobody reads", path);
  if (direct && fd >= 0) (void)fcntl(fd, F_SETFL, 0); // opening must not wait for a reader, but writing may
  if (fd < 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", path, strerror(errno));
  for (size_t at = 0; at < content.size;) {
    ssize_t n = tfc_os.write(fd, content.data + at, content.size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", path, n < 0 ? strerror(errno) : "disk full");
    at += (size_t)n;
  }
  if (direct) goto out;
  if (tfc_os.fsync(fd) != 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", path, strerror(errno));
  if (tfc_os.rename(temporary, target ? target : path) != 0)
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", path, strerror(errno));
out:
  if (fd >= 0) close(fd);
  if (s && fd >= 0 && !direct) unlink(temporary);
  free(temporary);
  free(target);
  return s;
}

tfc_status tfc_file_make_parents(const char *path) {
  TFC_RETURN_IF_ERROR(may_write(path));
  tfc_status s = NULL;
  char *copy = tfc_str_dup(tfc_str_from(path));
  if (!copy) return tfc_status_no_memory(path);
  for (char *at = copy + 1; *copy && (at = strchr(at, '/')); at++) {
    *at = 0;
    if (mkdir(copy, 0777) != 0 && errno != EEXIST) {
      s = tfc_status_make(TFC_DATA_LOSS, "%s: cannot be written: the folder %s cannot be made: %s", path, copy,
                          strerror(errno));
      break;
    }
    *at = '/';
  }
  free(copy);
  return s;
}

bool tfc_file_same(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
