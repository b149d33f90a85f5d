// Tests placement files that do not fit the graph or the machine, given to tfc-place --evaluate and tfc-run
// --placement: they are reported before anything is profiled, with the documented exit codes.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "placer/model/placement.h"
#include "runtime/graph/import.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

#define GRAPH TFC_SOURCE_DIR "/examples/mlp.pb"
#define FUNCTIONS TFC_SOURCE_DIR "/examples/nmt_while_v2.pb"

static char folder[64];

enum { NONE = -1 };

// Writes a placement with every node of the graph (and of its functions, if `functions`) on cpu:0, except that node
// `missing` is left out and node `lost` is on cpu:77. `extra`: one more node name, or NULL.
static void write_placement(const char *name, const struct tfc_graph *g, int64_t missing, int64_t lost,
                            const char *extra, bool functions) {
  struct tfc_text t = {0};
  tfc_text_printf(&t, "{\"format\": \"tfc-placement\", \"version\": 1, \"devices\": [{\"name\": \"cpu:0\"}, {\"name\": "
                      "\"cpu:1\"}], \"placement\": {");
  for (uint32_t i = 0; i < g->node_count; i++)
    if (i != missing) tfc_text_printf(&t, "\"%.*s\": \"cpu:%d\", ", TFC_STR_ARG(g->nodes[i].name), i == lost ? 77 : 0);
  for (uint32_t f = 0; functions && f < g->function_count; f++)
    for (uint32_t i = 0; i < g->functions[f].body->node_count; i++)
      tfc_text_printf(&t, "\"function/%.*s:%.*s\": \"cpu:0\", ", TFC_STR_ARG(g->functions[f].name),
                      TFC_STR_ARG(g->functions[f].body->nodes[i].name));
  if (extra) tfc_text_printf(&t, "\"%s\": \"cpu:0\", ", extra);
  t.size -= 2, t.data[t.size] = 0;
  tfc_text_printf(&t, "}}\n");
  command_put(folder, name, t.data);
  tfc_text_deinit(&t);
}

static char first[128]; // a node of the initialiser, which no step runs

static int set_up(void **state) {
  (void)state;
  struct tfc_graph *g = NULL;
  if (test_folder_make(folder, "placed")) return -1;
  assert_ok(tfc_graph_load(GRAPH, NULL, &g));
  const uint32_t node = tfc_graph_find(g, TFC_STR("hidden1/kernel/Assign"));
  assert_true(node != TFC_NONE);
  snprintf(first, sizeof first, "'%.*s'", TFC_STR_ARG(g->nodes[node].name));
  write_placement("good.json", g, NONE, NONE, NULL, true);
  write_placement("missing.json", g, node, NONE, NULL, true);
  write_placement("extra.json", g, NONE, NONE, "nowhere", true);
  write_placement("lost.json", g, node, node + 1, "nowhere", true);
  tfc_graph_release(g);
  assert_ok(tfc_graph_load(FUNCTIONS, NULL, &g));
  write_placement("without.json", g, NONE, NONE, NULL, false);
  tfc_graph_release(g);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static void test_run(void **state) {
  (void)state;
#define RUN "cd %s && tfc-run --graph " GRAPH " --steps 1 --devices 2 "
  assert_exit(0, "", RUN "--placement good.json", folder);
  assert_exit(3, first, RUN "--placement missing.json", folder);
  assert_exit(3, "'nowhere'", RUN "--placement extra.json", folder);
  assert_exit(4, "cpu:77", RUN "--placement lost.json", folder); // an unknown device is reported before everything else
  assert_exit(3, "'function/", "cd %s && tfc-run --graph " FUNCTIONS " --steps 1 --devices 2 --placement without.json",
              folder);
}

// An invalid placement is reported before profiling.
static void refused(int code, const char *text, const char *flags) {
  const struct command_result *r =
      command("cd %s && tfc-place --graph " GRAPH " --devices 2 --report none --time 20s %s", folder, flags);
  assert_result(r, code, text);
  if (strstr(r->err, "single:cpu:0: ")) fail_msg("%s: profiled all the same: %s", flags, r->err);
}
static void test_place(void **state) {
  (void)state;
  refused(3, first, "--evaluate missing.json");
  refused(3, "'nowhere'", "--evaluate extra.json");
  refused(4, "cpu:77", "--evaluate lost.json --pin 'nothing=cpu:0'");
  refused(4, "cpu:5", "--evaluate single:cpu:5");
  refused(3, "'nothing=cpu:0'", "--evaluate good.json --pin 'nothing=cpu:0'");
  refused(3, "'nothing=cpu:0'", "--pin 'nothing=cpu:0'");
  refused(4, "cpu:9", "--pin 'nothing=cpu:0' --pin '.*=cpu:9'");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_run), cmocka_unit_test(test_place)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
