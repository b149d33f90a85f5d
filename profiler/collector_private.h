// Declarations for all files of the collector: the collector itself, and its state for asynchronous devices.
#ifndef TFC_PROFILER_COLLECTOR_PRIVATE_H
#define TFC_PROFILER_COLLECTOR_PRIVATE_H

#include "profiler/collector.h"
#include "profiler/collector_gpu.h"
#include "profiler/gpu.h"

struct tfc_dispatch {
  struct tfc_profile_op op;
  uint64_t launches; // the smallest number of work records that it must have
};
struct tfc_collector {
  struct tfc_trace_sink sink;
  uint32_t device_count;
  // Asynchronous devices; `own` NULL: there are none.
  bool *own; // [device]
  char *timer;
  const struct tfc_gpu_profiler *profiler; // NULL: the devices' events
  struct tfc_activity *activity;
  struct tfc_activity_result activity_result;
  uint32_t step;      // number of the traced step: part of external ids
  uint32_t untrusted; // consecutive steps whose records could not be used
  uint64_t flushes[TFC_COLLECTOR_FLUSHES + 1];
  bool traced; // the step before was traced, so all records of earlier work have arrived
  const struct tfc_device_set *set;
  // Records of dispatches on those devices, in the step that is being drained.
  TFC_ARRAY(struct tfc_dispatch) dispatches;
  uint64_t launches; // sum of `launches` of the dispatches, plus 1 for each transfer that has bytes
};
void tfc_collector_reset_gpu(struct tfc_collector *c);
// Takes executions and transfers from the profiler's records. ABORTED: they cannot be trusted.
tfc_status tfc_collector_drain_gpu(struct tfc_collector *c, const struct tfc_collector_names *names,
                                   struct tfc_step_profile *p);
// Returns how many of the transfers from `first` on that have the same device and number are copies; transfers are
// sorted by these, and copies come first. *out_next: the first one after them.
uint64_t tfc_collector_same_transfer(const struct tfc_step_profile *p, size_t first, size_t *out_next);
int tfc_collector_by_node(const void *a, const void *b); // of struct tfc_profile_op, or what begins with one
// Adds the dispatch intervals to the operations; an operation that launched nothing gets an interval of length 0.
tfc_status tfc_collector_join_dispatches(struct tfc_collector *c, struct tfc_step_profile *p);

#endif
