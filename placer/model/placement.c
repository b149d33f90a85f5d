// Applies a placement file to a problem: finds the unit of each name, and its device. Devices are checked first,
// because a wrong machine is the most likely mistake.
#include "placer/model/placement.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/map.h"

tfc_status tfc_placement_create(struct tfc_placement **out) {
  struct tfc_placement *p = calloc(1, sizeof *p);
  if (!p) return tfc_status_no_memory("a placement");
  p->run = -1;
  p->value_us = p->bound_us = p->step_median_us = p->step_q1_us = p->step_q3_us = NAN;
  p->feasible = true;
  p->unordered_median_us = p->unordered_q1_us = p->unordered_q3_us = NAN;
  p->step_label = p->value_label = TFC_LABEL_MODELLED;
  *out = p;
  return NULL;
}

void tfc_placement_free(struct tfc_placement *placement) {
  if (!placement) return;
  tfc_arena_deinit(&placement->arena);
  free(placement);
}

static tfc_status check_devices(const struct tfc_placement *f, const struct tfc_problem *p, uint32_t *device) {
  struct tfc_strmap names = {0};
  tfc_status s = NULL;
  for (uint32_t d = 0; d < p->device_count; d++) {
    const struct tfc_machine_device *x = &p->machine->devices[d];
    if (!tfc_strmap_put(&names, x->name, d, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  // A device's own name takes precedence over another device's TensorFlow name.
  for (uint32_t d = 0; d < p->device_count; d++) {
    const struct tfc_machine_device *x = &p->machine->devices[d];
    if (x->tensorflow.data && !tfc_strmap_put(&names, x->tensorflow, d, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (uint32_t i = 0; i < f->node_count; i++) {
    const uint64_t *found = tfc_strmap_get(&names, f->nodes[i].device);
    if (!found)
      TFC_FAIL(s, TFC_UNAVAILABLE, "node '%.*s' is placed on '%.*s', which is not in the machine",
               TFC_STR_ARG(f->nodes[i].name), TFC_STR_ARG(f->nodes[i].device));
    device[i] = (uint32_t)*found;
  }
out:
  tfc_strmap_deinit(&names);
  return s;
}

tfc_status tfc_placement_resolve(const struct tfc_placement *f, const struct tfc_problem *p, struct tfc_solution *out) {
  const struct tfc_cost_graph *g = p->graph;
  tfc_status s = NULL;
  struct tfc_solution solution = {0};
  struct tfc_strmap index = {0};
  uint32_t *device = calloc((size_t)f->node_count + 1, sizeof *device);    // [entry] the device that the entry names
  uint32_t *entry = malloc(sizeof *entry * ((size_t)p->node_count + 1));   // [node] the entry that places it
  uint32_t *holder = malloc(sizeof *holder * ((size_t)p->unit_count + 1)); // [unit] the node whose entry placed it
  double *order = malloc(sizeof *order * ((size_t)p->node_count + 1));
  bool has_order = false;
  if (!device || !entry || !holder || !order) TFC_TRY(s, tfc_status_no_memory("a placement"));
  TFC_TRY(s, check_devices(f, p, device));
  TFC_TRY(s, tfc_solution_init(&solution, p));
  for (uint32_t n = 0; n < p->node_count; n++) {
    entry[n] = TFC_NONE;
    if (!tfc_strmap_put(&index, g->names[n], n, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (uint32_t i = 0; i < f->node_count; i++) {
    const uint64_t *node = tfc_strmap_get(&index, f->nodes[i].name);
    if (!node)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the placement has node '%.*s', which is not in the graph",
               TFC_STR_ARG(f->nodes[i].name));
    if (entry[*node] != TFC_NONE)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the placement has node '%.*s' twice", TFC_STR_ARG(f->nodes[i].name));
    entry[*node] = i;
  }
  memset(holder, 0xff, sizeof *holder * p->unit_count);
  for (uint32_t n = 0; n < p->node_count; n++) {
    if (entry[n] == TFC_NONE)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "node '%.*s' is missing from the placement", TFC_STR_ARG(g->names[n]));
    const uint32_t u = p->unit[n], d = device[entry[n]];
    if (holder[u] == TFC_NONE) {
      holder[u] = n;
      solution.device[u] = (tfc_device_id)d;
    } else if (solution.device[u] != d) {
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "group '%.*s': node '%.*s' is on '%.*s', node '%.*s' on '%.*s'",
               TFC_STR_ARG(tfc_problem_unit_name(p, u)), TFC_STR_ARG(g->names[holder[u]]),
               TFC_STR_ARG(p->machine->devices[solution.device[u]].name), TFC_STR_ARG(g->names[n]),
               TFC_STR_ARG(p->machine->devices[d].name));
    }
    double own = f->nodes[entry[n]].order;
    has_order |= !isnan(own);
    order[n] = isnan(own) ? g->order[n] : own;
  }
  TFC_TRY(s, tfc_solution_check(p, solution.device));
  if (has_order) {
    solution.rank = malloc(sizeof *solution.rank * p->node_count);
    if (!solution.rank) TFC_TRY(s, tfc_status_no_memory("a placement"));
    TFC_TRY(s, tfc_rank_from_order(p, order, solution.rank));
  }
  tfc_solution_deinit(out);
  *out = solution;
  solution = (struct tfc_solution){0};
out:
  tfc_solution_deinit(&solution);
  tfc_strmap_deinit(&index);
  free(device), free(entry), free(holder), free(order);
  return s;
}

tfc_status tfc_placement_single(const struct tfc_problem *p, tfc_str name, struct tfc_solution *out) {
  struct tfc_solution solution = {0};
  uint32_t device = tfc_machine_find(p->machine, name);
  if (device == TFC_NONE)
    return tfc_status_make(TFC_UNAVAILABLE, "device '%.*s' is not in the machine", TFC_STR_ARG(name));
  TFC_RETURN_IF_ERROR(tfc_solution_init(&solution, p));
  for (uint32_t u = 0; u < p->unit_count; u++) solution.device[u] = (tfc_device_id)device;
  tfc_status s = tfc_solution_check(p, solution.device);
  if (s) {
    tfc_solution_deinit(&solution);
    return s;
  }
  tfc_solution_deinit(out);
  *out = solution;
  return NULL;
}

tfc_status tfc_placement_check_devices(const char *what, const struct tfc_placement *placement,
                                       const struct tfc_machine *machine, bool host) {
  if (strncmp(what, "single:", 7) == 0 && tfc_machine_find(machine, tfc_str_from(what + 7)) == TFC_NONE)
    return tfc_status_make(TFC_UNAVAILABLE, "device '%s' is not in the machine", what + 7);
  for (uint32_t i = 0; placement && i < placement->node_count; i++) {
    const struct tfc_placement_node *n = &placement->nodes[i];
    if (tfc_machine_find(machine, n->device) == TFC_NONE && !(host && tfc_str_is(n->device, "host")))
      return tfc_status_make(TFC_UNAVAILABLE, "%s: node '%.*s' is placed on '%.*s', which is not in the machine", what,
                             TFC_STR_ARG(n->name), TFC_STR_ARG(n->device));
  }
  return NULL;
}
