// Which operands of an operation are in host memory on a device with its own memory, by TensorFlow's rules. If it is
// the same for all types, the op's row says it (op_def.host_inputs and host_outputs); if only for some types, mostly
// int32, the table in host_memory.c does. An operation whose operands are all in host memory runs on the host: nothing
// is launched or copied.
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
// Returns the types, as bits, of the attribute in the table for which all of the op's operands are in host memory; 0:
// none.
uint32_t tfc_host_types(const struct tfc_op_def *def);
// Whether variables of this type keep their value in host memory, on any device.
bool tfc_host_variable(tfc_dtype dtype);

// The table, ordered by op.
typedef enum tfc_host_reason {
  TFC_HOST_HELD,      // TensorFlow's GPU kernel has its operands in host memory
  TFC_HOST_NO_KERNEL, // TensorFlow has no GPU kernel, so the operation runs on the CPU
} tfc_host_reason;
struct tfc_host_op {
  const char *op;
  const char *attr; // the attribute with the type that decides
  uint32_t types;   // the types for which the row holds
  tfc_host_reason reason;
};
const struct tfc_host_op *tfc_host_ops(size_t *out_count);

#endif
