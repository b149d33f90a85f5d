#include "placer/model/cost_graph.h"
#include "placer/model/cost_graph_json.h"

// A graph that can be read is written, read again and written: both texts must be equal.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct tfc_cost_graph *read = NULL, *again = NULL;
  struct tfc_text text = {0}, more = {0};
  tfc_status s = tfc_cost_graph_parse((tfc_str){(const char *)data, size}, "fuzz", &read);
  if (!s) {
    s = tfc_cost_graph_format(read, &text);
    if (!s) s = tfc_cost_graph_parse((tfc_str){text.data, text.size}, "again", &again);
    if (s) __builtin_trap();
    s = tfc_cost_graph_format(again, &more);
    if (s || text.size != more.size || memcmp(text.data, more.data, text.size) != 0) __builtin_trap();
  }
  tfc_text_deinit(&text);
  tfc_text_deinit(&more);
  tfc_cost_graph_free(read);
  tfc_cost_graph_free(again);
  tfc_status_free(s);
  return 0;
}
