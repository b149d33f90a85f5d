#include "placer/measure/local_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double least_seen_us = 2000; // a slow-down is not computed from sums smaller than this

uint32_t tfc_kind_of_device(const struct tfc_measure_info *info, uint32_t device) {
  uint32_t kind = 0;
  for (uint32_t d = 0; d < info->device_count; d++) {
    bool seen = false;
    for (uint32_t e = 0; e < d; e++) seen |= strcmp(info->devices[e].kind, info->devices[d].kind) == 0;
    if (strcmp(info->devices[d].kind, info->devices[device].kind) == 0) return kind;
    kind += !seen;
  }
  return kind;
}

tfc_status tfc_calibration_init(struct tfc_calibration *c, const struct tfc_measure_info *info) {
  struct tfc_calibration made = {.device_count = info->device_count};
  for (uint32_t d = 0; d < info->device_count; d++) {
    uint32_t k = tfc_kind_of_device(info, d);
    if (k >= made.kind_count) made.kind_count = k + 1;
  }
  made.kinds = calloc(made.kind_count + 1u, sizeof *made.kinds);
  bool whole = made.kinds != NULL;
  for (uint32_t k = 0; whole && k < made.kind_count; k++) {
    made.kinds[k].measured_us = calloc(info->device_count + 1u, sizeof(double));
    made.kinds[k].alone_us = calloc(info->device_count + 1u, sizeof(double));
    whole = made.kinds[k].measured_us && made.kinds[k].alone_us;
  }
  for (uint32_t d = 0; whole && d < info->device_count; d++)
    if (strcmp(info->devices[d].label, "oversubscribed") == 0)
      made.kinds[tfc_kind_of_device(info, d)].cores = info->whole.cores;
  *c = made;
  if (whole) return NULL;
  tfc_calibration_deinit(c);
  return tfc_status_no_memory(NULL);
}

void tfc_calibration_deinit(struct tfc_calibration *c) {
  for (uint32_t k = 0; c->kinds && k < c->kind_count; k++) {
    free(c->kinds[k].measured_us);
    free(c->kinds[k].alone_us);
  }
  free(c->kinds);
  free(c->links);
  *c = (struct tfc_calibration){0};
}

void tfc_calibration_slowdown(const struct tfc_calibration *c, uint32_t kind, double *out) {
  const struct tfc_kind_calibration *k = &c->kinds[kind];
  double last = 1;
  for (uint32_t n = 1; n <= c->device_count; n++) {
    double factor = n > 1 && k->alone_us[n] >= least_seen_us ? k->measured_us[n] / k->alone_us[n] : last;
    if (n > 1 && k->alone_us[n] < least_seen_us) { // too few samples: interpolates between its neighbours
      for (uint32_t m = n + 1; m <= c->device_count; m++)
        if (k->alone_us[m] >= least_seen_us) {
          factor = last + (k->measured_us[m] / k->alone_us[m] - last) / (double)(m - n + 1);
          break;
        }
    }
    if (k->cores && n > k->cores) factor = fmax(factor, (double)n / k->cores);
    last = out[n - 1] = fmax(last, factor);
  }
}

static int by_bytes(const void *a, const void *b) {
  const struct tfc_link_time *x = a, *y = b;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

// Collects the link times of a pair, or of another pair with the same kinds which, like this one, shares memory or does
// not.
static uint32_t times_of_pair(const struct tfc_measure_info *info, const struct tfc_calibration *c, uint32_t a,
                              uint32_t b, struct tfc_link_time *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < c->link_count; i++) {
    const struct tfc_link_time *t = &c->links[i];
    const struct tfc_device_info *p = &info->devices[t->source], *q = &info->devices[t->target];
    const struct tfc_device_info *x = &info->devices[a], *y = &info->devices[b];
    if (strcmp(p->kind, x->kind) == 0 && strcmp(q->kind, y->kind) == 0 &&
        (p->address_space == q->address_space) == (x->address_space == y->address_space))
      out[count++] = *t;
  }
  qsort(out, count, sizeof *out, by_bytes);
  return count;
}

// Whether all pairs of devices are alike, so that one link row describes all of them.
static bool all_alike(const struct tfc_measure_info *info) {
  for (uint32_t d = 1; d < info->device_count; d++)
    if (strcmp(info->devices[d].kind, info->devices[0].kind) != 0 ||
        info->devices[d].address_space != info->devices[0].address_space)
      return false;
  return true;
}

static tfc_status add_link(struct tfc_machine *m, const struct tfc_measure_info *info, const struct tfc_calibration *c,
                           uint32_t a, uint32_t b, struct tfc_link_time *times, struct tfc_link_point *curve) {
  struct tfc_link link = tfc_link_default();
  if (!all_alike(info)) link.from = m->devices[a].name, link.to = m->devices[b].name;
  uint32_t count = c ? times_of_pair(info, c, a, b, times) : 0;
  // A buffer that is handed over uses no wire: the device that reads it fetches the data, and does nothing else at that
  // time.
  if (info->devices[a].address_space == info->devices[b].address_space) {
    link.wire = TFC_STR("none");
    link.occupies = TFC_OCCUPIES_RECEIVER;
  }
  if (count) {
    link.latency_us = times[0].time_us;
    for (uint32_t i = 0; i < count; i++) {
      double more = fmax(0, times[i].time_us - link.latency_us);
      curve[i] = (struct tfc_link_point){(double)times[i].bytes, i ? fmax(curve[i - 1].time_us, more) : 0};
    }
    link.curve = curve, link.curve_count = count;
  }
  return tfc_machine_add_link(m, &link);
}

tfc_status tfc_local_machine(const struct tfc_measure_info *info, const struct tfc_calibration *c,
                             const struct tfc_memory_limit *limits, uint32_t limit_count, struct tfc_machine **out) {
  tfc_status s = NULL;
  struct tfc_machine *m = NULL;
  uint32_t points = c ? c->link_count : 0;
  double *slowdown = calloc(info->device_count + 1u, sizeof *slowdown);
  struct tfc_link_time *times = calloc(points + 1u, sizeof *times);
  struct tfc_link_point *curve = calloc(points + 1u, sizeof *curve);
  if (!slowdown || !times || !curve) TFC_TRY(s, tfc_status_no_memory(NULL));
  TFC_TRY(s, tfc_machine_create(&m));
  for (uint32_t d = 0; d < info->device_count; d++) {
    const struct tfc_device_info *i = &info->devices[d];
    struct tfc_machine_device device = {.name = tfc_str_from(i->name),
                                        .kind = tfc_str_from(i->kind),
                                        .tensorflow = tfc_str_from(i->tensorflow),
                                        .memory = i->memory,
                                        .label = TFC_LABEL_MEASURED};
    for (int l = TFC_LABEL_MEASURED; l <= TFC_LABEL_MODELLED; l++)
      if (strcmp(i->label, tfc_label_name((tfc_label)l)) == 0) device.label = (tfc_label)l;
    if (c) {
      uint32_t kind = tfc_kind_of_device(info, d);
      tfc_calibration_slowdown(c, kind, slowdown);
      device.dispatch_us = c->kinds[kind].dispatch_us;
      device.slowdown = slowdown, device.slowdown_count = c->device_count;
    }
    TFC_TRY(s, tfc_machine_add_device(m, &device));
  }
  for (uint32_t a = 0; a < info->device_count; a++)
    for (uint32_t b = 0; b < info->device_count; b++)
      if (a != b && (!all_alike(info) || (a == 0 && b == 1))) TFC_TRY(s, add_link(m, info, c, a, b, times, curve));
  for (uint32_t i = 0; i < limit_count; i++)
    TFC_TRY(s, tfc_machine_limit(m, tfc_str_from(limits[i].pattern), limits[i].bytes));
  *out = m, m = NULL;
out:
  tfc_machine_free(m);
  free(slowdown);
  free(times);
  free(curve);
  return s;
}
