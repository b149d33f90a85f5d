// TensorList… operations: a list of tensors is a value. Loops of TensorFlow 2 build their outputs and gradients with
// lists.
#include "runtime/ops/data_list.h"

#include "runtime/ops/data_variant.h"
#include "runtime/ops/state_common.h"

static tfc_status list_of(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_list **out) {
  struct tfc_object *o = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, i, &tfc_list_type, &o));
  *out = (struct tfc_list *)o;
  return NULL;
}
// Sets output 0 to `*list`. If `s` is an error, releases `*list` instead and returns `s`.
static tfc_status give(struct tfc_kernel_ctx *ctx, tfc_status s, struct tfc_list *const *list) {
  if (s) {
    if (*list) tfc_object_release(&(*list)->object);
    return s;
  }
  return tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &(*list)->object);
}
// Whether nobody but this operation uses the list of input 0.
static bool only_here(const struct tfc_kernel_ctx *ctx, const struct tfc_list *list) {
  const struct tfc_buffer *b = ctx->inputs[0]->buffer;
  return ctx->reusable & 1 && b && atomic_load_explicit(&b->references, memory_order_acquire) == 1 &&
         atomic_load_explicit(&list->object.references, memory_order_acquire) == 1;
}
static tfc_dtype element_dtype(const struct tfc_kernel_ctx *ctx) {
  return tfc_node_attr_type(ctx->graph, ctx->node, "element_dtype", TFC_DTYPE_NONE);
}

// --- Creating lists ----------------------------------------------------------------------------------------------
static tfc_status empty(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape shape;
  struct tfc_list *list = NULL;
  TFC_RETURN_IF_ERROR(tfc_data_shape(ctx->inputs[0], &shape));
  tfc_status s = tfc_list_create(element_dtype(ctx), &shape, 0, &list);
  if (!s) list->most = ops_scalar_int(ctx->inputs[1]);
  return give(ctx, s, &list);
}
static tfc_status reserve(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape shape;
  struct tfc_list *list = NULL;
  TFC_RETURN_IF_ERROR(tfc_data_shape(ctx->inputs[0], &shape));
  int64_t n = ops_scalar_int(ctx->inputs[1]);
  TFC_KERNEL_CHECK(n >= 0, "The num_elements to reserve must be a non negative number, but got %lld", (long long)n);
  return give(ctx, tfc_list_reserve(element_dtype(ctx), &shape, n, &list), &list);
}

// Checks that the rows of a tensor can be elements: their shape must be compatible with `element_shape`.
static tfc_status check_rows(const struct tfc_tensor *t, const struct tfc_shape *element_shape, struct tfc_shape *row) {
  TFC_KERNEL_CHECK(t->shape.rank >= 1, "Tensor must be at least a vector, but saw shape: %s",
                   tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
  *row = (struct tfc_shape){.rank = t->shape.rank - 1};
  for (int i = 0; i < row->rank; i++) row->dims[i] = t->shape.dims[i + 1];
  TFC_KERNEL_CHECK(
      tfc_shape_compatible(element_shape, row), "Specified a list with shape %s from a tensor with shape %s",
      tfc_shape_show(element_shape, (char[TFC_SHAPE_TEXT]){0}), tfc_shape_show(row, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}
static tfc_status from_tensor(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape shape, row;
  struct tfc_list *list = NULL;
  const struct tfc_tensor *t = ctx->inputs[0];
  TFC_RETURN_IF_ERROR(tfc_data_shape(ctx->inputs[1], &shape));
  TFC_RETURN_IF_ERROR(check_rows(t, &shape, &row));
  tfc_status s = tfc_list_create(t->dtype, &shape, t->shape.dims[0], &list);
  for (int64_t i = 0; !s && i < list->count; i++) s = tfc_data_row(ctx, t, i, tfc_list_at(list, i));
  return give(ctx, s, &list);
}
// Inputs: (tensor, indices, element_shape[, num_elements]).
static tfc_status scatter(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape shape, row;
  struct tfc_list *list = NULL;
  const struct tfc_tensor *t = ctx->inputs[0], *indices = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_data_shape(ctx->inputs[2], &shape));
  TFC_RETURN_IF_ERROR(check_rows(t, &shape, &row));
  int64_t n = tfc_tensor_elements(indices), count = 0,
          wanted = ctx->input_count > 3 ? ops_scalar_int(ctx->inputs[3]) : -1;
  TFC_KERNEL_CHECK(n == t->shape.dims[0], "Invalid number of rows in input tensor. Expected: %lld Actual: %lld",
                   (long long)n, (long long)t->shape.dims[0]);
  TFC_KERNEL_CHECK(wanted >= -1, "TensorListScatter expects num_elements >= -1, found: %lld", (long long)wanted);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(at >= 0, "Indices in TensorListScatter must all be non-negative.");
    TFC_KERNEL_CHECK(wanted < 0 || at < wanted,
                     "TensorListScatter: Trying to scatter at index %lld in list with size %lld", (long long)at,
                     (long long)wanted);
    if (at >= count) count = at + 1;
  }
  tfc_status s = tfc_list_create(t->dtype, &shape, wanted >= 0 ? wanted : count, &list);
  for (int64_t i = 0; !s && i < n; i++) {
    struct tfc_tensor *to = tfc_list_at(list, tfc_tensor_int(indices, i));
    tfc_tensor_release(to);
    s = tfc_data_row(ctx, t, i, to);
  }
  return give(ctx, s, &list);
}
// Inputs: (input_handle, tensor, indices).
static tfc_status scatter_into(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape row;
  struct tfc_list *list = NULL, *made = NULL;
  const struct tfc_tensor *t = ctx->inputs[1], *indices = ctx->inputs[2];
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  TFC_RETURN_IF_ERROR(check_rows(t, &list->element_shape, &row));
  int64_t n = tfc_tensor_elements(indices), count = list->count;
  TFC_KERNEL_CHECK(n == t->shape.dims[0], "Invalid number of rows in input tensor. Expected: %lld Actual: %lld",
                   (long long)n, (long long)t->shape.dims[0]);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = tfc_tensor_int(indices, i);
    TFC_KERNEL_CHECK(at >= 0, "Indices in TensorListScatter must all be non-negative.");
    if (at >= count) count = at + 1;
  }
  tfc_status s = tfc_list_create(list->dtype, &list->element_shape, count, &made);
  if (!s) made->most = list->most;
  for (int64_t i = 0; !s && i < list->count; i++)
    if (tfc_list_at(list, i)->dtype != TFC_DTYPE_NONE) tfc_tensor_share(tfc_list_at(list, i), tfc_list_at(made, i));
  for (int64_t i = 0; !s && i < n; i++) {
    struct tfc_tensor *to = tfc_list_at(made, tfc_tensor_int(indices, i));
    tfc_tensor_release(to);
    s = tfc_data_row(ctx, t, i, to);
  }
  return give(ctx, s, &made);
}

// --- Changing lists ----------------------------------------------------------------------------------------------
static tfc_status check_element(const struct tfc_list *list, const struct tfc_tensor *t) {
  TFC_KERNEL_CHECK(t->dtype == list->dtype, "Invalid data types; list elements %s but tried to add %s",
                   tfc_dtype_name(list->dtype), tfc_dtype_name(t->dtype));
  TFC_KERNEL_CHECK(tfc_shape_compatible(&list->element_shape, &t->shape),
                   "Tried to add a tensor with incompatible shape to a list. Tensor shape: %s list shape: %s",
                   tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&list->element_shape, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}
static tfc_status push(struct tfc_kernel_ctx *ctx, bool shape_only) {
  struct tfc_list *list = NULL, *made = NULL;
  const struct tfc_tensor *t = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  TFC_RETURN_IF_ERROR(check_element(list, ctx->inputs[1]));
  TFC_KERNEL_CHECK(list->most < 0 || list->count < list->most,
                   "Tried to push item into a full list. list size: %lld "
                   "max_num_elements: %lld",
                   (long long)list->count, (long long)list->most);
  TFC_RETURN_IF_ERROR(tfc_list_change(list, list->count + 1, list->count, only_here(ctx, list), &made));
  struct tfc_tensor *to = tfc_list_at(made, list->count);
  if (!shape_only) return give(ctx, tfc_data_keep(ctx, t, to), &made);
  to->dtype = t->dtype, to->shape = t->shape, to->size = t->size;
  return give(ctx, NULL, &made);
}
static tfc_status push_back(struct tfc_kernel_ctx *ctx) {
  return push(ctx, false);
}
static tfc_status push_back_shape(struct tfc_kernel_ctx *ctx) {
  return push(ctx, true);
}
// Appends row i to list i of a vector of lists.
static tfc_status push_back_batch(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *handles = ctx->inputs[0], *t = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  TFC_KERNEL_CHECK(handles->shape.rank == 1 && t->shape.rank >= 1 && handles->shape.dims[0] == t->shape.dims[0],
                   "Expected tensor.shape[0] == input_handles.size, but saw %s and %s",
                   tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&handles->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_VARIANT, &handles->shape, &y));
  for (int64_t i = 0; i < handles->shape.dims[0]; i++) {
    struct tfc_object *o = ((struct tfc_object **)handles->data)[i];
    TFC_KERNEL_CHECK(o && o->type == &tfc_list_type, "input 0 must hold lists");
    struct tfc_list *list = (struct tfc_list *)o;
    struct tfc_tensor row = {0};
    struct tfc_list *made = NULL;
    TFC_RETURN_IF_ERROR(tfc_data_row(ctx, t, i, &row));
    tfc_status s = check_element(list, &row);
    if (!s) s = tfc_list_change(list, list->count + 1, list->count, false, &made);
    if (s) {
      tfc_tensor_release(&row);
      return s;
    }
    *tfc_list_at(made, list->count) = row;
    tfc_object_release(((struct tfc_object **)y->data)[i]);
    ((struct tfc_object **)y->data)[i] = &made->object;
  }
  return NULL;
}
// Makes what an element that was never written reads as: zeros, if what is known determines its shape.
static tfc_status unwritten(struct tfc_kernel_ctx *ctx, const struct tfc_list *list, const struct tfc_tensor *asked,
                            struct tfc_tensor *out) {
  struct tfc_shape shape, merged;
  TFC_RETURN_IF_ERROR(tfc_data_shape(asked, &shape));
  TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, &list->element_shape, &merged));
  for (int64_t i = 0; i < list->count && !tfc_shape_is_static(&merged); i++)
    if (tfc_list_at(list, i)->dtype != TFC_DTYPE_NONE) {
      shape = merged;
      TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, &tfc_list_at(list, i)->shape, &merged));
    }
  TFC_KERNEL_CHECK(tfc_shape_is_static(&merged),
                   "Trying to read an uninitialized tensor but element_shape is not fully defined: %s",
                   tfc_shape_show(&merged, (char[TFC_SHAPE_TEXT]){0}));
  return tfc_data_zeros(ctx, list->dtype, &merged, out);
}
static tfc_status give_element(struct tfc_kernel_ctx *ctx, uint32_t output, const struct tfc_list *list, int64_t index,
                               const struct tfc_tensor *asked) {
  const struct tfc_tensor *t = tfc_list_at(list, index);
  if (t->dtype != TFC_DTYPE_NONE) return tfc_kernel_set_output(ctx, output, t);
  struct tfc_tensor zeros = {0};
  TFC_RETURN_IF_ERROR(unwritten(ctx, list, asked, &zeros));
  return tfc_data_output(ctx, output, &zeros);
}
static tfc_status check_dtype(struct tfc_kernel_ctx *ctx, const struct tfc_list *list) {
  TFC_KERNEL_CHECK(list->dtype == element_dtype(ctx), "Invalid data types; op elements %s but list elements %s",
                   tfc_dtype_name(element_dtype(ctx)), tfc_dtype_name(list->dtype));
  return NULL;
}
static tfc_status pop_back(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL, *made = NULL;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  TFC_RETURN_IF_ERROR(check_dtype(ctx, list));
  TFC_KERNEL_CHECK(list->count > 0, "Trying to pop from an empty list.");
  TFC_RETURN_IF_ERROR(give_element(ctx, 1, list, list->count - 1, ctx->inputs[1]));
  return give(ctx, tfc_list_change(list, list->count - 1, -1, only_here(ctx, list), &made), &made);
}
static tfc_status set_item(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL, *made = NULL;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  TFC_RETURN_IF_ERROR(check_element(list, ctx->inputs[2]));
  int64_t index = ops_scalar_int(ctx->inputs[1]), count = list->count;
  bool grow = tfc_node_attr_bool(ctx->graph, ctx->node, "resize_if_index_out_of_bounds", false);
  if (grow && index >= count && index < 1 << 30) count = index + 1;
  TFC_KERNEL_CHECK(index >= 0 && index < count, "Trying to modify element %lld in a list with %lld elements.",
                   (long long)index, (long long)list->count);
  TFC_RETURN_IF_ERROR(tfc_list_change(list, count, index, only_here(ctx, list), &made));
  tfc_tensor_release(tfc_list_at(made, index));
  return give(ctx, tfc_data_keep(ctx, ctx->inputs[2], tfc_list_at(made, index)), &made);
}
static tfc_status resize(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL, *made = NULL;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  int64_t n = ops_scalar_int(ctx->inputs[1]);
  TFC_KERNEL_CHECK(n >= 0, "TensorListSlice expects size to be non-negative. Got: %lld", (long long)n);
  return give(ctx, tfc_list_change(list, n, -1, only_here(ctx, list), &made), &made);
}
static tfc_status concat_lists(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *a = ctx->inputs[0], *b = ctx->inputs[1];
  TFC_KERNEL_CHECK(tfc_shape_equal(&a->shape, &b->shape), "The lists to concatenate must have one shape");
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output_like(ctx, 0, a, &y));
  for (int64_t k = 0; k < tfc_tensor_elements(a); k++) {
    struct tfc_object *oa = ((struct tfc_object **)a->data)[k], *ob = ((struct tfc_object **)b->data)[k];
    TFC_KERNEL_CHECK(oa && ob && oa->type == &tfc_list_type && ob->type == &tfc_list_type, "inputs must hold lists");
    const struct tfc_list *x = (struct tfc_list *)oa, *z = (struct tfc_list *)ob;
    struct tfc_list *made = NULL;
    TFC_RETURN_IF_ERROR(tfc_list_create(x->dtype, &x->element_shape, x->count + z->count, &made));
    for (int64_t i = 0; i < x->count + z->count; i++) {
      const struct tfc_tensor *t = i < x->count ? tfc_list_at(x, i) : tfc_list_at(z, i - x->count);
      if (t->dtype != TFC_DTYPE_NONE) tfc_tensor_share(t, tfc_list_at(made, i));
    }
    ((struct tfc_object **)y->data)[k] = &made->object;
  }
  return NULL;
}

// --- Reading lists -----------------------------------------------------------------------------------------------
static tfc_status get_item(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  TFC_RETURN_IF_ERROR(check_dtype(ctx, list));
  int64_t index = ops_scalar_int(ctx->inputs[1]);
  TFC_KERNEL_CHECK(index >= 0 && index < list->count, "Trying to access element %lld in a list with %lld elements.",
                   (long long)index, (long long)list->count);
  return give_element(ctx, 0, list, index, ctx->inputs[2]);
}
static tfc_status length(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  *(int32_t *)y->data = (int32_t)list->count;
  return NULL;
}
static tfc_status element_shape(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  const struct tfc_shape *s = &list->element_shape;
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, s->rank < 0 ? &TFC_SHAPE_SCALAR : &TFC_SHAPE(s->rank), &y));
  for (int i = 0; i < (s->rank < 0 ? 1 : s->rank); i++) {
    int64_t d = s->rank < 0 || s->dims[i] < 0 ? -1 : s->dims[i];
    if (type == TFC_INT32)
      ((int32_t *)y->data)[i] = (int32_t)d;
    else
      ((int64_t *)y->data)[i] = d;
  }
  return NULL;
}
// Finds a shape that all elements and the caller agree on.
static tfc_status common_shape(const struct tfc_list *list, const struct tfc_tensor *asked, struct tfc_shape *out) {
  struct tfc_shape shape, merged;
  TFC_RETURN_IF_ERROR(tfc_data_shape(asked, &shape));
  TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, &list->element_shape, &merged));
  for (int64_t i = 0; i < list->count; i++)
    if (tfc_list_at(list, i)->dtype != TFC_DTYPE_NONE) {
      shape = merged;
      TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, &tfc_list_at(list, i)->shape, &merged));
    }
  *out = merged;
  return NULL;
}
// Output 0 [n, element_shape] becomes the elements at `indices`, or all elements if that is NULL.
static tfc_status stack_elements(struct tfc_kernel_ctx *ctx, const struct tfc_list *list, int64_t n,
                                 const struct tfc_tensor *indices, const struct tfc_tensor *asked) {
  struct tfc_shape shape;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(check_dtype(ctx, list));
  TFC_RETURN_IF_ERROR(common_shape(list, asked, &shape));
  TFC_KERNEL_CHECK(tfc_shape_is_static(&shape),
                   "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element "
                   "shape: %s",
                   tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(shape.rank < TFC_MAX_RANK, "too many dimensions");
  struct tfc_shape all = tfc_data_prepend(n, &shape);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, list->dtype, &all, &y));
  int64_t row = tfc_shape_elements(&shape);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = indices ? tfc_tensor_int(indices, i) : i;
    TFC_KERNEL_CHECK(at >= 0 && at < list->count, "Trying to gather element %lld in a list with %lld elements.",
                     (long long)at, (long long)list->count);
    const struct tfc_tensor *t = tfc_list_at(list, at);
    size_t bytes = (size_t)row * tfc_dtype_size(list->dtype);
    if (t->dtype != TFC_DTYPE_NONE)
      TFC_RETURN_IF_ERROR(tfc_data_copy(y, i * row, t));
    else if (tfc_dtype_is_plain(list->dtype) && bytes)
      memset((char *)y->data + (size_t)i * bytes, 0, bytes);
  }
  return NULL;
}
static tfc_status stack(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  int64_t n = tfc_node_attr_int(ctx->graph, ctx->node, "num_elements", -1);
  TFC_KERNEL_CHECK(n < 0 || n == list->count,
                   "Operation expected a list with %lld elements but got a list with %lld "
                   "elements.",
                   (long long)n, (long long)list->count);
  return stack_elements(ctx, list, list->count, NULL, ctx->inputs[1]);
}
static tfc_status gather(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  return stack_elements(ctx, list, tfc_tensor_elements(ctx->inputs[1]), ctx->inputs[1], ctx->inputs[2]);
}

// Inputs: (input_handle, element_shape, leading_dims). Joins the elements along their first dimension; the second
// output has their sizes. leading_dims has the sizes of elements that were never written.
static tfc_status concat(struct tfc_kernel_ctx *ctx) {
  struct tfc_list *list = NULL;
  struct tfc_shape shape, rest = TFC_SHAPE_UNKNOWN, merged;
  struct tfc_tensor *y = NULL, *lengths = NULL;
  bool v2 = ctx->input_count > 1;
  TFC_RETURN_IF_ERROR(list_of(ctx, 0, &list));
  TFC_RETURN_IF_ERROR(check_dtype(ctx, list));
  if (v2) {
    TFC_RETURN_IF_ERROR(tfc_data_shape(ctx->inputs[1], &shape));
  } else {
    const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "element_shape");
    shape = a && a->kind == TFC_ATTR_SHAPE ? *a->shape : TFC_SHAPE_UNKNOWN;
  }
  const struct tfc_tensor *leading = v2 ? ctx->inputs[2] : NULL;
  TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, &list->element_shape, &merged));
  TFC_KERNEL_CHECK(merged.rank != 0, "Concat requires elements to be at least vectors, found scalars instead.");
  if (merged.rank > 0) { // elements may differ in their first dimension
    merged.dims[0] = TFC_DIM_UNKNOWN;
    rest = merged;
  }
  int64_t total = 0;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, TFC_INT64, &TFC_SHAPE(list->count), &lengths));
  for (int64_t i = 0; i < list->count; i++) {
    const struct tfc_tensor *t = tfc_list_at(list, i);
    int64_t size;
    if (t->dtype != TFC_DTYPE_NONE) {
      TFC_KERNEL_CHECK(t->shape.rank >= 1, "Concat saw a scalar shape at index %lld but requires at least vectors.",
                       (long long)i);
      struct tfc_shape own = t->shape;
      size = own.dims[0];
      own.dims[0] = TFC_DIM_UNKNOWN;
      shape = rest;
      TFC_RETURN_IF_ERROR(tfc_shape_merge(&shape, &own, &rest));
    } else {
      TFC_KERNEL_CHECK(leading && i < tfc_tensor_elements(leading) && tfc_tensor_int(leading, i) >= 0,
                       "Element %lld was never written and no leading dimension is given for it", (long long)i);
      size = tfc_tensor_int(leading, i);
    }
    ((int64_t *)lengths->data)[i] = size;
    total += size;
  }
  TFC_KERNEL_CHECK(rest.rank >= 1, "All except the first dimension must be fully defined when concating an empty "
                                   "tensor list");
  rest.dims[0] = total;
  TFC_KERNEL_CHECK(tfc_shape_is_static(&rest), "All except the first dimension must be fully defined: %s",
                   tfc_shape_show(&rest, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, list->dtype, &rest, &y));
  int64_t row = 1, at = 0;
  for (int i = 1; i < rest.rank; i++) row *= rest.dims[i];
  for (int64_t i = 0; i < list->count; i++) {
    const struct tfc_tensor *t = tfc_list_at(list, i);
    int64_t size = ((int64_t *)lengths->data)[i];
    if (t->dtype != TFC_DTYPE_NONE)
      TFC_RETURN_IF_ERROR(tfc_data_copy(y, at * row, t));
    else if (tfc_dtype_is_plain(list->dtype))
      memset((char *)y->data + (size_t)(at * row) * tfc_dtype_size(list->dtype), 0,
             (size_t)(size * row) * tfc_dtype_size(list->dtype));
    at += size;
  }
  return NULL;
}

static tfc_status split(struct tfc_kernel_ctx *ctx) {
  struct tfc_shape shape;
  struct tfc_list *list = NULL;
  const struct tfc_tensor *t = ctx->inputs[0], *lengths = ctx->inputs[2];
  TFC_RETURN_IF_ERROR(tfc_data_shape(ctx->inputs[1], &shape));
  TFC_KERNEL_CHECK(t->shape.rank >= 1, "Tensor must be at least a vector, but saw shape: %s",
                   tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(lengths->shape.rank == 1, "Expected lengths to be a vector");
  int64_t n = tfc_tensor_elements(lengths), total = 0, row = 1, at = 0;
  for (int i = 1; i < t->shape.rank; i++) row *= t->shape.dims[i];
  for (int64_t i = 0; i < n; i++) {
    int64_t size = tfc_tensor_int(lengths, i);
    TFC_KERNEL_CHECK(size >= 0 && size <= t->shape.dims[0], "Invalid value in lengths: %lld", (long long)size);
    total += size;
  }
  TFC_KERNEL_CHECK(total == t->shape.dims[0], "Attempting to split a tensor with %lld rows into parts of %lld in all",
                   (long long)t->shape.dims[0], (long long)total);
  struct tfc_shape part = t->shape;
  part.dims[0] = TFC_DIM_UNKNOWN;
  TFC_KERNEL_CHECK(tfc_shape_compatible(&shape, &part), "tensor shape %s is not compatible with element_shape %s",
                   tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&shape, (char[TFC_SHAPE_TEXT]){0}));
  tfc_status s = tfc_list_create(t->dtype, &shape, n, &list);
  for (int64_t i = 0; !s && i < n; i++) {
    struct tfc_tensor *to = tfc_list_at(list, i);
    part.dims[0] = tfc_tensor_int(lengths, i);
    s = tfc_state_tensor(ctx, t->dtype, &part, to);
    struct tfc_tensor view = *t;
    view.shape = part;
    view.size = (size_t)(part.dims[0] * row) * tfc_dtype_size(t->dtype);
    view.data = (char *)t->data + (size_t)(at * row) * tfc_dtype_size(t->dtype);
    if (!s) s = tfc_data_copy(to, 0, &view);
    at += part.dims[0];
  }
  return give(ctx, s, &list);
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static struct tfc_shape asked_shape(struct tfc_shape_ctx *ctx, uint32_t i) {
  const struct tfc_tensor *t = ctx->input_values ? ctx->input_values[i] : NULL;
  struct tfc_shape shape;
  if (t) {
    tfc_status s = tfc_data_shape(t, &shape);
    if (!s) return shape;
    tfc_status_free(s);
  }
  if (ctx->inputs[i]->rank == 1) return ops_described_shape(ctx, i);
  return TFC_SHAPE_UNKNOWN;
}
static struct tfc_handle_info held(const struct tfc_shape_ctx *ctx) {
  const struct tfc_handle_info *h = ctx->input_handles ? ctx->input_handles[0] : NULL;
  return h && h->dtype != TFC_DTYPE_NONE ? *h : (struct tfc_handle_info){TFC_DTYPE_NONE, TFC_SHAPE_UNKNOWN};
}
static void hold(struct tfc_shape_ctx *ctx, tfc_dtype dtype, struct tfc_shape shape) {
  ctx->outputs[0] = TFC_SHAPE_SCALAR;
  if (ctx->output_handles) ctx->output_handles[0] = (struct tfc_handle_info){dtype, shape};
}
static tfc_dtype attr_dtype(const struct tfc_shape_ctx *ctx) {
  return tfc_node_attr_type(ctx->graph, ctx->node, "element_dtype", TFC_DTYPE_NONE);
}
static tfc_status shape_new(struct tfc_shape_ctx *ctx) { // element_shape is input 0
  hold(ctx, attr_dtype(ctx), asked_shape(ctx, 0));
  return NULL;
}
static tfc_status shape_from_tensor(struct tfc_shape_ctx *ctx) { // element_shape is input 1
  struct tfc_shape asked = asked_shape(ctx, 1), row = TFC_SHAPE_UNKNOWN, merged;
  const struct tfc_shape *t = ctx->inputs[0];
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, NULL));
  if (t->rank > 0) {
    row = (struct tfc_shape){.rank = t->rank - 1};
    for (int i = 0; i < row.rank; i++) row.dims[i] = t->dims[i + 1];
  }
  TFC_RETURN_IF_ERROR(tfc_shape_merge(&asked, &row, &merged));
  hold(ctx, attr_dtype(ctx), asked);
  return NULL;
}
static tfc_status shape_scatter(struct tfc_shape_ctx *ctx) { // element_shape is input 2
  hold(ctx, attr_dtype(ctx), asked_shape(ctx, 2));
  return NULL;
}
static tfc_status shape_split(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(ops_with_rank_at_least(ctx, 0, 1, NULL));
  hold(ctx, attr_dtype(ctx), asked_shape(ctx, 1));
  return NULL;
}
static tfc_status shape_keep(struct tfc_shape_ctx *ctx) {
  struct tfc_handle_info h = held(ctx);
  hold(ctx, h.dtype != TFC_DTYPE_NONE ? h.dtype : attr_dtype(ctx), h.shape);
  return NULL;
}
static tfc_status shape_batch(struct tfc_shape_ctx *ctx) { // there is one list for each row
  struct tfc_shape handles, rows;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 1, &handles));
  ctx->outputs[0] = handles;
  if (ctx->inputs[1]->rank < 0) return NULL;
  rows = *ctx->inputs[1];
  if (!rows.rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "a scalar has no rows");
  return tfc_dim_merge(handles.dims[0], rows.dims[0], &ctx->outputs[0].dims[0]);
}
static tfc_status shape_push(struct tfc_shape_ctx *ctx) {
  struct tfc_handle_info h = held(ctx);
  struct tfc_shape merged;
  uint32_t element = tfc_str_is(ctx->node->op, "TensorListSetItem") ? 2 : 1;
  TFC_RETURN_IF_ERROR(tfc_shape_merge(&h.shape, ctx->inputs[element], &merged));
  return shape_keep(ctx);
}
static tfc_status element(struct tfc_shape_ctx *ctx, uint32_t asked, struct tfc_shape *out) {
  struct tfc_shape want = asked_shape(ctx, asked);
  struct tfc_handle_info h = held(ctx);
  return tfc_shape_merge(&want, &h.shape, out);
}
static tfc_status shape_pop(struct tfc_shape_ctx *ctx) {
  TFC_RETURN_IF_ERROR(element(ctx, 1, &ctx->outputs[1]));
  return shape_keep(ctx);
}
static tfc_status shape_get(struct tfc_shape_ctx *ctx) {
  return element(ctx, 2, &ctx->outputs[0]);
}
static tfc_status shape_stack(struct tfc_shape_ctx *ctx) {
  struct tfc_shape e;
  int64_t n = tfc_node_attr_int(ctx->graph, ctx->node, "num_elements", -1);
  TFC_RETURN_IF_ERROR(element(ctx, 1, &e));
  ctx->outputs[0] = tfc_data_prepend(n < 0 ? TFC_DIM_UNKNOWN : n, &e);
  return NULL;
}
static tfc_status shape_gather(struct tfc_shape_ctx *ctx) {
  struct tfc_shape e;
  TFC_RETURN_IF_ERROR(element(ctx, 2, &e));
  ctx->outputs[0] = tfc_data_prepend(ctx->inputs[1]->rank == 1 ? ctx->inputs[1]->dims[0] : TFC_DIM_UNKNOWN, &e);
  return NULL;
}
static tfc_status shape_concat(struct tfc_shape_ctx *ctx) {
  struct tfc_shape e = TFC_SHAPE_UNKNOWN;
  if (ctx->node->input_count > 1) TFC_RETURN_IF_ERROR(element(ctx, 1, &e));
  if (e.rank > 0) e.dims[0] = TFC_DIM_UNKNOWN;
  ctx->outputs[0] = e;
  ctx->outputs[1] = tfc_shape_unknown_of_rank(1);
  return NULL;
}
static tfc_status shape_element_shape(struct tfc_shape_ctx *ctx) {
  struct tfc_handle_info h = held(ctx);
  ctx->outputs[0] = h.shape.rank >= 0 ? TFC_SHAPE(h.shape.rank) : TFC_SHAPE_UNKNOWN;
  if (ctx->output_as_shape) ctx->output_as_shape[0] = h.shape;
  return NULL;
}

// --- Gradients ---------------------------------------------------------------------------------------------------
static struct tfc_output typed(const struct tfc_grad_ctx *c, const char *op, const struct tfc_output *in, uint32_t n,
                               tfc_dtype dtype) {
  struct tfc_attr attr = tfc_attr_type("element_dtype", dtype);
  return tfc_add(c->builder, op, NULL, in, n, &attr, 1);
}
static struct tfc_output shape_of_list(const struct tfc_grad_ctx *c, struct tfc_output list) {
  struct tfc_attr attr = tfc_attr_type("shape_type", TFC_INT32);
  return tfc_add(c->builder, "TensorListElementShape", NULL, &list, 1, &attr, 1);
}
static struct tfc_output rest_of_shape(const struct tfc_grad_ctx *c, struct tfc_output x) { // shape(x)[1:]
  return tfc_add3(c->builder, "Slice", tfc_add1(c->builder, "Shape", x),
                  tfc_add_i32_vector(c->builder, (int32_t[]){1}, 1),
                  tfc_add_i32_vector(c->builder, (int32_t[]){-1}, 1));
}
static struct tfc_output second(struct tfc_output o) {
  return (struct tfc_output){o.node, 1};
}

static tfc_status grad_of_push(struct tfc_grad_ctx *c) {
  struct tfc_output in[2] = {c->grad_outputs[0], grad_shape_of_input(c, 1)};
  struct tfc_output popped = typed(c, "TensorListPopBack", in, 2, grad_in_type(c, 1));
  c->grad_inputs[0] = popped;
  c->grad_inputs[1] = second(popped);
  return grad_status(c);
}
static tfc_status grad_of_pop(struct tfc_grad_ctx *c) {
  struct tfc_output list = c->grad_outputs[0], item = c->grad_outputs[1];
  tfc_dtype dtype = tfc_dtype_base(tfc_builder_dtype(c->builder, grad_out(c, 1)));
  if (!tfc_output_valid(item)) item = grad_zeros_like(c, grad_out(c, 1));
  if (!tfc_output_valid(list))
    list = typed(c, "EmptyTensorList",
                 (struct tfc_output[]){shape_of_list(c, grad_out(c, 0)), tfc_add_i32(c->builder, -1)}, 2, dtype);
  c->grad_inputs[0] = typed(c, "TensorListPushBack", (struct tfc_output[]){list, item}, 2, dtype);
  return grad_status(c);
}
static tfc_status grad_of_stack(struct tfc_grad_ctx *c) {
  struct tfc_output d = c->grad_outputs[0];
  c->grad_inputs[0] = tfc_add2(c->builder, "TensorListFromTensor", d, rest_of_shape(c, d));
  return grad_status(c);
}
static tfc_status grad_of_from_tensor(struct tfc_grad_ctx *c) {
  const struct tfc_shape *s = c->input_shapes[0];
  struct tfc_attr attrs[2] = {tfc_attr_type("element_dtype", grad_in_type(c, 0)),
                              tfc_attr_int("num_elements", s->rank > 0 && s->dims[0] >= 0 ? s->dims[0] : -1)};
  struct tfc_output in[2] = {c->grad_outputs[0], rest_of_shape(c, grad_in(c, 0))};
  c->grad_inputs[0] = tfc_add(c->builder, "TensorListStack", NULL, in, 2, attrs, 2);
  return grad_status(c);
}
static tfc_status grad_of_get(struct tfc_grad_ctx *c) {
  struct tfc_output list = grad_in(c, 0), size = tfc_add1(c->builder, "TensorListLength", list);
  tfc_dtype dtype = tfc_dtype_base(tfc_builder_dtype(c->builder, c->grad_outputs[0]));
  struct tfc_output made = typed(c, "TensorListReserve", (struct tfc_output[]){shape_of_list(c, list), size}, 2, dtype);
  c->grad_inputs[0] =
      typed(c, "TensorListSetItem", (struct tfc_output[]){made, grad_in(c, 1), c->grad_outputs[0]}, 3, dtype);
  return grad_status(c);
}
static tfc_status grad_of_set(struct tfc_grad_ctx *c) {
  struct tfc_output dlist = c->grad_outputs[0], index = grad_in(c, 1), item = grad_in(c, 2);
  tfc_dtype dtype = grad_in_type(c, 2);
  c->grad_inputs[0] =
      typed(c, "TensorListSetItem", (struct tfc_output[]){dlist, index, grad_zeros_like(c, item)}, 3, dtype);
  if (grad_attr_bool(c, "resize_if_index_out_of_bounds", false)) // the forward operation may have made the list longer
    c->grad_inputs[0] = tfc_add2(c->builder, "TensorListResize", c->grad_inputs[0],
                                 tfc_add1(c->builder, "TensorListLength", grad_in(c, 0)));
  c->grad_inputs[2] =
      typed(c, "TensorListGetItem", (struct tfc_output[]){dlist, index, grad_shape_of_input(c, 2)}, 3, dtype);
  return grad_status(c);
}
static tfc_status grad_of_resize(struct tfc_grad_ctx *c) {
  c->grad_inputs[0] = tfc_add2(c->builder, "TensorListResize", c->grad_outputs[0],
                               tfc_add1(c->builder, "TensorListLength", grad_in(c, 0)));
  return grad_status(c);
}
static tfc_status grad_of_gather(struct tfc_grad_ctx *c) {
  struct tfc_output d = c->grad_outputs[0], list = grad_in(c, 0);
  tfc_dtype dtype = tfc_dtype_base(tfc_builder_dtype(c->builder, d));
  struct tfc_output size = tfc_add1(c->builder, "TensorListLength", list);
  struct tfc_output made = typed(c, "TensorListReserve", (struct tfc_output[]){shape_of_list(c, list), size}, 2, dtype);
  c->grad_inputs[0] = tfc_add3(c->builder, "TensorListScatterIntoExistingList", made, d, grad_in(c, 1));
  return grad_status(c);
}
static tfc_status grad_of_scatter_into(struct tfc_grad_ctx *c) {
  struct tfc_output dlist = c->grad_outputs[0], t = grad_in(c, 1), at = grad_in(c, 2);
  struct tfc_output in[3] = {dlist, at, rest_of_shape(c, t)};
  c->grad_inputs[0] = tfc_add3(c->builder, "TensorListScatterIntoExistingList", dlist, grad_zeros_like(c, t), at);
  c->grad_inputs[1] = typed(c, "TensorListGather", in, 3, grad_in_type(c, 1));
  return grad_status(c);
}
static tfc_status grad_of_scatter(struct tfc_grad_ctx *c) {
  struct tfc_output t = grad_in(c, 0);
  c->grad_inputs[0] =
      typed(c, "TensorListGather", (struct tfc_output[]){c->grad_outputs[0], grad_in(c, 1), rest_of_shape(c, t)}, 3,
            grad_in_type(c, 0));
  return grad_status(c);
}
static tfc_status grad_of_concat(struct tfc_grad_ctx *c) {
  struct tfc_output d = c->grad_outputs[0];
  c->grad_inputs[0] = tfc_add3(c->builder, "TensorListSplit", d, shape_of_list(c, grad_in(c, 0)), grad_out(c, 1));
  return grad_status(c);
}
static tfc_status grad_of_split(struct tfc_grad_ctx *c) {
  struct tfc_builder *b = c->builder;
  struct tfc_output rest = rest_of_shape(c, grad_in(c, 0));
  struct tfc_output shape = tfc_add3(b, "ConcatV2", tfc_add_i32_vector(b, (int32_t[]){-1}, 1), rest, tfc_add_i32(b, 0));
  c->grad_inputs[0] = typed(c, "TensorListConcatV2", (struct tfc_output[]){c->grad_outputs[0], shape, grad_in(c, 2)}, 3,
                            grad_in_type(c, 0));
  return grad_status(c);
}

#define LIST(hosts_in, hosts_out, shape_, grad_, kernel_)                                                              \
  .host_inputs = hosts_in, .host_outputs = hosts_out, .shape = shape_, .gradient = grad_, .kernel = kernel_
const struct tfc_op_def tfc_list_push_shape_def = {.name = "_TensorListPushShape",
                                                   .inputs = "input_handle: variant, tensor: element_dtype",
                                                   .outputs = "output_handle: variant",
                                                   .attrs = "element_dtype: type",
                                                   .flags = TFC_OP_INPLACE_FIRST,
                                                   LIST(1, 1, shape_push, NULL, push_back_shape)};

static const struct tfc_op_def data_list_rows[] = {
    {.name = "EmptyTensorList",
     .inputs = "element_shape: shape_type, max_num_elements: int32",
     .outputs = "handle: variant",
     .attrs = "element_dtype: type, shape_type: {int32, int64}",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     LIST(3, 1, shape_new, NULL, empty)},
    {.name = "TensorListReserve",
     .inputs = "element_shape: shape_type, num_elements: int32",
     .outputs = "handle: variant",
     .attrs = "element_dtype: type, shape_type: {int32, int64}",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     LIST(3, 1, shape_new, NULL, reserve)},
    {.name = "TensorListFromTensor",
     .inputs = "tensor: element_dtype, element_shape: shape_type",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: type, shape_type: {int32, int64}",
     LIST(2, 1, shape_from_tensor, grad_of_from_tensor, from_tensor),
     .index_use = TFC_INDEX_MOVED},
    {.name = "TensorListScatter",
     .inputs = "tensor: element_dtype, indices: int32, element_shape: shape_type",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: type, shape_type: {int32, int64}",
     LIST(6, 1, shape_scatter, grad_of_scatter, scatter)},
    {.name = "TensorListScatterV2",
     .inputs = "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: type, shape_type: {int32, int64}",
     LIST(14, 1, shape_scatter, grad_of_scatter, scatter)},
    {.name = "TensorListScatterIntoExistingList",
     .inputs = "input_handle: variant, tensor: element_dtype, indices: int32",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: type",
     LIST(5, 1, shape_keep, grad_of_scatter_into, scatter_into)},
    {.name = "TensorListPushBack",
     .role = TFC_ROLE_LIST_PUSH,
     .inputs = "input_handle: variant, tensor: element_dtype",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: type",
     .flags = TFC_OP_INPLACE_FIRST,
     LIST(1, 1, shape_push, grad_of_push, push_back)},
    {.name = "TensorListPushBackBatch",
     .inputs = "input_handles: variant, tensor: element_dtype",
     .outputs = "output_handles: variant",
     .attrs = "element_dtype: type",
     LIST(1, 1, shape_batch, NULL, push_back_batch)},
    {.name = "TensorListPopBack",
     .role = TFC_ROLE_LIST_POP,
     .inputs = "input_handle: variant, element_shape: int32",
     .outputs = "output_handle: variant, tensor: element_dtype",
     .attrs = "element_dtype: type",
     .flags = TFC_OP_INPLACE_FIRST,
     LIST(3, 1, shape_pop, grad_of_pop, pop_back)},
    {.name = "TensorListSetItem",
     .inputs = "input_handle: variant, index: int32, item: element_dtype",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: type, resize_if_index_out_of_bounds: bool = false",
     .flags = TFC_OP_INPLACE_FIRST,
     LIST(3, 1, shape_push, grad_of_set, set_item)},
    {.name = "TensorListGetItem",
     .inputs = "input_handle: variant, index: int32, element_shape: int32",
     .outputs = "item: element_dtype",
     .attrs = "element_dtype: type",
     LIST(7, 0, shape_get, grad_of_get, get_item)},
    {.name = "TensorListResize",
     .inputs = "input_handle: variant, size: int32",
     .outputs = "output_handle: variant",
     .flags = TFC_OP_INPLACE_FIRST,
     LIST(3, 1, shape_keep, grad_of_resize, resize)},
    {.name = "TensorListConcatLists",
     .inputs = "input_a: variant, input_b: variant",
     .outputs = "output: variant",
     .attrs = "element_dtype: type",
     LIST(3, 1, shape_keep, NULL, concat_lists)},
    {.name = "TensorListLength",
     .inputs = "input_handle: variant",
     .outputs = "length: int32",
     .flags = TFC_OP_ABOUT_INPUTS | TFC_OP_NOT_DIFFERENTIABLE,
     LIST(1, 1, ops_shape_scalar, NULL, length)},
    {.name = "TensorListElementShape",
     .inputs = "input_handle: variant",
     .outputs = "element_shape: shape_type",
     .attrs = "shape_type: {int32, int64}",
     .flags = TFC_OP_ABOUT_INPUTS | TFC_OP_NOT_DIFFERENTIABLE,
     LIST(1, 1, shape_element_shape, NULL, element_shape)},
    {.name = "TensorListStack",
     .inputs = "input_handle: variant, element_shape: int32",
     .outputs = "tensor: element_dtype",
     .attrs = "element_dtype: type, num_elements: int = -1",
     LIST(3, 0, shape_stack, grad_of_stack, stack)},
    {.name = "TensorListGather",
     .inputs = "input_handle: variant, indices: int32, element_shape: int32",
     .outputs = "values: element_dtype",
     .attrs = "element_dtype: type",
     LIST(7, 0, shape_gather, grad_of_gather, gather)},
    {.name = "TensorListConcat",
     .inputs = "input_handle: variant",
     .outputs = "tensor: element_dtype, lengths: int64",
     .attrs = "element_dtype: type, element_shape: shape = unknown",
     LIST(1, 2, shape_concat, grad_of_concat, concat)},
    {.name = "TensorListConcatV2",
     .inputs = "input_handle: variant, element_shape: shape_type, leading_dims: int64",
     .outputs = "tensor: element_dtype, lengths: int64",
     .attrs = "element_dtype: type, shape_type: {int32, int64}",
     LIST(7, 2, shape_concat, grad_of_concat, concat)},
    {.name = "TensorListSplit",
     .inputs = "tensor: element_dtype, element_shape: shape_type, lengths: int64",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: type, shape_type: {int32, int64}",
     LIST(6, 1, shape_split, grad_of_split, split)},
};
TFC_REGISTER_OPS(data_list_rows);
