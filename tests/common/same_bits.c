#include "tests/common/same_bits.h"

#include "tests/common/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/random.h"
#include "runtime/base/union_find.h"
#include "runtime/device/emulated/emulated.h"
#include "tests/common/example.h"

enum { STEPS = 4 };

// Gives each unit a random device; nodes that use a variable by reference or handle are in the variable's unit.
static void place(const struct tfc_graph *g, uint32_t devices, struct tfc_random *random, uint16_t *out) {
  uint32_t *parent = malloc(g->node_count * sizeof *parent);
  tfc_union_find_init(parent, g->node_count);
  for (uint32_t i = 0; i < g->node_count; i++)
    for (uint32_t k = 0; k < g->nodes[i].input_count; k++) {
      struct tfc_output o = tfc_node_inputs(g, &g->nodes[i])[k];
      tfc_dtype t = tfc_output_dtype(g, o);
      bool update = g->nodes[i].def && g->nodes[i].def->flags & TFC_OP_UPDATE;
      if (t == TFC_RESOURCE || (update && tfc_dtype_is_ref(t))) tfc_union_find_join(parent, o.node, i);
    }
  for (uint32_t i = 0; i < g->node_count; i++) out[i] = (uint16_t)tfc_random_below(random, devices);
  for (uint32_t i = 0; i < g->node_count; i++) out[i] = out[tfc_union_find_root(parent, i)];
  free(parent);
}

static void check_trace(const struct tfc_plan *plan, const struct tfc_trace_sink *sink, const uint16_t *placement,
                        uint32_t devices, uint32_t steps) {
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  uint32_t *moved = calloc(info->transfer_count + 1, sizeof *moved), ops = 0;
  for (uint32_t d = 0; d < 2 * devices; d++) {
    const struct tfc_trace_buffer *b = d < devices ? &sink->buffers[d] : &sink->copies[d - devices];
    assert_int_equal(b->dropped, 0);
    for (size_t i = 0; i < b->count; i++) {
      const struct tfc_trace_record *r = &b->records[i];
      assert_true(r->end >= r->begin && r->begin > 0);
      assert_int_equal(r->device, d % devices);
      if (r->kind == TFC_TRACE_OP) {
        assert_int_equal(placement[r->id], d);
        ops++;
      } else if (r->kind == TFC_TRACE_TRANSFER) {
        assert_true(r->id < info->transfer_count);
        moved[r->id]++;
      }
    }
  }
  assert_int_equal(ops, info->op_count * steps);
  for (uint32_t t = 0; t < info->transfer_count; t++) assert_int_equal(moved[t], steps);
  for (uint32_t t = 0; t < info->transfer_count; t++) // each tensor is sent once to each destination
    for (uint32_t k = 0; k < t && info->transfer_count < 3000; k++)
      assert_false(info->transfers[t].tensor.node == info->transfers[k].tensor.node &&
                   info->transfers[t].tensor.index == info->transfers[k].tensor.index &&
                   info->transfers[t].target == info->transfers[k].target);
  free(moved);
}

// Whether two devices computed at the same time.
static bool overlapped(const struct tfc_trace_sink *sink, uint32_t devices) {
  for (uint32_t d = 0; d < devices; d++)
    for (uint32_t other = d + 1; other < devices; other++) {
      const struct tfc_trace_buffer *a = &sink->buffers[d], *b = &sink->buffers[other];
      for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        if (a->records[i].end <= b->records[k].begin)
          i++;
        else if (b->records[k].end <= a->records[i].begin)
          k++;
        else
          return true;
      }
    }
  return false;
}

// Runs a few steps from `start`. `out`: the losses and every variable, as bytes. Returns whether the trace shows two
// devices at work at the same time.
static bool run(struct tfc_session *session, const struct tfc_snapshot *start, const struct example *e,
                const struct tfc_run_spec *spec, bool trace, uint32_t devices, struct tfc_text *out) {
  struct tfc_plan *plan = NULL;
  assert_ok(tfc_plan_create(session, spec, &plan));
  assert_ok(tfc_session_restore(session, start));
  enum { RECORDS = 200000 };
  struct tfc_trace_buffer *buffers = calloc(2 * devices + 1, sizeof *buffers);
  for (uint32_t d = 0; trace && d < 2 * devices + 1; d++) {
    buffers[d].records = malloc(RECORDS * sizeof *buffers[d].records);
    buffers[d].capacity = RECORDS;
  }
  // The sink expects the devices' buffers, then the buffer for spans of steps, and the buffers for copies in an array
  // of their own.
  struct tfc_trace_buffer *sorted = calloc(devices + 1, sizeof *sorted), *copies = calloc(devices, sizeof *copies);
  memcpy(sorted, buffers, devices * sizeof *buffers);
  memcpy(copies, buffers + devices, devices * sizeof *buffers);
  sorted[devices] = buffers[2 * devices];
  struct tfc_trace_sink sink = {.buffers = sorted, .buffer_count = devices + 1, .copies = copies};
  for (int i = 0; i < STEPS; i++) {
    struct tfc_tensor loss = {0};
    assert_ok(tfc_plan_run(plan, e->values[(uint32_t)i % e->set_count], &loss,
                           &(struct tfc_run_options){.trace = trace ? &sink : NULL}));
    tfc_text_add(out, (tfc_str){loss.data, loss.size});
    tfc_tensor_release(&loss);
  }
  if (trace) check_trace(plan, &sink, spec->placement, devices, STEPS);
  assert_int_equal(tfc_plan_in_another_order(plan), spec->adapt == TFC_ADAPT_ALWAYS);
  bool overlap = trace && overlapped(&sink, devices);
  for (uint32_t i = 0; i < e->graph->node_count; i++) {
    const struct tfc_node *n = &e->graph->nodes[i];
    if (!n->def || !(n->def->flags & TFC_OP_VARIABLE)) continue;
    struct tfc_tensor value = {0};
    assert_ok(tfc_session_get_variable(session, n->name, &value));
    tfc_text_add(out, (tfc_str){value.data, value.size});
    tfc_tensor_release(&value);
  }
  for (uint32_t d = 0; d < 2 * devices + 1; d++) free(buffers[d].records);
  free(buffers);
  free(sorted);
  free(copies);
  tfc_plan_free(plan);
  return overlap;
}

// Reads all bytes as float32, the type of the examples' losses and variables. Equal up to rounding: within 1e-5 of the
// largest value so far, which is at least 1.
static bool rounded_alike(const struct tfc_text *a, const struct tfc_text *b) {
  double largest = 0;
  for (size_t i = 0; i + sizeof(float) <= a->size; i += sizeof(float)) {
    float x, y;
    memcpy(&x, a->data + i, sizeof x);
    memcpy(&y, b->data + i, sizeof y);
    largest = fmax(largest, fabs((double)x));
    if (!(fabs((double)x - (double)y) <= 1e-5 * fmax(largest, 1))) return false;
  }
  return true;
}

void tfc_same_bits(const char *name, const char *devices, int placements, uint64_t seed, bool no_rewrites) {
  struct example e;
  struct tfc_device_set set = {0};
  struct tfc_session *session = NULL;
  struct tfc_snapshot *start = NULL;
  struct tfc_run_spec spec;
  struct tfc_random random;
  struct tfc_text want = {0};
  tfc_random_init(&random, seed);
  assert_ok(example_load(name, &e));
  assert_ok(tfc_devices_open(devices, NULL, 0, &set));
  bool cpus = true, gpus = false, others = false;
  for (uint32_t d = 0; d < set.count; d++) {
    cpus &= !strcmp(set.devices[d]->info.kind, "cpu");
    bool gpu = strstr(set.devices[d]->info.kind, "gpu") != NULL;
    gpus |= gpu;
    others |= !gpu;
  }
  const bool mixed = gpus && others; // GPUs have kernels of their own, so bits may differ between the two kinds of
                                     // devices
  for (uint32_t d = 0; d < set.count; d++)
    if (!strcmp(set.devices[d]->info.kind, "emu"))
      tfc_emulated_delay(set.devices[d],
                         &(struct tfc_emulated_delay){.run_ns = 20000, .copy_ns = 20000, .jitter = seed});
  assert_ok(tfc_session_create(e.graph, &(struct tfc_session_options){.devices = &set, .no_rewrites = no_rewrites},
                               &session));
  assert_ok(tfc_session_run(session, &(struct tfc_run_spec){.targets = &e.init, .target_count = 1}, NULL, NULL, NULL));
  assert_ok(tfc_session_snapshot(session, &start));
  example_spec(&e, &spec);
  run(session, start, &e, &spec, false, set.count, &want);
  uint16_t *placement = malloc(e.graph->node_count * sizeof *placement);
  spec.placement = placement;
  int overlaps = 0;
  for (int i = 0; i < placements; i++) {
    struct tfc_text got = {0};
    place(e.graph, set.count, &random, placement);
    spec.adapt = cpus && i % 2 == 0 ? TFC_ADAPT_ALWAYS : TFC_ADAPT_OFF;
    overlaps += run(session, start, &e, &spec, no_rewrites, set.count, &got);
    assert_int_equal(got.size, want.size);
    bool same = mixed ? rounded_alike(&want, &got) : memcmp(got.data, want.data, want.size) == 0;
    if (!same) fail_msg("%s on %s: placement %d gives other bits", name, devices, i);
    tfc_text_deinit(&got);
  }
  // The random placements may have shown no overlap, because a busy machine may run the threads of two devices in turns
  // for a while. The example ridge is almost a chain, so its devices need not overlap at all.
  for (int again = 0; no_rewrites && !overlaps && strcmp(name, "ridge"); again++) {
    struct tfc_text got = {0};
    overlaps += run(session, start, &e, &spec, true, set.count, &got);
    tfc_text_deinit(&got);
    assert_true(overlaps > 0 || again < 500);
  }
  free(placement);
  tfc_text_deinit(&want);
  tfc_snapshot_free(start);
  tfc_session_free(session);
  for (uint32_t d = 0; d < set.count; d++) // a GPU keeps the scratch memory of its kernels
    assert_true(strstr(set.devices[d]->info.kind, "gpu") || set.devices[d]->driver->in_use(set.devices[d]) == 0);
  tfc_devices_close(&set);
  example_deinit(&e);
}
