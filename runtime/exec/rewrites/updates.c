// Fuses an optimizer update with the chain that computes its gradient: the chain may be a weight decay, a sum of two
// gradients, or a scale. It runs block by block as the update needs its result, so the gradient is not written to
// memory, and the variable is read once for both. The results are bit-identical: the loops of the chain and the rule of
// the update are the same, in the same order.
#include "runtime/exec/rewrites/chains.h"
#include "runtime/ops/training_apply.h"

struct state {
  const void *update; // the state that the update's kernel prepared
  void (*release)(void *state);
  uint32_t first; // index of the operation's input that is the chain's first input
  uint16_t result;
  uint32_t chain_inputs;
  struct tfc_chain chain;
};

struct filling {
  const struct state *state;
  void *tensors[TFC_CHAIN_OPERANDS + 1];
};
static void fill(const void *arg, int64_t first, int64_t count, float *out) {
  const struct filling *f = arg;
  tfc_chain_run_into(&f->state->chain, f->tensors, first, count, f->state->result, out);
}

static tfc_status run(struct tfc_kernel_ctx *ctx) {
  const struct state *state = ctx->state;
  struct filling filling = {.state = state};
  for (uint32_t i = 0; i < state->chain_inputs; i++) filling.tensors[i] = ctx->inputs[state->first + i]->data;
  struct tfc_apply_source source = {state->chain.columns, fill, &filling};
  return tfc_apply_run(ctx, state->update, &source);
}
static void release(void *arg) {
  struct state *state = arg;
  if (state->release) state->release((void *)(uintptr_t)state->update);
}

static const struct tfc_op_def update_def = {.name = "_ChainAndUpdate",
                                             .inputs = "update: M * float, chain: N * float",
                                             .outputs = "var: Ref(float)",
                                             .attrs = "M: int, N: int",
                                             .flags = TFC_OP_UPDATE,
                                             .kernel = run};

// Whether the chain can be fused with the update: it has one row and one result, and it reads the variables that
// `update` writes element by element only.
static bool fits(const struct tfc_ir *ir, const struct tfc_ir_op *op, const struct tfc_ir_op *update,
                 uint16_t *out_result) {
  const struct tfc_chain *chain = tfc_rewrites_chain_of(op);
  if (!ir->devices[update->device]->driver->host_kernels) return false;
  if (!chain || chain->rows != 1 || op->output_count != 1 || op->input_count > TFC_CHAIN_OPERANDS) return false;
  if (op->device != update->device || ir->values.data[op->outputs[0]].fetched) return false;
  uint32_t results = 0;
  for (uint16_t i = 0; i < chain->operand_count; i++) {
    const struct tfc_chain_operand *o = &chain->operands[i];
    if (o->tensor == op->input_count) {
      *out_result = i;
      results++;
      continue;
    }
    const struct tfc_ir_value *v = &ir->values.data[op->inputs[o->tensor].value];
    if (v->kind != TFC_IR_VARIABLE || (o->column == 1 && o->offset == 0)) continue;
    for (uint32_t k = 0; k < update->input_count; k++)
      if (update->inputs[k].variable == v->variable) return false;
  }
  return results == 1;
}

// Whether nothing but the update must run after the chain.
static bool leads_nowhere_else(const struct tfc_ir *ir, const struct tfc_ir_readers *readers, uint32_t chain,
                               uint32_t update) {
  uint32_t value = ir->ops.data[chain].outputs[0];
  if (readers->begin[value + 1] - readers->begin[value] != 1 || readers->ops[readers->begin[value]] != update)
    return false;
  for (size_t e = 0; e < ir->edges.count; e++)
    if (ir->edges.data[e].from == chain && ir->edges.data[e].to != update) return false;
  return true;
}

static tfc_status fuse(struct tfc_ir *ir, uint32_t id, uint32_t gradient, uint32_t chain_id, uint16_t result) {
  struct tfc_ir_op *op = &ir->ops.data[id];
  const struct tfc_ir_op *chain = &ir->ops.data[chain_id];
  struct state *state = TFC_ARENA_NEW(&ir->arena, struct state);
  struct tfc_ir_input *inputs = TFC_ARENA_ARRAY(&ir->arena, struct tfc_ir_input, op->input_count + chain->input_count);
  if (!state || !inputs) return tfc_status_no_memory(NULL);
  const struct tfc_node *node = &ir->graph->nodes[op->node];
  struct tfc_prepare_ctx prepare = {.graph = ir->graph, .node = node, .def = op->def, .arena = &ir->arena};
  TFC_RETURN_IF_ERROR(tfc_kernel_prepare(&prepare));
  *state = (struct state){.update = prepare.state,
                          .release = prepare.release,
                          .first = op->input_count,
                          .result = result,
                          .chain_inputs = chain->input_count,
                          .chain = *tfc_rewrites_chain_of(chain)};
  memcpy(inputs, op->inputs, op->input_count * sizeof *inputs);
  memcpy(inputs + op->input_count, chain->inputs, chain->input_count * sizeof *inputs);
  inputs[gradient] = chain->inputs[0];
  op->def = &update_def;
  op->inputs = inputs;
  op->input_count += chain->input_count;
  op->prepared = true;
  op->state = state;
  op->release = release;
  op->cost_us += chain->cost_us;
  tfc_ir_replace(ir, chain_id, id);
  return NULL;
}

static tfc_status fuse_updates(struct tfc_ir *ir) {
  struct tfc_arena arena = {0};
  struct tfc_ir_readers readers = {0}; // made when the first update needs them
  tfc_status s = NULL;
  for (uint32_t i = 0; i < ir->ops.count; i++) {
    const struct tfc_ir_op *op = &ir->ops.data[i];
    if (op->dead || op->joint || op->prepared || !op->def || !(op->def->flags & TFC_OP_UPDATE)) continue;
    uint32_t gradient = tfc_apply_gradient(op->def);
    uint16_t result = 0;
    if (gradient >= op->input_count) continue;
    const struct tfc_ir_value *v = &ir->values.data[op->inputs[gradient].value];
    if (v->kind != TFC_IR_OP || v->op == TFC_NONE || !fits(ir, &ir->ops.data[v->op], op, &result)) continue;
    if (!readers.begin) TFC_TRY(s, tfc_ir_readers(ir, &arena, &readers));
    if (!leads_nowhere_else(ir, &readers, v->op, i)) continue;
    TFC_TRY(s, fuse(ir, i, gradient, v->op, result));
  }
out:
  tfc_arena_deinit(&arena);
  return s;
}

static const struct tfc_rewrite rows[] = {{"updates", 60, true, fuse_updates}};
TFC_REWRITES(rows);
