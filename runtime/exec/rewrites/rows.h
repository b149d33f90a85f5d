// Rows: sums and means of rows, with the element-wise operations around them, as one operation (rows.c finds them,
// rows_make.c makes the operation).
#ifndef TFC_RUNTIME_EXEC_REWRITES_ROWS_H
#define TFC_RUNTIME_EXEC_REWRITES_ROWS_H

#include "runtime/exec/rewrites/chains.h"

enum { TFC_ROWS_LEAST_COLUMNS = 2, TFC_ROWS_MOST_COLUMNS = 4096, TFC_ROWS_MOST_MEMBERS = 64 };

// An operation that can be merged with others into one that goes over a tensor row by row. `chain` describes it as the
// steps of a chain over rows × columns, even if it is no chain in the plan. An operand that has one number for each row
// has column stride 0.
struct tfc_rows_member {
  int64_t rows, columns;       // columns 0: it computes one number for each row, and nothing says how long rows are
  bool reduces;                // it is a sum or a mean
  struct tfc_chain_op *chain;  // NULL: it cannot be a part
  struct tfc_ir_input *inputs; // tensors [0, input_count) of the chain
  const uint32_t *outputs;     // those that follow
};

// How an operand lies in rows × columns: all elements, or one number for each row, and both without gaps.
static inline bool tfc_rows_is_whole(const struct tfc_rows_member *m, const struct tfc_chain_operand *o) {
  return o->column == 1 && !o->each && !o->offset && (o->row == m->columns || m->rows == 1);
}
static inline bool tfc_rows_is_each(const struct tfc_rows_member *m, const struct tfc_chain_operand *o) {
  return !o->column && !o->each && !o->offset && (o->row == 1 || m->rows == 1);
}

extern const struct tfc_op_def tfc_rows_def; // "_RowChain": its state is a struct tfc_chain_op

// Describes operation `id` as a member; `out->chain` stays NULL if it cannot be one.
TFC_MUST_USE tfc_status tfc_rows_member_of(struct tfc_ir *ir, uint32_t id, struct tfc_rows_member *out);
// Merges the members of one group, producers first. A merged operation takes members as long as it has room for them;
// members stay as they are where none of those that would be merged is a sum or a mean. made: [values] scratch, filled
// with TFC_NONE.
TFC_MUST_USE tfc_status tfc_rows_make(struct tfc_ir *ir, const struct tfc_ir_readers *readers,
                                      const struct tfc_rows_member *members, const uint32_t *ops, uint32_t count,
                                      uint32_t *made);

#endif
