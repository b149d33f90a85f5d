// What the files of the CUDA driver share: a device, its threads and streams, and prepared segments.
//
//   device.c    discover, open, close, environment, synchronous reads and writes, the vtables
//   failure.c   errors of CUDA calls as statuses; a device that is lost
//   libraries.c handles of cuBLASLt and cuDNN
//   split.c     one GPU as several: green contexts
//   segment.c   choosing kernels, preparing, running a segment, single launches
//   host.c      operations without a kernel here: run on the host between copies
//   rows.c      the table of kernels; moves that need no kernel
//   copy.c      copies beside compute; kernels that wait for them
//   staging.c   pinned memory on the way of host tensors
//   finish.c    waits for the device, then: timings, values for the host, signals
//   graph.c     captured segments
#ifndef TFC_RUNTIME_DEVICE_CUDA_DEVICE_H
#define TFC_RUNTIME_DEVICE_CUDA_DEVICE_H

#include "runtime/device/cuda/api.h"
#include "runtime/device/cuda/event.h"
#include "runtime/device/cuda/kernel.h"
#include "runtime/device/cuda/memory.h"
#include "runtime/device/queue.h"

extern const struct tfc_device_driver tfc_driver_gpu, tfc_driver_vgpu;

// Copy streams: to this device, to the host, from another device.
enum { TFC_CUDA_IN, TFC_CUDA_OUT, TFC_CUDA_PEER, TFC_CUDA_COPY_STREAMS };

struct tfc_cuda_staging { // a piece of pinned memory
  struct tfc_cuda_staging *next;
  void *data;
  size_t size, bytes; // bytes: how much of the current tensor it holds
};

struct tfc_cuda_range { // device memory that a copy reads or writes
  uintptr_t begin, end;
  uint8_t stream;
  bool writes;
};
enum { TFC_CUDA_RECENT = 128 };

// The offset of the device's clock to the host's: events are dated by the time since `mark`.
struct tfc_cuda_clock {
  struct tfc_cuda_mark *mark;
  uint64_t ticks;
  // The step that last set it: it stays within a step, or later intervals might seem to overlap earlier ones.
  int64_t step;
};

struct tfc_cuda_piece;
struct tfc_cuda_device {
  struct tfc_device base;
  const struct tfc_cuda_api *api;
  int ordinal;
  struct tfc_cuda_partition *partition; // NULL: all of the GPU
  struct tfc_cuda_properties properties;
  struct tfc_cuda_memory memory;
  tfc_cuda_stream compute, capture, copies[TFC_CUDA_COPY_STREAMS];
  struct tfc_cuda_pool *pool, *timed;
  struct tfc_queue work, copy_queue;       // launch
  struct tfc_queue work_end, copy_end;     // wait for the device
  struct tfc_kernel_env env;               // of the work thread
  struct tfc_cuda_clock clock;             // guarded by clock_lock
  pthread_mutex_t clock_lock, launch_lock; // launch_lock: libraries and scratch, for threads that launch or prepare
  _Atomic uint64_t unfinished;             // segments and copies that are not known to have ended
  _Atomic bool launched;                   // there were single launches: copies have to wait for the compute stream
  _Atomic int dead;                        // the sticky error with which everything fails from here on; 0: none
  struct tfc_buffer *scratch;              // shared by all kernels, in stream order
  size_t scratch_size;
  uint64_t scratch_generation;
  struct tfc_cuda_library library;
  struct cublasLtContext *blaslt;
  struct cudnnContext *cudnn;
  bool cudnn_green,
      pushed; // its handle belongs to the green context; that is current on the thread that holds launch_lock
  pthread_mutex_t staging_lock;
  struct tfc_cuda_staging *staging;
  uint64_t peers_asked;                          // copy thread: bit i: direct copies from GPU i were asked for
  uint64_t unpublished_streams;                  // copy thread: bit i: copies[i] has work that was not published
  bool unpublished_host;                         // copy thread: some of that was for the host
  struct tfc_cuda_range recent[TFC_CUDA_RECENT]; // copy thread: memory of the copies since all streams were joined
  uint32_t recent_count;
  _Atomic uint64_t host_calls, host_call_bytes; // operations run on the host, and what they copied
  bool graphs;                                  // capture segments
  struct tfc_cuda_piece *capturing;             // under launch_lock: memory that is allocated now belongs to this piece
  _Atomic uint64_t replays;                     // captured segments that were launched
};
static inline struct tfc_cuda_device *tfc_cuda_device_of(struct tfc_device *d) {
  return (struct tfc_cuda_device *)(void *)d;
}
static inline bool tfc_cuda_is_cuda(const struct tfc_device *d) {
  return d && (d->driver == &tfc_driver_gpu || d->driver == &tfc_driver_vgpu);
}

// Makes the device current on this thread.
int tfc_cuda_enter(const struct tfc_cuda_api *api, int ordinal);
// UNAVAILABLE, with what was being done; a sticky error marks the device as dead.
TFC_MUST_USE tfc_status tfc_cuda_error(struct tfc_cuda_device *d, int error, const char *doing);
#define TFC_CUDA_TRY(device, call, doing)                                                                              \
  do {                                                                                                                 \
    int tfc_cuda_error_ = (call);                                                                                      \
    if (__builtin_expect(tfc_cuda_error_ != 0, 0)) return tfc_cuda_error(device, tfc_cuda_error_, doing);              \
  } while (0)
TFC_MUST_USE tfc_status tfc_cuda_check_alive(struct tfc_cuda_device *d);
// The error of a row's prepare or launch. It may be a library's message for an error that has ended the device (caused
// by earlier work): then the device is dead and the status says so. Takes `s`.
TFC_MUST_USE tfc_status tfc_cuda_library_error(struct tfc_cuda_device *d, tfc_status s);
// A copy as part of an operation, counted among its launches; returns CUDA's error.
int tfc_cuda_launch_copy(struct tfc_cuda_device *d, void *to, const void *from, size_t bytes, tfc_cuda_stream stream);

// --- Libraries (libraries.c) -------------------------------------------------------------------------------------
// For struct tfc_cuda_library. Under launch_lock.
TFC_MUST_USE tfc_status tfc_cuda_blaslt(struct tfc_cuda_library *library, struct cublasLtContext **out);
TFC_MUST_USE tfc_status tfc_cuda_cudnn(struct tfc_cuda_library *library, struct cudnnContext **out);
// cuDNN's handle with the context that it wants current; give it back with tfc_cuda_cudnn_leave, also after a failure
// and where no handle was asked for.
TFC_MUST_USE tfc_status tfc_cuda_cudnn_enter(struct tfc_cuda_device *d, struct cudnnContext **out);
void tfc_cuda_cudnn_leave(struct tfc_cuda_device *d);

// --- Partitions (split.c) ----------------------------------------------------------------------------------------
// What `count` virtual devices on this GPU would be like. INVALID_ARGUMENT: they cannot be equal.
TFC_MUST_USE tfc_status tfc_cuda_split_plan(const struct tfc_cuda_api *api, int ordinal, uint32_t count, int *out_size);
// Partition `index` of these; the first call makes all. Freed when the last device is closed.
TFC_MUST_USE tfc_status tfc_cuda_split_take(const struct tfc_cuda_api *api, int ordinal, uint32_t index,
                                            struct tfc_cuda_partition **out);
void tfc_cuda_split_give(struct tfc_cuda_partition *partition);

// --- Segments (segment.c) ----------------------------------------------------------------------------------------
struct tfc_cuda_call {
  const struct tfc_cuda_kernel *row; // NULL: on the host, or a view
  bool is_view;
  const char *note;     // for reports: why it runs on the host, or which algorithm was chosen
  const char *declined; // why a library did not take it, though it runs on the device; NULL: none was asked, or it did
  struct tfc_kernel_ctx ctx;
  uint32_t node;
  const struct tfc_segment_op *op;
  void (*release)(void *state);
  uint32_t first_node, node_count; // of the captured graph
  uint32_t together;               // this one and those after it that go in the same launches; at least 1
};
struct tfc_cuda_capture;
struct tfc_prepared {
  struct tfc_cuda_device *device;
  const struct tfc_segment *segment;
  struct tfc_cuda_call *calls;
  uint32_t call_count;
  struct tfc_arena arena;
  struct tfc_cuda_capture *capture; // NULL: never tried
};
TFC_MUST_USE tfc_status tfc_cuda_prepare_segment(struct tfc_device *device, const struct tfc_segment *segment,
                                                 struct tfc_prepared **out);
void tfc_cuda_release_segment(struct tfc_device *device, struct tfc_prepared *prepared);
TFC_MUST_USE tfc_status tfc_cuda_submit(struct tfc_device *device, struct tfc_prepared *prepared, struct tfc_step *step,
                                        const struct tfc_timepoint *waits, uint32_t wait_count,
                                        const struct tfc_timepoint *signals, uint32_t signal_count);
TFC_MUST_USE tfc_status tfc_cuda_launch_one(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                                            struct tfc_kernel_ctx *ctx);
TFC_MUST_USE tfc_status tfc_cuda_launch_timed(struct tfc_device *device, struct tfc_prepared *prepared, uint32_t index,
                                              struct tfc_kernel_ctx *ctx, struct tfc_step *step);
bool tfc_cuda_supports(struct tfc_device *device, const struct tfc_op_def *def, tfc_dtype type,
                       const char **out_reason);
const char *tfc_cuda_fallback(const struct tfc_prepared *prepared, uint32_t index);
const char *tfc_cuda_declined(const struct tfc_prepared *prepared, uint32_t index);
bool tfc_cuda_has_kernel(const struct tfc_op_def *def, tfc_dtype type);
// Launches one prepared call with this context on a stream. On the work thread or under launch_lock.
TFC_MUST_USE tfc_status tfc_cuda_call_run(struct tfc_cuda_device *d, const struct tfc_cuda_call *c,
                                          struct tfc_kernel_ctx *ctx, tfc_cuda_stream stream);
// In a segment's run, on its own slots (inputs are there, and slots are released after their last reader): call
// `index`, and those before `end` that go in the same launches. *out_next: the call after them, or on failure the one
// that failed.
TFC_MUST_USE tfc_status tfc_cuda_calls_next(struct tfc_cuda_device *d, struct tfc_prepared *p, uint32_t index,
                                            uint32_t end, tfc_cuda_stream stream, uint32_t *out_next);
// Runs an operation without a kernel on the host: waits for the stream, copies inputs, runs the reference kernel,
// copies outputs.
TFC_MUST_USE tfc_status tfc_cuda_host_run(struct tfc_cuda_device *d, const struct tfc_segment_op *op,
                                          struct tfc_kernel_ctx *ctx, tfc_cuda_stream stream);

// --- Captures (graph.c) ------------------------------------------------------------------------------------------
// Called with the index `from` of the next call of a segment. If a captured piece begins there, replays it (and
// captures it first if needed); *out_next is the call after the piece. *out_next == from: launch this call by itself. A
// run of the segment begins with 0.
TFC_MUST_USE tfc_status tfc_cuda_graph_run(struct tfc_cuda_device *d, struct tfc_prepared *p, struct tfc_step *step,
                                           uint32_t from, uint32_t *out_next);
void tfc_cuda_graph_release(struct tfc_cuda_device *d, struct tfc_cuda_capture *capture); // NULL is fine

// --- Copies (copy.c) ---------------------------------------------------------------------------------------------
TFC_MUST_USE tfc_status tfc_cuda_copy(struct tfc_device *device, const struct tfc_copy *copy, struct tfc_step *step,
                                      const struct tfc_timepoint *waits, uint32_t wait_count,
                                      const struct tfc_timepoint *signals, uint32_t signal_count);
TFC_MUST_USE tfc_status tfc_cuda_read_tensor(struct tfc_device *device, const struct tfc_tensor *source, void *target);
TFC_MUST_USE tfc_status tfc_cuda_write_tensor(struct tfc_device *device, const void *source, struct tfc_tensor *target);
TFC_MUST_USE tfc_status tfc_cuda_await(struct tfc_device *device, const struct tfc_timepoint *waits,
                                       uint32_t wait_count);
// Makes `stream` wait for all work on the compute stream so far.
TFC_MUST_USE tfc_status tfc_cuda_after_compute(struct tfc_cuda_device *d, tfc_cuda_stream stream);

// --- Staging (staging.c) -----------------------------------------------------------------------------------------
TFC_MUST_USE tfc_status tfc_cuda_staging_take(struct tfc_cuda_device *d, size_t bytes, struct tfc_cuda_staging **out);
// Pieces for that many bytes, each filled completely before the next. If one fails, *out has those before it.
TFC_MUST_USE tfc_status tfc_cuda_staging_take_pieces(struct tfc_cuda_device *d, size_t bytes,
                                                     struct tfc_cuda_staging **out);
void tfc_cuda_staging_give(struct tfc_cuda_device *d, struct tfc_cuda_staging *pieces); // by `next`; NULL is fine
void tfc_cuda_staging_free(struct tfc_cuda_device *d);

// --- Ends (finish.c) ---------------------------------------------------------------------------------------------
struct tfc_cuda_timing { // an interval on the device, dated when its end was reached
  struct tfc_cuda_mark *begin, *end;
  uint32_t id;
  uint16_t kind;
  uint64_t bytes;
};
struct tfc_cuda_end { // malloc'd; freed after it was handled
  struct tfc_cuda_device *device;
  struct tfc_step *step;
  struct tfc_cuda_mark *marks[TFC_CUDA_COPY_STREAMS];
  uint32_t mark_count;
  bool span;            // the end of this work is an end of the device's work in the step
  uint32_t first, last; // of a segment: 1 + its first and last node, to name a segment that does not end
  struct tfc_trace_buffer *trace;
  struct tfc_cuda_timing *timings;
  uint32_t timing_count;
  bool host_dated; // a transfer without timings: from its issue until its end was seen
  uint32_t host_id;
  uint64_t host_begin, host_traced_bytes;
  struct tfc_cuda_staging *staging; // returned to the pool; first copied to `host_target` if that is set
  void *host_target;
};
// Gives `end` to the thread that waits for the device; its signals are set when the marks are reached. Takes `end` also
// on failure (then the caller signals).
TFC_MUST_USE tfc_status tfc_cuda_finish(struct tfc_queue *queue, struct tfc_cuda_end *end,
                                        const struct tfc_timepoint *signals, uint32_t signal_count);
void tfc_cuda_end_free(struct tfc_cuda_end *end);
// Measures the offset of the device's clock again at the beginning of a step, if it is old and the device idle. On the
// threads that launch, before the first timed event.
TFC_MUST_USE tfc_status tfc_cuda_clock_set(struct tfc_cuda_device *d, const struct tfc_step *step);

#endif
