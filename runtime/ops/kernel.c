#include "runtime/ops/kernel.h"

#include <string.h>

static tfc_status allocate(struct tfc_kernel_ctx *ctx, size_t bytes, struct tfc_buffer **out) {
  if (ctx->env && ctx->env->allocate) return ctx->env->allocate(ctx->env, bytes, out);
  return tfc_buffer_create_host(bytes, out);
}

// Whether the memory plan has given the output a place: it then has data without a buffer.
static bool has_place(const struct tfc_tensor *t, tfc_dtype dtype, size_t bytes) {
  return t->data && !t->buffer && bytes <= t->size && tfc_dtype_is_plain(dtype);
}

// Checks that an output has the type that the graph declares, even if a handle led to a variable of another type.
static tfc_status check_declared(const struct tfc_kernel_ctx *ctx, uint32_t i, tfc_dtype dtype) {
  if (!ctx->node || !ctx->graph || i >= ctx->node->output_count) return NULL;
  tfc_dtype declared = tfc_dtype_base(ctx->graph->output_dtypes[ctx->node->output_begin + i]);
  if (__builtin_expect(declared == dtype, 1) || declared == TFC_DTYPE_NONE) return NULL;
  return tfc_status_make(TFC_INVALID_ARGUMENT, "output %u is declared %s, but its value is %s", i,
                         tfc_dtype_name(declared), tfc_dtype_name(dtype));
}

static inline bool same_dims(const struct tfc_shape *a, const struct tfc_shape *b) {
  bool same = a->rank == b->rank;
  for (int d = 0; same && d < a->rank; d++) same = a->dims[d] == b->dims[d];
  return same;
}

// Returns the buffer of an input that has the output's type and shape and to which there is no other reference; NULL if
// there is none.
static struct tfc_buffer *take_over(struct tfc_kernel_ctx *ctx, tfc_dtype dtype, const struct tfc_shape *shape) {
  for (uint32_t k = 0; k < ctx->input_count && k < 32; k++) {
    const struct tfc_tensor *in = ctx->inputs[k];
    struct tfc_buffer *b = ctx->reusable >> k & 1 ? in->buffer : NULL;
    if (!b || in->dtype != dtype || in->data != b->data || !same_dims(&in->shape, shape)) continue;
    if (atomic_load_explicit(&b->references, memory_order_acquire) != 1) continue;
    ctx->reusable = 0;
    tfc_buffer_retain(b);
    tfc_buffer_written(b);
    return b;
  }
  return NULL;
}

tfc_status tfc_kernel_output(struct tfc_kernel_ctx *ctx, uint32_t i, tfc_dtype dtype, const struct tfc_shape *shape,
                             struct tfc_tensor **out) {
  struct tfc_tensor *t = ctx->outputs[i];
  size_t bytes;
  if (t->data && !t->buffer && t->dtype == dtype && same_dims(&t->shape, shape)) {
    // The output's place was set in an earlier step, and is still valid.
    *out = t;
    return NULL;
  }
  dtype = tfc_dtype_base(dtype);
  TFC_RETURN_IF_ERROR(check_declared(ctx, i, dtype));
  TFC_RETURN_IF_ERROR(tfc_tensor_bytes(dtype, shape, &bytes));
  if (has_place(t, dtype, bytes)) {
    t->dtype = dtype;
    t->shape = *shape;
    t->size = bytes;
  } else {
    bool host = !tfc_dtype_is_plain(dtype) ||
                (ctx->node && ctx->node->def && i < 32 && (ctx->node->def->host_outputs >> i & 1));
    if (host) {
      struct tfc_tensor made;
      TFC_RETURN_IF_ERROR(tfc_tensor_create(dtype, shape, &made));
      tfc_buffer_release(t->buffer);
      *t = made;
    } else {
      struct tfc_buffer *buffer = i == 0 && ctx->reusable ? take_over(ctx, dtype, shape) : NULL;
      if (!buffer) TFC_RETURN_IF_ERROR(allocate(ctx, bytes, &buffer));
      tfc_buffer_release(t->buffer);
      t->dtype = dtype;
      t->shape.rank = shape->rank;
      for (int32_t d = 0; d < shape->rank; d++) t->shape.dims[d] = shape->dims[d];
      t->data = buffer->data;
      t->size = bytes;
      t->buffer = buffer;
    }
  }
  *out = t;
  return NULL;
}

tfc_status tfc_kernel_output_like(struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_tensor *like,
                                  struct tfc_tensor **out) {
  return tfc_kernel_output(ctx, i, like->dtype, &like->shape, out);
}

bool tfc_kernel_is_borrowed(const struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_tensor *value) {
  if (value->buffer || !value->size || !tfc_dtype_is_plain(value->dtype)) return false;
  if (ctx->node && ctx->node->def && ctx->node->def->flags & TFC_OP_VIEW) return false;
  if (ctx->node && ctx->graph && i < ctx->node->output_count &&
      tfc_dtype_is_ref(ctx->graph->output_dtypes[ctx->node->output_begin + i]))
    return false;
  const char *data = value->data;
  for (uint32_t k = 0; k < ctx->input_count; k++) {
    const char *in = ctx->inputs[k] ? ctx->inputs[k]->data : NULL;
    if (in && data >= in && data < in + ctx->inputs[k]->size) return true;
  }
  return false;
}

tfc_status tfc_kernel_set_output(struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_tensor *value) {
  struct tfc_tensor *t = ctx->outputs[i];
  TFC_RETURN_IF_ERROR(check_declared(ctx, i, value->dtype));
  if (has_place(t, value->dtype, value->size)) {
    // The plan gives a view's output a place only if it cannot elide the view; such memory is host-addressable.
    if (value->size && t->data != value->data) memmove(t->data, value->data, value->size);
    t->dtype = value->dtype;
    t->shape = value->shape;
    t->size = value->size;
    return NULL;
  }
  if (tfc_kernel_is_borrowed(ctx, i, value)) {
    struct tfc_tensor *copy;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, i, value->dtype, &value->shape, &copy));
    memcpy(copy->data, value->data, value->size);
    return NULL;
  }
  struct tfc_tensor shared;
  tfc_tensor_share(value, &shared);
  tfc_buffer_release(t->buffer);
  *t = shared;
  return NULL;
}

tfc_status tfc_kernel_set_object(struct tfc_kernel_ctx *ctx, uint32_t i, tfc_dtype dtype, struct tfc_object *object) {
  struct tfc_tensor handle = {0};
  tfc_status s = tfc_tensor_create(dtype, &TFC_SHAPE_SCALAR, &handle);
  if (s) {
    tfc_object_release(object);
    return s;
  }
  *(struct tfc_object **)handle.data = object;
  tfc_buffer_release(ctx->outputs[i]->buffer);
  *ctx->outputs[i] = handle;
  return NULL;
}

tfc_status tfc_kernel_scratch(struct tfc_kernel_ctx *ctx, size_t bytes, struct tfc_buffer **out) {
  return allocate(ctx, bytes, out);
}

void tfc_kernel_parallel_for(struct tfc_kernel_ctx *ctx, int64_t total, int64_t grain,
                             void (*fn)(void *arg, int64_t begin, int64_t end), void *arg) {
  if (total <= 0) return;
  if (grain < 1) grain = 1;
  if (total > grain && ctx->env && ctx->env->parallel_for) {
    ctx->env->parallel_for(ctx->env, total, grain, fn, arg);
    return;
  }
  for (int64_t begin = 0; begin < total; begin += grain) fn(arg, begin, begin + grain < total ? begin + grain : total);
}

tfc_status tfc_kernel_object(struct tfc_kernel_ctx *ctx, uint32_t i, const struct tfc_object_type *type,
                             struct tfc_object **out) {
  const struct tfc_tensor *t = i < ctx->input_count ? ctx->inputs[i] : NULL;
  if (!t || (t->dtype != TFC_RESOURCE && t->dtype != TFC_VARIANT) || tfc_tensor_elements(t) != 1)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u must be a scalar handle to a %s", i, type->name);
  struct tfc_object *object = *(struct tfc_object **)t->data;
  if (!object)
    return tfc_status_make(TFC_FAILED_PRECONDITION, "input %u is a handle to nothing; it should hold a %s", i,
                           type->name);
  if (object->type != type)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "input %u is a handle to a %s, not to a %s", i, object->type->name,
                           type->name);
  *out = object;
  return NULL;
}

tfc_dtype tfc_kernel_type(const struct tfc_graph *g, const struct tfc_node *n) {
  const tfc_dtype output = n->output_count ? tfc_dtype_base(g->output_dtypes[n->output_begin]) : TFC_DTYPE_NONE;
  const struct tfc_op_signature *signature = tfc_op_signature(n->def);
  for (uint32_t i = 0; signature && i < signature->attr_count; i++) {
    char name[64];
    const uint32_t allowed = signature->attrs[i].allowed_types;
    if (signature->attrs[i].kind != TFC_ATTR_TYPE) continue;
    // `types` is not about this attribute but another one, e.g. not about the type of indices
    if (n->def->types && allowed && !(n->def->types & allowed)) continue;
    const tfc_str attr = signature->attrs[i].name;
    const size_t size = attr.size < sizeof name ? attr.size : sizeof name - 1;
    memcpy(name, attr.data, size), name[size] = 0;
    return tfc_dtype_base(tfc_node_attr_type(g, n, name, output));
  }
  return output;
}

tfc_status tfc_kernel_prepare(struct tfc_prepare_ctx *ctx) {
  const uint32_t types = ctx->def->types;
  if (types) {
    tfc_dtype type = tfc_kernel_type(ctx->graph, ctx->node);
    if (type != TFC_DTYPE_NONE && !(types & TFC_TYPE_BIT(type)))
      return tfc_status_make(TFC_UNIMPLEMENTED, "%s is not implemented for %s", ctx->def->name, tfc_dtype_name(type));
  }
  return ctx->def->prepare ? ctx->def->prepare(ctx) : NULL;
}
