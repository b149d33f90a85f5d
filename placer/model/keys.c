#include "placer/model/keys.h"

#include "runtime/base/map.h"

static bool is_key(const struct tfc_graph *g, tfc_str key) {
  if (!tfc_str_starts(key, "function/")) return false;
  tfc_str rest = tfc_str_sub(key, 9, key.size);
  size_t colon = tfc_str_rfind(rest, ':');
  const struct tfc_function *f = colon == SIZE_MAX ? NULL : tfc_graph_function(g, tfc_str_sub(rest, 0, colon));
  return f && tfc_graph_find(f->body, tfc_str_sub(rest, colon + 1, rest.size)) != TFC_NONE;
}

tfc_status tfc_placement_check_keys(const struct tfc_placement *p, const struct tfc_graph *g) {
  tfc_status s = NULL;
  struct tfc_strmap keys = {0};
  const uint32_t file_nodes = tfc_graph_file_nodes(g);
  for (uint32_t i = 0; i < p->node_count; i++) {
    const tfc_str name = p->nodes[i].name;
    const uint32_t node = tfc_graph_find(g, name);
    if ((node == TFC_NONE || node >= file_nodes) && !is_key(g, name))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT, "the placement's node '%.*s' is not in the graph; was it made for another one?",
               TFC_STR_ARG(name));
    if (!tfc_strmap_put(&keys, name, i, NULL)) TFC_TRY(s, tfc_status_no_memory(NULL));
  }
  // nodes without a key, which lowering added, get the device of their function call
  for (uint32_t i = 0; i < g->node_count; i++) {
    const tfc_str key = i < file_nodes ? g->nodes[i].name : tfc_node_attr_string(g, &g->nodes[i], "_tfc_key", "");
    if (key.size && !tfc_strmap_get(&keys, key))
      TFC_FAIL(s, TFC_INVALID_ARGUMENT,
               "the placement has no device for node '%.*s' (%.*s) of the graph; was it made for another one?",
               TFC_STR_ARG(key), TFC_STR_ARG(g->nodes[i].op));
  }
out:
  tfc_strmap_deinit(&keys);
  return s;
}
