// Finds the cores that this process may use. hwloc lists the cores and their logical processors; each core is
// represented by its first logical processor that the affinity mask allows. The quota is the smallest one of this
// process's control group and all groups above it (v2 cpu.max, v1 cpu.cfs_quota_us).
#include "runtime/device/cpu/topology.h"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/cgroup.h"
#include "runtime/base/str.h"

// Parses the content of cpu.max, such as "max 100000" or "150000 100000", and returns processors. 0: no limit.
static double parse_quota(const char *cpu_max) {
  double quota = 0, period = 100000;
  if (sscanf(cpu_max, "%lf %lf", &quota, &period) < 1 || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

static double smaller(double a, double b) {
  return a <= 0 ? b : b <= 0 ? a : a < b ? a : b;
}

static void visit_group(void *user, const char *folder, bool second) {
  char text[128], *file = tfc_format("%s/%s", folder, second ? "cpu.max" : "cpu.cfs_quota_us");
  double *quota = user;
  if (file && tfc_read_small(file, text, sizeof text)) *quota = smaller(*quota, parse_quota(text));
  free(file);
}

static double cgroup_quota(void) {
  double quota = 0;
  tfc_cgroup_visit("cpu", visit_group, &quota);
  return quota;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tfc_topology found;

static void read_once(void) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed)) CPU_SET(0, &allowed);
  hwloc_topology_t t = NULL;
  if (hwloc_topology_init(&t) == 0 && hwloc_topology_load(t) == 0) {
    int cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
    for (int i = 0; i < cores && found.core_count < TFC_MAX_CORES; i++) {
      hwloc_obj_t core = hwloc_get_obj_by_type(t, HWLOC_OBJ_CORE, (unsigned)i);
      if (!core || !core->cpuset) continue;
      for (int cpu = hwloc_bitmap_first(core->cpuset); cpu >= 0; cpu = hwloc_bitmap_next(core->cpuset, cpu))
        if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &allowed)) {
          found.cpus[found.core_count++] = cpu;
          break;
        }
    }
    hwloc_obj_t root = hwloc_get_root_obj(t);
    found.memory = root ? root->total_memory : 0;
    const char *model = root ? hwloc_obj_get_info_by_name(root, "CPUModel") : NULL;
    if (!model) {
      hwloc_obj_t package = hwloc_get_obj_by_type(t, HWLOC_OBJ_PACKAGE, 0);
      model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;
    }
    snprintf(found.model, sizeof found.model, "%s", model ? model : "CPU");
  }
  if (t) hwloc_topology_destroy(t);
  if (found.core_count == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE && found.core_count < TFC_MAX_CORES; cpu++)
      if (CPU_ISSET(cpu, &allowed)) found.cpus[found.core_count++] = cpu;
  if (found.core_count == 0) found.cpus[found.core_count++] = 0;
  if (!found.memory) found.memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  found.affinity_cores = found.core_count;
  found.quota = cgroup_quota();
  if (found.quota > 0 && found.quota < found.core_count) found.core_count = found.quota < 1 ? 1 : (int)found.quota;
}

tfc_status tfc_topology_read(struct tfc_topology *out) {
  pthread_once(&once, read_once);
  *out = found;
  return NULL;
}
