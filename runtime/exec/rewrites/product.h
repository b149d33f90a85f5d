// Matrix products in float32 on CPU devices, as rewrites see them: alone, or as terms of a sum.
#ifndef TFC_RUNTIME_EXEC_REWRITES_PRODUCT_H
#define TFC_RUNTIME_EXEC_REWRITES_PRODUCT_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/host/gemm/products.h"

struct tfc_product_form {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  bool packed_b; // its right operand is packed
  bool split_b;  // ... for the tile unit
};

// An operation for a sum of products; it computes rows [row, row + rows) of the result [m, n].
struct tfc_product_sum {
  int64_t count, m, n, row, rows;
  // Input 0 is what earlier operations computed: other rows, and with `adds` the sum of earlier terms for these rows.
  bool goes_on;
  bool adds;
  struct tfc_product_form products[];
};

// Whether this operation is a product that the host's kernels compute; *out describes it.
bool tfc_is_product(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_product_form *out);
bool tfc_is_product_sum(const struct tfc_ir_op *op); // its state is a tfc_product_sum
// Returns the kernel's operands; A begins with row `row`.
struct tfc_product tfc_product_operands(const struct tfc_product_form *form, int64_t row, const struct tfc_tensor *a,
                                        const struct tfc_tensor *b);
struct tfc_matrix tfc_product_matrix(const struct tfc_tensor *t, bool transpose);

#endif
