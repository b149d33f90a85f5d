// Generators whose state is a variable (tf.random.Generator).
#ifndef TFC_RUNTIME_OPS_RANDOM_GENERATOR_H
#define TFC_RUNTIME_OPS_RANDOM_GENERATOR_H

#include "runtime/ops/kernel.h"
#include "runtime/ops/random_philox.h"

// Makes the generator from the variable of input 0, with the algorithm that input 1 names. Moves the variable's state
// on by so many numbers.
TFC_MUST_USE tfc_status tfc_random_of_variable(struct tfc_kernel_ctx *ctx, uint64_t numbers, struct tfc_philox *out);

#endif
