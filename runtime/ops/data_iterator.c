// Input pipelines: iterators and the datasets behind them. They are not run here (what an iterator would give is fed);
// the rows say what types and shapes they have, so that graphs which begin with them are understood.
#include "runtime/ops/nn_common.h"

// Element i of the iterator has the shape that the attribute says.
static tfc_status shape_next(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "output_shapes");
  for (uint32_t i = 0; i < ctx->node->output_count; i++)
    ctx->outputs[i] = a && a->kind == TFC_ATTR_LIST_SHAPE && i < a->count ? a->shapes[i] : TFC_SHAPE_UNKNOWN;
  return NULL;
}

#define KINDS "output_types: list(type) >= 1, output_shapes: list(shape) >= 1"
#define ROW(op, in, out, attributes, shape_)                                                                           \
  {                                                                                                                    \
    .name = op, .inputs = in, .outputs = out, .attrs = attributes,                                                     \
    .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .shape = shape_                                \
  }
#define DATASET(op, in, attributes)                                                                                    \
  ROW(op, in, "handle: variant", attributes ", metadata: string = ''", tfc_nn_shape_scalar)

static const struct tfc_op_def data_iterator_rows[] = {
    ROW("Iterator", "", "handle: resource", "shared_name: string, container: string, " KINDS, tfc_nn_shape_scalar),
    ROW("IteratorV2", "", "handle: resource", "shared_name: string, container: string, " KINDS, tfc_nn_shape_scalar),
    ROW("OneShotIterator", "", "handle: resource",
        "dataset_factory: func, " KINDS ", container: string = '', shared_name: string = ''", tfc_nn_shape_scalar),
    ROW("IteratorGetNext", "iterator: resource", "components: output_types", KINDS, shape_next),
    ROW("MakeIterator", "dataset: variant, iterator: resource", "", "", tfc_nn_shape_none),
    ROW("IteratorToStringHandle", "resource_handle: resource", "string_handle: string", "", tfc_nn_shape_scalar),
    DATASET("RangeDataset", "start: int64, stop: int64, step: int64", KINDS ", replicate_on_split: bool = false"),
    ROW("TextLineDataset", "filenames: string, compression_type: string, buffer_size: int64", "handle: variant",
        "metadata: string = ''", tfc_nn_shape_scalar),
    DATASET("TensorDataset", "components: Toutput_types",
            "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1"),
    DATASET("TensorSliceDataset", "components: Toutput_types",
            "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1, is_files: bool = false, "
            "replicate_on_split: bool = false"),
    DATASET("ZipDataset", "input_datasets: N * variant", KINDS ", N: int >= 1"),
    DATASET("FilterDataset", "input_dataset: variant, other_arguments: Targuments",
            "predicate: func, Targuments: list(type) >= 0, " KINDS),
    DATASET("MapDataset", "input_dataset: variant, other_arguments: Targuments",
            "f: func, Targuments: list(type) >= 0, " KINDS
            ", use_inter_op_parallelism: bool = true, preserve_cardinality: bool = false"),
    DATASET("ParallelMapDataset", "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int32",
            "f: func, Targuments: list(type) >= 0, " KINDS
            ", use_inter_op_parallelism: bool = true, sloppy: bool = false, preserve_cardinality: bool = false"),
    DATASET("SkipDataset", "input_dataset: variant, count: int64", KINDS),
    DATASET("TakeDataset", "input_dataset: variant, count: int64", KINDS),
    DATASET("RepeatDataset", "input_dataset: variant, count: int64", KINDS),
    DATASET("ShuffleDataset", "input_dataset: variant, buffer_size: int64, seed: int64, seed2: int64",
            "reshuffle_each_iteration: bool = true, " KINDS),
    DATASET("PrefetchDataset", "input_dataset: variant, buffer_size: int64",
            KINDS ", slack_period: int = 0, legacy_autotune: bool = true, buffer_size_min: int = 0"),
    DATASET("BatchDatasetV2", "input_dataset: variant, batch_size: int64, drop_remainder: bool",
            "parallel_copy: bool = false, " KINDS),
    DATASET("PaddedBatchDataset",
            "input_dataset: variant, batch_size: int64, padded_shapes: N * int64, padding_values: Toutput_types",
            "Toutput_types: list(type) >= 1, output_shapes: list(shape) >= 1, N: int >= 1"),
    DATASET(
        "GroupByWindowDataset",
        "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, reduce_func_other_arguments: "
        "Treduce_func_other_arguments, window_size_func_other_arguments: Twindow_size_func_other_arguments",
        "key_func: func, reduce_func: func, window_size_func: func, Tkey_func_other_arguments: list(type) >= 0, "
        "Treduce_func_other_arguments: list(type) >= 0, Twindow_size_func_other_arguments: list(type) >= 0, " KINDS),
};
TFC_REGISTER_OPS(data_iterator_rows);
