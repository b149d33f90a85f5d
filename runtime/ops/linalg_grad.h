// Short forms for gradients of matrix decompositions: products and adjoints of the last two dimensions.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_LINALG_GRAD_H
#define TFC_RUNTIME_OPS_LINALG_GRAD_H

#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// Returns the product a b; adj_a and adj_b take the adjoint of an operand.
static inline struct tfc_output grad_matmul(const struct tfc_grad_ctx *g, struct tfc_output a, bool adj_a,
                                            struct tfc_output b, bool adj_b) {
  struct tfc_attr attrs[2] = {tfc_attr_bool("adj_x", adj_a), tfc_attr_bool("adj_y", adj_b)};
  return tfc_add(g->builder, "BatchMatMulV2", "", (struct tfc_output[]){a, b}, 2, attrs, 2);
}
// Exchanges the last two dimensions of x, of any rank; `op` (a kind of transpose) also conjugates, or not.
static inline struct tfc_output grad_swapped(const struct tfc_grad_ctx *g, const char *op, struct tfc_output x) {
  struct tfc_builder *b = g->builder;
  struct tfc_output rank = grad_op1(g, "Rank", x), one = tfc_add_i32(b, 1), two = tfc_add_i32(b, 2);
  struct tfc_output less_one = g_sub(g, rank, one), less_two = g_sub(g, rank, two);
  struct tfc_output parts[2] = {grad_op3(g, "Range", tfc_add_i32(b, 0), less_two, one),
                                grad_pack(g, (struct tfc_output[]){less_one, less_two}, 2, 0)};
  return grad_op2(g, op, x, grad_concat(g, parts, 2, tfc_add_i32(b, 0)));
}
static inline struct tfc_output grad_adjoint(const struct tfc_grad_ctx *g, struct tfc_output x) {
  return grad_swapped(g, "ConjugateTranspose", x);
}
static inline struct tfc_output grad_band(const struct tfc_grad_ctx *g, struct tfc_output x, int64_t lower,
                                          int64_t upper) {
  return grad_op3(g, "MatrixBandPart", x, grad_int(g, TFC_INT64, lower), grad_int(g, TFC_INT64, upper));
}

#endif
