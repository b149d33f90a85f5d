// A second simulator, written only from the text of the format's rules: it goes through lists from the front and
// searches all times for the next event, so it is slow and easy to check. It reads the cost graph and the machine, and
// not the problem that tfc makes of them.
#ifndef TFC_TESTS_PLACER_REFERENCE_H
#define TFC_TESTS_PLACER_REFERENCE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/placer.h"
#include "tests/placer/links.h"

struct reference_result {
  bool legal;
  int64_t value;
  int64_t busy[64];
  uint64_t memory[64];
  uint64_t excess, transfers, transfer_bytes;
};

struct ref_transfer {
  uint32_t tensor, from, to;
  bool started, ended;
  int64_t end;
};

static int64_t ref_round(double x) {
  return (int64_t)floor(x + 0.5);
}

static double ref_time_us(const struct tfc_cost_graph *g, const struct tfc_machine *m, uint32_t n, uint32_t d) {
  for (uint32_t k = 0; k < g->kind_count; k++)
    if (tfc_str_equal(g->kind_names[k], m->devices[d].kind)) return g->time_us[n * g->kind_count + k];
  return NAN;
}

static int64_t ref_op(const struct tfc_cost_graph *g, const struct tfc_machine *m, uint32_t n, uint32_t d,
                      double factor) {
  double us = ref_time_us(g, m, n, d);
  if (ref_round(us * 1e6) == 0) return 0;
  return ref_round(us * factor * 1e6) + ref_round(m->devices[d].dispatch_us * 1e6);
}

static int64_t ref_wire_time(const struct tfc_link *l, uint64_t bytes) {
  double b = (double)bytes, us;
  if (!l->curve_count) return ref_round(l->latency_us * 1e6) + ref_round(b * 1e12 / l->bandwidth);
  const struct tfc_link_point *c = l->curve;
  uint32_t n = l->curve_count, i = 1;
  if (n == 1 || b <= c[0].bytes) {
    us = c[0].time_us;
  } else {
    while (i < n - 1 && b > c[i].bytes) i++;
    us = c[i - 1].time_us + (c[i].time_us - c[i - 1].time_us) * (b - c[i - 1].bytes) / (c[i].bytes - c[i - 1].bytes);
    if (us < 0) us = 0;
  }
  return ref_round(l->latency_us * 1e6) + ref_round(us * 1e6);
}

// Whether two ordered pairs share a wire.
static bool ref_same_wire(const struct tfc_link *x, uint32_t xf, uint32_t xt, const struct tfc_link *y, uint32_t yf,
                          uint32_t yt) {
  if ((x->wire.data && tfc_str_is(x->wire, "none")) || (y->wire.data && tfc_str_is(y->wire, "none"))) return false;
  if (x->wire.data || y->wire.data) return x->wire.data && y->wire.data && tfc_str_equal(x->wire, y->wire);
  if (xf == yf && xt == yt) return true;
  return xf == yt && xt == yf && !x->duplex && !y->duplex;
}

static void reference_throughput(const struct tfc_cost_graph *g, const struct tfc_machine *m, const uint32_t *device,
                                 struct reference_result *out) {
  for (uint32_t n = 0; n < g->node_count; n++) {
    out->busy[device[n]] += ref_op(g, m, n, device[n], 1);
    out->memory[device[n]] += g->memory[n];
  }
  for (uint32_t t = 0; t < g->tensor_count; t++) {
    uint32_t from = device[g->producer[t]];
    int64_t longest = 0;
    for (uint32_t to = 0; to < m->device_count; to++) {
      bool goes = false;
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) goes |= device[g->consumer[c]] == to;
      if (!goes || to == from) continue;
      const struct tfc_link *l = link_between(m, from, to);
      if (!l) return;
      out->transfers++, out->transfer_bytes += g->bytes[t];
      int64_t time = ref_wire_time(l, g->bytes[t]);
      if (l->occupies & TFC_OCCUPIES_RECEIVER) out->busy[to] += time;
      if ((l->occupies & TFC_OCCUPIES_SENDER) && time > longest) longest = time;
    }
    out->busy[from] += longest;
  }
  out->legal = true;
  for (uint32_t d = 0; d < m->device_count; d++)
    if (out->busy[d] > out->value) out->value = out->busy[d];
}

// Simulates a placement; `device` and `order` have an element for each node (order NaN: none).
static void reference_simulate(const struct tfc_cost_graph *g, const struct tfc_machine *m, tfc_objective objective,
                               const uint32_t *device, const double *order, struct reference_result *out) {
  const uint32_t nodes = g->node_count, devices = m->device_count, tensors = g->tensor_count;
  enum { WAITING, RUNNING, ENDED };
  memset(out, 0, sizeof *out);
  for (uint32_t n = 0; n < nodes; n++)
    if (isnan(ref_time_us(g, m, n, device[n]))) return;
  if (objective == TFC_OBJECTIVE_THROUGHPUT) {
    reference_throughput(g, m, device, out);
  } else {
    // remaining paths
    int64_t *remaining = calloc(nodes, sizeof *remaining);
    for (uint32_t round = 0; round < nodes; round++)
      for (uint32_t n = nodes; n-- > 0;) {
        double fastest = INFINITY;
        int64_t longest = 0;
        for (uint32_t d = 0; d < devices; d++) {
          double us = ref_time_us(g, m, n, d);
          if (!isnan(us) && us < fastest) fastest = us;
        }
        for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++)
          for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
            if (remaining[g->consumer[c]] > longest) longest = remaining[g->consumer[c]];
        remaining[n] = ref_round(fastest * 1e6) + longest;
      }
    int *state = calloc(nodes, sizeof *state);
    int64_t *end = calloc(nodes, sizeof *end);
    bool *present = calloc((size_t)tensors * devices + 1, sizeof *present);
    struct ref_transfer *list = calloc((size_t)tensors * devices + 1, sizeof *list);
    uint32_t list_count = 0, done = 0;
    int64_t now = 0;
    bool legal = true;
    for (bool first = true; done < nodes && legal; first = false) {
      // the next instant
      if (!first) {
        int64_t next = INT64_MAX;
        for (uint32_t n = 0; n < nodes; n++)
          if (state[n] == RUNNING && end[n] < next) next = end[n];
        for (uint32_t i = 0; i < list_count; i++)
          if (list[i].started && !list[i].ended && list[i].end < next) next = list[i].end;
        now = next;
        // everything that ends at this instant is taken together
        for (uint32_t i = 0; i < list_count; i++)
          if (list[i].started && !list[i].ended && list[i].end == now)
            list[i].ended = true, present[list[i].tensor * devices + list[i].to] = true;
        for (uint32_t n = 0; n < nodes; n++) { // by producer's index, output, destination's index
          if (state[n] != RUNNING || end[n] != now) continue;
          state[n] = ENDED, done++;
          for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) {
            present[t * devices + device[n]] = true;
            for (uint32_t to = 0; to < devices; to++) {
              bool goes = false;
              for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
                goes |= device[g->consumer[c]] == to;
              if (!goes || to == device[n]) continue;
              if (!link_between(m, device[n], to)) legal = false;
              list[list_count++] = (struct ref_transfer){.tensor = t, .from = device[n], .to = to};
              out->transfers++, out->transfer_bytes += g->bytes[t];
            }
          }
        }
        if (!legal) break;
      }
      // which devices are idle
      bool idle[64];
      for (uint32_t d = 0; d < devices; d++) idle[d] = true;
      for (uint32_t n = 0; n < nodes; n++)
        if (state[n] == RUNNING) idle[device[n]] = false;
      for (uint32_t i = 0; i < list_count; i++) {
        if (!list[i].started || list[i].ended) continue;
        const struct tfc_link *l = link_between(m, list[i].from, list[i].to);
        if (l->occupies & TFC_OCCUPIES_SENDER) idle[list[i].from] = false;
        if (l->occupies & TFC_OCCUPIES_RECEIVER) idle[list[i].to] = false;
      }
      // (1) the list is walked from the front
      for (uint32_t i = 0; i < list_count; i++) {
        if (list[i].started) continue;
        const struct tfc_link *l = link_between(m, list[i].from, list[i].to);
        bool can = true;
        for (uint32_t j = 0; j < list_count; j++) {
          if (j == i || list[j].ended || (j > i && !list[j].started))
            continue; // item j has ended, or is after i in the list and has not started: it does not block i
          if (ref_same_wire(l, list[i].from, list[i].to, link_between(m, list[j].from, list[j].to), list[j].from,
                            list[j].to))
            can = false;
        }
        if ((l->occupies & TFC_OCCUPIES_SENDER) && !idle[list[i].from]) can = false;
        if ((l->occupies & TFC_OCCUPIES_RECEIVER) && !idle[list[i].to]) can = false;
        if (!can) continue;
        int64_t time = ref_wire_time(l, g->bytes[list[i].tensor]);
        list[i].started = true, list[i].end = now + time;
        if (l->occupies & TFC_OCCUPIES_SENDER) idle[list[i].from] = false, out->busy[list[i].from] += time;
        if (l->occupies & TFC_OCCUPIES_RECEIVER) idle[list[i].to] = false, out->busy[list[i].to] += time;
      }
      // (2) each idle device starts its first ready operation
      for (uint32_t d = 0; d < devices; d++) {
        if (!idle[d]) continue;
        uint32_t best = TFC_NONE;
        for (uint32_t n = 0; n < nodes; n++) {
          if (state[n] != WAITING || device[n] != d) continue;
          bool ready = true;
          for (uint32_t i = g->first_input[n]; i < g->first_input[n + 1]; i++)
            ready &= present[g->input[i] * devices + d];
          if (!ready) continue;
          bool before = best == TFC_NONE;
          if (!before) {
            bool ordered = !isnan(order[n]), best_ordered = !isnan(order[best]);
            if (ordered != best_ordered)
              before = ordered;
            else if (ordered && order[n] != order[best])
              before = order[n] < order[best];
            else
              before = remaining[n] > remaining[best];
          }
          if (before) best = n;
        }
        if (best == TFC_NONE) continue;
        idle[d] = false;
        uint32_t busy = 0;
        for (uint32_t e = 0; e < devices; e++)
          busy += !idle[e] && tfc_str_equal(m->devices[e].kind, m->devices[d].kind);
        const struct tfc_machine_device *x = &m->devices[d];
        double factor = !x->slowdown_count ? 1 : x->slowdown[(busy < x->slowdown_count ? busy : x->slowdown_count) - 1];
        int64_t time = ref_op(g, m, best, d, factor);
        state[best] = RUNNING, end[best] = now + time;
        out->busy[d] += time;
      }
      // live bytes are counted after all starts of the round, when nothing more can begin before something ends
      for (uint32_t d = 0; d < devices; d++) {
        uint64_t held = 0;
        for (uint32_t t = 0; t < tensors; t++) {
          uint32_t producer = g->producer[t];
          bool holds = false, consumers_here = false;
          for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
            consumers_here |= device[g->consumer[c]] == d && state[g->consumer[c]] != ENDED;
          if (device[producer] == d) {
            holds = state[producer] == RUNNING || (state[producer] == ENDED && consumers_here);
            for (uint32_t i = 0; i < list_count; i++) holds |= list[i].tensor == t && !list[i].ended;
          } else {
            for (uint32_t i = 0; i < list_count; i++)
              if (list[i].tensor == t && list[i].to == d && list[i].started) holds = !list[i].ended || consumers_here;
          }
          if (holds) held += g->live[t];
        }
        if (held > out->memory[d]) out->memory[d] = held;
      }
    }
    out->legal = legal;
    out->value = now;
    for (uint32_t n = 0; n < nodes; n++) out->memory[device[n]] += g->memory[n];
    free(remaining), free(state), free(end), free(present), free(list);
    if (!legal) return;
  }
  for (uint32_t d = 0; d < devices; d++)
    if (out->memory[d] > m->devices[d].memory) out->excess += out->memory[d] - m->devices[d].memory;
}

#endif
