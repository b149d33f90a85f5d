// Runs chains of element-wise operations in one pass over memory.
//
// A chain runs over a space of rows × columns, block by block. Every step computes one block with the loop of one
// operation, from operands in memory or from registers (blocks that stay in the first-level cache). The result has
// the same bits as running the operations one by one, and only values that are needed outside of the chain are written.
//
// An operand is addressed by two strides. This covers whole tensors, repeated rows (a bias), repeated columns (a factor
// per example), scalars, and slices of wider tensors (the gates of a cell, split or concatenated). A row may also be
// used for several rows of the space (a query for all keys of its example).
//
// A chain is immutable once built; its builder owns its steps and operands. Any number of threads may run disjoint
// parts of it.
#ifndef TFC_RUNTIME_HOST_CHAIN_CHAIN_H
#define TFC_RUNTIME_HOST_CHAIN_CHAIN_H

#include <stdbool.h>

#include "runtime/graph/op_def.h"
#include "runtime/ops/last_pass.h"

enum { TFC_CHAIN_REGISTERS = 12, TFC_CHAIN_BLOCK = 512, TFC_CHAIN_STEPS = 64, TFC_CHAIN_OPERANDS = 32 };

struct tfc_chain_operand { // an operand in memory
  uint16_t tensor;         // index into the pointers given to tfc_chain_run
  uint16_t size;           // bytes of an element
  int64_t offset;          // elements to the first
  int64_t row;             // elements from row to row, 0: every row is the same
  int64_t column;          // 1, or 0: one value for the whole row
  int64_t each, cycle;     // row r of the space uses the operand's row r / each % cycle; each == 0: row r
};

// Computes out = (x - center) * factor + shift, or an activation of that: one loop instead of several operations.
typedef void tfc_chain_norm_loop(const float *x, const float *center, const float *factor, const float *shift,
                                 float *out, int64_t n);

// Where a step reads and writes: an operand (>= 0) or a register (-1 - r).
struct tfc_chain_step {
  tfc_unary_loop *unary; // one of `unary`, `binary`, `norm` is set
  tfc_binary_loop *binary;
  tfc_chain_norm_loop *norm;    // set by tfc_chain_join
  int16_t a, b, c, d, out;      // c, d: only for `norm`
  uint8_t register_size;        // bytes of an element, if `out` is a register
  const struct tfc_op_def *def; // the op whose loop it is, for devices with kernels of their own
};

struct tfc_chain {
  int64_t rows, columns;
  int64_t together; // rows of a block, set by tfc_chain_flatten: several if rows are short; 0 means 1
  uint16_t step_count, operand_count;
  struct tfc_chain_step *steps;
  struct tfc_chain_operand *operands;
};

// The state of an operation that runs a chain (op "_Chain"): tensors [0, input_count) of the chain are its inputs, then
// come its outputs.
struct tfc_chain_op {
  struct tfc_chain chain;
  uint32_t input_count, output_count;
  struct tfc_shape shapes[]; // of the outputs
};

// A chain that is part of another operation: it reads that operation's output 0 and computes the result in its place.
struct tfc_chain_finish {
  struct tfc_chain chain;
  int64_t columns;                // of a row
  uint32_t own;                   // how many inputs the operation has without those of the chain, which follow them
  uint32_t input_count;           // of the chain: tensors [0, input_count) are its inputs, then comes the result
  uint32_t *from;                 // [input_count] for each input of the chain, the index of the operation's input;
                                  // TFC_NONE: the operation's output 0
  struct tfc_shape before, after; // shapes of output 0: as the operation makes it, and as its readers see it
  const struct tfc_pool *pool;    // nn_pool.h: readers see this pool of the finished result; NULL: there is none
};

// Sets *out to a last pass (runtime/ops/last_pass.h) that computes what the finish does, for the chain's inputs at
// `inputs`. False: there is none.
bool tfc_chain_last_pass(const struct tfc_chain_finish *finish, void *const *inputs, struct tfc_last_pass *out);

// If every operand allows it, joins all rows into one long row. Otherwise, if rows are short, a block gets several
// rows, and operands that are not stored row after row are copied for it. Call it once, when the chain is complete.
void tfc_chain_flatten(struct tfc_chain *chain);
// Replaces steps that together are a normalisation by one step. Call it only for devices that use tfc_chain_run.
void tfc_chain_join(struct tfc_chain *chain);
// Returns the number of blocks of the chain. Threads run ranges of them.
int64_t tfc_chain_blocks(const struct tfc_chain *chain);
// Runs blocks [begin, end). `tensors` has the memory for each tensor index.
void tfc_chain_run(const struct tfc_chain *chain, void *const *tensors, int64_t begin, int64_t end);
// Runs rows [begin, end) of the space that the chain had before it was flattened, with rows of `columns` elements.
void tfc_chain_run_rows(const struct tfc_chain *chain, void *const *tensors, int64_t columns, int64_t begin,
                        int64_t end);
// Runs columns [first, first + count) of a chain of one row, count <= TFC_CHAIN_BLOCK; values for operand `operand` are
// written to `out` instead.
void tfc_chain_run_into(const struct tfc_chain *chain, void *const *tensors, int64_t first, int64_t count,
                        uint16_t operand, void *out);

#endif
