#include "runtime/host/chain/chain.h"

#include <stdbool.h>

enum { widest = 8 }; // bytes of an element

static bool continues(const struct tfc_chain_operand *o, int64_t columns) {
  return !o->each && ((o->column == 1 && o->row == columns) || (o->column == 0 && o->row == 0));
}

void tfc_chain_flatten(struct tfc_chain *chain) {
  for (uint16_t i = 0; i < chain->operand_count; i++)
    if (!continues(&chain->operands[i], chain->columns)) return;
  chain->columns *= chain->rows;
  chain->rows = 1;
}

static int64_t blocks_of_row(const struct tfc_chain *chain) {
  return (chain->columns + TFC_CHAIN_BLOCK - 1) / TFC_CHAIN_BLOCK;
}

int64_t tfc_chain_blocks(const struct tfc_chain *chain) {
  return chain->rows * blocks_of_row(chain);
}

struct place {
  void *data;
  int64_t step;
};

enum { NOWHERE = UINT16_MAX };
static void run_block(const struct tfc_chain *chain, void *const *tensors, int64_t row, int64_t column, int64_t n,
                      uint16_t turned, void *to) {
  _Alignas(64) char registers[TFC_CHAIN_REGISTERS][TFC_CHAIN_BLOCK * widest];
  struct place places[TFC_CHAIN_OPERANDS];
  for (uint16_t i = 0; i < chain->operand_count; i++) {
    const struct tfc_chain_operand *o = &chain->operands[i];
    int64_t at = o->offset + (o->each ? row / o->each % o->cycle : row) * o->row + column * o->column;
    places[i] = (struct place){i == turned ? to : (char *)tensors[o->tensor] + at * o->size, o->column};
  }
  for (uint16_t i = 0; i < chain->step_count; i++) {
    const struct tfc_chain_step *s = &chain->steps[i];
    struct place a = s->a >= 0 ? places[s->a] : (struct place){registers[-1 - s->a], 1};
    void *out = s->out >= 0 ? places[s->out].data : registers[-1 - s->out];
    if (s->unary) {
      s->unary(a.data, out, n);
    } else {
      struct place b = s->b >= 0 ? places[s->b] : (struct place){registers[-1 - s->b], 1};
      s->binary(a.data, a.step, b.data, b.step, out, n);
    }
  }
}

void tfc_chain_run(const struct tfc_chain *chain, void *const *tensors, int64_t begin, int64_t end) {
  int64_t per_row = blocks_of_row(chain);
  if (begin >= end) return;
  int64_t row = begin / per_row, block = begin % per_row;
  for (int64_t i = begin; i < end; i++) {
    int64_t column = block * TFC_CHAIN_BLOCK, n = chain->columns - column;
    run_block(chain, tensors, row, column, n < TFC_CHAIN_BLOCK ? n : TFC_CHAIN_BLOCK, NOWHERE, NULL);
    if (++block == per_row) block = 0, row++;
  }
}

void tfc_chain_run_into(const struct tfc_chain *chain, void *const *tensors, int64_t first, int64_t count,
                        uint16_t operand, void *out) {
  run_block(chain, tensors, 0, first, count, operand, out);
}
