// Reads what GraphDef and checkpoints are made of as messages: shapes, tensors, attributes.
#ifndef TFC_RUNTIME_GRAPH_IMPORT_ATTR_H
#define TFC_RUNTIME_GRAPH_IMPORT_ATTR_H

#include "runtime/graph/graph.h"
#include "runtime/graph/wire.h"

// Reads attributes into `arena`; big zero constants go to the graph's heap.
struct tfc_attr_reader {
  struct tfc_graph *graph; // whose arena and heap are used
  size_t expanded;         // bytes of constants so far
  uint32_t depth;
  bool empty_list; // a list without items was read, whose kind the file does not say
};
// Reads the AttrValue in `bytes` into *out, except for out->name, which stays. Errors say what is wrong in the value.
TFC_MUST_USE tfc_status tfc_read_attr_value(struct tfc_attr_reader *r, tfc_str bytes, struct tfc_attr *out);
TFC_MUST_USE tfc_status tfc_read_shape(tfc_str bytes, struct tfc_shape *out);
// Reads an entry of a map of attributes: name and value.
TFC_MUST_USE tfc_status tfc_read_attr(struct tfc_attr_reader *r, tfc_str bytes, struct tfc_attr *out);
// Reads key and value of an entry in a map (fields 1 and 2).
TFC_MUST_USE tfc_status tfc_read_entry(tfc_str bytes, tfc_str *out_key, tfc_str *out_value);

#endif
