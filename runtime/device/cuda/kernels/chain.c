// The rows of the kernel table for chains, which rewrites make of element-wise operations (runtime/exec/rewrites), and
// the list of ops that a chain may contain.
#include "runtime/device/cuda/kernels/chain.h"

#include "runtime/device/cuda/kernels/common.h"
#include "runtime/device/cuda/kernels/reduce.h"
#include "runtime/host/chain/chain.h"

_Static_assert((int)TFC_CUDA_CHAIN_STEPS == (int)TFC_CHAIN_STEPS, "a chain of the host fits");
_Static_assert((int)TFC_CUDA_CHAIN_OPERANDS == (int)TFC_CHAIN_OPERANDS, "a chain of the host fits");
_Static_assert((int)TFC_CUDA_CHAIN_REGISTERS == (int)TFC_CHAIN_REGISTERS, "a chain of the host fits");

static const struct {
  const char *op;
  int expression;
  bool of_rows; // only rows have this step (runtime/exec/rewrites/rows.c)
} expressions[] = {
#define EXPRESSION(name) {#name, TFC_CUDA_CHAIN_##name, false},
    TFC_CUDA_CHAIN_UNARY(EXPRESSION) TFC_CUDA_CHAIN_BINARY(EXPRESSION){"AddV2", TFC_CUDA_CHAIN_Add, false},
    {"AddN", TFC_CUDA_CHAIN_Add, false}, // only AddN with two inputs
    {"BiasAdd", TFC_CUDA_CHAIN_Add, false},
    {"BiasAddV1", TFC_CUDA_CHAIN_Add, false},
    {"RealDiv", TFC_CUDA_CHAIN_Div, false},
    {"Inv", TFC_CUDA_CHAIN_Reciprocal, false},
    {"InvGrad", TFC_CUDA_CHAIN_ReciprocalGrad, false},
    {"_AtLeast", TFC_CUDA_CHAIN_AtLeast, false},
    {"_Keep", TFC_CUDA_CHAIN_Keep, false},
    {"_RowCopy", TFC_CUDA_CHAIN_COPY, true},
    {"_RowSum", TFC_CUDA_CHAIN_ROW_SUM, true},
    {"_RowMean", TFC_CUDA_CHAIN_ROW_MEAN, true},
};

static int expression_of(const struct tfc_op_def *def, bool in_rows) { // -1: there is none
  for (size_t i = 0; def && i < sizeof expressions / sizeof *expressions; i++)
    if (!strcmp(def->name, expressions[i].op))
      return expressions[i].of_rows && !in_rows ? -1 : expressions[i].expression;
  return -1;
}

bool tfc_cuda_chains(const struct tfc_op_def *def) {
  return expression_of(def, false) >= 0;
}

struct chain {
  const struct tfc_chain_op *op;
  int32_t lanes;               // of rows; 0: a chain without sums
  struct tfc_cuda_chain chain; // complete except for the operands' addresses, which each launch fills in
};

enum { ROWS = 1 }; // variant
static tfc_status prepare(struct tfc_cuda_prepare *p) {
  if (!p->op || !p->op->prepared) TFC_CUDA_DECLINE("it was not made by a rewrite");
  const struct tfc_chain *from = &((const struct tfc_chain_op *)p->op->state)->chain;
  TFC_CUDA_STATE(p, struct chain, state);
  struct tfc_cuda_chain *c = &state->chain;
  state->op = p->op->state;
  c->rows = from->rows, c->columns = from->columns;
  c->step_count = from->step_count, c->operand_count = from->operand_count;
  for (uint16_t i = 0; i < from->step_count; i++) {
    const struct tfc_chain_step *s = &from->steps[i];
    const int expression = expression_of(s->def, p->variant == ROWS);
    if (expression < 0) TFC_CUDA_DECLINE("a chain with %s", s->def ? s->def->name : "an unknown op");
    c->steps[i] = (struct tfc_cuda_chain_step){(uint8_t)expression, (int8_t)s->a, (int8_t)s->b, (int8_t)s->out};
  }
  for (uint16_t i = 0; i < from->operand_count; i++) {
    const struct tfc_chain_operand *o = &from->operands[i];
    c->operands[i] = (struct tfc_cuda_chain_operand){
        .row = o->row, .each = o->each, .cycle = o->cycle, .column = (int32_t)o->column};
  }
  if (p->variant == ROWS) {
    struct tfc_cuda_reduction r = {.outputs = c->rows, .count = c->columns, .along = true};
    tfc_cuda_reduction_split(&r);
    state->lanes = r.lanes;
  }
  return NULL;
}

static tfc_status launch(struct tfc_cuda_launch *l) {
  const struct chain *state = l->ctx->state;
  const struct tfc_chain_op *op = state->op;
  struct tfc_cuda_chain c = state->chain;
  float *tensors[2 * TFC_CHAIN_OPERANDS];
  for (uint32_t i = 0; i < op->input_count; i++) tensors[i] = l->ctx->inputs[i]->data;
  for (uint32_t i = 0; i < op->output_count; i++) {
    struct tfc_tensor *y = NULL;
    TFC_RETURN_IF_ERROR(tfc_kernel_output(l->ctx, i, TFC_FLOAT, &op->shapes[i], &y));
    tensors[op->input_count + i] = y->data;
  }
  for (int32_t i = 0; i < c.operand_count; i++) {
    const struct tfc_chain_operand *o = &op->chain.operands[i];
    c.operands[i].data = tensors[o->tensor] + o->offset;
  }
  TFC_CUDA_LAUNCHED(l, state->lanes ? tfc_cuda_chain_run_rows(&c, state->lanes, l->stream)
                                    : tfc_cuda_chain_run(&c, l->stream));
  return NULL;
}

static const struct tfc_cuda_kernel chain_rows[] = {
    {"_Chain", TFC_TYPE_BIT(TFC_FLOAT), prepare, launch, 0},
    {"_RowChain", TFC_TYPE_BIT(TFC_FLOAT), prepare, launch, TFC_CUDA_VARIANT(ROWS)},
};
TFC_CUDA_KERNELS(chain_rows);
