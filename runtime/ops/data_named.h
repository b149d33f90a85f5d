// Objects that a session keeps by container and name: queues, tables, barriers, accumulators, writers. The node that
// makes one gives its name by the attributes `container` and `shared_name`, or by the node's own name. Other nodes get
// a resource handle, or in older ops a reference to two strings, container and name.
#ifndef TFC_RUNTIME_OPS_DATA_NAMED_H
#define TFC_RUNTIME_OPS_DATA_NAMED_H

#include "runtime/ops/kernel.h"

tfc_str tfc_named_name(const struct tfc_kernel_ctx *ctx);
// Sets output 0 to the handle or the reference, as its type requires. If the object does not exist, `create` makes it;
// its argument is the context.
TFC_MUST_USE tfc_status tfc_named_make(struct tfc_kernel_ctx *ctx, const struct tfc_object_type *type,
                                       tfc_status (*create)(void *ctx, struct tfc_object **out));
// Finds the object that input 0 refers to, with a reference. INVALID_ARGUMENT, NOT_FOUND: there is no such object.
TFC_MUST_USE tfc_status tfc_named_get(struct tfc_kernel_ctx *ctx, const struct tfc_object_type *type,
                                      struct tfc_object **out);
// As tfc_named_get, but for another input.
TFC_MUST_USE tfc_status tfc_named_input(struct tfc_kernel_ctx *ctx, uint32_t input, const struct tfc_object_type *type,
                                        struct tfc_object **out);

#endif
