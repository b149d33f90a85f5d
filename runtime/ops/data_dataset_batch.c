// Datasets whose elements are several stacked elements of another dataset.
#include "runtime/ops/data_dataset.h"
#include "runtime/ops/data_variant.h"

enum { SIZE, DROP }; // indices into a dataset's numbers `n`
// Stacks component `part` of `count` elements, which lie one after another in `items`, into a tensor [count, ...].
static tfc_status stack(const struct tfc_dataset *d, const struct tfc_tensor *items, int64_t count, uint32_t part,
                        struct tfc_tensor *out) {
  const struct tfc_tensor *first = &items[part];
  struct tfc_shape shape = tfc_data_prepend(count, &first->shape);
  if (shape.rank < 0) return tfc_status_make(TFC_INVALID_ARGUMENT, "elements of too many dimensions to be stacked");
  for (int64_t i = 1; i < count; i++) {
    const struct tfc_tensor *t = &items[i * d->parts + part];
    TFC_KERNEL_CHECK(tfc_shape_equal(&t->shape, &first->shape),
                     "dataset '%s': Cannot batch tensors with different shapes in component %u. First element had "
                     "shape %s and element %lld had shape %s.",
                     d->node, part, tfc_shape_show(&first->shape, (char[TFC_SHAPE_TEXT]){0}), (long long)i,
                     tfc_shape_show(&t->shape, (char[TFC_SHAPE_TEXT]){0}));
  }
  TFC_RETURN_IF_ERROR(tfc_tensor_create(first->dtype, &shape, out));
  const int64_t each = tfc_tensor_elements(first);
  for (int64_t i = 0; i < count; i++) TFC_RETURN_IF_ERROR(tfc_data_copy(out, i * each, &items[i * d->parts + part]));
  return NULL;
}

// Collects the elements of one batch, or those that are left. *ended: there are none, or too few for a batch that must
// be full.
static tfc_status collect(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_dataset_elements *e,
                          int64_t *count, bool *ended) {
  const struct tfc_dataset *d = it->dataset;
  bool done = false;
  for (*count = 0; *count < d->n[SIZE]; ++*count) {
    TFC_RETURN_IF_ERROR(tfc_dataset_gather(ctx, it->inputs[0], e, &done));
    if (done) break;
  }
  *ended = *count == 0 || (d->n[DROP] && *count < d->n[SIZE]);
  return NULL;
}

static tfc_status batch_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                             bool *ended) {
  struct tfc_dataset_elements e = {0};
  int64_t count = 0;
  tfc_status s = collect(ctx, it, &e, &count, ended);
  for (uint32_t p = 0; !s && !*ended && p < it->dataset->parts; p++)
    s = stack(it->dataset, e.items.data, count, p, &parts[p]);
  tfc_dataset_elements_free(&e);
  return s;
}
static const struct tfc_dataset_kind batch_kind = {.name = "Batch", .next = batch_next};

static tfc_status make(struct tfc_kernel_ctx *ctx, const struct tfc_dataset_kind *kind, uint32_t first_tensor,
                       uint32_t tensor_count, uint32_t drop) {
  struct tfc_dataset *d = NULL;
  int64_t size, dropped = 0;
  TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, 1, "batch_size", &size));
  if (drop) TFC_RETURN_IF_ERROR(tfc_dataset_number(ctx, drop, "drop_remainder", &dropped));
  TFC_KERNEL_CHECK(size > 0, "Batch size must be greater than zero.");
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, kind, 1, first_tensor, tensor_count, &d));
  d->n[SIZE] = size, d->n[DROP] = dropped;
  if (d->inputs[0]->parts == d->parts) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return tfc_status_make(TFC_INVALID_ARGUMENT, "a batch has as many components as what is batched");
}
static tfc_status batch(struct tfc_kernel_ctx *ctx) {
  return make(ctx, &batch_kind, 0, 0, ctx->input_count > 2 ? ctx->input_count - 1 : 0);
}

#define KINDS TFC_DATASET_KINDS
#define MORE TFC_DATASET_MORE
#define ROW TFC_DATASET_ROW
static const struct tfc_op_def data_dataset_batch_rows[] = {
    ROW("BatchDataset", "input_dataset: variant, batch_size: int64", KINDS MORE, batch),
    ROW("BatchDatasetV2", "input_dataset: variant, batch_size: int64, drop_remainder: bool",
        "parallel_copy: bool = false, " KINDS MORE, batch),
    ROW("ParallelBatchDataset",
        "input_dataset: variant, batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
        "parallel_copy: bool = false, " KINDS ", deterministic: string = 'default'" MORE, batch),
};
TFC_REGISTER_OPS(data_dataset_batch_rows);
