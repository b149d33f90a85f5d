// SerializeTensor and ParseTensor, which convert tensors to messages (TensorProto) and back.
#include "runtime/graph/export_attr.h"
#include "runtime/graph/import.h"
#include "runtime/ops/row.h"

static tfc_status serialize(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  struct tfc_tensor *y = NULL;
  struct tfc_text text = {0};
  TFC_KERNEL_CHECK(tfc_dtype_is_plain(x->dtype) || x->dtype == TFC_STRING, "a tensor of %s cannot be serialized",
                   tfc_dtype_name(x->dtype));
  tfc_wire_put_tensor_fields(&text, x);
  tfc_status s = tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y);
  if (!s) s = tfc_tensor_set_text(y, 0, &text);
  tfc_text_deinit(&text);
  return s;
}

// Parses a tensor's message. It becomes the value of a graph's only node, so that the importer's reader reads it,
// within the importer's limits.
static tfc_status parse(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *x = ctx->inputs[0];
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  struct tfc_graph *g = NULL;
  const struct tfc_tensor *tensor = NULL;
  struct tfc_tensor copy = {0};
  tfc_status s = NULL;
  TFC_KERNEL_CHECK(x->shape.rank == 0, "Expected `serialized` to be a scalar, got shape: %s",
                   tfc_shape_show(&x->shape, (char[TFC_SHAPE_TEXT]){0}));
  s = tfc_graph_parse_tensor(tfc_tensor_get_string(x, 0), type, "serialized", &g, &tensor);
  if (s) {
    s = tfc_status_annotate(s, "Could not parse `serialized` as TensorProto");
    goto out;
  }
  if (tensor->dtype != type)
    TFC_FAIL(s, TFC_INVALID_ARGUMENT, "Type mismatch between parsed tensor (%s) and dtype (%s)",
             tfc_dtype_name(tensor->dtype), tfc_dtype_name(type));
  TFC_TRY(s, tfc_tensor_clone(tensor, &copy));
  TFC_TRY(s, tfc_kernel_set_output(ctx, 0, &copy));
out:
  tfc_tensor_release(&copy);
  tfc_graph_release(g);
  return s;
}

static const struct tfc_op_def io_tensor_rows[] = {
    {.name = "SerializeTensor",
     .inputs = "tensor: T",
     .outputs = "serialized: string",
     .attrs = "T: type",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_scalar,
     .kernel = serialize,
     .samples = "float[2,3]; int32[]; string[2]"},
    {.name = "ParseTensor",
     .inputs = "serialized: string",
     .outputs = "output: out_type",
     .attrs = "out_type: type",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_nothing,
     .kernel = parse},
};
TFC_REGISTER_OPS(io_tensor_rows);
