// Error messages for an index that is out of range, with TensorFlow's wording.
#ifndef TFC_RUNTIME_OPS_ARRAY_INDEX_H
#define TFC_RUNTIME_OPS_ARRAY_INDEX_H

#include "runtime/graph/tensor.h"

// Makes the error "indices[1,0] = 7 is not in [0, 4)" for element `at` of the indices.
TFC_MUST_USE tfc_status ops_bad_index(const struct tfc_tensor *indices, int64_t at, int64_t limit);
// Makes the error "indices[1] = [1, 7] does not index into shape [4,3]" for vector `at` of indices [..., depth].
TFC_MUST_USE tfc_status ops_bad_slice(const struct tfc_tensor *indices, int64_t at, const char *into,
                                      const struct tfc_shape *shape);

#endif
