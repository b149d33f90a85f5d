// Reads a single tensor: the importer reads it as the value of a graph's only node.
#include "runtime/graph/export_attr.h"
#include "runtime/graph/import.h"

tfc_status tfc_graph_parse_tensor(tfc_str message, tfc_dtype type, const char *path, struct tfc_graph **out,
                                  const struct tfc_tensor **out_tensor) {
  struct tfc_text value = {0}, pair = {0}, node = {0}, whole = {0};
  struct tfc_graph *g = NULL;
  tfc_status s = NULL;
  tfc_wire_put_bytes(&value, 8, message);
  tfc_wire_put_bytes(&pair, 1, TFC_STR("value"));
  tfc_wire_put_bytes(&pair, 2, tfc_text_view(&value));
  tfc_wire_put_bytes(&node, 1, TFC_STR("tensor"));
  tfc_wire_put_bytes(&node, 2, TFC_STR("Const"));
  tfc_wire_put_bytes(&node, 5, tfc_text_view(&pair));
  value.size = pair.size = 0;
  tfc_wire_put_int(&value, 6, (uint64_t)type);
  tfc_wire_put_bytes(&pair, 1, TFC_STR("dtype"));
  tfc_wire_put_bytes(&pair, 2, tfc_text_view(&value));
  tfc_wire_put_bytes(&node, 5, tfc_text_view(&pair));
  tfc_wire_put_bytes(&whole, 1, tfc_text_view(&node));
  if (value.failed || pair.failed || node.failed || whole.failed) TFC_TRY(s, tfc_status_no_memory(path));
  TFC_TRY(s, tfc_graph_parse(tfc_text_view(&whole), path, NULL, &g));
  const struct tfc_attr *attr = tfc_node_attr(g, &g->nodes[0], "value");
  if (!attr || attr->kind != TFC_ATTR_TENSOR) TFC_FAIL(s, TFC_INVALID_ARGUMENT, "%s is no tensor", path);
  *out_tensor = attr->tensor;
  *out = g, g = NULL;
out:
  tfc_graph_release(g);
  tfc_text_deinit(&value);
  tfc_text_deinit(&pair);
  tfc_text_deinit(&node);
  tfc_text_deinit(&whole);
  return s;
}
