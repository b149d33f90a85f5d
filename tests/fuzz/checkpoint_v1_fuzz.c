// The input is a checkpoint of the first format; its tensors are called w, b and s. Each is read whole and in part.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/io/checkpoint_v1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const names[] = {"w", "b", "s"};
  static char path[64];
  struct tfc_checkpoint_v1 *c = NULL;
  if (!path[0]) snprintf(path, sizeof path, "/tmp/tfc_checkpoint_v1_fuzz_%d", (int)getpid());
  FILE *f = fopen(path, "wb");
  if (!f) abort();
  if (size) fwrite(data, 1, size, f);
  fclose(f);
  tfc_status s = tfc_checkpoint_v1_open(path, &c);
  for (size_t i = 0; !s && i < sizeof names / sizeof *names; i++) {
    tfc_dtype dtype = TFC_DTYPE_NONE;
    struct tfc_shape shape = TFC_SHAPE_UNKNOWN;
    tfc_status found = tfc_checkpoint_v1_find(c, tfc_str_from(names[i]), &dtype, &shape);
    int64_t starts[TFC_MAX_RANK] = {0}, lengths[TFC_MAX_RANK] = {0};
    for (int d = 0; !found && d < shape.rank; d++) { // what lies behind the first row and column
      starts[d] = shape.dims[d] > 1;
      lengths[d] = shape.dims[d] - starts[d];
    }
    for (int part = 0; !found && part < 2; part++) {
      struct tfc_tensor t = {0};
      tfc_status_free(tfc_checkpoint_v1_read(c, tfc_str_from(names[i]), part ? starts : NULL, part ? lengths : NULL, &t));
      tfc_tensor_release(&t);
    }
    tfc_status_free(found);
  }
  tfc_checkpoint_v1_close(c);
  tfc_status_free(s);
  unlink(path);
  return 0;
}
