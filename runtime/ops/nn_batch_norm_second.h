// The gradient of FusedBatchNormGradV2 and V3: batch normalisation's second derivative.
#ifndef TFC_RUNTIME_OPS_NN_BATCH_NORM_SECOND_H
#define TFC_RUNTIME_OPS_NN_BATCH_NORM_SECOND_H

#include "runtime/graph/op_def.h"

tfc_status ops_grad_batch_norm_grad(struct tfc_grad_ctx *ctx);

#endif
