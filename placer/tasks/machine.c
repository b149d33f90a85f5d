// Makes a machine of all tasks' devices. Two devices are of one kind if they are of one driver, model and size.
#include "placer/tasks/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/base/none.h"

enum { FULL_NAME = TFC_TASK_TEXT + 64 };
// Writes the name "cpu:0" of a task as "/job:worker/task:1/device:CPU:0".
static void full_name(const struct tfc_cluster_spec *spec, uint32_t rank, const char *device, char out[FULL_NAME]) {
  char task[TFC_TASK_TEXT];
  int n = snprintf(out, FULL_NAME, "%s/device:", tfc_cluster_task_name(spec, rank, task));
  for (; *device && n < FULL_NAME - 1; device++) out[n++] = (char)toupper((unsigned char)*device);
  out[n] = 0;
}

static bool is_wanted(const char *patterns, const char *name, bool *matched) {
  bool wanted = !patterns;
  uint32_t number = 0;
  for (const char *at = patterns; at && *at; number++) {
    const size_t size = strcspn(at, ",");
    if (tfc_glob_match((tfc_str){at, size}, tfc_str_from(name))) wanted = matched[number] = true;
    at += size + (at[size] == ',');
  }
  return wanted;
}

static tfc_status add_devices(const struct tfc_member *member, const struct tfc_cluster_spec *spec,
                              const char *patterns, bool *matched, struct tfc_machine *m) {
  for (uint32_t rank = 0; rank < spec->tasks.count; rank++) {
    for (uint32_t number = 0; number < tfc_member_device_count(member, rank); number++) {
      const struct tfc_device_info *device = tfc_member_device(member, rank, number);
      char name[FULL_NAME], kind[256];
      full_name(spec, rank, device->name, name);
      if (!is_wanted(patterns, name, matched)) continue;
      snprintf(kind, sizeof kind, "%.*s, %s, %u cores", (int)strcspn(device->name, ":"), device->name, device->model,
               device->cores);
      TFC_RETURN_IF_ERROR(
          tfc_machine_add_device(m, &(struct tfc_machine_device){.name = tfc_str_from(name),
                                                                 .kind = tfc_str_from(kind),
                                                                 .tensorflow = tfc_str_from(name),
                                                                 .host = tfc_str_from(tfc_member_host(member, rank)),
                                                                 .memory = TFC_NO_LIMIT,
                                                                 .label = TFC_LABEL_MEASURED}));
    }
  }
  return NULL;
}

// Adds the links. Pairs that were not timed get the slowest of the timed links.
static tfc_status add_links(const struct tfc_member *member, const struct tfc_cluster_spec *spec,
                            const struct tfc_task_link *links, uint32_t count, struct tfc_machine *m) {
  struct tfc_link l = tfc_link_default();
  struct tfc_link_point curve[TFC_TASK_LINK_SIZES];
  char from[TFC_TASK_TEXT + 8], to[TFC_TASK_TEXT + 8];
  l.curve = curve, l.curve_count = TFC_TASK_LINK_SIZES;
  for (uint32_t i = 0; i < TFC_TASK_LINK_SIZES; i++) {
    curve[i] = (struct tfc_link_point){count ? links[0].point[i].bytes : 4.0 * i, 0};
    for (uint32_t k = 0; k < count; k++)
      if (links[k].point[i].time_us > curve[i].time_us) curve[i].time_us = links[k].point[i].time_us;
  }
  for (uint32_t k = 0; k < count; k++)
    if (links[k].wake_us > l.wake_us) l.wake_us = links[k].wake_us;
  TFC_RETURN_IF_ERROR(tfc_machine_add_link(m, &l));
  for (uint32_t k = 0; k < count; k++)
    for (int way = 0; way < 2; way++) {
      const uint32_t a = way ? links[k].b : links[k].a, b = way ? links[k].a : links[k].b;
      char task[TFC_TASK_TEXT];
      snprintf(from, sizeof from, "%s/*", tfc_cluster_task_name(spec, a, task));
      snprintf(to, sizeof to, "%s/*", tfc_cluster_task_name(spec, b, task));
      l.from = tfc_str_from(from), l.to = tfc_str_from(to);
      // All transfers from a host to other hosts share its network.
      const bool away = strcmp(tfc_member_host(member, a), tfc_member_host(member, b)) != 0;
      l.wake_us = links[k].wake_us;
      l.wire = away ? TFC_STR("network of {host}") : (tfc_str){0};
      for (uint32_t i = 0; i < TFC_TASK_LINK_SIZES; i++)
        curve[i] = (struct tfc_link_point){links[k].point[i].bytes, links[k].point[i].time_us};
      TFC_RETURN_IF_ERROR(tfc_machine_add_link(m, &l));
    }
  // Devices of one task share memory, so nothing is copied. The only cost is the reader's: it loads the tensor into its
  // cache.
  for (uint32_t rank = 0; rank < spec->tasks.count; rank++) {
    struct tfc_link own = tfc_link_default();
    char task[TFC_TASK_TEXT];
    snprintf(from, sizeof from, "%s/*", tfc_cluster_task_name(spec, rank, task));
    own.from = own.to = tfc_str_from(from);
    own.latency_us = 1, own.bandwidth = 1e10, own.wire = TFC_STR("none"), own.occupies = TFC_OCCUPIES_RECEIVER;
    TFC_RETURN_IF_ERROR(tfc_machine_add_link(m, &own));
  }
  return NULL;
}

tfc_status tfc_task_machine(const struct tfc_member *member, const struct tfc_cluster_spec *spec, const char *patterns,
                            const struct tfc_task_link *links, uint32_t link_count, struct tfc_machine **out) {
  tfc_status s = NULL;
  struct tfc_machine *m = NULL;
  uint32_t number = 0;
  bool *matched = calloc(patterns ? strlen(patterns) + 1 : 1, sizeof *matched);
  if (!matched) return tfc_status_no_memory("the devices of all tasks");
  TFC_TRY(s, tfc_machine_create(&m));
  TFC_TRY(s, add_devices(member, spec, patterns, matched, m));
  for (const char *at = patterns; at && *at; number++) {
    const size_t size = strcspn(at, ",");
    if (!matched[number]) TFC_FAIL(s, TFC_UNAVAILABLE, "no device of the tasks is called '%.*s'", (int)size, at);
    at += size + (at[size] == ',');
  }
  TFC_TRY(s, add_links(member, spec, links, link_count, m));
  *out = m, m = NULL;
out:
  tfc_machine_free(m);
  free(matched);
  return s;
}

tfc_status tfc_task_devices(const struct tfc_member *member, const struct tfc_cluster_spec *spec,
                            const struct tfc_machine *machine, struct tfc_task_device *out) {
  for (uint32_t d = 0; d < machine->device_count; d++) out[d] = (struct tfc_task_device){TFC_NONE, 0};
  for (uint32_t rank = 0; rank < spec->tasks.count; rank++) {
    for (uint32_t number = 0; number < tfc_member_device_count(member, rank); number++) {
      char name[FULL_NAME];
      full_name(spec, rank, tfc_member_device(member, rank, number)->name, name);
      const uint32_t d = tfc_machine_find(machine, tfc_str_from(name));
      if (d != TFC_NONE) out[d] = (struct tfc_task_device){rank, number};
    }
  }
  for (uint32_t d = 0; d < machine->device_count; d++)
    if (out[d].rank == TFC_NONE)
      return tfc_status_make(TFC_INTERNAL, "no task has the device %.*s", TFC_STR_ARG(machine->devices[d].name));
  return NULL;
}
