// The ops of collective operations, in TensorFlow's three generations: group and keys as attributes, as inputs, or in a
// communicator.
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/device_spec.h"
#include "runtime/ops/collective.h"
#include "runtime/ops/reference.h"
#include "runtime/ops/row.h"

struct collective {
  struct tfc_collective_call call; // what the attributes say
  bool copies;                     // the tensor is a variable's own memory, which may be written to while it is sent
};

// --- Communicators ---------------------------------------------------------------------------------------------------
struct communicator {
  struct tfc_object object;
  int32_t group, rank, size;
  _Atomic int64_t instance;
};
static void communicator_destroy(struct tfc_object *object) {
  free(object);
}
static const struct tfc_object_type communicator_type = {.name = "collective communicator",
                                                         .destroy = communicator_destroy};

static tfc_status initialize(struct tfc_kernel_ctx *ctx) {
  struct communicator *c = calloc(1, sizeof *c);
  if (!c) return tfc_status_no_memory("a communicator");
  c->object = (struct tfc_object){&communicator_type, 1};
  c->group = (int32_t)ops_scalar_int(ctx->inputs[0]);
  c->rank = (int32_t)ops_scalar_int(ctx->inputs[1]);
  c->size = (int32_t)ops_scalar_int(ctx->inputs[2]);
  if (c->size < 1 || c->rank < 0 || c->rank >= c->size) {
    tfc_status s = tfc_status_make(TFC_INVALID_ARGUMENT, "rank %d in a group of %d", c->rank, c->size);
    free(c);
    return s;
  }
  return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, &c->object);
}

// --- Kernels ---------------------------------------------------------------------------------------------------------
static uint32_t device_number(const struct tfc_node *n) {
  struct tfc_device_spec spec = {.index = -1};
  if (n->device.size) tfc_status_free(tfc_device_spec_parse(n->device, &spec));
  return (uint32_t)(spec.index < 0 ? 0 : spec.index) | (!strcmp(spec.type, "GPU") ? 1u << 31 : 0);
}

static tfc_collective_math math_of(const struct tfc_prepare_ctx *ctx, const char *attr) {
  const tfc_str text = tfc_node_attr_string(ctx->graph, ctx->node, attr, "Add");
  return tfc_str_is(text, "Mul")   ? TFC_COLLECTIVE_MUL
         : tfc_str_is(text, "Min") ? TFC_COLLECTIVE_MIN
         : tfc_str_is(text, "Max") ? TFC_COLLECTIVE_MAX
                                   : TFC_COLLECTIVE_ADD;
}

static tfc_status prepare(struct tfc_prepare_ctx *ctx, tfc_collective_kind kind, bool gives) {
  struct collective *c = TFC_ARENA_NEW(ctx->arena, struct collective);
  if (!c) return tfc_status_no_memory("a collective operation");
  *c = (struct collective){.call = {.kind = kind, .gives = gives, .rank = -1, .device = device_number(ctx->node)}};
  c->call.dtype = tfc_node_attr_type(ctx->graph, ctx->node, "T", TFC_DTYPE_NONE);
  c->call.math = math_of(ctx, "merge_op");
  c->call.divides = tfc_str_is(tfc_node_attr_string(ctx->graph, ctx->node, "final_op", "Id"), "Div");
  c->call.group = (int32_t)tfc_node_attr_int(ctx->graph, ctx->node, "group_key", 0);
  c->call.size = (int32_t)tfc_node_attr_int(ctx->graph, ctx->node, "group_size", 0);
  c->call.instance = tfc_node_attr_int(ctx->graph, ctx->node, "instance_key", 0);
  c->call.shape = TFC_SHAPE_UNKNOWN;
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "shape");
  if (shape && shape->kind == TFC_ATTR_SHAPE) c->call.shape = *shape->shape;
  c->copies = gives && tfc_output_may_change(ctx->graph, tfc_node_inputs(ctx->graph, ctx->node)[0]);
  ctx->state = c;
  return NULL;
}
static tfc_status prepare_reduce(struct tfc_prepare_ctx *ctx) {
  return prepare(ctx, TFC_COLLECTIVE_REDUCE, true);
}
static tfc_status prepare_reduction(struct tfc_prepare_ctx *ctx) {
  TFC_RETURN_IF_ERROR(prepare(ctx, TFC_COLLECTIVE_REDUCE, true));
  struct collective *c = ctx->state;
  c->call.math = math_of(ctx, "reduction");
  return NULL;
}
static tfc_status prepare_gather(struct tfc_prepare_ctx *ctx) {
  return prepare(ctx, TFC_COLLECTIVE_GATHER, true);
}
static tfc_status prepare_scatter(struct tfc_prepare_ctx *ctx) {
  return prepare(ctx, TFC_COLLECTIVE_REDUCE_SCATTER, true);
}
static tfc_status prepare_exchange(struct tfc_prepare_ctx *ctx) {
  return prepare(ctx, TFC_COLLECTIVE_ALL_TO_ALL, true);
}
static tfc_status prepare_send(struct tfc_prepare_ctx *ctx) {
  return prepare(ctx, TFC_COLLECTIVE_BROADCAST, true);
}
static tfc_status prepare_receive(struct tfc_prepare_ctx *ctx) {
  return prepare(ctx, TFC_COLLECTIVE_BROADCAST, false);
}

static tfc_status call(struct tfc_kernel_ctx *ctx, const struct tfc_collective_call *how) {
  const struct collective *c = ctx->state;
  struct tfc_collectives *collectives = NULL;
  struct tfc_tensor copy = {0};
  TFC_RETURN_IF_ERROR(tfc_collectives_of(ctx->env->resources, &collectives));
  tfc_status s = c->copies ? tfc_tensor_clone(ctx->inputs[0], &copy) : NULL;
  const struct tfc_tensor *value = !how->gives ? NULL : c->copies ? &copy : ctx->inputs[0];
  if (!s) s = tfc_collectives_call(collectives, ctx, how, value);
  tfc_tensor_release(&copy);
  tfc_collectives_release(collectives);
  return s;
}

static tfc_status by_attrs(struct tfc_kernel_ctx *ctx) {
  const struct collective *c = ctx->state;
  return call(ctx, &c->call);
}
// group_size, group_key and instance_key after what is given; then a receiver's shape.
static tfc_status by_inputs(struct tfc_kernel_ctx *ctx) {
  const struct collective *c = ctx->state;
  struct tfc_collective_call how = c->call;
  const uint32_t first = how.gives;
  for (uint32_t i = first; i < first + 3; i++)
    TFC_KERNEL_CHECK(tfc_tensor_elements(ctx->inputs[i]) == 1, "size and keys of a group must be scalars");
  how.size = (int32_t)ops_scalar_int(ctx->inputs[first]);
  how.group = (int32_t)ops_scalar_int(ctx->inputs[first + 1]);
  how.instance = ops_scalar_int(ctx->inputs[first + 2]);
  if (!how.gives) TFC_RETURN_IF_ERROR(tfc_tensor_to_shape(ctx->inputs[3], &how.shape));
  return call(ctx, &how);
}
static tfc_status by_communicator(struct tfc_kernel_ctx *ctx) {
  const struct collective *c = ctx->state;
  struct tfc_collective_call how = c->call;
  struct tfc_object *object = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 1, &communicator_type, &object));
  struct communicator *in = (struct communicator *)(void *)object;
  if (tfc_tensor_elements(ctx->inputs[2]) != 0)
    return tfc_status_make(TFC_UNIMPLEMENTED, "group_assignment must be empty, as in TensorFlow");
  how.group = in->group, how.rank = in->rank, how.size = in->size;
  how.instance = atomic_fetch_add(&in->instance, 1);
  return call(ctx, &how);
}

// --- Shapes ----------------------------------------------------------------------------------------------------------
// The first dimension is that of the input, times or divided by the size of the group.
static tfc_status shape_of_group(struct tfc_shape_ctx *ctx, bool gathers) {
  ctx->outputs[0] = *ctx->inputs[0];
  if (ctx->outputs[0].rank < 1) return NULL;
  int64_t size = tfc_node_attr_int(ctx->graph, ctx->node, "group_size", 0), *first = &ctx->outputs[0].dims[0];
  if (ctx->node->input_count > 1 && ctx->input_values[1]) size = ops_scalar_int(ctx->input_values[1]);
  const bool known = size > 0 && *first >= 0 && (gathers ? *first <= INT64_MAX / size : *first % size == 0);
  *first = !known ? TFC_DIM_UNKNOWN : gathers ? *first * size : *first / size;
  return NULL;
}
static tfc_status shape_gather(struct tfc_shape_ctx *ctx) {
  return shape_of_group(ctx, true);
}
static tfc_status shape_scatter(struct tfc_shape_ctx *ctx) {
  return shape_of_group(ctx, false);
}
static tfc_status shape_receive(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *shape = tfc_node_attr(ctx->graph, ctx->node, "shape");
  if (shape && shape->kind == TFC_ATTR_SHAPE)
    ctx->outputs[0] = *shape->shape;
  else if (ctx->node->input_count > 3)
    ctx->outputs[0] = *ctx->input_as_shape[3];
  return NULL;
}

#define TYPES "{bfloat16, float, half, double, int32, int64}"
#define SENT_TYPES "{bool, float, half, double, int32, int64}"
#define HINT "communication_hint: string = 'auto', timeout_seconds: float = 0.0"
#define KEYS "group_size: int32, group_key: int32, instance_key: int32"
#define OLD "group_size: int, group_key: int, instance_key: int"
#define ON(shape_, prepare_, kernel_)                                                                                  \
  .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_ASYNC | TFC_OP_NOT_DIFFERENTIABLE, .host_inputs = UINT32_MAX,        \
  .host_outputs = UINT32_MAX, .shape = shape_, .prepare = prepare_, .kernel = kernel_
static const struct tfc_op_def data_collective_rows[] = {
    {.name = "CollectiveReduce",
     .inputs = "input: T",
     .outputs = "data: T",
     .attrs = "T: " TYPES ", " OLD ", merge_op: {'Min', 'Max', 'Mul', 'Add'}, final_op: {'Id', 'Div'}, "
              "subdiv_offsets: list(int), wait_for: list(int) = [], " HINT,
     ON(ops_shape_same, prepare_reduce, by_attrs)},
    {.name = "CollectiveGather",
     .inputs = "input: T",
     .outputs = "data: T",
     .attrs = "T: {float, half, double, int32, int64}, " OLD ", shape: shape, " HINT,
     ON(shape_gather, prepare_gather, by_attrs)},
    {.name = "CollectiveBcastSend",
     .inputs = "input: T",
     .outputs = "data: T",
     .attrs = "T: " SENT_TYPES ", " OLD ", shape: shape, " HINT,
     ON(ops_shape_same, prepare_send, by_attrs)},
    {.name = "CollectiveBcastRecv",
     .outputs = "data: T",
     .attrs = "T: " SENT_TYPES ", " OLD ", shape: shape, " HINT,
     ON(shape_receive, prepare_receive, by_attrs)},
    {.name = "CollectiveReduceV2",
     .inputs = "input: T, " KEYS ", ordering_token: Nordering_token * resource",
     .outputs = "data: T",
     .attrs = "T: " TYPES ", merge_op: {'Min', 'Max', 'Mul', 'Add'}, final_op: {'Id', 'Div'}, " HINT
              ", is_stateless: bool = false, Nordering_token: int >= 0 = 0, max_subdivs_per_device: int = -1",
     ON(ops_shape_same, prepare_reduce, by_inputs)},
    {.name = "CollectiveGatherV2",
     .inputs = "input: T, " KEYS ", ordering_token: Nordering_token * resource",
     .outputs = "data: T",
     .attrs =
         "T: {float, half, double, int32, int64}, " HINT ", is_stateless: bool = false, Nordering_token: int >= 0 = 0",
     ON(shape_gather, prepare_gather, by_inputs)},
    {.name = "CollectiveReduceScatterV2",
     .inputs = "input: T, " KEYS ", ordering_token: Nordering_token * resource",
     .outputs = "data: T",
     .attrs = "T: " TYPES ", merge_op: {'Min', 'Max', 'Mul', 'Add'}, final_op: {'Id', 'Div'}, " HINT
              ", is_stateless: bool = false, Nordering_token: int >= 0 = 0, max_subdivs_per_device: int = -1",
     ON(shape_scatter, prepare_scatter, by_inputs)},
    {.name = "CollectiveAllToAllV2",
     .inputs = "input: T, " KEYS ", ordering_token: Nordering_token * resource",
     .outputs = "data: T",
     .attrs = "T: " TYPES ", " HINT ", is_stateless: bool = false, Nordering_token: int >= 0 = 0",
     ON(ops_shape_same, prepare_exchange, by_inputs)},
    {.name = "CollectiveBcastSendV2",
     .inputs = "input: T, " KEYS,
     .outputs = "data: T",
     .attrs = "T: " SENT_TYPES ", " HINT,
     ON(ops_shape_same, prepare_send, by_inputs)},
    {.name = "CollectiveBcastRecvV2",
     .inputs = KEYS ", shape: Tshape",
     .outputs = "data: T",
     .attrs = "T: " SENT_TYPES ", Tshape: {int32, int64} = int32, " HINT,
     ON(shape_receive, prepare_receive, by_inputs)},
    {.name = "CollectiveInitializeCommunicator",
     .inputs = "group_key: int32, rank: int32, group_size: int32",
     .outputs = "communicator: resource",
     .attrs = HINT,
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = UINT32_MAX,
     .host_outputs = UINT32_MAX,
     .shape = ops_shape_scalar,
     .kernel = initialize},
    {.name = "CollectiveReduceV3",
     .inputs = "input: T, communicator: resource, group_assignment: int32",
     .outputs = "data: T",
     .attrs = "T: " TYPES ", reduction: {'Min', 'Max', 'Mul', 'Add'}, timeout_seconds: float = 0.0",
     ON(ops_shape_same, prepare_reduction, by_communicator)},
    {.name = "CollectiveAllToAllV3",
     .inputs = "input: T, communicator: resource, group_assignment: int32",
     .outputs = "data: T",
     .attrs = "T: " TYPES ", timeout_seconds: float = 0.0",
     ON(ops_shape_same, prepare_exchange, by_communicator)},
};
TFC_REGISTER_OPS(data_collective_rows);
