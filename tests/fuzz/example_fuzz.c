// Parses messages with ParseExampleV2: sparse, dense (of a fixed and of any length) and ragged features of every type.
// The first byte says into how many messages the rest is cut.
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/import.h"
#include "tests/common/eval.h"

#define STRINGS(name, shape, values)                                                                                   \
  "node{name:'" name "' op:'Const' attr{key:'dtype' value{type:DT_STRING}} attr{key:'value' "                          \
  "value{tensor{dtype:DT_STRING tensor_shape{" shape "} " values "}}}}\n"
static const char parsing[] =
    "node{name:'messages' op:'Placeholder' attr{key:'dtype' value{type:DT_STRING}} "
    "attr{key:'shape' value{shape{dim{size:-1}}}}}\n" STRINGS("names", "dim{size:0}", "")
        STRINGS("sparse", "dim{size:3}", "string_val:'f' string_val:'i' string_val:'s'")
            STRINGS("dense", "dim{size:3}", "string_val:'d' string_val:'e' string_val:'g'") STRINGS(
                "ragged", "dim{size:2}",
                "string_val:'r' string_val:'t'") "node{name:'d' op:'Const' attr{key:'dtype' value{type:DT_INT64}} "
                                                 "attr{key:'value' value{tensor{dtype:DT_INT64 "
                                                 "tensor_shape{dim{size:2}} int64_val:7}}}}\n"
                                                 "node{name:'e' op:'Const' attr{key:'dtype' value{type:DT_FLOAT}} "
                                                 "attr{key:'value' value{tensor{dtype:DT_FLOAT "
                                                 "tensor_shape{dim{size:1}} float_val:0.5}}}}\n" STRINGS(
                                                     "g", "",
                                                     "string_val:'none'") "node{name:'parse' op:'ParseExampleV2' "
                                                                          "input:'messages' input:'names' "
                                                                          "input:'sparse' input:'dense' input:'ragged' "
                                                                          "input:'d' input:'e' input:'g' "
                                                                          "attr{key:'num_sparse' value{i:3}} "
                                                                          "attr{key:'Tdense' value{list{type:DT_INT64 "
                                                                          "type:DT_FLOAT type:DT_STRING}}} "
                                                                          "attr{key:'sparse_types' "
                                                                          "value{list{type:DT_FLOAT type:DT_INT64 "
                                                                          "type:DT_STRING}}} "
                                                                          "attr{key:'ragged_value_types' "
                                                                          "value{list{type:DT_INT64 type:DT_STRING}}} "
                                                                          "attr{key:'ragged_split_types' "
                                                                          "value{list{type:DT_INT32 type:DT_INT64}}} "
                                                                          "attr{key:'dense_shapes' "
                                                                          "value{list{shape{dim{size:2}} "
                                                                          "shape{dim{size:-1}} shape{}}}}}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct tfc_graph *graph;
  static struct eval constants; // the values of nodes that no input changes
  struct tfc_tensor messages = {0};
  const struct tfc_tensor *out;
  struct eval e = {0};
  if (size == 0) return 0;
  if (!graph) {
    if (tfc_graph_parse((tfc_str){parsing, sizeof parsing - 1}, "parsing", NULL, &graph)) abort();
    if (eval_create(graph, &constants)) abort();
    for (uint32_t i = 1; i + 1 < graph->node_count; i++)
      if (eval_output(&constants, (struct tfc_output){i, 0}, &out)) abort();
  }
  const uint32_t parse = graph->node_count - 1;
  size_t count = data[0] % 4, each = count ? (size - 1) / count : 0;
  tfc_status s = tfc_tensor_create(TFC_STRING, &TFC_SHAPE((int64_t)count), &messages);
  for (size_t i = 0; !s && i < count; i++)
    if (tfc_tensor_set_string(&messages, (int64_t)i, (tfc_str){(const char *)data + 1 + i * each, each})) abort();
  if (!s) s = eval_create(graph, &e);
  if (!s) {
    eval_feed(&e, 0, &messages);
    for (uint32_t i = 1; i < parse; i++) eval_feed(&e, i, &constants.values[graph->nodes[i].output_begin]);
    for (uint32_t i = 0; !s && i < graph->nodes[parse].output_count; i++)
      s = eval_output(&e, (struct tfc_output){parse, (int32_t)i}, &out);
  }
  eval_deinit(&e);
  tfc_tensor_release(&messages);
  tfc_status_free(s);
  return 0;
}
