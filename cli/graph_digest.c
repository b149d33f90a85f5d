#include "cli/graph_digest.h"

#include <stdlib.h>

#include "runtime/base/file.h"
#include "runtime/base/sha256.h"

tfc_status cli_graph_digest(const char *graph, char out[65]) {
  tfc_status s = NULL;
  struct tfc_file file = {0};
  char *path = NULL;
  out[0] = 0;
  s = tfc_file_map_document(graph, &file);
  if (s) { // a SavedModel's directory
    tfc_status_free(s);
    if (!(path = tfc_format("%s/saved_model.pb", graph))) return tfc_status_no_memory("reading a graph");
    s = tfc_file_map_document(path, &file);
  }
  if (!s) tfc_sha256((tfc_str){(const char *)file.data, file.size}, out);
  tfc_status_free(s);
  free(path);
  tfc_file_unmap(&file);
  return NULL;
}
