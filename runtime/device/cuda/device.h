// Declarations for all files of the CUDA driver: a device, its threads and streams, and prepared segments.
//
//   device.c    discover, open, close, environment, synchronous reads and writes, the vtables
//   failure.c   errors of CUDA calls as statuses; a device that is lost
//   libraries.c handles of cuBLASLt and cuDNN
//   split.c     divides one GPU into several devices, with green contexts
//   segment.c   choosing kernels, preparing, running a segment, single launches
//   host.c      operations without a kernel here: run on the host between copies
//   rows.c      the table of kernels; moves that need no kernel
//   copy.c      copies that overlap with compute; launches that wait for copies
//   staging.c   pinned memory through which host tensors are copied
//   finish.c    waits until work has ended, then records timings, copies tensors to the host, sets signals
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
  size_t size, bytes; // `size`: of the piece; `bytes`: how much of the current tensor it holds
};

struct tfc_cuda_range { // device memory that a copy reads or writes
  uintptr_t begin, end;
  uint8_t stream;
  bool writes;
};
enum { TFC_CUDA_RECENT = 128 };

// Converts times of the device to the host's ticks: the device reached `mark` at `ticks`, and CUDA measures the time
// between this mark and other events.
struct tfc_cuda_clock {
  struct tfc_cuda_mark *mark;
  uint64_t ticks;
  // The step that last set the clock. The clock is set at most once in a step; otherwise later intervals could seem to
  // overlap earlier ones.
  int64_t step;
};

struct tfc_cuda_piece;
struct tfc_cuda_device {
  struct tfc_device base;
  const struct tfc_cuda_api *api;
  int ordinal;
  struct tfc_cuda_partition *partition; // NULL: the device is the undivided GPU
  struct tfc_cuda_properties properties;
  struct tfc_cuda_memory memory;
  tfc_cuda_stream compute, capture, copies[TFC_CUDA_COPY_STREAMS];
  struct tfc_cuda_pool *pool, *timed;
  struct tfc_queue work, copy_queue;       // their threads launch segments and copies on the device
  struct tfc_queue work_end, copy_end;     // their threads wait until these have ended on the device
  struct tfc_kernel_env env;               // for the thread of `work`
  struct tfc_cuda_clock clock;             // guarded by clock_lock
  pthread_mutex_t clock_lock, launch_lock; // launch_lock guards libraries and scratch; launching threads hold it
  _Atomic uint64_t unfinished;             // segments and copies that may not have ended yet
  _Atomic bool launched;                   // there were single launches; so copies must wait for the compute stream
  _Atomic int dead;                        // the sticky error that made the device unusable: all calls fail; 0: none
  struct tfc_buffer *scratch;              // memory that all kernels share, in stream order
  size_t scratch_size;
  uint64_t scratch_generation;
  struct tfc_cuda_library library;
  struct cublasLtContext *blaslt;
  struct cudnnContext *cudnn;
  bool cudnn_green, // cuDNN's handle belongs to the green context
      pushed;       // the green context is current on the thread that holds launch_lock
  pthread_mutex_t staging_lock;
  struct tfc_cuda_staging *staging;
  // Only the copy thread uses the next five fields.
  uint64_t peers_asked;                          // bit i: tried to enable direct copies from GPU i
  uint64_t unpublished_streams;                  // bit i: copies[i] has work that no published value covers yet
  bool unpublished_host;                         // a part of that work copies to the host
  struct tfc_cuda_range recent[TFC_CUDA_RECENT]; // memory ranges of the copies since all copy streams last waited for
                                                 // each other
  uint32_t recent_count;
  _Atomic uint64_t host_calls, host_call_bytes; // number of operations run on the host, and bytes copied for them
  bool graphs;                                  // segments are captured as graphs
  struct tfc_cuda_piece *capturing; // guarded by launch_lock: the piece that is being captured, which owns the memory
                                    // that is allocated meanwhile
  _Atomic uint64_t replays;         // captured segments that were launched
};
static inline struct tfc_cuda_device *tfc_cuda_device_of(struct tfc_device *d) {
  return (struct tfc_cuda_device *)(void *)d;
}
static inline bool tfc_cuda_is_cuda(const struct tfc_device *d) {
  return d && (d->driver == &tfc_driver_gpu || d->driver == &tfc_driver_vgpu);
}

// Makes the device current on this thread.
int tfc_cuda_enter(const struct tfc_cuda_api *api, int ordinal);
// Makes a status that names what was being done: RESOURCE_EXHAUSTED where memory ran out, otherwise UNAVAILABLE. A
// sticky error marks the device as dead.
TFC_MUST_USE tfc_status tfc_cuda_error(struct tfc_cuda_device *d, int error, const char *doing);
#define TFC_CUDA_TRY(device, call, doing)                                                                              \
  do {                                                                                                                 \
    int tfc_cuda_error_ = (call);                                                                                      \
    if (__builtin_expect(tfc_cuda_error_ != 0, 0)) return tfc_cuda_error(device, tfc_cuda_error_, doing);              \
  } while (0)
TFC_MUST_USE tfc_status tfc_cuda_check_alive(struct tfc_cuda_device *d);
// Takes the error `s` of a row's `prepare` or `launch`. A library may report an error of earlier work that made the
// device unusable; then the device is marked as dead, and the returned status says so.
TFC_MUST_USE tfc_status tfc_cuda_library_error(struct tfc_cuda_device *d, tfc_status s);
// Makes a copy that is part of an operation, and counts it among the operation's launches. Returns CUDA's error.
int tfc_cuda_launch_copy(struct tfc_cuda_device *d, void *to, const void *from, size_t bytes, tfc_cuda_stream stream);

// --- Libraries (libraries.c) -------------------------------------------------------------------------------------
// These are the functions in struct tfc_cuda_library. The caller holds launch_lock.
TFC_MUST_USE tfc_status tfc_cuda_blaslt(struct tfc_cuda_library *library, struct cublasLtContext **out);
TFC_MUST_USE tfc_status tfc_cuda_cudnn(struct tfc_cuda_library *library, struct cudnnContext **out);
// Returns cuDNN's handle and makes the handle's context current. Call tfc_cuda_cudnn_leave afterwards in every case,
// also after a failure.
TFC_MUST_USE tfc_status tfc_cuda_cudnn_enter(struct tfc_cuda_device *d, struct cudnnContext **out);
void tfc_cuda_cudnn_leave(struct tfc_cuda_device *d);

// --- Partitions (split.c) ----------------------------------------------------------------------------------------
// *out_size is the number of multiprocessors of each of `count` virtual devices on this GPU. INVALID_ARGUMENT: the GPU
// cannot be divided into so many equal parts.
TFC_MUST_USE tfc_status tfc_cuda_split_plan(const struct tfc_cuda_api *api, int ordinal, uint32_t count, int *out_size);
// Returns partition `index` of these `count`; the first call makes all of them. They are freed when the last device is
// closed.
TFC_MUST_USE tfc_status tfc_cuda_split_take(const struct tfc_cuda_api *api, int ordinal, uint32_t index,
                                            struct tfc_cuda_partition **out);
void tfc_cuda_split_give(struct tfc_cuda_partition *partition);

// --- Segments (segment.c) ----------------------------------------------------------------------------------------
struct tfc_cuda_call {
  const struct tfc_cuda_kernel *row; // NULL: on the host, or a view
  bool is_view;
  const char *note;     // for reports: why the host runs it, or which algorithm was chosen
  const char *declined; // why a library declined the operation, so that a simpler kernel runs it on the device; NULL:
                        // no library did
  struct tfc_kernel_ctx ctx;
  uint32_t node;
  const struct tfc_segment_op *op;
  void (*release)(void *state);
  uint32_t first_node, node_count; // the call's nodes in the captured graph
  uint32_t together;               // how many calls, this one and those after it, share its launches; at least 1
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
// Launches one prepared call with this context on a stream. The caller is the work thread or holds launch_lock.
TFC_MUST_USE tfc_status tfc_cuda_call_run(struct tfc_cuda_device *d, const struct tfc_cuda_call *c,
                                          struct tfc_kernel_ctx *ctx, tfc_cuda_stream stream);
// Runs call `index` of a segment on the segment's own slots, together with those calls before `end` that share its
// launches. It releases slots after their last reader. *out_next: the next call, or the call that failed.
TFC_MUST_USE tfc_status tfc_cuda_calls_next(struct tfc_cuda_device *d, struct tfc_prepared *p, uint32_t index,
                                            uint32_t end, tfc_cuda_stream stream, uint32_t *out_next);
// Runs an operation without a kernel on the host: waits for the stream, copies inputs, runs the reference kernel,
// copies outputs.
TFC_MUST_USE tfc_status tfc_cuda_host_run(struct tfc_cuda_device *d, const struct tfc_segment_op *op,
                                          struct tfc_kernel_ctx *ctx, tfc_cuda_stream stream);

// --- Captures (graph.c) ------------------------------------------------------------------------------------------
// `from`: the index of the next call of a segment. If a captured piece begins there, replays it (and captures it first
// if needed); *out_next is the call after the piece. If no piece begins there, *out_next == from, and the caller must
// launch this call itself. Every run of the segment begins with from = 0.
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
// Allocates pieces for that many bytes; all but the last are filled completely. If an allocation fails, *out has the
// pieces before it.
TFC_MUST_USE tfc_status tfc_cuda_staging_take_pieces(struct tfc_cuda_device *d, size_t bytes,
                                                     struct tfc_cuda_staging **out);
// gives back all buffers that `next` links; NULL is fine
void tfc_cuda_staging_give(struct tfc_cuda_device *d, struct tfc_cuda_staging *pieces);
void tfc_cuda_staging_free(struct tfc_cuda_device *d);

// --- Work that ends on the device (finish.c) -----------------------------------------------------------------------
struct tfc_cuda_timing { // an interval on the device; its times are read when its end was reached
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
  bool span;            // extend the step's span of the device (tfc_span) to the end of this work
  uint32_t first, last; // for a segment: 1 + its first and its last node, to name the segment if it does not end
  struct tfc_trace_buffer *trace;
  struct tfc_cuda_timing *timings;
  uint32_t timing_count;
  bool host_dated; // a transfer without timings: the trace gets the times at which the host issued it and saw its end
  uint32_t host_id;
  uint64_t host_begin, host_traced_bytes;
  struct tfc_cuda_staging *staging; // given back to the pool; before that, copied to `host_target` if that is set
  void *host_target;
};
// Passes `end` to the thread that waits for the device; that thread sets the signals when the marks are reached. Takes
// `end` also on failure (then the caller must set the signals).
TFC_MUST_USE tfc_status tfc_cuda_finish(struct tfc_queue *queue, struct tfc_cuda_end *end,
                                        const struct tfc_timepoint *signals, uint32_t signal_count);
void tfc_cuda_end_free(struct tfc_cuda_end *end);
// Sets the clock again at the beginning of a step, if it was set long ago and the device is idle. Each launching thread
// calls this before its first timed event.
TFC_MUST_USE tfc_status tfc_cuda_clock_set(struct tfc_cuda_device *d, const struct tfc_step *step);

#endif
