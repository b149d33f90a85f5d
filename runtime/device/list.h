// Parses --devices, for local devices and for those of a machine file: "4", "cpu:0-3,gpu:0", or names.
#ifndef TFC_RUNTIME_DEVICE_LIST_H
#define TFC_RUNTIME_DEVICE_LIST_H

#include "runtime/base/array.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"

#define TFC_MAX_DEVICES 1024u // most devices of a machine; indices are below it

struct tfc_device_item {
  tfc_str name;  // "cpu" of "cpu:3", or the whole of a name without an index; borrowed from the text
  int64_t index; // -1: none
};
struct tfc_device_list {
  uint32_t count; // "4"; 0: the items name the devices
  bool shared;    // the list ends with ",shared"
  TFC_ARRAY(struct tfc_device_item) items;
};
// INVALID_ARGUMENT: the text is not a list, or names a device twice. UNAVAILABLE: the text has an index that no device
// can have. `described`: the devices are those of a machine file, and may have any names; ",shared" is not allowed.
TFC_MUST_USE tfc_status tfc_device_list_parse(const char *text, bool described, struct tfc_device_list *out);
void tfc_device_list_deinit(struct tfc_device_list *list);

#endif
