// Runs thousands of random graphs, as random_graph_thread_test.c does with some.
#include "tests/common/test.h"

#include "tests/common/random_graph_run.h"

static void test_random_graphs(void **state) {
  (void)state;
  assert_int_equal(random_graphs_differ("cpu:0-1,emu:0-1", 100000, 4000), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
