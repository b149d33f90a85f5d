// Features of tf.Example messages as columns. A column holds the values that all messages have for one key, one message
// after the other, and where the values of each message end. Columns become sparse (index, value, shape), dense (of a
// fixed shape, or padded to the longest) or ragged (values, splits) outputs.
#ifndef TFC_RUNTIME_OPS_IO_FEATURE_H
#define TFC_RUNTIME_OPS_IO_FEATURE_H

#include "runtime/graph/wire.h"
#include "runtime/ops/kernel.h"

enum tfc_column_kind { TFC_COLUMN_SPARSE, TFC_COLUMN_DENSE, TFC_COLUMN_RAGGED };
struct tfc_column {
  enum tfc_column_kind kind;
  tfc_str key;
  tfc_dtype dtype;
  void *data; // float, int64_t or tfc_str (pointing into the messages); allocated by malloc, like the two lists below
  size_t count, capacity;
  int64_t *ends; // [messages]: where the values of each message end
  bool *there;   // [messages]: whether the message has the feature
};
// Appends a Feature's values; sets there[message] if it has a list. INVALID_ARGUMENT: the list has another type.
TFC_MUST_USE tfc_status tfc_column_read_feature(struct tfc_column *c, tfc_str feature, int64_t message);
// Reads one Example, or the context of a SequenceExample: field 1 holds Features, whose field 1 contains pairs of a key
// (1) and a Feature (2). If a key occurs twice, the last one counts. found: [count]
TFC_MUST_USE tfc_status tfc_columns_read_example(struct tfc_column *columns, uint32_t count, tfc_str *found,
                                                 tfc_str example, int64_t message);
// Copies `n` values from `from` on to the elements of y from `at` on.
TFC_MUST_USE tfc_status tfc_column_copy(const struct tfc_column *c, int64_t from, int64_t n, struct tfc_tensor *y,
                                        int64_t at);
// Sets outputs first, first + step and first + 2 step. messages < 0: a single message without a batch dimension.
TFC_MUST_USE tfc_status tfc_column_sparse(struct tfc_kernel_ctx *ctx, const struct tfc_column *c, int64_t messages,
                                          uint32_t first, uint32_t step);
TFC_MUST_USE tfc_status tfc_column_dense(struct tfc_kernel_ctx *ctx, const struct tfc_column *c,
                                         const struct tfc_shape *shape, const struct tfc_tensor *otherwise,
                                         int64_t messages, uint32_t output);
TFC_MUST_USE tfc_status tfc_column_ragged(struct tfc_kernel_ctx *ctx, const struct tfc_column *c, int64_t messages,
                                          tfc_dtype split, uint32_t values_at, uint32_t splits_at);

#endif
