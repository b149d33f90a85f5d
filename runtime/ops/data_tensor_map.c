// Maps from tensors to tensors as values: changing a map makes a new one, which shares keys and values with the old
// one. Keys stay in the order in which they were inserted.
#include <stdlib.h>
#include <string.h>

#include "runtime/base/map.h"
#include "runtime/base/no_memory.h"
#include "runtime/ops/data_variant.h"

struct entry {
  uint64_t hash; // of the key
  struct tfc_tensor key, value;
};
struct map {
  struct tfc_object object;
  int64_t count;
  struct entry entries[];
};
static void map_destroy(struct tfc_object *self) {
  struct map *m = (struct map *)self;
  for (int64_t i = 0; i < m->count; i++)
    tfc_tensor_release(&m->entries[i].key), tfc_tensor_release(&m->entries[i].value);
  free(m);
}
static const struct tfc_object_type map_type = {.name = "tensor map", .destroy = map_destroy};

static tfc_status map_create(int64_t count, struct map **out) {
  struct map *m = calloc(1, sizeof *m + (size_t)count * sizeof *m->entries);
  if (!m) return tfc_status_no_memory_for("a map of %lld keys", (long long)count);
  m->object = (struct tfc_object){.type = &map_type, .references = 1};
  m->count = count;
  *out = m;
  return NULL;
}
static tfc_status map_of(struct tfc_kernel_ctx *ctx, const struct map **out) {
  struct tfc_object *o = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &map_type, &o));
  *out = (const struct map *)o;
  return NULL;
}

static uint64_t hash_of(const struct tfc_tensor *key) {
  if (key->dtype != TFC_STRING) return tfc_hash_bytes(key->data, key->size);
  uint64_t hash = 0;
  for (int64_t i = 0; i < tfc_tensor_elements(key); i++) {
    tfc_str s = tfc_tensor_get_string(key, i);
    hash = hash * 31 + tfc_hash_bytes(s.data, s.size);
  }
  return hash;
}
static bool same(const struct tfc_tensor *a, const struct tfc_tensor *b) {
  if (a->dtype != b->dtype || !tfc_shape_equal(&a->shape, &b->shape)) return false;
  if (a->dtype != TFC_STRING) return !a->size || !memcmp(a->data, b->data, a->size);
  for (int64_t i = 0; i < tfc_tensor_elements(a); i++)
    if (!tfc_str_equal(tfc_tensor_get_string(a, i), tfc_tensor_get_string(b, i))) return false;
  return true;
}
// Finds the key of input 1; -1: it is not in the map. As in TensorFlow, a key is a tensor of numbers or strings.
static tfc_status find(struct tfc_kernel_ctx *ctx, const struct map *m, int64_t *out_at, uint64_t *out_hash) {
  const struct tfc_tensor *key = ctx->inputs[1];
  TFC_KERNEL_CHECK(tfc_dtype_is_plain(key->dtype) || key->dtype == TFC_STRING, "a key of %s",
                   tfc_dtype_name(key->dtype));
  *out_hash = hash_of(key);
  *out_at = -1;
  for (int64_t i = 0; i < m->count && *out_at < 0; i++)
    if (m->entries[i].hash == *out_hash && same(&m->entries[i].key, key)) *out_at = i;
  return NULL;
}
static void share(const struct entry *from, struct entry *to) {
  to->hash = from->hash;
  tfc_tensor_share(&from->key, &to->key);
  tfc_tensor_share(&from->value, &to->value);
}

static tfc_status empty(struct tfc_kernel_ctx *ctx) {
  struct map *m = NULL;
  TFC_RETURN_IF_ERROR(map_create(0, &m));
  return tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &m->object);
}
static tfc_status insert(struct tfc_kernel_ctx *ctx) {
  const struct map *m = NULL;
  struct map *made = NULL;
  int64_t at = -1;
  uint64_t hash = 0;
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  TFC_RETURN_IF_ERROR(find(ctx, m, &at, &hash));
  TFC_RETURN_IF_ERROR(map_create(m->count + (at < 0), &made));
  for (int64_t i = 0; i < m->count; i++)
    if (i != at) share(&m->entries[i], &made->entries[i]);
  struct entry *e = &made->entries[at < 0 ? m->count : at];
  e->hash = hash;
  tfc_status s = tfc_data_keep(ctx, ctx->inputs[1], &e->key);
  if (!s) s = tfc_data_keep(ctx, ctx->inputs[2], &e->value);
  if (!s) return tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &made->object);
  tfc_object_release(&made->object);
  return s;
}
static tfc_status erase(struct tfc_kernel_ctx *ctx) {
  const struct map *m = NULL;
  struct map *made = NULL;
  int64_t at = -1;
  uint64_t hash = 0;
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  TFC_RETURN_IF_ERROR(find(ctx, m, &at, &hash));
  TFC_KERNEL_CHECK(at >= 0, "Trying to erase non-existent item. Could not find key in map.");
  TFC_RETURN_IF_ERROR(map_create(m->count - 1, &made));
  for (int64_t i = 0; i < made->count; i++) share(&m->entries[i + (i >= at)], &made->entries[i]);
  return tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &made->object);
}
static tfc_status lookup(struct tfc_kernel_ctx *ctx) {
  const struct map *m = NULL;
  int64_t at = -1;
  uint64_t hash = 0;
  const tfc_dtype wanted = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  TFC_RETURN_IF_ERROR(find(ctx, m, &at, &hash));
  TFC_KERNEL_CHECK(at >= 0, "Trying to lookup non-existent key. Could not find key in map.");
  TFC_KERNEL_CHECK(m->entries[at].value.dtype == wanted, "the value is %s, not %s",
                   tfc_dtype_name(m->entries[at].value.dtype), tfc_dtype_name(wanted));
  return tfc_kernel_set_output(ctx, 0, &m->entries[at].value);
}
static tfc_status has_key(struct tfc_kernel_ctx *ctx) {
  const struct map *m = NULL;
  int64_t at = -1;
  uint64_t hash = 0;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  TFC_RETURN_IF_ERROR(find(ctx, m, &at, &hash));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &TFC_SHAPE_SCALAR, &y));
  *(bool *)y->data = at >= 0;
  return NULL;
}
static tfc_status size(struct tfc_kernel_ctx *ctx) {
  const struct map *m = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  *(int32_t *)y->data = (int32_t)m->count;
  return NULL;
}
static tfc_status stack_keys(struct tfc_kernel_ctx *ctx) {
  const struct map *m = NULL;
  struct tfc_tensor *y = NULL;
  const tfc_dtype wanted = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_RETURN_IF_ERROR(map_of(ctx, &m));
  TFC_KERNEL_CHECK(m->count > 0, "TensorMapStackKeys cannot be called on empty map.");
  const struct tfc_shape *shape = &m->entries[0].key.shape;
  for (int64_t i = 0; i < m->count; i++) {
    TFC_KERNEL_CHECK(m->entries[i].key.dtype == wanted, "Key does not match requested dtype.");
    TFC_KERNEL_CHECK(tfc_shape_equal(&m->entries[i].key.shape, shape), "Keys must all have the same shape.");
  }
  TFC_KERNEL_CHECK(shape->rank < TFC_MAX_RANK, "keys of too many dimensions");
  const struct tfc_shape all = tfc_data_prepend(m->count, shape);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, wanted, &all, &y));
  for (int64_t i = 0, each = tfc_shape_elements(shape); i < m->count; i++)
    TFC_RETURN_IF_ERROR(tfc_data_copy(y, i * each, &m->entries[i].key));
  return NULL;
}

static tfc_status shape_scalar(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE_SCALAR;
  return NULL;
}
static tfc_status shape_unknown(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  return NULL;
}

static const struct tfc_op_def data_tensor_map_rows[] = {
    {.name = "EmptyTensorMap",
     .outputs = "handle: variant",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_scalar,
     .kernel = empty},
    {.name = "TensorMapInsert",
     .inputs = "input_handle: variant, key: key_dtype, value: value_dtype",
     .outputs = "output_handle: variant",
     .attrs = "key_dtype: type, value_dtype: type",
     .flags = TFC_OP_HOST,
     .shape = shape_scalar,
     .kernel = insert},
    {.name = "TensorMapErase",
     .inputs = "input_handle: variant, key: key_dtype",
     .outputs = "output_handle: variant",
     .attrs = "key_dtype: type, value_dtype: type",
     .flags = TFC_OP_HOST,
     .shape = shape_scalar,
     .kernel = erase},
    {.name = "TensorMapLookup",
     .inputs = "input_handle: variant, key: key_dtype",
     .outputs = "value: value_dtype",
     .attrs = "key_dtype: type, value_dtype: type",
     .flags = TFC_OP_HOST,
     .shape = shape_unknown,
     .kernel = lookup},
    {.name = "TensorMapHasKey",
     .inputs = "input_handle: variant, key: key_dtype",
     .outputs = "has_key: bool",
     .attrs = "key_dtype: type",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_scalar,
     .kernel = has_key},
    {.name = "TensorMapSize",
     .inputs = "input_handle: variant",
     .outputs = "size: int32",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_scalar,
     .kernel = size},
    {.name = "TensorMapStackKeys",
     .inputs = "input_handle: variant",
     .outputs = "keys: key_dtype",
     .attrs = "key_dtype: type",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_unknown,
     .kernel = stack_keys},
};
TFC_REGISTER_OPS(data_tensor_map_rows);
