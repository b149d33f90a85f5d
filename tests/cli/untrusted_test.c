// Hostile graphs under --untrusted: each ends soon, with its exit code and the name of the node, and writes no file.
#include "tests/common/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[64];

#define STRING(name, text)                                                                                             \
  "node { name: \"" name "\" op: \"Const\" attr { key: \"dtype\" value { type: DT_STRING } } attr { key: \"value\" "   \
  "value { tensor { dtype: DT_STRING tensor_shape { } string_val: \"" text "\" } } } }\n"
#define TYPE(key, type) " attr { key: \"" key "\" value { type: " type " } }"
#define SCALAR(name, type, value)                                                                                      \
  "node { name: \"" name "\" op: \"Const\"" TYPE("dtype", type) " attr { key: \"value\" value { tensor { dtype: " type \
                                                                " tensor_shape { } " value " } } } }\n"

// Function f0 writes a file; each other function calls the one before it.
static void put_deep(void) {
  char text[16384], *at = text;
  at += sprintf(at, "%s", SCALAR("x", "DT_FLOAT", "float_val: 1"));
  at +=
      sprintf(at,
              "node { name: \"call\" op: \"f16\" input: \"x\" }\nlibrary { function { signature { name: \"f0\" "
              "input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: \"r\" type: DT_FLOAT } is_stateful: true } "
              "node_def { name: \"p\" op: \"Const\" " TYPE(
                  "dtype", "DT_STRING") " attr { key: \"value\" value { "
                                        "tensor { dtype: DT_STRING tensor_shape { } string_val: \"%s/written\" } } } } "
                                        "node_def { name: \"w\" "
                                        "op: \"WriteFile\" input: \"p:output:0\" input: \"p:output:0\" } node_def { "
                                        "name: \"n\" op: \"Neg\" "
                                        "input: \"a\" input: \"^w\" " TYPE(
                                            "T", "DT_FLOAT") " } ret { key: \"r\" value: \"n:y:0\" } }\n",
              folder);
  for (int i = 1; i <= 16; i++)
    at += sprintf(at,
                  "function { signature { name: \"f%d\" input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: "
                  "\"r\" type: DT_FLOAT } is_stateful: true } node_def { name: \"c\" op: \"f%d\" input: \"a\" } ret { "
                  "key: \"r\" value: \"c:r:0\" } }\n",
                  i, i - 1);
  sprintf(at, "}\n");
  command_put(folder, "deep.pbtxt", text);
}

// Function b0 has one node; each other function calls the one before it twice, which makes 2^40 calls.
static void put_bomb(void) {
  char text[32768], *at = text;
  at += sprintf(at, "%snode { name: \"call\" op: \"b40\" input: \"x\" }\nlibrary {\n",
                SCALAR("x", "DT_FLOAT", "float_val: 1"));
  at += sprintf(at, "function { signature { name: \"b0\" input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: "
                    "\"r\" type: DT_FLOAT } } node_def { name: \"n\" op: \"Neg\" input: \"a\" " TYPE(
                        "T", "DT_FLOAT") " } ret { key: \"r\" value: \"n:y:0\" } }\n");
  for (int i = 1; i <= 40; i++)
    at += sprintf(at,
                  "function { signature { name: \"b%d\" input_arg { name: \"a\" type: DT_FLOAT } output_arg { name: "
                  "\"r\" type: DT_FLOAT } } node_def { name: \"c\" op: \"b%d\" input: \"a\" } node_def { name: \"d\" "
                  "op: \"b%d\" input: \"c:r:0\" } ret { key: \"r\" value: \"d:r:0\" } }\n",
                  i, i - 1, i - 1);
  sprintf(at, "}\n");
  command_put(folder, "bomb.pbtxt", text);
}

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "untrusted")) return -1;
  put_deep();
  put_bomb();
  command_put(folder, "read.pbtxt", STRING("f", "/etc/passwd") "node { name: \"r\" op: \"ReadFile\" input: \"f\" }\n");
  command_put(folder, "match.pbtxt", STRING("f", "/etc/*") "node { name: \"r\" op: \"MatchingFiles\" input: \"f\" }\n");
  command_put(folder, "reader.pbtxt",
              "node { name: \"r\" op: \"WholeFileReaderV2\" }\n"
              "node { name: \"n\" op: \"ReaderNumRecordsProducedV2\" input: \"r\" }\n");
  command_put(folder, "fill.pbtxt",
              "node { name: \"n\" op: \"Const\"" TYPE(
                  "dtype", "DT_INT64") " attr { key: \"value\" value { tensor { dtype: DT_INT64 tensor_shape { dim { "
                                       "size: 1 } } int64_val: 1099511627776 } } } }\n" SCALAR(
                                           "v", "DT_FLOAT", "float_val: 1") "node { name: \"fill\" op: \"Fill\" input: "
                                                                            "\"n\" input: \"v\"" TYPE("T", "DT_FLOAT")
                                                                                TYPE("index_type", "DT_INT64") " }\n");
  command_put(
      folder, "loop.pbtxt",
      SCALAR("zero", "DT_INT32", "int_val: 0")
          SCALAR("always", "DT_BOOL", "bool_val: true") "node { name: \"enter\" op: \"Enter\" input: \"zero\"" TYPE(
              "T",
              "DT_INT32") " attr { key: \"frame_name\" value "
                          "{ s: \"w\" } } }\n"
                          "node { name: \"go\" op: \"Enter\" input: \"always\"" TYPE(
                              "T",
                              "DT_BOOL") " attr { key: \"frame_name\" value { "
                                         "s: \"w\" } } attr { key: \"is_constant\" value { b: true } } }\n"
                                         "node { name: \"merge\" op: \"Merge\" input: \"enter\" input: \"next\"" TYPE(
                                             "T",
                                             "DT_INT32") " attr { key: "
                                                         "\"N\" value { i: 2 } } }\n"
                                                         "node { name: \"cond\" op: \"LoopCond\" input: \"go\" }\n"
                                                         "node { name: \"switch\" op: \"Switch\" input: \"merge\" "
                                                         "input: \"cond\"" TYPE(
                                                             "T",
                                                             "DT_INT32") " }\n"
                                                                         "node { name: \"more\" op: \"Neg\" input: "
                                                                         "\"switch:1\"" TYPE(
                                                                             "T",
                                                                             "DT_INT32") " }\n"
                                                                                         "node { name: \"next\" op: "
                                                                                         "\"NextIteration\" input: "
                                                                                         "\"more\"" TYPE(
                                                                                             "T",
                                                                                             "DT_INT32") " }\n"
                                                                                                         "node { name: "
                                                                                                         "\"exit\" op: "
                                                                                                         "\"Exit\" "
                                                                                                         "input: "
                                                                                                         "\"switch"
                                                                                                         "\"" TYPE(
                                                                                                             "T",
                                                                                                             "DT_"
                                                                                                             "INT3"
                                                                                                             "2") " }"
                                                                                                                  "\n");
  command_put(folder, "regex.pbtxt",
              STRING("s", "aaaa") "node { name: \"m\" op: \"StaticRegexFullMatch\" input: \"s\" attr { key: "
                                  "\"pattern\" value { s: \"((a{1000}){1000}){1000}\" } } }\n");
  char line[256];
  snprintf(line, sizeof line, "cp %s/examples/mlp.pb %s/m.pb && ln -s /etc/passwd %s/link", TFC_SOURCE_DIR, folder,
           folder);
  return system(line);
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

static void assert_not_written(void) {
  char path[128];
  snprintf(path, sizeof path, "%s/written", folder);
  assert_int_not_equal(access(path, F_OK), 0);
}

static void test_files(void **state) {
  (void)state;
  assert_exit(3, "'r' (ReadFile)", "tfc-run --graph %s/read.pbtxt --fetch r --untrusted", folder);
  assert_exit(3, "'r' (MatchingFiles)", "tfc-run --graph %s/match.pbtxt --fetch r --untrusted", folder);
  assert_exit(3, "'r' (WholeFileReaderV2)", "tfc-run --graph %s/reader.pbtxt --fetch n --untrusted", folder);
  assert_exit(3, "(WriteFile)", "tfc-run --graph %s/deep.pbtxt --fetch call --untrusted", folder);
  assert_not_written();
  command("tfc-place --graph %s/deep.pbtxt --fetch call --devices 1 --time 10s --untrusted --db %s/p.db", folder,
          folder);
  assert_not_written();
  command("tfc-place --graph %s/deep.pbtxt --fetch call --devices 1 --time 10s --db %s/p.db", folder, folder);
  assert_not_written();
}

static void test_limits(void **state) {
  (void)state;
  assert_exit(5, "'fill' (Fill)", "tfc-run --graph %s/fill.pbtxt --fetch fill --untrusted", folder);
  assert_exit(1, "'more' (Neg)", "tfc-run --graph %s/loop.pbtxt --fetch exit --untrusted=time=1s", folder);
  assert_exit(3, "1048576", "tfc-run --graph %s/bomb.pbtxt --fetch call --untrusted", folder);
  assert_exit(3, "more than 3 nodes", "tfc-run --graph %s/m.pb --untrusted=nodes=3", folder);
  assert_exit(3, "more than 10 nodes", "tfc-run --graph %s/deep.pbtxt --fetch call --untrusted=nodes=10", folder);
  // tfc-place ends as after SIGTERM (130), and its message names the limit.
  assert_exit(130, "the time of --untrusted is over",
              "tfc-place --graph %s/m.pb --devices 2 --time 100s --untrusted=time=2s --db %s/p.db", folder, folder);
  const struct command_result *r = command("tfc-run --graph %s/regex.pbtxt --fetch m --untrusted=time=10s", folder);
  assert_true(r->code == 3 || r->code == 0);
}

static void test_usage(void **state) {
  (void)state;
  assert_exit(2, "memory=SIZE", "tfc-run --graph %s/m.pb --untrusted=space=3", folder);
  assert_exit(2, "memory=SIZE", "tfc-run --graph %s/m.pb --untrusted=time=", folder);
  assert_exit(2, "--measure-with", "tfc-place --graph %s/m.pb --machine m.yaml --measure-with true --untrusted",
              folder);
}

// Files that the command line names can be used.
static void test_works(void **state) {
  (void)state;
  char path[128];
  assert_exit(0, "", "cd %s && tfc-run --graph m.pb --steps 2 --fetch %s=o.npy --profile --db r.db --untrusted", folder,
              "loss:0");
  snprintf(path, sizeof path, "%s/o.npy", folder);
  assert_int_equal(access(path, R_OK), 0);
  assert_exit(0, "", "cd %s && tfc-report --untrusted --db r.db list", folder);
  assert_exit(0, "", "cd %s && tfc-export --untrusted --graph m.pb --strip-devices --out s.pb", folder);
}

static void test_placing(void **state) {
  (void)state;
  assert_exit(0, "", "cd %s && tfc-place --graph m.pb --devices 1 --time 10s --db d.db --untrusted || [ $? = 7 ]",
              folder);
  char path[128];
  snprintf(path, sizeof path, "%s/m.report/index.html", folder);
  assert_int_equal(access(path, R_OK), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_limits),
                                     cmocka_unit_test(test_usage), cmocka_unit_test(test_works),
                                     cmocka_unit_test(test_placing)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
