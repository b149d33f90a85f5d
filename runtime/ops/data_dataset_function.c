// Datasets that call a function for each element: map, filter, take-while. Where TensorFlow calls functions in
// parallel, tfc calls one after the other, which gives the same elements in the same order.
#include "runtime/ops/data_dataset.h"

static tfc_status map_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                           bool *ended) {
  const struct tfc_dataset *d = it->dataset;
  const uint32_t count = d->inputs[0]->parts;
  struct tfc_tensor *in = tfc_dataset_parts(count);
  if (!in) return tfc_status_no_memory(NULL);
  tfc_status s = tfc_dataset_next(ctx, it->inputs[0], in, ended);
  if (!s && !*ended) s = tfc_dataset_call(ctx, d, in, count, parts, d->parts);
  tfc_dataset_parts_free(in, count);
  return s;
}
static tfc_status filter_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                              bool *ended) {
  for (bool keep = false; !keep;) {
    TFC_RETURN_IF_ERROR(tfc_dataset_next(ctx, it->inputs[0], parts, ended));
    if (*ended) return NULL;
    TFC_RETURN_IF_ERROR(tfc_dataset_ask(ctx, it->dataset, parts, it->dataset->parts, &keep));
    if (!keep) tfc_dataset_parts_clear(parts, it->dataset->parts);
  }
  return NULL;
}
static tfc_status take_while_next(struct tfc_kernel_ctx *ctx, struct tfc_dataset_iterator *it, struct tfc_tensor *parts,
                                  bool *ended) {
  bool *over = tfc_dataset_state(it), keep = false;
  *ended = *over;
  if (*over) return NULL;
  TFC_RETURN_IF_ERROR(tfc_dataset_next(ctx, it->inputs[0], parts, ended));
  if (!*ended) TFC_RETURN_IF_ERROR(tfc_dataset_ask(ctx, it->dataset, parts, it->dataset->parts, &keep));
  *ended = *over = !keep;
  return NULL;
}

static const struct tfc_dataset_kind map_kind = {.name = "Map", .next = map_next};
static const struct tfc_dataset_kind filter_kind = {.name = "Filter", .next = filter_next};
static const struct tfc_dataset_kind take_while_kind = {
    .name = "TakeWhile", .state = sizeof(bool), .next = take_while_next};

// `behind`: how many inputs follow the function's captured ones; `same`: elements are passed on unchanged.
static tfc_status make(struct tfc_kernel_ctx *ctx, const struct tfc_dataset_kind *kind, const char *function,
                       uint32_t behind, bool same) {
  struct tfc_dataset *d = NULL;
  TFC_RETURN_IF_ERROR(tfc_dataset_create(ctx, kind, 1, 1, ctx->input_count - 1 - behind, &d));
  tfc_status s = tfc_dataset_set_function(ctx, function, d);
  if (!s && same && d->inputs[0]->parts != d->parts)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "elements have as many components as those that are read");
  if (!s) return tfc_dataset_output(ctx, d);
  tfc_object_release(&d->object);
  return s;
}
static tfc_status map(struct tfc_kernel_ctx *ctx) {
  return make(ctx, &map_kind, "f", 0, false);
}
static tfc_status parallel_map(struct tfc_kernel_ctx *ctx) {
  return make(ctx, &map_kind, "f", 1, false);
}
static tfc_status filter(struct tfc_kernel_ctx *ctx) {
  return make(ctx, &filter_kind, "predicate", 0, true);
}
static tfc_status parallel_filter(struct tfc_kernel_ctx *ctx) {
  return make(ctx, &filter_kind, "predicate", 1, true);
}
static tfc_status take_while(struct tfc_kernel_ctx *ctx) {
  return make(ctx, &take_while_kind, "predicate", 0, true);
}

#define KINDS TFC_DATASET_KINDS
#define MORE TFC_DATASET_MORE
#define ROW TFC_DATASET_ROW
static const struct tfc_op_def data_dataset_function_rows[] = {
    ROW("MapDataset", "input_dataset: variant, other_arguments: Targuments",
        "f: func, Targuments: list(type) >= 0, " KINDS
        ", use_inter_op_parallelism: bool = true, preserve_cardinality: bool = false" MORE,
        map),
    ROW("ParallelMapDataset", "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int32",
        "f: func, Targuments: list(type) >= 0, " KINDS
        ", use_inter_op_parallelism: bool = true, sloppy: bool = false, preserve_cardinality: bool = false" MORE,
        parallel_map),
    ROW("ParallelMapDatasetV2", "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64",
        "f: func, Targuments: list(type) >= 0, " KINDS ", use_inter_op_parallelism: bool = true, deterministic: "
        "string = 'default', preserve_cardinality: bool = false" MORE,
        parallel_map),
    ROW("FilterDataset", "input_dataset: variant, other_arguments: Targuments",
        "predicate: func, Targuments: list(type) >= 0, " KINDS MORE, filter),
    ROW("ParallelFilterDataset", "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64",
        "predicate: func, deterministic: string = 'default', Targuments: list(type) >= 0, " KINDS MORE,
        parallel_filter),
    ROW("TakeWhileDataset", "input_dataset: variant, other_arguments: Targuments",
        "predicate: func, Targuments: list(type) >= 0, " KINDS MORE, take_while),
};
TFC_REGISTER_OPS(data_dataset_function_rows);
