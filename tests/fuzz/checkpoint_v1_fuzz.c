// The input is a checkpoint of the first format; its tensors are called w, b and s. The target reads all of each
// tensor, and a part of it. An input that begins with 'E' holds only the entries of such a file: each has two lengths
// of two bytes, then a key and a value. The target writes them as a table, so that every checksum is right and the
// contents are read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/io/checkpoint_v1.h"
#include "runtime/io/table.h"

enum { MOST = 64 };

static int by_key(const void *a, const void *b) {
  return tfc_str_compare(((const struct tfc_table_entry *)a)->key, ((const struct tfc_table_entry *)b)->key);
}

// Writes the entries as a table. False: the keys are not unique.
static bool table_of(const uint8_t *data, size_t size, struct tfc_text *out) {
  struct tfc_table_entry entries[MOST];
  size_t count = 0;
  while (size >= 4 && count < MOST) {
    size_t key = data[0] | (size_t)data[1] << 8, value = data[2] | (size_t)data[3] << 8;
    data += 4, size -= 4;
    if (key > size) key = size;
    if (value > size - key) value = size - key;
    entries[count++] = (struct tfc_table_entry){{(const char *)data, key}, {(const char *)data + key, value}};
    data += key + value, size -= key + value;
  }
  qsort(entries, count, sizeof *entries, by_key);
  for (size_t i = 1; i < count; i++)
    if (by_key(&entries[i - 1], &entries[i]) == 0) return false;
  tfc_status s = tfc_table_write(entries, count, out);
  if (s) abort();
  return true;
}

static void read_all(const char *path) {
  static const char *const names[] = {"w", "b", "s"};
  struct tfc_checkpoint_v1 *c = NULL;
  tfc_status s = tfc_checkpoint_v1_open(path, &c);
  for (size_t i = 0; !s && i < sizeof names / sizeof *names; i++) {
    tfc_dtype dtype = TFC_DTYPE_NONE;
    struct tfc_shape shape = TFC_SHAPE_UNKNOWN;
    tfc_status found = tfc_checkpoint_v1_find(c, tfc_str_from(names[i]), &dtype, &shape);
    int64_t starts[TFC_MAX_RANK] = {0}, lengths[TFC_MAX_RANK] = {0};
    for (int d = 0; !found && d < shape.rank; d++) { // a slice without the first row and column
      starts[d] = shape.dims[d] > 1;
      lengths[d] = shape.dims[d] - starts[d];
    }
    for (int part = 0; !found && part < 2; part++) {
      struct tfc_tensor t = {0};
      tfc_status_free(
          tfc_checkpoint_v1_read(c, tfc_str_from(names[i]), part ? starts : NULL, part ? lengths : NULL, &t));
      tfc_tensor_release(&t);
    }
    tfc_status_free(found);
  }
  tfc_checkpoint_v1_close(c);
  tfc_status_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static char path[64];
  struct tfc_text table = {0};
  if (size && data[0] == 'E') {
    if (!table_of(data + 1, size - 1, &table)) return 0;
    data = (const uint8_t *)table.data, size = table.size;
  }
  if (!path[0]) // files in memory, where the system has them, take less time than the code under test
    snprintf(path, sizeof path, "%s/tfc_checkpoint_v1_fuzz_%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (int)getpid());
  FILE *f = fopen(path, "wb");
  if (!f) abort();
  if (size) fwrite(data, 1, size, f);
  fclose(f);
  read_all(path);
  unlink(path);
  tfc_text_deinit(&table);
  return 0;
}
