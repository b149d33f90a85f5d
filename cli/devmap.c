#include "cli/devmap.h"

#include <ctype.h>
#include <stdlib.h>

#include "runtime/base/map.h"
#include "runtime/graph/device_spec.h"

struct cli_devmap {
  struct tfc_strmap device; // node -> index of its device
  const struct tfc_placement *placement;
};

tfc_status cli_devmap_apply(struct tfc_placement *placement, const char *text) {
  tfc_status s = NULL;
  for (uint32_t i = 0; i < placement->device_count; i++) {
    struct tfc_placement_device *d = &placement->devices[i];
    if (d->tensorflow.size) continue;
    size_t colon = tfc_str_rfind(d->name, ':');
    tfc_str type = tfc_str_sub(d->name, 0, colon == SIZE_MAX ? d->name.size : colon);
    char *upper = tfc_str_dup(type);
    if (!upper) TFC_TRY(s, tfc_status_no_memory(NULL));
    for (char *c = upper; *c; c++) *c = (char)toupper((unsigned char)*c);
    tfc_str index = colon == SIZE_MAX ? TFC_STR("0") : tfc_str_sub(d->name, colon + 1, SIZE_MAX);
    d->tensorflow = tfc_arena_printf(&placement->arena, "/device:%s:%.*s", upper, TFC_STR_ARG(index));
    free(upper);
  }
  for (const char *p = text; p && *p;) {
    size_t n = strcspn(p, ",");
    tfc_str item = {p, n};
    size_t equals = tfc_str_find(item, '=');
    struct tfc_device_spec spec;
    if (equals == SIZE_MAX || equals == 0 || equals + 1 == n)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "--map: '%.*s' is not NAME=DEVICE", TFC_STR_ARG(item));
    tfc_str name = tfc_str_sub(item, 0, equals), target = tfc_str_sub(item, equals + 1, SIZE_MAX);
    s = tfc_status_annotate(tfc_device_spec_parse(target, &spec), "--map %.*s", TFC_STR_ARG(name));
    if (s) goto out;
    bool found = false;
    for (uint32_t i = 0; i < placement->device_count; i++) {
      if (!tfc_str_equal(placement->devices[i].name, name)) continue;
      placement->devices[i].tensorflow = tfc_arena_str(&placement->arena, target);
      found = true;
    }
    if (!found)
      TFC_FAIL(s, TFC_UNAVAILABLE, "--map: the placement has no device '%.*s'; its devices begin with '%.*s'",
               TFC_STR_ARG(name), TFC_STR_ARG(placement->device_count ? placement->devices[0].name : TFC_STR("none")));
    p += n + (p[n] == ',');
  }
out:
  return s;
}

tfc_status cli_devmap_check(const struct tfc_placement *placement) {
  for (uint32_t d = 0; d < placement->device_count; d++) {
    const struct tfc_placement_device *device = &placement->devices[d];
    struct tfc_device_spec spec;
    tfc_status s = tfc_device_spec_parse(device->tensorflow, &spec);
    bool used = false;
    for (uint32_t i = 0; s && i < placement->node_count && !used; i++)
      used = tfc_str_equal(placement->nodes[i].device, device->name);
    if (s && used)
      return tfc_status_annotate(s, "TensorFlow takes no device of the name '%.*s' (give it one with --map)",
                                 TFC_STR_ARG(device->name));
    tfc_status_free(s);
  }
  return NULL;
}

static bool names(const char *text, tfc_str device) {
  for (const char *p = text; *p;) {
    tfc_str item = {p, strcspn(p, ",")};
    size_t equals = tfc_str_find(item, '=');
    if (tfc_str_equal(tfc_str_sub(item, 0, equals == SIZE_MAX ? item.size : equals), device)) return true;
    p += item.size + (p[item.size] == ',');
  }
  return false;
}

tfc_str cli_devmap_unnamed(const struct tfc_placement *placement, const char *text) {
  for (uint32_t d = 0; d < placement->device_count; d++) {
    tfc_str device = placement->devices[d].name;
    if (tfc_str_is(device, "host") || names(text, device)) continue;
    for (uint32_t i = 0; i < placement->node_count; i++)
      if (tfc_str_equal(placement->nodes[i].device, device)) return device;
  }
  return (tfc_str){0};
}

tfc_status cli_devmap_create(const struct tfc_graph *graph, const struct tfc_placement *placement,
                             struct cli_devmap **out) {
  struct cli_devmap *m = calloc(1, sizeof *m);
  struct tfc_strmap devices = {0};
  tfc_status s = NULL;
  if (!m || !tfc_strmap_reserve(&m->device, placement->node_count)) TFC_TRY(s, tfc_status_no_memory(NULL));
  m->placement = placement;
  for (uint32_t i = 0; i < placement->device_count; i++)
    if (!tfc_strmap_put(&devices, placement->devices[i].name, i, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < placement->node_count; i++) {
    const struct tfc_placement_node *n = &placement->nodes[i];
    const uint64_t *device = tfc_strmap_get(&devices, n->device);
    if (!device)
      TFC_FAIL(s, TFC_UNAVAILABLE, "the placement puts '%.*s' on '%.*s', which is not among its devices",
               TFC_STR_ARG(n->name), TFC_STR_ARG(n->device));
    if (!tfc_strmap_put(&m->device, n->name, *device, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  for (uint32_t i = 0; i < graph->node_count; i++)
    if (!tfc_strmap_get(&m->device, graph->nodes[i].name))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the placement has no node '%.*s': it was made for another graph",
               TFC_STR_ARG(graph->nodes[i].name));
  for (uint32_t i = 0; i < placement->node_count; i++) {
    tfc_str name = placement->nodes[i].name;
    if (tfc_str_starts(name, "function/") && tfc_str_find(name, ':') != SIZE_MAX) {
      tfc_str rest = tfc_str_sub(name, 9, SIZE_MAX);
      size_t colon = tfc_str_find(rest, ':');
      const struct tfc_function *f = tfc_graph_function(graph, tfc_str_sub(rest, 0, colon));
      if (f && tfc_graph_find(f->body, tfc_str_sub(rest, colon + 1, SIZE_MAX)) != TFC_NONE) continue;
    }
    if (tfc_graph_find(graph, name) == TFC_NONE)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT,
               "the placement has a node '%.*s' that the graph does not have: it was made for "
               "another graph",
               TFC_STR_ARG(name));
  }
  *out = m;
  m = NULL;
out:
  cli_devmap_free(m);
  tfc_strmap_deinit(&devices);
  return s;
}

tfc_str cli_devmap_device(void *devmap, tfc_str key, tfc_str device) {
  const struct cli_devmap *m = devmap;
  (void)device;
  const uint64_t *index = tfc_strmap_get(&m->device, key);
  return index ? m->placement->devices[*index].tensorflow : (tfc_str){0};
}

void cli_devmap_free(struct cli_devmap *devmap) {
  if (!devmap) return;
  tfc_strmap_deinit(&devmap->device);
  free(devmap);
}
