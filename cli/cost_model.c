#include "cli/cost_model.h"

#include <math.h>
#include <stdlib.h>

// Finds the first device of each kind; all devices of a kind must have the same rates.
static tfc_status kinds_of(const struct tfc_machine *m, uint32_t *first, uint32_t *out_count) {
  uint32_t count = 0;
  for (uint32_t d = 0; d < m->device_count; d++) {
    const struct tfc_machine_device *device = &m->devices[d];
    uint32_t k = 0;
    while (k < count && !tfc_str_equal(m->devices[first[k]].kind, device->kind)) k++;
    if (!(device->flops > 0) || !(device->memory_bandwidth > 0))
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "device '%.*s' (kind %.*s) gives no %s: a TensorFlow graph has no times of its own, so "
                             "each device needs its rates, such as {flops: 1.0e+13, memory_bandwidth: 700GB/s}",
                             TFC_STR_ARG(device->name), TFC_STR_ARG(device->kind),
                             device->flops > 0 ? "memory_bandwidth" : "flops");
    if (k == count) {
      first[count++] = d;
      continue;
    }
    const struct tfc_machine_device *same = &m->devices[first[k]];
    if (same->flops < device->flops || same->flops > device->flops ||
        same->memory_bandwidth < device->memory_bandwidth || same->memory_bandwidth > device->memory_bandwidth)
      return tfc_status_make(TFC_INVALID_ARGUMENT,
                             "devices '%.*s' and '%.*s' are of one kind (%.*s) with different rates: give them kinds "
                             "of their own",
                             TFC_STR_ARG(same->name), TFC_STR_ARG(device->name), TFC_STR_ARG(device->kind));
  }
  *out_count = count;
  return NULL;
}

tfc_status cli_cost_model(const struct tfc_graph *g, const struct tfc_shapes *shapes, const uint32_t *ops,
                          uint32_t op_count, const struct tfc_machine *m, struct tfc_cost_table **out,
                          struct cli_cost_total *out_total) {
  tfc_status s = NULL;
  struct tfc_cost_table *table = NULL;
  struct cli_cost_total total = {0};
  uint32_t kind_count = 0, *first = calloc(m->device_count + 1u, sizeof *first);
  if (!first) return tfc_status_no_memory(NULL);
  TFC_TRY(s, kinds_of(m, first, &kind_count));
  TFC_TRY(s, tfc_cost_table_create(g->node_count, kind_count, &table));
  for (uint32_t i = 0; i < op_count; i++) {
    struct tfc_op_cost cost;
    total.unknown += !tfc_node_cost(g, &g->nodes[ops[i]], shapes, &cost);
    total.flops += cost.flops, total.bytes += cost.bytes;
    for (uint32_t k = 0; k < kind_count; k++) {
      const struct tfc_machine_device *device = &m->devices[first[k]];
      double us = 1e6 * fmax(cost.flops / device->flops, cost.bytes / device->memory_bandwidth);
      TFC_TRY(s, tfc_cost_table_put(table, ops[i], k, us));
    }
  }
  *out = table, table = NULL;
  *out_total = total;
out:
  tfc_cost_table_free(table);
  free(first);
  return s;
}
