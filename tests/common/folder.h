// A folder of a test's own, for set_up and tear_down.
#ifndef TFC_TESTS_COMMON_FOLDER_H
#define TFC_TESTS_COMMON_FOLDER_H

#include <stdio.h>
#include <stdlib.h>

enum { TEST_FOLDER_SIZE = 64 };

// Makes a folder, and writes its path to `folder`. 0: done.
static inline int test_folder_make(char folder[TEST_FOLDER_SIZE], const char *name) {
  snprintf(folder, TEST_FOLDER_SIZE, "/tmp/tfc-%s-XXXXXX", name);
  return mkdtemp(folder) ? 0 : -1;
}
// Deletes it with all that is in it. 0: done.
static inline int test_folder_remove(const char *folder) {
  char line[TEST_FOLDER_SIZE + 16];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return system(line);
}

#endif
