#include "placer/model/machine.h"
#include "placer/model/machine_yaml.h"

// A machine that can be read is written, read again and written: both texts must be equal.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct tfc_machine *read = NULL, *again = NULL;
  struct tfc_text text = {0}, more = {0};
  tfc_status s = tfc_machine_parse((tfc_str){(const char *)data, size}, "fuzz", &read);
  if (!s) {
    s = tfc_machine_format(read, &text);
    if (!s) s = tfc_machine_parse((tfc_str){text.data, text.size}, "again", &again);
    if (s) __builtin_trap();
    s = tfc_machine_format(again, &more);
    if (s || text.size != more.size || memcmp(text.data, more.data, text.size) != 0) __builtin_trap();
  }
  tfc_text_deinit(&text);
  tfc_text_deinit(&more);
  tfc_machine_free(read);
  tfc_machine_free(again);
  tfc_status_free(s);
  return 0;
}
