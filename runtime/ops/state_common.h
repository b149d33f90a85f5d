// Functions with which the state, training and scatter kernels write to variables.
#ifndef TFC_RUNTIME_OPS_STATE_COMMON_H
#define TFC_RUNTIME_OPS_STATE_COMMON_H

#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

// Whether input `i` is a resource handle (and not a reference).
bool tfc_state_is_resource(const struct tfc_kernel_ctx *ctx, uint32_t i);
// Finds the variable behind input `i`; INVALID_ARGUMENT: there is none.
TFC_MUST_USE tfc_status tfc_state_variable(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable **out);
// Finds the variable behind input `i`, initialised and with memory to which there is no other reference, so that it can
// be written in place: if readers still hold a resource variable's value, it is copied first; readers of a reference
// see the write.
TFC_MUST_USE tfc_status tfc_state_writable(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable **out);
// Finds the variable behind input 0 and checks that input 1 may become its value: the types are equal and the shape
// fits. A reference keeps its shape unless validate_shape is off (ctx->state is NULL); a resource variable has its
// declared shape or, with validate_shape, the shape of its value.
TFC_MUST_USE tfc_status tfc_state_assignable(struct tfc_kernel_ctx *ctx, struct tfc_variable **out);
// Makes `value` the variable's value. It is copied, in place if the size is the same and there is no other reference to
// the memory.
TFC_MUST_USE tfc_status tfc_state_assign(struct tfc_kernel_ctx *ctx, uint32_t i, struct tfc_variable *v,
                                         const struct tfc_tensor *value);
// Allocates a tensor in the device's memory (in host memory for strings and handles).
TFC_MUST_USE tfc_status tfc_state_tensor(struct tfc_kernel_ctx *ctx, tfc_dtype dtype, const struct tfc_shape *shape,
                                         struct tfc_tensor *out);
// Passes the variable of input 0 on as reference output 0. Resource ops have no outputs, so nothing is done for them.
TFC_MUST_USE tfc_status tfc_state_forward_ref(struct tfc_kernel_ctx *ctx);

// Returns the shape of the variable behind input `i`, a reference or a handle.
struct tfc_shape tfc_state_shape(const struct tfc_shape_ctx *ctx, uint32_t i);
// Gives a reference output 0 input 0's shape; updates of resources have no output.
tfc_status tfc_state_shape_update(struct tfc_shape_ctx *ctx);

#endif
