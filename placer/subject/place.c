// Converts device strings and placement files to solutions, and solutions to the arrays of sessions and to documents.
#include <math.h>
#include <stdlib.h>

#include "placer/model/keys.h"
#include "placer/subject/subject.h"
#include "runtime/base/map.h"
#include "runtime/graph/device_spec.h"

static uint32_t device_of(const struct tfc_subject *l, const struct tfc_problem *p, const struct tfc_solution *solution,
                          uint32_t node) {
  return l->anchor[node] == TFC_NONE ? l->host : solution->device[p->unit[l->anchor[node]]];
}

tfc_status tfc_subject_convert(const struct tfc_subject *from, const struct tfc_problem *from_problem,
                               const struct tfc_solution *solution, const struct tfc_problem *to,
                               struct tfc_solution *out) {
  for (uint32_t c = from->cost_count; c-- > 0;) out->device[to->unit[c]] = solution->device[from_problem->unit[c]];
  free(out->rank);
  out->rank = NULL;
  if (!solution->rank) return NULL;
  if (!(out->rank = malloc((from->cost_count + 1u) * sizeof *out->rank))) return tfc_status_no_memory("a placement");
  memcpy(out->rank, solution->rank, from->cost_count * sizeof *out->rank);
  return NULL;
}

tfc_status tfc_subject_assign(const struct tfc_subject *l, const struct tfc_problem *p,
                              const struct tfc_solution *solution, uint16_t *placement, uint32_t *sequence,
                              uint32_t *out_count) {
  tfc_status s = NULL;
  struct tfc_simulator *simulator = NULL;
  struct tfc_timeline timeline = {0};
  uint32_t *at = NULL;
  for (uint32_t i = 0; i < l->graph->node_count; i++) placement[i] = (uint16_t)device_of(l, p, solution, i);
  if (!sequence) return NULL;
  TFC_TRY(s, tfc_simulator_create(p, &simulator));
  TFC_TRY(s, tfc_simulate_timeline(simulator, solution->device, solution->rank, &timeline));
  if (!(at = calloc(l->cost_count + 1u, sizeof *at))) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t c = 0; c < l->cost_count; c++) at[timeline.sequence[c]] = c;
  uint32_t count = 0;
  for (uint32_t k = 0; k < l->cost_count; k++)
    if (l->runs[at[k]]) sequence[count++] = l->node_of[at[k]];
  *out_count = count;
out:
  free(at);
  tfc_timeline_deinit(&timeline);
  tfc_simulator_free(simulator);
  return s;
}

// --- The expert ------------------------------------------------------------------------------------------------------
// If the devices belong to several tasks, finds the device that the job and the task in a device string name; a string
// without a device type means the task's first device. TFC_NONE: no device matches.
static uint32_t device_of_task(const struct tfc_machine *m, const struct tfc_device_spec *spec) {
  if (spec->task < 0 && !spec->job.size) return TFC_NONE;
  for (uint32_t d = 0; d < m->device_count; d++) {
    struct tfc_device_spec full;
    tfc_status s = m->devices[d].tensorflow.data ? tfc_device_spec_parse(m->devices[d].tensorflow, &full)
                                                 : tfc_status_make(TFC_NOT_FOUND, "none");
    const bool fits =
        !s && full.job.size && !tfc_str_is(full.job, "localhost") &&
        (!spec->job.size || tfc_str_equal(spec->job, full.job)) && (spec->task < 0 || spec->task == full.task) &&
        (!spec->type[0] || strcmp(spec->type, full.type) == 0) && (spec->index < 0 || spec->index == full.index);
    tfc_status_free(s);
    if (fits) return d;
  }
  return TFC_NONE;
}

tfc_status tfc_subject_string(const struct tfc_machine *m, tfc_str text, uint32_t *out, struct tfc_text *note) {
  struct tfc_device_spec spec;
  TFC_RETURN_IF_ERROR(tfc_device_spec_parse(text, &spec));
  *out = device_of_task(m, &spec);
  if (*out != TFC_NONE) return NULL;
  if (!spec.type[0]) return NULL;
  uint32_t index = spec.index > 0 ? (uint32_t)spec.index : 0;
  for (uint32_t d = 0; d < m->device_count; d++) {
    struct tfc_device_spec full;
    tfc_status s = m->devices[d].tensorflow.data ? tfc_device_spec_parse(m->devices[d].tensorflow, &full)
                                                 : tfc_status_make(TFC_NOT_FOUND, "none");
    bool fits = !s && tfc_str_is(tfc_str_from(full.type), spec.type) && full.index == (int)index;
    tfc_status_free(s);
    if (fits) return *out = d, NULL;
  }
  *out = index % m->device_count;
  char line[96];
  int n = snprintf(line, sizeof line, "%s:%u -> %.*s", spec.type, index, TFC_STR_ARG(m->devices[*out].name));
  if (n > 0 && note && !(note->size && strstr(note->data, line)))
    tfc_text_printf(note, "%s%s", note->size ? ", " : "", line);
  return NULL;
}

tfc_status tfc_subject_strings(const struct tfc_subject *l, const struct tfc_problem *p,
                               const struct tfc_graph *strings, struct tfc_solution *out, char **out_note) {
  tfc_status s = NULL;
  struct tfc_text note = {0};
  struct tfc_solution solution = {0};
  bool any = false;
  uint32_t *votes = calloc((size_t)p->unit_count * p->device_count + 1, sizeof *votes);
  if (!votes) return tfc_status_no_memory("a placement");
  TFC_TRY(s, tfc_solution_init(&solution, p));
  for (uint32_t i = 0; i < l->graph->node_count; i++) {
    if (!l->needed[i] || l->anchor[i] == TFC_NONE) continue;
    uint32_t at = strings == l->graph ? i : tfc_graph_find(strings, l->graph->nodes[i].name);
    uint32_t device = TFC_NONE;
    if (at == TFC_NONE || strings->nodes[at].device.size == 0) continue;
    s = tfc_subject_string(l->machine, strings->nodes[at].device, &device, &note);
    if (s) {
      s = tfc_status_annotate(s, "node '%.*s'", TFC_STR_ARG(l->graph->nodes[i].name));
      goto out;
    }
    if (device == TFC_NONE) continue;
    any = true;
    // An operation that runs has more weight than an elided node.
    votes[(size_t)p->unit[l->anchor[i]] * p->device_count + device] += l->cost_of[i] != TFC_NONE ? 1000 : 1;
  }
  if (!any) TFC_FAIL(s, TFC_NOT_FOUND, "the graph has no device strings");
  for (uint32_t u = 0; u < p->unit_count; u++) {
    uint32_t best = 0, most = 0;
    for (uint32_t d = 0; d < p->device_count; d++) {
      uint32_t v = votes[(size_t)u * p->device_count + d];
      if (v > most && tfc_problem_allows(p, u, d)) most = v, best = d;
    }
    while (!most && best + 1 < p->device_count && !tfc_problem_allows(p, u, best)) best++;
    solution.device[u] = (tfc_device_id)best;
  }
  if (note.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t u = 0; u < p->unit_count; u++) out->device[u] = solution.device[u];
  if (out_note) *out_note = note.data, note.data = NULL;
out:
  free(votes);
  tfc_solution_deinit(&solution);
  tfc_text_deinit(&note);
  return s;
}

// --- Files -----------------------------------------------------------------------------------------------------------
tfc_status tfc_subject_resolve(const struct tfc_subject *l, const struct tfc_problem *p,
                               const struct tfc_placement *placement, struct tfc_solution *out) {
  tfc_status s = NULL;
  const struct tfc_graph *g = l->graph;
  uint32_t *device = calloc(g->node_count + 1u, sizeof *device);
  double *order = calloc(l->cost_count + 1u, sizeof *order);
  struct tfc_strmap keys = {0};
  bool ordered = false;
  uint32_t *by = calloc(p->unit_count + 1u, sizeof *by); // [unit] the node that decided its device
  if (!device || !order || !by) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < g->node_count; i++) device[i] = TFC_NONE;
  for (uint32_t c = 0; c < l->cost_count; c++) order[c] = NAN;
  for (uint32_t k = 0; k < placement->node_count; k++) { // checks devices first, as subject.h promises
    const struct tfc_placement_node *n = &placement->nodes[k];
    if (tfc_machine_find(l->machine, n->device) == TFC_NONE && !tfc_str_is(n->device, "host"))
      TFC_FAIL(s, TFC_UNAVAILABLE, "the placement puts '%.*s' on %.*s: there is no such device", TFC_STR_ARG(n->name),
               TFC_STR_ARG(n->device));
  }
  TFC_TRY(s, tfc_placement_check_keys(placement, g));
  for (uint32_t k = 0; k < placement->node_count; k++) {
    const struct tfc_placement_node *n = &placement->nodes[k];
    const uint32_t node = tfc_graph_find(g, n->name);
    if (node == TFC_NONE || node >= tfc_graph_file_nodes(g)) {
      if (!tfc_strmap_put(&keys, n->name, k, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
      continue;
    }
    uint32_t d = tfc_machine_find(l->machine, n->device);
    device[node] = d == TFC_NONE ? l->host : d;
    if (l->cost_of[node] != TFC_NONE && !isnan(n->order)) order[l->cost_of[node]] = n->order, ordered = true;
  }
  // Nodes that were lowered from functions have their key's device; a node without a key, which lowering added, has the
  // device of its function call.
  for (uint32_t i = tfc_graph_file_nodes(g); i < g->node_count; i++) {
    tfc_str key = tfc_node_attr_string(g, &g->nodes[i], "_tfc_key", "");
    const uint64_t *at = key.size ? tfc_strmap_get(&keys, key) : NULL;
    if (!at) {
      device[i] = device[g->caller[i]];
      continue;
    }
    const struct tfc_placement_node *n = &placement->nodes[*at];
    uint32_t d = tfc_machine_find(l->machine, n->device);
    device[i] = d == TFC_NONE ? l->host : d;
    if (l->cost_of[i] != TFC_NONE && !isnan(n->order)) order[l->cost_of[i]] = n->order, ordered = true;
  }
  for (uint32_t u = 0; u < p->unit_count; u++) by[u] = TFC_NONE;
  for (uint32_t c = 0; c < l->cost_count; c++) {
    uint32_t node = l->node_of[c], u = p->unit[c];
    if (by[u] != TFC_NONE && device[by[u]] != device[node])
      TFC_FAIL(
          s, TFC_INVALID_ARGUMENT, "'%.*s' and '%.*s' must share a device, the placement puts them on %.*s and %.*s",
          TFC_STR_ARG(g->nodes[by[u]].name), TFC_STR_ARG(g->nodes[node].name),
          TFC_STR_ARG(l->machine->devices[device[by[u]]].name), TFC_STR_ARG(l->machine->devices[device[node]].name));
    by[u] = node;
  }
  for (uint32_t u = 0; u < p->unit_count; u++) out->device[u] = (tfc_device_id)device[by[u]];
  TFC_TRY(s, tfc_solution_check(p, out->device));
  if (ordered) {
    if (!out->rank && !(out->rank = calloc(p->node_count + 1u, sizeof *out->rank)))
      TFC_TRY(s, tfc_status_no_memory(NULL));
    TFC_TRY(s, tfc_rank_from_order(p, order, out->rank));
  }
out:
  tfc_strmap_deinit(&keys);
  free(device);
  free(order);
  free(by);
  return s;
}

// Makes the document's entry for a node of the graph.
static struct tfc_placement_node entry_of(const struct tfc_subject *l, const struct tfc_problem *p,
                                          const struct tfc_solution *solution, const struct tfc_timeline *timeline,
                                          uint32_t node, tfc_str name, struct tfc_arena *arena) {
  uint32_t c = l->cost_of[node];
  tfc_str reason = l->reason[node];
  if (!reason.data && l->anchor[node] == TFC_NONE) reason = TFC_STR("not part of the step");
  if (c != TFC_NONE && l->pin[c].data) reason = TFC_STR("pinned");
  return (struct tfc_placement_node){
      .name = name,
      .device = tfc_arena_str(arena, l->machine->devices[device_of(l, p, solution, node)].name),
      .order = c == TFC_NONE ? (double)NAN : (double)timeline->sequence[c],
      .reason = reason.data ? tfc_arena_str(arena, reason) : reason};
}

tfc_status tfc_subject_document(const struct tfc_subject *l, const struct tfc_problem *p,
                                const struct tfc_solution *solution, struct tfc_placement *d) {
  tfc_status s = NULL;
  const struct tfc_graph *g = l->graph;
  struct tfc_simulator *simulator = NULL;
  struct tfc_timeline timeline = {0};
  uint32_t file_nodes = tfc_graph_file_nodes(g);
  struct tfc_strmap keys = {0};
  size_t total = file_nodes;
  for (uint32_t f = 0; f < g->function_count; f++) total += g->functions[f].body->node_count;
  struct tfc_placement_node *nodes = TFC_ARENA_ARRAY(&d->arena, struct tfc_placement_node, total + 1);
  if (!nodes) return tfc_status_no_memory("a placement");
  TFC_TRY(s, tfc_simulator_create(p, &simulator));
  TFC_TRY(s, tfc_simulate_timeline(simulator, solution->device, solution->rank, &timeline));
  for (uint32_t i = 0; i < file_nodes; i++) {
    nodes[i] = entry_of(l, p, solution, &timeline, i, tfc_arena_str(&d->arena, g->nodes[i].name), &d->arena);
    if (!nodes[i].name.data || !nodes[i].device.data) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (uint32_t i = g->node_count; i-- > file_nodes;) { // the first of several calls gives the order
    tfc_str key = tfc_node_attr_string(g, &g->nodes[i], "_tfc_key", "");
    uint64_t *first = key.size ? tfc_strmap_put(&keys, key, i, NULL) : NULL;
    if (first) *first = i;
    if (key.size && !first) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  size_t at = file_nodes;
  tfc_str host = tfc_arena_str(&d->arena, l->machine->devices[l->host].name);
  for (uint32_t f = 0; f < g->function_count; f++) {
    const struct tfc_graph *body = g->functions[f].body;
    for (uint32_t i = 0; i < body->node_count; i++) {
      tfc_str key = tfc_arena_printf(&d->arena, "function/%.*s:%.*s", TFC_STR_ARG(g->functions[f].name),
                                     TFC_STR_ARG(body->nodes[i].name));
      if (!key.data) TFC_TRY(s, tfc_status_no_memory(NULL));
      const uint64_t *lowered = tfc_strmap_get(&keys, key);
      nodes[at] =
          (struct tfc_placement_node){.name = key, .device = host, .order = NAN, .reason = TFC_STR("in a function")};
      if (lowered) nodes[at] = entry_of(l, p, solution, &timeline, (uint32_t)*lowered, key, &d->arena);
      if (!nodes[at++].device.data) TFC_TRY(s, tfc_status_no_memory(NULL));
    }
  }
  d->nodes = nodes, d->node_count = (uint32_t)at;
  d->graph_nodes = file_nodes;
out:
  tfc_strmap_deinit(&keys);
  tfc_timeline_deinit(&timeline);
  tfc_simulator_free(simulator);
  return s;
}
