// Decodes CUPTI's records one by one. Only this file depends on the layout of CUPTI's structs, which changes with every
// version of CUPTI; all decisions about records are in profiler/activity.c, where they can be tested without CUPTI.
// Unknown kinds are skipped: the session decides which kinds are recorded. Names are shortened here, because CUPTI's
// pointers to them are invalid once its buffer is given back.
#include "profiler/cupti/toolkit/decode.h"

#include <stdio.h>
#include <string.h>

static uint32_t count_of(int32_t x) {
  return x > 0 ? (uint32_t)x : 0;
}

static size_t number_at(const char **at) {
  size_t n = 0;
  while (**at >= '0' && **at <= '9' && n < 100000) n = 10 * n + (size_t)(*(*at)++ - '0');
  return n;
}
// Extracts the names from a mangled C++ name, without their namespaces: "binary_kernel GreaterEqual". Only the
// beginning of a name is stored, and the beginning of a mangled name contains little more than the source file.
static void name_of(const char *name, char out[TFC_ACTIVITY_NAME]) {
  size_t used = 0;
  out[0] = 0;
  if (strncmp(name, "_Z", 2) != 0) {
    snprintf(out, TFC_ACTIVITY_NAME, "%s", name);
    return;
  }
  const char *end = name + strlen(name);
  for (const char *at = name + 2; at < end;) {
    if (*at >= '0' && *at <= '9') {
      size_t n = number_at(&at);
      if (n > (size_t)(end - at)) break;
      bool place = !strncmp(at, "_GLOBAL__N", 10) || !strncmp(at, "tfc_", 4) || (n == 3 && !strncmp(at, "tfc", 3));
      if (!place && used < TFC_ACTIVITY_NAME - 1)
        used += (size_t)snprintf(out + used, TFC_ACTIVITY_NAME - used, "%s%.*s", used ? " " : "", (int)n, at);
      at += n;
    } else if (*at == 'L' && at[1] >= 'a' && at[1] <= 'z') { // a number as a template's argument
      at += strcspn(at, "E");
    } else if (*at == 'S' || *at == 'T') { // something that was named before
      at++;
      while ((*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z')) at++;
    } else {
      at++;
    }
  }
  if (!used) snprintf(out, TFC_ACTIVITY_NAME, "%s", name);
}

static void decode_kernel(struct tfc_activity *activity, const CUpti_ActivityKernel10 *k) {
  struct tfc_activity_work w = {.kind = TFC_ACTIVITY_KERNEL,
                                .start_ns = (int64_t)k->start,
                                .end_ns = (int64_t)k->end,
                                .context = k->contextId,
                                .stream = k->streamId,
                                .correlation = k->correlationId,
                                .graph_node = k->graphNodeId,
                                .grid = {count_of(k->gridX), count_of(k->gridY), count_of(k->gridZ)},
                                .block = {count_of(k->blockX), count_of(k->blockY), count_of(k->blockZ)},
                                .registers = k->registersPerThread,
                                .shared = count_of(k->staticSharedMemory) + count_of(k->dynamicSharedMemory)};
  name_of(k->name ? k->name : "", w.name);
  tfc_activity_add(activity, &w);
}

static const char *direction_of(uint8_t kind) {
  switch (kind) {
  case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD: return "HtoD";
  case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH: return "DtoH";
  case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD: return "DtoD";
  case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH: return "HtoH";
  case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP: return "PtoP";
  default: return "other";
  }
}

// The fields that records of copies and fills have in common.
#define WORK_OF(record, of_kind)                                                                                       \
  (struct tfc_activity_work) {                                                                                         \
    .kind = (of_kind), .start_ns = (int64_t)(record)->start, .end_ns = (int64_t)(record)->end,                         \
    .context = (record)->contextId, .stream = (record)->streamId, .correlation = (record)->correlationId,              \
    .graph_node = (record)->graphNodeId, .bytes = (record)->bytes                                                      \
  }

static void decode_copy(struct tfc_activity *activity, const CUpti_ActivityMemcpy6 *c) {
  struct tfc_activity_work w = WORK_OF(c, TFC_ACTIVITY_COPY);
  snprintf(w.direction, sizeof w.direction, "%s", direction_of(c->copyKind));
  snprintf(w.name, sizeof w.name, "copy %s", w.direction);
  tfc_activity_add(activity, &w);
}

static void decode_peer_copy(struct tfc_activity *activity, const CUpti_ActivityMemcpyPtoP4 *c) {
  struct tfc_activity_work w = WORK_OF(c, TFC_ACTIVITY_COPY);
  snprintf(w.direction, sizeof w.direction, "PtoP");
  snprintf(w.name, sizeof w.name, "copy PtoP");
  tfc_activity_add(activity, &w);
}

static void decode_set(struct tfc_activity *activity, const CUpti_ActivityMemset4 *m) {
  struct tfc_activity_work w = WORK_OF(m, TFC_ACTIVITY_SET);
  snprintf(w.name, sizeof w.name, "fill");
  tfc_activity_add(activity, &w);
}

static const char *waited_for(CUpti_ActivitySynchronizationType type) {
  switch (type) {
  case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE: return "event";
  case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT: return "stream waits for event";
  case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE: return "stream";
  case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE: return "context";
  default: return "other";
  }
}

// A query that found its work unfinished does not count as a wait: there may be thousands of them in a step.
static void decode_synchronization(struct tfc_activity *activity, const CUpti_ActivitySynchronization2 *s) {
  if (s->returnValue != CUDA_SUCCESS) return;
  struct tfc_activity_call c = {.kind = TFC_ACTIVITY_SYNCHRONIZE,
                                .start_ns = (int64_t)s->start,
                                .end_ns = (int64_t)s->end,
                                .context = s->contextId,
                                .stream = s->streamId,
                                .identity = s->correlationId};
  snprintf(c.name, sizeof c.name, "%s", waited_for(s->type));
  tfc_activity_call(activity, &c);
}

static const char *memory_of(CUpti_ActivityMemoryKind kind) {
  switch (kind) {
  case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE: return "pageable";
  case CUPTI_ACTIVITY_MEMORY_KIND_PINNED: return "pinned";
  case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE: return "device";
  case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY: return "array";
  case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED: return "managed";
  default: return "other";
  }
}

static void decode_memory(struct tfc_activity *activity, const CUpti_ActivityMemory4 *m) {
  const bool released = m->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  struct tfc_activity_call c = {.kind = released ? TFC_ACTIVITY_RELEASE : TFC_ACTIVITY_ALLOCATE,
                                .start_ns = (int64_t)m->timestamp,
                                .end_ns = (int64_t)m->timestamp,
                                .context = m->contextId,
                                .stream = m->isAsync ? m->streamId : TFC_NONE,
                                .bytes = m->bytes,
                                .identity = m->address};
  snprintf(c.name, sizeof c.name, "%s", memory_of(m->memoryKind));
  tfc_activity_call(activity, &c);
}

void tfc_cupti_decode(struct tfc_activity *activity, const CUpti_Activity *record) {
  const void *r = record; // records are packed to 8 bytes, as the buffers are
  switch (record->kind) {
  case CUPTI_ACTIVITY_KIND_KERNEL:
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: decode_kernel(activity, r); break;
  case CUPTI_ACTIVITY_KIND_MEMCPY: decode_copy(activity, r); break;
  case CUPTI_ACTIVITY_KIND_MEMCPY2: decode_peer_copy(activity, r); break;
  case CUPTI_ACTIVITY_KIND_MEMSET: decode_set(activity, r); break;
  case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
    const CUpti_ActivityExternalCorrelation *e = r;
    if (e->externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
      tfc_activity_correlate(activity, e->correlationId, e->externalId);
    break;
  }
  case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: decode_synchronization(activity, r); break;
  case CUPTI_ACTIVITY_KIND_MEMORY2: decode_memory(activity, r); break;
  default: break;
  }
}

void tfc_cupti_decode_buffer(struct tfc_activity *activity, uint8_t *buffer, size_t valid_bytes) {
  CUpti_Activity *record = NULL;
  CUptiResult result = CUPTI_ERROR_MAX_LIMIT_REACHED; // the end of the buffer
  while (valid_bytes && (result = cuptiActivityGetNextRecord(buffer, valid_bytes, &record)) == CUPTI_SUCCESS)
    tfc_cupti_decode(activity, record);
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) tfc_activity_drop(activity, 1); // the records after it cannot be read
}
