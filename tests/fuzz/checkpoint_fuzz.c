// The input is an index; its data file is 4 KiB of zeros.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/file.h"
#include "runtime/io/checkpoint.h"

static char prefix[64];

static void write_file(const char *suffix, const void *data, size_t size) {
  char path[128];
  snprintf(path, sizeof path, "%s%s", prefix, suffix);
  FILE *f = fopen(path, "wb");
  if (!f) abort();
  if (size) fwrite(data, 1, size, f);
  fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char zeros[4096];
  struct tfc_checkpoint *c = NULL;
  if (!prefix[0]) {
    // files in memory, where the system has them, take less time than the code under test
    snprintf(prefix, sizeof prefix, "%s/tfc_checkpoint_fuzz_%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
             (int)getpid());
    write_file(".data-00000-of-00001", zeros, sizeof zeros);
  }
  write_file(".index", data, size);
  tfc_status s = tfc_checkpoint_open(prefix, &c);
  size_t n = 0;
  const struct tfc_checkpoint_entry *entries = s ? NULL : tfc_checkpoint_entries(c, &n);
  for (size_t i = 0; i < n; i++) {
    struct tfc_tensor t = {0};
    tfc_status_free(tfc_checkpoint_read(c, entries[i].name, &t));
    tfc_tensor_release(&t);
  }
  tfc_checkpoint_close(c);
  tfc_status_free(s);
  return 0;
}
