// Joins the records of a GPU profiler for a step (kernels, copies, fills): finds the node and the device that each
// belongs to, and whether the records can be trusted. It depends on no profiler: the CUPTI plug-in
// (profiler/cupti) passes records to it, and tests pass invented ones.
//
// A launch is marked on the launching thread with an external id (step, device, uid); the profiler links that to the
// launch's correlation id, and the correlation id to the work. Work of a captured graph names its graph node, which the
// driver has mapped to a uid when it captured. Times are nanoseconds on CLOCK_MONOTONIC_RAW.
//
//   tfc_activity_take(a, step, &result);              // when the step's work is done and flushed
//   TFC_TRY(s, tfc_activity_trust(&result));          // ABORTED: records dropped, without stamps, out of order, ...
//
// Any thread may add records; one thread takes them, between steps.
#ifndef TFC_PROFILER_ACTIVITY_H
#define TFC_PROFILER_ACTIVITY_H

#include "runtime/base/array.h"
#include "runtime/base/none.h"
#include "runtime/base/status.h"
#include "runtime/trace.h"

typedef enum tfc_activity_kind { TFC_ACTIVITY_KERNEL, TFC_ACTIVITY_COPY, TFC_ACTIVITY_SET } tfc_activity_kind;

enum { TFC_ACTIVITY_NAME = 64 };
struct tfc_activity_work {
  int64_t start_ns, end_ns;
  uint32_t kind; // tfc_activity_kind
  uint32_t context, stream, correlation;
  uint64_t graph_node; // 0: not of a captured graph
  uint32_t grid[3], block[3];
  uint32_t registers, shared; // per thread; bytes per block, static and dynamic
  uint64_t bytes;             // copied or filled
  char direction[8];          // "HtoD", "DtoH", "DtoD", "PtoP"
  char name[TFC_ACTIVITY_NAME];
  // The following members are set by tfc_activity_take.
  uint16_t device; // or TFC_NO_DEVICE
  uint32_t uid;    // node, or transfer with TFC_TRACE_UID_TRANSFER; TFC_NONE: unknown
};

// What the host did besides launching work: it waited for the device, or allocated or released memory.
typedef enum tfc_activity_call_kind {
  TFC_ACTIVITY_SYNCHRONIZE,
  TFC_ACTIVITY_ALLOCATE,
  TFC_ACTIVITY_RELEASE,
} tfc_activity_call_kind;
struct tfc_activity_call {
  int64_t start_ns, end_ns; // equal for memory calls
  uint32_t kind;            // tfc_activity_call_kind
  uint32_t context, stream; // TFC_NONE: of no stream
  uint64_t bytes;           // taken or returned memory
  uint64_t identity;        // the memory's address; the wait's correlation
  char name[24];            // "stream", "event", "stream waits for event", "context"; "device", "pinned", ...
};

// Returns the external id of a launch, which its marks contain.
static inline uint64_t tfc_activity_external(uint32_t step, uint16_t device, uint32_t uid) {
  return (uint64_t)(step & 0xffffff) << 40 | (uint64_t)(device & 0xff) << 32 | uid;
}

struct tfc_activity;
TFC_MUST_USE tfc_status tfc_activity_create(struct tfc_activity **out);
void tfc_activity_free(struct tfc_activity *a); // NULL is fine
// Adding a record reports no error: if there is no memory for it, it counts as dropped.
void tfc_activity_add(struct tfc_activity *a, const struct tfc_activity_work *work);
void tfc_activity_correlate(struct tfc_activity *a, uint32_t correlation, uint64_t external);
void tfc_activity_drop(struct tfc_activity *a, uint64_t count);
void tfc_activity_call(struct tfc_activity *a, const struct tfc_activity_call *call);
void tfc_activity_map(struct tfc_activity *a, uint64_t graph_node, uint32_t uid); // stays until free
// Instantiating a graph clones its nodes: records name the clone, but the driver knows the original. The pair is stored
// until `free`.
void tfc_activity_clone(struct tfc_activity *a, uint64_t original, uint64_t clone);
// Returns the number of records that were not yet taken; *out_works: how many of them are work.
size_t tfc_activity_held(struct tfc_activity *a, size_t *out_works);
// Begins a step at `begin_ns` (CLOCK_MONOTONIC_RAW): forgets all records so far; work that began before is not counted
// for this step.
void tfc_activity_begin(struct tfc_activity *a, int64_t begin_ns);

// How far neighbours in a stream have seemed to overlap since the activity was created: pairs up to each bound, and
// above the last one.
enum { TFC_ACTIVITY_BOUNDS = 6 };
extern const int64_t tfc_activity_bounds_ns[TFC_ACTIVITY_BOUNDS];
struct tfc_activity_overlaps {
  uint64_t pairs[TFC_ACTIVITY_BOUNDS + 1];
  int64_t longest_ns;
  int64_t limit_ns; // longer ones fail a step now
};
void tfc_activity_overlaps_get(struct tfc_activity *a, struct tfc_activity_overlaps *out);

struct tfc_activity_result {
  TFC_ARRAY(struct tfc_activity_work) works; // of this step, and work that belongs to no step; sorted by start
  // Broken records of work and of memory. `twice`: delivered again unchanged.
  uint64_t dropped, zero_stamped, out_of_order, twice;
  uint64_t late;     // works of other steps
  uint64_t overlaps; // pairs of consecutive works of a stream that seem to overlap, also by less than the tolerance
  int64_t longest_overlap_ns;                // the longest of these overlaps
  int64_t overlap_limit_ns;                  // longer ones made the step invalid
  int64_t busy_ns, attributed_ns;            // sums over all works, and over those that belong to a node or a transfer
  TFC_ARRAY(struct tfc_activity_call) calls; // since the last take or begin, sorted by start
  uint64_t synchronizations, allocations, allocated_bytes;
  int64_t synchronized_ns;
  // Waits that were left out: they had no stamps, ended before they began, were delivered twice, or there was no memory
  // for them. They only describe what the host did, so they do not make the measurement invalid.
  uint64_t waits_broken;
};
void tfc_activity_result_deinit(struct tfc_activity_result *r);
TFC_MUST_USE tfc_status tfc_activity_take(struct tfc_activity *a, uint32_t step, struct tfc_activity_result *out);
// Returns ABORTED, with the counts, if records were dropped, have no stamps, contradict each other, came twice or
// belong to other steps. Missing records are found by the collector, which counts launches.
TFC_MUST_USE tfc_status tfc_activity_trust(const struct tfc_activity_result *r);

#endif
