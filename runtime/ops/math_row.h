// What the rows of many families share: shape functions, costs, reading attributes, and short forms for gradients.
// Private to runtime/ops.
#ifndef TFC_RUNTIME_OPS_MATH_ROW_H
#define TFC_RUNTIME_OPS_MATH_ROW_H

#include "runtime/ops/gradient.h"
#include "runtime/ops/kernel.h"

// Attribute strings of rows.
#define OPS_TYPES_NUMBER                                                                                               \
  "{float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, "    \
  "uint16, complex128, half, uint32, uint64}"
#define OPS_TYPES_REAL "{float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}"
#define OPS_TYPES_FLOAT "{bfloat16, half, float, double}"
#define OPS_TYPES_FLOAT_COMPLEX "{bfloat16, half, float, double, complex64, complex128}"

// --- Shape functions ---------------------------------------------------------------------------------------------
tfc_status ops_shape_same(struct tfc_shape_ctx *ctx);      // output 0 as input 0
tfc_status ops_shape_merged(struct tfc_shape_ctx *ctx);    // all inputs and the output agree
tfc_status ops_shape_broadcast(struct tfc_shape_ctx *ctx); // output 0 is inputs 0 and 1 broadcast
tfc_status ops_shape_scalar(struct tfc_shape_ctx *ctx);    // every output is a scalar
tfc_status ops_shape_nothing(struct tfc_shape_ctx *ctx);   // nothing is known

// Input `i` must have this rank (or at least it): its shape is merged with an unknown one of that rank.
TFC_MUST_USE tfc_status ops_with_rank(const struct tfc_shape_ctx *ctx, uint32_t i, int rank, struct tfc_shape *out);
TFC_MUST_USE tfc_status ops_with_rank_at_least(const struct tfc_shape_ctx *ctx, uint32_t i, int rank,
                                               struct tfc_shape *out);
// A constant integer scalar input; false when its value is not known.
bool ops_known_int(const struct tfc_shape_ctx *ctx, uint32_t i, int64_t *out);
// Values of an integer vector input that are known whole (count <= capacity); false otherwise.
bool ops_known_ints(const struct tfc_shape_ctx *ctx, uint32_t i, int64_t *out, int capacity, int *out_count);
// The shape that an integer vector input describes, as far as known: its value, its partial value, or its length.
struct tfc_shape ops_described_shape(const struct tfc_shape_ctx *ctx, uint32_t i);
// Sets output 0's partial value, where the caller keeps one.
void ops_set_partial(struct tfc_shape_ctx *ctx, uint32_t output, const struct tfc_shape *value);

// --- Costs -------------------------------------------------------------------------------------------------------
double ops_cost_bytes(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs); // every operand once
// One operation for each element of output 0; of input 0; of all inputs.
void ops_cost_outputs(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out);
void ops_cost_inputs(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                     const struct tfc_shape *outputs, struct tfc_op_cost *out);
// As many for each element of input 0 as it has columns: decompositions of matrices and solving with them.
void ops_cost_cubic(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs, struct tfc_op_cost *out);
// No FLOP; twice the bytes of output 0 (gathers and slices do not read the whole of their input).
void ops_cost_moved(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                    const struct tfc_shape *outputs, struct tfc_op_cost *out);
// A view: nothing.
void ops_cost_nothing(const struct tfc_graph *g, const struct tfc_node *n, const struct tfc_shape *inputs,
                      const struct tfc_shape *outputs, struct tfc_op_cost *out);

// --- Preparing ---------------------------------------------------------------------------------------------------
// State of a plan's node in the plan's arena.
#define OPS_PREPARE_STATE(ctx, type, name)                                                                             \
  type *name = TFC_ARENA_NEW((ctx)->arena, type);                                                                      \
  if (!name) return tfc_status_make(TFC_RESOURCE_EXHAUSTED, "out of memory");                                          \
  (ctx)->state = name

// --- Kernels -----------------------------------------------------------------------------------------------------
// `axis` in [-rank, rank) made non-negative.
TFC_MUST_USE tfc_status ops_axis(int64_t axis, int rank, int *out);

// --- Gradients ---------------------------------------------------------------------------------------------------
static inline struct tfc_output grad_in(const struct tfc_grad_ctx *g, uint32_t i) {
  return tfc_builder_input(g->builder, g->node, i);
}
static inline struct tfc_output grad_out(const struct tfc_grad_ctx *g, int i) {
  return (struct tfc_output){g->node, i};
}
static inline struct tfc_output grad_op1(const struct tfc_grad_ctx *g, const char *op, struct tfc_output x) {
  return tfc_add1(g->builder, op, x);
}
static inline struct tfc_output grad_op2(const struct tfc_grad_ctx *g, const char *op, struct tfc_output x,
                                         struct tfc_output y) {
  return tfc_add2(g->builder, op, x, y);
}
static inline struct tfc_output grad_op3(const struct tfc_grad_ctx *g, const char *op, struct tfc_output x,
                                         struct tfc_output y, struct tfc_output z) {
  return tfc_add3(g->builder, op, x, y, z);
}
static inline tfc_dtype grad_type(const struct tfc_grad_ctx *g, struct tfc_output x) {
  return tfc_dtype_base(tfc_builder_dtype(g->builder, x));
}
// A scalar constant of x's type.
static inline struct tfc_output grad_const(const struct tfc_grad_ctx *g, struct tfc_output x, double value) {
  return tfc_add_scalar(g->builder, grad_type(g, x), value);
}
struct tfc_output grad_conj(const struct tfc_grad_ctx *g, struct tfc_output x); // x itself for real types
// The shape of x as a constant where `shape` (optional) is static, else a Shape node.
struct tfc_output grad_shape(const struct tfc_grad_ctx *g, struct tfc_output x, const struct tfc_shape *shape,
                             tfc_dtype type);
struct tfc_output grad_sum(const struct tfc_grad_ctx *g, struct tfc_output x, struct tfc_output axes, bool keep_dims);
struct tfc_output grad_ints(const struct tfc_grad_ctx *g, tfc_dtype type, const int64_t *values, uint32_t count);
static inline struct tfc_output grad_int(const struct tfc_grad_ctx *g, tfc_dtype type, int64_t value) {
  return tfc_add_scalar(g->builder, type, (double)value);
}
struct tfc_output grad_concat(const struct tfc_grad_ctx *g, const struct tfc_output *parts, uint32_t count,
                              struct tfc_output axis);
struct tfc_output grad_pack(const struct tfc_grad_ctx *g, const struct tfc_output *parts, uint32_t count, int axis);
struct tfc_output grad_cast(const struct tfc_grad_ctx *g, struct tfc_output x, tfc_dtype type);
// x[from] of a vector (a scalar), and x[from:to]; `to` INT64_MAX is the end.
struct tfc_output grad_item(const struct tfc_grad_ctx *g, struct tfc_output x, int64_t index);
struct tfc_output grad_range(const struct tfc_grad_ctx *g, struct tfc_output x, int64_t from, int64_t to);
// The gradients of two broadcast operands from those of the broadcast result: summed over what was repeated.
// Either may be TFC_NO_OUTPUT. Shapes are those of x and y as inferred.
void grad_unbroadcast(const struct tfc_grad_ctx *g, struct tfc_output x, const struct tfc_shape *x_shape,
                      struct tfc_output y, const struct tfc_shape *y_shape, struct tfc_output *gx,
                      struct tfc_output *gy);
// The attribute of the forward node under the same name, for a node of the gradient; absent: kind NONE.
struct tfc_attr grad_attr(const struct tfc_grad_ctx *g, const char *name);
tfc_status ops_grad_identity(struct tfc_grad_ctx *g); // gradient i to input i, as it is
tfc_status ops_grad_none(struct tfc_grad_ctx *g);     // zero everywhere (no gradient)

// Formulas read better so: G is the gradient that arrived, X and Y the first input and output.
#define OPS_GRADIENT(name) static tfc_status gradient_##name(struct tfc_grad_ctx *g)
#define G (g->grad_outputs[0])
#define X (grad_in(g, 0))
#define Y (grad_out(g, 0))
static inline struct tfc_output g_mul(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "Mul", a, b);
}
static inline struct tfc_output g_add(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "AddV2", a, b);
}
static inline struct tfc_output g_sub(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "Sub", a, b);
}
static inline struct tfc_output g_div(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output b) {
  return grad_op2(g, "RealDiv", a, b);
}
static inline struct tfc_output g_neg(const struct tfc_grad_ctx *g, struct tfc_output a) {
  return grad_op1(g, "Neg", a);
}
static inline struct tfc_output g_reshape(const struct tfc_grad_ctx *g, struct tfc_output a, struct tfc_output shape) {
  return grad_op2(g, "Reshape", a, shape);
}

#endif
