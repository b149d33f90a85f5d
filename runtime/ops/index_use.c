#include "runtime/ops/index_use.h"

static const struct {
  const char *op;
  tfc_index_use use;
} rows[] = {
    {"Gather", TFC_INDEX_ROWS},
    {"GatherV2", TFC_INDEX_ROWS},
    {"ResourceGather", TFC_INDEX_ROWS_OF_HANDLE},
    {"SparseSoftmaxCrossEntropyWithLogits", TFC_INDEX_CLASSES},
    {"InTopK", TFC_INDEX_TOP},
    {"InTopKV2", TFC_INDEX_TOP},
    {"OneHot", TFC_INDEX_ONE_HOT},
    {"UnsortedSegmentSum", TFC_INDEX_SEGMENTS},
    {"DynamicPartition", TFC_INDEX_PARTITIONS},
    {"ReverseSequence", TFC_INDEX_LENGTHS},
    {"Less", TFC_INDEX_COMPARED},
    {"LessEqual", TFC_INDEX_COMPARED},
    {"Greater", TFC_INDEX_COMPARED},
    {"GreaterEqual", TFC_INDEX_COMPARED},
    {"FloorDiv", TFC_INDEX_IN_PIECES},
    {"Identity", TFC_INDEX_MOVED},
    {"Reshape", TFC_INDEX_MOVED},
    {"Cast", TFC_INDEX_MOVED},
    {"Transpose", TFC_INDEX_MOVED},
    {"ExpandDims", TFC_INDEX_MOVED},
    {"Squeeze", TFC_INDEX_MOVED},
    {"Pack", TFC_INDEX_MOVED},
    {"Unpack", TFC_INDEX_MOVED},
    {"Concat", TFC_INDEX_MOVED},
    {"ConcatV2", TFC_INDEX_MOVED},
    {"Slice", TFC_INDEX_MOVED},
    {"StridedSlice", TFC_INDEX_MOVED},
    {"Split", TFC_INDEX_MOVED},
    {"SplitV", TFC_INDEX_MOVED},
    {"Tile", TFC_INDEX_MOVED},
    {"Enter", TFC_INDEX_MOVED},
    {"RefEnter", TFC_INDEX_MOVED},
    {"Switch", TFC_INDEX_MOVED},
    {"Merge", TFC_INDEX_MOVED},
    {"Exit", TFC_INDEX_MOVED},
    {"Reverse", TFC_INDEX_MOVED},
    {"ReverseV2", TFC_INDEX_MOVED},
    {"StopGradient", TFC_INDEX_MOVED},
    {"Pad", TFC_INDEX_MOVED},
    {"PadV2", TFC_INDEX_MOVED},
    {"TensorArrayScatterV3", TFC_INDEX_MOVED},
    {"TensorListFromTensor", TFC_INDEX_MOVED},
    {"Unique", TFC_INDEX_MOVED},
    {"DynamicStitch", TFC_INDEX_MOVED},
    {"BroadcastTo", TFC_INDEX_MOVED},
    {"Snapshot", TFC_INDEX_MOVED},
    {"PreventGradient", TFC_INDEX_MOVED},
    {"IdentityN", TFC_INDEX_MOVED},
    {"Minimum", TFC_INDEX_MOVED},
    {"Maximum", TFC_INDEX_MOVED},
};

tfc_index_use tfc_op_index_use(tfc_str op) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (tfc_str_is(op, rows[i].op)) return rows[i].use;
  return TFC_INDEX_NONE;
}
