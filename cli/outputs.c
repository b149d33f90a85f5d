#include "cli/outputs.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/base/str.h"

// A database has these files: its own name, with the endings of SQLite's journal, write-ahead log and shared memory,
// and of the lock file of the program that writes.
static const char *const endings[] = {"", "-journal", "-wal", "-shm", ".lock"};
enum { ENDINGS = sizeof endings / sizeof *endings };

static bool is_database(const char *path) {
  static const char magic[16] = "SQLite format 3";
  char head[sizeof magic];
  struct stat info;
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY); // a FIFO without a writer is not waited for
  if (fd < 0) return false;
  const bool found = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                     read(fd, head, sizeof head) == (ssize_t)sizeof head && memcmp(head, magic, sizeof head) == 0;
  close(fd);
  return found;
}

// Whether both paths lead to the same file, or would if it were there.
static bool same_place(const char *a, const char *b) {
  if (strcmp(a, b) == 0 || tfc_file_same(a, b)) return true;
  const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
  if (strcmp(slash_a ? slash_a + 1 : a, slash_b ? slash_b + 1 : b) != 0) return false;
  char *folder_a = slash_a ? tfc_format("%.*s/", (int)(slash_a - a), a) : tfc_format("./");
  char *folder_b = slash_b ? tfc_format("%.*s/", (int)(slash_b - b), b) : tfc_format("./");
  const bool same = folder_a && folder_b && tfc_file_same(folder_a, folder_b);
  free(folder_a), free(folder_b);
  return same;
}

// Returns the database that the file `path` is a part of, which the caller frees; NULL: none.
static char *database_of(const struct tfc_program *program, const void *options, const char *path) {
  for (size_t i = 0; i < program->flag_count; i++) {
    if (program->flags[i].path != TFC_PATH_DATABASE) continue;
    const char *database = *(const char *const *)((const char *)options + program->flags[i].offset);
    for (size_t k = 0; database && k < ENDINGS; k++) {
      char *file = tfc_format("%s%s", database, endings[k]);
      const bool same = file && same_place(path, file);
      free(file);
      if (same) return strdup(database);
    }
  }
  const size_t size = strlen(path);
  for (size_t k = 0; k < ENDINGS; k++) {
    const size_t end = strlen(endings[k]);
    if (size <= end || strcmp(path + size - end, endings[k]) != 0) continue;
    char *stem = tfc_format("%.*s", (int)(size - end), path);
    if (stem && is_database(stem)) return stem;
    free(stem);
  }
  return NULL;
}

static char *refused(const struct tfc_program *program, const void *options, const struct tfc_flag *flag,
                     const char *value) {
  const char *equals = strrchr(value, '=');
  const char *path = flag->path == TFC_PATH_WRITE ? value : equals ? equals + 1 : NULL;
  char *real = path ? realpath(path, NULL) : NULL; // what a link leads to
  char *database = path ? database_of(program, options, path) : NULL;
  if (!database && real) database = database_of(program, options, real);
  free(real);
  if (!database) return NULL;
  char *text = tfc_format("--%s %s: not written: it is a file of the database %s; give another name", flag->name, value,
                          database);
  free(database);
  return text;
}

char *tfc_outputs_refused(const struct tfc_program *program, const void *options) {
  char *text = NULL;
  for (size_t i = 0; !text && i < program->flag_count; i++) {
    const struct tfc_flag *flag = &program->flags[i];
    if (flag->path != TFC_PATH_WRITE && flag->path != TFC_PATH_WRITE_PAIR) continue;
    const void *place = (const char *)options + flag->offset;
    if (flag->kind == TFC_FLAG_TEXTS) {
      const struct tfc_texts *texts = place;
      for (uint32_t k = 0; !text && k < texts->count; k++) text = refused(program, options, flag, texts->items[k]);
    } else if (*(const char *const *)place) {
      text = refused(program, options, flag, *(const char *const *)place);
    }
  }
  return text;
}
