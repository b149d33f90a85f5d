#include "rl/rollout.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/search/local.h"

enum { GAPS = 8 };
#define LARGEST_TABLE (64u << 20) // most entries of the table of arrivals

struct gap {
  double begin, end;
};
struct tfc_rollout {
  const struct tfc_scene *scene;
  bool kept_arrivals;
  uint32_t *device;       // [unit] or TFC_NONE
  double *finish;         // [node]
  double *there_at;       // [tensor * device_count + device] 1 + its arrival in ps; 0: it was not sent there
  uint32_t *readers;      // [net * device_count + device] number of placed units there that read it
  uint32_t *of_kind;      // [kind * device_count + device]
  uint32_t *kind_count;   // [kind]
  uint32_t *kin;          // [kind] the device of the last placed unit of this kind, or TFC_NONE
  double *free_at, *load; // [device]
  uint64_t *memory;
  uint32_t *units; // [device] number of units
  struct gap (*gaps)[GAPS];
  uint32_t used; // number of devices that have at least one unit
  uint32_t last; // device of the last unit
  double total_load;
  // State of one decision.
  float *feature; // [feature * device_count + device]
  float *score;
  double *start, *end, *ready, *fetch, *inputs, *siblings, *readers_there, *occupied;
  bool *may;
};

tfc_status tfc_rollout_create(const struct tfc_scene *v, struct tfc_rollout **out) {
  const struct tfc_problem *p = v->problem;
  const size_t devices = p->device_count;
  struct tfc_rollout *r = calloc(1, sizeof *r);
  if (!r) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for a rollout");
  r->scene = v;
  r->kept_arrivals = (uint64_t)p->tensor_count * devices <= LARGEST_TABLE;
  r->device = calloc((size_t)p->unit_count + 1, sizeof *r->device);
  r->finish = calloc((size_t)p->node_count + 1, sizeof *r->finish);
  r->there_at = calloc(r->kept_arrivals ? (size_t)p->tensor_count * devices + 1 : 1, sizeof *r->there_at);
  r->readers = calloc((size_t)p->net_count * devices + 1, sizeof *r->readers);
  r->of_kind = calloc((size_t)v->kind_count * devices + 1, sizeof *r->of_kind);
  r->kind_count = calloc((size_t)v->kind_count + 1, sizeof *r->kind_count);
  r->kin = calloc((size_t)v->kind_count + 1, sizeof *r->kin);
  r->free_at = calloc(devices * 10, sizeof *r->free_at);
  r->memory = calloc(devices, sizeof *r->memory);
  r->units = calloc(devices, sizeof *r->units);
  r->gaps = calloc(devices, sizeof *r->gaps);
  r->feature = calloc((TFC_FEATURE_COUNT + 1) * devices, sizeof *r->feature);
  r->may = calloc(devices, sizeof *r->may);
  if (!r->device || !r->finish || !r->there_at || !r->readers || !r->of_kind || !r->kind_count || !r->kin ||
      !r->free_at || !r->memory || !r->units || !r->gaps || !r->feature || !r->may) {
    tfc_rollout_free(r);
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for a rollout");
  }
  r->load = r->free_at + devices, r->start = r->load + devices, r->end = r->start + devices;
  r->ready = r->end + devices, r->fetch = r->ready + devices, r->inputs = r->fetch + devices;
  r->siblings = r->inputs + devices, r->readers_there = r->siblings + devices;
  r->occupied = r->readers_there + devices;
  r->score = r->feature + TFC_FEATURE_COUNT * devices;
  *out = r;
  return NULL;
}

void tfc_rollout_free(struct tfc_rollout *r) {
  if (!r) return;
  free(r->device), free(r->finish), free(r->there_at), free(r->readers), free(r->of_kind), free(r->kind_count);
  free(r->kin), free(r->free_at), free(r->memory), free(r->units), free(r->gaps), free(r->feature), free(r->may);
  free(r);
}

static void begin(struct tfc_rollout *r) {
  const struct tfc_problem *p = r->scene->problem;
  const size_t devices = p->device_count;
  memset(r->device, 0xff, sizeof *r->device * p->unit_count);
  if (r->kept_arrivals) memset(r->there_at, 0, sizeof *r->there_at * p->tensor_count * devices);
  memset(r->readers, 0, sizeof *r->readers * p->net_count * devices);
  memset(r->of_kind, 0, sizeof *r->of_kind * r->scene->kind_count * devices);
  memset(r->kind_count, 0, sizeof *r->kind_count * r->scene->kind_count);
  memset(r->kin, 0xff, sizeof *r->kin * r->scene->kind_count);
  memset(r->free_at, 0, sizeof *r->free_at * devices);
  memset(r->load, 0, sizeof *r->load * devices);
  memset(r->memory, 0, sizeof *r->memory * devices);
  memset(r->units, 0, sizeof *r->units * devices);
  memset(r->gaps, 0, sizeof *r->gaps * devices);
  r->used = 0, r->last = TFC_NONE, r->total_load = 0;
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

// Returns how much longer operations take because several devices work at once: the factor for the devices in use by
// now.
static double pace(const struct tfc_rollout *r, uint32_t d) {
  const struct tfc_machine_device *x = &r->scene->problem->machine->devices[d];
  if (!x->slowdown_count) return 1;
  const uint32_t busy = r->used + (r->units[d] ? 0 : 1);
  return x->slowdown[(busy < x->slowdown_count ? busy : x->slowdown_count) - 1];
}

static double wire_time(const struct tfc_problem *p, uint32_t tensor, uint32_t from, uint32_t to) {
  const struct tfc_pair *pair = tfc_problem_pair(p, from, to);
  return pair->linked ? (double)tfc_problem_wire_time(p, tensor, pair) : 0;
}

// Returns when a tensor produced on `from` arrives on `to`, by the table or, if it was not sent there yet, if sent now.
static double arrival(const struct tfc_rollout *r, uint32_t tensor, uint32_t from, uint32_t to) {
  const struct tfc_problem *p = r->scene->problem;
  const double made = r->finish[p->graph->producer[tensor]];
  if (from == to) return made;
  if (r->kept_arrivals) {
    const double at = r->there_at[(size_t)tensor * p->device_count + to];
    if (at > 0) return at - 1;
  }
  return made + wire_time(p, tensor, from, to);
}

static void schedule(struct tfc_rollout *r, uint32_t n, uint32_t d) {
  const struct tfc_problem *p = r->scene->problem;
  const struct tfc_cost_graph *g = p->graph;
  double ready = 0, stands = 0;
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++) {
    const uint32_t tensor = g->input[i], from = r->device[p->unit[g->producer[tensor]]];
    const double at = arrival(r, tensor, from, d);
    if (at > ready) ready = at;
    if (from == d || !r->kept_arrivals || r->there_at[(size_t)tensor * p->device_count + d] > 0) continue;
    r->there_at[(size_t)tensor * p->device_count + d] = at + 1;
    const struct tfc_pair *pair = tfc_problem_pair(p, from, d);
    if (!pair->occupies) continue;
    const double time = wire_time(p, tensor, from, d);
    if (pair->occupies & TFC_OCCUPIES_RECEIVER) stands += time;
    if (pair->occupies & TFC_OCCUPIES_SENDER) r->load[from] += time, r->total_load += time, r->free_at[from] += time;
  }
  const double time = (double)tfc_problem_time(p, n, d) * pace(r, d);
  if (stands > 0) {
    const double start = soonest(r, d, ready - stands > 0 ? ready - stands : 0, stands + time);
    take(r, d, start, start + stands + time);
    r->finish[n] = start + stands + time;
    r->load[d] += stands, r->total_load += stands;
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
  if (!r->units[d]++) r->used++;
  r->memory[d] += p->unit_memory[u];
  r->load[d] += time, r->total_load += time;
  for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++)
    r->readers[(size_t)p->need[i] * p->device_count + d]++;
  r->of_kind[(size_t)kind * p->device_count + d]++, r->kind_count[kind]++;
  r->kin[kind] = d;
  r->last = d;
}

static inline float over(double x, double and) { // x / (x + and), x >= 0
  return x > 0 ? (float)(x / (x + and)) : 0;
}

// Finds the devices that a unit may go to: allowed, enough memory, links to all placed neighbours; of several unused
// interchangeable devices only the first.
static uint32_t find_devices(struct tfc_rollout *r, uint32_t u) {
  const struct tfc_problem *p = r->scene->problem;
  const struct tfc_scene *v = r->scene;
  uint32_t count = 0, any = TFC_NONE;
  double room = -INFINITY;
  for (uint32_t k = 0; k < p->device_count; k++) {
    const uint32_t d = v->device[k];
    r->may[d] = false;
    if (!tfc_problem_allows(p, u, d)) continue;
    bool fine = true;
    const double left = (double)p->limit[d] - (double)r->memory[d];
    if (any == TFC_NONE || left > room) any = d, room = left;
    if (r->memory[d] + p->unit_memory[u] > p->limit[d]) continue;
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
  if (!count && any != TFC_NONE) r->may[any] = true, count = 1;
  return count;
}

static void look(struct tfc_rollout *r, uint32_t u, uint32_t n) {
  const struct tfc_problem *p = r->scene->problem;
  const struct tfc_scene *v = r->scene;
  const struct tfc_cost_graph *g = p->graph;
  const uint32_t devices = p->device_count;
  const double own = v->own[u];
  uint32_t latest = TFC_NONE, chain = TFC_NONE;
  double latest_at = -1;
  int64_t longest = -1;
  memset(r->ready, 0, sizeof *r->ready * devices * 6); // all arrays up to and including `occupied`
  for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++) {
    const uint32_t tensor = g->input[i], producer = g->producer[tensor], from = r->device[p->unit[producer]];
    if (r->finish[producer] > latest_at) latest_at = r->finish[producer], latest = from;
    if (p->remaining[producer] > longest) longest = p->remaining[producer], chain = from;
    for (uint32_t d = 0; d < devices; d++) {
      const double at = arrival(r, tensor, from, d);
      if (at > r->ready[d]) r->ready[d] = at;
    }
  }
  double needed = 0;
  for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
    const uint32_t net = p->need[i], tensor = p->net_tensor[net], from = r->device[v->source[net]];
    const uint32_t fan = p->net_first[net + 1] - p->net_first[net];
    const double weight = (double)v->net_weight[net];
    const uint32_t *there = &r->readers[(size_t)net * devices];
    needed += weight;
    for (uint32_t d = 0; d < devices; d++) {
      if (there[d]) r->siblings[d] += weight * there[d] / fan;
      if (from == TFC_NONE) continue;
      if (from == d) {
        r->inputs[d] += weight;
      } else if (there[d]) {
        r->inputs[d] += 0.5 * weight;
      } else {
        const struct tfc_pair *pair = tfc_problem_pair(p, from, d);
        const double time = pair->linked ? (double)tfc_problem_wire_time(p, tensor, pair) : 0;
        r->fetch[d] += time;
        if (pair->occupies & TFC_OCCUPIES_RECEIVER) r->occupied[d] += time;
      }
    }
  }
  double made = 0;
  for (uint32_t net = p->first_net[u]; net < p->first_net[u + 1]; net++) {
    const double weight = (double)v->net_weight[net];
    const uint32_t fan = p->net_first[net + 1] - p->net_first[net];
    const uint32_t *there = &r->readers[(size_t)net * devices];
    made += weight;
    for (uint32_t d = 0; d < devices; d++)
      if (there[d]) r->readers_there[d] += weight * there[d] / fan;
  }
  double first_start = INFINITY, first_end = INFINITY, most = 0;
  for (uint32_t d = 0; d < devices; d++) {
    if (!r->may[d]) continue;
    const double time = (double)tfc_problem_time(p, n, d) * pace(r, d) + r->occupied[d];
    const double ready = r->ready[d] - r->occupied[d];
    r->start[d] = soonest(r, d, ready > 0 ? ready : 0, time);
    r->end[d] = r->start[d] + time;
    first_start = fmin(first_start, r->start[d]), first_end = fmin(first_end, r->end[d]);
    most = fmax(most, r->fetch[d]);
  }
  const double size = own + needed + 1e-4 * v->span, share = v->work / devices + 1;
  const double mean_load = r->total_load / devices + 1e-4 * share;
  const uint32_t kind = v->kind[u];
  float *f = r->feature;
#define AT(name) f[TFC_FEATURE_##name * devices + d]
  for (uint32_t d = 0; d < devices; d++) {
    if (!r->may[d]) continue;
    const double time = (double)tfc_problem_unit_time(p, u, d), late = 64 * (r->end[d] - first_end) / v->span;
    const double idle = r->start[d] - r->free_at[d], wait = r->start[d] - r->ready[d];
    const double balance = r->load[d] / mean_load - 1;
    AT(START) = over(r->start[d] - first_start, size);
    AT(FINISH) = over(r->end[d] - first_end, size);
    AT(DELAY) = over(late, 1);
    AT(FETCH) = over(r->fetch[d], own + 1e-6 * v->span);
    AT(MISSING) = most > 0 ? (float)(r->fetch[d] / most) : 0;
    AT(INPUTS) = needed > 0 ? (float)(r->inputs[d] / needed) : 0;
    AT(LATEST) = latest == d;
    AT(CHAIN) = chain == d;
    AT(SIBLINGS) = needed > 0 ? (float)(r->siblings[d] / needed) : 0;
    AT(READERS) = made > 0 ? (float)(r->readers_there[d] / made) : 0;
    AT(LOAD) = (float)(r->load[d] / share);
    AT(BALANCE) = (float)(balance / (2 + fabs(balance)));
    AT(IDLE) = over(idle, size);
    AT(WAIT) = over(wait, size);
    AT(MEMORY) = p->limit[d] == TFC_NO_LIMIT
                     ? 0
                     : (float)((double)(r->memory[d] + p->unit_memory[u]) / ((double)p->limit[d] + 1));
    AT(SPEED) = (float)log((time * pace(r, d) + 1) / (v->fastest[u] + 1));
    AT(UNUSED) = r->units[d] == 0;
    AT(KIND) = r->kind_count[kind] ? (float)r->of_kind[(size_t)kind * devices + d] / (float)r->kind_count[kind] : 0;
    AT(KIN) = r->kin[kind] == d;
    AT(LAST) = r->last == d;
    AT(OCCUPY) = over(r->occupied[d], own + 1e-6 * v->span);
  }
#undef AT
}

static void rate(struct tfc_rollout *r, uint32_t u, const float *weights) {
  const uint32_t devices = r->scene->problem->device_count;
  const float *gate = &r->scene->gate[(size_t)u * TFC_GATE_COUNT];
  float weight[TFC_FEATURE_COUNT];
  for (uint32_t f = 0; f < TFC_FEATURE_COUNT; f++) weight[f] = 0;
  for (uint32_t g = 0; g < TFC_GATE_COUNT; g++)
    for (uint32_t f = 0; f < TFC_FEATURE_COUNT; f++) weight[f] += gate[g] * weights[g * TFC_FEATURE_COUNT + f];
  memset(r->score, 0, sizeof *r->score * devices);
  for (uint32_t f = 0; f < TFC_FEATURE_COUNT; f++)
    for (uint32_t d = 0; d < devices; d++) r->score[d] += weight[f] * r->feature[f * devices + d];
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
  rate(r, u, weights);
  const uint32_t d = draw(r, o);
  if (o->watch) o->watch(o->user, &(struct tfc_choice){u, v->problem->device_count, r->may, r->feature, r->score, d});
  return d;
}

bool tfc_rollout_run(struct tfc_rollout *r, const float *weights, const struct tfc_rollout_options *o,
                     tfc_device_id *device) {
  const struct tfc_problem *p = r->scene->problem;
  begin(r);
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = r->scene->order[i], u = p->unit[n];
    if (r->device[u] == TFC_NONE) put(r, u, o->kept && o->kept[u] ? device[u] : decide(r, u, n, weights, o));
    schedule(r, n, r->device[u]);
  }
  bool broken = false;
  for (uint32_t u = 0; u < p->unit_count; u++) device[u] = (tfc_device_id)r->device[u];
  for (uint32_t d = 0; d < p->device_count; d++) broken |= r->memory[d] > p->limit[d];
  if (!broken && !p->has_missing_links) return true;
  return tfc_local_repair(p, o->random, device, o->kept);
}
