#include "placer/model/placement.h"
#include "placer/model/placement_json.h"

// A placement that can be read is written, read again and written: both texts must be equal.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct tfc_placement *read = NULL, *again = NULL;
  struct tfc_text text = {0}, more = {0};
  tfc_status s = tfc_placement_parse((tfc_str){(const char *)data, size}, "fuzz", &read);
  if (!s) {
    s = tfc_placement_format(read, &text);
    if (!s) s = tfc_placement_parse((tfc_str){text.data, text.size}, "again", &again);
    if (s) __builtin_trap();
    s = tfc_placement_format(again, &more);
    if (s || text.size != more.size || memcmp(text.data, more.data, text.size) != 0) __builtin_trap();
  }
  tfc_text_deinit(&text);
  tfc_text_deinit(&more);
  tfc_placement_free(read);
  tfc_placement_free(again);
  tfc_status_free(s);
  return 0;
}
