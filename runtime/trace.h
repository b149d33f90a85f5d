// The trace is the runtime's report of a running step. The runtime writes plain records into buffers that the profiler
// owns, one per writing thread, without locks or calls; the profiler reads them between steps.
//
// Times are ticks (runtime/base/clock.h) for host intervals; tfc_ticks_to_ns puts them on CLOCK_MONOTONIC_RAW.
#ifndef TFC_RUNTIME_TRACE_H
#define TFC_RUNTIME_TRACE_H

#include <stddef.h>
#include <stdint.h>

// kind, text
#define TFC_TRACE_KINDS(X)                                                                                             \
  X(OP, "op")             /* id: node; begin..end: running on the device (CPU) or being launched (GPU: dispatch; */    \
                          /* bytes: how many pieces of work that launched, at least) */                                \
  X(TRANSFER, "transfer") /* id: transfer of the plan; begin..end on the link */                                       \
  X(ALLOCATE, "allocate") /* id: node; bytes */                                                                        \
  X(EXECUTE, "execute")   /* id: node; begin..end on the device, of devices that work on their own (GPU) */            \
  X(STEP, "step")         /* id: 0; the whole step */

typedef enum tfc_trace_kind {
#define TFC_TRACE_ENUM(name, text) TFC_TRACE_##name,
  TFC_TRACE_KINDS(TFC_TRACE_ENUM)
#undef TFC_TRACE_ENUM
} tfc_trace_kind;

enum { TFC_NO_DEVICE = UINT16_MAX }; // in place of a device: none, or it is not known

struct tfc_trace_record {
  uint64_t begin, end; // ticks
  uint32_t id;
  uint16_t kind;
  uint16_t device; // index in the session; TFC_NO_DEVICE: of a whole step
  uint64_t bytes;
};

struct tfc_trace_buffer {
  struct tfc_trace_record *records;
  size_t count, capacity;
  // records that found no room in the buffer: if there are any, the step does not count as a measurement
  size_t dropped;
};

// The profiler's side. `buffers` has one entry per session device and one more, the last, for the thread that runs
// steps; `copies` has one per session device for the thread that copies to it (NULL: those transfers are not recorded).
// A tensor that is handed over is recorded in `buffers` by its receiver: from the time when it was there (or when the
// receiver began to wait for it, if that was later) until the receiver went on. op_begin/op_end are optional: they are
// called on the launching thread around every launch (for CUPTI's correlation ids); uid is the node's id.
struct tfc_trace_sink {
  struct tfc_trace_buffer *buffers;
  uint32_t buffer_count;
  void (*op_begin)(struct tfc_trace_sink *sink, uint16_t device, uint32_t uid);
  void (*op_end)(struct tfc_trace_sink *sink, uint16_t device, uint32_t uid);
  void *owner;
  struct tfc_trace_buffer *copies;
  struct tfc_trace_buffer *executions;
  // Optional. Called before the first launch of a captured segment, to say that its node `graph_node` (CUPTI's number)
  // is operation `uid`.
  void (*graph_node)(struct tfc_trace_sink *sink, uint16_t device, uint64_t graph_node, uint32_t uid);
};
#define TFC_TRACE_UID_TRANSFER UINT32_C(0x80000000)

static inline void tfc_trace_add(struct tfc_trace_buffer *b, tfc_trace_kind kind, uint32_t id, uint16_t device,
                                 uint64_t begin, uint64_t end, uint64_t bytes) {
  if (b->count == b->capacity) {
    b->dropped++;
    return;
  }
  b->records[b->count++] = (struct tfc_trace_record){begin, end, id, (uint16_t)kind, device, bytes};
}

#endif
