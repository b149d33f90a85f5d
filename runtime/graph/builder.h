// Builds a graph, or a new graph from an old one with nodes added. Only one thread may use a builder. Nodes get ids in
// the order in which they are added, and keep them in the finished graph; nodes of the base graph come first and keep
// theirs.
//
//   struct tfc_builder *b = NULL;
//   TFC_TRY(s, tfc_builder_create(NULL, &b));
//   struct tfc_output x = tfc_add_placeholder(b, "x", TFC_FLOAT, &TFC_SHAPE(2, 2));
//   struct tfc_output y = tfc_add(b, "MatMul", "y", (struct tfc_output[]){x, x}, 2, NULL, 0);
//   TFC_TRY(s, tfc_builder_finish(b, &graph)); // returns the first error of all calls above
#ifndef TFC_RUNTIME_GRAPH_BUILDER_H
#define TFC_RUNTIME_GRAPH_BUILDER_H

#include "runtime/graph/graph.h"

struct tfc_builder;

// `base` (optional, retained): its nodes come first, with their ids, and its function library is kept.
TFC_MUST_USE tfc_status tfc_builder_create(const struct tfc_graph *base, struct tfc_builder **out);
void tfc_builder_free(struct tfc_builder *b); // NULL is fine
// Checks the nodes (unique names, arity and types by op definition, no cycles except through NextIteration) and makes
// the graph. The builder is empty afterwards and still has to be freed.
TFC_MUST_USE tfc_status tfc_builder_finish(struct tfc_builder *b, struct tfc_graph **out);
// Makes a graph of the nodes so far; the builder does not change.
TFC_MUST_USE tfc_status tfc_builder_snapshot(const struct tfc_builder *b, struct tfc_graph **out);
const struct tfc_graph *tfc_builder_base(const struct tfc_builder *b); // NULL if there is none

// Adds a node; the short forms below call it. Inputs and attributes are copied. An empty name becomes "<op>", a name in
// use "<name>_1" and so on. Attributes that follow from the inputs (T, N, ...) may be left out. The builder keeps the
// first failure; every later call returns TFC_NONE.
struct tfc_node_spec {
  const char *op, *name;
  const struct tfc_output *inputs;
  uint32_t input_count;
  const uint32_t *controls; // node ids
  uint32_t control_count;
  const struct tfc_attr *attrs;
  uint32_t attr_count;
  tfc_str device;
  uint32_t colocate_with; // node id + 1, or 0 (also TFC_NONE) for none: adds its loc:@ class
  bool borrow;            // name, device and attribute values are not copied: they point into the base graph
};
uint32_t tfc_builder_add(struct tfc_builder *b, const struct tfc_node_spec *spec);
tfc_status tfc_builder_status(const struct tfc_builder *b);      // borrowed: the first failure, NULL if none
void tfc_builder_fail(struct tfc_builder *b, tfc_status status); // takes over the status

// New nodes without a device get this device; all new nodes get this scope as a prefix of their names ("a/b"). They
// stay in force until the next call; NULL: none.
void tfc_builder_set_device(struct tfc_builder *b, tfc_str device);
void tfc_builder_set_scope(struct tfc_builder *b, const char *prefix);

// These functions read the nodes that were added so far (ids below their number).
uint32_t tfc_builder_node_count(const struct tfc_builder *b);
const struct tfc_node *tfc_builder_node(const struct tfc_builder *b, uint32_t id); // valid until the next add
tfc_dtype tfc_builder_dtype(const struct tfc_builder *b, struct tfc_output o);
const struct tfc_attr *tfc_builder_attr(const struct tfc_builder *b, uint32_t id, const char *name);
struct tfc_output tfc_builder_input(const struct tfc_builder *b, uint32_t id, uint32_t input);
// For passes: changes one data input of a node (for example to close the back edge of a Merge); the next function
// appends a control input.
void tfc_builder_set_input(struct tfc_builder *b, uint32_t id, uint32_t input, struct tfc_output from);
void tfc_builder_add_control(struct tfc_builder *b, uint32_t id, uint32_t from);

// Makes node `id` another op with the same outputs (checked), name and device; its consumers stay. Used by passes.
void tfc_builder_replace(struct tfc_builder *b, uint32_t id, const struct tfc_node_spec *spec);
struct tfc_arena *tfc_builder_arena(struct tfc_builder *b); // exists as long as the finished graph

// Short forms of tfc_builder_add; they return output 0 of the new node.
struct tfc_output tfc_add(struct tfc_builder *b, const char *op, const char *name, const struct tfc_output *inputs,
                          uint32_t input_count, const struct tfc_attr *attrs, uint32_t attr_count);
struct tfc_output tfc_add1(struct tfc_builder *b, const char *op, struct tfc_output x);
struct tfc_output tfc_add2(struct tfc_builder *b, const char *op, struct tfc_output x, struct tfc_output y);
struct tfc_output tfc_add3(struct tfc_builder *b, const char *op, struct tfc_output x, struct tfc_output y,
                           struct tfc_output z);
struct tfc_output tfc_add_const(struct tfc_builder *b, const char *name, const struct tfc_tensor *value); // copied
struct tfc_output tfc_add_i32(struct tfc_builder *b, int32_t value);                                      // scalar
struct tfc_output tfc_add_i32_vector(struct tfc_builder *b, const int32_t *values, uint32_t count);
struct tfc_output tfc_add_scalar(struct tfc_builder *b, tfc_dtype dtype, double value); // any numeric type
struct tfc_output tfc_add_placeholder(struct tfc_builder *b, const char *name, tfc_dtype dtype,
                                      const struct tfc_shape *shape);

// Attribute values for specs; they are views, so what they point to must exist until the node is added.
static inline struct tfc_attr tfc_attr_int(const char *name, int64_t i) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_INT, .i = i};
}
static inline struct tfc_attr tfc_attr_float(const char *name, double f) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_FLOAT, .f = f};
}
static inline struct tfc_attr tfc_attr_bool(const char *name, bool b) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_BOOL, .b = b};
}
static inline struct tfc_attr tfc_attr_type(const char *name, tfc_dtype type) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_TYPE, .type = type};
}
static inline struct tfc_attr tfc_attr_string(const char *name, tfc_str s) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_STRING, .s = s};
}
static inline struct tfc_attr tfc_attr_shape(const char *name, const struct tfc_shape *shape) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_SHAPE, .shape = shape};
}
static inline struct tfc_attr tfc_attr_tensor(const char *name, const struct tfc_tensor *tensor) {
  return (struct tfc_attr){.name = tfc_str_from(name), .kind = TFC_ATTR_TENSOR, .tensor = tensor};
}

#endif
