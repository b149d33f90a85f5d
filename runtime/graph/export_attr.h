// Writes what GraphDef and checkpoints are made of as messages: shapes, tensors, attributes, nodes.
#ifndef TFC_RUNTIME_GRAPH_EXPORT_ATTR_H
#define TFC_RUNTIME_GRAPH_EXPORT_ATTR_H

#include "runtime/graph/graph.h"
#include "runtime/graph/wire.h"

void tfc_wire_put_shape(struct tfc_text *out, uint32_t number, const struct tfc_shape *shape); // TensorShapeProto
void tfc_wire_put_tensor(struct tfc_text *out, uint32_t number, const struct tfc_tensor *t);   // TensorProto
// writes only the fields of the tensor
void tfc_wire_put_tensor_fields(struct tfc_text *out, const struct tfc_tensor *t);
void tfc_wire_put_attr(struct tfc_text *out, uint32_t number, const struct tfc_attr *a); // an entry of a map
void tfc_wire_put_node(struct tfc_text *out, const struct tfc_graph *g, const struct tfc_node *n, tfc_str device);

#endif
