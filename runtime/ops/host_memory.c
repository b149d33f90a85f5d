// TensorFlow keeps small integers (shapes, axes, counters) in host memory: for GPUs, it registers most kernels for
// int32 with all operands in host memory. Then operations on them cost no launch and no copy, and code that needs their
// values does not wait for the device.
#include "runtime/ops/host_memory.h"

#include <stdlib.h>

enum { I32 = TFC_TYPE_BIT(TFC_INT32), I64 = TFC_TYPE_BIT(TFC_INT64), TRUTH = TFC_TYPE_BIT(TFC_BOOL) };
#define HELD TFC_HOST_HELD
#define NO_KERNEL TFC_HOST_NO_KERNEL

// The ops of this table are taken from the kernels that TensorFlow 2.15.1 registers for GPUs (listed by
// tensorflow.python.framework.kernels): ops that have all operands in host memory if the attribute has one of the
// types, but not for every type. Also listed are ops with GPU kernels but none for int32: TensorFlow puts these on the
// CPU (soft placement), with the variables and TensorArrays that they refer to. (For other types than int32, tfc has
// GPU kernels of its own.) Not listed are ops that pass values on in place (Switch, Merge, Enter and similar ops) and
// lists (variants are on the host).
//
// Exception: TensorFlow has the inputs of OnesLike and ZerosLike in device memory, and copies a host tensor to the
// device although its elements are not read. tfc does not copy it.
static const struct tfc_host_op table[] = {
    {"Abs", "T", I32, HELD},
    {"Add", "T", I32, HELD},
    {"AddN", "T", I32, HELD},
    {"AddV2", "T", I32, HELD},
    {"ArgMax", "T", I32, NO_KERNEL},
    {"ArgMin", "T", I32, NO_KERNEL},
    {"Assign", "T", I32, NO_KERNEL},
    {"AssignAdd", "T", I32, NO_KERNEL},
    {"AssignAddVariableOp", "dtype", I32, NO_KERNEL},
    {"AssignSub", "T", I32, NO_KERNEL},
    {"AssignSubVariableOp", "dtype", I32, NO_KERNEL},
    {"AssignVariableOp", "dtype", I32, NO_KERNEL},
    {"BatchMatMul", "T", I32, NO_KERNEL},
    {"BatchMatMulV2", "T", I32, NO_KERNEL},
    {"BatchMatMulV3", "Ta", I32, NO_KERNEL},
    {"BatchMatrixBandPart", "T", I32, NO_KERNEL},
    {"BatchMatrixDiag", "T", I32, NO_KERNEL},
    {"BatchMatrixDiagPart", "T", I32, NO_KERNEL},
    {"BatchMatrixSetDiag", "T", I32, NO_KERNEL},
    {"BatchToSpace", "T", I32, NO_KERNEL},
    {"BatchToSpaceND", "T", I32, NO_KERNEL},
    {"BiasAddGrad", "T", I32, NO_KERNEL},
    {"BroadcastTo", "T", I32, HELD},
    {"ClipByValue", "T", I32, HELD},
    {"Concat", "T", I32, HELD},
    {"ConcatV2", "T", I32, HELD},
    {"CountUpTo", "T", I32, NO_KERNEL},
    {"CropAndResize", "T", I32, NO_KERNEL},
    {"CropAndResizeGradBoxes", "T", I32, NO_KERNEL},
    {"DeepCopy", "T", I32, HELD},
    {"DepthToSpace", "T", I32, NO_KERNEL},
    {"DestroyTemporaryVariable", "T", I32, NO_KERNEL},
    {"Dilation2D", "T", I32, NO_KERNEL},
    {"Dilation2DBackpropFilter", "T", I32, NO_KERNEL},
    {"Dilation2DBackpropInput", "T", I32, NO_KERNEL},
    {"Div", "T", I32, HELD},
    {"Einsum", "T", I32, NO_KERNEL},
    {"EnsureShape", "T", I32 | TRUTH, HELD},
    {"Equal", "T", I32, HELD},
    {"EuclideanNorm", "T", I32, NO_KERNEL},
    {"ExpandDims", "T", I32, HELD},
    {"ExtractImagePatches", "T", I32, NO_KERNEL},
    {"ExtractVolumePatches", "T", I32, NO_KERNEL},
    {"Fill", "T", I32, HELD},
    {"FloorDiv", "T", I32, HELD},
    {"FloorMod", "T", I32, HELD},
    {"Greater", "T", I32, HELD},
    {"GreaterEqual", "T", I32, HELD},
    {"HistogramFixedWidth", "T", I32, NO_KERNEL},
    {"Identity", "T", I32, HELD},
    {"InplaceAdd", "T", I32, HELD},
    {"InplaceSub", "T", I32, HELD},
    {"InplaceUpdate", "T", I32, HELD},
    {"IsVariableInitialized", "dtype", I32, NO_KERNEL},
    {"Less", "T", I32, HELD},
    {"LessEqual", "T", I32, HELD},
    {"MatMul", "T", I32, NO_KERNEL},
    {"MatrixBandPart", "T", I32, NO_KERNEL},
    {"MatrixDiag", "T", I32, NO_KERNEL},
    {"MatrixDiagPart", "T", I32, NO_KERNEL},
    {"MatrixDiagPartV2", "T", I32, NO_KERNEL},
    {"MatrixDiagPartV3", "T", I32, NO_KERNEL},
    {"MatrixDiagV2", "T", I32, NO_KERNEL},
    {"MatrixDiagV3", "T", I32, NO_KERNEL},
    {"MatrixSetDiag", "T", I32, NO_KERNEL},
    {"MatrixSetDiagV2", "T", I32, NO_KERNEL},
    {"MatrixSetDiagV3", "T", I32, NO_KERNEL},
    {"Max", "T", I32, HELD},
    {"MaxPool", "T", I32, NO_KERNEL},
    {"MaxPoolGrad", "T", I32, NO_KERNEL},
    {"MaxPoolGradGrad", "T", I32, NO_KERNEL},
    {"MaxPoolGradGradV2", "T", I32, NO_KERNEL},
    {"MaxPoolGradV2", "T", I32, NO_KERNEL},
    {"MaxPoolGradWithArgmax", "T", I32, NO_KERNEL},
    {"MaxPoolV2", "T", I32, NO_KERNEL},
    {"MaxPoolWithArgmax", "T", I32, NO_KERNEL},
    {"Maximum", "T", I32, HELD},
    {"Mean", "T", I32, NO_KERNEL},
    {"Min", "T", I32, HELD},
    {"Minimum", "T", I32, HELD},
    {"MirrorPad", "T", I32, NO_KERNEL},
    {"MirrorPadGrad", "T", I32, NO_KERNEL},
    {"Mod", "T", I32, HELD},
    {"Mul", "T", I32, HELD},
    {"Neg", "T", I32, HELD},
    {"NotEqual", "T", I32, HELD},
    {"OnesLike", "T", I32, HELD},
    {"Pack", "T", I32, HELD},
    {"Pad", "T", I32, HELD},
    {"PadV2", "T", I32, HELD},
    {"ParallelConcat", "T", I32, NO_KERNEL},
    {"PlaceholderWithDefault", "dtype", I32, HELD},
    {"Pow", "T", I32, NO_KERNEL},
    {"PreventGradient", "T", I32, NO_KERNEL},
    {"Range", "Tidx", I32, HELD},
    {"Rank", "T", I32 | TRUTH, HELD},
    {"ReadVariableOp", "dtype", I32, NO_KERNEL},
    {"RefIdentity", "T", I32, HELD},
    {"RefSelect", "T", I32, NO_KERNEL},
    {"Relu", "T", I32, NO_KERNEL},
    {"Relu6", "T", I32, NO_KERNEL},
    {"Relu6Grad", "T", I32, NO_KERNEL},
    {"ReluGrad", "T", I32, NO_KERNEL},
    {"Reshape", "T", I32, HELD},
    {"ResizeBilinear", "T", I32, NO_KERNEL},
    {"ResizeNearestNeighbor", "T", I32, NO_KERNEL},
    {"ResizeNearestNeighborGrad", "T", I32, NO_KERNEL},
    {"ResourceCountUpTo", "T", I32, NO_KERNEL},
    {"ResourceGather", "dtype", I32, NO_KERNEL},
    {"ResourceGatherNd", "dtype", I32, NO_KERNEL},
    {"ResourceScatterAdd", "dtype", I32, NO_KERNEL},
    {"ResourceScatterDiv", "dtype", I32, NO_KERNEL},
    {"ResourceScatterMax", "dtype", I32, NO_KERNEL},
    {"ResourceScatterMin", "dtype", I32, NO_KERNEL},
    {"ResourceScatterMul", "dtype", I32, NO_KERNEL},
    {"ResourceScatterNdAdd", "T", I32, HELD},
    {"ResourceScatterNdMax", "T", I32, HELD},
    {"ResourceScatterNdMin", "T", I32, HELD},
    {"ResourceScatterNdSub", "T", I32, HELD},
    {"ResourceScatterNdUpdate", "T", I32, HELD},
    {"ResourceScatterSub", "dtype", I32, NO_KERNEL},
    {"ResourceScatterUpdate", "dtype", I32, NO_KERNEL},
    {"ResourceStridedSliceAssign", "T", I32, HELD},
    {"Reverse", "T", I32, HELD},
    {"ReverseSequence", "T", I32, NO_KERNEL},
    {"ReverseV2", "T", I32, HELD},
    {"ScatterAdd", "T", I32, NO_KERNEL},
    {"ScatterDiv", "T", I32, NO_KERNEL},
    {"ScatterMax", "T", I32, NO_KERNEL},
    {"ScatterMin", "T", I32, NO_KERNEL},
    {"ScatterMul", "T", I32, NO_KERNEL},
    {"ScatterNd", "T", I32, HELD},
    {"ScatterNdAdd", "T", I32, HELD},
    {"ScatterNdMax", "T", I32, HELD},
    {"ScatterNdMin", "T", I32, HELD},
    {"ScatterNdNonAliasingAdd", "T", I32, HELD},
    {"ScatterNdSub", "T", I32, HELD},
    {"ScatterNdUpdate", "T", I32, HELD},
    {"ScatterSub", "T", I32, NO_KERNEL},
    {"ScatterUpdate", "T", I32, NO_KERNEL},
    {"SegmentMax", "T", I32, NO_KERNEL},
    {"SegmentMean", "T", I32, NO_KERNEL},
    {"SegmentMin", "T", I32, NO_KERNEL},
    {"SegmentProd", "T", I32, NO_KERNEL},
    {"SegmentSum", "T", I32, NO_KERNEL},
    {"Shape", "T", I32, HELD},
    {"ShapeN", "T", I32, HELD},
    {"Sign", "T", I32, HELD},
    {"Size", "T", I32, HELD},
    {"Slice", "T", I32, HELD},
    {"SpaceToBatch", "T", I32, NO_KERNEL},
    {"SpaceToBatchND", "T", I32, NO_KERNEL},
    {"SpaceToDepth", "T", I32, NO_KERNEL},
    {"SparseSegmentSum", "T", I32, NO_KERNEL},
    {"SparseSegmentSumWithNumSegments", "T", I32, NO_KERNEL},
    {"SparseTensorDenseMatMul", "T", I32, NO_KERNEL},
    {"Split", "T", I32, NO_KERNEL},
    {"SplitV", "T", I32, HELD},
    {"Square", "T", I32, HELD},
    {"SquaredDifference", "T", I32, HELD},
    {"Squeeze", "T", I32, HELD},
    {"StackPop", "elem_type", I32 | TRUTH, HELD},
    {"StackPopV2", "elem_type", I32 | TRUTH, HELD},
    {"StackPush", "T", I32 | TRUTH, HELD},
    {"StackPushV2", "T", I32 | TRUTH, HELD},
    {"StopGradient", "T", I32, HELD},
    {"StridedSlice", "T", I32, HELD},
    {"StridedSliceAssign", "T", I32, HELD},
    {"StridedSliceGrad", "T", I32, HELD},
    {"Sub", "T", I32, HELD},
    {"Sum", "T", I32, HELD},
    {"TemporaryVariable", "dtype", I32, NO_KERNEL},
    {"TensorArray", "dtype", I32, NO_KERNEL},
    {"TensorArrayConcat", "dtype", I32, NO_KERNEL},
    {"TensorArrayConcatV2", "dtype", I32, NO_KERNEL},
    {"TensorArrayConcatV3", "dtype", I32, NO_KERNEL},
    {"TensorArrayGather", "dtype", I32, NO_KERNEL},
    {"TensorArrayGatherV2", "dtype", I32, NO_KERNEL},
    {"TensorArrayGatherV3", "dtype", I32, NO_KERNEL},
    {"TensorArrayPack", "dtype", I32, NO_KERNEL},
    {"TensorArrayRead", "dtype", I32, NO_KERNEL},
    {"TensorArrayReadV2", "dtype", I32, NO_KERNEL},
    {"TensorArrayReadV3", "dtype", I32, NO_KERNEL},
    {"TensorArrayScatter", "T", I32, NO_KERNEL},
    {"TensorArrayScatterV2", "T", I32, NO_KERNEL},
    {"TensorArrayScatterV3", "T", I32, NO_KERNEL},
    {"TensorArraySplit", "T", I32, NO_KERNEL},
    {"TensorArraySplitV2", "T", I32, NO_KERNEL},
    {"TensorArraySplitV3", "T", I32, NO_KERNEL},
    {"TensorArrayUnpack", "T", I32, NO_KERNEL},
    {"TensorArrayV2", "dtype", I32, NO_KERNEL},
    {"TensorArrayV3", "dtype", I32, NO_KERNEL},
    {"TensorArrayWrite", "T", I32, NO_KERNEL},
    {"TensorArrayWriteV2", "T", I32, NO_KERNEL},
    {"TensorArrayWriteV3", "T", I32, NO_KERNEL},
    {"TensorScatterAdd", "T", I32, HELD},
    {"TensorScatterMax", "T", I32, HELD},
    {"TensorScatterMin", "T", I32, HELD},
    {"TensorScatterSub", "T", I32, HELD},
    {"TensorScatterUpdate", "T", I32, HELD},
    {"TensorStridedSliceUpdate", "T", I32, HELD},
    {"TruncateDiv", "T", I32, NO_KERNEL},
    {"TruncateMod", "T", I32, HELD},
    {"Unpack", "T", I32 | I64, HELD},
    {"VarHandleOp", "dtype", I32, NO_KERNEL},
    {"Variable", "dtype", I32, NO_KERNEL},
    {"VariableV2", "dtype", I32, NO_KERNEL},
    {"Where", "T", I32, HELD},
    {"ZerosLike", "T", I32, HELD},
};

static int by_name(const void *name, const void *row) {
  return strcmp(name, ((const struct tfc_host_op *)row)->op);
}

static const struct tfc_host_op *row_of(const struct tfc_op_def *def) {
  return bsearch(def->name, table, sizeof table / sizeof *table, sizeof *table, by_name);
}

// Returns the type that the node's attribute has, or the op's default if the node leaves it out.
static tfc_dtype type_of(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_op_def *def,
                         const char *attr) {
  tfc_dtype type = tfc_node_attr_type(g, n, attr, TFC_DTYPE_NONE);
  const struct tfc_op_signature *signature = type == TFC_DTYPE_NONE ? tfc_op_signature(def) : NULL;
  for (uint32_t i = 0; signature && i < signature->attr_count; i++) {
    const struct tfc_op_attr *a = &signature->attrs[i];
    if (tfc_str_is(a->name, attr) && a->has_default && a->kind == TFC_ATTR_TYPE) type = a->default_value.type;
  }
  return tfc_dtype_base(type);
}

// Whether every operand is in host memory.
static bool is_all(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_host_memory *m) {
  bool all = true;
  for (uint32_t k = 0; k < n->input_count && all; k++)
    all = tfc_host_bit(m->inputs, k) ||
          !tfc_dtype_is_plain(tfc_dtype_base(tfc_output_dtype(g, tfc_node_inputs(g, n)[k])));
  for (uint32_t k = 0; k < n->output_count && all; k++)
    all = tfc_host_bit(m->outputs, k) || !tfc_dtype_is_plain(tfc_dtype_base(g->output_dtypes[n->output_begin + k]));
  return all;
}

struct tfc_host_memory tfc_host_memory(const struct tfc_graph *g, const struct tfc_node *n,
                                       const struct tfc_op_def *def) {
  struct tfc_host_memory m = {0};
  if (!def) return m;
  m = (struct tfc_host_memory){.inputs = def->host_inputs, .outputs = def->host_outputs};
  if (def != n->def || def->flags & TFC_OP_FUNCTIONAL) return m;
  const struct tfc_host_op *row = row_of(def);
  if (row && row->types & TFC_TYPE_BIT(type_of(g, n, def, row->attr))) m.inputs = m.outputs = UINT32_MAX;
  m.all = is_all(g, n, &m);
  return m;
}

uint32_t tfc_host_types(const struct tfc_op_def *def) {
  const struct tfc_host_op *row = row_of(def);
  return row ? row->types : 0;
}

bool tfc_host_variable(tfc_dtype dtype) {
  return tfc_dtype_base(dtype) == TFC_INT32;
}

const struct tfc_host_op *tfc_host_ops(size_t *out_count) {
  *out_count = sizeof table / sizeof *table;
  return table;
}
