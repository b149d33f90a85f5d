// A gradient may reach its variable's unit in many tensors (one for each step of an unrolled loop, where a sum is
// colocated with the variable). A replica would add them up before it sends them, so at most the bytes of the unit's
// variables that other units read are counted as sent. A sparse gradient, with few rows, is counted with its own size.
#include "placer/replicas/workload.h"

#include <stdlib.h>

#include "placer/simulate/simulate.h"

static bool holds_variable(const struct tfc_cost_graph *g, uint32_t node) {
  return g->memory[node] > 0 && g->first_input[node] == g->first_input[node + 1];
}

struct making {
  const struct tfc_problem *p;
  struct tfc_timeline timeline;
  double end;                 // ps
  bool *holds;                // [unit]
  double *pull, *push, *most; // [unit] bytes; most: of the unit's variables that other units read
  int64_t *needed, *made;     // [unit] ps
};

static uint32_t piece_at(const struct making *m, int64_t ps) {
  const double at = m->end > 0 ? (double)ps / m->end * TFC_WORKLOAD_PIECES : 0;
  return at >= TFC_WORKLOAD_PIECES ? TFC_WORKLOAD_PIECES - 1 : (uint32_t)at;
}

// Finds which tensors go between units with variables and other units.
static void find_exchange(struct making *m) {
  const struct tfc_problem *p = m->p;
  const struct tfc_cost_graph *g = p->graph;
  for (uint32_t n = 0; n < g->node_count; n++) m->holds[p->unit[n]] |= holds_variable(g, n);
  for (uint32_t n = 0; n < g->node_count; n++) {
    const uint32_t from = p->unit[n];
    for (uint32_t t = g->first_tensor[n]; t < g->first_tensor[n + 1]; t++) {
      int64_t first = INT64_MAX;
      for (uint32_t c = g->first_consumer[t]; c < g->first_consumer[t + 1]; c++) {
        const uint32_t node = g->consumer[c], to = p->unit[node];
        if (m->holds[from] && !m->holds[to] && m->timeline.start[node] < first) first = m->timeline.start[node];
        if (m->holds[from] || !m->holds[to]) continue;
        bool counted = false; // the tensor was counted for this unit
        for (uint32_t k = g->first_consumer[t]; k < c && !counted; k++) counted = p->unit[g->consumer[k]] == to;
        if (!counted) m->push[to] += (double)g->bytes[t];
        if (g->bytes[t] && m->timeline.end[n] > m->made[to]) m->made[to] = m->timeline.end[n];
      }
      if (first == INT64_MAX || !g->bytes[t]) continue;
      m->pull[from] += (double)g->bytes[t];
      if (first < m->needed[from]) m->needed[from] = first;
      if (holds_variable(g, n)) m->most[from] += (double)g->bytes[t];
    }
  }
}

static int by_bytes(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x < y) - (x > y);
}

static tfc_status fill(const struct making *m, struct tfc_workload *w) {
  const struct tfc_problem *p = m->p;
  if (!(w->parameter = calloc(p->unit_count + 1u, sizeof *w->parameter))) return tfc_status_no_memory("replicas");
  for (uint32_t n = 0; n < p->node_count; n++)
    if (m->holds[p->unit[n]]) w->update_us += 1e-6 * (double)(m->timeline.end[n] - m->timeline.start[n]);
  if (w->update_us > w->step_us) w->update_us = w->step_us; // some run on other devices at the same time
  for (uint32_t u = 0; u < p->unit_count; u++) {
    if (!m->holds[u] || !(m->pull[u] > 0))
      continue; // parameters that no replica reads, such as an optimizer's slots, stay on the server
    const double push = m->most[u] > 0 && m->push[u] > m->most[u] ? m->most[u] : m->push[u];
    w->pull[piece_at(m, m->needed[u])] += m->pull[u];
    w->push[piece_at(m, m->made[u])] += push;
    w->pulled += m->pull[u], w->pushed += push;
    w->parameter[w->parameter_count++] = m->pull[u] > push ? m->pull[u] : push;
  }
  qsort(w->parameter, w->parameter_count, sizeof *w->parameter, by_bytes);
  return NULL;
}

tfc_status tfc_workload_make(const struct tfc_problem *p, uint32_t device, struct tfc_workload *out) {
  tfc_status s = NULL;
  struct making m = {.p = p};
  struct tfc_workload w = {0};
  struct tfc_solution solution = {0};
  struct tfc_simulator *simulator = NULL;
  m.holds = calloc(p->unit_count + 1u, sizeof *m.holds);
  m.pull = calloc(p->unit_count + 1u, sizeof *m.pull);
  m.push = calloc(p->unit_count + 1u, sizeof *m.push);
  m.most = calloc(p->unit_count + 1u, sizeof *m.most);
  m.needed = calloc(p->unit_count + 1u, sizeof *m.needed);
  m.made = calloc(p->unit_count + 1u, sizeof *m.made);
  if (!m.holds || !m.pull || !m.push || !m.most || !m.needed || !m.made) TFC_TRY(s, tfc_status_no_memory("replicas"));
  TFC_TRY(s, tfc_solution_init(&solution, p));
  for (uint32_t u = 0; u < p->unit_count; u++) {
    uint32_t d = device;
    for (uint32_t e = 0; !tfc_problem_allows(p, u, d) && e < p->device_count; e++) d = e;
    solution.device[u] = (tfc_device_id)d;
    m.needed[u] = INT64_MAX;
  }
  TFC_TRY(s, tfc_solution_check(p, solution.device));
  TFC_TRY(s, tfc_simulator_create(p, &simulator));
  TFC_TRY(s, tfc_simulate_timeline(simulator, solution.device, NULL, &m.timeline));
  for (uint32_t n = 0; n < p->node_count; n++)
    if ((double)m.timeline.end[n] > m.end) m.end = (double)m.timeline.end[n];
  w.step_us = 1e-6 * m.end;
  find_exchange(&m);
  TFC_TRY(s, fill(&m, &w));
  *out = w, w = (struct tfc_workload){0};
out:
  tfc_workload_deinit(&w);
  tfc_timeline_deinit(&m.timeline);
  tfc_simulator_free(simulator);
  tfc_solution_deinit(&solution);
  free(m.holds), free(m.pull), free(m.push), free(m.most), free(m.needed), free(m.made);
  return s;
}

void tfc_workload_deinit(struct tfc_workload *w) {
  free(w->parameter);
  *w = (struct tfc_workload){0};
}

double tfc_workload_imbalance(const struct tfc_workload *w, uint32_t servers) {
  double all = 0, fullest = 0, *load = calloc(servers + 1u, sizeof *load);
  for (uint32_t i = 0; load && i < w->parameter_count; i++) {
    uint32_t least = 0;
    for (uint32_t k = 1; k < servers; k++)
      if (load[k] < load[least]) least = k;
    load[least] += w->parameter[i];
    all += w->parameter[i];
    if (load[least] > fullest) fullest = load[least];
  }
  free(load);
  return all > 0 ? fullest * servers / all : 1;
}
