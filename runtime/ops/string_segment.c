// UnsortedSegmentJoin: joins the strings of each segment in order.
#include <stdlib.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

// Inputs: inputs [ids' shape, inner...], ids, number of segments; output [segments, inner...].
static tfc_status segment_join(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0], *ids = ctx->inputs[1];
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  tfc_str separator = tfc_node_attr_string(ctx->graph, ctx->node, "separator", "");
  TFC_KERNEL_CHECK(ctx->inputs[2]->shape.rank == 0, "Number of segments should be a scalar.");
  int64_t segments = ops_scalar_int(ctx->inputs[2]), n = tfc_tensor_elements(ids), inner = 1;
  TFC_KERNEL_CHECK(segments > 0, "Number of segments must be positive");
  TFC_KERNEL_CHECK(ids->shape.rank > 0, "Segment_id cannot have rank 0");
  bool prefix = ids->shape.rank <= x->shape.rank;
  for (int d = 0; prefix && d < ids->shape.rank; d++) prefix = ids->shape.dims[d] == x->shape.dims[d];
  TFC_KERNEL_CHECK(prefix, "segment_ids' shape %s is not the beginning of the input's, %s",
                   tfc_shape_show(&ids->shape, (char[TFC_SHAPE_TEXT]){0}),
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  struct tfc_shape shape = {.rank = 1, .dims = {segments}};
  for (int d = ids->shape.rank; d < x->shape.rank; d++) {
    inner *= x->shape.dims[d];
    shape.dims[shape.rank++] = x->shape.dims[d];
  }
  for (int64_t i = 0; i < n; i++)
    TFC_KERNEL_CHECK(tfc_tensor_int(ids, i) >= 0 && tfc_tensor_int(ids, i) < segments,
                     "segment_ids are not allowed to exceed num_segments or to have negative values: %lld",
                     (long long)tfc_tensor_int(ids, i));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &shape, &y));
  struct tfc_text *texts = calloc((size_t)(segments * inner) + 1, sizeof *texts);
  if (!texts) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (int64_t i = 0; i < n; i++) {
    int64_t id = tfc_tensor_int(ids, i);
    for (int64_t k = 0; k < inner; k++) {
      struct tfc_text *t = &texts[id * inner + k];
      // As in TensorFlow, there is no separator after a text that is still empty.
      if (t->size) tfc_text_add(t, separator);
      tfc_text_add(t, tfc_tensor_get_string(x, i * inner + k));
    }
  }
  for (int64_t i = 0; i < segments * inner; i++) TFC_TRY(s, tfc_tensor_set_text(y, i, &texts[i]));
out:
  for (int64_t i = 0; texts && i < segments * inner; i++) tfc_text_deinit(&texts[i]);
  free(texts);
  return s;
}
static tfc_status shape_join(struct tfc_shape_ctx *ctx) {
  const struct tfc_shape *x = ctx->inputs[0], *ids = ctx->inputs[1];
  int64_t segments;
  ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  if (x->rank < 0 || ids->rank < 0) return NULL;
  if (ids->rank > x->rank)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "segment_ids has more dimensions than the input");
  ctx->outputs[0] = TFC_SHAPE(ops_known_int(ctx, 2, &segments) ? segments : TFC_DIM_UNKNOWN);
  for (int d = ids->rank; d < x->rank; d++) ctx->outputs[0].dims[ctx->outputs[0].rank++] = x->dims[d];
  return NULL;
}
static const struct tfc_op_def string_segment_rows[] = {
    {.name = "UnsortedSegmentJoin",
     .inputs = "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments",
     .outputs = "output: string",
     .attrs = "separator: string = '', Tindices: {int32, int64}, Tnumsegments: {int32, int64} = int32",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_join,
     .kernel = segment_join},
};
TFC_REGISTER_OPS(string_segment_rows);
