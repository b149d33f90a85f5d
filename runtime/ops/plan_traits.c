#include "runtime/ops/plan_traits.h"

#include <string.h>

static const struct {
  const char *op;
  tfc_plan_trait trait;
} table[] = {
    {"L2Loss", TFC_PLAN_HALF_SQUARES},
    {"Mul", TFC_PLAN_MULTIPLY},
    {"GreaterEqual", TFC_PLAN_AT_LEAST},
    {"Select", TFC_PLAN_SELECT},
    {"SelectV2", TFC_PLAN_SELECT},
    {"Sum", TFC_PLAN_SUM},
    {"Mean", TFC_PLAN_MEAN},
    {"Add", TFC_PLAN_ADD},
    {"AddV2", TFC_PLAN_ADD},
    {"BiasAdd", TFC_PLAN_ADD},
    {"BiasAddV1", TFC_PLAN_ADD},
    {"Relu", TFC_PLAN_RECTIFY},
    {"Sub", TFC_PLAN_SUBTRACT},
    {"Softmax", TFC_PLAN_SOFTMAX},
    {"Transpose", TFC_PLAN_TRANSPOSE},
    {"BatchMatMul", TFC_PLAN_BATCHED},
    {"BatchMatMulV2", TFC_PLAN_BATCHED},
    {"BatchMatMulV3", TFC_PLAN_BATCHED},
    {"Conv2D", TFC_PLAN_FILTERED},
    {"Conv2DBackpropInput", TFC_PLAN_FILTERED},
    {"Conv3D", TFC_PLAN_FILTERED},
    {"Conv3DBackpropInputV2", TFC_PLAN_FILTERED},
};

tfc_plan_trait tfc_plan_trait_of(const struct tfc_op_def *def) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(def->name, table[i].op)) return table[i].trait;
  return TFC_PLAN_OTHER;
}
