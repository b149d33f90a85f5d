// Tests tfc-run --placement: errors in placement files, and which of several errors is reported first.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/command.h"
#include "tests/common/folder.h"

static const char graph[] =
    "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } }"
    " attr { key: \"shape\" value { shape { dim { size: 3 } } } } }\n"
    "node { name: \"a\" op: \"Square\" input: \"x\" attr { key: \"T\" value { type: DT_FLOAT } } }\n"
    "node { name: \"b\" op: \"Exp\" input: \"a\" attr { key: \"T\" value { type: DT_FLOAT } } }\n";

static char folder[64];

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "placed")) return -1;
  command_put(folder, "g.pbtxt", graph);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static void put(const char *nodes) {
  char text[1024];
  snprintf(text, sizeof text,
           "{\"format\": \"tfc-placement\", \"version\": 1, \"graph\": {\"file\": \"g.pbtxt\"}, \"devices\": "
           "[{\"name\": \"cpu:0\"}, {\"name\": \"cpu:1\"}], \"objective\": \"step\", \"placement\": {%s}}",
           nodes);
  command_put(folder, "p.json", text);
}
#define RUN "tfc-run --graph %s/g.pbtxt --placement %s/p.json --fetch b:0 --steps 1", folder, folder

static void a_whole_placement_runs(void **state) {
  (void)state;
  put("\"x\": \"host\", \"a\": \"cpu:1\", \"b\": \"cpu:0\"");
  assert_exit(0, "", RUN);
}

static void a_node_without_a_device_is_named(void **state) {
  (void)state;
  put("\"x\": \"host\", \"b\": \"cpu:0\"");
  assert_exit(3, "no device for node 'a' (Square)", RUN);
}

static void a_node_that_the_graph_does_not_have_is_named(void **state) {
  (void)state;
  put("\"x\": \"host\", \"a\": \"cpu:1\", \"b\": \"cpu:0\", \"c\": \"cpu:0\"");
  assert_exit(3, "node 'c' is not in the graph", RUN);
}

static void a_device_that_is_not_there_comes_first(void **state) {
  (void)state;
  put("\"x\": \"host\", \"c\": \"cpu:0\", \"b\": \"cpu:7\"");
  assert_exit(4, "node 'b' is on cpu:7", RUN);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_whole_placement_runs),
      cmocka_unit_test(a_node_without_a_device_is_named),
      cmocka_unit_test(a_node_that_the_graph_does_not_have_is_named),
      cmocka_unit_test(a_device_that_is_not_there_comes_first),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
