// Row splits of ragged tensors, which are vectors of int32 or int64.
#ifndef TFC_RUNTIME_OPS_SPLITS_H
#define TFC_RUNTIME_OPS_SPLITS_H

#include "runtime/graph/tensor.h"

static inline void ops_set_split(struct tfc_tensor *t, int64_t i, int64_t value) {
  if (t->dtype == TFC_INT32)
    ((int32_t *)t->data)[i] = (int32_t)value;
  else
    ((int64_t *)t->data)[i] = value;
}

#endif
