#include "profiler/cupti/toolkit/decode.h"

#include <stdio.h>
#include <string.h>

static uint32_t count_of(int32_t x) {
  return x > 0 ? (uint32_t)x : 0;
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
  snprintf(w.name, sizeof w.name, "%s", k->name ? k->name : "");
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

// What copies and fills have in common.
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
  case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
    const CUpti_ActivitySynchronization2 *s = r;
    tfc_activity_synchronized(activity, (int64_t)s->start, (int64_t)s->end);
    break;
  }
  case CUPTI_ACTIVITY_KIND_MEMORY2: {
    const CUpti_ActivityMemory4 *m = r;
    tfc_activity_allocated(activity, m->bytes, m->memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
    break;
  }
  default: break;
  }
}

void tfc_cupti_decode_buffer(struct tfc_activity *activity, uint8_t *buffer, size_t valid_bytes) {
  CUpti_Activity *record = NULL;
  while (valid_bytes && cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS)
    tfc_cupti_decode(activity, record);
}
