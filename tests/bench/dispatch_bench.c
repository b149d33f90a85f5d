// Measures how long running an operation takes in addition to its work, with scalar additions in a chain and in a fan,
// and with iterations of a loop with a counter. The inputs are fed, rewrites are off, and the one device has one core
// (bind the process to one).
//
//   dispatch_bench [OPS]      default 1000 operations; one line of JSON: nanoseconds each, medians of 200 steps
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/exec/session.h"
#include "runtime/graph/builder.h"

enum { STEPS = 200, ITERATIONS = 5000 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static struct tfc_output enter(struct tfc_builder *b, struct tfc_output x, bool constant) {
  struct tfc_attr attrs[] = {tfc_attr_string("frame_name", TFC_STR("count")), tfc_attr_bool("is_constant", constant),
                             tfc_attr_int("parallel_iterations", 10)};
  return tfc_add(b, "Enter", NULL, &x, 1, attrs, 3);
}

// Returns the median wall time of the run call in nanoseconds, and in `out_ops` the number of operations that the plan
// runs.
static tfc_status measure(struct tfc_builder *b, struct tfc_output x, struct tfc_output fetch, uint32_t target,
                          int steps, double *out_ns, uint32_t *out_ops) {
  tfc_status s = NULL;
  struct tfc_graph *g = NULL;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor value = {0}, got = {0};
  static double times[STEPS];
  struct tfc_run_spec spec = {.feeds = &x, .feed_count = 1, .feed_shapes = &TFC_SHAPE_SCALAR};
  if (target == TFC_NONE)
    spec.fetches = &fetch, spec.fetch_count = 1;
  else
    spec.targets = &target, spec.target_count = 1;
  TFC_TRY(s, tfc_builder_finish(b, &g));
  TFC_TRY(s, tfc_tensor_create(tfc_output_dtype(g, x), &TFC_SHAPE_SCALAR, &value));
  memset(value.data, 0, value.size);
  TFC_TRY(s, tfc_devices_open("1", NULL, 0, &set));
  TFC_TRY(s, tfc_session_create(g, &(struct tfc_session_options){.devices = &set, .no_rewrites = true}, &session));
  TFC_TRY(s, tfc_plan_create(session, &spec, &plan));
  for (int i = -steps / 10; i < steps; i++) {
    int64_t begin = tfc_now_ns();
    TFC_TRY(s, tfc_plan_run(plan, &value, &got, NULL));
    if (i >= 0) times[i] = (double)(tfc_now_ns() - begin);
    tfc_tensor_release(&got);
  }
  qsort(times, (size_t)steps, sizeof *times, ascending);
  *out_ns = times[steps / 2];
  *out_ops = tfc_plan_info(plan)->op_count;
out:
  tfc_tensor_release(&value);
  tfc_plan_free(plan);
  tfc_session_free(session);
  tfc_devices_close(&set);
  tfc_graph_release(g);
  return s;
}

int main(int argc, char **argv) {
  long ops = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
  if (ops < 1 || ops > 100000) {
    fprintf(stderr, "dispatch_bench [OPS]\n");
    return 2;
  }
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  struct tfc_output x, y;
  double chain, fan, loop, empty;
  uint32_t chain_ops, fan_ops, loop_ops, empty_ops;
  uint32_t *all = calloc((size_t)ops, sizeof *all);
  if (!all) abort();
  // a graph of one operation shows how long a step takes by itself
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE_SCALAR);
  y = tfc_add2(b, "AddV2", x, x);
  TFC_TRY(s, measure(b, x, y, TFC_NONE, STEPS, &empty, &empty_ops));
  tfc_builder_free(b), b = NULL;
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  y = x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE_SCALAR);
  for (long i = 0; i < ops; i++) y = tfc_add2(b, "AddV2", y, x);
  TFC_TRY(s, measure(b, x, y, TFC_NONE, STEPS, &chain, &chain_ops));
  tfc_builder_free(b), b = NULL;
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE_SCALAR);
  for (long i = 0; i < ops; i++) all[i] = tfc_add2(b, "AddV2", x, x).node;
  uint32_t join = tfc_builder_add(
      b, &(struct tfc_node_spec){.op = "NoOp", .name = "join", .controls = all, .control_count = (uint32_t)ops});
  TFC_TRY(s, measure(b, x, (struct tfc_output){0}, join, STEPS, &fan, &fan_ops));
  tfc_builder_free(b), b = NULL;
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  x = tfc_add_placeholder(b, "x", TFC_INT32, &TFC_SHAPE_SCALAR);
  struct tfc_output first = enter(b, x, false), most = enter(b, tfc_add_i32(b, ITERATIONS), true);
  struct tfc_output one = enter(b, tfc_add_i32(b, 1), true), merge = tfc_add2(b, "Merge", first, first);
  struct tfc_output go = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", merge, most));
  struct tfc_output way = tfc_add2(b, "Switch", merge, go), leave = tfc_add1(b, "Exit", way);
  way.index = 1;
  tfc_builder_set_input(b, merge.node, 1, tfc_add1(b, "NextIteration", tfc_add2(b, "AddV2", way, one)));
  TFC_TRY(s, measure(b, x, leave, TFC_NONE, 20, &loop, &loop_ops));
  printf("{\"chain_ns\": %.1f, \"fan_ns\": %.1f, \"iteration_ns\": %.1f, \"step_ns\": %.0f, \"chain_ops\": %u, "
         "\"fan_ops\": %u}\n",
         chain / (double)ops, fan / (double)ops, loop / ITERATIONS, empty, chain_ops, fan_ops);
out:
  if (s) fprintf(stderr, "dispatch_bench: %s\n", tfc_status_message(s));
  tfc_builder_free(b);
  free(all);
  return s ? 1 : 0;
}
