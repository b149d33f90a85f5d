// Tests what placing over several tasks needs: sending numbers to task 0, timing links between tasks, the machine that
// consists of all tasks' devices, device strings that name tasks, and steps of a placement. Tasks are threads of this
// process.
#include "tests/common/cluster.h"
#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/subject/subject.h"
#include "placer/tasks/exchange.h"
#include "placer/tasks/machine.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/export.h"
#include "tests/placer/links.h"

#define WRONG(...) return tfc_status_make(TFC_INTERNAL, __VA_ARGS__)

struct shared {
  const struct tfc_cluster_spec *spec;
  struct tfc_machine *machine;
  struct tfc_task_link links[16];
  uint32_t link_count;
};

static tfc_status exchange(struct tfc_member *member, void *arg) {
  const struct shared *x = arg;
  enum { COUNT = 1000 };
  const uint32_t rank = tfc_member_rank(member);
  double numbers[COUNT];
  for (uint32_t i = 0; i < COUNT; i++) numbers[i] = i % 7 ? 1e3 * rank + i : (double)NAN;
  if (rank) TFC_RETURN_IF_ERROR(tfc_task_give(member, x->spec, numbers, COUNT));
  TFC_RETURN_IF_ERROR(tfc_member_barrier(member, "given", NULL));
  for (uint32_t r = 1; rank == 0 && r < 3; r++) {
    TFC_RETURN_IF_ERROR(tfc_task_take(member, x->spec, r, COUNT, numbers));
    for (uint32_t i = 0; i < COUNT; i++)
      if (i % 7 ? numbers[i] != 1e3 * r + i : !isnan(numbers[i])) WRONG("number %u of task %u is %g", i, r, numbers[i]);
    tfc_status fewer = tfc_task_take(member, x->spec, r, COUNT - 1, numbers);
    if (!fewer) WRONG("another count was taken");
    tfc_status_free(fewer);
  }
  return NULL;
}

static tfc_status measure(struct tfc_member *member, void *arg) {
  struct shared *x = arg;
  if (tfc_member_rank(member)) return NULL;
  // the time is over at once, so it takes few steps
  TFC_RETURN_IF_ERROR(tfc_task_links(member, x->spec, 1e-9, x->links, &x->link_count));
  tfc_status none = tfc_task_machine(member, x->spec, "/job:worker/task:*/device:CPU:1", NULL, 0, &x->machine);
  if (tfc_status_code(none) != TFC_UNAVAILABLE) WRONG("a device that is not there");
  tfc_status_free(none);
  TFC_RETURN_IF_ERROR(
      tfc_task_machine(member, x->spec, "/job:worker/task:*/device:CPU:*", x->links, x->link_count, &x->machine));
  struct tfc_task_device where[4];
  TFC_RETURN_IF_ERROR(tfc_task_devices(member, x->spec, x->machine, where));
  if (where[0].rank != 1 || where[1].rank != 2 || where[1].number != 0) WRONG("devices of other tasks");
  return NULL;
}

static void run(const char *cluster, tfc_status (*script)(struct tfc_member *member, void *arg), struct shared *x) {
  struct tfc_cluster_spec spec = {0};
  struct tfc_test_job job = {.cluster = cluster, .script = script, .arg = x};
  assert_ok(tfc_cluster_spec_parse(tfc_str_from(cluster), &spec));
  x->spec = &spec;
  tfc_test_job_succeed(&job);
  tfc_cluster_spec_deinit(&spec);
}

static void test_exchange(void **state) {
  (void)state;
  struct shared x = {0};
  run("worker=3", exchange, &x);
}

static void test_machine(void **state) {
  (void)state;
  struct shared x = {0};
  uint32_t device;
  run("ps=1,worker=2", measure, &x);
  assert_int_equal(x.link_count, 3); // every pair of tasks has a link
  for (uint32_t i = 0; i < 3; i++) {
    assert_true(x.links[i].a < x.links[i].b);
    for (int k = 1; k < TFC_TASK_LINK_SIZES; k++) {
      assert_true(x.links[i].point[k].bytes > x.links[i].point[k - 1].bytes);
      assert_true(x.links[i].point[k].time_us >= x.links[i].point[k - 1].time_us);
    }
  }
  const struct tfc_machine *m = x.machine;
  assert_int_equal(m->device_count, 2); // the devices of the workers
  assert_true(tfc_str_is(m->devices[0].name, "/job:worker/task:0/device:CPU:0"));
  assert_true(tfc_str_is(m->devices[1].tensorflow, "/job:worker/task:1/device:CPU:0"));
  assert_true(tfc_str_equal(m->devices[0].kind, m->devices[1].kind) && m->devices[0].kind.size > 4);
  assert_true(m->devices[0].host.size > 0);
  const struct tfc_link *l = link_between(m, 0, 1);
  assert_int_equal(l->curve_count, TFC_TASK_LINK_SIZES);
  assert_true(l->curve[3].time_us == x.links[2].point[3].time_us); // the link between ranks 1 and 2
  assert_true(l->wake_us == x.links[2].wake_us);
  // A string that names a task stands for one of that task's devices; other strings are mapped as without tasks.
  assert_ok(tfc_subject_string(m, TFC_STR("/job:worker/task:1/device:CPU:0"), &device, NULL));
  assert_int_equal(device, 1);
  assert_ok(tfc_subject_string(m, TFC_STR("/job:worker/task:1"), &device, NULL));
  assert_int_equal(device, 1);
  assert_ok(tfc_subject_string(m, TFC_STR("/job:ps/task:0"), &device, NULL));
  assert_int_equal(device, TFC_NONE);
  assert_ok(tfc_subject_string(m, TFC_STR("/device:GPU:1"), &device, NULL));
  assert_int_equal(device, 1);
  tfc_machine_free(x.machine);
}

// The graph gets new device strings and is cut by them: the task that they name computes the sum.
static tfc_status placed(struct tfc_member *member, void *arg) {
  (void)arg;
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_cluster_session *session = NULL;
  struct tfc_tensor value = {0};
  if (tfc_member_rank(member)) return NULL;
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  tfc_builder_set_device(b, TFC_STR("/job:nowhere/task:7"));
  const struct tfc_output one = tfc_add_scalar(b, TFC_FLOAT, 1), two = tfc_add2(b, "AddV2", one, one);
  TFC_TRY(s, tfc_builder_finish(b, &g));
  tfc_status lost = tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session);
  if (tfc_status_code(lost) != TFC_UNAVAILABLE) TFC_FAIL(s, TFC_INTERNAL, "a task that is not there");
  tfc_status_free(lost);
  tfc_str device[8];
  for (uint32_t i = 0; i < g->node_count; i++) device[i] = TFC_STR("/job:worker/task:1/device:CPU:0");
  TFC_TRY(s, tfc_graph_set_devices(g, device));
  for (int i = 0; i < 20; i++) { // opens and closes sessions many times
    TFC_TRY(s, tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session));
    const struct tfc_run_spec run = {.fetches = &two, .fetch_count = 1};
    TFC_TRY(s, tfc_cluster_session_run(session, &run, NULL, &value, NULL));
    if (*(const float *)value.data != 2) TFC_FAIL(s, TFC_INTERNAL, "1 + 1 = %g", (double)*(const float *)value.data);
    tfc_tensor_release(&value);
    tfc_cluster_session_free(session);
    session = NULL;
  }
out:
  tfc_tensor_release(&value);
  tfc_cluster_session_free(session);
  tfc_graph_release(g);
  tfc_builder_free(b);
  return s;
}

static void test_placed(void **state) {
  (void)state;
  struct shared x = {0};
  run("worker=2", placed, &x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exchange),
      cmocka_unit_test(test_machine),
      cmocka_unit_test(test_placed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
