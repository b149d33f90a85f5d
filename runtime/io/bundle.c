// Writes keys and indexes of checkpoints. Keys use TensorFlow's ordered codes (described in
// tensorflow/core/lib/strings/ordered_code.h).
#include "runtime/io/bundle.h"

#include <stdlib.h>

// the number of bytes, then the number, highest byte first, without leading zeros
static void put_number(struct tfc_text *out, uint64_t value) {
  char bytes[9];
  int n = 0;
  for (uint64_t v = value; v; v >>= 8) n++;
  bytes[0] = (char)n;
  for (int i = 0; i < n; i++) bytes[1 + i] = (char)(value >> (8 * (n - 1 - i)));
  tfc_text_add(out, (tfc_str){bytes, (size_t)n + 1});
}

static void put_string(struct tfc_text *out, tfc_str s) {
  for (size_t i = 0; i < s.size; i++) {
    tfc_text_add(out, (tfc_str){s.data + i, 1});
    if (s.data[i] == 0) tfc_text_add(out, (tfc_str){"\xff", 1});
    if (s.data[i] == '\xff') tfc_text_add(out, (tfc_str){"\0", 1});
  }
  tfc_text_add(out, (tfc_str){"\0\1", 2});
}

// Writes a number in the format of a bundle's keys. As in UTF-8, the number of leading one bits is the number of bytes;
// the other bits are the number in two's complement.
static void put_signed(struct tfc_text *out, int64_t value) {
  uint64_t x = value < 0 ? ~(uint64_t)value : (uint64_t)value;
  int bits = 0;
  while (bits < 64 && x >> bits) bits++;
  int n = bits / 7 + 1;
  unsigned char bytes[10];
  for (int i = 0; i < 10; i++) bytes[9 - i] = (unsigned char)(value >> (8 * (i < 8 ? i : 7)) >> (i < 8 ? 0 : 8));
  unsigned char *begin = bytes + 10 - n;
  uint16_t header = (uint16_t)(0xffffu << (16 - n));
  begin[0] ^= (unsigned char)(header >> 8);
  if (n > 1) begin[1] ^= (unsigned char)header;
  tfc_text_add(out, (tfc_str){(const char *)begin, (size_t)n});
}

bool tfc_slice_key(struct tfc_text *out, tfc_str name, int rank, const int64_t *starts, const int64_t *lengths) {
  out->size = 0;
  put_number(out, 0);
  put_string(out, name);
  put_number(out, (uint64_t)rank);
  for (int i = 0; i < rank; i++) {
    put_signed(out, starts[i]);
    put_signed(out, lengths[i]);
  }
  return !out->failed;
}

static int by_key(const void *a, const void *b) {
  return tfc_str_compare(((const struct tfc_table_entry *)a)->key, ((const struct tfc_table_entry *)b)->key);
}

tfc_status tfc_bundle_write_index(struct tfc_table_entry *entries, size_t count, uint32_t shards, const char *path) {
  tfc_status s = NULL;
  struct tfc_text header = {0}, version = {0}, table = {0};
  tfc_wire_put_int(&version, 1, 1); // the producer
  tfc_wire_put_int(&header, 1, shards);
  tfc_wire_put_bytes(&header, 3, tfc_text_view(&version));
  if (header.failed || version.failed) TFC_TRY(s, tfc_status_no_memory(NULL));
  entries[0] = (struct tfc_table_entry){TFC_STR(""), tfc_text_view(&header)};
  qsort(entries + 1, count, sizeof *entries, by_key);
  TFC_TRY(s, tfc_table_write(entries, count + 1, &table));
  s = tfc_file_write(path, tfc_text_view(&table));
out:
  tfc_text_deinit(&header);
  tfc_text_deinit(&version);
  tfc_text_deinit(&table);
  return s;
}
