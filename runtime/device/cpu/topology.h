// The cores that this process may use: those that hwloc lists, within the affinity mask and the control group's quota.
#ifndef TFC_RUNTIME_DEVICE_CPU_TOPOLOGY_H
#define TFC_RUNTIME_DEVICE_CPU_TOPOLOGY_H

#include <stdint.h>

#include "runtime/base/status.h"

enum { TFC_MAX_CORES = 1024 };
struct tfc_topology {
  int core_count;          // cores within affinity and quota, at least 1
  int cpus[TFC_MAX_CORES]; // one logical processor of each core; cores that share a cache follow each other
  int affinity_cores;      // cores within affinity alone
  double quota;            // processors that the cgroup grants, 0: no limit
  uint64_t memory;         // bytes: the machine's memory
  char model[96];
};
// the machine is read once per process; later calls copy the result
TFC_MUST_USE tfc_status tfc_topology_read(struct tfc_topology *out);

#endif
