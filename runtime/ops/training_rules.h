// The element-wise rules of the optimizers, shared by the dense and the sparse ops and by both kinds of variables.
#ifndef TFC_RUNTIME_OPS_TRAINING_RULES_H
#define TFC_RUNTIME_OPS_TRAINING_RULES_H

#include <tgmath.h>

#include "runtime/ops/element_types.h"
#include "runtime/ops/gradient.h"
#include "runtime/ops/row.h"

enum { TFC_RULE_SLOTS = 3, TFC_RULE_SCALARS = 8 };

// One run of elements: var, its slots and the gradient, all of one dtype.
struct tfc_rule_span {
  tfc_dtype dtype;
  void *var, *slots[TFC_RULE_SLOTS];
  const void *grad;
  int64_t count;
  double _Complex scalars[TFC_RULE_SCALARS]; // in the order of the rule's `scalars`
  bool flag;                                 // use_nesterov, update_slots or multiply_linear_by_lr
  bool sparse; // rows of an embedding: TensorFlow's sparse kernels round differently in places
};
struct tfc_rule {
  const char *op;      // the op's name without "Resource", "Sparse" and "Apply"
  int slots;           // how many variables it has in addition to var
  const char *scalars; // names of the scalar inputs, separated by spaces
  const char *grad;    // name of the gradient's input
  const char *flag;    // name of the boolean attribute, or NULL
  double flops;        // per element
  void (*run)(const struct tfc_rule_span *s);
};
const struct tfc_rule *tfc_rule_find(tfc_str op); // `op` is the op's full name; NULL: there is no such rule.

#endif
