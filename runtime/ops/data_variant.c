#include "runtime/ops/data_variant.h"
#include "runtime/ops/data_ragged.h"

#include <stdlib.h>

#include "runtime/base/no_memory.h"
#include "runtime/ops/state_common.h"

tfc_status tfc_data_keep(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *t, struct tfc_tensor *out) {
  if (t->buffer) {
    tfc_tensor_share(t, out);
    return NULL;
  }
  if (!tfc_dtype_is_plain(t->dtype)) return tfc_tensor_clone(t, out);
  TFC_RETURN_IF_ERROR(tfc_state_tensor(ctx, t->dtype, &t->shape, out));
  if (t->size) memcpy(out->data, t->data, t->size);
  return NULL;
}

tfc_status tfc_data_zeros(struct tfc_kernel_ctx *ctx, tfc_dtype dtype, const struct tfc_shape *shape,
                          struct tfc_tensor *out) {
  TFC_RETURN_IF_ERROR(tfc_state_tensor(ctx, dtype, shape, out));
  if (tfc_dtype_is_plain(dtype) && out->size) memset(out->data, 0, out->size);
  return NULL;
}

tfc_status tfc_data_output(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_tensor *t) {
  tfc_status s = tfc_kernel_set_output(ctx, i, t);
  tfc_tensor_release(t);
  return s;
}

tfc_status tfc_data_shape(const struct tfc_tensor *t, struct tfc_shape *out) {
  if (t->shape.rank == 0 && tfc_dtype_is_integer(t->dtype)) {
    if (tfc_tensor_int(t, 0) != -1)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the only valid scalar shape is -1, the fully unknown shape");
    *out = TFC_SHAPE_UNKNOWN;
    return NULL;
  }
  if (t->shape.rank != 1 || !tfc_dtype_is_integer(t->dtype) || t->shape.dims[0] > TFC_MAX_RANK)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a shape must be an integer vector of at most %d, not %s %s",
                           TFC_MAX_RANK, tfc_dtype_name(t->dtype),
                           tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
  *out = (struct tfc_shape){.rank = (int32_t)t->shape.dims[0]};
  for (int i = 0; i < out->rank; i++) {
    out->dims[i] = tfc_tensor_int(t, i);
    if (out->dims[i] < -1) return tfc_status_make(TFC_INVALID_ARGUMENT, "dimension %d of a shape is below -1", i);
  }
  return NULL;
}

tfc_status tfc_data_row(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *t, int64_t index, struct tfc_tensor *out) {
  struct tfc_shape shape = {.rank = t->shape.rank - 1};
  for (int i = 0; i < shape.rank; i++) shape.dims[i] = t->shape.dims[i + 1];
  TFC_RETURN_IF_ERROR(tfc_state_tensor(ctx, t->dtype, &shape, out));
  int64_t n = tfc_shape_elements(&shape);
  if (tfc_dtype_is_plain(t->dtype)) {
    if (out->size) memcpy(out->data, (const char *)t->data + (size_t)index * out->size, out->size);
    return NULL;
  }
  for (int64_t i = 0; i < n; i++) {
    if (t->dtype == TFC_STRING) {
      TFC_RETURN_IF_ERROR(tfc_tensor_set_string(out, i, tfc_tensor_get_string(t, index * n + i)));
    } else {
      struct tfc_object *o = ((struct tfc_object **)t->data)[index * n + i];
      tfc_object_retain(o);
      ((struct tfc_object **)out->data)[i] = o;
    }
  }
  return NULL;
}

tfc_status tfc_data_copy(struct tfc_tensor *to, int64_t at, const struct tfc_tensor *from) {
  int64_t n = tfc_tensor_elements(from);
  if (tfc_dtype_is_plain(to->dtype)) {
    if (n) memcpy((char *)to->data + (size_t)at * tfc_dtype_size(to->dtype), from->data, from->size);
    return NULL;
  }
  for (int64_t i = 0; i < n; i++) {
    if (to->dtype == TFC_STRING) {
      TFC_RETURN_IF_ERROR(tfc_tensor_set_string(to, at + i, tfc_tensor_get_string(from, i)));
    } else {
      struct tfc_object **place = (struct tfc_object **)to->data + at + i, *o = ((struct tfc_object **)from->data)[i];
      tfc_object_retain(o);
      tfc_object_release(*place);
      *place = o;
    }
  }
  return NULL;
}

struct tfc_shape tfc_data_prepend(int64_t dim, const struct tfc_shape *s) {
  if (s->rank < 0 || s->rank == TFC_MAX_RANK) return TFC_SHAPE_UNKNOWN;
  struct tfc_shape out = {.rank = s->rank + 1, .dims = {dim}};
  for (int i = 0; i < s->rank; i++) out.dims[i + 1] = s->dims[i];
  return out;
}

// --- Lists -------------------------------------------------------------------------------------------------------
// The chunk of elements that nobody has written. Its references are not counted; as it is never the only one's, it is
// shared or copied, and not written, moved or freed.
static struct tfc_list_chunk unwritten = {.references = 2};

static void chunk_release(struct tfc_list_chunk *c) {
  if (!c || c == &unwritten || atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) != 1) return;
  for (int i = 0; i < TFC_LIST_CHUNK; i++) tfc_tensor_release(&c->items[i]);
  free(c);
}
static int64_t chunk_count(int64_t elements) {
  return (elements + TFC_LIST_CHUNK - 1) / TFC_LIST_CHUNK;
}

static void list_destroy(struct tfc_object *self) {
  struct tfc_list *list = (struct tfc_list *)self;
  for (int64_t i = 0; list->chunks && i < chunk_count(list->count); i++) chunk_release(list->chunks[i]);
  free(list->chunks);
  free(list);
}
const struct tfc_object_type tfc_list_type = {.name = "tensor list", .destroy = list_destroy};

static struct tfc_list_chunk *chunk_share(struct tfc_list_chunk *c) {
  if (c != &unwritten) atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
  return c;
}
static struct tfc_list_chunk *chunk_create(void) {
  struct tfc_list_chunk *c = calloc(1, sizeof *c);
  if (c) atomic_store(&c->references, 1);
  return c;
}

// Makes a list whose table has room for `count` elements and is empty.
static tfc_status list_new(tfc_dtype dtype, const struct tfc_shape *element_shape, int64_t count,
                           struct tfc_list **out) {
  enum { MOST = 1 << 30 };
  if (count < 0 || count > MOST)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a list of %lld elements", (long long)count);
  struct tfc_list *list = calloc(1, sizeof *list);
  if (list) list->chunks = calloc((size_t)chunk_count(count) + 1, sizeof *list->chunks);
  if (!list || !list->chunks) {
    free(list);
    return tfc_status_no_memory_for("a list of %lld elements", (long long)count);
  }
  list->object = (struct tfc_object){.type = &tfc_list_type, .references = 1};
  list->dtype = dtype;
  list->element_shape = *element_shape;
  list->count = count;
  list->most = -1;
  *out = list;
  return NULL;
}

tfc_status tfc_list_create(tfc_dtype dtype, const struct tfc_shape *element_shape, int64_t count,
                           struct tfc_list **out) {
  struct tfc_list *list = NULL;
  TFC_RETURN_IF_ERROR(list_new(dtype, element_shape, count, &list));
  for (int64_t i = 0; i < chunk_count(count); i++)
    if (!(list->chunks[i] = chunk_create())) {
      list_destroy(&list->object);
      return tfc_status_no_memory_for("a list of %lld elements", (long long)count);
    }
  *out = list;
  return NULL;
}

tfc_status tfc_list_reserve(tfc_dtype dtype, const struct tfc_shape *element_shape, int64_t count,
                            struct tfc_list **out) {
  TFC_RETURN_IF_ERROR(list_new(dtype, element_shape, count, out));
  for (int64_t i = 0; i < chunk_count(count); i++) (*out)->chunks[i] = chunk_share(&unwritten);
  return NULL;
}

// Moves chunk `i` of a list to `to`, if no other list has it. `count`: elements that the chunk shall keep; the others
// are released.
static bool move_chunk(struct tfc_list *list, int64_t i, int64_t count, struct tfc_list *to) {
  struct tfc_list_chunk *c = list->chunks[i];
  if (atomic_load_explicit(&c->references, memory_order_acquire) != 1) return false;
  for (int64_t k = count; k < TFC_LIST_CHUNK; k++) tfc_tensor_release(&c->items[k]);
  to->chunks[i] = c;
  list->chunks[i] = NULL;
  return true;
}

tfc_status tfc_list_change(struct tfc_list *list, int64_t count, int64_t index, bool only, struct tfc_list **out) {
  struct tfc_list *made = NULL;
  TFC_RETURN_IF_ERROR(list_new(list->dtype, &list->element_shape, count, &made));
  made->most = list->most;
  int64_t had = chunk_count(list->count), own = index >= 0 ? index / TFC_LIST_CHUNK : -1;
  for (int64_t i = 0; i < chunk_count(count); i++) {
    // A chunk that is cut is copied: when the list grows again, it must not show the elements that were cut off.
    bool cut = i == chunk_count(count) - 1 && count < list->count && count % TFC_LIST_CHUNK;
    if (only && i < had && move_chunk(list, i, cut ? count % TFC_LIST_CHUNK : TFC_LIST_CHUNK, made)) continue;
    if (i < had && i != own && !cut) {
      made->chunks[i] = chunk_share(list->chunks[i]);
      continue;
    }
    if (!(made->chunks[i] = chunk_create())) {
      list_destroy(&made->object);
      return tfc_status_no_memory(NULL);
    }
    for (int k = 0; i < had && k < TFC_LIST_CHUNK; k++) {
      int64_t at = i * TFC_LIST_CHUNK + k;
      if (at < count && at < list->count && list->chunks[i]->items[k].dtype != TFC_DTYPE_NONE)
        tfc_tensor_share(&list->chunks[i]->items[k], &made->chunks[i]->items[k]);
    }
  }
  *out = made;
  return NULL;
}

// --- Optionals ---------------------------------------------------------------------------------------------------
static void optional_destroy(struct tfc_object *self) {
  struct tfc_optional *o = (struct tfc_optional *)self;
  for (uint32_t i = 0; i < o->count; i++) tfc_tensor_release(&o->values[i]);
  free(o);
}
const struct tfc_object_type tfc_optional_type = {.name = "optional", .destroy = optional_destroy};

tfc_status tfc_optional_create(uint32_t count, bool present, struct tfc_optional **out) {
  struct tfc_optional *o = calloc(1, sizeof *o + count * sizeof *o->values);
  if (!o) return tfc_status_no_memory(NULL);
  o->object = (struct tfc_object){.type = &tfc_optional_type, .references = 1};
  o->count = count;
  o->present = present;
  *out = o;
  return NULL;
}

// --- Arithmetic --------------------------------------------------------------------------------------------------
static tfc_status value_zeros(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, struct tfc_tensor *out) {
  if (x->dtype == TFC_DTYPE_NONE) return NULL; // an element that was never written stays so
  return x->dtype == TFC_VARIANT ? tfc_variant_zeros_like(ctx, x, out) : tfc_data_zeros(ctx, x->dtype, &x->shape, out);
}

static tfc_status value_add(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *a, const struct tfc_tensor *b,
                            struct tfc_tensor *out) {
  if (a->dtype == TFC_DTYPE_NONE || b->dtype == TFC_DTYPE_NONE) { // an element that was never written adds nothing
    if (a->dtype != TFC_DTYPE_NONE) tfc_tensor_share(a, out);
    if (b->dtype != TFC_DTYPE_NONE) tfc_tensor_share(b, out);
    return NULL;
  }
  if (a->dtype == TFC_VARIANT && b->dtype == TFC_VARIANT) return tfc_variant_add(ctx, a, b, out);
  if (a->dtype != b->dtype || !tfc_shape_equal(&a->shape, &b->shape) ||
      !(OPS_BITS(OPS_NUMBERS) & TFC_TYPE_BIT(a->dtype)))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot add %s %s and %s %s", tfc_dtype_name(a->dtype),
                           tfc_shape_show(&a->shape, (char[TFC_SHAPE_TEXT]){0}), tfc_dtype_name(b->dtype),
                           tfc_shape_show(&b->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_RETURN_IF_ERROR(tfc_state_tensor(ctx, a->dtype, &a->shape, out));
  int64_t n = tfc_tensor_elements(a);
  OPS_SWITCH(OPS_NUMBERS, a->dtype, {
    const S *x = a->data, *y = b->data;
    S *z = out->data;
    for (int64_t i = 0; i < n; i++) OPS_PUT(z[i], OPS_GET(x[i]) + OPS_GET(y[i]));
  })
  return NULL;
}

static tfc_status object_zeros(struct tfc_kernel_ctx *ctx, struct tfc_object *x, struct tfc_object **out) {
  tfc_status s = NULL;
  if (x && x->type == &tfc_list_type) {
    const struct tfc_list *list = (const struct tfc_list *)x;
    struct tfc_list *made = NULL;
    TFC_RETURN_IF_ERROR(tfc_list_create(list->dtype, &list->element_shape, list->count, &made));
    made->most = list->most;
    for (int64_t i = 0; !s && i < list->count; i++) {
      // Neighbouring elements of the same type and shape share their zeros.
      const struct tfc_tensor *t = tfc_list_at(list, i), *before = i ? tfc_list_at(made, i - 1) : NULL;
      if (before && tfc_dtype_is_plain(t->dtype) && before->dtype == t->dtype &&
          tfc_shape_equal(&before->shape, &t->shape))
        tfc_tensor_share(before, tfc_list_at(made, i));
      else
        s = value_zeros(ctx, t, tfc_list_at(made, i));
    }
    *out = &made->object;
  } else if (x && x->type == &tfc_optional_type) {
    const struct tfc_optional *o = (const struct tfc_optional *)x;
    struct tfc_optional *made = NULL;
    TFC_RETURN_IF_ERROR(tfc_optional_create(o->count, o->present, &made));
    for (uint32_t i = 0; !s && i < o->count; i++) s = value_zeros(ctx, &o->values[i], &made->values[i]);
    *out = &made->object;
  } else if (x && x->type == &tfc_ragged_type) { // the same row splits, with zeros as values
    const struct tfc_ragged *r = (const struct tfc_ragged *)x;
    struct tfc_ragged *made = NULL;
    TFC_RETURN_IF_ERROR(tfc_ragged_create(r->count, &made));
    for (uint32_t i = 0; i + 1 < r->count; i++) tfc_tensor_share(&r->tensors[i], &made->tensors[i]);
    s = value_zeros(ctx, &r->tensors[r->count - 1], &made->tensors[r->count - 1]);
    *out = &made->object;
  } else {
    return tfc_status_make(TFC_INVALID_ARGUMENT, "no zeros like a variant that holds %s",
                           x ? x->type->name : "nothing");
  }
  if (s) tfc_object_release(*out), *out = NULL;
  return s;
}

// Adds two lists of the same length. Gradients of a loop are lists of which each iteration writes one element: what
// only one of the two has written is shared chunk by chunk.
static tfc_status list_add(struct tfc_kernel_ctx *ctx, const struct tfc_list *x, const struct tfc_list *y,
                           struct tfc_list *sum) {
  tfc_status s = NULL;
  for (int64_t i = 0; i < chunk_count(x->count) && !s; i++) {
    struct tfc_list_chunk *p = x->chunks[i], *q = y->chunks[i];
    if (p == &unwritten || q == &unwritten) {
      sum->chunks[i] = chunk_share(p == &unwritten ? q : p);
      continue;
    }
    if (!(sum->chunks[i] = chunk_create())) return tfc_status_no_memory(NULL);
    for (int k = 0; k < TFC_LIST_CHUNK && !s; k++)
      s = value_add(ctx, &p->items[k], &q->items[k], &sum->chunks[i]->items[k]);
  }
  return s;
}

static tfc_status object_add(struct tfc_kernel_ctx *ctx, struct tfc_object *a, struct tfc_object *b,
                             struct tfc_object **out) {
  tfc_status s = NULL;
  if (!a || !b || a->type != b->type)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot add variants that hold %s and %s",
                           a ? a->type->name : "nothing", b ? b->type->name : "nothing");
  if (a->type == &tfc_list_type) {
    const struct tfc_list *x = (const struct tfc_list *)a, *y = (const struct tfc_list *)b;
    struct tfc_list *made = NULL;
    struct tfc_shape shape;
    if (x->dtype != y->dtype || x->count != y->count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot add lists of %lld %s and %lld %s", (long long)x->count,
                             tfc_dtype_name(x->dtype), (long long)y->count, tfc_dtype_name(y->dtype));
    TFC_RETURN_IF_ERROR(tfc_shape_merge(&x->element_shape, &y->element_shape, &shape));
    TFC_RETURN_IF_ERROR(list_new(x->dtype, &shape, x->count, &made));
    s = list_add(ctx, x, y, made);
    *out = &made->object;
  } else if (a->type == &tfc_optional_type) {
    const struct tfc_optional *x = (const struct tfc_optional *)a, *y = (const struct tfc_optional *)b;
    struct tfc_optional *made = NULL;
    if (x->present != y->present || x->count != y->count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot add optional values of which one has a value and one none");
    TFC_RETURN_IF_ERROR(tfc_optional_create(x->count, x->present, &made));
    for (uint32_t i = 0; !s && i < x->count; i++) s = value_add(ctx, &x->values[i], &y->values[i], &made->values[i]);
    *out = &made->object;
  } else if (a->type == &tfc_ragged_type) {
    const struct tfc_ragged *x = (const struct tfc_ragged *)a, *y = (const struct tfc_ragged *)b;
    struct tfc_ragged *made = NULL;
    if (x->count != y->count)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot add ragged tensors of ragged ranks %u and %u", x->count - 1,
                             y->count - 1);
    TFC_RETURN_IF_ERROR(tfc_ragged_create(x->count, &made));
    for (uint32_t i = 0; !s && i + 1 < x->count; i++) {
      const struct tfc_tensor *p = &x->tensors[i], *q = &y->tensors[i];
      if (p->dtype != q->dtype || p->size != q->size || (p->size && memcmp(p->data, q->data, p->size) != 0))
        s = tfc_status_make(TFC_INVALID_ARGUMENT, "cannot add ragged tensors of different row splits");
      tfc_tensor_share(p, &made->tensors[i]);
    }
    if (!s) s = value_add(ctx, &x->tensors[x->count - 1], &y->tensors[x->count - 1], &made->tensors[x->count - 1]);
    *out = &made->object;
  } else {
    return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot add variants that hold a %s", a->type->name);
  }
  if (s) tfc_object_release(*out), *out = NULL;
  return s;
}

tfc_status tfc_variant_zeros_like(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *x, struct tfc_tensor *out) {
  struct tfc_tensor made = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_VARIANT, &x->shape, &made));
  tfc_status s = NULL;
  for (int64_t i = 0; !s && i < tfc_tensor_elements(x); i++)
    s = object_zeros(ctx, ((struct tfc_object **)x->data)[i], (struct tfc_object **)made.data + i);
  if (s)
    tfc_tensor_release(&made);
  else
    *out = made;
  return s;
}

tfc_status tfc_variant_add(struct tfc_kernel_ctx *ctx, const struct tfc_tensor *a, const struct tfc_tensor *b,
                           struct tfc_tensor *out) {
  struct tfc_tensor made = {0};
  if (!tfc_shape_equal(&a->shape, &b->shape))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "cannot add variants of different shapes");
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_VARIANT, &a->shape, &made));
  tfc_status s = NULL;
  for (int64_t i = 0; !s && i < tfc_tensor_elements(a); i++)
    s = object_add(ctx, ((struct tfc_object **)a->data)[i], ((struct tfc_object **)b->data)[i],
                   (struct tfc_object **)made.data + i);
  if (s)
    tfc_tensor_release(&made);
  else
    *out = made;
  return s;
}
