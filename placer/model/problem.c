// Computes, once, everything that does not depend on a placement. Groups become units; devices with the same kind and
// dispatch time share a row of times; link rows become pairs of devices with a wire and a speed class; ranks follow the
// rule of precedence.
#include "placer/model/problem.h"

#include <math.h>
#include <stdlib.h>

#include "placer/model/links.h"
#include "runtime/base/array.h"
#include "runtime/base/map.h"

#define LARGEST_TIME 9e18 // ps; the sum of all times of a step may be at most this long: 104 days

const char *tfc_objective_name(tfc_objective objective) {
  static const char *const names[] = {
#define TFC_OBJECTIVE_NAME(name, text) text,
      TFC_OBJECTIVES(TFC_OBJECTIVE_NAME)
#undef TFC_OBJECTIVE_NAME
  };
  return names[objective];
}

tfc_status tfc_objective_parse(tfc_str name, tfc_objective *out) {
#define TFC_OBJECTIVE_PARSE(value, text)                                                                               \
  if (tfc_str_is(name, text)) return *out = TFC_OBJECTIVE_##value, NULL;
  TFC_OBJECTIVES(TFC_OBJECTIVE_PARSE)
#undef TFC_OBJECTIVE_PARSE
  return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is not an objective (step, throughput)", TFC_STR_ARG(name));
}

// Rounds halves up, as the file formats define it. The caller has checked that the result fits into 64 bits.
static int64_t ps_from_us(double us) {
  return (int64_t)floor(us * 1e6 + 0.5);
}

static double curve_us(const struct tfc_link *link, double bytes) {
  const struct tfc_link_point *p = link->curve;
  const uint32_t n = link->curve_count;
  if (n == 1 || bytes <= p[0].bytes) return p[0].time_us;
  // Binary search, in points i to end, for the first point whose bytes are not fewer; if there is none, the last point.
  uint32_t i = 1;
  for (uint32_t end = n - 1; i < end;) {
    const uint32_t middle = i + (end - i) / 2;
    if (bytes > p[middle].bytes)
      i = middle + 1;
    else
      end = middle;
  }
  double us =
      p[i - 1].time_us + (p[i].time_us - p[i - 1].time_us) * (bytes - p[i - 1].bytes) / (p[i].bytes - p[i - 1].bytes);
  return us > 0 ? us : 0;
}

static double wire_time_of(const struct tfc_pair *pair, uint64_t bytes) {
  double b = (double)bytes;
  if (pair->link->curve_count) return (double)pair->latency + floor(curve_us(pair->link, b) * 1e6 + 0.5);
  return (double)pair->latency + floor(b * 1e12 / pair->bandwidth + 0.5);
}

int64_t tfc_problem_wire_time_of(const struct tfc_pair *pair, uint64_t bytes) {
  double b = (double)bytes;
  if (pair->link->curve_count) return pair->latency + (int64_t)floor(curve_us(pair->link, b) * 1e6 + 0.5);
  return pair->latency + (int64_t)floor(b * 1e12 / pair->bandwidth + 0.5);
}

#define NEED(pointer)                                                                                                  \
  do {                                                                                                                 \
    if (!(pointer)) return tfc_status_no_memory("the placement problem");                                              \
  } while (0)

static tfc_status make_units(struct tfc_problem *p) {
  const struct tfc_cost_graph *g = p->graph;
  uint32_t *of_group = TFC_ARENA_ARRAY(&p->arena, uint32_t, g->group_count);
  uint32_t *unit = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->node_count);
  NEED(of_group && unit);
  for (uint32_t i = 0; i < g->group_count; i++) of_group[i] = TFC_NONE;
  for (uint32_t n = 0; n < p->node_count; n++) {
    uint32_t group = g->group[n];
    if (group == TFC_NONE)
      unit[n] = p->unit_count++;
    else
      unit[n] = of_group[group] != TFC_NONE ? of_group[group] : (of_group[group] = p->unit_count++);
  }
  uint32_t *first = TFC_ARENA_ARRAY(&p->arena, uint32_t, (size_t)p->unit_count + 2);
  uint32_t *member = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->node_count);
  uint64_t *memory = TFC_ARENA_ARRAY(&p->arena, uint64_t, p->unit_count);
  uint32_t *pin = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->unit_count);
  NEED(first && member && memory && pin);
  for (uint32_t n = 0; n < p->node_count; n++) first[unit[n] + 2]++, memory[unit[n]] += g->memory[n];
  for (uint32_t u = 0; u < p->unit_count; u++) first[u + 2] += first[u + 1], pin[u] = TFC_NONE;
  for (uint32_t n = 0; n < p->node_count; n++) member[first[unit[n] + 1]++] = n;
  p->unit = unit, p->first_member = first, p->member = member, p->unit_memory = memory, p->unit_pin = pin;
  for (uint32_t n = 0; n < p->node_count; n++) {
    if (!g->pin[n].data) continue;
    uint32_t device = tfc_machine_find(p->machine, g->pin[n]);
    if (device == TFC_NONE)
      return tfc_status_make(TFC_UNAVAILABLE, "node '%.*s' is pinned to '%.*s', which is not in the machine",
                             TFC_STR_ARG(g->names[n]), TFC_STR_ARG(g->pin[n]));
    if (pin[unit[n]] != TFC_NONE && pin[unit[n]] != device)
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "group '%.*s': node '%.*s' is pinned to '%.*s', another of its nodes to '%.*s'",
                             TFC_STR_ARG(tfc_problem_unit_name(p, unit[n])), TFC_STR_ARG(g->names[n]),
                             TFC_STR_ARG(g->pin[n]), TFC_STR_ARG(p->machine->devices[pin[unit[n]]].name));
    pin[unit[n]] = device;
  }
  return NULL;
}

static tfc_status make_classes(struct tfc_problem *p) {
  const struct tfc_machine *m = p->machine;
  uint32_t *class = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->device_count);
  uint64_t *limit = TFC_ARENA_ARRAY(&p->arena, uint64_t, p->device_count);
  NEED(class && limit);
  p->is_bounded = true;
  for (uint32_t d = 0; d < p->device_count; d++) {
    const struct tfc_machine_device *device = &m->devices[d];
    limit[d] = device->memory;
    p->has_limits |= device->memory != TFC_NO_LIMIT;
    for (uint32_t i = 0; i < device->slowdown_count; i++) {
      p->has_slowdown |= device->slowdown[i] != 1;
      p->is_bounded &= device->slowdown[i] >= 1;
    }
    class[d] = p->class_count;
    for (uint32_t e = 0; e < d && class[d] == p->class_count; e++)
      if (tfc_str_equal(m->devices[e].kind, device->kind) && m->devices[e].dispatch_us == device->dispatch_us)
        class[d] = class[e];
    if (class[d] == p->class_count) p->class_count++;
  }
  p->device_class = class, p->limit = limit;
  return NULL;
}

static tfc_status make_times(struct tfc_problem *p) {
  const struct tfc_cost_graph *g = p->graph;
  size_t nodes = p->node_count;
  int64_t *time = TFC_ARENA_ARRAY(&p->arena, int64_t, p->class_count * nodes), *fastest;
  int64_t *remaining = TFC_ARENA_ARRAY(&p->arena, int64_t, nodes);
  int64_t *unit_time = TFC_ARENA_ARRAY(&p->arena, int64_t, (size_t)p->class_count * p->unit_count);
  NEED(time && remaining && unit_time);
  fastest = remaining; // one array: it holds the fastest times until the last loop makes remaining paths of them
  double slowest_sum = 0, slowest_factor = 1;
  for (uint32_t d = 0; d < p->device_count; d++)
    for (uint32_t i = 0; i < p->machine->devices[d].slowdown_count; i++)
      slowest_factor = fmax(slowest_factor, p->machine->devices[d].slowdown[i]);
  for (size_t n = 0; n < nodes; n++) fastest[n] = INT64_MAX;
  for (uint32_t d = 0, done = 0; d < p->device_count; d++) {
    if (p->device_class[d] != done) continue;
    const struct tfc_machine_device *device = &p->machine->devices[d];
    uint32_t kind = 0;
    while (kind < g->kind_count && !tfc_str_equal(g->kind_names[kind], device->kind)) kind++;
    int64_t *row = time + done * nodes;
    for (size_t n = 0; n < nodes; n++) {
      double us = kind < g->kind_count ? g->time_us[n * g->kind_count + kind] : NAN;
      row[n] = TFC_CANNOT_RUN;
      if (isnan(us)) continue;
      slowest_sum += (us * slowest_factor + device->dispatch_us) * 1e6 + 2;
      if (!(slowest_sum < LARGEST_TIME))
        return tfc_status_make(TFC_INVALID_ARGUMENT,
                               "node '%.*s': times of all nodes add up to more than 104 days, which 64 bits of "
                               "picoseconds have no room for",
                               TFC_STR_ARG(g->names[n]));
      row[n] = ps_from_us(us);
      if (row[n] < fastest[n]) fastest[n] = row[n];
      if (row[n]) row[n] += ps_from_us(device->dispatch_us);
    }
    done++;
  }
  for (size_t n = 0; n < nodes; n++) {
    if (fastest[n] == INT64_MAX)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' cannot run on any kind of device of the machine",
                             TFC_STR_ARG(g->names[n]));
    int64_t with_dispatch = INT64_MAX;
    for (uint32_t c = 0; c < p->class_count; c++)
      if (time[c * nodes + n] >= 0 && time[c * nodes + n] < with_dispatch) with_dispatch = time[c * nodes + n];
    p->total_fastest += with_dispatch;
  }
  for (size_t i = nodes; i-- > 0;) { // consumers come before producers
    uint32_t n = g->topological[i];
    int64_t longest = 0;
    for (uint32_t c = g->first_consumer[g->first_tensor[n]]; c < g->first_consumer[g->first_tensor[n + 1]]; c++)
      if (remaining[g->consumer[c]] > longest) longest = remaining[g->consumer[c]];
    remaining[n] += longest;
  }
  for (uint32_t c = 0; c < p->class_count; c++)
    for (uint32_t u = 0; u < p->unit_count; u++) {
      int64_t sum = 0;
      for (uint32_t i = p->first_member[u]; i < p->first_member[u + 1] && sum >= 0; i++) {
        int64_t t = time[c * nodes + p->member[i]];
        sum = t < 0 ? TFC_CANNOT_RUN : sum + t;
      }
      unit_time[(size_t)c * p->unit_count + u] = sum;
    }
  p->horizon += slowest_sum;
  p->time = time, p->remaining = remaining, p->unit_time = unit_time;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    bool any = false;
    for (uint32_t d = 0; d < p->device_count && !any; d++) any = tfc_problem_allows(p, u, d);
    if (!any)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' cannot run on any device%s",
                             TFC_STR_ARG(tfc_problem_unit_name(p, u)),
                             p->unit_pin[u] != TFC_NONE ? ": its pin names a device of a kind that cannot run it"
                                                        : ": no kind runs all nodes of the group");
  }
  return NULL;
}

static bool of_each_host(tfc_str wire) {
  return wire.size && memmem(wire.data, wire.size, "{host}", strlen("{host}"));
}

// What is computed once for each row of links, not once for each of up to 1024 x 1024 pairs of devices.
struct link_row {
  uint32_t speed; // TFC_NONE: no pair has used the row yet
  uint32_t named; // the first used row whose wire has the same name
  bool each_host; // each host has a wire of its own ("{host}" in the name)
};
struct speed_key {
  int64_t latency;
  double bandwidth;
  uint64_t curve; // rows with equal curves have the same number
};
struct pair_maker {
  struct tfc_problem *p;
  struct link_row *rows;        // [link_count]
  struct tfc_intmap wires;      // key: an unordered pair of devices, or the name of a wire; value: the wire
  struct tfc_strmap wire_names; // value: the first used row with the name
  struct tfc_strmap curves;     // key: the curve's points; value: its number
  struct tfc_strmap speed_keys; // key: a speed_key; value: its speed
  TFC_ARRAY(const struct tfc_pair *) speeds;
};

static tfc_status use_row(struct pair_maker *m, const struct tfc_pair *q, struct link_row *row) {
  const struct tfc_link *link = q->link;
  bool found;
  if (link->wire.data) {
    const uint64_t *named = tfc_strmap_put(&m->wire_names, link->wire, (uint64_t)(link - m->p->machine->links), NULL);
    NEED(named);
    row->named = (uint32_t)*named, row->each_host = of_each_host(link->wire);
  }
  const tfc_str points = {(const char *)link->curve, link->curve_count * sizeof *link->curve};
  const uint64_t *curve = tfc_strmap_put(&m->curves, points, m->curves.count, NULL);
  struct speed_key *key = TFC_ARENA_NEW(&m->p->arena, struct speed_key);
  NEED(curve && key);
  *key = (struct speed_key){q->latency, q->bandwidth, *curve};
  const uint64_t *speed =
      tfc_strmap_put(&m->speed_keys, (tfc_str){(const char *)key, sizeof *key}, m->speeds.count, &found);
  NEED(speed && (found || tfc_array_push(&m->speeds, q)));
  if (*speed > UINT16_MAX)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the machine has more than 65536 different links");
  row->speed = (uint32_t)*speed;
  return NULL;
}

static tfc_status make_pair(struct pair_maker *m, uint32_t a, uint32_t b, struct tfc_pair *q) {
  struct tfc_problem *p = m->p;
  const struct tfc_link *link = q->link;
  struct link_row *row = &m->rows[link - p->machine->links];
  uint64_t key = 0;
  q->linked = 1, q->occupies = (uint8_t)link->occupies;
  q->latency = ps_from_us(link->latency_us), q->bandwidth = link->bandwidth;
  p->has_occupancy |= link->occupies != TFC_OCCUPIES_NONE;
  if (row->speed == TFC_NONE) TFC_RETURN_IF_ERROR(use_row(m, q, row));
  q->speed = (uint16_t)row->speed;
  if (link->wire.data) {
    if (tfc_str_is(link->wire, "none")) return NULL;
    key = (UINT64_C(1) << 62) | row->named;
    if (row->each_host) key |= (uint64_t)(p->host[a] + 1) << 32;
  } else if (link->duplex) {
    key = (UINT64_C(1) << 61) | ((uint64_t)a << 20) | b;
  } else {
    key = (UINT64_C(1) << 60) | ((uint64_t)(a < b ? a : b) << 20) | (a < b ? b : a);
  }
  bool found = false;
  const uint64_t *wire = tfc_intmap_put(&m->wires, key, p->wire_count, &found);
  NEED(wire);
  if (!found) p->wire_count++;
  q->wire = (uint32_t)*wire;
  return NULL;
}

// Computes the time of every tensor on links of every speed. Tensors of the same size share one computation.
enum { MOST_WIRE_TIMES = 1 << 26, MOST_KEPT_WIRE_TIMES = 1 << 23 };
static tfc_status make_wire_times(struct tfc_problem *p, const struct tfc_pair *const *speeds) {
  const struct tfc_cost_graph *g = p->graph;
  const size_t tensors = p->tensor_count;
  double slowest_sum = 0, longest = 0;
  uint32_t culprit = 0;
  struct tfc_intmap sizes = {0}; // value: the first tensor of this size
  double *slowest = calloc(tensors + 1, sizeof *slowest);
  int64_t *table = NULL;
  tfc_status s = NULL;
  if (!slowest) TFC_TRY(s, tfc_status_no_memory("the placement problem"));
  if (p->speed_count * tensors <= MOST_KEPT_WIRE_TIMES)
    table = TFC_ARENA_ARRAY(&p->arena, int64_t, p->speed_count * tensors + 1);
  for (uint32_t t = 0; t < tensors; t++) {
    const uint32_t copies = g->first_consumer[t + 1] - g->first_consumer[t];
    bool found;
    const uint64_t *same = tfc_intmap_put(&sizes, g->bytes[t], t, &found);
    if (!same) TFC_TRY(s, tfc_status_no_memory("the placement problem"));
    const size_t first = *same;
    if (!found && sizes.count * p->speed_count > MOST_WIRE_TIMES)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT,
               "the machine has %u different links and the graph tensors of at least %zu different sizes, which are "
               "more than %d transfer times",
               p->speed_count, sizes.count, MOST_WIRE_TIMES);
    for (uint32_t i = 0; i < p->speed_count && !found; i++) {
      const double time = wire_time_of(speeds[i], g->bytes[t]);
      if (!(time < LARGEST_TIME))
        TFC_FAIL(s, TFC_INVALID_ARGUMENT, "output %d of node '%.*s' takes more than 104 days on a link",
                 (int)g->output[t], TFC_STR_ARG(g->names[g->producer[t]]));
      slowest[t] = fmax(slowest[t], time);
      if (table) table[i * tensors + t] = tfc_problem_wire_time_of(speeds[i], g->bytes[t]);
    }
    for (uint32_t i = 0; i < p->speed_count && found && table; i++) table[i * tensors + t] = table[i * tensors + first];
    slowest[t] = slowest[first];
    slowest_sum += slowest[t] * (copies < p->device_count ? copies : p->device_count);
    if (slowest[t] > longest) longest = slowest[t], culprit = t;
  }
  if (!(p->horizon + slowest_sum < LARGEST_TIME))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT,
             "all nodes and the transfers of all tensors over their slowest links add up to more than 104 days, which "
             "64 bits of picoseconds have no room for (the longest: output %d of node '%.*s'): give those links more "
             "bandwidth",
             (int)g->output[culprit], TFC_STR_ARG(g->names[g->producer[culprit]]));
  p->wire_time = table;
  p->horizon += slowest_sum;
out:
  free(slowest);
  tfc_intmap_deinit(&sizes);
  return s;
}

static tfc_status make_pairs(struct tfc_problem *p) {
  const uint32_t devices = p->device_count;
  const size_t row_count = p->machine->link_count, pair_count = (size_t)devices * devices;
  struct tfc_pair *pair = TFC_ARENA_ARRAY(&p->arena, struct tfc_pair, pair_count);
  uint32_t *host = TFC_ARENA_ARRAY(&p->arena, uint32_t, devices), *row = calloc(pair_count + 1, sizeof *row);
  struct pair_maker m = {.p = p, .rows = calloc(row_count + 1, sizeof *m.rows)};
  tfc_status s = NULL;
  if (!pair || !host || !row || !m.rows) TFC_TRY(s, tfc_status_no_memory("the placement problem"));
  for (size_t i = 0; i < row_count; i++) m.rows[i].speed = TFC_NONE;
  p->pair = pair, p->host = host;
  p->host_count = tfc_machine_hosts(p->machine, host);
  TFC_TRY(s, tfc_machine_links(p->machine, row));
  for (uint32_t a = 0; a < devices; a++)
    for (uint32_t b = 0; b < devices; b++) {
      const size_t i = (size_t)a * devices + b;
      pair[i].wire = TFC_NONE;
      if (a == b) continue;
      p->has_missing_links |= row[i] == TFC_NONE;
      if (row[i] == TFC_NONE) continue;
      pair[i].link = &p->machine->links[row[i]];
      TFC_TRY(s, make_pair(&m, a, b, &pair[i]));
    }
  p->speed_count = (uint32_t)m.speeds.count;
  TFC_TRY(s, make_wire_times(p, m.speeds.data));
out:
  free(row);
  free(m.rows);
  tfc_intmap_deinit(&m.wires);
  tfc_strmap_deinit(&m.wire_names);
  tfc_strmap_deinit(&m.curves);
  tfc_strmap_deinit(&m.speed_keys);
  tfc_array_free(&m.speeds);
  return s;
}

// Whether the machine stays the same when the two devices are exchanged.
static bool interchangeable(const struct tfc_problem *p, uint32_t a, uint32_t b) {
  const struct tfc_machine_device *x = &p->machine->devices[a], *y = &p->machine->devices[b];
  if (p->device_class[a] != p->device_class[b] || p->limit[a] != p->limit[b] || x->slowdown_count != y->slowdown_count)
    return false;
  if (p->host[a] != p->host[b]) return false; // other devices of the host may share a wire with it
  for (uint32_t i = 0; i < x->slowdown_count; i++)
    if (x->slowdown[i] != y->slowdown[i]) return false;
  for (uint32_t c = 0; c < p->device_count; c++)
    for (int way = 0; way < 2; way++) {
      uint32_t other = c == b ? a : c; // the device that is used instead of c when a and b are exchanged
      if (c == a) continue;
      const struct tfc_pair *q = way ? tfc_problem_pair(p, a, c) : tfc_problem_pair(p, c, a);
      const struct tfc_pair *r = way ? tfc_problem_pair(p, b, other) : tfc_problem_pair(p, other, b);
      if (q->linked != r->linked) return false;
      if (!q->linked) continue;
      if (q->speed != r->speed || q->occupies != r->occupies) return false;
      if (!tfc_str_equal(q->link->wire, r->link->wire) || (!q->link->wire.data != !r->link->wire.data) ||
          q->link->duplex != r->link->duplex)
        return false;
    }
  return true;
}

static tfc_status make_twins(struct tfc_problem *p) {
  uint32_t *twin = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->device_count);
  bool *pinned = TFC_ARENA_ARRAY(&p->arena, bool, p->device_count);
  NEED(twin && pinned);
  for (uint32_t u = 0; u < p->unit_count; u++)
    if (p->unit_pin[u] != TFC_NONE) pinned[p->unit_pin[u]] = true;
  for (uint32_t d = 0; d < p->device_count; d++) {
    twin[d] = d;
    if (pinned[d] || p->device_count > 128) continue;
    for (uint32_t e = 0; e < d && twin[d] == d; e++)
      if (twin[e] == e && !pinned[e] && interchangeable(p, e, d)) twin[d] = e;
  }
  p->twin = twin;
  return NULL;
}

static tfc_status make_nets(struct tfc_problem *p) {
  const struct tfc_cost_graph *g = p->graph;
  uint32_t *first_net = TFC_ARENA_ARRAY(&p->arena, uint32_t, (size_t)p->unit_count + 1);
  uint32_t *net_tensor = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->tensor_count);
  uint32_t *net_first = TFC_ARENA_ARRAY(&p->arena, uint32_t, (size_t)p->tensor_count + 1);
  uint32_t *net_unit = TFC_ARENA_ARRAY(&p->arena, uint32_t, g->consumer_count);
  uint32_t *first_need = TFC_ARENA_ARRAY(&p->arena, uint32_t, (size_t)p->unit_count + 2);
  uint32_t *need = TFC_ARENA_ARRAY(&p->arena, uint32_t, g->consumer_count);
  uint32_t *seen = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->unit_count);
  NEED(first_net && net_tensor && net_first && net_unit && first_need && need && seen);
  uint32_t nets = 0, ends = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    first_net[u] = nets;
    for (uint32_t i = p->first_member[u]; i < p->first_member[u + 1]; i++) {
      uint32_t n = p->member[i];
      for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) {
        uint32_t begin = ends;
        for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
          uint32_t v = p->unit[g->consumer[c]];
          if (v == u || seen[v] == t + 1) continue;
          seen[v] = t + 1;
          net_unit[ends++] = v;
          first_need[v + 2]++;
        }
        if (ends == begin) continue;
        net_tensor[nets] = t, net_first[nets++] = begin;
      }
    }
  }
  first_net[p->unit_count] = nets, net_first[nets] = ends;
  for (uint32_t u = 0; u < p->unit_count; u++) first_need[u + 2] += first_need[u + 1];
  for (uint32_t i = 0; i < nets; i++)
    for (uint32_t j = net_first[i]; j < net_first[i + 1]; j++) need[first_need[net_unit[j] + 1]++] = i;
  p->net_count = nets, p->first_net = first_net, p->net_tensor = net_tensor, p->net_first = net_first;
  p->net_unit = net_unit, p->first_need = first_need, p->need = need;
  return NULL;
}

struct precedence {
  double order; // INFINITY: the node has no priority
  int64_t remaining;
  uint32_t node;
};
static int compare_precedence(const void *a, const void *b) {
  const struct precedence *x = a, *y = b;
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  if (x->remaining != y->remaining) return x->remaining > y->remaining ? -1 : 1;
  return (x->node > y->node) - (x->node < y->node);
}

tfc_status tfc_rank_from_order(const struct tfc_problem *p, const double *order, uint32_t *out_rank) {
  struct precedence *sorted = malloc(sizeof *sorted * ((size_t)p->node_count + 1));
  NEED(sorted);
  for (uint32_t n = 0; n < p->node_count; n++)
    sorted[n] = (struct precedence){isnan(order[n]) ? INFINITY : order[n], p->remaining[n], n};
  qsort(sorted, p->node_count, sizeof *sorted, compare_precedence);
  for (uint32_t i = 0; i < p->node_count; i++) out_rank[sorted[i].node] = i;
  free(sorted);
  return NULL;
}

static tfc_status make_rank(struct tfc_problem *p) {
  uint32_t *rank = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->node_count);
  uint32_t *by_rank = TFC_ARENA_ARRAY(&p->arena, uint32_t, p->node_count);
  NEED(rank && by_rank);
  TFC_RETURN_IF_ERROR(tfc_rank_from_order(p, p->graph->order, rank));
  for (uint32_t n = 0; n < p->node_count; n++) by_rank[rank[n]] = n;
  p->rank = rank, p->by_rank = by_rank;
  return NULL;
}

// Live bytes need not be computed if every device can hold all nodes' memory and all tensors at the same time.
static void find_live(struct tfc_problem *p) {
  uint64_t sum = 0;
  p->has_live = p->graph->has_live;
  for (uint32_t u = 0; u < p->unit_count && !p->live_matters; u++)
    p->live_matters = __builtin_add_overflow(sum, p->unit_memory[u], &sum);
  for (uint32_t t = 0; p->has_live && t < p->tensor_count && !p->live_matters; t++)
    p->live_matters = __builtin_add_overflow(sum, p->graph->live[t], &sum);
  for (uint32_t d = 0; d < p->device_count && !p->live_matters; d++) p->live_matters = p->limit[d] < sum;
  p->live_matters &= p->has_live;
}

tfc_status tfc_problem_create(const struct tfc_cost_graph *graph, const struct tfc_machine *machine,
                              tfc_objective objective, struct tfc_problem **out) {
  tfc_status s = NULL;
  struct tfc_problem *p = calloc(1, sizeof *p);
  NEED(p);
  p->graph = graph, p->machine = machine, p->objective = objective;
  p->node_count = graph->node_count, p->tensor_count = graph->tensor_count, p->device_count = machine->device_count;
  if (!p->device_count) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the machine has no devices");
  TFC_TRY(s, make_units(p));
  TFC_TRY(s, make_classes(p));
  find_live(p);
  TFC_TRY(s, make_times(p));
  TFC_TRY(s, make_pairs(p));
  TFC_TRY(s, make_twins(p));
  TFC_TRY(s, make_nets(p));
  TFC_TRY(s, make_rank(p));
  *out = p, p = NULL;
out:
  tfc_problem_free(p);
  return s;
}

void tfc_problem_free(struct tfc_problem *p) {
  if (!p) return;
  tfc_arena_deinit(&p->arena);
  free(p);
}

tfc_str tfc_problem_unit_name(const struct tfc_problem *p, uint32_t unit) {
  uint32_t n = p->member[p->first_member[unit]];
  return p->graph->group[n] != TFC_NONE ? p->graph->group_names[p->graph->group[n]] : p->graph->names[n];
}

tfc_status tfc_solution_init(struct tfc_solution *solution, const struct tfc_problem *p) {
  solution->rank = NULL;
  solution->device = calloc((size_t)p->unit_count + 1, sizeof *solution->device);
  return solution->device ? NULL : tfc_status_no_memory("the placement problem");
}

tfc_status tfc_solution_copy(struct tfc_solution *to, const struct tfc_solution *from, const struct tfc_problem *p) {
  if (to == from) return NULL;
  if (!to->device) TFC_RETURN_IF_ERROR(tfc_solution_init(to, p));
  memcpy(to->device, from->device, sizeof *to->device * p->unit_count);
  if (!from->rank) {
    free(to->rank);
    to->rank = NULL;
  } else {
    if (!to->rank) to->rank = malloc(sizeof *to->rank * p->node_count);
    NEED(to->rank);
    memcpy(to->rank, from->rank, sizeof *to->rank * p->node_count);
  }
  return NULL;
}

void tfc_solution_deinit(struct tfc_solution *solution) {
  free(solution->device);
  free(solution->rank);
  *solution = (struct tfc_solution){0};
}

tfc_status tfc_solution_check(const struct tfc_problem *p, const tfc_device_id *device) {
  const struct tfc_cost_graph *g = p->graph;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    if (device[u] >= p->device_count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is on no device", TFC_STR_ARG(tfc_problem_unit_name(p, u)));
    tfc_str name = p->machine->devices[device[u]].name;
    if (p->unit_pin[u] != TFC_NONE && p->unit_pin[u] != device[u])
      return tfc_status_make(TFC_INVALID_ARGUMENT, "'%.*s' is on '%.*s', it is pinned to '%.*s'",
                             TFC_STR_ARG(tfc_problem_unit_name(p, u)), TFC_STR_ARG(name),
                             TFC_STR_ARG(p->machine->devices[p->unit_pin[u]].name));
    for (uint32_t i = p->first_member[u]; i < p->first_member[u + 1]; i++)
      if (tfc_problem_time(p, p->member[i], device[u]) < 0)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "node '%.*s' cannot run on '%.*s': no time for kind '%.*s'",
                               TFC_STR_ARG(g->names[p->member[i]]), TFC_STR_ARG(name),
                               TFC_STR_ARG(p->machine->devices[device[u]].kind));
  }
  for (uint32_t u = 0; p->has_missing_links && u < p->unit_count; u++)
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++)
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        uint32_t from = device[u], to = device[p->net_unit[j]];
        if (from != to && !tfc_problem_pair(p, from, to)->linked)
          return tfc_status_make(
              TFC_INVALID_ARGUMENT,
              "node '%.*s' on '%.*s' feeds '%.*s' on '%.*s': no link from one device to the other",
              TFC_STR_ARG(g->names[g->producer[p->net_tensor[i]]]), TFC_STR_ARG(p->machine->devices[from].name),
              TFC_STR_ARG(tfc_problem_unit_name(p, p->net_unit[j])), TFC_STR_ARG(p->machine->devices[to].name));
      }
  return NULL;
}
