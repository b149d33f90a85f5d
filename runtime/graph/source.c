#include "runtime/graph/graph_internal.h"

#include <stdlib.h>

void tfc_source_release(struct tfc_source *source) {
  if (!source) return;
  tfc_file_unmap(&source->file);
  free(source->owned);
  free(source->directory);
  free(source);
}
