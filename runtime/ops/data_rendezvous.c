// _Send and _Recv: tensors that go from one task to another, named as in TensorFlow. The code that cuts a graph into
// parts (runtime/cluster) inserts them. Their attributes hold the number of the edge and the rank of the other task.
#include <stdlib.h>

#include "runtime/graph/kept_buffer.h"
#include "runtime/ops/rendezvous.h"

struct crossing {
  uint32_t edge, peer;
  // The tensor is a variable's own memory, which may be written to while the message is sent. So it is lent, and who
  // writes waits (tfc_state_writable); or it is copied, if it is small or cannot be lent.
  bool copies;
  tfc_dtype dtype;
  tfc_str name;
  const struct tfc_shape *shape; // of what is received: the rest of the plan relies on it; NULL: it is not known
};

static tfc_status prepare(struct tfc_prepare_ctx *ctx) {
  struct crossing *c = TFC_ARENA_NEW(ctx->arena, struct crossing);
  if (!c) return tfc_status_no_memory(NULL);
  int64_t edge = tfc_node_attr_int(ctx->graph, ctx->node, "_edge", -1),
          peer = tfc_node_attr_int(ctx->graph, ctx->node, "_peer", -1);
  if (edge < 0 || edge > UINT32_MAX || peer < 0 || peer > UINT32_MAX)
    return tfc_status_make(TFC_INVALID_ARGUMENT, "it has no '_edge' and '_peer': only a cluster of tasks runs it");
  *c = (struct crossing){.edge = (uint32_t)edge,
                         .peer = (uint32_t)peer,
                         .copies = tfc_node_attr_bool(ctx->graph, ctx->node, "_copies", false),
                         .name = tfc_node_attr_string(ctx->graph, ctx->node, "tensor_name", "")};
  c->dtype = tfc_node_attr_type(ctx->graph, ctx->node, "T", TFC_DTYPE_NONE);
  if (c->dtype == TFC_DTYPE_NONE) c->dtype = tfc_node_attr_type(ctx->graph, ctx->node, "tensor_type", TFC_DTYPE_NONE);
  if (ctx->def->role == TFC_ROLE_RECEIVE && tfc_shape_is_static(&ctx->output_shapes[0])) {
    struct tfc_shape *shape = TFC_ARENA_NEW(ctx->arena, struct tfc_shape);
    if (!shape) return tfc_status_no_memory(NULL);
    *shape = ctx->output_shapes[0];
    c->shape = shape;
  }
  ctx->state = c;
  return NULL;
}

static struct tfc_rendezvous_key key_of(const struct tfc_kernel_ctx *ctx, const struct crossing *c) {
  return (struct tfc_rendezvous_key){
      .step = ctx->env->step_id, .iteration = ctx->iteration, .edge = c->edge, .peer = c->peer};
}

static tfc_status check_cluster(const struct tfc_kernel_ctx *ctx) {
  if (ctx->env->rendezvous) return NULL;
  return tfc_status_make(TFC_FAILED_PRECONDITION, "there are no other tasks: only a cluster of them runs this");
}

static bool may_lend(const struct tfc_rendezvous *r, const struct tfc_tensor *t) {
  enum { LEAST = 1 << 16 };
  return r->lends && t->size >= LEAST && tfc_dtype_is_plain(t->dtype) && t->buffer && t->data == t->buffer->data;
}

static tfc_status send(struct tfc_kernel_ctx *ctx) {
  const struct crossing *c = ctx->state;
  struct tfc_rendezvous *r = ctx->env->rendezvous;
  TFC_RETURN_IF_ERROR(check_cluster(ctx));
  struct tfc_rendezvous_key key = key_of(ctx, c);
  struct tfc_tensor copy = {0};
  tfc_status s = NULL;
  if (!ctx->dead && c->copies)
    s = may_lend(r, ctx->inputs[0]) ? tfc_tensor_lend(ctx->inputs[0], &copy)
                                    : tfc_tensor_clone_kept(ctx->inputs[0], &copy);
  if (!s) s = r->send(r, &key, c->name, ctx->dead ? NULL : c->copies ? &copy : ctx->inputs[0], ctx->more);
  tfc_tensor_release(&copy);
  if (s) return s;
  ctx->dead = false; // the node has no outputs that could be dead
  ctx->done(ctx, NULL);
  return NULL;
}

static void give(struct tfc_kernel_ctx *ctx, tfc_status status, const struct tfc_tensor *value) {
  const struct crossing *c = ctx->state;
  ctx->dead = !status && !value;
  if (ctx->dead && c->shape)
    status = tfc_status_make(TFC_INVALID_ARGUMENT, "a dead tensor came from task %u, where none can be", c->peer);
  if (!status && value) {
    char came[TFC_SHAPE_TEXT], known[TFC_SHAPE_TEXT];
    if (value->dtype == c->dtype && c->shape && !tfc_shape_equal(c->shape, &value->shape))
      status = tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor of shape %s came from task %u, not %s",
                               tfc_shape_show(&value->shape, came), c->peer, tfc_shape_show(c->shape, known));
    else if (value->dtype == c->dtype)
      status = tfc_kernel_set_output(ctx, 0, value);
    else
      status = tfc_status_make(TFC_INVALID_ARGUMENT, "a tensor of type %s came from task %u, not %s",
                               tfc_dtype_name(value->dtype), c->peer, tfc_dtype_name(c->dtype));
  }
  ctx->done(ctx, status);
}
static tfc_status receive(struct tfc_kernel_ctx *ctx) {
  const struct crossing *c = ctx->state;
  TFC_RETURN_IF_ERROR(check_cluster(ctx));
  struct tfc_rendezvous_key key = key_of(ctx, c);
  ctx->env->rendezvous->receive(ctx->env->rendezvous, &key, c->name, ctx, give);
  return NULL;
}

static tfc_status shape_receive(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "_shape");
  ctx->outputs[0] = a && a->kind == TFC_ATTR_SHAPE ? *a->shape : TFC_SHAPE_UNKNOWN;
  return NULL;
}
static tfc_status shape_send(struct tfc_shape_ctx *ctx) {
  (void)ctx;
  return NULL;
}

static const struct tfc_op_def data_rendezvous_rows[] = {
    {.name = "_Recv",
     .role = TFC_ROLE_RECEIVE,
     .outputs = "tensor: tensor_type",
     .attrs = "tensor_type: type, tensor_name: string, send_device: string, send_device_incarnation: int, recv_device: "
              "string, client_terminated: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_ASYNC | TFC_OP_NOT_DIFFERENTIABLE,
     .host_outputs = UINT32_MAX,
     .shape = shape_receive,
     .prepare = prepare,
     .kernel = receive},
    {.name = "_Send",
     .role = TFC_ROLE_SEND,
     .inputs = "tensor: T",
     .attrs = "T: type, tensor_name: string, send_device: string, send_device_incarnation: int, recv_device: string, "
              "client_terminated: bool = false",
     .flags = TFC_OP_STATEFUL | TFC_OP_HOST | TFC_OP_ASYNC | TFC_OP_DEAD_INPUTS | TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = UINT32_MAX,
     .shape = shape_send,
     .prepare = prepare,
     .kernel = send},
};
TFC_REGISTER_OPS(data_rendezvous_rows);
