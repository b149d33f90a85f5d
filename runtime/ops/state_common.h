// Writing to variables: what the state, training and scatter kernels share.
#ifndef TFC_RUNTIME_OPS_STATE_COMMON_H
#define TFC_RUNTIME_OPS_STATE_COMMON_H

#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// Is input `i` a resource handle (and not a reference)?
bool tfc_state_is_resource(const struct tfc_kernel_ctx *ctx, uint32_t i);
// The variable behind input `i`; INVALID_ARGUMENT when there is none.
TFC_MUST_USE tfc_status tfc_state_variable(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable **out);
// The variable behind input `i`, initialised and with memory that only it holds, so that it can be written in place:
// a resource variable that readers still hold is copied first; readers of a reference see the write.
TFC_MUST_USE tfc_status tfc_state_writable(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable **out);
// The variable behind input 0, if input 1 may become its value: the types are equal and the shape fits. A reference
// keeps its shape unless validate_shape is off (ctx->state is NULL); a resource variable has its declared shape or,
// with validate_shape, the shape of its value.
TFC_MUST_USE tfc_status tfc_state_assignable(struct tfc_kernel_ctx *ctx, struct tfc_variable **out);
// Makes `value` the variable's value (copied; in place where the size is the same and nobody else holds the memory).
TFC_MUST_USE tfc_status tfc_state_assign(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable *v,
                                         const struct tfc_tensor *value);
// A tensor in the device's memory (host memory for strings and handles).
TFC_MUST_USE tfc_status tfc_state_tensor(struct tfc_kernel_ctx *ctx, tfc_dtype dtype, const struct tfc_shape *shape,
                                         struct tfc_tensor *out);
// Hands reference output 0 on: the variable of input 0 (nothing to do for resource ops, which have no outputs).
TFC_MUST_USE tfc_status tfc_state_forward_ref(struct tfc_kernel_ctx *ctx);

// Shape of the variable that input `i` names: of the reference, or of what the handle holds.
struct tfc_shape tfc_state_shape(const struct tfc_shape_ctx *ctx, uint32_t i);
// Reference output 0 has input 0's shape; resource updates have no output.
tfc_status tfc_state_shape_update(struct tfc_shape_ctx *ctx);

#endif
