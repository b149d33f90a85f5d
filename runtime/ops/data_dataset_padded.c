// Datasets of batches whose elements have different shapes and are padded to one shape.
#include "runtime/ops/data_dataset.h"
#include "runtime/ops/data_variant.h"

// Indices into a dataset's numbers `n`. The first half of its tensors are shapes, the second half the values that fill
// the padding.
enum { SIZE, DROP };

// Computes the shape [count, ...] of component `part`: the given one, where a -1 means the largest size among the
// elements.
static tfc_status padded_shape(const struct tfc_dataset *d, const struct tfc_tensor *items, int64_t count,
                               uint32_t part, struct tfc_shape *out) {
  const struct tfc_tensor *told = &d->tensors[part];
  const int rank = (int)tfc_tensor_elements(told);
  struct tfc_shape shape = {.rank = rank + 1, .dims = {count}};
  for (int k = 0; k < rank; k++) {
    const int64_t want = tfc_tensor_int(told, k);
    int64_t *dim = &shape.dims[k + 1];
    *dim = want < 0 ? 0 : want;
    for (int64_t i = 0; i < count; i++) {
      const struct tfc_shape *have = &items[i * d->parts + part].shape;
      TFC_KERNEL_CHECK(
          have->rank == rank,
          "dataset '%s': All elements in a batch must have the same rank as the padded shape for component "
          "%u: expected rank %d but got element with rank %d",
          d->node, part, rank, have->rank);
      TFC_KERNEL_CHECK(want < 0 || have->dims[k] <= want,
                       "dataset '%s': Attempted to pad to a smaller size than the input element.", d->node);
      if (have->dims[k] > *dim) *dim = have->dims[k];
    }
  }
  *out = shape;
  return NULL;
}

static tfc_status fill(struct tfc_tensor *out, const struct tfc_tensor *value) {
  const int64_t n = tfc_tensor_elements(out);
  if (out->dtype == TFC_STRING) {
    const tfc_str text = tfc_tensor_get_string(value, 0);
    for (int64_t i = 0; i < n; i++) TFC_RETURN_IF_ERROR(tfc_tensor_set_string(out, i, text));
    return NULL;
  }
  const size_t size = tfc_dtype_size(out->dtype);
  for (int64_t i = 0; i < n; i++) memcpy((char *)out->data + (size_t)i * size, value->data, size);
  return NULL;
}

// Copies `from`, row by row, to its place in element `at` of `to`, which is at least as large in every dimension.
static tfc_status put(struct tfc_tensor *to, int64_t at, const struct tfc_tensor *from) {
  const int rank = from->shape.rank;
  const int64_t row = rank ? from->shape.dims[rank - 1] : 1, count = tfc_tensor_elements(from);
  const size_t size = tfc_dtype_size(to->dtype);
  for (int64_t i = 0; i < count; i += row) {
    int64_t left = i / row, place = 0, stride = rank ? to->shape.dims[rank] : 1;
    for (int k = rank - 2; k >= 0; k--) {
      place += left % from->shape.dims[k] * stride;
      left /= from->shape.dims[k];
      stride *= to->shape.dims[k + 1];
    }
    place += at * stride;
    if (to->dtype != TFC_STRING) {
      memcpy((char *)to->data + (size_t)place * size, (const char *)from->data + (size_t)i * size, (size_t)row * size);
      continue;
    }
    for (int64_t k = 0; k < row; k++)
      TFC_RETURN_IF_ERROR(tfc_tensor_set_string(to, place + k, tfc_tensor_get_string(from, i + k)));
  }
  return NULL;
}

static tfc_status pad(const struct tfc_dataset *d, const struct tfc_tensor *items, int64_t count, uint32_t part,
                      struct tfc_tensor *out) {
  struct tfc_shape shape;
  TFC_RETURN_IF_ERROR(padded_shape(d, items, count, part, &shape));
  TFC_RETURN_IF_ERROR(tfc_tensor_create(items[part].dtype, &shape, out));
  TFC_RETURN_IF_ERROR(fill(out, &d->tensors[d->parts + part]));
  for (int64_t i = 0; i < count; i++) TFC_RETURN_IF_ERROR(put(out, i, &items[i * d->parts + part]));
  return NULL;
}

static tfc_status padded_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                              bool *ended) {
  const struct tfc_dataset *d = it->dataset;
  struct tfc_dataset_elements e = {0};
  int64_t count = 0;
  bool done = false;
  tfc_status s = NULL;
  for (; count < d->n[SIZE]; count++) {
    TFC_TRY(s, tfc_dataset_gather(ctx, it->inputs[0], &e, &done));
    if (done) break;
  }
  *ended = count == 0 || (d->n[DROP] && count < d->n[SIZE]);
  for (uint32_t p = 0; !*ended && p < d->parts; p++) TFC_TRY(s, pad(d, e.items.data, count, p, &parts[p]));
out:
  tfc_dataset_elements_free(&e);
  return s;
}
static const struct tfc_dataset_kind kind = {.name = "PaddedBatch", .next = padded_next};

static tfc_status check(const struct tfc_dataset *d) {
  TFC_KERNEL_CHECK(d->tensor_count == 2 * d->parts && d->inputs[0]->parts == d->parts,
                   "padded shapes and padding values must be as many as the components, %u", d->parts);
  for (uint32_t i = 0; i < d->parts; i++) {
    const struct tfc_tensor *shape = &d->tensors[i], *value = &d->tensors[d->parts + i];
    TFC_KERNEL_CHECK(shape->shape.rank == 1 && shape->shape.dims[0] < TFC_MAX_RANK,
                     "All padded shapes must be vectors");
    TFC_KERNEL_CHECK(value->shape.rank == 0, "All padding values must be scalars");
    TFC_KERNEL_CHECK(value->dtype == d->types[i], "padding value %u is %s, the component %s", i,
                     tfc_dtype_name(value->dtype), tfc_dtype_name(d->types[i]));
    if (!tfc_dtype_is_plain(value->dtype) && value->dtype != TFC_STRING)
      return tfc_status_make(TFC_UNIMPLEMENTED, "padding %s", tfc_dtype_name(value->dtype));
    for (int64_t k = 0; k < shape->shape.dims[0]; k++)
      TFC_KERNEL_CHECK(tfc_tensor_int(shape, k) >= -1, "a dimension of a padded shape is below -1");
  }
  return NULL;
}
static tfc_status padded_batch(struct tfc_kernel_ctx *ctx) {
  struct tfc_dataset *d = NULL;
  const uint32_t parts = (uint32_t)tfc_node_attr_int(ctx->graph, ctx->node, "N", 0);
  int64_t size, drop = 0;
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 1, "batch_size", &size));
  TFC_KERNEL_CHECK(size > 0, "Batch size must be greater than zero.");
  TFC_KERNEL_CHECK(ctx->input_count >= 2 + 2 * (uint64_t)parts, "padded shapes or padding values are missing");
  if (ctx->input_count > 2 + 2 * parts)
    TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 2 + 2 * parts, "drop_remainder", &drop));
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, &kind, 1, 2, 2 * parts, &d));
  d->n[SIZE] = size, d->n[DROP] = drop;
  tfc_status s = check(d);
  if (!s) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return s;
}

#define ROW TFC_DATASET_ROW
static const struct tfc_op_def data_dataset_padded_rows[] = {
    ROW("PaddedBatchDataset",
        "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types",
        "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1, N: int >= 1" TFC_DATASET_MORE, padded_batch),
    ROW("PaddedBatchDatasetV2",
        "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types, "
        "drop_remainder: bool",
        "parallel_copy: bool = false, T" TFC_DATASET_KINDS ", N: int >= 1" TFC_DATASET_MORE, padded_batch),
};
TFC_REGISTER_OPS(data_dataset_padded_rows);
