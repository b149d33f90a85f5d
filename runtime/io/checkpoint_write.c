// Writes checkpoints: the tensors one after another into one data file, then the index. The data file is written under
// a temporary name and then renamed, so that a failure leaves the old checkpoint.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/graph/export_attr.h"
#include "runtime/io/bundle.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/table.h"

struct record {
  tfc_str key;
  struct tfc_text value; // BundleEntryProto
};
struct whole { // a tensor that the caller gave in slices
  tfc_str name;
  tfc_dtype dtype;
  struct tfc_shape shape;
  struct tfc_text slices; // repeated TensorSliceProto
};

struct writer {
  const char *path;
  int fd;
  uint64_t offset;
  TFC_ARRAY(struct record) records;
  TFC_ARRAY(struct whole) wholes;
  struct tfc_arena arena;
};

static tfc_status put(struct writer *w, const void *data, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t n = tfc_os.write(w->fd, (const char *)data + at, size - at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      return tfc_status_make(TFC_DATA_LOSS, "%s: cannot be written: %s", w->path,
                             n < 0 ? strerror(errno) : "disk full");
    at += (size_t)n;
  }
  w->offset += size;
  return NULL;
}

static tfc_status put_strings(struct writer *w, const struct tfc_tensor *t, uint32_t *out_crc) {
  tfc_status s = NULL;
  struct tfc_text lengths = {0};
  uint32_t crc = 0;
  for (int64_t i = 0; i < tfc_tensor_elements(t); i++) {
    uint64_t size = tfc_tensor_get_string(t, i).size;
    uint32_t narrow = (uint32_t)size;
    tfc_wire_put_varint(&lengths, size);
    crc = size <= UINT32_MAX ? tfc_crc32c(crc, &narrow, 4) : tfc_crc32c(crc, &size, 8);
  }
  uint32_t stored = tfc_crc32c_mask(crc);
  crc = tfc_crc32c(crc, &stored, 4);
  tfc_text_add(&lengths, (tfc_str){(const char *)&stored, 4});
  if (lengths.failed) TFC_TRY(s, tfc_status_no_memory("writing a checkpoint"));
  TFC_TRY(s, put(w, lengths.data, lengths.size));
  for (int64_t i = 0; i < tfc_tensor_elements(t); i++) {
    tfc_str piece = tfc_tensor_get_string(t, i);
    crc = tfc_crc32c(crc, piece.data, piece.size);
    TFC_TRY(s, put(w, piece.data, piece.size));
  }
  *out_crc = crc;
out:
  tfc_text_deinit(&lengths);
  return s;
}

// Adds a slice to the proto that describes the whole tensor.
static void put_slice(struct tfc_text *out, int rank, const int64_t *starts, const int64_t *lengths) {
  struct tfc_text m = {0}, extent = {0};
  for (int d = 0; d < rank; d++) {
    extent.size = 0;
    if (lengths[d] >= 0) {
      if (starts[d]) tfc_wire_put_int(&extent, 1, (uint64_t)starts[d]);
      tfc_wire_put_int(&extent, 2, (uint64_t)lengths[d]);
    }
    tfc_wire_put_bytes(&m, 1, tfc_text_view(&extent));
  }
  tfc_wire_put_bytes(out, 7, tfc_text_view(&m));
  out->failed |= m.failed | extent.failed;
  tfc_text_deinit(&m);
  tfc_text_deinit(&extent);
}

static tfc_status add_slice(struct writer *w, const struct tfc_checkpoint_item *item, tfc_str *out_key) {
  int rank = item->tensor->shape.rank;
  int64_t starts[TFC_MAX_RANK], lengths[TFC_MAX_RANK];
  if (rank != item->whole->rank) return tfc_status_make(TFC_INVALID_ARGUMENT, "a slice of another rank than the whole");
  for (int d = 0; d < rank; d++) {
    starts[d] = item->offsets[d];
    lengths[d] = item->tensor->shape.dims[d];
    if (starts[d] < 0 || starts[d] > item->whole->dims[d] || lengths[d] > item->whole->dims[d] - starts[d])
      return tfc_status_make(TFC_INVALID_ARGUMENT, "a slice lies outside of the whole");
    if (starts[d] == 0 && lengths[d] == item->whole->dims[d]) lengths[d] = -1;
  }
  struct whole *whole = NULL;
  for (size_t i = 0; i < w->wholes.count && !whole; i++)
    if (tfc_str_equal(w->wholes.data[i].name, item->name)) whole = &w->wholes.data[i];
  if (!whole) {
    struct whole made = {.name = item->name, .dtype = item->tensor->dtype, .shape = *item->whole};
    if (!tfc_array_push(&w->wholes, made)) return tfc_status_no_memory(NULL);
    whole = &w->wholes.data[w->wholes.count - 1];
  }
  if (!tfc_shape_equal(&whole->shape, item->whole) || whole->dtype != item->tensor->dtype)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "its slices do not agree about the whole");
  put_slice(&whole->slices, rank, starts, lengths);
  struct tfc_text key = {0};
  bool ok = tfc_slice_key(&key, item->name, rank, starts, lengths);
  if (ok) *out_key = tfc_arena_str(&w->arena, tfc_text_view(&key));
  tfc_text_deinit(&key);
  return ok && out_key->data ? NULL : tfc_status_no_memory(NULL);
}

static tfc_status add_item(struct writer *w, const struct tfc_checkpoint_item *item) {
  const struct tfc_tensor *t = item->tensor;
  struct record r = {.key = item->name};
  uint64_t begin = w->offset;
  uint32_t crc = 0;
  if (!item->name.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor has no name");
  if (item->whole) TFC_RETURN_IF_ERROR(add_slice(w, item, &r.key));
  if (t->dtype == TFC_STRING) {
    TFC_RETURN_IF_ERROR(put_strings(w, t, &crc));
  } else if (tfc_dtype_is_plain(t->dtype)) {
    TFC_RETURN_IF_ERROR(put(w, t->data, t->size));
    crc = tfc_crc32c(0, t->data, t->size);
  } else {
    return tfc_status_make(TFC_UNIMPLEMENTED, "it holds %s", tfc_dtype_name(t->dtype));
  }
  crc = tfc_crc32c_mask(crc);
  tfc_wire_put_int(&r.value, 1, (uint64_t)t->dtype);
  tfc_wire_put_shape(&r.value, 2, &t->shape);
  if (begin) tfc_wire_put_int(&r.value, 4, begin);
  if (w->offset > begin) tfc_wire_put_int(&r.value, 5, w->offset - begin);
  tfc_wire_put_varint(&r.value, 6 << 3 | TFC_WIRE_32);
  tfc_text_add(&r.value, (tfc_str){(const char *)&crc, 4});
  if (r.value.failed || !tfc_array_push(&w->records, r)) {
    tfc_text_deinit(&r.value);
    return tfc_status_no_memory(NULL);
  }
  return NULL;
}

static tfc_status write_index(struct writer *w, const char *path) {
  for (size_t i = 0; i < w->wholes.count; i++) {
    struct record r = {.key = w->wholes.data[i].name};
    tfc_wire_put_int(&r.value, 1, (uint64_t)w->wholes.data[i].dtype);
    tfc_wire_put_shape(&r.value, 2, &w->wholes.data[i].shape);
    tfc_text_add(&r.value, tfc_text_view(&w->wholes.data[i].slices));
    if (r.value.failed || !tfc_array_push(&w->records, r)) {
      tfc_text_deinit(&r.value);
      return tfc_status_no_memory(NULL);
    }
  }
  struct tfc_table_entry *entries = calloc(w->records.count + 1, sizeof *entries);
  if (!entries) return tfc_status_no_memory(NULL);
  for (size_t i = 0; i < w->records.count; i++)
    entries[1 + i] = (struct tfc_table_entry){w->records.data[i].key, tfc_text_view(&w->records.data[i].value)};
  tfc_status s = tfc_bundle_write_index(entries, w->records.count, 1, path);
  free(entries);
  return s;
}

tfc_status tfc_checkpoint_write(const char *prefix, const struct tfc_checkpoint_item *items, size_t count) {
  tfc_status s = NULL;
  struct writer w = {.fd = -1};
  char *data = tfc_format("%s.data-00000-of-00001", prefix), *index = tfc_format("%s.index", prefix);
  char *temporary = tfc_format("%s.data.%d.tmp", prefix, (int)getpid());
  if (!data || !index || !temporary) TFC_TRY(s, tfc_status_no_memory(prefix));
  tfc_arena_init(&w.arena, 16 * 1024);
  w.path = data;
  TFC_TRY(s, tfc_file_make_parents(data));
  unlink(temporary); // a killed process left it, or somebody made it a link to another file
  w.fd = tfc_os.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (w.fd < 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", data, strerror(errno));
  for (size_t i = 0; i < count; i++) {
    s = add_item(&w, &items[i]);
    if (s) {
      s = tfc_status_annotate(s, "tensor '%.*s'", TFC_STR_ARG(items[i].name));
      goto out;
    }
  }
  if (tfc_os.fsync(w.fd) != 0) TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", data, strerror(errno));
  if (tfc_os.rename(temporary, data) != 0)
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: cannot be written: %s", data, strerror(errno));
  s = write_index(&w, index);
out:
  if (w.fd >= 0) close(w.fd);
  if (s && w.fd >= 0) unlink(temporary);
  for (size_t i = 0; i < w.records.count; i++) tfc_text_deinit(&w.records.data[i].value);
  for (size_t i = 0; i < w.wholes.count; i++) tfc_text_deinit(&w.wholes.data[i].slices);
  tfc_array_free(&w.records);
  tfc_array_free(&w.wholes);
  tfc_arena_deinit(&w.arena);
  free(data);
  free(index);
  free(temporary);
  return s;
}
