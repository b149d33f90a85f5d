// The shape function of eigenvalues and eigenvectors, which general and self-adjoint matrices share.
#ifndef TFC_RUNTIME_OPS_LINALG_EIG_H
#define TFC_RUNTIME_OPS_LINALG_EIG_H

#include "runtime/graph/op_def.h"

// Input 0 [..., n, n]; outputs: eigenvalues [..., n] and eigenvectors [..., n, n], or [0] without the attribute
// compute_v.
tfc_status ops_linalg_shape_eig(struct tfc_shape_ctx *ctx);

#endif
