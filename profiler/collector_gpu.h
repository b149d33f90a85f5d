// Collecting from asynchronous devices: by a GPU profiler, or else by the devices' own events.
#ifndef TFC_PROFILER_COLLECTOR_GPU_H
#define TFC_PROFILER_COLLECTOR_GPU_H

#include "profiler/collector.h"

// Call it once with the devices of the collector's steps: for asynchronous devices it chooses a GPU profiler, or else
// the devices' own events, to time operations.
struct tfc_device_set;
TFC_MUST_USE tfc_status tfc_collector_watch(struct tfc_collector *collector, const struct tfc_device_set *set);
// Returns "CUPTI", or "CUDA events: " with the reason; NULL: there is no asynchronous device.
const char *tfc_collector_timer(const struct tfc_collector *collector);
// Whether a GPU profiler times operations now. Then a step with a trace launches the same work as one without. (Without
// a GPU profiler, devices time operations by events, which are more work in the step.)
bool tfc_collector_has_profiler(const struct tfc_collector *collector);
// How a GPU profiler's records came so far: how many steps had all of theirs after so many flushes (at most
// tfc_collector_flushes[i]; the last count: after more), and how far neighbours in a stream seemed to overlap. False:
// no GPU profiler times operations.
enum { TFC_COLLECTOR_FLUSHES = 3 };
extern const int tfc_collector_flushes[TFC_COLLECTOR_FLUSHES];
struct tfc_collector_records {
  uint64_t flushes[TFC_COLLECTOR_FLUSHES + 1];
  struct tfc_activity_overlaps overlaps;
};
bool tfc_collector_records_get(const struct tfc_collector *collector, struct tfc_collector_records *out);
// Call it before steps that are not traced: a GPU profiler stops recording until the next reset.
TFC_MUST_USE tfc_status tfc_collector_rest(struct tfc_collector *collector);

#endif
