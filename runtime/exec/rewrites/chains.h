// For other rewrites: which chain an operation runs (chains.c makes the chains).
#ifndef TFC_RUNTIME_EXEC_REWRITES_CHAINS_H
#define TFC_RUNTIME_EXEC_REWRITES_CHAINS_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/host/chain/chain.h"

// Returns the chain that an operation runs, or NULL if it runs none. The chain's tensors [0, input_count) are the
// operation's inputs, then come its outputs.
const struct tfc_chain *tfc_rewrites_chain_of(const struct tfc_ir_op *op);

#endif
