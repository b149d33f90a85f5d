#include "libtfc/profile.h"

#include <stdlib.h>
#include <string.h>

#include "profiler/collector.h"
#include "profiler/collector_gpu.h"
#include "runtime/base/arena.h"

struct tfc_profile {
  struct tfc_arena arena; // owns the events and their names, because the model may be closed before the profile
  tfc_profile_event *events;
  size_t count;
};

static const char *keep(struct tfc_arena *arena, tfc_str text) {
  char *copy = TFC_ARENA_ARRAY(arena, char, text.size + 1);
  if (!copy) return NULL;
  memcpy(copy, text.data, text.size);
  copy[text.size] = 0;
  return copy;
}

static int by_start(const void *a, const void *b) {
  double x = ((const tfc_profile_event *)a)->start_us, y = ((const tfc_profile_event *)b)->start_us;
  return (x > y) - (x < y);
}

static const char *device_name(struct tfc_model *m, struct tfc_arena *arena, uint32_t device) {
  return keep(arena, device < m->devices.count ? tfc_str_from(m->devices.devices[device]->info.name) : TFC_STR("host"));
}

static tfc_status describe(struct tfc_model *m, const struct tfc_plan_info *info, const struct tfc_step_profile *from,
                           struct tfc_profile *out) {
  const struct tfc_graph *g = m->graph;
  out->events = TFC_ARENA_ARRAY(&out->arena, tfc_profile_event, from->ops.count + from->transfers.count + 1);
  if (!out->events) return tfc_status_no_memory("keeping a profile");
  for (size_t i = 0; i < from->ops.count; i++) {
    const struct tfc_profile_op *o = &from->ops.data[i];
    out->events[out->count++] = (tfc_profile_event){.node = keep(&out->arena, g->nodes[o->node].name),
                                                    .op = keep(&out->arena, g->nodes[o->node].op),
                                                    .device = device_name(m, &out->arena, o->device),
                                                    .start_us = 1e-3 * (double)o->start_ns,
                                                    .duration_us = 1e-3 * (double)o->duration_ns};
  }
  for (size_t i = 0; i < from->transfers.count; i++) {
    const struct tfc_profile_transfer *t = &from->transfers.data[i];
    // steps that run in the order of readiness make transfers that are not in the plan
    if (t->id >= info->transfer_count) continue;
    const struct tfc_plan_transfer *p = &info->transfers[t->id];
    out->events[out->count++] = (tfc_profile_event){.node = keep(&out->arena, g->nodes[p->tensor.node].name),
                                                    .op = "transfer",
                                                    .device = device_name(m, &out->arena, p->source),
                                                    .to_device = device_name(m, &out->arena, p->target),
                                                    .start_us = 1e-3 * (double)t->start_ns,
                                                    .duration_us = 1e-3 * (double)t->duration_ns,
                                                    .bytes = t->bytes};
  }
  for (size_t i = 0; i < out->count; i++)
    if (!out->events[i].node || !out->events[i].op || !out->events[i].device)
      return tfc_status_no_memory("keeping a profile");
  qsort(out->events, out->count, sizeof *out->events, by_start);
  return NULL;
}

tfc_status tfc_profile_run(struct tfc_model *m, struct tfc_plan *plan, const struct tfc_tensor *feeds,
                           struct tfc_tensor *fetches, tfc_profile **out) {
  tfc_status s = NULL;
  struct tfc_collector *collector = NULL;
  struct tfc_step_profile step = {0};
  struct tfc_profile *profile = calloc(1, sizeof *profile);
  const struct tfc_plan_info *info = tfc_plan_info(plan);
  const struct tfc_collector_names names = {m->graph, info};
  bool ran = false;
  if (!profile) TFC_TRY(s, tfc_status_no_memory(NULL));
  // A loop may run its nodes any number of times. There is room for 16 records of each node. More records are an error,
  // because the step has run and cannot be repeated.
  TFC_TRY(s, tfc_collector_create(m->devices.count, 4096 + 16 * (size_t)m->graph->node_count, &collector));
  TFC_TRY(s, tfc_collector_watch(collector, &m->devices));
  tfc_collector_reset(collector);
  TFC_TRY(s, tfc_plan_run(plan, feeds, fetches, &(struct tfc_run_options){.trace = tfc_collector_sink(collector)}));
  ran = true;
  TFC_TRY(s, tfc_collector_drain(collector, &names, NULL, &step));
  TFC_TRY(s, describe(m, info, &step, profile));
  *out = profile, profile = NULL;
out:
  if (s && ran) s = tfc_status_annotate(s, "the step ran, but its profile cannot be used");
  tfc_step_profile_deinit(&step);
  tfc_collector_free(collector);
  tfc_profile_free(profile);
  return s;
}

size_t tfc_profile_count(const tfc_profile *profile) {
  return profile ? profile->count : 0;
}

const tfc_profile_event *tfc_profile_events(const tfc_profile *profile) {
  return profile ? profile->events : NULL;
}

void tfc_profile_free(tfc_profile *profile) {
  if (!profile) return;
  tfc_arena_deinit(&profile->arena);
  free(profile);
}
