#include "placer/model/placed.h"

#include <math.h>
#include <stdlib.h>

#include "placer/model/keys.h"
#include "placer/model/placement_json.h"
#include "runtime/base/map.h"

static bool lists(tfc_str names, tfc_str name) {
  while (names.size)
    if (tfc_str_equal(tfc_str_take(&names, ','), name)) return true;
  return false;
}

static tfc_status devices_of(const struct tfc_placement *p, const char *path, char **out) {
  struct tfc_text text = {0};
  for (uint32_t i = 0; i < p->device_count + p->node_count; i++) {
    if (i == p->device_count && text.size) break;
    tfc_str name = i < p->device_count ? p->devices[i].name : p->nodes[i - p->device_count].device;
    if (tfc_str_is(name, "host") || lists((tfc_str){text.data, text.size}, name)) continue;
    tfc_text_printf(&text, "%s%.*s", text.size ? "," : "", TFC_STR_ARG(name));
  }
  if (text.size && tfc_str_is(p->virtual_transfers, "handed over")) tfc_text_printf(&text, ",shared");
  if (text.failed || !text.data) {
    tfc_status s =
        text.failed ? tfc_status_no_memory(NULL) : tfc_status_make(TFC_INVALID_ARGUMENT, "%s names no device", path);
    tfc_text_deinit(&text);
    return s;
  }
  *out = text.data;
  return NULL;
}

tfc_status tfc_placed_read(const char *path, const struct tfc_graph *graph, struct tfc_placed *out) {
  tfc_status s = NULL;
  struct tfc_placed placed = {.path = path, .graph = graph};
  TFC_TRY(s, tfc_placement_read(path, &placed.placement));
  TFC_TRY(s, devices_of(placed.placement, path, &placed.devices));
  tfc_str math = placed.placement->gpu_math;
  if (math.data && !(placed.gpu_math = tfc_math_parse(math)))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s: there is no gpu_math '%.*s'", path, TFC_STR_ARG(math));
  *out = placed, placed = (struct tfc_placed){0};
out:
  tfc_placed_deinit(&placed);
  return s;
}

void tfc_placed_deinit(struct tfc_placed *placed) {
  tfc_placement_free(placed->placement);
  free(placed->devices);
  *placed = (struct tfc_placed){0};
}

// Finds the device of each entry of the file. The device "host" becomes the first device, because that one runs
// operations which can only run on the host.
static tfc_status find_devices(const struct tfc_placed *p, const tfc_str *names, uint32_t count, uint16_t *out) {
  for (uint32_t i = 0; i < p->placement->node_count; i++) {
    const struct tfc_placement_node *n = &p->placement->nodes[i];
    bool found = tfc_str_is(n->device, "host");
    for (uint32_t d = 0; d < count && !found; d++)
      if ((found = tfc_str_equal(n->device, names[d]))) out[i] = (uint16_t)d;
    if (!found)
      return tfc_status_make(TFC_UNAVAILABLE, "%s: node '%.*s' is on %.*s, which is not among the devices", p->path,
                             TFC_STR_ARG(n->name), TFC_STR_ARG(n->device));
  }
  return NULL;
}

static tfc_status assign(const struct tfc_placed *p, const uint16_t *device, uint16_t *placement, double *order,
                         struct tfc_strmap *keys, bool *out_ordered) {
  const struct tfc_graph *g = p->graph;
  const struct tfc_placement_node *nodes = p->placement->nodes;
  uint32_t in_file = tfc_graph_file_nodes(g);
  TFC_RETURN_IF_ERROR(tfc_status_annotate(tfc_placement_check_keys(p->placement, g), "%s", p->path));
  for (uint32_t i = 0; i < g->node_count; i++) order[i] = (double)NAN;
  for (uint32_t i = 0; i < p->placement->node_count; i++) {
    *out_ordered |= isfinite(nodes[i].order);
    const uint32_t node = tfc_graph_find(g, nodes[i].name);
    // the name is no node of the graph file: it is the key of a node inside a function
    if (node == TFC_NONE || node >= in_file) {
      if (tfc_strmap_put(keys, nodes[i].name, i, NULL)) continue;
      return tfc_status_no_memory(NULL);
    }
    placement[node] = device[i];
    order[node] = nodes[i].order;
  }
  // Nodes that were lowered from functions have their key's device; a node without a key, which lowering added, has the
  // device of its function call.
  for (uint32_t i = in_file; i < g->node_count; i++) {
    tfc_str key = tfc_node_attr_string(g, &g->nodes[i], "_tfc_key", "");
    const uint64_t *at = key.size ? tfc_strmap_get(keys, key) : NULL;
    placement[i] = at ? device[*at] : placement[g->caller[i]];
    if (at) order[i] = nodes[*at].order;
  }
  return NULL;
}

static tfc_status assign_names(const struct tfc_placed *p, const tfc_str *names, uint32_t count,
                               uint16_t **out_placement, double **out_order) {
  tfc_status s = NULL;
  struct tfc_strmap keys = {0};
  bool ordered = false;
  uint16_t *device = calloc(p->placement->node_count + 1u, sizeof *device);
  uint16_t *placement = calloc(p->graph->node_count + 1u, sizeof *placement);
  double *order = calloc(p->graph->node_count + 1u, sizeof *order);
  if (!device || !placement || !order) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, find_devices(p, names, count, device));
  TFC_TRY(s, assign(p, device, placement, order, &keys, &ordered));
  *out_placement = placement, placement = NULL;
  if (!out_order) goto out;
  *out_order = NULL;
  if (ordered) *out_order = order, order = NULL;
out:
  tfc_strmap_deinit(&keys);
  free(device), free(placement), free(order);
  return s;
}

tfc_status tfc_placed_assign(const struct tfc_placed *p, const struct tfc_device_set *set, uint16_t **out_placement,
                             double **out_order) {
  tfc_str *names = calloc(set->count + 1u, sizeof *names);
  if (!names) return tfc_status_no_memory(NULL);
  for (uint32_t d = 0; d < set->count; d++) names[d] = tfc_str_from(set->devices[d]->info.name);
  tfc_status s = assign_names(p, names, set->count, out_placement, out_order);
  free(names);
  return s;
}

tfc_status tfc_placed_assign_machine(const struct tfc_placed *p, const struct tfc_machine *machine,
                                     uint16_t **out_placement) {
  tfc_str *names = calloc(machine->device_count + 1u, sizeof *names);
  if (!names) return tfc_status_no_memory(NULL);
  for (uint32_t d = 0; d < machine->device_count; d++) names[d] = machine->devices[d].name;
  tfc_status s = assign_names(p, names, machine->device_count, out_placement, NULL);
  free(names);
  return s;
}
