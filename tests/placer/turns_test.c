// Tests how the worker measures entries in turns: it restores variables before each entry, interleaves blocks of steps
// in the right order, computes ratios from neighbouring blocks, stops entries that are far too slow, and divides the
// time of several steps in flight by their number. The graph counts its own steps and fails if there are too many. The
// test's own binary is the worker.
#include "tests/common/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "placer/measure/measure.h"
#include "placer/measure/worker.h"
#include "profiler/statistics.h"
#include "runtime/graph/import.h"

enum { MOST = 64, ENTRIES = 8, STEPS = 2048 };

// Each step adds one element of a table of 20 ones to "count", and the value of "count" selects the element: so the
// 21st step fails.
#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define TYPE(key, type) ATTR(key, "type: " type)
#define NODE(name, op, inputs, attrs) "node { name: '" name "' op: '" op "'" inputs attrs " }\n"
#define IN(name) " input: '" name "'"
#define CONST(name, type, value)                                                                                       \
  NODE(name, "Const", "", TYPE("dtype", type) ATTR("value", "tensor { dtype: " type " " value "}"))
#define NUMBER(name, value) CONST(name, "DT_INT32", "tensor_shape { } int_val: " value)
#define VECTOR(size) "tensor_shape { dim { size: " size " } } int_val: "
static const char text[] = NUMBER("zero", "0") NUMBER("axis", "0") CONST("table", "DT_INT32", VECTOR("20") "1") NODE(
    "count", "VarHandleOp", "", TYPE("dtype", "DT_INT32") ATTR("shape", "shape { }") ATTR("shared_name", "s: 'count'"))
    NODE("init", "AssignVariableOp", IN("count") IN("zero"), TYPE("dtype", "DT_INT32"))
        NODE("read", "ReadVariableOp", IN("count"), TYPE("dtype", "DT_INT32"))
            NODE("row", "GatherV2", IN("table") IN("read") IN("axis"),
                 TYPE("Tparams", "DT_INT32") TYPE("Tindices", "DT_INT32") TYPE("Taxis", "DT_INT32"))
                NODE("train", "AssignAddVariableOp", IN("count") IN("row"), TYPE("dtype", "DT_INT32"))
    // Work without a variable, for runs with many steps.
    NODE("half", "Placeholder", "", TYPE("dtype", "DT_FLOAT") ATTR("shape", "shape { }"))
        CONST("dims", "DT_INT32", VECTOR("2") "96")
            NODE("matrix", "Fill", IN("dims") IN("half"), TYPE("T", "DT_FLOAT") TYPE("index_type", "DT_INT32"))
                NODE("square", "MatMul", IN("matrix") IN("matrix"), TYPE("T", "DT_FLOAT"))
                    NODE("sum", "Sum", IN("square") IN("axis"), TYPE("T", "DT_FLOAT") TYPE("Tidx", "DT_INT32"));
enum { ROW = 6, SQUARE = 11 }; // the indices of these nodes in the list

struct timed {
  uint32_t entry;
  struct tfc_measured_step step;
};
struct seen {
  uint32_t count, total;
  struct timed all[STEPS]; // timed steps of all entries
  uint32_t timed[ENTRIES], steps[ENTRIES];
  tfc_result_state state[ENTRIES];
  double ratio[ENTRIES], seconds[ENTRIES];
  char message[ENTRIES][200];
};

static char graph_path[64], lock_path[64];
static float half = 0.5f;
static struct seen seen;
static uint16_t *first, *second, *mixed;

static tfc_status got(void *user, const struct tfc_measured *m) {
  struct seen *s = user;
  s->count++;
  s->state[m->entry] = m->state;
  s->ratio[m->entry] = m->ratio;
  s->seconds[m->entry] = m->seconds;
  s->steps[m->entry] = m->step_count;
  snprintf(s->message[m->entry], sizeof s->message[0], "%s", m->message ? m->message : "");
  for (uint32_t i = 0; i < m->step_count; i++) {
    if (m->steps[i].warmup || s->total == STEPS) continue;
    s->all[s->total++] = (struct timed){m->entry, m->steps[i]};
    s->timed[m->entry]++;
  }
  return NULL;
}

static int by_start(const void *a, const void *b) {
  const struct timed *x = a, *y = b;
  return (x->step.start_ns > y->step.start_ns) - (x->step.start_ns < y->step.start_ns);
}

static int set_up(void **state) {
  (void)state;
  snprintf(graph_path, sizeof graph_path, "/tmp/tfc-turns-test-%d.pbtxt", (int)getpid());
  snprintf(lock_path, sizeof lock_path, "/tmp/tfc-turns-test-%d.lock", (int)getpid());
  FILE *file = fopen(graph_path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file)) return -1;
  first = calloc(MOST, sizeof *first), second = calloc(MOST, sizeof *second), mixed = calloc(MOST, sizeof *mixed);
  for (int i = 0; i < MOST; i++) second[i] = 1;
  mixed[ROW] = mixed[SQUARE] = 1;
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  free(first), free(second), free(mixed);
  unlink(lock_path);
  return unlink(graph_path);
}

// Measures a batch, of steps that are counted (`counting`) or of steps without a limit on their number.
static void measure(bool counting, const struct tfc_memory_limit *limit, const struct tfc_measure_batch *batch) {
  struct tfc_measurer *m = NULL;
  struct tfc_tensor value = {TFC_FLOAT, TFC_SHAPE_SCALAR, &half, sizeof half, NULL};
  struct tfc_measure_feed feed = {TFC_STR("half:0"), &value};
  tfc_str fetch = TFC_STR("sum:0"), target = TFC_STR("train"), init = TFC_STR("init");
  struct tfc_measure_options options = {.graph = graph_path,
                                        .devices = "cpu:0-1",
                                        .execution = {.limits = limit, .limit_count = limit != NULL, .seed = 1},
                                        .feeds = &feed,
                                        .feed_count = counting ? 0 : 1,
                                        .fetches = &fetch,
                                        .fetch_count = counting ? 0 : 1,
                                        .targets = &target,
                                        .target_count = counting ? 1 : 0,
                                        .inits = &init,
                                        .init_count = 1,
                                        .hang_seconds = 60,
                                        .lock = lock_path};
  assert_ok(tfc_measurer_create(&options, &m));
  assert_true(tfc_measurer_info(m)->node_count <= MOST);
  seen = (struct seen){0};
  assert_ok(tfc_measurer_run(m, batch, got, &seen));
  assert_int_equal(seen.count, batch->count);
  assert_int_equal(tfc_measurer_restarts(m), 0);
  tfc_measurer_free(m);
  qsort(seen.all, seen.total, sizeof *seen.all, by_start);
}

// Each entry runs fewer than 20 steps, all together run more. No step goes beyond the table's end, because variables
// are restored before each entry.
static void test_variables_are_restored(void **state) {
  (void)state;
  for (int reference = 0; reference < 2; reference++) {
    struct tfc_measure_entry entries[] = {
        {.placement = first}, {.placement = second}, {.placement = mixed}, {.placement = first}, {.placement = second}};
    struct tfc_measure_batch batch = {.entries = entries,
                                      .count = 5,
                                      .reference = reference ? 4 : TFC_NONE,
                                      .warmup = 1,
                                      .settle = !reference,
                                      .block = reference ? 2 : 5,
                                      .blocks = 1,
                                      .trace = TFC_TRACE_MODE_NONE,
                                      .best_us = NAN};
    measure(true, NULL, &batch);
    uint32_t all = 0;
    for (int i = 0; i < 5; i++) {
      if (seen.state[i] != TFC_RESULT_OK) fail_msg("entry %d: %s", i, seen.message[i]);
      assert_true(seen.steps[i] <= 20);
      all += seen.steps[i];
    }
    assert_true(all > 20);
  }
}

// Checks that the graph does count: 21 steps of one entry fail.
static void test_the_graph_counts(void **state) {
  (void)state;
  struct tfc_measure_entry entry = {.placement = first};
  struct tfc_measure_batch batch = {.entries = &entry,
                                    .count = 1,
                                    .reference = TFC_NONE,
                                    .block = 21,
                                    .blocks = 1,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .best_us = NAN};
  measure(true, NULL, &batch);
  assert_int_equal(seen.state[0], TFC_RESULT_ILLEGAL);
}

// `expected`: the blocks in the order in which they were measured, each as the letter of its entry and the number of
// the block in that entry: "A0 B0 A1 ...".
static void assert_turns(const char *expected, uint32_t block) {
  char shown[512] = "";
  for (uint32_t i = 0; i < seen.total; i += block) {
    const struct timed *t = &seen.all[i];
    for (uint32_t k = 0; k < block; k++) {
      assert_true(i + k < seen.total);
      assert_int_equal(seen.all[i + k].entry, t->entry);
      assert_int_equal(seen.all[i + k].step.block, t->step.block);
    }
    size_t n = strlen(shown);
    snprintf(shown + n, sizeof shown - n, "%s%c%u", i ? " " : "", 'A' + (char)t->entry, t->step.block);
  }
  assert_string_equal(shown, expected);
}

static double block_us(uint32_t entry, uint32_t block) { // the median of a block
  double us[64];
  size_t n = 0;
  for (uint32_t i = 0; i < seen.total; i++)
    if (seen.all[i].entry == entry && seen.all[i].step.block == block)
      us[n++] = 1e-3 * (double)seen.all[i].step.duration_ns;
  for (size_t i = 1; i < n; i++)
    for (size_t k = i; k > 0 && us[k] < us[k - 1]; k--) {
      double x = us[k];
      us[k] = us[k - 1], us[k - 1] = x;
    }
  assert_true(n > 0);
  return n % 2 ? us[n / 2] : (us[n / 2 - 1] + us[n / 2]) / 2;
}

static void test_turns(void **state) {
  (void)state;
  struct tfc_measure_entry entries[] = {{.placement = first}, {.placement = second}, {.placement = mixed}};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 3,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 3,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .best_us = NAN};
  measure(false, NULL, &batch);
  assert_turns("A0 B0 C0 A1 B1 C1 A2 B2 C2", 5);
  for (int i = 0; i < 3; i++) assert_true(isnan(seen.ratio[i]));
  batch.reference = 1, batch.blocks = 2;
  measure(false, NULL, &batch);
  assert_turns("B0 A0 B1 A1 B2 C0 B3 C1 B4", 5);
  double a = block_us(0, 0) / ((block_us(1, 0) + block_us(1, 1)) / 2) +
             block_us(0, 1) / ((block_us(1, 1) + block_us(1, 2)) / 2);
  double c = block_us(2, 0) / ((block_us(1, 2) + block_us(1, 3)) / 2) +
             block_us(2, 1) / ((block_us(1, 3) + block_us(1, 4)) / 2);
  assert_true(fabs(seen.ratio[0] - a / 2) < 1e-9 * a);
  assert_true(fabs(seen.ratio[2] - c / 2) < 1e-9 * c);
  for (int i = 0; i < 3; i++) assert_int_equal(seen.state[i], TFC_RESULT_OK);
}

// The turns that choose come first. The turns after them measure the chosen entry and those that stay.
static void test_choosing(void **state) {
  (void)state;
  struct tfc_measure_entry entries[] = {{.placement = first, .answers = true},
                                        {.placement = second, .answers = true},
                                        {.placement = mixed, .stays = true}};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 3,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 3,
                                    .blocks = 2,
                                    .choose = 1,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .best_us = NAN};
  measure(false, NULL, &batch);
  // Of two that are as fast to the nanosecond, the first is chosen.
  assert_turns(block_us(0, 0) <= block_us(1, 0) ? "A0 B0 C0 A1 C1 A2 C2" : "A0 B0 C0 B1 C1 B2 C2", 3);
  for (int i = 0; i < 3; i++) assert_int_equal(seen.state[i], TFC_RESULT_OK);
  batch.choose = 3, batch.choose_until_s = 1e-3; // the time is over at once, so only one turn chooses
  batch.deadline_s = 1e-3;                       // and one turn, of two steps, measures the chosen entry
  measure(false, NULL, &batch);
  assert_int_equal(seen.timed[2], 4);
  assert_true(seen.timed[0] + seen.timed[1] == 6 && (seen.timed[0] == 4 || seen.timed[1] == 4));
  for (uint32_t i = 0; i < seen.total; i++) assert_true(seen.all[i].step.block == 0 || seen.all[i].step.block == 3);
}

static void test_traced_blocks(void **state) {
  (void)state;
  static const tfc_trace_mode modes[] = {TFC_TRACE_MODE_ALL, TFC_TRACE_MODE_ALTERNATE, TFC_TRACE_MODE_NONE};
  struct tfc_measure_entry entries[] = {{.placement = first}, {.placement = mixed}};
  for (int k = 0; k < 3; k++) {
    struct tfc_measure_batch batch = {.entries = entries,
                                      .count = 2,
                                      .reference = TFC_NONE,
                                      .warmup = 1,
                                      .block = 2,
                                      .blocks = 3,
                                      .trace = modes[k],
                                      .best_us = NAN};
    measure(false, NULL, &batch);
    assert_turns("A0 B0 A1 B1 A2 B2", 2);
    for (uint32_t i = 0; i < seen.total; i++) {
      bool wanted = k == 0 || (k == 1 && seen.all[i].step.block != 1);
      assert_int_equal(seen.all[i].step.traced, wanted);
    }
  }
}

// An entry whose steps take longer than stop_ratio times the best time is stopped after two timed steps. Best times of
// 1e-3 us and 1e12 us stand for "every step is longer" and "every step is shorter" on any machine.
static void test_hopeless_entries_are_stopped(void **state) {
  (void)state;
  struct tfc_measure_entry entries[] = {{.placement = first}, {.placement = second}};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 2,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 2,
                                    .stop_ratio = 1.5,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .best_us = 1e-3};
  measure(false, NULL, &batch);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(seen.state[i], TFC_RESULT_CUT);
    assert_int_equal(seen.timed[i], 2);
  }
  batch.reference = 0; // a reference is never stopped
  measure(false, NULL, &batch);
  assert_int_equal(seen.state[0], TFC_RESULT_OK);
  assert_int_equal(seen.state[1], TFC_RESULT_CUT);
  assert_int_equal(seen.timed[1], 2);
  double ratio = block_us(1, 0) / block_us(0, 0); // from the steps before the entry was stopped
  assert_true(fabs(seen.ratio[1] - ratio) < 1e-9 * ratio);
  // If the best time is 1e12 us, or not known, or the limit is 10,000 times the step time, no entry is stopped.
  const double lax[] = {1e12, NAN, block_us(0, 0)};
  batch.reference = TFC_NONE;
  for (int k = 0; k < 3; k++) {
    batch.best_us = lax[k], batch.stop_ratio = k == 2 ? 1e4 : 1.5;
    measure(false, NULL, &batch);
    for (int i = 0; i < 2; i++) {
      assert_int_equal(seen.state[i], TFC_RESULT_OK);
      assert_int_equal(seen.timed[i], 10);
    }
  }
}

// Steps end one after another. So the reported time of a step, times the number of steps, is the time that all of them
// took, which is the cost of the entry without planning and without filling the pipeline.
static void test_in_flight(void **state) {
  (void)state;
  enum { FLIGHT = 4, WINDOWS = 60 };
  struct tfc_measure_entry entry = {.placement = mixed, .in_flight = FLIGHT};
  struct tfc_measure_batch batch = {.entries = &entry,
                                    .count = 1,
                                    .reference = TFC_NONE,
                                    .block = WINDOWS,
                                    .blocks = 2,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .best_us = NAN};
  measure(false, NULL, &batch);
  if (seen.state[0] != TFC_RESULT_OK) fail_msg("%s", seen.message[0]);
  assert_int_equal(seen.timed[0], 2 * WINDOWS);
  double all = 0;
  for (uint32_t i = 0; i < seen.total; i++) all += 1e-9 * (double)seen.all[i].step.duration_ns * FLIGHT;
  print_message("%.4f s of %.4f s\n", all, seen.seconds[0]);
  assert_true(all <= seen.seconds[0] * (1 + 1e-6));
  assert_true(all > seen.seconds[0] * 0.3);
}

// The deadline has passed, so each entry has only one block, of two steps.
static void test_late(void **state) {
  (void)state;
  struct tfc_measure_entry entries[] = {{.placement = first}, {.placement = second}};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 2,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 5,
                                    .blocks = 3,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .best_us = NAN,
                                    .deadline_s = 1e-6};
  measure(false, NULL, &batch);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(seen.state[i], TFC_RESULT_OK);
    assert_int_equal(seen.timed[i], 2);
  }
  batch.reference = 0;
  measure(false, NULL, &batch);
  assert_int_equal(seen.timed[0], 2);
  assert_int_equal(seen.state[1], TFC_RESULT_CUT);
  assert_int_equal(seen.timed[1], 0);
  assert_string_equal(seen.message[1], "no time was left");
}

// Three matrices of 96 × 96 floats do not fit in 64 KiB, unless limits are ignored.
static void test_limits(void **state) {
  (void)state;
  struct tfc_memory_limit limit = {"cpu:0", 65536};
  struct tfc_measure_entry entries[] = {{.placement = first}, {.placement = second}};
  struct tfc_measure_batch batch = {.entries = entries,
                                    .count = 2,
                                    .reference = TFC_NONE,
                                    .warmup = 1,
                                    .block = 2,
                                    .blocks = 1,
                                    .trace = TFC_TRACE_MODE_NONE,
                                    .best_us = NAN};
  measure(false, &limit, &batch);
  assert_int_equal(seen.state[0], TFC_RESULT_NO_FIT);
  assert_non_null(strstr(seen.message[0], "cpu:0"));
  assert_int_equal(seen.timed[0], 0);
  assert_int_equal(seen.state[1], TFC_RESULT_OK);
}

// Links are timed with fewer steps and sizes when the time is over. Samples, sizes and times are those of real
// transfers.
static void test_links_in_time(void **state) {
  (void)state;
  struct tfc_measurer *m = NULL;
  struct tfc_tensor value = {TFC_FLOAT, TFC_SHAPE_SCALAR, &half, sizeof half, NULL};
  struct tfc_measure_feed feed = {TFC_STR("half:0"), &value};
  tfc_str fetch = TFC_STR("sum:0");
  struct tfc_measure_options options = {.graph = graph_path,
                                        .devices = "cpu:0-1",
                                        .feeds = &feed,
                                        .feed_count = 1,
                                        .fetches = &fetch,
                                        .fetch_count = 1,
                                        .hang_seconds = 60,
                                        .lock = lock_path};
  uint64_t samples[2] = {0};
  assert_ok(tfc_measurer_create(&options, &m));
#ifdef TFC_SANITIZED
  enum { FIRST = 1 }; // large tensors take half a minute there
#else
  enum { FIRST = 0 };
#endif
  for (int over = FIRST; over < 2; over++) {
    struct tfc_link_time *times = NULL;
    uint32_t count = 0;
    assert_ok(tfc_measurer_links(m, over ? 1e-6 : 0, &times, &count));
    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i++) {
      samples[over] += times[i].samples;
      assert_true(times[i].source < 2 && times[i].target < 2 && times[i].source != times[i].target);
      assert_true(times[i].samples > 0 && times[i].time_us >= 0);
    }
    free(times);
  }
  assert_true(FIRST || samples[1] < samples[0]);
  tfc_measurer_free(m);
}

int main(int argc, char **argv) {
  if (tfc_measure_is_worker(argc, argv)) return tfc_measure_worker_main(argc, argv);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_graph_counts),
      cmocka_unit_test(test_variables_are_restored),
      cmocka_unit_test(test_turns),
      cmocka_unit_test(test_choosing),
      cmocka_unit_test(test_traced_blocks),
      cmocka_unit_test(test_in_flight),
      cmocka_unit_test(test_hopeless_entries_are_stopped),
      cmocka_unit_test(test_late),
      cmocka_unit_test(test_links_in_time),
      cmocka_unit_test(test_limits),
  };
  return cmocka_run_group_tests_name("turns", tests, set_up, tear_down);
}
