// libtfc_cupti.so beside fake_plugin.c's libtfc_cuda.so: every marked region is one kernel, or one copy, that ran while
// it was marked.
#include "tests/common/fake_profiler.h"

#include <stdio.h>

static void pop(void) {
  bool copy = fake_marked & TFC_TRACE_UID_TRANSFER;
  struct tfc_activity_work w = {.kind = copy ? TFC_ACTIVITY_COPY : TFC_ACTIVITY_KERNEL,
                                .start_ns = fake_marked_at,
                                .end_ns = tfc_now_ns(),
                                .context = 1 + (uint32_t)(fake_marked >> 32 & 0xff),
                                .stream = copy ? 14 : 13,
                                .bytes = copy ? 4 : 0};
  snprintf(w.name, sizeof w.name, "%s", copy ? "copy DtoD" : "fake kernel");
  snprintf(w.direction, sizeof w.direction, "%s", copy ? "DtoD" : "");
  fake_add(&w);
}

const struct tfc_gpu_profiler tfc_gpu_profiler = {.name = "a fake profiler",
                                                  .start = fake_start,
                                                  .push = fake_push,
                                                  .pop = pop,
                                                  .flush = fake_flush,
                                                  .record = fake_record};
