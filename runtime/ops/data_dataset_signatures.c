// Rows of datasets that tfc does not run. They give types and shapes, so that graphs that begin with such datasets are
// understood and the outputs of their iterators can be fed.
#include "runtime/ops/data_dataset.h"

#define KINDS TFC_DATASET_KINDS
#define ROW(op, in, out, attributes, shape_)                                                                           \
  {                                                                                                                    \
    .name = op, .inputs = in, .outputs = out, .attrs = attributes,                                                     \
    .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE, .shape = shape_                                \
  }
#define DATASET(op, in, attributes)                                                                                    \
  ROW(op, in, "handle: variant", attributes ", metadata: string = ''", ops_shape_scalar)

static const struct tfc_op_def data_dataset_signature_rows[] = {
    DATASET(
        "GroupByWindowDataset",
        "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, reduce_func_other_arguments: "
        "Treduce_func_other_arguments, window_size_func_other_arguments: Twindow_size_func_other_arguments",
        "key_func: func, reduce_func: func, window_size_func: func, Tkey_func_other_arguments: list(type) >= 0, "
        "Treduce_func_other_arguments: list(type) >= 0, Twindow_size_func_other_arguments: list(type) >= 0, " KINDS),
    DATASET("ParallelInterleaveDataset",
            "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, sloppy: "
            "bool, buffer_output_elements: int64, prefetch_input_elements: int64",
            "f: func, Targuments: list(type) >= 0, " KINDS),
    DATASET("LegacyParallelInterleaveDatasetV2",
            "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, "
            "buffer_output_elements: int64, prefetch_input_elements: int64",
            "f: func, deterministic: string = 'default', Targuments: list(type) >= 0, " KINDS),
    DATASET("MapAndBatchDataset",
            "input_dataset: variant, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, "
            "drop_remainder: bool",
            "f: func, Targuments: list(type) >= 0, " KINDS ", preserve_cardinality: bool = false"),
    DATASET("ShuffleDatasetV2", "input_dataset: variant, buffer_size: int64, seed_generator: resource", KINDS),
    ROW("AssertCardinalityDataset", "input_dataset: variant, cardinality: int64", "handle: variant", KINDS,
        ops_shape_scalar),
    ROW("AutoShardDataset", "input_dataset: variant, num_workers: int64, index: int64", "handle: variant",
        "auto_shard_policy: int = 0, " KINDS ", num_replicas: int = 0", ops_shape_scalar),
    ROW("RebatchDataset", "input_dataset: variant, num_replicas: int64", "handle: variant",
        KINDS ", use_fallback: bool = true", ops_shape_scalar),
    ROW("RebatchDatasetV2", "input_dataset: variant, batch_sizes: int64, drop_remainder: bool", "handle: variant",
        KINDS, ops_shape_scalar),
    DATASET("UnbatchDataset", "input_dataset: variant", KINDS),
    DATASET("UniqueDataset", "input_dataset: variant", KINDS),
    DATASET("RandomDataset", "seed: int64, seed2: int64", KINDS),
    DATASET("RandomDatasetV2", "seed: int64, seed2: int64, seed_generator: resource",
            "rerandomize_each_iteration: bool = false, " KINDS),
    ROW("SamplingDataset", "input_dataset: variant, rate: float, seed: int64, seed2: int64", "handle: variant", KINDS,
        ops_shape_scalar),
    ROW("SparseTensorSliceDataset", "indices: int64, values: Tvalues, dense_shape: int64", "handle: variant",
        "Tvalues: type", ops_shape_scalar),
    ROW("CSVDataset",
        "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, "
        "use_quote_delim: bool, na_value: string, select_cols: int64, record_defaults: output_types",
        "handle: variant",
        "output_types: list({float, double, int32, int64, string}) >= 1, output_shapes: list(shape) >= 1",
        ops_shape_scalar),
    ROW("CSVDatasetV2",
        "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, "
        "use_quote_delim: bool, na_value: string, select_cols: int64, record_defaults: output_types, exclude_cols: "
        "int64",
        "handle: variant",
        "output_types: list({float, double, int32, int64, string}) >= 1, output_shapes: list(shape) >= 1",
        ops_shape_scalar),
    ROW("ParseExampleDataset", "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense",
        "handle: variant",
        "sparse_keys: list(string) >= 0, dense_keys: list(string) >= 0, sparse_types: list({float, int64, string}) >= "
        "0, Tdense: list({float, int64, string}) >= 0, dense_shapes: list(shape) >= 0, " KINDS
        ", sloppy: bool = false, ragged_keys: list(string) >= 0 = [], ragged_value_types: list({float, int64, string}) "
        ">= 0 = [], ragged_split_types: list({int32, int64}) >= 0 = []",
        ops_shape_scalar),
    ROW("ParseExampleDatasetV2", "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense",
        "handle: variant",
        "sparse_keys: list(string) >= 0, dense_keys: list(string) >= 0, sparse_types: list({float, int64, string}) >= "
        "0, Tdense: list({float, int64, string}) >= 0, dense_shapes: list(shape) >= 0, " KINDS
        ", deterministic: string = 'default', ragged_keys: list(string) >= 0 = [], ragged_value_types: list({float, "
        "int64, string}) >= 0 = [], ragged_split_types: list({int32, int64}) >= 0 = []",
        ops_shape_scalar),
    ROW("IgnoreErrorsDataset", "input_dataset: variant", "handle: variant", KINDS ", log_warning: bool = false",
        ops_shape_scalar),
    ROW("ThreadPoolDataset", "input_dataset: variant, thread_pool: resource", "handle: variant", KINDS,
        ops_shape_scalar),
    DATASET("GeneratorDataset",
            "init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args, finalize_func_other_args: "
            "Tfinalize_func_args",
            "init_func: func, next_func: func, finalize_func: func, Tinit_func_args: list(type) >= 0, Tnext_func_args: "
            "list(type) >= 0, Tfinalize_func_args: list(type) >= 0, " KINDS),
    ROW("GroupByReducerDataset",
        "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, init_func_other_arguments: "
        "Tinit_func_other_arguments, reduce_func_other_arguments: Treduce_func_other_arguments, "
        "finalize_func_other_arguments: Tfinalize_func_other_arguments",
        "handle: variant",
        "key_func: func, init_func: func, reduce_func: func, finalize_func: func, Tkey_func_other_arguments: "
        "list(type) >= 0, Tinit_func_other_arguments: list(type) >= 0, Treduce_func_other_arguments: list(type) >= 0, "
        "Tfinalize_func_other_arguments: list(type) >= 0, " KINDS,
        ops_shape_scalar),
    ROW("DirectedInterleaveDataset", "selector_input_dataset: variant, data_input_datasets: N * variant",
        "handle: variant", KINDS ", N: int >= 1, stop_on_empty_dataset: bool = false", ops_shape_scalar),
    ROW("ChooseFastestDataset", "input_datasets: N * variant", "handle: variant",
        "N: int >= 2, num_experiments: int, " KINDS, ops_shape_scalar),
    ROW("ChooseFastestBranchDataset",
        "input_dataset: variant, ratio_numerator: int64, ratio_denominator: int64, other_arguments: Targuments",
        "handle: variant",
        "Targuments: list(type) >= 0, num_elements_per_branch: int >= 1, branches: list(func) >= 1, "
        "other_arguments_lengths: list(int) >= 1, " KINDS,
        ops_shape_scalar),
    ROW("DenseToSparseBatchDataset", "input_dataset: variant, batch_size: int64, row_shape: int64", "handle: variant",
        KINDS, ops_shape_scalar),
    ROW("MatchingFilesDataset", "patterns: string", "handle: variant", "", ops_shape_scalar),
    ROW("SlidingWindowDataset", "input_dataset: variant, window_size: int64, window_shift: int64, window_stride: int64",
        "handle: variant", "drop_remainder: bool = true, " KINDS, ops_shape_scalar),
    ROW("LatencyStatsDataset", "input_dataset: variant, tag: string", "handle: variant", KINDS, ops_shape_scalar),
    ROW("BytesProducedStatsDataset", "input_dataset: variant, tag: string", "handle: variant", KINDS, ops_shape_scalar),
    ROW("SetStatsAggregatorDataset",
        "input_dataset: variant, stats_aggregator: resource, tag: string, counter_prefix: string", "handle: variant",
        KINDS, ops_shape_scalar),
    ROW("SnapshotDataset", "input_dataset: variant, path: string", "handle: variant",
        KINDS
        ", compression: string = '', reader_path_prefix: string = '', writer_path_prefix: string = '', "
        "shard_size_bytes: int = 10737418240, pending_snapshot_expiry_seconds: int = 86400, num_reader_threads: int = "
        "1, reader_buffer_size: int = 1, num_writer_threads: int = 1, writer_buffer_size: int = 1, shuffle_on_read: "
        "bool = false, seed: int = 0, seed2: int = 0, mode: string = 'auto', snapshot_name: string = ''",
        ops_shape_scalar),
    DATASET("SnapshotDatasetV2",
            "input_dataset: variant, path: string, reader_func_other_args: Treader_func_args, shard_func_other_args: "
            "Tshard_func_args",
            KINDS ", compression: string = '', reader_prefix: string = '', writer_prefix: string = '', hash_valid: "
                  "bool = false, hash: int = 0, reader_func: func, shard_func: func, Treader_func_args: list(type) >= "
                  "0, Tshard_func_args: list(type) >= 0"),
    ROW("SaveDataset", "input_dataset: variant, path: string, shard_func_other_args: Tshard_func_args", "",
        "compression: string = '', shard_func: func, use_shard_func: bool = true, Tshard_func_args: list(type) >= 0",
        ops_shape_none),
    ROW("SaveDatasetV2", "input_dataset: variant, path: string, shard_func_other_args: Tshard_func_args",
        "handle: variant",
        "compression: string = '', shard_func: func, use_shard_func: bool = true, Tshard_func_args: list(type) >= "
        "0, " KINDS,
        ops_shape_scalar),
    ROW("LoadDataset", "path: string, reader_func_other_args: Treader_func_args", "handle: variant",
        KINDS ", compression: string = '', reader_func: func, Treader_func_args: list(type) >= 0", ops_shape_scalar),
    DATASET("ListDataset", "tensors: Tinput_types", "Tinput_types: list(type) >= 1, " KINDS),
    ROW("SqlDataset", "driver_name: string, data_source_name: string, query: string", "handle: variant", KINDS,
        ops_shape_scalar),
    ROW("ExperimentalMapAndBatchDataset",
        "input_dataset: variant, other_arguments: Targuments, batch_size: int64, num_parallel_calls: int64, "
        "drop_remainder: bool",
        "handle: variant", "f: func, Targuments: list(type) >= 0, " KINDS ", preserve_cardinality: bool = false",
        ops_shape_scalar),
    ROW("ExperimentalParallelInterleaveDataset",
        "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, block_length: int64, sloppy: bool, "
        "buffer_output_elements: int64, prefetch_input_elements: int64",
        "handle: variant", "f: func, Targuments: list(type) >= 0, " KINDS, ops_shape_scalar),
    ROW("ExperimentalUnbatchDataset", "input_dataset: variant", "handle: variant", KINDS, ops_shape_scalar),
    ROW("ExperimentalGroupByWindowDataset",
        "input_dataset: variant, key_func_other_arguments: Tkey_func_other_arguments, reduce_func_other_arguments: "
        "Treduce_func_other_arguments, window_size_func_other_arguments: Twindow_size_func_other_arguments",
        "handle: variant",
        "key_func: func, reduce_func: func, window_size_func: func, Tkey_func_other_arguments: list(type) >= 0, "
        "Treduce_func_other_arguments: list(type) >= 0, Twindow_size_func_other_arguments: list(type) >= 0, " KINDS,
        ops_shape_scalar),
    ROW("ExperimentalRebatchDataset", "input_dataset: variant, num_replicas: int64", "handle: variant",
        KINDS ", use_fallback: bool = true", ops_shape_scalar),
    ROW("ExperimentalIgnoreErrorsDataset", "input_dataset: variant", "handle: variant",
        KINDS ", log_warning: bool = false", ops_shape_scalar),
    ROW("ExperimentalScanDataset", "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
        "handle: variant",
        "f: func, Tstate: list(type) >= 1, Targuments: list(type) >= 0, " KINDS ", preserve_cardinality: bool = false",
        ops_shape_scalar),
    ROW("ExperimentalPrivateThreadPoolDataset", "input_dataset: variant, num_threads: int64", "handle: variant", KINDS,
        ops_shape_scalar),
    ROW("ExperimentalMaxIntraOpParallelismDataset", "input_dataset: variant, max_intra_op_parallelism: int64",
        "handle: variant", KINDS, ops_shape_scalar),
    ROW("ExperimentalAutoShardDataset", "input_dataset: variant, num_workers: int64, index: int64", "handle: variant",
        "auto_shard_policy: int = 0, " KINDS, ops_shape_scalar),
    ROW("ExperimentalParseExampleDataset", "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense",
        "handle: variant",
        "sparse_keys: list(string) >= 0, dense_keys: list(string) >= 0, sparse_types: list({float, int64, string}) >= "
        "0, Tdense: list({float, int64, string}) >= 0, dense_shapes: list(shape) >= 0, " KINDS ", sloppy: bool = false",
        ops_shape_scalar),
    ROW("ExperimentalDirectedInterleaveDataset", "selector_input_dataset: variant, data_input_datasets: N * variant",
        "handle: variant", KINDS ", N: int >= 1", ops_shape_scalar),
    ROW("ExperimentalDenseToSparseBatchDataset", "input_dataset: variant, batch_size: int64, row_shape: int64",
        "handle: variant", KINDS, ops_shape_scalar),
    ROW("ExperimentalUniqueDataset", "input_dataset: variant", "handle: variant", KINDS, ops_shape_scalar),
    ROW("ExperimentalTakeWhileDataset", "input_dataset: variant, other_arguments: Targuments", "handle: variant",
        "predicate: func, Targuments: list(type) >= 0, " KINDS, ops_shape_scalar),
    ROW("ExperimentalSlidingWindowDataset",
        "input_dataset: variant, window_size: int64, window_shift: int64, window_stride: int64", "handle: variant",
        KINDS, ops_shape_scalar),
    ROW("IteratorGetDevice", "resource: resource", "device: string", "", ops_shape_scalar),
    ROW("DatasetCardinality", "input_dataset: variant", "cardinality: int64", "cardinality_options: string = ''",
        ops_shape_scalar),
    ROW("MultiDeviceIterator", "", "handle: resource",
        "devices: list(string) >= 1, shared_name: string, container: string, " KINDS, ops_shape_scalar),
    ROW("AnonymousMultiDeviceIterator", "", "handle: resource, deleter: variant", "devices: list(string) >= 1, " KINDS,
        ops_shape_scalar),
    ROW("AnonymousMultiDeviceIteratorV3", "", "handle: resource", "devices: list(string) >= 1, " KINDS,
        ops_shape_scalar),
    ROW("MultiDeviceIteratorInit", "dataset: variant, multi_device_iterator: resource, max_buffer_size: int64",
        "incarnation_id: int64", "", ops_shape_scalar),
    ROW("MultiDeviceIteratorGetNextFromShard",
        "multi_device_iterator: resource, shard_num: int32, incarnation_id: int64", "components: output_types", KINDS,
        tfc_dataset_shape_next),
    ROW("MultiDeviceIteratorToStringHandle", "multi_device_iterator: resource", "string_handle: string", "",
        ops_shape_scalar),
    ROW("MultiDeviceIteratorFromStringHandle", "string_handle: string", "multi_device_iterator: resource",
        "output_types: list(type) >= 0 = [], output_shapes: list(shape) >= 0 = []", ops_shape_scalar),
    ROW("DeleteMultiDeviceIterator", "multi_device_iterator: resource, iterators: N * resource, deleter: variant", "",
        "N: int >= 0", ops_shape_none),
    ROW("AnonymousSeedGenerator", "seed: int64, seed2: int64, reshuffle: bool", "handle: resource, deleter: variant",
        "", ops_shape_scalar),
    ROW("AnonymousRandomSeedGenerator", "seed: int64, seed2: int64", "handle: resource, deleter: variant", "",
        ops_shape_scalar),
    ROW("DeleteSeedGenerator", "handle: resource, deleter: variant", "", "", ops_shape_none),
    ROW("DeleteRandomSeedGenerator", "handle: resource, deleter: variant", "", "", ops_shape_none),
    ROW("AnonymousMemoryCache", "", "handle: resource, deleter: variant", "", ops_shape_scalar),
    ROW("DeleteMemoryCache", "handle: resource, deleter: variant", "", "", ops_shape_none),
    ROW("ThreadPoolHandle", "", "handle: resource",
        "num_threads: int, max_intra_op_parallelism: int = 1, display_name: string, container: string = '', "
        "shared_name: string = ''",
        ops_shape_scalar),
    ROW("WrapDatasetVariant", "input_handle: variant", "output_handle: variant", "", ops_shape_scalar),
    ROW("UnwrapDatasetVariant", "input_handle: variant", "output_handle: variant", "", ops_shape_scalar),
};
TFC_REGISTER_OPS(data_dataset_signature_rows);
