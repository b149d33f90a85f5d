// Shapes are static here. If an axis, a begin or a size is not known when planning, operations are not stacked.
#include "runtime/ops/stacking.h"

#include "runtime/graph/tensor.h"

static bool flag(const struct tfc_stacking_of *op, const char *attr) {
  return tfc_node_attr_bool(op->graph, op->node, attr, false);
}

static bool channels_are_last(const struct tfc_stacking_of *op) {
  return !tfc_str_starts(tfc_node_attr_string(op->graph, op->node, "data_format", ""), "NC");
}

static bool all_have_rows(const struct tfc_stacking_of *op) {
  for (uint32_t i = 0; i < op->input_count; i++)
    if (op->stacked >> i & 1 && op->shapes[i]->rank < 1) return false;
  return true;
}

static bool rows_are_apart_in_concat(const struct tfc_stacking_of *op) { // inputs: values, axis
  const uint32_t last = op->input_count - 1;
  if (op->input_count < 2 || op->stacked != (1u << last) - 1) return false;
  const struct tfc_tensor *axis = op->values[last];
  if (!axis || tfc_tensor_elements(axis) != 1) return false;
  const int64_t at = tfc_tensor_int(axis, 0);
  return at >= 1 || (at < 0 && at + op->shapes[0]->rank >= 1);
}

static bool takes_all_rows(const struct tfc_stacking_of *op) { // a slice of x: inputs x, begin, size
  if (op->stacked != 1 || op->input_count != 3 || !op->values[1] || !op->values[2]) return false;
  if (op->shapes[0]->rank < 1 || tfc_tensor_elements(op->values[1]) < 1 || tfc_tensor_elements(op->values[2]) < 1)
    return false;
  const int64_t size = tfc_tensor_int(op->values[2], 0);
  return tfc_tensor_int(op->values[1], 0) == 0 && (size == -1 || size == op->shapes[0]->dims[0]);
}

static tfc_stacking elementwise(const struct tfc_stacking_of *op) {
  const bool all = op->stacked == (op->input_count < 32 ? (1u << op->input_count) - 1 : UINT32_MAX);
  return all || (op->def->broadcasts && op->input_count == 2) ? TFC_STACKING_AHEAD : TFC_STACKING_NONE;
}

tfc_stacking tfc_stacking_of(const struct tfc_stacking_of *op) {
  if (!op->stacked || op->input_count > 32) return TFC_STACKING_NONE;
  const tfc_plan_trait trait = op->def->plan_trait;
  bool rows = false;
  if (op->def->role == TFC_ROLE_PRODUCT)
    rows = op->stacked == 1 && op->shapes[0]->rank == 2 && !flag(op, "transpose_a");
  else if (trait == TFC_PLAN_ADD_BIAS)
    rows = op->stacked == 1 && op->shapes[0]->rank >= 2 && channels_are_last(op);
  else if (op->def->role == TFC_ROLE_CROSS_ENTROPY)
    rows = op->stacked == 3;
  else if (trait == TFC_PLAN_CONCAT)
    rows = rows_are_apart_in_concat(op);
  else if (trait == TFC_PLAN_SLICE)
    rows = takes_all_rows(op);
  else if (trait == TFC_PLAN_SOFTMAX || trait == TFC_PLAN_LOG_SOFTMAX)
    rows = op->shapes[0]->rank >= 2;
  else if (op->def->role == TFC_ROLE_REDUCTION)
    return op->stacked == 1 && op->input_count == 2 && op->values[1] ? TFC_STACKING_AHEAD : TFC_STACKING_NONE;
  else if (trait == TFC_PLAN_BATCHED)
    return op->stacked == 3 && op->shapes[0]->rank == op->shapes[1]->rank ? TFC_STACKING_AHEAD : TFC_STACKING_NONE;
  else if (op->def->elementwise)
    return elementwise(op);
  return rows && all_have_rows(op) ? TFC_STACKING_ROWS : TFC_STACKING_NONE;
}

bool tfc_stacking_constant(const struct tfc_stacking_of *op, tfc_stacking how, uint32_t input, int64_t *out) {
  const struct tfc_tensor *value = op->values[input];
  const bool axes = how == TFC_STACKING_AHEAD && op->def->role == TFC_ROLE_REDUCTION && input == 1;
  const bool size = how == TFC_STACKING_ROWS && op->def->plan_trait == TFC_PLAN_SLICE && input == 2;
  if (!axes && !size) return false;
  for (int64_t i = 0; i < tfc_tensor_elements(value); i++) {
    const int64_t x = tfc_tensor_int(value, i);
    out[i] = axes ? x + (x >= 0) : i ? x : -1; // axes below zero count from the last dimension
  }
  return true;
}

bool tfc_stacking_sums(const struct tfc_stacking_of *op) {
  if (op->def->role == TFC_ROLE_PRODUCT)
    return op->shapes[0]->rank == 2 && op->shapes[1]->rank == 2 && flag(op, "transpose_a") && !flag(op, "transpose_b");
  return op->def->plan_trait == TFC_PLAN_BIAS_GRADIENT && op->shapes[0]->rank >= 2 && channels_are_last(op);
}
