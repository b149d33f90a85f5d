// The caller's arrays as tensors, and tensors as the caller's arrays.
#ifndef TFC_LIBTFC_ARRAY_H
#define TFC_LIBTFC_ARRAY_H

#include "libtfc/tfc.h"
#include "runtime/graph/tensor.h"

// A tensor over the caller's memory, which it borrows; strings are copied. Released by tfc_tensor_release either way.
// INVALID_ARGUMENT names the feed and what is wrong with its record.
TFC_MUST_USE tfc_status tfc_array_to_tensor(const tfc_array *array, const char *name, struct tfc_tensor *out);
// Whether what the caller wants can be given: TFC_ERROR_OUT_OF_RANGE's status, with `bytes` set, where there is too
// little room. Writes nothing else.
TFC_MUST_USE tfc_status tfc_array_check_room(const struct tfc_tensor *tensor, const char *name, tfc_array *array);
// Copies into the caller's memory, or, where it gave none, hands the tensor's own buffer over (and takes it out of
// `tensor`).
TFC_MUST_USE tfc_status tfc_array_from_tensor(struct tfc_tensor *tensor, const char *name, tfc_array *out);

#endif
