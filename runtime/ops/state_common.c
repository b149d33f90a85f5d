// Writing to variables. Readers may share the value of a resource variable: then it is copied before it is written to.
// A reference variable is always written in place, as its readers expect.
#include "runtime/ops/state_common.h"

#include <time.h>

#include "runtime/ops/rendezvous.h"

bool tfc_state_is_resource(const struct tfc_kernel_ctx *ctx, uint32_t i) {
  return tfc_output_dtype(ctx->graph, tfc_node_inputs(ctx->graph, ctx->node)[i]) == TFC_RESOURCE;
}

tfc_status tfc_state_variable(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable **out) {
  struct tfc_variable *v = ctx->variables ? ctx->variables[i] : NULL;
  if (!v) return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u does not name a variable", i);
  *out = v;
  return NULL;
}

tfc_status tfc_state_tensor(struct tfc_kernel_ctx *ctx, tfc_dtype dtype, const struct tfc_shape *shape,
                            struct tfc_tensor *out) {
  if (!tfc_dtype_is_plain(dtype) || !ctx->env->allocate) return tfc_tensor_create(dtype, shape, out); // host memory
  size_t bytes = 0;
  struct tfc_buffer *buffer = NULL;
  TFC_RETURN_IF_ERROR(tfc_tensor_bytes(dtype, shape, &bytes));
  TFC_RETURN_IF_ERROR(ctx->env->allocate(ctx->env, bytes, &buffer));
  *out = (struct tfc_tensor){.dtype = dtype, .shape = *shape, .data = buffer->data, .size = bytes, .buffer = buffer};
  return NULL;
}

static bool shared(const struct tfc_tensor *t) {
  return !t->buffer || atomic_load_explicit(&t->buffer->references, memory_order_acquire) > 1;
}

// Waits until no message reads the memory of a reference variable any more. (A resource variable's is not written then,
// because the message has a reference to it.)
static tfc_status wait_until_sent(struct tfc_kernel_ctx *ctx, const struct tfc_variable *v) {
  struct tfc_buffer *b = v->value.buffer;
  struct tfc_rendezvous *others = ctx->env->rendezvous;
  for (uint32_t lent; b && (lent = atomic_load_explicit(&b->lent, memory_order_acquire));) {
    if (ctx->env->cancelled && ctx->env->cancelled(ctx->env))
      return tfc_status_make(TFC_CANCELLED, "variable '%.*s' was still being sent to another task when the step ended",
                             TFC_STR_ARG(v->name));
    if (others && others->attend) others->attend(others, &b->lent, lent);
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
  }
  return NULL;
}

tfc_status tfc_state_writable(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable **out) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, i, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  if (tfc_state_is_resource(ctx, i) && v->value.size && shared(&v->value)) {
    struct tfc_tensor copy = {0};
    if (tfc_dtype_is_plain(v->dtype)) {
      TFC_RETURN_IF_ERROR(tfc_state_tensor(ctx, v->dtype, &v->value.shape, &copy));
      memcpy(copy.data, v->value.data, v->value.size);
    } else {
      TFC_RETURN_IF_ERROR(tfc_tensor_clone(&v->value, &copy));
    }
    tfc_tensor_release(&v->value);
    v->value = copy;
  } else {
    TFC_RETURN_IF_ERROR(wait_until_sent(ctx, v));
  }
  tfc_buffer_written(v->value.buffer);
  *out = v;
  return NULL;
}

tfc_status tfc_state_assignable(struct tfc_kernel_ctx *ctx, struct tfc_variable **out) {
  struct tfc_variable *v = NULL;
  const struct tfc_tensor *value = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  TFC_KERNEL_CHECK(v->dtype == value->dtype, "variable '%.*s' has type %s, assigned a value of type %s",
                   TFC_STR_ARG(v->name), tfc_dtype_name(v->dtype), tfc_dtype_name(value->dtype));
  bool resource = tfc_state_is_resource(ctx, 0), as_held = v->initialized && (ctx->state || !resource);
  const struct tfc_shape *shape = as_held ? &v->value.shape : &v->shape;
  if (ctx->state || resource)
    TFC_KERNEL_CHECK(tfc_shape_compatible(shape, &value->shape),
                     "Assign requires shapes of both tensors to match: variable '%.*s' %s, value %s",
                     TFC_STR_ARG(v->name), tfc_shape_show(shape, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&value->shape, (char[TFC_SHAPE_TEXT]){0}));
  *out = v;
  return NULL;
}

tfc_status tfc_state_assign(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable *v,
                            const struct tfc_tensor *value) {
  if (!tfc_dtype_is_plain(v->dtype)) {
    struct tfc_tensor copy = {0};
    if (value->buffer)
      tfc_tensor_share(value, &copy);
    else
      TFC_RETURN_IF_ERROR(tfc_tensor_clone(value, &copy));
    tfc_tensor_release(&v->value);
    v->value = copy;
    v->initialized = true;
    return NULL;
  }
  bool in_place =
      v->value.data && v->value.size == value->size && !(tfc_state_is_resource(ctx, i) && shared(&v->value));
  if (!in_place) {
    struct tfc_tensor fresh = {0};
    TFC_RETURN_IF_ERROR(tfc_state_tensor(ctx, v->dtype, &value->shape, &fresh));
    // Copied before the old value is released, which `value` may be.
    if (value->size) memcpy(fresh.data, value->data, value->size);
    tfc_tensor_release(&v->value);
    v->value = fresh;
  } else {
    TFC_RETURN_IF_ERROR(wait_until_sent(ctx, v));
    v->value.shape = value->shape;
    tfc_buffer_written(v->value.buffer);
    if (value->size && v->value.data != value->data) memmove(v->value.data, value->data, value->size);
  }
  v->initialized = true;
  return NULL;
}

tfc_status tfc_state_forward_ref(struct tfc_kernel_ctx *ctx) {
  if (ctx->output_count == 0) return NULL;
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  ctx->output_variables[0] = v;
  return tfc_kernel_set_output(ctx, 0, &v->value);
}

struct tfc_shape tfc_state_shape(const struct tfc_shape_ctx *ctx, uint32_t i) {
  const struct tfc_output from = tfc_node_inputs(ctx->graph, ctx->node)[i];
  if (tfc_dtype_base(tfc_output_dtype(ctx->graph, from)) != TFC_RESOURCE) return *ctx->inputs[i];
  const struct tfc_handle_info *h = ctx->input_handles ? ctx->input_handles[i] : NULL;
  return h && h->dtype != TFC_DTYPE_NONE ? h->shape : TFC_SHAPE_UNKNOWN;
}

tfc_status tfc_state_shape_update(struct tfc_shape_ctx *ctx) {
  if (ctx->node->output_count) ctx->outputs[0] = tfc_state_shape(ctx, 0);
  return NULL;
}
