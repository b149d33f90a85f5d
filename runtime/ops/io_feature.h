// Features of tf.Example messages as columns: of every key the values of all messages one after the other, and where
// each message's end. Columns become sparse (index, value, shape), dense (of a fixed shape, or padded to the longest)
// or ragged (values, splits) outputs.
#ifndef TFC_RUNTIME_OPS_IO_FEATURE_H
#define TFC_RUNTIME_OPS_IO_FEATURE_H

#include "runtime/graph/wire.h"
#include "runtime/ops/kernel.h"

enum tfc_column_kind { TFC_COLUMN_SPARSE, TFC_COLUMN_DENSE, TFC_COLUMN_RAGGED };
struct tfc_column {
  enum tfc_column_kind kind;
  tfc_str key;
  tfc_dtype dtype;
  void *data; // float, int64_t or tfc_str (within the messages); malloc'd, as the two lists are
  size_t count, capacity;
  int64_t *ends; // [messages]
  bool *there;   // [messages]
};
// Appends a Feature's values; there[message] where it has a list. INVALID_ARGUMENT: a list of another type.
TFC_MUST_USE tfc_status tfc_column_read_feature(struct tfc_column *c, tfc_str feature, int64_t message);
// One Example, or the context of a SequenceExample: field 1 holds Features, whose field 1 are pairs of a key (1) and a
// Feature (2). Of a key that it has twice the last one counts. found: [count]
TFC_MUST_USE tfc_status tfc_columns_read_example(struct tfc_column *columns, uint32_t count, tfc_str *found,
                                                 tfc_str example, int64_t message);
// `n` values from `from` on become elements `at` and on.
TFC_MUST_USE tfc_status tfc_column_copy(const struct tfc_column *c, int64_t from, int64_t n, struct tfc_tensor *y,
                                        int64_t at);
// Outputs first, first + step, first + 2 step. messages < 0: one message that is no batch
TFC_MUST_USE tfc_status tfc_column_sparse(struct tfc_kernel_ctx *ctx, const struct tfc_column *c, int64_t messages,
                                          uint32_t first, uint32_t step);
TFC_MUST_USE tfc_status tfc_column_dense(struct tfc_kernel_ctx *ctx, const struct tfc_column *c,
                                         const struct tfc_shape *shape, const struct tfc_tensor *otherwise,
                                         int64_t messages, uint32_t output);
TFC_MUST_USE tfc_status tfc_column_ragged(struct tfc_kernel_ctx *ctx, const struct tfc_column *c, int64_t messages,
                                          tfc_dtype split, uint32_t values_at, uint32_t splits_at);

#endif
