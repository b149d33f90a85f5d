// Functions that the parts of the importer share.
#ifndef TFC_RUNTIME_GRAPH_IMPORT_INTERNAL_H
#define TFC_RUNTIME_GRAPH_IMPORT_INTERNAL_H

#include "runtime/base/array.h"
#include "runtime/graph/graph_internal.h"
#include "runtime/graph/import.h"
#include "runtime/graph/import_attr.h"

// Limits of the memory that tfc allocates for a file, beyond the size of the file. Tests and fuzz targets lower them.
struct tfc_import_limits {
  size_t expanded_bytes; // of all constants together that the file gives as one repeated value
  uint32_t depth;        // of attributes inside attributes
};
extern struct tfc_import_limits tfc_import_limits;

enum { TFC_KNOWN_ATTRS = 256 };
// Reads nodes one by one into growing arrays, then hands them to the graph.
struct tfc_node_reader {
  struct tfc_attr_reader attr_reader;
  struct tfc_known_attrs {
    tfc_str bytes;
    uint32_t begin, count;
  } known[TFC_KNOWN_ATTRS]; // the attributes read last, by op and size: nodes with equal attributes share them
  TFC_ARRAY(struct tfc_node) nodes;
  TFC_ARRAY(struct tfc_attr) attrs;
  TFC_ARRAY(tfc_str) inputs; // as text
};
TFC_MUST_USE tfc_status tfc_read_node(struct tfc_node_reader *r, tfc_str bytes); // one NodeDef
TFC_MUST_USE tfc_status tfc_node_reader_hand_over(struct tfc_node_reader *r, struct tfc_graph *g);
void tfc_node_reader_deinit(struct tfc_node_reader *r);

// Reads a whole GraphDef into an empty graph and finishes it. `bytes` must exist as long as the graph.
TFC_MUST_USE tfc_status tfc_read_graph_def(struct tfc_graph *g, tfc_str bytes);
// Reads a FunctionDefLibrary. Call it before the graph's own nodes are read, because these refer to the library.
TFC_MUST_USE tfc_status tfc_read_library(struct tfc_graph *g, const tfc_str *libraries, size_t count);
// Checks what TensorFlow requires besides types and edges: names of nodes, device strings, colocation classes.
TFC_MUST_USE tfc_status tfc_check_nodes(const struct tfc_graph *g);
// Whether a reader of our version may read a file with this VersionDef.
TFC_MUST_USE tfc_status tfc_read_versions(struct tfc_graph *g, tfc_str bytes);
// Reads what a MetaGraphDef has besides its GraphDef: collections, signatures, saver.
TFC_MUST_USE tfc_status tfc_read_meta(struct tfc_graph *g, tfc_str bytes);
// Reads which tensors of a SavedModel are fed with the paths of which files.
TFC_MUST_USE tfc_status tfc_read_assets(struct tfc_graph *g, tfc_str meta, const char *directory);

#endif
