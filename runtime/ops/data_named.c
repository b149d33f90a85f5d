#include "runtime/ops/data_named.h"

tfc_str tfc_named_name(const struct tfc_kernel_ctx *ctx) {
  tfc_str shared = tfc_node_attr_string(ctx->graph, ctx->node, "shared_name", "");
  return shared.size ? shared : ctx->node->name;
}

tfc_status tfc_named_make(struct tfc_kernel_ctx *ctx, const struct tfc_object_type *type,
                          tfc_status (*create)(void *ctx, struct tfc_object **out)) {
  struct tfc_object *o = NULL;
  struct tfc_tensor *y = NULL;
  tfc_str container = tfc_node_attr_string(ctx->graph, ctx->node, "container", ""), name = tfc_named_name(ctx);
  bool handle = ctx->graph->output_dtypes[ctx->node->output_begin] == TFC_RESOURCE;
  TFC_RETURN_IF_ERROR(tfc_resources_find_or_create(ctx->env->resources, container, name, type, create, ctx, &o));
  if (handle) return tfc_kernel_set_object(ctx, 0, TFC_RESOURCE, o);
  tfc_object_release(o); // the session has its own reference
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_STRING, &TFC_SHAPE(2), &y));
  TFC_RETURN_IF_ERROR(tfc_tensor_set_string(y, 0, container));
  return tfc_tensor_set_string(y, 1, name);
}

tfc_status tfc_named_get(struct tfc_kernel_ctx *ctx, const struct tfc_object_type *type, struct tfc_object **out) {
  return tfc_named_input(ctx, 0, type, out);
}

tfc_status tfc_named_input(struct tfc_kernel_ctx *ctx, uint32_t input, const struct tfc_object_type *type,
                           struct tfc_object **out) {
  const struct tfc_tensor *h = ctx->inputs[input];
  if (h->dtype == TFC_STRING) {
    TFC_KERNEL_CHECK(tfc_tensor_elements(h) == 2, "input %u is no handle to a %s: it has not two strings", input,
                     type->name);
    return tfc_resources_find(ctx->env->resources, tfc_tensor_get_string(h, 0), tfc_tensor_get_string(h, 1), type, out);
  }
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, input, type, out));
  tfc_object_retain(*out);
  return NULL;
}
