// Reads TensorFlow's names of devices, complete or partial: "/job:worker/replica:0/task:1/device:GPU:0", "/gpu:0",
// "/device:CPU:*", "". The case of letters in types does not matter.
#ifndef TFC_RUNTIME_GRAPH_DEVICE_SPEC_H
#define TFC_RUNTIME_GRAPH_DEVICE_SPEC_H

#include "runtime/base/status.h"
#include "runtime/base/str.h"

struct tfc_device_spec {
  tfc_str job;
  int replica, task; // -1: not given
  char type[16];     // upper case, "" if not given
  int index;         // -1: not given or '*'
};
TFC_MUST_USE tfc_status tfc_device_spec_parse(tfc_str text, struct tfc_device_spec *out); // INVALID_ARGUMENT

#endif
