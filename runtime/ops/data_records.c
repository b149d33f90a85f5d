// A TFRecord consists of its length (64 bits, little-endian), the masked CRC-32C of these 8 bytes, the data, and the
// data's masked CRC-32C.
#include "runtime/ops/data_records.h"

#include <stdlib.h>
#include <zlib.h>

#include "runtime/base/no_memory.h"
#include "runtime/io/crc32c.h"

tfc_status tfc_records_inflate(const char *name, tfc_str packed, int compression, char **out, size_t *out_size) {
  tfc_status s = NULL;
  z_stream z = {.next_in = (Bytef *)(uintptr_t)packed.data, .avail_in = (uInt)packed.size};
  char *inflated = NULL;
  size_t capacity = 0, size = 0;
  int code = Z_OK;
  if (packed.size > UINT32_MAX || inflateInit2(&z, compression == TFC_RECORDS_GZIP ? 31 : 15) != Z_OK)
    return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "%s: too large to be inflated", name);
  while (code == Z_OK) {
    if (size == capacity) {
      capacity = capacity ? 2 * capacity : 4 * packed.size + 4096;
      char *grown = realloc(inflated, capacity);
      if (!grown) TFC_TRY(s, tfc_status_no_memory_for("reading %s", name));
      inflated = grown;
    }
    z.next_out = (Bytef *)inflated + size;
    z.avail_out = capacity - size > UINT32_MAX ? UINT32_MAX : (uInt)(capacity - size);
    uInt room = z.avail_out;
    code = inflate(&z, Z_NO_FLUSH);
    size += room - z.avail_out;
    // a file may have several compressed streams, one after another
    if (code == Z_STREAM_END && z.avail_in > 0) code = inflateReset(&z);
  }
  if (code != Z_STREAM_END && !(code == Z_BUF_ERROR && packed.size == 0))
    TFC_FAIL(s, TFC_DATA_LOSS, "%s: it is damaged, or not compressed so", name);
  *out = inflated, inflated = NULL;
  *out_size = size;
out:
  free(inflated);
  inflateEnd(&z);
  return s;
}

// Finds the next line, as TensorFlow does: without the newline at its end, and without a carriage return before that.
// The last line may have no newline; then it is a line only if it is not empty.
static bool next_line(struct tfc_records *r, tfc_str *out) {
  const char *begin = r->data + r->at;
  size_t left = r->size - r->at;
  const char *end = left ? memchr(begin, '\n', left) : NULL;
  size_t size = end ? (size_t)(end - begin) : left;
  r->at += size + (end != NULL);
  if (size && begin[size - 1] == '\r') size--;
  *out = (tfc_str){begin, size};
  return end || size > 0;
}

tfc_status tfc_records_open(const struct tfc_records_format *f, tfc_str name, struct tfc_records *out) {
  tfc_status s = NULL;
  struct tfc_records r = {.name = tfc_str_dup(name)};
  tfc_str line;
  if (!r.name) TFC_TRY(s, tfc_status_no_memory(NULL));
  if (f->kind != TFC_RECORDS_NAME) {
    TFC_TRY(s, tfc_file_map(r.name, &r.file));
    r.data = (const char *)r.file.data;
    r.size = r.file.size;
    if (f->compression != TFC_RECORDS_PLAIN) {
      TFC_TRY(s, tfc_records_inflate(r.name, (tfc_str){r.data, r.size}, f->compression, &r.inflated, &r.size));
      r.data = r.inflated;
    }
  }
  for (; f->kind == TFC_RECORDS_LINES && r.number < f->skip; r.number++)
    if (!next_line(&r, &line)) break;
  *out = r, r = (struct tfc_records){0};
out:
  tfc_records_close(&r);
  return s;
}

void tfc_records_close(struct tfc_records *r) {
  tfc_file_unmap(&r->file);
  free(r->inflated);
  free(r->name);
  *r = (struct tfc_records){0};
}

static uint32_t word(const char *p) {
  const uint8_t *b = (const uint8_t *)p;
  return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}
static tfc_status next_tf(struct tfc_records *r, tfc_str *value, bool *found) {
  const char *p = r->data + r->at;
  size_t left = r->size - r->at;
  if (left == 0) return NULL;
  if (left < 12) return tfc_status_make(TFC_DATA_LOSS, "%s: truncated record at %zu", r->name, r->at);
  uint64_t length = (uint64_t)word(p) | (uint64_t)word(p + 4) << 32;
  if (tfc_crc32c_mask(tfc_crc32c(0, p, 8)) != word(p + 8))
    return tfc_status_make(TFC_DATA_LOSS, "%s: corrupted record at %zu", r->name, r->at);
  if (length > left - 12 || left - 12 - length < 4)
    return tfc_status_make(TFC_DATA_LOSS, "%s: truncated record at %zu", r->name, r->at);
  if (tfc_crc32c_mask(tfc_crc32c(0, p + 12, length)) != word(p + 12 + length))
    return tfc_status_make(TFC_DATA_LOSS, "%s: corrupted record at %zu", r->name, r->at);
  *value = (tfc_str){p + 12, length};
  *found = true;
  r->at += 16 + length;
  return NULL;
}

static bool next_fixed(const struct tfc_records_format *f, struct tfc_records *r, tfc_str *value) {
  uint64_t step = (uint64_t)(f->hop ? f->hop : f->record), most = r->size;
  // Opening checked that each is below 2^62.
  uint64_t overhead = (uint64_t)f->header + (uint64_t)f->footer + (uint64_t)f->record;
  if (overhead > most || (uint64_t)r->number > (most - overhead) / step) return false;
  *value = (tfc_str){r->data + (uint64_t)f->header + (uint64_t)r->number * step, (size_t)f->record};
  return true;
}

tfc_status tfc_records_next(const struct tfc_records_format *f, struct tfc_records *r, struct tfc_text *key,
                            tfc_str *value, bool *found) {
  size_t at = r->at;
  *found = false;
  key->size = 0;
  switch (f->kind) {
  case TFC_RECORDS_LINES:
    *found = next_line(r, value);
    tfc_text_printf(key, "%s:%lld", r->name, (long long)++r->number);
    break;
  case TFC_RECORDS_FIXED:
    *found = next_fixed(f, r, value);
    tfc_text_printf(key, "%s:%lld", r->name, (long long)r->number++);
    break;
  case TFC_RECORDS_TF:
    TFC_RETURN_IF_ERROR(next_tf(r, value, found));
    tfc_text_printf(key, "%s:%zu", r->name, at);
    break;
  case TFC_RECORDS_FILE:
  case TFC_RECORDS_NAME:
    *found = !r->ended;
    *value = f->kind == TFC_RECORDS_FILE ? (tfc_str){r->data, r->size} : tfc_str_from(r->name);
    tfc_text_printf(key, "%s", r->name);
    r->ended = true;
  }
  r->ended |= !*found;
  return key->failed ? tfc_status_no_memory(NULL) : NULL;
}
