#include "runtime/device/cpu/narrow.h"

#include "runtime/ops/math_narrow.h"

enum { GRAIN = 32768 };

struct narrow_job {
  tfc_dtype type;
  uint16_t *narrow;
  float *wide;
};

static void widen_range(void *arg, int64_t begin, int64_t end) {
  const struct narrow_job *j = arg;
  ops_narrow_to_float(j->type, j->narrow + begin, j->wide + begin, end - begin);
}

static void narrow_range(void *arg, int64_t begin, int64_t end) {
  const struct narrow_job *j = arg;
  ops_narrow_from_float(j->type, j->wide + begin, j->narrow + begin, end - begin);
}

tfc_status tfc_cpu_widen(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *t, struct tfc_buffer **out_held,
                         const float **out) {
  const int64_t n = tfc_tensor_elements(t);
  if (t->dtype == TFC_FLOAT) {
    *out = t->data;
    return NULL;
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_scratch(ctx, (size_t)n * sizeof(float) + 64, out_held));
  struct narrow_job job = {t->dtype, t->data, (*out_held)->data};
  tfc_kernel_parallel_for(ctx, n, GRAIN, widen_range, &job);
  *out = job.wide;
  return NULL;
}

void tfc_cpu_narrow(struct tfc_kernel_ctx *ctx, tfc_dtype type, const float *x, void *y, int64_t n) {
  struct narrow_job job = {type, y, (float *)(uintptr_t)x};
  tfc_kernel_parallel_for(ctx, n, GRAIN, narrow_range, &job);
}
