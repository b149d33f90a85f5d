// Makes and solves the integer program. It is that of Tarnawski et al. 2020, section 5.2 (throughput) and section 4
// (latency), except that the units of a device need not be contiguous.
#include "placer/exact/ilp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/simulate/loads.h"

struct model {
  const struct tfc_problem *p;
  const uint32_t *cluster;
  uint32_t count;
  struct tfc_program lp;
  int span;     // index of the variable that is minimised
  int *x;       // [cluster * device_count + device], -1: not allowed
  double scale; // factor from picoseconds to the program's unit
  // In ps: longer transfers count as this long, because a single one of this length already makes a placement worse
  // than the known one.
  int64_t cap;
};

// Returns the time in ps, at most `cap`, in which a transfer occupies `device`, one of its ends, if the other end is on
// `other`.
static int64_t end_time(const struct model *m, uint32_t tensor, uint32_t device, uint32_t other, bool receiving) {
  const struct tfc_problem *p = m->p;
  const struct tfc_pair *pair = receiving ? tfc_problem_pair(p, other, device) : tfc_problem_pair(p, device, other);
  if (!pair->linked || !(pair->occupies & (receiving ? TFC_OCCUPIES_RECEIVER : TFC_OCCUPIES_SENDER))) return 0;
  const int64_t time = tfc_problem_wire_time(p, tensor, pair);
  return time < m->cap ? time : m->cap;
}

// The smallest and the largest end_time over all devices that have a link.
struct range {
  int64_t least, most;
};
static struct range end_range(const struct model *m, uint32_t tensor, uint32_t device, bool receiving) {
  const struct tfc_problem *p = m->p;
  struct range range = {INT64_MAX, 0};
  for (uint32_t other = 0; other < p->device_count; other++) {
    if (other == device) continue;
    if (!(receiving ? tfc_problem_pair(p, other, device) : tfc_problem_pair(p, device, other))->linked) continue;
    const int64_t time = end_time(m, tensor, device, other, receiving);
    if (time < range.least) range.least = time;
    if (time > range.most) range.most = time;
  }
  if (range.least == INT64_MAX) range.least = 0;
  return range;
}

static int64_t cheapest_wire(const struct tfc_problem *p, uint32_t tensor) {
  int64_t least = INT64_MAX;
  for (size_t i = 0; i < (size_t)p->device_count * p->device_count; i++)
    if (p->pair[i].linked && tfc_problem_wire_time(p, tensor, &p->pair[i]) < least)
      least = tfc_problem_wire_time(p, tensor, &p->pair[i]);
  return least == INT64_MAX ? 0 : least;
}

static void add_choice(struct model *m) {
  const struct tfc_problem *p = m->p;
  const uint32_t devices = p->device_count;
  for (uint32_t c = 0; c < m->count; c++)
    for (uint32_t d = 0; d < devices; d++) {
      bool can = true;
      for (uint32_t u = 0; u < p->unit_count && can; u++) can = m->cluster[u] != c || tfc_problem_allows(p, u, d);
      // Twins can be exchanged without changing the value: cluster c may use only the first c + 1 of them, so that
      // equivalent placements count only once.
      uint32_t turn = 0;
      for (uint32_t e = 0; e < d; e++) turn += p->twin[e] == p->twin[d];
      m->x[c * devices + d] = can && (turn <= c) ? tfc_program_variable(&m->lp, 0, 0, 1, true) : -1;
    }
  for (uint32_t c = 0; c < m->count; c++) {
    tfc_program_row(&m->lp, 1, 1);
    for (uint32_t d = 0; d < devices; d++)
      if (m->x[c * devices + d] >= 0) tfc_program_term(&m->lp, m->x[c * devices + d], 1);
  }
  double most = 1;
  for (uint32_t u = 0; u < p->unit_count; u++) most += (double)p->unit_memory[u];
  for (uint32_t d = 0; d < devices; d++) {
    if (p->limit[d] == TFC_NO_LIMIT) continue;
    tfc_program_row(&m->lp, -INFINITY, (double)p->limit[d] / most + 1e-9);
    for (uint32_t c = 0; c < m->count; c++) {
      double memory = 0;
      for (uint32_t u = 0; u < p->unit_count; u++)
        if (m->cluster[u] == c) memory += (double)p->unit_memory[u];
      if (m->x[c * devices + d] >= 0 && memory > 0) tfc_program_term(&m->lp, m->x[c * devices + d], memory / most);
    }
  }
  for (uint32_t i = 0; p->has_missing_links && i < p->net_count; i++) {
    const uint32_t a = m->cluster[p->unit[p->graph->producer[p->net_tensor[i]]]];
    for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
      const uint32_t b = m->cluster[p->net_unit[j]];
      for (uint32_t d = 0; d < devices; d++)
        for (uint32_t e = 0; e < devices; e++) {
          if (a == b || d == e || tfc_problem_pair(p, d, e)->linked) continue;
          if (m->x[a * devices + d] < 0 || m->x[b * devices + e] < 0) continue;
          tfc_program_row(&m->lp, -INFINITY, 1);
          tfc_program_term(&m->lp, m->x[a * devices + d], 1), tfc_program_term(&m->lp, m->x[b * devices + e], 1);
        }
    }
  }
}

// Adds a variable in 0..1 that is at least x[more] - x[less] (index -1 stands for the constant zero).
static int difference(struct model *m, int more, int less) {
  int y = tfc_program_variable(&m->lp, 0, 0, 1, false);
  if (more >= 0) {
    tfc_program_row(&m->lp, 0, INFINITY);
    tfc_program_term(&m->lp, y, 1), tfc_program_term(&m->lp, more, -1);
    if (less >= 0) tfc_program_term(&m->lp, less, 1);
  }
  return y;
}

struct end_cost {
  int variable;
  uint32_t device;
  double cost;
};

struct end_costs {
  struct end_cost *data;
  size_t count, capacity;
};

// Adds the condition that the device spends at least `least` on this end of a transfer if cluster `more` is on it and
// `less` is not.
static tfc_status add_end(struct model *m, struct end_costs *ends, int *variable, int more, int less, uint32_t device,
                          int64_t least) {
  if (!least) return NULL;
  if (*variable < 0) {
    *variable = difference(m, more, less);
    if (!tfc_array_push(ends, (struct end_cost){*variable, device, (double)least * m->scale}))
      return tfc_status_no_memory("an integer program");
    return NULL;
  }
  tfc_program_row(&m->lp, 0, INFINITY);
  tfc_program_term(&m->lp, *variable, 1), tfc_program_term(&m->lp, more, -1);
  if (less >= 0) tfc_program_term(&m->lp, less, 1);
  return NULL;
}

// If links of different pairs take different times: adds the time above the smallest one, if `here` is on the device
// and the cluster `other` is on another one. The new variable is that cost:  cost >= sum over other devices d of
// (end_time(d) - least) * x[other, d] - (most - least) * (1 - here).
static tfc_status add_beyond(struct model *m, struct end_costs *ends, int *variable, uint32_t tensor, int here,
                             uint32_t other, uint32_t device, bool receiving, struct range range) {
  const uint32_t devices = m->p->device_count;
  if (range.most == range.least) return NULL;
  const double most = (double)(range.most - range.least) * m->scale;
  if (*variable < 0) {
    *variable = tfc_program_variable(&m->lp, 0, 0, most, false);
    if (!tfc_array_push(ends, (struct end_cost){*variable, device, 1}))
      return tfc_status_no_memory("an integer program");
  }
  tfc_program_row(&m->lp, -most, INFINITY);
  tfc_program_term(&m->lp, *variable, 1), tfc_program_term(&m->lp, here, -most);
  for (uint32_t d = 0; d < devices; d++) {
    if (d == device || m->x[other * devices + d] < 0) continue;
    const int64_t beyond = end_time(m, tensor, device, d, receiving) - range.least;
    if (beyond > 0) tfc_program_term(&m->lp, m->x[other * devices + d], -(double)beyond * m->scale);
  }
  return NULL;
}

static tfc_status add_loads(struct model *m, bool with_transfers) {
  const struct tfc_problem *p = m->p;
  const uint32_t devices = p->device_count;
  tfc_status s = NULL;
  struct end_costs ends = {0};
  for (uint32_t i = 0; with_transfers && i < p->net_count; i++) {
    const uint32_t tensor = p->net_tensor[i], a = m->cluster[p->unit[p->graph->producer[tensor]]];
    for (uint32_t d = 0; d < devices; d++) {
      const struct range receive = end_range(m, tensor, d, true), send = end_range(m, tensor, d, false);
      int in = -1, out = -1, in_more = -1, out_more = -1;
      const int from = m->x[a * devices + d];
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        const uint32_t b = m->cluster[p->net_unit[j]];
        const int to = m->x[b * devices + d];
        if (b == a) continue;
        if (receive.most && to >= 0) {
          TFC_TRY(s, add_end(m, &ends, &in, to, from, d, receive.least));
          TFC_TRY(s, add_beyond(m, &ends, &in_more, tensor, to, a, d, true, receive));
        }
        if (send.most && from >= 0) {
          TFC_TRY(s, add_end(m, &ends, &out, from, to, d, send.least));
          TFC_TRY(s, add_beyond(m, &ends, &out_more, tensor, from, b, d, false, send));
        }
      }
    }
  }
  for (uint32_t d = 0; d < devices; d++) {
    tfc_program_row(&m->lp, 0, INFINITY);
    tfc_program_term(&m->lp, m->span, 1);
    for (uint32_t c = 0; c < m->count; c++) {
      double time = 0;
      if (m->x[c * devices + d] < 0) continue;
      for (uint32_t u = 0; u < p->unit_count; u++)
        if (m->cluster[u] == c) time += (double)tfc_problem_unit_time(p, u, d);
      if (time > 0) tfc_program_term(&m->lp, m->x[c * devices + d], -time * m->scale);
    }
    for (size_t k = 0; k < ends.count; k++)
      if (ends.data[k].device == d) tfc_program_term(&m->lp, ends.data[k].variable, -ends.data[k].cost);
  }
out:
  tfc_array_free(&ends);
  return s;
}

// Adds the times at which nodes start: a node starts when its producers have ended and the transfers have arrived.
static tfc_status add_paths(struct model *m) {
  const struct tfc_problem *p = m->p;
  const struct tfc_cost_graph *g = p->graph;
  const uint32_t devices = p->device_count;
  int *start = malloc(sizeof *start * ((size_t)p->node_count + 1));
  int *apart = malloc(sizeof *apart * ((size_t)m->count * m->count + 1));
  tfc_status s = NULL;
  if (!start || !apart) TFC_TRY(s, tfc_status_no_memory("an integer program"));
  for (size_t i = 0; i < (size_t)m->count * m->count; i++) apart[i] = -1;
  for (uint32_t n = 0; n < p->node_count; n++) start[n] = tfc_program_variable(&m->lp, 0, 0, INFINITY, false);
  for (uint32_t n = 0; n < p->node_count; n++) {
    const uint32_t a = m->cluster[p->unit[n]];
    bool sink = g->first_consumer[g->first_tensor[n]] == g->first_consumer[g->first_tensor[n + 1]];
    if (sink) {
      tfc_program_row(&m->lp, 0, INFINITY);
      tfc_program_term(&m->lp, m->span, 1), tfc_program_term(&m->lp, start[n], -1);
      for (uint32_t d = 0; d < devices; d++)
        if (m->x[a * devices + d] >= 0)
          tfc_program_term(&m->lp, m->x[a * devices + d], -(double)tfc_problem_time(p, n, d) * m->scale);
    }
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) {
      const double wire = (double)cheapest_wire(p, t) * m->scale;
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
        const uint32_t b = m->cluster[p->unit[g->consumer[c]]];
        int *cross = &apart[a < b ? (size_t)a * m->count + b : (size_t)b * m->count + a];
        if (a != b && wire > 0 && *cross < 0) {
          *cross = tfc_program_variable(&m->lp, 0, 0, 1, false);
          for (uint32_t d = 0; d < devices; d++)
            for (int way = 0; way < 2; way++) {
              const int more = m->x[(way ? a : b) * devices + d], less = m->x[(way ? b : a) * devices + d];
              if (more < 0) continue;
              tfc_program_row(&m->lp, 0, INFINITY);
              tfc_program_term(&m->lp, *cross, 1), tfc_program_term(&m->lp, more, -1);
              if (less >= 0) tfc_program_term(&m->lp, less, 1);
            }
        }
        tfc_program_row(&m->lp, 0, INFINITY);
        tfc_program_term(&m->lp, start[g->consumer[c]], 1), tfc_program_term(&m->lp, start[n], -1);
        for (uint32_t d = 0; d < devices; d++)
          if (m->x[a * devices + d] >= 0)
            tfc_program_term(&m->lp, m->x[a * devices + d], -(double)tfc_problem_time(p, n, d) * m->scale);
        if (a != b && wire > 0) tfc_program_term(&m->lp, *cross, -wire);
      }
    }
  }
out:
  free(start), free(apart);
  return s;
}

tfc_status tfc_ilp_solve(const struct tfc_problem *p, const uint32_t *cluster, uint32_t count,
                         const struct tfc_program_limits *limits, const tfc_device_id *start, tfc_device_id *device,
                         struct tfc_ilp_answer *out) {
  tfc_status s = NULL;
  struct model m = {.p = p, .cluster = cluster, .count = count};
  struct tfc_program_answer answer = {0};
  const uint32_t devices = p->device_count;
  *out = (struct tfc_ilp_answer){0};
  // The start is not passed to CBC. Its value only decides which transfers are too long for a better placement.
  m.cap = INT64_MAX;
  if (start && p->objective == TFC_OBJECTIVE_THROUGHPUT) {
    struct tfc_loads loads;
    TFC_RETURN_IF_ERROR(tfc_loads_init(&loads, p));
    tfc_loads_reset(&loads, start);
    const int64_t value = tfc_loads_value(&loads);
    if (value < TFC_TIME_MAX / 2) m.cap = value + value / 50 + 1;
    tfc_loads_deinit(&loads);
  }
  m.scale = 1000.0 / ((double)p->total_fastest + 1);
  m.x = malloc(sizeof *m.x * ((size_t)count * devices + 1));
  if (!m.x) return tfc_status_no_memory("an integer program");
  m.span = tfc_program_variable(&m.lp, 1, 0, INFINITY, false);
  add_choice(&m);
  TFC_TRY(s, add_loads(&m, p->objective == TFC_OBJECTIVE_THROUGHPUT));
  if (p->objective == TFC_OBJECTIVE_STEP) TFC_TRY(s, add_paths(&m));
  TFC_TRY(s, tfc_program_solve(&m.lp,
                               &(struct tfc_program_limits){limits->seconds, limits->nodes, .cancel = limits->cancel},
                               &answer));
  out->optimal = answer.optimal, out->infeasible = answer.infeasible, out->gave_up = answer.gave_up;
  // CBC works with relative tolerances of about 1e-6: the bound is reduced by more than that.
  if (isfinite(answer.bound) && answer.bound > 0 && answer.bound < 1e12 && p->is_bounded) {
    double ps = answer.bound * (1 - 1e-5) / m.scale - 2;
    out->bound = ps > 0 ? (int64_t)ps : 0;
  }
  if (answer.x) {
    out->found = true;
    for (uint32_t u = 0; u < p->unit_count; u++) {
      double most = -1;
      for (uint32_t d = 0; d < devices; d++) {
        int x = m.x[cluster[u] * devices + d];
        if (x >= 0 && answer.x[x] > most) most = answer.x[x], device[u] = (tfc_device_id)d;
      }
      out->found &= most > 0.5;
    }
  }
out:
  tfc_program_deinit(&m.lp);
  free(answer.x), free(m.x);
  return s;
}
