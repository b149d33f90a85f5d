// The ops "_Attention" and "_AttentionGradients": softmax(q kᵀ scale + mask) v and its gradients. A rewrite of plans
// (runtime/exec/rewrites/attention.c) makes them for devices that have kernels for them.
//
//   _Attention            q, k, v[, mask]                       -> out, logs
//   _AttentionGradients   q, k, v[, mask], out, logs, d_out     -> dq, dk, dv
//
// logs [batches * heads * queries]: of each query the logarithm of the sum of its exponentials.
#ifndef TFC_RUNTIME_OPS_ATTENTION_H
#define TFC_RUNTIME_OPS_ATTENTION_H

#include <stdbool.h>
#include <stdint.h>

// Where an operand [batches, heads, rows, elements] has its elements, in elements; those of a row follow each other.
struct tfc_attention_strides {
  int64_t batch, head, row;
};
enum { TFC_ATTENTION_WIDTH = 128 }; // the most that depth and width may be
struct tfc_attention {              // the operations' state; kernels take it by value
  int64_t batches, heads, queries, keys;
  int32_t depth, width; // elements of a query or key, and of a value
  float scale;
  bool masked;
  struct tfc_attention_strides q, k, v, out, mask, d_out, dq, dk, dv;
  int64_t mask_column; // 0: all keys have the same
};

#endif
