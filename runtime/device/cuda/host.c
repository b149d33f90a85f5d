// Runs an operation that has no CUDA kernel: copies its inputs to host memory, runs the reference kernel, and copies
// the outputs back. The device is idle meanwhile, so such operations are counted and reported.
#include <stdlib.h>

#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/cuda/host.h"
#include "runtime/device/cuda/rows.h"
#include "runtime/ops/host_memory.h"

struct host_call {
  struct tfc_cuda_device *d;
  tfc_cuda_stream stream;
  struct tfc_kernel_ctx ctx;
  struct tfc_kernel_env env;
  struct tfc_tensor *inputs, *outputs;
  const struct tfc_tensor **input_pointers;
  struct tfc_tensor **output_pointers;
  struct tfc_variable *shadows;
  struct tfc_variable **variables, **output_variables;
  uint32_t ready_inputs, ready_shadows;
};

static tfc_status host_allocate(struct tfc_kernel_env *env, size_t bytes, struct tfc_buffer **out) {
  (void)env;
  return tfc_buffer_create_host(bytes, out);
}

static tfc_status fetch(struct host_call *h, const struct tfc_tensor *from, struct tfc_tensor *out) {
  TFC_RETURN_IF_ERROR(tfc_tensor_create(from->dtype, &from->shape, out));
  if (from->size == 0) return NULL;
  atomic_fetch_add(&h->d->host_call_bytes, from->size);
  TFC_CUDA_TRY(h->d, tfc_cuda_launch_copy(h->d, out->data, from->data, from->size, h->stream), "copying to the host");
  return NULL;
}

static tfc_status store(struct host_call *h, const struct tfc_tensor *from, void *to) {
  if (from->size == 0) return NULL;
  atomic_fetch_add(&h->d->host_call_bytes, from->size);
  TFC_CUDA_TRY(h->d, tfc_cuda_launch_copy(h->d, to, from->data, from->size, h->stream), "copying from the host");
  TFC_CUDA_TRY(h->d, h->d->api->stream_synchronize(h->stream), "copying from the host");
  return NULL;
}

static bool is_beside(const struct tfc_variable *v) { // the variable's value is in host memory
  return !tfc_dtype_is_plain(v->dtype) || tfc_host_variable(v->dtype);
}

static tfc_status enter(struct host_call *h, const struct tfc_segment_op *op, struct tfc_kernel_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->input_count; i++) {
    const struct tfc_tensor *t = ctx->inputs[i];
    struct tfc_variable *v = ctx->variables ? ctx->variables[i] : NULL;
    h->input_pointers[i] = &h->inputs[i];
    h->ready_inputs = i + 1;
    bool on_host = tfc_host_bit(op->host_inputs, i) || !t || !tfc_dtype_is_plain(t->dtype) || !t->data;
    if (v && t == &v->value) {
      // the kernel reads this input from `shadows`, a copy of the variable (see below)
    } else if (on_host) {
      if (t) tfc_tensor_share(t, &h->inputs[i]);
    } else {
      TFC_RETURN_IF_ERROR(fetch(h, t, &h->inputs[i]));
    }
    if (!v) continue;
    h->ready_shadows = i + 1;
    h->variables[i] = &h->shadows[i];
    h->shadows[i] = (struct tfc_variable){.object = {.type = v->object.type},
                                          .name = v->name,
                                          .dtype = v->dtype,
                                          .shape = v->shape,
                                          .initialized = v->initialized,
                                          .device = v->device};
    atomic_init(&h->shadows[i].object.references, 1000); // so many references that releasing them never frees it
    if (is_beside(v))
      tfc_tensor_share(&v->value, &h->shadows[i].value);
    else if (v->initialized)
      TFC_RETURN_IF_ERROR(fetch(h, &v->value, &h->shadows[i].value));
    if (t == &v->value) h->input_pointers[i] = &h->shadows[i].value;
  }
  for (uint32_t i = 0; i < ctx->output_count; i++) {
    struct tfc_tensor *slot = ctx->outputs[i];
    h->output_pointers[i] = &h->outputs[i];
    bool on_host = tfc_host_bit(op->host_outputs, i);
    if (on_host && slot->data && !slot->buffer) h->outputs[i] = *slot; // its planned place is in host memory
  }
  TFC_CUDA_TRY(h->d, h->d->api->stream_synchronize(h->stream), "copying to the host");
  return NULL;
}

static tfc_status leave_variable(struct host_call *h, struct tfc_variable *v, struct tfc_variable *shadow) {
  if (!shadow->initialized) return NULL;
  if (is_beside(v)) {
    tfc_tensor_release(&v->value);
    tfc_tensor_share(&shadow->value, &v->value);
    v->initialized = true;
    return NULL;
  }
  if (!v->value.data || v->value.size != shadow->value.size) {
    struct tfc_buffer *buffer = NULL;
    TFC_RETURN_IF_ERROR(tfc_cuda_memory_allocate(&h->d->memory, shadow->value.size, &buffer));
    tfc_tensor_release(&v->value);
    v->value =
        (struct tfc_tensor){.dtype = v->dtype, .size = shadow->value.size, .data = buffer->data, .buffer = buffer};
  }
  v->value.shape = shadow->value.shape;
  TFC_RETURN_IF_ERROR(store(h, &shadow->value, v->value.data));
  v->initialized = true;
  return NULL;
}

static tfc_status leave(struct host_call *h, const struct tfc_segment_op *op, struct tfc_kernel_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->input_count; i++)
    if (h->variables[i] && (op->def->flags & (TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_STATEFUL)))
      TFC_RETURN_IF_ERROR(leave_variable(h, ctx->variables[i], h->variables[i]));
  for (uint32_t i = 0; i < ctx->output_count; i++) {
    struct tfc_tensor *t = &h->outputs[i], *slot = ctx->outputs[i];
    for (uint32_t k = 0; h->output_variables[i] && k < ctx->input_count; k++)
      if (h->variables[k] == h->output_variables[i]) ctx->output_variables[i] = ctx->variables[k];
    if (h->output_variables[i]) continue; // readers of a reference read the variable instead
    if (t->dtype == TFC_DTYPE_NONE) continue;
    bool on_host = tfc_host_bit(op->host_outputs, i) || !tfc_dtype_is_plain(t->dtype);
    if (on_host) {
      bool planned = slot->data && !slot->buffer && !t->buffer;
      if (!planned && slot->buffer != t->buffer) tfc_buffer_release(slot->buffer);
      *slot = *t;
      t->buffer = NULL;
      continue;
    }
    if (!(slot->data && !slot->buffer && slot->size >= t->size)) { // the plan has no place for it
      struct tfc_buffer *buffer = NULL;
      TFC_RETURN_IF_ERROR(tfc_cuda_memory_allocate(&h->d->memory, t->size, &buffer));
      tfc_buffer_release(slot->buffer);
      *slot = (struct tfc_tensor){.data = buffer->data, .buffer = buffer};
    }
    slot->dtype = t->dtype;
    slot->shape = t->shape;
    slot->size = t->size;
    TFC_RETURN_IF_ERROR(store(h, t, slot->data));
  }
  return NULL;
}

tfc_status tfc_cuda_host_run(struct tfc_cuda_device *d, const struct tfc_segment_op *op, struct tfc_kernel_ctx *ctx,
                             tfc_cuda_stream stream) {
  uint32_t n = ctx->input_count, m = ctx->output_count;
  struct host_call h = {.d = d, .stream = stream, .ctx = *ctx};
  char *block = calloc(1, (n + m) * sizeof(struct tfc_tensor) + n * sizeof(struct tfc_variable) +
                              (2 * (size_t)n + 2 * (size_t)m + 1) * sizeof(void *));
  if (!block) return tfc_status_no_memory("a kernel on the host");
  atomic_fetch_add(&d->host_calls, 1);
  h.inputs = (struct tfc_tensor *)(void *)block;
  h.outputs = h.inputs + n;
  h.shadows = (struct tfc_variable *)(void *)(h.outputs + m);
  h.input_pointers = (const struct tfc_tensor **)(void *)(h.shadows + n);
  h.output_pointers = (struct tfc_tensor **)(void *)(h.input_pointers + n);
  h.variables = (struct tfc_variable **)(void *)(h.output_pointers + m);
  h.output_variables = h.variables + n;
  h.env = ctx->env ? *ctx->env : (struct tfc_kernel_env){0};
  h.env.allocate = host_allocate;
  h.env.parallel_for = tfc_env_serial_for;
  h.ctx.env = &h.env;
  h.ctx.inputs = h.input_pointers;
  h.ctx.outputs = h.output_pointers;
  h.ctx.variables = h.variables;
  h.ctx.output_variables = h.output_variables;
  tfc_status s = enter(&h, op, ctx);
  if (!s) s = op->def->kernel(&h.ctx);
  if (!s) s = leave(&h, op, ctx);
  for (uint32_t i = 0; i < h.ready_inputs; i++) tfc_tensor_release(&h.inputs[i]);
  for (uint32_t i = 0; i < h.ready_shadows; i++)
    if (h.variables[i]) tfc_tensor_release(&h.shadows[i].value);
  for (uint32_t i = 0; i < m; i++) tfc_buffer_release(h.outputs[i].buffer);
  free(block);
  return s;
}
