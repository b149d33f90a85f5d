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
// Once, for the devices that the collector's steps will run on: where some work on their own, a GPU profiler dates
// their operations, or else their own events.
struct tfc_device_set;
TFC_MUST_USE tfc_status tfc_collector_watch(struct tfc_collector *collector, const struct tfc_device_set *set);
// "CUPTI", or "CUDA events: why"; NULL where no device works on its own.
const char *tfc_collector_timer(const struct tfc_collector *collector);
// Before steps that are not traced: a GPU profiler stops recording until the next reset.
TFC_MUST_USE tfc_status tfc_collector_rest(struct tfc_collector *collector);
struct tfc_trace_sink *tfc_collector_sink(struct tfc_collector *collector);
void tfc_collector_reset(struct tfc_collector *collector);
// After a step: true when records found no room; there is more room then, and the step's trace is not to be used. (How
// often the nodes of a loop run is known when they have run.)
bool tfc_collector_make_room(struct tfc_collector *collector);

struct tfc_profile_op {
  int64_t start_ns, duration_ns; // since the step began
  uint32_t node;
  uint32_t device;
  int64_t dispatch_ns; // launching it, on the host, where devices work on their own; else -1
  int64_t launched_ns; // when that had been done, since the step began; else -1
};
struct tfc_profile_transfer {
  int64_t start_ns, duration_ns;
  uint64_t bytes;
  uint32_t id; // transfer of the plan
  uint32_t device;
};
// Why a device stood still. Each gap between operations is cut: until the next operation had been launched (devices
// that work on their own) it is launch, then transfer while a tensor was arriving, the rest is dependency (it waited
// for another device). Work, the three of them and the end add up to the step.
struct tfc_idle {
  int64_t work_ns, launch_ns, transfer_ns, dependency_ns;
  int64_t end_ns;                // it was done before the step was
  int64_t longest_launch_gap_ns; // from the end of an operation until the next had been launched
  uint32_t launch_gaps;
};
struct tfc_profile_busy {
  // operations_ns <= busy_ns <= the step's duration; busy: with the gaps below 1 us from one operation to the next
  int64_t operations_ns, busy_ns;
  uint32_t operations;
  struct tfc_idle idle;
};
// Of one step. Zeroed at first; reuse keeps its arrays.
struct tfc_step_profile {
  int64_t start_ns;    // CLOCK_MONOTONIC_RAW, the first operation's start
  int64_t duration_ns; // to the last operation's end, all devices
  TFC_ARRAY(struct tfc_profile_op) ops;
  TFC_ARRAY(struct tfc_profile_transfer) transfers;
  TFC_ARRAY(struct tfc_profile_busy) busy; // [device]
  // What a GPU profiler saw: kernels, copies and fills, times since the step began; empty without one.
  TFC_ARRAY(struct tfc_activity_work) works;
  TFC_ARRAY(struct tfc_activity_call) calls; // of the host, from the step's begin to its last record
  int64_t gpu_busy_ns, gpu_attributed_ns;    // sums over them; of those that belong to a node or a transfer
  uint64_t allocated;                        // bytes that operations allocated in this step
};
void tfc_step_profile_deinit(struct tfc_step_profile *profile);

// What records' numbers mean, for messages.
struct tfc_plan_info;
struct tfc_collector_names {
  const struct tfc_graph *graph;
  const struct tfc_plan_info *plan;
};
// `names` (NULL: messages have numbers). `async[node]` (NULL: none): operations that wait for the outside and hold no
// device; they are left out. ABORTED: records were dropped, have no stamp, end before they begin, came twice, overlap
// on one device, are missing for what is known to have been launched, or there are none: such a step is never a
// measurement.
TFC_MUST_USE tfc_status tfc_collector_drain(struct tfc_collector *collector, const struct tfc_collector_names *names,
                                            const bool *async, struct tfc_step_profile *out);

#endif
