// Which operands of an operation are in host memory on a device with its own memory, by TensorFlow's rules. If it is
// the same for all types, the op's row says it by host_inputs and host_outputs; if only for some types, mostly int32,
// by `host`. An operation whose operands are all in host memory runs on the host: nothing is launched or copied.
//
//   struct tfc_host_memory m = tfc_host_memory(graph, node, node->def);
//   if (tfc_host_bit(m.inputs, k)) ...
#ifndef TFC_RUNTIME_OPS_HOST_MEMORY_H
#define TFC_RUNTIME_OPS_HOST_MEMORY_H

#include "runtime/graph/op_def.h"

struct tfc_host_memory {
  uint32_t inputs, outputs; // bits of operands, see tfc_host_bit; strings and handles are in host memory anyway
  bool all;                 // every operand is in host memory: the operation runs on the host
};
// `def`: the op that runs for the node, its own or one that replaces several.
struct tfc_host_memory tfc_host_memory(const struct tfc_graph *g, const struct tfc_node *n,
                                       const struct tfc_op_def *def);
// Operands beyond the number of bits are in host memory if all others are.
static inline bool tfc_host_bit(uint32_t bits, uint32_t operand) {
  return operand < 32 ? bits >> operand & 1 : bits == UINT32_MAX;
}
// Whether variables of this type keep their value in host memory, on any device.
bool tfc_host_variable(tfc_dtype dtype);

#endif
