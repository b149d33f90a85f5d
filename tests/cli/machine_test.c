// Tests tfc-place --machine on TensorFlow graphs: nothing runs, every figure follows from FLOP and bytes and is
// modelled.
#include "tests/common/test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/common/command.h"
#include "tests/common/folder.h"

static char folder[64];

#define FLOAT(key) "attr { key: \"" key "\" value { type: DT_FLOAT } } "
#define PLACEHOLDER(name, rows, columns)                                                                               \
  "node { name: \"" name                                                                                               \
  "\" op: \"Placeholder\" " FLOAT("dtype") "attr { key: \"shape\" value { shape { dim { size: " rows                   \
                                           " } dim { size: " columns " } } } } }\n"
// Two products of 100 x 200 by 200 x 300 (12 MFLOP; 80 kB + 240 kB read, 120 kB written) and their sum (30 kFLOP).
static const char products[] = PLACEHOLDER("x", "100", "200")
    PLACEHOLDER("w", "200", "300") "node { name: \"a\" op: \"MatMul\" input: \"x\" input: \"w\" device: "
                                   "\"/device:GPU:0\" " FLOAT(
                                       "T") "}\n"
                                            "node { name: \"b\" op: \"MatMul\" input: \"x\" input: \"w\" device: "
                                            "\"/device:GPU:1\" " FLOAT(
                                                "T") "}\n"
                                                     "node { name: \"s\" op: \"Sub\" input: \"a\" input: \"b\" device: "
                                                     "\"/device:GPU:0\" " FLOAT("T") "}\n";

#define MACHINE(devices)                                                                                               \
  "format: tfc-machine\nversion: 1\ndevices:\n" devices                                                                \
  "links:\n  - {from: \"*\", to: \"*\", latency: 1us, bandwidth: 120GB/s}\n"

static int set_up(void **state) {
  (void)state;
  if (test_folder_make(folder, "machine")) return -1;
  command_put(folder, "g.pbtxt", products);
  // 12 MFLOP at 1.2 TFLOPS are 10 us; the bytes, at 100 TB/s, take almost no time.
  command_put(folder, "m.yaml",
              MACHINE("  - {name: \"acc:0\", kind: acc, memory: 1GB, count: 2, flops: 1.2e+12, memory_bandwidth: "
                      "100TB/s}\n"));
  // 440 kB at 44 GB/s are 10 us, the FLOP take almost no time, and dispatch takes 3 us.
  command_put(folder, "slow.yaml",
              MACHINE("  - {name: \"acc:0\", kind: acc, count: 2, flops: 1.2e+15, memory_bandwidth: 44GB/s, "
                      "dispatch: 3us}\n"));
  command_put(folder, "tight.yaml",
              MACHINE("  - {name: \"acc:0\", kind: acc, memory: 200kB, count: 2, flops: 1.2e+12, "
                      "memory_bandwidth: 100TB/s}\n"));
  command_put(folder, "norate.yaml", MACHINE("  - {name: \"acc:0\", kind: acc, count: 2}\n"));
  command_put(folder, "unlike.yaml",
              MACHINE("  - {name: \"acc:0\", kind: acc, flops: 1.0e+12, memory_bandwidth: 1TB/s}\n"
                      "  - {name: \"acc:1\", kind: acc, flops: 2.0e+12, memory_bandwidth: 1TB/s}\n"));
  command_put(folder, "host.yaml",
              MACHINE("  - {name: \"acc:0\", kind: acc, flops: 1.0e+12, memory_bandwidth: 1TB/s}\n"
                      "  - {name: \"cpu:0\", kind: cpu, flops: 1.0e+11, memory_bandwidth: 100GB/s}\n"));
  command_put(folder, "words.pbtxt",
              PLACEHOLDER("x", "10", "20") "node { name: \"big\" op: \"Square\" input: \"x\" " FLOAT(
                  "T") "}\nnode { name: \"words\" op: \"AsString\" input: \"big\" " FLOAT("T") "}\n");
  command_put(folder, "empty.pbtxt",
              "node { name: \"c\" op: \"Const\" " FLOAT("dtype") "attr { key: \"value\" value { tensor { dtype: "
                                                                 "DT_FLOAT tensor_shape {} float_val: 1 } } } "
                                                                 "}\n");
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}

#define PLACE "cd %s && tfc-place --graph g.pbtxt "

// Returns the document of a call with --json. It must be all that the program writes to stdout.
static json_t *document(int expected, const char *arguments) {
  const struct command_result *r = command("cd %s && tfc-place --json --time 2s %s", folder, arguments);
  if (r->code != expected) fail_msg("%s: exit %d: %s", arguments, r->code, r->err);
  json_error_t error;
  json_t *d = json_loads(r->out, 0, &error);
  if (!d) fail_msg("%s: %s in: %s", arguments, error.text, r->out);
  return d;
}
static double value(const json_t *d) {
  return json_number_value(json_object_get(d, "value_us"));
}
static double baseline(const json_t *d, const char *name) {
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(d, "baselines"), i, row) {
    if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0)
      return json_number_value(json_object_get(row, "median_us"));
  }
  return -1;
}

static void test_figures(void **state) {
  (void)state;
  // One device: both products and the sum, 10 + 10 + 0.025 us (the sum's 30 kFLOP against 360 kB at 100 TB/s).
  json_t *d = document(0, "--graph g.pbtxt --machine m.yaml --out a.json");
  assert_true(fabs(baseline(d, "single:acc:0") - 20.025) < 0.001);
  // Two devices: one product each, then 120 kB over the wire (1 us and 1 us), then the sum.
  assert_true(fabs(value(d) - 12.025) < 0.001);
  assert_true(fabs(baseline(d, "expert") - 12.025) < 0.001);
  assert_string_equal(json_string_value(json_object_get(json_object_get(d, "step"), "label")), "modelled");
  assert_int_equal(json_object_size(json_object_get(d, "placement")), 5); // it has every node, placeholders too
  const json_t *device = json_array_get(json_object_get(d, "devices"), 0);
  assert_string_equal(json_string_value(json_object_get(device, "label")), "modelled");
  json_decref(d);
  // The time of bytes and of dispatch: 10 + 10 + 8.18 (360 kB) + 3 * 3.
  d = document(7, "--graph g.pbtxt --machine slow.yaml --devices acc:0 --out b.json");
  assert_true(fabs(value(d) - (10 + 10 + 360e3 / 44e3 + 9)) < 0.001);
  json_decref(d);
  d = document(0, "--graph g.pbtxt --machine m.yaml --evaluate a.json");
  assert_true(fabs(value(d) - 12.025) < 0.001);
  json_decref(d);
  d = document(0, "--graph g.pbtxt --machine m.yaml --evaluate -");
  assert_true(fabs(value(d) - 12.025) < 0.001);
  json_decref(d);
  d = document(0, "--graph g.pbtxt --machine m.yaml --baseline mine=a.json --out c.json");
  assert_true(fabs(baseline(d, "mine") - 12.025) < 0.001);
  json_decref(d);
  d = document(0, "--graph g.pbtxt --machine m.yaml --evaluate single:acc:1");
  assert_true(fabs(value(d) - 20.025) < 0.001);
  json_decref(d);
  d = document(7, "--graph g.pbtxt --machine m.yaml --pin '[ab]=acc:1' --out c.json");
  assert_true(value(d) > 20);
  json_decref(d);
  assert_exit(0, "",
              PLACE "--machine m.yaml --out d.json --save-problem p --time 1s && tfc-place --graph p/graph.json "
                    "--machine p/machine.yaml --out e.json --time 1s",
              folder);
}

static void test_limits(void **state) {
  (void)state;
  // Both products on one device hold 240 kB of results until they are subtracted: too much for one.
  json_t *d = document(5, "--graph g.pbtxt --machine tight.yaml --evaluate single:acc:0");
  assert_false(json_is_true(json_object_get(d, "feasible")));
  json_decref(d);
  d = document(5, "--graph g.pbtxt --machine m.yaml --memory 'acc:*=100kB' --out f.json");
  json_decref(d);
  // Operations on strings run only on hosts.
  d = document(0, "--graph words.pbtxt --machine host.yaml --evaluate single:cpu:0");
  json_decref(d);
  d = document(7, "--graph words.pbtxt --machine host.yaml --out g.json");
  assert_string_equal(json_string_value(json_object_get(json_object_get(d, "placement"), "words")), "cpu:0");
  json_decref(d);
}

static void test_errors(void **state) {
  (void)state;
  assert_exit(3, "acc:0", PLACE "--machine norate.yaml", folder);
  assert_exit(3, "one kind", PLACE "--machine unlike.yaml", folder);
  assert_exit(3, "no.yaml", PLACE "--machine no.yaml", folder);
  assert_exit(3, "g.pbtxt", PLACE "--machine g.pbtxt", folder);
  assert_exit(4, "--devices 3", PLACE "--machine m.yaml --devices 3", folder);
  assert_exit(4, "acc:7", PLACE "--machine m.yaml --evaluate single:acc:7", folder);
  assert_exit(4, "gpu:*", PLACE "--machine m.yaml --memory 'gpu:*=1GB'", folder);
  assert_exit(3, "nothing to place", "cd %s && tfc-place --graph empty.pbtxt --machine m.yaml", folder);
  assert_exit(3, "nowhere.json", PLACE "--machine m.yaml --evaluate nowhere.json", folder);
}

// The same seed and the same budget of evaluations give the same answer on any number of threads, with every algorithm
// that `auto` begins with (except Scotch, whose own threads would make it differ).
static void test_same_answer(void **state) {
  (void)state;
#ifdef TFC_SANITIZED
  static const char graph[] = "rnnlm";
#else
  static const char graph[] = "nmt";
#endif
  double first = 0;
  for (int i = 0; i < 3; i++) {
    const struct command_result *r =
        command("cd %s && tfc-place --json --graph %s/examples/%s.pb --machine %s/configs/4xp100.yaml --evaluations 20 "
                "--algorithm scotch --threads %d --out s.json | grep -o '\"value_us\": [0-9.]*'",
                folder, TFC_SOURCE_DIR, graph, TFC_SOURCE_DIR, i + 1);
    double us = r->out[0] ? atof(strchr(r->out, ':') + 1) : 0;
    assert_true(us > 0);
    if (i == 0) first = us;
    if (us < first || us > first) fail_msg("%d threads: %f instead of %f", i + 1, us, first);
  }
}

// The line about the bound: how far the answer is above it follows from the two numbers in the placement file. With
// this graph and few evaluations that is far.
static void test_bound_line(void **state) {
  (void)state;
  const struct command_result *r = command(
      "cd %s && tfc-place --graph %s/examples/mlp.pb --machine %s/configs/4xp100.yaml --evaluations 20 --policy "
      "none --report none -q --out b.json; grep -oE '\"(value|bound)_us\": [0-9.]+' b.json",
      folder, TFC_SOURCE_DIR, TFC_SOURCE_DIR);
  const char *line = strstr(r->out, "the answer is "), *above = strstr(r->out, "\"value_us\": "),
             *bound = strstr(r->out, "\"bound_us\": ");
  if (!line || !above || !bound) fail_msg("%s%s", r->out, r->err);
  const double percent = 100 * (atof(above + 12) / atof(bound + 12) - 1), said = atof(line + 14);
  assert_true(percent > 50);
  if (fabs(said - percent) > 0.051) fail_msg("%g %% where it is %g %%", said, percent);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_figures),     cmocka_unit_test(test_limits),     cmocka_unit_test(test_errors),
      cmocka_unit_test(test_same_answer), cmocka_unit_test(test_bound_line),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
