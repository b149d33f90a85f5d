// TensorFlow keeps small integers (shapes, axes, counters) in host memory: for GPUs, it registers most kernels for
// int32 with all operands in host memory. Then operations on them cost no launch and no copy, and code that needs their
// values does not wait for the device.
//
// The `host` of a row comes from the kernels that TensorFlow 2.15.1 registers for GPUs (listed by
// tensorflow.python.framework.kernels): an op has it if all its operands are in host memory where the attribute has one
// of the types, but not for every type. Ops with GPU kernels but none for int32 have it too: TensorFlow puts these on
// the CPU (soft placement), with the variables and TensorArrays that they refer to. (For other types than int32, tfc
// has GPU kernels of its own.) Ops that pass values on in place (Switch, Merge, Enter and similar ops) and lists
// (variants are on the host) have none.
//
// Exception: TensorFlow has the inputs of OnesLike and ZerosLike in device memory, and copies a host tensor to the
// device although its elements are not read. tfc does not copy it.
#include "runtime/ops/host_memory.h"

// Returns the type that the node's attribute has, or the op's default if the node leaves it out.
static tfc_dtype type_of(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_op_def *def,
                         const char *attr) {
  tfc_dtype type = tfc_node_attr_type(g, n, attr, TFC_DTYPE_NONE);
  const struct tfc_op_signature *signature = type == TFC_DTYPE_NONE ? tfc_op_signature(def) : NULL;
  for (uint32_t i = 0; signature && i < signature->attr_count; i++) {
    const struct tfc_op_attr *a = &signature->attrs[i];
    if (tfc_str_is(a->name, attr) && a->has_default && a->kind == TFC_ATTR_TYPE) type = a->default_value.type;
  }
  return tfc_dtype_base(type);
}

// Whether every operand is in host memory.
static bool is_all(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_host_memory *m) {
  bool all = true;
  for (uint32_t k = 0; k < n->input_count && all; k++)
    all = tfc_host_bit(m->inputs, k) ||
          !tfc_dtype_is_plain(tfc_dtype_base(tfc_output_dtype(g, tfc_node_inputs(g, n)[k])));
  for (uint32_t k = 0; k < n->output_count && all; k++)
    all = tfc_host_bit(m->outputs, k) || !tfc_dtype_is_plain(tfc_dtype_base(g->output_dtypes[n->output_begin + k]));
  return all;
}

struct tfc_host_memory tfc_host_memory(const struct tfc_graph *g, const struct tfc_node *n,
                                       const struct tfc_op_def *def) {
  struct tfc_host_memory m = {0};
  if (!def) return m;
  m = (struct tfc_host_memory){.inputs = def->host_inputs, .outputs = def->host_outputs};
  if (def != n->def || def->flags & TFC_OP_FUNCTIONAL) return m;
  if (def->host.attr && def->host.types & TFC_TYPE_BIT(type_of(g, n, def, def->host.attr)))
    m.inputs = m.outputs = UINT32_MAX;
  m.all = is_all(g, n, &m);
  return m;
}

bool tfc_host_variable(tfc_dtype dtype) {
  return tfc_dtype_base(dtype) == TFC_INT32;
}
