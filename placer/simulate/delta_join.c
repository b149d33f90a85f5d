// Finds the instant from which on a trial runs as the incumbent did, possibly earlier or later by a constant time. The
// future of a simulation depends only on which operations have ended, what is running and for how much longer, and what
// is on the wires or waits for them. Where all of that is equal, the trial's future is the incumbent's, shifted by the
// difference in time.
#include "placer/simulate/delta_join.h"

static bool is_transfer(const struct tfc_engine_transfer *t, const struct tfc_engine_ride *r) {
  return t->tensor == r->tensor && t->from == r->from && t->to == r->to;
}

size_t tfc_delta_first_under_way(const struct tfc_engine_rides *r, int64_t past) {
  size_t low = 0, high = r->list.count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (r->list.data[middle].ended <= past)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Whether the same transfer as in the incumbent at `past` is under way on the lane, and the same transfers wait for it.
static bool same_on_lane(const struct tfc_delta *d, uint32_t lane, int64_t past, int64_t shift) {
  const struct tfc_engine *e = &d->engine;
  const struct tfc_engine_rides *r = &d->now.rides[lane];
  const uint32_t leaf = e->inbox ? lane : d->problem->device_count + lane;
  const uint64_t key = e->tree[e->leaves + leaf];
  size_t i = tfc_delta_first_under_way(r, past);
  if (key != UINT64_MAX && (e->running[leaf] & TFC_ENGINE_TRANSFER)) {
    if (i == r->list.count || (int64_t)(key >> e->leaf_bits) != r->list.data[i].ended + shift ||
        !is_transfer(&e->transfers.data[e->running[leaf] & ~TFC_ENGINE_TRANSFER], &r->list.data[i++]))
      return false;
  }
  for (uint32_t t = e->inbox ? e->inbox_head[lane] : e->wire_head[lane]; t != TFC_NONE; t = e->transfers.data[t].next)
    if (i == r->list.count || r->list.data[i].joined > past || !is_transfer(&e->transfers.data[t], &r->list.data[i++]))
      return false;
  return i == r->list.count || r->list.data[i].joined > past;
}

bool tfc_delta_joins(const struct tfc_delta *d, int64_t *out_past, int64_t *out_shift) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_engine *e = &d->engine;
  const uint32_t ended = e->scalars->ended;
  if (!ended || ended >= p->node_count || e->scalars->event_count) return false;
  const int64_t past = d->now.end[d->now.ends.node[ended - 1]], shift = e->scalars->now - past;
  if (d->now.end[d->now.ends.node[ended]] <= past) return false; // more operations end at that instant
  uint32_t running = 0;
  for (uint32_t i = 0; i < p->device_count; i++) {
    const uint64_t key = e->tree[e->leaves + i];
    if (key == UINT64_MAX) continue;
    const uint32_t n = e->running[i];
    if (n & TFC_ENGINE_TRANSFER) continue;
    running++;
    if (d->now.start[n] > past || (int64_t)(key >> e->leaf_bits) != d->now.end[n] + shift) return false;
    if (tfc_delta_incumbent_device(d, n) != i) return false;
  }
  if (running != d->now.ends.started[ended] - ended) return false;
  for (uint32_t lane = 0; lane < d->lane_count; lane++)
    if (!same_on_lane(d, lane, past, shift)) return false;
  *out_past = past, *out_shift = shift;
  return true;
}
