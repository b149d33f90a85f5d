// Datasets that read no other: tensors, their rows, ranges of numbers.
#include "runtime/ops/data_dataset.h"
#include "runtime/ops/data_variant.h"

static tfc_status tensor_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                              bool *ended) {
  bool *given = tfc_dataset_state(it);
  (void)ctx;
  *ended = *given;
  for (uint32_t i = 0; !*given && i < it->dataset->parts; i++) tfc_tensor_share(&it->dataset->tensors[i], &parts[i]);
  *given = true;
  return NULL;
}
static tfc_status slices_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                              bool *ended) {
  int64_t *row = tfc_dataset_state(it);
  const struct tfc_dataset *d = it->dataset;
  *ended = *row >= d->n[0];
  for (uint32_t i = 0; !*ended && i < d->parts; i++)
    TFC_RETURN_IF_ERROR(tfc_data_row(ctx, &d->tensors[i], *row, &parts[i]));
  *row += !*ended;
  return NULL;
}

// n: start, stop, step. The state is how many numbers were given.
static tfc_status range_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                             bool *ended) {
  int64_t *given = tfc_dataset_state(it), value;
  const int64_t *n = it->dataset->n;
  const tfc_dtype type = it->dataset->types[0];
  (void)ctx;
  *ended = __builtin_mul_overflow(*given, n[2], &value) || __builtin_add_overflow(value, n[0], &value) ||
           (n[2] > 0 ? value >= n[1] : value <= n[1]);
  if (*ended) return NULL;
  ++*given;
  TFC_RETURN_IF_ERROR(tfc_tensor_create(type, &TFC_SHAPE_SCALAR, &parts[0]));
  if (type == TFC_FLOAT)
    *(float *)parts[0].data = (float)value;
  else if (type == TFC_DOUBLE)
    *(double *)parts[0].data = (double)value;
  else
    memcpy(parts[0].data, &value, tfc_dtype_size(type)); // little-endian: copies the low bytes
  return NULL;
}

static const struct tfc_dataset_kind tensor_kind = {.name = "Tensor", .state = sizeof(bool), .next = tensor_next};
static const struct tfc_dataset_kind slices_kind = {
    .name = "TensorSlice", .state = sizeof(int64_t), .next = slices_next};
static const struct tfc_dataset_kind range_kind = {.name = "Range", .state = sizeof(int64_t), .next = range_next};

static tfc_status tensor(struct tfc_kernel_ctx *ctx) {
  struct tfc_dataset *d = NULL;
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &tensor_kind, 0, 0, ctx->input_count, &d));
  return tfc_dataset_output(ctx, d);
}
static tfc_status slices(struct tfc_kernel_ctx *ctx) {
  struct tfc_dataset *d = NULL;
  TFC_KERNEL_CHECK(!tfc_node_attr_bool(ctx->graph, ctx->node, "is_files", false) || ctx->input_count == 1,
                   "files are one component");
  for (uint32_t i = 0; i < ctx->input_count; i++) {
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.rank > 0, "All components must be at least 1-dimensional");
    TFC_KERNEL_CHECK(ctx->inputs[i]->shape.dims[0] == ctx->inputs[0]->shape.dims[0],
                     "All components must have the same size in the 0th dimension");
  }
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &slices_kind, 0, 0, ctx->input_count, &d));
  d->n[0] = ctx->inputs[0]->shape.dims[0];
  return tfc_dataset_output(ctx, d);
}
static tfc_status range(struct tfc_kernel_ctx *ctx) {
  static const char *const names[] = {"start", "stop", "step"};
  struct tfc_dataset *d = NULL;
  int64_t n[3];
  for (uint32_t i = 0; i < 3; i++) TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, i, names[i], &n[i]));
  TFC_KERNEL_CHECK(n[2] != 0, "step must be a non-zero integer.");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &range_kind, 0, 0, 0, &d));
  memcpy(d->n, n, sizeof n);
  const tfc_dtype type = d->types[0];
  if (d->parts != 1 || !(tfc_dtype_is_integer(type) || type == TFC_FLOAT || type == TFC_DOUBLE)) {
    tfc_object_release(&d->object);
    return tfc_status_make(TFC_UNIMPLEMENTED, "a range of %s", tfc_dtype_name(type));
  }
  return tfc_dataset_output(ctx, d);
}

static const struct tfc_op_def data_dataset_source_rows[] = {
    TFC_DATASET_ROW("TensorDataset", "components: Toutput_types",
                    "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1" TFC_DATASET_MORE, tensor),
    TFC_DATASET_ROW("TensorSliceDataset", "components: Toutput_types",
                    "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1, is_files: bool = false, "
                    "replicate_on_split: bool = false" TFC_DATASET_MORE,
                    slices),
    TFC_DATASET_ROW("RangeDataset", "start: int64, stop: int64, step: int64",
                    TFC_DATASET_KINDS ", replicate_on_split: bool = false" TFC_DATASET_MORE, range),
};
TFC_REGISTER_OPS(data_dataset_source_rows);
