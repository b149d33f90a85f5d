// Reads checkpoints. Opening reads the whole index; a data file is mapped when its first tensor is read.
#include "runtime/io/checkpoint.h"

#include <stdlib.h>

#include "runtime/io/bundle.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/table.h"

enum { shard_limit = 1 << 16, slice_limit = 1 << 16 };

struct entry {    // BundleEntryProto
  tfc_str slices; // the whole proto if the tensor has slices; otherwise data == NULL
  uint64_t offset, size;
  uint32_t shard, crc;
  tfc_dtype dtype;
  struct tfc_shape shape;
};

struct tfc_checkpoint {
  char *prefix;
  struct tfc_file index;
  struct tfc_file *shards; // mapped when needed
  uint32_t shard_count;
  struct tfc_arena arena;
  struct tfc_strmap by_key;  // key → index in `all`
  struct tfc_strmap aliases; // name of a variable → index in listed
  struct entry *all;
  struct tfc_checkpoint_entry *listed; // names of tensors; slices are left out
  uint32_t *listed_entry;
  size_t all_count, listed_count;
};

static tfc_status read_entry(tfc_str bytes, struct entry *out) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  struct entry e = {.shape = TFC_SHAPE_SCALAR};
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 1) e.dtype = (tfc_dtype)(f.value < 256 ? f.value : 0);
    if (f.number == 2 && f.type == TFC_WIRE_BYTES) TFC_RETURN_IF_ERROR(tfc_read_shape(f.bytes, &e.shape));
    if (f.number == 3) e.shard = (uint32_t)f.value;
    if (f.number == 4) e.offset = f.value;
    if (f.number == 5) e.size = f.value;
    if (f.number == 6) e.crc = (uint32_t)f.value;
    if (f.number == 7) e.slices = bytes;
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", w.error);
  *out = e;
  return NULL;
}

static tfc_status read_header(struct tfc_checkpoint *c, tfc_str bytes) {
  struct tfc_wire w = tfc_wire_of(bytes);
  struct tfc_field f;
  uint64_t shards = 0;
  while (tfc_wire_next(&w, &f)) {
    if (f.number == 1) shards = f.value;
    if (f.number == 2 && f.value)
      return tfc_status_make(TFC_INVALID_ARGUMENT, "written on a big-endian machine, which is not supported");
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", w.error);
  if (!shards || shards > shard_limit)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "it says that it has %llu data files", (unsigned long long)shards);
  c->shard_count = (uint32_t)shards;
  c->shards = calloc(c->shard_count, sizeof *c->shards);
  return c->shards ? NULL : tfc_status_no_memory(NULL);
}

// Reads the map from variables' own names to keys, which checkpoints of objects contain.
static tfc_status read_aliases(struct tfc_checkpoint *c) {
  tfc_str key = TFC_STR("_CHECKPOINTABLE_OBJECT_GRAPH");
  struct tfc_tensor t = {0};
  const uint64_t *at = tfc_strmap_get(&c->by_key, key);
  if (!at || c->all[*at].dtype != TFC_STRING || c->all[*at].shape.rank != 0) return NULL;
  TFC_RETURN_IF_ERROR(tfc_checkpoint_read(c, key, &t));
  tfc_str graph = tfc_arena_str(&c->arena, tfc_tensor_get_string(&t, 0));
  tfc_tensor_release(&t);
  struct tfc_wire w = tfc_wire_of(graph), o, a;
  struct tfc_field f, e, g;
  while (tfc_wire_next(&w, &f)) { // nodes
    if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
    o = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&o, &e)) { // attributes
      if (e.number != 2 || e.type != TFC_WIRE_BYTES) continue;
      tfc_str full_name = {0}, checkpoint_key = {0};
      a = tfc_wire_of(e.bytes);
      while (tfc_wire_next(&a, &g)) {
        if (g.number == 2 && g.type == TFC_WIRE_BYTES) full_name = g.bytes;
        if (g.number == 3 && g.type == TFC_WIRE_BYTES) checkpoint_key = g.bytes;
      }
      const struct tfc_checkpoint_entry *to = checkpoint_key.size ? tfc_checkpoint_find(c, checkpoint_key) : NULL;
      if (to && full_name.size && !tfc_strmap_put(&c->aliases, full_name, (uint64_t)(to - c->listed), NULL))
        return tfc_status_no_memory(NULL);
    }
  }
  return NULL; // not an error: without the map, tensors are found by their keys only
}

static tfc_status read_index(struct tfc_checkpoint *c) {
  struct tfc_table_entry *entries = NULL;
  size_t count = 0;
  TFC_RETURN_IF_ERROR(
      tfc_table_read((tfc_str){(const char *)c->index.data, c->index.size}, &c->arena, &entries, &count));
  c->all = TFC_ARENA_ARRAY(&c->arena, struct entry, count + 1);
  c->listed = TFC_ARENA_ARRAY(&c->arena, struct tfc_checkpoint_entry, count + 1);
  c->listed_entry = TFC_ARENA_ARRAY(&c->arena, uint32_t, count + 1);
  if (!c->all || !c->listed || !c->listed_entry) return tfc_status_no_memory(NULL);
  for (size_t i = 0; i < count; i++) {
    tfc_str key = entries[i].key;
    if (!key.size) {
      if (c->shards) return tfc_status_make(TFC_INVALID_ARGUMENT, "it has two headers");
      TFC_RETURN_IF_ERROR(read_header(c, entries[i].value));
      continue;
    }
    struct entry *e = &c->all[c->all_count];
    tfc_status s = read_entry(entries[i].value, e);
    if (s) return tfc_status_annotate(s, "tensor '%.*s'", TFC_STR_ARG(key));
    bool found;
    if (!tfc_strmap_put(&c->by_key, key, c->all_count, &found)) return tfc_status_no_memory(NULL);
    if (found) return tfc_status_make(TFC_INVALID_ARGUMENT, "tensor '%.*s' comes twice", TFC_STR_ARG(key));
    if (key.data[0]) { // the keys of slices begin with a zero byte
      c->listed[c->listed_count] = (struct tfc_checkpoint_entry){key, e->dtype, e->shape};
      c->listed_entry[c->listed_count++] = (uint32_t)c->all_count;
      if (!tfc_strmap_put(&c->aliases, key, c->listed_count - 1, NULL)) return tfc_status_no_memory(NULL);
    }
    c->all_count++;
  }
  return c->shards ? NULL : tfc_status_make(TFC_INVALID_ARGUMENT, "it has no header");
}

tfc_status tfc_checkpoint_open(const char *prefix, struct tfc_checkpoint **out) {
  tfc_status s = NULL;
  struct tfc_checkpoint *c = calloc(1, sizeof *c);
  char *path = tfc_format("%s.index", prefix);
  if (c) c->prefix = tfc_str_dup(tfc_str_from(prefix));
  if (!path || !c || !c->prefix) TFC_TRY(s, tfc_status_no_memory(prefix));
  tfc_arena_init(&c->arena, 64 * 1024);
  TFC_TRY(s, tfc_file_map(path, &c->index));
  s = read_index(c);
  if (!s) s = read_aliases(c);
  if (s) {
    s = tfc_status_annotate(s, "%s", path);
    goto out;
  }
  *out = c, c = NULL;
out:
  tfc_checkpoint_close(c);
  free(path);
  return s;
}

void tfc_checkpoint_close(struct tfc_checkpoint *c) {
  if (!c) return;
  for (uint32_t i = 0; c->shards && i < c->shard_count; i++) tfc_file_unmap(&c->shards[i]);
  free(c->shards);
  tfc_file_unmap(&c->index);
  tfc_strmap_deinit(&c->by_key);
  tfc_strmap_deinit(&c->aliases);
  tfc_arena_deinit(&c->arena);
  free(c->prefix);
  free(c);
}

const struct tfc_checkpoint_entry *tfc_checkpoint_entries(const struct tfc_checkpoint *c, size_t *out_count) {
  *out_count = c->listed_count;
  return c->listed;
}

const struct tfc_checkpoint_entry *tfc_checkpoint_find(const struct tfc_checkpoint *c, tfc_str name) {
  const uint64_t *at = tfc_strmap_get(&c->aliases, name);
  return at ? &c->listed[*at] : NULL;
}

// --- Tensors -------------------------------------------------------------------------------------------------------
static tfc_status map_data(struct tfc_checkpoint *c, const struct entry *e, tfc_str *out) {
  if (e->shard >= c->shard_count)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "it is in data file %u of %u", e->shard, c->shard_count);
  struct tfc_file *file = &c->shards[e->shard];
  char *path = tfc_format("%s.data-%05u-of-%05u", c->prefix, e->shard, c->shard_count);
  if (!path) return tfc_status_no_memory(NULL);
  tfc_status s = file->data ? NULL : tfc_file_map(path, file);
  if (!s && (e->size > file->size || e->offset > file->size - e->size))
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "%s: it ends before the tensor does", path);
  free(path);
  if (s) return s;
  *out = (tfc_str){(const char *)file->data + e->offset, (size_t)e->size};
  if (!file->data) *out = TFC_STR("");
  return NULL;
}

static tfc_status wrong_checksum(void) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "its checksum is wrong");
}

// The file has the lengths as varints, their checksum, and the bytes. The checksum covers the lengths as 32-bit numbers
// (as 64-bit ones for very long strings).
static tfc_status read_strings(tfc_str data, const struct entry *e, struct tfc_tensor *t) {
  struct tfc_wire w = tfc_wire_of(data);
  size_t n = (size_t)tfc_tensor_elements(t);
  uint64_t *sizes = calloc(n + 1, sizeof *sizes);
  uint32_t crc = 0, stored;
  tfc_str raw;
  tfc_status s = NULL;
  if (!sizes) return tfc_status_no_memory(NULL);
  for (size_t i = 0; i < n; i++) {
    if (!tfc_wire_varint(&w, &sizes[i])) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s", w.error);
    uint32_t narrow = (uint32_t)sizes[i];
    crc = sizes[i] <= UINT32_MAX ? tfc_crc32c(crc, &narrow, 4) : tfc_crc32c(crc, &sizes[i], 8);
  }
  if (!tfc_wire_take(&w, 4, &raw)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s", w.error);
  memcpy(&stored, raw.data, 4);
  if (stored != tfc_crc32c_mask(crc)) {
    s = wrong_checksum();
    goto out;
  }
  crc = tfc_crc32c(crc, raw.data, 4);
  for (size_t i = 0; i < n; i++) {
    if (!tfc_wire_take(&w, sizes[i], &raw)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s", w.error);
    crc = tfc_crc32c(crc, raw.data, raw.size);
    TFC_TRY(s, tfc_tensor_set_string(t, (int64_t)i, raw));
  }
  if (e->crc != tfc_crc32c_mask(crc)) s = wrong_checksum();
out:
  free(sizes);
  return s;
}

static tfc_status read_plain(struct tfc_checkpoint *c, const struct entry *e, struct tfc_tensor *out) {
  tfc_status s = NULL;
  struct tfc_tensor t = {0};
  tfc_str data = {0};
  size_t bytes;
  TFC_RETURN_IF_ERROR(map_data(c, e, &data));
  TFC_RETURN_IF_ERROR(tfc_tensor_bytes(e->dtype, &e->shape, &bytes));
  if (tfc_dtype_is_ref(e->dtype) || (!tfc_dtype_is_plain(e->dtype) && e->dtype != TFC_STRING))
    return tfc_status_make(TFC_UNIMPLEMENTED, "it holds %s", tfc_dtype_name(e->dtype));
  // Checks the size before allocating: in the file, a string needs at least one byte, and other elements all their
  // bytes.
  if (e->dtype == TFC_STRING ? bytes / sizeof(struct tfc_string) > data.size : bytes != data.size)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "it has %zu bytes, which does not fit its shape", data.size);
  TFC_RETURN_IF_ERROR(tfc_tensor_create(e->dtype, &e->shape, &t));
  if (e->dtype == TFC_STRING) {
    s = read_strings(data, e, &t);
  } else {
    if (bytes) memcpy(t.data, data.data, bytes);
    if (e->crc != tfc_crc32c_mask(tfc_crc32c(0, t.data, bytes))) s = wrong_checksum();
  }
  if (s)
    tfc_tensor_release(&t);
  else
    *out = t;
  return s;
}

struct slice {
  int64_t starts[TFC_MAX_RANK], lengths[TFC_MAX_RANK]; // length -1: the whole dimension
};

static tfc_status read_slice_proto(tfc_str bytes, int rank, struct slice *out) {
  struct tfc_wire w = tfc_wire_of(bytes), x;
  struct tfc_field f, e;
  int n = 0;
  while (tfc_wire_next(&w, &f)) {
    if (f.number != 1 || f.type != TFC_WIRE_BYTES) continue;
    if (n == rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "a slice has too many dimensions");
    out->starts[n] = 0;
    out->lengths[n] = -1;
    x = tfc_wire_of(f.bytes);
    while (tfc_wire_next(&x, &e)) {
      if (e.number == 1) out->starts[n] = (int64_t)e.value;
      if (e.number == 2) out->lengths[n] = (int64_t)e.value;
    }
    if (x.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", x.error);
    n++;
  }
  if (w.error) return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", w.error);
  return n == rank ? NULL : tfc_status_make(TFC_INVALID_ARGUMENT, "a slice has too few dimensions");
}

// Copies a part to its place in the whole tensor, row by row of the last dimension.
static void place(const struct tfc_tensor *part, const int64_t *starts, struct tfc_tensor *whole) {
  size_t size = tfc_dtype_size(whole->dtype);
  int rank = whole->shape.rank;
  int64_t strides[TFC_MAX_RANK], at[TFC_MAX_RANK] = {0}, n = tfc_tensor_elements(part);
  int64_t row = rank ? part->shape.dims[rank - 1] : 1;
  if (!n) return;
  tfc_shape_strides(&whole->shape, strides);
  for (int64_t done = 0; done < n; done += row) {
    int64_t to = 0;
    for (int d = 0; d < rank; d++) to += (starts[d] + at[d]) * strides[d];
    memcpy((char *)whole->data + (size_t)to * size, (const char *)part->data + (size_t)done * size, (size_t)row * size);
    for (int d = rank - 2; d >= 0; d--) {
      if (++at[d] < part->shape.dims[d]) break;
      at[d] = 0;
    }
  }
}

static tfc_status read_slices(struct tfc_checkpoint *c, tfc_str name, const struct entry *e, struct tfc_tensor *out) {
  tfc_status s = NULL;
  struct tfc_tensor whole = {0}, part = {0};
  struct tfc_text key = {0};
  struct tfc_wire w = tfc_wire_of(e->slices);
  struct tfc_field f;
  int64_t covered = 0, count = 0;
  const int64_t all = tfc_shape_elements(&e->shape);
  int rank = e->shape.rank;
  if (!tfc_dtype_is_plain(e->dtype)) TFC_FAIL(s, TFC_UNIMPLEMENTED, "it holds slices of %s", tfc_dtype_name(e->dtype));
  while (tfc_wire_next(&w, &f)) {
    struct slice slice;
    if (f.number != 7 || f.type != TFC_WIRE_BYTES) continue;
    if (++count > slice_limit) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "it has too many slices");
    TFC_TRY(s, read_slice_proto(f.bytes, rank, &slice));
    if (!tfc_slice_key(&key, name, rank, slice.starts, slice.lengths)) TFC_TRY(s, tfc_status_no_memory(NULL));
    const uint64_t *at = tfc_strmap_get(&c->by_key, tfc_text_view(&key));
    if (!at) TFC_FAIL(s, TFC_NOT_FOUND, "one of its slices is missing");
    tfc_tensor_release(&part);
    TFC_TRY(s, read_plain(c, &c->all[*at], &part));
    bool fits = part.dtype == e->dtype && part.shape.rank == rank;
    for (int d = 0; fits && d < rank; d++) {
      int64_t length = slice.lengths[d] < 0 ? e->shape.dims[d] : slice.lengths[d];
      fits = part.shape.dims[d] == length && slice.starts[d] >= 0 && slice.starts[d] <= e->shape.dims[d] &&
             length <= e->shape.dims[d] - slice.starts[d];
    }
    if (!fits) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "one of its slices does not fit");
    covered += tfc_tensor_elements(&part);
    // else a short file that names one slice many times would take a long time
    if (covered > all) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "its slices overlap");
    if (!whole.data) TFC_TRY(s, tfc_tensor_create(e->dtype, &e->shape, &whole));
    place(&part, slice.starts, &whole);
  }
  if (!whole.data || covered != tfc_tensor_elements(&whole))
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "its slices do not make the whole");
  *out = whole;
  whole = (struct tfc_tensor){0};
out:
  tfc_tensor_release(&whole);
  tfc_tensor_release(&part);
  tfc_text_deinit(&key);
  return s;
}

tfc_status tfc_checkpoint_read(struct tfc_checkpoint *c, tfc_str name, struct tfc_tensor *out) {
  const struct tfc_checkpoint_entry *listed = tfc_checkpoint_find(c, name);
  if (!listed) return tfc_status_make(TFC_NOT_FOUND, "%s: no tensor '%.*s'", c->prefix, TFC_STR_ARG(name));
  const struct entry *e = &c->all[c->listed_entry[listed - c->listed]];
  tfc_status s = e->slices.data ? read_slices(c, listed->name, e, out) : read_plain(c, e, out);
  return tfc_status_annotate(s, "%s: tensor '%.*s'", c->prefix, TFC_STR_ARG(name));
}

// Copies a part out of the whole tensor.
static tfc_status cut(const struct tfc_tensor *whole, const int64_t *starts, const int64_t *lengths,
                      struct tfc_tensor *out) {
  struct tfc_shape shape = {.rank = whole->shape.rank};
  int rank = shape.rank;
  int64_t strides[TFC_MAX_RANK], at[TFC_MAX_RANK] = {0};
  for (int d = 0; d < rank; d++) shape.dims[d] = lengths[d];
  TFC_RETURN_IF_ERROR(tfc_tensor_create(whole->dtype, &shape, out));
  tfc_shape_strides(&whole->shape, strides);
  size_t size = tfc_dtype_size(whole->dtype);
  int64_t row = rank ? shape.dims[rank - 1] : 1;
  for (int64_t done = 0, n = tfc_shape_elements(&shape); done < n; done += row) {
    int64_t from = 0;
    for (int d = 0; d < rank; d++) from += (starts[d] + at[d]) * strides[d];
    if (tfc_dtype_is_plain(whole->dtype)) {
      memcpy((char *)out->data + (size_t)done * size, (const char *)whole->data + (size_t)from * size,
             (size_t)row * size);
    } else {
      for (int64_t i = 0; i < row; i++) {
        tfc_status s = tfc_tensor_set_string(out, done + i, tfc_tensor_get_string(whole, from + i));
        if (!s) continue;
        tfc_tensor_release(out);
        return s;
      }
    }
    for (int d = rank - 2; d >= 0; d--) {
      if (++at[d] < shape.dims[d]) break;
      at[d] = 0;
    }
  }
  return NULL;
}

tfc_status tfc_checkpoint_read_slice(struct tfc_checkpoint *c, tfc_str name, int rank, const int64_t *starts,
                                     const int64_t *lengths, struct tfc_tensor *out) {
  const struct tfc_checkpoint_entry *listed = tfc_checkpoint_find(c, name);
  struct tfc_tensor whole = {0};
  if (!listed) return tfc_status_make(TFC_NOT_FOUND, "%s: no tensor '%.*s'", c->prefix, TFC_STR_ARG(name));
  bool inside = rank == listed->shape.rank, all = true;
  int64_t stored[TFC_MAX_RANK];
  for (int d = 0; inside && d < rank; d++) {
    int64_t size = listed->shape.dims[d];
    inside = starts[d] >= 0 && lengths[d] >= 0 && starts[d] <= size && lengths[d] <= size - starts[d];
    bool full = starts[d] == 0 && lengths[d] == size;
    stored[d] = full ? -1 : lengths[d];
    all &= full;
  }
  if (!inside)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: the slice lies outside of tensor '%.*s' %s", c->prefix,
                           TFC_STR_ARG(name), tfc_shape_show(&listed->shape, (char[TFC_SHAPE_TEXT]){0}));
  if (all) return tfc_checkpoint_read(c, name, out);
  struct tfc_text key = {0};
  if (!tfc_slice_key(&key, listed->name, rank, starts, stored)) {
    tfc_text_deinit(&key);
    return tfc_status_no_memory(NULL);
  }
  const uint64_t *at = tfc_strmap_get(&c->by_key, tfc_text_view(&key));
  tfc_text_deinit(&key);
  tfc_status s = at ? read_plain(c, &c->all[*at], out) : tfc_checkpoint_read(c, name, &whole);
  if (s) return tfc_status_annotate(s, "%s: tensor '%.*s'", c->prefix, TFC_STR_ARG(name));
  if (at) {
    bool fits = out->dtype == listed->dtype && out->shape.rank == rank;
    for (int d = 0; fits && d < rank; d++) fits = out->shape.dims[d] == lengths[d];
    if (fits) return NULL;
    tfc_tensor_release(out);
    return tfc_status_make(TFC_INVALID_ARGUMENT, "%s: a slice of tensor '%.*s' has the wrong shape", c->prefix,
                           TFC_STR_ARG(name));
  }
  s = cut(&whole, starts, lengths, out);
  tfc_tensor_release(&whole);
  return s;
}
