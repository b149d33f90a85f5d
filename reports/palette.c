// The colours of reports. Devices have colours like those of Okabe and Ito and of Tol's scheme "light", operations like
// those of Tol's scheme "muted" (2021), with lighter variants of its dark colours for a dark page. All of them were
// then moved a little by a search that made the least distances larger which tests/reports/palette_test.c measures:
// between any two, on both pages, for four kinds of sight.
#include "reports/palette.h"

#include <stdlib.h>
#include <string.h>

static const uint32_t devices[TFC_DEVICE_COLOURS] = {0x006EAE, 0xEEA719, 0x1EC094, 0xD55E00, 0x39B0ED, 0xA96A96,
                                                     0xE9D109, 0x7A5C43, 0x7AA9DA, 0xED8766, 0x2E3EEB, 0xFEA9BA,
                                                     0x9049F1, 0xBBCB34, 0xA42F16, 0xA5A601};

// A row matches type names by their beginning (MatMul*), their end (*Grad), a part (*Pool*) or the whole name. The
// first row that matches is used.
struct family {
  const char *name;
  uint32_t light, dark;
};
static const struct family families[TFC_OP_FAMILIES] = {
    {"products", 0x332187, 0x8778DE},
    {"convolutions, pooling", 0x89CDED, 0x8ACDEE},
    {"element by element", 0x44A896, 0x45A897},
    {"sums, normalisation", 0x1D7528, 0x299850},
    {"slices, joins, gathers", 0xD9C976, 0xDACC77},
    {"updates of variables", 0xCD6677, 0xCD6777},
    {"control flow, lists", 0x9E3A8B, 0xCB71BF},
    {"random numbers", 0x892255, 0xB23F78},
    {"other types", 0x989732, 0x979732},
};
static const struct {
  uint32_t family;
  const char *patterns;
} rows[] = {
    {5, "Apply* ResourceApply* SparseApply* ResourceSparseApply* Assign* *AssignAdd* *AssignSub* *AssignVariableOp "
        "Scatter* ResourceScatter* *Accumulator* VariableV2 VarHandleOp"},
    {0, "MatMul* BatchMatMul* *MatMul *MatMulGrad Einsum *XentMatMul* LSTMBlock* BlockLSTM* GRUBlock* CudnnRNN* Svd Qr "
        "Cholesky* Matrix*"},
    {1, "Conv1D* Conv2D* Conv3D* Depthwise* *Conv2D* *Conv3D* *Pool* LRN* Dilation2D* Resize* Crop*"},
    {7, "Random* *Random* TruncatedNormal *TruncatedNormal* Multinomial Stateless*"},
    {6, "Switch Merge RefSwitch RefMerge Enter RefEnter Exit NextIteration LoopCond TensorArray* TensorList* Stack* If "
        "StatelessIf While StatelessWhile Case PartitionedCall StatefulPartitionedCall *Queue* *Barrier* Map*"},
    {3,
     "Sum Mean Prod Max Min All Any ArgMax ArgMin *Softmax* *SoftmaxCrossEntropy* FusedBatchNorm* *BatchNorm* L2Loss "
     "L2Normalize BiasAddGrad AddN Cumsum Cumprod Segment* UnsortedSegment* SparseSegment* Norm LogSumExp *LayerNorm* "
     "TopK* InTopK*"},
    {4, "Concat* Split* Slice StridedSlice* Pack Unpack Gather* Pad* MirrorPad* Transpose Tile Reshape Squeeze "
        "ExpandDims Identity* Shape* Fill ZerosLike OnesLike BroadcastTo BroadcastGradientArgs OneHot Range Reverse* "
        "InvertPermutation Where DynamicStitch DynamicPartition SpaceTo* DepthToSpace BatchToSpace* Const Placeholder* "
        "ConcatOffset Rank Size Unique* Diag* Roll ParallelConcat"},
    {2,
     "Add AddV2 Sub Mul RealDiv Div* Floor* Mod Neg Abs Exp* Log* Sqrt* Rsqrt* Square* Pow Tanh* Sigmoid* Relu* Elu* "
     "Selu* Softplus* Softsign* LeakyRelu* BiasAdd* Maximum Minimum Greater* Less* Equal NotEqual Select* Cast Clip* "
     "Sign Reciprocal* Inv* Erf* Sin Cos Tan Round Rint Ceil Is* Dropout* Quantize* Dequantize* Fake* *Grad "
     "LogicalAnd LogicalOr LogicalNot Xdivy Xlogy Truncate* Bitwise* Betainc Lgamma Digamma"},
};

static bool fits(tfc_str op, const char *pattern, size_t size) {
  bool before = size > 1 && pattern[0] == '*', after = size > 1 && pattern[size - 1] == '*';
  tfc_str core = {pattern + before, size - before - after};
  if (before && after) {
    for (size_t i = 0; i + core.size <= op.size; i++)
      if (memcmp(op.data + i, core.data, core.size) == 0) return true;
    return false;
  }
  if (op.size < core.size || (!before && !after && op.size != core.size)) return false;
  return memcmp(before ? op.data + op.size - core.size : op.data, core.data, core.size) == 0;
}

uint32_t tfc_palette_family(tfc_str op) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (const char *p = rows[i].patterns; *p;) {
      size_t size = strcspn(p, " ");
      if (fits(op, p, size)) return rows[i].family;
      p += size + (p[size] == ' ');
    }
  return TFC_OP_FAMILIES - 1;
}
const char *tfc_palette_family_name(uint32_t family) {
  return families[family].name;
}
uint32_t tfc_palette_family_rgb(uint32_t family) {
  return families[family].light;
}

// Up to sixteen devices of one kind differ, and so do the first devices of kinds that are used together.
uint32_t tfc_palette_device(tfc_str name) {
  enum { OF_GPUS = TFC_DEVICE_COLOURS / 2, OF_OTHERS = TFC_DEVICE_COLOURS / 4 };
  uint32_t number = 0;
  size_t digits = name.size;
  while (digits > 0 && name.data[digits - 1] >= '0' && name.data[digits - 1] <= '9') digits--;
  for (size_t i = digits; i < name.size; i++) number = (number * 10 + (uint32_t)(name.data[i] - '0')) % (1u << 24);
  const uint32_t first = tfc_str_starts(name, "cpu") || tfc_str_is(name, "host")       ? 0
                         : tfc_str_starts(name, "gpu") || tfc_str_starts(name, "vgpu") ? OF_GPUS
                                                                                       : OF_OTHERS;
  return (number + first) % TFC_DEVICE_COLOURS;
}
uint32_t tfc_palette_device_rgb(uint32_t index) {
  return devices[index % TFC_DEVICE_COLOURS];
}

void tfc_palette_css(struct tfc_text *out) {
  tfc_text_printf(out, ":root {");
  for (uint32_t i = 0; i < TFC_DEVICE_COLOURS; i++) tfc_text_printf(out, " --d%u: #%06x;", i, devices[i]);
  for (uint32_t i = 0; i < TFC_OP_FAMILIES; i++) tfc_text_printf(out, " --f%u: #%06x;", i, families[i].light);
  tfc_text_printf(out, " --accent: #%06x;", TFC_PALETTE_ACCENT);
  tfc_text_printf(out, " }\n@media screen and (prefers-color-scheme: dark) { :root {");
  for (uint32_t i = 0; i < TFC_OP_FAMILIES; i++) tfc_text_printf(out, " --f%u: #%06x;", i, families[i].dark);
  tfc_text_printf(out, " --accent: #%06x;", TFC_PALETTE_DARK_ACCENT);
  tfc_text_printf(out, " } }\n");
  for (uint32_t i = 0; i < TFC_DEVICE_COLOURS; i++)
    tfc_text_printf(out, ".d%u { fill: var(--d%u); background-color: var(--d%u); } ", i, i, i);
  for (uint32_t i = 0; i < TFC_OP_FAMILIES; i++)
    tfc_text_printf(out, ".f%u { fill: var(--f%u); background-color: var(--f%u); } ", i, i, i);
  tfc_text_printf(out, "\n");
}
