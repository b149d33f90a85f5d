#include "tests/common/spread_loop.h"

#include "profiler/collector.h"
#include "runtime/graph/builder.h"
#include "tests/common/test.h"

static struct tfc_output on(struct spread_loop *l, uint16_t device, struct tfc_output o) {
  l->placement[o.node] = device;
  return o;
}

static struct tfc_output enter(struct tfc_builder *b, struct tfc_output x, bool constant) {
  struct tfc_attr attrs[] = {tfc_attr_string("frame_name", TFC_STR("spread")), tfc_attr_bool("is_constant", constant)};
  return tfc_add(b, "Enter", NULL, &x, 1, attrs, 2);
}

static struct tfc_output merge(struct tfc_builder *b, struct tfc_output x) {
  struct tfc_output entered = enter(b, x, false);
  return tfc_add2(b, "Merge", entered, entered); // the second input is replaced when the back edge exists
}

static void back(struct tfc_builder *b, struct tfc_output at, struct tfc_output from) {
  tfc_builder_set_input(b, at.node, 1, tfc_add1(b, "NextIteration", from));
}

void spread_loop_open(struct spread_loop *l, const char *devices, const struct tfc_memory_limit *limit) {
  enum { FIRST, SECOND, HOST };
  struct tfc_builder *b = NULL;
  const struct tfc_shape shape = TFC_SHAPE(SPREAD_LOOP_SIZE);
  *l = (struct spread_loop){0};
  for (size_t i = 0; i < sizeof l->placement / sizeof *l->placement; i++) l->placement[i] = HOST;
  assert_ok(tfc_builder_create(NULL, &b));
  struct tfc_output feeds[] = {tfc_add_placeholder(b, "x", TFC_FLOAT, &shape),
                               tfc_add_placeholder(b, "n", TFC_INT32, &TFC_SHAPE_SCALAR)};
  struct tfc_output half = enter(b, tfc_add_scalar(b, TFC_FLOAT, 0.5), true),
                    one = enter(b, tfc_add_scalar(b, TFC_FLOAT, 1), true);
  struct tfc_output ahead = enter(b, tfc_add_scalar(b, TFC_FLOAT, 1), true), zero = tfc_add_scalar(b, TFC_FLOAT, 0);
  struct tfc_output i = merge(b, tfc_add_i32(b, 0)), v = merge(b, feeds[0]);
  struct tfc_output z = merge(b, feeds[0]), sum = merge(b, on(l, SECOND, tfc_add2(b, "Mul", feeds[0], zero)));
  struct tfc_output more = tfc_add1(b, "LoopCond", tfc_add2(b, "Less", i, enter(b, feeds[1], true)));
  struct tfc_output counted = tfc_add2(b, "Switch", i, more), way = tfc_add2(b, "Switch", v, more);
  struct tfc_output up = tfc_add2(b, "Switch", z, more), summed = tfc_add2(b, "Switch", sum, more);
  struct tfc_output left[] = {tfc_add1(b, "Exit", way), tfc_add1(b, "Exit", summed)};
  counted.index = way.index = up.index = summed.index = 1;
  struct tfc_output p = on(l, FIRST, tfc_add2(b, "Mul", way, half));
  struct tfc_output q = on(l, SECOND, tfc_add2(b, "AddV2", p, one)), r = on(l, SECOND, tfc_add2(b, "Sub", q, p));
  l->sent = p.node, l->back = r.node;
  back(b, v, on(l, FIRST, tfc_add2(b, "AddV2", way, r)));
  back(b, z, on(l, FIRST, tfc_add2(b, "AddV2", up, ahead)));
  back(b, sum, on(l, SECOND, tfc_add2(b, "AddV2", summed, up)));
  back(b, i, tfc_add2(b, "AddV2", counted, enter(b, tfc_add_i32(b, 1), true)));
  assert_true(tfc_builder_node_count(b) < sizeof l->placement / sizeof *l->placement);
  assert_ok(tfc_builder_finish(b, &l->graph));
  tfc_builder_free(b);
  assert_ok(tfc_devices_open(devices, limit, limit != NULL, &l->set));
  assert_ok(tfc_session_create(l->graph, &(struct tfc_session_options){.devices = &l->set}, &l->session));
  const struct tfc_run_spec spec = {
      .feeds = feeds, .feed_count = 2, .fetches = left, .fetch_count = 2, .placement = l->placement};
  assert_ok(tfc_plan_create(l->session, &spec, &l->plan));
  assert_ok(tfc_tensor_create(TFC_FLOAT, &shape, &l->feeds[0]));
  assert_ok(tfc_tensor_create(TFC_INT32, &TFC_SHAPE_SCALAR, &l->feeds[1]));
  for (int k = 0; k < SPREAD_LOOP_SIZE; k++) ((float *)l->feeds[0].data)[k] = (float)k;
}

tfc_status spread_loop_run(struct spread_loop *l, int32_t n, const struct tfc_run_options *options) {
  struct tfc_tensor got[2] = {0};
  *(int32_t *)l->feeds[1].data = n;
  TFC_RETURN_IF_ERROR(tfc_plan_run(l->plan, l->feeds, got, options));
  for (int k = 0; k < SPREAD_LOOP_SIZE; k++) {
    const float v = ((const float *)got[0].data)[k], sum = ((const float *)got[1].data)[k];
    if (v != (float)(k + n)) fail_msg("element %d is %g, not %d", k, (double)v, k + n);
    if (sum != (float)(n * k + n * (n - 1) / 2))
      fail_msg("element %d of the sum is %g, not %d", k, (double)sum, n * k + n * (n - 1) / 2);
  }
  for (int k = 0; k < 2; k++) tfc_tensor_release(&got[k]);
  return NULL;
}

void spread_loop_check_transfers(const struct spread_loop *l, int32_t n, const struct tfc_step_profile *p,
                                 bool one_clock) {
  const struct tfc_plan_info *info = tfc_plan_info(l->plan);
  int32_t sent = 0, back = 0;
  for (size_t i = 0; i < p->transfers.count; i++) {
    const struct tfc_profile_transfer *t = &p->transfers.data[i];
    assert_true(t->id < info->transfer_count && t->duration_ns >= 0);
    const struct tfc_plan_transfer *of = &info->transfers[t->id];
    assert_int_equal(t->device, of->target == TFC_PLAN_HOST ? of->source : of->target);
    assert_int_equal(t->bytes, of->bytes);
    if (of->tensor.node == l->sent) {
      assert_true(of->source == 0 && of->target == 1 && ++sent <= 2 * n); // one transfer for each reader at most
    } else if (of->tensor.node == l->back) {
      assert_true(of->source == 1 && of->target == 0);
      int32_t made = 0; // operations that ended before this transfer started
      for (size_t k = 0; k < p->ops.count; k++)
        made += p->ops.data[k].node == l->back && p->ops.data[k].start_ns + p->ops.data[k].duration_ns <= t->start_ns;
      assert_true(made >= ++back || !one_clock);
    }
  }
  assert_true(sent >= n);
  assert_int_equal(back, n);
}

void spread_loop_close(struct spread_loop *l) {
  for (int i = 0; i < 2; i++) tfc_tensor_release(&l->feeds[i]);
  tfc_plan_free(l->plan);
  tfc_session_free(l->session);
  for (uint32_t d = 0; d < 2; d++) assert_true(l->set.devices[d]->driver->in_use(l->set.devices[d]) == 0);
  tfc_devices_close(&l->set);
  tfc_graph_release(l->graph);
}
