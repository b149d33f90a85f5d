// A folder of a test's own, for set_up and tear_down.
#ifndef TFC_TESTS_COMMON_FOLDER_H
#define TFC_TESTS_COMMON_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEST_FOLDER_SIZE = 64 };

// Makes a folder, and writes its path to `folder`. 0: done.
static inline int test_folder_make(char folder[TEST_FOLDER_SIZE], const char *name) {
  snprintf(folder, TEST_FOLDER_SIZE, "/tmp/tfc-%s-XXXXXX", name);
  return mkdtemp(folder) ? 0 : -1;
}
// The path of a file in the folder. It exists as long as the program.
static inline const char *test_folder_path(const char *folder, const char *name) {
  static char paths[64][TEST_FOLDER_SIZE + 64];
  static int count;
  char path[TEST_FOLDER_SIZE + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  for (int i = 0; i < count; i++)
    if (!strcmp(paths[i], path)) return paths[i];
  if (count == 64) abort();
  return strcpy(paths[count++], path);
}
// Deletes it with all that is in it. 0: done.
static inline int test_folder_remove(const char *folder) {
  char line[TEST_FOLDER_SIZE + 16];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return system(line);
}

#endif
