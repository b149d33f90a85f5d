// The table of all CUDA functions that this driver calls. The plug-in fills it from the CUDA runtime and NVIDIA's
// driver library (toolkit/api.c). Tests use a fake table: its memory comes from malloc, and its streams are threads.
//
// Every function returns a cudaError_t as int; 0 is success. Types are declared by CUDA's own struct names, so that
// this header needs no CUDA toolkit.
#ifndef TFC_RUNTIME_DEVICE_CUDA_API_H
#define TFC_RUNTIME_DEVICE_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct cublasLtContext;
struct cudnnContext;
typedef struct CUstream_st *tfc_cuda_stream;
typedef struct CUevent_st *tfc_cuda_event;
typedef struct CUgraphExec_st *tfc_cuda_graph;

// The errors that the driver distinguishes (cudaError_t).
enum {
  TFC_CUDA_OK = 0,
  TFC_CUDA_OUT_OF_MEMORY = 2,
  TFC_CUDA_NO_DEVICE = 100,
  TFC_CUDA_INSUFFICIENT_DRIVER = 35,
  TFC_CUDA_INVALID_HANDLE = 400, // a stream or event that was destroyed, or is of another context
  TFC_CUDA_PEER_ALREADY = 704,
  TFC_CUDA_NOT_READY = 600
};

struct tfc_cuda_properties {
  char name[96];
  uint64_t memory; // bytes of the device
  int sm_count;
  int capability; // compute capability times 10: 90 stands for 9.0
  size_t shared_per_block, l2_bytes;
  int copy_engines;
  int driver_version, runtime_version;
};

// A green context: a group of multiprocessors of one GPU.
struct tfc_cuda_partition {
  void *context; // CUgreenCtx
  int sm_count;
  uint64_t id; // from cuCtxGetId; 0: not known
};

// A node of a captured graph, as CUDA reports it.
struct tfc_cuda_graph_node {
  uint64_t id; // CUPTI's graphNodeId, 0: not known
  int kind;    // cudaGraphNodeType
};
// the kinds of nodes that do work; other kinds have other numbers
enum { TFC_CUDA_GRAPH_KERNEL, TFC_CUDA_GRAPH_COPY, TFC_CUDA_GRAPH_FILL };

struct tfc_cuda_api {
  const char *(*error_name)(int error);
  const char *(*error_text)(int error);
  int (*device_count)(int *out);
  int (*properties)(int device, struct tfc_cuda_properties *out);
  // Makes the device's primary context current on the calling thread. Green contexts are made current (push) only for a
  // library that requires it, because a launch's stream already decides which multiprocessors run it.
  int (*enter)(int device);
  int (*allocate)(void **out, size_t bytes); // cudaMalloc: on the calling thread's device
  int (*release)(void *memory);
  int (*allocate_host)(void **out, size_t bytes); // the memory is pinned and portable
  int (*release_host)(void *memory);
  int (*memory_info)(size_t *out_free, size_t *out_total);
  int (*stream_create)(const struct tfc_cuda_partition *partition, tfc_cuda_stream *out); // non-blocking
  int (*stream_destroy)(tfc_cuda_stream stream);
  int (*stream_synchronize)(tfc_cuda_stream stream);
  int (*stream_wait)(tfc_cuda_stream stream, tfc_cuda_event event);
  int (*event_create)(bool timing, tfc_cuda_event *out);
  int (*event_destroy)(tfc_cuda_event event);
  int (*event_record)(tfc_cuda_event event, tfc_cuda_stream stream);
  int (*event_query)(tfc_cuda_event event); // TFC_CUDA_NOT_READY: the event is not reached
  int (*event_elapsed)(tfc_cuda_event begin, tfc_cuda_event end, float *out_ms);
  // When the stream has done all that it was given before, it writes `value` to `flag` (pinned memory), where the host
  // reads it without asking CUDA. NULL: this CUDA has no such call.
  int (*write_flag)(tfc_cuda_stream stream, uint32_t *flag, uint32_t value);
  int (*copy)(void *to, const void *from, size_t bytes,
              tfc_cuda_stream stream); // CUDA finds the direction from the addresses
  int (*copy_peer)(void *to, int to_device, const void *from, int from_device, size_t bytes, tfc_cuda_stream stream);
  int (*set)(void *memory, int value, size_t bytes, tfc_cuda_stream stream);
  int (*can_access_peer)(int device, int peer, bool *out);
  int (*enable_peer)(int peer); // from the calling thread's device
  int (*last_error)(void);      // this thread's last error; clears it unless it is sticky

  // Captures use the relaxed mode. They begin and end on one stream; others join by waiting for an event that was
  // recorded in the capture, and the first stream has to wait for what they captured before it ends.
  int (*capture_begin)(tfc_cuda_stream stream);
  // Counts the nodes that the capture has so far, on all streams. Nodes that appear between two calls belong to the
  // operations launched in between.
  int (*capture_count)(tfc_cuda_stream stream, size_t *out);
  // Describes the last `count` nodes that this stream has captured, in their order. All ids are 0 if these nodes do not
  // follow each other (a library has made branches of its own).
  int (*capture_nodes)(tfc_cuda_stream stream, struct tfc_cuda_graph_node *nodes, size_t count);
  // nodes (optional, `capacity` of them): filled in order of capture, if all nodes follow each other; out_count: how
  // many there are.
  int (*capture_end)(tfc_cuda_stream stream, struct tfc_cuda_graph_node *nodes, size_t capacity, size_t *out_count,
                     tfc_cuda_graph *out);
  void (*capture_abort)(tfc_cuda_stream stream);
  int (*graph_launch)(tfc_cuda_graph graph, tfc_cuda_stream stream);
  int (*graph_destroy)(tfc_cuda_graph graph);

  // Splits the device's multiprocessors into `count` equal groups, as large as possible, in one call, and makes a green
  // context of each group. out_granularity, out_total: properties of the device. cudaErrorInvalidValue (1): so many
  // groups are impossible.
  int (*split)(int device, uint32_t count, struct tfc_cuda_partition *out, int *out_granularity, int *out_total);
  int (*unsplit)(struct tfc_cuda_partition *partition);

  // `push` makes the partition's green context current on the calling thread; `pop` makes the previous context current
  // again. A green context may be current on one thread at a time. NULL: this CUDA is too old to have these calls.
  int (*push)(const struct tfc_cuda_partition *partition);
  int (*pop)(void);

  // These create handles of libraries, in the context that is current on the calling thread. *out_error: the message if
  // it fails (static text).
  int (*blaslt_create)(struct cublasLtContext **out, const char **out_error);
  int (*blaslt_destroy)(struct cublasLtContext *handle);
  int (*cudnn_create)(tfc_cuda_stream stream, struct cudnnContext **out, const char **out_error); // NULL: no cuDNN
  int (*cudnn_destroy)(struct cudnnContext *handle);
  int (*cudnn_stream)(struct cudnnContext *handle, tfc_cuda_stream stream);
};

// The table that all devices use. The plug-in or a test sets it before the first device is discovered; until then it is
// NULL.
extern const struct tfc_cuda_api *tfc_cuda_api;

// Errors after which the context is lost: every later call on the device fails, too.
bool tfc_cuda_error_is_sticky(int error);
// Makes the device current on this thread. Returns CUDA's error.
int tfc_cuda_enter(const struct tfc_cuda_api *api, int ordinal);
// The device that is current on this thread; -1: none was entered by this table.
int tfc_cuda_entered(const struct tfc_cuda_api *api);
// Make a green context of the thread's device current, and no longer. A device that the thread enters meanwhile takes
// its place, until the thread enters the first one again.
int tfc_cuda_push(const struct tfc_cuda_api *api, const struct tfc_cuda_partition *partition);
void tfc_cuda_pop(const struct tfc_cuda_api *api);

#endif
