#include "runtime/io/table.h"

#include "runtime/base/array.h"
#include "runtime/graph/wire.h"
#include "runtime/io/crc32c.h"

enum { footer_size = 48, trailer_size = 5, restart_interval = 16, block_limit = 64 * 1024 };
static const uint64_t magic = 0xdb4775248b80fb57u;

static uint32_t get_u32(const char *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return v;
}

struct handle {
  uint64_t offset, size;
};

static bool read_handle(struct tfc_wire *w, struct handle *out) {
  return tfc_wire_varint(w, &out->offset) && tfc_wire_varint(w, &out->size);
}

static tfc_status bad(const char *what) {
  return tfc_status_make(TFC_INVALID_ARGUMENT, "%s", what);
}

// Unpacks Snappy: the length, then runs of bytes and copies of earlier bytes.
static tfc_status decompress(tfc_str in, struct tfc_arena *arena, tfc_str *out) {
  struct tfc_wire w = tfc_wire_of(in);
  uint64_t size;
  if (!tfc_wire_varint(&w, &size) || size > 64 * (uint64_t)in.size + 64) return bad("a compressed block is not whole");
  char *data = tfc_arena_alloc(arena, (size_t)size + 1);
  const unsigned char *at = (const unsigned char *)w.at, *end = (const unsigned char *)w.end;
  size_t n = 0;
  if (!data) return tfc_status_no_memory("a table");
  while (at < end) {
    unsigned tag = *at++;
    size_t length = (tag >> 2) + 1, back = 0, more;
    if ((tag & 3) == 0) {
      if (length > 60) { // the length is in the next length - 60 bytes
        more = length - 60;
        length = 0;
        if ((size_t)(end - at) < more) return bad("a compressed block is not whole");
        for (size_t i = 0; i < more; i++) length |= (size_t)at[i] << (8 * i);
        length++;
        at += more;
      }
      if (length > (size_t)(end - at) || length > size - n) return bad("a compressed block is not whole");
      memcpy(data + n, at, length);
      at += length;
      n += length;
      continue;
    }
    more = (tag & 3) == 3 ? 4 : tag & 3;
    if ((size_t)(end - at) < more) return bad("a compressed block is not whole");
    for (size_t i = 0; i < more; i++) back |= (size_t)at[i] << (8 * i);
    if ((tag & 3) == 1) {
      length = ((tag >> 2) & 7) + 4;
      back |= (size_t)(tag >> 5) << 8;
    }
    at += more;
    if (!back || back > n || length > size - n) return bad("a compressed block is not whole");
    for (size_t i = 0; i < length; i++, n++) data[n] = data[n - back]; // a copy may overlap itself
  }
  if (n != size) return bad("a compressed block is not whole");
  *out = (tfc_str){data, n};
  return NULL;
}

// Reads the block's entries, without its list of restarts.
static tfc_status read_block(tfc_str file, struct handle h, struct tfc_arena *arena, tfc_str *out) {
  if (h.size > file.size || h.offset > file.size - h.size || file.size - h.size - h.offset < trailer_size)
    return bad("a block lies outside of the file");
  tfc_str block = tfc_str_sub(file, h.offset, h.offset + h.size);
  const char *trailer = block.data + block.size;
  if (tfc_crc32c_mask(tfc_crc32c(0, block.data, block.size + 1)) != get_u32(trailer + 1))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the checksum of a block is wrong");
  if (trailer[0] == 1)
    TFC_RETURN_IF_ERROR(decompress(block, arena, &block));
  else if (trailer[0] != 0)
    return bad("a block is compressed in an unknown way");
  if (block.size < 4) return bad("a block is too short");
  uint32_t restarts = get_u32(block.data + block.size - 4);
  if (restarts > (block.size - 4) / 4) return bad("a block has more restarts than room");
  *out = tfc_str_sub(block, 0, block.size - 4 - 4 * (size_t)restarts);
  return NULL;
}

struct entries {
  struct tfc_table_entry *data;
  size_t count, capacity;
};

// A key may share its beginning with the key before it, so keys may need more memory than the file has bytes. `most`:
// the bytes that the arena may hold.
static tfc_status read_entries(tfc_str block, struct tfc_arena *arena, size_t most, struct entries *out) {
  struct tfc_wire w = tfc_wire_of(block);
  tfc_str last = TFC_STR("");
  while (w.at != w.end) {
    uint64_t shared, own, size;
    tfc_str suffix, value;
    if (!tfc_wire_varint(&w, &shared) || !tfc_wire_varint(&w, &own) || !tfc_wire_varint(&w, &size) ||
        !tfc_wire_take(&w, own, &suffix) || !tfc_wire_take(&w, size, &value))
      return bad(w.error);
    if (shared > last.size) return bad("a key shares more than there is");
    char *key = tfc_arena_alloc(arena, (size_t)(shared + own) + 1);
    if (!key) return tfc_status_no_memory("a table");
    memcpy(key, last.data, (size_t)shared);
    if (own) memcpy(key + shared, suffix.data, (size_t)own);
    last = (tfc_str){key, (size_t)(shared + own)};
    if (!tfc_array_push(out, (struct tfc_table_entry){last, value})) return tfc_status_no_memory("a table");
    if (arena->used > most) return bad("its keys are absurdly long");
  }
  return NULL;
}

tfc_status tfc_table_read(tfc_str bytes, struct tfc_arena *arena, struct tfc_table_entry **out, size_t *out_count) {
  tfc_status s = NULL;
  struct entries index = {0}, all = {0};
  struct handle h;
  // decompressed blocks may have 64 times as many bytes as the file, and so may keys
  const size_t most = arena->used + 128 * bytes.size + (1 << 20);
  size_t blocks = 0;
  tfc_str block;
  if (bytes.size < footer_size) return bad("too short for an index");
  struct tfc_wire footer = tfc_wire_of(tfc_str_sub(bytes, bytes.size - footer_size, bytes.size));
  uint64_t found;
  memcpy(&found, bytes.data + bytes.size - 8, 8);
  if (found != magic) return bad("not an index of a checkpoint");
  if (!read_handle(&footer, &h) || !read_handle(&footer, &h)) return bad(footer.error);
  TFC_TRY(s, read_block(bytes, h, arena, &block));
  TFC_TRY(s, read_entries(block, arena, most, &index));
  for (size_t i = 0; i < index.count; i++) {
    struct tfc_wire w = tfc_wire_of(index.data[i].value);
    if (!read_handle(&w, &h)) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s", w.error);
    TFC_TRY(s, read_block(bytes, h, arena, &block));
    blocks += (size_t)h.size + trailer_size;
    // else a short file that names one block many times would take a long time
    if (blocks > bytes.size) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "its blocks overlap");
    TFC_TRY(s, read_entries(block, arena, most, &all));
  }
  *out = tfc_arena_array(arena, all.count + 1, sizeof **out);
  if (!*out) TFC_TRY(s, tfc_status_no_memory("a table"));
  if (all.count) memcpy(*out, all.data, all.count * sizeof **out);
  *out_count = all.count;
out:
  tfc_array_free(&index);
  tfc_array_free(&all);
  return s;
}

// --- Writing -------------------------------------------------------------------------------------------------------
struct block {
  struct tfc_text bytes;
  TFC_ARRAY(uint32_t) restarts;
  tfc_str last;
  uint32_t entries;
};

static void put_u32(struct tfc_text *out, uint32_t v) {
  tfc_text_add(out, (tfc_str){(const char *)&v, 4});
}

static bool add_entry(struct block *b, tfc_str key, tfc_str value) {
  size_t shared = 0;
  if (b->entries % restart_interval == 0) {
    if (!tfc_array_push(&b->restarts, (uint32_t)b->bytes.size)) return false;
  } else {
    while (shared < key.size && shared < b->last.size && key.data[shared] == b->last.data[shared]) shared++;
  }
  tfc_wire_put_varint(&b->bytes, shared);
  tfc_wire_put_varint(&b->bytes, key.size - shared);
  tfc_wire_put_varint(&b->bytes, value.size);
  tfc_text_add(&b->bytes, tfc_str_sub(key, shared, key.size));
  tfc_text_add(&b->bytes, value);
  b->last = key;
  b->entries++;
  return true;
}

// Ends the block, appends it and its trailer to `out`, and begins a new block.
static struct handle end_block(struct block *b, struct tfc_text *out) {
  for (size_t i = 0; i < b->restarts.count; i++) put_u32(&b->bytes, b->restarts.data[i]);
  if (!b->restarts.count) put_u32(&b->bytes, 0);
  put_u32(&b->bytes, b->restarts.count ? (uint32_t)b->restarts.count : 1);
  struct handle h = {out->size, b->bytes.size};
  tfc_text_add(&b->bytes, (tfc_str){"\0", 1});
  out->failed |= b->bytes.failed;
  if (out->failed) return h;
  uint32_t crc = tfc_crc32c_mask(tfc_crc32c(0, b->bytes.data, b->bytes.size));
  tfc_text_add(out, tfc_text_view(&b->bytes));
  put_u32(out, crc);
  b->bytes.size = b->restarts.count = b->entries = 0;
  return h;
}

static void put_handle(struct tfc_text *out, struct handle h) {
  tfc_wire_put_varint(out, h.offset);
  tfc_wire_put_varint(out, h.size);
}

tfc_status tfc_table_write(const struct tfc_table_entry *entries, size_t count, struct tfc_text *out) {
  tfc_status s = NULL;
  struct block data = {0}, index = {0};
  struct tfc_text handle = {0};
  for (size_t i = 0; i < count; i++) {
    if (i && tfc_str_compare(entries[i - 1].key, entries[i].key) >= 0)
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "'%.*s' comes twice", TFC_STR_ARG(entries[i].key));
    if (!add_entry(&data, entries[i].key, entries[i].value)) TFC_TRY(s, tfc_status_no_memory(NULL));
    if (data.bytes.size < block_limit && i + 1 < count) continue;
    handle.size = 0;
    put_handle(&handle, end_block(&data, out));
    if (!add_entry(&index, entries[i].key, tfc_text_view(&handle))) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  struct handle meta = end_block(&data, out), root = end_block(&index, out); // the table has no meta blocks
  handle.size = 0;
  put_handle(&handle, meta);
  put_handle(&handle, root);
  while (handle.size < footer_size - 8) tfc_text_add(&handle, (tfc_str){"\0", 1});
  tfc_text_add(&handle, (tfc_str){(const char *)&magic, 8});
  tfc_text_add(out, tfc_text_view(&handle));
  if (out->failed || handle.failed) s = tfc_status_no_memory("writing a table");
out:
  tfc_text_deinit(&data.bytes);
  tfc_text_deinit(&index.bytes);
  tfc_array_free(&data.restarts);
  tfc_array_free(&index.restarts);
  tfc_text_deinit(&handle);
  return s;
}
