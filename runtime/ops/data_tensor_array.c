// TensorArray: tensors by index, written once and read within one step. Its gradient is another TensorArray, which adds
// up what is written to the same index; the forward array keeps it, under the name of the gradient computation. The ops
// of versions 1 and 2 pass two strings instead of a handle; the step keeps the array under them.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/memory_account.h"
#include "runtime/ops/data_tensor_array_gradient.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/state_common.h"

struct element {
  struct tfc_tensor value;
  struct tfc_shape shape; // known from the forward array: a gradient needs it for zeros
  bool written, read, cleared, shared;
};
struct gradient {
  char *source;
  struct tensor_array *array;
};
struct tensor_array {
  struct tfc_object object;
  pthread_mutex_t lock;
  tfc_dtype dtype;
  struct tfc_shape element_shape;
  bool dynamic, clear_after_read, identical, is_gradient, closed, size_fixed;
  TFC_ARRAY(struct element) elements;
  TFC_ARRAY(struct gradient) gradients;
  struct tfc_memory_account *account; // the account that the elements' records are counted on
  size_t counted;
};

static void array_destroy(struct tfc_object *self) {
  struct tensor_array *a = (struct tensor_array *)self;
  for (size_t i = 0; i < a->elements.count; i++) tfc_tensor_release(&a->elements.data[i].value);
  for (size_t i = 0; i < a->gradients.count; i++) {
    free(a->gradients.data[i].source);
    tfc_object_release(&a->gradients.data[i].array->object);
  }
  tfc_array_free(&a->elements);
  tfc_account_give(a->account, a->counted);
  tfc_array_free(&a->gradients);
  pthread_mutex_destroy(&a->lock);
  free(a);
}
static const struct tfc_object_type array_type = {.name = "tensor array", .destroy = array_destroy};

// Changes the number of elements. The elements' records count against the memory limit before any element holds a
// tensor, because the graph says how many there are.
static tfc_status array_resize(struct tensor_array *a, size_t count) {
  const size_t bytes = count * sizeof(struct element), more = bytes > a->counted ? bytes - a->counted : 0;
  if (more && !tfc_account_take(a->account, more)) return tfc_account_exhausted(a->account, more);
  a->counted += more;
  return tfc_array_resize(&a->elements, count) ? NULL : tfc_status_no_memory(NULL);
}

static tfc_status array_new(tfc_dtype dtype, const struct tfc_shape *shape, int64_t size, struct tensor_array **out) {
  struct tensor_array *a = calloc(1, sizeof *a);
  if (!a) return tfc_status_no_memory(NULL);
  a->object = (struct tfc_object){.type = &array_type, .references = 1};
  pthread_mutex_init(&a->lock, NULL);
  a->dtype = dtype;
  a->element_shape = *shape;
  a->account = tfc_account_current();
  tfc_status s = size < 0 || size > 1 << 30
                     ? tfc_status_make(TFC_INVALID_ARGUMENT, "Size should be >= 0 and fit into memory, but is %lld",
                                       (long long)size)
                     : array_resize(a, (size_t)size);
  if (s) {
    array_destroy(&a->object);
    return s;
  }
  for (int64_t i = 0; i < size; i++) a->elements.data[i].shape = TFC_SHAPE_UNKNOWN;
  *out = a;
  return NULL;
}

// --- Handles -----------------------------------------------------------------------------------------------------
#define CONTAINER "_tensor_arrays"
static tfc_status hand_over(void *arg, struct tfc_object **out) {
  tfc_object_retain(*out = arg);
  return NULL;
}
// Sets output 0 to the handle of `a`. If a handle is two strings, the step keeps `a` under the name FIRST@LAST or
// FIRST_LAST.
static tfc_status give_handle(struct tfc_kernel_ctx *ctx, struct tensor_array *a, tfc_str first, char between,
                              tfc_str last) {
  struct tfc_object *kept = NULL;
  struct tfc_tensor *y = NULL;
  struct tfc_text text = {0};
  if (ctx->graph->output_dtypes[ctx->node->output_begin] == TFC_RESOURCE) {
    tfc_object_retain(&a->object);
    return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, &a->object);
  }
  tfc_text_printf(&text, "%.*s%c%.*s", TFC_STR_ARG(first), between, TFC_STR_ARG(last));
  tfc_str name = {text.data, text.size};
  tfc_status s = text.failed ? tfc_status_no_memory(NULL) : NULL;
  if (!s)
    s = tfc_resources_find_or_create(ctx->env->step_resources, TFC_STR(CONTAINER), name, &array_type, hand_over, a,
                                     &kept);
  tfc_object_release(kept);
  if (!s) s = tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE(2), &y);
  if (!s) s = tfc_tensor_set_string(y, 0, TFC_STR(CONTAINER));
  if (!s) s = tfc_tensor_set_string(y, 1, name);
  tfc_text_deinit(&text);
  return s;
}

static tfc_status create(struct tfc_kernel_ctx *ctx) {
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "element_shape");
  static _Atomic uint64_t made; // a node makes a new array each time that it runs
  char number[24];
  struct tensor_array *a = NULL;
  struct tfc_tensor *flow = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "TensorArray size must be scalar, but had shape: %s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(array_new(tfc_node_attr_type(ctx->graph, ctx->node, "dtype", TFC_DTYPE_NONE),
                                shape && shape->kind == TFC_ATTR_SHAPE ? shape->shape : &TFC_SHAPE_UNKNOWN,
                                ops_scalar_int(ctx->inputs[0]), &a));
  a->dynamic = tfc_node_attr_bool(ctx->graph, ctx->node, "dynamic_size", false);
  a->clear_after_read = tfc_node_attr_bool(ctx->graph, ctx->node, "clear_after_read", true);
  a->identical = tfc_node_attr_bool(ctx->graph, ctx->node, "identical_element_shapes", false);
  snprintf(number, sizeof number, "%llu", (unsigned long long)made++);
  tfc_status s = give_handle(ctx, a, ctx->node->name, '_', tfc_str_from(number));
  tfc_object_release(&a->object);
  if (s) return s;
  if (ctx->output_count == 1) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_FLOAT, &TFC_SHAPE_SCALAR, &flow));
  *(float *)flow->data = 0;
  return NULL;
}

static tfc_status array_of(struct tfc_kernel_ctx *ctx, struct tensor_array **out) {
  struct tfc_object *o = NULL;
  const struct tfc_tensor *h = ctx->inputs[0];
  if (h->dtype == TFC_STRING) {
    TFC_KERNEL_CHECK(tfc_tensor_elements(h) == 2, "Tensor array handle must be 2-element vector, but had shape: %s",
                     tfc_shape_show(&h->shape, (char[TFC_SHAPE_TEXT]){0}));
    TFC_RETURN_IF_ERROR(tfc_resources_find(ctx->env->step_resources, tfc_tensor_get_string(h, 0),
                                           tfc_tensor_get_string(h, 1), &array_type, &o));
    tfc_object_release(o); // the step has its own reference
  } else {
    TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &array_type, &o));
  }
  *out = (struct tensor_array *)o;
  TFC_KERNEL_CHECK(!(*out)->closed, "TensorArray has already been closed.");
  return NULL;
}

// Creates the gradient's array, with the forward array's size and the shapes of what was written there.
static tfc_status gradient_of(struct tfc_kernel_ctx *ctx) {
  struct tensor_array *a = NULL, *g = NULL;
  struct tfc_tensor *flow = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  TFC_KERNEL_CHECK(!a->is_gradient, "Cannot make a gradient of a TensorArray that is a gradient");
  tfc_str source = tfc_node_attr_string(ctx->graph, ctx->node, "source", "");
  struct tfc_shape prepend = TFC_SHAPE_SCALAR;
  if (ctx->input_count > 2) TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[2], &prepend));
  pthread_mutex_lock(&a->lock);
  for (size_t i = 0; i < a->gradients.count && !g; i++)
    if (tfc_str_is(source, a->gradients.data[i].source)) g = a->gradients.data[i].array;
  if (!g) {
    struct tfc_shape shape = a->element_shape;
    for (int i = prepend.rank; i-- > 0;) shape = tfc_data_prepend(prepend.dims[i], &shape);
    char *name = tfc_str_dup(source);
    s = name ? array_new(a->dtype, &shape, (int64_t)a->elements.count, &g) : tfc_status_no_memory(NULL);
    if (!s) {
      g->is_gradient = true;
      g->identical = a->identical;
      for (size_t i = 0; i < a->elements.count; i++) {
        struct tfc_shape own = a->elements.data[i].written ? a->elements.data[i].shape : TFC_SHAPE_UNKNOWN;
        for (int k = prepend.rank; k-- > 0;) own = tfc_data_prepend(prepend.dims[k], &own);
        g->elements.data[i].shape = own;
      }
      if (tfc_array_push(&a->gradients, (struct gradient){name, g})) {
        name = NULL;
      } else {
        tfc_object_release(&g->object);
        s = tfc_status_no_memory(NULL);
      }
      a->size_fixed = true; // the forward array must not grow any more: the gradient would lack the new elements
    }
    free(name);
  }
  pthread_mutex_unlock(&a->lock);
  if (s) return s;
  tfc_str forward = ctx->inputs[0]->dtype == TFC_STRING ? tfc_tensor_get_string(ctx->inputs[0], 1) : TFC_STR("");
  TFC_RETURN_IF_ERROR(give_handle(ctx, g, forward, '@', source));
  if (ctx->output_count == 1) return NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_FLOAT, &TFC_SHAPE_SCALAR, &flow));
  *(float *)flow->data = *(const float *)ctx->inputs[1]->data;
  return NULL;
}

// --- Reading and writing one element -----------------------------------------------------------------------------
static tfc_status add_to(struct tfc_kernel_ctx *ctx, struct element *e, const struct tfc_tensor *v) {
  TFC_KERNEL_CHECK(tfc_shape_equal(&e->value.shape, &v->shape),
                   "Could not aggregate to a TensorArray index because the "
                   "existing shape is %s but the new input shape is %s",
                   tfc_shape_show(&e->value.shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&v->shape, (char[TFC_SHAPE_TEXT]){0}));
  struct tfc_tensor sum = {0};
  if (v->dtype == TFC_VARIANT) {
    TFC_RETURN_IF_ERROR(tfc_variant_add(ctx, &e->value, v, &sum));
  } else {
    TFC_KERNEL_CHECK(OPS_BITS(OPS_NUMBERS) & TFC_TYPE_BIT(v->dtype), "TensorArray cannot add values of type %s",
                     tfc_dtype_name(v->dtype));
    TFC_RETURN_IF_ERROR(tfc_state_tensor(ctx, v->dtype, &v->shape, &sum));
    int64_t n = tfc_tensor_elements(v);
    OPS_SWITCH(OPS_NUMBERS, v->dtype, {
      const S *a = e->value.data, *b = v->data;
      S *y = sum.data;
      for (int64_t i = 0; i < n; i++) OPS_PUT(y[i], OPS_GET(a[i]) + OPS_GET(b[i]));
    })
  }
  tfc_tensor_release(&e->value);
  e->value = sum;
  return NULL;
}

// Takes over `v`.
static tfc_status write_at(struct tfc_kernel_ctx *ctx, struct tensor_array *a, int64_t index, struct tfc_tensor *v) {
  tfc_status s = NULL;
  if (v->dtype != a->dtype)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "TensorArray dtype is %s but Op is trying to write dtype %s",
             tfc_dtype_name(a->dtype), tfc_dtype_name(v->dtype));
  if (index < 0 || (index >= (int64_t)a->elements.count && (!a->dynamic || a->size_fixed || index >= 1 << 30)))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Tried to write to index %lld but array is not resizeable and size is: %zu",
             (long long)index, a->elements.count);
  if (index >= (int64_t)a->elements.count) {
    size_t had = a->elements.count;
    TFC_TRY(s, array_resize(a, (size_t)index + 1));
    for (size_t i = had; i < a->elements.count; i++) a->elements.data[i].shape = TFC_SHAPE_UNKNOWN;
  }
  if (!tfc_shape_compatible(&a->element_shape, &v->shape))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT,
             "Could not write to TensorArray index %lld because the value shape is %s which is "
             "incompatible with the TensorArray's inferred element shape: %s (consider "
             "setting infer_shape=False).",
             (long long)index, tfc_shape_show(&v->shape, (char[TFC_SHAPE_TEXT]){0}),
             tfc_shape_show(&a->element_shape, (char[TFC_SHAPE_TEXT]){0}));
  if (a->identical && !tfc_shape_is_static(&a->element_shape)) a->element_shape = v->shape;
  struct element *e = &a->elements.data[index];
  if (e->read)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Could not write to TensorArray index %lld because it has already been read.",
             (long long)index);
  if (e->written && !a->is_gradient)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT,
             "Could not write to TensorArray index %lld because it has already been written to.", (long long)index);
  if (e->written) {
    TFC_TRY(s, add_to(ctx, e, v));
  } else {
    e->value = *v;
    *v = (struct tfc_tensor){0};
    e->written = true;
    e->shape = e->value.shape;
  }
out:
  tfc_tensor_release(v);
  return s;
}

static tfc_status read_at(struct tfc_kernel_ctx *ctx, struct tensor_array *a, int64_t index, struct tfc_tensor *out) {
  TFC_KERNEL_CHECK(index >= 0 && index < (int64_t)a->elements.count,
                   "Tried to read from index %lld but array size is: %zu", (long long)index, a->elements.count);
  struct element *e = &a->elements.data[index];
  TFC_KERNEL_CHECK(!e->cleared,
                   "Could not read index %lld twice because it was cleared after a previous read (perhaps "
                   "try setting clear_after_read = false?).",
                   (long long)index);
  if (!e->written) { // an element that was never written reads as zeros, if its shape is known
    struct tfc_shape shape;
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&a->element_shape, &e->shape, &shape));
    TFC_KERNEL_CHECK(tfc_shape_is_static(&shape),
                     "Could not read from TensorArray index %lld. Furthermore, the element shape is not fully defined: "
                     "%s. It is possible you are working with a resizeable TensorArray and stop_gradients is not "
                     "allowing the gradients to be written. If you set the full element_shape property on the forward "
                     "TensorArray, the proper all-zeros tensor will be returned instead of incurring this error.",
                     (long long)index, tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
    TFC_RETURN_IF_ERROR(tfc_data_zeros(ctx, a->dtype, &shape, &e->value));
    e->written = true;
    e->shape = shape;
  }
  e->read = true;
  if (a->clear_after_read) {
    *out = e->value;
    e->value = (struct tfc_tensor){0};
    e->cleared = true;
  } else {
    tfc_tensor_share(&e->value, out);
  }
  return NULL;
}

static tfc_status pass_flow(struct tfc_kernel_ctx *ctx, uint32_t input) {
  struct tfc_tensor *flow = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_FLOAT, &TFC_SHAPE_SCALAR, &flow));
  *(float *)flow->data = *(const float *)ctx->inputs[input]->data;
  return NULL;
}

// Inputs: (handle, index, value, flow_in).
static tfc_status write(struct tfc_kernel_ctx *ctx) {
  struct tensor_array *a = NULL;
  struct tfc_tensor v = {0};
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 0, "TensorArray index must be scalar");
  TFC_RETURN_IF_ERROR(tfc_data_keep(ctx, ctx->inputs[2], &v));
  pthread_mutex_lock(&a->lock);
  tfc_status s = write_at(ctx, a, ops_scalar_int(ctx->inputs[1]), &v);
  pthread_mutex_unlock(&a->lock);
  return s ? s : pass_flow(ctx, 3);
}
// Inputs: (handle, index, flow_in).
static tfc_status read(struct tfc_kernel_ctx *ctx) {
  struct tensor_array *a = NULL;
  struct tfc_tensor v = {0};
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  tfc_dtype want = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_KERNEL_CHECK(a->dtype == want, "TensorArray dtype is %s but Op requested dtype %s.", tfc_dtype_name(a->dtype),
                   tfc_dtype_name(want));
  pthread_mutex_lock(&a->lock);
  tfc_status s = read_at(ctx, a, ops_scalar_int(ctx->inputs[1]), &v);
  pthread_mutex_unlock(&a->lock);
  return s ? s : tfc_data_output(ctx, 0, &v);
}

// --- Many elements -----------------------------------------------------------------------------------------------
static void release_all(struct tfc_tensor *t, int64_t n) {
  for (int64_t i = 0; t && i < n; i++) tfc_tensor_release(&t[i]);
  free(t);
}
// Reads the elements at `indices`, or all elements if that is NULL.
static tfc_status read_many(struct tfc_kernel_ctx *ctx, struct tensor_array *a, const struct tfc_tensor *indices,
                            struct tfc_tensor **out, int64_t *out_n) {
  tfc_status s = NULL;
  pthread_mutex_lock(&a->lock);
  int64_t n = indices ? tfc_tensor_elements(indices) : (int64_t)a->elements.count;
  struct tfc_tensor *t = calloc((size_t)n + 1, sizeof *t);
  if (!t) s = tfc_status_no_memory(NULL);
  for (int64_t i = 0; !s && i < n; i++) s = read_at(ctx, a, indices ? tfc_tensor_int(indices, i) : i, &t[i]);
  pthread_mutex_unlock(&a->lock);
  if (s) {
    release_all(t, n);
    return s;
  }
  *out = t;
  *out_n = n;
  return NULL;
}

static tfc_status gather_elements(struct tfc_kernel_ctx *ctx, struct tensor_array *a, const struct tfc_tensor *t,
                                  int64_t n, const struct tfc_shape *asked) {
  struct tfc_shape shape = n ? t[0].shape : TFC_SHAPE_UNKNOWN;
  struct tfc_tensor *y = NULL;
  if (n == 0) {
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&a->element_shape, asked, &shape));
    TFC_KERNEL_CHECK(tfc_shape_is_static(&shape),
                     "TensorArray has zero elements and its element shape %s is not fully "
                     "defined: currently only static shapes are supported when packing "
                     "zero-size TensorArrays.",
                     tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
  }
  TFC_KERNEL_CHECK(tfc_shape_compatible(asked, &shape), "TensorArray elements have shape %s, asked for %s",
                   tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}), tfc_shape_show(asked, (char[TFC_SHAPE_TEXT]){0}));
  struct tfc_shape all = tfc_data_prepend(n, &shape);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &all, &y));
  int64_t row = tfc_shape_elements(&shape);
  for (int64_t i = 0; i < n; i++) {
    TFC_KERNEL_CHECK(tfc_shape_equal(&shape, &t[i].shape),
                     "TensorArray has inconsistent shapes. Index 0 has shape: %s but index %lld has shape: %s",
                     tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}), (long long)i,
                     tfc_shape_show(&t[i].shape, (char[TFC_SHAPE_TEXT]){0}));
    TFC_RETURN_IF_ERROR(tfc_data_copy(y, i * row, &t[i]));
  }
  return NULL;
}
static struct tfc_shape attr_shape(struct tfc_kernel_ctx *ctx, const char *name) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, name);
  return a && a->kind == TFC_ATTR_SHAPE ? *a->shape : TFC_SHAPE_UNKNOWN;
}
// Inputs: (handle, indices, flow_in), or for Pack, which takes all elements, (handle, flow_in).
static tfc_status gather(struct tfc_kernel_ctx *ctx) {
  struct tensor_array *a = NULL;
  struct tfc_tensor *t = NULL;
  int64_t n = 0;
  struct tfc_shape asked = attr_shape(ctx, "element_shape");
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  const struct tfc_tensor *indices = ctx->input_count == 3 ? ctx->inputs[1] : NULL;
  TFC_KERNEL_CHECK(!indices || indices->shape.rank == 1, "Expected indices to be a vector");
  TFC_RETURN_IF_ERROR(read_many(ctx, a, indices, &t, &n));
  tfc_status s = gather_elements(ctx, a, t, n, &asked);
  release_all(t, n);
  return s;
}
static tfc_status concat_elements(struct tfc_kernel_ctx *ctx, struct tensor_array *a, const struct tfc_tensor *t,
                                  int64_t n, const struct tfc_shape *asked) {
  struct tfc_shape shape = {.rank = 1};
  struct tfc_tensor *y = NULL, *lengths = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_INT64, &TFC_SHAPE(n), &lengths));
  if (n == 0) {
    TFC_KERNEL_CHECK(tfc_shape_is_static(asked),
                     "TensorArray has zero elements and element_shape_except0 is not known");
    shape = tfc_data_prepend(0, asked);
  }
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) {
    TFC_KERNEL_CHECK(t[i].shape.rank >= 1,
                     "Concat saw a scalar shape at index %lld but requires at least vectors. Did "
                     "you mean to call pack?",
                     (long long)i);
    if (i == 0) shape = t[0].shape;
    struct tfc_shape own = t[i].shape;
    own.dims[0] = shape.dims[0];
    TFC_KERNEL_CHECK(tfc_shape_equal(&own, &shape),
                     "TensorArray has inconsistent shapes. Index 0 has shape %s but "
                     "index %lld has %s",
                     tfc_shape_show(&t[0].shape, (char[TFC_SHAPE_TEXT]){0}), (long long)i,
                     tfc_shape_show(&t[i].shape, (char[TFC_SHAPE_TEXT]){0}));
    ((int64_t *)lengths->data)[i] = t[i].shape.dims[0];
    total += t[i].shape.dims[0];
  }
  shape.dims[0] = total;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, a->dtype, &shape, &y));
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) {
    TFC_RETURN_IF_ERROR(tfc_data_copy(y, at, &t[i]));
    at += tfc_tensor_elements(&t[i]);
  }
  return NULL;
}
// Inputs: (handle, flow_in); outputs: value, lengths.
static tfc_status concat(struct tfc_kernel_ctx *ctx) {
  struct tensor_array *a = NULL;
  struct tfc_tensor *t = NULL;
  int64_t n = 0;
  struct tfc_shape asked = attr_shape(ctx, "element_shape_except0");
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  TFC_RETURN_IF_ERROR(read_many(ctx, a, NULL, &t, &n));
  tfc_status s = concat_elements(ctx, a, t, n, &asked);
  release_all(t, n);
  return s;
}
// Writes row i of `value` to element indices[i], or to element i if `indices` is NULL.
static tfc_status scatter_rows(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *indices,
                               const struct tfc_tensor *value) {
  struct tensor_array *a = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  TFC_KERNEL_CHECK(value->shape.rank >= 1, "Expected value to be at least a vector, but received shape: []");
  int64_t n = value->shape.dims[0];
  pthread_mutex_lock(&a->lock);
  if (!indices && !a->dynamic && n != (int64_t)a->elements.count)
    s = tfc_status_make(TFC_INVALID_ARGUMENT,
                        "Input value must have first dimension equal to the array size (%lld vs. %zu)", (long long)n,
                        a->elements.count);
  for (int64_t i = 0; !s && i < n; i++) {
    struct tfc_tensor row = {0};
    s = tfc_data_row(ctx, value, i, &row);
    if (!s) s = write_at(ctx, a, indices ? tfc_tensor_int(indices, i) : i, &row);
  }
  pthread_mutex_unlock(&a->lock);
  return s ? s : pass_flow(ctx, ctx->input_count - 1);
}
// Inputs: (handle, indices, value, flow_in).
static tfc_status scatter(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *indices = ctx->inputs[1], *value = ctx->inputs[2];
  TFC_KERNEL_CHECK(indices->shape.rank == 1, "Expected indices to be a vector");
  int64_t n = tfc_tensor_elements(indices), rows = value->shape.rank < 1 ? n : value->shape.dims[0];
  TFC_KERNEL_CHECK(n == rows, "Expected len(indices) == values.shape[0], but saw: %lld vs. %lld", (long long)n,
                   (long long)rows);
  return scatter_rows(ctx, indices, value);
}
// Inputs: (handle, value, flow_in).
static tfc_status unpack(struct tfc_kernel_ctx *ctx) {
  return scatter_rows(ctx, NULL, ctx->inputs[1]);
}
// Inputs: (handle, value, lengths, flow_in).
static tfc_status split(struct tfc_kernel_ctx *ctx) {
  struct tensor_array *a = NULL;
  const struct tfc_tensor *value = ctx->inputs[1], *lengths = ctx->inputs[2];
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  TFC_KERNEL_CHECK(lengths->shape.rank == 1, "Expected lengths to be a vector");
  TFC_KERNEL_CHECK(value->shape.rank >= 1, "Expected value to be at least a vector");
  int64_t n = tfc_tensor_elements(lengths), total = 0, row = 1, at = 0;
  for (int i = 1; i < value->shape.rank; i++) row *= value->shape.dims[i];
  for (int64_t i = 0; i < n; i++) {
    int64_t size = tfc_tensor_int(lengths, i);
    TFC_KERNEL_CHECK(size >= 0 && size <= value->shape.dims[0], "Invalid length %lld", (long long)size);
    total += size;
  }
  TFC_KERNEL_CHECK(total == value->shape.dims[0],
                   "Expected sum of lengths to be equal to values.shape[0], but sum of "
                   "lengths is %lld and value's shape is: %s",
                   (long long)total, tfc_shape_show(&value->shape, (char[TFC_SHAPE_TEXT]){0}));
  tfc_status s = NULL;
  pthread_mutex_lock(&a->lock);
  if (!a->is_gradient && !a->dynamic && n != (int64_t)a->elements.count)
    s = tfc_status_make(TFC_INVALID_ARGUMENT,
                        "TensorArray's size is not equal to the size of lengths (%zu vs. %lld), "
                        "and the TensorArray is not marked as dynamically resizeable",
                        a->elements.count, (long long)n);
  size_t size = tfc_dtype_size(value->dtype);
  for (int64_t i = 0; !s && i < n; i++) {
    struct tfc_tensor part = {0}, view = *value;
    view.shape.dims[0] = tfc_tensor_int(lengths, i);
    view.size = (size_t)(view.shape.dims[0] * row) * size;
    view.data = (char *)value->data + (size_t)(at * row) * size;
    at += view.shape.dims[0];
    s = tfc_state_tensor(ctx, value->dtype, &view.shape, &part);
    if (!s) s = tfc_data_copy(&part, 0, &view);
    if (!s)
      s = write_at(ctx, a, i, &part);
    else
      tfc_tensor_release(&part);
  }
  pthread_mutex_unlock(&a->lock);
  return s ? s : pass_flow(ctx, 3);
}
static tfc_status size(struct tfc_kernel_ctx *ctx) {
  struct tensor_array *a = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  pthread_mutex_lock(&a->lock);
  *(int32_t *)y->data = (int32_t)a->elements.count;
  pthread_mutex_unlock(&a->lock);
  return NULL;
}
static tfc_status close_(struct tfc_kernel_ctx *ctx) {
  struct tensor_array *a = NULL;
  TFC_RETURN_IF_ERROR(array_of(ctx, &a));
  pthread_mutex_lock(&a->lock);
  for (size_t i = 0; i < a->elements.count; i++) tfc_tensor_release(&a->elements.data[i].value);
  a->closed = true;
  pthread_mutex_unlock(&a->lock);
  return NULL;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static struct tfc_handle_info held(const struct tfc_shape_ctx *ctx) {
  const struct tfc_handle_info *h = ctx->input_handles ? ctx->input_handles[0] : NULL;
  return h && h->dtype != TFC_DTYPE_NONE ? *h : (struct tfc_handle_info){TFC_DTYPE_NONE, TFC_SHAPE_UNKNOWN};
}
// Infers the shape of a handle that consists of two strings. TensorFlow does so only for version 2.
static tfc_status shape_strings(struct tfc_shape_ctx *ctx) {
  if (tfc_str_ends(ctx->node->op, "V2")) ctx->outputs[0] = TFC_SHAPE(2);
  return NULL;
}
static tfc_status shape_create(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "element_shape");
  if (ctx->node->output_count == 1) return shape_strings(ctx);
  ctx->outputs[0] = tfc_data_handle_shape();
  ctx->outputs[1] = TFC_SHAPE_SCALAR;
  if (ctx->output_handles && a && a->kind == TFC_ATTR_SHAPE &&
      (a->shape->rank >= 0 &&
       (tfc_shape_is_static(a->shape) || tfc_node_attr_bool(ctx->graph, ctx->node, "identical_element_shapes", false))))
    ctx->output_handles[0] =
        (struct tfc_handle_info){tfc_node_attr_type(ctx->graph, ctx->node, "dtype", TFC_DTYPE_NONE), *a->shape};
  return NULL;
}
static tfc_status shape_gradient(struct tfc_shape_ctx *ctx) {
  if (ctx->node->output_count == 1) return shape_strings(ctx);
  ctx->outputs[0] = tfc_data_handle_shape();
  ctx->outputs[1] = TFC_SHAPE_SCALAR;
  if (ctx->output_handles && ctx->input_handles && ctx->input_handles[0] && ctx->node->input_count == 2)
    ctx->output_handles[0] = *ctx->input_handles[0];
  return NULL;
}
static tfc_status shape_write(struct tfc_shape_ctx *ctx) {
  struct tfc_handle_info h = held(ctx);
  struct tfc_shape merged;
  if (tfc_str_starts(ctx->node->op, "TensorArrayWrite"))
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&h.shape, ctx->inputs[2], &merged));
  ctx->outputs[0] = TFC_SHAPE_SCALAR;
  return NULL;
}
static tfc_status shape_read(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = held(ctx).shape;
  return NULL;
}
static tfc_status shape_gather(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "element_shape");
  struct tfc_shape asked = a && a->kind == TFC_ATTR_SHAPE ? *a->shape : TFC_SHAPE_UNKNOWN, e;
  struct tfc_handle_info h = held(ctx);
  TFC_RETURN_IF_ERROR(tfc_shape_merge(&asked, &h.shape, &e));
  ctx->outputs[0] = tfc_data_prepend(ctx->inputs[1]->rank == 1 ? ctx->inputs[1]->dims[0] : TFC_DIM_UNKNOWN, &e);
  return NULL;
}
static tfc_status shape_concat(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "element_shape_except0");
  ctx->outputs[0] = a && a->kind == TFC_ATTR_SHAPE ? tfc_data_prepend(TFC_DIM_UNKNOWN, a->shape) : TFC_SHAPE_UNKNOWN;
  ctx->outputs[1] = tfc_shape_unknown_of_rank(1);
  return NULL;
}

// --- Rows --------------------------------------------------------------------------------------------------------
// Rows that all versions have; handle_ is the type of the handle and v the ending of the names. The handle and the flow
// are in host memory; values are on the device.
#define KEEPS .flags = TFC_OP_STATEFUL
#define STOPS .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE
#define VERSION(v, handle_)                                                                                            \
  {.name = "TensorArrayWrite" v,                                                                                       \
   .role = TFC_ROLE_TENSOR_ARRAY,                                                                                      \
   .inputs = "handle: " handle_ ", index: int32, value: T, flow_in: float",                                            \
   .outputs = "flow_out: float",                                                                                       \
   .attrs = "T: type",                                                                                                 \
   KEEPS,                                                                                                              \
   .host = {"T", TFC_INT32_BIT},                                                                                       \
   .host_inputs = 11,                                                                                                  \
   .host_outputs = 1,                                                                                                  \
   .shape = shape_write,                                                                                               \
   .gradient = ops_tensor_array_grad_write,                                                                            \
   .kernel = write},                                                                                                   \
      {.name = "TensorArrayRead" v,                                                                                    \
       .role = TFC_ROLE_TENSOR_ARRAY,                                                                                  \
       .inputs = "handle: " handle_ ", index: int32, flow_in: float",                                                  \
       .outputs = "value: dtype",                                                                                      \
       .attrs = "dtype: type",                                                                                         \
       KEEPS,                                                                                                          \
       .host = {"dtype", TFC_INT32_BIT},                                                                               \
       .host_inputs = 7,                                                                                               \
       .shape = shape_read,                                                                                            \
       .gradient = ops_tensor_array_grad_read,                                                                         \
       .kernel = read},                                                                                                \
      {.name = "TensorArrayGather" v,                                                                                  \
       .role = TFC_ROLE_TENSOR_ARRAY,                                                                                  \
       .inputs = "handle: " handle_ ", indices: int32, flow_in: float",                                                \
       .outputs = "value: dtype",                                                                                      \
       .attrs = "dtype: type, element_shape: shape = unknown",                                                         \
       KEEPS,                                                                                                          \
       .host = {"dtype", TFC_INT32_BIT},                                                                               \
       .host_inputs = 7,                                                                                               \
       .shape = shape_gather,                                                                                          \
       .gradient = ops_tensor_array_grad_gather,                                                                       \
       .kernel = gather},                                                                                              \
      {.name = "TensorArrayScatter" v,                                                                                 \
       .role = TFC_ROLE_TENSOR_ARRAY,                                                                                  \
       .inputs = "handle: " handle_ ", indices: int32, value: T, flow_in: float",                                      \
       .outputs = "flow_out: float",                                                                                   \
       .attrs = "T: type",                                                                                             \
       KEEPS,                                                                                                          \
       .host = {"T", TFC_INT32_BIT},                                                                                   \
       .index_use = TFC_INDEX_MOVED,                                                                                   \
       .host_inputs = 11,                                                                                              \
       .host_outputs = 1,                                                                                              \
       .shape = shape_write,                                                                                           \
       .gradient = ops_tensor_array_grad_scatter,                                                                      \
       .kernel = scatter},                                                                                             \
      {.name = "TensorArrayConcat" v,                                                                                  \
       .role = TFC_ROLE_TENSOR_ARRAY,                                                                                  \
       .inputs = "handle: " handle_ ", flow_in: float",                                                                \
       .outputs = "value: dtype, lengths: int64",                                                                      \
       .attrs = "dtype: type, element_shape_except0: shape = unknown",                                                 \
       KEEPS,                                                                                                          \
       .host = {"dtype", TFC_INT32_BIT},                                                                               \
       .host_inputs = 3,                                                                                               \
       .host_outputs = 2,                                                                                              \
       .shape = shape_concat,                                                                                          \
       .gradient = ops_tensor_array_grad_concat,                                                                       \
       .kernel = concat},                                                                                              \
      {.name = "TensorArraySplit" v,                                                                                   \
       .role = TFC_ROLE_TENSOR_ARRAY,                                                                                  \
       .inputs = "handle: " handle_ ", value: T, lengths: int64, flow_in: float",                                      \
       .outputs = "flow_out: float",                                                                                   \
       .attrs = "T: type",                                                                                             \
       KEEPS,                                                                                                          \
       .host = {"T", TFC_INT32_BIT},                                                                                   \
       .host_inputs = 13,                                                                                              \
       .host_outputs = 1,                                                                                              \
       .shape = shape_write,                                                                                           \
       .gradient = ops_tensor_array_grad_split,                                                                        \
       .kernel = split},                                                                                               \
      {.name = "TensorArraySize" v,                                                                                    \
       .role = TFC_ROLE_TENSOR_ARRAY,                                                                                  \
       .inputs = "handle: " handle_ ", flow_in: float",                                                                \
       .outputs = "size: int32",                                                                                       \
       STOPS,                                                                                                          \
       .host_inputs = 3,                                                                                               \
       .host_outputs = 1,                                                                                              \
       .shape = ops_shape_scalar,                                                                                      \
       .kernel = size},                                                                                                \
      {.name = "TensorArrayClose" v,                                                                                   \
       .role = TFC_ROLE_TENSOR_ARRAY,                                                                                  \
       .inputs = "handle: " handle_,                                                                                   \
       STOPS,                                                                                                          \
       .host_inputs = 1,                                                                                               \
       .shape = ops_shape_none,                                                                                        \
       .kernel = close_},
#define CREATE STOPS, .host_inputs = 1, .host_outputs = 3, .shape = shape_create, .kernel = create
#define GRADIENT(inputs_)                                                                                              \
  STOPS, .attrs = "source: string", .host_inputs = inputs_, .host_outputs = 3, .shape = shape_gradient,                \
         .kernel = gradient_of

static const struct tfc_op_def data_tensor_array_rows[] = {
    {.name = "TensorArray",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "size: int32",
     .outputs = "handle: Ref(string)",
     .attrs = "dtype: type, dynamic_size: bool = false, clear_after_read: bool = true, tensor_array_name: string = '', "
              "element_shape: shape = unknown",
     CREATE,
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "TensorArrayV2",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "size: int32",
     .outputs = "handle: string",
     .attrs = "dtype: type, element_shape: shape = unknown, dynamic_size: bool = false, clear_after_read: bool = "
              "true, tensor_array_name: string = ''",
     CREATE,
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "TensorArrayV3",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "size: int32",
     .outputs = "handle: resource, flow: float",
     .attrs = "dtype: type, element_shape: shape = unknown, dynamic_size: bool = false, clear_after_read: bool = "
              "true, identical_element_shapes: bool = false, tensor_array_name: string = ''",
     CREATE,
     .host = {"dtype", TFC_INT32_BIT}},
    {.name = "TensorArrayGrad",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "handle: string, flow_in: float",
     .outputs = "grad_handle: Ref(string)",
     GRADIENT(3)},
    {.name = "TensorArrayGradV2",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "handle: string, flow_in: float",
     .outputs = "grad_handle: string",
     GRADIENT(3)},
    {.name = "TensorArrayGradV3",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "handle: resource, flow_in: float",
     .outputs = "grad_handle: resource, flow_out: float",
     GRADIENT(3)},
    {.name = "TensorArrayGradWithShape",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "handle: resource, flow_in: float, shape_to_prepend: int32",
     .outputs = "grad_handle: resource, flow_out: float",
     GRADIENT(7)},
    VERSION("", "Ref(string)") VERSION("V2", "string") VERSION("V3", "resource") //
    {.name = "TensorArrayPack",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "handle: Ref(string), flow_in: float",
     .outputs = "value: dtype",
     .attrs = "dtype: type, element_shape: shape = unknown",
     KEEPS,
     .host = {"dtype", TFC_INT32_BIT},
     .host_inputs = 3,
     .shape = ops_shape_nothing,
     .kernel = gather},
    {.name = "TensorArrayUnpack",
     .role = TFC_ROLE_TENSOR_ARRAY,
     .inputs = "handle: Ref(string), value: T, flow_in: float",
     .outputs = "flow_out: float",
     .attrs = "T: type",
     KEEPS,
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 5,
     .host_outputs = 1,
     .shape = shape_write,
     .kernel = unpack},
};
TFC_REGISTER_OPS(data_tensor_array_rows);
