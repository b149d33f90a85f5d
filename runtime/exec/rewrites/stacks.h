// Describes stacks: stacks.c finds the operations that an unrolled loop repeats, and stacks_make.c replaces each stack
// by one operation.
#ifndef TFC_RUNTIME_EXEC_REWRITES_STACKS_H
#define TFC_RUNTIME_EXEC_REWRITES_STACKS_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/ops/stacking.h"

enum { TFC_STACK_INPUTS = 32 };

// Operations of one type that become one operation. `ops` has the order in which their tensors are stacked.
struct tfc_stack {
  uint32_t count;
  uint32_t *ops;
  uint32_t stacked; // bit i: input i differs between the operations; they share the other inputs
  tfc_stacking how;
  // The AddN that adds up their results, and perhaps other terms: the one operation then computes the sum of the
  // results. TFC_NONE: there is no such AddN, and the results are needed one by one.
  uint32_t sum;
};
// An AddN that has all results of a stack among its terms: a reduction adds these up.
struct tfc_stack_total {
  uint32_t sum, stack, output;
};

struct tfc_stacks {
  struct tfc_ir *ir;
  struct tfc_arena arena; // scratch
  struct tfc_ir_readers readers;
  TFC_ARRAY(struct tfc_stack) all;
  TFC_ARRAY(struct tfc_stack_total) totals;
  uint32_t *stack_of; // [ops] TFC_NONE: it is in no stack. The AddN that a stack computes belongs to that stack, too.
  uint32_t *place;    // [ops] its index in its stack
};

// Whether, for every i, input `input` of ops[i] is the same output of the i-th operation of one stack whose results are
// not summed. *out_stack, *out_output: that stack and that output.
bool tfc_stacks_is_stacked(const struct tfc_stacks *w, const uint32_t *ops, uint32_t count, uint32_t input,
                           uint32_t *out_stack, uint32_t *out_output);
// Describes an operation in the form that runtime/ops/stacking.h takes. False: it has too many inputs, or shapes that
// are not known.
struct tfc_stacks_op {
  struct tfc_stacking_of of;
  const struct tfc_shape *shapes[TFC_STACK_INPUTS];
  const struct tfc_tensor *values[TFC_STACK_INPUTS];
};
bool tfc_stacks_describe(const struct tfc_ir *ir, uint32_t op, uint32_t stacked, struct tfc_stacks_op *out);

#endif
