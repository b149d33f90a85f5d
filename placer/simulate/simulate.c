#include "placer/simulate/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "placer/simulate/engine.h"
#include "placer/simulate/loads.h"

struct tfc_simulator {
  const struct tfc_problem *problem;
  struct tfc_engine engine;
  struct tfc_engine quick; // without live bytes: for calls that do not need them and where no limit can be exceeded;
                           // block NULL: there is none
  uint64_t *memory;        // [device]
  uint32_t *mark;          // [device] the last net that was counted for the device
  int64_t *load;           // [device]
};

tfc_status tfc_simulator_create(const struct tfc_problem *p, struct tfc_simulator **out) {
  tfc_status s = NULL;
  struct tfc_simulator *sim = calloc(1, sizeof *sim);
  if (!sim) return tfc_status_no_memory("a simulator");
  sim->problem = p;
  sim->memory = calloc(p->device_count, sizeof *sim->memory);
  sim->mark = calloc(p->device_count, sizeof *sim->mark);
  sim->load = calloc(p->device_count, sizeof *sim->load);
  if (!sim->memory || !sim->mark || !sim->load) TFC_TRY(s, tfc_status_no_memory("a simulator"));
  TFC_TRY(s, tfc_engine_init(&sim->engine, p, p->has_live));
  if (p->has_live && !p->live_matters) TFC_TRY(s, tfc_engine_init(&sim->quick, p, false));
  *out = sim, sim = NULL;
out:
  tfc_simulator_free(sim);
  return s;
}

void tfc_simulator_free(struct tfc_simulator *sim) {
  if (!sim) return;
  tfc_engine_deinit(&sim->engine);
  tfc_engine_deinit(&sim->quick);
  free(sim->memory), free(sim->mark), free(sim->load);
  free(sim);
}

// Fills `memory` with the bytes that are allocated during the whole step.
static void static_memory(struct tfc_simulator *sim, const tfc_device_id *device) {
  const struct tfc_problem *p = sim->problem;
  memset(sim->memory, 0, sizeof *sim->memory * p->device_count);
  for (uint32_t u = 0; u < p->unit_count; u++) sim->memory[device[u]] += p->unit_memory[u];
}

static void settle_memory(struct tfc_simulator *sim, struct tfc_verdict *out) {
  const struct tfc_problem *p = sim->problem;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (sim->memory[d] > p->limit[d]) out->excess += sim->memory[d] - p->limit[d];
  out->feasible = out->excess == 0;
  if (out->memory) memcpy(out->memory, sim->memory, sizeof *out->memory * p->device_count);
}

static void simulate_throughput(struct tfc_simulator *sim, const tfc_device_id *device, int64_t cutoff,
                                struct tfc_verdict *out) {
  const struct tfc_problem *p = sim->problem;
  int64_t *load = sim->load;
  memset(load, 0, sizeof *load * p->device_count);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    if (device[u] >= p->device_count || !tfc_problem_allows(p, u, device[u])) return;
    load[device[u]] += tfc_problem_unit_time(p, u, device[u]);
  }
  static_memory(sim, device);
  memset(sim->mark, 0xff, sizeof *sim->mark * p->device_count);
  for (uint32_t u = 0; u < p->unit_count; u++) {
    const uint32_t from = device[u];
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      const uint32_t tensor = p->net_tensor[i];
      int64_t sending = 0;
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++) {
        const uint32_t to = device[p->net_unit[j]];
        if (to == from || sim->mark[to] == i) continue;
        sim->mark[to] = i;
        const struct tfc_pair *pair = tfc_problem_pair(p, from, to);
        if (!pair->linked) return;
        out->transfers++, out->transfer_bytes += p->graph->bytes[tensor];
        if (!pair->occupies) continue;
        const int64_t time = tfc_problem_wire_time(p, tensor, pair);
        if (pair->occupies & TFC_OCCUPIES_RECEIVER) load[to] += time;
        if ((pair->occupies & TFC_OCCUPIES_SENDER) && time > sending) sending = time;
      }
      load[from] += sending;
    }
  }
  out->legal = true;
  out->value = 0;
  for (uint32_t d = 0; d < p->device_count; d++)
    if (load[d] > out->value) out->value = load[d];
  if (out->value >= cutoff) out->value = TFC_TIME_MAX, out->cut = true;
  if (out->busy) memcpy(out->busy, load, sizeof *load * p->device_count);
  settle_memory(sim, out);
}

void tfc_simulate(struct tfc_simulator *sim, const tfc_device_id *device, const uint32_t *rank, int64_t cutoff,
                  struct tfc_verdict *out) {
  const struct tfc_problem *p = sim->problem;
  struct tfc_engine *e = sim->quick.block && !out->memory ? &sim->quick : &sim->engine;
  *out = (struct tfc_verdict){.value = TFC_TIME_MAX, .busy = out->busy, .memory = out->memory};
  if (p->objective == TFC_OBJECTIVE_THROUGHPUT) {
    simulate_throughput(sim, device, cutoff, out);
    return;
  }
  if (!tfc_engine_place(e, device, rank)) return;
  tfc_engine_begin(e);
  tfc_engine_stop stop = tfc_engine_run(e, cutoff, UINT32_MAX);
  if (stop == TFC_ENGINE_NO_LINK) return;
  static_memory(sim, device);
  for (uint32_t d = 0; e->live && d < p->device_count; d++) sim->memory[d] += e->peak[d];
  settle_memory(sim, out);
  out->legal = true;
  if (stop == TFC_ENGINE_CUT) {
    out->cut = true;
    return;
  }
  out->value = e->scalars->value;
  if (out->value >= cutoff) out->value = TFC_TIME_MAX, out->cut = true;
  out->transfers = e->scalars->transfer_count, out->transfer_bytes = tfc_engine_transfer_bytes(e);
  if (out->busy) memcpy(out->busy, e->busy, sizeof *out->busy * p->device_count);
}

void tfc_timeline_deinit(struct tfc_timeline *t) {
  free(t->start), free(t->end), free(t->sequence), free(t->transfers), free(t->path);
  *t = (struct tfc_timeline){0};
}

// --- The critical path: goes backwards from the last end, each time to an item that ended when this one began -------

struct item {
  int64_t start, end;
  uint32_t sequence; // number of its start, in the order of all starts of operations and transfers
};
struct path_finder {
  const struct tfc_problem *problem;
  const struct tfc_engine *engine;
  const struct tfc_timeline *timeline;
  uint32_t *on_device, *device_first; // operations of a device in the order of their starts
  uint32_t *device_position;          // [node]
  uint32_t *tensor_first;             // [tensor] its first transfer; its other transfers follow that one
  uint32_t *wire_before;              // [transfer] the previous transfer on the same wire
};

static struct item item_of(const struct path_finder *f, uint32_t i) {
  const struct tfc_timeline *t = f->timeline;
  if (i < t->node_count) return (struct item){t->start[i], t->end[i], f->engine->step_sequence[i]};
  const struct tfc_transfer *x = &t->transfers[i - t->node_count];
  return (struct item){x->start, x->end, f->engine->log_sequence.data[i - t->node_count]};
}
static bool precedes(const struct path_finder *f, uint32_t before, const struct item *item) {
  struct item b = item_of(f, before);
  return b.end == item->start && b.sequence < item->sequence;
}

// Returns the item for which this item waited last, or TFC_NONE at the start of the step. If several ended at that
// time, an item that delivers data comes first, then one on the same device, then one on the same wire.
static uint32_t predecessor(const struct path_finder *f, uint32_t i) {
  const struct tfc_cost_graph *g = f->problem->graph;
  const struct tfc_timeline *t = f->timeline;
  const uint32_t nodes = t->node_count;
  const struct item item = item_of(f, i);
  if (i >= nodes) {
    const struct tfc_transfer *x = &t->transfers[i - nodes];
    const struct tfc_pair *pair = tfc_problem_pair(f->problem, x->from, x->to);
    if (precedes(f, g->producer[x->tensor], &item)) return g->producer[x->tensor];
    uint32_t before = f->wire_before[i - nodes];
    if (before != TFC_NONE && precedes(f, nodes + before, &item)) return nodes + before;
    for (uint32_t k = 0; k < t->transfer_count && pair->occupies; k++) {
      const struct tfc_transfer *y = &t->transfers[k];
      if (!tfc_problem_pair(f->problem, y->from, y->to)->occupies) continue;
      bool meets = y->from == x->from || y->from == x->to || y->to == x->from || y->to == x->to;
      if (meets && precedes(f, nodes + k, &item)) return nodes + k;
    }
    for (uint32_t n = 0; n < nodes && pair->occupies; n++)
      if ((f->engine->device[n] == x->from || f->engine->device[n] == x->to) && precedes(f, n, &item)) return n;
    return TFC_NONE;
  }
  const uint32_t device = f->engine->device[i];
  for (uint32_t k = g->first_input[i]; k < g->first_input[i + 1]; k++) {
    uint32_t producer = g->producer[g->input[k]];
    if (f->engine->device[producer] == device && precedes(f, producer, &item)) return producer;
  }
  for (uint32_t j = g->first_input[i]; j < g->first_input[i + 1]; j++)
    for (uint32_t k = f->tensor_first[g->input[j]]; k < t->transfer_count && t->transfers[k].tensor == g->input[j]; k++)
      if (t->transfers[k].to == device && precedes(f, nodes + k, &item)) return nodes + k;
  if (f->device_position[i] > f->device_first[device]) {
    uint32_t before = f->on_device[f->device_position[i] - 1];
    if (precedes(f, before, &item)) return before;
  }
  for (uint32_t k = 0; k < t->transfer_count && f->problem->has_occupancy; k++) {
    const struct tfc_transfer *x = &t->transfers[k];
    const struct tfc_pair *pair = tfc_problem_pair(f->problem, x->from, x->to);
    bool stood = ((pair->occupies & TFC_OCCUPIES_SENDER) && x->from == device) ||
                 ((pair->occupies & TFC_OCCUPIES_RECEIVER) && x->to == device);
    if (stood && precedes(f, nodes + k, &item)) return nodes + k;
  }
  return TFC_NONE;
}

static tfc_status find_path(const struct tfc_problem *p, const struct tfc_engine *e, struct tfc_timeline *t) {
  tfc_status s = NULL;
  const uint32_t nodes = p->node_count;
  TFC_ARRAY(uint32_t) path = {0};
  struct path_finder f = {.problem = p, .engine = e, .timeline = t};
  uint32_t *by_sequence = calloc(nodes, sizeof *by_sequence), *next = calloc(p->device_count + 1u, sizeof *next);
  uint32_t *last_on_wire = NULL;
  f.on_device = calloc(nodes, sizeof *f.on_device);
  f.device_position = calloc(nodes, sizeof *f.device_position);
  f.device_first = calloc(p->device_count + 2u, sizeof *f.device_first);
  f.tensor_first = malloc(sizeof *f.tensor_first * (p->tensor_count + 1u));
  f.wire_before = calloc(t->transfer_count + 1u, sizeof *f.wire_before);
  last_on_wire = malloc(sizeof *last_on_wire * (p->wire_count + 1u));
  if (!f.tensor_first || !f.wire_before || !last_on_wire || !by_sequence || !next || !f.on_device ||
      !f.device_position || !f.device_first)
    TFC_TRY(s, tfc_status_no_memory("the critical path"));
  for (uint32_t n = 0; n < nodes; n++) by_sequence[t->sequence[n]] = n, f.device_first[e->device[n] + 1]++;
  for (uint32_t d = 0; d < p->device_count; d++)
    f.device_first[d + 1] += f.device_first[d], next[d] = f.device_first[d];
  for (uint32_t i = 0; i < nodes; i++) {
    uint32_t n = by_sequence[i];
    f.device_position[n] = next[e->device[n]]++;
    f.on_device[f.device_position[n]] = n;
  }
  memset(f.tensor_first, 0xff, sizeof *f.tensor_first * (p->tensor_count + 1u));
  memset(last_on_wire, 0xff, sizeof *last_on_wire * (p->wire_count + 1u));
  for (uint32_t k = 0; k < t->transfer_count; k++) {
    const struct tfc_transfer *x = &t->transfers[k];
    const uint32_t wire = tfc_problem_pair(p, x->from, x->to)->wire;
    if (f.tensor_first[x->tensor] == TFC_NONE) f.tensor_first[x->tensor] = k;
    f.wire_before[k] = wire == TFC_NONE ? TFC_NONE : last_on_wire[wire];
    if (wire != TFC_NONE) last_on_wire[wire] = k;
  }
  uint32_t last = 0;
  for (uint32_t n = 0; n < nodes; n++)
    if (t->end[n] > t->end[last]) last = n;
  for (uint32_t i = last; i != TFC_NONE; i = predecessor(&f, i))
    if (!tfc_array_push(&path, i)) TFC_TRY(s, tfc_status_no_memory("the critical path"));
  for (size_t i = 0; i < path.count / 2; i++) {
    uint32_t swap = path.data[i];
    path.data[i] = path.data[path.count - 1 - i];
    path.data[path.count - 1 - i] = swap;
  }
  t->path = path.data, t->path_count = (uint32_t)path.count;
  path.data = NULL;
out:
  free(path.data), free(by_sequence), free(next), free(f.on_device), free(f.device_position), free(f.device_first);
  free(f.tensor_first), free(f.wire_before), free(last_on_wire);
  return s;
}

tfc_status tfc_simulate_timeline(struct tfc_simulator *sim, const tfc_device_id *device, const uint32_t *rank,
                                 struct tfc_timeline *out) {
  tfc_status s = NULL;
  const struct tfc_problem *p = sim->problem;
  struct tfc_engine *e = &sim->engine;
  struct tfc_timeline t = {.node_count = p->node_count};
  t.start = calloc(p->node_count, sizeof *t.start);
  t.end = calloc(p->node_count, sizeof *t.end);
  t.sequence = calloc(p->node_count, sizeof *t.sequence);
  uint32_t *step_sequence = calloc(p->node_count, sizeof *step_sequence);
  if (!t.start || !t.end || !t.sequence || !step_sequence) TFC_TRY(s, tfc_status_no_memory("a timeline"));
  TFC_TRY(s, tfc_solution_check(p, device));
  if (!tfc_engine_place(e, device, rank)) TFC_FAIL(s, TFC_INTERNAL, "a placement is legal and cannot be simulated");
  e->start = t.start, e->end = t.end, e->sequence = t.sequence, e->step_sequence = step_sequence;
  e->log_transfers = true;
  tfc_engine_begin(e);
  tfc_engine_stop stop = tfc_engine_run(e, TFC_TIME_MAX, UINT32_MAX);
  if (stop != TFC_ENGINE_ENDED) TFC_TRY(s, tfc_status_no_memory("a timeline"));
  t.transfer_count = (uint32_t)e->log.count, t.transfer_capacity = (uint32_t)e->log.count;
  t.transfers = malloc(sizeof *t.transfers * (e->log.count + 1));
  if (!t.transfers) TFC_TRY(s, tfc_status_no_memory("a timeline"));
  if (e->log.count) memcpy(t.transfers, e->log.data, sizeof *t.transfers * e->log.count);
  TFC_TRY(s, find_path(p, e, &t));
  *out = t;
  t = (struct tfc_timeline){0};
out:
  e->start = e->end = NULL, e->sequence = e->step_sequence = NULL, e->log_transfers = false;
  free(step_sequence);
  tfc_timeline_deinit(&t);
  return s;
}
