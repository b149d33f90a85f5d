// Records the simulation of the incumbent: when everything began and ended, in which order, and some saved states. A
// trial that becomes the incumbent is simulated again only where it differs. Where it equals the old incumbent but for
// a shift in time, the old record is copied with that shift.
#include <stdlib.h>
#include <string.h>

#include "placer/simulate/delta_join.h"
#include "placer/simulate/delta_leave.h"
#include "placer/simulate/delta_record.h"

#define MOST_ARRIVALS (UINT32_C(1) << 22)

static size_t arrival_count(const struct tfc_problem *p) {
  return (size_t)p->tensor_count * p->device_count + 1;
}

static bool record_init(struct record *r, const struct tfc_delta *d, bool arrivals, bool rides, bool ends) {
  const size_t nodes = d->problem->node_count;
  r->start = calloc(nodes, sizeof *r->start);
  r->end = calloc(nodes, sizeof *r->end);
  r->arrival = calloc(nodes, sizeof *r->arrival);
  r->sequence = calloc(nodes, sizeof *r->sequence);
  if (arrivals) r->arrived = calloc(arrival_count(d->problem), sizeof *r->arrived);
  if (rides) r->rides = calloc(d->lane_count + 1u, sizeof *r->rides);
  if (ends) {
    r->ends.position = calloc(nodes, sizeof *r->ends.position);
    r->ends.node = calloc(nodes, sizeof *r->ends.node);
    r->ends.started = calloc(nodes + 1, sizeof *r->ends.started);
  }
  return r->start && r->end && r->arrival && r->sequence && (r->arrived || !arrivals) && (r->rides || !rides) &&
         ((r->ends.position && r->ends.node && r->ends.started) || !ends);
}

static void record_deinit(struct record *r, uint32_t lanes) {
  for (uint32_t i = 0; r->rides && i < lanes; i++) tfc_array_free(&r->rides[i].list);
  free(r->start), free(r->end), free(r->arrival), free(r->sequence), free(r->arrived), free(r->rides);
  free(r->ends.position), free(r->ends.node), free(r->ends.started);
}

tfc_status tfc_delta_init_records(struct tfc_delta *d) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_engine *e = &d->engine;
  const bool arrivals = !e->live && arrival_count(p) <= MOST_ARRIVALS, rides = arrivals && (e->plain || e->inbox);
  const bool ends = rides && (e->wired || e->inbox);
  d->lane_count = e->inbox ? p->device_count : p->wire_count;
  d->most_saves = p->node_count > 20000 ? SAVES / 2 : SAVES;
  d->stride = p->node_count / d->most_saves + 1;
  d->patience = p->node_count / 256 + 1;
  if (!record_init(&d->now, d, arrivals, rides, ends) || (ends && !record_init(&d->next, d, arrivals, rides, ends)))
    return tfc_status_no_memory("delta evaluation");
  return NULL;
}

void tfc_delta_deinit_records(struct tfc_delta *d) {
  record_deinit(&d->now, d->lane_count);
  record_deinit(&d->next, d->lane_count);
  for (uint32_t i = 0; i < SAVES; i++) tfc_engine_save_deinit(&d->save[i]);
}

// --- Finding saved states ------------------------------------------------------------------------------------------

uint32_t tfc_delta_save_before(const struct tfc_delta *d, int64_t time, uint32_t ended) {
  for (uint32_t i = d->most_saves; i-- > 0;) {
    if (d->save[i].time > time || d->save[i].time == TFC_TIME_MAX) continue;
    return tfc_engine_save_ended(&d->engine, &d->save[i]) > ended ? i : TFC_NONE;
  }
  return TFC_NONE;
}

uint32_t tfc_delta_ended_before(const struct tfc_delta *d, int64_t time) {
  uint32_t low = 0, high = d->problem->node_count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (d->now.end[d->now.ends.node[middle]] < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

uint32_t tfc_delta_ended_with_all(const struct tfc_delta *d) {
  const struct tfc_problem *p = d->problem;
  uint32_t last = 0;
  for (size_t k = 0; k < d->moved.count; k++)
    for (uint32_t i = p->first_member[d->moved.data[k].unit]; i < p->first_member[d->moved.data[k].unit + 1]; i++)
      if (d->now.ends.position[p->member[i]] > last) last = d->now.ends.position[p->member[i]];
  for (size_t k = 0; k < d->swapped.count; k++)
    if (d->now.ends.position[d->swapped.data[k]] > last) last = d->now.ends.position[d->swapped.data[k]];
  return last + 1;
}

// --- Running -------------------------------------------------------------------------------------------------------

static void record_into(struct tfc_engine *e, struct record *r) {
  e->start = r ? r->start : NULL, e->end = r ? r->end : NULL, e->arrival = r ? r->arrival : NULL;
  e->sequence = r ? r->sequence : NULL, e->arrived = r ? r->arrived : NULL, e->rides = r ? r->rides : NULL;
  e->ends = r && r->ends.node ? &r->ends : NULL;
}

// Removes from the lanes all transfers that joined at `time` or later.
static void rewind_lanes(struct record *r, uint32_t lanes, int64_t time) {
  for (uint32_t i = 0; r->rides && i < lanes; i++) {
    struct tfc_engine_rides *x = &r->rides[i];
    while (x->list.count && x->list.data[x->list.count - 1].joined >= time) x->list.count--;
    for (x->over = x->list.count; x->over && x->list.data[x->over - 1].ended >= time; x->over--) continue;
  }
}

// Saves the engine's state if it is the first state that is late enough for the next index.
static void save_if_due(struct tfc_delta *d, uint32_t *next) {
  const uint32_t due = d->engine.scalars->ended / d->stride;
  for (; *next <= due && *next < d->most_saves; ++*next)
    if (*next < due || !tfc_engine_save(&d->engine, &d->save[*next])) d->save[*next].time = TFC_TIME_MAX;
}
static uint32_t pause_before(const struct tfc_delta *d, uint32_t next) {
  return next < d->most_saves ? next * d->stride : UINT32_MAX;
}

// Runs to the end, and saves states on the way.
static tfc_engine_stop run_on(struct tfc_delta *d, uint32_t next) {
  tfc_engine_stop stop;
  while ((stop = tfc_engine_run(&d->engine, TFC_TIME_MAX, pause_before(d, next))) == TFC_ENGINE_PAUSED)
    save_if_due(d, &next);
  for (; next < d->most_saves; next++) d->save[next].time = TFC_TIME_MAX;
  return stop;
}

static void settle(const struct tfc_delta *d, tfc_engine_stop stop, struct tfc_verdict *v) {
  const struct tfc_engine *e = &d->engine;
  v->legal = stop == TFC_ENGINE_ENDED;
  v->value = v->legal ? e->scalars->value : TFC_TIME_MAX;
  v->cut = false;
  v->transfers = e->scalars->transfer_count, v->transfer_bytes = v->legal ? tfc_engine_transfer_bytes(e) : 0;
  if (v->busy) memcpy(v->busy, e->busy, sizeof *v->busy * d->problem->device_count);
}

bool tfc_delta_record(struct tfc_delta *d, struct tfc_verdict *out) {
  record_into(&d->engine, &d->now);
  rewind_lanes(&d->now, d->lane_count, 0);
  tfc_engine_begin(&d->engine);
  settle(d, run_on(d, 0), out);
  record_into(&d->engine, NULL);
  return out->legal;
}

// --- Running only the differences ----------------------------------------------------------------------------------

static void copy_all(struct tfc_delta *d) {
  const struct record *from = &d->now;
  struct record *to = &d->next;
  const size_t nodes = d->problem->node_count;
  memcpy(to->start, from->start, sizeof *to->start * nodes);
  memcpy(to->end, from->end, sizeof *to->end * nodes);
  memcpy(to->arrival, from->arrival, sizeof *to->arrival * nodes);
  memcpy(to->sequence, from->sequence, sizeof *to->sequence * nodes);
  memcpy(to->arrived, from->arrived, sizeof *to->arrived * arrival_count(d->problem));
  memcpy(to->ends.position, from->ends.position, sizeof *to->ends.position * nodes);
  memcpy(to->ends.node, from->ends.node, sizeof *to->ends.node * nodes);
  memcpy(to->ends.started, from->ends.started, sizeof *to->ends.started * (nodes + 1));
}

// Copies the lanes of the old record, up to an instant, into the new one. False: out of memory.
static bool copy_lanes(struct tfc_delta *d, int64_t time) {
  for (uint32_t i = 0; i < d->lane_count; i++) {
    const struct tfc_engine_rides *from = &d->now.rides[i];
    struct tfc_engine_rides *to = &d->next.rides[i];
    if (!tfc_array_reserve(&to->list, from->list.count + 1)) return false;
    if (from->list.count) memcpy(to->list.data, from->list.data, sizeof *to->list.data * from->list.count);
    to->list.count = from->list.count;
  }
  rewind_lanes(&d->next, d->lane_count, time);
  return true;
}

// Copies the old record after `past` and before `until`, shifted by `shift`. What began before `past` is already in the
// new record; what ends after `until` is added later. False: out of memory.
static bool copy_later(struct tfc_delta *d, int64_t past, int64_t until, int64_t shift, uint32_t ended) {
  const struct tfc_problem *p = d->problem;
  const struct record *from = &d->now;
  struct record *to = &d->next;
  for (uint32_t i = ended; i < p->node_count; i++) {
    const uint32_t n = from->ends.node[i];
    const int64_t start = from->start[n], arrival = from->arrival[n];
    if (arrival > past && arrival < until) to->arrival[n] = arrival + shift;
    if (start <= past || start >= until) continue;
    to->start[n] = start + shift, to->end[n] = from->end[n] + shift;
  }
  for (uint32_t lane = 0; lane < d->lane_count; lane++) {
    const struct tfc_engine_rides *old = &from->rides[lane];
    struct tfc_engine_rides *new = &to->rides[lane];
    size_t at = new->over;
    for (size_t i = tfc_delta_first_under_way(old, past); i < old->list.count; i++) {
      struct tfc_engine_ride ride = old->list.data[i];
      if (ride.joined >= until) break;
      const bool over = ride.ended < until;
      if (ride.joined > past) {
        ride.joined += shift;
        if (!tfc_array_push(&new->list, ride)) return false;
      }
      if (over) {
        new->list.data[at].ended = ride.ended + shift;
        to->arrived[(size_t)ride.tensor * p->device_count + ride.to] = ride.ended + shift;
        new->over = ++at;
      }
    }
  }
  return true;
}

// Adds up the transfers and operations of the new incumbent: it was not run as a whole, so some are missing in the
// engine's sums.
static void add_up(const struct tfc_delta *d, struct tfc_verdict *v) {
  const struct tfc_problem *p = d->problem;
  const struct record *r = &d->next;
  v->transfers = v->transfer_bytes = 0;
  memset(v->busy, 0, sizeof *v->busy * p->device_count);
  for (uint32_t n = 0; n < p->node_count; n++) v->busy[d->engine.device[n]] += r->end[n] - r->start[n];
  for (uint32_t lane = 0; lane < d->lane_count; lane++) {
    v->transfers += r->rides[lane].list.count;
    for (size_t i = 0; i < r->rides[lane].list.count; i++) {
      const struct tfc_engine_ride *x = &r->rides[lane].list.data[i];
      v->transfer_bytes += p->graph->bytes[x->tensor];
      if (d->engine.inbox) v->busy[x->to] += tfc_problem_wire_time(p, x->tensor, tfc_problem_pair(p, x->from, x->to));
    }
  }
}

// Runs the trial from its beginning and makes the new record. Returns the value; TFC_TIME_MAX: out of memory.
static int64_t run_differences(struct tfc_delta *d) {
  struct tfc_engine *e = &d->engine;
  const uint32_t over = tfc_delta_ended_with_all(d);
  uint32_t next = d->from_save == TFC_NONE ? 0 : d->from_save + 1;
  int64_t leaves = d->leaves;
  for (uint32_t i = 0; i < d->silent_count; i++)
    if (d->silent[i].begin < leaves) leaves = d->silent[i].begin;
  copy_all(d);
  if (!copy_lanes(d, d->from_save == TFC_NONE ? 0 : d->save[d->from_save].time)) return TFC_TIME_MAX;
  if (d->from_save == TFC_NONE)
    tfc_engine_begin(e);
  else
    tfc_engine_restore(e, &d->save[d->from_save], 0); // the saved state has already been adjusted
  e->end_position = d->now.ends.position;
  e->reach = e->scalars->ended;
  e->watch_from = tfc_delta_ended_before(d, leaves) + 1;
  for (tfc_engine_stop stop; (stop = tfc_engine_run(e, TFC_TIME_MAX, pause_before(d, next))) != TFC_ENGINE_ENDED;) {
    const uint32_t ended = e->scalars->ended;
    int64_t past, shift;
    if (stop != TFC_ENGINE_PAUSED) return TFC_TIME_MAX;
    save_if_due(d, &next);
    if (ended != e->reach || ended < e->watch_from) continue; // it paused only to save its state
    e->watch_from = ended + 1;
    if (!tfc_delta_joins(d, &past, &shift)) continue;
    leaves = ended >= over ? TFC_TIME_MAX : tfc_delta_leaves_after(d, past);
    const uint32_t save = ended >= over ? d->most_saves : tfc_delta_save_before(d, leaves, ended);
    if (save == TFC_NONE) { // the trial equals the incumbent until `leaves`, so it need not be compared before that
      const uint32_t before = tfc_delta_ended_before(d, leaves);
      if (before > ended) e->watch_from = before + 1;
      continue;
    }
    const int64_t until = ended >= over ? TFC_TIME_MAX : d->save[save].time;
    for (; next < d->most_saves && next <= save; next++) {
      struct tfc_engine_save *s = &d->save[next];
      if (s->time == TFC_TIME_MAX) continue;
      tfc_delta_adjust(d, s->block, s->time, past);
      tfc_engine_save_shift(e, s, shift);
    }
    if (!copy_later(d, past, until, shift, ended)) return TFC_TIME_MAX;
    if (ended >= over) return d->verdict.value + shift;
    tfc_engine_restore(e, &d->save[save], 0);
    e->reach = e->scalars->ended;
    e->watch_from = tfc_delta_ended_before(d, leaves) + 1;
  }
  for (; next < d->most_saves; next++) d->save[next].time = TFC_TIME_MAX;
  return e->scalars->value;
}

void tfc_delta_record_trial(struct tfc_delta *d, struct tfc_verdict *out) {
  struct tfc_engine *e = &d->engine;
  if (!d->verdict.legal) { // the record of an illegal incumbent has no part that could be copied
    tfc_delta_record(d, out);
    return;
  }
  if (!d->now.ends.node) {
    const uint32_t from = d->from_save;
    record_into(e, &d->now);
    rewind_lanes(&d->now, d->lane_count, from == TFC_NONE ? 0 : d->save[from].time);
    if (from == TFC_NONE)
      tfc_engine_begin(e);
    else
      tfc_engine_restore(e, &d->save[from], 0);
    settle(d, run_on(d, from == TFC_NONE ? 0 : from + 1), out);
    record_into(e, NULL);
    return;
  }
  record_into(e, &d->next);
  const int64_t value = run_differences(d);
  record_into(e, NULL);
  e->end_position = NULL;
  // there is no memory for a second record, so the trial is recorded again into the existing one
  if (value == TFC_TIME_MAX) {
    tfc_delta_record(d, out);
    return;
  }
  add_up(d, out);
  out->legal = true, out->value = value, out->cut = false;
  const struct record old = d->now;
  d->now = d->next, d->next = old;
}
