#include "rl/rollout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/search/local.h"

// LANES devices are worked on at once.
enum { GAPS = 8, STATES = 16, LANES = TFC_SCENE_LANES, WEIGHT_ROW = (TFC_FEATURE_COUNT + 7) / 8 * 8 };
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t masks __attribute__((vector_size(LANES * sizeof(int64_t))));
typedef float narrow __attribute__((vector_size(LANES * sizeof(float))));
typedef int32_t counts __attribute__((vector_size(LANES * sizeof(int32_t))));
#define INLINE static inline __attribute__((always_inline))
// Compiles a function also for processors with AVX2. The bits are the same: nothing is contracted or reordered.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(TFC_SANITIZED) && defined(__OPTIMIZE__)
#define CLONES __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define CLONES
#endif
#define LARGEST_TABLE (64u << 20)  // most entries of the table of arrivals
#define LARGEST_STATES (64u << 20) // most bytes of kept states

struct totals {
  double load;   // of all devices
  uint32_t used; // number of devices that have at least one unit
  uint32_t last; // device of the last unit
};
struct tfc_rollout {
  const struct tfc_scene *scene;
  uint32_t stride; // as the scene's
  bool kept_arrivals;
  // What the units placed so far have led to: arrays in `state`, which is copied as a whole.
  unsigned char *state;
  size_t state_size, none_at; // behind none_at, everything is TFC_NONE (or not a number) at first; before it, 0
  struct totals *totals;
  double *finish;         // [node]
  double *free_at, *load; // [device]
  double *gap_begin;      // [gap * stride + device] when the device is idle before `free_at`; GAPS of these are known
  double *gap_end;
  uint64_t *memory;     // [device]
  uint32_t *readers;    // [row * stride + device] number of units placed on the device that read the net of this row
  double *share;        // [row * stride + device] net_weight times `readers` over the number of the net's readers
  uint32_t *of_kind;    // [kind * stride + device]
  uint32_t *kind_count; // [kind]
  uint32_t *units;      // [device] number of units
  double *there_at; // [tensor * stride + device] when the tensor is on the device; not a number: it was not sent there
  uint32_t *device; // [unit] or TFC_NONE
  uint32_t *kin;    // [kind] the device of the last placed unit of this kind, or TFC_NONE
  // States at STATES positions of the order, for runs that only place a few units anew: what lies before these units is
  // as in the run before, as far as the given placement is.
  unsigned char *kept_states; // [STATES * state_size]; NULL: there are none (yet)
  tfc_device_id *given;       // [unit] the placement that the kept states are of
  uint32_t kept_count;        // how many are valid: those of the first positions
  // State of one decision.
  float *feature; // [feature * stride + device]
  float *score;
  float weights[TFC_GATE_COUNT][WEIGHT_ROW]; // the weights of this run; rows are filled up with zeros
  double *start, *end, *ready, *fetch, *inputs, *siblings, *readers_there, *occupied;
  double *from, *time; // what `start` is the soonest for
  uint32_t looked_at;  // the node that `start` is for
  uint32_t *pace_now;  // [device] which slowdown the device has for the unit that is placed next, as
  double *pace;        // [device] the factor of the device's times
  bool *may;
};

// Gives out a part of the state: returns the offset of `count` elements of `size` bytes, and moves *at behind them.
static size_t part(size_t *at, size_t count, size_t size) {
  const size_t begin = *at;
  *at += (count * size + 63) & ~(size_t)63;
  return begin;
}

static bool make_state(struct tfc_rollout *r) {
  const struct tfc_problem *p = r->scene->problem;
  const size_t stride = r->stride, kinds = r->scene->kind_count, rows = r->scene->row_count;
  size_t at = 0;
  const size_t totals = part(&at, 1, sizeof *r->totals), finish = part(&at, p->node_count, sizeof *r->finish),
               free_at = part(&at, stride, sizeof *r->free_at), load = part(&at, stride, sizeof *r->load),
               gap_begin = part(&at, GAPS * stride, sizeof *r->gap_begin),
               gap_end = part(&at, GAPS * stride, sizeof *r->gap_end), memory = part(&at, stride, sizeof *r->memory),
               readers = part(&at, rows * stride, sizeof *r->readers),
               share = part(&at, rows * stride, sizeof *r->share),
               of_kind = part(&at, kinds * stride, sizeof *r->of_kind),
               kind_count = part(&at, kinds, sizeof *r->kind_count), units = part(&at, stride, sizeof *r->units);
  r->none_at = at;
  const size_t there = part(&at, r->kept_arrivals ? p->tensor_count * stride : 0, sizeof *r->there_at),
               device = part(&at, p->unit_count, sizeof *r->device), kin = part(&at, kinds, sizeof *r->kin);
  r->state_size = at;
  if (!(r->state = aligned_alloc(64, at))) return false;
  r->totals = (struct totals *)(r->state + totals), r->finish = (double *)(r->state + finish);
  r->free_at = (double *)(r->state + free_at), r->load = (double *)(r->state + load);
  r->gap_begin = (double *)(r->state + gap_begin), r->gap_end = (double *)(r->state + gap_end);
  r->memory = (uint64_t *)(r->state + memory), r->readers = (uint32_t *)(r->state + readers);
  r->share = (double *)(r->state + share), r->of_kind = (uint32_t *)(r->state + of_kind);
  r->kind_count = (uint32_t *)(r->state + kind_count), r->units = (uint32_t *)(r->state + units);
  r->there_at = (double *)(r->state + there), r->device = (uint32_t *)(r->state + device);
  r->kin = (uint32_t *)(r->state + kin);
  return true;
}

tfc_status tfc_rollout_create(const struct tfc_scene *v, struct tfc_rollout **out) {
  const struct tfc_problem *p = v->problem;
  struct tfc_rollout *r = calloc(1, sizeof *r);
  if (!r) return tfc_status_no_memory("a rollout");
  const size_t stride = r->stride = v->stride;
  r->scene = v;
  r->kept_arrivals = (uint64_t)p->tensor_count * p->device_count <= LARGEST_TABLE;
  r->start = calloc(stride * 11, sizeof *r->start);
  r->pace_now = calloc(stride, sizeof *r->pace_now);
  r->feature = calloc((TFC_FEATURE_COUNT + 1) * stride, sizeof *r->feature);
  r->may = calloc(stride, sizeof *r->may);
  if (!make_state(r) || !r->start || !r->pace_now || !r->feature || !r->may) {
    tfc_rollout_free(r);
    return tfc_status_no_memory("a rollout");
  }
  r->end = r->start + stride, r->ready = r->end + stride, r->fetch = r->ready + stride;
  r->inputs = r->fetch + stride, r->siblings = r->inputs + stride, r->readers_there = r->siblings + stride;
  r->occupied = r->readers_there + stride, r->pace = r->occupied + stride;
  r->from = r->pace + stride, r->time = r->from + stride;
  r->score = r->feature + TFC_FEATURE_COUNT * stride;
  *out = r;
  return NULL;
}

void tfc_rollout_free(struct tfc_rollout *r) {
  if (!r) return;
  free(r->state), free(r->kept_states), free(r->given);
  free(r->start), free(r->pace_now), free(r->feature), free(r->may);
  free(r);
}

// Notes how much longer operations take on each device because several devices work at once: those in use by now and,
// if it is not one of them, the device itself.
static void set_paces(struct tfc_rollout *r) {
  const struct tfc_scene *v = r->scene;
  for (uint32_t d = 0; d < v->problem->device_count; d++) {
    const uint32_t count = v->problem->machine->devices[d].slowdown_count;
    const uint32_t busy = r->totals->used + (r->units[d] ? 0 : 1);
    r->pace_now[d] = count ? (busy < count ? busy : count) - 1 : 0;
    r->pace[d] = v->pace[(size_t)d * v->paces + r->pace_now[d]];
  }
}

static void begin(struct tfc_rollout *r) {
  memset(r->state, 0, r->none_at);
  memset(r->state + r->none_at, 0xff, r->state_size - r->none_at);
  r->totals->last = TFC_NONE;
  set_paces(r);
}

// --- Vectors of LANES devices ----------------------------------------------------------------------------------------

INLINE lanes load(const double *x) {
  lanes v;
  memcpy(&v, x, sizeof v);
  return v;
}
INLINE void store(double *x, lanes v) {
  memcpy(x, &v, sizeof v);
}
INLINE counts load_counts(const uint32_t *x) {
  counts v;
  memcpy(&v, x, sizeof v);
  return v;
}
INLINE lanes choose(masks which, lanes a, lanes b) {
  return (lanes)((which & (masks)a) | (~which & (masks)b));
}
INLINE lanes where(masks which, lanes a) { // elsewhere 0
  return (lanes)(which & (masks)a);
}
INLINE lanes later(lanes a, lanes b) {
  return choose(a > b, a, b);
}
INLINE lanes earlier(lanes a, lanes b) {
  return choose(a < b, a, b);
}
INLINE narrow one_where(counts which) {
  const narrow one = {1, 1, 1, 1};
  return (narrow)(which & (counts)one);
}
INLINE narrow to_floats(lanes x) {
  return __builtin_convertvector(x, narrow);
}
INLINE narrow over(lanes x, lanes and) { // x / (x + and); 0 where x <= 0
  return to_floats(where(x > 0, x / (x + and)));
}

// --- The schedule ----------------------------------------------------------------------------------------------------

// Returns the earliest starts on the devices from `at` on, from `ready` on, of something that takes `time`.
INLINE lanes soonest(const struct tfc_rollout *r, uint32_t at, lanes ready, lanes time, uint32_t stride) {
  lanes start = later(load(&r->free_at[at]), ready);
#pragma GCC unroll 8
  for (uint32_t k = 0; k < GAPS; k++) {
    const lanes in_gap = later(load(&r->gap_begin[k * stride + at]), ready),
                never = {INFINITY, INFINITY, INFINITY, INFINITY};
    start = earlier(choose(in_gap + time <= load(&r->gap_end[k * stride + at]), in_gap, never), start);
  }
  return start;
}

// Stores a gap; if there is no room, it replaces the shortest one.
static void keep_gap(struct tfc_rollout *r, uint32_t d, double from, double to) {
  uint32_t shortest = d;
  double length = r->gap_end[d] - r->gap_begin[d];
  for (uint32_t k = d + r->stride; k < GAPS * r->stride; k += r->stride)
    if (r->gap_end[k] - r->gap_begin[k] < length) shortest = k, length = r->gap_end[k] - r->gap_begin[k];
  if (to - from > length) r->gap_begin[shortest] = from, r->gap_end[shortest] = to;
}

static void take(struct tfc_rollout *r, uint32_t d, double start, double end) {
  if (start >= r->free_at[d]) {
    if (start > r->free_at[d]) keep_gap(r, d, r->free_at[d], start);
    r->free_at[d] = end;
    return;
  }
  for (uint32_t k = d; k < GAPS * r->stride; k += r->stride) {
    const double begin = r->gap_begin[k], over = r->gap_end[k];
    if (start < begin || end > over) continue;
    if (start - begin < over - end) { // the longer rest stays in its place
      r->gap_begin[k] = end;
      keep_gap(r, d, begin, start);
    } else {
      r->gap_end[k] = start;
      keep_gap(r, d, end, over);
    }
    return;
  }
  if (end > r->free_at[d]) r->free_at[d] = end;
}

static double wire_time(const struct tfc_scene *v, uint32_t tensor, const struct tfc_pair *pair) {
  if (v->wire) return v->wire[tensor];
  return pair->linked ? (double)tfc_problem_wire_time(v->problem, tensor, pair) : 0;
}

INLINE void schedule(struct tfc_rollout *r, uint32_t n, uint32_t d, const uint32_t stride) {
  const struct tfc_scene *v = r->scene;
  const struct tfc_problem *p = v->problem;
  const struct tfc_cost_graph *g = p->graph;
  double ready = 0, stands = 0;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++) {
    const struct tfc_scene_input *in = &v->input[i];
    double *there = r->kept_arrivals ? &r->there_at[(size_t)in->tensor * stride + d] : NULL;
    if (there && *there >= 0) { // it was made there, or it was sent there before
      ready = *there > ready ? *there : ready;
      continue;
    }
    const uint32_t from = r->device[in->unit];
    const struct tfc_pair *pair = tfc_problem_pair(p, from, d);
    const double time = from == d ? 0 : wire_time(v, in->tensor, pair), at = r->finish[in->producer] + time;
    ready = at > ready ? at : ready;
    if (!there) continue;
    *there = (at + 1) - 1; // rounded as when policies were trained, which stored 1 ps more: the answers stay the same
    if (pair->occupies & TFC_OCCUPIES_RECEIVER) stands += time;
    if (pair->occupies & TFC_OCCUPIES_SENDER) r->load[from] += time, r->totals->load += time, r->free_at[from] += time;
  }
  const double time = (double)tfc_problem_time(p, n, d) * r->pace[d], whole = stands + time;
  const double from = ready - stands > 0 ? ready - stands : 0;
  double start = from;
  if (r->looked_at == n && r->from[d] == from && r->time[d] == whole) // the choice of the device needed it, too
    start = r->start[d];
  else if (from < r->free_at[d])
    start = soonest(r, d / LANES * LANES, (lanes){0} + from, (lanes){0} + whole, stride)[d % LANES];
  const double end = start + stands + time;
  if (whole > 0) take(r, d, start, end);
  r->load[d] += stands, r->totals->load += stands;
  r->finish[n] = end;
  for (uint32_t t = g->first_tensor[n]; r->kept_arrivals && t < g->first_tensor[n + 1]; t++)
    r->there_at[(size_t)t * stride + d] = end;
}

INLINE void put(struct tfc_rollout *r, uint32_t u, uint32_t d) {
  const struct tfc_scene *v = r->scene;
  const struct tfc_problem *p = v->problem;
  const uint32_t kind = v->kind[u];
  const double time = (double)tfc_problem_unit_time(p, u, d);
  r->device[u] = d;
  if (!r->units[d]++) r->totals->used++, set_paces(r);
  r->memory[d] += p->unit_memory[u];
  r->load[d] += time, r->totals->load += time;
  for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
    const struct tfc_scene_need *need = &v->need[i];
    const size_t at = (size_t)need->row * r->stride + d;
    if (need->row) r->share[at] = need->weight * ++r->readers[at] / need->fan;
  }
  r->of_kind[(size_t)kind * r->stride + d]++, r->kind_count[kind]++;
  r->kin[kind] = d;
  r->totals->last = d;
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

// Whether all placed neighbours of a unit have links to the device.
static bool is_linked(const struct tfc_rollout *r, uint32_t u, uint32_t d) {
  const struct tfc_problem *p = r->scene->problem;
  for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
    const uint32_t from = r->device[r->scene->need[i].source];
    if (from != TFC_NONE && from != d && !tfc_problem_pair(p, from, d)->linked) return false;
  }
  for (uint32_t j = p->net_first[p->first_net[u]]; j < p->net_first[p->first_net[u + 1]]; j++) {
    const uint32_t to = r->device[p->net_unit[j]];
    if (to != TFC_NONE && to != d && !tfc_problem_pair(p, d, to)->linked) return false;
  }
  return true;
}

// Finds the devices that a unit may go to: allowed, enough memory, links to all placed neighbours; of several unused
// interchangeable devices only the first.
INLINE uint32_t find_devices(struct tfc_rollout *r, uint32_t u) {
  const struct tfc_problem *p = r->scene->problem;
  const struct tfc_scene *v = r->scene;
  const bool twins = r->totals->used < p->device_count && !v->has_pins;
  uint32_t count = v->may_count[u];
  memcpy(r->may, &v->may[(size_t)u * v->stride], v->stride);
  for (uint32_t d = 0; p->has_limits && d < p->device_count; d++)
    if (r->may[d] && r->memory[d] + p->unit_memory[u] > p->limit[d]) r->may[d] = false, count--;
  if (p->has_missing_links)
    for (uint32_t d = 0; d < p->device_count; d++)
      if (r->may[d] && !is_linked(r, u, d)) r->may[d] = false, count--;
  for (uint32_t k = 0; twins && k < p->device_count; k++) {
    const uint32_t d = v->device[k];
    for (uint32_t j = 0; j < k && r->may[d] && !r->units[d]; j++)
      if (!r->units[v->device[j]] && p->twin[v->device[j]] == p->twin[d]) r->may[d] = false, count--;
  }
  const uint32_t any = count ? TFC_NONE : most_room(r, u);
  if (any != TFC_NONE) r->may[any] = true, count = 1;
  return count;
}

// --- Features and scores ---------------------------------------------------------------------------------------------
//
// They are computed for LANES devices at once, in two passes: when the unit would start on each device and what is
// there, then features and scores, some of which compare a device with the best one. For devices where the unit may not
// go, numbers are computed that nobody reads.

// When the first node of the unit can start on the devices from `at` on, by its inputs.
INLINE lanes when_ready(const struct tfc_rollout *r, uint32_t n, uint32_t at) {
  const struct tfc_scene *v = r->scene;
  const struct tfc_problem *p = v->problem;
  lanes ready = {0};
  for (uint32_t i = p->graph->first_input[n]; i < p->graph->first_input[n + 1]; i++) {
    const struct tfc_scene_input *in = &v->input[i];
    const double made = r->finish[in->producer];
    lanes sent_now = {0}, there;
    if (v->wire) {
      sent_now += made + v->wire[in->tensor];
    } else {
      const uint32_t from = r->device[in->unit];
      for (uint32_t l = 0; l < LANES && at + l < p->device_count; l++)
        sent_now[l] = made + wire_time(v, in->tensor, tfc_problem_pair(p, from, at + l));
    }
    if (r->kept_arrivals) {
      there = load(&r->there_at[(size_t)in->tensor * r->stride + at]);
    } else {
      there = sent_now;
      const uint32_t from = r->device[in->unit];
      if (from - at < LANES) there[from - at] = made;
    }
    ready = later(choose(there >= 0, there, sent_now), ready);
  }
  return ready;
}

INLINE void look(struct tfc_rollout *r, uint32_t u, uint32_t n, const uint32_t stride, const bool watched) {
  const struct tfc_scene *v = r->scene;
  const struct tfc_problem *p = v->problem;
  const masks lane = {0, 1, 2, 3};
  const bool receiver = v->occupies & TFC_OCCUPIES_RECEIVER;
  double first_start = INFINITY, first_end = INFINITY, most = 0;
  for (uint32_t at = 0; at < stride; at += LANES) {
    lanes siblings = {0}, inputs = {0}, fetch = {0}, occupied = {0}, readers = {0};
    for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
      // The net, or other readers of it, are on a device, or it has to be fetched.
      const struct tfc_scene_need *need = &v->need[i];
      const uint32_t from = r->device[need->source];
      const lanes share = load(&r->share[(size_t)need->row * stride + at]), none = {0};
      const masks other = share > 0, here = lane + at == (masks){0} + from;
      siblings += share;
      if (from == TFC_NONE) continue;
      inputs += choose(here, none + need->weight, where(other, none + 0.5 * need->weight));
      if (v->wire) {
        fetch += where(~(here | other), none + need->wire);
        continue;
      }
      for (uint32_t l = 0; l < LANES && at + l < p->device_count; l++) {
        if (here[l] || other[l]) continue;
        const struct tfc_pair *pair = tfc_problem_pair(p, from, at + l);
        const double time = wire_time(v, p->net_tensor[need->net], pair);
        fetch[l] += time;
        if (pair->occupies & TFC_OCCUPIES_RECEIVER) occupied[l] += time;
      }
    }
    if (v->wire && receiver) occupied = fetch;
    for (uint32_t net = p->first_net[u]; v->read_before[u] && net < p->first_net[u + 1]; net++)
      readers += load(&r->share[(size_t)v->net_row[net] * stride + at]);
    const lanes time = load(&v->first_time[(size_t)u * stride + at]) * load(&r->pace[at]) + occupied, zero = {0},
                ready = when_ready(r, n, at);
    const lanes from = later(ready - occupied, zero), start = soonest(r, at, from, time, stride), end = start + time;
    store(&r->siblings[at], siblings), store(&r->inputs[at], inputs), store(&r->fetch[at], fetch);
    store(&r->occupied[at], occupied), store(&r->readers_there[at], readers);
    store(&r->from[at], from), store(&r->time[at], time), store(&r->ready[at], ready);
    store(&r->start[at], start), store(&r->end[at], end);
    for (uint32_t l = 0; l < LANES; l++) {
      if (!r->may[at + l]) continue;
      first_start = start[l] < first_start ? start[l] : first_start;
      first_end = end[l] < first_end ? end[l] : first_end;
      most = fetch[l] > most ? fetch[l] : most;
    }
  }
  uint32_t latest = TFC_NONE, chain = TFC_NONE;
  double latest_at = -1;
  int64_t longest = -1;
  for (uint32_t i = p->graph->first_input[n]; i < p->graph->first_input[n + 1]; i++) {
    const struct tfc_scene_input *in = &v->input[i];
    const uint32_t from = r->device[in->unit];
    if (r->finish[in->producer] > latest_at) latest_at = r->finish[in->producer], latest = from;
    if (p->remaining[in->producer] > longest) longest = p->remaining[in->producer], chain = from;
  }
  float weight[WEIGHT_ROW] = {0};
  const float *gate = &v->gate[(size_t)u * TFC_GATE_COUNT];
  for (uint32_t g = 0; g < TFC_GATE_COUNT; g++)
    for (uint32_t f = 0; f < WEIGHT_ROW; f++) weight[f] += gate[g] * r->weights[g][f];
  // Where a sum is 0, all its terms are 0 as well, and their shares are 0 / 1.
  const double needed = v->need_weight[u], made = v->made_weight[u], own = v->own[u];
  const double most_or_1 = most > 0 ? most : 1, needed_or_1 = needed > 0 ? needed : 1, made_or_1 = made > 0 ? made : 1;
  const double share = v->work / p->device_count + 1;
  const double mean_load = r->totals->load / p->device_count + 1e-4 * share;
  const lanes none = {0}, size = none + (own + needed + 1e-4 * v->span), moved = none + (own + 1e-6 * v->span);
  const uint32_t kind = v->kind[u], of_kind = r->kind_count[kind] ? r->kind_count[kind] : 1;
  for (uint32_t at = 0; at < stride; at += LANES) {
    const lanes start = load(&r->start[at]), end = load(&r->end[at]), fetch = load(&r->fetch[at]),
                carried = load(&r->load[at]);
    const lanes balance = carried / mean_load - 1, sign = {-0.0, -0.0, -0.0, -0.0};
    const counts place = {(int32_t)at, (int32_t)at + 1, (int32_t)at + 2, (int32_t)at + 3}, no = {0};
    narrow f[TFC_FEATURE_COUNT], score = {0};
    f[TFC_FEATURE_START] = over(start - first_start, size);
    f[TFC_FEATURE_FINISH] = over(end - first_end, size);
    f[TFC_FEATURE_DELAY] = over(64 * (end - first_end) / v->span, none + 1);
    f[TFC_FEATURE_FETCH] = over(fetch, moved);
    f[TFC_FEATURE_MISSING] = to_floats(fetch / most_or_1);
    f[TFC_FEATURE_INPUTS] = to_floats(load(&r->inputs[at]) / needed_or_1);
    f[TFC_FEATURE_LATEST] = one_where(place == no + (int32_t)latest);
    f[TFC_FEATURE_CHAIN] = one_where(place == no + (int32_t)chain);
    f[TFC_FEATURE_SIBLINGS] = to_floats(load(&r->siblings[at]) / needed_or_1);
    f[TFC_FEATURE_READERS] = to_floats(load(&r->readers_there[at]) / made_or_1);
    f[TFC_FEATURE_LOAD] = to_floats(carried / share);
    f[TFC_FEATURE_BALANCE] = to_floats(balance / (2 + (lanes)((masks)balance & ~(masks)sign)));
    f[TFC_FEATURE_IDLE] = over(start - load(&r->free_at[at]), size);
    f[TFC_FEATURE_WAIT] = over(start - load(&r->ready[at]), size);
    f[TFC_FEATURE_MEMORY] = (narrow){0};
    f[TFC_FEATURE_SPEED] = (narrow){0};
    for (uint32_t d = at; p->has_limits && d < at + LANES && d < p->device_count; d++)
      if (p->limit[d] != TFC_NO_LIMIT)
        f[TFC_FEATURE_MEMORY][d - at] = (float)((double)(r->memory[d] + p->unit_memory[u]) / ((double)p->limit[d] + 1));
    if (v->speed) {
      const float *speed = &v->speed[((size_t)u * stride + at) * v->paces];
      for (uint32_t l = 0; l < LANES; l++) f[TFC_FEATURE_SPEED][l] = speed[l * v->paces + r->pace_now[at + l]];
    } else {
      for (uint32_t l = 0; l < LANES; l++)
        if (r->may[at + l]) f[TFC_FEATURE_SPEED][l] = tfc_scene_speed(v, u, at + l, r->pace_now[at + l]);
    }
    f[TFC_FEATURE_UNUSED] = one_where(load_counts(&r->units[at]) == no);
    f[TFC_FEATURE_KIND] =
        __builtin_convertvector(load_counts(&r->of_kind[(size_t)kind * stride + at]), narrow) / (float)of_kind;
    f[TFC_FEATURE_KIN] = one_where(place == no + (int32_t)r->kin[kind]);
    f[TFC_FEATURE_LAST] = one_where(place == no + (int32_t)r->totals->last);
    f[TFC_FEATURE_OCCUPY] = over(load(&r->occupied[at]), moved);
#pragma GCC unroll 32
    for (uint32_t k = 0; k < TFC_FEATURE_COUNT; k++) score += weight[k] * f[k];
    for (uint32_t k = 0; watched && k < TFC_FEATURE_COUNT; k++)
      memcpy(&r->feature[k * stride + at], &f[k], sizeof f[k]);
    memcpy(&r->score[at], &score, sizeof score);
  }
}

// Tells the caller of a choice, with the features of the devices only.
static void tell(struct tfc_rollout *r, const struct tfc_rollout_options *o, uint32_t u, uint32_t d) {
  const uint32_t devices = r->scene->problem->device_count;
  for (uint32_t f = 1; f < TFC_FEATURE_COUNT; f++)
    memmove(r->feature + f * devices, r->feature + f * r->stride, devices * sizeof *r->feature);
  o->watch(o->user, &(struct tfc_choice){u, devices, r->may, r->feature, r->score, d});
}

INLINE uint32_t draw(struct tfc_rollout *r, const struct tfc_rollout_options *o) {
  const struct tfc_scene *v = r->scene;
  uint32_t best = TFC_NONE;
  float highest = -INFINITY;
  double sum = 0;
  for (uint32_t k = 0; k < v->problem->device_count;
       k++) { // without branches: which device is best cannot be predicted
    const uint32_t d = v->device[k];
    const bool better = r->may[d] & ((best == TFC_NONE) | (r->score[d] > highest));
    best = better ? d : best, highest = better ? r->score[d] : highest;
  }
  if (o->temperature <= 0) return best;
  const float top = r->score[best];
  double *share = r->end; // `start` is still needed
  for (uint32_t d = 0; d < v->problem->device_count; d++) {
    share[d] = r->may[d] ? exp((double)(r->score[d] - top) / o->temperature) : 0;
    sum += share[d];
  }
  double at = tfc_random_unit(o->random) * sum;
  for (uint32_t k = 0; k < v->problem->device_count; k++) {
    const uint32_t d = v->device[k];
    if (r->may[d] && (at -= share[d]) < 0) return d;
  }
  return best;
}

INLINE uint32_t decide(struct tfc_rollout *r, uint32_t u, uint32_t n, const float *weights,
                       const struct tfc_rollout_options *o, const uint32_t stride, const bool watched) {
  const struct tfc_scene *v = r->scene;
  const uint32_t count = find_devices(r, u);
  if (count == 1 || !weights) {
    uint32_t k = count > 1 ? (uint32_t)tfc_random_below(o->random, count) : 0;
    for (uint32_t i = 0; i < v->problem->device_count; i++)
      if (r->may[v->device[i]] && k-- == 0) return v->device[i];
  }
  look(r, u, n, stride, watched);
  r->looked_at = n;
  const uint32_t d = draw(r, o);
  if (watched) tell(r, o, u, d);
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
      if (r->given[u] != device[u] && r->scene->first[u] < same) same = r->scene->first[u];
    memcpy(r->given, device, sizeof *device * p->unit_count);
    while (r->kept_count && kept_at(r, r->kept_count - 1) > same) r->kept_count--;
    for (uint32_t k = r->kept_count; k-- > 0;)
      if (kept_at(r, k) <= first) {
        memcpy(r->state, r->kept_states + k * r->state_size, r->state_size);
        set_paces(r);
        return kept_at(r, k);
      }
  }
  begin(r);
  return 0;
}

// What a run has to do: from the position `at` of the order on, `left` units are to be placed; the first of them, at
// the position `first`, is where states are not kept any more.
struct task {
  const float *weights;
  const struct tfc_rollout_options *o;
  const tfc_device_id *device; // of the kept units
  uint32_t at, first, left;
};
INLINE void place_on(struct tfc_rollout *r, struct task t, const uint32_t stride, const bool watched) {
  const struct tfc_problem *p = r->scene->problem;
  const bool *kept = t.o->kept;
  for (uint32_t at = t.at; t.left && at < p->node_count; at++) {
    if (kept && r->kept_states && at <= t.first && r->kept_count < STATES && at == kept_at(r, r->kept_count))
      memcpy(r->kept_states + r->kept_count++ * r->state_size, r->state, r->state_size);
    const uint32_t n = r->scene->order[at], u = p->unit[n];
    if (r->device[u] == TFC_NONE) {
      const bool stays = kept && kept[u];
      put(r, u, stays ? t.device[u] : decide(r, u, n, t.weights, t.o, stride, watched));
      t.left -= !stays;
    }
    schedule(r, n, r->device[u], stride);
  }
}
CLONES
static void place(struct tfc_rollout *r, struct task t) {
  if (r->stride == LANES && !t.o->watch) // the usual number of devices
    place_on(r, t, LANES, false);
  else
    place_on(r, t, r->stride, t.o->watch != NULL);
}

bool tfc_rollout_run(struct tfc_rollout *r, const float *weights, const struct tfc_rollout_options *o,
                     tfc_device_id *device) {
  const struct tfc_problem *p = r->scene->problem;
  struct task t = {.weights = weights, .o = o, .device = device, .first = p->node_count};
  for (uint32_t u = 0; u < p->unit_count; u++) {
    if (o->kept && o->kept[u]) continue;
    t.left++;
    if (r->scene->first[u] < t.first) t.first = r->scene->first[u];
  }
  for (uint32_t g = 0; weights && g < TFC_GATE_COUNT; g++)
    memcpy(r->weights[g], weights + g * TFC_FEATURE_COUNT, TFC_FEATURE_COUNT * sizeof *weights);
  r->looked_at = TFC_NONE;
  if (o->kept)
    t.at = begin_from(r, device, t.first);
  else
    begin(r);
  place(r, t);
  // Behind the last choice only kept units are left. Nothing depends any more on when they run, only on where.
  for (uint32_t u = 0; o->kept && u < p->unit_count; u++)
    if (r->device[u] == TFC_NONE) r->device[u] = device[u], r->memory[device[u]] += p->unit_memory[u];
  bool broken = false;
  for (uint32_t u = 0; u < p->unit_count; u++) device[u] = (tfc_device_id)r->device[u];
  for (uint32_t d = 0; d < p->device_count; d++) broken |= r->memory[d] > p->limit[d];
  if (!broken && !p->has_missing_links) return true;
  return tfc_local_repair(p, o->random, device, o->kept);
}
