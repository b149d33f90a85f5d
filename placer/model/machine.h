// Machine: devices and the links between them. Read from YAML (the format "tfc-machine"), or built by the code that
// discovers local devices:
//
//   struct tfc_machine *m = NULL;
//   TFC_TRY(s, tfc_machine_create(&m));
//   TFC_TRY(s, tfc_machine_add_device(m, &(struct tfc_machine_device){.name = TFC_STR("cpu:0"), .kind = TFC_STR("cpu"),
//                                                             .memory = TFC_NO_LIMIT}));
//   struct tfc_link link = tfc_link_default();
//   link.latency_us = 10, link.bandwidth = 12e9;
//   TFC_TRY(s, tfc_machine_add_link(m, &link));
//
// Not thread-safe while it is changed; any number of threads may read it. Errors are INVALID_ARGUMENT and name the
// device or row; UNAVAILABLE: the machine does not have a device that was named.
#ifndef TFC_PLACER_MODEL_MACHINE_H
#define TFC_PLACER_MODEL_MACHINE_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"
#include "runtime/device/list.h"

#define TFC_NO_LIMIT UINT64_MAX

// How the numbers of a device were found, the most reliable way first. An answer has the least reliable label of the
// devices that it uses.
#define TFC_LABELS(X)                                                                                                  \
  X(MEASURED, "measured")                                                                                              \
  X(VIRTUAL, "virtual")                                                                                                \
  X(OVERSUBSCRIBED, "oversubscribed")                                                                                  \
  X(EMULATED, "emulated")                                                                                              \
  X(MODELLED, "modelled")
typedef enum tfc_label {
#define TFC_LABEL_ENUM(name, text) TFC_LABEL_##name,
  TFC_LABELS(TFC_LABEL_ENUM)
#undef TFC_LABEL_ENUM
} tfc_label;
const char *tfc_label_name(tfc_label label);

// Which devices cannot run operations during a transfer, as bits.
typedef enum tfc_occupies {
  TFC_OCCUPIES_NONE = 0,
  TFC_OCCUPIES_SENDER = 1,
  TFC_OCCUPIES_RECEIVER = 2,
  TFC_OCCUPIES_BOTH = 3
} tfc_occupies;

struct tfc_machine_device {
  tfc_str name, kind;
  tfc_str tensorflow;      // TensorFlow's name of the device; data NULL: none given
  tfc_str host;            // the host (computer) that it belongs to; all devices with data NULL belong to one host
  uint64_t memory;         // bytes, or TFC_NO_LIMIT
  double flops;            // per second, 0: unknown
  double memory_bandwidth; // bytes per second, 0: unknown
  double dispatch_us;      // time to launch an operation: added to every operation whose time is not 0
  // While k devices of this kind are busy, this one included, the times of operations are multiplied by slowdown[k -
  // 1]; the last entry also counts for more devices.
  const double *slowdown; // [slowdown_count]
  uint32_t slowdown_count;
  tfc_label label;
};

struct tfc_link_point {
  double bytes, time_us;
};
typedef enum tfc_hosts { TFC_HOSTS_ANY, TFC_HOSTS_SAME, TFC_HOSTS_DIFFERENT } tfc_hosts;
struct tfc_link {
  tfc_str from, to; // device names; '*' in them stands for any characters
  tfc_hosts hosts;  // whether the row matches only devices of one host, or only devices of different hosts
  double latency_us;
  double bandwidth; // bytes per second, INFINITY: no limit
  bool duplex;
  tfc_occupies occupies;
  // data NULL: the link has a wire of its own; "none": its transfers never wait for each other; another name: all links
  // with this name share a wire. "{host}" in the name makes one wire for each host, for what its devices send.
  tfc_str wire;
  // The time as a function of the bytes: linear between two points, constant below the first one; above the last one
  // the line through the last two continues.
  const struct tfc_link_point *curve; // [curve_count] ascending by bytes; replaces the bandwidth
  uint32_t curve_count;
  // How much longer a message takes if its receiver sleeps, as tasks do that wait on a host with more tasks than cores.
  // Only the simulation of replicas uses it.
  double wake_us;
};
static inline struct tfc_link tfc_link_default(void) {
  return (struct tfc_link){.from = {"*", 1}, .to = {"*", 1}, .bandwidth = __builtin_inf(), .duplex = true};
}

struct tfc_machine {
  struct tfc_arena arena;
  uint32_t device_count, link_count;
  struct tfc_machine_device *devices;
  struct tfc_link *links;        // if several rows match a pair of devices, the last one counts
  size_t device_room, link_room; // private: for how many there is memory
};

TFC_MUST_USE tfc_status tfc_machine_create(struct tfc_machine **out);
void tfc_machine_free(struct tfc_machine *machine); // NULL is fine
// Both functions copy their arguments.
TFC_MUST_USE tfc_status tfc_machine_add_device(struct tfc_machine *machine, const struct tfc_machine_device *device);
TFC_MUST_USE tfc_status tfc_machine_add_link(struct tfc_machine *machine, const struct tfc_link *link);

// Returns the index of the device with this name or TensorFlow name; TFC_NONE: there is none.
uint32_t tfc_machine_find(const struct tfc_machine *machine, tfc_str name);
// out_host [device]: the number of its host, in the order in which hosts appear among the devices. Returns how many
// hosts there are.
uint32_t tfc_machine_hosts(const struct tfc_machine *machine, uint32_t *out_host);
// Removes all devices that are not in `list`. The list has the form of --devices: names and ranges ("acc:0-3,cpu:0"),
// or a number N ("4"), which means the first N devices of the first kind in the file that has so many. Devices keep
// their order. UNAVAILABLE: the machine does not have them.
TFC_MUST_USE tfc_status tfc_machine_select(struct tfc_machine *machine, tfc_str list);
TFC_MUST_USE tfc_status tfc_machine_select_kind(struct tfc_machine *machine, tfc_str kind, uint32_t count);
// --memory 'DEVICE=SIZE': limits every device whose name matches `pattern`. UNAVAILABLE: no name matches.
TFC_MUST_USE tfc_status tfc_machine_limit(struct tfc_machine *machine, tfc_str pattern, uint64_t bytes);
bool tfc_glob_match(tfc_str pattern, tfc_str text); // '*' matches any characters, nothing else is special

#endif
