// The progress of a script shows the number of the run and how many runs there are. It shows no time left, because runs
// differ in length. The steps are stand-ins.
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "cli/run.h"
#include "runtime/graph/import.h"
#include "tests/cli/calls.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

static int steps;
static tfc_status step_here(const struct run_setup *setup, const struct tfc_run_spec *spec,
                            const struct tfc_tensor *feeds, struct tfc_tensor *fetches,
                            const struct tfc_run_options *options) {
  (void)setup, (void)spec, (void)feeds, (void)fetches, (void)options;
  steps++;
  return NULL;
}
#define run_step step_here
#include "cli/run_script.c"

static void test_progress(void **state) {
  (void)state;
  char folder[TEST_FOLDER_SIZE], path[TEST_FOLDER_SIZE + 20];
  struct tfc_graph *g = NULL;
  assert_int_equal(test_folder_make(folder, "run-script"), 0);
  command_put(folder, "s.json",
              "{\"runs\": [{\"targets\": [\"a\"]}, {\"targets\": [\"a\"]}, "
              "{\"targets\": [\"a\"]}, {\"targets\": [\"a\"]}]}");
  snprintf(path, sizeof path, "%s/s.json", folder);
  assert_ok(tfc_graph_parse(TFC_STR("node { name: 'a' op: 'NoOp' }"), "graph", NULL, &g));
  struct run_options o = {.graph = "g", .script = path, .out = folder};
  struct run_setup setup = {.options = &o, .graph = g, .file = g};
  assert_ok(run_script(&setup));
  char expected[300];
  snprintf(expected, sizeof expected,
           "begin run\n0 of -1: run 1 of 4\n0.25 of -1: run 2 of 4\n0.5 of -1: run 3 of 4\n0.75 of -1: run 4 of 4\n"
           "end 4 runs, results in %s\n",
           folder);
  assert_string_equal(calls, expected);
  assert_true(steps == 4 && setup.steps == 4);
  tfc_graph_release(g);
  test_folder_remove(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_progress)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
