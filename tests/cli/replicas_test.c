// Tests tfc-place --replicas: tables, documents, pages and usage errors. tests/placer/replicas_test.c checks the
// figures.
#include "tests/common/test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[64];

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "replicas")) return -1;
  // A weight of 1 MB that a step of 1 ms reads and updates.
  command_put(folder, "c.json",
              "{\"format\": \"tfc-cost-graph\", \"version\": 1, \"kinds\": [\"acc\"], \"nodes\": ["
              "{\"name\": \"w\", \"time_us\": {\"acc\": 0}, \"memory\": 1000000, \"group\": \"w\"},"
              "{\"name\": \"step\", \"time_us\": {\"acc\": 1000}},"
              "{\"name\": \"update\", \"time_us\": {\"acc\": 0}, \"group\": \"w\"}], \"edges\": ["
              "{\"from\": \"w\", \"to\": \"step\", \"bytes\": 1000000},"
              "{\"from\": \"step\", \"to\": \"update\", \"bytes\": 1000000}]}");
  command_put(folder, "m.yaml",
              "format: tfc-machine\nversion: 1\ndevices:\n"
              "  - {name: \"acc:0\", host: \"h:0\", hosts: 2, kind: acc, flops: 1.0e+11, memory_bandwidth: 50GB/s}\n"
              "links:\n  - {from: \"*\", to: \"*\", bandwidth: 1GB/s, wire: \"card of {host}\"}\n");
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

#define REPLICAS "cd %s && tfc-place --graph c.json --machine m.yaml --report none "

static json_t *document(const char *arguments) {
  const struct command_result *r =
      command("cd %s && tfc-place --json --machine m.yaml --report none %s", folder, arguments);
  if (r->code) fail_msg("%s: exit %d: %s", arguments, r->code, r->err);
  json_t *d = json_loads(r->out, 0, NULL);
  if (!d) fail_msg("%s: no JSON: %s", arguments, r->out);
  return d;
}

static void test_document(void **state) {
  (void)state;
  // The job has more hosts than the file; the missing ones are like those in the file.
  json_t *d = document("--graph c.json --replicas 1,2,4,...,10");
  const json_t *rows = json_object_get(d, "rows"), *replica = json_object_get(d, "replica");
  static const int counts[] = {1, 2, 4, 8, 10};
  assert_string_equal(json_string_value(json_object_get(d, "label")), "modelled");
  assert_true(json_number_value(json_object_get(replica, "step_us")) == 1000);
  assert_true(json_number_value(json_object_get(replica, "pulled_bytes")) == 1e6);
  assert_int_equal(json_array_size(rows), 5);
  for (size_t i = 0; i < 5; i++) {
    const json_t *row = json_array_get(rows, i);
    assert_int_equal(json_integer_value(json_object_get(row, "replicas")), counts[i]);
    assert_non_null(json_object_get(row, "sync_all"));
    assert_non_null(json_object_get(row, "async_ps"));
    const json_t *ps = json_object_get(row, "sync_ps");
    assert_true(json_number_value(json_object_get(ps, "batches_per_second")) > 0);
    assert_int_equal(json_integer_value(json_object_get(ps, "hosts")), counts[i]);
  }
  json_decref(d);
  d = document("--graph c.json --replicas 2,3,...,6 --sync --reduce ps --backup 1 --ps 2");
  rows = json_object_get(d, "rows");
  assert_int_equal(json_array_size(rows), 5); // N is 2, 3, 4, 5 and 6
  const json_t *row = json_array_get(rows, 4);
  assert_null(json_object_get(row, "sync_all"));
  assert_null(json_object_get(row, "async_ps"));
  assert_int_equal(json_integer_value(json_object_get(json_object_get(row, "backup"), "workers")), 1);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(row, "sync_ps"), "ps")), 2);
  json_decref(d);
}

// How much step times vary is read from a database: the one that --step-times names, or the run of this graph in --db.
static void test_step_times(void **state) {
  (void)state;
  static const char graph[] = TFC_SOURCE_DIR "/examples/mlp.pb";
  assert_exit(0, "", "cd %s && tfc-run -q --graph %s --steps 40 --profile --db t.db", folder, graph);
  char line[256];
  snprintf(line, sizeof line, "--graph %s --replicas 2 --db t.db", graph);
  json_t *d = document(line);
  assert_int_equal(json_integer_value(json_object_get(json_object_get(d, "step_times"), "samples")), 40);
  json_decref(d);
  d = document("--graph c.json --replicas 2 --step-times t.db"); // the run of another graph is used, because
                                                                 // --step-times names it
  assert_int_equal(json_integer_value(json_object_get(json_object_get(d, "step_times"), "samples")), 40);
  json_decref(d);
  d = document("--graph c.json --replicas 2 --db t.db");
  assert_int_equal(json_integer_value(json_object_get(json_object_get(d, "step_times"), "samples")), 0);
  json_decref(d);
  assert_exit(3, "none.db", REPLICAS "--replicas 2 --step-times none.db", folder);
}

static void test_page(void **state) {
  (void)state;
  assert_exit(0, "", "cd %s && tfc-place --graph c.json --machine m.yaml --replicas 1,2,8 --report page", folder);
  const struct command_result *r = command("cd %s && cat page/index.html", folder);
  assert_non_null(strstr(r->out, "How many batches a second"));
  assert_non_null(strstr(r->out, "c.json: replicas"));
  assert_null(strstr(r->out, "src="));
}

static void test_errors(void **state) {
  (void)state;
  static const char *const wrong[] = {"2,1",     "0",    "1,,2", "1,",           "", "1,...,5", "...,4",
                                      "2,4,...", "5000", "x",    "1,2,...,...,8"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_exit(2, "ascending", REPLICAS "--replicas '%s'", folder, wrong[i]);
  assert_exit(2, "--machine", "cd %s && tfc-place --graph c.json --replicas 2", folder);
  assert_exit(2, "for --replicas", REPLICAS "--backup 2", folder);
  assert_exit(2, "one of them", REPLICAS "--replicas 2 --sync --async", folder);
  assert_exit(2, "wait for nobody", REPLICAS "--replicas 2 --async --backup 1", folder);
  assert_exit(2, "it simulates", REPLICAS "--replicas 2 --evaluate x.json", folder);
  command_put(folder, "one.yaml", "format: tfc-machine\nversion: 1\ndevices:\n  - {name: \"acc:0\", kind: acc}\n");
  assert_exit(3, "describe hosts", "cd %s && tfc-place --graph c.json --machine one.yaml --replicas 2 --report none",
              folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_document),
      cmocka_unit_test(test_step_times),
      cmocka_unit_test(test_page),
      cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
