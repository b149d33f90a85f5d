// Gradients of sparse reductions, of sparse by dense products, and of ragged tensors' values.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_SPARSE_GRADIENT_H
#define TFC_RUNTIME_OPS_SPARSE_GRADIENT_H

#include "runtime/ops/row.h"

tfc_status ops_grad_sparse_reduce_sum(struct tfc_grad_ctx *g);
tfc_status ops_grad_sparse_softmax(struct tfc_grad_ctx *g);
tfc_status ops_grad_sparse_dense_mul(struct tfc_grad_ctx *g);
tfc_status ops_grad_sparse_dense_div(struct tfc_grad_ctx *g);
tfc_status ops_grad_ragged_to_tensor(struct tfc_grad_ctx *g);
tfc_status ops_grad_ragged_gather(struct tfc_grad_ctx *g);
tfc_status ops_grad_ragged_to_sparse(struct tfc_grad_ctx *g);

#endif
