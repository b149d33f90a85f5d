// What kinds of devices a list may mean, asked before any of them is opened.
#ifndef TFC_RUNTIME_DEVICE_LIST_KINDS_H
#define TFC_RUNTIME_DEVICE_LIST_KINDS_H

#include <stdbool.h>

// Whether a device of the list may run operations on its own (`on_its_own` of its driver), as GPUs do. `devices` is the
// text of --devices. If it does not name the devices (a number, NULL, or no list of local devices), the answer is
// whether this machine may have GPUs. The function does not load the CUDA plug-in, because CUPTI must start before
// CUDA's modules are loaded.
bool tfc_device_list_may_run_on_its_own(const char *devices);

#endif
