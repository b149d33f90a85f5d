#include "runtime/graph/graph_internal.h"

void tfc_source_release(struct tfc_source *source) {
  (void)source;
}
