// The Graph: nodes, data and control edges, attributes, and the library of functions, as TensorFlow's GraphDef has
// them.
//
// A graph is immutable once finalized; a pass returns a new one. Nodes and edges are flat arrays indexed by 32-bit ids.
// Everything in a graph, also the mapped file, exists until the last tfc_graph_release; views into it are valid so
// long. Any number of threads may read it.
//
//   struct tfc_graph *g = NULL;
//   TFC_TRY(s, tfc_graph_load("nmt.pb", NULL, &g));
//   for (uint32_t i = 0; i < g->node_count; i++) printf("%.*s\n", TFC_STR_ARG(g->nodes[i].name));
//   tfc_graph_release(g);
#ifndef TFC_RUNTIME_GRAPH_GRAPH_H
#define TFC_RUNTIME_GRAPH_GRAPH_H

#include "runtime/base/arena.h"
#include "runtime/base/map.h"
#include "runtime/base/none.h"
#include "runtime/graph/tensor.h"

// One output of one node; index TFC_CONTROL is the node's control output.
enum { TFC_CONTROL = -1 };
struct tfc_output {
  uint32_t node;
  int32_t index;
};
#define TFC_NO_OUTPUT ((struct tfc_output){TFC_NONE, 0})
static inline bool tfc_output_valid(struct tfc_output o) {
  return o.node != TFC_NONE;
}

// Attribute values, like TensorFlow's AttrValue. Lists are arrays in the graph's arena.
typedef enum tfc_attr_kind {
  TFC_ATTR_NONE,
  TFC_ATTR_INT,
  TFC_ATTR_FLOAT,
  TFC_ATTR_BOOL,
  TFC_ATTR_STRING,
  TFC_ATTR_TYPE,
  TFC_ATTR_SHAPE,
  TFC_ATTR_TENSOR,
  TFC_ATTR_FUNC,
  TFC_ATTR_PLACEHOLDER, // inside function bodies: the name of an attribute of the function
  TFC_ATTR_LIST_INT,
  TFC_ATTR_LIST_FLOAT,
  TFC_ATTR_LIST_BOOL,
  TFC_ATTR_LIST_STRING,
  TFC_ATTR_LIST_TYPE,
  TFC_ATTR_LIST_SHAPE,
  TFC_ATTR_LIST_TENSOR,
  TFC_ATTR_LIST_FUNC,
} tfc_attr_kind;

struct tfc_attr;
struct tfc_func_attr { // NameAttrList
  tfc_str name;
  const struct tfc_attr *attrs;
  uint32_t attr_count;
};
struct tfc_attr {
  tfc_str name;
  tfc_attr_kind kind;
  uint32_t count; // items of a list
  union {
    int64_t i;
    double f;
    bool b;
    tfc_str s; // STRING, PLACEHOLDER
    tfc_dtype type;
    const struct tfc_shape *shape;
    const struct tfc_tensor *tensor; // host memory owned by the graph
    const struct tfc_func_attr *func;
    const int64_t *ints;
    const double *floats;
    const bool *bools;
    const tfc_str *strings;
    const tfc_dtype *types;
    const struct tfc_shape *shapes;
    const struct tfc_tensor *tensors;
    const struct tfc_func_attr *funcs;
  };
};

struct tfc_op_def;
struct tfc_node {
  tfc_str name, op;
  tfc_str device;               // as the file gives it; "": none
  const struct tfc_op_def *def; // NULL: an op that tfc does not know, or a function call by name
  uint32_t function;            // if `op` is the name of a function: its index in `functions`; otherwise TFC_NONE
  uint32_t input_begin;         // into graph->inputs: data inputs first, then control inputs
  uint32_t input_count;         // data inputs
  uint32_t control_count;       // control inputs
  uint32_t attr_begin, attr_count;
  uint32_t output_begin, output_count; // places in graph->output_dtypes; the outputs of a node are numbered from
                                       // output_begin
  tfc_str raw;                         // the NodeDef's bytes in the file ("" for nodes made by a builder)
};

struct tfc_graph;
struct tfc_source;
struct tfc_function { // FunctionDef
  tfc_str name;
  const struct tfc_graph *body; // parameters are _Arg nodes (attr index), results _Retval nodes
  const uint32_t *args, *rets;  // node ids in the body, in the order of the signature
  const tfc_str *arg_names, *ret_names;
  const tfc_dtype *arg_types, *ret_types; // NONE: an attribute gives the type; the next line has the attribute's name
  const tfc_str *arg_type_attrs, *ret_type_attrs;
  uint32_t arg_count, ret_count;
  const uint32_t *control_rets; // nodes of the body that a call must run
  uint32_t control_ret_count;
  const struct tfc_attr *attrs; // of the FunctionDef
  uint32_t attr_count;
  tfc_str gradient; // name of its gradient function; "": it has none
  bool stateful;
  tfc_str problem; // why there is no body (body == NULL); "": there is a body
};

struct tfc_collection { // of a MetaGraphDef; only lists of node names, bytes or ints are kept
  tfc_str name;
  const tfc_str *values;
  uint32_t count;
};
struct tfc_signature { // of a SavedModel
  tfc_str name;
  const tfc_str *input_keys, *input_tensors, *output_keys, *output_tensors;
  uint32_t input_count, output_count;
};

struct tfc_asset { // of a SavedModel: a file whose path is fed to `tensor` when it is loaded
  tfc_str tensor, path;
};

struct tfc_graph {
  struct tfc_node *nodes;
  uint32_t node_count;
  struct tfc_output *inputs; // edges, by consumer
  uint32_t edge_count;
  struct tfc_attr *attrs;
  tfc_dtype *output_dtypes; // a reference type if the op's signature says so
  uint32_t output_total;

  // The consumers of all nodes in one array (the CSR form): those of node n are consumers[consumer_begin[n] …
  // consumer_begin[n+1]).
  uint32_t *consumer_begin;
  struct tfc_consumer {
    uint32_t node;
    int32_t input;  // index among the consumer's data inputs, or TFC_CONTROL
    int32_t output; // which output of the producer, or TFC_CONTROL
  } * consumers;

  struct tfc_function *functions;
  uint32_t function_count;
  struct tfc_collection *collections;
  uint32_t collection_count;
  struct tfc_signature *signatures;
  uint32_t signature_count;
  int32_t producer_version;
  bool has_frames; // Enter/NextIteration somewhere
  // If functions were lowered (tfc_lower_functions), the first file_nodes nodes are those of the file, and each other
  // node comes from the call caller[id]. If not, caller is NULL and all nodes are from the file. See
  // tfc_graph_file_nodes.
  uint32_t file_nodes;
  const uint32_t *caller;
  tfc_str path;             // path of the file that the graph was read from; "": it was not read from a file
  tfc_str variables_prefix; // SavedModel: path prefix of its checkpoint, "" otherwise
  // Names of the saver's nodes in a MetaGraph or SavedModel; "": it has no saver. To restore a checkpoint, feed its
  // prefix to saver_filename and run saver_restore; to save one, fetch saver_save.
  tfc_str saver_filename, saver_restore, saver_save;
  const struct tfc_asset *assets;
  uint32_t asset_count;

  // private
  struct tfc_strmap by_name, functions_by_name;
  struct tfc_arena arena; // tfc_graph_own_attributes copies only the members before this one
  _Atomic int32_t references;
  struct tfc_source *source; // the mapped file, and what else the export needs
  void **heap;               // memory in addition to the arena
  size_t heap_count;
  const struct tfc_graph *parent;  // retained: views point into it
  const struct tfc_graph *library; // the graph whose functions this graph uses; NULL: it uses its own
  const struct tfc_graph *owner;   // of a function's body: the graph that is freed with it, else NULL
};

void tfc_graph_retain(const struct tfc_graph *g);
void tfc_graph_release(const struct tfc_graph *g); // NULL is fine

uint32_t tfc_graph_find(const struct tfc_graph *g, tfc_str name); // TFC_NONE: the graph has no such node
// Finds an output by its name: "name:1", or "name" for output 0. INVALID_ARGUMENT says what is wrong: which node has a
// similar name if there is no such node, and what to do if the name is an operation's ("^name").
TFC_MUST_USE tfc_status tfc_graph_parse_output(const struct tfc_graph *g, tfc_str text, struct tfc_output *out);
// Finds a node by its own name or by the name of an output, even if the node has no outputs: "train_op", "^train_op",
// "train_op:0".
TFC_MUST_USE tfc_status tfc_graph_parse_node(const struct tfc_graph *g, tfc_str text, uint32_t *out);
// A copy whose nodes' attributes the caller may change (those of node n are copy->attrs[n.attr_begin …]). Everything
// else is shared with `g`. The copy is in the arena: it is neither retained nor released, and `g` has to exist longer.
TFC_MUST_USE tfc_status tfc_graph_own_attributes(const struct tfc_graph *g, struct tfc_arena *arena,
                                                 struct tfc_graph **out);
// Returns NULL if the graph has no such function.
const struct tfc_function *tfc_graph_function(const struct tfc_graph *g, tfc_str name);

static inline uint32_t tfc_graph_file_nodes(const struct tfc_graph *g) {
  return g->caller ? g->file_nodes : g->node_count;
}
static inline const struct tfc_output *tfc_node_inputs(const struct tfc_graph *g, const struct tfc_node *n) {
  return g->inputs + n->input_begin; // control inputs follow at input_count
}
static inline tfc_dtype tfc_output_dtype(const struct tfc_graph *g, struct tfc_output o) {
  return o.index < 0 ? TFC_DTYPE_NONE : g->output_dtypes[g->nodes[o.node].output_begin + (uint32_t)o.index];
}

// Attributes. If neither the node nor the op's definition gives a value, the first function returns NULL and the others
// the default that they were given. Kernels read attributes when they are prepared, not in every step.
const struct tfc_attr *tfc_node_attr(const struct tfc_graph *g, const struct tfc_node *n, const char *name);
int64_t tfc_node_attr_int(const struct tfc_graph *g, const struct tfc_node *n, const char *name, int64_t otherwise);
double tfc_node_attr_float(const struct tfc_graph *g, const struct tfc_node *n, const char *name, double otherwise);
bool tfc_node_attr_bool(const struct tfc_graph *g, const struct tfc_node *n, const char *name, bool otherwise);
tfc_dtype tfc_node_attr_type(const struct tfc_graph *g, const struct tfc_node *n, const char *name,
                             tfc_dtype otherwise);
tfc_str tfc_node_attr_string(const struct tfc_graph *g, const struct tfc_node *n, const char *name,
                             const char *otherwise);
// Orders all nodes so that each comes after its data and control inputs (edges out of NextIteration do not count).
// `out_order` holds node_count ids. INVALID_ARGUMENT names the nodes of a cycle.
TFC_MUST_USE tfc_status tfc_graph_topological(const struct tfc_graph *g, uint32_t *out_order);

#endif
