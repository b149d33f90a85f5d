// Tests sums of matrix products over the iterations of a loop, such as the gradients of a weight: several products are
// added together, the bits are those of one addition after the other, and where that cannot be, products are added one
// by one: if the product is broadcast, if its rows are many, if something in the loop reads the sum, if memory is
// limited.
#include "tests/common/test.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/pass/pass.h"
#include "runtime/trace.h"

// clang-format off
#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define T(type) ATTR("T", "type: " type)
#define ARG(name, type) " input_arg { name: '" name "' type: " type " }"
#define ARGS \
  ARG("i", "DT_INT32") ARG("n", "DT_INT32") ARG("w", "DT_FLOAT") ARG("a", "DT_FLOAT") ARG("b", "DT_FLOAT") \
  ARG("c", "DT_FLOAT") ARG("r", "DT_FLOAT")
#define RESULT(name, type) " output_arg { name: '" name "' type: " type " }"
#define NUMBER(value) \
  ATTR("dtype", "type: DT_INT32") ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: " value " }")
#define BINARY(name, op, x, y, type, more) \
  " node_def { name: '" name "' op: '" op "' input: '" x "' input: '" y "'" T(type) more " }"
#define INPUT(name, type) "node { name: '" name "' op: 'Placeholder'" ATTR("dtype", "type: " type) " }\n"
#define PASSED(name, from) " ret { key: '" name "' value: '" from "' }"
// for (i = 0; i < n; i++) { w = w + aT b; a = a * c; r = `read` }, where `read` is r + c, or r plus all of the sum.
// `sum`: the addition, whose result is `sum_out`.
#define LOOP(sum, sum_out, read) \
  "library { function { signature { name: 'below'" ARGS RESULT("go", "DT_BOOL") " } " \
  BINARY("less", "Less", "i", "n", "DT_INT32", "") \
  PASSED("go", "less:z:0") " }" \
  " function { signature { name: 'body'" ARGS RESULT("i_out", "DT_INT32") RESULT("n_out", "DT_INT32") \
  RESULT("w_out", "DT_FLOAT") RESULT("a_out", "DT_FLOAT") RESULT("b_out", "DT_FLOAT") RESULT("c_out", "DT_FLOAT") \
  RESULT("r_out", "DT_FLOAT") " }" \
  " node_def { name: 'one' op: 'Const'" NUMBER("1") " }" \
  BINARY("next", "AddV2", "i", "one:output:0", "DT_INT32", "") \
  BINARY("product", "MatMul", "a", "b", "DT_FLOAT", ATTR("transpose_a", "b: true")) \
  sum BINARY("scaled", "Mul", "a", "c", "DT_FLOAT", "") read \
  PASSED("i_out", "next:z:0") PASSED("n_out", "n") PASSED("w_out", sum_out) PASSED("a_out", "scaled:z:0") \
  PASSED("b_out", "b") PASSED("c_out", "c") PASSED("r_out", "read:z:0") " } }\n" \
  INPUT("n", "DT_INT32") INPUT("w", "DT_FLOAT") INPUT("a", "DT_FLOAT") INPUT("b", "DT_FLOAT") INPUT("c", "DT_FLOAT") \
  "node { name: 'zero' op: 'Const'" NUMBER("0") " }\n" \
  "node { name: 'begin' op: 'EnsureShape' input: 'w'" T("DT_FLOAT") \
  ATTR("shape", "shape { dim { size: 9 } dim { size: 35 } }") " }\n" \
  "node { name: 'loop' op: 'While' input: 'zero' input: 'n' input: 'begin' input: 'a' input: 'b'" \
  " input: 'c' input: 'c'" \
  ATTR("cond", "func { name: 'below' }") ATTR("body", "func { name: 'body' }") \
  ATTR("T", "list { type: DT_INT32 type: DT_INT32 type: DT_FLOAT type: DT_FLOAT type: DT_FLOAT type: DT_FLOAT type: " \
            "DT_FLOAT }") " }\n" \
  "node { name: 'sum' op: 'Neg' input: 'loop:2'" T("DT_FLOAT") " }\n" \
  "node { name: 'read' op: 'Neg' input: 'loop:6'" T("DT_FLOAT") " }\n"
#define ADDS BINARY("sum", "AddV2", "w", "product:product:0", "DT_FLOAT", "")
#define READ_NOTHING BINARY("read", "AddV2", "r", "c", "DT_FLOAT", "")
#define READ_SUM \
  " node_def { name: 'axes' op: 'Const'" ATTR("dtype", "type: DT_INT32") \
  ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 0 int_val: 1 }") " }" \
  " node_def { name: 'all' op: 'Sum' input: 'w' input: 'axes:output:0'" T("DT_FLOAT") \
  ATTR("Tidx", "type: DT_INT32") " }" \
  BINARY("read", "AddV2", "r", "all:output:0", "DT_FLOAT", "")

static const char by_add[] = LOOP(ADDS, "sum:z:0", READ_NOTHING);
static const char is_read[] = LOOP(ADDS, "sum:z:0", READ_SUM);
static const char by_add_n[] = LOOP(
  BINARY("sum", "AddN", "w", "product:product:0", "DT_FLOAT", ATTR("N", "i: 2")), "sum:sum:0", READ_NOTHING);
// clang-format on

enum { FEEDS = 5 };
static void fill(struct tfc_tensor *t, int64_t rows, int64_t columns, uint32_t seed) {
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(rows, columns), t));
  for (int64_t i = 0; i < rows * columns; i++) {
    seed = seed * 1664525u + 1013904223u;
    ((float *)t->data)[i] = (float)(int32_t)seed * 0x1p-31f;
  }
}

// Runs n iterations with factors [rows, of_a] and [rows, of_b] and fetches the sum (and what the loop reads of it).
// *out_runs: how often the operation that adds ran; counted in a step with a trace.
static void run(const char *text, bool plain, bool limited, int n, int64_t rows, int64_t of_a, int64_t of_b,
                struct tfc_tensor out[2], uint32_t *out_runs) {
  static struct tfc_trace_record records[4096];
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_tensor fed[FEEDS] = {{0}};
  struct tfc_output feeds[FEEDS], fetches[2];
  static const char *const names[FEEDS] = {"n", "w", "a", "b", "c"};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "loop_sums.pbtxt", NULL, &g));
  assert_ok(tfc_lower_loaded(&g));
  assert_ok(tfc_devices_open("cpu:0", &(struct tfc_memory_limit){"cpu:*", 1 << 26}, limited, &set));
  assert_ok(tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = plain}, &session));
  assert_ok(tfc_tensor_create(TFC_INT32, &TFC_SHAPE_SCALAR, &fed[0]));
  *(int32_t *)fed[0].data = n;
  fill(&fed[1], 9, 35, 1), fill(&fed[2], rows, of_a, 2), fill(&fed[3], rows, of_b, 3);
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE_SCALAR, &fed[4]));
  *(float *)fed[4].data = 1.01f;
  for (uint32_t i = 0; i < FEEDS; i++) feeds[i] = (struct tfc_output){tfc_graph_find(g, tfc_str_from(names[i])), 0};
  fetches[0] = (struct tfc_output){tfc_graph_find(g, TFC_STR("sum")), 0};
  fetches[1] = (struct tfc_output){tfc_graph_find(g, TFC_STR("read")), 0};
  const struct tfc_run_spec spec = {.feeds = feeds, .feed_count = FEEDS, .fetches = fetches, .fetch_count = 2};
  struct tfc_trace_buffer buffers[2] = {{.records = records, .capacity = 4096}, {0}};
  struct tfc_trace_record step;
  buffers[1] = (struct tfc_trace_buffer){.records = &step, .capacity = 1};
  struct tfc_trace_sink sink = {.buffers = buffers, .buffer_count = 2};
  assert_ok(tfc_session_run(session, &spec, fed, out, &(struct tfc_run_options){.trace = &sink}));
  const uint32_t sum = tfc_graph_find(g, TFC_STR("loop/body/sum"));
  *out_runs = 0;
  for (size_t i = 0; i < buffers[0].count; i++)
    *out_runs += buffers[0].records[i].kind == TFC_TRACE_OP && buffers[0].records[i].id == sum;
  for (uint32_t i = 0; i < FEEDS; i++) tfc_tensor_release(&fed[i]);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
}

// Checks that the results have the bits of the graph without rewrites, and returns how often the operation ran.
static uint32_t check(const char *text, bool limited, int n, int64_t rows, int64_t of_a, int64_t of_b) {
  struct tfc_tensor expected[2] = {{0}}, got[2] = {{0}};
  uint32_t runs;
  run(text, true, limited, n, rows, of_a, of_b, expected, &runs);
  assert_int_equal(runs, n);
  run(text, false, limited, n, rows, of_a, of_b, got, &runs);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(got[i].size, expected[i].size);
    assert_memory_equal(got[i].data, expected[i].data, got[i].size);
    tfc_tensor_release(&got[i]), tfc_tensor_release(&expected[i]);
  }
  return runs;
}

static void terms_are_added_together(void **state) {
  (void)state;
  static const int counts[] = {0, 1, 7, 8, 9, 20};
  for (int k = 0; k < 6; k++) {
    assert_int_equal(check(by_add, false, counts[k], 4, 9, 35), (counts[k] + 7) / 8);
    assert_int_equal(check(by_add_n, false, counts[k], 4, 9, 35), (counts[k] + 7) / 8);
  }
  assert_int_equal(check(by_add, false, 20, 1, 9, 35), 3);
  assert_int_equal(check(by_add, false, 20, 0, 9, 35), 3); // a sum of zeros
}
static void others_one_by_one(void **state) {
  (void)state;
  assert_int_equal(check(is_read, false, 20, 4, 9, 35), 20);
  assert_int_equal(check(by_add, false, 20, 4, 9, 1), 20);    // broadcast along the columns
  assert_int_equal(check(by_add, false, 20, 4, 1, 35), 20);   // and along the rows
  assert_int_equal(check(by_add, false, 20, 200, 9, 35), 20); // many rows
  assert_int_equal(check(by_add, true, 20, 4, 9, 35), 20);    // a limit of memory
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(terms_are_added_together), cmocka_unit_test(others_one_by_one)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
