// Shared by the fuzz targets of graph files: does everything with a graph that a program would do.
#ifndef TFC_TESTS_FUZZ_FUZZ_GRAPH_H
#define TFC_TESTS_FUZZ_FUZZ_GRAPH_H

#include <stdlib.h>

#include "runtime/graph/import_internal.h"
#include "runtime/graph/text_format.h"
#include "runtime/pass/pass.h"

static inline void fuzz_graph(const char *bytes, size_t size, const char *path) {
  size_t ops;
  (void)tfc_op_list(&ops);
  if (!ops) abort(); // the target is linked without the table of ops (TFC_FUZZ_OPS in cmake/targets.cmake)
  struct tfc_graph *g = NULL, *lowered = NULL;
  struct tfc_shapes shapes = {0};
  tfc_import_limits.expanded_bytes = (size_t)16 << 20;
  tfc_status s = tfc_graph_parse((tfc_str){bytes, size}, path, NULL, &g);
  if (!s) s = tfc_infer_shapes(g, NULL, 0, &shapes);
  tfc_shapes_deinit(&shapes);
  tfc_status_free(s);
  s = g && g->node_count < 1000 ? tfc_lower_functions(g, &lowered, NULL) : NULL;
  tfc_status_free(s);
  tfc_graph_release(lowered);
  if (g) {
    struct tfc_text text = {0};
    tfc_status_free(tfc_wire_to_text(g->source->graph_def, "GraphDef", &text));
    tfc_text_deinit(&text);
  }
  tfc_graph_release(g);
}

#endif
