// Throughput objective: for a single move, tfc_loads computes the result without making the move; several moves are
// made and, if the trial is not committed, undone.
//
// Step objective: the incumbent's simulation is recorded, with saved states at regular distances. A trial restarts from
// the last saved state before its first possible difference (delta_leave.c). It runs until its state equals the
// incumbent's again, apart from a shift in time (delta_join.c). If nothing differs after that, its value is known: the
// incumbent's value plus the shift. Otherwise it continues from a saved state just before the next difference. Trials
// save no states; committing a trial runs the changed part once more and saves on the way.
#include <stdlib.h>
#include <string.h>

#include "placer/simulate/delta_join.h"
#include "placer/simulate/delta_leave.h"
#include "placer/simulate/delta_private.h"
#include "placer/simulate/delta_record.h"

tfc_status tfc_delta_create(const struct tfc_problem *p, struct tfc_delta **out) {
  tfc_status s = NULL;
  struct tfc_delta *d = calloc(1, sizeof *d);
  if (!d) return tfc_status_no_memory("delta evaluation");
  d->problem = p;
  d->step = p->objective == TFC_OBJECTIVE_STEP;
  d->device = calloc((size_t)p->unit_count + 1, sizeof *d->device);
  d->incumbent = calloc((size_t)p->unit_count + 1, sizeof *d->incumbent);
  d->verdict.busy = calloc(p->device_count, sizeof *d->verdict.busy);
  d->verdict.memory = calloc(p->device_count, sizeof *d->verdict.memory);
  d->memory = calloc(p->device_count, sizeof *d->memory);
  d->load = calloc(p->device_count, sizeof *d->load);
  if (!d->device || !d->incumbent || !d->verdict.busy || !d->verdict.memory || !d->memory || !d->load)
    TFC_TRY(s, tfc_status_no_memory("delta evaluation"));
  if (d->step) {
    TFC_TRY(s, tfc_engine_init(&d->engine, p, p->live_matters));
    d->engine.count_bytes = true;
    TFC_TRY(s, tfc_delta_init_records(d));
    d->tail = calloc(p->node_count, sizeof *d->tail);
    d->position = calloc(p->node_count, sizeof *d->position);
    d->stale = calloc(p->node_count / 64 + 1u, sizeof *d->stale);
    d->was = calloc(p->node_count, sizeof *d->was);
    d->mark = calloc(p->node_count, sizeof *d->mark);
    if (!d->was || !d->mark || !d->tail || !d->position || !d->stale)
      TFC_TRY(s, tfc_status_no_memory("delta evaluation"));
  } else {
    TFC_TRY(s, tfc_loads_init(&d->loads, p));
  }
  for (uint32_t i = 0; d->step && i < p->node_count; i++) d->position[p->graph->topological[i]] = i;
  *out = d, d = NULL;
out:
  tfc_delta_free(d);
  return s;
}

void tfc_delta_free(struct tfc_delta *d) {
  if (!d) return;
  tfc_loads_deinit(&d->loads);
  tfc_engine_deinit(&d->engine);
  tfc_delta_deinit_records(d);
  free(d->device), free(d->incumbent), free(d->verdict.busy), free(d->verdict.memory), free(d->memory), free(d->load);
  free(d->tail), free(d->position), free(d->stale), free(d->was), free(d->mark);
  tfc_array_free(&d->moved);
  tfc_array_free(&d->swapped);
  free(d);
}

const tfc_device_id *tfc_delta_device(const struct tfc_delta *d) {
  return d->incumbent;
}
const uint32_t *tfc_delta_rank(const struct tfc_delta *d) {
  return d->step ? d->engine.rank_now : d->problem->rank;
}
const struct tfc_verdict *tfc_delta_verdict(const struct tfc_delta *d) {
  return &d->verdict;
}
const int64_t *tfc_delta_start(const struct tfc_delta *d) {
  return d->now.start;
}
const int64_t *tfc_delta_end(const struct tfc_delta *d) {
  return d->now.end;
}
const int64_t *tfc_delta_arrival(const struct tfc_delta *d) {
  return d->now.arrival;
}

static uint64_t excess_of(const struct tfc_delta *d, bool with_peaks, uint64_t *memory) {
  const struct tfc_problem *p = d->problem;
  uint64_t excess = 0;
  for (uint32_t i = 0; i < p->device_count; i++) {
    uint64_t bytes = d->memory[i] + (with_peaks && d->engine.live ? d->engine.peak[i] : 0);
    if (memory) memory[i] = bytes;
    if (bytes > p->limit[i]) excess += bytes - p->limit[i];
  }
  return excess;
}

static void settle_memory(const struct tfc_delta *d, struct tfc_verdict *v) {
  v->excess = excess_of(d, true, v->memory);
  v->feasible = v->excess == 0;
}

static void fill_from_loads(const struct tfc_delta *d, struct tfc_verdict *v) {
  v->value = tfc_loads_value(&d->loads);
  v->legal = v->value != TFC_TIME_MAX;
  v->cut = false;
  v->excess = tfc_loads_excess(&d->loads);
  v->feasible = v->excess == 0;
  v->transfers = d->loads.transfers, v->transfer_bytes = d->loads.transfer_bytes;
}

static int64_t tail_of(const struct tfc_delta *d, uint32_t n) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_cost_graph *g = p->graph;
  const tfc_device_id *device = d->engine.device;
  const uint32_t here = device[n];
  int64_t longest = 0;
  for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++)
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
      const uint32_t m = g->consumer[c], there = device[m];
      int64_t length = d->tail[m];
      if (there != here && tfc_problem_pair(p, here, there)->linked)
        length += tfc_problem_wire_time(p, t, tfc_problem_pair(p, here, there));
      if (length > longest) longest = length;
    }
  return longest + tfc_problem_time(p, n, here);
}

static void mark_stale(struct tfc_delta *d, uint32_t n) {
  const struct tfc_cost_graph *g = d->problem->graph;
  for (uint32_t j = g->first_input[n]; j < g->first_input[n + 1]; j++) {
    const uint32_t position = d->position[g->producer[g->input[j]]];
    d->stale[position >> 6] |= UINT64_C(1) << (position & 63);
  }
}

// Updates the tails for the trial's moves: those of the moved nodes, then those of their predecessors, until no tail
// changes any more.
static void update_tails(struct tfc_delta *d) {
  const struct tfc_problem *p = d->problem;
  for (size_t k = 0; k < d->moved.count; k++)
    for (uint32_t i = p->first_member[d->moved.data[k].unit]; i < p->first_member[d->moved.data[k].unit + 1]; i++) {
      const uint32_t position = d->position[p->member[i]];
      d->stale[position >> 6] |= UINT64_C(1) << (position & 63);
      mark_stale(d, p->member[i]);
    }
  for (uint32_t word = d->highest ? (d->highest - 1) / 64 + 1 : 0; word-- > 0;)
    while (d->stale[word]) {
      const uint32_t bit = 63 - (uint32_t)__builtin_clzll(d->stale[word]), n = p->graph->topological[word * 64 + bit];
      const int64_t tail = tail_of(d, n);
      d->stale[word] &= ~(UINT64_C(1) << bit);
      if (tail == d->tail[n]) continue;
      d->tail[n] = tail;
      mark_stale(d, n);
    }
}

void tfc_delta_reset(struct tfc_delta *d, const tfc_device_id *device, const uint32_t *rank, struct tfc_verdict *out) {
  const struct tfc_problem *p = d->problem;
  d->open = d->peeked = false;
  memcpy(d->device, device, sizeof *device * p->unit_count);
  if (device != d->incumbent) memcpy(d->incumbent, device, sizeof *device * p->unit_count);
  memset(d->memory, 0, sizeof *d->memory * p->device_count);
  memset(d->load, 0, sizeof *d->load * p->device_count);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    d->memory[device[u]] += p->unit_memory[u];
    d->load[device[u]] += tfc_problem_unit_time(p, u, device[u]);
  }
  if (!d->step) {
    tfc_loads_reset(&d->loads, device);
    fill_from_loads(d, &d->verdict);
    memcpy(d->verdict.busy, d->loads.load, sizeof *d->loads.load * p->device_count);
    memcpy(d->verdict.memory, d->memory, sizeof *d->memory * p->device_count);
  } else {
    // Swaps are made in the engine's own arrays, so it uses these even if the ranks are the problem's.
    const uint32_t *r = rank ? rank : p->rank;
    if (r != d->engine.rank) memcpy(d->engine.rank, r, sizeof *r * p->node_count);
    for (uint32_t n = 0; n < p->node_count; n++) {
      d->engine.device[n] = device[p->unit[n]];
      d->engine.by_rank[d->engine.rank[n]] = n;
    }
    d->engine.rank_now = d->engine.rank, d->engine.by_rank_now = d->engine.by_rank;
    for (uint32_t i = p->node_count; i-- > 0;) d->tail[p->graph->topological[i]] = tail_of(d, p->graph->topological[i]);
    tfc_delta_record(d, &d->verdict);
    settle_memory(d, &d->verdict);
  }
  if (out) {
    struct tfc_verdict v = d->verdict;
    v.busy = out->busy, v.memory = out->memory;
    if (v.busy) memcpy(v.busy, d->verdict.busy, sizeof *v.busy * p->device_count);
    if (v.memory) memcpy(v.memory, d->verdict.memory, sizeof *v.memory * p->device_count);
    *out = v;
  }
}

static void place_unit(struct tfc_delta *d, uint32_t unit, tfc_device_id to) {
  const struct tfc_problem *p = d->problem;
  const tfc_device_id from = d->device[unit];
  d->memory[from] -= p->unit_memory[unit], d->memory[to] += p->unit_memory[unit];
  d->load[from] -= tfc_problem_unit_time(p, unit, from), d->load[to] += tfc_problem_unit_time(p, unit, to);
  d->device[unit] = to;
  if (!d->step) {
    tfc_loads_move(&d->loads, unit, to);
    return;
  }
  for (uint32_t i = p->first_member[unit]; i < p->first_member[unit + 1]; i++) d->engine.device[p->member[i]] = to;
}
static void swap_ranks(struct tfc_delta *d, uint32_t a, uint32_t b) {
  uint32_t *rank = d->engine.rank, x = rank[a];
  rank[a] = rank[b], rank[b] = x;
  d->engine.by_rank[rank[a]] = a, d->engine.by_rank[rank[b]] = b;
}

static void close_trial(struct tfc_delta *d) {
  d->peeked = false;
  if (!d->open) return;
  for (size_t i = d->swapped.count; i >= 2; i -= 2) swap_ranks(d, d->swapped.data[i - 2], d->swapped.data[i - 1]);
  for (size_t i = d->moved.count; i-- > 0;) place_unit(d, d->moved.data[i].unit, d->moved.data[i].from);
  d->open = false;
}

// Throughput: computes what the loads would be after the move of one unit, without moving it.
static void peek(struct tfc_delta *d, const struct tfc_move *move, int64_t cutoff, struct tfc_verdict *v) {
  const struct tfc_problem *p = d->problem;
  struct tfc_loads *l = &d->loads;
  tfc_loads_peek(l, move->unit, move->device);
  int64_t value = 0;
  for (uint32_t i = 0; i < p->device_count; i++) value = l->peek[i] > value ? l->peek[i] : value;
  v->legal = !l->peek_missing;
  v->cut = v->legal && value >= cutoff;
  v->value = v->legal && !v->cut ? value : TFC_TIME_MAX;
  v->excess = p->has_limits ? tfc_loads_peek_excess(l, move->unit, move->device) : 0;
  v->feasible = v->excess == 0;
  v->transfers = v->transfer_bytes = 0;
  v->busy = NULL, v->memory = NULL;
  d->peek = *move, d->peeked = true;
}

// Runs the trial, whose moves were made, to its end or until its value is known.
static tfc_engine_stop run_trial(struct tfc_delta *d, int64_t cutoff, int64_t leaves, struct tfc_verdict *v) {
  struct tfc_engine *e = &d->engine;
  if (!d->now.ends.node || !d->verdict.legal) return tfc_engine_run(e, cutoff, UINT32_MAX);
  const uint32_t over = tfc_delta_ended_with_all(d);
  tfc_engine_stop stop;
  e->end_position = d->now.ends.position;
  e->reach = e->scalars->ended;
  e->watch_from = tfc_delta_ended_before(d, leaves) + 1;
  while ((stop = tfc_engine_run(e, cutoff, UINT32_MAX)) == TFC_ENGINE_PAUSED) {
    const uint32_t ended = e->scalars->ended;
    int64_t past, shift;
    e->watch_from = ended + d->patience;
    if (!tfc_delta_joins(d, &past, &shift)) continue;
    if (ended >= over) { // no difference follows: from here on the trial equals the incumbent
      v->value = d->verdict.value + shift;
      break;
    }
    leaves = tfc_delta_leaves_after(d, past);
    const uint32_t save = tfc_delta_save_before(d, leaves, ended);
    if (save != TFC_NONE) {
      tfc_engine_restore(e, &d->save[save], shift);
      tfc_delta_adjust(d, e->block, d->save[save].time, past);
      e->reach = e->scalars->ended;
    }
    // Until `leaves` the trial equals the incumbent, so the engine need not pause for another comparison before that.
    const uint32_t before = tfc_delta_ended_before(d, leaves);
    if (before >= e->watch_from) e->watch_from = before + 1;
  }
  e->end_position = NULL;
  return stop;
}

static void try_step(struct tfc_delta *d, int64_t cutoff, struct tfc_verdict *v) {
  struct tfc_engine *e = &d->engine;
  // The record of an illegal incumbent ends where a link was missing, so a trial cannot use any part of it.
  const int64_t leaves = d->leaves = d->verdict.legal ? tfc_delta_leaves(d) : 0;
  if (!d->verdict.legal) d->silent_count = 0;
  d->from_save = TFC_NONE;
  for (uint32_t i = d->verdict.legal ? d->most_saves : 0; i-- > 0 && d->from_save == TFC_NONE;)
    if (d->save[i].time < TFC_TIME_MAX && d->save[i].time <= leaves && !tfc_delta_within_silence(d, d->save[i].time))
      d->from_save = i;
  if (d->from_save == TFC_NONE) {
    tfc_engine_begin(e);
  } else {
    tfc_engine_restore(e, &d->save[d->from_save], 0);
    tfc_delta_adjust(d, e->block, d->save[d->from_save].time, -1);
  }
  // `highest` is one more than a position; 0: no node was moved, and every tail is correct.
  e->tail = cutoff == TFC_TIME_MAX ? NULL : d->tail, e->position = d->position, e->tail_from = d->highest;
  const tfc_engine_stop stop = run_trial(d, cutoff, leaves, v);
  e->tail = NULL;
  v->legal = stop != TFC_ENGINE_NO_LINK;
  v->cut = stop == TFC_ENGINE_CUT;
  if (stop == TFC_ENGINE_ENDED || stop == TFC_ENGINE_PAUSED) {
    if (stop == TFC_ENGINE_ENDED) v->value = e->scalars->value;
    if (v->value >= cutoff) v->value = TFC_TIME_MAX, v->cut = true;
    v->excess = excess_of(d, true, NULL);
  }
}

void tfc_delta_try(struct tfc_delta *d, const struct tfc_move *moves, uint32_t move_count, const uint32_t *swaps,
                   uint32_t swap_count, int64_t cutoff, struct tfc_verdict *out) {
  const struct tfc_problem *p = d->problem;
  close_trial(d);
  d->moved.count = d->swapped.count = 0;
  if (!d->step && move_count == 1 && tfc_problem_allows(p, moves->unit, moves->device)) {
    peek(d, moves, cutoff, out);
    return;
  }
  struct tfc_verdict v = {.value = TFC_TIME_MAX};
  if (!d->step) swap_count = 0;
  for (uint32_t k = 0; k < move_count; k++)
    if (!tfc_problem_allows(p, moves[k].unit, moves[k].device)) goto done;
  if (!tfc_array_reserve(&d->moved, move_count) || !tfc_array_reserve(&d->swapped, 2 * (size_t)swap_count)) goto done;
  d->highest = 0;
  d->stamp++;
  for (uint32_t k = 0; k < move_count; k++) {
    d->moved.data[d->moved.count++] = (struct undo){moves[k].unit, d->device[moves[k].unit]};
    for (uint32_t i = p->first_member[moves[k].unit]; d->step && i < p->first_member[moves[k].unit + 1]; i++)
      d->was[p->member[i]] = d->device[moves[k].unit], d->mark[p->member[i]] = d->stamp;
    place_unit(d, moves[k].unit, moves[k].device);
    for (uint32_t i = p->first_member[moves[k].unit]; d->step && i < p->first_member[moves[k].unit + 1]; i++)
      if (d->position[p->member[i]] + 1 > d->highest) d->highest = d->position[p->member[i]] + 1;
  }
  for (uint32_t k = 0; k < swap_count; k++) {
    d->swapped.data[d->swapped.count++] = swaps[2 * k], d->swapped.data[d->swapped.count++] = swaps[2 * k + 1];
    swap_ranks(d, swaps[2 * k], swaps[2 * k + 1]);
  }
  d->open = true;
  if (!d->step) {
    fill_from_loads(d, &v);
    if (v.legal && v.value >= cutoff) v.value = TFC_TIME_MAX, v.cut = true;
    goto done;
  }
  v.legal = true;
  v.excess = excess_of(d, false, NULL);
  for (uint32_t i = 0; p->is_bounded && i < p->device_count; i++)
    if (d->load[i] >= cutoff) v.cut = true;
  if (!v.cut) try_step(d, cutoff, &v);
  v.feasible = v.excess == 0;
done:
  *out = v;
}

void tfc_delta_commit(struct tfc_delta *d) {
  const struct tfc_problem *p = d->problem;
  if (d->peeked)
    place_unit(d, d->peek.unit, d->peek.device), d->incumbent[d->peek.unit] = d->peek.device;
  else if (!d->open)
    return;
  for (size_t i = 0; d->open && i < d->moved.count; i++)
    d->incumbent[d->moved.data[i].unit] = d->device[d->moved.data[i].unit];
  d->open = d->peeked = false;
  if (!d->step) {
    fill_from_loads(d, &d->verdict);
    memcpy(d->verdict.busy, d->loads.load, sizeof *d->loads.load * p->device_count);
    memcpy(d->verdict.memory, d->memory, sizeof *d->memory * p->device_count);
    return;
  }
  update_tails(d);
  // The new record must contain the silent transfers, so the run restarts before the first of them.
  for (uint32_t i = 0; i < d->silent_count; i++)
    while (d->from_save != TFC_NONE && d->save[d->from_save].time > d->silent[i].begin)
      d->from_save = d->from_save ? d->from_save - 1 : TFC_NONE;
  // Where saved states before the trial's first difference contain something that the moves change, they are adjusted
  // to the new incumbent.
  for (uint32_t i = 0; d->from_save != TFC_NONE && i <= d->from_save; i++)
    if (d->save[i].time < TFC_TIME_MAX) tfc_delta_adjust(d, d->save[i].block, d->save[i].time, -1);
  tfc_delta_record_trial(d, &d->verdict);
  settle_memory(d, &d->verdict);
}
