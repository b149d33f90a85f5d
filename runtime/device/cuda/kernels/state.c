// Rows of ops on variables (assign, add, read), and functions with which other families write to variables.
#include "runtime/device/cuda/kernels/state.h"

#include "runtime/device/cuda/kernels/elementwise.h"
#include "runtime/ops/state_common.h"

static bool shared(const struct tfc_tensor *t) {
  return !t->buffer || atomic_load_explicit(&t->buffer->references, memory_order_acquire) > 1;
}

tfc_status tfc_cuda_writable(struct tfc_cuda_launch *l, uint32_t i, struct tfc_variable **out) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(l->ctx, i, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  if (tfc_state_is_resource(l->ctx, i) && v->value.size && shared(&v->value)) {
    struct tfc_tensor copy = {0};
    TFC_RETURN_IF_ERROR(tfc_state_tensor(l->ctx, v->dtype, &v->value.shape, &copy));
    int failed = tfc_cuda_copy_bytes(copy.data, v->value.data, v->value.size, l->stream);
    if (failed) {
      tfc_tensor_release(&copy);
      return tfc_cuda_status(l, failed);
    }
    tfc_tensor_release(&v->value);
    v->value = copy;
  }
  *out = v;
  return NULL;
}

tfc_status tfc_cuda_forward_ref(struct tfc_cuda_launch *l) {
  struct tfc_variable *v = NULL;
  if (l->ctx->output_count == 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(l->ctx, 0, &v));
  l->ctx->output_variables[0] = v;
  struct tfc_tensor *t = l->ctx->outputs[0];
  if (t == &v->value || t->data == v->value.data) return NULL;
  return tfc_cuda_set_output(l, 0, &v->value);
}

// --- Assigning ---------------------------------------------------------------------------------------------------
// The state is a bool: must the variable keep its shape?
static tfc_status assign_prepare(struct tfc_cuda_prepare *p) {
  tfc_dtype type = tfc_cuda_type(p, 1);
  if (!tfc_dtype_is_plain(type)) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(type));
  TFC_CUDA_STATE(p, bool, keeps);
  bool is_ref = tfc_dtype_is_ref(tfc_output_dtype(p->base->graph, tfc_node_inputs(p->base->graph, p->base->node)[0]));
  *keeps = tfc_node_attr_bool(p->base->graph, p->base->node, "validate_shape", is_ref);
  return NULL;
}

static tfc_status put_value(struct tfc_cuda_launch *l, struct tfc_variable *v, const struct tfc_tensor *value) {
  bool in_place =
      v->value.data && v->value.size == value->size && !(tfc_state_is_resource(l->ctx, 0) && shared(&v->value));
  if (!in_place) {
    struct tfc_tensor fresh = {0};
    TFC_RETURN_IF_ERROR(tfc_state_tensor(l->ctx, v->dtype, &value->shape, &fresh));
    int failed = tfc_cuda_copy_bytes(fresh.data, value->data, value->size, l->stream);
    if (failed) {
      tfc_tensor_release(&fresh);
      return tfc_cuda_status(l, failed);
    }
    tfc_tensor_release(&v->value);
    v->value = fresh;
  } else {
    v->value.shape = value->shape;
    TFC_CUDA_LAUNCHED(l, tfc_cuda_copy_bytes(v->value.data, value->data, value->size, l->stream));
  }
  v->initialized = true;
  return NULL;
}

static tfc_status launch_assign(struct tfc_cuda_launch *l) {
  const struct tfc_tensor *value = l->ctx->inputs[1];
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(l->ctx, 0, &v));
  TFC_KERNEL_CHECK(v->dtype == value->dtype, "variable '%.*s' has type %s, assigned a value of type %s",
                   TFC_STR_ARG(v->name), tfc_dtype_name(v->dtype), tfc_dtype_name(value->dtype));
  bool resource = tfc_state_is_resource(l->ctx, 0), keeps = *(const bool *)l->ctx->state;
  if (keeps || resource) {
    bool as_is = v->initialized && (keeps || !resource);
    const struct tfc_shape *held = as_is ? &v->value.shape : &v->shape;
    TFC_KERNEL_CHECK(tfc_shape_compatible(held, &value->shape),
                     "Assign requires shapes of both tensors to match: variable '%.*s' %s, value %s",
                     TFC_STR_ARG(v->name), tfc_shape_show(held, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&value->shape, (char[TFC_SHAPE_TEXT]){0}));
  }
  tfc_variable_lock(v);
  tfc_status s = put_value(l, v, value);
  tfc_variable_unlock(v);
  return s ? s : tfc_cuda_forward_ref(l);
}

typedef int update_fn(int type, const struct tfc_cuda_broadcast *plan, const void *a, const void *b, void *y,
                      void *stream);
static tfc_status update(struct tfc_cuda_launch *l, update_fn *fn) {
  const struct tfc_tensor *value = l->ctx->inputs[1];
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_cuda_writable(l, 0, &v));
  TFC_KERNEL_CHECK(v->dtype == value->dtype && tfc_shape_equal(&v->value.shape, &value->shape),
                   "Cannot update variable '%.*s' %s %s with a value %s %s", TFC_STR_ARG(v->name),
                   tfc_dtype_name(v->dtype), tfc_shape_show(&v->value.shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_dtype_name(value->dtype), tfc_shape_show(&value->shape, (char[TFC_SHAPE_TEXT]){0}));
  if (value->size) {
    size_t size = tfc_dtype_size(value->dtype);
    int64_t n = tfc_cuda_count(value);
    struct tfc_cuda_broadcast plan = {
        .groups = n, .rank = 1, .vector = 1, .dims = {n}, .strides = {{1}, {1}}, .step = {1, 1}};
    tfc_cuda_broadcast_group(&plan, 2, (int)(16 / size), (const void *const[]){v->value.data, value->data}, size,
                             v->value.data, size);
    TFC_CUDA_LAUNCHED(l, fn((int)value->dtype, &plan, v->value.data, value->data, v->value.data, l->stream));
  }
  return tfc_cuda_forward_ref(l);
}
static tfc_status launch_add(struct tfc_cuda_launch *l) {
  return update(l, tfc_cuda_binary_Add);
}
static tfc_status launch_sub(struct tfc_cuda_launch *l) {
  return update(l, tfc_cuda_binary_Sub);
}
static tfc_status update_prepare(struct tfc_cuda_prepare *p) {
  tfc_dtype type = tfc_cuda_type(p, 1);
  if (!tfc_cuda_type_in(type, OPS_BITS(TFC_CUDA_REALS))) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(type));
  return NULL;
}

// --- Reading -----------------------------------------------------------------------------------------------------
static tfc_status read_prepare(struct tfc_cuda_prepare *p) {
  tfc_dtype type = tfc_dtype_base(p->base->graph->output_dtypes[p->base->node->output_begin]);
  if (!tfc_dtype_is_plain(type)) TFC_CUDA_DECLINE("no kernel for %s", tfc_dtype_name(type));
  return NULL;
}
static tfc_status launch_read(struct tfc_cuda_launch *l) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(l->ctx, 0, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  tfc_dtype want = l->ctx->graph->output_dtypes[l->ctx->node->output_begin];
  TFC_KERNEL_CHECK(v->dtype == want, "variable '%.*s' has type %s, read as %s", TFC_STR_ARG(v->name),
                   tfc_dtype_name(v->dtype), tfc_dtype_name(want));
  return tfc_cuda_set_output(l, 0, &v->value);
}

static const struct tfc_cuda_kernel state_rows[] = {
    {"Assign", TFC_CUDA_PLAIN, assign_prepare, launch_assign, 0},
    {"AssignVariableOp", TFC_CUDA_HANDLE, assign_prepare, launch_assign, TFC_CUDA_ON_PLAIN},
    {"AssignAdd", OPS_BITS(TFC_CUDA_REALS), update_prepare, launch_add, 0},
    {"AssignSub", OPS_BITS(TFC_CUDA_REALS), update_prepare, launch_sub, 0},
    {"AssignAddVariableOp", TFC_CUDA_HANDLE, update_prepare, launch_add, TFC_CUDA_ON_REALS},
    {"AssignSubVariableOp", TFC_CUDA_HANDLE, update_prepare, launch_sub, TFC_CUDA_ON_REALS},
    {"ReadVariableOp", TFC_CUDA_HANDLE, read_prepare, launch_read, TFC_CUDA_ON_PLAIN},
};
TFC_CUDA_KERNELS(state_rows);
