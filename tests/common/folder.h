// A folder of a test's own, for set_up and tear_down.
#ifndef TFC_TESTS_COMMON_FOLDER_H
#define TFC_TESTS_COMMON_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEST_FOLDER_SIZE = 64 };

// Makes a folder, and writes its path to `folder`. 0: done.
static inline int test_folder_make(char folder[TEST_FOLDER_SIZE], const char *name) {
  snprintf(folder, TEST_FOLDER_SIZE, "/tmp/tfc-%s-XXXXXX", name);
  return mkdtemp(folder) ? 0 : -1;
}
// The path of a file in the folder. It exists as long as the program. For one thread.
static inline const char *test_folder_path(const char *folder, const char *name) {
  static char *paths[64];
  static int count;
  char path[TEST_FOLDER_SIZE + 256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  for (int i = 0; i < count; i++)
    if (!strcmp(paths[i], path)) return paths[i];
  if (count == 64 || !(paths[count] = strdup(path))) abort();
  return paths[count++];
}
// Whether there is a file at the path.
static inline bool test_file_exists(const char *path) {
  return access(path, F_OK) == 0;
}
// What a text file contains, until the next call; "" if there is no such file.
static inline const char *test_file_text(const char *path) {
  static char text[4096];
  FILE *f = fopen(path, "r");
  text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
  if (f) fclose(f);
  return text;
}
// Deletes it with all that is in it. 0: done.
static inline int test_folder_remove(const char *folder) {
  char line[TEST_FOLDER_SIZE + 16];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return system(line);
}

#endif
