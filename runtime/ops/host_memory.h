// Which operands of an operation are in host memory on a device that has memory of its own, by TensorFlow's rules: a
// row of the op says so for every type (op_def.host_inputs and host_outputs), the table of host_memory.c for some,
// int32 above all. An operation whose operands all are runs on the host beside the device: nothing is launched or
// copied.
//
//   struct tfc_host_memory m = tfc_host_memory(graph, node, node->def);
//   if (tfc_host_bit(m.inputs, k)) ...
#ifndef TFC_RUNTIME_OPS_HOST_MEMORY_H
#define TFC_RUNTIME_OPS_HOST_MEMORY_H

#include "runtime/graph/op_def.h"

struct tfc_host_memory {
  uint32_t inputs, outputs; // bits, see tfc_host_bit; strings and handles are in host memory anyway
  bool all;                 // every operand is: it runs on the host
};
// `def`: what runs for the node, its own or another that does more.
struct tfc_host_memory tfc_host_memory(const struct tfc_graph *g, const struct tfc_node *n,
                                       const struct tfc_op_def *def);
// Operands beyond the bits are where all of them are.
static inline bool tfc_host_bit(uint32_t bits, uint32_t operand) {
  return operand < 32 ? bits >> operand & 1 : bits == UINT32_MAX;
}
// Bits of the types of the table's attribute for which an op's operands all are; 0: none.
uint32_t tfc_host_types(const struct tfc_op_def *def);
// Variables of this type keep their value in host memory, whatever device they are on.
bool tfc_host_variable(tfc_dtype dtype);

// The table, in order of op.
typedef enum tfc_host_reason {
  TFC_HOST_HELD,      // TensorFlow's kernel for GPUs has its operands in host memory
  TFC_HOST_NO_KERNEL, // it has none, and the operation is on the CPU
} tfc_host_reason;
struct tfc_host_op {
  const char *op;
  const char *attr; // the type that decides,
  uint32_t types;   // where it is one of these
  tfc_host_reason reason;
};
const struct tfc_host_op *tfc_host_ops(size_t *out_count);

#endif
