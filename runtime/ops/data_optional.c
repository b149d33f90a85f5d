// Optionals: each is a tuple of tensors, or nothing.
#include "runtime/ops/data_variant.h"

static tfc_status from_value(struct tfc_kernel_ctx *ctx) {
  struct tfc_optional *o = NULL;
  TFC_RETURN_IF_ERROR(tfc_optional_create(ctx->input_count, true, &o));
  for (uint32_t i = 0; i < ctx->input_count; i++) {
    tfc_status s = tfc_data_keep(ctx, ctx->inputs[i], &o->values[i]);
    if (s) {
      tfc_object_release(&o->object);
      return s;
    }
  }
  return tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &o->object);
}
static tfc_status none(struct tfc_kernel_ctx *ctx) {
  struct tfc_optional *o = NULL;
  TFC_RETURN_IF_ERROR(tfc_optional_create(0, false, &o));
  return tfc_kernel_set_object(ctx, 0, TFC_VARIANT, &o->object);
}
static tfc_status has_value(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *o = NULL;
  struct tfc_tensor *y = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &tfc_optional_type, &o));
  TFC_RETURN_IF_ERROR(tfc_kernel_output(ctx, 0, TFC_BOOL, &TFC_SHAPE_SCALAR, &y));
  *(bool *)y->data = ((struct tfc_optional *)o)->present;
  return NULL;
}
static tfc_status get_value(struct tfc_kernel_ctx *ctx) {
  struct tfc_object *object = NULL;
  TFC_RETURN_IF_ERROR(tfc_kernel_object(ctx, 0, &tfc_optional_type, &object));
  const struct tfc_optional *o = (const struct tfc_optional *)object;
  TFC_KERNEL_CHECK(o->present, "The given optional does not have a value.");
  TFC_KERNEL_CHECK(o->count == ctx->output_count, "The given optional has %u components, expected %u.", o->count,
                   ctx->output_count);
  const struct tfc_attr *shapes = tfc_node_attr(ctx->graph, ctx->node, "output_shapes");
  for (uint32_t i = 0; i < o->count; i++) {
    tfc_dtype want = ctx->graph->output_dtypes[ctx->node->output_begin + i];
    TFC_KERNEL_CHECK(o->values[i].dtype == want, "Component %u of the optional has type %s, expected %s", i,
                     tfc_dtype_name(o->values[i].dtype), tfc_dtype_name(want));
    TFC_KERNEL_CHECK(!shapes || shapes->kind != TFC_ATTR_LIST_SHAPE || i >= shapes->count ||
                         tfc_shape_compatible(&shapes->shapes[i], &o->values[i].shape),
                     "Component %u of the optional has shape %s, expected %s", i,
                     tfc_shape_show(&o->values[i].shape, (char[TFC_SHAPE_TEXT]){0}),
                     tfc_shape_show(&shapes->shapes[i], (char[TFC_SHAPE_TEXT]){0}));
    TFC_RETURN_IF_ERROR(tfc_kernel_set_output(ctx, i, &o->values[i]));
  }
  return NULL;
}

static tfc_status shape_get_value(struct tfc_shape_ctx *ctx) {
  const struct tfc_attr *a = tfc_node_attr(ctx->graph, ctx->node, "output_shapes");
  for (uint32_t i = 0; i < ctx->node->output_count; i++)
    ctx->outputs[i] = a && a->kind == TFC_ATTR_LIST_SHAPE && i < a->count ? a->shapes[i] : TFC_SHAPE_UNKNOWN;
  return NULL;
}

static tfc_status grad_of_from_value(struct tfc_grad_ctx *c) {
  uint32_t n = grad_in_count(c);
  tfc_dtype types[64];
  struct tfc_shape shapes[64];
  if (n > 64) return tfc_status_make(TFC_UNIMPLEMENTED, "the gradient of an optional of %u components", n);
  for (uint32_t i = 0; i < n; i++) {
    types[i] = grad_in_type(c, i);
    shapes[i] = *c->input_shapes[i];
    for (int k = 0; k < shapes[i].rank; k++)
      if (shapes[i].dims[k] < 0) shapes[i].dims[k] = TFC_DIM_UNKNOWN; // a symbol has no meaning in an attribute
  }
  struct tfc_attr attrs[2] = {
      {.name = TFC_STR("output_types"), .kind = TFC_ATTR_LIST_TYPE, .count = n, .types = types},
      {.name = TFC_STR("output_shapes"), .kind = TFC_ATTR_LIST_SHAPE, .count = n, .shapes = shapes}};
  struct tfc_output got = tfc_add(c->builder, "OptionalGetValue", NULL, &c->grad_outputs[0], 1, attrs, 2);
  for (uint32_t i = 0; i < n; i++) c->grad_inputs[i] = (struct tfc_output){got.node, (int32_t)i};
  return grad_status(c);
}
static tfc_status grad_of_get_value(struct tfc_grad_ctx *c) {
  uint32_t n = tfc_builder_node(c->builder, c->node)->output_count;
  struct tfc_output grads[64];
  if (n > 64) return tfc_status_make(TFC_UNIMPLEMENTED, "the gradient of an optional of %u components", n);
  for (uint32_t i = 0; i < n; i++)
    grads[i] = tfc_output_valid(c->grad_outputs[i]) ? c->grad_outputs[i] : grad_zeros_like(c, grad_out(c, i));
  c->grad_inputs[0] = tfc_add(c->builder, "OptionalFromValue", NULL, grads, n, NULL, 0);
  return grad_status(c);
}

static const struct tfc_op_def data_optional_rows[] = {
    {.name = "OptionalFromValue",
     .inputs = "components: Toutput_types",
     .outputs = "optional: variant",
     .attrs = "Toutput_types: list(type) >= 1",
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .gradient = grad_of_from_value,
     .kernel = from_value},
    {.name = "OptionalNone",
     .outputs = "optional: variant",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = none},
    {.name = "OptionalHasValue",
     .inputs = "optional: variant",
     .outputs = "has_value: bool",
     .flags = TFC_OP_NOT_DIFFERENTIABLE,
     .host_inputs = 1,
     .host_outputs = 1,
     .shape = ops_shape_scalar,
     .kernel = has_value},
    {.name = "OptionalGetValue",
     .inputs = "optional: variant",
     .outputs = "components: output_types",
     .attrs = "output_types: list(type) >= 1, output_shapes: list(shape) >= 1",
     .host_inputs = 1,
     .shape = shape_get_value,
     .gradient = grad_of_get_value,
     .kernel = get_value},
};
TFC_REGISTER_OPS(data_optional_rows);
