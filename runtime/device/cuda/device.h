// A device of the CUDA driver, with its threads and streams. The other files of the driver have headers of their own:
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
//   flag.c      flags in pinned memory, by which a waiting thread sees without CUDA that a stream has come to a mark
//   finish.c    waits until work has ended, then records timings, copies tensors to the host, sets signals
//   graph.c     captured segments
//   branches.c  independent operations of a captured segment, side by side
#ifndef TFC_RUNTIME_DEVICE_CUDA_DEVICE_H
#define TFC_RUNTIME_DEVICE_CUDA_DEVICE_H

#include "runtime/base/array.h"
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

struct tfc_cuda_flag {  // of one stream (flag.h)
  _Atomic uint32_t *at; // in pinned memory
  uint32_t last;        // what the stream writes after its last mark
};

enum { TFC_CUDA_BRANCHES = 4 }; // streams of one captured graph

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
  bool green_events,          // events are made with the green context current (event.h)
      cudnn_green,            // cuDNN's handle belongs to the green context
      pushed;                 // the green context is current on the thread that holds launch_lock
  pthread_mutex_t green_lock; // of the thread on which the green context is current
  pthread_mutex_t staging_lock;
  struct tfc_cuda_staging *staging;
  // Only the copy thread uses the next five fields.
  uint64_t peers_asked;                          // bit i: tried to enable direct copies from GPU i
  uint64_t unpublished_streams;                  // bit i: copies[i] has work that no published value covers yet
  bool unpublished_host;                         // a part of that work copies to the host
  struct tfc_cuda_range recent[TFC_CUDA_RECENT]; // memory ranges of the copies since all copy streams last waited for
                                                 // each other
  uint32_t recent_count;
  // The thread that launches on a stream uses its flag; the copy streams, then the compute stream.
  struct tfc_cuda_flag flags[TFC_CUDA_COPY_STREAMS + 1];
  void *flag_memory;                            // NULL: there are no flags
  _Atomic bool flags_used;                      // false: the events of marks are asked for
  _Atomic uint64_t host_calls, host_call_bytes; // number of operations run on the host, and bytes copied for them
  bool graphs;                                  // segments are captured as graphs
  struct tfc_cuda_piece *capturing; // guarded by launch_lock: the piece that is being captured, which owns the memory
                                    // that is allocated meanwhile
  _Atomic uint64_t replays;         // captured segments that were launched
  // Of captures with branches, made when first needed: their streams but the first, and events; guarded by launch_lock.
  tfc_cuda_stream branches[TFC_CUDA_BRANCHES - 1];
  TFC_ARRAY(tfc_cuda_event) branch_events;
  bool cudnn_used; // the call that is launched has asked for cuDNN's handle; guarded by launch_lock
};
static inline struct tfc_cuda_device *tfc_cuda_device_of(struct tfc_device *d) {
  return (struct tfc_cuda_device *)(void *)d;
}
static inline bool tfc_cuda_is_cuda(const struct tfc_device *d) {
  return d && (d->driver == &tfc_driver_gpu || d->driver == &tfc_driver_vgpu);
}

#endif
