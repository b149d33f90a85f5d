// Kernels that loop for ever by themselves end when the step is cancelled or its time is over: a loop of functions that
// are called as they are, and a dataset that drops elements without end.
#include "tests/common/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/base/clock.h"
#include "runtime/exec/session.h"
#include "runtime/graph/import.h"

#define ATTR(key, value) " attr { key: '" key "' value { " value " } }"
#define NUMBER(name, value)                                                                                            \
  "node { name: '" name "' op: 'Const'" ATTR("dtype", "type: DT_INT64")                                                \
      ATTR("value", "tensor { dtype: DT_INT64 tensor_shape { } int64_val: " value " }") " }\n"
#define KINDS ATTR("output_types", "list { type: DT_INT64 }") ATTR("output_shapes", "list { shape { } }")
// The condition is the value itself, which stays 1.
static const char text[] =
    "library { function { signature { name: 'same' input_arg { name: 'x' type: DT_INT64 } output_arg { name: 'y' type: "
    "DT_INT64 } } ret { key: 'y' value: 'x' } } }\n" NUMBER("one", "1") NUMBER("zero", "0") NUMBER("forever", "-1")
        NUMBER("many", "1000000000000000000") "node { name: 'loop' op: 'While' input: 'one'" ATTR(
            "cond", "func { name: 'same' }") ATTR("body", "func { name: 'same' }")
            ATTR("T",
                 "list { type: DT_INT64 }") " }\nnode { name: 'range' op: 'RangeDataset' input: 'zero' input: 'one' "
                                            "input: 'one'" KINDS " }\nnode { name: 'repeated' op: 'RepeatDataset' "
                                            "input: 'range' input: 'forever'" KINDS
                                            " }\nnode { name: 'dropped' op: 'SkipDataset' input: 'repeated' input: "
                                            "'many'" KINDS
                                            " }\nnode { name: 'iterator' op: 'IteratorV2'" ATTR("shared_name", "s: 'i'")
                                                ATTR("container", "s: ''") KINDS
    " }\nnode { name: 'begin' op: 'MakeIterator' input: 'dropped' input: 'iterator' }\n"
    "node { name: 'next' op: 'IteratorGetNext' input: 'iterator'" KINDS " }\n";

static struct tfc_device_set devices;
static struct tfc_graph *graph;
static struct tfc_session *session;

static tfc_status run(const char *name, const struct tfc_run_options *options) {
  uint32_t target = tfc_graph_find(graph, tfc_str_from(name));
  const struct tfc_run_spec spec = {.targets = &target, .target_count = 1};
  return tfc_session_run(session, &spec, NULL, NULL, options);
}

static void *cancel_later(void *flag) {
  tfc_sleep_ns(30000000);
  atomic_store((_Atomic bool *)flag, true);
  return NULL;
}

static void they_end(void **state) {
  (void)state;
  static const char *const names[] = {"loop", "next"};
  assert_ok(run("begin", NULL));
  for (int i = 0; i < 2; i++) {
    _Atomic bool cancel = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, &cancel), 0);
    tfc_status s = run(names[i], &(struct tfc_run_options){.cancel = &cancel});
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_fails(s, TFC_CANCELLED, "cancelled");
    char named[32];
    snprintf(named, sizeof named, "'%s' (", names[i]);
    assert_fails(run(names[i], &(struct tfc_run_options){.deadline_ns = 300000000}), TFC_DEADLINE_EXCEEDED, named);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(they_end)};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "interrupted.pbtxt", NULL, &graph));
  assert_ok(tfc_devices_open("cpu:0", NULL, 0, &devices));
  assert_ok(tfc_session_create(graph, &(struct tfc_session_options){.devices = &devices}, &session));
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  tfc_session_free(session);
  tfc_devices_close(&devices);
  tfc_graph_release(graph);
  return failed;
}
