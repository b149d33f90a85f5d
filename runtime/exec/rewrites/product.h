// Describes matrix products in float32 on CPU devices to the rewrites that change them.
#ifndef TFC_RUNTIME_EXEC_REWRITES_PRODUCT_H
#define TFC_RUNTIME_EXEC_REWRITES_PRODUCT_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/host/gemm/products.h"

struct tfc_product_form {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  bool packed_b; // the right operand is packed
  bool split_b;  // ... for the tile unit
};

// Whether the operation is a product that the kernels of runtime/host compute; *out describes it.
bool tfc_is_product(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_product_form *out);
// Returns the operands as the kernel takes them. The operand A begins with row `row` of the tensor `a`.
struct tfc_product tfc_product_operands(const struct tfc_product_form *form, int64_t row, const struct tfc_tensor *a,
                                        const struct tfc_tensor *b);
struct tfc_matrix tfc_product_matrix(const struct tfc_tensor *t, bool transpose);

#endif
