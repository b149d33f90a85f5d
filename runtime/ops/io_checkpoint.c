// Checkpoints and summaries: what the ops look like. Reading and writing files belongs to runtime/io, which the session
// calls for the ops flagged SAVES; naming shards needs no file.
#include "runtime/ops/nn_common.h"

static tfc_status sharded_filename(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  for (uint32_t i = 0; i < 3; i++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[i]) == 1, "input %u must be a scalar", i);
  struct tfc_text text = {0};
  tfc_text_add(&text, tfc_tensor_get_string(ctx->inputs[0], 0));
  tfc_text_printf(&text, "-%05lld-of-%05lld", (long long)tfc_nn_int(ctx->inputs[1]),
                  (long long)tfc_nn_int(ctx->inputs[2]));
  tfc_status s = tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y);
  if (!s && (text.failed || !tfc_tensor_set_string(y, 0, (tfc_str){text.data, text.size})))
    s = tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  tfc_text_deinit(&text);
  return s;
}
static tfc_status sharded_filespec(struct tfc_kernel_ctx *ctx) {
  struct tfc_tensor *y = NULL;
  struct tfc_text text = {0};
  tfc_text_add(&text, tfc_tensor_get_string(ctx->inputs[0], 0));
  tfc_text_printf(&text, "-?\?\?\?\?-of-%05lld", (long long)tfc_nn_int(ctx->inputs[1]));
  tfc_status s = tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE_SCALAR, &y);
  if (!s && (text.failed || !tfc_tensor_set_string(y, 0, (tfc_str){text.data, text.size})))
    s = tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");
  tfc_text_deinit(&text);
  return s;
}

// "10 20 0,5:-": the whole shape, then of each dimension "begin,length" or "-" for all of it.
static tfc_status slice_shape(tfc_str spec, struct tfc_shape *out) {
  *out = TFC_SHAPE_UNKNOWN;
  if (!spec.size) return NULL;
  size_t space = tfc_str_rfind(spec, ' ');
  if (space == SIZE_MAX) return tfc_status_make(TFC_INVALID_ARGUMENT, "slice '%.*s'", TFC_STR_ARG(spec));
  tfc_str dims = tfc_str_sub(spec, 0, space), slices = tfc_str_sub(spec, space + 1, spec.size);
  struct tfc_shape shape = TFC_SHAPE_SCALAR;
  while (dims.size) {
    size_t end = tfc_str_find(dims, ' '), colon = tfc_str_find(slices, ':');
    tfc_str dim = tfc_str_sub(dims, 0, end), slice = tfc_str_sub(slices, 0, colon);
    if (shape.rank == TFC_MAX_RANK) return tfc_status_make(TFC_INVALID_ARGUMENT, "slice '%.*s'", TFC_STR_ARG(spec));
    if (!tfc_str_is(slice, "-")) {
      size_t comma = tfc_str_find(slice, ',');
      dim = comma == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(slice, comma + 1, slice.size);
    }
    int64_t value = 0;
    for (size_t i = 0; i < dim.size; i++) {
      if (dim.data[i] < '0' || dim.data[i] > '9' || value > (INT64_MAX - 9) / 10)
        return tfc_status_make(TFC_INVALID_ARGUMENT, "slice '%.*s'", TFC_STR_ARG(spec));
      value = value * 10 + (dim.data[i] - '0');
    }
    if (!dim.size) return tfc_status_make(TFC_INVALID_ARGUMENT, "slice '%.*s'", TFC_STR_ARG(spec));
    shape.dims[shape.rank++] = value;
    dims = end == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(dims, end + 1, dims.size);
    slices = colon == SIZE_MAX ? (tfc_str){0} : tfc_str_sub(slices, colon + 1, slices.size);
  }
  *out = shape;
  return NULL;
}
static tfc_status shape_restore(struct tfc_shape_ctx *ctx) {
  const struct tfc_tensor *slices = ctx->input_values ? ctx->input_values[2] : NULL;
  for (uint32_t i = 0; i < ctx->node->output_count; i++) {
    ctx->outputs[i] = TFC_SHAPE_UNKNOWN;
    if (slices && slices->dtype == TFC_STRING && i < tfc_tensor_elements(slices))
      TFC_RETURN_IF_ERROR(slice_shape(tfc_tensor_get_string(slices, i), &ctx->outputs[i]));
  }
  return NULL;
}

#define IO(shape_, kernel_) .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
#define RESTORE .host_inputs = UINT32_MAX, .shape = shape_restore
static const struct tfc_op_def io_checkpoint_rows[] = {
    {.name = "ShardedFilename",
     .inputs = "basename: string, shard: int32, num_shards: int32",
     .outputs = "filename: string",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_scalar, sharded_filename)},
    {.name = "ShardedFilespec",
     .inputs = "basename: string, num_shards: int32",
     .outputs = "filename: string",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_scalar, sharded_filespec)},
    {.name = "SaveV2",
     .inputs = "prefix: string, tensor_names: string, shape_and_slices: string, tensors: dtypes",
     .attrs = "dtypes: list(type) >= 1",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_none, NULL)},
    {.name = "RestoreV2",
     .inputs = "prefix: string, tensor_names: string, shape_and_slices: string",
     .outputs = "tensors: dtypes",
     .attrs = "dtypes: list(type) >= 1",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     RESTORE},
    {.name = "MergeV2Checkpoints",
     .inputs = "checkpoint_prefixes: string, destination_prefix: string",
     .attrs = "delete_old_dirs: bool = true, allow_missing_files: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_none, NULL)},
    {.name = "ScalarSummary",
     .inputs = "tags: string, values: T",
     .outputs = "summary: string",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_scalar, NULL)},
    {.name = "HistogramSummary",
     .inputs = "tag: string, values: T",
     .outputs = "summary: string",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64} = float",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_scalar, NULL)},
    {.name = "ImageSummary",
     .inputs = "tag: string, tensor: T",
     .outputs = "summary: string",
     .attrs = "max_images: int >= 1 = 3, T: {uint8, float, half, double} = float, bad_color: tensor",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_scalar, NULL)},
    {.name = "TensorSummaryV2",
     .inputs = "tag: string, tensor: T, serialized_summary_metadata: string",
     .outputs = "summary: string",
     .attrs = "T: type",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_scalar, NULL)},
    {.name = "MergeSummary",
     .inputs = "inputs: N * string",
     .outputs = "summary: string",
     .attrs = "N: int >= 1",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_scalar, NULL)},
    {.name = "WriteSummary",
     .inputs = "writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string",
     .attrs = "T: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_none, NULL)},
    {.name = "WriteScalarSummary",
     .inputs = "writer: resource, step: int64, tag: string, value: T",
     .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_none, NULL)},
    {.name = "SummaryWriter",
     .outputs = "writer: resource",
     .attrs = "shared_name: string = '', container: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_scalar, NULL)},
    {.name = "CreateSummaryFileWriter",
     .inputs = "writer: resource, logdir: string, max_queue: int32, flush_millis: int32, filename_suffix: string",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_none, NULL)},
    {.name = "FlushSummaryWriter",
     .inputs = "writer: resource",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_none, NULL)},
    {.name = "CloseSummaryWriter",
     .inputs = "writer: resource",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_SAVES | TFC_OP_NOT_DIFFERENTIABLE,
     IO(tfc_nn_shape_none, NULL)},
};
TFC_REGISTER_OPS(io_checkpoint_rows);
