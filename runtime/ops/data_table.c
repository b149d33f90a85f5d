// Hash tables. Immutable ones (HashTableV2) are filled once, from tensors or a text file. Mutable ones
// (MutableHashTableV2, MutableHashTableOfTensorsV2, MutableDenseHashTableV2) export their pairs in the order in which
// they were inserted. Keys are integers or strings; a value is a tensor, of the same shape for the whole table. The ops
// without V2 pass a reference to two strings, container and name.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/file.h"
#include "runtime/base/line.h"
#include "runtime/base/map.h"
#include "runtime/base/units.h"
#include "runtime/ops/data_named.h"
#include "runtime/ops/data_variant.h"
#include "runtime/ops/saved.h"

struct entry {
  char *key; // its bytes; NULL: removed
  size_t key_size;
  struct tfc_tensor value;
};
struct table {
  struct tfc_object object;
  pthread_mutex_t lock;
  tfc_dtype key_dtype, value_dtype;
  struct tfc_shape value_shape;
  bool mutable, filled; // filled: an immutable table that was initialised
  TFC_ARRAY(struct entry) entries;
  struct tfc_strmap by_key;      // gives an index into entries, or GONE
  struct tfc_tensor reserved[2]; // keys that a dense table reserves: for empty and for deleted places
  int64_t count;
};
#define GONE UINT64_MAX

static void clear(struct table *t) {
  for (size_t i = 0; i < t->entries.count; i++) {
    free(t->entries.data[i].key);
    tfc_tensor_release(&t->entries.data[i].value);
  }
  tfc_array_free(&t->entries);
  tfc_strmap_deinit(&t->by_key);
  t->by_key = (struct tfc_strmap){0};
  t->count = 0;
}
static void table_destroy(struct tfc_object *self) {
  struct table *t = (struct table *)self;
  clear(t);
  for (int i = 0; i < 2; i++) tfc_tensor_release(&t->reserved[i]);
  pthread_mutex_destroy(&t->lock);
  free(t);
}
static tfc_status table_save(struct tfc_object *self, struct tfc_text *out);
static tfc_status table_load(struct tfc_object *self, tfc_str words);
static const struct tfc_object_type table_type = {
    .name = "hash table", .destroy = table_destroy, .save = table_save, .load = table_load};

static tfc_status table_make(void *arg, struct tfc_object **out) {
  struct tfc_kernel_ctx *ctx = arg;
  for (uint32_t i = 0; i < ctx->input_count; i++)
    if (ctx->inputs[i]->shape.rank != 0)
      return tfc_status_make(TFC_UNIMPLEMENTED, "keys of shape %s are not supported, only scalars",
                             tfc_shape_show(&ctx->inputs[i]->shape, (char[TFC_SHAPE_TEXT]){0}));
  struct table *t = calloc(1, sizeof *t);
  if (!t) return tfc_status_no_memory(NULL);
  t->object = (struct tfc_object){.type = &table_type, .references = 1};
  pthread_mutex_init(&t->lock, NULL);
  t->key_dtype = tfc_node_attr_type(ctx->graph, ctx->node, "key_dtype", TFC_DTYPE_NONE);
  t->value_dtype = tfc_node_attr_type(ctx->graph, ctx->node, "value_dtype", TFC_DTYPE_NONE);
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "value_shape");
  t->value_shape = shape && shape->kind == TFC_ATTR_SHAPE ? *shape->shape : TFC_SHAPE_SCALAR;
  t->mutable = tfc_str_starts(ctx->node->op, "Mutable") || tfc_str_starts(ctx->node->op, "AnonymousMutable");
  for (uint32_t i = 0; i < ctx->input_count && i < 2; i++) {
    tfc_status s = tfc_tensor_clone(ctx->inputs[i], &t->reserved[i]);
    if (s) {
      table_destroy(&t->object);
      return s;
    }
  }
  *out = &t->object;
  return NULL;
}
static tfc_status table_create(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = NULL;
  if (!tfc_str_starts(ctx->node->op, "Anonymous")) return tfc_named_make(ctx, &table_type, table_make);
  TFC_RETURN_IF_ERROR(table_make(ctx, &o)); // no name: only the handle refers to it
  return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, o);
}
// Borrowed: the holder of the handle, or the session, keeps the table alive.
static tfc_status table_of(struct tfc_kernel_ctx *ctx, struct table **out) {
  TFC_RETURN_IF_ERROR(tfc_named_get(ctx, &table_type, (struct tfc_object **)out));
  tfc_object_release(&(*out)->object);
  return NULL;
}

// --- One key; the caller holds the lock --------------------------------------------------------------------------
static tfc_str key_at(const struct tfc_tensor *keys, int64_t i) {
  if (keys->dtype == TFC_STRING) return tfc_tensor_get_string(keys, i);
  size_t size = tfc_dtype_size(keys->dtype);
  return (tfc_str){(const char *)keys->data + (size_t)i * size, size};
}
// Gives an empty string an address, because the map marks a free slot by a NULL key.
static tfc_str addressed(tfc_str key) {
  return key.data ? key : (tfc_str){"", 0};
}

static struct entry *find(struct table *t, tfc_str key) {
  const uint64_t *at = tfc_strmap_get(&t->by_key, addressed(key));
  return at && *at != GONE ? &t->entries.data[*at] : NULL;
}

// Takes over `value`.
static tfc_status insert(struct table *t, tfc_str key, struct tfc_tensor *value) {
  struct entry *e = find(t, key);
  if (e) {
    tfc_tensor_release(&e->value);
    e->value = *value;
    return NULL;
  }
  struct entry made = {.key = malloc(key.size + 1), .key_size = key.size, .value = *value};
  uint64_t *at = NULL;
  if (made.key) {
    if (key.size) memcpy(made.key, key.data, key.size);
    if (tfc_array_push(&t->entries, made)) {
      bool found;
      at = tfc_strmap_put(&t->by_key, (tfc_str){made.key, key.size}, t->entries.count - 1, &found);
      if (at)
        *at = t->entries.count - 1;
      else
        t->entries.count--;
    }
  }
  if (!at) {
    free(made.key);
    tfc_tensor_release(value);
    return tfc_status_no_memory(NULL);
  }
  t->count++;
  return NULL;
}

// --- Values, and ops that insert them ----------------------------------------------------------------------------
// Copies value `i` of a tensor [keys..., value_shape].
static tfc_status value_of(struct tfc_kernel_ctx *ctx, const struct table *t, const struct tfc_tensor *values,
                           int64_t i, struct tfc_tensor *out) {
  int64_t n = tfc_shape_elements(&t->value_shape);
  size_t size = tfc_dtype_size(values->dtype);
  struct tfc_tensor view = *values;
  view.shape = t->value_shape;
  view.size = (size_t)n * size;
  view.data = (char *)values->data + (size_t)(i * n) * size;
  view.buffer = NULL;
  (void)ctx;
  return tfc_tensor_clone(&view, out);
}

// Whether a dense table reserves the key: `which` is 0 for empty and 1 for deleted places.
static bool is_reserved(const struct table *t, const struct tfc_tensor *keys, int64_t i, int which) {
  return t->reserved[which].data && tfc_str_equal(key_at(keys, i), key_at(&t->reserved[which], 0));
}

// `all`: reserved keys are allowed too, because an exported dense table contains them.
static tfc_status check_pairs(const struct table *t, const struct tfc_tensor *keys, const struct tfc_tensor *values,
                              bool all) {
  TFC_KERNEL_CHECK(keys->dtype == t->key_dtype, "Key must be type %s but got %s", tfc_dtype_name(t->key_dtype),
                   tfc_dtype_name(keys->dtype));
  for (int r = 0; r < 2 && !all; r++)
    for (int64_t i = 0; i < tfc_tensor_elements(keys); i++)
      TFC_KERNEL_CHECK(!is_reserved(t, keys, i, r), "Using the %s_key as a table key is not allowed",
                       r ? "deleted" : "empty");
  if (!values) return NULL;
  TFC_KERNEL_CHECK(values->dtype == t->value_dtype, "Value must be type %s but got %s", tfc_dtype_name(t->value_dtype),
                   tfc_dtype_name(values->dtype));
  bool fits = values->shape.rank == keys->shape.rank + t->value_shape.rank;
  for (int i = 0; fits && i < keys->shape.rank; i++) fits = values->shape.dims[i] == keys->shape.dims[i];
  for (int i = 0; fits && i < t->value_shape.rank; i++)
    fits = values->shape.dims[keys->shape.rank + i] == t->value_shape.dims[i];
  TFC_KERNEL_CHECK(fits, "Expected values for keys %s with values of shape %s, got shape %s",
                   tfc_shape_show(&keys->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&t->value_shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&values->shape, (char[TFC_SHAPE_TEXT]){0}));
  return NULL;
}

static bool same_value(const struct tfc_tensor *a, const struct tfc_tensor *b) {
  if (a->dtype != TFC_STRING) return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
  for (int64_t i = 0; i < tfc_tensor_elements(a); i++)
    if (!tfc_str_equal(tfc_tensor_get_string(a, i), tfc_tensor_get_string(b, i))) return false;
  return true;
}

// Adds pairs to a mutable table, or fills an immutable one, in which a key must not occur twice.
static tfc_status put_pairs(struct tfc_kernel_ctx *ctx, struct table *t, const struct tfc_tensor *keys,
                            const struct tfc_tensor *values, bool replace_all) {
  TFC_RETURN_IF_ERROR(check_pairs(t, keys, values, replace_all));
  tfc_status s = NULL;
  pthread_mutex_lock(&t->lock);
  if (!t->mutable && t->filled) { // an immutable table is filled once; filling it again does nothing, as in TensorFlow
    pthread_mutex_unlock(&t->lock);
    return NULL;
  }
  if (replace_all) clear(t);
  for (int64_t i = 0; !s && i < tfc_tensor_elements(keys); i++) {
    struct tfc_tensor value = {0};
    if (is_reserved(t, keys, i, 0) || is_reserved(t, keys, i, 1)) continue; // an empty place of an exported dense table
    s = value_of(ctx, t, values, i, &value);
    if (s) break;
    struct entry *e = t->mutable ? NULL : find(t, key_at(keys, i));
    if (e && !same_value(&e->value, &value)) {
      tfc_tensor_release(&value);
      s = tfc_status_make(TFC_FAILED_PRECONDITION, "HashTable has different value for same key (element %lld)",
                          (long long)i);
      break;
    }
    s = insert(t, key_at(keys, i), &value);
  }
  if (!t->mutable && !s) t->filled = true;
  pthread_mutex_unlock(&t->lock);
  return s;
}
static tfc_status insert_(struct tfc_kernel_ctx *ctx) {
  struct table *t = NULL;
  TFC_RETURN_IF_ERROR(table_of(ctx, &t));
  if (!t->mutable) return tfc_status_make(TFC_UNIMPLEMENTED, "Insert not supported by an immutable table");
  return put_pairs(ctx, t, ctx->inputs[1], ctx->inputs[2], false);
}
static tfc_status import(struct tfc_kernel_ctx *ctx) {
  struct table *t = NULL;
  TFC_RETURN_IF_ERROR(table_of(ctx, &t));
  // Replaces the content of a mutable table; fills an immutable one.
  return put_pairs(ctx, t, ctx->inputs[1], ctx->inputs[2], t->mutable);
}
static tfc_status initialize(struct tfc_kernel_ctx *ctx) {
  struct table *t = NULL;
  TFC_RETURN_IF_ERROR(table_of(ctx, &t));
  TFC_KERNEL_CHECK(!t->mutable, "a mutable table is not initialised but inserted into");
  TFC_KERNEL_CHECK(ctx->inputs[1]->shape.rank == 1, "Keys must be a vector");
  return put_pairs(ctx, t, ctx->inputs[1], ctx->inputs[2], false);
}

// --- Text files --------------------------------------------------------------------------------------------------
enum { LINE_NUMBER = -1, WHOLE_LINE = -2 };
struct text_file {
  const char *path;
  int64_t key, value, most, offset; // key, value: columns; most: the number of lines to read, -1 for all
  char delimiter;
};

static bool column_of(tfc_str line, const struct text_file *f, int64_t column, tfc_str *out) {
  for (int64_t i = 0;; i++) {
    size_t end = tfc_str_find(line, f->delimiter);
    *out = tfc_str_sub(line, 0, end == SIZE_MAX ? line.size : end);
    if (i == column) return true;
    if (end == SIZE_MAX) return false;
    line = tfc_str_sub(line, end + 1, line.size);
  }
}

// Sets element `number` of a tensor from line `number` of the file.
static tfc_status set_element(const struct text_file *f, tfc_str line, int64_t number, int64_t column,
                              struct tfc_tensor *t) {
  tfc_str text = line;
  if (column >= 0 && !column_of(line, f, column, &text))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid number of columns in %s line %lld (%.*s): expected %lld",
                           f->path, (long long)number, TFC_STR_ARG(line), (long long)column + 1);
  int64_t whole = number + f->offset;
  double real = 0;
  bool ok = true;
  switch (t->dtype) {
  case TFC_STRING: {
    char buffer[32];
    if (column == LINE_NUMBER)
      text = (tfc_str){buffer, (size_t)snprintf(buffer, sizeof buffer, "%lld", (long long)whole)};
    TFC_RETURN_IF_ERROR(tfc_tensor_set_string(t, number, text));
    return NULL;
  }
  case TFC_INT32:
  case TFC_INT64:
    if (column != LINE_NUMBER) {
      tfc_status s = tfc_parse_i64(text, &whole);
      ok = !s;
      tfc_status_free(s);
    }
    if (t->dtype == TFC_INT64)
      ((int64_t *)t->data)[number] = whole;
    else
      ((int32_t *)t->data)[number] = (int32_t)whole;
    ok &= t->dtype == TFC_INT64 || whole == (int32_t)whole;
    break;
  case TFC_FLOAT:
  case TFC_DOUBLE: {
    char *copy = tfc_str_dup(text), *end = NULL;
    if (!copy) return tfc_status_no_memory(NULL);
    real = column == LINE_NUMBER ? (double)whole : strtod(copy, &end);
    ok = column == LINE_NUMBER || (end != copy && !*end);
    free(copy);
    if (t->dtype == TFC_FLOAT)
      ((float *)t->data)[number] = (float)real;
    else
      ((double *)t->data)[number] = real;
    break;
  }
  default:
    return tfc_status_make(TFC_UNIMPLEMENTED, "%s: a table of %s is not filled from text", f->path,
                           tfc_dtype_name(t->dtype));
  }
  if (!ok)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Field %.*s in line %lld is not a valid %s in %s", TFC_STR_ARG(text),
                           (long long)number, tfc_dtype_name(t->dtype), f->path);
  return NULL;
}

// Takes the next line, without a carriage return at its end. False: the text has no more lines.
static bool next_line(tfc_str *text, tfc_str *out) {
  if (!tfc_line_next(text, out)) return false;
  if (tfc_str_ends(*out, "\r")) out->size--;
  return true;
}

static tfc_status read_pairs(const struct text_file *f, tfc_str text, struct tfc_tensor *keys,
                             struct tfc_tensor *values) {
  tfc_str line, rest = text;
  int64_t lines = 0;
  while ((f->most < 0 || lines < f->most) && next_line(&rest, &line)) lines++;
  if (f->most >= 0 && lines != f->most)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "Invalid vocab_size in %s: expected %lld but got %lld", f->path,
                           (long long)f->most, (long long)lines);
  tfc_dtype key_dtype = keys->dtype, value_dtype = values->dtype;
  TFC_RETURN_IF_ERROR(tfc_tensor_create(key_dtype, &TFC_SHAPE(lines), keys));
  TFC_RETURN_IF_ERROR(tfc_tensor_create(value_dtype, &TFC_SHAPE(lines), values));
  rest = text;
  for (int64_t i = 0; i < lines && next_line(&rest, &line); i++) {
    TFC_RETURN_IF_ERROR(set_element(f, line, i, f->key, keys));
    TFC_RETURN_IF_ERROR(set_element(f, line, i, f->value, values));
  }
  return NULL;
}

static tfc_status initialize_from_file(struct tfc_kernel_ctx *ctx) {
  tfc_status s = NULL;
  struct table *t = NULL;
  struct tfc_file file = {0};
  const struct tfc_graph *g = ctx->graph;
  const struct tfc_node *n = ctx->node;
  tfc_str delimiter = tfc_node_attr_string(g, n, "delimiter", "\t");
  TFC_RETURN_IF_ERROR(table_of(ctx, &t));
  TFC_KERNEL_CHECK(!t->mutable, "a mutable table is not initialised but inserted into");
  TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[1]) == 1, "filename should be a single string");
  TFC_KERNEL_CHECK(delimiter.size == 1, "delimiter should be only 1 char");
  struct tfc_tensor keys = {.dtype = t->key_dtype}, values = {.dtype = t->value_dtype};
  char *path = tfc_str_dup(tfc_tensor_get_string(ctx->inputs[1], 0));
  if (!path) return tfc_status_no_memory(NULL);
  struct text_file f = {.path = path,
                        .key = tfc_node_attr_int(g, n, "key_index", WHOLE_LINE),
                        .value = tfc_node_attr_int(g, n, "value_index", LINE_NUMBER),
                        .most = tfc_node_attr_int(g, n, "vocab_size", -1),
                        .offset = tfc_node_attr_int(g, n, "offset", 0),
                        .delimiter = delimiter.data[0]};
  TFC_TRY(s, tfc_file_map(path, &file));
  TFC_TRY(s, read_pairs(&f, (tfc_str){(const char *)file.data, file.size}, &keys, &values));
  s = put_pairs(ctx, t, &keys, &values, false);
out:
  tfc_tensor_release(&keys);
  tfc_tensor_release(&values);
  tfc_file_unmap(&file);
  free(path);
  return s;
}

static tfc_status remove_(struct tfc_kernel_ctx *ctx) {
  struct table *t = NULL;
  const struct tfc_tensor *keys = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(table_of(ctx, &t));
  TFC_RETURN_IF_ERROR(check_pairs(t, keys, NULL, false));
  pthread_mutex_lock(&t->lock);
  for (int64_t i = 0; i < tfc_tensor_elements(keys); i++) {
    tfc_str key = addressed(key_at(keys, i));
    const uint64_t *at = tfc_strmap_get(&t->by_key, key);
    if (!at || *at == GONE) continue;
    // The map's key points into the entry, so both stay, unused, until the same key is inserted again.
    struct entry *e = &t->entries.data[*at];
    tfc_tensor_release(&e->value);
    uint64_t *place = tfc_strmap_put(&t->by_key, key, GONE, NULL);
    if (place) *place = GONE;
    t->count--;
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

// Inputs: (table, keys, default_value), where default_value is one value, or one for each key.
static tfc_status lookup(struct tfc_kernel_ctx *ctx) {
  struct table *t = NULL;
  const struct tfc_tensor *keys = ctx->inputs[1], *otherwise = ctx->inputs[2];
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(table_of(ctx, &t));
  TFC_RETURN_IF_ERROR(check_pairs(t, keys, NULL, false));
  TFC_KERNEL_CHECK(otherwise->dtype == t->value_dtype, "Default value must be type %s but got %s",
                   tfc_dtype_name(t->value_dtype), tfc_dtype_name(otherwise->dtype));
  struct tfc_shape shape = keys->shape;
  for (int i = 0; i < t->value_shape.rank; i++) {
    TFC_KERNEL_CHECK(shape.rank < TFC_MAX_RANK, "too many dimensions");
    shape.dims[shape.rank++] = t->value_shape.dims[i];
  }
  int64_t n = tfc_shape_elements(&t->value_shape), count = tfc_tensor_elements(keys);
  bool one = tfc_tensor_elements(otherwise) == n, each = tfc_tensor_elements(otherwise) == n * count;
  TFC_KERNEL_CHECK(one || each, "Expected shape %s for default value, got %s",
                   tfc_shape_show(&t->value_shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&otherwise->shape, (char[TFC_SHAPE_TEXT]){0}));
  TFC_KERNEL_CHECK(t->mutable || t->filled, "Table not initialized.");
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, t->value_dtype, &shape, &y));
  tfc_status s = NULL;
  size_t size = tfc_dtype_size(t->value_dtype);
  pthread_mutex_lock(&t->lock);
  for (int64_t i = 0; !s && i < count; i++) {
    const struct entry *e = find(t, key_at(keys, i));
    struct tfc_tensor view = *otherwise;
    view.shape = t->value_shape;
    view.data = (char *)otherwise->data + (one ? 0 : (size_t)(i * n) * size);
    view.size = (size_t)n * size;
    s = tfc_data_copy(y, i * n, e ? &e->value : &view);
  }
  pthread_mutex_unlock(&t->lock);
  return s;
}

static tfc_status size(struct tfc_kernel_ctx *ctx) {
  struct table *t = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(table_of(ctx, &t));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT64, &TFC_SHAPE_SCALAR, &y));
  pthread_mutex_lock(&t->lock);
  *(int64_t *)y->data = t->count;
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

// Exports all pairs in the order in which they were inserted.
static tfc_status export_pairs(struct tfc_kernel_ctx *ctx, struct table *t) {
  struct tfc_tensor *keys = NULL, *values = NULL;
  struct tfc_shape shape = tfc_data_prepend(t->count, &t->value_shape);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, t->key_dtype, &TFC_SHAPE(t->count), &keys));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 1, t->value_dtype, &shape, &values));
  int64_t n = tfc_shape_elements(&t->value_shape), at = 0;
  for (size_t i = 0; i < t->entries.count; i++) {
    const struct entry *e = &t->entries.data[i];
    tfc_str key = {e->key, e->key_size};
    if (find(t, key) != e) continue; // the entry was removed
    if (t->key_dtype == TFC_STRING) {
      TFC_RETURN_IF_ERROR(tfc_tensor_set_string(keys, at, key));
    } else {
      memcpy((char *)keys->data + (size_t)at * key.size, key.data, key.size);
    }
    TFC_RETURN_IF_ERROR(tfc_data_copy(values, at++ * n, &e->value));
  }
  return NULL;
}
static tfc_status export(struct tfc_kernel_ctx *ctx) {
  struct table *t = NULL;
  TFC_RETURN_IF_ERROR(table_of(ctx, &t));
  pthread_mutex_lock(&t->lock);
  tfc_status s = export_pairs(ctx, t);
  pthread_mutex_unlock(&t->lock);
  return s;
}

// --- Checkpoints -------------------------------------------------------------------------------------------------
// Immutable tables are filled again by the graph's initialiser. A mutable one is saved even if it is empty, because
// the one that loads this state may not be.
static tfc_status table_save(struct tfc_object *self, struct tfc_text *out) {
  struct table *t = (struct table *)self;
  tfc_status s = NULL;
  if (!t->mutable) return NULL;
  pthread_mutex_lock(&t->lock);
  if (t->count && !(tfc_saved_has_text(t->key_dtype) && tfc_saved_has_text(t->value_dtype)))
    TFC_FAIL(s, TFC_UNIMPLEMENTED, "keys of type %s and values of type %s", tfc_dtype_name(t->key_dtype),
             tfc_dtype_name(t->value_dtype));
  tfc_saved_add_bytes(out, tfc_str_from(tfc_dtype_name(t->key_dtype)));
  tfc_saved_add_number(out, t->count);
  for (size_t i = 0; i < t->entries.count && !out->failed; i++) {
    const struct entry *e = &t->entries.data[i];
    if (!e->key || find(t, (tfc_str){e->key, e->key_size}) != e) continue; // it was removed
    tfc_saved_add_bytes(out, (tfc_str){e->key, e->key_size});
    tfc_saved_add_tensor(out, &e->value);
  }
out:
  pthread_mutex_unlock(&t->lock);
  return s;
}

// Called under the lock.
static void load_pair(struct table *t, struct tfc_saved *in) {
  size_t size;
  struct tfc_tensor value;
  char *key = tfc_saved_bytes(in, &size);
  tfc_saved_tensor(in, t->value_dtype, &value);
  if (!in->failure && ((t->key_dtype != TFC_STRING && size != tfc_dtype_size(t->key_dtype)) ||
                       !tfc_shape_compatible(&t->value_shape, &value.shape)))
    in->failure = tfc_status_make(TFC_INVALID_ARGUMENT, "a key of %zu bytes with a value of shape %s", size,
                                  tfc_shape_show(&value.shape, (char[TFC_SHAPE_TEXT]){0}));
  if (in->failure)
    tfc_tensor_release(&value);
  else
    in->failure = insert(t, (tfc_str){key, size}, &value);
  free(key);
}

static tfc_status table_load(struct tfc_object *self, tfc_str words) {
  struct table *t = (struct table *)self;
  struct tfc_saved in = {.words = words};
  size_t size;
  char *type = tfc_saved_bytes(&in, &size);
  if (!in.failure && (!t->mutable || strcmp(type, tfc_dtype_name(t->key_dtype)) != 0))
    in.failure = tfc_status_make(TFC_INVALID_ARGUMENT, "its keys were %s, and are %s", type,
                                 t->mutable ? tfc_dtype_name(t->key_dtype) : "those of its initialiser");
  free(type);
  const int64_t count = tfc_saved_number(&in, 0, INT64_MAX);
  pthread_mutex_lock(&t->lock);
  if (!in.failure) clear(t);
  for (int64_t i = 0; i < count && !in.failure; i++) load_pair(t, &in);
  pthread_mutex_unlock(&t->lock);
  return tfc_saved_end(&in);
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status shape_table(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "value_shape");
  ctx->outputs[0] = TFC_SHAPE_SCALAR;
  if (ctx->output_handles)
    ctx->output_handles[0] =
        (struct tfc_handle_info){tfc_node_attr_type(ctx->graph, ctx->node, "value_dtype", TFC_DTYPE_NONE),
                                 a && a->kind == TFC_ATTR_SHAPE ? *a->shape : TFC_SHAPE_SCALAR};
  return NULL;
}
static tfc_status shape_lookup(struct tfc_shape_ctx *ctx) {
  const struct tfc_handle_info *h = ctx->input_handles ? ctx->input_handles[0] : NULL;
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (!h || h->dtype == TFC_DTYPE_NONE || h->shape.rank < 0 || ctx->inputs[1]->rank < 0 ||
      h->shape.rank + ctx->inputs[1]->rank > TFC_MAX_RANK)
    return NULL;
  ctx->outputs[0] = *ctx->inputs[1];
  for (int i = 0; i < h->shape.rank; i++) ctx->outputs[0].dims[ctx->outputs[0].rank++] = h->shape.dims[i];
  return NULL;
}
static tfc_status shape_export(struct tfc_shape_ctx *ctx) {
  const struct tfc_handle_info *h = ctx->input_handles ? ctx->input_handles[0] : NULL;
  ctx->outputs[0] = TFC_SHAPE(TFC_DIM_UNKNOWN);
  ctx->outputs[1] = h && h->dtype != TFC_DTYPE_NONE ? tfc_data_prepend(TFC_DIM_UNKNOWN, &h->shape) : TFC_SHAPE_UNKNOWN;
  return NULL;
}

static tfc_status shape_table_ref(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(2);
  return NULL;
}

#define FLAGS (TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE)
#define ON(shape_, kernel_)                                                                                            \
  .flags = FLAGS, .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
#define NAMED                                                                                                          \
  "container: string = '', shared_name: string = '', use_node_name_sharing: bool = false, key_dtype: type, "           \
  "value_dtype: type"
#define DENSE_ATTRS ", value_shape: shape = [], initial_num_buckets: int = 131072, max_load_factor: float = 0.8"
#define FILE_ATTRS                                                                                                     \
  "key_index: int >= -2, value_index: int >= -2, vocab_size: int >= -1 = -1, delimiter: string = '\t', offset: int = " \
  "0"
#define TABLE(name_, attrs_)                                                                                           \
  {.name = name_ "V2", .outputs = "table_handle: resource", .attrs = attrs_, ON(shape_table, table_create)},           \
      {.name = name_, .outputs = "table_handle: Ref(string)", .attrs = attrs_, ON(shape_table_ref, table_create)}, {   \
    .name = "Anonymous" name_, .outputs = "table_handle: resource", .attrs = attrs_, ON(shape_table, table_create)     \
  }
// Two rows for an operation: with a resource handle, and with a reference to two strings.
#define BOTH(name_, inputs_, outputs_, attrs_, effect_, ...)                                                           \
  {.name = name_ "V2",                                                                                                 \
   .inputs = "table_handle: resource" inputs_,                                                                         \
   .outputs = outputs_,                                                                                                \
   .attrs = attrs_,                                                                                                    \
   .effect = effect_,                                                                                                  \
   ON(__VA_ARGS__)},                                                                                                   \
  {                                                                                                                    \
    .name = name_, .inputs = "table_handle: Ref(string)" inputs_, .outputs = outputs_, .attrs = attrs_,                \
    .effect = effect_, ON(__VA_ARGS__)                                                                                 \
  }
#define FROM_FILE(handle)                                                                                              \
  .inputs = "table_handle: " handle ", filename: string", .attrs = FILE_ATTRS, .flags = FLAGS | TFC_OP_FILES,          \
  .effect = TFC_EFFECT_TABLE, .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = ops_shape_none,          \
  .kernel = initialize_from_file
static const struct tfc_op_def data_table_rows[] = {
    TABLE("HashTable", NAMED),
    TABLE("MutableHashTable", NAMED),
    TABLE("MutableHashTableOfTensors", NAMED ", value_shape: shape = []"),
    {.name = "MutableDenseHashTableV2",
     .inputs = "empty_key: key_dtype, deleted_key: key_dtype",
     .outputs = "table_handle: resource",
     .attrs = NAMED DENSE_ATTRS,
     ON(shape_table, table_create)},
    {.name = "MutableDenseHashTable",
     .inputs = "empty_key: key_dtype",
     .outputs = "table_handle: Ref(string)",
     .attrs = NAMED DENSE_ATTRS,
     ON(shape_table_ref, table_create)},
    {.name = "AnonymousMutableDenseHashTable",
     .inputs = "empty_key: key_dtype, deleted_key: key_dtype",
     .outputs = "table_handle: resource",
     .attrs = "key_dtype: type, value_dtype: type" DENSE_ATTRS,
     ON(shape_table, table_create)},
    BOTH("LookupTableFind", ", keys: Tin, default_value: Tout", "values: Tout", "Tin: type, Tout: type",
         TFC_EFFECT_NONE, shape_lookup, lookup),
    BOTH("LookupTableInsert", ", keys: Tin, values: Tout", NULL, "Tin: type, Tout: type", TFC_EFFECT_UPDATE,
         ops_shape_none, insert_),
    {.name = "LookupTableRemoveV2",
     .inputs = "table_handle: resource, keys: Tin",
     .attrs = "Tin: type",
     ON(ops_shape_none, remove_),
     .effect = TFC_EFFECT_UPDATE},
    BOTH("LookupTableSize", "", "size: int64", NULL, TFC_EFFECT_NONE, ops_shape_scalar, size),
    BOTH("LookupTableExport", "", "keys: Tkeys, values: Tvalues", "Tkeys: type, Tvalues: type", TFC_EFFECT_NONE,
         shape_export, export),
    BOTH("LookupTableImport", ", keys: Tin, values: Tout", NULL, "Tin: type, Tout: type", TFC_EFFECT_TABLE,
         ops_shape_none, import),
    BOTH("InitializeTable", ", keys: Tkey, values: Tval", NULL, "Tkey: type, Tval: type", TFC_EFFECT_TABLE,
         ops_shape_none, initialize),
    {.name = "InitializeTableFromTextFileV2", FROM_FILE("resource")},
    {.name = "InitializeTableFromTextFile", FROM_FILE("Ref(string)")},
};
TFC_REGISTER_OPS(data_table_rows);
