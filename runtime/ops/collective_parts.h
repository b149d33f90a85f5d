// What a collective operation takes, and what each member gets of what all have given.
#ifndef TFC_RUNTIME_OPS_COLLECTIVE_PARTS_H
#define TFC_RUNTIME_OPS_COLLECTIVE_PARTS_H

#include "runtime/ops/collective.h"

// Checks a call by itself. `value`: what the member gives, or NULL.
TFC_MUST_USE tfc_status tfc_collective_check(const struct tfc_collective_call *how, const struct tfc_tensor *value);
// Makes the result of the member with this place in its group. `all`: the sum, or all tensors one after the other.
TFC_MUST_USE tfc_status tfc_collective_own(const struct tfc_collective_call *how, uint32_t place,
                                           const struct tfc_tensor *all, struct tfc_tensor *out);

#endif
