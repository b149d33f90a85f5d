// Tests sums of products that are computed in parts and pieces: the bits are those of the operations one by one, and
// the plan says which operation continues which sum.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/str.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

enum { TERMS = 12, ROWS = 1032, COLUMNS = 1000, DEPTH = 32, ELEMENTS = ROWS * COLUMNS };

// Writes the weight gradient of an unrolled cell: a sum of terms x^T g_i, where g_i is computed after g_(i-1).
static void write_graph(struct tfc_text *text) {
  const char *type = "value { type: DT_FLOAT }";
  tfc_text_printf(text,
                  "node { name: 'x' op: 'Placeholder' attr { key: 'dtype' %s } attr { key: 'shape' value { shape { dim "
                  "{ size: %d } dim { size: %d } } } } }\n",
                  type, DEPTH, ROWS);
  tfc_text_printf(text,
                  "node { name: 'g0' op: 'Placeholder' attr { key: 'dtype' %s } attr { key: 'shape' value { shape { "
                  "dim { size: %d } dim { size: %d } } } } }\n",
                  type, DEPTH, COLUMNS);
  for (int i = 0; i < TERMS; i++) {
    tfc_text_printf(text, "node { name: 'g%d' op: 'Tanh' input: 'g%d' attr { key: 'T' %s } }\n", i + 1, i, type);
    tfc_text_printf(text,
                    "node { name: 'm%d' op: 'MatMul' input: 'x' input: 'g%d' attr { key: 'T' %s } attr { key: "
                    "'transpose_a' value { b: true } } }\n",
                    i, i + 1, type);
  }
  tfc_text_printf(text, "node { name: 'sum' op: 'AddN'");
  for (int i = 0; i < TERMS; i++) tfc_text_printf(text, " input: 'm%d'", i);
  tfc_text_printf(text, " attr { key: 'T' %s } attr { key: 'N' value { i: %d } } }\n", type, TERMS);
}

struct outcome {
  float *sum;
  uint32_t ops, pieces, parts; // numbers of operations; pieces: those that are pieces of parts; parts: those that are
                               // parts, without the first one of each sum
};

static void run(bool no_rewrites, bool in_parts, struct outcome *out) {
  struct tfc_text text = {0};
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor feeds[2] = {0}, value = {0};
  write_graph(&text);
  assert_ok(tfc_graph_parse(tfc_str_from(text.data), "sums", NULL, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  struct tfc_output fed[2] = {{tfc_graph_find(g, TFC_STR("x")), 0}, {tfc_graph_find(g, TFC_STR("g0")), 0}};
  struct tfc_output fetch = {tfc_graph_find(g, TFC_STR("sum")), 0};
  struct tfc_run_spec spec = {.feeds = fed, .feed_count = 2, .fetches = &fetch, .fetch_count = 1, .in_parts = in_parts};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(DEPTH, ROWS), &feeds[0]));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(DEPTH, COLUMNS), &feeds[1]));
  for (int f = 0; f < 2; f++)
    for (size_t i = 0; i < feeds[f].size / sizeof(float); i++)
      ((float *)feeds[f].data)[i] = (float)((int)(i * 7919 % 2003) - 1001) * 1e-3f;
  assert_ok(tfc_plan_run(plan, feeds, &value, NULL));
  assert_int_equal(value.size, ELEMENTS * sizeof(float));
  *out = (struct outcome){.sum = malloc(value.size)};
  assert_non_null(out->sum);
  memcpy(out->sum, value.data, value.size);
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  out->ops = info->op_count;
  for (uint32_t i = 0; i < info->continued_count; i++) {
    assert_int_not_equal(info->continued[i].node, info->continued[i].before);
    uint32_t *count = info->continued[i].same ? &out->pieces : &out->parts;
    ++*count;
  }
  tfc_tensor_release(&value);
  for (int f = 0; f < 2; f++) tfc_tensor_release(&feeds[f]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_text_deinit(&text);
}

static void parts_and_pieces(void **state) {
  (void)state;
  struct outcome apart, whole, parts;
  run(true, false, &apart);
  run(false, false, &whole);
  run(false, true, &parts);
  assert_int_equal(whole.pieces + whole.parts, 0);
  assert_true(whole.ops < apart.ops);
  assert_true(parts.parts >= 1);
  assert_true(parts.pieces >= 2);
  assert_true(parts.ops > whole.ops);
  assert_memory_equal(apart.sum, whole.sum, ELEMENTS * sizeof(float));
  assert_memory_equal(apart.sum, parts.sum, ELEMENTS * sizeof(float));
  free(apart.sum), free(whole.sum), free(parts.sum);
}

// In ready order, products are added to a sum one after another, and another operation reads an intermediate sum.
enum { SMALL = 40, DEEP = 7, ADDED = 6, READ = 3 };

static void write_additions(struct tfc_text *text) {
  const char *type = "value { type: DT_FLOAT }";
  static const char *const names[] = {"x", "g", "s0"};
  for (int i = 0; i < 3; i++)
    tfc_text_printf(text,
                    "node { name: '%s' op: 'Placeholder' attr { key: 'dtype' %s } attr { key: 'shape' value { shape { "
                    "dim { size: %d } dim { size: %d } } } } }\n",
                    names[i], type, i < 2 ? DEEP : SMALL, SMALL);
  for (int i = 0; i < ADDED; i++) {
    tfc_text_printf(text,
                    "node { name: 'm%d' op: 'MatMul' input: 'x' input: 'g' attr { key: 'T' %s } attr { key: "
                    "'transpose_a' value { b: true } } }\n",
                    i, type);
    tfc_text_printf(text, "node { name: 's%d' op: 'AddV2' input: '%c%d' input: '%c%d' attr { key: 'T' %s } }\n", i + 1,
                    i % 2 ? 'm' : 's', i, i % 2 ? 's' : 'm', i, type);
  }
  tfc_text_printf(text, "node { name: 'other' op: 'Tanh' input: 's%d' attr { key: 'T' %s } }\n", READ, type);
}

static uint32_t run_additions(bool no_rewrites, float *sum, float *other) {
  struct tfc_text text = {0};
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor feeds[3] = {0}, values[3] = {0};
  char last[16], read[16], product[16];
  snprintf(last, sizeof last, "s%d", ADDED);
  snprintf(read, sizeof read, "s%d", READ);
  write_additions(&text);
  assert_ok(tfc_graph_parse(tfc_str_from(text.data), "additions", NULL, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  struct tfc_output fed[3] = {{tfc_graph_find(g, TFC_STR("x")), 0},
                              {tfc_graph_find(g, TFC_STR("g")), 0},
                              {tfc_graph_find(g, TFC_STR("s0")), 0}};
  struct tfc_output fetches[3] = {{tfc_graph_find(g, tfc_str_from(last)), 0},
                                  {tfc_graph_find(g, TFC_STR("other")), 0},
                                  {tfc_graph_find(g, tfc_str_from(read)), 0}};
  struct tfc_run_spec spec = {.feeds = fed, .feed_count = 3, .fetches = fetches, .fetch_count = 3, .dynamic = true};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (int f = 0; f < 3; f++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(f < 2 ? DEEP : SMALL, SMALL), &feeds[f]));
    for (size_t i = 0; i < feeds[f].size / sizeof(float); i++)
      ((float *)feeds[f].data)[i] = (float)((int)(i * 7919 % 2003) - 1001) * 1e-3f;
  }
  float *before = malloc(feeds[2].size);
  assert_non_null(before);
  memcpy(before, feeds[2].data, feeds[2].size);
  for (int again = 0; again < 2; again++) { // the second step may get buffers of the first one
    for (int i = 0; i < 3; i++) tfc_tensor_release(&values[i]);
    assert_ok(tfc_plan_run(plan, feeds, values, NULL));
  }
  assert_memory_equal(before, feeds[2].data, feeds[2].size); // what was fed must not change
  memcpy(sum, values[0].data, values[0].size);
  memcpy(other, values[1].data, values[1].size);
  for (int i = 0; i < SMALL * SMALL; i++) // the intermediate sum was read before it was overwritten
    assert_true(fabsf(tanhf(((float *)values[2].data)[i]) - other[i]) < 1e-5f);
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  uint32_t ops = info->op_count;
  for (int i = 0; i < ADDED; i++) {
    snprintf(product, sizeof product, "m%d", i);
    snprintf(last, sizeof last, "s%d", i + 1);
    uint32_t m = tfc_graph_find(g, tfc_str_from(product)), s = tfc_graph_find(g, tfc_str_from(last));
    assert_int_equal(info->runs_in[m], no_rewrites ? m : s);
  }
  free(before);
  for (int i = 0; i < 3; i++) tfc_tensor_release(&values[i]), tfc_tensor_release(&feeds[i]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_text_deinit(&text);
  return ops;
}

static void additions_in_ready_order(void **state) {
  (void)state;
  static float sum[2][SMALL * SMALL], other[2][SMALL * SMALL];
  assert_int_equal(run_additions(true, sum[0], other[0]), 2 * ADDED + 1);
  assert_int_equal(run_additions(false, sum[1], other[1]), ADDED + 1);
  assert_memory_equal(sum[0], sum[1], sizeof sum[0]);
  assert_memory_equal(other[0], other[1], sizeof other[0]);
}

// Runs a product whose number of rows the plan does not know, as after a stack; in one case it has one row, which
// broadcasts.
static void run_rows(bool no_rewrites, const char *op, int64_t rows, bool first, struct tfc_tensor *out) {
  struct tfc_text text = {0};
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor feeds[3] = {0};
  static const char *const names[] = {"x", "g", "to"};
  const int64_t dims[3][2] = {{DEEP, rows}, {DEEP, SMALL}, {SMALL, SMALL}};
  for (int i = 0; i < 3; i++)
    tfc_text_printf(&text,
                    "node { name: '%s' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: "
                    "'shape' value { shape { dim { size: %d } dim { size: %d } } } } }\n",
                    names[i], i < 2 ? DEEP : SMALL, i < 1 ? -1 : SMALL);
  tfc_text_printf(&text,
                  "node { name: 'm' op: 'MatMul' input: 'x' input: 'g' attr { key: 'T' value { type: DT_FLOAT } } attr "
                  "{ key: 'transpose_a' value { b: true } } }\n"
                  "node { name: 's' op: '%s' input: '%s' input: '%s' attr { key: 'T' value { type: DT_FLOAT } }%s }\n",
                  op, first ? "m" : "to", first ? "to" : "m",
                  strcmp(op, "AddN") ? "" : " attr { key: 'N' value { i: 2 } }");
  assert_ok(tfc_graph_parse(tfc_str_from(text.data), "rows", NULL, &g));
  assert_ok(tfc_devices_open("1", NULL, 0, &set));
  assert_ok(
      tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites}, &session));
  struct tfc_output fed[3], fetch = {tfc_graph_find(g, TFC_STR("s")), 0};
  for (int i = 0; i < 3; i++) fed[i] = (struct tfc_output){tfc_graph_find(g, tfc_str_from(names[i])), 0};
  struct tfc_run_spec spec = {.feeds = fed, .feed_count = 3, .fetches = &fetch, .fetch_count = 1, .dynamic = true};
  assert_ok(tfc_plan_create(session, &spec, &plan));
  for (int f = 0; f < 3; f++) {
    assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(dims[f][0], dims[f][1]), &feeds[f]));
    for (size_t i = 0; i < feeds[f].size / sizeof(float); i++)
      ((float *)feeds[f].data)[i] = (float)((int)(i * 7919 % 2003) - 1001) * 1e-3f;
  }
  assert_int_equal(tfc_plan_info(plan)->op_count, no_rewrites ? 2 : 1);
  tfc_status status = tfc_plan_run(plan, feeds, out, NULL);
  if (rows == SMALL || (rows == 1 && strcmp(op, "AddN")))
    assert_ok(status);
  else
    assert_int_equal(tfc_status_code(status), TFC_INVALID_ARGUMENT), tfc_status_free(status);
  for (int f = 0; f < 3; f++) tfc_tensor_release(&feeds[f]);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  tfc_text_deinit(&text);
}

static void rows_that_the_plan_does_not_know(void **state) {
  (void)state;
  static const int64_t rows[] = {SMALL, 1, SMALL - 1};
  for (int i = 0; i < 12; i++) {
    struct tfc_tensor apart = {0}, whole = {0};
    const char *op = i < 6 ? "AddV2" : "AddN";
    run_rows(true, op, rows[i % 6 / 2], i % 2, &apart);
    run_rows(false, op, rows[i % 6 / 2], i % 2, &whole);
    assert_int_equal(apart.size, whole.size);
    if (apart.size) assert_memory_equal(apart.data, whole.data, apart.size);
    tfc_tensor_release(&apart);
    tfc_tensor_release(&whole);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parts_and_pieces), cmocka_unit_test(additions_in_ready_order),
                                     cmocka_unit_test(rows_that_the_plan_does_not_know)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
