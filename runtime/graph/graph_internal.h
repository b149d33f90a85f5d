// Functions that make graphs, only for the builder and the importers.
//
// The caller allocates a graph, fills nodes (name, op, device, attributes, number of inputs) and the edge array, and
// calls tfc_graph_resolve_nodes (names, op definitions, outputs), tfc_graph_resolve_edges (if the inputs are texts),
// and tfc_graph_finish (types, consumers, cycles). After that the graph is immutable.
#ifndef TFC_RUNTIME_GRAPH_GRAPH_INTERNAL_H
#define TFC_RUNTIME_GRAPH_GRAPH_INTERNAL_H

#include "runtime/base/file.h"
#include "runtime/graph/op_def.h"

// The file that a graph was loaded from, kept for export. Text files are turned into bytes when they are read.
struct tfc_source {
  struct tfc_file file;
  char *owned;         // malloc'd bytes, NULL when they are the file's
  char *directory;     // directory of a SavedModel, otherwise NULL
  tfc_str saved_model; // data == NULL: the file has no such message
  tfc_str meta_graph;
  tfc_str graph_def;
};
void tfc_source_release(struct tfc_source *source); // NULL is fine

TFC_MUST_USE tfc_status tfc_graph_new(struct tfc_graph **out); // one reference, empty
// Makes an empty body for a function of `owner`'s library. The body finds functions in that library, and exists as long
// as `owner`.
TFC_MUST_USE tfc_status tfc_graph_new_body(struct tfc_graph *owner, struct tfc_graph **out);
void tfc_graph_free_body(struct tfc_graph *body); // for a body that could not be finished

// Frees the memory together with the graph. If there is no memory to note that, frees it at once and returns false.
// NULL is fine.
bool tfc_graph_own(struct tfc_graph *g, void *memory);

TFC_MUST_USE tfc_status tfc_graph_resolve_nodes(struct tfc_graph *g);
// `texts[i]` is the text of edge i, as "name:1" or "^name".
TFC_MUST_USE tfc_status tfc_graph_resolve_edges(struct tfc_graph *g, const tfc_str *texts);
TFC_MUST_USE tfc_status tfc_graph_finish(struct tfc_graph *g);

// --- Signatures applied to a node ----------------------------------------------------------------------------------
// The attributes of a node that is not yet in a finished graph.
struct tfc_attr_view {
  const struct tfc_attr *attrs;
  uint32_t count;
  const struct tfc_op_signature *signature; // for defaults; may be NULL
};
const struct tfc_attr *tfc_attr_find(const struct tfc_attr_view *view, tfc_str name);
// Computes the number of tensors in one argument. INVALID_ARGUMENT: the number is missing, negative or far too large.
TFC_MUST_USE tfc_status tfc_arg_count(const struct tfc_op_arg *arg, const struct tfc_attr_view *attrs, uint32_t *out);
// Finds the type of tensor `index` of an argument: a reference type if the argument is a reference; NONE if the type
// depends on an attribute that a caller of the function gives.
TFC_MUST_USE tfc_status tfc_arg_type(const struct tfc_op_arg *arg, const struct tfc_attr_view *attrs, uint32_t index,
                                     tfc_dtype *out);
// Whether a tensor of this type may feed an input of that type. (A reference may feed a plain input; NONE matches every
// type.)
static inline bool tfc_dtype_feeds(tfc_dtype from, tfc_dtype to) {
  if (from == TFC_DTYPE_NONE || to == TFC_DTYPE_NONE || from == to) return true;
  return tfc_dtype_is_ref(from) && !tfc_dtype_is_ref(to) && tfc_dtype_base(from) == to;
}

enum { TFC_MAX_NODE_OUTPUTS = 1 << 16 };

#endif
