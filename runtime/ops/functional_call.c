// Operations that call functions of the graph's library. If placement has to see the function's nodes, they are lowered
// to control flow before the graph runs; otherwise they run through env->call.
#include <stdlib.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

// --- Shapes: what the output_shapes attribute says ---------------------------------------------------------------
static void outputs_from_attr(struct tfc_shape_ctx *ctx, bool *out_found) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "output_shapes");
  if (!a) a = tfc_node_attr(ctx->graph, ctx->node, "_output_shapes");
  *out_found = a && a->kind == TFC_ATTR_LIST_SHAPE && a->count == ctx->node->output_count;
  for (uint32_t i = 0; i < ctx->node->output_count; i++)
    ctx->outputs[i] = *out_found ? a->shapes[i] : TFC_SHAPE_UNKNOWN;
}
static tfc_status shape_call(struct tfc_shape_ctx *ctx) {
  bool found;
  outputs_from_attr(ctx, &found);
  return NULL;
}
// What the handles among a loop's inputs refer to does not change; without the attribute, the shapes do not change
// either.
static tfc_status shape_while(struct tfc_shape_ctx *ctx) {
  bool found;
  outputs_from_attr(ctx, &found);
  for (uint32_t i = 0; i < ctx->node->output_count && i < ctx->node->input_count; i++) {
    if (!found) ctx->outputs[i] = *ctx->inputs[i];
    if (ctx->output_handles && ctx->input_handles && ctx->input_handles[i])
      ctx->output_handles[i] = *ctx->input_handles[i];
  }
  return NULL;
}
// SymbolicGradient(f)(x..., dy...) gives the gradients of x.
static tfc_status shape_symbolic_gradient(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < ctx->node->output_count; i++)
    ctx->outputs[i] = i < ctx->node->input_count ? *ctx->inputs[i] : TFC_SHAPE_UNKNOWN;
  return NULL;
}

// --- Kernels -----------------------------------------------------------------------------------------------------
// As in TensorFlow, a scalar is true by its value (a string by its length), any other tensor if it has elements.
static tfc_status truth(const struct tfc_tensor *t, bool *out) {
  if (t->shape.rank != 0)
    *out = tfc_tensor_elements(t) > 0;
  else if (t->dtype == TFC_STRING)
    *out = tfc_tensor_get_string(t, 0).size > 0;
  else if (t->dtype == TFC_BOOL)
    *out = *(const bool *)t->data;
  else if (OPS_BITS(OPS_REALS) & TFC_TYPE_BIT(t->dtype))
    *out = ops_scalar(t) != 0;
  else
    return tfc_status_make(TFC_INVALID_ARGUMENT, "the type %s cannot be converted to a bool", tfc_dtype_name(t->dtype));
  return NULL;
}

static tfc_status attr_func(struct tfc_kernel_ctx *ctx, const char *name, const struct tfc_func_attr **out) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, name);
  if (!a || a->kind != TFC_ATTR_FUNC) return tfc_status_make(TFC_INVALID_ARGUMENT, "attribute '%s' is missing", name);
  *out = a->func;
  return NULL;
}

// Prepares an input for a function: the reference itself is passed on if the executor does not need it any more, so
// that it is freed after its last reader in the function.
static void pass_input(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_tensor *out) {
  struct tfc_tensor *in = (struct tfc_tensor *)(uintptr_t)ctx->inputs[i];
  bool whose = i < 32 ? ctx->reusable >> i & 1 : ctx->reusable == UINT32_MAX;
  if (!whose || !in->buffer) {
    tfc_tensor_share(in, out);
    return;
  }
  *out = *in;
  in->buffer = NULL;
}

// Calls the function with the inputs [first, input_count); its results become the outputs.
static tfc_status call(struct tfc_kernel_ctx *ctx, const struct tfc_func_attr *func, uint32_t first) {
  tfc_status s = NULL;
  uint32_t n = ctx->input_count - first;
  struct tfc_tensor *inputs = calloc(n + 1, sizeof *inputs);
  struct tfc_tensor *outputs = calloc(ctx->output_count + 1, sizeof *outputs);
  if (!ctx->env->call) TFC_FAIL(s, TFC_UNIMPLEMENTED, "function '%.*s' cannot be called here", TFC_STR_ARG(func->name));
  if (!inputs || !outputs) TFC_TRY(s, tfc_status_no_memory(NULL));
  for (uint32_t i = 0; i < n; i++) pass_input(ctx, first + i, &inputs[i]);
  TFC_TRY(s, ctx->env->call(ctx->env, func, inputs, n, outputs, ctx->output_count));
  for (uint32_t i = 0; i < ctx->output_count; i++) TFC_TRY(s, tfc_kernel_set_output(ctx, i, &outputs[i]));
out:
  for (uint32_t i = 0; inputs && i < n; i++) tfc_tensor_release(&inputs[i]);
  for (uint32_t i = 0; outputs && i < ctx->output_count; i++) tfc_tensor_release(&outputs[i]);
  free(inputs);
  free(outputs);
  return s;
}

static tfc_status partitioned_call(struct tfc_kernel_ctx *ctx) {
  const struct tfc_func_attr *f = NULL;
  if (!ctx->node->def) { // the op is the function's name, its attributes are the call's
    const struct tfc_node *n = ctx->node;
    struct tfc_func_attr own = {.name = n->op, .attrs = ctx->graph->attrs + n->attr_begin, .attr_count = n->attr_count};
    return call(ctx, &own, 0);
  }
  TFC_RETURN_IF_ERROR(attr_func(ctx, "f", &f));
  return call(ctx, f, 0);
}
static tfc_status remote_call(struct tfc_kernel_ctx *ctx) { // input 0 names the device, but the placement decides that
  const struct tfc_func_attr *f = NULL;
  TFC_RETURN_IF_ERROR(attr_func(ctx, "f", &f));
  return call(ctx, f, 1);
}
static tfc_status if_(struct tfc_kernel_ctx *ctx) {
  const struct tfc_func_attr *f = NULL;
  bool yes = false;
  TFC_RETURN_IF_ERROR(truth(ctx->inputs[0], &yes));
  TFC_RETURN_IF_ERROR(attr_func(ctx, yes ? "then_branch" : "else_branch", &f));
  return call(ctx, f, 1);
}
static tfc_status case_(struct tfc_kernel_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "branches");
  TFC_KERNEL_CHECK(a && a->kind == TFC_ATTR_LIST_FUNC && a->count, "attribute 'branches' is missing");
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "branch_index must be a scalar, not %s",
                   tfc_shape_show(&ctx->inputs[0]->shape, (char[TFC_SHAPE_TEXT]){0}));
  int64_t i = ops_scalar_int(ctx->inputs[0]);
  if (i < 0 || i >= a->count) i = a->count - 1; // out of range: the last branch
  return call(ctx, &a->funcs[i], 1);
}
static tfc_status while_(struct tfc_kernel_ctx *ctx) {
  const struct tfc_func_attr *condition = NULL, *body = NULL;
  tfc_status s = NULL;
  uint32_t n = ctx->input_count;
  TFC_RETURN_IF_ERROR(attr_func(ctx, "cond", &condition));
  TFC_RETURN_IF_ERROR(attr_func(ctx, "body", &body));
  struct tfc_tensor *now = calloc(2 * (size_t)n + 1, sizeof *now), *next = now ? now + n : NULL, go = {0};
  if (!now) return tfc_status_no_memory(NULL);
  if (!ctx->env->call) TFC_FAIL(s, TFC_UNIMPLEMENTED, "function '%.*s' cannot be called here", TFC_STR_ARG(body->name));
  for (uint32_t i = 0; i < n; i++) pass_input(ctx, i, &now[i]);
  for (;;) {
    if (ctx->env->cancelled && ctx->env->cancelled(ctx->env)) TFC_FAIL(s, TFC_CANCELLED, "the step was cancelled");
    // Shared, because the body still needs them after the condition.
    for (uint32_t i = 0; i < n; i++) tfc_tensor_share(&now[i], &next[i]);
    s = ctx->env->call(ctx->env, condition, next, n, &go, 1);
    for (uint32_t i = 0; i < n; i++) tfc_tensor_release(&next[i]);
    if (s) goto out;
    bool more = false;
    TFC_TRY(s, truth(&go, &more));
    tfc_tensor_release(&go);
    if (!more) break;
    TFC_TRY(s, ctx->env->call(ctx->env, body, now, n, next, n));
    for (uint32_t i = 0; i < n; i++) {
      tfc_tensor_release(&now[i]);
      now[i] = next[i];
      next[i] = (struct tfc_tensor){0};
    }
  }
  for (uint32_t i = 0; i < n; i++) TFC_TRY(s, tfc_kernel_set_output(ctx, i, &now[i]));
out:
  tfc_tensor_release(&go);
  for (uint32_t i = 0; i < 2 * n; i++) tfc_tensor_release(&now[i]);
  free(now);
  return s;
}

// Output 0 becomes the index of this device's type among the named types (for a Case with kernels for several types),
// or the number of names if it is none of them. Kernels of functions run on the host.
static tfc_status device_index(struct tfc_kernel_ctx *ctx) {
  const struct tfc_attr *names = tfc_node_attr(ctx->graph, ctx->node, "device_names");
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  uint32_t i = 0, n = names && names->kind == TFC_ATTR_LIST_STRING ? names->count : 0;
  while (i < n && !tfc_str_is(names->strings[i], "CPU")) i++;
  *(int32_t *)y->data = (int32_t)i;
  return NULL;
}

static const struct tfc_op_def functional_call_rows[] = {
    {.name = "DeviceIndex",
     .outputs = "index: int32",
     .attrs = "device_names: list(string)",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = device_index},
    {.name = "If",
     .role = TFC_ROLE_IF,
     .inputs = "cond: Tcond, input: Tin",
     .outputs = "output: Tout",
     .attrs = "Tcond: type, Tin: list(type) >= 0, Tout: list(type) >= 0, then_branch: func, else_branch: func, "
              "output_shapes: list(shape) = []",
     .flags = TFC_OP_STATEFUL | TFC_OP_FUNCTIONAL,
     .host_inputs = 1,
     .shape = shape_call,
     .kernel = if_},
    {.name = "StatelessIf",
     .role = TFC_ROLE_IF,
     .inputs = "cond: Tcond, input: Tin",
     .outputs = "output: Tout",
     .attrs = "Tcond: type, Tin: list(type) >= 0, Tout: list(type) >= 0, then_branch: func, else_branch: func, "
              "output_shapes: list(shape) = []",
     .flags = TFC_OP_FUNCTIONAL,
     .host_inputs = 1,
     .shape = shape_call,
     .kernel = if_},
    {.name = "Case",
     .role = TFC_ROLE_CASE,
     .inputs = "branch_index: int32, input: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 0, Tout: list(type) >= 0, branches: list(func) >= 1, output_shapes: list(shape) = []",
     .flags = TFC_OP_STATEFUL | TFC_OP_FUNCTIONAL,
     .host_inputs = 1,
     .shape = shape_call,
     .kernel = case_},
    {.name = "StatelessCase",
     .role = TFC_ROLE_CASE,
     .inputs = "branch_index: int32, input: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 0, Tout: list(type) >= 0, branches: list(func) >= 1, output_shapes: list(shape) = []",
     .flags = TFC_OP_FUNCTIONAL,
     .host_inputs = 1,
     .shape = shape_call,
     .kernel = case_},
    {.name = "While",
     .role = TFC_ROLE_WHILE,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs =
         "T: list(type) >= 0, cond: func, body: func, output_shapes: list(shape) = [], parallel_iterations: int = 10",
     .flags = TFC_OP_STATEFUL | TFC_OP_FUNCTIONAL,
     .shape = shape_while,
     .kernel = while_},
    {.name = "StatelessWhile",
     .role = TFC_ROLE_WHILE,
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs =
         "T: list(type) >= 0, cond: func, body: func, output_shapes: list(shape) = [], parallel_iterations: int = 10",
     .flags = TFC_OP_FUNCTIONAL,
     .shape = shape_while,
     .kernel = while_},
    {.name = "PartitionedCall",
     .role = TFC_ROLE_CALL,
     .inputs = "args: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 0, Tout: list(type) >= 0, f: func, config: string = '', config_proto: string = '', "
              "executor_type: string = ''",
     .flags = TFC_OP_FUNCTIONAL,
     .shape = shape_call,
     .kernel = partitioned_call},
    {.name = "StatefulPartitionedCall",
     .role = TFC_ROLE_CALL,
     .inputs = "args: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 0, Tout: list(type) >= 0, f: func, config: string = '', config_proto: string = '', "
              "executor_type: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_FUNCTIONAL,
     .shape = shape_call,
     .kernel = partitioned_call},
    {.name = "SymbolicGradient",
     .role = TFC_ROLE_SYMBOLIC_GRADIENT,
     .inputs = "input: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 1, Tout: list(type) >= 1, f: func",
     .flags = TFC_OP_FUNCTIONAL,
     .shape = shape_symbolic_gradient},
    {.name = "RemoteCall",
     .role = TFC_ROLE_REMOTE_CALL,
     .inputs = "target: string, args: Tin",
     .outputs = "output: Tout",
     .attrs = "Tin: list(type) >= 1, Tout: list(type) >= 1, f: func",
     .flags = TFC_OP_STATEFUL | TFC_OP_FUNCTIONAL,
     .host_inputs = 1,
     .shape = shape_call,
     .kernel = remote_call},
};
TFC_REGISTER_OPS(functional_call_rows);
