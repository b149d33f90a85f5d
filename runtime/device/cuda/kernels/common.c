// Host code that rows need before a launch: reading values that decide what is launched, and how operands broadcast.
// Neighbouring dimensions that broadcast in the same way are joined; what remains is passed to kernels as strides. So
// one kernel handles every rank, and a flat kernel handles contiguous operands. Several elements are read at once only
// if all operands and the innermost dimension are aligned: this is decided for each launch, because addresses differ.
#include "runtime/device/cuda/kernels/common.h"

#include "runtime/ops/math_elementwise.h"

tfc_status tfc_cuda_value(struct tfc_cuda_launch *l, uint32_t i, const struct tfc_tensor *constant, bool on_host,
                          struct tfc_cuda_value *out) {
  const struct tfc_tensor *t = constant ? constant : l->ctx->inputs[i];
  if (constant || on_host) {
    out->tensor = t;
    return NULL;
  }
  if (t->size > sizeof out->bytes)
    return tfc_status_make(TFC_UNIMPLEMENTED, "input %u decides what is run and has %zu bytes on the device", i,
                           t->size);
  out->copy = *t;
  out->copy.data = out->bytes;
  out->copy.buffer = NULL;
  out->tensor = &out->copy;
  return t->size ? tfc_cuda_read(l, t, out->bytes) : NULL;
}

tfc_status tfc_cuda_set_output(struct tfc_cuda_launch *l, uint32_t i, const struct tfc_tensor *value) {
  struct tfc_tensor *t = l->ctx->outputs[i];
  const bool has_place = t->data && !t->buffer; // memory that the plan assigned
  if (has_place || tfc_kernel_is_borrowed(l->ctx, i, value)) {
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output_like(l->ctx, i, value, &y));
    TFC_CUDA_LAUNCHED(l, tfc_cuda_copy_bytes(y->data, value->data, value->size, l->stream));
    return NULL;
  }
  return tfc_kernel_set_output(l->ctx, i, value);
}

tfc_status tfc_cuda_broadcast_plan(const struct tfc_shape *const *shapes, int count, struct tfc_shape *out_shape,
                                   struct tfc_cuda_broadcast *out) {
  struct ops_broadcast plan;
  TFC_RETURN_IF_ERROR(ops_broadcast_plan(shapes, count, &plan));
  if (plan.rank > TFC_CUDA_RANK)
    return tfc_status_make(TFC_UNIMPLEMENTED, "%d dimensions that broadcast differently", plan.rank);
  *out_shape = plan.shape;
  *out = (struct tfc_cuda_broadcast){.groups = plan.total, .rank = plan.rank, .vector = 1};
  for (int d = 0; d < plan.rank; d++) {
    out->dims[d] = plan.dims[d];
    for (int k = 0; k < count; k++) out->strides[k][d] = plan.strides[k][d];
  }
  for (int k = 0; k < count; k++) out->step[k] = plan.strides[k][plan.rank - 1] != 0;
  return NULL;
}

void tfc_cuda_broadcast_group(struct tfc_cuda_broadcast *plan, int count, int vector, const void *const *operands,
                              size_t size, const void *out, size_t out_size) {
  int last = plan->rank - 1;
  if (vector < 2 || plan->dims[last] % vector || (uintptr_t)out % (out_size * (size_t)vector)) return;
  for (int k = 0; k < count; k++)
    if (plan->step[k] && (uintptr_t)operands[k] % (size * (size_t)vector)) return;
  plan->vector = vector;
  plan->groups /= vector;
  plan->dims[last] /= vector;
  for (int k = 0; k < count; k++) plan->strides[k][last] *= vector;
}

struct tfc_cuda_broadcast tfc_cuda_flat_plan(int64_t n, const void *x, size_t size, const void *y, size_t out_size) {
  struct tfc_cuda_broadcast plan = {
      .groups = n, .rank = 1, .vector = 1, .dims = {n}, .strides = {{1}, {1}, {1}}, .step = {1, 1, 1}};
  tfc_cuda_broadcast_group(&plan, 1, (int)(16 / size), &x, size, y, out_size);
  return plan;
}
