#include "placer/loads.h"

#include <stdlib.h>
#include <string.h>

tfc_status tfc_loads_init(struct tfc_loads *l, const struct tfc_problem *p) {
  *l = (struct tfc_loads){.problem = p};
  l->device = calloc((size_t)p->unit_count + 1, sizeof *l->device);
  l->load = calloc(p->device_count, sizeof *l->load);
  l->memory = calloc(p->device_count, sizeof *l->memory);
  l->count = calloc((size_t)p->net_count * p->device_count + 1, sizeof *l->count);
  if (l->device && l->load && l->memory && l->count) return NULL;
  tfc_loads_deinit(l);
  return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory for the loads");
}

void tfc_loads_deinit(struct tfc_loads *l) {
  free(l->device), free(l->load), free(l->memory), free(l->count);
  *l = (struct tfc_loads){0};
}

// Adds (sign 1) or takes away (-1) all that a net costs with its producer on `from`.
static void whole_net(struct tfc_loads *l, uint32_t net, uint32_t from, int64_t sign) {
  const struct tfc_problem *p = l->problem;
  const uint32_t tensor = p->net_tensor[net], devices = p->device_count;
  const uint32_t *count = l->count + (size_t)net * devices;
  int64_t sending = 0;
  for (uint32_t d = 0; d < devices; d++) {
    if (!count[d] || d == from) continue;
    const struct tfc_pair *pair = tfc_problem_pair(p, from, d);
    l->transfers += (uint64_t)sign, l->transfer_bytes += (uint64_t)sign * p->graph->bytes[tensor];
    if (!pair->linked) {
      l->missing += (uint64_t)sign;
      continue;
    }
    if (!pair->occupies) continue;
    int64_t time = tfc_problem_wire_time(p, tensor, pair);
    if (pair->occupies & TFC_OCCUPIES_RECEIVER) l->load[d] += sign * time;
    if ((pair->occupies & TFC_OCCUPIES_SENDER) && time > sending) sending = time;
  }
  l->load[from] += sign * sending;
}

// The longest sending among the destinations.
static int64_t sending_of(const struct tfc_loads *l, uint32_t net, uint32_t from) {
  const struct tfc_problem *p = l->problem;
  const uint32_t *count = l->count + (size_t)net * p->device_count;
  int64_t sending = 0;
  for (uint32_t d = 0; d < p->device_count; d++) {
    if (!count[d] || d == from) continue;
    const struct tfc_pair *pair = tfc_problem_pair(p, from, d);
    if (!pair->linked || !(pair->occupies & TFC_OCCUPIES_SENDER)) continue;
    int64_t time = tfc_problem_wire_time(p, p->net_tensor[net], pair);
    if (time > sending) sending = time;
  }
  return sending;
}

// A destination of a net comes (sign 1, just counted) or goes (-1, no more counted).
static void one_end(struct tfc_loads *l, uint32_t net, uint32_t from, uint32_t to, int64_t sign) {
  const struct tfc_problem *p = l->problem;
  if (from == to) return;
  const struct tfc_pair *pair = tfc_problem_pair(p, from, to);
  const uint32_t tensor = p->net_tensor[net];
  l->transfers += (uint64_t)sign, l->transfer_bytes += (uint64_t)sign * p->graph->bytes[tensor];
  if (!pair->linked) {
    l->missing += (uint64_t)sign;
    return;
  }
  if (!pair->occupies) return;
  int64_t time = tfc_problem_wire_time(p, tensor, pair);
  if (pair->occupies & TFC_OCCUPIES_RECEIVER) l->load[to] += sign * time;
  if (pair->occupies & TFC_OCCUPIES_SENDER) {
    uint32_t *count = &l->count[(size_t)net * p->device_count + to], now = *count;
    *count = 0;
    int64_t others = sending_of(l, net, from);
    *count = now;
    if (time > others) l->load[from] += sign * (time - others);
  }
}

void tfc_loads_reset(struct tfc_loads *l, const tfc_device_id *device) {
  const struct tfc_problem *p = l->problem;
  memcpy(l->device, device, sizeof *device * p->unit_count);
  memset(l->load, 0, sizeof *l->load * p->device_count);
  memset(l->memory, 0, sizeof *l->memory * p->device_count);
  memset(l->count, 0, sizeof *l->count * p->net_count * p->device_count);
  l->transfers = l->transfer_bytes = l->missing = 0;
  for (uint32_t u = 0; u < p->unit_count; u++) {
    l->load[device[u]] += tfc_problem_unit_time(p, u, device[u]);
    l->memory[device[u]] += p->unit_memory[u];
    for (uint32_t i = p->first_net[u]; i < p->first_net[u + 1]; i++) {
      for (uint32_t j = p->net_first[i]; j < p->net_first[i + 1]; j++)
        l->count[(size_t)i * p->device_count + device[p->net_unit[j]]]++;
      whole_net(l, i, device[u], 1);
    }
  }
}

void tfc_loads_move(struct tfc_loads *l, uint32_t unit, tfc_device_id to) {
  const struct tfc_problem *p = l->problem;
  const tfc_device_id from = l->device[unit];
  if (from == to) return;
  l->load[from] -= tfc_problem_unit_time(p, unit, from);
  l->load[to] += tfc_problem_unit_time(p, unit, to);
  l->memory[from] -= p->unit_memory[unit];
  l->memory[to] += p->unit_memory[unit];
  for (uint32_t i = p->first_net[unit]; i < p->first_net[unit + 1]; i++) whole_net(l, i, from, -1);
  l->device[unit] = to;
  for (uint32_t i = p->first_net[unit]; i < p->first_net[unit + 1]; i++) whole_net(l, i, to, 1);
  for (uint32_t i = p->first_need[unit]; i < p->first_need[unit + 1]; i++) {
    const uint32_t net = p->need[i];
    const uint32_t source = l->device[p->unit[p->graph->producer[p->net_tensor[net]]]];
    uint32_t *count = l->count + (size_t)net * p->device_count;
    if (--count[from] == 0) one_end(l, net, source, from, -1);
    if (++count[to] == 1) one_end(l, net, source, to, 1);
  }
}

int64_t tfc_loads_value(const struct tfc_loads *l) {
  int64_t value = 0;
  if (l->missing) return TFC_TIME_MAX;
  for (uint32_t d = 0; d < l->problem->device_count; d++)
    if (l->load[d] > value) value = l->load[d];
  return value;
}

uint64_t tfc_loads_excess(const struct tfc_loads *l) {
  uint64_t excess = 0;
  for (uint32_t d = 0; d < l->problem->device_count; d++)
    if (l->memory[d] > l->problem->limit[d]) excess += l->memory[d] - l->problem->limit[d];
  return excess;
}
