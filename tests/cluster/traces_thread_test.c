// Traced steps of two clients at once: which operations ran in which task, and which tensors came to it. A loop gets
// room for all its records. Texts that make no sense are errors.
#include "tests/common/cluster.h"
#include "tests/common/test.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/cluster/cut.h"
#include "runtime/cluster/traces.h"
#include "runtime/graph/import.h"

#define ATTR(key, value) " attr { key: \"" key "\" value { " value " } }"
#define NODE(name, op, job, task, rest)                                                                                \
  "node { name: \"" name "\" op: \"" op "\" device: \"/job:" job "/task:" task "\"" rest " }\n"
// x is made on worker 0, its square on the ps, and the root of that on worker 1.
static const char text[] =
    NODE("shape", "Const", "worker", "0",
         ATTR("dtype", "type: DT_INT32")
             ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } int_val: 25 }"))
        NODE("x", "RandomUniform", "worker", "0",
             " input: \"shape\"" ATTR("dtype", "type: DT_FLOAT") ATTR("T", "type: DT_INT32"))
            NODE("square", "Square", "ps", "0", " input: \"x\"" ATTR("T", "type: DT_FLOAT"))
                NODE("root", "Sqrt", "worker", "1", " input: \"square\"" ATTR("T", "type: DT_FLOAT"));

// Times of operations are converted from ticks, so that beside the clock they are good only to a microsecond; a
// processor that is taken away between two readings of clocks makes them worse.
enum { CLOCKS_NS = 20000 };
static bool in_step(const struct tfc_cluster_trace *t, int64_t begin_ns, int64_t end_ns) {
  return t->begin_ns - CLOCKS_NS <= begin_ns && begin_ns <= end_ns && end_ns <= t->end_ns + CLOCKS_NS;
}

static tfc_status trace(struct tfc_member *member, void *arg) {
  tfc_status s = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_cluster_session *session = NULL;
  struct tfc_cluster_trace t = {0};
  struct tfc_tensor result = {0};
  struct tfc_output fetch;
  const double rate = tfc_ns_per_tick();
  (void)arg;
  TFC_TRY(s, tfc_graph_parse(tfc_str_from(text), "graph", NULL, &g));
  TFC_TRY(s, tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session));
  TFC_TRY(s, tfc_graph_parse_output(g, TFC_STR("root"), &fetch));
  const struct tfc_run_spec spec = {.fetches = &fetch, .fetch_count = 1};
  for (int i = 0; i < 20; i++) {
    if (i % 4 == 3) { // in between, steps that are not traced
      TFC_TRY(s, tfc_cluster_session_run(session, &spec, NULL, &result, NULL));
      tfc_tensor_release(&result);
      continue;
    }
    TFC_TRY(s, tfc_cluster_session_run_traced(session, &spec, NULL, &result, NULL, &t));
    tfc_tensor_release(&result);
    WANT(t.ops.count == 3 && t.transfers.count == 2 && !t.lost && t.begin_ns < t.end_ns);
    const uint32_t ranks[] = {1, 0, 2};
    static const char *const names[] = {"x", "square", "root"};
    for (uint32_t k = 0; k < 3; k++) {
      const struct tfc_cluster_op *op = NULL;
      for (uint32_t o = 0; o < 3; o++)
        if (tfc_str_is(g->nodes[t.ops.data[o].node].name, names[k])) op = &t.ops.data[o];
      WANT(op && op->rank == ranks[k] && op->device == 0);
      WANT(in_step(&t, op->begin_ns, op->end_ns));
    }
    for (uint32_t k = 0; k < 2; k++) {
      const struct tfc_cluster_transfer *x = &t.transfers.data[k];
      const bool first = tfc_str_is(g->nodes[x->tensor.node].name, "x");
      WANT(first || tfc_str_is(g->nodes[x->tensor.node].name, "square"));
      WANT(x->bytes == 100 && x->from == (first ? 1u : 0u) && x->to == (first ? 0u : 2u));
      WANT(in_step(&t, x->begin_ns, x->end_ns));
    }
    WANT(!t.clock_off_ns); // all tasks have one clock
    tfc_cluster_trace_deinit(&t);
  }
  WANT(tfc_ns_per_tick() != rate); // the rate of ticks was measured again, over a longer time
out:
  tfc_tensor_release(&result);
  tfc_cluster_trace_deinit(&t);
  tfc_cluster_session_free(session);
  tfc_graph_release(g);
  return s;
}
static void traced_steps(void **state) {
  (void)state;
  tfc_test_job_succeed(&(struct tfc_test_job){.cluster = "ps=1,worker=2", .script = trace, .serves = "ps"});
}

// 2,000 iterations on the ps, far more than the nodes of its part.
#define INT(name, value)                                                                                               \
  NODE(name, "Const", "ps", "0",                                                                                       \
       ATTR("dtype", "type: DT_INT32")                                                                                 \
           ATTR("value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: " value " }"))
#define IN(op, name, inputs, more) NODE(name, op, "ps", "0", inputs ATTR("T", "type: DT_INT32") more)
#define ENTER(name, input, constant)                                                                                   \
  IN("Enter", name, " input: \"" input "\"", ATTR("frame_name", "s: \"loop\"") ATTR("is_constant", "b: " constant))
static const char loop[] =
    INT("zero", "0") INT("limit", "2000") INT("one", "1") ENTER("i", "zero", "false") ENTER("most", "limit", "true")
        ENTER("step", "one", "true") IN("Merge", "merge", " input: \"i\" input: \"next\"", ATTR("N", "i: 2"))
            IN("Less", "less", " input: \"merge\" input: \"most\"", "")
                NODE("cond", "LoopCond", "ps", "0", " input: \"less\"")
                    IN("Switch", "switch", " input: \"merge\" input: \"cond\"", "")
                        IN("AddV2", "body", " input: \"switch:1\" input: \"step\"", "")
                            IN("NextIteration", "next", " input: \"body\"", "")
                                IN("Exit", "exit", " input: \"switch\"", "");

static tfc_status trace_loop(struct tfc_member *member, void *arg) {
  tfc_status s = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_cluster_session *session = NULL;
  struct tfc_cluster_trace t = {0};
  struct tfc_tensor result = {0};
  struct tfc_output fetch;
  (void)arg;
  TFC_TRY(s, tfc_graph_parse(tfc_str_from(loop), "graph", NULL, &g));
  TFC_TRY(s, tfc_cluster_session_create(member, g, &(struct tfc_execution){0}, &session));
  TFC_TRY(s, tfc_graph_parse_output(g, TFC_STR("exit"), &fetch));
  const struct tfc_run_spec spec = {.fetches = &fetch, .fetch_count = 1};
  for (int i = 0; i < 3; i++) {
    size_t bodies = 0;
    TFC_TRY(s, tfc_cluster_session_run_traced(session, &spec, NULL, &result, NULL, &t));
    WANT(*(const int32_t *)result.data == 2000);
    tfc_tensor_release(&result);
    for (uint32_t o = 0; o < t.ops.count; o++) bodies += tfc_str_is(g->nodes[t.ops.data[o].node].name, "body");
    WANT(i ? !t.lost && bodies == 2000 : t.lost && bodies < 2000);
    tfc_cluster_trace_deinit(&t);
  }
out:
  tfc_tensor_release(&result);
  tfc_cluster_trace_deinit(&t);
  tfc_cluster_session_free(session);
  tfc_graph_release(g);
  return s;
}
static void traced_loop(void **state) {
  (void)state;
  tfc_test_job_succeed(&(struct tfc_test_job){.cluster = "ps=1,worker=2", .script = trace_loop, .serves = "ps"});
}

// What a device says of itself comes to the other tasks as it is.
#define XEON "Intel(R) Xeon(R) CPU, 8 cores), cpu:1 (E5-2680 v4 @ 2.40GHz"
static tfc_status look_at_devices(struct tfc_member *member, void *arg) {
  tfc_status s = NULL;
  struct tfc_text shown = {0};
  (void)arg;
  for (uint32_t r = 0; r < 3; r++) {
    WANT(tfc_member_device_count(member, r) == 1);
    const struct tfc_device_info *i = tfc_member_device(member, r, 0);
    WANT(!strcmp(i->model, XEON) && !strcmp(i->label, "virtual") && !strcmp(i->name, "cpu:0") && i->cores > 0);
  }
  tfc_member_show_devices(member, 0, &shown);
  WANT(!shown.failed && tfc_str_starts((tfc_str){shown.data, shown.size}, "cpu:0 (" XEON ", "));
out:
  tfc_text_deinit(&shown);
  return s;
}
static void devices(void **state) {
  (void)state;
  tfc_test_job_succeed(
      &(struct tfc_test_job){.cluster = "ps=1,worker=2", .script = look_at_devices, .model = XEON, .label = "virtual"});
}

static void broken_texts(void **state) {
  (void)state;
  static const char *const bad[] = {"part\tx\t2\t0\n",
                                    "part\t1\n",
                                    "op\t1\t2\t-1\tsquare\n",
                                    "op\t\t2\t0\tsquare\n",
                                    "tensor\t1\t2\t9\t4\n",
                                    "tensor\t1\t2\t4294967295\t4\n",
                                    "tensor\t1\t2\t99999999999999999999\t4\n"};
  struct tfc_graph *g = NULL;
  struct tfc_cluster_spec spec = {0};
  struct tfc_cut cut = {0};
  int64_t offsets[3] = {0};
  struct tfc_cluster_trace t = {0};
  assert_ok(tfc_graph_parse(tfc_str_from(text), "graph", NULL, &g));
  assert_ok(tfc_cluster_spec_parse(TFC_STR("ps=1,worker=2"), &spec));
  assert_ok(tfc_cut_make(g, &spec, 1, &cut));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    tfc_status s = tfc_cluster_trace_add(&t, &cut, 0, tfc_str_from(bad[i]), NULL, offsets);
    if (!s) s = tfc_cluster_trace_add_arrivals(&t, &cut, 0, tfc_str_from(bad[i]), offsets);
    assert_int_equal(tfc_status_code(s), TFC_INVALID_ARGUMENT);
    tfc_status_free(s);
  }
  // A tensor of an edge to another task; and nodes that only the part has are skipped.
  for (uint32_t e = 0; e < cut.edges.count; e++) {
    char line[64];
    snprintf(line, sizeof line, "tensor\t1\t2\t%u\t4\n", e);
    tfc_status s = tfc_cluster_trace_add_arrivals(&t, &cut, 1, tfc_str_from(line), offsets);
    assert_int_equal(tfc_status_code(s), TFC_INVALID_ARGUMENT); // no tensor goes to worker 0
    tfc_status_free(s);
  }
  assert_ok(tfc_cluster_trace_add(&t, &cut, 0, TFC_STR("part\t5\t6\t7\nop\t1\t2\t0\t_send_0\n"), NULL, offsets));
  assert_true(t.lost == 7 && t.ops.count == 0 && offsets[0] == 0);
  assert_int_equal(t.clock_off_ns, 0);
  // The clock of another host is ahead by 1000, and both ways took 10. That the step began earlier and ended later,
  // with parts of other tasks, does not matter.
  t.begin_ns = 50, t.end_ns = 900;
  const struct tfc_round_trip trip = {100, 200};
  assert_ok(
      tfc_cluster_trace_add(&t, &cut, 2, TFC_STR("part\t1110\t1190\t0\nop\t1120\t1130\t0\troot\n"), &trip, offsets));
  assert_true(offsets[2] == 1000 && t.ops.count == 1 && t.ops.data[0].begin_ns == 120);
  assert_int_equal(t.clock_off_ns, 10); // one way may have taken all of the 20
  tfc_cluster_trace_deinit(&t);
  tfc_cut_deinit(&cut);
  tfc_cluster_spec_deinit(&spec);
  tfc_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(traced_steps), cmocka_unit_test(traced_loop),
                                     cmocka_unit_test(devices), cmocka_unit_test(broken_texts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
