// Random graphs, with branches and loops, whose nodes are in three tasks at random, give the bits of one task; also
// when messages are delayed. Thousands: random_graph_endless_test.c.
//
//   cluster_random_graph_thread_test FIRST COUNT [DELAY_NS]     checks these
#include "tests/common/test.h"

#include <stdlib.h>

#include "tests/common/random_graph_tasks.h"

#ifdef TFC_SANITIZED
enum { GRAPHS = 10, DELAYED = 3 };
#else
enum { GRAPHS = 40, DELAYED = 6 };
#endif

static void random_graphs(void **state) {
  (void)state;
  assert_int_equal(random_graphs_differ_over_tasks(1, GRAPHS, 0), 0);
}
static void random_graphs_delayed(void **state) {
  (void)state;
  assert_int_equal(random_graphs_differ_over_tasks(1000, DELAYED, 300000), 0);
}

int main(int argc, char **argv) {
  if (argc >= 3)
    return random_graphs_differ_over_tasks(strtoull(argv[1], NULL, 10), atoi(argv[2]), argc > 3 ? atoll(argv[3]) : 0) !=
           0;
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs), cmocka_unit_test(random_graphs_delayed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
