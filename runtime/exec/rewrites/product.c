#include "runtime/exec/rewrites/product.h"

// Whether this device runs the kernels of runtime/host.
static bool runs_here(const struct tfc_ir *ir, uint16_t device) {
  return ir->devices[device]->driver->host_kernels != TFC_HOST_KERNELS_NONE;
}

bool tfc_is_product(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_product_form *out) {
  if (op->dead || op->joint || op->prepared || !op->def || op->def->role != TFC_ROLE_PRODUCT) return false;
  if (!runs_here(ir, op->device) || op->input_count != 2 || op->output_count != 1) return false;
  const struct tfc_ir_value *b = &ir->values.data[op->inputs[1].value];
  const struct tfc_shape *sa = tfc_ir_shape(ir, &op->inputs[0]), *sb = tfc_ir_shape(ir, &op->inputs[1]);
  if (tfc_dtype_base(b->dtype) != TFC_FLOAT || sa->rank != 2 || sb->rank != 2) return false;
  if (!tfc_shape_is_static(sa) || !tfc_shape_is_static(sb)) return false;
  const struct tfc_node *node = &ir->graph->nodes[op->node];
  out->transpose_a = tfc_node_attr_bool(ir->graph, node, "transpose_a", false);
  out->transpose_b = tfc_node_attr_bool(ir->graph, node, "transpose_b", false);
  out->packed_b = out->split_b = false;
  out->m = sa->dims[out->transpose_a], out->k = sa->dims[!out->transpose_a];
  out->n = sb->dims[!out->transpose_b];
  return out->m > 0 && out->n > 0 && out->k > 0 && sb->dims[out->transpose_b] == out->k;
}

struct tfc_matrix tfc_product_matrix(const struct tfc_tensor *t, bool transpose) {
  int64_t columns = t->shape.dims[1];
  return (struct tfc_matrix){t->data, transpose ? 1 : columns, transpose ? columns : 1};
}

struct tfc_product tfc_product_operands(const struct tfc_product_form *form, int64_t row, const struct tfc_tensor *a,
                                        const struct tfc_tensor *b) {
  struct tfc_product out = {.a = tfc_product_matrix(a, form->transpose_a), .k = form->k};
  out.a.data += row * out.a.row;
  if (form->packed_b && form->split_b)
    out.split_b = b->data;
  else if (form->packed_b)
    out.packed_b = b->data;
  else
    out.b = tfc_product_matrix(b, form->transpose_b);
  return out;
}
