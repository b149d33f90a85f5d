#include "rl/rollout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/search/local.h"

enum { GAPS = 8, STATES = 16, WEIGHT_ROW = (TFC_FEATURE_COUNT + 7) / 8 * 8 };
#define INLINE static inline __attribute__((always_inline))
// Compiles a function also for processors with AVX2. The bits are the same: nothing is contracted or reordered.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TFC_SANITIZED) && defined(__OPTIMIZE__)
#define CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define CLONES
#endif
#define LARGEST_TABLE (64u << 20)  // most entries of the table of arrivals
#define LARGEST_STATES (64u << 20) // most bytes of kept states

struct gap {
  double begin, end;
};
struct totals {
  double load;   // of all devices
  uint32_t used; // number of devices that have at least one unit
  uint32_t last; // device of the last unit
};
struct tfc_rollout {
  const struct tfc_scene *scene;
  bool kept_arrivals;
  uint32_t *first; // [unit] the position of its first node in the scene's order
  // What the units placed so far have led to: arrays in `state`, which is copied as a whole.
  unsigned char *state;
  size_t state_size, none_at; // behind none_at, everything is TFC_NONE at first; before it, 0
  struct totals *totals;
  double *finish;           // [node]
  double *there_at;         // [tensor * device_count + device] 1 + its arrival in ps; 0: it was not sent there
  double *free_at, *load;   // [device]
  struct gap (*gaps)[GAPS]; // [device]
  uint64_t *memory;         // [device]
  uint32_t *readers;        // [net * device_count + device] number of placed units there that read it
  uint32_t *of_kind;        // [kind * device_count + device]
  uint32_t *kind_count;     // [kind]
  uint32_t *units;          // [device] number of units
  uint32_t *device;         // [unit] or TFC_NONE
  uint32_t *kin;            // [kind] the device of the last placed unit of this kind, or TFC_NONE
  // States at STATES positions of the order, for runs that only place a few units anew: what lies before these units is
  // as in the run before, as far as the given placement is.
  unsigned char *kept_states; // [STATES * state_size]; NULL: there are none (yet)
  tfc_device_id *given;       // [unit] the placement that the kept states are of
  uint32_t kept_count;        // how many are valid: those of the first positions
  // State of one decision.
  float *feature; // [feature * device_count + device]
  float *score;
  float weights[TFC_GATE_COUNT][WEIGHT_ROW]; // of this run; rows are filled up with zeros
  double *start, *end, *ready, *fetch, *inputs, *siblings, *readers_there, *occupied;
  uint32_t *pace_now; // [device] which slowdown the device has for the unit that is placed next
  bool *may;
};

// Gives out a part of the state: returns the offset of `count` elements of `size` bytes, and moves *at behind them.
static size_t part(size_t *at, size_t count, size_t size) {
  const size_t begin = *at;
  *at += (count * size + 7) & ~(size_t)7;
  return begin;
}

static bool make_state(struct tfc_rollout *r) {
  const struct tfc_problem *p = r->scene->problem;
  const size_t devices = p->device_count, kinds = r->scene->kind_count;
  size_t at = 0;
  const size_t totals = part(&at, 1, sizeof *r->totals), finish = part(&at, p->node_count, sizeof *r->finish),
               there = part(&at, r->kept_arrivals ? p->tensor_count * devices : 0, sizeof *r->there_at),
               free_at = part(&at, devices, sizeof *r->free_at), load = part(&at, devices, sizeof *r->load),
               gaps = part(&at, devices, sizeof *r->gaps), memory = part(&at, devices, sizeof *r->memory),
               readers = part(&at, p->net_count * devices, sizeof *r->readers),
               of_kind = part(&at, kinds * devices, sizeof *r->of_kind),
               kind_count = part(&at, kinds, sizeof *r->kind_count), units = part(&at, devices, sizeof *r->units);
  r->none_at = at;
  const size_t device = part(&at, p->unit_count, sizeof *r->device), kin = part(&at, kinds, sizeof *r->kin);
  r->state_size = at;
  if (!(r->state = calloc(1, at))) return false;
  r->totals = (struct totals *)(r->state + totals), r->finish = (double *)(r->state + finish);
  r->there_at = (double *)(r->state + there), r->free_at = (double *)(r->state + free_at);
  r->load = (double *)(r->state + load), r->gaps = (struct gap(*)[GAPS])(r->state + gaps);
  r->memory = (uint64_t *)(r->state + memory), r->readers = (uint32_t *)(r->state + readers);
  r->of_kind = (uint32_t *)(r->state + of_kind), r->kind_count = (uint32_t *)(r->state + kind_count);
  r->units = (uint32_t *)(r->state + units), r->device = (uint32_t *)(r->state + device);
  r->kin = (uint32_t *)(r->state + kin);
  return true;
}

tfc_status tfc_rollout_create(const struct tfc_scene *v, struct tfc_rollout **out) {
  const struct tfc_problem *p = v->problem;
  const size_t devices = p->device_count;
  struct tfc_rollout *r = calloc(1, sizeof *r);
  if (!r) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for a rollout");
  r->scene = v;
  r->kept_arrivals = (uint64_t)p->tensor_count * devices <= LARGEST_TABLE;
  r->first = calloc((size_t)p->unit_count + 1, sizeof *r->first);
  r->start = calloc(devices * 8, sizeof *r->start);
  r->pace_now = calloc(devices, sizeof *r->pace_now);
  r->feature = calloc((TFC_FEATURE_COUNT + 1) * devices, sizeof *r->feature);
  r->may = calloc(devices, sizeof *r->may);
  if (!make_state(r) || !r->first || !r->start || !r->pace_now || !r->feature || !r->may) {
    tfc_rollout_free(r);
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for a rollout");
  }
  r->end = r->start + devices, r->ready = r->end + devices, r->fetch = r->ready + devices;
  r->inputs = r->fetch + devices, r->siblings = r->inputs + devices, r->readers_there = r->siblings + devices;
  r->occupied = r->readers_there + devices;
  r->score = r->feature + TFC_FEATURE_COUNT * devices;
  for (uint32_t i = p->node_count; i-- > 0;) r->first[p->unit[v->order[i]]] = i;
  *out = r;
  return NULL;
}

void tfc_rollout_free(struct tfc_rollout *r) {
  if (!r) return;
  free(r->first), free(r->state), free(r->kept_states), free(r->given);
  free(r->start), free(r->pace_now), free(r->feature), free(r->may);
  free(r);
}

static void begin(struct tfc_rollout *r) {
  memset(r->state, 0, r->none_at);
  memset(r->state + r->none_at, 0xff, r->state_size - r->none_at);
  r->totals->last = TFC_NONE;
}

// Returns the earliest start on a device, from `ready` on, of something that takes `time`.
static double soonest(const struct tfc_rollout *r, uint32_t d, double ready, double time) {
  double best = r->free_at[d] > ready ? r->free_at[d] : ready;
  if (ready >= r->free_at[d]) return best;
  for (int k = 0; k < GAPS; k++) {
    const struct gap *gap = &r->gaps[d][k];
    const double at = gap->begin > ready ? gap->begin : ready;
    if (at < best && at + time <= gap->end) best = at;
  }
  return best;
}

// Stores a gap; if there is no room, it replaces the shortest one.
static void keep_gap(struct tfc_rollout *r, uint32_t d, double from, double to) {
  struct gap *shortest = &r->gaps[d][0];
  for (int k = 1; k < GAPS; k++)
    if (r->gaps[d][k].end - r->gaps[d][k].begin < shortest->end - shortest->begin) shortest = &r->gaps[d][k];
  if (to - from > shortest->end - shortest->begin) *shortest = (struct gap){from, to};
}

static void take(struct tfc_rollout *r, uint32_t d, double start, double end) {
  if (start >= r->free_at[d]) {
    if (start > r->free_at[d]) keep_gap(r, d, r->free_at[d], start);
    r->free_at[d] = end;
    return;
  }
  for (int k = 0; k < GAPS; k++) {
    struct gap *gap = &r->gaps[d][k];
    if (start < gap->begin || end > gap->end) continue;
    const struct gap after = {end, gap->end};
    gap->end = start;
    if (gap->end - gap->begin < after.end - after.begin) {
      const struct gap before = *gap;
      *gap = after;
      keep_gap(r, d, before.begin, before.end);
    } else {
      keep_gap(r, d, after.begin, after.end);
    }
    return;
  }
  if (end > r->free_at[d]) r->free_at[d] = end;
}

// Returns the entry of the device's slowdowns for the devices in use by now: how much longer operations take because
// several devices work at once.
static uint32_t pace_index(const struct tfc_rollout *r, uint32_t d) {
  const uint32_t count = r->scene->problem->machine->devices[d].slowdown_count;
  const uint32_t busy = r->totals->used + (r->units[d] ? 0 : 1);
  return count ? (busy < count ? busy : count) - 1 : 0;
}

static double wire_time(const struct tfc_problem *p, uint32_t tensor, const struct tfc_pair *pair) {
  return pair->linked ? (double)tfc_problem_wire_time(p, tensor, pair) : 0;
}

// Returns when a tensor that was made on another device at `made` arrives on `to`: by the table or, if it was not sent
// there yet, if it is sent now.
static inline double arrival(const struct tfc_rollout *r, uint32_t tensor, double made, const struct tfc_pair *pair,
                             uint32_t to) {
  const struct tfc_problem *p = r->scene->problem;
  if (r->kept_arrivals) {
    const double at = r->there_at[(size_t)tensor * p->device_count + to];
    if (at > 0) return at - 1;
  }
  return made + wire_time(p, tensor, pair);
}

static void schedule(struct tfc_rollout *r, uint32_t n, uint32_t d) {
  const struct tfc_problem *p = r->scene->problem;
  const struct tfc_cost_graph *g = p->graph;
  double ready = 0, stands = 0;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++) {
    const uint32_t tensor = g->input[i], producer = g->producer[tensor], from = r->device[p->unit[producer]];
    const struct tfc_pair *pair = tfc_problem_pair(p, from, d);
    const double made = r->finish[producer], at = from == d ? made : arrival(r, tensor, made, pair, d);
    if (at > ready) ready = at;
    if (from == d || !r->kept_arrivals || r->there_at[(size_t)tensor * p->device_count + d] > 0) continue;
    r->there_at[(size_t)tensor * p->device_count + d] = at + 1;
    if (!pair->occupies) continue;
    const double time = wire_time(p, tensor, pair);
    if (pair->occupies & TFC_OCCUPIES_RECEIVER) stands += time;
    if (pair->occupies & TFC_OCCUPIES_SENDER) r->load[from] += time, r->totals->load += time, r->free_at[from] += time;
  }
  const double time =
      (double)tfc_problem_time(p, n, d) * r->scene->pace[(size_t)d * r->scene->paces + pace_index(r, d)];
  if (stands > 0) {
    const double start = soonest(r, d, ready - stands > 0 ? ready - stands : 0, stands + time);
    take(r, d, start, start + stands + time);
    r->finish[n] = start + stands + time;
    r->load[d] += stands, r->totals->load += stands;
    return;
  }
  const double start = soonest(r, d, ready, time);
  if (time > 0) take(r, d, start, start + time);
  r->finish[n] = start + time;
}

static void put(struct tfc_rollout *r, uint32_t u, uint32_t d) {
  const struct tfc_problem *p = r->scene->problem;
  const uint32_t kind = r->scene->kind[u];
  const double time = (double)tfc_problem_unit_time(p, u, d);
  r->device[u] = d;
  if (!r->units[d]++) r->totals->used++;
  r->memory[d] += p->unit_memory[u];
  r->load[d] += time, r->totals->load += time;
  for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++)
    r->readers[(size_t)p->need[i] * p->device_count + d]++;
  r->of_kind[(size_t)kind * p->device_count + d]++, r->kind_count[kind]++;
  r->kin[kind] = d;
  r->totals->last = d;
}

INLINE float over(double x, double and) { // x / (x + and), x >= 0
  return x > 0 ? (float)(x / (x + and)) : 0;
}

// Of the devices that can run a unit whose memory no device has left, returns the one with most room.
static uint32_t most_room(const struct tfc_rollout *r, uint32_t u) {
  const struct tfc_problem *p = r->scene->problem;
  uint32_t any = TFC_NONE;
  double room = -INFINITY;
  for (uint32_t k = 0; k < p->device_count; k++) {
    const uint32_t d = r->scene->device[k];
    const double left = (double)p->limit[d] - (double)r->memory[d];
    if (tfc_problem_allows(p, u, d) && (any == TFC_NONE || left > room)) any = d, room = left;
  }
  return any;
}

// Finds the devices that a unit may go to: allowed, enough memory, links to all placed neighbours; of several unused
// interchangeable devices only the first.
static uint32_t find_devices(struct tfc_rollout *r, uint32_t u) {
  const struct tfc_problem *p = r->scene->problem;
  const struct tfc_scene *v = r->scene;
  uint32_t count = 0;
  for (uint32_t k = 0; k < p->device_count; k++) {
    const uint32_t d = v->device[k];
    r->may[d] = false;
    if (!tfc_problem_allows(p, u, d) || r->memory[d] + p->unit_memory[u] > p->limit[d]) continue;
    bool fine = true;
    for (uint32_t j = 0; j < k && !r->units[d] && !v->has_pins && fine; j++)
      fine = r->units[v->device[j]] || p->twin[v->device[j]] != p->twin[d];
    if (p->has_missing_links) {
      for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1] && fine; i++) {
        const uint32_t from = r->device[v->source[p->need[i]]];
        fine = from == TFC_NONE || from == d || tfc_problem_pair(p, from, d)->linked;
      }
      for (uint32_t j = p->net_first[p->first_net[u]]; j < p->net_first[p->first_net[u + 1]] && fine; j++) {
        const uint32_t to = r->device[p->net_unit[j]];
        fine = to == TFC_NONE || to == d || tfc_problem_pair(p, d, to)->linked;
      }
    }
    if (fine) r->may[d] = true, count++;
  }
  const uint32_t any = count ? TFC_NONE : most_room(r, u);
  if (any != TFC_NONE) r->may[any] = true, count = 1;
  return count;
}

// --- Features and scores ---------------------------------------------------------------------------------------------
//
// The functions with a parameter `devices` are compiled for the usual numbers of devices, as loops without branches; so
// they compute some numbers that nobody reads, for devices where the unit may not go.

// When an input of the unit's first node would be on each device.
INLINE void look_at_input(struct tfc_rollout *r, uint32_t tensor, uint32_t from, double made, const uint32_t devices) {
  const struct tfc_scene *v = r->scene;
  double *restrict ready = r->ready;
  if (v->wire && r->kept_arrivals) {
    const double *restrict there = &r->there_at[(size_t)tensor * devices];
    const double sent_now = made + v->wire[tensor];
    for (uint32_t d = 0; d < devices; d++) {
      const double sent = there[d] > 0 ? there[d] - 1 : sent_now, at = d == from ? made : sent;
      ready[d] = at > ready[d] ? at : ready[d];
    }
    return;
  }
  const struct tfc_pair *pair = tfc_problem_pair(v->problem, from, 0);
  for (uint32_t d = 0; d < devices; d++) {
    const double at = from == d ? made : arrival(r, tensor, made, &pair[d], d);
    if (at > ready[d]) ready[d] = at;
  }
}

// What of a net that the unit reads is on each device: the net, or other readers of it; else it has to be fetched.
INLINE void look_at_need(struct tfc_rollout *r, uint32_t net, const uint32_t devices) {
  const struct tfc_scene *v = r->scene;
  const struct tfc_problem *p = v->problem;
  const uint32_t tensor = p->net_tensor[net], from = r->device[v->source[net]];
  const double weight = (double)v->net_weight[net], fan = p->net_first[net + 1] - p->net_first[net];
  const uint32_t *restrict there = &r->readers[(size_t)net * devices];
  double *restrict siblings = r->siblings, *restrict inputs = r->inputs, *restrict fetch = r->fetch,
                   *restrict occupied = r->occupied;
  for (uint32_t d = 0; d < devices; d++) siblings[d] += weight * there[d] / fan;
  if (from == TFC_NONE) return;
  if (v->wire) {
    const double time = v->wire[tensor], half = 0.5 * weight;
    const bool receiver = v->occupies & TFC_OCCUPIES_RECEIVER;
    for (uint32_t d = 0; d < devices; d++) {
      const double share = there[d] ? half : 0, missing = there[d] ? 0 : time;
      inputs[d] += d == from ? weight : share;
      fetch[d] += d == from ? 0 : missing;
      occupied[d] += d == from || !receiver ? 0 : missing;
    }
    return;
  }
  for (uint32_t d = 0; d < devices; d++) {
    if (from == d) {
      inputs[d] += weight;
    } else if (there[d]) {
      inputs[d] += 0.5 * weight;
    } else {
      const struct tfc_pair *pair = tfc_problem_pair(p, from, d);
      const double time = wire_time(p, tensor, pair);
      fetch[d] += time;
      if (pair->occupies & TFC_OCCUPIES_RECEIVER) occupied[d] += time;
    }
  }
}

INLINE void look_on(struct tfc_rollout *r, uint32_t u, uint32_t n, const uint32_t devices) {
  const struct tfc_problem *p = r->scene->problem;
  const struct tfc_scene *v = r->scene;
  const struct tfc_cost_graph *g = p->graph;
  const double own = v->own[u];
  uint32_t latest = TFC_NONE, chain = TFC_NONE;
  double latest_at = -1;
  int64_t longest = -1;
  memset(r->ready, 0, sizeof *r->ready * devices * 6); // all arrays up to and including `occupied`
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++) {
    const uint32_t tensor = g->input[i], producer = g->producer[tensor], from = r->device[p->unit[producer]];
    const double made = r->finish[producer];
    if (made > latest_at) latest_at = made, latest = from;
    if (p->remaining[producer] > longest) longest = p->remaining[producer], chain = from;
    look_at_input(r, tensor, from, made, devices);
  }
  double needed = 0, made = 0;
  for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
    needed += (double)v->net_weight[p->need[i]];
    look_at_need(r, p->need[i], devices);
  }
  for (uint32_t net = p->first_net[u]; net < p->first_net[u + 1]; net++) {
    const double weight = (double)v->net_weight[net], fan = p->net_first[net + 1] - p->net_first[net];
    const uint32_t *restrict there = &r->readers[(size_t)net * devices];
    double *restrict readers = r->readers_there;
    made += weight;
    for (uint32_t d = 0; d < devices; d++) readers[d] += weight * there[d] / fan;
  }
  double first_start = INFINITY, first_end = INFINITY, most = 0;
  for (uint32_t d = 0; d < devices; d++) {
    if (!r->may[d]) continue;
    r->pace_now[d] = pace_index(r, d);
    const double pace = v->pace[(size_t)d * v->paces + r->pace_now[d]];
    const double time = (double)tfc_problem_time(p, n, d) * pace + r->occupied[d];
    const double ready = r->ready[d] - r->occupied[d];
    r->start[d] = soonest(r, d, ready > 0 ? ready : 0, time);
    r->end[d] = r->start[d] + time;
    first_start = r->start[d] < first_start ? r->start[d] : first_start;
    first_end = r->end[d] < first_end ? r->end[d] : first_end;
    most = r->fetch[d] > most ? r->fetch[d] : most;
  }
  // Where a sum is 0, all its terms are 0 as well, and their shares are 0 / 1.
  const double most_or_1 = most > 0 ? most : 1, needed_or_1 = needed > 0 ? needed : 1, made_or_1 = made > 0 ? made : 1;
  const double size = own + needed + 1e-4 * v->span, share = v->work / devices + 1;
  const double mean_load = r->totals->load / devices + 1e-4 * share;
  const uint32_t kind = v->kind[u], of_kind = r->kind_count[kind] ? r->kind_count[kind] : 1;
  const uint32_t *kin_there = &r->of_kind[(size_t)kind * devices];
  float *restrict f = r->feature;
#define AT(name) f[TFC_FEATURE_##name * devices + d]
  for (uint32_t d = 0; d < devices; d++) {
    const double balance = r->load[d] / mean_load - 1;
    AT(START) = over(r->start[d] - first_start, size);
    AT(FINISH) = over(r->end[d] - first_end, size);
    AT(DELAY) = over(64 * (r->end[d] - first_end) / v->span, 1);
    AT(FETCH) = over(r->fetch[d], own + 1e-6 * v->span);
    AT(MISSING) = (float)(r->fetch[d] / most_or_1);
    AT(INPUTS) = (float)(r->inputs[d] / needed_or_1);
    AT(LATEST) = latest == d;
    AT(CHAIN) = chain == d;
    AT(SIBLINGS) = (float)(r->siblings[d] / needed_or_1);
    AT(READERS) = (float)(r->readers_there[d] / made_or_1);
    AT(LOAD) = (float)(r->load[d] / share);
    AT(BALANCE) = (float)(balance / (2 + fabs(balance)));
    AT(IDLE) = over(r->start[d] - r->free_at[d], size);
    AT(WAIT) = over(r->start[d] - r->ready[d], size);
    AT(MEMORY) = 0;
    AT(UNUSED) = r->units[d] == 0;
    AT(KIND) = (float)kin_there[d] / (float)of_kind;
    AT(KIN) = r->kin[kind] == d;
    AT(LAST) = r->totals->last == d;
    AT(OCCUPY) = over(r->occupied[d], own + 1e-6 * v->span);
  }
  for (uint32_t d = 0; p->has_limits && d < devices; d++)
    if (p->limit[d] != TFC_NO_LIMIT)
      AT(MEMORY) = (float)((double)(r->memory[d] + p->unit_memory[u]) / ((double)p->limit[d] + 1));
  for (uint32_t d = 0; d < devices; d++)
    if (r->may[d])
      AT(SPEED) = v->speed ? v->speed[((size_t)u * devices + d) * v->paces + r->pace_now[d]]
                           : tfc_scene_speed(v, u, d, r->pace_now[d]);
#undef AT
}

INLINE void rate_on(struct tfc_rollout *r, uint32_t u, const uint32_t devices) {
  const float *gate = &r->scene->gate[(size_t)u * TFC_GATE_COUNT];
  enum { FEW = 8 };
  float weight[WEIGHT_ROW] = {0}, few[FEW];
  float *restrict score = devices <= FEW ? few : r->score;
  const float *restrict feature = r->feature;
  for (uint32_t g = 0; g < TFC_GATE_COUNT; g++)
    for (uint32_t f = 0; f < WEIGHT_ROW; f++) weight[f] += gate[g] * r->weights[g][f];
  for (uint32_t d = 0; d < devices; d++) score[d] = 0;
  for (uint32_t f = 0; f < TFC_FEATURE_COUNT; f++)
    for (uint32_t d = 0; d < devices; d++) score[d] += weight[f] * feature[f * devices + d];
  if (devices <= FEW) memcpy(r->score, few, sizeof *few * devices);
}

// Computes the features and the scores of a unit whose first node is n.
CLONES
static void look(struct tfc_rollout *r, uint32_t u, uint32_t n) {
  const uint32_t devices = r->scene->problem->device_count;
  switch (devices) {
  case 2: look_on(r, u, n, 2), rate_on(r, u, 2); break;
  case 4: look_on(r, u, n, 4), rate_on(r, u, 4); break;
  case 8: look_on(r, u, n, 8), rate_on(r, u, 8); break;
  default: look_on(r, u, n, devices), rate_on(r, u, devices);
  }
}

static uint32_t draw(struct tfc_rollout *r, const struct tfc_rollout_options *o) {
  const struct tfc_scene *v = r->scene;
  uint32_t best = TFC_NONE;
  double sum = 0;
  for (uint32_t k = 0; k < v->problem->device_count; k++) {
    const uint32_t d = v->device[k];
    if (r->may[d] && (best == TFC_NONE || r->score[d] > r->score[best])) best = d;
  }
  if (o->temperature <= 0) return best;
  const float top = r->score[best];
  for (uint32_t d = 0; d < v->problem->device_count; d++) {
    r->start[d] = r->may[d] ? exp((double)(r->score[d] - top) / o->temperature) : 0;
    sum += r->start[d];
  }
  double at = tfc_random_unit(o->random) * sum;
  for (uint32_t k = 0; k < v->problem->device_count; k++) {
    const uint32_t d = v->device[k];
    if (r->may[d] && (at -= r->start[d]) < 0) return d;
  }
  return best;
}

static uint32_t decide(struct tfc_rollout *r, uint32_t u, uint32_t n, const float *weights,
                       const struct tfc_rollout_options *o) {
  const struct tfc_scene *v = r->scene;
  const uint32_t count = find_devices(r, u);
  if (count == 1 || !weights) {
    uint32_t k = count > 1 ? (uint32_t)tfc_random_below(o->random, count) : 0;
    for (uint32_t i = 0; i < v->problem->device_count; i++)
      if (r->may[v->device[i]] && k-- == 0) return v->device[i];
  }
  look(r, u, n);
  const uint32_t d = draw(r, o);
  if (o->watch) o->watch(o->user, &(struct tfc_choice){u, v->problem->device_count, r->may, r->feature, r->score, d});
  return d;
}

// The position of the order at which the state of this number is kept.
static uint32_t kept_at(const struct tfc_rollout *r, uint32_t number) {
  return (uint32_t)((uint64_t)r->scene->problem->node_count * (number + 1) / (STATES + 1));
}

// Begins a run in which some units stay where `device` has them; `first`: the position at which the first other unit is
// placed. Returns the position from which the run has to go on.
static uint32_t begin_from(struct tfc_rollout *r, const tfc_device_id *device, uint32_t first) {
  const struct tfc_problem *p = r->scene->problem;
  if (!r->kept_states && STATES * (uint64_t)r->state_size <= LARGEST_STATES && first > kept_at(r, 0)) {
    r->given = calloc((size_t)p->unit_count + 1, sizeof *r->given);
    r->kept_states = r->given ? malloc(STATES * r->state_size) : NULL; // without memory for them, nothing is kept
    r->kept_count = 0;
  }
  if (r->kept_states) { // states behind the first unit that is elsewhere now are not valid any more
    uint32_t same = p->node_count;
    for (uint32_t u = 0; u < p->unit_count; u++)
      if (r->given[u] != device[u] && r->first[u] < same) same = r->first[u];
    memcpy(r->given, device, sizeof *device * p->unit_count);
    while (r->kept_count && kept_at(r, r->kept_count - 1) > same) r->kept_count--;
    for (uint32_t k = r->kept_count; k-- > 0;)
      if (kept_at(r, k) <= first) {
        memcpy(r->state, r->kept_states + k * r->state_size, r->state_size);
        return kept_at(r, k);
      }
  }
  begin(r);
  return 0;
}

bool tfc_rollout_run(struct tfc_rollout *r, const float *weights, const struct tfc_rollout_options *o,
                     tfc_device_id *device) {
  const struct tfc_problem *p = r->scene->problem;
  uint32_t left = 0, first = p->node_count, at = 0; // `left` units are not placed yet and not kept
  for (uint32_t u = 0; u < p->unit_count; u++) {
    if (o->kept && o->kept[u]) continue;
    left++;
    if (r->first[u] < first) first = r->first[u];
  }
  for (uint32_t g = 0; weights && g < TFC_GATE_COUNT; g++)
    memcpy(r->weights[g], weights + g * TFC_FEATURE_COUNT, TFC_FEATURE_COUNT * sizeof *weights);
  if (o->kept)
    at = begin_from(r, device, first);
  else
    begin(r);
  for (; left && at < p->node_count; at++) {
    if (o->kept && r->kept_states && at <= first && r->kept_count < STATES && at == kept_at(r, r->kept_count))
      memcpy(r->kept_states + r->kept_count++ * r->state_size, r->state, r->state_size);
    const uint32_t n = r->scene->order[at], u = p->unit[n];
    if (r->device[u] == TFC_NONE) {
      const bool kept = o->kept && o->kept[u];
      put(r, u, kept ? device[u] : decide(r, u, n, weights, o));
      left -= !kept;
    }
    schedule(r, n, r->device[u]);
  }
  // Behind the last choice only kept units are left. Nothing depends any more on when they run, only on where.
  for (uint32_t u = 0; o->kept && u < p->unit_count; u++)
    if (r->device[u] == TFC_NONE) r->device[u] = device[u], r->memory[device[u]] += p->unit_memory[u];
  bool broken = false;
  for (uint32_t u = 0; u < p->unit_count; u++) device[u] = (tfc_device_id)r->device[u];
  for (uint32_t d = 0; d < p->device_count; d++) broken |= r->memory[d] > p->limit[d];
  if (!broken && !p->has_missing_links) return true;
  return tfc_local_repair(p, o->random, device, o->kept);
}
