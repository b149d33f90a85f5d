#include "placer/model/machine.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/none.h"
#include "runtime/base/units.h"

const char *tfc_label_name(tfc_label label) {
  static const char *const names[] = {
#define TFC_LABEL_NAME(name, text) text,
      TFC_LABELS(TFC_LABEL_NAME)
#undef TFC_LABEL_NAME
  };
  return names[label];
}

// Each piece of the pattern between two stars is matched at its first occurrence in the text. No other place is tried
// for it, so the time is in proportion to the sum of the two lengths.
bool tfc_glob_match(tfc_str pattern, tfc_str text) {
  size_t star = tfc_str_find(pattern, '*');
  if (star == SIZE_MAX) return tfc_str_equal(pattern, text);
  if (text.size < star || (star && memcmp(pattern.data, text.data, star) != 0)) return false;
  text = tfc_str_sub(text, star, SIZE_MAX);
  while (true) {
    pattern = tfc_str_sub(pattern, star + 1, SIZE_MAX);
    star = tfc_str_find(pattern, '*');
    if (star == SIZE_MAX) // the rest is at the end
      return text.size >= pattern.size &&
             (!pattern.size || memcmp(text.data + text.size - pattern.size, pattern.data, pattern.size) == 0);
    if (!star) continue;
    const char *found = text.size < star ? NULL : memmem(text.data, text.size, pattern.data, star);
    if (!found) return false;
    text = tfc_str_sub(text, (size_t)(found - text.data) + star, SIZE_MAX);
  }
}

tfc_status tfc_machine_create(struct tfc_machine **out) {
  struct tfc_machine *m = calloc(1, sizeof *m);
  if (!m) return tfc_status_no_memory("a machine");
  *out = m;
  return NULL;
}

void tfc_machine_free(struct tfc_machine *m) {
  if (!m) return;
  tfc_arena_deinit(&m->arena);
  free(m->devices);
  free(m->links);
  free(m);
}

static bool copy_str(struct tfc_machine *m, tfc_str *text) {
  if (!text->data) return true;
  *text = tfc_arena_str(&m->arena, *text);
  return text->data != NULL;
}

// Makes room for one item more than there are.
static bool make_room(void **items, size_t *room, uint32_t count, size_t size) {
  return count < *room || tfc_array_grow(items, room, count + 1u, size);
}

static tfc_status check_device(const struct tfc_machine_device *d) {
  if (!d->name.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "a device has no name");
  if (!d->kind.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s' has no kind", TFC_STR_ARG(d->name));
  if (!isfinite(d->dispatch_us) || d->dispatch_us < 0 || d->dispatch_us > 1e12)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': dispatch is not a time", TFC_STR_ARG(d->name));
  if (!isfinite(d->flops) || d->flops < 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': flops is not a rate", TFC_STR_ARG(d->name));
  if (!isfinite(d->memory_bandwidth) || d->memory_bandwidth < 0)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': memory_bandwidth is not a bandwidth",
                           TFC_STR_ARG(d->name));
  for (uint32_t i = 0; i < d->slowdown_count; i++)
    if (!(d->slowdown[i] > 0 && d->slowdown[i] <= 1e6))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': slowdown %g is not a factor above 0",
                             TFC_STR_ARG(d->name), d->slowdown[i]);
  return NULL;
}

tfc_status tfc_machine_add_device(struct tfc_machine *m, const struct tfc_machine_device *device) {
  struct tfc_machine_device d = *device;
  TFC_RETURN_IF_ERROR(check_device(&d));
  for (uint32_t i = 0; i < m->device_count; i++)
    if (tfc_str_equal(m->devices[i].name, d.name))
      return tfc_status_make(TFC_INVALID_ARGUMENT, "two devices have the name '%.*s'", TFC_STR_ARG(d.name));
  if (m->device_count >= TFC_MAX_DEVICES)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "device '%.*s': more than %u devices", TFC_STR_ARG(d.name),
                           TFC_MAX_DEVICES);
  double *slowdown = TFC_ARENA_ARRAY(&m->arena, double, (size_t)d.slowdown_count + 1);
  if (!make_room((void **)&m->devices, &m->device_room, m->device_count, sizeof *m->devices) || !slowdown ||
      !copy_str(m, &d.name) || !copy_str(m, &d.kind) || !copy_str(m, &d.tensorflow) || !copy_str(m, &d.host))
    return tfc_status_no_memory("a machine");
  for (uint32_t i = 0; i < d.slowdown_count; i++) slowdown[i] = d.slowdown[i];
  d.slowdown = slowdown;
  m->devices[m->device_count++] = d;
  return NULL;
}

static tfc_status check_link(const struct tfc_link *l) {
  const char *wrong = NULL;
  if (!l->from.size || !l->to.size) wrong = "needs \"from\" and \"to\"";
  if (!isfinite(l->latency_us) || l->latency_us < 0 || l->latency_us > 1e12) wrong = "latency is not a time";
  if (!(l->wake_us >= 0 && l->wake_us <= 1e12)) wrong = "wake is not a time";
  if (!(l->bandwidth > 0)) wrong = "bandwidth is not above 0";
  for (uint32_t i = 0; i < l->curve_count; i++) {
    const struct tfc_link_point *p = &l->curve[i];
    if (!(p->bytes >= 0 && p->bytes < 0x1p62) || !(p->time_us >= 0 && p->time_us <= 1e12))
      wrong = "a point of the curve is not [bytes, time]";
    else if (i && !(p->bytes > p[-1].bytes))
      wrong = "the points of the curve do not ascend by bytes";
  }
  if (!wrong) return NULL;
  return tfc_status_make(TFC_INVALID_ARGUMENT, "link from '%.*s' to '%.*s': %s", TFC_STR_ARG(l->from),
                         TFC_STR_ARG(l->to), wrong);
}

tfc_status tfc_machine_add_link(struct tfc_machine *m, const struct tfc_link *link) {
  struct tfc_link l = *link;
  TFC_RETURN_IF_ERROR(check_link(&l));
  struct tfc_link_point *curve = TFC_ARENA_ARRAY(&m->arena, struct tfc_link_point, (size_t)l.curve_count + 1);
  if (!make_room((void **)&m->links, &m->link_room, m->link_count, sizeof *m->links) || !curve ||
      !copy_str(m, &l.from) || !copy_str(m, &l.to) || !copy_str(m, &l.wire))
    return tfc_status_no_memory("a machine");
  for (uint32_t i = 0; i < l.curve_count; i++) curve[i] = l.curve[i];
  l.curve = curve;
  m->links[m->link_count++] = l;
  return NULL;
}

uint32_t tfc_machine_find(const struct tfc_machine *m, tfc_str name) {
  for (uint32_t i = 0; i < m->device_count; i++)
    if (tfc_str_equal(m->devices[i].name, name)) return i;
  for (uint32_t i = 0; i < m->device_count; i++)
    if (m->devices[i].tensorflow.data && tfc_str_equal(m->devices[i].tensorflow, name)) return i;
  return TFC_NONE;
}

static bool same_host(const struct tfc_machine *m, uint32_t a, uint32_t b) {
  return tfc_str_equal(m->devices[a].host, m->devices[b].host);
}

uint32_t tfc_machine_hosts(const struct tfc_machine *m, uint32_t *out_host) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < m->device_count; i++) {
    out_host[i] = count;
    for (uint32_t j = 0; j < i && out_host[i] == count; j++)
      if (same_host(m, i, j)) out_host[i] = out_host[j];
    count += out_host[i] == count;
  }
  return count;
}

static void keep_marked(struct tfc_machine *m, const bool *marked) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < m->device_count; i++)
    if (marked[i]) m->devices[kept++] = m->devices[i];
  m->device_count = kept;
}

tfc_status tfc_machine_select_kind(struct tfc_machine *m, tfc_str kind, uint32_t count) {
  bool marked[TFC_MAX_DEVICES] = {0};
  uint32_t found = 0;
  for (uint32_t i = 0; i < m->device_count && found < count; i++)
    if (tfc_str_equal(m->devices[i].kind, kind)) marked[i] = true, found++;
  if (found < count)
    return tfc_status_make(TFC_UNAVAILABLE, "%u devices of kind '%.*s' were asked for, the machine has %u", count,
                           TFC_STR_ARG(kind), found);
  keep_marked(m, marked);
  return NULL;
}

static tfc_status mark_item(const struct tfc_machine *m, const struct tfc_device_item *item, bool *marked) {
  char *name = item->index < 0 ? tfc_str_dup(item->name)
                               : tfc_format("%.*s:%lld", TFC_STR_ARG(item->name), (long long)item->index);
  if (!name) return tfc_status_no_memory("a list of devices");
  const uint32_t device = tfc_machine_find(m, tfc_str_from(name));
  tfc_status s =
      device == TFC_NONE ? tfc_status_make(TFC_UNAVAILABLE, "device '%s' is not in the machine", name) : NULL;
  if (!s) marked[device] = true;
  free(name);
  return s;
}

static tfc_status select_any_kind(struct tfc_machine *m, uint32_t count) {
  for (uint32_t i = 0; i < m->device_count; i++) {
    uint32_t alike = 0;
    for (uint32_t j = 0; j < m->device_count; j++) alike += tfc_str_equal(m->devices[i].kind, m->devices[j].kind);
    if (alike >= count) return tfc_machine_select_kind(m, m->devices[i].kind, count);
  }
  return tfc_status_make(TFC_UNAVAILABLE, "the machine has no kind with %u devices", count);
}

tfc_status tfc_machine_select(struct tfc_machine *m, tfc_str text) {
  tfc_status s = NULL;
  bool marked[TFC_MAX_DEVICES] = {0};
  struct tfc_device_list list = {0};
  char *copy = tfc_str_dup(text);
  if (!copy) TFC_TRY(s, tfc_status_no_memory("a list of devices"));
  TFC_TRY(s, tfc_device_list_parse(copy, true, &list));
  if (list.count) TFC_TRY(s, select_any_kind(m, list.count));
  for (size_t i = 0; i < list.items.count; i++) TFC_TRY(s, mark_item(m, &list.items.data[i], marked));
  if (!list.count) keep_marked(m, marked);
out:
  tfc_device_list_deinit(&list);
  free(copy);
  return s;
}

tfc_status tfc_machine_limit(struct tfc_machine *m, tfc_str pattern, uint64_t bytes) {
  bool any = false;
  for (uint32_t i = 0; i < m->device_count; i++)
    if (tfc_glob_match(pattern, m->devices[i].name)) m->devices[i].memory = bytes, any = true;
  if (!any) return tfc_status_make(TFC_UNAVAILABLE, "no device matches '%.*s'", TFC_STR_ARG(pattern));
  return NULL;
}
