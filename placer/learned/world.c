// A world is a copy of the problem with the costs that one set of parameters predicts. Unless devices of a kind are
// alike, every device becomes a kind of its own, so that each device can have its own times. The copy has a link row
// for every pair of devices.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "placer/learned/private.h"
#include "runtime/base/union_find.h"
#include <stdio.h>

void tfc_learned_world_deinit(struct tfc_learned_world *w) {
  tfc_problem_free(w->problem);
  tfc_machine_free(w->machine);
  tfc_cost_graph_free(w->graph);
  *w = (struct tfc_learned_world){0};
}

// Returns the wires as sets (runtime/base/union_find.h): wires that are probably one and the same are in one set. The
// traces say which: wires A and B get into one set if it happened at least 3 times that a transfer on A had to wait
// until a transfer on B ended, or the other way round, and if there are at least 20 such waits for each time that a
// transfer on A ran at the same time as one on B.
static uint32_t *join_wires(const struct tfc_learned *l) {
  const struct tfc_problem *p = l->problem;
  const uint32_t pairs = p->device_count <= TFC_LEARNED_MOST_PAIRED && !l->alike ? tfc_learned_pair_count(p) : 0;
  uint32_t *join = malloc((p->wire_count + 1u) * sizeof *join);
  if (!join) return NULL;
  tfc_union_find_init(join, p->wire_count + 1u);
  for (uint32_t a = 0; a < pairs; a++)
    for (uint32_t b = 0; b < a; b++) {
      const uint32_t seen = l->shared[(size_t)a * pairs + b] + l->shared[(size_t)b * pairs + a];
      const uint32_t beside = l->overlapped[(size_t)a * pairs + b] + l->overlapped[(size_t)b * pairs + a];
      const uint32_t x = p->pair[a].wire, y = p->pair[b].wire;
      if (x == TFC_NONE || y == TFC_NONE || x == y || seen < 3 || 20 * beside > seen) continue;
      tfc_union_find_join(join, y, x);
    }
  return join;
}

// Fills `out` with the slow-down for 1, 2, ... busy devices of the device's kind; no slow-down is smaller than the one
// before. Returns how many there are.
static uint32_t slowdown_of(const struct tfc_learned *l, const double *theta, uint32_t device, double *out) {
  const struct tfc_problem *p = l->problem;
  const uint32_t *slot = l->slot + (size_t)device * p->device_count;
  uint32_t count = 0;
  for (; count < p->device_count && (!count || slot[count] != slot[count - 1]); count++) {
    const uint32_t at = slot[count];
    out[count] = exp(l->crowd[at] + theta[1 + at] - l->crowd[slot[0]] - theta[1 + slot[0]]);
    if (count) out[count] = fmax(out[count], out[count - 1]);
  }
  return count;
}

static tfc_status make_machine(const struct tfc_learned *l, const struct tfc_problem *p, const double *theta,
                               struct tfc_machine **out) {
  tfc_status s = NULL;
  struct tfc_machine *m = NULL;
  struct tfc_link_point *curve = NULL;
  const double arrival_us = fmax(0, theta[l->at_arrival]) * l->arrival_unit_us;
  uint32_t *join = join_wires(l);
  double *slowdown = calloc(p->device_count + 1u, sizeof *slowdown);
  char name[32];
  if (!join || !slowdown) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_machine_create(&m));
  for (uint32_t d = 0; d < p->device_count; d++) {
    struct tfc_machine_device x = p->machine->devices[d];
    if (l->alike)
      x.slowdown = slowdown, x.slowdown_count = slowdown_of(l, theta, d, slowdown);
    else
      x.kind = x.name, x.dispatch_us = 0, x.slowdown_count = 0;
    x.memory = p->limit[d];
    TFC_TRY(s, tfc_machine_add_device(m, &x));
  }
  for (uint32_t a = 0; a < p->device_count; a++)
    for (uint32_t b = 0; b < p->device_count; b++) {
      const struct tfc_pair *pair = tfc_problem_pair(p, a, b);
      if (a == b || !pair->linked || !pair->link) continue;
      const uint32_t i = tfc_learned_pair(l, a, b);
      const double latency = exp(tfc_learned_log_link(l, theta, i, 0)),
                   rest = exp(tfc_learned_log_link(l, theta, i, 1));
      struct tfc_link x = *pair->link;
      x.from = p->machine->devices[a].name, x.to = p->machine->devices[b].name;
      x.latency_us = x.latency_us * latency + arrival_us;
      x.bandwidth = isfinite(x.bandwidth) ? x.bandwidth / rest : x.bandwidth;
      if (pair->wire == TFC_NONE) {
        x.wire = TFC_STR("none");
      } else {
        x.wire = (tfc_str){name, (size_t)snprintf(name, sizeof name, "wire%u", tfc_union_find_root(join, pair->wire))};
      }
      free(curve);
      if (!(curve = malloc((x.curve_count + 1u) * sizeof *curve))) TFC_TRY(s, tfc_status_no_memory(NULL));
      for (uint32_t k = 0; k < x.curve_count; k++)
        curve[k] = (struct tfc_link_point){pair->link->curve[k].bytes, pair->link->curve[k].time_us * rest};
      x.curve = curve;
      TFC_TRY(s, tfc_machine_add_link(m, &x));
    }
  *out = m, m = NULL;
out:
  free(join);
  free(slowdown);
  free(curve);
  tfc_machine_free(m);
  return s;
}

// Returns the time of a node on a device, us; NaN: it cannot run there.
static double time_of(const struct tfc_learned *l, const double *theta, const double *effects, uint32_t n, uint32_t d) {
  const double us = tfc_learned_prior_us(l, n, d);
  if (us < 0) return (double)NAN;
  const uint32_t devices = l->problem->device_count, slot = l->slot[(size_t)d * devices];
  const double effect = effects ? effects[(size_t)n * devices + slot] : 0;
  return us * exp(tfc_learned_log_of(l, theta, n, slot) + effect);
}

static tfc_status add_node(const struct tfc_learned *l, const struct tfc_problem *p, const double *theta,
                           const double *effects, struct tfc_cost_builder *b, const uint32_t *kind, uint32_t n) {
  tfc_status s = NULL;
  const struct tfc_cost_graph *g = p->graph;
  uint32_t id;
  TFC_TRY(s, tfc_cost_builder_node(b, g->names[n], &id));
  for (uint32_t d = 0; d < p->device_count; d++) {
    const double us = time_of(l, theta, effects, n, d);
    const bool first = !l->alike || l->slot[(size_t)d * p->device_count] == d;
    if (first && !isnan(us)) TFC_TRY(s, tfc_cost_builder_time(b, id, kind[d], us));
  }
  tfc_cost_builder_memory(b, id, g->memory[n]);
  if (g->group[n] != TFC_NONE) TFC_TRY(s, tfc_cost_builder_group(b, id, g->group_names[g->group[n]]));
  if (g->pin[n].data) TFC_TRY(s, tfc_cost_builder_pin(b, id, g->pin[n]));
  if (!isnan(g->order[n])) TFC_TRY(s, tfc_cost_builder_order(b, id, g->order[n]));
out:
  return s;
}

tfc_status tfc_learned_build(const struct tfc_learned *l, const struct tfc_problem *p, const double *theta,
                             const double *effects, struct tfc_learned_world *out) {
  tfc_status s = NULL;
  const struct tfc_cost_graph *g = p->graph;
  const uint32_t kinds = p->device_count;
  struct tfc_cost_builder *b = NULL;
  struct tfc_learned_world w = {0};
  uint32_t *kind = calloc(kinds + 1u, sizeof *kind);
  if (!kind) return tfc_status_no_memory("the learned model");
  TFC_TRY(s, tfc_cost_builder_create(&b));
  for (uint32_t k = 0; k < kinds; k++) {
    const struct tfc_machine_device *d = &p->machine->devices[k];
    if (!l->alike || l->slot[(size_t)k * kinds] == k)
      TFC_TRY(s, tfc_cost_builder_kind(b, l->alike ? d->kind : d->name, &kind[k]));
  }
  for (uint32_t n = 0; n < g->node_count; n++) TFC_TRY(s, add_node(l, p, theta, effects, b, kind, n));
  for (uint32_t t = 0; t < g->tensor_count; t++)
    for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++)
      TFC_TRY(s, tfc_cost_builder_edge(b, g->producer[t], g->output[t], g->consumer[c], g->bytes[t],
                                       g->has_live && g->live[t] ? g->live[t] : TFC_LIVE_ABSENT));
  TFC_TRY(s, tfc_cost_builder_finish(b, &w.graph));
  TFC_TRY(s, make_machine(l, p, theta, &w.machine));
  TFC_TRY(s, tfc_problem_create(w.graph, w.machine, p->objective, &w.problem));
  if (w.problem->unit_count != p->unit_count || w.problem->node_count != p->node_count)
    TFC_FAIL(s, TFC_INTERNAL, "a learned problem with %u units instead of %u", w.problem->unit_count, p->unit_count);
  *out = w, w = (struct tfc_learned_world){0};
out:
  tfc_cost_builder_free(b);
  tfc_learned_world_deinit(&w);
  free(kind);
  return s;
}
