// The only CUPTI session of the process. It must be set up in this order: the clock, then the buffers, then the kinds
// of records; and all of it before CUDA loads its modules. Buffers are a few MiB and are reused, so that nothing is
// allocated while a step runs. They are decoded on CUPTI's own thread when they are full, or between steps when they
// are flushed. CUPTI needs cleared buffers, and would clear a whole buffer on the launching thread, although a step has
// only a few records. So the part that was used is cleared here, after decoding.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/cupti/toolkit/decode.h"
#include "profiler/gpu.h"

enum { BUFFER = 4 << 20, SMALL_BUFFER = 256 << 10 };

struct buffer {
  struct buffer *next;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer *spare;
static struct tfc_activity *target;
static CUpti_SubscriberHandle subscriber;
static bool started;
static size_t buffer_size = BUFFER;

static uint64_t CUPTIAPI now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void CUPTIAPI buffer_wanted(uint8_t **buffer, size_t *size, size_t *max_records) {
  pthread_mutex_lock(&lock);
  struct buffer *b = spare;
  if (b) spare = b->next;
  pthread_mutex_unlock(&lock);
  if (b)
    b->next = NULL; // the pointer is the only part that is not zero
  else
    b = calloc(1, buffer_size);
  *buffer = (uint8_t *)b; // if this is NULL, CUPTI counts the records that it drops
  *size = b ? buffer_size : 0;
  *max_records = 0;
}

static void CUPTIAPI buffer_done(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  size_t dropped = 0;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS && dropped)
    tfc_activity_drop(target, dropped);
  if (!buffer) return;
  tfc_cupti_decode_buffer(target, buffer, valid);
  memset(buffer, 0, valid < size ? valid : size);
  struct buffer *b = (struct buffer *)(void *)buffer;
  pthread_mutex_lock(&lock);
  b->next = spare;
  spare = b;
  pthread_mutex_unlock(&lock);
}

// The nodes of an instantiated graph are clones of those that were captured, with numbers of their own.
static void CUPTIAPI node_cloned(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info) {
  (void)data;
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || id != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) return;
  const CUpti_ResourceData *resource = info;
  const CUpti_GraphData *graph = resource->resourceDescriptor;
  uint64_t original = 0, clone = 0;
  if (cuptiGetGraphNodeId(graph->originalNode, &original) == CUPTI_SUCCESS &&
      cuptiGetGraphNodeId(graph->node, &clone) == CUPTI_SUCCESS)
    tfc_activity_clone(target, original, clone);
}

// Makes an error that tells the user what to change.
static tfc_status refused(CUptiResult result, const char *doing) {
  const char *text = NULL;
  switch (result) {
  case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    return tfc_status_make(TFC_UNAVAILABLE,
                           "CUPTI cannot be used: another profiler or a debugger is attached to this process");
  case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
  case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
    return tfc_status_make(TFC_UNAVAILABLE, "CUPTI cannot be used: no permission to profile the GPU (the driver option "
                                            "NVreg_RestrictProfilingToAdminUsers, or the container's capabilities)");
  case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    return tfc_status_make(TFC_UNAVAILABLE, "CUPTI cannot be used: the GPU is in confidential-computing mode");
  case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
    return tfc_status_make(TFC_UNAVAILABLE, "CUPTI cannot be used: the GPU is split by MIG");
  default: break;
  }
  if (cuptiGetErrorMessage(result, &text) != CUPTI_SUCCESS || !text) text = "unknown error";
  return tfc_status_make(TFC_UNAVAILABLE, "CUPTI cannot be used: %s: %s (%d)", doing, text, (int)result);
}

static const struct {
  CUpti_ActivityKind kind;
  const char *name;
} kinds[] = {{CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, "external correlation"},
             {CUPTI_ACTIVITY_KIND_RUNTIME, "runtime calls"},     // only these records contain correlation ids
             {CUPTI_ACTIVITY_KIND_DRIVER, "driver calls"},       // cuBLASLt and cuDNN launch through the driver
             {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "kernels"}, // the kind KERNEL would make kernels run one after
                                                                 // another
             {CUPTI_ACTIVITY_KIND_MEMCPY, "copies"},
             {CUPTI_ACTIVITY_KIND_MEMCPY2, "peer copies"},
             {CUPTI_ACTIVITY_KIND_MEMSET, "fills"},
             {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
              NULL}, // the measurement does not need it: without it reports only lack waits and memory calls
             {CUPTI_ACTIVITY_KIND_MEMORY2, NULL}};

// Calls that launch nothing and are made very often (a waiting thread queries its event again and again): their records
// would fill the buffers. Enabling a kind of record enables them again.
static const CUpti_CallbackId quiet_runtime[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020,        CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaEventElapsedTime_v3020,  CUPTI_RUNTIME_TRACE_CBID_cudaEventElapsedTime_v12080,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020,   CUPTI_RUNTIME_TRACE_CBID_cudaStreamQuery_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020, CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,   CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020,         CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000};
static const CUpti_CallbackId quiet_driver[] = {CUPTI_DRIVER_TRACE_CBID_cuEventQuery,
                                                CUPTI_DRIVER_TRACE_CBID_cuEventRecord,
                                                CUPTI_DRIVER_TRACE_CBID_cuEventElapsedTime,
                                                CUPTI_DRIVER_TRACE_CBID_cuEventElapsedTime_v2,
                                                CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent,
                                                CUPTI_DRIVER_TRACE_CBID_cuStreamQuery,
                                                CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32,
                                                CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_v2,
                                                CUPTI_DRIVER_TRACE_CBID_cuCtxSetCurrent,
                                                CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent,
                                                CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
                                                CUPTI_DRIVER_TRACE_CBID_cuKernelGetAttribute,
                                                CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState};

// A waiting thread queries its event again and again, and each answer would be a record. Only completed waits should be
// recorded; where CUPTI cannot do that, reports have no waits.
static void without_queries(void) {
  if (cuptiActivityEnableAllSyncRecords(0)) (void)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
}

static tfc_status record(bool on) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    CUptiResult result = on ? cuptiActivityEnable(kinds[i].kind) : cuptiActivityDisable(kinds[i].kind);
    if (result && kinds[i].name) return refused(result, kinds[i].name);
  }
  if (on) without_queries();
  // If CUPTI refuses one, its records only take time.
  for (size_t i = 0; on && i < sizeof quiet_runtime / sizeof *quiet_runtime; i++)
    (void)cuptiActivityEnableRuntimeApi(quiet_runtime[i], 0);
  for (size_t i = 0; on && i < sizeof quiet_driver / sizeof *quiet_driver; i++)
    (void)cuptiActivityEnableDriverApi(quiet_driver[i], 0);
  return NULL;
}

// Later releases add fields at the end of records: records of a later release can be read with the known layout, those
// of an earlier one are too short. Since 13.0 the version is numbered like the toolkit: 130001.
static tfc_status check_version(void) {
  uint32_t version = 0;
  CUptiResult result = cuptiGetVersion(&version);
  if (result) return refused(result, "asking for its version");
  if (version / 10000 == CUPTI_API_VERSION / 10000 && version / 100 >= CUPTI_API_VERSION / 100) return NULL;
  return tfc_status_make(
      TFC_UNAVAILABLE,
      "CUPTI cannot be used: the library that was loaded is of version %u, records are read as those "
      "of %u (is another CUDA on the library path?)",
      version, (unsigned)CUPTI_API_VERSION);
}

// Tells CUPTI that the buffers which it gets are cleared already. A CUPTI that does not accept this clears them
// itself on the launching thread; then they are small, so that this takes little time.
static void clear_buffers_here(void) {
  uint8_t zeroed = 1;
  size_t size = sizeof zeroed;
  buffer_size =
      cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, &size, &zeroed) ? SMALL_BUFFER : BUFFER;
}

static tfc_status start(struct tfc_activity *activity) {
  if (started) {
    target = activity;
    return NULL;
  }
  TFC_RETURN_IF_ERROR(check_version());
  CUptiResult result = CUPTI_SUCCESS;
  target = activity;
  result = cuptiSubscribe(&subscriber, node_cloned, NULL); // fails if another profiler is attached
  if (result) return refused(result, "subscribing");
  result = cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
  if (result) goto failed;
  if ((result = cuptiActivityRegisterTimestampCallback(now))) goto failed;
  clear_buffers_here();
  if ((result = cuptiActivityRegisterCallbacks(buffer_wanted, buffer_done))) goto failed;
  tfc_status s = record(true);
  if (s) { // CUDA events time the work instead, so CUPTI's recording is switched off
    tfc_status_free(record(false));
    (void)cuptiUnsubscribe(subscriber);
    return s;
  }
  started = true;
  return NULL;
failed:
  (void)cuptiUnsubscribe(subscriber);
  return refused(result, "setting it up");
}

static void push(uint64_t external) {
  (void)cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, external);
}

static void pop(void) {
  uint64_t last = 0;
  (void)cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

static tfc_status flush(void) {
  CUptiResult result = cuptiActivityFlushAll(0); // flushes finished records only; all work has finished by now
  if (result) return refused(result, "flushing");
  size_t dropped = 0;
  if (cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped) == CUPTI_SUCCESS && dropped)
    tfc_activity_drop(target, dropped);
  return NULL;
}

const struct tfc_gpu_profiler tfc_gpu_profiler = {
    .name = "CUPTI", .start = start, .push = push, .pop = pop, .flush = flush, .record = record};
