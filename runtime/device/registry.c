// Which drivers exist, and what "--devices" means. The drivers of the table are built in; the CUDA plug-in is loaded
// when a GPU is requested.
#include <dlfcn.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/base/no_memory.h"
#include "runtime/base/units.h"
#include "runtime/device/cpu/topology.h"
#include "runtime/device/driver.h"
#include "runtime/device/list.h"
#include "runtime/device/list_kinds.h"
#include "runtime/device/plain/plain.h"

// The kinds of the CUDA plug-in, which all run operations on their own.
static const struct {
  const char *kind, *symbol;
} in_plugin[] = {{"gpu", "tfc_driver_gpu"}, {"vgpu", "tfc_driver_vgpu"}};

static const struct tfc_device_driver *const built_in[] = {&tfc_driver_cpu, &tfc_driver_emulated, &tfc_driver_plain};

// The plug-in is in the folder of this library, or where the loader finds it.
static tfc_status load_plugin(const char *symbol, const struct tfc_device_driver **out) {
  char *beside = NULL;
  Dl_info where;
  if (dladdr((const void *)&tfc_driver_cpu, &where) && where.dli_fname) {
    const char *slash = strrchr(where.dli_fname, '/');
    if (slash) beside = tfc_format("%.*s/libtfc_cuda.so", (int)(slash - where.dli_fname), where.dli_fname);
  }
  void *library = beside ? dlopen(beside, RTLD_NOW) : NULL;
  free(beside);
  if (!library) library = dlopen("libtfc_cuda.so", RTLD_NOW);
  if (!library)
    return tfc_status_make(TFC_UNAVAILABLE, "no GPU: this build has no CUDA plug-in, or it cannot be loaded: %s",
                           dlerror());
  const struct tfc_device_driver *driver = dlsym(library, symbol);
  if (!driver) return tfc_status_make(TFC_UNAVAILABLE, "the GPU plug-in has no %s", symbol);
  *out = driver;
  return NULL;
}

enum { ADDED = 8 };
static const struct tfc_device_driver *added[ADDED];

void tfc_driver_add(const struct tfc_device_driver *driver) {
  for (int i = 0; i < ADDED; i++)
    if (!added[i] || added[i] == driver) {
      added[i] = driver;
      return;
    }
}

const struct tfc_device_driver *const *tfc_driver_built_in(size_t *out_count) {
  *out_count = sizeof built_in / sizeof *built_in;
  return built_in;
}

// Returns the driver of a kind that needs no plug-in, or NULL.
static const struct tfc_device_driver *driver_here(const char *kind) {
  for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
    if (!strcmp(built_in[i]->kind, kind)) return built_in[i];
  for (int i = 0; i < ADDED && added[i]; i++)
    if (!strcmp(added[i]->kind, kind)) return added[i];
  return NULL;
}

tfc_status tfc_driver_find(const char *kind, const struct tfc_device_driver **out) {
  const struct tfc_device_driver *here = driver_here(kind);
  if (here) {
    *out = here;
    return NULL;
  }
  for (size_t i = 0; i < sizeof in_plugin / sizeof *in_plugin; i++)
    if (!strcmp(in_plugin[i].kind, kind)) return load_plugin(in_plugin[i].symbol, out);
  struct tfc_text known = {0};
  for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++) tfc_text_printf(&known, "%s, ", built_in[i]->kind);
  for (size_t i = 0; i < sizeof in_plugin / sizeof *in_plugin; i++)
    tfc_text_printf(&known, "%s%s", i ? ", " : "", in_plugin[i].kind);
  tfc_status s = tfc_status_make(TFC_UNAVAILABLE, "there is no kind of device named '%s' (%s)", kind,
                                 known.data ? known.data : "");
  tfc_text_deinit(&known);
  return s;
}

static bool runs_on_its_own(const char *kind) {
  const struct tfc_device_driver *here = driver_here(kind);
  if (here) return here->on_its_own;
  for (size_t i = 0; i < sizeof in_plugin / sizeof *in_plugin; i++)
    if (!strcmp(in_plugin[i].kind, kind)) return true;
  return false;
}

bool tfc_device_list_may_run_on_its_own(const char *devices) {
  struct tfc_device_list list = {0};
  tfc_status s = devices ? tfc_device_list_parse(devices, false, &list) : NULL;
  const bool any = !devices || s || list.count; // the text names no devices, so it may mean any that exist
  bool may = any && access("/dev/nvidiactl", F_OK) == 0;
  for (size_t i = 0; !any && i < list.items.count && !may; i++) {
    char kind[16];
    const int length = snprintf(kind, sizeof kind, "%.*s", TFC_STR_ARG(list.items.data[i].name));
    may = length < (int)sizeof kind && runs_on_its_own(kind);
  }
  tfc_device_list_deinit(&list);
  tfc_status_free(s);
  return may;
}

struct wanted {
  char kind[16];
  uint32_t index;
};
typedef TFC_ARRAY(struct wanted) wanted_list;

// Finds the devices of a list; a kind without an index is its first device.
static tfc_status wanted_of(const char *spec, const struct tfc_device_list *list, wanted_list *out) {
  for (size_t i = 0; i < list->items.count; i++) {
    const struct tfc_device_item *item = &list->items.data[i];
    struct wanted w = {.index = item->index < 0 ? 0 : (uint32_t)item->index};
    if (item->name.size >= sizeof w.kind)
      return tfc_status_make(TFC_UNAVAILABLE, "devices '%s': there is no kind of device named '%.*s'", spec,
                             TFC_STR_ARG(item->name));
    memcpy(w.kind, item->name.data, item->name.size);
    for (size_t k = 0; k < out->count; k++)
      if (out->data[k].index == w.index && !strcmp(out->data[k].kind, w.kind))
        return tfc_status_make(TFC_INVALID_ARGUMENT, "devices '%s': %s:%u is named twice", spec, w.kind, w.index);
    if (!tfc_array_push(out, w)) return tfc_status_no_memory(NULL);
  }
  return NULL;
}

// Whether NVIDIA's driver is installed. Its library is small beside those of the toolkit, which the plug-in is linked
// with: without a driver, they would be loaded only to find no GPU.
static bool has_gpu_driver(void) {
  return dlopen("libcuda.so.1", RTLD_LAZY) != NULL; // it stays loaded, because the plug-in needs it, too
}

// Chooses devices if only a number is given, such as "4": so many GPUs; if there are fewer, virtual devices on a single
// GPU; if that is not possible, the GPUs that exist; if there is none, CPU devices.
static tfc_status choose_best(uint32_t count, wanted_list *out, struct tfc_text *note) {
  const char *kind = "cpu";
  uint32_t gpus = 0, take = count;
  const struct tfc_device_driver *gpu = driver_here("gpu");
  struct tfc_device_info *infos = NULL;
  tfc_status s = !gpu && has_gpu_driver() ? tfc_driver_find("gpu", &gpu) : NULL;
  if (gpu) s = gpu->discover(&(struct tfc_driver_options){0}, &infos, &gpus);
  if (s) gpus = 0;
  tfc_status_free(s);
  free(infos);
  if (gpus >= count)
    kind = "gpu";
  else if (gpus == 1)
    kind = "vgpu";
  else if (gpus >= 2) {
    kind = "gpu";
    take = gpus;
    tfc_text_printf(note, "%u of %u devices: there are no more GPUs", gpus, count);
  }
  for (uint32_t i = 0; i < take; i++) {
    struct wanted w = {.index = i};
    snprintf(w.kind, sizeof w.kind, "%s", kind);
    if (!tfc_array_push(out, w)) return tfc_status_no_memory(NULL);
  }
  return NULL;
}

static uint64_t limit_of(const char *name, const struct tfc_memory_limit *limits, uint32_t limit_count) {
  uint64_t limit = UINT64_MAX;
  for (uint32_t i = 0; i < limit_count; i++) // the last match counts
    if (fnmatch(limits[i].pattern, name, 0) == 0) limit = limits[i].bytes;
  return limit;
}

// Drivers number their address spaces from 1; 0 is the host's. To make the numbers unique among all devices, this adds
// a multiple of the index of the kind's first device.
static void give_address_space(struct tfc_device_info *info, size_t first_of_kind) {
  if (info->address_space) info->address_space += (uint32_t)(first_of_kind + 1) * (TFC_MAX_DEVICES + 1);
}

static tfc_status open_kind(const char *kind, bool shared, const wanted_list *wanted,
                            const struct tfc_memory_limit *limits, uint32_t limit_count, struct tfc_device **devices,
                            struct tfc_text *note) {
  tfc_status s = NULL;
  const struct tfc_device_driver *driver = NULL;
  struct tfc_device_info *infos = NULL;
  uint32_t found = 0, count = 0;
  size_t first = SIZE_MAX;
  for (size_t i = 0; i < wanted->count; i++)
    if (!strcmp(wanted->data[i].kind, kind) && wanted->data[i].index >= count) count = wanted->data[i].index + 1;
  TFC_TRY(s, tfc_driver_find(kind, &driver));
  TFC_TRY(s, driver->discover(&(struct tfc_driver_options){.count = count, .shared = shared}, &infos, &found));
  for (size_t i = 0; i < wanted->count; i++) {
    const struct wanted *w = &wanted->data[i];
    if (strcmp(w->kind, kind)) continue;
    if (w->index >= found)
      TFC_FAIL(s, TFC_UNAVAILABLE, "device %s:%u is not there: this machine has %u of that kind", kind, w->index,
               found);
    uint64_t limit = limit_of(infos[w->index].name, limits, limit_count);
    // A limit above the device's memory has no effect.
    if (limit < infos[w->index].memory) infos[w->index].memory = limit;
    if (first == SIZE_MAX) first = i;
    give_address_space(&infos[w->index], first);
    TFC_TRY(s, driver->open(&infos[w->index], &devices[i]));
    devices[i]->index = (uint16_t)i;
  }
  if (found && !strcmp(infos[0].label, "oversubscribed")) {
    struct tfc_topology t;
    TFC_TRY(s, tfc_topology_read(&t));
    tfc_text_printf(note, "%s%u CPU devices share %d core%s: oversubscribed", note->size ? "; " : "", count,
                    t.core_count, t.core_count == 1 ? "" : "s");
  }
out:
  free(infos);
  return s;
}

const char *tfc_virtual_transfers(const struct tfc_device_info *devices, uint32_t count) {
  const struct tfc_device_info *first = NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (strcmp(devices[i].label, "virtual")) continue;
    if (first) return first->address_space == devices[i].address_space ? "handed over" : "copy on one GPU";
    first = &devices[i];
  }
  return NULL;
}

static const char *const math_names[] = {NULL,
#define MATH_NAME(name, text) text,
                                         TFC_MATHS(MATH_NAME)
#undef MATH_NAME
};

const char *tfc_math_name(tfc_math math) {
  return math_names[math];
}

tfc_math tfc_math_parse(tfc_str name) {
  for (size_t i = 1; i < sizeof math_names / sizeof *math_names; i++)
    if (tfc_str_is(name, math_names[i])) return (tfc_math)i;
  return TFC_MATH_DEFAULT;
}

void tfc_devices_configure(const struct tfc_device_set *set, const struct tfc_device_settings *settings) {
  for (uint32_t i = 0; i < set->count; i++)
    if (set->devices[i]->driver->configure) set->devices[i]->driver->configure(set->devices[i], settings);
}

const char *tfc_devices_math(const struct tfc_device_info *devices, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (devices[i].math[0]) return devices[i].math;
  return NULL;
}

static tfc_status note_transfers(const struct tfc_device_set *set, struct tfc_text *note) {
  struct tfc_device_info *infos = calloc(set->count + 1u, sizeof *infos);
  if (!infos) return tfc_status_no_memory_for("opening %u devices", set->count);
  for (uint32_t i = 0; i < set->count; i++) infos[i] = set->devices[i]->info;
  const char *how = tfc_virtual_transfers(infos, set->count);
  if (how) tfc_text_printf(note, "%sbetween virtual devices: %s", note->size ? "; " : "", how);
  free(infos);
  return NULL;
}

tfc_status tfc_devices_open(const char *spec, const struct tfc_memory_limit *limits, uint32_t limit_count,
                            struct tfc_device_set *out) {
  tfc_status s = NULL;
  wanted_list wanted = {0};
  struct tfc_device_list list = {0};
  struct tfc_text note = {0};
  struct tfc_device_set set = {0};
  TFC_TRY(s, tfc_status_annotate(tfc_device_list_parse(spec, false, &list), "devices '%s'", spec));
  if (list.count)
    TFC_TRY(s, choose_best(list.count, &wanted, &note));
  else
    TFC_TRY(s, wanted_of(spec, &list, &wanted));
  set.devices = calloc(wanted.count, sizeof(*set.devices));
  if (!set.devices) TFC_TRY(s, tfc_status_no_memory_for("opening %zu devices", wanted.count));
  set.count = (uint32_t)wanted.count;
  for (size_t i = 0; i < wanted.count; i++) {
    bool first = true;
    for (size_t k = 0; k < i; k++) first &= strcmp(wanted.data[k].kind, wanted.data[i].kind) != 0;
    if (first)
      TFC_TRY(s, open_kind(wanted.data[i].kind, list.shared, &wanted, limits, limit_count, set.devices, &note));
  }
  TFC_TRY(s, note_transfers(&set, &note));
  set.note = note.data, note = (struct tfc_text){0};
  *out = set, set = (struct tfc_device_set){0};
out:
  tfc_devices_close(&set);
  tfc_text_deinit(&note);
  tfc_array_free(&wanted);
  tfc_device_list_deinit(&list);
  return s;
}

tfc_status tfc_devices_open_whole(const struct tfc_device *like, struct tfc_device_set *out) {
  tfc_status s = NULL;
  struct tfc_device_info *infos = NULL;
  uint32_t count = 0;
  struct tfc_device_set set = {0};
  const struct tfc_device_driver *driver = like->driver;
  if (!strcmp(driver->kind, "vgpu")) TFC_TRY(s, tfc_driver_find("gpu", &driver));
  TFC_TRY(s, driver->discover(&(struct tfc_driver_options){.count = 1, .whole = true}, &infos, &count));
  set.devices = calloc(1, sizeof(*set.devices));
  if (!set.devices) TFC_TRY(s, tfc_status_no_memory("opening a device"));
  set.count = 1;
  TFC_TRY(s, driver->open(&infos[0], &set.devices[0]));
  *out = set, set = (struct tfc_device_set){0};
out:
  free(infos);
  tfc_devices_close(&set);
  return s;
}

void tfc_devices_close(struct tfc_device_set *set) {
  if (!set) return;
  for (uint32_t i = 0; i < set->count; i++)
    if (set->devices[i]) set->devices[i]->driver->close(set->devices[i]);
  free(set->devices);
  free(set->note);
  *set = (struct tfc_device_set){0};
}
