#include "runtime/ops/data_tensor_array_gradient.h"

#include <stdio.h>

#include "runtime/ops/state_common.h"

// Adds a node of the operation `op`, in the version that the forward node has.
static struct tfc_output add(const struct tfc_grad_ctx *c, const char *op, const struct tfc_output *inputs,
                             uint32_t count, const struct tfc_attr *attrs, uint32_t attr_count) {
  tfc_str forward = tfc_builder_node(c->builder, c->node)->op;
  char name[32];
  snprintf(name, sizeof name, "%s%s", op, tfc_str_ends(forward, "V3") ? "V3" : tfc_str_ends(forward, "V2") ? "V2" : "");
  return tfc_add(c->builder, name, NULL, inputs, count, attrs, attr_count);
}
// Adds the node that makes the gradient's array, whose flow is *flow. Arrays of different gradient computations are
// distinguished by the part of the incoming gradient's name that ends in its "gradients…" scope.
static struct tfc_output gradient_array(const struct tfc_grad_ctx *c, struct tfc_output named_by,
                                        struct tfc_output *flow) {
  tfc_str name = tfc_builder_node(c->builder, named_by.node)->name, source = TFC_STR("gradients");
  for (size_t end = name.size; end > 0;) {
    tfc_str path = tfc_str_sub(name, 0, end);
    size_t slash = tfc_str_rfind(path, '/');
    tfc_str part = slash == SIZE_MAX ? path : tfc_str_sub(path, slash + 1, path.size);
    if (tfc_str_starts(part, "gradient")) {
      source = path;
      break;
    }
    end = slash == SIZE_MAX ? 0 : slash;
  }
  struct tfc_attr attr = tfc_attr_string("source", source);
  struct tfc_output g = add(c, "TensorArrayGrad", TFC_OUTPUTS(grad_in(c, 0), *flow), &attr, 1);
  if (grad_in_type(c, 0) == TFC_RESOURCE) *flow = (struct tfc_output){g.node, 1};
  return g;
}
static struct tfc_output flow_input(const struct tfc_grad_ctx *c) {
  return grad_in(c, grad_in_count(c) - 1);
}
tfc_status ops_tensor_array_grad_read(struct tfc_grad_ctx *c) {
  struct tfc_output flow = flow_input(c), g = gradient_array(c, c->grad_outputs[0], &flow);
  c->grad_inputs[2] = add(c, "TensorArrayWrite", TFC_OUTPUTS(g, grad_in(c, 1), c->grad_outputs[0], flow), NULL, 0);
  return grad_status(c);
}
static struct tfc_output read_back(const struct tfc_grad_ctx *c, const char *op, struct tfc_output g,
                                   const struct tfc_output *indices, struct tfc_output flow, tfc_dtype dtype) {
  struct tfc_attr attr = tfc_attr_type("dtype", dtype);
  if (indices) return add(c, op, TFC_OUTPUTS(g, *indices, flow), &attr, 1);
  return add(c, op, TFC_OUTPUTS(g, flow), &attr, 1);
}
tfc_status ops_tensor_array_grad_write(struct tfc_grad_ctx *c) {
  struct tfc_output flow = c->grad_outputs[0], index = grad_in(c, 1);
  struct tfc_output g = gradient_array(c, c->grad_outputs[0], &flow);
  c->grad_inputs[2] = read_back(c, "TensorArrayRead", g, &index, flow, grad_in_type(c, 2));
  c->grad_inputs[3] = c->grad_outputs[0];
  return grad_status(c);
}
tfc_status ops_tensor_array_grad_gather(struct tfc_grad_ctx *c) {
  struct tfc_output flow = flow_input(c), g = gradient_array(c, c->grad_outputs[0], &flow);
  c->grad_inputs[2] = add(c, "TensorArrayScatter", TFC_OUTPUTS(g, grad_in(c, 1), c->grad_outputs[0], flow), NULL, 0);
  return grad_status(c);
}
tfc_status ops_tensor_array_grad_scatter(struct tfc_grad_ctx *c) {
  struct tfc_output flow = c->grad_outputs[0], indices = grad_in(c, 1);
  struct tfc_output g = gradient_array(c, c->grad_outputs[0], &flow);
  c->grad_inputs[2] = read_back(c, "TensorArrayGather", g, &indices, flow, grad_in_type(c, 2));
  c->grad_inputs[3] = c->grad_outputs[0];
  return grad_status(c);
}
tfc_status ops_tensor_array_grad_concat(struct tfc_grad_ctx *c) {
  struct tfc_output flow = flow_input(c), g = gradient_array(c, c->grad_outputs[0], &flow);
  c->grad_inputs[1] = add(c, "TensorArraySplit", TFC_OUTPUTS(g, c->grad_outputs[0], grad_out(c, 1), flow), NULL, 0);
  return grad_status(c);
}
tfc_status ops_tensor_array_grad_split(struct tfc_grad_ctx *c) {
  struct tfc_output flow = c->grad_outputs[0], g = gradient_array(c, c->grad_outputs[0], &flow);
  c->grad_inputs[1] = read_back(c, "TensorArrayConcat", g, NULL, flow, grad_in_type(c, 1));
  c->grad_inputs[3] = c->grad_outputs[0];
  return grad_status(c);
}
