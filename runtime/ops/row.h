// Functions that the rows of many op families share: shape functions, costs, reading attributes and scalars. Those for
// gradients are in gradient.h.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_ROW_H
#define TFC_RUNTIME_OPS_ROW_H

#include "runtime/ops/kernel.h"

// Lists of types for the attribute strings of rows.
#define OPS_TYPES_NUMBER                                                                                               \
  "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, "    \
  "uint16, complex128, half, uint32, uint64}"
#define OPS_TYPES_REAL "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define OPS_TYPES_FLOAT "{bfloat16, half, float, double}"
#define OPS_TYPES_FLOAT_COMPLEX "{bfloat16, half, float, double, complex64, complex128}"

// --- Shape functions ---------------------------------------------------------------------------------------------
tfc_status ops_shape_same(struct tfc_shape_ctx *ctx);      // every output has the shape of input 0
tfc_status ops_shape_merged(struct tfc_shape_ctx *ctx);    // all inputs must have one shape, which outputs get
tfc_status ops_shape_none(struct tfc_shape_ctx *ctx);      // for ops without outputs
tfc_status ops_shape_broadcast(struct tfc_shape_ctx *ctx); // output 0 is inputs 0 and 1 broadcast
tfc_status ops_shape_scalar(struct tfc_shape_ctx *ctx);    // every output is a scalar
tfc_status ops_shape_nothing(struct tfc_shape_ctx *ctx);   // outputs of unknown shape

// Merges the shapes of inputs [from, to), which must be compatible.
TFC_MUST_USE tfc_status ops_merge_inputs(const struct tfc_shape_ctx *ctx, uint32_t from, uint32_t to,
                                         struct tfc_shape *out);
// Finds the shape of input `i`, which must have this rank (or at least this rank); if nothing is known, dimensions are
// unknown. `out` may be NULL.
TFC_MUST_USE tfc_status ops_with_rank(const struct tfc_shape_ctx *ctx, uint32_t i, int rank, struct tfc_shape *out);
TFC_MUST_USE tfc_status ops_with_rank_at_least(const struct tfc_shape_ctx *ctx, uint32_t i, int rank,
                                               struct tfc_shape *out);
// Finds the shape of input `i`, which must be square matrices [..., n, n].
TFC_MUST_USE tfc_status ops_with_square(const struct tfc_shape_ctx *ctx, uint32_t i, struct tfc_shape *out);
// Finds the value of a constant integer scalar; false if it is not known.
bool ops_known_int(const struct tfc_shape_ctx *ctx, uint32_t i, int64_t *out);
// Finds the values of an integer vector that is completely known and has at most `capacity` elements; otherwise false.
bool ops_known_ints(const struct tfc_shape_ctx *ctx, uint32_t i, int64_t *out, int capacity, int *out_count);
// Returns the shape that an integer vector describes, as far as known: from its value, its partial value, or its
// length.
struct tfc_shape ops_described_shape(const struct tfc_shape_ctx *ctx, uint32_t i);
// Sets output 0's partial value, if the caller keeps one.
void ops_set_partial(struct tfc_shape_ctx *ctx, uint32_t output, const struct tfc_shape *value);

// Return the sum and the product of two dimensions. If one is unknown, or 64 bits do not hold the result, it is
// unknown.
static inline int64_t ops_dim_add(int64_t a, int64_t b) {
  int64_t c;
  return a < 0 || b < 0 || __builtin_add_overflow(a, b, &c) ? TFC_DIM_UNKNOWN : c;
}
static inline int64_t ops_dim_mul(int64_t a, int64_t b) {
  int64_t c;
  return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &c) ? TFC_DIM_UNKNOWN : c;
}

// --- Costs -------------------------------------------------------------------------------------------------------
double ops_cost_bytes(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs); // each operand counts once
// Count one operation for each element of output 0, and of input 0.
void ops_cost_outputs(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out);
void ops_cost_inputs(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                     const struct tfc_shape *outputs, struct tfc_op_cost *out);
// For decompositions of matrices and for solving: counts as many operations for each element of input 0 as it has
// columns.
void ops_cost_cubic(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs, struct tfc_op_cost *out);
// Counts no FLOP, and twice the bytes of output 0: gathers and slices do not read all of their input.
void ops_cost_moved(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs, struct tfc_op_cost *out);
// Counts `flops` for each element of output 0 (or of input 0 if there is no output), and the bytes of all operands.
void ops_cost_elementwise(double flops, const struct tfc_graph *g, const struct tfc_node *n,
                          const struct tfc_shape *inputs, const struct tfc_shape *outputs, struct tfc_op_cost *out);
#define OPS_COST_PER_ELEMENT(name, flops)                                                                              \
  static void name(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,                \
                   const struct tfc_shape *outputs, struct tfc_op_cost *out) {                                         \
    ops_cost_elementwise(flops, g, n, inputs, outputs, out);                                                           \
  }
// For a view: counts nothing.
void ops_cost_nothing(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out);

// --- Preparing a node's state ------------------------------------------------------------------------------------
// Allocates the state of a plan's node in the plan's arena.
#define OPS_PREPARE_STATE(ctx, type, name)                                                                             \
  type *name = TFC_ARENA_NEW((ctx)->arena, type);                                                                      \
  if (!name) return tfc_status_no_memory(NULL);                                                                        \
  (ctx)->state = name

// --- Kernels -----------------------------------------------------------------------------------------------------
// The number in a scalar of any real type (ops_scalar_int: of any integer type); 0 if the tensor is empty.
double ops_scalar(const struct tfc_tensor *t);
int64_t ops_scalar_int(const struct tfc_tensor *t);
// Makes an `axis` in [-rank, rank) non-negative.
TFC_MUST_USE tfc_status ops_axis(int64_t axis, int rank, int *out);

#endif
