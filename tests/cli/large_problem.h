// A search problem that no algorithm solves within a test: 400 operations, and links so slow that no bound ends the
// search early.
#ifndef TFC_TESTS_CLI_LARGE_PROBLEM_H
#define TFC_TESTS_CLI_LARGE_PROBLEM_H

#include <stdio.h>
#include <stdlib.h>

#include "tests/common/command.h"

// Writes its cost graph, large.json, and its machine, slow.yaml, into the folder.
static inline void large_problem_put(const char *folder) {
  char path[128];
  snprintf(path, sizeof path, "%s/large.json", folder);
  FILE *file = fopen(path, "w");
  if (!file) abort();
  fprintf(file, "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": [");
  for (int i = 0; i < 400; i++)
    fprintf(file, "%s{\"name\": \"n%d\", \"time_us\": {\"acc\": %d}}", i ? ", " : "", i, 5 + i * 37 % 50);
  fprintf(file, "], \"edges\": [");
  for (int i = 20; i < 400; i++)
    fprintf(file, "%s{\"from\": \"n%d\", \"to\": \"n%d\", \"bytes\": %d}", i > 20 ? ", " : "", i - 1 - i * 7 % 19, i,
            100 * (i % 90));
  fprintf(file, "]}");
  fclose(file);
  command_put(folder, "slow.yaml",
              "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc, count: 3}\n"
              "links:\n  - {from: \"*\", to: \"*\", latency: 1us, bandwidth: 100MB/s}\n");
}
// A shell condition: DATABASE has the state of one search, so the search has found a placement and can be resumed.
#define LARGE_PROBLEM_BEGUN(database)                                                                                  \
  "test \"$(sqlite3 " database " \"SELECT COUNT(*) FROM state WHERE name = 'search'\" 2>/dev/null)\" = 1"

#endif
