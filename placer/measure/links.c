// Links, timed by real transfers. A chain of element-wise operations sends its tensor to and fro between two devices,
// in several sizes. A last operation reads every link of the chain, so none of them can be computed in the memory of
// the one before, neither on two devices nor on one. The time of a transfer is the gap between the producer's end and
// the consumer's start, plus the time by which the consumer is slower than it would be on the producer's own device
// (because it reads memory that another core or device wrote).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/measure/links.h"
#include "profiler/collector_gpu.h"
#include "profiler/statistics.h"
#include "runtime/base/clock.h"
#include "runtime/graph/builder.h"

enum { HOPS = 8, STEPS = 9, WARM = 3, SIZES = 7, FEWEST_STEPS = 3, FEWEST_SIZES = 4, MOST_BROKEN = 4 };
static const int64_t sizes[SIZES] = {1, 1024, 16384, 65536, 262144, 1048576, 4194304}; // numbers of floats

static tfc_status chain(int64_t floats, struct tfc_graph **out) {
  tfc_status s = NULL;
  struct tfc_builder *b = NULL;
  TFC_TRY(s, tfc_builder_create(NULL, &b));
  struct tfc_output x[HOPS + 2] = {tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(floats))};
  for (int i = 0; i <= HOPS; i++) x[i + 1] = tfc_add1(b, "Neg", x[i]);
  tfc_add(b, "AddN", NULL, x + 1, HOPS + 1, NULL, 0);
  TFC_TRY(s, tfc_builder_finish(b, out));
out:
  tfc_builder_free(b);
  return s;
}

static bool late(double end_s) {
  return end_s > 0 && tfc_now_s() > end_s;
}

// Measures the median times in us of the operations and of the gaps between them. Operation i runs on device b if i is
// odd, and on a if it is even.
static tfc_status time_chain(struct tfc_worker *w, const struct tfc_graph *g, int64_t floats, uint16_t a, uint16_t b,
                             double end_s, double *out_op_us, double *out_gap_us) {
  tfc_status s = NULL;
  struct tfc_session *session = NULL;
  struct tfc_plan *plan = NULL;
  struct tfc_tensor x = {0}, y = {0};
  struct tfc_step_profile profile = {0};
  struct tfc_collector *collector = w->sides[0].collector;
  uint16_t placement[HOPS + 3] = {0};
  double ops[HOPS * STEPS], gaps[HOPS * STEPS];
  size_t n = 0;
  int broken = 0;
  struct tfc_shape shape = TFC_SHAPE(floats);
  struct tfc_output feed = {0, 0}, fetch = {g->node_count - 1, 0}; // the fetch is the sum of all links
  uint32_t target = g->node_count - 1;
  for (uint32_t i = 0; i < g->node_count; i++) placement[i] = i % 2 ? a : b; // node 0 is the placeholder
  TFC_TRY(s, tfc_session_create(g,
                                &(struct tfc_session_options){
                                    .devices = &w->sides[0].set, .execution = w->execution, .no_rewrites = true},
                                &session));
  TFC_TRY(s, tfc_plan_create(session,
                             &(struct tfc_run_spec){.feeds = &feed,
                                                    .feed_count = 1,
                                                    .fetches = &fetch,
                                                    .targets = &target,
                                                    .target_count = 1,
                                                    .feed_shapes = &shape,
                                                    .placement = placement},
                             &plan));
  TFC_TRY(s, tfc_tensor_create(TFC_FLOAT, &shape, &x));
  memset(x.data, 0, x.size);
  TFC_TRY(s, tfc_collector_rest(collector)); // records of creating the session and the plan do not belong to the steps
  for (int i = 0; i < WARM + STEPS; i++) {
    if (i >= WARM + FEWEST_STEPS && late(end_s)) break;
    tfc_collector_reset(collector);
    TFC_TRY(s, tfc_worker_beat(w, 0)); // on a busy machine the two threads of a chain may wait long for a core
    TFC_TRY(s, tfc_plan_run(plan, &x, &y, &(struct tfc_run_options){.trace = tfc_collector_sink(collector)}));
    s = tfc_collector_drain(collector, NULL, NULL, &profile);
    // the measurement is not valid, so it tries another step
    if (s && tfc_status_code(s) == TFC_ABORTED && broken++ < MOST_BROKEN) {
      tfc_status_free(s), s = NULL;
      i--;
      continue;
    }
    if (s) goto out;
    for (size_t k = 1; i >= WARM && k + 1 < profile.ops.count && n < HOPS * STEPS; k++, n++) {
      const struct tfc_profile_op *from = &profile.ops.data[k - 1], *to = &profile.ops.data[k];
      ops[n] = 1e-3 * (double)to->duration_ns;
      gaps[n] = 1e-3 * (double)(to->start_ns - from->start_ns - from->duration_ns);
    }
  }
  *out_op_us = tfc_quartiles_of(ops, n).median;
  *out_gap_us = tfc_quartiles_of(gaps, n).median;
  if (!isfinite(*out_op_us)) s = tfc_status_make(TFC_ABORTED, "timing a link recorded nothing");
out:
  tfc_step_profile_deinit(&profile);
  tfc_tensor_release(&x);
  tfc_plan_free(plan);
  tfc_session_free(session);
  return s;
}

// Whether a pair of the same kinds and address spaces was already measured; its times are used for all such pairs.
static bool seen_before(const struct tfc_device_set *set, uint32_t a, uint32_t b) {
  for (uint32_t i = 0; i < set->count; i++) {
    for (uint32_t j = 0; j < set->count; j++) {
      if (i == j) continue;
      if (i > a || (i == a && j >= b)) return false;
      const struct tfc_device_info *x = &set->devices[i]->info, *y = &set->devices[j]->info;
      const struct tfc_device_info *p = &set->devices[a]->info, *q = &set->devices[b]->info;
      if (strcmp(x->kind, p->kind) == 0 && strcmp(y->kind, q->kind) == 0 &&
          (x->address_space == y->address_space) == (p->address_space == q->address_space))
        return true;
    }
  }
  return false;
}

tfc_status tfc_worker_links(struct tfc_worker *w, struct tfc_unpack *u) {
  tfc_status s = NULL;
  double end_s = tfc_unpack_f64(u);
  struct tfc_graph *g = NULL;
  struct tfc_pack p = {0};
  const struct tfc_device_set *set = &w->sides[0].set;
  TFC_ARRAY(struct tfc_link_time) times = {0};
  for (int i = 0; i < SIZES && (i < FEWEST_SIZES || !late(end_s)); i++) { // larger sizes are extrapolated
    TFC_TRY(s, chain(sizes[i], &g));
    for (uint32_t a = 0; a < set->count; a++) {
      for (uint32_t b = 0; b < set->count; b++) {
        double here_op = 0, here_gap = 0, there_op = 0, there_gap = 0;
        if (a == b || seen_before(set, a, b)) continue;
        TFC_TRY(s, time_chain(w, g, sizes[i], (uint16_t)b, (uint16_t)b, end_s, &here_op, &here_gap));
        TFC_TRY(s, time_chain(w, g, sizes[i], (uint16_t)a, (uint16_t)b, end_s, &there_op, &there_gap));
        double us = fmax(0, there_gap) + fmax(0, there_op - here_op);
        if (!tfc_array_push(&times, (struct tfc_link_time){a, b, (uint64_t)sizes[i] * sizeof(float), us, HOPS * STEPS}))
          TFC_TRY(s, tfc_status_no_memory(NULL));
      }
    }
    tfc_graph_release(g), g = NULL;
  }
  tfc_pack_array(&p, times.data, times.count, sizeof *times.data);
  TFC_TRY(s, tfc_wire_send(w->fd, TFC_WIRE_LINKS, &p));
out:
  tfc_array_free(&times);
  tfc_wire_free(&p.bytes);
  tfc_graph_release(g);
  return s;
}
