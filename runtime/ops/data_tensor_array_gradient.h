// Gradients of TensorArray's operations (as in tensorflow/python/ops/tensor_array_grad.py). The gradient of a read
// writes to the gradient's own TensorArray, and the gradient of a write reads from it.
#ifndef TFC_RUNTIME_OPS_DATA_TENSOR_ARRAY_GRADIENT_H
#define TFC_RUNTIME_OPS_DATA_TENSOR_ARRAY_GRADIENT_H

#include "runtime/ops/gradient.h"

tfc_status ops_tensor_array_grad_read(struct tfc_grad_ctx *c);
tfc_status ops_tensor_array_grad_write(struct tfc_grad_ctx *c);
tfc_status ops_tensor_array_grad_gather(struct tfc_grad_ctx *c);
tfc_status ops_tensor_array_grad_scatter(struct tfc_grad_ctx *c);
tfc_status ops_tensor_array_grad_concat(struct tfc_grad_ctx *c);
tfc_status ops_tensor_array_grad_split(struct tfc_grad_ctx *c);

#endif
