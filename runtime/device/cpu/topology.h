// The cores that this process may use: hwloc's, within affinity and the cgroup's quota.
#ifndef TFC_RUNTIME_DEVICE_CPU_TOPOLOGY_H
#define TFC_RUNTIME_DEVICE_CPU_TOPOLOGY_H

#include <stdint.h>

#include "runtime/base/status.h"

enum { TFC_MAX_CORES = 1024 };
struct tfc_topology {
  int core_count;          // usable cores: quota and affinity, at least 1
  int cpus[TFC_MAX_CORES]; // one logical processor of each, neighbours share caches
  int affinity_cores;      // before the quota
  double quota;            // processors that the cgroup grants, 0: no limit
  uint64_t memory;         // bytes of the machine or the cgroup's limit
  char model[96];
};
TFC_MUST_USE tfc_status tfc_topology_read(struct tfc_topology *out); // read once per process, then a copy

#endif
