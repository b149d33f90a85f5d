#include "runtime/io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct tfc_tensor t = {0};
  tfc_status s = tfc_npy_parse((tfc_str){(const char *)data, size}, "fuzz", &t);
  if (!s) {
    struct tfc_text text = {0};
    s = tfc_npy_format(&t, &text);
    tfc_text_deinit(&text);
    tfc_tensor_release(&t);
  }
  tfc_status_free(s);
  return 0;
}
