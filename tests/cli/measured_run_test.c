// Tests what tfc-run reports of steps that it ran: how many were timed, quantiles, what tracing costs, and the profile
// in the database, whose sums are computed again from its rows.
#include "tests/common/test.h"

#include <jansson.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/session.h"
#include "tests/common/caught.h"

// The fallbacks that the suite chooses, in place of the plan's: operations without a kernel, or with a plainer one.
static const struct tfc_plan_fallback *chosen;
static uint32_t chosen_count;
static uint32_t fallbacks_here(const struct tfc_plan *plan, struct tfc_plan_fallback *out, uint32_t capacity) {
  if (!chosen) return tfc_plan_fallbacks(plan, out, capacity);
  for (uint32_t i = 0; i < capacity && i < chosen_count; i++) out[i] = chosen[i];
  return chosen_count;
}
#define tfc_plan_fallbacks fallbacks_here
#include "cli/run_measure.c"
#undef tfc_plan_fallbacks
#include "tests/common/close.h"
#include "tests/common/command.h"
#include "tests/common/folder.h"

// --- figures ---------------------------------------------------------------------------------------------------------

static void test_quantiles(void **state) {
  (void)state;
  static const double sorted[] = {10, 20, 30, 40, 60};
  assert_close(quantile(sorted, 5, 0), 10);
  assert_close(quantile(sorted, 5, 0.5), 30);
  assert_close(quantile(sorted, 5, 0.95), 56); // four fifths of the way from the fourth to the fifth
  assert_close(quantile(sorted, 5, 0.99), 59.2);
  assert_close(quantile(sorted, 5, 1), 60);
  assert_close(quantile(sorted, 4, 0.5), 25);
  assert_close(quantile(sorted, 1, 0.95), 10);
  assert_true(isnan(quantile(sorted, 0, 0.5)));
}

// Without --profile, the first 40 steps of at least 20 are traced in every other block of five.
static void test_which_are_traced(void **state) {
  (void)state;
  struct run_options o = {.steps = 20};
  struct run_setup setup = {.options = &o};
  struct measurement m = {.setup = &setup, .traces = true};
  for (int64_t step = -3; step < 60; step++)
    assert_true(is_traced(&m, step) == (step < 0 || step >= 40 || (step / 5) % 2 == 0));
  o.steps = 19;
  for (int64_t step = -3; step < 60; step++) assert_true(is_traced(&m, step));
  o.steps = 100, o.profile = true;
  for (int64_t step = -3; step < 60; step++) assert_true(is_traced(&m, step));
  o.profile = false, m.traces = false;
  for (int64_t step = -3; step < 60; step++) assert_false(is_traced(&m, step));
}

static void test_cost_of_tracing(void **state) {
  (void)state;
  double host[] = {130, 110, 100}, plain[] = {90, 100, 200};
  struct measurement m = {.host_us = host, .taken = 3, .plain_us = plain, .plain = 3};
  assert_close(trace_overhead(&m), 0.1); // the medians are 110 and 100
  m.plain = 0;
  assert_true(isnan(trace_overhead(&m)));
  m.plain = 3, m.taken = 0;
  assert_true(isnan(trace_overhead(&m)));
}

// A device that captures its segments needs as many steps before, and one more.
static void test_warmup(void **state) {
  (void)state;
  struct run_options o = {.warmup = 1};
  struct tfc_device_driver driver[2] = {{.kind = "cpu"}, {.kind = "gpu"}};
  struct tfc_device device[2] = {{.driver = &driver[0]}, {.driver = &driver[1]}}, *devices[] = {&device[0], &device[1]};
  struct run_setup setup = {.options = &o, .devices = {.devices = devices, .count = 2}};
  const struct measurement m = {.setup = &setup};
  o.execution.captures = TFC_CAPTURES_OFF + 1;
  assert_int_equal(warmup_of(&m), 1);
  assert_false(has_own(&m));
  driver[1].on_its_own = true;
  assert_true(has_own(&m));
  assert_int_equal(warmup_of(&m), TFC_RUNS_BEFORE_CAPTURE + 1);
  o.warmup = TFC_RUNS_BEFORE_CAPTURE + 1;
  assert_int_equal(warmup_of(&m), TFC_RUNS_BEFORE_CAPTURE + 1);
  o.warmup = 50;
  assert_int_equal(warmup_of(&m), 50);
  o.warmup = 1, o.execution.captures = TFC_CAPTURES_OFF;
  assert_int_equal(warmup_of(&m), 1);
}

// What an operation costs: the median over steps of its time, or of its launch if that takes longer.
static void test_cost_of_fallbacks(void **state) {
  (void)state;
  struct measurement m = {0};
  static const int64_t times[][2] = {{3000, -1}, {1000, 5000}, {4000, 2000}};
  for (int i = 0; i < 3; i++) {
    struct tfc_step_profile p = {0};
    assert_true(tfc_array_push(
        &p.ops, (struct tfc_profile_op){.node = 7, .device = 0, .duration_ns = 90000, .dispatch_ns = -1}));
    assert_true(tfc_array_push(
        &p.ops, (struct tfc_profile_op){.node = 6, .device = 1, .duration_ns = 80000, .dispatch_ns = -1}));
    assert_true(tfc_array_push(
        &p.ops,
        (struct tfc_profile_op){.node = 7, .device = 1, .duration_ns = times[i][0], .dispatch_ns = times[i][1]}));
    assert_true(tfc_array_push(&m.recorded.profiles, p));
  }
  assert_close(cost_of(&m, &(struct tfc_plan_fallback){.node = 7, .device = 1}), 4); // of 3, 5 and 4 us
  assert_close(cost_of(&m, &(struct tfc_plan_fallback){.node = 6, .device = 1}), 80);
  assert_true(isnan(cost_of(&m, &(struct tfc_plan_fallback){.node = 5, .device = 1})));
  for (size_t i = 0; i < 3; i++) tfc_step_profile_deinit(&m.recorded.profiles.data[i]);
  tfc_array_free(&m.recorded.profiles);
}

static struct test_caught caught;
static void test_fallbacks_are_listed(void **state) {
  (void)state;
  struct tfc_node nodes[] = {{.name = TFC_STR("x"), .op = TFC_STR("Placeholder")},
                             {.name = TFC_STR("near"), .op = TFC_STR("NearestNeighbors")},
                             {.name = TFC_STR("sum"), .op = TFC_STR("Sum")}};
  struct tfc_graph g = {.nodes = nodes, .node_count = 3};
  struct tfc_device device[2] = {{.info.name = "gpu:0"}, {.info.name = "gpu:1"}}, *devices[] = {&device[0], &device[1]};
  struct run_setup setup = {.graph = &g, .devices = {.devices = devices, .count = 2}};
  struct measurement m = {.setup = &setup};
  struct tfc_step_profile p = {0};
  static const struct tfc_plan_fallback two[] = {{1, 1, false, "no kernel"}, {2, 0, true, "too large"}};
  assert_true(
      tfc_array_push(&p.ops, (struct tfc_profile_op){.node = 1, .device = 1, .duration_ns = 2500, .dispatch_ns = -1}));
  assert_true(tfc_array_push(&m.recorded.profiles, p));
  chosen = two;
  // As text: how many run on the host, and then each, with its time if that is known.
  for (chosen_count = 0; chosen_count < 3; chosen_count++) {
    test_catch(&caught, stdout);
    assert_ok(list_fallbacks(&m, NULL));
    test_caught_end(&caught);
    char expected[400];
    snprintf(expected, sizeof expected, "%s%s",
             chosen_count ? "1 operations ran on the host for want of a kernel:\n"
                            "  near (NearestNeighbors) of gpu:1, 2.50 us: no kernel\n"
                          : "",
             chosen_count == 2 ? "sum (Sum) of gpu:0 runs by a plainer kernel, because a library declined: too large\n"
                               : "");
    assert_string_equal(caught.text, expected);
    json_t *document = json_object(), *wanted = json_array();
    test_catch(&caught, stdout);
    assert_ok(list_fallbacks(&m, document));
    test_caught_end(&caught);
    assert_string_equal(caught.text, "");
    if (chosen_count)
      json_array_append_new(wanted,
                            json_pack("{s:s, s:s, s:s, s:s, s:s, s:f}", "node", "near", "op", "NearestNeighbors",
                                      "device", "gpu:1", "runs", "host", "reason", "no kernel", "median_us", 2.5));
    if (chosen_count == 2)
      json_array_append_new(wanted, json_pack("{s:s, s:s, s:s, s:s, s:s, s:n}", "node", "sum", "op", "Sum", "device",
                                              "gpu:0", "runs", "plain kernel", "reason", "too large", "median_us"));
    assert_int_equal(json_object_size(document), 1);
    assert_true(json_equal(json_object_get(document, "fallbacks"), wanted));
    json_decref(document), json_decref(wanted);
  }
  chosen = NULL;
  tfc_step_profile_deinit(&m.recorded.profiles.data[0]);
  tfc_array_free(&m.recorded.profiles);
}

// The first device that computes with rounded numbers says how.
static void test_math(void **state) {
  (void)state;
  struct tfc_device device[3] = {{.info.math = ""}, {.info.math = "tf32"}, {.info.math = "bf16"}},
                    *devices[] = {&device[0], &device[1], &device[2]};
  struct run_setup setup = {.devices = {.devices = devices}};
  for (uint32_t count = 0; count < 4; count++) {
    setup.devices.count = count;
    if (count < 2)
      assert_null(run_math(&setup));
    else
      assert_string_equal(run_math(&setup), "tf32");
  }
}

// --- a run -----------------------------------------------------------------------------------------------------------

static char folder[64];
static int set_up(void **state) {
  (void)state;
  return test_folder_make(folder, "measured");
}
static int tear_down(void **state) {
  (void)state;
  return test_folder_remove(folder);
}
static double ask(sqlite3 *db, const char *sql) {
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK) fail_msg("%s: %s", sql, sqlite3_errmsg(db));
  assert_int_equal(sqlite3_step(q), SQLITE_ROW);
  const double value = sqlite3_column_type(q, 0) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(q, 0);
  sqlite3_finalize(q);
  return value;
}

// The graph computes the sum of a 4 x 3 by 3 x 2 product of ones, which is 24.
static const char graph[] =
    "node { name: 'a' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
    "shape { "
    "dim { size: 4 } dim { size: 3 } } } } }\n"
    "node { name: 'b' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
    "shape { "
    "dim { size: 3 } dim { size: 2 } } } } }\n"
    "node { name: 'product' op: 'MatMul' input: 'a' input: 'b' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "node { name: 'axes' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } } attr { key: 'value' value { tensor "
    "{ "
    "dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 0 int_val: 1 } } } }\n"
    "node { name: 'sum' op: 'Sum' input: 'product' input: 'axes' attr { key: 'T' value { type: DT_FLOAT } } attr { "
    "key: "
    "'Tidx' value { type: DT_INT32 } } }\n";

static void put_ones(const char *name, int64_t rows, int64_t columns) {
  struct tfc_tensor t = {0};
  char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_ok(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE(rows, columns), &t));
  for (int64_t i = 0; i < rows * columns; i++) ((float *)t.data)[i] = 1;
  assert_ok(tfc_npy_write(path, &t));
  tfc_tensor_release(&t);
}

static void test_run(void **state) {
  (void)state;
  char path[128];
  struct tfc_tensor written = {0};
  command_put(folder, "g.pbtxt", graph);
  put_ones("a.npy", 4, 3), put_ones("b.npy", 3, 2);
  const struct command_result *r =
      command("cd %s && tfc-run --graph g.pbtxt --fetch sum:0=sum.npy --feed a:0=a.npy --feed b:0=b.npy --steps 7 "
              "--warmup 2 --devices 1 --profile --db t.db --json",
              folder);
  assert_result(r, 0, "");
  json_t *document = json_loads(r->out, 0, NULL);
  assert_non_null(document);
  const json_t *step = json_object_get(document, "step");
  assert_int_equal(json_integer_value(json_object_get(step, "steps")), 7);
  assert_int_equal(json_integer_value(json_object_get(step, "warmup")), 2);
  assert_string_equal(json_string_value(json_object_get(step, "label")), "measured");
  static const char *const rising[] = {"q1_us", "median_us", "q3_us", "p95_us", "p99_us"};
  double last = 0;
  for (size_t i = 0; i < sizeof rising / sizeof *rising; i++) {
    const double us = json_real_value(json_object_get(step, rising[i]));
    assert_true(us > 0 && us >= last);
    last = us;
  }
  assert_true(json_real_value(json_object_get(step, "p50_us")) == json_real_value(json_object_get(step, "median_us")));
  assert_close(json_real_value(json_object_get(json_object_get(document, "fetched"), "sum:0")), 24);
  assert_int_equal(json_integer_value(json_object_get(document, "operations")), 2);
  assert_int_equal(json_integer_value(json_object_get(document, "transfers")), 0);
  assert_int_equal(json_integer_value(json_object_get(document, "run")), 1);
  assert_int_equal(json_array_size(json_object_get(document, "devices")), 1);
  const json_t *device = json_array_get(json_object_get(document, "devices"), 0);
  const json_int_t needs = json_integer_value(json_object_get(device, "step_bytes"));
  assert_true(needs >= 32 && needs <= json_integer_value(json_object_get(device, "peak_bytes")));
  snprintf(path, sizeof path, "%s/sum.npy", folder);
  assert_ok(tfc_npy_read(path, &written));
  assert_true(*(const float *)written.data == 24);
  tfc_tensor_release(&written);
  // The database. Peak memory is what the step needs, as in the database of tfc-place for the same placement, and not
  // what the process took.
  sqlite3 *db = NULL;
  assert_result(
      command("cd %s && tfc-place --graph g.pbtxt --fetch sum:0 --feed a:0=a.npy --feed b:0=b.npy --devices 1 "
              "--evaluate single:cpu:0 --time 5s --db place.db --report none --json",
              folder),
      0, "");
  snprintf(path, sizeof path, "%s/place.db", folder);
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_close(
      ask(db, "SELECT peak_bytes FROM v_memory JOIN v_run USING (run_id, placement_id) WHERE device = 'cpu:0'"),
      (double)needs);
  sqlite3_close(db);
  snprintf(path, sizeof path, "%s/t.db", folder);
  assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
  assert_close(ask(db, "SELECT COUNT(*) FROM v_step WHERE traced AND phase = 'profile'"), 7);
  assert_close(ask(db, "SELECT command LIKE '%tfc-run%--graph %.pb%--profile%' FROM v_run"), 1);
  assert_close(ask(db, "SELECT COUNT(DISTINCT step) FROM v_op"), 7);
  assert_close(ask(db, "SELECT COUNT(*) FROM v_op"), 14);
  assert_close(ask(db, "SELECT COUNT(*) FROM v_op_total WHERE samples = 7"), 2);
  assert_close(ask(db, "SELECT COUNT(*) FROM v_op_total t WHERE ABS(total_us - (SELECT SUM(duration_us) FROM v_op o "
                       "WHERE o.node_id = t.node_id)) < 1e-6 AND ABS(fastest_us - (SELECT MIN(duration_us) FROM v_op o "
                       "WHERE o.node_id = t.node_id)) < 1e-6 AND ABS(median_us - (SELECT duration_us FROM v_op o WHERE "
                       "o.node_id = t.node_id ORDER BY duration_us LIMIT 1 OFFSET 3)) < 1e-6"),
               2);
  // The product has 4 * 2 results of 3 multiplications and additions, and reads and writes 12 + 6 + 8 numbers.
  assert_close(ask(db, "SELECT flops FROM v_node WHERE name = 'product'"), 48);
  assert_close(ask(db, "SELECT bytes_touched FROM v_node WHERE name = 'product'"), 104);
  assert_close(ask(db, "SELECT output_bytes FROM v_node WHERE name = 'product'"), 32);
  assert_close(ask(db, "SELECT output_bytes FROM v_node WHERE name = 'sum'"), 4);
  assert_close(ask(db, "SELECT output_bytes FROM v_node WHERE name = 'a'"), 48);
  const double median = json_real_value(json_object_get(step, "median_us"));
  assert_true(fabs(ask(db, "SELECT step_median_us FROM v_result") - median) < 1e-3);
  assert_close(ask(db, "SELECT step_count FROM v_result"), 7);
  assert_close(ask(db, "SELECT peak_bytes FROM v_memory"), (double)needs);
  assert_close(ask(db, "SELECT complete FROM v_memory"), 1);
  assert_close(ask(db, "SELECT SUM(operations <> (SELECT COUNT(*) FROM v_op o WHERE o.step = b.step AND o.device_id ="
                       " b.device_id)) FROM v_busy b"),
               0);
  assert_close(ask(db, "SELECT state = 'done' FROM v_run"), 1);
  // Steps lie one behind the other, and operations within their steps.
  assert_close(ask(db,
                   "SELECT COUNT(*) FROM v_op o JOIN v_step s USING (run_id, placement_id, step) WHERE o.start_us < 0 "
                   "OR o.start_us + o.duration_us > s.step_us + 1e-6"),
               0);
  assert_close(ask(db,
                   "SELECT COUNT(*) FROM v_busy b JOIN v_step s USING (run_id, placement_id, step) WHERE b.busy_us > "
                   "s.step_us + 1e-6 OR b.busy_us <= 0"),
               0);
  assert_close(ask(db, "SELECT COUNT(*) FROM v_busy"), 7);
  assert_close(ask(db, "SELECT COUNT(*) FROM v_busy b WHERE b.busy_us < (SELECT SUM(duration_us) FROM v_op o WHERE "
                       "o.step = b.step AND o.device_id = b.device_id) - 1e-6"),
               0);
  sqlite3_close(db);
  json_decref(document);
}

// Without --profile: no database; as text.
static void test_text(void **state) {
  (void)state;
  command_put(folder, "g.pbtxt", graph);
  put_ones("a.npy", 4, 3), put_ones("b.npy", 3, 2);
  const struct command_result *r =
      command("cd %s && tfc-run --graph g.pbtxt --fetch sum:0 --fetch product:0 --feed a:0=a.npy --feed b:0=b.npy "
              "--steps 3 --devices 1 --db none.db",
              folder);
  assert_result(r, 0, "3 steps after ");
  assert_non_null(strstr(r->out, "sum:0 = 24\n"));
  assert_non_null(strstr(r->out, "product:0: float32[4,2]\n"));
  assert_non_null(strstr(r->out, ", 3 steps\na step: 2 operations, 0 transfers\n"));
  assert_null(strstr(r->out, "ran on the host")), assert_null(strstr(r->out, "timed by"));
  assert_null(strstr(r->out, "GPUs"));
  assert_int_equal(command("ls %s/none.db", folder)->code, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_quantiles),
                                     cmocka_unit_test(test_which_are_traced),
                                     cmocka_unit_test(test_cost_of_tracing),
                                     cmocka_unit_test(test_warmup),
                                     cmocka_unit_test(test_cost_of_fallbacks),
                                     cmocka_unit_test(test_fallbacks_are_listed),
                                     cmocka_unit_test(test_math),
                                     cmocka_unit_test(test_run),
                                     cmocka_unit_test(test_text)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
