#include "runtime/io/checkpoint_v1.h"

#include <glob.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/base/file.h"
#include "runtime/graph/export_attr.h"
#include "runtime/graph/import.h"
#include "runtime/graph/wire.h"
#include "runtime/io/table.h"

struct described { // a tensor as the first entry of the table describes it
  tfc_str name;
  tfc_dtype dtype;
  struct tfc_shape shape;
};
struct slice { // views into the files and the arena
  tfc_str name, extents, values;
};
struct tfc_checkpoint_v1 {
  struct tfc_arena arena;
  struct tfc_file *files;
  size_t file_count;
  TFC_ARRAY(struct described) tensors;
  TFC_ARRAY(struct slice) slices;
};

static tfc_status broken(const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "%s is not as it should be", what);
}

// --- Reading -------------------------------------------------------------------------------------------------------
static tfc_status read_shape(tfc_str bytes, struct tfc_shape *out) { // TensorShapeProto
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  *out = TFC_SHAPE_SCALAR;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 2 || f.type != TFC_WIRE_BYTES) continue;
    struct tfc_wire d = tfc_wire_of(f.bytes);
    struct tfc_field size;
    if (out->rank == TFC_MAX_RANK) return broken("a shape");
    out->dims[out->rank] = 0;
    while (tfc_wire_next(&d, &size))
      if (size.number == 1 && size.type == TFC_WIRE_VARINT) out->dims[out->rank] = (int64_t)size.value;
    if (d.error || out->dims[out->rank] < 0) return broken("a shape");
    out->rank++;
  }
  return w.error ? broken("a shape") : NULL;
}

// Reads where a slice lies in a tensor of this shape.
static tfc_status read_extents(tfc_str bytes, const struct tfc_shape *whole, int64_t *starts, int64_t *lengths) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  int rank = 0;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
    if (rank >= whole->rank) return broken("a slice");
    struct tfc_wire e = tfc_wire_of(f.bytes);
    struct tfc_field part;
    int64_t start = 0, length = whole->dims[rank];
    while (tfc_wire_next(&e, &part)) {
      if (part.type != TFC_WIRE_VARINT) continue;
      if (part.number == 1) start = (int64_t)part.value;
      if (part.number == 2) length = (int64_t)part.value;
    }
    if (e.error || start < 0 || length < 0 || start > whole->dims[rank] || length > whole->dims[rank] - start)
      return broken("a slice");
    starts[rank] = start;
    lengths[rank++] = length;
  }
  return w.error || rank != whole->rank ? broken("a slice") : NULL;
}

static tfc_status read_described(struct tfc_checkpoint_v1 *c, tfc_str bytes) { // SavedSliceMeta
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  struct described d = {.shape = TFC_SHAPE_SCALAR};
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 1 && f.type == TFC_WIRE_BYTES) d.name = f.bytes;
    if (f.number == 2 && f.type == TFC_WIRE_BYTES) TFC_RETURN_IF_ERROR(read_shape(f.bytes, &d.shape));
    if (f.number == 3 && f.type == TFC_WIRE_VARINT) d.dtype = (tfc_dtype)f.value;
  }
  if (w.error || !tfc_dtype_valid(d.dtype) || tfc_dtype_is_ref(d.dtype)) return broken("the description of a tensor");
  return tfc_array_push(&c->tensors, d) ? NULL : tfc_status_no_memory("a checkpoint");
}

static tfc_status read_entry(struct tfc_checkpoint_v1 *c, tfc_str bytes) { // SavedTensorSlices
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f, g;
  while (tfc_wire_next(&w, &f)) {
    if (f.type != TFC_WIRE_BYTES) continue;
    struct tfc_wire inner = tfc_wire_of(f.bytes);
    struct slice slice = {0};
    while (tfc_wire_next(&inner, &g)) {
      if (g.type != TFC_WIRE_BYTES) continue;
      if (f.number == 1 && g.number == 1) TFC_RETURN_IF_ERROR(read_described(c, g.bytes));
      if (f.number == 2 && g.number == 1) slice.name = g.bytes;
      if (f.number == 2 && g.number == 2) slice.extents = g.bytes;
      if (f.number == 2 && g.number == 3) slice.values = g.bytes;
    }
    if (inner.error) return broken("an entry");
    if (f.number == 2 && !tfc_array_push(&c->slices, slice)) return tfc_status_no_memory("a checkpoint");
  }
  return w.error ? broken("an entry") : NULL;
}

static tfc_status read_one(struct tfc_checkpoint_v1 *c, const char *path) {
  struct tfc_table_entry *entries = NULL;
  size_t count = 0;
  struct tfc_file *file = &c->files[c->file_count];
  TFC_RETURN_IF_ERROR(tfc_file_map(path, file));
  c->file_count++;
  tfc_status s = tfc_table_read((tfc_str){(const char *)file->data, file->size}, &c->arena, &entries, &count);
  for (size_t i = 0; !s && i < count; i++) s = read_entry(c, entries[i].value);
  return tfc_status_annotate(s, "%s", path);
}

tfc_status tfc_checkpoint_v1_open(const char *pattern, struct tfc_checkpoint_v1 **out) {
  tfc_status s = NULL;
  glob_t found = {0};
  struct tfc_checkpoint_v1 *c = calloc(1, sizeof *c);
  int code = glob(pattern, 0, NULL, &found);
  if (!c || code == GLOB_NOSPACE) TFC_TRY(s, tfc_status_no_memory(pattern));
  tfc_arena_init(&c->arena, 1 << 16);
  if (!found.gl_pathc)
    TFC_FAIL(s, TFC_NOT_FOUND, "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for %s",
             pattern);
  c->files = calloc(found.gl_pathc, sizeof *c->files);
  if (!c->files) TFC_TRY(s, tfc_status_no_memory(pattern));
  for (size_t i = 0; i < found.gl_pathc; i++) TFC_TRY(s, read_one(c, found.gl_pathv[i]));
  *out = c;
  c = NULL;
out:
  globfree(&found);
  tfc_checkpoint_v1_close(c);
  return s;
}
void tfc_checkpoint_v1_close(struct tfc_checkpoint_v1 *c) {
  if (!c) return;
  for (size_t i = 0; i < c->file_count; i++) tfc_file_unmap(&c->files[i]);
  free(c->files);
  tfc_array_free(&c->tensors);
  tfc_array_free(&c->slices);
  tfc_arena_deinit(&c->arena);
  free(c);
}

tfc_status tfc_checkpoint_v1_find(const struct tfc_checkpoint_v1 *c, tfc_str name, tfc_dtype *out_dtype,
                                  struct tfc_shape *out_shape) {
  for (size_t i = 0; i < c->tensors.count; i++)
    if (tfc_str_equal(c->tensors.data[i].name, name)) {
      *out_dtype = c->tensors.data[i].dtype;
      *out_shape = c->tensors.data[i].shape;
      return NULL;
    }
  return tfc_status_make(TFC_NOT_FOUND, "Tensor name \"%.*s\" not found in checkpoint files", TFC_STR_ARG(name));
}

// Reads the values of a slice. The message may lack type and shape, so they are appended before the importer reads it.
static tfc_status read_values(tfc_str values, tfc_dtype dtype, const struct tfc_shape *shape,
                              struct tfc_graph **out_graph, const struct tfc_tensor **out) {
  struct tfc_text message = {0};
  tfc_status s = NULL;
  struct tfc_graph *g = NULL;
  const struct tfc_tensor *tensor = NULL;
  struct tfc_wire w = tfc_wire_of(values);
  const uint8_t *from = w.at;
  for (struct tfc_field f; tfc_wire_next(&w, &f); from = w.at)
    if (f.number != 1 && f.number != 2) tfc_text_add(&message, (tfc_str){(const char *)from, (size_t)(w.at - from)});
  if (w.error) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the values of a slice are not as they should be");
  tfc_wire_put_int(&message, 1, (uint64_t)dtype);
  tfc_wire_put_shape(&message, 2, shape);
  if (message.failed) TFC_TRY(s, tfc_status_no_memory("a checkpoint"));
  TFC_TRY(s, tfc_graph_parse_tensor(tfc_text_view(&message), dtype, "a slice", &g, &tensor));
  if (!tfc_shape_equal(&tensor->shape, shape))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the values of a slice are not as they should be");
  *out = tensor;
  *out_graph = g;
  g = NULL;
out:
  tfc_graph_release(g);
  tfc_text_deinit(&message);
  return s;
}

struct box { // a part of a tensor: in dimension d, the elements [starts[d], starts[d] + lengths[d])
  int64_t starts[TFC_MAX_RANK], lengths[TFC_MAX_RANK];
};
// Finds the part that two parts have in common; returns the number of its elements.
static int64_t common(const struct box *a, const struct box *b, int rank, struct box *out) {
  int64_t count = 1;
  for (int d = 0; d < rank; d++) {
    const int64_t end = a->starts[d] + a->lengths[d], limit = b->starts[d] + b->lengths[d];
    out->starts[d] = a->starts[d] > b->starts[d] ? a->starts[d] : b->starts[d];
    out->lengths[d] = (end < limit ? end : limit) - out->starts[d];
    if (out->lengths[d] <= 0) count = 0;
    if (count) count *= out->lengths[d];
  }
  return count;
}
// `from` holds the part `at` of a tensor, `to` its part `want`. Copies the `count` elements of the part `both`.
static tfc_status copy_common(const struct tfc_tensor *from, const struct box *at, struct tfc_tensor *to,
                              const struct box *want, const struct box *both, int64_t count) {
  int rank = to->shape.rank;
  int64_t index[TFC_MAX_RANK];
  for (int d = 0; d < rank; d++) index[d] = both->starts[d];
  size_t size = from->dtype == TFC_STRING ? 0 : tfc_dtype_size(from->dtype);
  for (int64_t i = 0; i < count; i++) {
    int64_t source = 0, target = 0;
    for (int d = 0; d < rank; d++) {
      source = source * at->lengths[d] + index[d] - at->starts[d];
      target = target * want->lengths[d] + index[d] - want->starts[d];
    }
    if (from->dtype != TFC_STRING)
      memcpy((char *)to->data + (size_t)target * size, (const char *)from->data + (size_t)source * size, size);
    else
      TFC_RETURN_IF_ERROR(tfc_tensor_set_string(to, target, tfc_tensor_get_string(from, source)));
    for (int d = rank - 1; d >= 0 && ++index[d] == both->starts[d] + both->lengths[d]; d--) index[d] = both->starts[d];
  }
  return NULL;
}

tfc_status tfc_checkpoint_v1_read(const struct tfc_checkpoint_v1 *c, tfc_str name, const int64_t *starts,
                                  const int64_t *lengths, struct tfc_tensor *out) {
  tfc_status s = NULL;
  tfc_dtype dtype;
  struct tfc_shape whole, shape;
  struct tfc_tensor made = {0};
  struct box want = {0};
  int64_t count = 0;
  TFC_RETURN_IF_ERROR(tfc_checkpoint_v1_find(c, name, &dtype, &whole));
  shape = whole;
  for (int d = 0; d < whole.rank; d++) {
    want.starts[d] = starts ? starts[d] : 0;
    want.lengths[d] = shape.dims[d] = lengths ? lengths[d] : whole.dims[d];
    if (want.starts[d] < 0 || want.lengths[d] < 0 || want.starts[d] > whole.dims[d] - want.lengths[d])
      return tfc_status_make(TFC_INVALID_ARGUMENT, "the slice lies outside of tensor '%.*s'", TFC_STR_ARG(name));
  }
  TFC_RETURN_IF_ERROR(tfc_tensor_create(dtype, &shape, &made));
  for (size_t i = 0; i < c->slices.count; i++) {
    const struct slice *slice = &c->slices.data[i];
    const struct tfc_tensor *values = NULL;
    struct tfc_graph *holder = NULL;
    struct box at = {0}, both = {0};
    struct tfc_shape own = whole;
    if (!tfc_str_equal(slice->name, name)) continue;
    TFC_TRY(s, read_extents(slice->extents, &whole, at.starts, at.lengths));
    const int64_t shared = common(&at, &want, whole.rank, &both);
    if (!shared) continue;
    count += shared;
    // else a short file that names one slice many times would take a long time
    if (count > tfc_tensor_elements(&made)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "its slices overlap");
    for (int d = 0; d < own.rank; d++) own.dims[d] = at.lengths[d];
    TFC_TRY(s, read_values(slice->values, dtype, &own, &holder, &values));
    s = copy_common(values, &at, &made, &want, &both, shared);
    tfc_graph_release(holder);
    if (s) goto out;
  }
  if (count < tfc_tensor_elements(&made))
    TFC_FAIL(s, TFC_NOT_FOUND, "Does not have all of the slice wanted of tensor '%.*s' in the checkpoint",
             TFC_STR_ARG(name));
  *out = made;
  made = (struct tfc_tensor){0};
out:
  tfc_tensor_release(&made);
  return tfc_status_annotate(s, "tensor '%.*s'", TFC_STR_ARG(name));
}

// --- Writing -------------------------------------------------------------------------------------------------------
// These functions write keys; the order of keys by bytes is the order of their numbers and names.
static void put_name(struct tfc_text *out, tfc_str name) {
  for (size_t i = 0; i < name.size; i++) {
    tfc_text_add(out, (tfc_str){name.data + i, 1});
    if (name.data[i] == '\0') tfc_text_add(out, (tfc_str){"\xff", 1});
    if (name.data[i] == '\xff') tfc_text_add(out, (tfc_str){"\0", 1});
  }
  tfc_text_add(out, (tfc_str){"\0\1", 2});
}
static void put_number(struct tfc_text *out, uint64_t v) {
  char bytes[9];
  int n = 0;
  for (uint64_t rest = v; rest; rest >>= 8) n++;
  bytes[0] = (char)n;
  for (int i = 0; i < n; i++) bytes[n - i] = (char)(v >> (8 * i));
  tfc_text_add(out, (tfc_str){bytes, (size_t)n + 1});
}
static void put_signed(struct tfc_text *out, int64_t v) {
  unsigned char bytes[10];
  uint64_t x = v < 0 ? ~(uint64_t)v : (uint64_t)v;
  int bits = x ? 64 - __builtin_clzll(x) : 0, n = bits / 7 + 1;
  for (int i = 0; i < 10; i++) bytes[9 - i] = (unsigned char)(i < 8 ? (uint64_t)v >> (8 * i) : v < 0 ? 0xff : 0);
  // the number of leading one bits is the length
  for (int i = 0; i < n; i++) bytes[10 - n + i / 8] ^= (unsigned char)(0x80 >> i % 8);
  tfc_text_add(out, (tfc_str){(const char *)bytes + 10 - n, (size_t)n});
}

static void put_packed_varint(struct tfc_text *out, int64_t v) {
  tfc_wire_put_varint(out, (uint64_t)v);
}
static tfc_status put_values(struct tfc_text *out, const struct tfc_tensor *t) { // TensorProto with typed values
  struct tfc_text packed = {0};
  int64_t n = tfc_tensor_elements(t);
  uint32_t number = 0;
  tfc_wire_put_int(out, 1, (uint64_t)t->dtype);
  for (int64_t i = 0; i < n; i++) {
    switch ((int)t->dtype) {
    case TFC_STRING: tfc_wire_put_bytes(out, 8, tfc_tensor_get_string(t, i)); break;
    case TFC_HALF:
    case TFC_BFLOAT16: number = 13, put_packed_varint(&packed, ((const uint16_t *)t->data)[i]); break;
    case TFC_BOOL: number = 11, put_packed_varint(&packed, ((const bool *)t->data)[i]); break;
    case TFC_INT64: number = 10, put_packed_varint(&packed, ((const int64_t *)t->data)[i]); break;
    case TFC_INT32: number = 7, put_packed_varint(&packed, ((const int32_t *)t->data)[i]); break;
    case TFC_INT16: number = 7, put_packed_varint(&packed, ((const int16_t *)t->data)[i]); break;
    case TFC_UINT16: number = 7, put_packed_varint(&packed, ((const uint16_t *)t->data)[i]); break;
    case TFC_INT8: number = 7, put_packed_varint(&packed, ((const int8_t *)t->data)[i]); break;
    case TFC_UINT8: number = 7, put_packed_varint(&packed, ((const uint8_t *)t->data)[i]); break;
    case TFC_FLOAT: number = 5; break;
    case TFC_DOUBLE: number = 6; break;
    case TFC_COMPLEX64: number = 9; break;
    case TFC_COMPLEX128: number = 12; break;
    default:
      tfc_text_deinit(&packed);
      return tfc_status_make(TFC_UNIMPLEMENTED, "tensors of %s cannot be in a checkpoint of the first format",
                             tfc_dtype_name(t->dtype));
    }
  }
  if (number) tfc_wire_put_bytes(out, number, packed.size ? tfc_text_view(&packed) : (tfc_str){t->data, t->size});
  out->failed |= packed.failed;
  tfc_text_deinit(&packed);
  return NULL;
}

struct written {
  struct tfc_text key, value;
};
static int by_key(const void *a, const void *b) {
  return tfc_str_compare(tfc_text_view(&((const struct written *)a)->key),
                         tfc_text_view(&((const struct written *)b)->key));
}

// Makes all that the file has for one slice: its extents, its key, its values, and its description.
static tfc_status put_item(const struct tfc_checkpoint_item *item, struct written *out, struct tfc_text *described) {
  const struct tfc_shape *own = &item->tensor->shape, *whole = item->whole ? item->whole : own;
  struct tfc_text extents = {0}, slice = {0}, meta = {0};
  put_number(&out->key, 0);
  put_name(&out->key, item->name);
  put_number(&out->key, (uint64_t)own->rank);
  for (int d = 0; d < own->rank; d++) {
    struct tfc_text extent = {0};
    bool full = own->dims[d] == whole->dims[d];
    int64_t start = !full && item->offsets ? item->offsets[d] : 0;
    put_signed(&out->key, start);
    put_signed(&out->key, full ? -1 : own->dims[d]);
    if (!full && start) tfc_wire_put_int(&extent, 1, (uint64_t)start);
    if (!full) tfc_wire_put_int(&extent, 2, (uint64_t)own->dims[d]);
    tfc_wire_put_bytes(&extents, 1, tfc_text_view(&extent));
    extents.failed |= extent.failed;
    tfc_text_deinit(&extent);
  }
  tfc_wire_put_bytes(&meta, 1, item->name);
  tfc_wire_put_shape(&meta, 2, whole);
  tfc_wire_put_int(&meta, 3, (uint64_t)item->tensor->dtype);
  tfc_wire_put_bytes(&meta, 4, tfc_text_view(&extents));
  tfc_wire_put_bytes(described, 1, tfc_text_view(&meta));
  struct tfc_text values = {0};
  tfc_status s = put_values(&values, item->tensor);
  tfc_wire_put_bytes(&slice, 1, item->name);
  tfc_wire_put_bytes(&slice, 2, tfc_text_view(&extents));
  tfc_wire_put_bytes(&slice, 3, tfc_text_view(&values));
  tfc_wire_put_bytes(&out->value, 2, tfc_text_view(&slice));
  described->failed |=
      extents.failed | slice.failed | meta.failed | values.failed | out->key.failed | out->value.failed;
  tfc_text_deinit(&extents);
  tfc_text_deinit(&slice);
  tfc_text_deinit(&meta);
  tfc_text_deinit(&values);
  return tfc_status_annotate(s, "tensor '%.*s'", TFC_STR_ARG(item->name));
}

tfc_status tfc_checkpoint_v1_write(const char *path, const struct tfc_checkpoint_item *items, size_t count) {
  tfc_status s = NULL;
  struct tfc_text described = {0}, versions = {0}, first = {0}, file = {0};
  struct written *slices = calloc(count + 1, sizeof *slices);
  struct tfc_table_entry *entries = calloc(count + 1, sizeof *entries);
  if (!slices || !entries) TFC_TRY(s, tfc_status_no_memory(path));
  for (size_t i = 0; i < count; i++) TFC_TRY(s, put_item(&items[i], &slices[i], &described));
  // the version of the producer; files of version 0 may have wrong values of some types
  tfc_wire_put_int(&versions, 1, 1);
  tfc_wire_put_bytes(&described, 2, tfc_text_view(&versions));
  tfc_wire_put_bytes(&first, 1, tfc_text_view(&described));
  qsort(slices, count, sizeof *slices, by_key);
  entries[0] = (struct tfc_table_entry){TFC_STR(""), tfc_text_view(&first)};
  for (size_t i = 0; i < count; i++)
    entries[i + 1] = (struct tfc_table_entry){tfc_text_view(&slices[i].key), tfc_text_view(&slices[i].value)};
  if (described.failed || versions.failed || first.failed) TFC_TRY(s, tfc_status_no_memory(path));
  TFC_TRY(s, tfc_table_write(entries, count + 1, &file));
  TFC_TRY(s, tfc_file_make_parents(path));
  TFC_TRY(s, tfc_file_write(path, tfc_text_view(&file)));
out:
  for (size_t i = 0; slices && i < count; i++) tfc_text_deinit(&slices[i].key), tfc_text_deinit(&slices[i].value);
  free(slices);
  free(entries);
  tfc_text_deinit(&described);
  tfc_text_deinit(&versions);
  tfc_text_deinit(&first);
  tfc_text_deinit(&file);
  return s;
}
