// Makes a graph of a few operations of the op table from bytes. They choose the ops, attributes that the table allows,
// and inputs with shapes and values, unusual ones among them. It is used for fuzzing, and for tests of errors that
// fuzzing found.
#ifndef TFC_TESTS_COMMON_MADE_GRAPH_H
#define TFC_TESTS_COMMON_MADE_GRAPH_H

#include "runtime/graph/op_def.h"

// How try_graph runs a graph.
struct try_options {
  bool dynamic;     // run in ready order
  bool no_rewrites; // run without rewrites
  bool gradient;    // add the gradients of the last floating-point result
  bool one_by_one;  // runs a step for each node, instead of one step for all nodes
};

// Writes a GraphDef; all zeros or no bytes are fine too. Ops that touch files are never chosen. False: memory is out.
bool made_graph(const uint8_t *data, size_t size, struct tfc_text *out, struct try_options *out_options);

// Does what a program would do: imports the graph, infers shapes, lowers functions, and runs it twice (nodes whose
// names begin with "init" first). Returns the first failure, or NULL; a graph that is made of bytes mostly has one. A
// step may take one second and a device has 64 MiB; nothing is written to files.
TFC_MUST_USE tfc_status try_graph(tfc_str bytes, const char *path, const struct try_options *options);

#endif
