// What the families of neural-network, state, training, random, data and string ops share: scalars of any type, shape
// functions, costs and gradients.
#ifndef TFC_RUNTIME_OPS_NN_COMMON_H
#define TFC_RUNTIME_OPS_NN_COMMON_H

#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/kernel.h"

// A real number out of a scalar of any real dtype.
double tfc_nn_scalar(const struct tfc_tensor *t);
int64_t tfc_nn_int(const struct tfc_tensor *t); // scalar of any integer dtype

// --- Shapes ------------------------------------------------------------------------------------------------------
tfc_status tfc_nn_shape_first(struct tfc_shape_ctx *ctx);     // every output has input 0's shape
tfc_status tfc_nn_shape_scalar(struct tfc_shape_ctx *ctx);    // every output is a scalar
tfc_status tfc_nn_shape_unknown(struct tfc_shape_ctx *ctx);   // nothing can be said
tfc_status tfc_nn_shape_none(struct tfc_shape_ctx *ctx);      // no outputs to tell of
tfc_status tfc_nn_shape_merge_all(struct tfc_shape_ctx *ctx); // all inputs agree, outputs are like them
// Input `i` has this rank (or an unknown one, then `out` has unknown dimensions).
TFC_MUST_USE tfc_status tfc_nn_rank(struct tfc_shape_ctx *ctx, uint32_t i, int rank, struct tfc_shape *out);
TFC_MUST_USE tfc_status tfc_nn_rank_at_least(struct tfc_shape_ctx *ctx, uint32_t i, int rank);
// The shape given as data by input `i` (constants, partial values); unknown rank where nothing is known.
struct tfc_shape tfc_nn_shape_input(struct tfc_shape_ctx *ctx, uint32_t i);
// Merges the shape of a list of inputs.
TFC_MUST_USE tfc_status tfc_nn_merge_inputs(struct tfc_shape_ctx *ctx, uint32_t from, uint32_t to,
                                            struct tfc_shape *out);
// Unknown stays unknown; dimensions >= 0 are added or multiplied.
static inline int64_t tfc_dim_add(int64_t a, int64_t b) {
  return a < 0 || b < 0 ? TFC_DIM_UNKNOWN : a + b;
}
static inline int64_t tfc_dim_mul(int64_t a, int64_t b) {
  int64_t c;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &c) ? TFC_DIM_UNKNOWN : c;
}

// Element-wise costs: `flops` per element of output 0 beside all bytes.
void tfc_nn_cost_elementwise(double flops, const struct tfc_graph *g, const struct tfc_node *n,
                             const struct tfc_shape *inputs, const struct tfc_shape *outputs, struct tfc_op_cost *out);
// Bytes of all inputs and outputs.
double tfc_nn_bytes(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs);
#define TFC_COST_PER_ELEMENT(name, flops)                                                                              \
  static void name(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,                \
                   const struct tfc_shape *outputs, struct tfc_op_cost *out) {                                         \
    tfc_nn_cost_elementwise(flops, g, n, inputs, outputs, out);                                                        \
  }

// --- Gradients ---------------------------------------------------------------------------------------------------
// A node with the same-named attributes copied from the forward node: names is "strides padding data_format".
struct tfc_output tfc_grad_add(const struct tfc_grad_ctx *c, const char *op, const struct tfc_output *inputs,
                               uint32_t count, const char *copied);
#define TFC_OUTPUTS(...)                                                                                               \
  ((struct tfc_output[]){__VA_ARGS__}),                                                                                \
      (uint32_t)(sizeof((struct tfc_output[]){__VA_ARGS__}) / sizeof(struct tfc_output))
tfc_status tfc_grad_status(const struct tfc_grad_ctx *c); // NULL, or a copy of the builder's failure
// Nothing arrives there: no edge, or zeros that the gradient builder put in.
bool tfc_grad_is_zero(const struct tfc_grad_ctx *c, struct tfc_output g);
tfc_status tfc_grad_identity(struct tfc_grad_ctx *c); // dx = dy
tfc_status ops_grad_batch_norm_grad(struct tfc_grad_ctx *ctx);

#endif
