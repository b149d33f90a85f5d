#include "placer/replicas/hardware.h"

#include <math.h>

static tfc_str kind_of(const struct tfc_problem *p, uint32_t device) {
  return p->machine->devices[device].kind;
}

// Finds the latency and bandwidth of a pair's link. For a link that is given as a curve of times
// (placer/model/machine.h), they are the time for 1 byte, and the bandwidth with which all parameters pass, one after
// another; with no parameters, the mean bandwidth between 1 byte and 1 GiB.
static tfc_status link_of(const struct tfc_problem *p, uint32_t from, uint32_t to, const struct tfc_workload *w,
                          struct tfc_hardware_link *out) {
  *out = (struct tfc_hardware_link){.bandwidth = (double)INFINITY};
  if (from == to) return NULL;
  const struct tfc_pair *pair = tfc_problem_pair(p, from, to);
  if (!pair->linked)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "replicas need a link from '%.*s' to '%.*s'",
                           TFC_STR_ARG(p->machine->devices[from].name), TFC_STR_ARG(p->machine->devices[to].name));
  const double first = 1e-6 * (double)tfc_problem_wire_time_of(pair, 1);
  double bytes = 0, us = 0;
  for (uint32_t i = 0; i < w->parameter_count; i++) {
    bytes += w->parameter[i] - 1;
    us += 1e-6 * (double)tfc_problem_wire_time_of(pair, (uint64_t)w->parameter[i]) - first;
  }
  if (!(us > 0)) {
    bytes = 0x1p30 - 1;
    us = 1e-6 * (double)tfc_problem_wire_time_of(pair, UINT64_C(1) << 30) - first;
  }
  out->latency_us = first;
  out->occupies = pair->occupies == TFC_OCCUPIES_BOTH;
  out->wake_us = pair->link->wake_us;
  if (us > 0) out->bandwidth = 1e6 * bytes / us;
  return NULL;
}

tfc_status tfc_hardware_of(const struct tfc_problem *p, uint32_t device, const struct tfc_workload *w,
                           struct tfc_hardware *out) {
  struct tfc_hardware h = {.device = device, .server = device, .kind = kind_of(p, device), .hosts = p->host_count};
  uint32_t beside = device, away = TFC_NONE;
  for (uint32_t d = 0; d < p->device_count; d++) {
    const bool alike = tfc_str_equal(kind_of(p, d), h.kind), here = p->host[d] == p->host[device];
    if (here && h.server == device && tfc_str_is(kind_of(p, d), "cpu")) h.server = d;
    if (here && alike) h.per_host++;
    if (here && alike && d != device && beside == device) beside = d;
    if (!here && alike && away == TFC_NONE) away = d;
  }
  h.slowdown = p->machine->devices[device].slowdown, h.slowdown_count = p->machine->devices[device].slowdown_count;
  h.serve_us = p->machine->devices[h.server].dispatch_us;
  TFC_RETURN_IF_ERROR(link_of(p, h.server, device, w, &h.to_server));
  TFC_RETURN_IF_ERROR(link_of(p, device, beside, w, &h.beside));
  TFC_RETURN_IF_ERROR(link_of(p, device, away == TFC_NONE ? device : away, w, &h.network));
  if (away == TFC_NONE) h.hosts = 1; // the other hosts have no such device, so they do not count
  *out = h;
  return NULL;
}

tfc_status tfc_hardware_fastest(const struct tfc_problem *p, uint32_t *out_device) {
  double best = (double)INFINITY;
  tfc_status why = NULL;
  *out_device = TFC_NONE;
  for (uint32_t d = 0; d < p->device_count; d++) {
    struct tfc_workload w = {0};
    bool tried = false;
    for (uint32_t e = 0; e < d && !tried; e++) tried = tfc_str_equal(kind_of(p, e), kind_of(p, d));
    if (tried) continue;
    tfc_status s = tfc_workload_make(p, d, &w);
    if (s && tfc_status_code(s) != TFC_INVALID_ARGUMENT) {
      tfc_status_free(why);
      return s;
    }
    if (!s && w.step_us < best) best = w.step_us, *out_device = d;
    if (s && !why)
      why = s;
    else
      tfc_status_free(s);
    tfc_workload_deinit(&w);
  }
  if (*out_device == TFC_NONE) return why;
  tfc_status_free(why);
  return NULL;
}

tfc_status tfc_hardware_hosts(const struct tfc_hardware *h, uint32_t replicas, uint32_t *out) {
  const uint32_t needed = (replicas + h->per_host - 1) / h->per_host;
  if (needed > h->hosts && h->hosts == 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT,
                           "%u replicas need %u devices of kind %.*s, and the machine is one host with %u: describe "
                           "hosts (host: and hosts: of devices, hosts: of links), as configs/16x8xh100.yaml does",
                           replicas, replicas, TFC_STR_ARG(h->kind), h->per_host);
  *out = needed;
  return NULL;
}
