// Checkpoints in TensorFlow's V2 format: PREFIX.index (a sorted table of entries) and PREFIX.data-?????-of-?????.
// Reading joins slices of partitioned variables, also of strings, and verifies every checksum.
//
//   struct tfc_checkpoint *c = NULL;
//   TFC_TRY(s, tfc_checkpoint_open("model.ckpt-100", &c));
//   TFC_TRY(s, tfc_checkpoint_read(c, TFC_STR("dense/kernel"), &tensor)); // release it
//   tfc_checkpoint_close(c);
//
// NOT_FOUND: no such file or tensor; INVALID_ARGUMENT: not a checkpoint, cut off, or a checksum is wrong. Messages name
// the file and the tensor. Only one thread at a time may use a checkpoint.
#ifndef TFC_RUNTIME_IO_CHECKPOINT_H
#define TFC_RUNTIME_IO_CHECKPOINT_H

#include "runtime/graph/tensor.h"

struct tfc_checkpoint;
struct tfc_checkpoint_entry {
  tfc_str name;
  tfc_dtype dtype;
  struct tfc_shape shape;
};
TFC_MUST_USE tfc_status tfc_checkpoint_open(const char *prefix, struct tfc_checkpoint **out);
void tfc_checkpoint_close(struct tfc_checkpoint *c); // NULL is fine
// Lists the tensors in order of name; slices are not listed. Borrowed.
const struct tfc_checkpoint_entry *tfc_checkpoint_entries(const struct tfc_checkpoint *c, size_t *out_count);
// Finds a tensor by its key or, in checkpoints of objects (TensorFlow 2), by the variable's own name. NULL: there is
// none.
const struct tfc_checkpoint_entry *tfc_checkpoint_find(const struct tfc_checkpoint *c, tfc_str name);
TFC_MUST_USE tfc_status tfc_checkpoint_read(struct tfc_checkpoint *c, tfc_str name, struct tfc_tensor *out);
// Reads a part: `starts` and `lengths` have `rank` numbers, one for each dimension. If a stored slice equals the part,
// only that slice is read. INVALID_ARGUMENT: the part is outside of the tensor.
TFC_MUST_USE tfc_status tfc_checkpoint_read_slice(struct tfc_checkpoint *c, tfc_str name, int rank,
                                                  const int64_t *starts, const int64_t *lengths,
                                                  struct tfc_tensor *out);

// A tensor, or a slice of a tensor. For a slice, `whole` is the shape of the whole tensor, and `offsets` [rank] says
// where the slice begins.
struct tfc_checkpoint_item {
  tfc_str name;
  const struct tfc_tensor *tensor; // host memory
  const struct tfc_shape *whole;   // NULL: not a slice
  const int64_t *offsets;
};
// Writes data first and the index last, so that a failure leaves an old checkpoint unchanged. Creates missing folders.
// DATA_LOSS: cannot be written.
TFC_MUST_USE tfc_status tfc_checkpoint_write(const char *prefix, const struct tfc_checkpoint_item *items, size_t count);

// Joins several checkpoints: their data files are renamed, their indices removed. A missing part is an error unless
// `allow_missing`. INVALID_ARGUMENT: a tensor is in two of them (slices of one tensor may be).
TFC_MUST_USE tfc_status tfc_checkpoint_merge(const char *const *prefixes, size_t count, const char *destination,
                                             bool allow_missing);

#endif
