// For other rewrites: which chain an operation runs (chains.c makes the chains).
#ifndef TFC_RUNTIME_EXEC_REWRITES_CHAINS_H
#define TFC_RUNTIME_EXEC_REWRITES_CHAINS_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/host/chain/chain.h"

// Returns the chain that an operation runs, or NULL if it runs none. The chain's tensors [0, input_count) are the
// operation's inputs, then come its outputs.
const struct tfc_chain *tfc_rewrites_chain_of(const struct tfc_ir_op *op);

// Describes a single element-wise operation of the plan as a chain of one step, and does not change the plan. *out:
// NULL if it cannot be a step of a chain. inputs: those of the chain, of which there are (*out)->input_count.
TFC_MUST_USE tfc_status tfc_rewrites_chain_alone(struct tfc_ir *ir, const struct tfc_ir_op *op,
                                                 struct tfc_ir_input inputs[2], struct tfc_chain_op **out);

#endif
