// Throughput: tfc_loads, asked about a single move, moved and moved back for more. Step: the incumbent's simulation is
// kept as a row of saved states. Nothing differs before the first input of a moved node is produced (its transfers, or
// its presence, follow from where its consumers are), or before a node whose rank changed is ready; so a trial restarts
// from the last state before that. A transfer more or less on a wire that is free meanwhile changes nothing else: it
// does not count. Trials do not save states; committing runs the changed part once more, saving as it goes.
#include "placer/delta.h"

#include <stdlib.h>
#include <string.h>

#include "placer/engine.h"
#include "placer/loads.h"

#define SAVES 24
#define MOST_ARRIVALS (UINT32_C(1) << 22)

struct undo {
  uint32_t unit;
  tfc_device_id from;
};

// A transfer that the trial has and the incumbent has not (added), or the other way round, and that nobody notices: no
// other transfer is on its wire, or joins it, from `begin` to `end`.
struct silent {
  uint32_t tensor, wire;
  tfc_device_id device;
  bool added;
  int64_t begin, end;
};
#define MOST_SILENT 24

struct tfc_delta {
  const struct tfc_problem *problem;
  bool step;
  tfc_device_id *device; // [unit] of the incumbent, with the trial's moves while one is open
  struct tfc_verdict verdict;
  uint64_t *memory; // [device] static bytes
  int64_t *load;    // [device] ps of operations (step)
  TFC_ARRAY(struct undo) moved;
  TFC_ARRAY(uint32_t) swapped;
  bool open;   // a trial is applied and not committed
  bool peeked; // or would be, and was only asked about (throughput, one move)
  struct tfc_move peek;
  struct tfc_verdict tried;
  // Throughput.
  struct tfc_loads loads;
  // Step.
  struct tfc_engine engine;
  struct tfc_engine_save save[SAVES];
  uint32_t save_count;
  int64_t *end, *start, *arrival; // [node] of the incumbent
  uint32_t *sequence;
  int64_t *arrived;               // [tensor * device_count + device] ends of the incumbent's transfers; NULL: not kept
  struct tfc_engine_rides *rides; // [wire] the incumbent's transfers; NULL without `arrived`
  struct silent silent[MOST_SILENT];
  uint32_t silent_count;
  uint32_t *mark, stamp; // [node] the last trial that moved it
  tfc_device_id *was;    // [node] device in the incumbent, for nodes that a trial moves
  int64_t *tail;         // [node] longest remaining path with the incumbent's devices and transfers
  uint32_t *position;    // [node] in the topological order
  uint32_t highest;      // position of a node that the trial moved
  uint32_t from_save;    // where the trial began
  bool out_of_memory;    // for saves: then trials begin at 0
};

tfc_status tfc_delta_create(const struct tfc_problem *p, struct tfc_delta **out) {
  tfc_status s = NULL;
  struct tfc_delta *d = calloc(1, sizeof *d);
  if (!d) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for delta evaluation");
  d->problem = p;
  d->step = p->objective == TFC_OBJECTIVE_STEP;
  d->device = calloc((size_t)p->unit_count + 1, sizeof *d->device);
  d->verdict.busy = calloc(p->device_count, sizeof *d->verdict.busy);
  d->verdict.memory = calloc(p->device_count, sizeof *d->verdict.memory);
  d->memory = calloc(p->device_count, sizeof *d->memory);
  d->load = calloc(p->device_count, sizeof *d->load);
  if (!d->device || !d->verdict.busy || !d->verdict.memory || !d->memory || !d->load)
    TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for delta evaluation");
  if (d->step) {
    TFC_TRY(s, tfc_engine_init(&d->engine, p));
    d->engine.count_bytes = true;
    d->start = calloc(p->node_count, sizeof *d->start);
    d->end = calloc(p->node_count, sizeof *d->end);
    d->arrival = calloc(p->node_count, sizeof *d->arrival);
    d->sequence = calloc(p->node_count, sizeof *d->sequence);
    d->tail = calloc(p->node_count, sizeof *d->tail);
    d->position = calloc(p->node_count, sizeof *d->position);
    d->was = calloc(p->node_count, sizeof *d->was);
    d->mark = calloc(p->node_count, sizeof *d->mark);
    if (!p->has_live && (size_t)p->tensor_count * p->device_count <= MOST_ARRIVALS)
      d->arrived = calloc((size_t)p->tensor_count * p->device_count + 1, sizeof *d->arrived);
    if (d->arrived && d->engine.plain) d->rides = calloc(p->wire_count + 1u, sizeof *d->rides);
    if (!d->was || !d->mark || !d->start || !d->end || !d->arrival || !d->sequence || !d->tail || !d->position)
      TFC_FAIL(s, TFC_RESOURCE_EXHAUSTED, "out of memory for delta evaluation");
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
  for (uint32_t w = 0; d->rides && w < d->problem->wire_count; w++) tfc_array_free(&d->rides[w].list);
  free(d->rides);
  tfc_loads_deinit(&d->loads);
  tfc_engine_deinit(&d->engine);
  for (uint32_t i = 0; i < SAVES; i++) tfc_engine_save_deinit(&d->save[i]);
  free(d->device), free(d->verdict.busy), free(d->verdict.memory), free(d->memory), free(d->load);
  free(d->start), free(d->end), free(d->arrival), free(d->sequence), free(d->tail), free(d->position), free(d->arrived),
      free(d->was), free(d->mark);
  tfc_array_free(&d->moved);
  tfc_array_free(&d->swapped);
  free(d);
}

const tfc_device_id *tfc_delta_device(const struct tfc_delta *d) {
  return d->device;
}
const uint32_t *tfc_delta_rank(const struct tfc_delta *d) {
  return d->step ? d->engine.rank_now : d->problem->rank;
}
const struct tfc_verdict *tfc_delta_verdict(const struct tfc_delta *d) {
  return &d->verdict;
}
const int64_t *tfc_delta_start(const struct tfc_delta *d) {
  return d->start;
}
const int64_t *tfc_delta_end(const struct tfc_delta *d) {
  return d->end;
}
const int64_t *tfc_delta_arrival(const struct tfc_delta *d) {
  return d->arrival;
}

static uint64_t excess_of(const struct tfc_delta *d, bool with_peaks, uint64_t *memory) {
  const struct tfc_problem *p = d->problem;
  uint64_t excess = 0;
  for (uint32_t i = 0; i < p->device_count; i++) {
    uint64_t bytes = d->memory[i] + (with_peaks && p->has_live ? d->engine.peak[i] : 0);
    if (memory) memory[i] = bytes;
    if (bytes > p->limit[i]) excess += bytes - p->limit[i];
  }
  return excess;
}

// Runs the incumbent on from save `from` (TFC_NONE: from the start), recording and saving states.
static void run_recording(struct tfc_delta *d, uint32_t from, struct tfc_verdict *v) {
  const struct tfc_problem *p = d->problem;
  struct tfc_engine *e = &d->engine;
  const uint32_t stride = p->node_count / SAVES + 1;
  e->start = d->start, e->end = d->end, e->arrival = d->arrival, e->sequence = d->sequence;
  e->arrived = d->arrived, e->rides = d->rides;
  for (uint32_t w = 0; d->rides && w < p->wire_count; w++) {
    const int64_t time = from == TFC_NONE ? 0 : d->save[from].time;
    struct tfc_engine_rides *r = &d->rides[w];
    while (r->list.count && r->list.data[r->list.count - 1].joined >= time) r->list.count--;
    for (r->over = r->list.count; r->over && r->list.data[r->over - 1].ended >= time; r->over--) continue;
  }
  if (from == TFC_NONE)
    tfc_engine_begin(e), d->save_count = 0;
  else
    tfc_engine_restore(e, &d->save[from]), d->save_count = from + 1;
  tfc_engine_stop stop;
  uint32_t pause = d->save_count * stride;
  while ((stop = tfc_engine_run(e, TFC_TIME_MAX, pause)) == TFC_ENGINE_PAUSED) {
    if (d->save_count < SAVES && tfc_engine_save(e, &d->save[d->save_count])) {
      d->save_count++;
      pause = d->save_count * stride;
      if (pause <= e->scalars->ended) pause = e->scalars->ended + 1;
    } else {
      pause = UINT32_MAX;
    }
  }
  e->start = e->end = e->arrival = e->arrived = NULL, e->sequence = NULL, e->rides = NULL;
  v->legal = stop == TFC_ENGINE_ENDED;
  v->value = v->legal ? e->scalars->value : TFC_TIME_MAX;
  v->cut = false;
  v->transfers = e->scalars->transfer_count, v->transfer_bytes = v->legal ? tfc_engine_transfer_bytes(e) : 0;
  v->excess = excess_of(d, true, v->memory);
  v->feasible = v->excess == 0;
  if (v->busy) memcpy(v->busy, e->busy, sizeof *v->busy * p->device_count);
}

static void fill_from_loads(const struct tfc_delta *d, struct tfc_verdict *v) {
  v->value = tfc_loads_value(&d->loads);
  v->legal = v->value != TFC_TIME_MAX;
  v->cut = false;
  v->excess = tfc_loads_excess(&d->loads);
  v->feasible = v->excess == 0;
  v->transfers = d->loads.transfers, v->transfer_bytes = d->loads.transfer_bytes;
}

// Tails of the nodes at `from` in the topological order and before it.
static void update_tails(struct tfc_delta *d, uint32_t from) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_cost_graph *g = p->graph;
  const tfc_device_id *device = d->engine.device;
  for (uint32_t i = from + 1; i-- > 0;) {
    const uint32_t n = g->topological[i], here = device[n];
    int64_t longest = 0;
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++)
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
        const uint32_t m = g->consumer[c], there = device[m];
        int64_t length = d->tail[m];
        if (there != here && tfc_problem_pair(p, here, there)->linked)
          length += tfc_problem_wire_time(p, t, tfc_problem_pair(p, here, there));
        if (length > longest) longest = length;
      }
    d->tail[n] = longest + tfc_problem_time(p, n, here);
  }
}

void tfc_delta_reset(struct tfc_delta *d, const tfc_device_id *device, const uint32_t *rank, struct tfc_verdict *out) {
  const struct tfc_problem *p = d->problem;
  d->open = d->peeked = false;
  if (device != d->device) memcpy(d->device, device, sizeof *device * p->unit_count);
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
    // Swaps are made in the engine's own arrays, so they are used even for the problem's rank.
    const uint32_t *r = rank ? rank : p->rank;
    if (r != d->engine.rank) memcpy(d->engine.rank, r, sizeof *r * p->node_count);
    for (uint32_t n = 0; n < p->node_count; n++) {
      d->engine.device[n] = device[p->unit[n]];
      d->engine.by_rank[d->engine.rank[n]] = n;
    }
    d->engine.rank_now = d->engine.rank, d->engine.by_rank_now = d->engine.by_rank;
    update_tails(d, p->node_count - 1);
    run_recording(d, TFC_NONE, &d->verdict);
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

// Where the node is in the incumbent, while a trial is applied.
static uint32_t incumbent_device(const struct tfc_delta *d, uint32_t n) {
  return d->mark[n] == d->stamp ? d->was[n] : d->engine.device[n];
}

// When the incumbent has the tensor on a device, TFC_TIME_MAX: never. `there`: some consumer of it is there.
static int64_t tensor_at(const struct tfc_delta *d, uint32_t tensor, uint32_t device, bool there) {
  const uint32_t producer = d->problem->graph->producer[tensor];
  if (incumbent_device(d, producer) == device) return d->end[producer];
  return there ? d->arrived[(size_t)tensor * d->problem->device_count + device] : TFC_TIME_MAX;
}

// Consumers of the tensor on a device, in the incumbent (bit 0) and in the trial (bit 1).
static uint32_t consumers_on(const struct tfc_delta *d, uint32_t tensor, uint32_t device) {
  const struct tfc_cost_graph *g = d->problem->graph;
  uint32_t found = 0;
  for (uint32_t c = g->first_consumer[tensor]; c < g->first_consumer[tensor + 1] && found != 3; c++) {
    const uint32_t m = g->consumer[c];
    if (incumbent_device(d, m) == device) found |= 1;
    if (d->engine.device[m] == device) found |= 2;
  }
  return found;
}

// Index of the first of the incumbent's transfers on a wire that joined at `time` or later.
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

// Whether a transfer more or less is noticed by nobody; notes it then.
static bool is_silent(struct tfc_delta *d, uint32_t tensor, uint32_t source, uint32_t device, bool added) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_pair *pair = tfc_problem_pair(p, source, device);
  if (!d->rides || !pair->linked) return false;
  struct silent x = {.tensor = tensor, .wire = pair->wire, .device = (tfc_device_id)device, .added = added};
  x.begin = d->end[p->graph->producer[tensor]];
  x.end =
      added ? x.begin + tfc_problem_wire_time(p, tensor, pair) : d->arrived[(size_t)tensor * p->device_count + device];
  for (uint32_t i = 0; i < d->silent_count; i++) {
    const struct silent *y = &d->silent[i];
    if (y->tensor == tensor && y->device == device && y->added == added) return true;
    if (y->wire == x.wire && x.wire != TFC_NONE && x.begin <= y->end && y->begin <= x.end) return false;
  }
  if (d->silent_count == MOST_SILENT) return false;
  if (x.wire != TFC_NONE) {
    const struct tfc_engine_rides *r = &d->rides[x.wire];
    const size_t first = first_ride(r, x.begin), behind = first + !added; // a transfer less is among them itself
    if (behind < r->list.count && r->list.data[behind].joined <= x.end) return false;
    if (added && first && r->list.data[first - 1].ended > x.begin) return false;
  }
  d->silent[d->silent_count++] = x;
  return true;
}

// When a transfer that the trial adds silently ends, TFC_TIME_MAX: there is none.
static int64_t added_at(const struct tfc_delta *d, uint32_t tensor, uint32_t device) {
  for (uint32_t i = 0; i < d->silent_count; i++)
    if (d->silent[i].added && d->silent[i].tensor == tensor && d->silent[i].device == device) return d->silent[i].end;
  return TFC_TIME_MAX;
}

// The first instant of the incumbent at which the trial, which is applied, may differ. A moved node differs when it is
// ready, here or there; its inputs differ when they are produced, if that changes where they are sent.
static int64_t divergence(struct tfc_delta *d) {
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
        const int64_t end = d->end[producer];
        if (end >= first) { // whatever it is, it is not earlier
          ready = TFC_TIME_MAX;
          continue;
        }
        uint32_t here = d->arrived ? consumers_on(d, tensor, from) : 1,
                 there = d->arrived ? consumers_on(d, tensor, to) : 2;
        const uint32_t source = incumbent_device(d, producer);
        bool same =
            (source == from || here == 3 || here == 0 || (here == 1 && is_silent(d, tensor, source, from, false))) &&
            (source == to || there == 3 || there == 0 || (there == 2 && is_silent(d, tensor, source, to, true)));
        if (!same) {
          if (end < first) first = end;
          ready = TFC_TIME_MAX;
          continue;
        }
        int64_t at = !d->arrived                   ? end
                     : source == to || (there & 1) ? tensor_at(d, tensor, to, there & 1)
                                                   : added_at(d, tensor, to);
        if (at > ready) ready = at;
      }
      if (d->arrival[n] < first) first = d->arrival[n];
      if (ready < first) first = ready;
    }
  }
  for (size_t k = 0; k < d->swapped.count; k++)
    if (d->arrival[d->swapped.data[k]] < first) first = d->arrival[d->swapped.data[k]];
  return first;
}

// Inputs of a node that are not on its device yet at the instant of a saved state, which the incumbent and the trial
// share.
static uint32_t pending_at(const struct tfc_delta *d, uint32_t n, int64_t time) {
  const struct tfc_cost_graph *g = d->problem->graph;
  const uint32_t device = d->engine.device[n];
  uint32_t pending = 0;
  for (uint32_t j = g->first_input[n]; j < g->first_input[n + 1]; j++) {
    const uint32_t tensor = g->input[j];
    // What is not produced by then is nowhere; what is, goes where it went.
    if (d->end[g->producer[tensor]] >= time)
      pending++;
    else if (added_at(d, tensor, device) >= time)
      pending += tensor_at(d, tensor, device, consumers_on(d, tensor, device) & 1) >= time;
  }
  return pending;
}

// Whether the trial and the incumbent differ at that instant by a silent transfer that is under way.
static bool within_silence(const struct tfc_delta *d, int64_t time) {
  for (uint32_t i = 0; i < d->silent_count; i++)
    if (time > d->silent[i].begin && time <= d->silent[i].end) return true;
  return false;
}

// Makes a saved state (in its block) right for the trial: nothing that moved had started.
static void adjust(const struct tfc_delta *d, uint8_t *block, int64_t time) {
  const struct tfc_problem *p = d->problem;
  const struct tfc_engine *e = &d->engine;
  int64_t *left = (int64_t *)(void *)(block + ((uint8_t *)e->left - e->block));
  uint32_t *pending = (uint32_t *)(void *)(block + ((uint8_t *)e->pending - e->block));
  for (size_t k = 0; k < d->moved.count; k++) {
    const uint32_t u = d->moved.data[k].unit;
    left[d->moved.data[k].from] -= tfc_problem_unit_time(p, u, d->moved.data[k].from);
    left[d->device[u]] += tfc_problem_unit_time(p, u, d->device[u]);
    for (uint32_t i = p->first_member[u]; d->arrived && i < p->first_member[u + 1]; i++)
      pending[p->member[i]] = pending_at(d, p->member[i], time);
  }
}

// When the last of what the trial touches ended in the incumbent.
static int64_t last_end(const struct tfc_delta *d) {
  const struct tfc_problem *p = d->problem;
  int64_t last = 0;
  for (size_t k = 0; k < d->moved.count; k++)
    for (uint32_t i = p->first_member[d->moved.data[k].unit]; i < p->first_member[d->moved.data[k].unit + 1]; i++)
      if (d->end[p->member[i]] > last) last = d->end[p->member[i]];
  for (size_t k = 0; k < d->swapped.count; k++)
    if (d->end[d->swapped.data[k]] > last) last = d->end[d->swapped.data[k]];
  return last;
}

// One unit, throughput: what the loads would be, without moving anything.
static void peek(struct tfc_delta *d, const struct tfc_move *move, int64_t cutoff, struct tfc_verdict *v) {
  const struct tfc_problem *p = d->problem;
  struct tfc_loads *l = &d->loads;
  tfc_loads_peek(l, move->unit, move->device);
  v->legal = !l->peek_missing;
  if (v->legal) {
    v->value = 0;
    for (uint32_t i = 0; i < p->device_count; i++)
      if (l->peek[i] > v->value) v->value = l->peek[i];
  }
  if (p->has_limits) v->excess = tfc_loads_peek_excess(l, move->unit, move->device);
  v->feasible = v->excess == 0;
  if (v->legal && v->value >= cutoff) v->value = TFC_TIME_MAX, v->cut = true;
  d->peek = *move, d->peeked = true;
}

void tfc_delta_try(struct tfc_delta *d, const struct tfc_move *moves, uint32_t move_count, const uint32_t *swaps,
                   uint32_t swap_count, int64_t cutoff, struct tfc_verdict *out) {
  const struct tfc_problem *p = d->problem;
  struct tfc_verdict v = {.value = TFC_TIME_MAX};
  close_trial(d);
  d->moved.count = d->swapped.count = 0;
  if (!d->step) swap_count = 0;
  for (uint32_t k = 0; k < move_count; k++)
    if (!tfc_problem_allows(p, moves[k].unit, moves[k].device)) goto done;
  if (!d->step && move_count == 1) {
    peek(d, moves, cutoff, &v);
    goto done;
  }
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
  d->from_save = TFC_NONE;
  const int64_t begin = v.cut ? 0 : divergence(d);
  for (uint32_t i = d->save_count; i-- > 0;)
    if (d->save[i].time <= begin && !within_silence(d, d->save[i].time)) {
      d->from_save = i;
      break;
    }
  if (v.cut) {
    v.feasible = v.excess == 0;
    goto done;
  }
  struct tfc_engine *e = &d->engine;
  if (d->from_save == TFC_NONE) {
    tfc_engine_begin(e);
  } else {
    tfc_engine_restore(e, &d->save[d->from_save]);
    adjust(d, e->block, d->save[d->from_save].time);
  }
  // `highest` is one more than a position: 0 where nothing moved, and then every tail is right.
  e->tail = cutoff == TFC_TIME_MAX ? NULL : d->tail, e->position = d->position, e->tail_from = d->highest;
  tfc_engine_stop stop = TFC_ENGINE_PAUSED;
  const int64_t over = last_end(d);
  for (uint32_t i = d->from_save == TFC_NONE ? 0 : d->from_save + 1; i < d->save_count && stop == TFC_ENGINE_PAUSED;
       i++) {
    if (d->save[i].time <= over) continue;
    stop = tfc_engine_run(e, cutoff, tfc_engine_save_ended(e, &d->save[i]));
    if (stop != TFC_ENGINE_PAUSED || !tfc_engine_meets(e, &d->save[i])) continue;
    v.value = d->verdict.value; // from here on it is the incumbent again
    break;
  }
  if (stop == TFC_ENGINE_PAUSED && v.value == TFC_TIME_MAX) stop = tfc_engine_run(e, cutoff, UINT32_MAX);
  e->tail = NULL;
  v.legal = stop != TFC_ENGINE_NO_LINK;
  v.cut = stop == TFC_ENGINE_CUT;
  if (stop == TFC_ENGINE_ENDED || stop == TFC_ENGINE_PAUSED) {
    if (stop == TFC_ENGINE_ENDED) v.value = e->scalars->value;
    if (v.value >= cutoff) v.value = TFC_TIME_MAX, v.cut = true;
    v.excess = excess_of(d, true, NULL);
  }
  v.feasible = v.excess == 0;
done:
  d->tried = v;
  *out = v;
}

void tfc_delta_commit(struct tfc_delta *d) {
  const struct tfc_problem *p = d->problem;
  if (d->peeked)
    place_unit(d, d->peek.unit, d->peek.device);
  else if (!d->open)
    return;
  d->open = d->peeked = false;
  if (!d->step) {
    fill_from_loads(d, &d->verdict);
    memcpy(d->verdict.busy, d->loads.load, sizeof *d->loads.load * p->device_count);
    memcpy(d->verdict.memory, d->memory, sizeof *d->memory * p->device_count);
    return;
  }
  if (d->highest) update_tails(d, d->highest - 1);
  // What is recorded tells of silent transfers too.
  for (uint32_t i = 0; i < d->silent_count; i++)
    while (d->from_save != TFC_NONE && d->save[d->from_save].time > d->silent[i].begin)
      d->from_save = d->from_save ? d->from_save - 1 : TFC_NONE;
  if (d->from_save == TFC_NONE) {
    run_recording(d, TFC_NONE, &d->verdict);
    return;
  }
  // The states before the trial's beginning become those of the new incumbent, as far as they differ.
  for (uint32_t i = 0; i <= d->from_save; i++) adjust(d, d->save[i].block, d->save[i].time);
  run_recording(d, d->from_save, &d->verdict);
}
