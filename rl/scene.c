#include "rl/scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/base/random.h"

#define LARGEST_SPEEDS (1u << 20) // most entries of the table of speeds
enum { ROUNDS = 3 }; // number of rounds in which a unit's hash is combined with its neighbours', to find its kind

struct place {
  int64_t remaining;
  uint64_t look; // a hash of a node's costs and its neighbourhood
  uint32_t level, position, node;
};
static int compare_places(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  if (x->remaining != y->remaining) return x->remaining > y->remaining ? -1 : 1;
  if (x->level != y->level) return x->level < y->level ? -1 : 1;
  if (x->look != y->look) return x->look < y->look ? -1 : 1;
  return (x->position > y->position) - (x->position < y->position);
}

static uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t state = a * 0x9e3779b97f4a7c15u + b;
  return tfc_splitmix64(&state);
}

// Makes a hash for each unit, which is equal for units that hold and send the same bytes, if the same is true of their
// neighbours. With `timed` they must also take the same time, which measured times of equal operations do not.
// Neighbours are a set: their hashes are added, so their order does not count.
static tfc_status look_around(const struct tfc_scene *v, bool timed, uint64_t **out) {
  const struct tfc_problem *p = v->problem;
  const struct tfc_cost_graph *g = p->graph;
  uint64_t *look = calloc((size_t)p->unit_count + 1, sizeof *look),
           *next = calloc((size_t)p->unit_count + 1, sizeof *next);
  if (!look || !next) {
    free(look), free(next);
    return tfc_status_no_memory("a policy");
  }
  for (uint32_t u = 0; u < p->unit_count; u++) {
    uint64_t x = mix(p->unit_memory[u], p->first_member[u + 1] - p->first_member[u]);
    // Combines each class of devices with its properties: the sum does not depend on how classes are numbered.
    uint64_t sum = 0;
    for (uint32_t d = 0; d < p->device_count; d++)
      sum += mix(timed ? (uint64_t)tfc_problem_unit_time(p, u, d) : 0, p->limit[d]) *
             (tfc_problem_allows(p, u, d) ? 3 : 5);
    look[u] = mix(x, sum);
  }
  for (int round = 0; round < (timed ? ROUNDS : 1); round++) {
    for (uint32_t u = 0; u < p->unit_count; u++) {
      uint64_t in = 0, out_ = 0;
      for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++)
        in += mix(look[v->source[p->need[i]]], g->bytes[p->net_tensor[p->need[i]]]);
      for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
        uint64_t readers = 0;
        for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) readers += look[p->net_unit[j]];
        out_ += mix(readers, g->bytes[p->net_tensor[i]]);
      }
      next[u] = mix(mix(look[u], in), out_);
    }
    uint64_t *swap = look;
    look = next, next = swap;
  }
  free(next);
  *out = look;
  return NULL;
}

static tfc_status number_kinds(struct tfc_scene *v, const uint64_t *look) {
  struct tfc_intmap seen = {0};
  for (uint32_t u = 0; u < v->problem->unit_count; u++) {
    bool found = false;
    uint64_t *slot = tfc_intmap_put(&seen, look[u], v->kind_count, &found);
    if (!slot) {
      tfc_intmap_deinit(&seen);
      return tfc_status_no_memory("a policy");
    }
    if (!found) v->kind_count++;
    v->kind[u] = (uint32_t)*slot;
  }
  tfc_intmap_deinit(&seen);
  return NULL;
}

static tfc_status make_order(struct tfc_scene *v, const uint64_t *look) {
  const struct tfc_problem *p = v->problem;
  const struct tfc_cost_graph *g = p->graph;
  struct place *places = malloc(sizeof *places * ((size_t)p->node_count + 1));
  uint32_t *level = calloc((size_t)p->node_count + 1, sizeof *level);
  if (!places || !level) {
    free(places), free(level);
    return tfc_status_no_memory("a policy");
  }
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = g->topological[i];
    for (uint32_t k = g->first_input[n]; k < g->first_input[n + 1]; k++) {
      const uint32_t before = level[g->producer[g->input[k]]] + 1;
      if (before > level[n]) level[n] = before;
    }
    places[i] = (struct place){p->remaining[n], look[p->unit[n]], level[n], i, n};
  }
  qsort(places, p->node_count, sizeof *places, compare_places);
  for (uint32_t i = 0; i < p->node_count; i++) v->order[i] = places[i].node;
  free(places), free(level);
  return NULL;
}

// Computes the mean time of each net on the wire, over all pairs of devices.
static void weigh_nets(struct tfc_scene *v) {
  const struct tfc_problem *p = v->problem;
  uint32_t pairs = 0, *count = NULL;
  const struct tfc_pair **of_speed = NULL;
  count = calloc(p->speed_count + 1u, sizeof *count);
  of_speed = calloc(p->speed_count + 1u, sizeof *of_speed);
  for (uint32_t a = 0; count && of_speed && a < p->device_count; a++)
    for (uint32_t b = 0; b < p->device_count; b++) {
      const struct tfc_pair *pair = tfc_problem_pair(p, a, b);
      if (a == b || !pair->linked) continue;
      count[pair->speed]++, of_speed[pair->speed] = pair, pairs++;
    }
  for (uint32_t i = 0; i < p->net_count && pairs; i++) {
    double sum = 0;
    for (uint32_t s = 0; s < p->speed_count; s++)
      if (count[s]) sum += count[s] * (double)tfc_problem_wire_time(p, p->net_tensor[i], of_speed[s]);
    v->net_weight[i] = (float)(sum / pairs);
  }
  free(count), free(of_speed);
}

static void weigh_units(struct tfc_scene *v) {
  const struct tfc_problem *p = v->problem;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    double sum = 0, least = INFINITY;
    uint32_t count = 0;
    v->has_pins |= p->unit_pin[u] != TFC_NONE;
    for (uint32_t d = 0; d < p->device_count; d++) {
      if (!tfc_problem_allows(p, u, d)) continue;
      const double time = (double)tfc_problem_unit_time(p, u, d);
      sum += time, count++, least = fmin(least, time);
    }
    v->own[u] = count ? sum / count : 0;
    v->fastest[u] = count ? least : 0;
    v->work += v->own[u];
    for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++)
      v->need_weight[u] += (double)v->net_weight[p->need[i]];
  }
}

static tfc_status make_gates(struct tfc_scene *v) {
  const struct tfc_problem *p = v->problem;
  const struct tfc_cost_graph *g = p->graph;
  int64_t *depth = calloc((size_t)p->node_count + 1, sizeof *depth); // longest path before a node
  if (!depth) return tfc_status_no_memory("a policy");
  for (uint32_t n = 0; n < p->node_count; n++) v->path = fmax(v->path, (double)p->remaining[n]);
  for (uint32_t i = 0; i < p->node_count; i++) {
    const uint32_t n = g->topological[i];
    int64_t longest = 0;
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
      if (p->remaining[g->consumer[c]] > longest) longest = p->remaining[g->consumer[c]];
    const int64_t end = depth[n] + (p->remaining[n] - longest);
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
      if (end > depth[g->consumer[c]]) depth[g->consumer[c]] = end;
  }
  const double mean = v->work / (p->unit_count ? p->unit_count : 1) + 1, path = v->path + 1;
  v->span = fmax(v->path, v->work / p->device_count) + 1;
  double wires = 0;
  for (uint32_t i = 0; i < p->net_count; i++) wires += (double)v->net_weight[i];
  for (uint32_t u = 0; u < p->unit_count; u++) {
    float *gate = &v->gate[(size_t)u * TFC_GATE_COUNT];
    double through = 0, remaining = 0, wire = v->need_weight[u];
    uint32_t readers = 1;
    for (uint32_t i = p->first_member[u]; i < p->first_member[u + 1]; i++) {
      const uint32_t n = p->member[i];
      through = fmax(through, (double)(depth[n] + p->remaining[n]));
      remaining = fmax(remaining, (double)p->remaining[n]);
    }
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) wire += (double)v->net_weight[i];
    for (uint32_t i = p->first_need[u]; i < p->first_need[u + 1]; i++) {
      const uint32_t net = p->need[i], fan = p->net_first[net + 1] - p->net_first[net];
      if (fan > readers) readers = fan;
    }
    gate[TFC_GATE_ALWAYS] = 1;
    gate[TFC_GATE_CRITICAL] = (float)fmax(0, 2 * through / path - 1);
    gate[TFC_GATE_TALKATIVE] = (float)(wire / (wire + v->own[u] + 1));
    gate[TFC_GATE_LONG] = (float)(v->own[u] / (v->own[u] + mean));
    gate[TFC_GATE_SHARED] = (float)(1 - 1.0 / readers);
    gate[TFC_GATE_EARLY] = (float)(remaining / path);
    gate[TFC_GATE_WIRED] = (float)(wires / (wires + v->work + 1));
    gate[TFC_GATE_WIDE] = (float)fmin(1, v->work / (path * p->device_count));
  }
  free(depth);
  return NULL;
}

struct standing {
  double time, limit, out, in;
  tfc_device_id device;
};
static int compare_standings(const void *a, const void *b) {
  const struct standing *x = a, *y = b;
  if (x->time != y->time) return x->time < y->time ? -1 : 1;
  if (x->limit != y->limit) return x->limit > y->limit ? -1 : 1;
  if (x->out != y->out) return x->out < y->out ? -1 : 1;
  if (x->in != y->in) return x->in < y->in ? -1 : 1;
  return (x->device > y->device) - (x->device < y->device);
}

static tfc_status sort_devices(struct tfc_scene *v) {
  const struct tfc_problem *p = v->problem;
  struct standing *s = calloc(p->device_count, sizeof *s);
  if (!s) return tfc_status_no_memory("a policy");
  for (uint32_t d = 0; d < p->device_count; d++) {
    s[d] = (struct standing){.limit = (double)p->limit[d], .device = (tfc_device_id)d};
    for (uint32_t u = 0; u < p->unit_count; u++)
      s[d].time += tfc_problem_allows(p, u, d) ? (double)tfc_problem_unit_time(p, u, d) : 2 * v->own[u] + 1;
    for (uint32_t e = 0; e < p->device_count; e++) {
      const struct tfc_pair *to = tfc_problem_pair(p, d, e), *from = tfc_problem_pair(p, e, d);
      if (e == d) continue;
      s[d].out += to->linked ? (double)tfc_problem_wire_time_of(to, 1 << 20) : 1e18;
      s[d].in += from->linked ? (double)tfc_problem_wire_time_of(from, 1 << 20) : 1e18;
    }
  }
  qsort(s, p->device_count, sizeof *s, compare_standings);
  for (uint32_t d = 0; d < p->device_count; d++) v->device[d] = s[d].device;
  free(s);
  return NULL;
}

float tfc_scene_speed(const struct tfc_scene *v, uint32_t u, uint32_t d, uint32_t k) {
  const double time = (double)tfc_problem_unit_time(v->problem, u, d);
  return (float)log((time * v->pace[(size_t)d * v->paces + k] + 1) / (v->fastest[u] + 1));
}

static tfc_status make_wire(struct tfc_scene *v) {
  const struct tfc_problem *p = v->problem;
  const struct tfc_pair *first = p->device_count > 1 ? tfc_problem_pair(p, 0, 1) : NULL;
  if (!first) return NULL;
  for (uint32_t a = 0; a < p->device_count; a++)
    for (uint32_t b = 0; b < p->device_count; b++) {
      const struct tfc_pair *pair = tfc_problem_pair(p, a, b);
      if (a != b && (!pair->linked || pair->speed != first->speed || pair->occupies != first->occupies)) return NULL;
    }
  if (!(v->wire = calloc((size_t)p->tensor_count + 1, sizeof *v->wire))) return tfc_status_no_memory("a policy");
  for (uint32_t t = 0; t < p->tensor_count; t++) v->wire[t] = (double)tfc_problem_wire_time(p, t, first);
  v->occupies = first->occupies;
  return NULL;
}

// Lists what rollouts read at every unit and every node, in the order in which they read it.
static tfc_status make_lists(struct tfc_scene *v) {
  const struct tfc_problem *p = v->problem;
  const struct tfc_cost_graph *g = p->graph;
  const size_t inputs = g->first_input[p->node_count], needs = p->first_need[p->unit_count];
  v->input = calloc(inputs + 1, sizeof *v->input);
  v->need = calloc(needs + 1, sizeof *v->need);
  v->net_row = calloc((size_t)p->net_count + 1, sizeof *v->net_row);
  v->read_before = calloc((size_t)p->unit_count + 1, sizeof *v->read_before);
  v->first = calloc((size_t)p->unit_count + 1, sizeof *v->first);
  v->made_weight = calloc((size_t)p->unit_count + 1, sizeof *v->made_weight);
  v->may = calloc((size_t)p->unit_count * v->stride + 1, sizeof *v->may);
  v->may_count = calloc((size_t)p->unit_count + 1, sizeof *v->may_count);
  v->first_time = calloc((size_t)p->unit_count * v->stride + 1, sizeof *v->first_time);
  if (!v->input || !v->need || !v->net_row || !v->read_before || !v->first || !v->made_weight || !v->may ||
      !v->may_count || !v->first_time)
    return tfc_status_no_memory("a policy");
  for (uint32_t i = p->node_count; i-- > 0;) v->first[p->unit[v->order[i]]] = i;
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t d = 0; d < p->device_count; d++) {
      v->may_count[u] += v->may[(size_t)u * v->stride + d] = tfc_problem_allows(p, u, d);
      v->first_time[(size_t)u * v->stride + d] = (double)tfc_problem_time(p, v->order[v->first[u]], d);
    }
  for (size_t i = 0; i < inputs; i++) {
    const uint32_t producer = g->producer[g->input[i]];
    v->input[i] = (struct tfc_scene_input){g->input[i], producer, p->unit[producer]};
  }
  v->row_count = 1;
  for (uint32_t net = 0; net < p->net_count; net++) {
    bool before = false;
    for (uint32_t j = p->net_first[net]; j < p->net_first[net + 1]; j++)
      before |= v->first[p->net_unit[j]] < v->first[v->source[net]];
    v->read_before[v->source[net]] |= before;
    if (before || p->net_first[net + 1] - p->net_first[net] > 1) v->net_row[net] = v->row_count++;
    v->made_weight[v->source[net]] += (double)v->net_weight[net];
  }
  for (size_t i = 0; i < needs; i++) {
    const uint32_t net = p->need[i];
    v->need[i] = (struct tfc_scene_need){.weight = (double)v->net_weight[net],
                                         .wire = v->wire ? v->wire[p->net_tensor[net]] : 0,
                                         .net = net,
                                         .source = v->source[net],
                                         .row = v->net_row[net],
                                         .fan = p->net_first[net + 1] - p->net_first[net]};
  }
  return NULL;
}

static tfc_status make_paces(struct tfc_scene *v) {
  const struct tfc_problem *p = v->problem;
  v->paces = 1;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (p->machine->devices[d].slowdown_count > v->paces) v->paces = p->machine->devices[d].slowdown_count;
  if (!(v->pace = calloc((size_t)p->device_count * v->paces, sizeof *v->pace))) return tfc_status_no_memory("a policy");
  for (uint32_t d = 0; d < p->device_count; d++) {
    const struct tfc_machine_device *x = &p->machine->devices[d];
    for (uint32_t k = 0; k < v->paces; k++)
      v->pace[(size_t)d * v->paces + k] = k < x->slowdown_count ? x->slowdown[k] : 1;
  }
  const uint64_t entries = (uint64_t)p->unit_count * v->stride * v->paces;
  if (entries > LARGEST_SPEEDS) return NULL;
  if (!(v->speed = calloc(entries + 1, sizeof *v->speed))) return tfc_status_no_memory("a policy");
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t d = 0; d < p->device_count; d++)
      for (uint32_t k = 0; k < v->paces && tfc_problem_allows(p, u, d); k++)
        v->speed[((size_t)u * v->stride + d) * v->paces + k] = tfc_scene_speed(v, u, d, k);
  return NULL;
}

tfc_status tfc_scene_create(const struct tfc_problem *p, struct tfc_scene **out) {
  tfc_status s = NULL;
  uint64_t *look = NULL;
  struct tfc_scene *v = calloc(1, sizeof *v);
  if (!v) return tfc_status_no_memory("a policy");
  const size_t units = (size_t)p->unit_count + 1, nets = (size_t)p->net_count + 1;
  v->problem = p;
  v->stride = (p->device_count + TFC_SCENE_LANES - 1) / TFC_SCENE_LANES * TFC_SCENE_LANES;
  v->order = calloc((size_t)p->node_count + 1, sizeof *v->order);
  v->gate = calloc(units * TFC_GATE_COUNT, sizeof *v->gate);
  v->own = calloc(units, sizeof *v->own);
  v->fastest = calloc(units, sizeof *v->fastest);
  v->need_weight = calloc(units, sizeof *v->need_weight);
  v->kind = calloc(units, sizeof *v->kind);
  v->net_weight = calloc(nets, sizeof *v->net_weight);
  v->source = calloc(nets, sizeof *v->source);
  v->device = calloc(p->device_count, sizeof *v->device);
  if (!v->order || !v->gate || !v->own || !v->fastest || !v->need_weight || !v->kind || !v->net_weight || !v->source ||
      !v->device)
    TFC_TRY(s, tfc_status_no_memory("a policy"));
  for (uint32_t u = 0; u < p->unit_count; u++)
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) v->source[i] = u;
  weigh_nets(v);
  weigh_units(v);
  TFC_TRY(s, make_paces(v));
  TFC_TRY(s, make_wire(v));
  TFC_TRY(s, look_around(v, false, &look));
  TFC_TRY(s, number_kinds(v, look));
  free(look);
  look = NULL;
  TFC_TRY(s, look_around(v, true, &look));
  TFC_TRY(s, make_order(v, look));
  TFC_TRY(s, make_lists(v));
  TFC_TRY(s, make_gates(v));
  TFC_TRY(s, sort_devices(v));
  *out = v, v = NULL;
out:
  free(look);
  tfc_scene_free(v);
  return s;
}

void tfc_scene_free(struct tfc_scene *v) {
  if (!v) return;
  free(v->order), free(v->gate), free(v->own), free(v->fastest), free(v->need_weight), free(v->kind);
  free(v->net_weight), free(v->source), free(v->device), free(v->pace), free(v->speed), free(v->wire);
  free(v->input), free(v->need), free(v->net_row), free(v->read_before), free(v->first), free(v->made_weight);
  free(v->may), free(v->may_count), free(v->first_time);
  free(v);
}
