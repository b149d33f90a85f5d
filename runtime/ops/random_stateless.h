// Generators of ops without state, made from the ops' inputs.
#ifndef TFC_RUNTIME_OPS_RANDOM_STATELESS_H
#define TFC_RUNTIME_OPS_RANDOM_STATELESS_H

#include "runtime/ops/kernel.h"
#include "runtime/ops/random_philox.h"

// Makes the generator from a seed, a vector of two integers.
TFC_MUST_USE tfc_status tfc_random_of_seed(const struct tfc_tensor *seed, struct tfc_philox *out);
// Makes the generator from inputs (shape, seed, ...) or (shape, key, counter, alg, ...); *rest is the next input.
TFC_MUST_USE tfc_status tfc_random_of_inputs(struct tfc_kernel_ctx *ctx, struct tfc_philox *out, uint32_t *rest);

#endif
