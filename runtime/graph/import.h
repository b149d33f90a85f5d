// Reads graphs: GraphDef (.pb), text GraphDef (.pbtxt), MetaGraphDef (.meta) and SavedModel (a directory),
// recognised by their content. Nothing in a file is trusted: every length is checked, sizes and depth are limited, and
// an error names the file, the node and the field.
#ifndef TFC_RUNTIME_GRAPH_IMPORT_H
#define TFC_RUNTIME_GRAPH_IMPORT_H

#include "runtime/graph/graph.h"

typedef enum tfc_graph_format {
  TFC_FORMAT_GRAPHDEF,
  TFC_FORMAT_PBTXT,
  TFC_FORMAT_META,
  TFC_FORMAT_SAVEDMODEL,
} tfc_graph_format;

// NOT_FOUND and INVALID_ARGUMENT name the file, node and field. Binary files are mapped, and names, devices and raw
// attributes are views into the mapping. `out_format` is optional. A graph with ops that tfc does not know can be
// loaded: their node.def is NULL.
TFC_MUST_USE tfc_status tfc_graph_load(const char *path, tfc_graph_format *out_format, struct tfc_graph **out);
TFC_MUST_USE tfc_status tfc_graph_parse(tfc_str bytes, const char *path, tfc_graph_format *out_format,
                                        struct tfc_graph **out);
// Parses a single TensorProto. *out_tensor belongs to *out, which the caller releases; its type is the one in the
// message, whatever `type` is. INVALID_ARGUMENT: the message is no TensorProto.
TFC_MUST_USE tfc_status tfc_graph_parse_tensor(tfc_str message, tfc_dtype type, const char *path,
                                               struct tfc_graph **out,
                                               const struct tfc_tensor **out_tensor); // bytes are copied

#endif
