// Stacks that exist for one step. A loop pushes the values that its gradient needs. A resource handle refers to a
// stack; the older operations pass two strings instead, container and name, under which the step keeps it.
#include <pthread.h>
#include <stdlib.h>

#include "runtime/base/array.h"
#include "runtime/ops/data_stack.h"
#include "runtime/ops/data_variant.h"

struct stack {
  struct tfc_object object;
  pthread_mutex_t lock;
  tfc_dtype dtype;
  int64_t most; // -1: any number
  bool closed;
  TFC_ARRAY(struct tfc_tensor) items;
};
static void stack_destroy(struct tfc_object *self) {
  struct stack *s = (struct stack *)self;
  for (size_t i = 0; i < s->items.count; i++) tfc_tensor_release(&s->items.data[i]);
  tfc_array_free(&s->items);
  pthread_mutex_destroy(&s->lock);
  free(s);
}
static const struct tfc_object_type stack_type = {.name = "stack", .destroy = stack_destroy};

static tfc_status stack_make(struct tfc_kernel_ctx *ctx, struct stack **out) {
  struct stack *s = calloc(1, sizeof *s);
  if (!s) return tfc_status_no_memory(NULL);
  s->object = (struct tfc_object){.type = &stack_type, .references = 1};
  pthread_mutex_init(&s->lock, NULL);
  s->dtype = tfc_node_attr_type(ctx->graph, ctx->node, "elem_type", TFC_DTYPE_NONE);
  s->most = ctx->input_count ? ops_scalar_int(ctx->inputs[0]) : -1;
  *out = s;
  return NULL;
}
static tfc_status stack_create(struct tfc_kernel_ctx *ctx) {
  struct stack *s = NULL;
  TFC_KERNEL_CHECK(ctx->inputs[0]->shape.rank == 0, "Stack size must be a scalar");
  TFC_RETURN_IF_ERROR(stack_make(ctx, &s));
  return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, &s->object);
}
static tfc_status hand_over(void *arg, struct tfc_object **out) {
  *out = arg;
  return NULL;
}
// Makes a new stack each time that the node runs: the name contains a counter.
static tfc_status stack_create_ref(struct tfc_kernel_ctx *ctx) {
  static _Atomic uint64_t made;
  struct stack *s = NULL;
  struct tfc_object *o = NULL;
  struct tfc_tensor *y = NULL;
  struct tfc_text name = {0};
  TFC_RETURN_IF_ERROR(stack_make(ctx, &s));
  tfc_text_add(&name, ctx->node->name);
  tfc_text_printf(&name, "_%llu", (unsigned long long)made++);
  tfc_str view = {name.data, name.size};
  tfc_status status = name.failed ? tfc_status_no_memory(NULL) : NULL;
  if (!status)
    status =
        tfc_resources_find_or_create(ctx->env->step_resources, TFC_STR("_stacks"), view, &stack_type, hand_over, s, &o);
  tfc_object_release(status ? &s->object : o); // the step has its own reference
  if (!status) status = tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE(2), &y);
  if (!status) status = tfc_tensor_set_string(y, 0, TFC_STR("_stacks"));
  if (!status) status = tfc_tensor_set_string(y, 1, view);
  tfc_text_deinit(&name);
  return status;
}
static tfc_status stack_of(struct tfc_kernel_ctx *ctx, struct stack **out) {
  struct tfc_object *o = NULL;
  const struct tfc_tensor *h = ctx->inputs[0];
  if (h->dtype == TFC_STRING) {
    TFC_KERNEL_CHECK(tfc_tensor_elements(h) == 2, "Stack handle must have two elements, but had shape: %s",
                     tfc_shape_show(&h->shape, (char[TFC_SHAPE_TEXT]){0}));
    TFC_RETURN_IF_ERROR(tfc_resources_find(ctx->env->step_resources, tfc_tensor_get_string(h, 0),
                                           tfc_tensor_get_string(h, 1), &stack_type, &o));
    tfc_object_release(o);
  } else {
    TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &stack_type, &o));
  }
  *out = (struct stack *)o;
  return NULL;
}

static tfc_status push(struct tfc_kernel_ctx *ctx, bool shape_only) {
  struct stack *st = NULL;
  struct tfc_tensor kept = {0};
  const struct tfc_tensor *x = ctx->inputs[1];
  TFC_RETURN_IF_ERROR(stack_of(ctx, &st));
  TFC_KERNEL_CHECK(x->dtype == st->dtype, "Must have type %s but got %s", tfc_dtype_name(st->dtype),
                   tfc_dtype_name(x->dtype));
  if (shape_only)
    kept.dtype = x->dtype, kept.shape = x->shape, kept.size = x->size;
  else
    TFC_RETURN_IF_ERROR(tfc_data_keep(ctx, x, &kept));
  tfc_status s = NULL;
  pthread_mutex_lock(&st->lock);
  if (st->closed)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "Stack has already been closed.");
  else if (st->most >= 0 && (int64_t)st->items.count >= st->most)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "Stack overflowed when its max_size is %lld", (long long)st->most);
  else if (!tfc_array_push(&st->items, kept))
    s = tfc_status_no_memory(NULL);
  else
    kept = (struct tfc_tensor){0};
  pthread_mutex_unlock(&st->lock);
  tfc_tensor_release(&kept);
  return s ? s : tfc_kernel_set_output(ctx, 0, x);
}

static tfc_status stack_push(struct tfc_kernel_ctx *ctx) {
  return push(ctx, false);
}
static tfc_status stack_push_shape(struct tfc_kernel_ctx *ctx) {
  return push(ctx, true);
}

static tfc_status stack_pop(struct tfc_kernel_ctx *ctx) {
  struct stack *st = NULL;
  TFC_RETURN_IF_ERROR(stack_of(ctx, &st));
  struct tfc_tensor top = {0};
  tfc_status s = NULL;
  pthread_mutex_lock(&st->lock);
  if (st->closed)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "Stack has already been closed.");
  else if (st->items.count == 0)
    s = tfc_status_make(TFC_INVALID_ARGUMENT, "Stack is empty when calling Pop().");
  else
    top = st->items.data[--st->items.count];
  pthread_mutex_unlock(&st->lock);
  return s ? s : tfc_data_output(ctx, 0, &top);
}

static tfc_status stack_close(struct tfc_kernel_ctx *ctx) {
  struct stack *st = NULL;
  TFC_RETURN_IF_ERROR(stack_of(ctx, &st));
  pthread_mutex_lock(&st->lock);
  st->closed = true;
  for (size_t i = 0; i < st->items.count; i++) tfc_tensor_release(&st->items.data[i]);
  st->items.count = 0;
  pthread_mutex_unlock(&st->lock);
  return NULL;
}

static tfc_status shape_push(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = *ctx->inputs[1];
  return NULL;
}
static tfc_status shape_create(struct tfc_shape_ctx *ctx) {
  ctx->outputs[0] = tfc_data_handle_shape();
  return NULL;
}
const struct tfc_op_def tfc_stack_push_shape_def = {.name = "_StackPushShape",
                                                    .inputs = "handle: resource, elem: T",
                                                    .outputs = "output: T",
                                                    .attrs = "T: type, swap_memory: bool = false",
                                                    .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
                                                    .host_inputs = 1,
                                                    .shape = shape_push,
                                                    .kernel = stack_push_shape};

static const struct tfc_op_def data_stack_rows[] = {
    {.name = "StackV2",
     .role = TFC_ROLE_STACK,
     .inputs = "max_size: int32",
     .outputs = "handle: resource",
     .attrs = "elem_type: type, stack_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .host_outputs = 1,
     .shape = shape_create,
     .kernel = stack_create},
    {.name = "StackPushV2",
     .role = TFC_ROLE_PUSH,
     .inputs = "handle: resource, elem: T",
     .outputs = "output: T",
     .attrs = "T: type, swap_memory: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT | TFC_TYPE_BIT(TFC_BOOL)},
     .host_inputs = 1,
     .shape = shape_push,
     .kernel = stack_push},
    {.name = "StackPopV2",
     .role = TFC_ROLE_POP,
     .inputs = "handle: resource",
     .outputs = "elem: elem_type",
     .attrs = "elem_type: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"elem_type", TFC_INT32_BIT | TFC_TYPE_BIT(TFC_BOOL)},
     .host_inputs = 1,
     .shape = ops_shape_nothing,
     .kernel = stack_pop},
    {.name = "StackCloseV2",
     .role = TFC_ROLE_STACK_CLOSE,
     .inputs = "handle: resource",
     .flags = TFC_OP_STATEFUL | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .shape = ops_shape_none,
     .kernel = stack_close},
    {.name = "Stack",
     .role = TFC_ROLE_STACK,
     .outputs = "handle: Ref(string)",
     .attrs = "elem_type: type, stack_name: string = ''",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = shape_create,
     .kernel = stack_create_ref},
    {.name = "StackPush",
     .role = TFC_ROLE_PUSH,
     .inputs = "handle: Ref(string), elem: T",
     .outputs = "output: T",
     .attrs = "T: type, swap_memory: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"T", TFC_INT32_BIT | TFC_TYPE_BIT(TFC_BOOL)},
     .shape = shape_push,
     .kernel = stack_push},
    {.name = "StackPop",
     .role = TFC_ROLE_POP,
     .inputs = "handle: Ref(string)",
     .outputs = "elem: elem_type",
     .attrs = "elem_type: type",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .host = {"elem_type", TFC_INT32_BIT | TFC_TYPE_BIT(TFC_BOOL)},
     .shape = ops_shape_nothing,
     .kernel = stack_pop},
    {.name = "StackClose",
     .role = TFC_ROLE_STACK_CLOSE,
     .inputs = "handle: Ref(string)",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE,
     .shape = ops_shape_none,
     .kernel = stack_close},
};
TFC_REGISTER_OPS(data_stack_rows);
