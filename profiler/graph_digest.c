#include "profiler/graph_digest.h"

#include <stdlib.h>

#include "runtime/base/file.h"
#include "runtime/base/sha256.h"

tfc_status tfc_graph_digest(const char *graph, char out_hex[65]) {
  struct tfc_file file = {0};
  char *inside = NULL;
  tfc_status s = tfc_file_map_document(graph, &file);
  if (s) { // the path is a SavedModel's folder
    tfc_status_free(s);
    if (!(inside = tfc_format("%s/saved_model.pb", graph))) return tfc_status_no_memory("reading a graph");
    s = tfc_file_map_document(inside, &file);
  }
  if (!s) tfc_sha256((tfc_str){(const char *)file.data, file.size}, out_hex);
  tfc_file_unmap(&file);
  free(inside);
  return s;
}
