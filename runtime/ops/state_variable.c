// Operations that make, read and assign variables, by reference (VariableV2, Assign, …) or by handle (VarHandleOp, …).
#include <stdlib.h>

#include "runtime/ops/state_common.h"

// --- Creating variables ------------------------------------------------------------------------------------------
struct variable_state {
  tfc_dtype dtype;
  struct tfc_shape shape;
  tfc_str container, name;
};

static tfc_status variable_prepare(struct tfc_prepare_ctx *ctx) {
  struct variable_state *s = TFC_ARENA_NEW(ctx->arena, struct variable_state);
  if (!s) return tfc_status_no_memory(NULL);
  s->dtype = tfc_node_attr_type(ctx->graph, ctx->node, "dtype", TFC_DTYPE_NONE);
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "shape");
  s->shape = shape && shape->kind == TFC_ATTR_SHAPE ? *shape->shape : TFC_SHAPE_UNKNOWN;
  s->container = tfc_node_attr_string(ctx->graph, ctx->node, "container", "");
  s->name = tfc_node_attr_string(ctx->graph, ctx->node, "shared_name", "");
  if (!s->name.size) s->name = tfc_node_attr_string(ctx->graph, ctx->node, "var_name", "");
  if (!s->name.size) s->name = ctx->node->name;
  ctx->state = s;
  return NULL;
}

static tfc_status make_variable(void *arg, struct tfc_object **out) {
  const struct variable_state *s = arg;
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_variable_create(s->name, s->dtype, &s->shape, &v));
  *out = &v->object;
  return NULL;
}

static tfc_status find_variable(struct tfc_kernel_ctx *ctx, struct tfc_variable **out) {
  struct variable_state *s = ctx->state;
  struct tfc_object *object = NULL;
  TFC_RETURN_IF_ERROR(tfc_resources_find_or_create(ctx->env->resources, s->container, s->name, &tfc_variable_type,
                                                   make_variable, s, &object));
  struct tfc_variable *v = (struct tfc_variable *)object;
  if (v->dtype != s->dtype) {
    tfc_status e = tfc_status_make(TFC_INVALID_ARGUMENT, "variable '%.*s' has type %s, asked for as %s",
                                   TFC_STR_ARG(s->name), tfc_dtype_name(v->dtype), tfc_dtype_name(s->dtype));
    tfc_object_release(object);
    return e;
  }
  *out = v;
  return NULL;
}

static tfc_status variable(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(find_variable(ctx, &v));
  ctx->output_variables[0] = v;
  tfc_status s = tfc_kernel_set_output(ctx, 0, &v->value);
  tfc_object_release(&v->object); // the table of resources has its own reference
  return s;
}

static tfc_status var_handle(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(find_variable(ctx, &v));
  return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, &v->object);
}

static tfc_status temporary_variable(struct tfc_kernel_ctx *ctx) {
  const struct variable_state *s = ctx->state;
  struct tfc_tensor value = {0};
  struct tfc_object *object = NULL;
  TFC_RETURN_IF_ERROR(tfc_resources_find_or_create(ctx->env->step_resources, TFC_STR("temporary"), s->name,
                                                   &tfc_variable_type, make_variable, ctx->state, &object));
  struct tfc_variable *v = (struct tfc_variable *)object;
  tfc_status e = tfc_state_tensor(ctx, s->dtype, &s->shape, &value);
  if (!e) {
    tfc_tensor_release(&v->value);
    v->value = value;
    v->initialized = true;
    ctx->output_variables[0] = v;
    e = tfc_kernel_set_output(ctx, 0, &v->value);
  }
  tfc_object_release(object); // the step has its own reference
  return e;
}

static tfc_status destroy_temporary_variable(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  TFC_RETURN_IF_ERROR(tfc_kernel_set_output(ctx, 0, &v->value));
  tfc_object_retain(&v->object); // keeps the name alive while it is searched for
  tfc_resources_remove(ctx->env->step_resources, TFC_STR("temporary"), v->name);
  tfc_object_release(&v->object);
  return NULL;
}

static tfc_status destroy_resource(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  tfc_variable_lock(v);
  tfc_tensor_release(&v->value);
  v->initialized = false;
  tfc_variable_unlock(v);
  return NULL;
}

// --- Reading variables -------------------------------------------------------------------------------------------
static tfc_status read_variable(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  tfc_dtype want = ctx->graph->output_dtypes[ctx->node->output_begin];
  TFC_KERNEL_CHECK(v->dtype == want, "variable '%.*s' has type %s, read as %s", TFC_STR_ARG(v->name),
                   tfc_dtype_name(v->dtype), tfc_dtype_name(want));
  return tfc_kernel_set_output(ctx, 0, &v->value);
}

// Does nothing for DisableCopyOnRead, because readers never copy here.
static tfc_status do_nothing(struct tfc_kernel_ctx *ctx) {
  (void)ctx;
  return NULL;
}

static tfc_status is_initialized(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = ctx->variables ? ctx->variables[0] : NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &TFC_SHAPE_SCALAR, &y));
  *(bool *)y->data = v && v->initialized;
  return NULL;
}

static tfc_status variable_shape(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  TFC_RETURN_IF_ERROR(tfc_variable_check(v));
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  struct tfc_tensor *y = NULL;
  const struct tfc_shape *shape = &v->value.shape;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, type, &TFC_SHAPE(shape->rank), &y));
  for (int i = 0; i < shape->rank; i++)
    if (type == TFC_INT32)
      ((int32_t *)y->data)[i] = (int32_t)shape->dims[i];
    else
      ((int64_t *)y->data)[i] = shape->dims[i];
  return NULL;
}

// --- Writing variables -------------------------------------------------------------------------------------------
static tfc_status lock_prepare(struct tfc_prepare_ctx *ctx) {
  static int yes; // its address, as the state, means "lock"
  ctx->state = tfc_node_attr_bool(ctx->graph, ctx->node, "use_locking", false) ? &yes : NULL;
  return NULL;
}
static tfc_status assign_prepare(struct tfc_prepare_ctx *ctx) {
  static int yes; // its address, as the state, means "the shape may not change"
  bool is_ref = tfc_dtype_is_ref(ctx->input_dtypes[0]) ||
                tfc_dtype_is_ref(tfc_output_dtype(ctx->graph, tfc_node_inputs(ctx->graph, ctx->node)[0]));
  ctx->state = tfc_node_attr_bool(ctx->graph, ctx->node, "validate_shape", is_ref) ? &yes : NULL;
  return NULL;
}

static tfc_status assign(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_assignable(ctx, &v));
  tfc_variable_lock(v);
  tfc_status s = tfc_state_assign(ctx, 0, v, ctx->inputs[1]);
  tfc_variable_unlock(v);
  return s ? s : tfc_state_forward_ref(ctx);
}

struct update {
  void *to;
  const void *from;
  tfc_dtype dtype;
  bool subtract;
};
OPS_CLONES static void update_piece(void *arg, int64_t begin, int64_t end) {
  const struct update *u = arg;
  OPS_SWITCH(OPS_NUMBERS, u->dtype, {
    S *to = u->to;
    const S *from = u->from;
    if (u->subtract)
      for (int64_t i = begin; i < end; i++) OPS_PUT(to[i], OPS_GET(to[i]) - OPS_GET(from[i]));
    else
      for (int64_t i = begin; i < end; i++) OPS_PUT(to[i], OPS_GET(to[i]) + OPS_GET(from[i]));
  })
}

static tfc_status update(struct tfc_kernel_ctx *ctx, bool subtract) {
  struct tfc_variable *v = NULL;
  const struct tfc_tensor *value = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(tfc_state_variable(ctx, 0, &v));
  bool lock = ctx->state || tfc_state_is_resource(ctx, 0);
  if (lock) tfc_variable_lock(v);
  tfc_status s = tfc_state_writable(ctx, 0, &v);
  if (!s && (v->dtype != value->dtype || !tfc_shape_equal(&v->value.shape, &value->shape)))
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "Cannot update variable '%.*s' %s %s with a value %s %s",
                        TFC_STR_ARG(v->name), tfc_dtype_name(v->dtype),
                        tfc_shape_show(&v->value.shape, (char[TFC_SHAPE_TEXT]){0}), tfc_dtype_name(value->dtype),
                        tfc_shape_show(&value->shape, (char[TFC_SHAPE_TEXT]){0}));
  if (!s) {
    struct update u = {v->value.data, value->data, v->dtype, subtract};
    tfc_kernel_parallel_for(ctx, tfc_tensor_elements(value), 65536, update_piece, &u);
  }
  if (lock) tfc_variable_unlock(v);
  return s ? s : tfc_state_forward_ref(ctx);
}
static tfc_status assign_add(struct tfc_kernel_ctx *ctx) {
  return update(ctx, false);
}
static tfc_status assign_sub(struct tfc_kernel_ctx *ctx) {
  return update(ctx, true);
}

// Adds one to a reference variable until it reaches `limit`; returns the value before.
static tfc_status count_up_to(struct tfc_kernel_ctx *ctx) {
  struct tfc_variable *v = NULL;
  TFC_RETURN_IF_ERROR(tfc_state_writable(ctx, 0, &v));
  TFC_KERNEL_CHECK(v->value.shape.rank == 0, "input is not a scalar: %s",
                   tfc_shape_show(&v->value.shape, (char[TFC_SHAPE_TEXT]){0}));
  int64_t limit = tfc_node_attr_int(ctx->graph, ctx->node, "limit", 0);
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, v->dtype, &TFC_SHAPE_SCALAR, &y));
  tfc_variable_lock(v);
  int64_t value = ops_scalar_int(&v->value);
  if (value < limit) {
    if (v->dtype == TFC_INT32)
      *(int32_t *)y->data = (int32_t)value, *(int32_t *)v->value.data = (int32_t)(value + 1);
    else
      *(int64_t *)y->data = value, *(int64_t *)v->value.data = value + 1;
  }
  tfc_variable_unlock(v);
  return value < limit ? NULL : tfc_status_make(TFC_OUT_OF_RANGE, "Reached limit of %lld", (long long)limit);
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static struct tfc_shape declared(const struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "shape");
  return a && a->kind == TFC_ATTR_SHAPE ? *a->shape : TFC_SHAPE_UNKNOWN;
}
static tfc_status shape_variable(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = declared(ctx);
  // The older op cannot have an unknown shape. As in TensorFlow, the shape of a scalar means "unknown".
  if (tfc_str_is(ctx->node->op, "Variable") && ctx->outputs[0].rank == 0) ctx->outputs[0] = TFC_SHAPE_UNKNOWN;
  return NULL;
}
static tfc_status shape_handle(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE_SCALAR;
  if (ctx->output_handles)
    ctx->output_handles[0] = (struct tfc_handle_info){
        .dtype = tfc_node_attr_type(ctx->graph, ctx->node, "dtype", TFC_DTYPE_NONE), .shape = declared(ctx)};
  return NULL;
}
static tfc_status shape_read(struct tfc_shape_ctx *ctx) {
  const struct tfc_handle_info *h = ctx->input_handles ? ctx->input_handles[0] : NULL;
  tfc_dtype type = ctx->graph->output_dtypes[ctx->node->output_begin];
  if (h && h->dtype != TFC_DTYPE_NONE && h->dtype != type)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "a variable of type %s is read as %s", tfc_dtype_name(h->dtype),
                           tfc_dtype_name(type));
  ctx->outputs[0] = tfc_state_shape(ctx, 0);
  return NULL;
}
static tfc_status shape_assign(struct tfc_shape_ctx *ctx) {
  if (tfc_node_attr_bool(ctx->graph, ctx->node, "validate_shape", true))
    return tfc_shape_merge(ctx->inputs[0], ctx->inputs[1], &ctx->outputs[0]);
  ctx->outputs[0] = *ctx->inputs[1];
  return NULL;
}
static tfc_status shape_assign_variable(struct tfc_shape_ctx *ctx) {
  struct tfc_shape merged, held = tfc_state_shape(ctx, 0);
  return tfc_shape_merge(&held, ctx->inputs[1], &merged);
}
static tfc_status shape_update(struct tfc_shape_ctx *ctx) {
  return tfc_shape_merge(ctx->inputs[0], ctx->inputs[1], &ctx->outputs[0]);
}
static tfc_status shape_variable_shape(struct tfc_shape_ctx *ctx) {
  struct tfc_shape held = tfc_state_shape(ctx, 0);
  ctx->outputs[0] = held.rank < 0 ? tfc_shape_unknown_of_rank(1) : TFC_SHAPE(held.rank);
  if (ctx->output_as_shape) ctx->output_as_shape[0] = held;
  return NULL;
}
OPS_COST_PER_ELEMENT(cost_none, 0)
static void cost_update(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                        const struct tfc_shape *outputs, struct tfc_op_cost *out) {
  (void)outputs;
  int64_t count = tfc_shape_elements(&inputs[1]);
  out->flops = count > 0 ? (double)count : 0;
  out->bytes = 3 * out->flops * (double)tfc_dtype_size(tfc_output_dtype(g, tfc_node_inputs(g, n)[1]));
}

static const struct tfc_op_def state_variable_rows[] = {
    {.name = "VariableV2",
     .outputs = "ref: Ref(dtype)",
     .attrs = "shape: shape, dtype: type, container: string = '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_VARIABLE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"dtype", TFC_INT32_BIT},
     .shape = shape_variable,
     .prepare = variable_prepare,
     .kernel = variable},
    {.name = "Variable",
     .role = TFC_ROLE_OLD_VARIABLE,
     .outputs = "ref: Ref(dtype)",
     .attrs = "shape: shape, dtype: type, container: string = '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_VARIABLE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"dtype", TFC_INT32_BIT},
     .shape = shape_variable,
     .prepare = variable_prepare,
     .kernel = variable},
    {.name = "TemporaryVariable",
     .role = TFC_ROLE_TEMPORARY,
     .outputs = "ref: Ref(dtype)",
     .attrs = "shape: shape, dtype: type, var_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_VARIABLE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"dtype", TFC_INT32_BIT},
     .shape = shape_variable,
     .prepare = variable_prepare,
     .kernel = temporary_variable},
    {.name = "DestroyTemporaryVariable",
     .inputs = "ref: Ref(T)",
     .outputs = "value: T",
     .attrs = "T: type, var_name: string",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT},
     .shape = ops_shape_same,
     .kernel = destroy_temporary_variable},
    {.name = "VarHandleOp",
     .role = TFC_ROLE_HANDLE,
     .outputs = "resource: resource",
     .attrs = "container: string = '', shared_name: string = '', debug_name: string = '', dtype: type, shape: shape, "
              "allowed_devices: list(string) = []",
     .flags = TFC_OP_STATEFUL | TFC_OP_VARIABLE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"dtype", TFC_INT32_BIT},
     .host_outputs = 1,
     .shape = shape_handle,
     .prepare = variable_prepare,
     .kernel = var_handle},
    {.name = "DestroyResourceOp",
     .inputs = "resource: resource",
     .attrs = "ignore_lookup_error: bool = true",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .shape = ops_shape_none,
     .kernel = destroy_resource},
    {.name = "ReadVariableOp",
     .role = TFC_ROLE_READ,
     .inputs = "resource: resource",
     .outputs = "value: dtype",
     .attrs = "dtype: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_VIEW,
     .host = {"dtype", TFC_INT32_BIT},
     .host_inputs = 1,
     .shape = shape_read,
     .gradient = ops_grad_identity,
     .cost = cost_none,
     .kernel = read_variable},
    {.name = "DisableCopyOnRead",
     .inputs = "resource: resource",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .shape = ops_shape_none,
     .kernel = do_nothing},
    {.name = "VarIsInitializedOp",
     .inputs = "resource: resource",
     .outputs = "is_initialized: bool",
     .flags = TFC_OP_NO_ELEMENTS | TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = is_initialized},
    {.name = "IsVariableInitialized",
     .inputs = "ref: Ref(dtype)",
     .outputs = "is_initialized: bool",
     .attrs = "dtype: type",
     .flags = TFC_OP_NO_ELEMENTS | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"dtype", TFC_INT32_BIT},
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = is_initialized},
    {.name = "VariableShape",
     .inputs = "input: resource",
     .outputs = "output: out_type",
     .attrs = "out_type: {int32, int64} = int32",
     .flags = TFC_OP_ABOUT_INPUTS | TFC_OP_NO_ELEMENTS | TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .host_outputs = 1,
     .shape = shape_variable_shape,
     .kernel = variable_shape},
    {.name = "Assign",
     .role = TFC_ROLE_ASSIGN,
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: type, validate_shape: bool = true, use_locking: bool = true",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_assign,
     .prepare = assign_prepare,
     .kernel = assign},
    {.name = "AssignAdd",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_NUMBERS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_update,
     .cost = cost_update,
     .prepare = lock_prepare,
     .kernel = assign_add},
    {.name = "AssignSub",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, "
              "qint16, quint16, uint16, complex128, half, uint32, uint64}, use_locking: bool = false",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_NUMBERS),
     .host = {"T", TFC_INT32_BIT},
     .shape = shape_update,
     .cost = cost_update,
     .prepare = lock_prepare,
     .kernel = assign_sub},
    {.name = "AssignVariableOp",
     .role = TFC_ROLE_ASSIGN,
     .inputs = "resource: resource, value: dtype",
     .attrs = "dtype: type, validate_shape: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"dtype", TFC_INT32_BIT},
     .host_inputs = 1,
     .shape = shape_assign_variable,
     .prepare = assign_prepare,
     .kernel = assign},
    {.name = "AssignAddVariableOp",
     .inputs = "resource: resource, value: dtype",
     .attrs = "dtype: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_NUMBERS),
     .host = {"dtype", TFC_INT32_BIT},
     .host_inputs = 1,
     .shape = shape_assign_variable,
     .cost = cost_update,
     .kernel = assign_add},
    {.name = "AssignSubVariableOp",
     .inputs = "resource: resource, value: dtype",
     .attrs = "dtype: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .types = OPS_BITS(OPS_NUMBERS),
     .host = {"dtype", TFC_INT32_BIT},
     .host_inputs = 1,
     .shape = shape_assign_variable,
     .cost = cost_update,
     .kernel = assign_sub},
    {.name = "CountUpTo",
     .inputs = "ref: Ref(T)",
     .outputs = "output: T",
     .attrs = "limit: int, T: {int32, int64}",
     .flags = TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .types = TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64),
     .host = {"T", TFC_INT32_BIT},
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = count_up_to},
    {.name = "ResourceCountUpTo",
     .inputs = "resource: resource",
     .outputs = "output: T",
     .attrs = "limit: int, T: {int32, int64}",
     .flags = TFC_OP_STATEFUL | TFC_OP_UPDATE | TFC_OP_NOT_DIFFERENTIABLE,
     .types = TFC_TYPE_BIT(TFC_INT32) | TFC_TYPE_BIT(TFC_INT64),
     .host = {"T", TFC_INT32_BIT},
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = count_up_to},
};
TFC_REGISTER_OPS(state_variable_rows);
