// Objects that a session keeps by container and name: queues, tables, barriers, accumulators, writers. A node that
// makes one names it by its attributes `container` and `shared_name`, or by its own name; what it hands around is a
// resource handle, or in the older ops a reference to two strings, container and name.
#ifndef TFC_RUNTIME_OPS_DATA_NAMED_H
#define TFC_RUNTIME_OPS_DATA_NAMED_H

#include "runtime/ops/kernel.h"

tfc_str tfc_named_name(const struct tfc_kernel_ctx *ctx);
// Makes output 0 the handle or the reference, as the node's output type is. An object that is not there is made by
// `create`, whose argument is the context.
TFC_MUST_USE tfc_status tfc_named_make(struct tfc_kernel_ctx *ctx, const struct tfc_object_type *type,
                                       tfc_status (*create)(void *ctx, struct tfc_object **out));
// What input 0 names. Returned with a reference. INVALID_ARGUMENT, NOT_FOUND: it is no such object.
TFC_MUST_USE tfc_status tfc_named_get(struct tfc_kernel_ctx *ctx, const struct tfc_object_type *type,
                                      struct tfc_object **out);
// The same of another input.
TFC_MUST_USE tfc_status tfc_named_input(struct tfc_kernel_ctx *ctx, uint32_t input, const struct tfc_object_type *type,
                                        struct tfc_object **out);

#endif
