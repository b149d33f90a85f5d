// Ragged tensors in variants: a value that does not change once it is made.
#ifndef TFC_RUNTIME_OPS_DATA_RAGGED_H
#define TFC_RUNTIME_OPS_DATA_RAGGED_H

#include "runtime/ops/data_variant.h"

struct tfc_ragged {
  struct tfc_object object;
  uint32_t count;              // how many tensors: splits and values
  struct tfc_tensor tensors[]; // [count]: the splits, then the values
};
extern const struct tfc_object_type tfc_ragged_type;
TFC_MUST_USE tfc_status tfc_ragged_create(uint32_t count, struct tfc_ragged **out);

#endif
