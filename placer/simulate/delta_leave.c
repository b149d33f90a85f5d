// Finds where a trial leaves the incumbent: the first instant at which the two simulations can differ, which is the
// first of these: an input of a moved node is produced, if its transfers change by the move; a moved node becomes
// ready, on its old device or on its new one; a node whose rank changed becomes ready. One kind of change is ignored: a
// transfer that is added or left out on a wire that is otherwise free at that time changes nothing else.
#include "placer/simulate/delta_leave.h"

// Returns when the tensor arrives on the device in the incumbent; TFC_TIME_MAX: never. `there`: a consumer of it is on
// that device.
static int64_t tensor_at(const struct tfc_delta *d, uint32_t tensor, uint32_t device, bool there) {
  const uint32_t producer = d->problem->graph->producer[tensor];
  if (tfc_delta_incumbent_device(d, producer) == device) return d->now.end[producer];
  return there ? d->now.arrived[(size_t)tensor * d->problem->device_count + device] : TFC_TIME_MAX;
}

// Returns whether the tensor has consumers on a device: bit 0 in the incumbent, bit 1 in the trial.
static uint32_t consumers_on(const struct tfc_delta *d, uint32_t tensor, uint32_t device) {
  const struct tfc_cost_graph *g = d->problem->graph;
  uint32_t found = 0;
  for (uint32_t c = g->first_consumer[tensor]; c < g->first_consumer[tensor + 1] && found != 3; c++) {
    const uint32_t m = g->consumer[c];
    if (tfc_delta_incumbent_device(d, m) == device) found |= 1;
    if (d->engine.device[m] == device) found |= 2;
  }
  return found;
}

// Returns the index of the first of the incumbent's transfers on a wire that joined its queue at `time` or later.
static size_t first_ride(const struct tfc_engine_rides *r, int64_t time) {
  size_t low = 0, high = r->list.count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (r->list.data[middle].joined < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Whether nothing changes if a transfer ends at another instant (`latest`: the later one of the two), because every
// operation that waits for it waits longer for another input.
static bool is_ignored(const struct tfc_delta *d, const struct tfc_engine_ride *ride, int64_t latest) {
  const struct tfc_cost_graph *g = d->problem->graph;
  for (uint32_t c = g->first_consumer[ride->tensor]; c < g->first_consumer[ride->tensor + 1]; c++) {
    const uint32_t m = g->consumer[c];
    if (d->mark[m] == d->stamp && (d->was[m] == ride->to || d->engine.device[m] == ride->to)) return false;
    if (d->engine.device[m] == ride->to && d->now.arrival[m] <= latest) return false;
  }
  return true;
}

// Returns the instant from which on a wire carries the same transfers as in the incumbent, if it becomes free at `free`
// instead of `was_free` before transfer `i`. TFC_TIME_MAX: before that, a delayed transfer changes something else.
static int64_t wire_settles(const struct tfc_delta *d, const struct tfc_engine_rides *r, size_t i, int64_t free,
                            int64_t was_free) {
  const struct tfc_problem *p = d->problem;
  for (int length = 0; i < r->list.count; i++, length++) {
    const struct tfc_engine_ride *ride = &r->list.data[i];
    const int64_t time = tfc_problem_wire_time(p, ride->tensor, tfc_problem_pair(p, ride->from, ride->to));
    const int64_t end = (free > ride->joined ? free : ride->joined) + time;
    if (end == ride->ended) break;
    if (length == MOST_DELAYED || !is_ignored(d, ride, end > ride->ended ? end : ride->ended)) return TFC_TIME_MAX;
    free = end, was_free = ride->ended;
  }
  return free > was_free ? free : was_free;
}

// Whether this transfer can be added (`added`), or left out, without changing anything else. If so, it is added to
// d->silent.
static bool is_silent(struct tfc_delta *d, uint32_t tensor, uint32_t source, uint32_t device, bool added) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_pair *pair = tfc_problem_pair(p, source, device);
  if (!d->now.rides || d->engine.inbox || !pair->linked) return false;
  struct silent x = {.tensor = tensor, .wire = pair->wire, .device = (tfc_device_id)device, .added = added};
  x.begin = d->now.end[p->graph->producer[tensor]];
  for (uint32_t i = 0; i < d->silent_count; i++) {
    const struct silent *y = &d->silent[i];
    if (y->tensor == tensor && y->device == device && y->added == added) return true;
  }
  if (d->silent_count == MOST_SILENT) return false;
  if (x.wire == TFC_NONE) {
    x.arrives = added ? x.begin + tfc_problem_wire_time(p, tensor, pair)
                      : d->now.arrived[(size_t)tensor * p->device_count + device];
    x.end = x.arrives;
  } else {
    const struct tfc_engine_rides *r = &d->now.rides[x.wire];
    // a transfer that is left out is itself in the list
    const size_t first = first_ride(r, x.begin), behind = first + !added;
    const int64_t before = first && r->list.data[first - 1].ended > x.begin ? r->list.data[first - 1].ended : x.begin;
    // Other rules order transfers that join at the same instant; this case counts as not silent.
    if (behind < r->list.count && r->list.data[behind].joined == x.begin) return false;
    x.arrives = added ? before + tfc_problem_wire_time(p, tensor, pair) : r->list.data[first].ended;
    x.end = added ? wire_settles(d, r, behind, x.arrives, before) : wire_settles(d, r, behind, before, x.arrives);
    if (x.end == TFC_TIME_MAX) return false;
    for (uint32_t i = 0; i < d->silent_count; i++)
      if (d->silent[i].wire == x.wire && x.begin <= d->silent[i].end && d->silent[i].begin <= x.end) return false;
  }
  d->silent[d->silent_count++] = x;
  return true;
}

// Returns the end of a silent transfer that the trial adds; TFC_TIME_MAX: there is none.
static int64_t added_at(const struct tfc_delta *d, uint32_t tensor, uint32_t device) {
  for (uint32_t i = 0; i < d->silent_count; i++)
    if (d->silent[i].added && d->silent[i].tensor == tensor && d->silent[i].device == device)
      return d->silent[i].arrives;
  return TFC_TIME_MAX;
}

int64_t tfc_delta_leaves(struct tfc_delta *d) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_cost_graph *g = p->graph;
  int64_t first = TFC_TIME_MAX;
  d->silent_count = 0;
  for (size_t k = 0; k < d->moved.count; k++) {
    const uint32_t u = d->moved.data[k].unit, from = d->moved.data[k].from, to = d->device[u];
    for (uint32_t i = p->first_member[u]; i < p->first_member[u + 1] && first; i++) {
      const uint32_t n = p->member[i];
      if (g->first_input[n] == g->first_input[n + 1]) return 0;
      int64_t ready = 0;
      for (uint32_t j = g->first_input[n]; j < g->first_input[n + 1]; j++) {
        const uint32_t tensor = g->input[j], producer = g->producer[tensor];
        const int64_t end = d->now.end[producer];
        if (end >= first) { // the node becomes ready at `first` or later, whatever its other inputs do
          ready = TFC_TIME_MAX;
          continue;
        }
        uint32_t here = d->now.arrived ? consumers_on(d, tensor, from) : 1,
                 there = d->now.arrived ? consumers_on(d, tensor, to) : 2;
        const uint32_t source = tfc_delta_incumbent_device(d, producer);
        bool same =
            (source == from || here == 3 || here == 0 || (here == 1 && is_silent(d, tensor, source, from, false))) &&
            (source == to || there == 3 || there == 0 || (there == 2 && is_silent(d, tensor, source, to, true)));
        if (!same) {
          if (end < first) first = end;
          ready = TFC_TIME_MAX;
          continue;
        }
        int64_t at = !d->now.arrived               ? end
                     : source == to || (there & 1) ? tensor_at(d, tensor, to, there & 1)
                                                   : added_at(d, tensor, to);
        if (at > ready) ready = at;
      }
      if (d->now.arrival[n] < first) first = d->now.arrival[n];
      if (ready < first) first = ready;
    }
  }
  for (size_t k = 0; k < d->swapped.count; k++)
    if (d->now.arrival[d->swapped.data[k]] < first) first = d->now.arrival[d->swapped.data[k]];
  return first;
}

int64_t tfc_delta_leaves_after(const struct tfc_delta *d, int64_t past) {
  const struct tfc_cost_graph *g = d->problem->graph;
  int64_t first = TFC_TIME_MAX;
  for (size_t k = 0; k < d->moved.count; k++) {
    const uint32_t u = d->moved.data[k].unit, from = d->moved.data[k].from, to = d->device[u];
    for (uint32_t i = d->problem->first_member[u]; i < d->problem->first_member[u + 1] && first > past; i++) {
      const uint32_t n = d->problem->member[i];
      if (d->now.end[n] <= past) continue;
      int64_t ready = 0;
      for (uint32_t j = g->first_input[n]; j < g->first_input[n + 1]; j++) {
        const uint32_t tensor = g->input[j], producer = g->producer[tensor];
        const int64_t end = d->now.end[producer];
        if (end > past) {
          const uint32_t source = tfc_delta_incumbent_device(d, producer);
          const uint32_t here = consumers_on(d, tensor, from), there = consumers_on(d, tensor, to);
          if ((source != from && here == 1) || (source != to && there == 2)) {
            if (end < first) first = end;
            ready = TFC_TIME_MAX;
            continue;
          }
        }
        // An input that was produced by that instant is, in both simulations, either present or on its way.
        const int64_t at = tensor_at(d, tensor, to, consumers_on(d, tensor, to) & 1);
        if (end > past || at < TFC_TIME_MAX) ready = at > ready ? at : ready;
      }
      if (d->now.arrival[n] < first) first = d->now.arrival[n];
      if (ready < first) first = ready;
    }
  }
  for (size_t k = 0; k < d->swapped.count; k++)
    if (d->now.end[d->swapped.data[k]] > past && d->now.arrival[d->swapped.data[k]] < first)
      first = d->now.arrival[d->swapped.data[k]];
  return first < past ? past : first;
}

// Returns how many inputs of a node have not arrived on its device at the instant of a saved state. Up to that instant
// the trial equals the incumbent.
static uint32_t pending_at(const struct tfc_delta *d, uint32_t n, int64_t time, int64_t past) {
  const struct tfc_cost_graph *g = d->problem->graph;
  const uint32_t device = d->engine.device[n];
  uint32_t pending = 0;
  for (uint32_t j = g->first_input[n]; j < g->first_input[n + 1]; j++) {
    const uint32_t tensor = g->input[j];
    const int64_t end = d->now.end[g->producer[tensor]];
    // A tensor that is not yet produced at `time` is missing. A tensor that is produced is sent as in the incumbent, or
    // by a silent transfer, or was present before `past`.
    if (end >= time) {
      pending++;
    } else if (end <= past) {
      const int64_t at = tensor_at(d, tensor, device, consumers_on(d, tensor, device) & 1);
      pending += at < TFC_TIME_MAX && at >= time;
    } else if (past >= 0 || added_at(d, tensor, device) >= time) {
      pending += tensor_at(d, tensor, device, consumers_on(d, tensor, device) & 1) >= time;
    }
  }
  return pending;
}

bool tfc_delta_within_silence(const struct tfc_delta *d, int64_t time) {
  for (uint32_t i = 0; i < d->silent_count; i++)
    if (time > d->silent[i].begin && time <= d->silent[i].end) return true;
  return false;
}

void tfc_delta_adjust(const struct tfc_delta *d, uint8_t *block, int64_t time, int64_t past) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_engine *e = &d->engine;
  int64_t *left = (int64_t *)(void *)(block + ((uint8_t *)e->left - e->block));
  uint32_t *pending = (uint32_t *)(void *)(block + ((uint8_t *)e->pending - e->block));
  for (size_t k = 0; k < d->moved.count; k++) {
    const uint32_t u = d->moved.data[k].unit;
    for (uint32_t i = p->first_member[u]; i < p->first_member[u + 1]; i++) {
      const uint32_t n = p->member[i];
      if (d->now.end[n] <= past) continue;
      left[d->moved.data[k].from] -= tfc_problem_time(p, n, d->moved.data[k].from);
      left[d->device[u]] += tfc_problem_time(p, n, d->device[u]);
      if (d->now.arrived) pending[n] = pending_at(d, n, time, past);
    }
  }
}
