// cuDNN's recurrent layers: tfc imports, differentiates and prunes them and infers their shapes. They have no kernel
// here, because TensorFlow has no such kernels for a CPU either.
//
// input [time, batch, in] (or batch first), input_h and input_c [layers * directions, batch, units], params [n].
#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

static bool text_is(const struct tfc_shape_ctx *ctx, const char *attr, const char *value) {
  return tfc_str_is(tfc_node_attr_string(ctx->graph, ctx->node, attr, ""), value);
}
static tfc_status shape_forward(struct tfc_shape_ctx *ctx) {
  struct tfc_shape x, h, params;
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 0, 3, &x));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 1, 3, &h));
  TFC_RETURN_IF_ERROR(ops_with_rank(ctx, 3, 1, &params));
  int64_t directions = text_is(ctx, "direction", "bidirectional") ? 2 : 1;
  int64_t projected = tfc_node_attr_int(ctx->graph, ctx->node, "num_proj", 0);
  int64_t units = projected > 0 ? projected : h.dims[2];
  ctx->outputs[0] = TFC_SHAPE(x.dims[0], x.dims[1], ops_dim_mul(units, directions));
  ctx->outputs[1] = h;
  ctx->outputs[2] = text_is(ctx, "rnn_mode", "lstm") ? *ctx->inputs[2] : TFC_SHAPE_SCALAR;
  if (ctx->outputs[2].rank < 0) ctx->outputs[2] = tfc_shape_unknown_of_rank(3);
  ctx->outputs[3] = tfc_shape_unknown_of_rank(1);
  if (ctx->node->output_count > 4) ctx->outputs[4] = tfc_shape_unknown_of_rank(1);
  return NULL;
}
static tfc_status shape_backward(struct tfc_shape_ctx *ctx) {
  for (uint32_t i = 0; i < 4; i++) ctx->outputs[i] = *ctx->inputs[i];
  return NULL;
}

// The gradient op's inputs are all inputs, the first three outputs, their gradients, and what the forward op reserved.
static tfc_status gradient(struct tfc_grad_ctx *c) {
  tfc_str op = tfc_builder_node(c->builder, c->node)->op;
  bool v2 = tfc_str_ends(op, "V2"), v3 = tfc_str_ends(op, "V3");
  if (!grad_attr_bool(c, "is_training", true))
    return tfc_status_make(TFC_INVALID_ARGUMENT, "To use CudnnRNN in gradients, is_training must be set to True.");
  struct tfc_output in[16];
  uint32_t n = 0, inputs = v3 ? 5 : 4;
  for (uint32_t i = 0; i < inputs; i++) in[n++] = grad_in(c, i);
  for (uint32_t i = 0; i < 3; i++) in[n++] = grad_out(c, i);
  for (uint32_t i = 0; i < 3; i++)
    in[n++] = tfc_output_valid(c->grad_outputs[i]) ? c->grad_outputs[i] : grad_zeros_like(c, grad_out(c, i));
  in[n++] = grad_out(c, 3);
  if (v2 || v3) in[n++] = grad_out(c, 4);
  struct tfc_output g = grad_node(c,
                                  v3   ? "CudnnRNNBackpropV3"
                                  : v2 ? "CudnnRNNBackpropV2"
                                       : "CudnnRNNBackprop",
                                  in, n,
                                  v3 ? "rnn_mode input_mode direction dropout seed seed2 num_proj time_major"
                                     : "rnn_mode input_mode direction dropout seed seed2");
  for (int32_t i = 0; i < 4; i++) c->grad_inputs[i] = (struct tfc_output){g.node, i};
  return grad_status(c);
}

static const struct tfc_op_def nn_cudnn_rnn_rows[] = {
    {.name = "CudnnRNN",
     .inputs = "input: T, input_h: T, input_c: T, params: T",
     .outputs = "output: T, output_h: T, output_c: T, reserve_space: T",
     .attrs = "T: {bfloat16, half, float, double}, rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm', "
              "input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input', direction: "
              "{'unidirectional', 'bidirectional'} = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = "
              "0, is_training: bool = true",
     .flags = TFC_OP_STATEFUL,
     .shape = shape_forward,
     .gradient = gradient},
    {.name = "CudnnRNNV2",
     .inputs = "input: T, input_h: T, input_c: T, params: T",
     .outputs = "output: T, output_h: T, output_c: T, reserve_space: T, host_reserved: int8",
     .attrs = "T: {bfloat16, half, float, double}, rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm', "
              "input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input', direction: "
              "{'unidirectional', 'bidirectional'} = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = "
              "0, is_training: bool = true",
     .flags = TFC_OP_STATEFUL,
     .host_outputs = 16,
     .shape = shape_forward,
     .gradient = gradient},
    {.name = "CudnnRNNV3",
     .inputs = "input: T, input_h: T, input_c: T, params: T, sequence_lengths: int32",
     .outputs = "output: T, output_h: T, output_c: T, reserve_space: T, host_reserved: int8",
     .attrs = "T: {bfloat16, half, float, double}, rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm', "
              "input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input', direction: "
              "{'unidirectional', 'bidirectional'} = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = "
              "0, num_proj: int = 0, is_training: bool = true, time_major: bool = true",
     .flags = TFC_OP_STATEFUL,
     .host_inputs = 16,
     .host_outputs = 16,
     .shape = shape_forward,
     .gradient = gradient},
    {.name = "CudnnRNNBackprop",
     .inputs = "input: T, input_h: T, input_c: T, params: T, output: T, output_h: T, output_c: T, output_backprop: T, "
               "output_h_backprop: T, output_c_backprop: T, reserve_space: T",
     .outputs = "input_backprop: T, input_h_backprop: T, input_c_backprop: T, params_backprop: T",
     .attrs =
         "T: {bfloat16, half, float, double}, rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm', input_mode: "
         "{'linear_input', 'skip_input', 'auto_select'} = 'linear_input', direction: {'unidirectional', "
         "'bidirectional'} = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = 0",
     .flags = TFC_OP_STATEFUL,
     .shape = shape_backward},
    {.name = "CudnnRNNBackpropV2",
     .inputs = "input: T, input_h: T, input_c: T, params: T, output: T, output_h: T, output_c: T, output_backprop: T, "
               "output_h_backprop: T, output_c_backprop: T, reserve_space: T, host_reserved: int8",
     .outputs = "input_backprop: T, input_h_backprop: T, input_c_backprop: T, params_backprop: T",
     .attrs =
         "T: {bfloat16, half, float, double}, rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm', input_mode: "
         "{'linear_input', 'skip_input', 'auto_select'} = 'linear_input', direction: {'unidirectional', "
         "'bidirectional'} = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = 0",
     .flags = TFC_OP_STATEFUL,
     .host_inputs = 1 << 11,
     .shape = shape_backward},
    {.name = "CudnnRNNBackpropV3",
     .inputs =
         "input: T, input_h: T, input_c: T, params: T, sequence_lengths: int32, output: T, output_h: T, output_c: T, "
         "output_backprop: T, output_h_backprop: T, output_c_backprop: T, reserve_space: T, host_reserved: int8",
     .outputs = "input_backprop: T, input_h_backprop: T, input_c_backprop: T, params_backprop: T",
     .attrs = "T: {bfloat16, half, float, double}, rnn_mode: {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'} = 'lstm', "
              "input_mode: {'linear_input', 'skip_input', 'auto_select'} = 'linear_input', direction: "
              "{'unidirectional', 'bidirectional'} = 'unidirectional', dropout: float = 0, seed: int = 0, seed2: int = "
              "0, num_proj: int = 0, time_major: bool = true",
     .flags = TFC_OP_STATEFUL,
     .host_inputs = 1 << 4 | 1 << 12,
     .shape = shape_backward},
};
TFC_REGISTER_OPS(nn_cudnn_rnn_rows);
