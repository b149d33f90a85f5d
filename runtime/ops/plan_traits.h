// What rewrites of plans need to know of single ops, besides roles and flags of their rows.
#ifndef TFC_RUNTIME_OPS_PLAN_TRAITS_H
#define TFC_RUNTIME_OPS_PLAN_TRAITS_H

#include "runtime/graph/op_def.h"

typedef enum tfc_plan_trait {
  TFC_PLAN_OTHER,
  TFC_PLAN_HALF_SQUARES, // half the sum of the squares of input 0
  TFC_PLAN_MULTIPLY,     // two tensors, multiplied element by element
  TFC_PLAN_AT_LEAST,     // whether input 0 is at least input 1, element by element
  TFC_PLAN_SELECT,       // input 1 where input 0 is true, else input 2
  TFC_PLAN_SUM,          // the sum of input 0 along the dimensions in input 1
  TFC_PLAN_MEAN,         // the same, divided by the number of elements
  TFC_PLAN_ADD,          // the sum of two tensors; a smaller one is repeated along the first dimensions, unless it is a
                         // bias and the attribute data_format has channels first
  TFC_PLAN_RECTIFY,      // the elements of input 0 that are above 0, and 0 for the others
  TFC_PLAN_SUBTRACT,     // two tensors, the second subtracted from the first
  TFC_PLAN_SOFTMAX,      // of the last dimension of input 0
  TFC_PLAN_TRANSPOSE,    // input 0 with its dimensions in the order of input 1
  TFC_PLAN_BATCHED,      // products of matrices, those of the attributes adj_x and adj_y transposed
  TFC_PLAN_FILTERED,     // a convolution, or the gradient of its image: input 1 is the filter
} tfc_plan_trait;

tfc_plan_trait tfc_plan_trait_of(const struct tfc_op_def *def);

#endif
