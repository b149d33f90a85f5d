// The operands of an operation of a plan, in the form in which runtime/ops/array_columns.h asks for them.
#ifndef TFC_RUNTIME_EXEC_REWRITES_OPERANDS_H
#define TFC_RUNTIME_EXEC_REWRITES_OPERANDS_H

#include "runtime/exec/rewrites/rewrite.h"
#include "runtime/ops/array_columns.h"

enum { TFC_MOST_OPERANDS = 16 };
struct tfc_operands {
  struct tfc_columns_of of; // points into the arrays below
  const struct tfc_shape *shapes[TFC_MOST_OPERANDS];
  const struct tfc_tensor *values[TFC_MOST_OPERANDS];
};
// False: a rewrite has already changed the operation, it has too many inputs, it reads a variable in place, or a shape
// is not known.
static inline bool tfc_operands_of(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct tfc_operands *out) {
  if (op->dead || op->joint || op->prepared || !op->def || op->input_count > TFC_MOST_OPERANDS) return false;
  for (uint32_t i = 0; i < op->input_count; i++) {
    if (op->inputs[i].value == TFC_NONE || op->inputs[i].variable != TFC_NONE) return false;
    const struct tfc_ir_value *v = &ir->values.data[op->inputs[i].value];
    out->shapes[i] = tfc_ir_shape(ir, &op->inputs[i]);
    out->values[i] = v->kind == TFC_IR_CONST ? v->constant : NULL;
    if (!tfc_shape_is_static(out->shapes[i])) return false;
  }
  out->of = (struct tfc_columns_of){op->def, out->shapes, out->values, op->input_count, op->output_count};
  return true;
}

// What a driver is asked with about an operation that has these operands and one output.
struct tfc_operands_question {
  struct tfc_prepare_ctx ctx; // points into the members below
  struct tfc_shape shapes[TFC_MOST_OPERANDS], made;
  tfc_dtype types[TFC_MOST_OPERANDS];
};
static inline void tfc_operands_ask(const struct tfc_ir *ir, const struct tfc_ir_op *op,
                                    const struct tfc_operands *from, struct tfc_arena *arena,
                                    struct tfc_operands_question *out) {
  out->made = ir->values.data[op->outputs[0]].shape;
  for (uint32_t i = 0; i < op->input_count; i++) {
    out->shapes[i] = *from->shapes[i];
    out->types[i] = ir->values.data[op->inputs[i].value].dtype;
  }
  out->ctx = (struct tfc_prepare_ctx){.graph = ir->graph,
                                      .node = &ir->graph->nodes[op->node],
                                      .def = op->def,
                                      .input_shapes = out->shapes,
                                      .output_shapes = &out->made,
                                      .input_dtypes = out->types,
                                      .input_values = from->values,
                                      .arena = arena};
}

#endif
