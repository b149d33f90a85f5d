// What the suites of tfc-place's modes share. A suite includes this file, and then the file of cli/ that it tests.
// Calls by which it would show progress are written to `calls` instead, and so are calls of the suite's own stand-ins.
#ifndef TFC_TESTS_CLI_PLACE_STAND_INS_H
#define TFC_TESTS_CLI_PLACE_STAND_INS_H

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/progress.h"
#include "profiler/store.h"
#include "tests/cli/in_process.h"
#include "tests/common/caught.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"
#include "tests/common/test.h"

static char calls[2000]; // what was called, a line each
static void called(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void called(const char *format, ...) {
  va_list args;
  const size_t at = strlen(calls);
  va_start(args, format);
  vsnprintf(calls + at, sizeof calls - at, format, args);
  va_end(args);
}
#define tfc_progress_begin(phase) called("begin %s\n", phase)
#define tfc_progress_update(fraction, left, ...)                                                                       \
  (called("%g of %g: ", fraction, (double)(left)), called(__VA_ARGS__), called("\n"))
#define tfc_progress_end(...) (called("end "), called(__VA_ARGS__), called("\n"))

static int forgotten; // how often it was said that a signal from now on ends the program
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
