// Imports, shapes, lowers, differentiates and runs operations of the op table. With OP_RUN_SHOW set the graph is
// printed, as text that tests/ops/hostile takes.
#include <stdio.h>
#include <stdlib.h>

#include "runtime/graph/import_internal.h"
#include "runtime/graph/text_format.h"
#include "tests/common/made_graph.h"

// Sanitizers return NULL if memory is out, as malloc does. The fuzzer ends at 2 GiB, which tfc's own limits should
// prevent.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1:detect_stack_use_after_return=0";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct tfc_text graph = {0};
  struct try_options options;
  if (!made_graph(data, size, &graph, &options)) abort();
  if (getenv("OP_RUN_SHOW")) {
    struct tfc_text text = {0};
    tfc_status_free(tfc_wire_to_text(tfc_text_view(&graph), "GraphDef", &text));
    fprintf(stderr, "# dynamic %d, no_rewrites %d, gradient %d, one_by_one %d\n%.*s\n", options.dynamic,
            options.no_rewrites, options.gradient, options.one_by_one, (int)text.size, text.data);
    tfc_text_deinit(&text);
  }
  tfc_status_free(try_graph(tfc_text_view(&graph), "fuzz", &options));
  tfc_text_deinit(&graph);
  return 0;
}
