#include "placer/tasks/profile.h"

#include <math.h>
#include <stdlib.h>

#include "placer/measure/local_machine.h"
#include "profiler/cost_table.h"

enum { STEPS = 5 };

struct profiling {
  struct tfc_cost_table *table; // a "kind" is a device
  uint32_t *self;               // [device]
  uint32_t devices;
  char *trouble;
};

static tfc_status measured(void *user, const struct tfc_measured *m) {
  struct profiling *p = user;
  if (m->state != TFC_RESULT_OK && !p->trouble && m->message) p->trouble = tfc_str_dup(tfc_str_from(m->message));
  for (uint32_t i = 0; i < m->profile_count; i++)
    TFC_RETURN_IF_ERROR(tfc_cost_table_add(p->table, &m->profiles[i], p->self, p->devices, NULL, NULL));
  return NULL;
}

tfc_status tfc_task_profile(const struct tfc_measure_options *options, uint32_t devices, uint32_t node_count,
                            double end_s, double *out_us) {
  tfc_status s = NULL;
  struct profiling p = {.devices = devices};
  struct tfc_measurer *measurer = NULL;
  struct tfc_measure_entry *entry = calloc(devices + 1u, sizeof *entry);
  uint16_t *placement = calloc((size_t)devices * node_count + 1, sizeof *placement);
  p.self = calloc(devices + 1u, sizeof *p.self);
  if (!entry || !placement || !p.self) TFC_TRY(s, tfc_status_no_memory("profiling a task"));
  TFC_TRY(s, tfc_cost_table_create(node_count, devices, &p.table));
  TFC_TRY(s, tfc_measurer_create(options, &measurer));
  const struct tfc_measure_info *info = tfc_measurer_info(measurer);
  if (info->device_count != devices || info->node_count != node_count)
    TFC_FAIL(s, TFC_INTERNAL, "the measuring worker has %u devices and %u nodes instead of %u and %u",
             info->device_count, info->node_count, devices, node_count);
  for (uint32_t d = 0; d < devices; d++) {
    p.self[d] = d;
    const bool *supported = info->supported + (size_t)tfc_kind_of_device(info, d) * node_count;
    for (uint32_t i = 0; i < node_count; i++) placement[(size_t)d * node_count + i] = supported[i] ? (uint16_t)d : 0;
    entry[d] = (struct tfc_measure_entry){.plain = true, .placement = placement + (size_t)d * node_count};
  }
  const struct tfc_measure_batch batch = {.entries = entry,
                                          .count = devices,
                                          .reference = TFC_NONE,
                                          .warmup = 1,
                                          .block = STEPS,
                                          .blocks = 1,
                                          .best_us = (double)NAN,
                                          .ignore_limits = true,
                                          .again = true,
                                          .deadline_s = end_s};
  TFC_TRY(s, tfc_measurer_run(measurer, &batch, measured, &p));
  bool any = false;
  for (uint32_t d = 0; d < devices; d++)
    for (uint32_t i = 0; i < node_count; i++) {
      const struct tfc_cost cost = tfc_cost_table_get(p.table, i, d);
      out_us[(size_t)d * node_count + i] = cost.samples ? cost.median_us : (double)NAN;
      any |= cost.samples > 0;
    }
  if (!any) TFC_FAIL(s, TFC_ABORTED, "the step could not be profiled: %s", p.trouble ? p.trouble : "nothing was timed");
out:
  tfc_measurer_free(measurer);
  tfc_cost_table_free(p.table);
  free(p.trouble), free(p.self), free(entry), free(placement);
  return s;
}
