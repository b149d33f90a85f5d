// A tensor of one float, for feeds.
#ifndef TFC_TESTS_COMMON_SCALAR_H
#define TFC_TESTS_COMMON_SCALAR_H

#include "runtime/graph/tensor.h"

static inline tfc_status scalar_f32(float value, struct tfc_tensor *out) {
  TFC_RETURN_IF_ERROR(tfc_tensor_create(TFC_FLOAT, &TFC_SHAPE_SCALAR, out));
  *(float *)out->data = value;
  return NULL;
}

#endif
