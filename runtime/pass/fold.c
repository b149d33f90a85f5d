#include "runtime/pass/fold.h"

#include <stdlib.h>

#include "runtime/base/float_mode.h"
#include "runtime/ops/kernel.h"

const struct tfc_tensor *tfc_const_value(const struct tfc_graph *g, const struct tfc_node *n) {
  const bool may = n->def && n->def->flags & TFC_OP_NOP && n->output_count == 1;
  const struct tfc_attr *value = may ? tfc_node_attr(g, n, "value") : NULL;
  if (!value || value->kind != TFC_ATTR_TENSOR || value->tensor->dtype != g->output_dtypes[n->output_begin])
    return NULL;
  return value->tensor;
}

bool tfc_can_fold(const struct tfc_node *n) {
  enum {
    forbidden = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_VARIABLE | TFC_OP_ASYNC | TFC_OP_SAVES | TFC_OP_SWITCH |
                TFC_OP_MERGE | TFC_OP_ENTER | TFC_OP_EXIT | TFC_OP_NEXT_ITERATION | TFC_OP_LOOP_COND |
                TFC_OP_FUNCTIONAL | TFC_OP_NOP | TFC_OP_PLACEHOLDER | TFC_OP_DEAD_INPUTS | TFC_OP_FILES
  };
  return n->def && n->def->kernel && !(n->def->flags & forbidden) && n->output_count && !n->control_count &&
         !n->def->node_state;
}

tfc_status tfc_fold(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_tensor *const *inputs,
                    struct tfc_tensor *outputs) {
  tfc_status s = NULL;
  struct tfc_arena arena = {.block_size = 1024};
  struct tfc_kernel_env env = {.threads = 1};
  struct tfc_prepare_ctx prepare = {.graph = g, .node = n, .def = n->def, .arena = &arena, .input_values = inputs};
  tfc_arena_init(&arena, 4096);
  struct tfc_shape *in_shapes = TFC_ARENA_ARRAY(&arena, struct tfc_shape, n->input_count + 1);
  struct tfc_shape *out_shapes = TFC_ARENA_ARRAY(&arena, struct tfc_shape, n->output_count + 1);
  tfc_dtype *types = TFC_ARENA_ARRAY(&arena, tfc_dtype, n->input_count + 1);
  struct tfc_tensor **slots = TFC_ARENA_ARRAY(&arena, struct tfc_tensor *, n->output_count + 1);
  struct tfc_variable **variables =
      TFC_ARENA_ARRAY(&arena, struct tfc_variable *, n->input_count + n->output_count + 2);
  if (!in_shapes || !out_shapes || !types || !slots || !variables)
    TFC_TRY(s, tfc_status_no_memory("folding a constant"));
  for (uint32_t i = 0; i < n->input_count; i++) in_shapes[i] = inputs[i]->shape, types[i] = inputs[i]->dtype;
  for (uint32_t i = 0; i < n->output_count; i++) {
    out_shapes[i] = TFC_SHAPE_UNKNOWN;
    outputs[i] = (struct tfc_tensor){0};
    slots[i] = &outputs[i];
  }
  prepare.input_shapes = in_shapes;
  prepare.output_shapes = out_shapes;
  prepare.input_dtypes = types;
  TFC_TRY(s, tfc_kernel_prepare(&prepare));
  struct tfc_kernel_ctx ctx = {.graph = g,
                               .node = n,
                               .env = &env,
                               .inputs = inputs,
                               .variables = variables,
                               .outputs = slots,
                               .output_variables = variables + n->input_count + 1,
                               .input_count = n->input_count,
                               .output_count = n->output_count,
                               .state = prepare.state};
  uint32_t mode = tfc_float_mode_enter(); // the same mode as in device threads, so that folding gives the same results
  s = n->def->kernel(&ctx);
  tfc_float_mode_leave(mode);
out:
  if (prepare.release) prepare.release(prepare.state);
  if (s)
    for (uint32_t i = 0; i < n->output_count; i++) tfc_tensor_release(&outputs[i]);
  tfc_arena_deinit(&arena);
  return s;
}
