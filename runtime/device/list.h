// What --devices may say, for local devices and for those of a machine file alike: "4", "cpu:0-3,gpu:0", or names.
#ifndef TFC_RUNTIME_DEVICE_LIST_H
#define TFC_RUNTIME_DEVICE_LIST_H

#include "runtime/base/array.h"
#include "runtime/base/status.h"
#include "runtime/base/str.h"

#define TFC_MAX_DEVICES 1024u // that one machine may have, and the largest index but one

struct tfc_device_item {
  tfc_str name;  // "cpu" of "cpu:3", or all of a name without an index; borrowed from the text
  int64_t index; // -1: none
};
struct tfc_device_list {
  uint32_t count; // "4"; 0: the items say which
  bool shared;    // ",shared" stood behind it
  TFC_ARRAY(struct tfc_device_item) items;
};
// INVALID_ARGUMENT: this is no list, or names one device twice. UNAVAILABLE: an index that no device has. `described`:
// of a machine file, where devices may be called anything, and nothing is shared.
TFC_MUST_USE tfc_status tfc_device_list_parse(const char *text, bool described, struct tfc_device_list *out);
void tfc_device_list_deinit(struct tfc_device_list *list);

#endif
