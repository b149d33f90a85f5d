// Operations on queues of tuples (data_queue.h).
#include "runtime/ops/data_queue.h"
#include "runtime/ops/state_common.h"

// --- Kernels -----------------------------------------------------------------------------------------------------
static tfc_status enqueue_of(struct tfc_kernel_ctx *ctx, bool many) {
  struct tfc_queue *q = NULL;
  TFC_RETURN_IF_ERROR(tfc_queue_of_input(ctx, 0, &q));
  tfc_status s = tfc_queue_put_inputs(ctx, q, many, 1);
  tfc_queue_release(q);
  return s;
}
static tfc_status enqueue(struct tfc_kernel_ctx *ctx) {
  return enqueue_of(ctx, false);
}
static tfc_status enqueue_many(struct tfc_kernel_ctx *ctx) {
  return enqueue_of(ctx, true);
}

static tfc_status dequeue(struct tfc_kernel_ctx *ctx) {
  struct tfc_queue *q = NULL;
  TFC_RETURN_IF_ERROR(tfc_queue_of_input(ctx, 0, &q));
  tfc_status s = tfc_queue_take_one(ctx, q);
  tfc_queue_release(q);
  return s;
}
static tfc_status dequeue_several(struct tfc_kernel_ctx *ctx, bool up_to) {
  struct tfc_queue *q = NULL;
  TFC_RETURN_IF_ERROR(tfc_queue_of_input(ctx, 0, &q));
  tfc_status s = tfc_queue_take(ctx, q, ops_scalar_int(ctx->inputs[1]), up_to);
  tfc_queue_release(q);
  return s;
}
static tfc_status dequeue_many(struct tfc_kernel_ctx *ctx) {
  return dequeue_several(ctx, false);
}
static tfc_status dequeue_up_to(struct tfc_kernel_ctx *ctx) {
  return dequeue_several(ctx, true);
}

static tfc_status close_(struct tfc_kernel_ctx *ctx) {
  struct tfc_queue *q = NULL;
  TFC_RETURN_IF_ERROR(tfc_queue_of_input(ctx, 0, &q));
  tfc_status s = tfc_queue_close(q, tfc_node_attr_bool(ctx->graph, ctx->node, "cancel_pending_enqueues", false));
  tfc_queue_release(q);
  return s;
}

static tfc_status size(struct tfc_kernel_ctx *ctx) {
  struct tfc_queue *q = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_queue_of_input(ctx, 0, &q));
  int64_t n = tfc_queue_size(q);
  tfc_queue_release(q);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y));
  *(int32_t *)y->data = (int32_t)n;
  return NULL;
}
static tfc_status is_closed(struct tfc_kernel_ctx *ctx) {
  struct tfc_queue *q = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_queue_of_input(ctx, 0, &q));
  bool closed = tfc_queue_is_closed(q);
  tfc_queue_release(q);
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &TFC_SHAPE_SCALAR, &y));
  *(bool *)y->data = closed;
  return NULL;
}

// --- Shapes ------------------------------------------------------------------------------------------------------
static tfc_status shape_ref(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = TFC_SHAPE(2);
  return NULL;
}
static tfc_status shape_many(struct tfc_shape_ctx *ctx) { // the components' shapes are the queue's, not known here
  return ops_shape_nothing(ctx);
}

#define QUEUE(kernel_) .host_outputs = 1, .shape = ops_shape_scalar, .kernel = kernel_
#define REF .host_outputs = 1, .shape = shape_ref, .kernel = tfc_queue_of_node
#define ON(shape_, kernel_) .host_inputs = UINT32_MAX, .host_outputs = UINT32_MAX, .shape = shape_, .kernel = kernel_
static const struct tfc_op_def data_queue_rows[] = {
    {.name = "FIFOQueueV2",
     .outputs = "handle: resource",
     .attrs = "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, container: string "
              "= '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     QUEUE(tfc_queue_of_node)},
    {.name = "FIFOQueue",
     .outputs = "handle: Ref(string)",
     .attrs = "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, container: string "
              "= '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     REF},
    {.name = "PaddingFIFOQueueV2",
     .outputs = "handle: resource",
     .attrs = "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, container: string "
              "= '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     QUEUE(tfc_queue_of_node)},
    {.name = "PaddingFIFOQueue",
     .outputs = "handle: Ref(string)",
     .attrs = "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, container: string "
              "= '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     REF},
    {.name = "RandomShuffleQueueV2",
     .outputs = "handle: resource",
     .attrs = "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, min_after_dequeue: "
              "int = 0, seed: int = 0, seed2: int = 0, container: string = '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     QUEUE(tfc_queue_of_node)},
    {.name = "RandomShuffleQueue",
     .outputs = "handle: Ref(string)",
     .attrs = "component_types: list(type) >= 1, shapes: list(shape) >= 0 = [], capacity: int = -1, min_after_dequeue: "
              "int = 0, seed: int = 0, seed2: int = 0, container: string = '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     REF},
    {.name = "PriorityQueueV2",
     .outputs = "handle: resource",
     .attrs = "component_types: list(type) >= 0 = [], shapes: list(shape) >= 0, capacity: int = -1, container: string "
              "= '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     QUEUE(tfc_queue_of_node)},
    {.name = "PriorityQueue",
     .outputs = "handle: Ref(string)",
     .attrs = "component_types: list(type) >= 0 = [], shapes: list(shape) >= 0, capacity: int = -1, container: string "
              "= '', shared_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     REF},
    {.name = "QueueEnqueueV2",
     .role = TFC_ROLE_ENQUEUE,
     .inputs = "handle: resource, components: Tcomponents",
     .attrs = "Tcomponents: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(ops_shape_none, enqueue),
     .effect = TFC_EFFECT_UPDATE},
    {.name = "QueueEnqueue",
     .role = TFC_ROLE_ENQUEUE,
     .inputs = "handle: Ref(string), components: Tcomponents",
     .attrs = "Tcomponents: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(ops_shape_none, enqueue),
     .effect = TFC_EFFECT_UPDATE},
    {.name = "QueueEnqueueManyV2",
     .role = TFC_ROLE_ENQUEUE_MANY,
     .inputs = "handle: resource, components: Tcomponents",
     .attrs = "Tcomponents: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(ops_shape_none, enqueue_many),
     .effect = TFC_EFFECT_UPDATE},
    {.name = "QueueEnqueueMany",
     .role = TFC_ROLE_ENQUEUE_MANY,
     .inputs = "handle: Ref(string), components: Tcomponents",
     .attrs = "Tcomponents: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(ops_shape_none, enqueue_many),
     .effect = TFC_EFFECT_UPDATE},
    {.name = "QueueDequeueV2",
     .role = TFC_ROLE_DEQUEUE,
     .inputs = "handle: resource",
     .outputs = "components: component_types",
     .attrs = "component_types: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_READS_OUTSIDE | TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(shape_many, dequeue)},
    {.name = "QueueDequeue",
     .role = TFC_ROLE_DEQUEUE,
     .inputs = "handle: Ref(string)",
     .outputs = "components: component_types",
     .attrs = "component_types: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_READS_OUTSIDE | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(shape_many, dequeue)},
    {.name = "QueueDequeueManyV2",
     .role = TFC_ROLE_DEQUEUE_MANY,
     .inputs = "handle: resource, n: int32",
     .outputs = "components: component_types",
     .attrs = "component_types: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_READS_OUTSIDE | TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(shape_many, dequeue_many)},
    {.name = "QueueDequeueMany",
     .role = TFC_ROLE_DEQUEUE_MANY,
     .inputs = "handle: Ref(string), n: int32",
     .outputs = "components: component_types",
     .attrs = "component_types: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_READS_OUTSIDE | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(shape_many, dequeue_many)},
    {.name = "QueueDequeueUpToV2",
     .role = TFC_ROLE_DEQUEUE_MANY,
     .inputs = "handle: resource, n: int32",
     .outputs = "components: component_types",
     .attrs = "component_types: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_READS_OUTSIDE | TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(shape_many, dequeue_up_to)},
    {.name = "QueueDequeueUpTo",
     .role = TFC_ROLE_DEQUEUE_MANY,
     .inputs = "handle: Ref(string), n: int32",
     .outputs = "components: component_types",
     .attrs = "component_types: list(type) >= 1, timeout_ms: int = -1",
     .flags = TFC_OP_READS_OUTSIDE | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE | TFC_OP_ASYNC,
     ON(shape_many, dequeue_up_to)},
    {.name = "QueueCloseV2",
     .inputs = "handle: resource",
     .attrs = "cancel_pending_enqueues: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     ON(ops_shape_none, close_),
     .role = TFC_ROLE_QUEUE_CLOSE},
    {.name = "QueueClose",
     .inputs = "handle: Ref(string)",
     .attrs = "cancel_pending_enqueues: bool = false",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     ON(ops_shape_none, close_),
     .role = TFC_ROLE_QUEUE_CLOSE},
    {.name = "QueueSizeV2",
     .inputs = "handle: resource",
     .outputs = "size: int32",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     ON(ops_shape_scalar, size)},
    {.name = "QueueSize",
     .inputs = "handle: Ref(string)",
     .outputs = "size: int32",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     ON(ops_shape_scalar, size)},
    {.name = "QueueIsClosedV2",
     .inputs = "handle: resource",
     .outputs = "is_closed: bool",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     ON(ops_shape_scalar, is_closed)},
    {.name = "QueueIsClosed",
     .inputs = "handle: Ref(string)",
     .outputs = "is_closed: bool",
     .flags = TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     ON(ops_shape_scalar, is_closed)},
};
TFC_REGISTER_OPS(data_queue_rows);
