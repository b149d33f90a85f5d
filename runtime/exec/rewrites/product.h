// Describes matrix products in float32 on CPU devices to the rewrites that change them: single products, and sums of
// products.
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

// The state of an operation that computes a sum of products: rows [row, row + rows) of the result [m, n].
struct tfc_product_sum {
  int64_t count, m, n, row, rows;
  // `goes_on`: input 0 is the result of earlier operations, which computed other rows. With `adds` it also contains the
  // sum of earlier terms for these rows, and this operation adds its own terms.
  bool goes_on;
  bool adds;
  struct tfc_product_form products[];
};

// Whether the operation is a product that the kernels of runtime/host compute; *out describes it.
bool tfc_is_product(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_product_form *out);
bool tfc_is_product_sum(const struct tfc_ir_op *op); // its state is a tfc_product_sum
// Returns the operands as the kernel takes them. The operand A begins with row `row` of the tensor `a`.
struct tfc_product tfc_product_operands(const struct tfc_product_form *form, int64_t row, const struct tfc_tensor *a,
                                        const struct tfc_tensor *b);
struct tfc_matrix tfc_product_matrix(const struct tfc_tensor *t, bool transpose);

#endif
