// Fills the table of CUDA calls from cudart, cuBLASLt and cuDNN. Functions that only libcuda has (green contexts) are
// looked up through cudart, so that the plug-in loads on machines without NVIDIA's driver.
#include "runtime/device/cuda/api.h"

#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#ifdef TFC_HAVE_CUDNN
#include <cudnn.h>
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/toolkit/chain.h"

static const char *error_name(int error) {
  return cudaGetErrorName((cudaError_t)error);
}
static const char *error_text(int error) {
  return cudaGetErrorString((cudaError_t)error);
}
static int device_count(int *out) {
  cudaError_t error = cudaGetDeviceCount(out);
  if (error) (void)cudaGetLastError();
  return (int)error;
}

static int properties(int device, struct tfc_cuda_properties *out) {
  struct cudaDeviceProp p;
  cudaError_t error = cudaGetDeviceProperties(&p, device);
  if (error) return (int)error;
  *out = (struct tfc_cuda_properties){.memory = p.totalGlobalMem,
                                      .sm_count = p.multiProcessorCount,
                                      .capability = 10 * p.major + p.minor,
                                      .shared_per_block = p.sharedMemPerBlockOptin,
                                      .l2_bytes = (size_t)p.l2CacheSize,
                                      .copy_engines = p.asyncEngineCount};
  snprintf(out->name, sizeof out->name, "%.95s", p.name);
  (void)cudaDriverGetVersion(&out->driver_version);
  (void)cudaRuntimeGetVersion(&out->runtime_version);
  return 0;
}

// --- The driver's own calls --------------------------------------------------------------------------------------
static struct {
  CUresult (*device_get)(CUdevice *device, int ordinal);
  CUresult (*device_resource)(CUdevice device, CUdevResource *resource, CUdevResourceType type);
  CUresult (*split)(CUdevResource *result, unsigned int *count, const CUdevResource *input, CUdevResource *remaining,
                    unsigned int flags, unsigned int minimum);
  CUresult (*describe)(CUdevResourceDesc *out, CUdevResource *resources, unsigned int count);
  CUresult (*green_create)(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice device, unsigned int flags);
  CUresult (*green_destroy)(CUgreenCtx context);
  CUresult (*green_stream)(CUstream *out, CUgreenCtx context, unsigned int flags, int priority);
  CUresult (*green_context)(CUcontext *out, CUgreenCtx context);
  CUresult (*context_id)(CUcontext context, unsigned long long *out);
  CUresult (*push)(CUcontext context);
  CUresult (*pop)(CUcontext *out);
} driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;
static bool driver_found;

static void find_driver(void) {
  const struct {
    const char *name;
    void *at;
  } calls[] = {{"cuDeviceGet", &driver.device_get},
               {"cuDeviceGetDevResource", &driver.device_resource},
               {"cuDevSmResourceSplitByCount", &driver.split},
               {"cuDevResourceGenerateDesc", &driver.describe},
               {"cuGreenCtxCreate", &driver.green_create},
               {"cuGreenCtxDestroy", &driver.green_destroy},
               {"cuGreenCtxStreamCreate", &driver.green_stream},
               {"cuCtxFromGreenCtx", &driver.green_context},
               {"cuCtxGetId", &driver.context_id},
               {"cuCtxPushCurrent", &driver.push},
               {"cuCtxPopCurrent", &driver.pop}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult result;
    // Asks for the version of these headers; if the driver is older, for 12.5, the first with streams of green
    // contexts.
    const unsigned int versions[] = {CUDART_VERSION, 12050};
    for (int k = 0; k < 2 && !found; k++)
      if (cudaGetDriverEntryPointByVersion(calls[i].name, &found, versions[k], cudaEnableDefault, &result) ||
          result != cudaDriverEntryPointSuccess) {
        (void)cudaGetLastError();
        found = NULL;
      }
    if (!found) return;
    memcpy(calls[i].at, &found, sizeof found);
  }
  driver_found = true;
}

// cuStreamWriteValue32 is looked up by itself: a driver may lack it although it has green contexts.
static CUresult (*write_value)(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned int flags);
static pthread_once_t write_once = PTHREAD_ONCE_INIT;
static void find_write(void) {
  void *found = NULL;
  enum cudaDriverEntryPointQueryResult result;
  if (cudaGetDriverEntryPointByVersion("cuStreamWriteValue32", &found, CUDART_VERSION, cudaEnableDefault, &result) ||
      result != cudaDriverEntryPointSuccess)
    (void)cudaGetLastError();
  else
    memcpy(&write_value, &found, sizeof found);
}
// By default the write comes after a memory fence of the whole system, so what the stream copied to the host before is
// there. Addresses of pinned memory are the same on the host and on every device.
static int write_flag(tfc_cuda_stream stream, uint32_t *flag, uint32_t value) {
  pthread_once(&write_once, find_write);
  return write_value ? (int)write_value(stream, (CUdeviceptr)(uintptr_t)flag, value, CU_STREAM_WRITE_VALUE_DEFAULT)
                     : (int)cudaErrorNotSupported;
}

static int enter(int device) {
  return (int)cudaSetDevice(device);
}

// Divides the multiprocessors into `count` groups, as large as possible. That may be fewer than smCount / count each,
// because the hardware forms only certain groups.
static int split_equally(CUdevResource *groups, uint32_t count, const CUdevResource *all, unsigned int step) {
  unsigned int least = all->sm.minSmPartitionSize > step ? all->sm.minSmPartitionSize : step;
  for (unsigned int each = all->sm.smCount / count / step * step; each >= least; each -= step) {
    unsigned int made = count;
    CUdevResource rest;
    int error = (int)driver.split(groups, &made, all, &rest, 0, each); // CUresult and cudaError_t have the same values
    // The hardware cannot make `count` groups of this size.
    if (error == (int)CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION) continue;
    if (error || made == count) return error;
  }
  return (int)cudaErrorInvalidValue;
}

// Returns the id by which profilers name the context; 0: not known, which profilers accept.
static uint64_t id_of(CUgreenCtx green) {
  CUcontext context = NULL;
  unsigned long long id = 0;
  if (driver.green_context(&context, green) || driver.context_id(context, &id)) return 0;
  return id;
}

static int split(int device, uint32_t count, struct tfc_cuda_partition *out, int *out_granularity, int *out_total) {
  CUdevResource all = {0}, *groups = NULL; // zeroed, because older drivers fill in fewer members
  CUdevice handle;
  int error = 0;
  pthread_once(&driver_once, find_driver);
  if (!driver_found) return (int)cudaErrorNotSupported;
  if ((error = (int)driver.device_get(&handle, device))) return error;
  if ((error = (int)driver.device_resource(handle, &all, CU_DEV_RESOURCE_TYPE_SM))) return error;
  unsigned int step = all.sm.smCoscheduledAlignment ? all.sm.smCoscheduledAlignment : 1;
  *out_granularity = (int)step;
  *out_total = (int)all.sm.smCount;
  if (!(groups = calloc(count, sizeof *groups))) return (int)cudaErrorMemoryAllocation;
  error = split_equally(groups, count, &all, step);
  for (uint32_t i = 0; !error && i < count; i++) {
    CUdevResourceDesc desc;
    CUgreenCtx green = NULL;
    error = (int)driver.describe(&desc, &groups[i], 1);
    if (!error) error = (int)driver.green_create(&green, desc, handle, CU_GREEN_CTX_DEFAULT_STREAM);
    if (!error) out[i] = (struct tfc_cuda_partition){green, (int)groups[i].sm.smCount, id_of(green)};
  }
  for (uint32_t i = 0; error && i < count; i++)
    if (out[i].context) (void)driver.green_destroy(out[i].context);
  free(groups);
  return error;
}

static int unsplit(struct tfc_cuda_partition *partition) {
  return (int)driver.green_destroy(partition->context);
}

static int push(const struct tfc_cuda_partition *partition) {
  CUcontext context = NULL;
  int error = (int)driver.green_context(&context, partition->context);
  return error ? error : (int)driver.push(context);
}
static int pop(void) {
  CUcontext context = NULL;
  return (int)driver.pop(&context);
}

// --- Memory ------------------------------------------------------------------------------------------------------
static int allocate(void **out, size_t bytes) {
  return (int)cudaMalloc(out, bytes ? bytes : 1);
}
static int release(void *memory) {
  return (int)cudaFree(memory);
}
static int allocate_host(void **out, size_t bytes) {
  return (int)cudaHostAlloc(out, bytes, cudaHostAllocPortable);
}
static int release_host(void *memory) {
  return (int)cudaFreeHost(memory);
}
static int memory_info(size_t *out_free, size_t *out_total) {
  return (int)cudaMemGetInfo(out_free, out_total);
}
static int copy(void *to, const void *from, size_t bytes, tfc_cuda_stream stream) {
  return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
static int copy_peer(void *to, int to_device, const void *from, int from_device, size_t bytes, tfc_cuda_stream stream) {
  return (int)cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream);
}
static int set(void *memory, int value, size_t bytes, tfc_cuda_stream stream) {
  return (int)cudaMemsetAsync(memory, value, bytes, stream);
}
static int can_access_peer(int device, int peer, bool *out) {
  int can = 0;
  cudaError_t error = cudaDeviceCanAccessPeer(&can, device, peer);
  *out = can != 0;
  return (int)error;
}
static int enable_peer(int peer) {
  return (int)cudaDeviceEnablePeerAccess(peer, 0);
}
static int last_error(void) {
  return (int)cudaGetLastError();
}

// --- Streams and events ------------------------------------------------------------------------------------------
static int stream_create(const struct tfc_cuda_partition *partition, tfc_cuda_stream *out) {
  if (partition) return (int)driver.green_stream(out, partition->context, CU_STREAM_NON_BLOCKING, 0);
  return (int)cudaStreamCreateWithFlags(out, cudaStreamNonBlocking);
}
static int stream_destroy(tfc_cuda_stream stream) {
  return (int)cudaStreamDestroy(stream);
}
static int stream_synchronize(tfc_cuda_stream stream) {
  return (int)cudaStreamSynchronize(stream);
}
static int stream_wait(tfc_cuda_stream stream, tfc_cuda_event event) {
  return (int)cudaStreamWaitEvent(stream, event, 0);
}
static int event_create(bool timing, tfc_cuda_event *out) {
  return (int)cudaEventCreateWithFlags(out, timing ? cudaEventDefault : cudaEventDisableTiming);
}
static int event_destroy(tfc_cuda_event event) {
  return (int)cudaEventDestroy(event);
}
static int event_record(tfc_cuda_event event, tfc_cuda_stream stream) {
  return (int)cudaEventRecord(event, stream);
}
static int event_query(tfc_cuda_event event) {
  cudaError_t error = cudaEventQuery(event);
  // otherwise a later launch would return this as its own error
  if (error == cudaErrorNotReady) (void)cudaGetLastError();
  return (int)error;
}
static int event_elapsed(tfc_cuda_event begin, tfc_cuda_event end, float *out_ms) {
  return (int)cudaEventElapsedTime(out_ms, begin, end);
}

// --- Graphs ------------------------------------------------------------------------------------------------------
static int capture_begin(tfc_cuda_stream stream) {
  return (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
}

static int capture_count(tfc_cuda_stream stream, size_t *out) {
  enum cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  cudaGraph_t graph = NULL;
  cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, &id, &graph, NULL, NULL, NULL);
  if (error) return (int)error;
  if (status != cudaStreamCaptureStatusActive) return (int)cudaErrorStreamCaptureInvalidated;
  return (int)cudaGraphGetNodes(graph, NULL, out);
}

// Only CUPTI can tell a node's id, and it is in the process only if its collector was loaded. 0: not known.
static uint64_t node_id(cudaGraphNode_t node) {
  int (*ask)(cudaGraphNode_t node, uint64_t * id) = NULL;
  void *found = dlsym(RTLD_DEFAULT, "cuptiGetGraphNodeId");
  uint64_t id = 0;
  if (!found) return 0;
  memcpy(&ask, &found, sizeof found);
  return ask(node, &id) ? 0 : id;
}

static int describe_nodes(cudaGraph_t graph, struct tfc_cuda_graph_node *nodes, size_t capacity, size_t *out_count) {
  size_t count = 0;
  int error = (int)cudaGraphGetNodes(graph, NULL, &count);
  *out_count = count;
  if (error || capacity == 0 || count == 0) return error;
  cudaGraphNode_t *list = calloc(count, sizeof *list);
  if (!list) return (int)cudaErrorMemoryAllocation;
  bool chain = tfc_cuda_follow_chain(graph, list, count);
  if (!chain) {
    (void)cudaGetLastError();
    error = (int)cudaGraphGetNodes(graph, list, &count);
  }
  for (size_t i = 0; !error && i < count && i < capacity; i++) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeKernel;
    error = (int)cudaGraphNodeGetType(list[i], &type);
    nodes[i] = (struct tfc_cuda_graph_node){chain ? node_id(list[i]) : 0, (int)type};
  }
  free(list);
  return error;
}

static int capture_nodes(tfc_cuda_stream stream, struct tfc_cuda_graph_node *nodes, size_t count) {
  enum cudaStreamCaptureStatus status;
  const cudaGraphNode_t *tail = NULL;
  const cudaGraphEdgeData *edges = NULL; // asked for, because the call fails if an edge has data and nobody wants it
  size_t n = 0;
  memset(nodes, 0, count * sizeof *nodes);
  int error = (int)cudaStreamGetCaptureInfo(stream, &status, NULL, NULL, &tail, &edges, &n);
  if (error) return error;
  if (status != cudaStreamCaptureStatusActive) return (int)cudaErrorStreamCaptureInvalidated;
  cudaGraphNode_t *list = calloc(count + 1, sizeof *list);
  if (!list) return (int)cudaErrorMemoryAllocation;
  const bool chain = n == 1 && count && tfc_cuda_follow_back(tail[0], list, count);
  if (!chain) (void)cudaGetLastError();
  for (size_t i = 0; !error && chain && i < count; i++) {
    enum cudaGraphNodeType type = cudaGraphNodeTypeKernel;
    error = (int)cudaGraphNodeGetType(list[i], &type);
    nodes[i] = (struct tfc_cuda_graph_node){node_id(list[i]), (int)type};
  }
  free(list);
  return error;
}

static int capture_end(tfc_cuda_stream stream, struct tfc_cuda_graph_node *nodes, size_t capacity, size_t *out_count,
                       tfc_cuda_graph *out) {
  cudaGraph_t graph = NULL;
  int error = (int)cudaStreamEndCapture(stream, &graph);
  if (error || !graph) {
    (void)cudaGetLastError();
    return error ? error : (int)cudaErrorStreamCaptureInvalidated;
  }
  cudaGraphExec_t made = NULL; // *out stays unset if the call fails, so that the caller does not destroy an invalid
                               // graph
  error = describe_nodes(graph, nodes, capacity, out_count);
  if (!error) error = (int)cudaGraphInstantiate(&made, graph, 0);
  if (!error) *out = made;
  (void)cudaGraphDestroy(graph);
  return error;
}

static void capture_abort(tfc_cuda_stream stream) {
  cudaGraph_t graph = NULL;
  (void)cudaStreamEndCapture(stream, &graph);
  if (graph) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
}

static int graph_launch(tfc_cuda_graph graph, tfc_cuda_stream stream) {
  return (int)cudaGraphLaunch(graph, stream);
}
static int graph_destroy(tfc_cuda_graph graph) {
  return (int)cudaGraphExecDestroy(graph);
}

// --- Libraries ---------------------------------------------------------------------------------------------------
static int blaslt_create(struct cublasLtContext **out, const char **out_error) {
  cublasStatus_t status = cublasLtCreate(out);
  if (status) *out_error = cublasLtGetStatusString(status);
  return (int)status;
}
static int blaslt_destroy(struct cublasLtContext *handle) {
  return (int)cublasLtDestroy(handle);
}
#ifdef TFC_HAVE_CUDNN
static int cudnn_create(tfc_cuda_stream stream, struct cudnnContext **out, const char **out_error) {
  cudnnHandle_t handle = NULL;
  cudnnStatus_t status = cudnnCreate(&handle);
  if (!status) status = cudnnSetStream(handle, stream);
  if (status) {
    *out_error = cudnnGetErrorString(status);
    if (handle) (void)cudnnDestroy(handle);
    return (int)status;
  }
  *out = handle;
  return 0;
}
static int cudnn_destroy(struct cudnnContext *handle) {
  return (int)cudnnDestroy(handle);
}
static int cudnn_stream(struct cudnnContext *handle, tfc_cuda_stream stream) {
  return (int)cudnnSetStream(handle, stream);
}
#endif

static const struct tfc_cuda_api real = {
    .error_name = error_name,
    .error_text = error_text,
    .device_count = device_count,
    .properties = properties,
    .enter = enter,
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .memory_info = memory_info,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_elapsed = event_elapsed,
    .write_flag = write_flag,
    .copy = copy,
    .copy_peer = copy_peer,
    .set = set,
    .can_access_peer = can_access_peer,
    .enable_peer = enable_peer,
    .last_error = last_error,
    .capture_begin = capture_begin,
    .capture_count = capture_count,
    .capture_nodes = capture_nodes,
    .capture_end = capture_end,
    .capture_abort = capture_abort,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .split = split,
    .unsplit = unsplit,
    .push = push,
    .pop = pop,
    .blaslt_create = blaslt_create,
    .blaslt_destroy = blaslt_destroy,
#ifdef TFC_HAVE_CUDNN
    .cudnn_create = cudnn_create,
    .cudnn_destroy = cudnn_destroy,
    .cudnn_stream = cudnn_stream,
#endif
};

__attribute__((constructor)) static void install(void) {
  tfc_cuda_api = &real;
}
