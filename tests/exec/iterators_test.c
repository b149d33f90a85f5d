// Tests iterators over datasets from step to step: they end; they start again when a session is restored and, in
// measured steps, also when they end.
#include "tests/common/test.h"

#include "runtime/exec/session.h"
#include "runtime/graph/import.h"
#include "runtime/ops/data_iterator.h"

#define NUMBER(name, value)                                                                                            \
  "node_def { name: '" name "' op: 'Const' attr { key: 'dtype' value { type: DT_INT64 } } attr { key: 'value' value "  \
  "{ tensor { dtype: DT_INT64 tensor_shape { } int64_val: " value " } } } } "
#define KINDS                                                                                                          \
  "attr { key: 'output_types' value { list { type: DT_INT64 } } } attr { key: 'output_shapes' value { list { shape { " \
  "} } } } "
#define FACTORY(name, stop)                                                                                            \
  "library { function { signature { name: '" name "' output_arg { name: 'y' type: DT_VARIANT } } " NUMBER("a", "0")    \
      NUMBER("b", stop) NUMBER("c", "1") "node_def { name: 'range' op: 'RangeDataset' input: 'a:output:0' "            \
                                         "input: 'b:output:0' input: 'c:output:0' " KINDS                              \
                                         "} ret { key: 'y' value: 'range:handle:0' } } }\n"
#define ITERATOR(name, factory)                                                                                        \
  "node { name: '" name "' op: 'OneShotIterator' attr { key: 'dataset_factory' value { func { name: '" factory         \
  "' } } } " KINDS "}\n node { name: '" name "_next' op: 'IteratorGetNext' input: '" name "' " KINDS "}\n"
static const char text[] = FACTORY("three", "3") FACTORY("none", "0") ITERATOR("some", "three") ITERATOR("no", "none");

static struct tfc_device_set devices;
static struct tfc_graph *graph;
static struct tfc_session *session;

// Returns the next element, or -1 at the end.
static int64_t next(const char *name) {
  struct tfc_output fetch = {tfc_graph_find(graph, tfc_str_from(name)), 0};
  struct tfc_tensor got = {0};
  struct tfc_run_spec spec = {.fetches = &fetch, .fetch_count = 1};
  tfc_status s = tfc_session_run(session, &spec, NULL, &got, NULL);
  int64_t value = s ? -1 : *(const int64_t *)got.data;
  if (s) assert_int_equal(tfc_status_code(s), TFC_OUT_OF_RANGE);
  tfc_status_free(s);
  tfc_tensor_release(&got);
  return value;
}

static void they_begin_again(void **state) {
  (void)state;
  struct tfc_snapshot *snapshot = NULL;
  for (int64_t i = 0; i < 3; i++) assert_int_equal(next("some_next"), i);
  assert_int_equal(next("some_next"), -1);
  assert_int_equal(next("some_next"), -1);
  assert_ok(tfc_session_snapshot(session, &snapshot));
  assert_ok(tfc_session_restore(session, snapshot));
  assert_int_equal(next("some_next"), 0);
  assert_int_equal(next("some_next"), 1);
  assert_ok(tfc_session_restore(session, snapshot));
  assert_int_equal(next("some_next"), 0);
  tfc_snapshot_free(snapshot);
}

static void at_their_end_where_steps_are_measured(void **state) {
  (void)state;
  tfc_iterators_repeat(); // has effect until the process ends
  while (next("some_next") != 2) {
  }
  for (int64_t i = 0; i < 7; i++) assert_int_equal(next("some_next"), i % 3);
  assert_int_equal(next("no_next"), -1); // repeating an empty dataset must not run without end
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(they_begin_again),
                                     cmocka_unit_test(at_their_end_where_steps_are_measured)};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "iterators.pbtxt", NULL, &graph));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &devices));
  struct tfc_session_options options = {.devices = &devices};
  assert_ok(tfc_session_create(graph, &options, &session));
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_session_free(session);
  tfc_devices_close(&devices);
  tfc_graph_release(graph);
  return failed;
}
