// Maps files for reading, and writes files so that a reader never sees an incomplete file. System calls that can fail
// go through tfc_os, which tests replace.
#ifndef TFC_RUNTIME_BASE_FILE_H
#define TFC_RUNTIME_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/status.h"
#include "runtime/base/str.h"

struct tfc_file { // a read-only view of a whole file
  const uint8_t *data;
  size_t size;
  void *mapping; // NULL for an empty file
};
// NOT_FOUND: there is no such file. INVALID_ARGUMENT: it cannot be read (it is a directory, permission is missing).
TFC_MUST_USE tfc_status tfc_file_map(const char *path, struct tfc_file *out);
// As tfc_file_map, for a graph or a document, which is read as a whole. INVALID_ARGUMENT: it has more than 2 GiB, the
// most that a protocol buffer may have.
TFC_MUST_USE tfc_status tfc_file_map_document(const char *path, struct tfc_file *out);
void tfc_file_unmap(struct tfc_file *file);

// Writes a temporary file beside `path`, syncs, renames. On failure (DATA_LOSS) an old file stays as it was.
TFC_MUST_USE tfc_status tfc_file_write(const char *path, tfc_str content);

// Makes the folders of the path up to the file `path`. DATA_LOSS names the one that cannot be made.
TFC_MUST_USE tfc_status tfc_file_make_parents(const char *path);

// After this call, this process opens no file for writing, makes no folder and renames nothing (FAILED_PRECONDITION). A
// process that runs a graph only to time it calls this, so that no operation of the graph has an effect.
void tfc_file_forbid_writing(void);

// Replaceable operating-system calls: a test fails the n-th of them for every n.
struct tfc_os_calls {
  int (*open)(const char *path, int flags, int mode);
  ssize_t (*write)(int fd, const void *data, size_t size);
  int (*fsync)(int fd);
  int (*rename)(const char *from, const char *to);
};
extern struct tfc_os_calls tfc_os;

// Whether both paths exist and lead to the same file or folder.
bool tfc_file_same(const char *a, const char *b);

#endif
