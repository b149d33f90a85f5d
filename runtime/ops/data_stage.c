// Staging areas: Stage puts a tuple in and Unstage takes the oldest one out, also in another step. Stage waits for room
// and Unstage for a tuple; StagePeek leaves the tuple there. An area belongs to the session; its name is given by
// container and shared_name, or else by the node.
#include <stdlib.h>

#include "runtime/ops/data_queue.h"
#include "runtime/ops/element_types.h"
#include "runtime/ops/row.h"

struct area {
  struct tfc_object object;
  struct tfc_queue *queue;
};
static void area_destroy(struct tfc_object *self) {
  tfc_queue_release(((struct area *)self)->queue);
  free(self);
}
static void area_wake(struct tfc_object *self) {
  tfc_queue_wake(((struct area *)self)->queue);
}
static void area_waits(struct tfc_object *self, void (*fn)(void *arg, int64_t step), void *arg) {
  tfc_queue_waits(((struct area *)self)->queue, fn, arg);
}
static tfc_status area_save(struct tfc_object *self, struct tfc_text *out) {
  return tfc_queue_save(((struct area *)self)->queue, out);
}
static tfc_status area_load(struct tfc_object *self, tfc_str words) {
  return tfc_queue_load(((struct area *)self)->queue, words);
}
static const struct tfc_object_type area_type = {.name = "staging area",
                                                 .destroy = area_destroy,
                                                 .wake = area_wake,
                                                 .waits = area_waits,
                                                 .save = area_save,
                                                 .load = area_load};

static tfc_str name_of(const struct tfc_kernel_ctx *ctx) {
  tfc_str name = tfc_node_attr_string(ctx->graph, ctx->node, "shared_name", "");
  return name.size ? name : ctx->node->name;
}
static tfc_status area_make(void *arg, struct tfc_object **out) {
  struct tfc_kernel_ctx *ctx = arg;
  const struct tfc_attr *types = tfc_node_attr(ctx->graph, ctx->node, "dtypes");
  int64_t capacity = tfc_node_attr_int(ctx->graph, ctx->node, "capacity", 0);
  if (tfc_node_attr_int(ctx->graph, ctx->node, "memory_limit", 0) > 0)
    return tfc_status_make(TFC_UNIMPLEMENTED, "a staging area with a memory_limit (only capacity is kept)");
  struct area *a = calloc(1, sizeof *a);
  if (!a) return tfc_status_no_memory(NULL);
  a->object = (struct tfc_object){.type = &area_type, .references = 1};
  bool listed = types && types->kind == TFC_ATTR_LIST_TYPE;
  tfc_status s = tfc_queue_create_fifo(name_of(ctx), capacity > 0 ? capacity : -1, listed ? types->count : 0,
                                       listed ? types->types : &(tfc_dtype){TFC_DTYPE_NONE}, &a->queue);
  if (s) {
    free(a);
    return s;
  }
  *out = &a->object;
  return NULL;
}

enum what { PUT, TAKE, PEEK, SIZE, CLEAR };
static tfc_status on_area(struct tfc_kernel_ctx *ctx, enum what what) {
  struct tfc_object *o = NULL;
  struct tfc_tensor *y = NULL;
  tfc_status s = NULL;
  TFC_RETURN_IF_ERROR(tfc_resources_find_or_create(ctx->env->resources,
                                                   tfc_node_attr_string(ctx->graph, ctx->node, "container", ""),
                                                   name_of(ctx), &area_type, area_make, ctx, &o));
  struct tfc_queue *q = ((struct area *)o)->queue;
  switch (what) {
  case PUT: s = tfc_queue_put_inputs(ctx, q, false, 0); break;
  case TAKE: s = tfc_queue_take_one(ctx, q); break;
  case PEEK: s = tfc_queue_peek(ctx, q, ops_scalar_int(ctx->inputs[0])); break;
  case CLEAR: tfc_queue_clear(q); break;
  case SIZE:
    s = tfc_kernel_output(ctx, 0, TFC_INT32, &TFC_SHAPE_SCALAR, &y);
    if (!s) *(int32_t *)y->data = (int32_t)tfc_queue_size(q);
  }
  tfc_object_release(o);
  return s;
}
static tfc_status stage(struct tfc_kernel_ctx *ctx) {
  return on_area(ctx, PUT);
}
static tfc_status unstage(struct tfc_kernel_ctx *ctx) {
  return on_area(ctx, TAKE);
}
static tfc_status stage_peek(struct tfc_kernel_ctx *ctx) {
  return on_area(ctx, PEEK);
}
static tfc_status stage_size(struct tfc_kernel_ctx *ctx) {
  return on_area(ctx, SIZE);
}
static tfc_status stage_clear(struct tfc_kernel_ctx *ctx) {
  return on_area(ctx, CLEAR);
}

#define ATTRS(least)                                                                                                   \
  "capacity: int >= 0 = 0, memory_limit: int >= 0 = 0, dtypes: list(type)" least                                       \
  ", container: string = '', shared_name: string = ''"
#define FLAGS TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_NOT_DIFFERENTIABLE
static const struct tfc_op_def data_stage_rows[] = {
    {.name = "Stage",
     .inputs = "values: dtypes",
     .attrs = ATTRS(" >= 1"),
     .flags = FLAGS | TFC_OP_ASYNC,
     .shape = ops_shape_none,
     .kernel = stage},
    {.name = "Unstage",
     .outputs = "values: dtypes",
     .attrs = ATTRS(" >= 1"),
     .flags = FLAGS | TFC_OP_ASYNC,
     .shape = ops_shape_nothing,
     .kernel = unstage},
    {.name = "StagePeek",
     .inputs = "index: int32",
     .outputs = "values: dtypes",
     .attrs = ATTRS(" >= 1"),
     .flags = FLAGS | TFC_OP_ASYNC,
     .shape = ops_shape_nothing,
     .kernel = stage_peek},
    {.name = "StageSize",
     .outputs = "size: int32",
     .attrs = ATTRS(""),
     .flags = FLAGS,
     .shape = ops_shape_scalar,
     .kernel = stage_size},
    {.name = "StageClear", .attrs = ATTRS(""), .flags = FLAGS, .shape = ops_shape_none, .kernel = stage_clear},
};
TFC_REGISTER_OPS(data_stage_rows);
