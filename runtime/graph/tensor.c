// A host buffer is one allocation: the record, and 64 bytes after its start the elements. Its bytes, with those of its
// strings, count on the account of the thread that made it.
#include "runtime/graph/tensor.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/memory_account.h"

enum { header = 64 };
_Static_assert(sizeof(struct tfc_buffer) <= header, "the elements start behind the record");

void tfc_object_release(struct tfc_object *o) {
  if (o && atomic_fetch_sub_explicit(&o->references, 1, memory_order_acq_rel) == 1) o->type->destroy(o);
}

void tfc_buffer_release(struct tfc_buffer *b) {
  if (b && atomic_fetch_sub_explicit(&b->references, 1, memory_order_acq_rel) == 1) b->destroy(b);
}

static size_t whole(size_t size) {
  return header + ((size + 63) & ~(size_t)63);
}

static void destroy_plain(struct tfc_buffer *b) {
  tfc_account_give(b->owner, whole(b->size) + atomic_load_explicit(&b->beside, memory_order_relaxed));
  free(b);
}
static void destroy_strings(struct tfc_buffer *b) {
  struct tfc_string *s = b->data;
  for (size_t i = 0; i < b->size / sizeof *s; i++) free(s[i].data);
  destroy_plain(b);
}
static void destroy_objects(struct tfc_buffer *b) {
  struct tfc_object **o = b->data;
  for (size_t i = 0; i < b->size / sizeof(struct tfc_object *); i++) tfc_object_release(o[i]);
  destroy_plain(b);
}

uint64_t tfc_buffer_stamp(struct tfc_buffer *b) {
  static _Atomic uint64_t last;
  uint64_t now = atomic_load_explicit(&b->stamp, memory_order_relaxed);
  if (now) return now;
  uint64_t fresh = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
  return atomic_compare_exchange_strong(&b->stamp, &now, fresh) ? fresh : now;
}

tfc_status tfc_buffer_create_host(size_t size, struct tfc_buffer **out) {
  struct tfc_memory_account *account = tfc_account_current();
  if (size > SIZE_MAX / 2 - 2 * header || !tfc_account_take(account, whole(size)))
    return tfc_account_exhausted(account, size);
  struct tfc_buffer *b = aligned_alloc(64, whole(size));
  if (!b) {
    tfc_account_give(account, whole(size));
    return tfc_account_exhausted(account, size);
  }
  *b = (struct tfc_buffer){
      .references = 1, .data = (char *)b + header, .size = size, .destroy = destroy_plain, .owner = account};
  *out = b;
  return NULL;
}

tfc_status tfc_tensor_bytes(tfc_dtype dtype, const struct tfc_shape *shape, size_t *out) {
  char text[TFC_SHAPE_TEXT];
  if (!tfc_dtype_valid(dtype)) return tfc_status_make(TFC_INVALID_ARGUMENT, "element type %d is unknown", (int)dtype);
  if (!tfc_shape_is_static(shape))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "shape %s is not fully known", tfc_shape_show(shape, text));
  int64_t n = tfc_shape_elements(shape);
  size_t bytes;
  if (n < 0 || __builtin_mul_overflow((size_t)n, tfc_dtype_size(dtype), &bytes) || bytes > SIZE_MAX / 4)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "shape %s of %s is too large", tfc_shape_show(shape, text),
                           tfc_dtype_name(dtype));
  *out = bytes;
  return NULL;
}

tfc_status tfc_tensor_create(tfc_dtype dtype, const struct tfc_shape *shape, struct tfc_tensor *out) {
  struct tfc_buffer *b = NULL;
  size_t bytes;
  dtype = tfc_dtype_base(dtype);
  TFC_RETURN_IF_ERROR(tfc_tensor_bytes(dtype, shape, &bytes));
  TFC_RETURN_IF_ERROR(tfc_buffer_create_host(bytes, &b));
  if (!tfc_dtype_is_plain(dtype)) {
    memset(b->data, 0, bytes);
    b->destroy = dtype == TFC_STRING ? destroy_strings : destroy_objects;
  }
  *out = (struct tfc_tensor){.dtype = dtype, .shape = *shape, .data = b->data, .size = bytes, .buffer = b};
  return NULL;
}

tfc_status tfc_tensor_scalar_i64(int64_t value, struct tfc_tensor *out) {
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_INT64, &TFC_SHAPE_SCALAR, out));
  *(int64_t *)out->data = value;
  return NULL;
}

void tfc_tensor_release(struct tfc_tensor *t) {
  tfc_buffer_release(t->buffer);
  *t = (struct tfc_tensor){0};
}

void tfc_tensor_share(const struct tfc_tensor *t, struct tfc_tensor *out) {
  tfc_buffer_retain(t->buffer);
  *out = *t;
}

static void end_loan(struct tfc_buffer *b) {
  struct tfc_buffer *lender = b->owner;
  atomic_fetch_sub_explicit(&lender->lent, 1, memory_order_release);
  tfc_buffer_release(lender);
  free(b);
}

tfc_status tfc_tensor_lend(const struct tfc_tensor *t, struct tfc_tensor *out) {
  struct tfc_buffer *b = calloc(1, sizeof *b);
  if (!b) return tfc_status_no_memory("lending a tensor");
  *b = (struct tfc_buffer){.references = 1, .data = t->data, .size = t->size, .destroy = end_loan, .owner = t->buffer};
  tfc_buffer_retain(t->buffer);
  atomic_fetch_add_explicit(&t->buffer->lent, 1, memory_order_relaxed);
  *out = *t;
  out->buffer = b;
  return NULL;
}

tfc_status tfc_tensor_clone(const struct tfc_tensor *t, struct tfc_tensor *out) {
  struct tfc_tensor copy = {0};
  TFC_RETURN_IF_ERROR(tfc_tensor_create(t->dtype, &t->shape, &copy));
  size_t n = (size_t)tfc_tensor_elements(t);
  if (tfc_dtype_is_plain(t->dtype)) {
    if (t->size) memcpy(copy.data, t->data, t->size);
  } else if (t->dtype == TFC_STRING) {
    for (size_t i = 0; i < n; i++) {
      tfc_status s = tfc_tensor_set_string(&copy, (int64_t)i, tfc_tensor_get_string(t, (int64_t)i));
      if (!s) continue;
      tfc_tensor_release(&copy);
      return s;
    }
  } else {
    struct tfc_object **from = t->data, **to = copy.data;
    for (size_t i = 0; i < n; i++) tfc_object_retain(to[i] = from[i]);
  }
  *out = copy;
  return NULL;
}

int64_t tfc_tensor_int(const struct tfc_tensor *t, int64_t index) {
  switch ((int)t->dtype) {
  case TFC_INT8:
  case TFC_QINT8: return ((const int8_t *)t->data)[index];
  case TFC_UINT8:
  case TFC_QUINT8:
  case TFC_BOOL: return ((const uint8_t *)t->data)[index];
  case TFC_INT16:
  case TFC_QINT16: return ((const int16_t *)t->data)[index];
  case TFC_UINT16:
  case TFC_QUINT16: return ((const uint16_t *)t->data)[index];
  case TFC_INT32:
  case TFC_QINT32: return ((const int32_t *)t->data)[index];
  case TFC_UINT32: return ((const uint32_t *)t->data)[index];
  case TFC_INT64: return ((const int64_t *)t->data)[index];
  case TFC_UINT64: return (int64_t)((const uint64_t *)t->data)[index];
  default: assert(0 && "an integer tensor"); return 0;
  }
}

tfc_status tfc_tensor_set_string(struct tfc_tensor *t, int64_t index, tfc_str value) {
  struct tfc_string *s = (struct tfc_string *)t->data + index;
  struct tfc_buffer *b = t->buffer && t->buffer->destroy == destroy_strings ? t->buffer : NULL;
  char *data = NULL;
  if (value.size) {
    struct tfc_memory_account *account = b ? b->owner : tfc_account_current();
    if (b && !tfc_account_take(account, value.size)) return tfc_account_exhausted(account, value.size);
    data = malloc(value.size);
    if (!data) {
      if (b) tfc_account_give(account, value.size);
      return tfc_account_exhausted(account, value.size);
    }
    memcpy(data, value.data, value.size);
    if (b) atomic_fetch_add_explicit(&b->beside, value.size, memory_order_relaxed);
  }
  if (b && s->data) { // a string that was stored in another way was not counted
    uint64_t counted = atomic_load_explicit(&b->beside, memory_order_relaxed) - value.size;
    size_t gone = s->size < counted ? s->size : counted;
    atomic_fetch_sub_explicit(&b->beside, gone, memory_order_relaxed);
    tfc_account_give(b->owner, gone);
  }
  free(s->data);
  *s = (struct tfc_string){data, value.size};
  return NULL;
}

tfc_status tfc_tensor_set_text(struct tfc_tensor *t, int64_t index, const struct tfc_text *text) {
  if (text->failed) return tfc_status_no_memory("putting a text together");
  return tfc_tensor_set_string(t, index, (tfc_str){text->data, text->size});
}

tfc_str tfc_tensor_get_string(const struct tfc_tensor *t, int64_t index) {
  const struct tfc_string *s = (const struct tfc_string *)t->data + index;
  return (tfc_str){s->data, s->size};
}

tfc_status tfc_tensor_to_shape(const struct tfc_tensor *t, struct tfc_shape *out) {
  char text[TFC_SHAPE_TEXT];
  int64_t n = tfc_tensor_elements(t);
  if (t->dtype != TFC_INT32 && t->dtype != TFC_INT64)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a shape must be int32 or int64, not %s", tfc_dtype_name(t->dtype));
  if (t->shape.rank > 1 || n > TFC_MAX_RANK)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a shape must be a vector of at most %d dimensions, not %s",
                           (int)TFC_MAX_RANK, tfc_shape_show(&t->shape, text));
  struct tfc_shape r = {.rank = (int32_t)n};
  for (int64_t i = 0; i < n; i++) r.dims[i] = tfc_tensor_int(t, i);
  *out = r;
  return NULL;
}
