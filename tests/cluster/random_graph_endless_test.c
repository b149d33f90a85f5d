// Thousands of random graphs over three tasks, and a thousand seeds of delays: see random_graph_thread_test.c.
#include "tests/common/test.h"

#include "tests/common/random_graph_tasks.h"

static void random_graphs(void **state) {
  (void)state;
  assert_int_equal(random_graphs_differ_over_tasks(100000, 4000, 0), 0);
}
static void random_graphs_delayed(void **state) {
  (void)state;
  assert_int_equal(random_graphs_differ_over_tasks(200000, 1000, 300000), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs), cmocka_unit_test(random_graphs_delayed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
