// The table of CUDA kernels, with the rows that the linker has gathered from kernels/, and rows for operations that
// only copy tensors and so need no kernel.
#include "runtime/device/cuda/rows.h"
#include "runtime/device/cuda/device.h"
#include "runtime/device/cuda/failure.h"
#include "runtime/device/kernel_table.h"
#include "runtime/ops/state_common.h"

extern const struct tfc_cuda_kernels __start_tfc_cuda_kernels[] __attribute__((weak));
extern const struct tfc_cuda_kernels __stop_tfc_cuda_kernels[] __attribute__((weak));

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct tfc_kernel_table table;

static void gather(void) {
  for (const struct tfc_cuda_kernels *f = __start_tfc_cuda_kernels; f < __stop_tfc_cuda_kernels; f++)
    for (size_t i = 0; i < f->count; i++) tfc_kernel_table_add(&table, f->rows[i].op, f->rows[i].types, &f->rows[i]);
  tfc_kernel_table_sort(&table);
}

const struct tfc_cuda_kernel *tfc_cuda_kernel_next(tfc_str op, tfc_dtype type, const struct tfc_cuda_kernel *after) {
  pthread_once(&once, gather);
  return tfc_kernel_table_next(&table, op, type, after);
}

static _Thread_local uint64_t launches;

void tfc_cuda_count_launch(void) {
  launches++;
}

uint64_t tfc_cuda_launches(void) {
  return launches;
}

int tfc_cuda_launch_copy(struct tfc_cuda_device *d, void *to, const void *from, size_t bytes, tfc_cuda_stream stream) {
  int error = d->api->copy(to, from, bytes, stream);
  launches += error == 0 && bytes > 0;
  return error;
}

tfc_status tfc_cuda_status(const struct tfc_cuda_launch *l, int cuda_error) {
  if (__builtin_expect(cuda_error == 0, 1)) return NULL;
  return tfc_cuda_error(tfc_cuda_device_of(l->library->device), cuda_error, "launching");
}

tfc_status tfc_cuda_read(struct tfc_cuda_launch *l, const struct tfc_tensor *source, void *target) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(l->library->device);
  if (source->size == 0) return NULL;
  TFC_CUDA_TRY(d, tfc_cuda_launch_copy(d, target, source->data, source->size, l->stream), "reading a value");
  TFC_CUDA_TRY(d, d->api->stream_synchronize(l->stream), "reading a value");
  atomic_fetch_add(&d->host_calls, 1);
  atomic_fetch_add(&d->host_call_bytes, source->size);
  return NULL;
}

// --- Moves -------------------------------------------------------------------------------------------------------
static tfc_status move(struct tfc_cuda_launch *l, void *to, const void *from, size_t bytes) {
  struct tfc_cuda_device *d = tfc_cuda_device_of(l->library->device);
  if (bytes && to != from)
    TFC_CUDA_TRY(d, tfc_cuda_launch_copy(d, to, from, bytes, l->stream), "copying on the device");
  return NULL;
}

// Assign follows the same rules as the host's kernel: for the shapes of references and resources, and that the memory
// of a resource is written in place only if nothing else holds it.
static tfc_status assign_prepare(struct tfc_cuda_prepare *p) {
  static int yes; // the address serves as a flag: "the shape may not change"
  const struct tfc_prepare_ctx *base = p->base;
  bool is_ref = tfc_dtype_is_ref(tfc_output_dtype(base->graph, tfc_node_inputs(base->graph, base->node)[0]));
  p->base->state = tfc_node_attr_bool(base->graph, base->node, "validate_shape", is_ref) ? &yes : NULL;
  return NULL;
}

static tfc_status assign_value(struct tfc_cuda_launch *l, struct tfc_variable *v, const struct tfc_tensor *value,
                               bool resource) {
  bool alone = v->value.buffer && atomic_load_explicit(&v->value.buffer->references, memory_order_acquire) == 1;
  if (v->value.data && v->value.size == value->size && (!resource || alone)) {
    TFC_RETURN_IF_ERROR(move(l, v->value.data, value->data, value->size));
    v->value.shape = value->shape;
  } else {
    struct tfc_buffer *buffer = NULL;
    TFC_RETURN_IF_ERROR(l->ctx->env->allocate(l->ctx->env, value->size, &buffer));
    tfc_status s = move(l, buffer->data, value->data, value->size);
    if (s) {
      tfc_buffer_release(buffer);
      return s;
    }
    tfc_tensor_release(&v->value);
    v->value = (struct tfc_tensor){
        .dtype = v->dtype, .shape = value->shape, .data = buffer->data, .size = value->size, .buffer = buffer};
  }
  v->initialized = true;
  return NULL;
}

static tfc_status assign_launch(struct tfc_cuda_launch *l) {
  struct tfc_kernel_ctx *ctx = l->ctx;
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_assignable(ctx, &v));
  tfc_variable_lock(v);
  tfc_status s = assign_value(l, v, ctx->inputs[1], tfc_state_is_resource(ctx, 0));
  tfc_variable_unlock(v);
  return s ? s : tfc_state_forward_ref(ctx);
}

static const struct tfc_cuda_kernel moves[] = {
    {"Assign", 0, assign_prepare, assign_launch, 0},
    {"AssignVariableOp", 0, assign_prepare, assign_launch, 0},
};
TFC_CUDA_KERNELS(moves);
