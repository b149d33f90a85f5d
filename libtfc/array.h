// Converts the caller's arrays to tensors, and tensors to the caller's arrays.
#ifndef TFC_LIBTFC_ARRAY_H
#define TFC_LIBTFC_ARRAY_H

#include "libtfc/tfc.h"
#include "runtime/graph/tensor.h"

// Makes a tensor over the caller's memory, which it borrows; strings are copied. In both cases, release the tensor with
// tfc_tensor_release. INVALID_ARGUMENT names the feed and what is wrong with it.
TFC_MUST_USE tfc_status tfc_array_to_tensor(const tfc_array *array, const char *name, struct tfc_tensor *out);
// Whether the result fits into the memory that the caller gave: if not, TFC_ERROR_OUT_OF_RANGE, with `bytes` set.
// Writes nothing else.
TFC_MUST_USE tfc_status tfc_array_check_room(const struct tfc_tensor *tensor, const char *name, tfc_array *array);
// Copies the tensor into the caller's memory; if the caller gave none, the tensor's own buffer is handed over (and
// removed from `tensor`).
TFC_MUST_USE tfc_status tfc_array_from_tensor(struct tfc_tensor *tensor, const char *name, tfc_array *out);

#endif
