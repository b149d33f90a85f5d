// The op "_BiasProduct": a matrix product, plus a bias, and perhaps the rectifier of that. A rewrite of plans
// (runtime/exec/rewrites/epilogues.c) makes it for devices that have a kernel for it. Inputs: a, b, bias.
#ifndef TFC_RUNTIME_OPS_PRODUCT_BIAS_H
#define TFC_RUNTIME_OPS_PRODUCT_BIAS_H

#include <stdbool.h>

struct tfc_bias_product { // the operation's state
  bool transpose_a, transpose_b, rectified;
};

#endif
