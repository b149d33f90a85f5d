// What the suites of tfc-place's modes share: stand-ins for progress and signals, a folder with a graph and a database.
// A suite includes this file, and then the file of cli/ that it tests.
#ifndef TFC_TESTS_CLI_PLACE_STAND_INS_H
#define TFC_TESTS_CLI_PLACE_STAND_INS_H

#include <jansson.h>
#include <string.h>

#include "profiler/store.h"
#include "tests/cli/calls.h"
#include "tests/cli/in_process.h"
#include "tests/common/caught.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"
#include "tests/common/test.h"

static int forgotten; // calls of tfc_program_forget_signal; after the first, a signal that came interrupts nothing more
static void forget_here(void) {
  forgotten++;
}
#define tfc_program_forget_signal forget_here

static struct test_caught caught_out, caught_err;
static char folder[TEST_FOLDER_SIZE];
static const char *graph_path, *db_path;
static const char *in(const char *name) {
  return test_folder_path(folder, name);
}
// Makes the folder, with a graph and an empty database.
static int make_folder(const char *name, const char *graph, const char *graph_text) {
  struct tfc_store *store = NULL;
  test_program_start("tfc-place");
  if (test_folder_make(folder, name)) return -1;
  command_put(folder, graph, graph_text);
  graph_path = in(graph), db_path = in("t.db");
  assert_ok(tfc_store_open(db_path, &(struct tfc_store_options){.write = true, .purpose = "test"}, &store));
  tfc_store_close(store);
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

// Expects the JSON document of a placement, with one end of line.
static inline void is_document(const char *text) {
  json_t *root = json_loads(text, 0, NULL);
  const size_t size = strlen(text);
  if (!root) fail_msg("no document: %s", text);
  assert_string_equal(json_string_value(json_object_get(root, "format")), "tfc-placement");
  json_decref(root);
  assert_true(size > 2 && text[size - 1] == '\n' && text[size - 2] != '\n');
}

#endif
