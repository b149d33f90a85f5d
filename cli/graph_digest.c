#include "cli/graph_digest.h"

#include <stddef.h>

#include "profiler/graph_digest.h"

tfc_status cli_graph_digest(const char *graph, char out[65]) {
  out[0] = 0;
  tfc_status s = tfc_graph_digest(graph, out);
  if (tfc_status_code(s) == TFC_RESOURCE_EXHAUSTED) return s;
  tfc_status_free(s);
  return NULL;
}
