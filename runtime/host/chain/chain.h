// Chains of element-wise operations in one pass over memory.
//
// A chain runs over a space of rows × columns, block by block: every step computes one block, from operands in memory
// or from registers (blocks that stay in the first-level cache), with the loop of the operation that it stands for. So
// the result has the bits of the operations run one by one, and only what is needed outside is written.
//
// An operand is addressed by two strides, which covers whole tensors, rows that repeat (a bias), columns that repeat (a
// factor per example), scalars, and slices of wider tensors (the gates of a cell, split or concatenated); and some rows
// that stand for several others (a query beside all keys of its example).
//
// A chain is immutable once built, and its steps and operands belong to who built it; any number of threads may run
// disjoint parts of it.
#ifndef TFC_RUNTIME_HOST_CHAIN_CHAIN_H
#define TFC_RUNTIME_HOST_CHAIN_CHAIN_H

#include "runtime/graph/op_def.h"

enum { TFC_CHAIN_REGISTERS = 12, TFC_CHAIN_BLOCK = 512, TFC_CHAIN_STEPS = 64, TFC_CHAIN_OPERANDS = 32 };

struct tfc_chain_operand { // in memory
  uint16_t tensor;         // index into the pointers given to tfc_chain_run
  uint16_t size;           // bytes of an element
  int64_t offset;          // elements to the first
  int64_t row;             // elements from row to row, 0: every row is the same
  int64_t column;          // 1, or 0: one value for the whole row
  int64_t each, cycle;     // row r is the operand's row r / each % cycle; each 0: it is the operand's row r
};

// Where a step reads and writes: an operand (>= 0) or a register (-1 - r).
struct tfc_chain_step {
  tfc_unary_loop *unary; // one of the two
  tfc_binary_loop *binary;
  int16_t a, b, out;
  uint8_t register_size; // bytes of an element, where `out` is a register
};

struct tfc_chain {
  int64_t rows, columns;
  uint16_t step_count, operand_count;
  struct tfc_chain_step *steps;
  struct tfc_chain_operand *operands;
};

// Joins rows and columns into one long row where every operand allows it. Call it once, when the chain is complete.
void tfc_chain_flatten(struct tfc_chain *chain);
// Blocks of the whole chain: work is split over threads by ranges of them.
int64_t tfc_chain_blocks(const struct tfc_chain *chain);
// Runs blocks [begin, end). `tensors` are the memory of each tensor index.
void tfc_chain_run(const struct tfc_chain *chain, void *const *tensors, int64_t begin, int64_t end);
// Columns [first, first + count) of a chain of one row, count <= TFC_CHAIN_BLOCK; what it writes to operand `operand`
// goes to `out` instead.
void tfc_chain_run_into(const struct tfc_chain *chain, void *const *tensors, int64_t first, int64_t count,
                        uint16_t operand, void *out);

#endif
