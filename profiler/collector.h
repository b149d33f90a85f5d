// Collector: the trace sink of a measured step. The runtime writes records into its buffers; between steps, drain turns
// them into the profile of that step: nanoseconds since the step began, sorted, with the busy time of each device.
//
//   struct tfc_collector *c = NULL;
//   TFC_TRY(s, tfc_collector_create(device_count, records_per_device, &c));
//   tfc_collector_reset(c);
//   TFC_TRY(s, tfc_plan_run(plan, feeds, fetches, &(struct tfc_run_options){.trace = tfc_collector_sink(c)}));
//   TFC_TRY(s, tfc_collector_drain(c, &(struct tfc_collector_names){graph, info}, NULL, &profile));
//
// One thread resets and drains; the runtime's threads write while a step runs, each into its own buffer.
#ifndef TFC_PROFILER_COLLECTOR_H
#define TFC_PROFILER_COLLECTOR_H

#include "profiler/activity.h"
#include "runtime/base/array.h"
#include "runtime/base/status.h"
#include "runtime/trace.h"

struct tfc_collector;
TFC_MUST_USE tfc_status tfc_collector_create(uint32_t device_count, size_t records_per_device,
                                             struct tfc_collector **out);
void tfc_collector_free(struct tfc_collector *collector); // NULL is fine

struct tfc_trace_sink *tfc_collector_sink(struct tfc_collector *collector);
void tfc_collector_reset(struct tfc_collector *collector);
// Call it after a step. True: there was not enough room for all records; it then makes room, and the step's trace must
// not be used. (How often the nodes of a loop run is known only afterwards.)
bool tfc_collector_make_room(struct tfc_collector *collector);

struct tfc_profile_op {
  int64_t start_ns, duration_ns; // since the step began
  uint32_t node;
  uint32_t device;
  int64_t dispatch_ns; // for asynchronous devices the time to launch it on the host; otherwise -1
  int64_t launched_ns; // when it had been launched, since the step began; otherwise -1
};
struct tfc_profile_transfer {
  int64_t start_ns, duration_ns;
  uint64_t bytes;
  uint32_t id; // transfer of the plan
  uint32_t device;
};
// Why a device was idle. Each gap between operations is divided: until the next operation had been launched
// (asynchronous devices) it is `launch`; then, while a tensor was arriving, `transfer`; the rest is `dependency`
// (waiting for another device) or, if the step ran on one device only, `launch`. Work, these three and the end add up
// to the step.
struct tfc_idle {
  int64_t work_ns, launch_ns, transfer_ns, dependency_ns;
  int64_t end_ns;                // from the end of its last operation to the end of the step
  int64_t longest_launch_gap_ns; // longest time from the end of an operation until the next one was launched
  uint32_t launch_gaps;
};
struct tfc_profile_busy {
  // operations_ns <= busy_ns <= the step's duration; busy_ns includes gaps below 1 us between operations.
  int64_t operations_ns, busy_ns;
  uint32_t operations;
  struct tfc_idle idle;
};
// The profile of one step. Zero it before the first use; arrays are reused.
struct tfc_step_profile {
  int64_t start_ns;    // CLOCK_MONOTONIC_RAW, the first operation's start
  int64_t duration_ns; // to the last operation's end, all devices
  TFC_ARRAY(struct tfc_profile_op) ops;
  TFC_ARRAY(struct tfc_profile_transfer) transfers;
  TFC_ARRAY(struct tfc_profile_busy) busy; // [device]
  // The kernels, copies and fills that a GPU profiler recorded, with times since the step began; empty without a
  // profiler.
  TFC_ARRAY(struct tfc_activity_work) works;
  TFC_ARRAY(struct tfc_activity_call) calls; // calls of the host, from the beginning of the step to its last record
  int64_t gpu_busy_ns, gpu_attributed_ns; // sums over all `works`, and over those that belong to a node or a transfer
  uint64_t allocated;                     // bytes that operations allocated in this step
};
void tfc_step_profile_deinit(struct tfc_step_profile *profile);

// Names for the numbers in records, used in messages.
struct tfc_plan_info;
struct tfc_collector_names {
  const struct tfc_graph *graph;
  const struct tfc_plan_info *plan;
};
// `names` NULL: messages contain numbers. `async[node]` (NULL: none): operations that wait for something outside of the
// step and occupy no device; they are left out. ABORTED: records were dropped, have no stamp, end before they begin,
// came twice, overlap on one device, are missing although the work was launched, or there are none: such a step is not
// a measurement.
TFC_MUST_USE tfc_status tfc_collector_drain(struct tfc_collector *collector, const struct tfc_collector_names *names,
                                            const bool *async, struct tfc_step_profile *out);

#endif
