// Writes graphs, whole or in parts.
#ifndef TFC_RUNTIME_GRAPH_EXPORT_H
#define TFC_RUNTIME_GRAPH_EXPORT_H

#include "runtime/graph/import.h"

// Called for every node in the file, functions included, with the key "name" or "function/NAME:node"; returns the new
// device string, or a view with data == NULL to keep the old one.
typedef tfc_str (*tfc_device_fn)(void *arg, tfc_str key, tfc_str device);
// Writes `g` as it was loaded, with fields that tfc does not know, and with devices replaced. SAVEDMODEL: `path` is a
// new directory, which also gets the variables and assets.
TFC_MUST_USE tfc_status tfc_graph_save(const struct tfc_graph *g, tfc_graph_format format, tfc_device_fn device,
                                       void *arg, const char *path);

// Gives nodes other device strings (device [node_count], copied). Call it only before the graph is passed on, because
// other code relies on graphs that do not change. RESOURCE_EXHAUSTED: out of memory.
TFC_MUST_USE tfc_status tfc_graph_set_devices(struct tfc_graph *g, const tfc_str *device);

// These functions write a GraphDef that has some nodes of `g`, with other inputs ("name:1", "name", "^name"), and new
// nodes. With them a graph is cut into parts. Append the nodes to `out`, and once the library (functions, versions);
// then `out` is a complete GraphDef. Out of memory: out->failed is set.
struct tfc_new_node {
  const char *op;
  tfc_str name, device;
  const tfc_str *inputs;
  uint32_t input_count;
  const struct tfc_attr *attrs;
  uint32_t attr_count;
};
void tfc_graph_put_node(const struct tfc_graph *g, uint32_t node, const tfc_str *inputs, uint32_t count,
                        struct tfc_text *out);
void tfc_graph_put_new_node(const struct tfc_new_node *n, struct tfc_text *out);
void tfc_graph_put_library(const struct tfc_graph *g, struct tfc_text *out);

#endif
