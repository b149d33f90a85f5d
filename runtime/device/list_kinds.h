// What kinds of devices a list may mean, asked before any of them is opened.
#ifndef TFC_RUNTIME_DEVICE_LIST_KINDS_H
#define TFC_RUNTIME_DEVICE_LIST_KINDS_H

#include <stdbool.h>

// Whether one of the devices may run operations on its own (`on_its_own` of its driver): GPUs, and what a number means
// where GPUs may exist. Loads no plug-in, because CUPTI must start before CUDA's modules are loaded. `devices`: as
// --devices; NULL, or what is no list of local devices: as a number.
bool tfc_device_list_may_run_on_its_own(const char *devices);

#endif
