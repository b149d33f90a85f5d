// Random graphs give the same bits on one device, with and without rewrites, planned and in ready order, and under
// random placements over CPU and emulated devices. random_graph_endless_test.c tests thousands of them;
// scripts/conformance compares their results with TensorFlow's.
//
//   random_graph_thread_test --write DIRECTORY FIRST COUNT    writes graphs and the names of their fetches
//   random_graph_thread_test FIRST COUNT                      checks these
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "tests/common/random_graph_run.h"

#ifdef TFC_SANITIZED
enum { GRAPHS = 20 };
#else
enum { GRAPHS = 60 };
#endif

static const char devices[] = "cpu:0-1,emu:0-1";

static void test_random_graphs(void **state) {
  (void)state;
  assert_int_equal(random_graphs_differ(devices, 1, GRAPHS), 0);
}

int main(int argc, char **argv) {
  if (argc == 5 && !strcmp(argv[1], "--write"))
    return !random_graphs_write(argv[2], strtoull(argv[3], NULL, 10), atoi(argv[4]));
  if (argc == 3) return random_graphs_differ(devices, strtoull(argv[1], NULL, 10), atoi(argv[2])) != 0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
