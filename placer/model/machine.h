// Machine: devices and the links between them. Read from YAML (the format "tfc-machine"), or built by whoever
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
// Not thread-safe while it is being changed; any number of threads may read it. Errors are INVALID_ARGUMENT and name
// the device or row, UNAVAILABLE for a device that is asked for and not there.
#ifndef TFC_PLACER_MODEL_MACHINE_H
#define TFC_PLACER_MODEL_MACHINE_H

#include "runtime/base/arena.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"
#include "runtime/device/list.h"

#define TFC_NO_LIMIT UINT64_MAX

// How a device's numbers are got; the worst of the devices in use labels the answer.
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

// The devices that stand still during a transfer: a set of bits.
typedef enum tfc_occupies {
  TFC_OCCUPIES_NONE = 0,
  TFC_OCCUPIES_SENDER = 1,
  TFC_OCCUPIES_RECEIVER = 2,
  TFC_OCCUPIES_BOTH = 3
} tfc_occupies;

struct tfc_machine_device {
  tfc_str name, kind;
  tfc_str tensorflow;      // data NULL: none given
  uint64_t memory;         // bytes, or TFC_NO_LIMIT
  double flops;            // per second, 0: unknown
  double memory_bandwidth; // bytes per second, 0: unknown
  double dispatch_us;      // added to every operation whose time is not 0
  const double *slowdown;  // [slowdown_count] by busy devices of the kind, itself included; the last one goes on
  uint32_t slowdown_count;
  tfc_label label;
};

struct tfc_link_point {
  double bytes, time_us;
};
struct tfc_link {
  tfc_str from, to; // device names, '*' for any characters
  double latency_us;
  double bandwidth; // bytes per second, INFINITY: no limit
  bool duplex;
  tfc_occupies occupies;
  tfc_str wire;                       // data NULL: of its own; "none": transfers never wait for each other
  const struct tfc_link_point *curve; // [curve_count] by bytes: replaces the bandwidth; linear between points, level
  uint32_t curve_count;               // before the first, on along the last two behind the last
};
static inline struct tfc_link tfc_link_default(void) {
  return (struct tfc_link){.from = {"*", 1}, .to = {"*", 1}, .bandwidth = __builtin_inf(), .duplex = true};
}

struct tfc_machine {
  struct tfc_arena arena;
  uint32_t device_count, link_count;
  struct tfc_machine_device *devices;
  struct tfc_link *links; // the last row that matches a pair counts
};

TFC_MUST_USE tfc_status tfc_machine_create(struct tfc_machine **out);
void tfc_machine_free(struct tfc_machine *machine); // NULL is fine
// Both copy what they are given.
TFC_MUST_USE tfc_status tfc_machine_add_device(struct tfc_machine *machine, const struct tfc_machine_device *device);
TFC_MUST_USE tfc_status tfc_machine_add_link(struct tfc_machine *machine, const struct tfc_link *link);

TFC_MUST_USE tfc_status tfc_machine_parse(tfc_str yaml, const char *path, struct tfc_machine **out);
TFC_MUST_USE tfc_status tfc_machine_read(const char *path, struct tfc_machine **out);
TFC_MUST_USE tfc_status tfc_machine_format(const struct tfc_machine *machine, struct tfc_text *out); // YAML
TFC_MUST_USE tfc_status tfc_machine_write(const struct tfc_machine *machine, const char *path);

// Index of the device of this name (its own, or its TensorFlow name), or TFC_NONE (UINT32_MAX).
uint32_t tfc_machine_find(const struct tfc_machine *machine, tfc_str name);
// The last link row that matches the ordered pair; NULL: the two cannot exchange data.
const struct tfc_link *tfc_machine_link(const struct tfc_machine *machine, uint32_t from, uint32_t to);
// Keeps the devices of a list as --devices writes it ("acc:0-3,cpu:0"), in the machine's order, or the first N of one
// kind for a number ("4"): the first kind in the file that has as many. UNAVAILABLE: not there.
TFC_MUST_USE tfc_status tfc_machine_select(struct tfc_machine *machine, tfc_str list);
TFC_MUST_USE tfc_status tfc_machine_select_kind(struct tfc_machine *machine, tfc_str kind, uint32_t count);
// --memory 'DEVICE=SIZE': the limit of every device whose name matches. UNAVAILABLE: none does.
TFC_MUST_USE tfc_status tfc_machine_limit(struct tfc_machine *machine, tfc_str pattern, uint64_t bytes);
bool tfc_glob_match(tfc_str pattern, tfc_str text); // '*' stands for any characters, nothing else is special

#endif
