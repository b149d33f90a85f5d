// The steps of a chain, for its kernels.
#ifndef TFC_RUNTIME_DEVICE_CUDA_KERNELS_CHAIN_CUH
#define TFC_RUNTIME_DEVICE_CUDA_KERNELS_CHAIN_CUH

#include "runtime/device/cuda/kernels/chain.h"
#include "runtime/device/cuda/kernels/expressions.cuh"

namespace tfc {

TFC_HD f32 *address(const tfc_cuda_chain_operand &o, int64_t row, int64_t column) {
  if (o.each) {
    int64_t rest;
    divide(divide(row, o.each, &rest), o.cycle, &row);
  }
  return (f32 *)o.data + row * o.row + column * o.column;
}

template <int V> TFC_HD pack<f32, V> compute(int expression, const pack<f32, V> &a, const pack<f32, V> &b) {
  pack<f32, V> y = a;
  switch (expression) {
#define UNARY_STEP(name)                                                                                               \
  case TFC_CUDA_CHAIN_##name:                                                                                          \
    for (int i = 0; i < V; i++) y.v[i] = name<f32>().of(a.v[i]);                                                       \
    break;
    TFC_CUDA_CHAIN_UNARY(UNARY_STEP)
#define BINARY_STEP(name)                                                                                              \
  case TFC_CUDA_CHAIN_##name:                                                                                          \
    for (int i = 0; i < V; i++) y.v[i] = name<f32>().of(a.v[i], b.v[i]);                                               \
    break;
    TFC_CUDA_CHAIN_BINARY(BINARY_STEP)
  default: break;
  }
  return y;
}

} // namespace tfc

#endif
