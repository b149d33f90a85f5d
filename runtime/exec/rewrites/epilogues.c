// On devices that launch kernels, a bias that is added to a matrix product, and the rectifier of that, become a part of
// the product: libraries do both before they write an element. The library may then compute the product by another
// algorithm, so this needs `--rewrites all`.
//
// Runs after chains were made. If the sum is read by a longer chain, it is a step of that, which costs no launch
// either.
#include "runtime/exec/rewrites/chains.h"
#include "runtime/ops/product_bias.h"

static const struct tfc_op_def bias_def = {
    .name = "_BiasProduct", .inputs = "a: float, b: float, bias: float", .outputs = "y: float"};

// What an operation that adds a bias reads: numbers of its inputs.
struct adds {
  uint32_t product, bias;
  bool rectified;
};

// Whether a chain adds one row to all rows of a tensor, and computes nothing else but the rectifier of that.
static bool is_chain(const struct tfc_chain *chain, const struct tfc_ir_op *op, struct adds *out) {
  const struct tfc_chain_step *s = chain->steps;
  if (chain->step_count != 2 || op->output_count != 1 || op->input_count != 2 || !s[0].binary || s[1].binary)
    return false;
  if (!tfc_ir_is_sum(s[0].def) || s[1].def->plan_trait != TFC_PLAN_RECTIFY) return false;
  if (s[0].out >= 0 || s[1].a != s[0].out || s[1].out < 0 || s[0].a < 0 || s[0].b < 0) return false;
  const struct tfc_chain_operand *a = &chain->operands[s[0].a], *b = &chain->operands[s[0].b],
                                 *y = &chain->operands[s[1].out];
  if (!a->row) { // the row comes first
    const struct tfc_chain_operand *row = a;
    a = b, b = row;
  }
  if (a->tensor > 1 || b->tensor > 1 || a->tensor == b->tensor || y->tensor != 2) return false;
  *out = (struct adds){a->tensor, b->tensor, true};
  return a->row == chain->columns && a->column == 1 && !a->each && !a->offset && y->row == chain->columns &&
         y->column == 1 && !y->offset && !b->row && b->column == 1 && !b->each && !b->offset;
}

static bool adds_bias(const struct tfc_ir *ir, const struct tfc_ir_op *op, struct adds *out) {
  if (op->dead || op->joint || op->wanted || !op->def || op->output_variables ||
      !tfc_ir_launches(ir, op->device, &bias_def))
    return false;
  const struct tfc_chain *chain = tfc_rewrites_chain_of(op);
  if (chain) return is_chain(chain, op, out);
  if (!tfc_ir_adds(ir, op)) return false;
  const uint32_t v = op->inputs[0].value;
  const bool first =
      v != TFC_NONE && ir->values.data[v].kind == TFC_IR_OP && tfc_ir_shape(ir, &op->inputs[0])->rank == 2;
  *out = (struct adds){!first, first, false};
  return true;
}

// Finds the product that an operation adds a bias to; TFC_NONE: there is none. waits: [ops] an ordering edge ends
// there.
static uint32_t product_of(const struct tfc_ir *ir, const struct tfc_ir_readers *readers, const bool *waits,
                           uint32_t id, struct adds *out) {
  const struct tfc_ir_op *op = &ir->ops.data[id];
  if (!adds_bias(ir, op, out) || waits[id] || op->outputs[0] == TFC_NONE) return TFC_NONE;
  const struct tfc_ir_input *from = &op->inputs[out->product], *bias = &op->inputs[out->bias];
  if (from->value == TFC_NONE || bias->value == TFC_NONE || from->view) return TFC_NONE;
  const struct tfc_ir_value *v = &ir->values.data[from->value], *y = &ir->values.data[op->outputs[0]],
                            *b = &ir->values.data[bias->value];
  if (v->kind != TFC_IR_OP || v->op == TFC_NONE || v->fetched || !v->planned || v->alias != TFC_NONE ||
      v->dtype != TFC_FLOAT || readers->begin[from->value + 1] - readers->begin[from->value] != 1)
    return TFC_NONE;
  // The product would wait for a bias that the step computes, or an update of it for the product.
  if ((b->kind == TFC_IR_OP || b->kind == TFC_IR_VARIABLE) && b->op != TFC_NONE) return TFC_NONE;
  if (tfc_dtype_base(b->dtype) != TFC_FLOAT || y->dtype != TFC_FLOAT || !y->planned || y->alias != TFC_NONE)
    return TFC_NONE;
  const struct tfc_ir_op *product = &ir->ops.data[v->op];
  if (product->dead || product->joint || product->prepared || product->wanted || product->device != op->device ||
      !product->def || product->def->role != TFC_ROLE_PRODUCT || product->input_count != 2)
    return TFC_NONE;
  for (int k = 0; k < 2; k++) {
    const struct tfc_shape *s = tfc_ir_shape(ir, &product->inputs[k]);
    if (s->rank != 2 || !tfc_shape_is_static(s) || product->inputs[k].variable != TFC_NONE) return TFC_NONE;
  }
  const struct tfc_shape *row = tfc_ir_shape(ir, bias);
  if (v->shape.rank != 2 || !tfc_shape_is_static(row) || row->rank < 1 || tfc_shape_elements(&y->shape) < 1)
    return TFC_NONE;
  return tfc_shape_equal(&y->shape, &v->shape) && tfc_shape_elements(row) == v->shape.dims[1] &&
                 row->dims[row->rank - 1] == v->shape.dims[1]
             ? v->op
             : TFC_NONE;
}

static tfc_status add_to(struct tfc_ir *ir, uint32_t id, uint32_t product_id, const struct adds *adds) {
  const struct tfc_ir_op *product = &ir->ops.data[product_id], *op = &ir->ops.data[id];
  const struct tfc_node *node = &ir->graph->nodes[product->node];
  struct tfc_bias_product *state = TFC_ARENA_NEW(&ir->arena, struct tfc_bias_product);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, 3);
  uint32_t made;
  if (!state || !inputs) return tfc_status_no_memory("planning a step");
  *state = (struct tfc_bias_product){tfc_node_attr_bool(ir->graph, node, "transpose_a", false),
                                     tfc_node_attr_bool(ir->graph, node, "transpose_b", false), adds->rectified};
  inputs[0] = product->inputs[0], inputs[1] = product->inputs[1], inputs[2] = op->inputs[adds->bias];
  TFC_RETURN_IF_ERROR(tfc_ir_add_op(ir,
                                    &(struct tfc_ir_op){.node = op->node,
                                                        .def = &bias_def,
                                                        .device = op->device,
                                                        .inputs = inputs,
                                                        .input_count = 3,
                                                        .outputs = op->outputs,
                                                        .output_count = 1,
                                                        .prepared = true,
                                                        .state = state,
                                                        .cost_us = product->cost_us + 0.5 * op->cost_us},
                                    &made));
  tfc_ir_replace(ir, product_id, made);
  tfc_ir_replace(ir, id, made);
  return NULL;
}

static tfc_status add_biases(struct tfc_ir *ir) {
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers;
  tfc_status s = NULL;
  const uint32_t count = (uint32_t)ir->ops.count;
  bool *waits = NULL;
  if (!tfc_ir_any_launches(ir, &bias_def)) return NULL;
  TFC_TRY(s, tfc_ir_waits(ir, &arena, &waits));
  TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
  for (uint32_t i = 0; i < count; i++) {
    struct adds adds;
    const uint32_t product = product_of(ir, &readers, waits, i, &adds);
    if (product != TFC_NONE) TFC_TRY(s, add_to(ir, i, product, &adds));
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"biases of products", 64, false, add_biases}};
TFC_REWRITES(rows);
