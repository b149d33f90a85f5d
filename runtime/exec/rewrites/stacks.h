// Between finding operations that an unrolled loop repeats (stacks.c) and computing them together (stacks_make.c).
#ifndef TFC_RUNTIME_EXEC_REWRITES_STACKS_H
#define TFC_RUNTIME_EXEC_REWRITES_STACKS_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/ops/stacking.h"

enum { TFC_STACK_INPUTS = 32 };

// Operations of one kind that become one operation: `ops` are in the order in which their tensors are stacked.
struct tfc_stack {
  uint32_t count;
  uint32_t *ops;
  uint32_t stacked; // bit i: input i differs; the others are shared
  tfc_stacking how;
  // The AddN that adds up their results, among other terms perhaps: then the one operation computes the sum.
  // TFC_NONE32: results are needed one by one.
  uint32_t sum;
};
// An AddN some of whose terms are all results of a stack: these are added up by a reduction.
struct tfc_stack_total {
  uint32_t sum, stack, output;
};

struct tfc_stacks {
  struct tfc_ir *ir;
  struct tfc_arena arena; // scratch
  struct tfc_ir_readers readers;
  TFC_ARRAY(struct tfc_stack) all;
  TFC_ARRAY(struct tfc_stack_total) totals;
  uint32_t *stack_of; // [ops] TFC_NONE32: of none; the AddN of a stack belongs to it, too
  uint32_t *place;    // [ops] in its stack
};

static inline const struct tfc_shape *tfc_stacks_shape(const struct tfc_ir *ir, const struct tfc_ir_input *input) {
  return input->view ? input->view : &ir->values.data[input->value].shape;
}
// Whether input `input` of operation i is, for all i, the same output of operation i of one stack without a sum; its
// number, and that of the output.
bool tfc_stacks_is_stacked(const struct tfc_stacks *w, const uint32_t *ops, uint32_t count, uint32_t input,
                           uint32_t *out_stack, uint32_t *out_output);
// Describes an operation to runtime/ops/stacking.h. False: it has too many inputs, or shapes that are not known.
struct tfc_stacks_op {
  struct tfc_stacking_of of;
  const struct tfc_shape *shapes[TFC_STACK_INPUTS];
  const struct tfc_tensor *values[TFC_STACK_INPUTS];
};
bool tfc_stacks_describe(const struct tfc_ir *ir, uint32_t op, uint32_t stacked, struct tfc_stacks_op *out);
// Replaces the operations of all stacks.
TFC_MUST_USE tfc_status tfc_stacks_make(struct tfc_stacks *w);

#endif
