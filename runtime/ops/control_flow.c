// The operations of control flow with frames. The executor runs Switch, Merge, Enter, Exit, NextIteration and LoopCond
// itself, as their flags say; their rows here only describe inputs and outputs.
#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// Output `to` is a handle to the same thing as input `from`.
static void pass_handle(struct tfc_shape_ctx *ctx, uint32_t from, uint32_t to) {
  if (ctx->output_handles && ctx->input_handles && ctx->input_handles[from])
    ctx->output_handles[to] = *ctx->input_handles[from];
}
static void pass_partial(struct tfc_shape_ctx *ctx, uint32_t from, uint32_t to) {
  if (ctx->output_as_shape && ctx->input_as_shape && ctx->input_as_shape[from])
    ctx->output_as_shape[to] = *ctx->input_as_shape[from];
}

static tfc_status shape_switch(struct tfc_shape_ctx *ctx) {
  struct tfc_shape scalar;
  uint32_t pred = ctx->node->input_count - 1;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, pred, 0, &scalar));
  for (uint32_t i = 0; i < ctx->node->output_count; i++) {
    ctx->outputs[i] = *ctx->inputs[0];
    pass_handle(ctx, 0, i);
    pass_partial(ctx, 0, i);
  }
  return NULL;
}
// Keeps the dimensions in which all inputs agree. If one shape is unknown (that of the edge back from the loop's end),
// the output's is too.
static tfc_status shape_merge(struct tfc_shape_ctx *ctx) {
  struct tfc_shape shape = *ctx->inputs[0];
  for (uint32_t i = 1; i < ctx->node->input_count && shape.rank >= 0; i++) {
    const struct tfc_shape *in = ctx->inputs[i];
    if (in->rank != shape.rank) {
      shape = TFC_SHAPE_UNKNOWN;
      break;
    }
    for (int k = 0; k < shape.rank; k++)
      if (in->dims[k] != shape.dims[k]) shape.dims[k] = TFC_DIM_UNKNOWN;
  }
  ctx->outputs[0] = shape;
  ctx->outputs[1] = TFC_SHAPE_SCALAR;
  pass_handle(ctx, 0, 0);
  return NULL;
}
static tfc_status shape_pass(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[0];
  pass_handle(ctx, 0, 0);
  return NULL;
}
static tfc_status shape_enter(struct tfc_shape_ctx *ctx) {
  if (tfc_node_attr_bool(ctx->graph, ctx->node, "is_constant", false)) pass_partial(ctx, 0, 0);
  return shape_pass(ctx);
}
static tfc_status shape_loop_cond(struct tfc_shape_ctx *ctx) {
  return ops_with_rank(ctx, 0, 0, &ctx->outputs[0]);
}
static tfc_status shape_assert(struct tfc_shape_ctx *ctx) {
  struct tfc_shape scalar;
  return ops_with_rank(ctx, 0, 0, &scalar);
}
static tfc_status shape_ref_select(struct tfc_shape_ctx *ctx) {
  struct tfc_shape scalar, all;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 0, &scalar));
  all = *ctx->inputs[1];
  for (uint32_t i = 2; i < ctx->node->input_count; i++)
    if (!tfc_shape_equal(&all, ctx->inputs[i])) all = TFC_SHAPE_UNKNOWN;
  ctx->outputs[0] = all;
  return NULL;
}

// --- Kernels -----------------------------------------------------------------------------------------------------
static void show_elements(struct tfc_text *text, const struct tfc_tensor *t, int64_t most) {
  int64_t n = tfc_tensor_elements(t);
  for (int64_t i = 0; i < n && i < most; i++) {
    if (i) tfc_text_printf(text, " ");
    switch ((int)t->dtype) {
    case TFC_STRING: tfc_text_add(text, tfc_tensor_get_string(t, i)); break;
    case TFC_BOOL: tfc_text_printf(text, "%d", ((const bool *)t->data)[i]); break;
    case TFC_FLOAT: tfc_text_printf(text, "%.6g", (double)((const float *)t->data)[i]); break;
    case TFC_DOUBLE: tfc_text_printf(text, "%.6g", ((const double *)t->data)[i]); break;
    case TFC_HALF: tfc_text_printf(text, "%.6g", (double)tfc_half_to_float(((const uint16_t *)t->data)[i])); break;
    case TFC_BFLOAT16:
      tfc_text_printf(text, "%.6g", (double)tfc_bfloat16_to_float(((const uint16_t *)t->data)[i]));
      break;
    default:
      if (tfc_dtype_is_integer(t->dtype))
        tfc_text_printf(text, "%lld", (long long)tfc_tensor_int(t, i));
      else
        tfc_text_printf(text, "?");
    }
  }
  if (n > most) tfc_text_printf(text, "...");
}

static tfc_status assert_(struct tfc_kernel_ctx *ctx) {
  const struct tfc_tensor *condition = ctx->inputs[0];
  TFC_KERNEL_CHECK(condition->shape.rank == 0, "In[0] should be a scalar: %s",
                   tfc_shape_show(&condition->shape, (char[TFC_SHAPE_TEXT]){0}));
  if (*(const bool *)condition->data) return NULL;
  struct tfc_text text = {0};
  int64_t most = tfc_node_attr_int(ctx->graph, ctx->node, "summarize", 3);
  for (uint32_t i = 1; i < ctx->input_count; i++) {
    tfc_text_printf(&text, " [");
    show_elements(&text, ctx->inputs[i], most);
    tfc_text_printf(&text, "]");
  }
  tfc_status s = tfc_status_make(TFC_INVALID_ARGUMENT, "assertion failed:%s", text.data ? text.data : "");
  tfc_text_deinit(&text);
  return s;
}

// Fails the step. (TensorFlow's Abort ends the whole process.)
static tfc_status abort_(struct tfc_kernel_ctx *ctx) {
  if (tfc_node_attr_bool(ctx->graph, ctx->node, "exit_without_error", false)) return NULL;
  tfc_str text = tfc_node_attr_string(ctx->graph, ctx->node, "error_msg", "");
  return tfc_status_make(TFC_ABORTED, "Abort op: %.*s", TFC_STR_ARG(text));
}

static tfc_status ref_identity(struct tfc_kernel_ctx *ctx) {
  ctx->output_variables[0] = ctx->variables[0];
  return tfc_kernel_set_output(ctx, 0, ctx->inputs[0]);
}

static tfc_status ref_select(struct tfc_kernel_ctx *ctx) {
  int64_t index = ops_scalar_int(ctx->inputs[0]);
  TFC_KERNEL_CHECK(index >= 0 && index < ctx->input_count - 1, "Index must be in the range [0, %u) but got %lld",
                   ctx->input_count - 1, (long long)index);
  ctx->output_variables[0] = ctx->variables[1 + index];
  return tfc_kernel_set_output(ctx, 0, ctx->inputs[1 + index]);
}

static tfc_status nothing(struct tfc_kernel_ctx *ctx) {
  (void)ctx;
  return NULL;
}

static const struct tfc_op_def control_flow_rows[] = {
    {.name = "Switch",
     .inputs = "data: T, pred: bool",
     .outputs = "output_false: T, output_true: T",
     .attrs = "T: type",
     .flags = TFC_OP_SWITCH,
     .index_use = TFC_INDEX_MOVED,
     .host_inputs = 2,
     .shape = shape_switch},
    {.name = "RefSwitch",
     .inputs = "data: Ref(T), pred: bool",
     .outputs = "output_false: Ref(T), output_true: Ref(T)",
     .attrs = "T: type",
     .flags = TFC_OP_SWITCH,
     .host_inputs = 2,
     .shape = shape_switch},
    // What freezing makes of a Case. An index outside takes the last output.
    {.name = "_SwitchN",
     .inputs = "data: T, output_index: int32",
     .outputs = "outputs: num_outs * T",
     .attrs = "T: type, num_outs: int >= 1",
     .flags = TFC_OP_SWITCH,
     .host_inputs = 2,
     .shape = shape_switch},
    {.name = "Merge",
     .inputs = "inputs: N * T",
     .outputs = "output: T, value_index: int32",
     .attrs = "T: type, N: int >= 1",
     .flags = TFC_OP_MERGE | TFC_OP_DEAD_INPUTS,
     .index_use = TFC_INDEX_MOVED,
     .host_outputs = 2,
     .shape = shape_merge},
    {.name = "RefMerge",
     .inputs = "inputs: Ref(N * T)",
     .outputs = "output: Ref(T), value_index: int32",
     .attrs = "T: type, N: int >= 1",
     .flags = TFC_OP_MERGE | TFC_OP_DEAD_INPUTS,
     .host_outputs = 2,
     .shape = shape_merge},
    {.name = "Enter",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs = "T: type, frame_name: string, is_constant: bool = false, parallel_iterations: int = 10",
     .flags = TFC_OP_ENTER,
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_enter},
    {.name = "RefEnter",
     .inputs = "data: Ref(T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type, frame_name: string, is_constant: bool = false, parallel_iterations: int = 10",
     .flags = TFC_OP_ENTER,
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_enter},
    {.name = "Exit",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .flags = TFC_OP_EXIT,
     .index_use = TFC_INDEX_MOVED,
     .shape = shape_pass},
    {.name = "RefExit",
     .inputs = "data: Ref(T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type",
     .flags = TFC_OP_EXIT,
     .shape = shape_pass},
    {.name = "NextIteration",
     .inputs = "data: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .flags = TFC_OP_NEXT_ITERATION,
     .shape = shape_pass},
    {.name = "RefNextIteration",
     .inputs = "data: Ref(T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type",
     .flags = TFC_OP_NEXT_ITERATION,
     .shape = shape_pass},
    {.name = "LoopCond",
     .inputs = "input: bool",
     .outputs = "output: bool",
     .flags = TFC_OP_LOOP_COND | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .host_outputs = 1,
     .shape = shape_loop_cond},
    {.name = "ControlTrigger",
     .role = TFC_ROLE_TRIGGER,
     .flags = TFC_OP_DEAD_INPUTS | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_none,
     .kernel = nothing},
    {.name = "RefIdentity",
     .role = TFC_ROLE_REF_IDENTITY,
     .inputs = "input: Ref(T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type",
     .flags = TFC_OP_VIEW,
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_pass,
     .gradient = ops_grad_identity,
     .kernel = ref_identity},
    {.name = "RefSelect",
     .inputs = "index: int32, inputs: Ref(N * T)",
     .outputs = "output: Ref(T)",
     .attrs = "T: type, N: int >= 1",
     .host = {"T", TFC_INT32_BIT},
     .host_inputs = 1,
     .shape = shape_ref_select,
     .kernel = ref_select},
    {.name = "Assert",
     .inputs = "condition: bool, data: T",
     .attrs = "T: list(type) >= 1, summarize: int = 3",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = UINT32_MAX,
     .shape = shape_assert,
     .kernel = assert_},
    {.name = "Abort",
     .attrs = "error_msg: string = '', exit_without_error: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_none,
     .kernel = abort_},
};
TFC_REGISTER_OPS(control_flow_rows);
