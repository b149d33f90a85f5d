// Sums of matrix products that a rewrite has made of an AddN and the products that it adds.
#ifndef TFC_RUNTIME_EXEC_REWRITES_SUMS_H
#define TFC_RUNTIME_EXEC_REWRITES_SUMS_H

#include "runtime/exec/rewrites/product.h"

// The state of an operation that computes a sum of products: rows [row, row + rows) of the result [m, n].
struct tfc_product_sum {
  int64_t count, m, n, row, rows;
  // `goes_on`: input 0 is the result of earlier operations, which computed other rows. With `adds` it also contains the
  // sum of earlier terms for these rows, and this operation adds its own terms.
  bool goes_on;
  bool adds;
  struct tfc_product_form products[];
};

bool tfc_is_product_sum(const struct tfc_ir_op *op); // its state is a tfc_product_sum

#endif
