// How the operands of a chain lie in the space of rows x columns over which it runs (chain.h).
#ifndef TFC_RUNTIME_HOST_CHAIN_SPACE_H
#define TFC_RUNTIME_HOST_CHAIN_SPACE_H

#include "runtime/host/chain/chain.h"

struct tfc_chain_space {
  int64_t rows, columns;
};
// The space of a result: its last dimension is a row.
struct tfc_chain_space tfc_chain_space_of(const struct tfc_shape *shape);
// Finds the strides with which loops read an operand in the space of `whole`. False: no strides express it.
bool tfc_chain_lies(const struct tfc_shape *operand, const struct tfc_shape *whole, struct tfc_chain_space space,
                    struct tfc_chain_operand *out);
// Whether the operand has an element for each of the space, in the same order.
bool tfc_chain_is_whole(const struct tfc_shape *operand, struct tfc_chain_space space);

#endif
