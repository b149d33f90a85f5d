// Tests which parts of a loop (While) a step runs: the variables that it needs, and not those whose results nobody
// reads. Results can be fed and fetched like other tensors.
#include "tests/common/test.h"

#include <stdlib.h>

#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"

// clang-format off
#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define FLOAT(key) ATTR(key, "type: DT_FLOAT")
#define ARG(name, type) " input_arg { name: '" name "' type: " type " }"
#define ARGS ARG("i", "DT_INT32") ARG("x", "DT_FLOAT") ARG("y", "DT_FLOAT") ARG("c", "DT_FLOAT")
#define RESULT(name, type) " output_arg { name: '" name "' type: " type " }"
#define PASSED(name, from) " ret { key: '" name "' value: '" from "' }"
#define NUMBER(open, name, type, value) \
  open " { name: '" name "' op: 'Const'" ATTR("dtype", "type: " type) \
  ATTR("value", "tensor { dtype: " type " tensor_shape { } " value " }") " }"
#define BINARY(open, name, op, x, y, type) \
  open " { name: '" name "' op: '" op "' input: '" x "' input: '" y "'" ATTR("T", "type: " type) " }"
// while (i < 3) { i += 1; x += c; y *= x; }; the readers: -x, -y and -c.
static const char text[] =
    "library { function { signature { name: 'below'" ARGS RESULT("go", "DT_BOOL") " } "
    NUMBER("node_def", "three", "DT_INT32", "int_val: 3")
    BINARY("node_def", "less", "Less", "i", "three:output:0", "DT_INT32")
    PASSED("go", "less:z:0") " }"
    "function { signature { name: 'body'" ARGS RESULT("i_out", "DT_INT32") RESULT("x_out", "DT_FLOAT")
    RESULT("y_out", "DT_FLOAT") RESULT("c_out", "DT_FLOAT") " } "
    NUMBER("node_def", "one", "DT_INT32", "int_val: 1")
    BINARY("node_def", "next", "AddV2", "i", "one:output:0", "DT_INT32")
    BINARY("node_def", "sum", "AddV2", "x", "c", "DT_FLOAT")
    BINARY("node_def", "product", "Mul", "y", "x", "DT_FLOAT")
    PASSED("i_out", "next:z:0") PASSED("x_out", "sum:z:0") PASSED("y_out", "product:z:0") PASSED("c_out", "c") " } }\n"
    NUMBER("node", "begin", "DT_INT32", "int_val: 0")
    NUMBER("node", "two", "DT_FLOAT", "float_val: 2")
    NUMBER("node", "five", "DT_FLOAT", "float_val: 5")
    "node { name: 'loop' op: 'While' input: 'begin' input: 'two' input: 'two' input: 'five'"
    ATTR("cond", "func { name: 'below' }") ATTR("body", "func { name: 'body' }")
    ATTR("T", "list { type: DT_INT32 type: DT_FLOAT type: DT_FLOAT type: DT_FLOAT }") " }\n"
    "node { name: 'x' op: 'Neg' input: 'loop:1'" FLOAT("T") " }\n"
    "node { name: 'y' op: 'Neg' input: 'loop:2'" FLOAT("T") " }\n"
    "node { name: 'c' op: 'Neg' input: 'loop:3'" FLOAT("T") " }\n";
// clang-format on

static struct tfc_device_set devices;
static struct tfc_graph *graph;
static struct tfc_session *session;

static uint32_t find(const char *name) {
  const uint32_t id = tfc_graph_find(graph, tfc_str_from(name));
  assert_true(id != TFC_NONE);
  return id;
}
static bool needs(const struct tfc_output *feed, const char *fetch, const char *node) {
  bool *needed = calloc(graph->node_count, sizeof *needed);
  const struct tfc_output fetched = {find(fetch), 0};
  assert_non_null(needed);
  assert_ok(tfc_prune(graph, feed, feed != NULL, &fetched, 1, NULL, 0, needed));
  const bool found = needed[find(node)];
  free(needed);
  return found;
}
static float value(const struct tfc_output *feed, float fed, struct tfc_output fetched) {
  struct tfc_tensor in = {0}, out = {0};
  const struct tfc_run_spec spec = {.feeds = feed, .feed_count = feed != NULL, .fetches = &fetched, .fetch_count = 1};
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE_SCALAR, &in));
  *(float *)in.data = fed;
  assert_ok(tfc_session_run(session, &spec, &in, &out, NULL));
  const float got = *(const float *)out.data;
  tfc_tensor_release(&in);
  tfc_tensor_release(&out);
  return got;
}

static const float results[] = {0, 17, 336, 5}; // of the loop; its first one is not read

static void only_needed_variables_run(void **state) {
  (void)state;
  assert_true(needs(NULL, "x", "loop/body/sum"));
  assert_false(needs(NULL, "x", "loop/body/product"));
  assert_true(needs(NULL, "y", "loop/body/product"));
  assert_true(needs(NULL, "y", "loop/body/sum")); // the product reads it
  assert_false(needs(NULL, "c", "loop/body/sum"));
  assert_true(needs(NULL, "c", "loop/body/next")); // it waits for the loop
}
static void results_are_right(void **state) {
  (void)state;
  assert_float_equal(value(NULL, 0, (struct tfc_output){find("x"), 0}), -17, 0);
  assert_float_equal(value(NULL, 0, (struct tfc_output){find("y"), 0}), -2 * 2 * 7 * 12, 0);
  assert_float_equal(value(NULL, 0, (struct tfc_output){find("c"), 0}), -5, 0);
  for (int32_t i = 1; i < 4; i++)
    assert_float_equal(value(NULL, 0, (struct tfc_output){find("loop"), i}), results[i], 0);
}
// Who feeds a result of the loop feeds its readers, also those of what the loop does not change.
static void results_can_be_fed(void **state) {
  (void)state;
  static const char *const readers[] = {"", "x", "y", "c"};
  for (int32_t i = 1; i < 4; i++) {
    const struct tfc_output feed = {find("loop"), i};
    assert_float_equal(value(&feed, 40, (struct tfc_output){find(readers[i]), 0}), -40, 0);
    assert_float_equal(value(&feed, 40, feed), 40, 0);
    assert_float_equal(value(&feed, 40, (struct tfc_output){find(readers[i % 3 + 1]), 0}), -results[i % 3 + 1], 0);
  }
}
// The attribute that marks the node of a loop may be anywhere in a file.
enum { MARKED = 100 };
static void marks_in_files_are_no_loops(void **state) {
  (void)state;
  const struct tfc_output first = {find("m0"), 0}, last = {find("m99"), 0}, size = {find("size"), 0};
  assert_float_equal(value(&last, 40, last), 40, 0);
  assert_float_equal(value(&first, 40, last), 40, 0);
  assert_float_equal(value(NULL, 0, (struct tfc_output){find("of_size"), 0}), 1, 0);
  assert_float_equal(value(&first, 40, (struct tfc_output){find("of_size"), 0}), 1, 0);
  struct tfc_tensor in = {0}, out = {0};
  const struct tfc_run_spec spec = {.feeds = &size, .feed_count = 1, .fetches = &first, .fetch_count = 1};
  assert_ok(tfc_tensor_create(TFC_INT32, &TFC_SHAPE_SCALAR, &in));
  *(int32_t *)in.data = 7;
  assert_ok(tfc_session_run(session, &spec, &in, &out, NULL)); // the size is fed, and not of what
  assert_float_equal(*(const float *)out.data, 2, 0);
  tfc_tensor_release(&in);
  tfc_tensor_release(&out);
}
static void add_marked(struct tfc_text *to) {
  static const char mark[] = ATTR("_tfc_loop", "b: true") " }\n";
  for (int i = MARKED; i-- > 1;)
    tfc_text_printf(to, "node { name: 'm%d' op: 'Identity' input: 'm%d'" FLOAT("T") "%s", i, i - 1, mark);
  tfc_text_printf(to, "node { name: 'm0' op: 'Identity' input: 'two'" FLOAT("T") "%s", mark);
  tfc_text_printf(to, "node { name: 'size' op: 'Size' input: 'm0'" FLOAT("T") "%s", mark);
  tfc_text_printf(to, "node { name: 'of_size' op: 'Cast' input: 'size'" ATTR("SrcT", "type: DT_INT32")
                          FLOAT("DstT") " }\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(only_needed_variables_run), cmocka_unit_test(results_are_right),
                                     cmocka_unit_test(results_can_be_fed),
                                     cmocka_unit_test(marks_in_files_are_no_loops)};
  struct tfc_text all = {0};
  tfc_text_printf(&all, "%s", text);
  add_marked(&all);
  assert_ok(tfc_graph_parse(tfc_str_from(all.data), "loop_results.pbtxt", NULL, &graph));
  tfc_text_deinit(&all);
  assert_ok(tfc_lower_loaded(&graph));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &devices));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &devices}, &session));
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_session_free(session);
  tfc_devices_close(&devices);
  tfc_graph_release(graph);
  return failed;
}
