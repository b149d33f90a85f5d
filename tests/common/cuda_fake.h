// A fake of the CUDA calls. Device memory is host memory at addresses that host code cannot read; each stream is a
// thread with a queue; an event is a place in a queue. A copy reads and writes pinned memory when the stream reaches
// it, and pageable memory at once, after the stream's earlier work, as CUDA does (these copies are also counted as
// PAGEABLE). Any call can be made to fail, by its number.
#ifndef TFC_TESTS_COMMON_CUDA_FAKE_H
#define TFC_TESTS_COMMON_CUDA_FAKE_H

#include "runtime/device/cuda/api.h"

// ANY: all but WRITE_FLAG, whose failure ends no step.
#define TFC_CUDA_FAKE_CALLS(X)                                                                                         \
  X(ANY)                                                                                                               \
  X(ENTER)                                                                                                             \
  X(ALLOCATE)                                                                                                          \
  X(ALLOCATE_HOST)                                                                                                     \
  X(STREAM_CREATE)                                                                                                     \
  X(STREAM_SYNCHRONIZE)                                                                                                \
  X(STREAM_WAIT)                                                                                                       \
  X(EVENT_CREATE)                                                                                                      \
  X(EVENT_RECORD)                                                                                                      \
  X(EVENT_QUERY) X(EVENT_ELAPSED) X(WRITE_FLAG) X(COPY) X(PAGEABLE) X(SET) X(CAPTURE) X(GRAPH_LAUNCH) X(SPLIT) X(PEER)
enum tfc_cuda_fake_call {
#define TFC_CUDA_FAKE_ENUM(name) TFC_CUDA_FAKE_##name,
  TFC_CUDA_FAKE_CALLS(TFC_CUDA_FAKE_ENUM)
#undef TFC_CUDA_FAKE_ENUM
      TFC_CUDA_FAKE_CALL_COUNT
};

extern const struct tfc_cuda_api tfc_cuda_fake_api;
struct tfc_cuda_fake_options {
  int devices, sm_count, granularity;
  uint64_t memory;   // bytes of each device
  bool readable;     // host code can read the addresses of device memory
  bool idle;         // kernels compute nothing, for callers that only count them
  bool lost_flags;   // streams do not write the flags that they are told to write
  bool loose_events; // streams of a green context accept events of the primary context, too
  bool strict_cudnn; // cuDNN handles accept a stream only if the stream's own context is current
};
// Installs the fake as tfc_cuda_api, and resets failures and counts.
void tfc_cuda_fake_install(const struct tfc_cuda_fake_options *options);
// The n-th call of this kind from now on fails with `error`, and so do the `times` - 1 calls after it (n 0: none).
// After a sticky error all later calls fail.
void tfc_cuda_fake_fail(enum tfc_cuda_fake_call call, uint64_t n, uint64_t times, int error);
// The n-th piece of work from now on fails when a stream reaches it: every later call returns `error`.
void tfc_cuda_fake_fail_work(uint64_t n, int error);
void tfc_cuda_fake_hang(uint64_t n);       // the n-th piece of work from now never ends
void tfc_cuda_fake_delay(int64_t ns);      // waits so long before each piece of work, on the stream's thread
void tfc_cuda_fake_shuffle(uint64_t seed); // each delay is a random part of the given one
uint64_t tfc_cuda_fake_calls(enum tfc_cuda_fake_call call);
uint64_t tfc_cuda_fake_works(void); // kernels, copies and fills that streams have executed so far
uint64_t tfc_cuda_fake_bytes(void); // of device memory that is allocated
// Returns how many calls so far broke CUDA's rules: allocating or freeing memory while another thread captures; waiting
// for, querying or destroying a stream during its capture; making a handle of cuDNN while another thread captures, or
// destroying one while a stream of the device is captured; destroying a green context that still has streams; using or
// destroying an event of such a context; recording an event of one device on a stream of another; asking for the time
// between events that were made without timing; giving memory back that copies and fills of a stream will still use.
// Calls that CUDA refuses are refused here, too (see `violation` in cuda_fake.c), and counted.
uint64_t tfc_cuda_fake_violations(void);
uint64_t tfc_cuda_fake_green(void); // the green context that is current on this thread, 0: none
void tfc_cuda_fake_reset(void);     // clears a sticky error, as a new process would

// The graph that was launched last: its pieces of work, how many of them follow each other at least, and its branches
// (streams of its capture). `launched` is called for every launch of one, under the fake's lock.
struct tfc_cuda_fake_graph {
  size_t works, longest;
  uint32_t lanes;
};
struct tfc_cuda_fake_graph tfc_cuda_fake_graph(void);
void tfc_cuda_fake_watch_graphs(void (*launched)(const struct tfc_cuda_fake_graph *graph));

// What a profiler gets: a correlation id for each launch, requested on the launching thread (the launch of a captured
// graph has one id for all its nodes, `works` of them), and each piece of work after its stream has executed it, or has
// dropped it because of a sticky error.
struct tfc_cuda_fake_seen {
  enum { TFC_CUDA_FAKE_KERNEL, TFC_CUDA_FAKE_COPIED, TFC_CUDA_FAKE_FILLED, TFC_CUDA_FAKE_DROPPED } kind;
  int64_t start_ns, end_ns;
  uint32_t context, stream, correlation;
  uint64_t graph_node, bytes;
  const char *name; // of a kernel, if it has one (tfc_cuda_fake_name)
};
struct tfc_cuda_fake_watcher {
  uint32_t (*launched)(uint64_t works);
  void (*ran)(const struct tfc_cuda_fake_seen *seen);
};
void tfc_cuda_fake_watch(const struct tfc_cuda_fake_watcher *watcher); // NULL: none; a watcher stays installed

// Takes the place of a kernel launch: calls `fn` with a copy of `argument` (size bytes) on the stream's thread.
int tfc_cuda_fake_launch(tfc_cuda_stream stream, void (*fn)(void *argument), const void *argument, size_t size);
// Names the kernels that this thread launches from now on, for a profiler: static text; NULL: they have no name.
void tfc_cuda_fake_name(const char *name);
void *tfc_cuda_fake_host(const void *device_address); // what a kernel reads
void tfc_cuda_fake_idle(void);                        // returns when every stream has executed all its work

#endif
